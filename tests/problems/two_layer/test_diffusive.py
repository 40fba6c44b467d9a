"""Diffusive limits at infinite precision against the chain without noise, misprints rejected."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from companion.effective_dynamics.xor_mixture import quarter_circles
from traindyn.problems.base import Sample
from traindyn.problems.two_layer import Statistics, TwoLayerMixture, limit
from traindyn.problems.two_layer.diffusive import around, blown_up, radial, radial_part
from traindyn.problems.two_layer.equilibria import ZERO, FixedSet, classes, locate
from traindyn.problems.two_layer.printed import (
    printed_around,
)
from traindyn.sgd import reduced

FALSE_ALARM = 1e-6
BINARY = TwoLayerMixture.binary(2, 1600, precision=math.inf, ridge=0.1)
XOR = TwoLayerMixture.xor(4, 1600, precision=math.inf, ridge=0.05)
UNEVEN = TwoLayerMixture(
    np.array([[1.5, 0.0], [-1.0, 0.0], [0.0, 0.8], [0.0, -2.0]]),
    np.array([1, 1, 0, 0]),
    np.array([0.2, 0.3, 0.35, 0.15]),
    5,
    1600,
    math.inf,
    0.05,
)
RADIUS = math.sqrt(math.log(4.0))  # of both mixtures above
RING = FixedSet(BINARY, (0, 0)).at([0.6 * RADIUS, 0.8 * RADIUS])
RINGS = quarter_circles(XOR, RADIUS * np.array([0.6, 0.8, -0.28, -0.96]))
BASES = [
    (BINARY, RING),
    (BINARY, FixedSet(BINARY, (1, 1)).at([0.28 * RADIUS, 0.96 * RADIUS])),
    (BINARY, FixedSet(BINARY, (1, 0)).point()),
    (XOR, RINGS),
    (XOR, FixedSet(XOR, (1, 3, 2, 2)).point([1.0, 1.0, 0.3, 0.7])),
    (UNEVEN, FixedSet(UNEVEN, (0, 3, 2, ZERO, 0)).point([0.4, 1.0, 1.0, 1.0, 0.6])),
]


def with_noise_between(problem, base, factor, c_delta=1.0):
    """Limit with the noise between classes multiplied by a factor."""
    right, place = around(problem, base, c_delta=c_delta), locate(problem, base)
    group = np.tile(np.array(place.assignment)[place.members], 2)
    same = group[:, None] == group
    return replace(right, noise=np.where(same, right.noise, factor * right.noise))


#: Independent classes as in the caption of BGJ Figure 11, and three times the noise between them
#: as in its Section 9.5; BGJ Proposition 5.1 has the right correlation of -1/3.
printed_independent = partial(with_noise_between, factor=0.0)
printed_noise = partial(with_noise_between, factor=3.0)


def coordinates(problem, base):
    """Place of the blown-up coordinates in (v, m): their indices, signs of v and of m kept."""
    neurons = np.flatnonzero(base.v)
    lines = np.argmax(np.abs(base.m[neurons]), axis=1)
    return np.concatenate([neurons, problem.width + problem.signal * neurons + lines])


def packed_drift(problem, u):
    """Limit drift on (v, m) as one vector."""
    width = problem.width
    here = Statistics(u[:width], u[width:].reshape(width, -1), np.zeros((width, width)))
    rate = limit.drift(problem, here)
    return np.concatenate([rate.v, rate.m.ravel()])


@pytest.mark.parametrize(("problem", "base"), BASES)
def test_drift_is_the_linearised_flow(problem, base):
    """Numerical Jacobian of the drift; the sign of BGJ Propositions 4.3 and 5.1 is rejected."""
    kept = coordinates(problem, base)
    u = np.concatenate([base.v, base.m.ravel()])
    columns = []
    for k in kept:
        step = np.zeros(u.size)
        step[k] = 1e-6
        columns.append((packed_drift(problem, u + step) - packed_drift(problem, u - step)) / 2e-6)
    expected = np.stack(columns, axis=1)[kept]
    found = around(problem, base)
    np.testing.assert_allclose(found.matrix, expected, atol=1e-9)
    printed = printed_around(problem, base)
    assert np.abs(printed.matrix - expected).max() > 0.01
    assert np.linalg.eigvals(printed.matrix).real.max() > 0.01
    assert np.linalg.eigvals(found.matrix).real.max() < 1e-12


@pytest.mark.parametrize(("problem", "base"), BASES)
def test_noise_is_that_of_the_gradient(problem, base):
    """Exact covariance over the centroids; independent classes and -3 are rejected."""
    point = problem.place(base)
    inputs = np.zeros((len(problem.labels), problem.dimension))
    inputs[:, : problem.signal] = problem.centroids
    draws = []
    for c in range(len(inputs)):
        one = problem.gradient(point, Sample(inputs[c : c + 1], np.array([c])))
        draws.append(np.concatenate([one.v, one.W[:, : problem.signal].ravel()]))
    kept = coordinates(problem, base)
    expected = 0.7 * np.cov(np.array(draws)[:, kept].T, aweights=problem.weights, ddof=0)
    found = around(problem, base, c_delta=0.7).noise
    np.testing.assert_allclose(found, expected, atol=1e-14)
    classes = len({tuple(row) for row in np.sign(np.column_stack([base.v, base.m])).tolist()})
    if classes > 1 and problem is not UNEVEN:
        for wrong in (printed_independent, printed_noise):
            gap = np.abs(wrong(problem, base, c_delta=0.7).noise - expected).max()
            assert gap > 1e-4


def test_ranks_and_entries_of_the_source():
    """Rank one, alpha^2 (BGJ Proposition 4.3); rank two, 3 and -1 of it (BGJ Proposition 5.1)."""
    noise = around(BINARY, RING).noise
    a = np.tile(RING.v, 2)
    np.testing.assert_allclose(noise, 0.01 * np.outer(a, a), atol=1e-15)
    a = np.tile(RINGS.v, 2)
    same = np.equal.outer(a > 0, a > 0)
    noise = around(XOR, RINGS).noise
    np.testing.assert_allclose(noise, 0.0025 * np.where(same, 3, -1) * np.outer(a, a), atol=1e-15)
    assert np.linalg.matrix_rank(noise, tol=1e-12) == 2
    best = FixedSet(BINARY, (0, 1)).point()
    noise = around(BINARY, best).noise
    np.testing.assert_allclose(noise, 0.01 * RADIUS**2, rtol=1e-12)


def test_radial_part_is_closed():
    """p of the full equation has the law of its own equation, at all times; stationary values."""
    times = np.array([0.5, 3.0, 40.0])
    for problem, base in BASES:
        whole, alone = around(problem, base, c_delta=1.3), radial(problem, base, c_delta=1.3)
        size = whole.matrix.shape[0]
        reader = radial_part(problem, base, np.eye(size))
        covariance = whole.covariance(times, np.zeros((size, size)))
        expected = alone.covariance(times, np.zeros((alone.matrix.shape[0],) * 2))
        np.testing.assert_allclose(reader.T @ covariance @ reader, expected, atol=1e-12)
    assert math.isclose(radial(BINARY, RING).stationary()[0, 0], 0.1 * math.log(4.0) / 0.8)
    found = radial(XOR, RINGS).stationary()
    assert math.isclose(found[0, 0], 3 * 0.05 * math.log(4.0) / 0.8)
    assert math.isclose(found[0, 1] / found[0, 0], -1 / 3)


def test_overlaps_at_good_points():
    """Stationary variance of every |m_i|, from the full equation and as known."""
    for problem, expected in (
        (BINARY, 0.1 / (4 * 0.8)),
        (replace(XOR, ridge=0.1), 0.3 / (4 * 0.6)),
        (UNEVEN, None),
    ):
        count = len(problem.labels)
        problem = replace(problem, width=count)
        base = FixedSet(problem, tuple(range(count))).point()
        variances = np.diag(around(problem, base, c_delta=2.0).stationary())
        for c in range(count):
            here, ridge = classes(problem), problem.ridge
            spread = (1 / problem.weights[c] - 1) / (1 - ridge / here.gains[c])
            found = 2.0 * ridge / (4 * here.radii[c]) * spread
            np.testing.assert_allclose(variances[[c, count + c]], found, rtol=1e-10)
            assert expected is None or math.isclose(found, 2.0 * expected)


def blown_up_paths(problem, base, times, replicas, seed):
    """Blown-up coordinates of replicas of the chain without noise from the fixed point."""
    path = reduced.run_replicas(
        problem,
        times,
        step_size=1.0 / problem.dimension,
        replicas=replicas,
        rng=seed,
        start=base,
    )
    return blown_up(problem, base, path.statistics)


def p_value(samples, expected):
    """Two-sided chi-square p-value of a variance of Gaussian samples of mean zero."""
    total = np.square(samples).sum() / expected
    tail = stats.chi2(samples.size)
    return 2 * min(tail.cdf(total), tail.sf(total))


def test_ring_of_the_binary_mixture():
    """Variance of p along the chain (BGJ Proposition 4.3), printed sign rejected; rank one."""
    times, replicas = np.array([1.0, 5.0, 12.0]), 400
    u = blown_up_paths(BINARY, RING, times, replicas, seed=1)
    p = radial_part(BINARY, RING, u)[..., 0]
    right = radial(BINARY, RING).covariance(times, np.zeros((1, 1)))[:, 0, 0]
    reader = radial_part(BINARY, RING, np.eye(4))[:, 0]
    printed = printed_around(BINARY, RING).covariance(times, np.zeros((4, 4)))
    wrong = np.einsum("i,tij,j->t", reader, printed, reader)
    np.testing.assert_allclose(right, [0.062, 0.155, 0.173], atol=2e-3)
    # The correction of order 1/sqrt(N), 2.5 %, is far below the standard error of 7 %.
    assert min(p_value(p[:, k], right[k]) for k in range(3)) > FALSE_ALARM / 3
    assert p_value(p[:, 2], wrong[2]) < 1e-12
    # Everything but p is exactly still: v = m, and the ratio of the two neurons is frozen.
    np.testing.assert_allclose(u[..., :2], u[..., 2:], atol=1e-9)
    np.testing.assert_allclose(0.8 * u[..., 0], 0.6 * u[..., 1], atol=1e-9)


def test_rings_of_the_xor_mixture():
    """Variances and correlation -1/3 of (p_mu, p_nu); printed variants rejected."""
    times, replicas = np.array([6.0]), 1200
    u = blown_up_paths(XOR, RINGS, times, replicas, seed=2)
    p = radial_part(XOR, RINGS, u)[:, 0]
    right = radial(XOR, RINGS).covariance(times, np.zeros((2, 2)))[0]
    for reader in (np.array([1.0, 0.0]), np.array([1.0, 1.0]), np.array([1.0, -1.0])):
        assert p_value(p @ reader, reader @ right @ reader) > FALSE_ALARM / 3
    # The sum has variance 4/3 of one, for independent classes 2 and with -3 it is still.
    assert p_value(p @ [1.0, 1.0], right[0, 0] + right[1, 1]) < 1e-6
    kept = radial_part(XOR, RINGS, np.eye(8))
    for wrong in (printed_independent, printed_noise, printed_around):
        covariance = wrong(XOR, RINGS).covariance(times, np.zeros((8, 8)))[0]
        total = float((kept.T @ covariance @ kept).sum())
        assert p_value(p @ [1.0, 1.0], max(total, 1e-6)) < 1e-6
    neurons = np.array([0, 1, 2, 3])
    np.testing.assert_allclose(u[..., neurons], u[..., 4 + neurons], atol=1e-9)


def test_blown_up_coordinates():
    """sqrt(N) times the deviations, with leading axes, neurons at zero left out."""
    problem, base = BASES[-1]
    moved = base._replace(v=base.v + np.arange(5.0), m=base.m + 0.5)
    stacked = Statistics(*(np.stack([one, two]) for one, two in zip(base, moved, strict=True)))
    u = blown_up(problem, base, stacked) / math.sqrt(1600)
    np.testing.assert_array_equal(u[0], 0.0)
    np.testing.assert_allclose(u[1], [0.0, 1.0, 2.0, 4.0, 0.5, 0.5, 0.5, 0.5])


def test_places_off_the_rings_are_refused():
    """Wrong radii, mixed signs, other mixtures, points that move."""
    with pytest.raises(ValueError, match=r"in class 3, got 0\.5"):
        quarter_circles(XOR, [0.6 * RADIUS, 0.8 * RADIUS, -0.5, -0.5])
    with pytest.raises(ValueError, match="problem must be an XOR mixture"):
        quarter_circles(BINARY, [RADIUS, -RADIUS])
    with pytest.raises(ValueError, match="fixed point up to"):
        around(BINARY, RING._replace(v=1.01 * RING.v))
    with pytest.raises(ValueError, match="c_delta must be non-negative"):
        around(BINARY, RING, c_delta=-1.0)
