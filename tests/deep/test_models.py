"""Models that are trained whole."""

import jax
import numpy as np
import pytest

from companion.catapults.sgd.transformer import vision_transformer
from traindyn import catapults, deep
from traindyn.activations import RELU
from traindyn.catapults import TwoLayerModel, Weights
from traindyn.deep.critical import LossHessian
from traindyn.deep.differentiated import Batch, descended
from traindyn.deep.taylor import TaylorModel

X = np.random.default_rng(0).standard_normal((4, 16))
Y = np.random.default_rng(1).standard_normal(4)
PICTURES = (4, 4)


def models(outputs=1, parameterisation="ntk"):
    """One of each kind, small."""
    options = dict(outputs=outputs, parameterisation=parameterisation)
    smooth = dict(activation="tanh")
    return {
        "perceptron": deep.perceptron(
            [16, 7, 5, outputs], parameterisation=parameterisation, **smooth
        ),
        "biases": deep.perceptron(
            [16, 7, outputs], biases=True, parameterisation=parameterisation, **smooth
        ),
        "images": deep.image_network(PICTURES, [3, 2], biases=True, **options, **smooth),
        "residual": deep.wide_resnet(PICTURES, base=2, **options, **smooth),
        "attention": vision_transformer(PICTURES, width=4, heads=2, depth=1, **options, **smooth),
    }


@pytest.mark.parametrize(("parameterisation", "outputs"), [("ntk", 3), ("pytorch", 1)])
@pytest.mark.parametrize("kind", list(models()))
def test_derivatives(kind, parameterisation, outputs):
    """Gradient and gradients in the inputs by differences; the kernel from the gradients."""
    model = models(outputs, parameterisation)[kind]
    weights, batch = model.initial(rng=2, biases="normal"), model.prepare(X)
    values, rng = model.outputs(weights, batch), np.random.default_rng(3)
    assert model.parameters == sum(w.size for w in weights)
    rows = []
    for unit in np.eye(values.size):
        residuals, gradient = model.gradient(weights, batch, values - unit.reshape(values.shape))
        np.testing.assert_allclose(residuals.ravel(), unit, atol=1e-14)
        rows.append(np.concatenate([np.ravel(g) for g in gradient]))
    jacobian = np.array(rows)
    kernel = model.tangent_kernel(weights, batch)
    np.testing.assert_allclose(kernel, jacobian @ jacobian.T, atol=1e-12 * np.abs(kernel).max())
    for _ in range(2):
        step = [rng.standard_normal(w.shape) for w in weights]
        ends = [
            model.outputs(tuple(w + s * d for w, d in zip(weights, step)), batch)
            for s in (1e-6, -1e-6)
        ]
        along = jacobian @ np.concatenate([d.ravel() for d in step])
        np.testing.assert_allclose((ends[0] - ends[1]).ravel() / 2e-6, along, atol=1e-6)
    inputs, shift = model.input_gradients(weights, batch), rng.standard_normal(16)
    ends = [model.outputs(weights, model.prepare(X + s * shift)) for s in (1e-6, -1e-6)]
    np.testing.assert_allclose((ends[0] - ends[1]) / 2e-6, inputs @ shift, atol=1e-6)


def test_two_layers_are_the_two_layer_model():
    """Same outputs, kernel and training run as the closed forms in NumPy, biases apart."""
    model = deep.perceptron([16, 9, 1])
    first, second = model.initial(rng=4)
    start = Weights(np.asarray(first).T.copy(), np.asarray(second)[:, 0].copy())
    other = TwoLayerModel(start, activation=RELU)
    options = dict(
        step_size=0.3, steps=20, batch_size=2, leading=2, track=True, rng=5, validation=(X, Y)
    )
    ours = catapults.train(model, (first, second), X, Y, **options)
    theirs = catapults.train(other, start, X, Y, **options)
    for field in ("losses", "validation_losses", "leading_losses", "kernel_norms"):
        np.testing.assert_allclose(getattr(ours, field), getattr(theirs, field), rtol=1e-9)
    np.testing.assert_allclose(ours.critical_steps, theirs.critical_steps, rtol=1e-9)
    batch = model.prepare(X)
    np.testing.assert_allclose(
        model.input_gradients(ours.weights, batch),
        other.input_gradients(theirs.weights, other.prepare(X)),
        atol=1e-9,
    )


def test_perceptron_is_the_network_without_biases():
    """That of the builders, whose weights are stored transposed."""
    network = deep.fully_connected([16, 6, 5, 1])
    model = deep.perceptron([16, 6, 5, 1], activation="tanh")
    weights = model.initial(rng=6)
    flat = np.concatenate([np.asarray(w).T.ravel() for w in weights])
    np.testing.assert_allclose(
        model.outputs(weights, model.prepare(X)), network.values(flat, X)[:, 0], atol=1e-14
    )
    np.testing.assert_allclose(
        model.tangent_kernel(weights, model.prepare(X)),
        deep.tangent_kernel(network, flat, X),
        atol=1e-12,
    )


def test_convolution_by_loops():
    """The first layer against the formula of ZHU Appendix C.6, index by index."""
    model = deep.image_network((2, 4, 4), [3], activation="identity")
    weights = model.initial(rng=7)
    x = np.random.default_rng(8).standard_normal((1, 32))
    image, kernel = x[0].reshape(2, 4, 4), np.asarray(weights[0]).reshape(3, 3, 2, 3)
    sums = np.zeros((4, 4, 3))
    for i, j, p, q in np.ndindex(4, 4, 3, 3):
        a, b = i + p - 1, j + q - 1
        if 0 <= a < 4 and 0 <= b < 4:
            sums[i, j] += image[:, a, b] @ kernel[p, q] / np.sqrt(2 * 9)
    exact = sums.ravel() @ np.asarray(weights[1])[:, 0] / np.sqrt(48)
    np.testing.assert_allclose(model.outputs(weights, model.prepare(x)), [exact], atol=1e-13)


def test_inputs_do_not_mix():
    """The output of one input does not depend on the others of the batch."""
    for model in models(outputs=3).values():
        weights = model.initial(rng=9)
        together = model.outputs(weights, model.prepare(X))
        alone = [model.outputs(weights, model.prepare(x[None]))[0] for x in X]
        np.testing.assert_allclose(together, alone, atol=1e-12)


def test_starts():
    """Laws of the weights: variances within six standard errors, exact bounds."""
    model = deep.perceptron([400, 300, 1], biases=True)
    first, bias, *_ = model.initial(rng=10)
    assert abs(np.var(first) - 1) < 6 * np.sqrt(2 / first.size)
    assert not np.any(bias)
    assert np.any(model.initial(rng=10, biases="normal")[1])
    near = model.initial(rng=10, scale=0.1)[0]
    np.testing.assert_allclose(near, 0.1 * first, atol=1e-15)
    uniform = deep.perceptron([400, 300, 1], biases=True, parameterisation="pytorch")
    for array in uniform.initial(rng=11)[:2]:
        assert 0.98 * 0.05 < np.abs(array).max() <= 0.05


@pytest.mark.parametrize("kind", ["perceptron", "images", "taylor"])
def test_descent_is_compiled_and_exact(kind):
    """A run against its steps written out, to rounding; the start outlives its gradient.

    Step sizes that change do not compile anything anew. Control: half the step size.
    """
    model = models()["perceptron" if kind == "taylor" else kind]
    start = model.initial(rng=14)
    if kind == "taylor":
        model = TaylorModel(model, start)
    rates, batch = np.linspace(0.1, 0.4, 12), model.prepare(X)
    run = catapults.train(model, start, X, Y, step_size=rates, steps=12)
    count = descended._cache_size()
    slow = catapults.train(model, start, X, Y, step_size=rates / 2, steps=12)
    assert descended._cache_size() == count

    now, losses = [np.asarray(w) for w in start], []
    for rate in rates:
        residuals, gradient = model.gradient(tuple(now), batch, Y)
        losses.append(np.mean(residuals**2))
        now = [w - rate * 2 / Y.size * np.asarray(g) for w, g in zip(now, gradient)]
    np.testing.assert_allclose(run.losses[:-1], losses, rtol=1e-11)
    for ours, theirs in zip(run.weights, now):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    assert np.abs(slow.losses[1:-1] / losses[1:] - 1).max() > 0.05
    assert np.isfinite(model.outputs(start, batch)).all()


def test_messages():
    """Each names the argument."""
    model = deep.perceptron([3, 4, 1])
    for call, message in (
        (lambda: deep.perceptron([3]), "sizes must have at least 2 entries"),
        (lambda: deep.perceptron([3, 0, 1]), "every entry of sizes must be an integer >= 1"),
        (lambda: deep.perceptron([3, 4, 1], activation="step"), "activation must be one of"),
        (lambda: deep.perceptron([3, 4, 1], parameterisation="mup"), "parameterisation must be"),
        (lambda: model.initial(rng=0, scale=0.0), "scale must be positive"),
        (lambda: model.initial(rng=0, biases="one"), "biases must be one of"),
        (lambda: model.prepare(np.ones((2, 4))), r"inputs must have shape \(any, 3\)"),
        (lambda: deep.image_network([4], [2]), "shape must have at least 2 entries"),
        (lambda: deep.image_network([1, 1, 4, 4], [2]), "shape must be"),
        (lambda: deep.wide_resnet([4, 4], depth=11), "depth must be 4 plus a multiple of 6"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_byte_orders_do_not_change_a_number():
    """JAX takes arrays of another byte order for numbers of its own, or refuses them."""
    model = deep.perceptron([3, 8, 1])
    weights, inputs = model.initial(rng=0), np.random.default_rng(0).standard_normal((5, 3))
    labels, sizes = np.sin(inputs[:, 0]), np.full(4, 0.1)

    def found(order):
        given = np.asarray(inputs, order)
        now = tuple(np.asarray(w).astype(order) for w in weights)
        batch, y = Batch(given), labels.astype(order)
        hessian = LossHessian(lambda w, b: model.apply(w, b))
        return jax.tree_util.tree_leaves((
            model.outputs(now, batch),
            model.gradient(now, batch, y),
            model.descend_many(now, batch, y, sizes.astype(order)),
            model.tangent_kernel(now, batch),
            model.input_gradients(now, batch),
            hessian.operator(now, given, y).matmat(np.eye(sum(w.size for w in now))[:, :2]),
        ))  # fmt: skip

    for native, swapped in zip(found("<f8"), found(">f8"), strict=True):
        assert np.array_equal(native, swapped)
