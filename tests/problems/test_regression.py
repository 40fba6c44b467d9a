"""Least squares, max-margin, flow and descent on separable data, other methods."""

from itertools import product

import numpy as np
import pytest
from scipy import linalg, optimize

from companion.foundations.implicit_bias.margin import (
    NotSeparableError,
    max_margin,
    separable_data,
    sup_norm_margin,
)
from companion.foundations.implicit_bias.methods import descend
from companion.foundations.implicit_bias.printed import printed_drift_pieces, printed_step_size
from companion.foundations.implicit_bias.separable import (
    EXPONENTIAL,
    LOGISTIC,
    Classifier,
    MarginLoss,
)
from traindyn.problems.regression import LeastSquares


@pytest.fixture
def rng() -> np.random.Generator:
    """Fresh for each test."""
    return np.random.default_rng(7)


# ------------------------------------------------------------------------- least squares


@pytest.mark.parametrize("shape", [(5, 12), (12, 5)])
def test_closed_form_is_the_run(shape: tuple[int, int], rng: np.random.Generator) -> None:
    """In both regimes the path is that of descent taken step by step."""
    problem = LeastSquares(rng.standard_normal(shape), rng.standard_normal(shape[0]))
    start = rng.standard_normal(shape[1])
    step = 0.8 * problem.critical_step_size
    steps = [0, 1, 2, 30]
    run = descend(problem.gradient, start, step_sizes=np.full(30, step), record=steps)
    closed = problem.descend(steps, step_size=step, start=start)
    np.testing.assert_allclose(closed.statistics.parameters, run, atol=1e-12)
    np.testing.assert_allclose(closed.statistics.loss, problem.loss(run), rtol=1e-10)
    slowest, fastest = (np.abs(1 - 2 * s * problem.curvatures).max() for s in (step, step / 0.79))
    assert slowest < 1 < fastest


def test_projection_solves_the_constrained_problem(rng: np.random.Generator) -> None:
    """Against SciPy's solver of: nearest solution to the start; from zero that of MDL Lemma 4.2."""
    problem = LeastSquares(rng.standard_normal((3, 6)), rng.standard_normal(3))
    start = rng.standard_normal(6)
    found = optimize.minimize(
        lambda p: ((p - start) ** 2).sum(),
        np.zeros(6),
        constraints={"type": "eq", "fun": lambda p: problem.x @ p - problem.y},
        options={"ftol": 1e-14},
    ).x
    np.testing.assert_allclose(problem.project(start), found, atol=1e-6)
    np.testing.assert_allclose(problem.project(np.zeros(6)), problem.minimum_norm(), atol=1e-12)
    assert np.linalg.norm(problem.minimum_norm() - found) > 0.1


def test_rank_deficient_design() -> None:
    """A repeated row neither divides by zero nor changes the solution."""
    problem = LeastSquares([[3.0, 4.0], [3.0, 4.0]], [5.0, 5.0])
    assert problem.curvatures.size == 1
    np.testing.assert_allclose(problem.minimum_norm(), [0.6, 0.8])


def test_least_squares_refuses(rng: np.random.Generator) -> None:
    """Errors name the argument."""
    with pytest.raises(ValueError, match="x must not be zero"):
        LeastSquares(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ValueError, match=r"y must have shape \(2\)"):
        LeastSquares(np.ones((2, 3)), np.zeros(3))
    problem = LeastSquares(rng.standard_normal((3, 6)), rng.standard_normal(3))
    with pytest.raises(ValueError, match="steps must be whole"):
        problem.descend([0.5], step_size=0.1)
    with pytest.raises(FloatingPointError, match=r"step_size = .* diverges"):
        problem.descend([10**6], step_size=2 * problem.critical_step_size)


# ---------------------------------------------------------------------------- max margin


@pytest.mark.parametrize(("n", "d"), [(10, 2), (30, 5), (6, 20)])
def test_max_margin_against_a_general_solver(n: int, d: int, rng: np.random.Generator) -> None:
    """SLSQP on the primal; the optimality conditions; a sum rule."""
    y = rng.choice([-1.0, 1.0], n)
    x = rng.standard_normal((n, d)) + 2 * y[:, None] * np.eye(d)[0] * (n > d)
    best = max_margin(x, y)
    z = y[:, None] * x
    general = optimize.minimize(
        lambda w: (w @ w / 2, w),
        linalg.lstsq(z, 2 * np.ones(n))[0],
        jac=True,
        constraints={"type": "ineq", "fun": lambda w: z @ w - 1, "jac": lambda w: z},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    np.testing.assert_allclose(best.weights, general.x, atol=1e-5)
    np.testing.assert_allclose(best.coefficients @ z, best.weights, atol=1e-12)
    assert best.coefficients.sum() == pytest.approx(best.weights @ best.weights)
    assert (z @ best.weights).min() == pytest.approx(1, abs=1e-12)
    assert np.all(best.coefficients[~best.support] == 0)
    assert best.gap > 1


def test_scaling_of_the_data(rng: np.random.Generator) -> None:
    """Inputs in other units: weights scale inversely, the support stays."""
    x, y = separable_data(20, 4, support=3, exponent=0.2, rng=rng)
    one, tiny = max_margin(x, y), max_margin(1e-9 * x, y)
    np.testing.assert_allclose(tiny.weights, 1e9 * one.weights, rtol=1e-9)
    np.testing.assert_array_equal(tiny.support, one.support)
    assert tiny.margin == pytest.approx(1e-9 * one.margin)


def test_not_separable_carries_a_proof(rng: np.random.Generator) -> None:
    """Farkas: a convex combination of the signed inputs is zero."""
    x, y = rng.standard_normal((60, 3)), rng.choice([-1.0, 1.0], 60)
    with pytest.raises(NotSeparableError, match="x and y must be linearly separable") as caught:
        max_margin(x, y)
    weights = caught.value.certificate
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights @ (y[:, None] * x), 0, atol=1e-10)
    assert sup_norm_margin(x, y)[1] <= 1e-12


def test_zero_input_cannot_be_separated() -> None:
    """A point at the origin is on every plane."""
    with pytest.raises(NotSeparableError):
        max_margin([[0.0, 0.0], [1.0, 0.0]], [1, 1])


def test_labels_are_signs() -> None:
    """Zero and one are refused."""
    with pytest.raises(ValueError, match="y must be 1 or -1, got 0"):
        max_margin([[1.0], [2.0]], [1, 0])


def test_degenerate_support_has_no_offset() -> None:
    """A support vector without weight would need an infinite offset."""
    best = max_margin([[1.0, 0.0], [1.0, 1.0]], [1, 1])
    assert best.support.all() and not best.generic
    with pytest.raises(ValueError, match="linearly independent support with positive"):
        best.offset(1.0)


def test_offset_solves_its_equation(rng: np.random.Generator) -> None:
    """With the constant it was asked for, not with one."""
    best = max_margin(*separable_data(20, 5, support=3, exponent=0.2, rng=rng))
    on = best.points[best.support]
    offset = best.offset(4.0)
    np.testing.assert_allclose(np.exp(-on @ offset) @ on, 4 * best.weights, rtol=1e-10)
    assert np.linalg.norm(np.exp(-on @ offset) @ on - best.weights) > 0.1


def test_sup_norm_margin_by_brute_force(rng: np.random.Generator) -> None:
    """In the plane the maximum is over the boundary of a square."""
    x = rng.standard_normal((6, 2)) + 2
    edge = np.linspace(-1, 1, 20001)
    square = np.vstack([np.column_stack(pair) for pair in
                        [(edge, edge * 0 + s) for s in (-1, 1)]
                        + [(edge * 0 + s, edge) for s in (-1, 1)]])  # fmt: skip
    assert sup_norm_margin(x, np.ones(6))[1] == pytest.approx((square @ x.T).min(1).max(), abs=1e-3)


# ------------------------------------------------------------------------ flow and descent


def test_flow_of_one_point_is_a_logarithm() -> None:
    """In closed form, to a googol."""
    times = np.array([0.0, 1.0, 1e6, 1e100])
    path = Classifier([[2.0]], [1]).flow(times).statistics
    np.testing.assert_allclose(path.weights[:, 0], np.log1p(4 * times) / 2, rtol=1e-8)
    np.testing.assert_allclose(path.loss, 1 / (1 + 4 * times), rtol=1e-6)
    np.testing.assert_allclose(path.margin, [0, 2, 2, 2])


@pytest.mark.parametrize("loss", [EXPONENTIAL, LOGISTIC])
def test_gradient_and_tables_of_a_loss(loss: MarginLoss, rng: np.random.Generator) -> None:
    """Differences of the risk; the logarithm of the slope and its derivative."""
    model = Classifier(rng.standard_normal((7, 3)), rng.choice([-1.0, 1.0], 7), loss=loss)
    w, h = rng.standard_normal(3), 1e-6
    steps = h * np.eye(3)
    np.testing.assert_allclose(
        model.gradient(w), (model.loss(w + steps) - model.loss(w - steps)) / (2 * h), atol=1e-8
    )
    m = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(
        loss.decay(m), (loss.log_slope(m - h) - loss.log_slope(m + h)) / (2 * h), atol=1e-8
    )


@pytest.mark.parametrize("loss", [EXPONENTIAL, LOGISTIC])
def test_descent_is_continued_by_the_flow(loss: MarginLoss, rng: np.random.Generator) -> None:
    """Handing over after 10^4 steps instead of 10^6 changes the end by about 10^-5."""
    data = separable_data(20, 3, support=3, exponent=0.3, rng=rng)
    model = Classifier(*data, loss=loss)
    step = model.safe_step_size() / 2
    whole, part = (
        model.descend([0, 10**6], step_size=step, exact=exact).statistics.weights[-1]
        for exact in (10**6, 10**4)
    )
    naive = model.flow([1e6]).statistics.weights[-1]  # time in steps, not in steps * step_size
    assert np.linalg.norm(whole - part) < 1e-4
    assert np.linalg.norm(whole - naive) > 1e-2


@pytest.mark.parametrize("loss", [EXPONENTIAL, LOGISTIC])
def test_limit_of_the_bounded_part(loss: MarginLoss, rng: np.random.Generator) -> None:
    """Flow and descent end at log t times the predictor plus the offset (MDL Theorem 4.7).

    So their direction ends at the predictor's (MDL Remark 4.8). The constant c matters.
    """
    data = separable_data(15, 4, support=4, exponent=0.4, rng=rng)
    model, best = Classifier(*data, loss=loss), max_margin(*data)
    start = rng.standard_normal(4)
    step = model.safe_step_size(start) / 2
    size = np.linalg.norm(best.weights)
    for run, c in ((model.flow([1e200], start=start), 15),
                   (model.descend([1e200], step_size=step, start=start), 15 / step)):  # fmt: skip
        rest = run.statistics.weights[0] - np.log(1e200) * best.weights
        assert np.linalg.norm(rest - best.offset(c)) < 1e-7 * size
        assert np.linalg.norm(rest - best.offset(1.0)) > 0.1 * size


def test_safe_step_lowers_the_risk_and_printed_one_does_not() -> None:
    """Small inputs: the square of the eigenvalue in MDL Theorem 4.7 is far too small."""
    small = Classifier([[0.2, 0.02], [-0.2, 0.02]], [1, 1], loss=LOGISTIC)
    start = [2.5, 0.0]
    for step, falls in ((small.safe_step_size(), True), (printed_step_size(small, 0.125), False)):
        risk = small.descend(np.arange(50), step_size=0.99 * step, start=start).statistics.loss
        assert bool(np.all(np.diff(risk) < 0)) is falls


def test_descent_refuses(rng: np.random.Generator) -> None:
    """Errors name the argument or the step that is safe."""
    model = Classifier([[1.0, 0.1], [-1.0, 0.1]], [1, 1])
    with pytest.raises(FloatingPointError, match="a safe one is below"):
        model.descend([10], step_size=2.0, start=[-9.0, 0.0])
    with pytest.raises(ValueError, match="steps must be whole"):
        model.descend([0.5], step_size=0.1)
    with pytest.raises(ValueError, match="times must be at most"):
        model.flow([1e300])
    other = MarginLoss("other", np.exp, np.exp, np.exp, 1.0)
    with pytest.raises(ValueError, match="EXPONENTIAL or LOGISTIC, got other"):
        Classifier([[1.0]], [1], loss=other).descend([1], step_size=0.1)


def test_pieces_of_the_proof(rng: np.random.Generator) -> None:
    """They add up to the derivative of |r|²/2 (MDL Theorem 4.7); the printed ones do not."""
    data = separable_data(10, 3, support=3, exponent=0.3, rng=rng)
    best, model = max_margin(*data), Classifier(*data)
    t = np.array([1.0, 10.0, 1000.0])
    w = rng.standard_normal((3, 3)) + np.log(t)[:, None] * best.weights + best.offset(10)
    r = w - np.log(t)[:, None] * best.weights - best.offset(10)
    rate = np.einsum("td,td->t", r, -model.gradient(w) - best.weights / t[:, None])
    np.testing.assert_allclose(sum(best.drift_pieces(w, t)), rate, rtol=1e-10)
    assert np.all(best.drift_pieces(w, t)[0] <= 0)
    assert np.all(best.drift_pieces(w, t)[1] <= best.rest_bound(t))
    assert not np.allclose(sum(printed_drift_pieces(best, w, t)), rate, rtol=0.1)


def test_separable_data_is_what_it_says() -> None:
    """Support, genericity and exponent as asked for."""
    for support, seed in product((1, 2, 4), range(3)):
        best = max_margin(*separable_data(25, 4, support=support, exponent=0.3, rng=seed))
        assert best.support.sum() == support and best.generic
        assert best.remainder_exponent >= 0.3
    with pytest.raises(ValueError, match="exponent must be in"):
        separable_data(5, 2, support=1, exponent=2.0, rng=1)


# -------------------------------------------------------------------------- other methods


def test_methods_fit_and_differ(rng: np.random.Generator) -> None:
    """Momentum ends as MDL Lemma 4.2 says, the others elsewhere; the mirror has its rule."""
    problem = LeastSquares(rng.standard_normal((4, 9)), 2 * rng.standard_normal(4))
    safe, shortest = problem.critical_step_size, problem.minimum_norm()
    ends = {}
    for method, size in (("momentum", 0.2), ("steepest", 0.1), ("mirror", 0.1)):
        ends[method] = descend(
            problem.gradient, np.zeros(9), step_sizes=np.full(6000, size * safe), method=method
        )[-1]
        assert problem.loss(ends[method]) < 1e-20
    for decaying in ("adam", "sign"):
        sizes = 0.03 * 0.998 ** np.arange(6000)
        run = descend(problem.gradient, np.zeros(9), step_sizes=sizes, method=decaying)
        assert problem.loss(run[-1]) < 1e-6
        assert np.linalg.norm(run[-1] - shortest) > 0.05
    kernel = linalg.null_space(problem.x)
    assert np.linalg.norm(ends["momentum"] - shortest) < 1e-9
    assert np.linalg.norm(ends["steepest"] - shortest) > 0.05
    assert np.abs(kernel.T @ np.arcsinh(ends["mirror"])).max() < 1e-9
    assert np.abs(kernel.T @ ends["mirror"]).max() > 1e-3


def test_methods_refuse() -> None:
    """Errors name the argument."""
    with pytest.raises(ValueError, match="step_sizes must be positive"):
        descend(lambda w: w, [1.0], step_sizes=[0.0])
    with pytest.raises(ValueError, match="record must be whole numbers up to 2"):
        descend(lambda w: w, [1.0], step_sizes=[0.1, 0.1], record=[3])
    with pytest.raises(ValueError, match="method must be one of"):
        descend(lambda w: w, [1.0], step_sizes=[0.1], method="newton")  # type: ignore[arg-type]
    with pytest.raises(FloatingPointError, match="gradient diverges"):
        descend(lambda w: 2 * w, [1.0], step_sizes=np.full(2000, 3.0))
