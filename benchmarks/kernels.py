"""Kernels of wide networks: the exact tangent kernel, and that of a network of finite width.

* the neural tangent kernel of infinitely wide ReLU networks, next to its recursion as one writes
  it in JAX, and to neural-tangents. The last release of the latter cannot be imported with the
  JAX that this project uses; it is measured in an environment of its own, which is made on first
  use, and left out where that fails;
* the tangent kernel of one network of three layers, next to per-sample Jacobians by automatic
  differentiation, multiplied.

Everything is in double precision, on all cores, and must agree before it is timed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import Row, alone, available, best, peak, row

from companion.lazy_training.tangent_kernel.network import Network
from traindyn._types import Array
from traindyn.activations import RELU, TANH
from traindyn.kernels import infinite_width

GROUP = "Kernels of wide networks"
line = partial(row, GROUP)

INPUTS = 100
DEPTH = 5
AGREEMENT = 1e-7
"""Of an entry: the closed form loses half of the digits near correlation one."""
EMPIRICAL_AGREEMENT = 1e-11

APART = Path(__file__).parents[1] / "_build" / "neural-tangents"
RELEASES = ("neural-tangents==0.6.5", "jax==0.4.30", "jaxlib==0.4.30", "tf2jax==0.3.5")
"""Releases that work together."""
SCRIPT = Path(__file__).with_name("neural_tangents_gram.py")


def points(count: int) -> Array:
    """Gaussian inputs."""
    return np.random.default_rng(0).standard_normal((count, INPUTS))


def recursion(x: Any, depth: int) -> Any:
    """Tangent kernel of infinitely wide ReLU networks, layer by layer, for JAX."""
    import jax.numpy as jnp

    covariance = kernel = x @ x.T / x.shape[1]
    for _ in range(depth - 1):
        variance = jnp.diag(covariance)
        square = variance[:, None] * variance
        root = jnp.sqrt(jnp.maximum(square - covariance**2, 0))
        angle = jnp.pi - jnp.arctan2(root, covariance)
        kernel = kernel * angle / (2 * jnp.pi)
        covariance = (root + angle * covariance) / (2 * jnp.pi)
        kernel = kernel + covariance
    return kernel


def by_recursion(x: Array, expected: Array, repeats: int) -> tuple[float, float]:
    """Milliseconds of the recursion, compiled, and its largest difference from the library's."""
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled, inputs = jax.jit(partial(recursion, depth=DEPTH)), jax.numpy.asarray(x)
    gap = float(np.abs(np.asarray(compiled(inputs)) - expected).max())
    return best(lambda: compiled(inputs).block_until_ready(), 1, repeats) / 1e3, gap


def by_neural_tangents(x: Array, expected: Array, repeats: int) -> tuple[float, float] | None:
    """Milliseconds of neural-tangents and its difference; None where it cannot be installed."""
    python = APART / "bin" / "python"
    try:
        if not (APART / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", APART], check=True)
            install = [python, "-m", "pip", "install", "--quiet", "--quiet", *RELEASES]
            subprocess.run(install, check=True)
            (APART / "ready").touch()
    except subprocess.CalledProcessError:
        print("benchmark: neural-tangents cannot be installed and is left out", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "x.npy", Path(folder) / "kernel.npy"
        np.save(given, x)
        command = [python, SCRIPT, given, found, str(DEPTH), str(repeats)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        gap = float(np.abs(np.load(found) - expected).max())
    return float(done.stdout), gap


def three_layers(width: int) -> tuple[Network, Array]:
    """Network and weights whose tangent kernel is compared."""
    network = Network((INPUTS, width, width, 1), TANH)
    return network, network.initial(rng=1)


class Empirical(NamedTuple):
    """Milliseconds, peak memory in MB before it and after it, and the kernel."""

    ms: float
    before: float
    after: float
    kernel: Array


def ours_empirical(width: int, count: int, repeats: int) -> Empirical:
    """Tangent kernel by the library."""
    network, weights = three_layers(width)
    x, before = points(count), peak()
    kernel = network.tangent_kernel(weights, x)
    ms = best(lambda: network.tangent_kernel(weights, x), 1, repeats) / 1e3
    return Empirical(ms, before, peak(), kernel)


def jacobian_empirical(width: int, count: int, repeats: int) -> Empirical:
    """Tangent kernel by JAX: Jacobians of samples, multiplied."""
    import jax

    jax.config.update("jax_enable_x64", True)
    network, weights = three_layers(width)
    matrices = [jax.numpy.asarray(layer.weights) for layer in network.layers(weights)]
    x, before = jax.numpy.asarray(points(count)), peak()

    def output(layers: Any, signal: Any) -> Any:
        for k, matrix in enumerate(layers):
            signal = matrix @ (jax.numpy.tanh(signal) if k else signal)
            signal = signal / np.sqrt(matrix.shape[1])
        return signal[0]

    @jax.jit
    def kernel(layers: Any, inputs: Any) -> Any:
        jacobians = jax.vmap(jax.jacrev(output), (None, 0))(layers, inputs)
        flat = [jacobian.reshape(len(inputs), -1) for jacobian in jacobians]
        return sum(rows @ rows.T for rows in flat)

    found = np.asarray(kernel(matrices, x))
    ms = best(lambda: kernel(matrices, x).block_until_ready(), 1, repeats) / 1e3
    return Empirical(ms, before, peak(), found)


def measure(count: int = 1000, width: int = 1024, samples: int = 256) -> list[Row]:
    """Measure everything, in about a minute once neural-tangents is installed.

    Parameters
    ----------
    count : int
        Inputs of the infinitely wide network.
    width, samples : int
        Of the network of finite width, and its inputs.

    Returns
    -------
    list of dict
        As of :func:`common.row`.
    """
    return [*_infinite(count), *_empirical(width, samples)]


def _infinite(count: int) -> list[Row]:
    x, repeats = points(count), 7
    expected = infinite_width(x, depth=DEPTH, activation=RELU).ntk
    ours = best(lambda: infinite_width(x, depth=DEPTH, activation=RELU), 1, repeats) / 1e3
    title = f"tangent kernel, ReLU, {DEPTH} layers, n={count}"
    rows = [line(title, ours, "ms", "closed form, exact on the diagonal", 1.0)]
    found = {}
    if available("jax"):
        found["the recursion in JAX, compiled"] = by_recursion(x, expected, repeats)
    name, release = RELEASES[0].split("==")
    measured = by_neural_tangents(x, expected, repeats)
    if measured is not None:
        found[f"{name} {release}, compiled, on {RELEASES[1].replace('==', ' ')}"] = measured
    for name, (ms, gap) in found.items():
        if gap > AGREEMENT:
            raise AssertionError(f"{name} departs from the library by {gap:.3g}")
        rows.append(line(f"{name}, n={count}", ms, "ms", f"agrees to {gap:.0e}", ms / ours))
    return rows


def _empirical(width: int, samples: int) -> list[Row]:
    title = f"tangent kernel, 3 layers of width {width}, n={samples}"
    ours = alone(ours_empirical, width, samples, 7)
    before = "{:.0f} MB before it"
    rows = [
        line(title, ours.ms, "ms", "no Jacobian is formed", 1.0),
        line(f"{title}: peak memory", ours.after, "MB", before.format(ours.before)),
    ]
    if available("jax"):
        theirs, name = alone(jacobian_empirical, width, samples, 3), "Jacobians by JAX's jacrev"
        gap = float(np.abs(theirs.kernel - ours.kernel).max() / np.abs(ours.kernel).max())
        if gap > EMPIRICAL_AGREEMENT:
            raise AssertionError(f"the Jacobians depart from the library by {gap:.3g}")
        note, ratio = f"agrees to {gap:.0e}", theirs.ms / ours.ms
        rows += [
            line(f"{name}, multiplied, compiled", theirs.ms, "ms", note, ratio),
            line(f"{name}: peak memory", theirs.after, "MB", before.format(theirs.before)),
        ]
    return rows


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1, ensure_ascii=False))
