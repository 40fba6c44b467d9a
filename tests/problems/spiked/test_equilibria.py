"""Fixed points of spiked PCA: completeness, stability, thresholds, signs."""

import math

import numpy as np
import pytest

from companion.effective_dynamics.pca.printed import (
    as_printed,
    printed_informative,
    printed_ridge_equator,
)
from companion.sample_complexity.effective_dynamics.printed import printed_matrix_equilibria
from traindyn.effective import ode
from traindyn.gaussian import gauss_hermite
from traindyn.problems.spiked import SpikedTensor, Statistics
from traindyn.problems.spiked.equilibria import (
    critical_ridge,
    critical_signal,
    equilibria,
    informative,
)

NO_RULE = gauss_hermite(1, 1)
ORDERS = (2, 3, 4, 5, 7)


def drift_size(problem, statistics, c_delta):
    """Largest entry of the drift."""
    return np.abs(problem.drift(statistics, c_delta=c_delta)).max()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ridge", [0.0, 1e-6, 0.3, 5.0])
@pytest.mark.parametrize("c_delta", [0.0, 0.5, 1.0, 2.0])
def test_all_of_them_stand_still(order, ridge, c_delta):
    """Each is a zero of the drift, and the signal term has the right sign."""
    for factor in (0.5, 1.1, 3.0):
        signal = factor * max(critical_signal(order, c_delta=c_delta, ridge=ridge), 0.1)
        problem = SpikedTensor(order, 100, signal=signal, ridge=ridge)
        found = equilibria(problem, c_delta=c_delta)
        for each in found:
            rate = max(1.0, np.abs(each.eigenvalues).max())
            assert drift_size(problem, each.statistics, c_delta) < 1e-12 * rate
            assert each.statistics.m >= 0 or order % 2 == 0
        places = np.array([each.statistics for each in found])
        gaps = np.abs(places[:, None] - places).max(axis=-1)
        assert np.all(gaps[~np.eye(len(found), dtype=bool)] > 1e-12)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ridge", [0.0, 0.3, 3.0])
def test_none_is_missed(order, ridge):
    """Newton from a grid of starts finds no other one.

    The control is the list without its last entry.
    """
    problem = SpikedTensor(
        order, 100, signal=1.3 * critical_signal(order, c_delta=1.0), ridge=ridge
    )
    known = np.array([each.statistics for each in equilibria(problem, c_delta=1.0)])
    seen = newton_limits(problem, 1.0)
    distance = np.abs(seen[:, None] - known).max(axis=-1)
    assert np.all(distance.min(axis=1) < 1e-6)
    assert np.any(distance[:, :-1].min(axis=1) > 1e-3)


def newton_limits(problem, c_delta):
    """Zeros of the drift with r2 >= 0 that Newton's method reaches from a grid."""
    top = 1.5 * math.sqrt(problem.signal ** (2 / problem.order) + c_delta)
    m, r2 = np.meshgrid(np.linspace(-top, top, 60), np.linspace(0.003, 1.5 * c_delta, 40))
    u = np.stack([m.ravel(), r2.ravel()], axis=-1)
    with np.errstate(all="ignore"):
        for _ in range(60):
            value = np.stack(problem.drift(Statistics(*u.T), c_delta=c_delta), axis=-1)
            jacobian = problem.jacobian(Statistics(*u.T), c_delta=c_delta)
            regular = np.isfinite(jacobian).all(axis=(1, 2)) & (
                np.abs(np.linalg.det(np.nan_to_num(jacobian))) > 1e-14
            )
            u, value, jacobian = u[regular], value[regular], jacobian[regular]
            u = u - np.linalg.solve(jacobian, value[..., None])[..., 0]
    size = np.abs(np.stack(problem.drift(Statistics(*u.T), c_delta=c_delta))).max(axis=0)
    return u[(size < 1e-10) & (u[:, 1] > -1e-9) & ~(np.abs(u) < 1e-2).all(axis=1)]


def test_classification_without_ridge():
    """BGJ Proposition 3.2 for even and odd orders, both sides of the threshold."""
    for order in ORDERS:
        threshold = critical_signal(order, c_delta=1.0)
        below = equilibria(SpikedTensor(order, 100, signal=0.99 * threshold), c_delta=1.0)
        above = equilibria(SpikedTensor(order, 100, signal=1.01 * threshold), c_delta=1.0)
        signs = 2 if order % 2 == 0 else 1
        assert [each.stable for each in below] == [False, True]
        if order == 2:
            assert [each.stable for each in above] == [False, False, True, True]
        else:
            assert [each.stable for each in above] == (
                [False, True] + signs * [False] + signs * [True]
            )


def test_values_and_eigenvalues_without_ridge():
    """Closed eigenvalues at the informative points; thresholds of BGJ (7.4)."""
    for order, expected in ((2, 1.0), (3, 16 / 3**1.5), (4, 6.75), (5, 14.101102)):
        assert math.isclose(critical_signal(order, c_delta=1.0), expected, rel_tol=1e-7)
        scaled = critical_signal(order, c_delta=0.3)
        assert math.isclose(scaled, expected * 0.3 ** (order / 2), rel_tol=1e-7)
    (best,) = informative(SpikedTensor(2, 100, signal=3.0), c_delta=1.2)
    np.testing.assert_allclose(best.statistics, (math.sqrt(1.8), 1.2))
    np.testing.assert_allclose(best.eigenvalues, [-8 * 1.8, -8 * 3.0])
    for order in (3, 4, 5):
        c, k = 0.8, order
        problem = SpikedTensor(order, 100, signal=2.0 * critical_signal(order, c_delta=c))
        for each in informative(problem, c_delta=c):
            rho = each.statistics.m**2 + c
            expected = [
                2 * k * rho ** (k - 2) * (2 * (k - 1) * c - k * rho),
                -4 * k * rho ** (k - 1),
            ]
            np.testing.assert_allclose(each.eigenvalues.real, sorted(expected)[::-1], rtol=1e-9)


@pytest.mark.parametrize("order", [3, 5])
def test_odd_orders_have_no_negative_fixed_point(order):
    """Mirror images, as BGJ Proposition 3.2 has them, move, and starts with m < 0 end at (0, c)."""
    problem = SpikedTensor(order, 100, signal=2.0 * critical_signal(order, c_delta=1.0))
    sizes = [
        (u.m > 0, drift_size(problem, u, 1.0)) for u in printed_informative(problem, c_delta=1.0)
    ]
    assert len(sizes) == 4
    for positive, size in sizes:
        assert (size < 1e-12 * problem.signal**2) == positive
        assert positive or size > 1.0
    start = Statistics(np.array(-3.0), np.array(0.5))
    end = ode.solve(problem, start, [30.0], c_delta=1.0, rule=NO_RULE)
    np.testing.assert_allclose(np.array(end.statistics)[:, 0], [0.0, 1.0], atol=1e-8)


def test_domain_is_the_step_size_not_one():
    """At c_delta = 0.2 both points have R2 < 1: the printed domain R2 >= 1 loses them."""
    problem = SpikedTensor(4, 100, signal=1.1 * critical_signal(4, c_delta=0.2))
    assert len(informative(problem, c_delta=0.2)) == 2
    assert printed_informative(problem, c_delta=0.2) == ()


def test_barrier_vanishes_with_the_step_size():
    """BGJ Remark 3: m_dagger ~ (c^(k-1) / signal)^(1/(k-2)) and m_star -> signal^(1/k)."""
    for order in (3, 4):
        problem = SpikedTensor(order, 100, signal=5.0)
        saddle, best = informative(problem, c_delta=1e-4)
        expected = (1e-4 ** (order - 1) / 5.0) ** (1 / (order - 2))
        assert math.isclose(saddle.statistics.m, expected, rel_tol=1e-3)
        assert math.isclose(best.statistics.m, 5.0 ** (1 / order), rel_tol=1e-3)
        (alone,) = informative(problem, c_delta=0.0)
        assert math.isclose(alone.statistics.m, 5.0 ** (1 / order), rel_tol=1e-14)


def test_matrix_with_ridge():
    """Closed forms for order two; the printed equator, threshold and drift are rejected."""
    signal, c, ridge = 2.0, 1.0, 1.2
    problem = SpikedTensor(2, 100, signal=signal, ridge=ridge)
    origin, equator, best, _ = equilibria(problem, c_delta=c)
    assert not origin.stable and not equator.stable and best.stable
    assert math.isclose(equator.statistics.r2, c - ridge / 4)
    assert math.isclose(best.statistics.m**2, (signal - c) * (signal - ridge / 4) / signal)
    assert math.isclose(best.statistics.r2, c * (1 - ridge / (4 * signal)))
    printed = printed_ridge_equator(c_delta=c, ridge=ridge)
    assert drift_size(problem, printed, c) > 0.1
    assert drift_size(as_printed(problem), best.statistics, c) > 0.1


def test_critical_ridge():
    """The equator exists just below and not just above; 2 c is rejected for order two."""
    for order in ORDERS:
        edge = critical_ridge(order, c_delta=0.7)
        counts = []
        for ridge in (0.999 * edge, 1.001 * edge):
            problem = SpikedTensor(order, 100, signal=0.1, ridge=ridge)
            found = equilibria(problem, c_delta=0.7)
            counts.append(sum(each.statistics.m == 0 for each in found) - 1)
        assert counts == [1 if order == 2 else 2, 0]
    # BGJ Section 7.1 prints 2 c_delta for the critical ridge at order two.
    problem = SpikedTensor(2, 100, signal=0.1, ridge=1.5 * 2 * 0.7)
    assert len(equilibria(problem, c_delta=0.7)) == 2


@pytest.mark.parametrize("order", [3, 4, 5])
@pytest.mark.parametrize("ridge", [1e-6, 0.5, 4.0])
def test_threshold_with_ridge_is_where_the_outermost_pair_is_born(order, ridge):
    """Two more points just above than just below; continuous at ridge zero."""
    edge = critical_signal(order, c_delta=1.0, ridge=ridge)
    counts = [
        sum(
            each.statistics.m > 0
            for each in equilibria(
                SpikedTensor(order, 100, signal=factor * edge, ridge=ridge), c_delta=1.0
            )
        )
        for factor in (0.999, 1.001)
    ]
    assert counts[1] == counts[0] + 2
    if ridge == 1e-6:
        assert math.isclose(edge, critical_signal(order, c_delta=1.0), rel_tol=1e-5)


def test_requests_below_the_threshold_are_refused():
    """Threshold and signal are both in the message."""
    with pytest.raises(ValueError, match=r"threshold 6\.75 of order 4 .* got 6\.7"):
        informative(SpikedTensor(4, 100, signal=6.7), c_delta=1.0)
    with pytest.raises(ValueError, match=r"got 0\.5"):
        informative(SpikedTensor(2, 100, signal=0.5), c_delta=1.0)
    with pytest.raises(ValueError, match="order must be an integer >= 2"):
        critical_signal(1, c_delta=1.0)


def test_fixed_points_of_matrix_pca_in_the_course_notes_move():
    """Of the three printed in MDL Section 12.4.1 only the origin stands still."""
    problem = SpikedTensor(2, 100, signal=1.5)
    sizes = [drift_size(problem, place, 1.0) for place in printed_matrix_equilibria()]
    assert sizes[0] == 0
    assert min(sizes[1:]) > 0.5
