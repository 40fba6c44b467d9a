"""Hessian norms of deep networks: a sweep over widths, and one norm next to other ways.

The sweep is over four architectures, as in the chapter on the transition to linearity, with new
networks, weights and inputs for each seed. One norm of a fully connected network is then found

* by SciPy's ``eigsh`` on Hessian-vector products by automatic differentiation (a derivative along
  a vector of the compiled gradient, in JAX), to the same residual;
* by power iteration on the same products, which is slow where the two ends of the spectrum are
  nearly opposite, as they are in wide networks;
* from the Hessian formed by ``jax.hessian``, at a width where this can still be done.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from common import Row, alone, available, best, peak, row, seconds
from scipy.sparse.linalg import LinearOperator, eigsh

from traindyn._types import Array
from traindyn.parallel import map_ordered

Product: TypeAlias = Callable[[Array], Array]

GROUP = "Hessian norms of deep networks"
line = partial(row, GROUP)

INPUTS = 10
RESIDUAL = 1e-6
SEEDS = 5
PAPER, QUICK = range(5, 13), range(5, 10)
"""Powers of two."""
AGREEMENT = 1e-9
STEPS = 1000
"""Products after which power iteration gives up."""


def architectures() -> dict[str, Callable[[int, np.random.Generator], Any]]:
    """Networks of a width."""
    from traindyn import deep

    def dense(m: int, rng: np.random.Generator) -> deep.Network:
        return deep.drop_edges(deep.densenet([INPUTS, m, m, 1]), 0.5, rng=rng)

    return {
        "FCN": lambda m, rng: deep.fully_connected([INPUTS, m, m, 1]),
        "DenseNet": dense,
        "ResNet": lambda m, rng: deep.residual([INPUTS, m, m, m, 1]),
        "CNN": lambda m, rng: deep.convolutional([1, m, m], positions=8),
    }


def compile_anew() -> None:
    """Leave aside what earlier runs compiled."""
    import jax

    jax.config.update("jax_enable_compilation_cache", False)


def sweep(powers: range, seeds: int, workers: int) -> tuple[float, float, float]:
    """Norms of every architecture, width and seed: seconds, peak memory in MB, worst residual."""
    from traindyn import deep

    compile_anew()

    def norm(task: tuple[str, int, np.random.SeedSequence]) -> float:
        name, m, stream = task
        rng = np.random.default_rng(stream)
        network = architectures()[name](m, rng)
        x = rng.choice([-1.0, 1.0], network.inputs)
        found = deep.hessian_norms(network, network.initial(rng=rng), x, tolerance=RESIDUAL)
        if not found.converged[0]:
            raise AssertionError(f"{name} of width {m} has a residual of {found.residuals[0]:.3g}")
        return float(found.residuals[0])

    start = time.perf_counter()
    streams = iter(np.random.SeedSequence(0).spawn(4 * len(powers) * seeds))
    tasks = [
        (name, 2**power, next(streams))
        for name in architectures()
        for power in powers
        for _ in range(seeds)
    ]
    worst = max(map_ordered(norm, tasks, workers=workers))
    return time.perf_counter() - start, peak(), worst


def case(m: int) -> tuple[Any, Array, Array]:
    """Return a fully connected network, its weights and an input."""
    from traindyn import deep

    rng = np.random.default_rng(1)
    network = deep.fully_connected([INPUTS, m, m, 1])
    return network, network.initial(rng=rng), rng.choice([-1.0, 1.0], INPUTS)


def output(m: int, x: Array) -> Callable[[Any], Any]:
    """Output of that network as a function of its weights, written in plain JAX."""
    import jax.numpy as jnp

    shapes = ((m, INPUTS), (m, m), (1, m))

    def value(weights: Any) -> Any:
        signal, start = jnp.asarray(x), 0
        for depth, (rows, columns) in enumerate(shapes):
            matrix = weights[start : start + rows * columns].reshape(rows, columns)
            signal = matrix @ (jnp.tanh(signal) if depth else signal) / np.sqrt(columns)
            start += rows * columns
        return signal[0]

    return value


def products(m: int) -> Product:
    """Multiply by the Hessian: the derivative along a vector of the gradient."""
    import jax

    _, weights, x = case(m)
    gradient, at = jax.grad(output(m, x)), jax.numpy.asarray(weights)
    compiled = jax.jit(lambda vector: jax.jvp(gradient, (at,), (vector,))[1])
    return lambda vector: np.asarray(compiled(vector))


def lanczos(product: Product, size: int) -> tuple[float, float]:
    """Norm by cold ``eigsh``, and its residual."""
    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    v0 = np.random.default_rng(4).standard_normal(size)
    values, vectors = eigsh(operator, 1, which="LM", tol=RESIDUAL, v0=v0)
    gap = np.linalg.norm(product(vectors[:, 0]) - values[0] * vectors[:, 0]) / abs(values[0])
    return float(abs(values[0])), float(gap)


def power_iteration(product: Product, size: int) -> tuple[float, float]:
    """Norm by power iteration, and its residual."""
    vector = np.random.default_rng(4).standard_normal(size)
    vector /= np.linalg.norm(vector)
    for _ in range(STEPS):
        image = product(vector)
        value = float(vector @ image)
        gap = float(np.linalg.norm(image - value * vector)) / abs(value)
        if gap <= RESIDUAL:
            break
        vector = image / np.linalg.norm(image)
    return abs(value), gap


def formed(m: int) -> Callable[[], tuple[float, float]]:
    """Return how to find the norm from the Hessian, formed by a compiled function."""
    import jax

    _, weights, x = case(m)
    hessian = jax.jit(jax.hessian(output(m, x)))
    return lambda: (float(np.abs(np.linalg.eigvalsh(np.asarray(hessian(weights)))).max()), 0.0)


def ours(m: int) -> tuple[float, float]:
    """Norm by the library, and its residual."""
    from traindyn import deep

    network, weights, x = case(m)
    found = deep.hessian_norms(network, weights, x, tolerance=RESIDUAL)
    return float(found.norms[0]), float(found.residuals[0])


def measure(
    powers: range = PAPER, quick: range = QUICK, wide: int = 1024, narrow: int = 32
) -> list[Row]:
    """Measure everything on all cores, in about five minutes; nothing without JAX.

    Parameters
    ----------
    powers, quick : range
        Of two: the widths of both sweeps.
    wide, narrow : int
        Width of the network whose norm is found in other ways, and where its Hessian is formed.

    Returns
    -------
    list of dict
        As of :func:`common.row`.
    """
    if not (available("jax") and available("networkx")):
        return []
    return [*_sweeps(powers, quick), *_one(wide), *_formed(narrow)]


def _sweeps(*ranges: range) -> list[Row]:
    rows = []
    for powers in ranges:
        elapsed, memory, worst = alone(sweep, powers, SEEDS, -1)
        note = f"residuals below {worst:.0e}, compilation included"
        name = f"4 architectures, m=2^{powers[0]}..2^{powers[-1]}, {SEEDS} seeds"
        rows.append(line(name, elapsed, "s", note))
        rows.append(line(f"{name}: peak memory", memory, "MB", note))
    return rows


def _one(m: int) -> list[Row]:
    compile_anew()
    first = seconds(lambda: ours(m)) * 1e3
    expected, residual = ours(m)
    fast = best(lambda: ours(m), 1) / 1e3
    size = case(m)[1].size
    title = f"one norm, FCN, L=3, m={m}, {size} weights"
    rows = [
        line(title, fast, "ms", f"residual {residual:.0e}", 1.0),
        line(f"{title}: first call", first, "ms", "compilation included"),
    ]
    product = products(m)
    product(np.ones(size))
    ways: tuple[tuple[str, Callable[[], tuple[float, float]]], ...] = (
        ("eigsh on JAX, jvp of the gradient", lambda: lanczos(product, size)),
        ("power iteration on the same products", lambda: power_iteration(product, size)),
    )
    for name, way in ways:
        value, gap = way()
        departs = abs(value / expected - 1)
        if gap <= 2 * RESIDUAL and departs > AGREEMENT:
            raise AssertionError(f"{name} departs from the library by {departs:.3g}")
        slow = best(way, 1, 3) / 1e3
        note = f"residual {gap:.0e}, norm agrees to {departs:.0e}"
        rows.append(line(f"{name}, m={m}", slow, "ms", note, slow / fast))
    return rows


def _formed(m: int) -> list[Row]:
    way, (expected, residual) = formed(m), ours(m)
    departs = abs(way()[0] / expected - 1)
    if departs > AGREEMENT:
        raise AssertionError(f"the formed Hessian departs from the library by {departs:.3g}")
    fast, slow = best(lambda: ours(m), 1) / 1e3, best(way, 1, 3) / 1e3
    note = f"norm agrees to {departs:.0e}"
    return [
        line(f"one norm, FCN, L=3, m={m}", fast, "ms", f"residual {residual:.0e}", 1.0),
        line(f"jax.hessian and its eigenvalues, m={m}", slow, "ms", note, slow / fast),
    ]


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1, ensure_ascii=False))
