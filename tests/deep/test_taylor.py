"""Taylor models against closed forms, products of layers, and the order of what they leave out."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from traindyn import activations, deep
from traindyn.catapults import TwoLayerModel, Weights, train
from traindyn.deep.taylor import TaylorModel

KINDS: tuple[Literal["quadratic", "linear"], ...] = ("quadratic", "linear")


def moved(weights: tuple[Any, ...], rng: np.random.Generator, by: float = 1.0) -> tuple[Any, ...]:
    """Weights plus Gaussians."""
    return tuple(np.asarray(w) + by * rng.standard_normal(np.shape(w)) for w in weights)


def two_layers(weights: tuple[Any, ...]) -> Weights:
    """Weights of a perceptron as those of a two-layer model."""
    return Weights(np.asarray(weights[0]).T, np.asarray(weights[1])[:, 0])


@pytest.mark.parametrize("name", ["relu", "tanh"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_layers(name: str, kind: Literal["quadratic", "linear"]) -> None:
    """Outputs, gradients and kernels of the formulas in NumPy, which are written out."""
    rng = np.random.default_rng(0)
    model = deep.perceptron([3, 12, 1], activation=name)
    start = model.initial(rng=rng)
    now = moved(start, rng)
    x, y = rng.standard_normal((5, 3)), rng.standard_normal(5)
    taylor = TaylorModel(model, start, kind)
    activation = {"relu": activations.RELU, "tanh": activations.TANH}[name]
    formula = TwoLayerModel(two_layers(start), kind, activation)
    batch, other = taylor.prepare(x), formula.prepare(x)
    here = two_layers(now)
    np.testing.assert_allclose(
        taylor.outputs(now, batch), formula.outputs(here, other), rtol=0, atol=1e-12
    )
    residuals, gradient = taylor.gradient(now, batch, y)
    expected, slopes = formula.gradient(here, other, y)
    np.testing.assert_allclose(residuals, expected, rtol=0, atol=1e-12)
    for found, wanted in zip(two_layers(gradient), slopes):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        taylor.tangent_kernel(now, batch), formula.tangent_kernel(here, other), rtol=0, atol=1e-12
    )
    if name == "relu":
        np.testing.assert_allclose(
            taylor.input_gradients(now, batch),
            formula.input_gradients(here, other),
            rtol=0,
            atol=1e-12,
        )


def test_three_layers_of_gates() -> None:
    """With frozen gates f is trilinear: the quadratic model lacks the product of all changes."""
    rng = np.random.default_rng(1)
    model = deep.perceptron([4, 9, 7, 1])
    start = model.initial(rng=rng)
    now = moved(start, rng)
    x = rng.standard_normal((6, 4))
    first = x @ np.asarray(start[0]) / 2 > 0
    hidden = np.maximum(x @ np.asarray(start[0]) / 2, 0)
    second = hidden @ np.asarray(start[1]) / 3 > 0

    def frozen(weights: tuple[Any, ...]) -> Any:
        inner = first * (x @ np.asarray(weights[0]) / 2)
        outer = second * (inner @ np.asarray(weights[1]) / 3)
        return (outer @ np.asarray(weights[2]) / 7**0.5)[:, 0]

    change = tuple(w - np.asarray(w0) for w, w0 in zip(now, start))
    batch = model.prepare(x)
    found = TaylorModel(model, start).outputs(now, batch)
    cubic = frozen(change)
    np.testing.assert_allclose(found, frozen(now) - cubic, rtol=0, atol=1e-12)
    assert np.abs(cubic).max() > 0.1  # it is not there by accident


@pytest.mark.parametrize(("kind", "order"), [("quadratic", 3), ("linear", 2)])
def test_remainder(kind: Literal["quadratic", "linear"], order: int) -> None:
    """Halving the change divides what is left out by two to the order."""
    rng = np.random.default_rng(2)
    model = deep.image_network((4, 4), [3, 3], activation="tanh", outputs=2)
    start = model.initial(rng=rng)
    batch = model.prepare(rng.standard_normal((3, 16)))
    taylor = TaylorModel(model, start, kind)
    direction = moved(tuple(np.zeros(np.shape(w)) for w in start), rng)
    left = []
    for size in (2.0**-7, 2.0**-8):
        now = tuple(w + size * d for w, d in zip(start, direction))
        left.append(np.abs(model.outputs(now, batch) - taylor.outputs(now, batch)).max())
    assert abs(np.log2(left[0] / left[1]) - order) < 0.1


def test_derivatives_of_many_outputs() -> None:
    """Gradient and kernel of a model with two outputs against differences."""
    rng = np.random.default_rng(3)
    model = deep.image_network((3, 3), [2], activation="swish", outputs=2)
    start = model.initial(rng=rng)
    now = moved(start, rng)
    x, y = rng.standard_normal((2, 9)), rng.standard_normal((2, 2))
    taylor = TaylorModel(model, start)
    batch = taylor.prepare(x)
    residuals, gradient = taylor.gradient(now, batch, y)
    np.testing.assert_allclose(residuals, taylor.outputs(now, batch) - y, atol=1e-14)
    rows = []
    for number, array in enumerate(now):
        for place in np.ndindex(array.shape):
            ends = []
            for step in (1e-5, -1e-5):
                other = [w.copy() for w in now]
                other[number][place] += step
                ends.append(taylor.outputs(tuple(other), batch).ravel())
            rows.append((ends[0] - ends[1]) / 2e-5)
    jacobian = np.array(rows).T
    flat = np.concatenate([np.asarray(g).ravel() for g in gradient])
    np.testing.assert_allclose(flat, jacobian.T @ residuals.ravel(), atol=1e-8)
    kernel = taylor.tangent_kernel(now, batch)
    np.testing.assert_allclose(kernel, jacobian @ jacobian.T, atol=1e-8)
    slopes = taylor.input_gradients(now, batch)
    shifted = [
        taylor.outputs(now, taylor.prepare(x + s * np.eye(9)[4])) / 2e-5 for s in (1e-5, -1e-5)
    ]
    np.testing.assert_allclose(slopes[:, :, 4], shifted[0] - shifted[1], atol=1e-8)


def test_training() -> None:
    """The linear model follows its constant kernel, in its own weights."""
    rng = np.random.default_rng(4)
    model = deep.perceptron([3, 16, 16, 1])
    start = model.initial(rng=rng)
    x, y = rng.standard_normal((4, 3)), rng.standard_normal(4)
    linear = TaylorModel(model, start, "linear")
    run = train(linear, start, x, y, step_size=0.4, steps=20)
    kernel = model.tangent_kernel(start, model.prepare(x))
    residuals = model.outputs(start, model.prepare(x)) - y
    expected = []
    for _ in range(21):
        expected.append(np.mean(residuals**2))
        residuals = residuals - 2 * 0.4 / 4 * kernel @ residuals
    np.testing.assert_allclose(run.losses, expected, rtol=1e-10)


def test_bad_input() -> None:
    """Unknown kinds, and weights of other shapes, which would broadcast."""
    model = deep.perceptron([2, 4, 1])
    start = model.initial(rng=0)
    with pytest.raises(ValueError, match="kind must be one of"):
        TaylorModel(model, start, "cubic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"expansion\[1\]"):
        TaylorModel(model, (start[0], np.nan * start[1]))
    taylor = TaylorModel(model, start)
    batch = taylor.prepare(np.eye(2))
    with pytest.raises(ValueError, match="weights must have the shapes"):
        taylor.outputs((start[0], start[1][:1]), batch)
    with pytest.raises(ValueError, match="weights must have the shapes"):
        taylor.gradient(start[:1], batch, np.zeros(2))
    with pytest.raises(ValueError, match="inputs"):
        taylor.prepare(np.ones((2, 3)))
    other = deep.perceptron([3, 4, 1]).prepare(np.ones((2, 3)))
    with pytest.raises(ValueError, match="batch must have shapes that fit the model"):
        taylor.outputs(start, other)
    with pytest.raises(ValueError, match="batch and labels must have shapes that fit"):
        taylor.gradient(start, batch, np.zeros(3))
