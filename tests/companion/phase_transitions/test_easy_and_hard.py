"""Information and generative exponents."""

import numpy as np
import pytest
from scipy.optimize import brentq

from companion.phase_transitions.easy_and_hard import (
    generative_exponent,
    information_exponent,
    symmetric_pair,
)
from traindyn.problems.multi_index import (
    Target,
    half_spaces,
    parity,
    phase_retrieval,
    polynomial,
    two_layer_teacher,
)

HERMITE_3 = {(3,): 1.0, (1,): -3.0}
HERMITE_4 = {(4,): 1.0, (2,): -6.0}


@pytest.mark.parametrize(
    ("target", "information", "generative"),
    [
        (phase_retrieval(), 2, 2),
        (polynomial(HERMITE_3), 3, 1),
        (polynomial(HERMITE_4), 4, 2),
        (parity(3), 3, 3),
        (polynomial({(1, 1, 1): 1.0}), 3, 2),
        (half_spaces(2), 1, 1),
    ],
    ids=repr,
)
def test_known_exponents(target, information, generative):
    """Generative exponents are never above information exponents; lower ones vanish."""
    first, second = information_exponent(target), generative_exponent(target)
    assert (first.order, second.order) == (information, generative)
    assert max(first.below, second.below) < 1e-10


def test_sizes_of_coefficients():
    """He_3 has one coefficient, of the whole variance; a generative one is at least as large."""
    assert information_exponent(polynomial(HERMITE_3)).size == pytest.approx(1.0)
    found = two_layer_teacher((1.0, 1.0))
    assert generative_exponent(found).size >= information_exponent(found).size


def test_a_target_of_generative_exponent_four():
    """1{a < |z| < b} with a phi(a) = b phi(b): E[z^2 - 1 | y] vanishes for both labels.

    The control, without the hole, has exponent two.
    """
    a = 0.5
    b = brentq(lambda x: x * np.exp(-x * x / 2) - a * np.exp(-a * a / 2), 1.0, 5.0)
    band = Target("band", 1, lambda z: ((np.abs(z[:, 0]) > a) & (np.abs(z[:, 0]) < b)) * 1.0)
    assert generative_exponent(band, tolerance=0.02).order == 4
    control = Target("band", 1, lambda z: (np.abs(z[:, 0]) < b) * 1.0)
    assert generative_exponent(control, tolerance=0.02).order == 2


def test_leap_given_a_known_direction():
    """The difference of a symmetric pair is hard even given the sum: the leap is two."""
    target = two_layer_teacher((1.0, 1.0))
    assert generative_exponent(target, known=np.full((2, 1), np.sqrt(0.5))).order == 2
    # z_1 z_2: nothing of first order by itself, but z_2 once z_1 is known.
    target = polynomial({(1, 1): 1.0})
    assert generative_exponent(target).order == 2
    assert generative_exponent(target, known=[[1.0], [0.0]]).order == 1


def test_requests_that_make_no_sense_are_refused():
    """Each message names the argument."""
    for call, message in (
        (lambda: information_exponent(polynomial(HERMITE_4), largest=3), "exponent of at most 3"),
        (lambda: information_exponent(polynomial({(0,): 1.0})), "must not be constant"),
        (lambda: generative_exponent(parity(2), known=np.eye(2)), "leave a direction unknown"),
        (lambda: generative_exponent(parity(2), known=[[1.0], [1.0]]), "known must have orthonor"),
        (lambda: generative_exponent(half_spaces(5)), "at most 4 directions"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_symmetric_pairs_are_symmetric():
    """Exchange of the coordinates."""
    z = np.random.default_rng(0).standard_normal((20, 2))
    target = symmetric_pair(lambda a, b: a**2 * b)
    np.testing.assert_array_equal(target.signal(z), target.signal(z[:, ::-1]))
