"""Time per step of the exact reduced chains, and of the drift of the effective dynamics.

Spiked tensors and two-layer networks on the binary and the XOR mixture: one step on the
summary statistics, one step in full dimension, and the NumPy loop a user would write. The
loop is fed the stream of the direct kernel and must arrive at the same point before
anything is timed.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from common import Row, best, row, seconds
from sgd import TOLERANCE
from threadpoolctl import threadpool_limits

from traindyn.problems import SpikedTensor, TwoLayerMixture
from traindyn.sgd import direct, reduced

GROUP = "Effective dynamics"
DIMENSIONS = (10**2, 10**3, 10**5, 10**7)
PRECISIONS = (1.0, 5.0, 10.0, 30.0, 100.0, 1000.0)
RUNS = 500


def matrix_pca(dimension: int) -> SpikedTensor:
    """Spiked matrix above its threshold (BGJ Figure 1)."""
    return SpikedTensor(2, dimension, signal=1.2)


def tensor_pca(dimension: int) -> SpikedTensor:
    """Spiked tensor of order three."""
    return SpikedTensor(3, dimension, signal=5.0)


def binary(dimension: int) -> TwoLayerMixture:
    """Width two on the binary mixture (BGJ Figure 6)."""
    return TwoLayerMixture.binary(2, dimension, precision=10.0, ridge=0.1)


def xor(dimension: int, precision: float = 100.0) -> TwoLayerMixture:
    """Width four on the XOR mixture (BGJ Figures 9 and 10)."""
    return TwoLayerMixture.xor(4, dimension, precision=precision, ridge=0.1)


def numpy_loop(problem: TwoLayerMixture, point: Any, steps: int, step_size: float) -> Any:
    """Plain vectorised NumPy on the stream of the direct kernel."""
    v, W = point.v.copy(), point.W.copy()
    sample = problem.stream(steps, rng=1)
    outputs = np.asarray(problem.labels)[sample.labels]
    keep = 1.0 - step_size * problem.ridge
    for x, y in zip(sample.inputs, outputs, strict=True):
        z = W @ x
        active = np.maximum(z, 0.0)
        error = 1.0 / (1.0 + np.exp(-(v @ active))) - y
        pull = error * v * (z > 0)
        v = keep * v - step_size * error * active
        W *= keep
        W -= step_size * pull[:, None] * x
    return type(point)(v, W)


def check_loop(problem: TwoLayerMixture, steps: int = 1000) -> float:
    """Largest difference of the loop's end point from the direct kernel's."""
    point, size = problem.initial(rng=0), 1.0 / problem.dimension
    path = direct.run(problem, point, [steps * size], step_size=size, rng=1, snapshots=True)
    found = numpy_loop(problem, point, steps, size)
    pairs = zip(found, path.snapshots, strict=True)
    gap = max(float(np.abs(mine - theirs[-1]).max()) for mine, theirs in pairs)
    if gap > TOLERANCE:
        raise AssertionError(f"the NumPy loop departs from the direct kernel by {gap:.3g}")
    return gap


def time_reduced(problem: Any, steps: int) -> float:
    """Microseconds per step on the statistics."""
    size, start = 1.0 / problem.dimension, problem.draw_initial_statistics(rng=0)
    return best(
        lambda: reduced.run(problem, start, [steps * size], step_size=size, rng=1), steps, repeats=3
    )


def time_direct(problem: Any, steps: int) -> float:
    """Microseconds per step in full dimension."""
    size, start = 1.0 / problem.dimension, problem.initial(rng=0)
    return best(
        lambda: direct.run(problem, start, [steps * size], step_size=size, rng=1), steps, repeats=3
    )


def time_grid(dimension: int = 500) -> float:
    """Seconds for the runs behind BGJ Figures 9 and 10, on all cores."""

    def grid() -> None:
        for precision in PRECISIONS:
            problem = xor(dimension, precision)
            reduced.run_replicas(
                problem, [100.0], step_size=1.0 / dimension, replicas=RUNS, rng=1, workers=-1
            )

    return seconds(grid)


def measure() -> list[Row]:
    """Measure everything, in about two minutes.

    Returns
    -------
    list of dict
        Keys as in :func:`sgd.measure`.
    """
    with threadpool_limits(limits=1):
        return _measure()


def _measure() -> list[Row]:
    rows: list[Row] = []

    def add(
        name: str,
        value: float,
        accuracy: str,
        unit: str = "µs per step",
        ratio: float | None = None,
    ) -> None:
        rows.append(row(GROUP, name, value, unit, accuracy, ratio))

    exact = "equal in law, exact statistics"
    ours: dict[int, float] = {}
    for label, make in (
        ("matrix PCA", matrix_pca),
        ("tensor PCA, order 3", tensor_pca),
        ("binary mixture, K=2", binary),
        ("XOR mixture, K=4", xor),
    ):
        for dimension in DIMENSIONS:
            ours[dimension] = time_reduced(make(dimension), 200_000)
            add(f"reduced chain, {label}, N={dimension:.0e}", ours[dimension], exact)
    small, large = xor(500), xor(10**5)
    chain = time_reduced(small, 200_000)
    add("reduced chain, XOR mixture, K=4, N=500", chain, exact, ratio=1.0)
    full = time_direct(small, 50_000)
    add("direct kernel, XOR mixture, K=4, N=500", full, "reference path", ratio=full / chain)
    gap = check_loop(small)
    plain = best(lambda: numpy_loop(small, small.initial(rng=0), 5_000, 1e-3), 5_000, repeats=2)
    same = f"same stream, same point after 1000 steps to {gap:.0e}"
    add("NumPy loop, XOR mixture, K=4, N=500", plain, same, ratio=plain / chain)
    wide = time_direct(large, 300)
    add(
        "direct kernel, XOR mixture, K=4, N=1e5",
        wide,
        "ratio to the reduced chain at the same N",
        ratio=wide / ours[10**5],
    )
    grid, steps = time_grid(), len(PRECISIONS) * RUNS * 100 * 500
    add(
        "runs of BGJ Figures 9 and 10 on the reduced chain",
        grid,
        f"{len(PRECISIONS)} precisions, {RUNS} runs, 100 N steps, N=500, all cores",
        unit="s",
        ratio=1.0,
    )
    add(
        "the same in full dimension",
        1e-6 * full * steps,
        "from the time of one step, on one core",
        unit="s",
        ratio=1e-6 * full * steps / grid,
    )
    statistics = small.draw_initial_statistics(rng=0)
    drift = best(lambda: small.drift(statistics, c_delta=1.0), 1, repeats=20)
    nodes = "one thread, 1024 nodes for each sign pattern"
    add("drift, XOR mixture, K=4, 2^14 nodes", 1e-3 * drift, nodes, unit="ms")
    return rows


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1, ensure_ascii=False))
