"""Tests of the law of the largest eigenvalue of a batch."""

import numpy as np
import pytest

from companion.catapults.sgd.batch_law import eigenvalue_law, supercritical_share
from traindyn.catapults import TwoLayerModel, batch_threshold


def infinite_kernel(inputs):
    """Tangent kernels of infinitely wide networks at batches of inputs, (..., n, n)."""
    x = inputs / np.sqrt(inputs.shape[-1])
    lengths = np.linalg.norm(x, axis=-1)
    scales = lengths[..., :, None] * lengths[..., None, :]
    rho = np.clip(x @ x.swapaxes(-1, -2) / scales, -1, 1)
    return scales * (np.sqrt(1 - rho**2) + 2 * rho * (np.pi - np.arccos(rho))) / (2 * np.pi)


def test_the_kernel_is_that_of_a_wide_network():
    """Within six standard errors of its entries, about 1 / root m."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 8))
    start = TwoLayerModel.initial(200_000, 8, signs=False, rng=rng)
    model = TwoLayerModel(start)
    wide = model.tangent_kernel(start, model.prepare(x))
    np.testing.assert_allclose(infinite_kernel(x), wide, atol=6 * 2 / 200_000**0.5)


@pytest.mark.parametrize("batch", [2, 5, 8])
def test_mean_and_deviation_against_draws(batch):
    """What is left out of the mean is a small part of the term of order 1/d."""
    d = 400
    rng = np.random.default_rng(batch)
    kernels = infinite_kernel(rng.standard_normal((20_000, batch, d)))
    top = np.linalg.eigvalsh(kernels)[:, -1]
    law = eigenvalue_law(batch, d)
    flat = 1 + (batch - 1) / (2 * np.pi)
    assert abs(top.mean() - law.mean) < 0.15 * (law.mean - flat) + 5 * law.deviation / 20_000**0.5
    assert top.std() == pytest.approx(law.deviation, rel=0.05)
    share = np.mean(top > law.mean)
    eta = batch / law.mean
    assert supercritical_share(eta, batch=batch, dimension=d) == pytest.approx(0.5)
    assert share == pytest.approx(0.5, abs=0.08)


def test_the_share_is_one_half_near_the_threshold():
    """In high dimension."""
    eta = 3.0
    threshold = batch_threshold(eta, diagonal=1.0, off_diagonal=1 / (2 * np.pi))
    below, above = int(np.floor(threshold)), int(np.ceil(threshold))
    assert supercritical_share(eta, batch=below, dimension=10**6) > 0.99
    assert supercritical_share(eta, batch=above, dimension=10**6) < 0.01


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: eigenvalue_law(0, 5), "batch"),
        (lambda: eigenvalue_law(5, 0), "dimension"),
        (lambda: supercritical_share(0.0, batch=1, dimension=5), "step_size"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    """Each by its name."""
    with pytest.raises(ValueError, match=words):
        call()
