"""The overlap law beside easy directions."""

import numpy as np
import pytest

from companion.phase_transitions.generality.beside import overlap_law_beside
from traindyn.activations import GELU
from traindyn.dmft import overlap_law, solve
from traindyn.problems.multi_index import MultiIndex, phase_retrieval, polynomial

FIELD = dict(sample_ratio=8.0, step_size=1.0, rng=3, paths=2**11, replicas=1)


def test_without_easy_directions_it_is_the_law():
    """All directions hard: the same numbers as the law of the library."""
    problem = MultiIndex(polynomial({(1, 1): 1.0}), GELU, second_layer=(1.0, -2.0))
    found = solve(problem, 3, moments=True, **FIELD)
    ours, theirs = overlap_law_beside(found), overlap_law(found)
    assert ours.amplification == pytest.approx(theirs.amplification, abs=1e-12)
    assert ours.joint == pytest.approx(theirs.joint, abs=1e-12)


def test_an_easy_part_that_is_not_learnt_is_noise():
    """One step from the start: the response is that of label noise of the same variance."""
    beside = MultiIndex(polynomial({(1, 0): 1.5, (0, 2): 1.0}))
    held = MultiIndex(phase_retrieval(noise=1.5))
    setting = FIELD | dict(paths=2**15)
    ours = overlap_law_beside(solve(beside, 1, moments=True, **setting))
    noisy = overlap_law_beside(solve(held, 1, moments=True, **setting))
    assert ours.amplification[1] == pytest.approx(noisy.amplification[1], abs=2e-3)
    assert ours.covariance[1] == pytest.approx(noisy.covariance[1], abs=5e-3)


def test_basis_turns_the_law():
    """A turned basis of two hard directions turns the covariance."""
    problem = MultiIndex(polynomial({(2, 0): 1.0, (0, 2): 2.0}))
    found = solve(problem, 2, moments=True, **FIELD)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    plain = overlap_law_beside(found, hard=np.eye(2)).covariance[-1]
    turned = overlap_law_beside(found, hard=turn).covariance[-1]
    assert turned == pytest.approx(turn.T @ plain @ turn, abs=1e-10)
    assert abs(plain[0, 0] - plain[1, 1]) > 0.1


def test_refusals():
    """Without moments, and with nothing hard."""
    problem = MultiIndex(polynomial({(1,): 1.0}))
    with pytest.raises(ValueError, match="moments=True"):
        overlap_law_beside(solve(problem, 1, **FIELD))
    with pytest.raises(ValueError, match="hard direction"):
        overlap_law_beside(solve(problem, 1, moments=True, **FIELD))
