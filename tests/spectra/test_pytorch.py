"""The lines for PyTorch on the page about networks, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindyn import linalg
from traindyn.spectra import density, film


def lines(root: Path) -> list[str]:
    """The blocks of code of the page that the book does not run."""
    page = (root / "book" / "your-own-network.md").read_text(encoding="utf8")
    return re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def test_lines_of_the_page_are_code(root: Path) -> None:
    """Where PyTorch is missing, at least a slip of syntax is seen."""
    assert len(lines(root)) == 2
    for block in lines(root):
        compile(block, "your-own-network.md", "exec")


def test_page_names_the_version_that_is_tested(root: Path) -> None:
    """Readers could be told of a release that was never tried."""
    places = ("book/your-own-network.md", ".github/workflows/test.yml")
    found = [
        re.findall(
            r"pip install .*\bhessian-eigenthings==([\w.]+)", (root / place).read_text("utf8")
        )
        for place in places
    ]
    assert found[0] == found[1] and len(found[0]) == 1


def exact(model: Any, x: Any, y: Any) -> tuple[Any, dict[str, Any]]:
    """The mean gradient of the cross-entropy, and both matrices, formed by another route."""
    import torch

    known = dict(model.named_parameters())

    def losses(flat: Any) -> Any:
        parts = torch.split(flat, [each.numel() for each in known.values()])
        given = {name: part.view_as(known[name]) for name, part in zip(known, parts)}
        outputs = torch.func.functional_call(model, given, (x,))
        return torch.nn.functional.cross_entropy(outputs, y, reduction="none")

    weights = torch.cat([each.detach().flatten() for each in known.values()])
    jacobian = torch.func.jacrev(losses)(weights)
    matrices = {
        "hessian": torch.func.hessian(lambda flat: losses(flat).mean())(weights),
        "g_matrix": jacobian.T @ jacobian / len(y),
    }
    return jacobian.mean(dim=0).numpy(), {name: each.numpy() for name, each in matrices.items()}


@pytest.mark.filterwarnings("default")  # those of other libraries are not ours
def test_lines_of_the_page_find_the_matrices(root: Path) -> None:
    """Operators could be averaged in another way, or their weights ordered in another one."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("curvlinops")
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(lines(root)[0], names)
    movie = names["movie"]
    np.testing.assert_array_equal(movie.times, [0, 20, 40, 60, 80, 100])
    for matrix in ("hessian", "g_matrix"):
        assert movie.eigenvalues[matrix].shape == (6, 1, 4)
        assert movie.converged[matrix].all() and np.isfinite(movie.alignment[matrix]).all()

    model, x, y = names["model"].double(), names["x"].double(), names["y"]
    loss = torch.nn.CrossEntropyLoss()
    _, matrices, gradient = next(names["training"](model, loss, x, y, 0, 1, lr=0.1))
    mean, expected = exact(model, x, y)
    np.testing.assert_allclose(gradient, mean, rtol=1e-9, atol=1e-12)
    for matrix, whole in expected.items():
        found = linalg.as_operator(matrices[matrix]).matmat(np.eye(len(whole)))
        np.testing.assert_allclose(found, whole, rtol=1e-9, atol=1e-12)
        top = linalg.top_eigenpairs(matrices[matrix], 3)
        np.testing.assert_allclose(
            top.eigenvalues, linalg.top_eigenpairs(whole, 3).eigenvalues, rtol=1e-10
        )


@pytest.mark.filterwarnings("default")  # those of other libraries are not ours
def test_lines_of_the_page_take_hessian_eigenthings(root: Path) -> None:
    """Its operators could be other matrices, or lose digits on the way to film and density.

    The matrices of several batches of one size are those of all samples; those of the first batch
    alone, which are near, are refused by the same comparison.
    """
    torch = pytest.importorskip("torch")
    pytest.importorskip("hessian_eigenthings")
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(lines(root)[1], names)
    model = torch.nn.Sequential(torch.nn.Linear(20, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
    model, loss = model.double(), torch.nn.CrossEntropyLoss()
    x, y = torch.randn(300, 20, dtype=torch.float64), torch.randint(4, (300,))
    data = list(zip(x.split(100), y.split(100)))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    formed = []

    def training(given: Any) -> Any:
        for step in range(3):
            mean, whole = exact(model, x, y)
            formed.append((mean, whole))
            yield step, names["matrices"](model, loss, given), mean
            optimiser.zero_grad()
            loss(model(x), y).backward()
            optimiser.step()

    movie = film.follow(training(data), 3, tolerance=1e-10)
    for name in ("hessian", "g_matrix"):
        assert movie.converged[name].all()
        for time, (mean, whole) in enumerate(formed):
            values, vectors = np.linalg.eigh(whole[name])
            top = np.argsort(-abs(values))[:3]
            np.testing.assert_allclose(movie.eigenvalues[name][time, 0], values[top], rtol=1e-8)
            share = np.linalg.norm(vectors[:, top].T @ mean) / np.linalg.norm(mean)
            assert movie.alignment[name][time, 0] == pytest.approx(share, rel=1e-6)

    _, matrices, _ = next(training(data))
    _, near, _ = next(training(data[:1]))
    _, whole = exact(model, x, y)
    for name, matrix in whole.items():
        points = np.linspace(*np.linalg.eigvalsh(matrix)[[0, -1]], 30)
        width = np.ptp(points) / 20
        seen, other, expected = (
            density.estimate(each, probes=2, steps=20, rng=1).smoothed(points, width).value
            for each in (matrices[name], near[name], matrix)
        )
        np.testing.assert_allclose(seen, expected, rtol=1e-7, atol=1e-9)
        assert abs(other - expected).max() > 1e-3 * expected.max()
