"""Catapults: the reduced map, and a step of the quadratic model next to one of the network.

* the one-example map, next to the same two lines in a Python loop, and in NumPy over many runs;
* gradient descent on the quadratic Taylor model of a two-layer network, next to the network
  itself, and to the same network in PyTorch.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from common import Row, available, best, row

from traindyn.catapults import TwoLayerModel, fate, iterate, train

GROUP = "Catapults"
line = partial(row, GROUP)

CASES = 1000


def in_python(steps: int) -> float:
    """Last residual of the map, as one writes it down."""
    e, kernel, eta, c, y = 0.3, 1.0, 2.0 / 1.1, 1e-6, 0.5
    for _ in range(steps):
        product = c * e * (e + y)
        e, kernel = (
            (1 - eta * kernel + eta * eta * product) * e,
            kernel - 4 * eta * product + eta * eta * c * e * e * kernel,
        )
    return e


def in_numpy(steps: int) -> Any:
    """Return the last residuals of many runs at once."""
    e, kernel, eta, c, y = np.full(CASES, 0.3), np.ones(CASES), 2.0 / 1.1, 1e-6, 0.5
    for _ in range(steps):
        product = c * e * (e + y)
        e, kernel = (
            (1 - eta * kernel + eta * eta * product) * e,
            kernel - 4 * eta * product + eta * eta * c * e * e * kernel,
        )
    return e


def measure(steps: int = 200_000, width: int = 1024, samples: int = 512) -> list[Row]:
    """Measure everything, in about a minute.

    Parameters
    ----------
    steps : int
        Of the map.
    width, samples : int
        Of the networks.

    Returns
    -------
    list of dict
        As of :func:`common.row`.
    """
    return [*_maps(steps), *_networks(width, samples)]


def _maps(steps: int) -> list[Row]:
    options = dict(step_size=2.0 / 1.1, coupling=1e-6, label=0.5)
    orbit = iterate(0.3, 1.0, steps=1000, **options)
    gap = abs(orbit.residuals[-1] - in_python(1000))
    if gap > 1e-12:
        raise AssertionError(f"the map departs from its formula by {gap:.3g}")

    etas = np.linspace(2.01, 2.2, CASES)

    def ours() -> Any:
        return fate(0.3, 1.0, step_size=etas, coupling=1e-6, label=0.5, tolerance=1e-14)

    one = best(ours, int(ours().steps.sum()))
    by_python = best(lambda: in_python(steps // 20), steps // 20)
    by_numpy = best(lambda: in_numpy(steps // 100), steps // 100 * CASES)
    note = f"agrees to {gap:.0e}"
    return [
        line("one-example map, per step", 1e3 * one, "ns", note, 1.0),
        line("the same in Python", 1e3 * by_python, "ns", note, by_python / one),
        line(
            f"the same in NumPy, {CASES} runs at once", 1e3 * by_numpy, "ns", note, by_numpy / one
        ),
    ]


def _networks(width: int, samples: int, dimension: int = 100, steps: int = 20) -> list[Row]:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((samples, dimension)), rng.standard_normal(samples)
    start = TwoLayerModel.initial(width, dimension, rng=1)
    size = f"m={width}, n={samples}, d={dimension}"

    def run(model: TwoLayerModel) -> np.ndarray:
        return train(model, start, x, y, step_size=0.5, steps=steps, every=steps).losses

    times = {}
    for kind in ("network", "quadratic"):
        model = TwoLayerModel(start, kind)  # type: ignore[arg-type]
        times[kind] = best(partial(run, model), steps) / 1e3
    base = times["network"]
    rows = [
        line(f"step of the network, {size}", base, "ms", "double precision", 1.0),
        line(
            f"step of its quadratic model, {size}",
            times["quadratic"],
            "ms",
            "double precision",
            times["quadratic"] / base,
        ),
    ]
    if available("torch"):
        ms, gap = _torch(x, y, start, steps, run(TwoLayerModel(start))[-1])
        rows.append(
            line(f"the network in PyTorch, {size}", ms, "ms", f"agrees to {gap:.0e}", ms / base)
        )
    return rows


def _torch(x: Any, y: Any, start: Any, steps: int, expected: float) -> tuple[float, float]:
    import torch

    inputs, labels = torch.tensor(x / np.sqrt(x.shape[1])), torch.tensor(y)

    def run() -> float:
        first = torch.tensor(start.first, requires_grad=True)
        second = torch.tensor(start.second, requires_grad=True)
        rule = torch.optim.SGD([first, second], lr=0.5)
        for _ in range(steps):
            rule.zero_grad()
            outputs = torch.relu(inputs @ first.T) @ second / len(second) ** 0.5
            ((outputs - labels) ** 2).mean().backward()
            rule.step()
        with torch.no_grad():
            outputs = torch.relu(inputs @ first.T) @ second / len(second) ** 0.5
            return float(((outputs - labels) ** 2).mean())

    gap = abs(run() - expected)
    if gap > 1e-9:
        raise AssertionError(f"PyTorch departs from the library by {gap:.3g}")
    return best(run, steps) / 1e3, gap
