"""Flow and descent on separable data."""

import numpy as np
import pytest

from companion.foundations.implicit_bias.margin import max_margin, separable_data
from companion.foundations.implicit_bias.printed import printed_step_size
from companion.foundations.implicit_bias.separable import (
    EXPONENTIAL,
    LOGISTIC,
    Classifier,
    MarginLoss,
)


@pytest.fixture
def rng() -> np.random.Generator:
    """Fresh for each test."""
    return np.random.default_rng(7)


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
