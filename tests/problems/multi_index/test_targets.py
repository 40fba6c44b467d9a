"""Targets: gradients, bounds, noise, refusals."""

from dataclasses import replace

import numpy as np
import pytest

from traindyn.activations import QUADRATIC, TANH
from traindyn.problems.multi_index import (
    Target,
    half_spaces,
    orthonormal,
    parity,
    phase_retrieval,
    polynomial,
    two_layer_teacher,
)

TURN = np.array([[0.6, -0.8], [0.8, 0.6]])
SMOOTH = (
    phase_retrieval(),
    two_layer_teacher((1.0, -2.0)),
    two_layer_teacher((1.0, 0.5), activation=TANH),
    polynomial({(2, 0): 1.0, (1, 3): -0.5, (0, 0): 2.0}),
    two_layer_teacher((1.0, -2.0)).rotated(TURN),
)
Z = np.random.default_rng(0).standard_normal((2000, 2))


@pytest.mark.parametrize("target", SMOOTH, ids=repr)
def test_gradients_against_difference_quotients(target):
    """Each partial derivative to 1e-6 of its scale."""
    z = Z[:50, : target.k]
    for j in range(target.k):
        shift = 1e-6 * np.eye(target.k)[j]
        quotient = (target.signal(z + shift) - target.signal(z - shift)) / 2e-6
        np.testing.assert_allclose(target.gradient(z)[:, j], quotient, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    "target",
    [
        *SMOOTH,
        phase_retrieval(modulus=True),
        half_spaces(2),
        parity(2),
        polynomial({(2, 0): -1.0, (0, 2): -3.0}),
        two_layer_teacher((1.0, 1.0), activation=QUADRATIC),
    ],
    ids=repr,
)
def test_labels_stay_in_their_range(target):
    """The range decides whether the Hessian has an edge."""
    labels = target.labels(Z[:, : target.k], rng=0)
    assert target.label_range[0] <= labels.min() and labels.max() <= target.label_range[1]
    assert replace(target, noise=0.1).label_range == (-np.inf, np.inf)


def test_noise_has_its_standard_deviation():
    """Variance of 20000 draws within 6 standard errors (1.6 %), and a stream of its own."""
    target = phase_retrieval(noise=0.5)
    z = np.zeros((20_000, 1))
    labels = target.labels(z, rng=3)
    assert labels.var() == pytest.approx(0.25, rel=0.06)
    np.testing.assert_array_equal(labels, target.labels(z, rng=3))
    np.testing.assert_array_equal(phase_retrieval().labels(z, rng=3), 0.0)


def test_discrete_targets():
    """Indicator and sign of a product."""
    z = np.array([[1.0, 2.0], [1.0, -2.0], [-1.0, -2.0]])
    np.testing.assert_array_equal(half_spaces(2).signal(z), [1, 0, 0])
    np.testing.assert_array_equal(parity(2).signal(z), [1, -1, 1])


def test_requests_that_make_no_sense_are_refused():
    """Each message names the argument."""
    for call, message in (
        (lambda: Target("x", 0, lambda z: z[:, 0]), "k must be an integer >= 1, got 0"),
        (lambda: phase_retrieval(noise=-1.0), "noise must be non-negative"),
        (lambda: two_layer_teacher(()), "coefficients must not be empty"),
        (lambda: polynomial({}), "terms must not be empty"),
        (lambda: polynomial({(1,): 1.0, (1, 1): 1.0}), "one power per coordinate"),
        (lambda: polynomial({(-1,): 1.0}), "powers must be an integer >= 0, got -1"),
        (lambda: half_spaces(2).rotated([[1.0, 1.0], [0.0, 1.0]]), "orthonormal columns, got a"),
        (lambda: half_spaces(2).rotated([[1.0], [0.0]]), r"basis must have shape \(2, 2\)"),
        (lambda: orthonormal("hard", [[2.0], [0.0]], rows=2), "hard must have orthonormal"),
        (lambda: orthonormal("hard", np.eye(3), rows=2), "hard must have shape"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
