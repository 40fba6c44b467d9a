"""The max-margin predictor: against a general solver, its proof, its offset."""

from itertools import product

import numpy as np
import pytest
from scipy import linalg, optimize

from companion.foundations.implicit_bias import margin
from companion.foundations.implicit_bias.margin import (
    NotSeparableError,
    max_margin,
    separable_data,
    sup_norm_margin,
)
from companion.foundations.implicit_bias.printed import printed_drift_pieces
from companion.foundations.implicit_bias.separable import Classifier


@pytest.fixture
def rng() -> np.random.Generator:
    """Fresh for each test."""
    return np.random.default_rng(7)


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


def test_separable_data_that_are_never_drawn_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty support vectors hardly ever have the exponent; a margin of twenty stops all points."""
    monkeypatch.setattr(margin, "_MAX_DRAWS", 20)
    with pytest.raises(FloatingPointError, match="exponent must be one that is drawn, got none"):
        separable_data(30, 20, support=20, exponent=0.9, rng=1)
    with pytest.raises(
        FloatingPointError, match=r"d must leave points .* got 1 of 2 in 1000 rounds"
    ):
        separable_data(2, 400, support=1, exponent=0.3, rng=1)
