"""A narrow network inside a wide one is the narrow network."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from companion.lazy_training.kernel_change.narrow import narrow
from traindyn import deep


def test_the_same_function() -> None:
    """Values, kernel and Hessian norm, whatever the idle weights."""
    rng = np.random.default_rng(0)
    small = deep.densenet([3, 4, 5, 2])
    wide = narrow(deep.densenet([3, 9, 6, 2]), [4, 5])
    matrices = small.unpack(rng.standard_normal(small.parameters))
    arrays = [rng.standard_normal(np.shape(a)) for a in wide.unpack(np.zeros(wide.parameters))]
    # What the layers read: the inputs, then hidden layers of 9 and 6 neurons.
    columns = [np.arange(3), np.arange(7), np.r_[0:7, 12:17]]
    for matrix, array, where, rows in zip(matrices, arrays, columns, (4, 5, 2)):
        array[np.ix_(np.arange(rows), where)] = matrix
    weights = np.concatenate(
        [layer.connection.pack(array) for layer, array in zip(wide.layers, arrays)]
    )
    flat = np.concatenate([matrix.reshape(-1) for matrix in matrices])
    x = rng.standard_normal((2, 3))
    np.testing.assert_allclose(wide.values(weights, x), small.values(flat, x), rtol=1e-13)
    np.testing.assert_allclose(
        deep.tangent_kernel(wide, weights, x), deep.tangent_kernel(small, flat, x), rtol=1e-13
    )
    norms = [deep.hessian_norms(one, w, x[0]).norms for one, w in ((wide, weights), (small, flat))]
    np.testing.assert_allclose(*norms, rtol=1e-9)
    # The idle neurons keep one edge each, after dropping edges as well.
    dropped = deep.drop_edges(wide, 0.5, rng=1)
    for network in (wide, dropped):
        assert np.all(network.in_degrees[0][4:] == 1)
        assert np.all(network.in_degrees[1][5:] == 1)
        assert not np.any(np.asarray(network.layers[2].connection.mask)[:, [*range(7, 12), 17]])


def test_bad_arguments() -> None:
    """Each error names what is wrong."""
    network = deep.densenet([3, 9, 6, 2])
    with pytest.raises(ValueError, match="one entry per hidden layer, 2, got 1"):
        narrow(network, [4])
    with pytest.raises(ValueError, match=r"sizes\[1\] must be"):
        narrow(network, [4, 7])
    with pytest.raises(ValueError, match="without skip connections"):
        narrow(deep.residual([2, 2, 2, 1]), [1, 1])
