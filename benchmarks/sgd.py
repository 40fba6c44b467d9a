"""Time per step of one-pass SGD: ours, a NumPy loop, a PyTorch autograd loop.

Same problem (k = 10, d = 1000 unless stated), same dynamics, float64, one thread, one
process. Before anything is timed, all full-dimensional variants are fed the same stream
and must arrive at the same point.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from common import Row, available, best, row
from threadpoolctl import threadpool_limits

from traindyn._types import Array
from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.sgd import direct, reduced

Draw: TypeAlias = Callable[[], tuple[Array, int]]

GROUP = "SGD, one step"
TOLERANCE = 1e-10
DIMENSIONS = tuple(10**power for power in range(2, 8))


def paper_problem(dimension: int = 1000) -> KGaussianMixture:
    """Parameters of BGHJ Figure 2.1."""
    spacing = 50 if dimension >= 500 else None
    return KGaussianMixture.orthonormal(10, dimension, precision=10.0, ridge=0.01, spacing=spacing)


def stream(problem: KGaussianMixture, seed: int) -> Draw:
    """Return a function that draws samples from the stream the direct kernel consumes."""
    rng = np.random.default_rng(seed)
    cumulative, means = np.cumsum(problem.weights), problem.means
    deviation = 1.0 / np.sqrt(problem.precision)

    def draw() -> tuple[Array, int]:
        label = min(int(np.searchsorted(cumulative, rng.random(), side="right")), problem.k - 1)
        return means[label] + deviation * rng.standard_normal(problem.dimension), label

    return draw


def numpy_loop(
    problem: KGaussianMixture, x: Array, steps: int, step_size: float, draw: Draw
) -> Array:
    """Plain vectorised NumPy."""
    x = x.copy()
    keep = 1.0 - step_size * problem.ridge
    for _ in range(steps):
        y, label = draw()
        logits = x @ y
        residual = np.exp(logits - logits.max())
        residual /= residual.sum()
        residual[label] -= 1.0
        x *= keep
        x -= np.outer(step_size * residual, y)
    return x


def torch_loop(
    problem: KGaussianMixture, x: Array, steps: int, step_size: float, draw: Draw | None
) -> Array:
    """Plain PyTorch: cross-entropy, backward, SGD with weight decay.

    Without `draw`, PyTorch draws its own samples, as such a loop would.
    """
    import torch

    torch.set_num_threads(1)
    parameter = torch.tensor(x, requires_grad=True)
    optimiser = torch.optim.SGD([parameter], lr=step_size, weight_decay=problem.ridge)
    means = torch.tensor(problem.means)
    weights = torch.tensor(problem.weights)
    deviation = problem.precision**-0.5
    for _ in range(steps):
        if draw is None:
            label = torch.multinomial(weights, 1)
            noise = torch.randn(problem.dimension, dtype=torch.float64)
            y = means[label] + deviation * noise
        else:
            array, index = draw()
            y, label = torch.from_numpy(array)[None], torch.tensor([index])
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(y @ parameter.T, label)
        loss.backward()
        optimiser.step()
    return np.asarray(parameter.detach().numpy())


def deviations(steps: int = 2000) -> dict[str, float]:
    """Largest difference of the end points from the direct kernel's, same stream."""
    problem = paper_problem()
    start = problem.initial(rng=0)
    step_size = 1.0 / problem.dimension
    path = direct.run(
        problem, start, [steps * step_size], step_size=step_size, rng=1, snapshots=True
    )
    expected = path.snapshots.x[-1]
    found = {"numpy": numpy_loop(problem, start.x, steps, step_size, stream(problem, 1))}
    if available("torch"):
        found["torch"] = torch_loop(problem, start.x, steps, step_size, stream(problem, 1))
    worst = {name: float(np.abs(x - expected).max()) for name, x in found.items()}
    for name, gap in worst.items():
        if gap > TOLERANCE:
            raise AssertionError(f"the {name} loop departs from the direct kernel by {gap:.3g}")
    return worst


def time_direct(problem: KGaussianMixture, start: Point, steps: int) -> Callable[[], Any]:
    """One run in full dimension."""
    size = 1.0 / problem.dimension
    return lambda: direct.run(problem, start, [steps * size], step_size=size, rng=1)


def time_reduced(problem: KGaussianMixture, steps: int) -> Callable[[], Any]:
    """One run on the statistics."""
    size, start = 1.0 / problem.dimension, problem.initial_statistics()
    return lambda: reduced.run(problem, start, [steps * size], step_size=size, rng=1)


def measure() -> list[Row]:
    """Measure everything, in about 20 seconds.

    Returns
    -------
    list of dict
        Keys group, name, value, unit, accuracy, ratio (to the direct kernel's time, above
        one when slower; None where it makes no sense).
    """
    with threadpool_limits(limits=1):
        return _measure()


def _measure() -> list[Row]:
    problem = paper_problem()
    start = problem.initial(rng=0)
    step_size = 1.0 / problem.dimension

    compile_direct = best(time_direct(problem, start, 1), 1, repeats=1) / 1e6
    compile_reduced = best(time_reduced(problem, 1), 1, repeats=1) / 1e6
    gaps = deviations()
    ours = best(time_direct(problem, start, 20_000), 20_000)

    def step(name: str, value: float, accuracy: str) -> Row:
        return row(GROUP, name, value, "µs per step", accuracy, value / ours)

    rows = [step("direct kernel, k=10, d=1000", ours, "reference path")]
    plain = best(lambda: numpy_loop(problem, start.x, 3000, step_size, stream(problem, 1)), 3000)
    same = "same stream, same point after 2000 steps to {:.0e}"
    rows.append(step("NumPy loop, k=10, d=1000", plain, same.format(gaps["numpy"])))
    if "torch" in gaps:
        autograd = best(lambda: torch_loop(problem, start.x, 1000, step_size, None), 1000)
        rows.append(
            step("PyTorch autograd loop, k=10, d=1000", autograd, same.format(gaps["torch"]))
        )
    for dimension in DIMENSIONS:
        value = best(time_reduced(paper_problem(dimension), 100_000), 100_000, repeats=3)
        rows.append(
            step(
                f"reduced kernel, k=10, d={dimension:.0e}", value, "equal in law, exact statistics"
            )
        )
    note = "first call, on top of the cached step if there is one"
    rows.append(row(GROUP, "direct kernel, compilation", compile_direct, "s", note))
    rows.append(row(GROUP, "reduced kernel, compilation", compile_reduced, "s", note))
    return rows


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1, ensure_ascii=False))
