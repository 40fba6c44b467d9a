"""Time one kernel by neural-tangents; :mod:`kernels` runs this where neural-tangents works.

Arguments: file of the inputs, file for the kernel, layers, repeats. Prints milliseconds.
"""

import sys
import time

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

from neural_tangents import stax  # noqa: E402


def main(given: str, found: str, depth: int, repeats: int) -> None:
    """Write the tangent kernel of ReLU networks without biases, and print the least time."""
    layers = [stax.Dense(1, W_std=1.0, b_std=None)]
    for _ in range(depth - 1):
        layers += [stax.Relu(), stax.Dense(1, W_std=1.0, b_std=None)]
    kernel = jax.jit(stax.serial(*layers)[2], static_argnames="get")
    x = jax.numpy.asarray(np.load(given))
    np.save(found, np.asarray(kernel(x, None, get="ntk")))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        kernel(x, None, get="ntk").block_until_ready()
        times.append(time.perf_counter() - start)
    print(1e3 * min(times))


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:5]))
