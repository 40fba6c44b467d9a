"""Mean-field theory, thresholds and full-batch descent: time, memory, share of the bandwidth.

* one solution of the mean-field equations, and what follows from its samples: edge, outlier and
  overlap of the Hessian, a threshold;
* one step of full-batch gradient descent, as a share of what reading the inputs once costs
  on the same threads, and next to the same step in PyTorch (JAX, where it is installed);
* a curve of success probabilities.

The rivals start from the same neurons and must arrive at the same point before they are timed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from common import Row, alone, available, best, peak, row
from numba import njit
from scipy.optimize import brentq
from threadpoolctl import threadpool_limits

from traindyn._types import Array
from traindyn.dmft import MeanField, solve
from traindyn.dmft.curve import threshold_curve
from traindyn.laws import HardSubspace
from traindyn.problems.multi_index import Data, MultiIndex
from traindyn.sgd import full_batch

Step: TypeAlias = Callable[[Any, int], Array]

GROUP = "Mean-field theory and full-batch descent"
line = partial(row, GROUP)
STEP_SIZE = 0.5
HORIZON, PATHS, SEEDS = 80, 5000, 4
DRAWS = 100_000
DIMENSION, SAMPLES = 1000, 17_500
AGREEMENT = 1e-4
"""Of neurons of norm one after ten steps in single precision."""
CURVE = (4.0, 5.0, 6.0, 7.0, 8.0)
RATIOS = np.linspace(4.5, 9.0, 10)
"""At which the criterion of the threshold is evaluated."""
RUNS, SHARE = 20, 4
"""Runs of the curve at each delta, and how many of them are timed."""


def solved(seeds: int = 1) -> tuple[float, MeanField]:
    """Seconds per seed for one solution on one thread, and the solution."""
    start = time.perf_counter()
    found = solve(
        MultiIndex(),
        HORIZON,
        sample_ratio=8.0,
        step_size=STEP_SIZE,
        rng=1,
        paths=PATHS,
        replicas=seeds,
    )
    return (time.perf_counter() - start) / seeds, found


def memory() -> tuple[float, float]:
    """Peak memory of this process in MB, before one solution and after it."""
    solve(MultiIndex(), 2, sample_ratio=8.0, step_size=STEP_SIZE, rng=0, paths=64)
    before = peak()
    solved()
    return before, peak()


def hessian_sample() -> tuple[Array, Array]:
    """Weights and hard coordinates after ten steps: many draws of (G, s)."""
    problem = MultiIndex()
    found = solve(
        problem, 10, sample_ratio=10.0, step_size=STEP_SIZE, rng=2, paths=DRAWS, replicas=1
    )
    paths = found.paths[0]
    return problem.block_weights(paths.preactivations[10], paths.labels)[:, 0], paths.coordinates


def ours_edge(weights: Array, features: Array) -> tuple[float, float, float]:
    """Edge, outlier and squared overlap."""
    side = HardSubspace(weights, features, 10.0)
    return side.edge, float(side.outliers.values[0]), float(side.outliers.overlaps[0])


def plain_edge(weights: Array, features: Array) -> tuple[float, float, float]:
    """Find the same by bisection on plain averages."""
    delta, squares = 10.0, features[:, 0] ** 2

    def t(a: float) -> Array:
        return np.asarray(weights * a / (delta + a * weights))

    def level(a: float) -> float:
        return -1 / a + delta * float(np.mean(weights / (delta + a * weights)))

    high = delta / -weights.min() * (1 - 1e-9)
    edge = brentq(lambda a: delta * np.mean(t(a) ** 2) - 1, 1e-12, high, xtol=1e-13, rtol=1e-13)
    root = brentq(
        lambda a: delta * np.mean(t(a) * (1 - squares)) - 1, 1e-12, edge, xtol=1e-13, rtol=1e-13
    )
    second = t(root) ** 2
    free = 1 - delta * np.mean(second)
    return level(edge), level(root), float(free / (free + delta * np.mean(second * squares)))


@njit(nogil=True, fastmath=True)
def _sum(rows: Any) -> Any:
    """Sum an array, which reads it once and does nothing else."""
    total = rows.dtype.type(0)
    for value in rows:
        total += value
    return total


def reading(inputs: Any, threads: int) -> float:
    """Seconds to read the inputs once: the faster of a compiled sum and the library's dot."""
    parts = np.array_split(inputs.ravel(), threads)
    with ThreadPoolExecutor(threads) as pool:
        times = [
            best(lambda kernel=kernel: list(pool.map(kernel, parts)), 1, repeats=30)
            for kernel in (_sum, lambda part: part @ part)
        ]
    return min(times) / 1e6


def ours(data: Data, threads: int) -> Step:
    """Descend with the library."""

    def descend(theta: Any, steps: int) -> Array:
        end = [steps * STEP_SIZE]
        return full_batch.run(
            MultiIndex(), data, theta, end, step_size=STEP_SIZE, workers=threads
        ).neurons

    return descend


def by_torch(data: Data, threads: int) -> Step:
    """Descend with plain PyTorch: forward, backward, step."""
    import torch

    inputs, labels = torch.from_numpy(data.inputs), torch.from_numpy(data.labels)

    def descend(theta: Any, steps: int) -> Array:
        torch.set_num_threads(threads)
        parameter = torch.tensor(theta[:, 0].astype(np.float32), requires_grad=True)
        optimiser = torch.optim.SGD([parameter], lr=STEP_SIZE)
        for _ in range(steps):
            optimiser.zero_grad()
            residual = torch.nn.functional.gelu(inputs @ parameter) - labels
            loss = (torch.sqrt(1 + residual**2) - 1).mean()
            loss.backward()
            optimiser.step()
        return np.asarray(parameter.detach().numpy())[:, None]

    return descend


def by_jax(data: Data, threads: int) -> Step:
    """Descend with one compiled JAX step; it takes the cores that the process may use."""
    import jax

    inputs, labels = jax.numpy.asarray(data.inputs), jax.numpy.asarray(data.labels)

    def risk(parameter: Any, x: Any, y: Any) -> Any:
        residual = jax.nn.gelu(x @ parameter, approximate=False) - y
        return (jax.numpy.sqrt(1 + residual**2) - 1).mean()

    step = jax.jit(lambda p, x, y: p - STEP_SIZE * jax.grad(risk)(p, x, y))

    def descend(theta: Any, steps: int) -> Array:
        parameter = jax.numpy.asarray(theta[:, 0].astype(np.float32))
        for _ in range(steps):
            parameter = step(parameter, inputs, labels)
        return np.asarray(parameter)[:, None]

    return descend


def rivals(threads: int) -> Iterator[tuple[str, Callable[[Data, int], Step]]]:
    """Name what a user would otherwise write, as far as it is installed."""
    if available("torch"):
        yield "PyTorch, autograd", by_torch
    # JAX has no setting for the number of threads: it is compared on all cores.
    if available("jax") and threads > 1:
        yield "JAX, compiled", by_jax


def agree(mine: Step, theirs: Step, theta: Array, name: str) -> float:
    """Refuse to time a step that goes elsewhere; largest difference after ten steps."""
    gap = float(np.abs(mine(theta, 10) - theirs(theta, 10)).max())
    if gap > AGREEMENT:
        raise AssertionError(f"{name} departs from the library by {gap:.3g} after ten steps")
    return gap


def success_curve() -> tuple[float, list[float]]:
    """Seconds and success fractions of a share of a success curve, on two cores."""
    fractions = []
    start = time.perf_counter()
    for seed, delta in enumerate(CURVE):
        path = full_batch.run_replicas(
            MultiIndex(),
            [0.0, 0.8 * 3000],
            dimension=400,
            samples=int(400 * delta),
            step_size=0.8,
            replicas=SHARE,
            rng=seed,
            stop=full_batch.learnt(),
            workers=2,
        )
        assert path.stopped is not None
        fractions.append(float(np.isfinite(path.stopped).mean()))
    return time.perf_counter() - start, fractions


def measure() -> list[Row]:
    """Measure everything, in about a minute and a half.

    Returns
    -------
    list of dict
        Keys as in :func:`sgd.measure`.
    """
    with threadpool_limits(limits=1):
        return [*_theory(), *_descent(1), *_descent(2), *_curve()]


def _theory() -> list[Row]:
    before, after = alone(memory)
    solve(MultiIndex(), 2, sample_ratio=8.0, step_size=STEP_SIZE, rng=0, paths=64)
    seconds, found = solved(SEEDS)
    assert found.errors is not None
    radius = found.kernels.correlation[-1, -1, 0, 0]
    # Of one seed, as one is timed.
    spread = found.errors.correlation[-1, -1, 0, 0] * np.sqrt(SEEDS) / radius
    title = f"mean-field equations, T={HORIZON}, {PATHS} paths, m=1"
    note = f"one thread; C(T, T) of one seed to {100 * spread:.1g} %"

    weights, features = hessian_sample()
    mine, plain = np.array([find(weights, features) for find in (ours_edge, plain_edge)])
    gap = np.abs(mine - plain).max()
    fast = best(lambda: ours_edge(weights, features), 1, repeats=7) / 1e3
    slow = best(lambda: plain_edge(weights, features), 1, repeats=3) / 1e3
    same = f"{DRAWS:.0e} draws; edge, outlier and overlap agree to {gap:.0e}"

    start = time.perf_counter()
    curve = threshold_curve(MultiIndex(), [40], RATIOS, step_size=STEP_SIZE, rng=3)
    elapsed = time.perf_counter() - start
    error = 100 * curve.errors[0] / curve.values[0]
    found_at = f"one thread; {curve.values[0]:.3g} to {error:.1g} %"
    return [
        line(title, seconds, "s", note),
        line(f"{title}: peak memory", after, "MB", f"{before:.0f} MB before it, libraries loaded"),
        line("edge, outlier, overlap of a Hessian", fast, "ms", same, 1.0),
        line("the same by SciPy's brentq on averages", slow, "ms", same, slow / fast),
        line("threshold at t=20", elapsed, "s", found_at),
    ]


def _descent(threads: int) -> list[Row]:
    data = MultiIndex().sample(SAMPLES, DIMENSION, rng=4, dtype=np.float32)
    theta = MultiIndex().initial(DIMENSION, rng=5)
    mine = ours(data, threads)
    mine(theta, 2)
    reading(data.inputs, threads)
    others = [(name, build(data, threads)) for name, build in rivals(threads)]
    gaps = [agree(mine, step, theta, name) for name, step in others]
    steps = 20
    # Reading is timed before and after: the share must not profit from a busy moment.
    floors = [reading(data.inputs, threads)]
    ms = best(lambda: mine(theta, steps), steps) / 1e3
    floors.append(reading(data.inputs, threads))
    floor = 1e3 * min(floors)
    size = f"d={DIMENSION}, n={SAMPLES}, float32, threads: {threads}"
    speed = data.inputs.nbytes / floor / 1e6
    rows = [
        line(f"full-batch step, {size}", ms, "ms", f"{floor / ms:.0%} of the bandwidth", 1.0),
        line(f"reading the inputs once, {size}", floor, "ms", f"{speed:.3g} GB/s", floor / ms),
    ]
    for (name, step), gap in zip(others, gaps):
        value = best(lambda step=step: step(theta, steps), steps) / 1e3
        note = f"same neurons after ten steps to {gap:.0e}"
        rows.append(line(f"{name}, {size}", value, "ms", note, value / ms))
    return rows


def _curve() -> list[Row]:
    seconds, fractions = success_curve()
    note = (
        f"two cores; {RUNS // SHARE} times the time of {SHARE} runs each, of which "
        + ", ".join(f"{fraction:.2g}" for fraction in fractions)
        + " succeeded"
    )
    name = f"success curve, d=400, {len(CURVE)} deltas, {RUNS} runs, 3000 steps"
    return [line(name, seconds * RUNS / SHARE, "s", note)]


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1, ensure_ascii=False))
