"""Kernel regression: interpolation, ridge, and gradients against differences."""

import numpy as np
import pytest

from companion.catapults.optimisers.references import KernelRegression, kernel_regression


@pytest.fixture
def problem():
    """Centres, labels and points elsewhere."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 4)), rng.standard_normal(30), rng.standard_normal((7, 4))


def test_interpolation(problem):
    """Without a ridge the labels come back; with a small bandwidth as the coefficients."""
    x, y, _ = problem
    np.testing.assert_allclose(kernel_regression(x, y, bandwidth=2.0).outputs(x), y, atol=1e-10)
    np.testing.assert_allclose(kernel_regression(x, y, bandwidth=1e-2).coefficients, y, atol=1e-6)


def test_ridge(problem):
    """The ridge moves predictions from the labels by itself times the coefficients."""
    x, y, _ = problem
    found = kernel_regression(x, y, bandwidth=2.0, ridge=0.3)
    np.testing.assert_allclose(found.outputs(x), y - 0.3 * found.coefficients, atol=1e-10)


def test_sum_by_hand(problem):
    """Sums over the centres, term by term."""
    x, y, points = problem
    found = kernel_regression(x, y, bandwidth=1.5, ridge=0.1)
    by_hand = [
        sum(a * np.exp(-np.linalg.norm(p - c) / 1.5) for a, c in zip(found.coefficients, x))
        for p in points
    ]
    np.testing.assert_allclose(found.outputs(points), by_hand, rtol=1e-12)


def test_gradients_against_differences(problem):
    """Central differences, away from the centres, where the kernel is smooth."""
    x, y, points = problem
    found = kernel_regression(x, y, bandwidth=1.5)
    step = 1e-6
    quotient = np.stack(
        [
            (found.outputs(points + step * row) - found.outputs(points - step * row)) / (2 * step)
            for row in np.eye(4)
        ],
        axis=1,
    )
    gradients = found.input_gradients(points)
    np.testing.assert_allclose(gradients, quotient, atol=1e-7 * np.abs(gradients).max())


def test_gradients_at_a_centre(problem):
    """There central differences see the mean of the slopes on both sides of the tip."""
    x, y, _ = problem
    found = kernel_regression(x, y, bandwidth=1.5)
    step = 1e-6
    quotient = [
        (found.outputs(x[:1] + step * row) - found.outputs(x[:1] - step * row))[0] / (2 * step)
        for row in np.eye(4)
    ]
    gradients = found.input_gradients(x[:1])[0]
    np.testing.assert_allclose(gradients, quotient, atol=1e-7 * np.abs(gradients).max())
    lone = KernelRegression(x[:1], np.ones(1), 1.5)
    assert not lone.input_gradients(x[:1]).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [1.0]}, "labels must have shape"),
        ({"bandwidth": 0.0}, "bandwidth must be positive"),
        ({"ridge": -1.0}, "ridge must be non-negative"),
        ({"inputs": [[1.0], [1.0]]}, "inputs must be all different"),
    ],
)
def test_wrong_arguments(change, message):
    """Errors name the argument."""
    given = {"inputs": [[0.0], [1.0]], "labels": [1.0, 2.0], "bandwidth": 1.0, **change}
    with pytest.raises(ValueError, match=message):
        kernel_regression(given.pop("inputs"), given.pop("labels"), **given)


def test_wrong_points(problem):
    """Points of another dimension are refused."""
    x, y, _ = problem
    with pytest.raises(ValueError, match="inputs must have shape"):
        kernel_regression(x, y, bandwidth=1.0).input_gradients(np.zeros((2, 3)))
