"""Time of a film of spectra: ours, SciPy's Lanczos, PyTorch Hessian-vector products.

The film is that of BGHJ Figures 2.1 and 2.3: ten leading eigenpairs of all ten diagonal
blocks of the Hessian and of the G-matrix at sixty times of one run, d = 1000, ten samples
per dimension, on two cores. What it is compared with finds the same eigenpairs of some of
the same blocks to the same residual, each starting cold, as these tools do:

* SciPy ``eigsh`` on our matrix-free operator;
* ``eigsh`` on products by automatic differentiation, as written by hand in PyTorch
  (double backward for the Hessian, a Jacobian and its transpose for the G-matrix);
* ``eigsh`` on the operators of curvlinops, where that is installed.

Before anything is timed, all operators must agree on the same vectors.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh
from sgd import paper_problem
from threadpoolctl import threadpool_limits

from traindyn.problems.base import MATRICES, Matrix, Sample
from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.sgd import direct
from traindyn.spectra import blocks, film
from traindyn.trajectory import Trajectory

Array: TypeAlias = NDArray[np.float64]
Row: TypeAlias = dict[str, Any]
Product: TypeAlias = Callable[[Array], Array]

GROUP = "Spectra along a run"
RESIDUAL = 1e-8
AGREEMENT = 1e-11
WARM_UP = 4
"""Earliest compared time: some training has happened."""


class Scene(NamedTuple):
    """One run and its test data."""

    problem: KGaussianMixture
    path: Trajectory[Any]
    sample: Sample

    def point(self, n: int) -> Point:
        """Parameters at the n-th time."""
        return Point(self.path.snapshots.x[n])


class Timing(NamedTuple):
    """Seconds per block, and the worst residual found."""

    seconds: float
    residual: float


def scene(dimension: int, alpha: int, frames: int, horizon: float = 50.0) -> Scene:
    """Train once, with more frames early in training, and draw test data."""
    problem = paper_problem(dimension)
    times = horizon * np.linspace(0, 1, frames) ** 2
    path = direct.run(
        problem, problem.initial(rng=0), times, step_size=1 / dimension, rng=1, snapshots=True
    )
    return Scene(problem, path, problem.sample(alpha * dimension, rng=2))


def filming(dimension: int, alpha: int, frames: int, workers: int) -> tuple[float, float, float]:
    """Film everything; seconds, peak memory in MB and worst residual."""
    taken = scene(dimension, alpha, frames)
    start = time.perf_counter()
    seen = film.film(*taken, r=taken.problem.k, tolerance=RESIDUAL, workers=workers)
    seconds = time.perf_counter() - start
    residual = max(float(values.max()) for values in seen.residuals.values())
    # Kilobytes on Linux.
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, residual


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a fresh process, so that peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def ours(taken: Scene, matrix: Matrix, n: int) -> Product:
    """Multiply by the first block with our matrix-free operator."""
    return blocks.operator(taken.problem, matrix, (0, 0), taken.point(n), taken.sample).matmat


def by_autograd(taken: Scene, matrix: Matrix, n: int) -> Product:
    """Multiply by the same block with plain automatic differentiation."""
    import torch

    x = torch.tensor(taken.point(n).x)
    inputs, labels = torch.from_numpy(taken.sample.inputs), torch.from_numpy(taken.sample.labels)
    first = x[0].clone().requires_grad_(True)

    def losses(row: Any) -> Any:
        logits = inputs @ torch.cat([row[None], x[1:]]).T
        return torch.nn.functional.cross_entropy(logits, labels, reduction="none")

    def hessian(vector: Array) -> Array:
        (gradient,) = torch.autograd.grad(losses(first).mean(), first, create_graph=True)
        (product,) = torch.autograd.grad(gradient @ torch.from_numpy(vector), first)
        return np.asarray(product.numpy())

    def g_matrix(vector: Array) -> Array:
        # Per-sample gradients are never formed: G v = J^T (J v) / M.
        row = first.detach()
        _, along = torch.func.jvp(losses, (row,), (torch.from_numpy(vector),))
        _, pull = torch.func.vjp(losses, row)
        return np.asarray(pull(along)[0].numpy()) / labels.numel()

    chosen = hessian if matrix == "hessian" else g_matrix
    return lambda vector: chosen(np.ascontiguousarray(vector).ravel())


def by_curvlinops(taken: Scene, matrix: Matrix, n: int) -> Product:
    """Multiply by the same block with curvlinops: its Hessian, or its empirical Fisher."""
    import curvlinops
    import torch

    class Block(torch.nn.Module):
        """One trained row among fixed ones."""

        def __init__(self, x: Any) -> None:
            super().__init__()
            self.first = torch.nn.Parameter(x[:1].clone())
            self.register_buffer("others", x[1:].clone())

        def forward(self, inputs: Any) -> Any:
            return inputs @ torch.cat([self.first, self.others]).T

    model = Block(torch.tensor(taken.point(n).x))
    data = [(torch.from_numpy(taken.sample.inputs), torch.from_numpy(taken.sample.labels))]
    kind = curvlinops.HessianLinearOperator if matrix == "hessian" else curvlinops.EFLinearOperator
    operator = kind(
        model,
        torch.nn.CrossEntropyLoss(),
        list(model.parameters()),
        data,
        check_deterministic=False,
    )
    return lambda vector: np.asarray(
        (operator @ torch.from_numpy(np.ascontiguousarray(vector).ravel())).detach().numpy()
    )


def check(taken: Scene, build: Callable[[Scene, Matrix, int], Product], n: int) -> None:
    """Refuse to time an operator that is not the same matrix."""
    vector = np.random.default_rng(3).standard_normal((taken.problem.dimension, 1))
    for matrix in MATRICES:
        expected = ours(taken, matrix, n)(vector).ravel()
        found = build(taken, matrix, n)(vector).ravel()
        gap = np.abs(found - expected).max() / np.abs(expected).max()
        if gap > AGREEMENT:
            raise AssertionError(f"{build.__name__} departs from ours by {gap:.3g} for {matrix}")


def lanczos(
    taken: Scene,
    build: Callable[[Scene, Matrix, int], Product],
    cases: list[tuple[Matrix, int]],
) -> Timing:
    """Cold ``eigsh`` on each case: mean seconds per block."""
    size, r = taken.problem.dimension, taken.problem.k
    seconds, worst = 0.0, 0.0
    for matrix, n in cases:
        start = time.perf_counter()
        product = build(taken, matrix, n)
        operator = LinearOperator(
            (size, size),
            matvec=lambda v, product=product: product(v.reshape(size, 1)).ravel(),
            dtype=np.float64,
        )
        v0 = np.random.default_rng(4).standard_normal(size)
        values, vectors = eigsh(operator, r, which="LM", tol=RESIDUAL, v0=v0)
        seconds += time.perf_counter() - start
        block = ours(taken, matrix, n)
        gaps = np.linalg.norm(block(vectors) - vectors * values, axis=0)
        worst = max(worst, float(gaps.max() / np.abs(values).max()))
    return Timing(seconds / len(cases), worst)


def available(module: str) -> bool:
    """Whether a comparison can be made here."""
    return importlib.util.find_spec(module) is not None


def best_of_threads(time_once: Callable[[], Timing]) -> Timing:
    """Fastest with one or two threads for linear algebra: two are not always better."""
    timings = []
    for threads in (1, 2):
        if available("torch"):
            import torch

            torch.set_num_threads(threads)
        with threadpool_limits(limits=threads):
            timings.append(time_once())
    return min(timings)


def measure(
    dimension: int = 1000, alpha: int = 10, frames: int = 60, compared: int = 3
) -> list[Row]:
    """Measure everything on two cores, in about ten minutes at full size.

    Parameters
    ----------
    dimension, alpha, frames : int
        Of the film; it always has ten classes.
    compared : int
        Number of times at which other tools solve the first block of each matrix.

    Returns
    -------
    list of dict
        Keys group, name, value, unit, accuracy, ratio (to our time per block on two cores,
        above one when slower; None where it makes no sense).
    """
    seconds, memory, residual = alone(filming, dimension, alpha, frames, 2)
    count = frames * 2 * 10
    ours_per_block = seconds / count
    size = f"k=10, d={dimension}, M={alpha * dimension}"

    def row(name: str, value: float, unit: str, found: float, ratio: float | None) -> Row:
        return {
            "group": GROUP,
            "name": name,
            "value": value,
            "unit": unit,
            "accuracy": f"residual {found:.0e}",
            "ratio": ratio,
        }

    rows = [
        row(f"film of {count} blocks, {size}", seconds, "s", residual, None),
        row(f"film of {count} blocks, {size}: peak memory", memory, "MB", residual, None),
        row("film, per block", 1e3 * ours_per_block, "ms", residual, 1.0),
    ]
    taken = scene(dimension, alpha, frames)
    last = frames - 1
    moments = np.linspace(min(WARM_UP, last), last, compared).astype(int)
    cases: list[tuple[Matrix, int]] = [(m, int(n)) for m in MATRICES for n in moments]
    for name, build, chosen in _rivals(cases):
        check(taken, build, last)
        lanczos(taken, build, chosen[:1])  # first calls compile and allocate
        timing = best_of_threads(lambda build=build, chosen=chosen: lanczos(taken, build, chosen))
        ratio = timing.seconds / ours_per_block
        rows.append(row(name, 1e3 * timing.seconds, "ms", timing.residual, ratio))
    return rows


def _rivals(
    cases: list[tuple[Matrix, int]],
) -> Iterator[tuple[str, Callable[[Scene, Matrix, int], Product], list[tuple[Matrix, int]]]]:
    yield "SciPy eigsh, cold, our operator, per block", ours, cases
    # Seconds per solve: the last time only.
    final = [case for case in cases if case[1] == cases[-1][1]]
    if available("torch"):
        yield "eigsh on PyTorch double backward / Jacobians, per block", by_autograd, final
    if available("curvlinops"):
        yield "eigsh on curvlinops, per block", by_curvlinops, final


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1, ensure_ascii=False))
