"""The lines for PyTorch on the page about networks, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindyn import linalg


def lines(root: Path) -> str:
    """The block of code of the page that the book does not run."""
    page = (root / "book" / "your-own-network.md").read_text(encoding="utf8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return str(block)


def test_lines_of_the_page_are_code(root: Path) -> None:
    """Where PyTorch is missing, at least a slip of syntax is seen."""
    compile(lines(root), "your-own-network.md", "exec")


@pytest.mark.filterwarnings("default")  # those of other libraries are not ours
def test_lines_of_the_page_find_the_matrices(root: Path) -> None:
    """Operators could be averaged in another way, or their weights ordered in another one."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("curvlinops")
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(lines(root), names)
    movie = names["movie"]
    np.testing.assert_array_equal(movie.times, [0, 20, 40, 60, 80, 100])
    for matrix in ("hessian", "g_matrix"):
        assert movie.eigenvalues[matrix].shape == (6, 1, 4)
        assert movie.converged[matrix].all() and np.isfinite(movie.alignment[matrix]).all()

    model, x, y = names["model"].double(), names["x"].double(), names["y"]
    loss = torch.nn.CrossEntropyLoss()
    _, matrices, gradient = next(names["training"](model, loss, x, y, 0, 1, lr=0.1))
    known = dict(model.named_parameters())

    def losses(flat: Any) -> Any:
        parts = torch.split(flat, [each.numel() for each in known.values()])
        given = {name: part.view_as(known[name]) for name, part in zip(known, parts)}
        outputs = torch.func.functional_call(model, given, (x,))
        return torch.nn.functional.cross_entropy(outputs, y, reduction="none")

    weights = torch.cat([each.detach().flatten() for each in known.values()])
    jacobian = torch.func.jacrev(losses)(weights)
    expected = {
        "hessian": torch.func.hessian(lambda flat: losses(flat).mean())(weights),
        "g_matrix": jacobian.T @ jacobian / len(y),
    }
    np.testing.assert_allclose(gradient, jacobian.mean(dim=0), rtol=1e-9, atol=1e-12)
    for matrix, whole in expected.items():
        found = linalg.as_operator(matrices[matrix]).matmat(np.eye(len(weights)))
        np.testing.assert_allclose(found, whole, rtol=1e-9, atol=1e-12)
        top = linalg.top_eigenpairs(matrices[matrix], 3)
        exact = linalg.top_eigenpairs(whole.numpy(), 3)
        np.testing.assert_allclose(top.eigenvalues, exact.eigenvalues, rtol=1e-10)
