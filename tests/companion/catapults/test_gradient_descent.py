"""Losses along eigenvectors against the definition, linear models and quadratic losses."""

from __future__ import annotations

import numpy as np
import pytest

from companion.catapults.gradient_descent import (
    Directions,
    descent_bound,
    directions,
    eigen_observer,
    linear_losses,
)
from traindyn.catapults import TwoLayerModel, critical_step, train


def problem() -> tuple[np.ndarray, np.ndarray, TwoLayerModel]:
    """Draw inputs, labels and the linear model of a network."""
    rng = np.random.default_rng(1)
    start = TwoLayerModel.initial(80, 6, rng=rng)
    return rng.standard_normal((9, 6)), rng.standard_normal(9), TwoLayerModel(start, "linear")


def test_linear_model_follows_the_linear_losses() -> None:
    """Below and above the critical step size, to rounding."""
    x, y, model = problem()
    batch = model.prepare(x)
    for factor in (0.7, 1.4):
        eta = factor * critical_step(model, model.expansion, batch)
        run = train(
            model,
            model.expansion,
            x,
            y,
            step_size=eta,
            steps=6,
            observe=eigen_observer(model, batch, y),
        )
        found = directions(run)
        ours = linear_losses(found.eigenvalues[0], found.losses[0], step_size=eta, steps=6)
        np.testing.assert_allclose(found.losses, ours, rtol=1e-6, atol=1e-12 * ours.max())
        assert found.super_critical(eta).tolist() == [int(factor > 1)] * 7
        assert (found.leading(1)[-1] > found.leading(1)[0]) == (factor > 1)


def test_observer_is_given_the_residuals_it_would_work_out() -> None:
    """A run with the observer, and with a function that hides what it is; other data differ."""
    x, y, model = problem()
    own = eigen_observer(model, model.prepare(x), y)
    other = eigen_observer(model, model.prepare(x), y + 1)
    eta = 0.7 * critical_step(model, model.expansion, model.prepare(x))
    given, hidden, apart = (
        train(model, model.expansion, x, y, step_size=eta, steps=6, observe=observe).observed
        for observe in (own, lambda weights: own(weights), other)
    )
    np.testing.assert_allclose(given, hidden, rtol=1e-12)
    assert np.abs(apart - hidden).max() > 0.01


def test_parts_of_the_loss() -> None:
    """Leading, rest and trailing against the split of a single kernel."""
    x, y, model = problem()
    batch = model.prepare(x)
    weights = TwoLayerModel.initial(80, 6, rng=2)
    seen = eigen_observer(model, batch, y)(weights)
    found = Directions(seen[:1], seen[1:])
    residuals = model.outputs(weights, batch) - y
    leading = np.linalg.eigh(model.tangent_kernel(weights, batch))[1][:, -4:]
    top = np.sum((leading.T @ residuals) ** 2) / len(y)
    rest = np.mean(residuals**2) - top
    assert found.leading(4)[0] == pytest.approx(top, rel=1e-10)
    assert found.rest(4)[0] == pytest.approx(rest, rel=1e-10)
    assert found.trailing(5)[0] == pytest.approx(rest, rel=1e-10)
    assert np.all(np.diff(seen[0]) <= 0)


def test_descent_bound() -> None:
    """ZHU Lemma 4.2.2, with equality along the top eigenvector of a quadratic loss only."""
    rng = np.random.default_rng(3)
    matrix = rng.standard_normal((5, 5))
    hessian = matrix @ matrix.T
    values, vectors = np.linalg.eigh(hessian)
    eta = 1.2 / values[-1]
    for w, tight in ((vectors[:, -1], True), (vectors[:, 3] + vectors[:, -1], False)):
        gradient = hessian @ w
        after = w - eta * gradient
        bound = descent_bound(
            w @ gradient / 2, gradient @ gradient, step_size=eta, curvature=values[-1]
        )
        gap = float(bound - after @ hessian @ after / 2)
        assert gap == pytest.approx(0, abs=1e-12) if tight else gap > 1e-3


def test_errors() -> None:
    """Runs that observed nothing, counts out of range, shapes that differ."""
    x, y, model = problem()
    run = train(model, model.expansion, x, y, step_size=0.1, steps=1)
    with pytest.raises(ValueError, match="observed"):
        directions(run)
    found = Directions(np.ones((1, 9)), np.ones((1, 9)))
    for part in (found.leading, found.rest, found.trailing):
        with pytest.raises(ValueError, match="count"):
            part(10)
    with pytest.raises(ValueError, match="losses"):
        linear_losses([1.0, 2.0], [1.0], step_size=1.0, steps=1)
