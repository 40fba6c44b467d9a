"""Effective dynamics of the k-Gaussian mixture against references and closed forms."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

from companion.alignment.beyond.spectra import limit_spectra
from companion.alignment.training_dynamics.limit import from_diagonal, scalar_drift
from companion.alignment.training_dynamics.printed import printed_drift
from traindyn import _evaluations, effective, gaussian
from traindyn.effective import ode
from traindyn.problems.k_gmm import KGaussianMixture, Statistics, limit

GRAM = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])


def _general(precision: float = 1.5, dimension: int = 1000) -> KGaussianMixture:
    return KGaussianMixture(GRAM, np.array([0.2, 0.3, 0.5]), precision, 0.1, dimension)


def _paper() -> KGaussianMixture:
    return KGaussianMixture.orthonormal(10, 1000, precision=10.0, ridge=0.01, spacing=50)


def _runge_kutta(drift: Any, start: Statistics, end: float, steps: int) -> Statistics:
    """Classical fourth-order steps, written out as an independent integrator."""
    state, h = start, end / steps

    def moved(by: Statistics, factor: float) -> Statistics:
        return Statistics(state.m + factor * by.m, state.R_perp + factor * by.R_perp)

    for _ in range(steps):
        one = drift(state)
        two = drift(moved(one, h / 2))
        three = drift(moved(two, h / 2))
        four = drift(moved(three, h))
        total = (a + 2 * b + 2 * c + d for a, b, c, d in zip(one, two, three, four, strict=True))
        state = moved(Statistics(*total), h / 6)
    return state


def test_limit_reproduces_the_reference_table() -> None:
    """Own overlap, probability, alignment and eigenvalues at k=10, p=.1, beta=.01, 3 digits."""
    problem = _paper()
    times = [0.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    m, R_perp = effective.solve_limit(problem, problem.initial_statistics(), times).statistics
    own = m[:, 0, 0]
    q = limit.own_probability(own, 10)
    along = (m[:, 0] ** 2).sum(axis=1)
    alignment = np.sqrt(along / (along + R_perp[:, 0, 0]))
    np.testing.assert_allclose(own, [0, 0.427, 0.805, 1.411, 2.338, 2.730], atol=6e-4)
    np.testing.assert_allclose(q, [0.1, 0.152, 0.214, 0.348, 0.599, 0.698], atol=6e-4)
    np.testing.assert_allclose(alignment, [0, 0.43, 0.68, 0.88, 0.971, 0.992], atol=6e-3)
    spectra = [limit_spectra(value, 10) for value in q[:5]]
    hessian = np.array([s.block("hessian", 0)[:2] for s in spectra])
    g_matrix = np.array([s.block("g_matrix", 0)[:2] for s in spectra])
    np.testing.assert_allclose(hessian[:, 0], [0.009, 0.01285, 0.0168, 0.0227, 0.0240], atol=6e-5)
    np.testing.assert_allclose(hessian[:, 1], [0.009, 0.00854, 0.0080, 0.0067, 0.0043], atol=6e-5)
    np.testing.assert_allclose(g_matrix[:, 0], [0.081, 0.0720, 0.0618, 0.0425, 0.0161], atol=6e-5)
    np.testing.assert_allclose(
        g_matrix[:, 1], [0.001, 0.00089, 0.00076, 0.00053, 0.00020], atol=6e-6
    )


def test_limit_reduces_to_one_scalar_equation_per_class() -> None:
    """For orthonormal means and unequal weights the scalar reduction is exact from m = 0."""
    problem = KGaussianMixture.orthonormal(
        4, 10, precision=1.0, ridge=0.05, weights=[0.1, 0.2, 0.3, 0.4]
    )
    times = np.linspace(0.0, 30.0, 7)
    full = effective.solve_limit(problem, problem.initial_statistics(), times).statistics
    scalar = solve_ivp(
        lambda _, m: scalar_drift(problem, m),
        (0.0, 30.0),
        np.zeros(4),
        t_eval=times,
        rtol=1e-11,
        atol=1e-13,
    ).y.T
    for index, t in enumerate(times):
        reduced = from_diagonal(problem, scalar[index], t)
        np.testing.assert_allclose(full.m[index], reduced.m, atol=1e-9)
        np.testing.assert_allclose(full.R_perp[index], reduced.R_perp, atol=1e-9)
    # control: off diagonal -m/k in the place of -m/(k-1)
    assert np.abs(full.m[-1, 1, 0] + scalar[-1, 0] / 4) > 0.05


def test_solver_agrees_with_an_independent_integrator() -> None:
    """A wrong time scale or unpacked field shows against plain Runge-Kutta steps."""
    problem = _general()
    rule = gaussian.gauss_hermite(3, 12)
    start = problem.draw_initial_statistics(rng=4)
    path = effective.solve(problem, start, [1.0, 5.0], c_delta=1.0, rule=rule)
    reference = _runge_kutta(lambda s: problem.drift(s, rule=rule, c_delta=1.0), start, 5.0, 200)
    np.testing.assert_allclose(path.statistics.m[-1], reference.m, atol=1e-7)
    np.testing.assert_allclose(path.statistics.R_perp[-1], reference.R_perp, atol=1e-7)
    assert path.step_size is None and path.statistics.m.shape == (2, 3, 3)
    # control: without the corrector the orthogonal part is another one
    plain = effective.solve(problem, start, [5.0], rule=rule)
    assert np.abs(plain.statistics.R_perp[-1] - reference.R_perp).max() > 0.05


def test_finite_precision_reference_values() -> None:
    """Orthogonal part at t = 30 of the corrected system; the printed (5.6) explodes.

    The references come from a Monte-Carlo integration of the drift, good to about 1e-3.
    """
    problem = _general()
    start = problem.initial_statistics()
    rule = gaussian.gauss_hermite(3, 12)
    path = effective.solve(problem, start, [30.0], c_delta=1.0, rule=rule)
    found = np.diag(path.statistics.R_perp[-1])
    np.testing.assert_allclose(found, [0.163, 0.198, 0.211], atol=2e-3)
    printed = _runge_kutta(
        lambda s: printed_drift(problem, s, rule=rule, c_delta=1.0), start, 5.0, 50
    )
    corrected = effective.solve(problem, start, [5.0], c_delta=1.0, rule=rule).statistics
    assert np.abs(np.diag(printed.R_perp) - np.diag(corrected.R_perp[-1])).max() > 0.1


def test_finite_precision_approaches_the_limit_at_rate_one_over_lambda() -> None:
    """BGHJ Corollary 5.12: lambda * sup |difference| settles, for overlaps and R_perp.

    The references come from a Monte-Carlo integration of the drift, good to about 5e-3.
    """
    times = np.linspace(0.0, 100.0, 51)
    rule = gaussian.gauss_hermite(3, 12)
    limit = effective.solve_limit(_general(), _general().initial_statistics(), times).statistics
    precisions = np.array([16.0, 64.0, 256.0, 1024.0])
    gaps = []
    for precision in precisions:
        problem = _general(precision)
        path = effective.solve(
            problem, problem.initial_statistics(), times, c_delta=1.0, rule=rule
        ).statistics
        gaps.append([np.abs(a - b).max() for a, b in zip(path, limit, strict=True)])
    scaled = precisions[:, None] * np.array(gaps)
    np.testing.assert_allclose(scaled[:, 0], [0.827, 0.835, 0.835, 0.835], atol=6e-3)
    np.testing.assert_allclose(scaled[:, 1], [0.340, 0.373, 0.382, 0.385], atol=6e-3)
    slopes = np.polyfit(np.log(precisions), np.log(gaps), 1)[0]
    assert np.all(np.abs(slopes + 1) < 0.05)
    assert np.all(np.abs(slopes + 0.5) > 0.3)  # control: rate lambda^{-1/2}


def test_quadrature_error_covers_gauss_hermite() -> None:
    """The spread over scramblings tells the distance to the exact quadrature.

    With 8 replicates one entry over its error is t with 7 degrees of freedom; 45 entries
    at 2e-8 each (1e-6 in all) give the bound. Power: errors understated by a factor 100
    are rejected.
    """
    bound = stats.t.isf(1e-8, df=7)
    problem = _general()
    start, times = problem.initial_statistics(), [1.0, 5.0, 20.0]
    exact = effective.solve(
        problem, start, times, c_delta=1.0, rule=gaussian.gauss_hermite(3, 14)
    ).statistics
    upper = np.triu_indices(3)
    rules = [gaussian.sobol(3, 256, rng=rng) for rng in np.random.default_rng(2).spawn(8)]
    runs = (effective.solve(problem, start, times, c_delta=1.0, rule=r).statistics for r in rules)
    values = np.stack([np.r_[u.m.ravel(), u.R_perp[:, *upper].ravel()] for u in runs])
    gaps = np.abs(values.mean(axis=0) - np.r_[exact.m.ravel(), exact.R_perp[:, *upper].ravel()])
    errors = stats.sem(values)
    assert gaps.size == 45
    assert np.all(gaps < bound * errors)
    assert np.any(gaps > bound * errors / 100)  # control


def test_paper_case_runs_at_k_ten() -> None:
    """k=10, T=50: classes stay exchangeable within the error of the default rule."""
    problem = _paper()
    path = effective.solve(problem, problem.initial_statistics(), [0.0, 50.0], c_delta=1.0)
    own = np.diag(path.statistics.m[-1])
    assert np.ptp(own) < 2e-3
    assert own.mean() == pytest.approx(2.1071, abs=1e-3)
    alignment = np.sqrt(own**2 * 10 / 9 / (own**2 * 10 / 9 + np.diag(path.statistics.R_perp[-1])))
    np.testing.assert_allclose(alignment, 0.973, atol=1e-3)


def test_time_zero_and_leading_interval_are_kept() -> None:
    """The solution starts at time 0 even when the first requested time is later."""
    problem = _general()
    start = problem.initial_statistics()
    only = effective.solve_limit(problem, start, [0.0])
    np.testing.assert_array_equal(only.statistics.R_perp[0], np.eye(3))
    late = effective.solve_limit(problem, start, [2.0])
    np.testing.assert_allclose(late.statistics.R_perp[0], np.exp(-0.4) * np.eye(3), rtol=1e-8)


def test_bad_input_and_blow_up_are_named() -> None:
    """Wrong times, coefficients or rules, and a diverging field, must not pass silently."""
    problem = _general()
    start = problem.initial_statistics()
    with pytest.raises(ValueError, match="c_delta must be non-negative, got -1"):
        effective.solve(problem, start, [1.0], c_delta=-1)
    with pytest.raises(ValueError, match="times must be strictly increasing"):
        effective.solve(problem, start, [1.0, 1.0])
    with pytest.raises(ValueError, match="rtol must be positive"):
        effective.solve_limit(problem, start, [1.0], rtol=0.0)
    with pytest.raises(ValueError, match="rule must have dimension 3, got 2"):
        effective.solve(problem, start, [1.0], rule=gaussian.rule(2))

    class Runaway:
        """Blow up at time 1, or by overflow at once."""

        def __init__(self, scale: float) -> None:
            self.scale = scale

        def limit_drift(self, statistics: Statistics) -> Statistics:
            return Statistics(self.scale * statistics.m**2, statistics.R_perp)

    for scale, where in ((1.0, "near 1"), (1e308, "near ")):
        with pytest.raises(FloatingPointError, match=f"until time 3, the solver stopped {where}"):
            effective.solve_limit(
                Runaway(scale),  # type: ignore[arg-type]
                Statistics(2 ** float(scale > 1) * np.eye(2), np.eye(2)),
                [0.5, 3.0],
            )


class Decay(NamedTuple):
    """A number that falls."""

    u: np.ndarray


def decaying(statistics: Decay) -> Decay:
    """Reach zero soon, and stay there."""
    return Decay(-statistics.u)


def test_the_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Explicit steps next to an equilibrium cannot grow: the run took for ever."""
    problem = SimpleNamespace(limit_drift=decaying)
    assert _evaluations.MOST == 100_000  # as the docstrings say
    monkeypatch.setattr(ode, "bounded", partial(_evaluations.bounded, most=5000))
    with pytest.raises(ValueError, match=r"^times must be within reach of 5000 .* got 1e\+07, of"):
        effective.ode.solve_limit(problem, Decay(np.ones(1)), [0.0, 1e7])
    near = effective.ode.solve_limit(problem, Decay(np.ones(1)), [0.0, 1e3])
    np.testing.assert_allclose(near.statistics.u[:, 0], [1.0, 0.0], atol=1e-9)
