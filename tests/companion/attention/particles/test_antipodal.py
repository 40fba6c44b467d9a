"""Two antipodal clusters: growth rates against differences, and what becomes of tokens nearby."""

import numpy as np
import pytest

from companion.attention.particles.antipodal import antipodal_rate, leading_direction
from companion.attention.particles.attention import Attention, Head
from companion.attention.particles.ensembles import random_head


def slopes(model, tokens, step=1e-6):
    """Derivative of the velocity in the coordinates of all tokens, kept on the sphere."""
    n, d = tokens.shape
    found = np.empty((n * d, n * d))
    for k in range(n * d):
        ends = []
        for sign in (1, -1):
            moved = tokens.ravel().copy()
            moved[k] += sign * step
            moved = moved.reshape(n, d) / np.linalg.norm(moved.reshape(n, d), axis=1)[:, None]
            ends.append(model.velocity(moved).ravel())
        found[:, k] = (ends[0] - ends[1]) / (2 * step)
    return found


@pytest.mark.parametrize("sizes", [(2, 2), (3, 1), (1, 1)])
def test_rate_against_differences(sizes):
    """Radial displacements are projected away, and add eigenvalues zero."""
    tried = 0
    for seed in range(20):
        head = random_head("A", 3, rng=seed)
        u = leading_direction(head.value)
        if u is None:
            continue
        tokens = np.repeat([u, -u], sizes, axis=0)
        model = Attention(1.5, [head])
        assert np.abs(model.velocity(tokens)).max() < 1e-12
        values = np.linalg.eigvals(slopes(model, tokens))
        kept = np.delete(values, np.argsort(np.abs(values))[: len(tokens)])
        rate = antipodal_rate(head, u, sizes, inverse_temperature=1.5)
        assert rate == pytest.approx(kept.real.max(), abs=1e-7)
        tried += 1
    assert tried > 3


def test_equal_clusters_by_the_hyperbolic_tangent():
    """Stable exactly where the other eigenvalues stay below it."""
    u, q = np.array([1.0, 0.0, 0.0]), 0.7
    for beta, other in ((2.0, 1.7), (2.0, 1.8), (0.1, 0.1), (0.1, 0.2)):
        head = Head(np.diag([q, 1.0, 1.0]), np.eye(3), np.diag([2.0, other, -1.0]))
        rate = antipodal_rate(head, u, (4, 4), inverse_temperature=beta)
        assert rate == pytest.approx(
            max(
                other - 2 * np.tanh(beta * q),
                -2 * np.tanh(beta * q),
                np.tanh(beta * q) * (other - 2),
            )
        )
        assert (rate < 0) == (other < 2 * np.tanh(beta * q))


def test_far_apart_scores_do_not_overflow():
    """At low temperature each cluster attends to itself, or only to the other."""
    head = Head(np.eye(2), np.eye(2), np.diag([2.0, 1.0]))
    assert antipodal_rate(head, [1, 0], (5, 1), inverse_temperature=1e6) == pytest.approx(-1.0)
    away = Head(-np.eye(2), np.eye(2), np.diag([2.0, 1.0]))
    assert antipodal_rate(away, [1, 0], (5, 1), inverse_temperature=1e6) == pytest.approx(3.0)


def test_direction_of_a_complex_or_negative_leading_eigenvalue():
    """There is none."""
    assert leading_direction([[1.0, 1.0], [-1.0, 1.0]]) is None
    assert leading_direction(-np.eye(2)) is None
    found = leading_direction([[3.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(np.abs(found), [1.0, 0.0], atol=1e-15)


def test_refusals():
    """A direction that is no eigenvector, sizes that are not two, a head without a value."""
    head = Head(value=np.diag([2.0, 1.0]))
    with pytest.raises(ValueError, match="direction must be a unit eigenvector"):
        antipodal_rate(head, [0.6, 0.8], (1, 1), inverse_temperature=1.0)
    with pytest.raises(ValueError, match="sizes must be two numbers of tokens"):
        antipodal_rate(head, [1.0, 0.0], (1, 1, 1), inverse_temperature=1.0)
    with pytest.raises(ValueError, match="must be a matrix, got None"):
        antipodal_rate(Head(), [1.0, 0.0], (1, 1), inverse_temperature=1.0)
    with pytest.raises(ValueError, match="value must have shape"):
        leading_direction(np.ones((2, 3)))
