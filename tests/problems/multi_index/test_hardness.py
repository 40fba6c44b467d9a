"""Easy and hard directions: the examples of the source and their corrections."""

import numpy as np
import pytest

from companion.phase_transitions.easy_and_hard import symmetric_pair
from traindyn.activations import QUADRATIC
from traindyn.problems.multi_index import (
    Target,
    decompose,
    half_spaces,
    parity,
    phase_retrieval,
    polynomial,
    two_layer_teacher,
)

ROOT = np.sqrt(0.5)
TURN = np.array([[0.6, -0.8], [0.8, 0.6]])
SUM, DIFFERENCE = np.array([[ROOT], [ROOT]]), np.array([[ROOT], [-ROOT]])


@pytest.mark.parametrize(
    ("target", "rank"),
    [
        (phase_retrieval(), 1),
        (phase_retrieval(modulus=True, noise=0.5), 1),
        (polynomial({(3,): 1.0}), 0),
        # He_3: every direction is easy although the label has no first coefficient.
        (polynomial({(3,): 1.0, (1,): -3.0}), 0),
        # Even targets: the source's "sum of the coordinates is easy" fails.
        (polynomial({(1, 1): 1.0}), 2),
        (polynomial({(2, 0): 1.0, (0, 2): 1.0}), 2),
        (two_layer_teacher((1.0, 1.0), activation=QUADRATIC), 2),
        (parity(2), 2),
        (polynomial({(1, 1, 1): 1.0}), 3),
        # z_1 + z_1 z_2: both coordinates show at once.
        (polynomial({(1, 0): 1.0, (1, 1): 1.0}), 0),
    ],
    ids=repr,
)
def test_number_of_hard_directions(target, rank):
    """All or nothing (MW, Easy and hard directions): even targets are hard, others here easy."""
    found = decompose(target)
    assert found.hard.shape == (target.k, rank)
    assert found.easy.shape == (target.k, target.k - rank)
    both = np.hstack([found.easy, found.hard])
    np.testing.assert_allclose(both.T @ both, np.eye(target.k), atol=1e-12)


@pytest.mark.parametrize(
    "target",
    [
        two_layer_teacher((1.0, 1.0)),
        half_spaces(2),
        symmetric_pair(np.maximum),
        symmetric_pair(lambda a, b: a * b**2),
    ],
    ids=repr,
)
def test_symmetric_pairs_have_a_hard_difference(target):
    """The difference is hard, the sum easy (MW, Symmetric target), whatever the order of axes."""
    found = decompose(target)
    np.testing.assert_allclose(np.abs(found.hard.T @ DIFFERENCE), 1.0, atol=1e-9)
    np.testing.assert_allclose(np.abs(found.easy.T @ SUM), 1.0, atol=1e-9)


def test_turned_targets_have_turned_subspaces():
    """Off the axes nothing is exact by symmetry; discontinuous targets are accurate to 1e-3."""
    found = decompose(two_layer_teacher((1.0, 1.0)).rotated(TURN))
    np.testing.assert_allclose(np.abs(found.hard.T @ TURN @ DIFFERENCE), 1.0, atol=1e-9)
    found = decompose(half_spaces(2).rotated(TURN))
    np.testing.assert_allclose(np.abs(found.hard.T @ TURN @ DIFFERENCE), 1.0, atol=1e-3)


def test_a_later_round_finds_what_an_early_one_cannot():
    """The sign of z_2 shows only once |z_1| is known, and z_1 is learnt from the label.

    The control, the first round alone, would call z_2 hard.
    """
    median = 0.6744897501960817

    def signal(z):
        return 2 * np.sign(z[:, 0]) + np.sign(z[:, 1]) * np.tanh(9 * (np.abs(z[:, 0]) - median))

    def balanced(z):
        inner = np.abs(z[:, 0]) < median
        return 2 * np.sign(z[:, 0]) + np.sign(z[:, 1]) * np.where(inner, 1.0, -1.0)

    assert decompose(Target("late", 2, signal)).hard.shape[1] == 0
    found = decompose(Target("balanced", 2, balanced))
    assert found.hard.shape[1] == 0
    assert len(found.moments) == 2
    assert found.moments[0][1] < 0.02 < 0.3 < found.moments[1][0]


def test_moments_are_correlations():
    """Half-spaces by hand.

    y is 1 with probability 1/4 and then both means are sqrt(2/pi): the correlation of the
    centred, normalised label with (z_1 + z_2)/sqrt 2 is (1/4) (2/sqrt pi) / sqrt(3/16).
    """
    first = decompose(half_spaces(2)).moments[0]
    expected = 0.25 * 2 / np.sqrt(np.pi) / np.sqrt(3 / 16)
    np.testing.assert_allclose(first, [expected, 0.0], atol=1e-3)


def test_requests_that_make_no_sense_are_refused():
    """Too many directions, no tolerance, a target too rough for the grid."""
    with pytest.raises(ValueError, match="at most 4 directions, got 5"):
        decompose(half_spaces(5))
    with pytest.raises(ValueError, match="tolerance must be positive"):
        decompose(phase_retrieval(), tolerance=0.0)
    rough = Target("rough", 1, lambda z: np.sin((100 * np.pi + 1) * z[:, 0]))
    with pytest.raises(ValueError, match="quadrature error of"):
        decompose(rough)
