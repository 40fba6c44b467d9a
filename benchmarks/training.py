"""Training loops: a deep network with its kernel followed, and a table of the thesis.

* gradient descent on a fully connected network of five layers, next to PyTorch;
* the five leading eigenpairs of its tangent kernel, next to Lanczos on products with the kernel;
* gradient descent through many catapults (ZHU Figure 4.8a) and feature learning over batch sizes
  (ZHU Table 4.1), at the source's sizes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from common import Row, alone, available, best, row, seconds

from traindyn.catapults import TwoLayerModel, critical_step, leading_eigenpairs, target, train
from traindyn.parallel import map_ordered

GROUP = "Training with catapults"
line = partial(row, GROUP)


def measure(width: int = 1024, samples: int = 128, table: tuple[int, int] = (2000, 3)) -> list[Row]:
    """Measure everything, in about ten minutes.

    Parameters
    ----------
    width, samples : int
        Of the deep network.
    table : tuple of int
        Examples and seeds of the table.

    Returns
    -------
    list of dict
        As of :func:`common.row`.
    """
    return [*alone(_deep, width, samples), *_two_layers(*table)]


def _deep(width: int, samples: int, dimension: int = 100, steps: int = 10) -> list[Row]:
    from traindyn import deep

    model = deep.perceptron([dimension, *[width] * 4, 1])
    weights = model.initial(rng=0)
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((samples, dimension)), rng.standard_normal(samples)
    size = f"5 layers, m={width}, n={samples}"

    def run() -> np.ndarray:
        return train(model, weights, x, y, step_size=1.0, steps=steps, every=steps).losses

    expected = run()[-1]
    base = best(run, steps, 3) / 1e3
    rows = [line(f"gradient step, {size}", base, "ms", "double precision", 1.0)]
    if available("torch"):
        ms, gap = _torch(x, y, weights, steps, expected)
        rows.append(
            line(f"the same in PyTorch, {size}", ms, "ms", f"agrees to {gap:.0e}", ms / base)
        )

    batch = model.prepare(x)

    def ours() -> np.ndarray:
        return leading_eigenpairs(model.tangent_kernel(weights, batch), 5)[0]

    values = ours()
    once = best(ours, 1, 3) / 1e3
    rows.append(line(f"5 leading eigenpairs of the kernel, {size}", once, "ms", "exact", 1.0))
    other, found = _lanczos(model, weights, x)
    gap = float(np.abs(found / values - 1).max())
    note = f"agrees to {gap:.0e}"
    rows.append(line("Lanczos (SciPy) on products through JAX", other, "ms", note, other / once))
    return rows


def _lanczos(model: Any, weights: Any, x: np.ndarray) -> tuple[float, np.ndarray]:
    import jax
    from scipy.sparse.linalg import LinearOperator, eigsh

    @jax.jit
    def product(vector: Any) -> Any:
        def outputs(now: Any) -> Any:
            return model.apply(now, x)

        direction = jax.vjp(outputs, weights)[1](vector)
        return jax.jvp(outputs, (weights,), direction)[1]

    n = len(x)
    operator = LinearOperator((n, n), lambda v: np.asarray(product(v.ravel())), dtype=np.float64)

    def run() -> np.ndarray:
        return np.sort(eigsh(operator, 5, v0=np.ones(n), return_eigenvectors=False))[::-1]

    found = run()
    return best(run, 1, 2) / 1e3, found


def _torch(x: Any, y: Any, weights: Any, steps: int, expected: float) -> tuple[float, float]:
    import torch

    inputs, labels = torch.tensor(x), torch.tensor(y)

    def outputs(arrays: Any) -> Any:
        values = inputs
        for depth, array in enumerate(arrays):
            values = values @ array / array.shape[0] ** 0.5
            values = torch.relu(values) if depth < len(arrays) - 1 else values
        return values[:, 0]

    def run() -> float:
        arrays = [torch.tensor(np.array(w), requires_grad=True) for w in weights]
        rule = torch.optim.SGD(arrays, lr=1.0)
        for _ in range(steps):
            rule.zero_grad()
            ((outputs(arrays) - labels) ** 2).mean().backward()
            rule.step()
        with torch.no_grad():
            return float(((outputs(arrays) - labels) ** 2).mean())

    gap = abs(run() - expected)
    if gap > 1e-9:
        raise AssertionError(f"PyTorch departs from the library by {gap:.3g}")
    return best(run, steps, 3) / 1e3, gap


def _data(samples: int, seed: int) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    rank_two = target("rank-2", 100)
    x = rng.standard_normal((samples, 100))
    y = rank_two.value(x) + 0.1 * rng.standard_normal(samples)
    start = TwoLayerModel.initial(1024, 100, rng=rng)
    return TwoLayerModel(start), start, x, y


def _row_of_table(job: tuple[int, int, int]) -> float:
    """Train at one batch size: the last loss."""
    samples, size, seed = job
    model, start, x, y = _data(samples, seed)
    rate = critical_step(model, start, model.prepare(x)) / 2
    options: dict[str, Any] = dict(step_size=rate, stop=1e-3, rng=seed, track=size < 100)
    epoch = samples // size
    steps, every = (3000, 20) if size == samples else (600 * epoch, epoch)
    batch = None if size == samples else size
    run = train(model, start, x, y, steps=steps, batch_size=batch, every=every, **options)
    return float(run.losses[-1])


def _two_layers(samples: int, seeds: int) -> list[Row]:
    jobs = [(samples, size, seed) for seed in range(seeds) for size in (samples, 100, 50, 10, 5)]
    losses: list[float] = []

    def table() -> None:
        losses.extend(map_ordered(_row_of_table, jobs, workers=-1))

    wall = seconds(table)
    note = f"training losses at most {max(losses):.1e}"
    rows = [line(f"Table 4.1, 5 batch sizes x {seeds} seeds", wall, "s", note)]
    model, start, x, y = _data(samples, 0)
    rates = list(zip((0, 50, 150, 220, 280, 350, 400), (6.0, 8.0, 16.0, 30.0, 50.0, 75.0, 80.0)))
    run: list[Any] = []
    wall = seconds(
        lambda: run.append(train(model, start, x, y, step_size=rates, steps=420, every=10))
    )
    note = f"training loss {run[0].losses[-1]:.1e} at the end"
    return [*rows, line("Figure 4.8a, 420 steps through its catapults", wall, "s", note)]
