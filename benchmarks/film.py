"""Time of a film of spectra: ours, SciPy's Lanczos, PyTorch Hessian-vector products.

Two films at sixty times of one run, d = 1000, ten samples per dimension, on two cores, of the
Hessian and of the G-matrix:

* BGHJ Figures 2.1 and 2.3: ten leading eigenpairs of all ten diagonal blocks of the
  k-Gaussian mixture;
* BGHJ Figures 2.4 and 2.5: two leading eigenpairs of the blocks of all twenty neurons of the
  two-layer network, and all of its second layer.

What they are compared with finds the same eigenpairs of one of these blocks to the same residual
at some of the times, each starting cold, as these tools do; they are set against a film of that
block alone, for blocks differ in cost:

* SciPy ``eigsh`` on our matrix-free operator;
* ``eigsh`` on products by automatic differentiation, as written by hand in PyTorch
  (double backward for the Hessian, a Jacobian and its transpose for the G-matrix);
* ``eigsh`` on the operators of curvlinops, where that is installed and the network is linear.

Before anything is timed, all operators must agree on the same vectors.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from common import Row, alone, available, peak, row
from scipy.sparse.linalg import LinearOperator, eigsh
from sgd import paper_problem
from threadpoolctl import threadpool_limits

from traindyn._types import Array
from traindyn.problems.base import MATRICES, Block, Matrix, Problem, Sample
from traindyn.problems.two_layer import TwoLayerMixture
from traindyn.sgd import direct
from traindyn.spectra import blocks, film
from traindyn.trajectory import Trajectory

Product: TypeAlias = Callable[[Array], Array]

RESIDUAL = 1e-8
AGREEMENT = 1e-11
WARM_UP = 4
"""Earliest compared time: some training has happened."""
NEURONS = 20


class Scene(NamedTuple):
    """One run and its test data, with the block that all tools solve."""

    problem: Problem
    path: Trajectory[Any]
    sample: Sample
    block: Block
    r: tuple[int, ...]
    """Eigenpairs of every block."""

    def point(self, n: int) -> Any:
        """Parameters at the n-th time."""
        snapshots: Any = self.path.snapshots
        return type(snapshots)(*(field[n] for field in snapshots))

    @property
    def pairs(self) -> int:
        """Eigenpairs of the compared block."""
        return self.r[self.problem.blocks.index(self.block)]


class Timing(NamedTuple):
    """Seconds per block, and the worst residual found."""

    seconds: float
    residual: float


def scene(dimension: int, alpha: int, frames: int) -> Scene:
    """Train the k-Gaussian mixture once, with more frames early, and draw test data."""
    problem = paper_problem(dimension)
    path, sample = trained(problem, alpha, frames, horizon=50.0)
    return Scene(problem, path, sample, (0, 0), (problem.k,) * problem.k)


def layers(dimension: int, alpha: int, frames: int) -> Scene:
    """Train a two-layer network once; compare at the neuron of largest weight at the end."""
    problem = TwoLayerMixture.xor(NEURONS, dimension, precision=10.0, ridge=0.03)
    path, sample = trained(problem, alpha, frames, horizon=100.0)
    neuron = int(np.argmax(np.abs(path.snapshots.v[-1])))
    return Scene(problem, path, sample, (neuron, neuron), (2,) * NEURONS + (NEURONS,))


def trained(
    problem: Problem, alpha: int, frames: int, *, horizon: float
) -> tuple[Trajectory[Any], Sample]:
    """Run SGD from a random start, and draw test data."""
    d = problem.dimension
    times = horizon * np.linspace(0, 1, frames) ** 2
    path = direct.run(
        problem, problem.initial(rng=0), times, step_size=1 / d, rng=1, snapshots=True
    )
    return path, problem.sample(alpha * d, rng=2)


Maker: TypeAlias = Callable[[int, int, int], Scene]


def filming(
    make: Maker, dimension: int, alpha: int, frames: int, workers: int, everything: bool
) -> tuple[float, float, float]:
    """Film all blocks or the compared one; seconds, peak memory in MB and worst residual."""
    taken = make(dimension, alpha, frames)
    r, chosen = (taken.r, None) if everything else (taken.pairs, (taken.block,))
    # A single block is filmed twice: what is compiled first would weigh more than in all of them.
    for _ in range(1 if everything else 2):
        start = time.perf_counter()
        seen = film.film(*taken[:3], r=r, blocks=chosen, tolerance=RESIDUAL, workers=workers)
        seconds = time.perf_counter() - start
    residual = max(float(np.nanmax(values)) for values in seen.residuals.values())
    return seconds, peak(), residual


def ours(taken: Scene, matrix: Matrix, n: int) -> Product:
    """Multiply by the compared block with our matrix-free operator."""
    point = taken.point(n)
    return blocks.operator(taken.problem, matrix, taken.block, point, taken.sample).matmat


def by_autograd(taken: Scene, matrix: Matrix, n: int) -> Product:
    """Multiply by the same block with plain automatic differentiation."""
    import torch

    losses, own = torch_losses(taken, n)
    first = own.clone().requires_grad_(True)

    def hessian(vector: Array) -> Array:
        (gradient,) = torch.autograd.grad(losses(first).mean(), first, create_graph=True)
        (product,) = torch.autograd.grad(gradient @ torch.from_numpy(vector), first)
        return np.asarray(product.numpy())

    def g_matrix(vector: Array) -> Array:
        # Per-sample gradients are never formed: G v = J^T (J v) / M.
        _, along = torch.func.jvp(losses, (own,), (torch.from_numpy(vector),))
        _, pull = torch.func.vjp(losses, own)
        return np.asarray(pull(along)[0].numpy()) / len(taken.sample.labels)

    chosen = hessian if matrix == "hessian" else g_matrix
    return lambda vector: chosen(np.ascontiguousarray(vector).ravel())


def torch_losses(taken: Scene, n: int) -> tuple[Callable[[Any], Any], Any]:
    """Loss of every draw as a function of the compared row, and the row itself."""
    import torch

    inputs, labels = torch.from_numpy(taken.sample.inputs), torch.from_numpy(taken.sample.labels)
    row, point = taken.block[0], taken.point(n)
    weights = torch.tensor(point[-1])

    def preactivations(own: Any) -> Any:
        return inputs @ torch.cat([weights[:row], own[None], weights[row + 1 :]]).T

    if isinstance(taken.problem, TwoLayerMixture):
        second = torch.tensor(point.v)
        classes = torch.tensor(taken.problem.labels)[labels].to(torch.float64)

        def losses(own: Any) -> Any:
            logits = torch.relu(preactivations(own)) @ second
            return torch.nn.functional.binary_cross_entropy_with_logits(
                logits, classes, reduction="none"
            )
    else:

        def losses(own: Any) -> Any:
            return torch.nn.functional.cross_entropy(preactivations(own), labels, reduction="none")

    return losses, weights[row]


def by_curvlinops(taken: Scene, matrix: Matrix, n: int) -> Product:
    """Multiply by the first block of the mixture with curvlinops: Hessian or empirical Fisher."""
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
    size, r = taken.problem.dimension, taken.pairs
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
    """Measure everything on two cores, in about a quarter of an hour at full size.

    Parameters
    ----------
    dimension, alpha, frames : int
        Of both films; the mixture has ten classes, the network twenty neurons.
    compared : int
        Number of times at which other tools solve one block of each matrix.

    Returns
    -------
    list of dict
        Keys group, name, value, unit, accuracy, ratio (to our time for the compared block on
        two cores, above one when slower; None where it makes no sense).
    """
    size = f"d={dimension}, M={alpha * dimension}"
    moments = sorted({int(n) for n in np.linspace(min(WARM_UP, frames - 1), frames - 1, compared)})
    shape = (dimension, alpha, frames)
    return [
        *compare("Spectra along a run", f"k=10, {size}", scene, shape, moments),
        *compare("Spectra of two layers", f"K={NEURONS}, {size}", layers, shape, moments),
    ]


def compare(
    group: str, size: str, make: Maker, shape: tuple[int, int, int], moments: list[int]
) -> list[Row]:
    """Time one film, and what other tools need for one of its blocks."""
    seconds, memory, residual = alone(filming, make, *shape, 2, True)
    single, _, single_residual = alone(filming, make, *shape, 2, False)
    taken = make(*shape)
    # The second layer is left out of the average: its blocks are too small to matter.
    wide = sum(
        taken.problem.parameter(b, taken.point(0)).size > NEURONS for b in taken.problem.blocks
    )
    count = shape[2] * 2 * wide
    ours_per_block = single / (2 * shape[2])

    def line(name: str, value: float, unit: str, found: float, ratio: float | None = None) -> Row:
        return row(group, name, value, unit, f"residual {found:.0e}", ratio)

    rows = [
        line(f"film of {count} blocks, {size}", seconds, "s", residual),
        line(f"film of {count} blocks, {size}: peak memory", memory, "MB", residual),
        line("film of all blocks, per block", 1e3 * seconds / count, "ms", residual),
        line("film of the compared block", 1e3 * ours_per_block, "ms", single_residual, 1.0),
    ]
    cases: list[tuple[Matrix, int]] = [(m, n) for m in MATRICES for n in moments]
    for name, build in _rivals(taken):
        check(taken, build, moments[-1])
        lanczos(taken, build, cases[:1])  # first calls compile and allocate
        timing = best_of_threads(lambda build=build: lanczos(taken, build, cases))
        ratio = timing.seconds / ours_per_block
        rows.append(line(name, 1e3 * timing.seconds, "ms", timing.residual, ratio))
    return rows


def _rivals(taken: Scene) -> Iterator[tuple[str, Callable[[Scene, Matrix, int], Product]]]:
    yield "SciPy eigsh, cold, our operator", ours
    if available("torch"):
        yield "eigsh on PyTorch double backward / Jacobians", by_autograd
    if available("curvlinops") and not isinstance(taken.problem, TwoLayerMixture):
        yield "eigsh on curvlinops", by_curvlinops


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1, ensure_ascii=False))
