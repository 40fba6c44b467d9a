"""Two-layer networks, their Taylor models, training, spikes."""

import numpy as np
import pytest
from scipy import stats

from companion.catapults.one_example import initial
from traindyn import catapults
from traindyn.activations import GELU, RELU, TANH
from traindyn.catapults import TwoLayerModel, Weights

X = np.random.default_rng(0).standard_normal((6, 4))
Y = np.random.default_rng(1).standard_normal(6)
START = TwoLayerModel.initial(12, 4, rng=2)
KINDS = ("network", "quadratic", "linear")


def moved(size, seed=3):
    """Weights at a distance from the start."""
    rng = np.random.default_rng(seed)
    return Weights(
        START.first + size * rng.standard_normal((12, 4)),
        START.second + size * rng.standard_normal(12),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", [RELU, TANH, GELU], ids=repr)
def test_gradient_against_differences(kind, activation):
    """And the kernel against the Gram matrix of the gradients of the outputs."""
    model = TwoLayerModel(START, kind, activation)
    batch, at = model.prepare(X), moved(0.3)
    _, gradient = model.gradient(at, batch, Y)
    rows, step = [], 1e-6
    for k in range(12):
        for j in range(5):
            ends = []
            for sign in (1, -1):
                first, second = at.first.copy(), at.second.copy()
                if j < 4:
                    first[k, j] += sign * step
                else:
                    second[k] += sign * step
                ends.append(model.outputs(Weights(first, second), batch))
            rows.append((ends[0] - ends[1]) / (2 * step))
    jacobian = np.array(rows)
    residuals = model.outputs(at, batch) - Y
    exact = np.concatenate([gradient.first, gradient.second[:, None]], axis=1).ravel()
    np.testing.assert_allclose(exact, jacobian @ residuals, atol=1e-7)
    np.testing.assert_allclose(model.tangent_kernel(at, batch), jacobian.T @ jacobian, atol=1e-7)


@pytest.mark.parametrize("activation", [TANH, GELU], ids=repr)
def test_order_of_the_taylor_models(activation):
    """Halving the distance divides the errors by 8 (quadratic) and 4 (linear)."""
    errors = {}
    for kind in ("quadratic", "linear"):
        model, network = (
            TwoLayerModel(START, kind, activation),
            TwoLayerModel(START, "network", activation),
        )
        errors[kind] = [
            np.abs(
                model.outputs(moved(h), model.prepare(X))
                - network.outputs(moved(h), network.prepare(X))
            ).max()
            for h in (0.02, 0.01)
        ]
    assert errors["quadratic"][0] / errors["quadratic"][1] == pytest.approx(8, rel=0.15)
    assert errors["linear"][0] / errors["linear"][1] == pytest.approx(4, rel=0.15)


def test_relu_model_freezes_the_gates():
    """The quadratic model is the bilinear network with the gates of the start."""
    at, model = moved(1.0), TwoLayerModel(START, "quadratic")
    gates = X @ START.first.T > 0
    bilinear = ((X @ at.first.T) * gates) @ at.second / np.sqrt(12 * 4)
    np.testing.assert_allclose(model.outputs(at, model.prepare(X)), bilinear, atol=1e-14)
    network = TwoLayerModel(START)
    assert np.abs(network.outputs(at, network.prepare(X)) - bilinear).max() > 1e-2


def test_linear_model_follows_its_kernel():
    """Residuals are powers of 1 - 2 eta K / n times those at the start."""
    model = TwoLayerModel(START, "linear")
    batch = model.prepare(X)
    kernel = model.tangent_kernel(START, batch)
    run = catapults.train(model, START, X, Y, step_size=0.5, steps=30)
    residuals = model.outputs(START, batch) - Y
    power = np.linalg.matrix_power(np.eye(6) - 2 * 0.5 / 6 * kernel, 30)
    assert run.losses[-1] == pytest.approx(np.mean((power @ residuals) ** 2), rel=1e-10)


def test_critical_step_separates():
    """The linear model converges just below it and diverges just above."""
    model = TwoLayerModel(START, "linear")
    critical = catapults.critical_step(model, START, model.prepare(X))
    below = catapults.train(model, START, X, Y, step_size=0.99 * critical, steps=400)
    above = catapults.train(model, START, X, Y, step_size=1.05 * critical, steps=4000)
    assert below.diverged is None and below.losses[-1] < below.losses[0]
    assert above.diverged is not None and np.all(np.isfinite(above.losses))


def test_network_catapults():
    """Above the critical step the network converges to a smaller kernel."""
    start = TwoLayerModel.initial(400, 4, rng=5)
    model = TwoLayerModel(start)
    batch = model.prepare(X)
    critical = catapults.critical_step(model, start, batch)
    run = catapults.train(model, start, X, Y, step_size=1.5 * critical, steps=800)
    kernels = [
        np.linalg.eigvalsh(model.tangent_kernel(at, batch))[-1] for at in (start, run.weights)
    ]
    assert run.losses.max() > 2 * run.losses[0] > 2 * run.losses[-1]
    assert kernels[1] < min(kernels[0], 6 / (1.5 * critical))
    calm = catapults.train(model, start, X, Y, step_size=0.5 * critical, steps=800)
    assert calm.losses.max() <= 2 * calm.losses[0]


def test_sgd_schedule_validation_loss_and_repeats():
    """Same seed, same run; epochs visit all examples; the schedule is what was asked for."""
    model = TwoLayerModel(START)
    options = dict(
        step_size=[(0, 0.2), (5, 0.1)], steps=12, batch_size=2, validation=(X[:3], Y[:3]), every=4,
        track=True,
    )  # fmt: skip
    first, second = (catapults.train(model, START, X, Y, rng=7, **options) for _ in range(2))
    np.testing.assert_array_equal(first.losses, second.losses)
    assert first.steps.tolist() == [0, 4, 8, 12]
    assert first.step_sizes.tolist() == [0.2] * 5 + [0.1] * 7
    assert first.critical_steps.shape == (12,) and np.all(first.critical_steps > 0)
    batch = model.prepare(X[:3])
    at_best = np.mean((model.outputs(first.best, batch) - Y[:3]) ** 2)
    assert at_best == pytest.approx(first.validation_losses.min(), rel=1e-12)
    other = catapults.train(model, START, X, Y, rng=8, **options)
    assert np.any(other.losses[1:] != first.losses[1:])


def test_start_in_law():
    """Output and kernel of 4000 networks of width 5 against the exact law.

    Kolmogorov-Smirnov at 1e-6 each; the law at width 8 is rejected.
    """
    rng = np.random.default_rng(10)
    x = np.ones((1, 3))
    found = []
    for _ in range(4000):
        weights = TwoLayerModel.initial(5, 3, rng=rng)
        model = TwoLayerModel(weights)
        batch = model.prepare(x)
        found.append([model.outputs(weights, batch)[0], model.tangent_kernel(weights, batch)[0, 0]])
    outputs, kernels = np.array(found).T
    drawn, others = initial(5, 4000, rng=11), initial(8, 4000, rng=12)
    assert stats.ks_2samp(outputs, drawn[0]).pvalue > 1e-6
    assert stats.ks_2samp(kernels, drawn[1]).pvalue > 1e-6
    assert stats.ks_2samp(kernels, others[1]).pvalue < 1e-6


def test_messages():
    """Each names the argument."""
    model = TwoLayerModel(START)

    def run(**options):
        arguments = dict(step_size=0.1, steps=2) | options
        return catapults.train(model, START, X, arguments.pop("labels", Y), **arguments)

    for call, message in (
        (lambda: run(batch_size=0), r"batch_size must be an integer in \[1, 6\]"),
        (lambda: run(batch_size=7, rng=1), r"batch_size must be an integer in \[1, 6\]"),
        (lambda: run(batch_size=2), "rng must be given"),
        (lambda: run(labels=Y[:3]), r"labels must have the shape \(6,\) of the outputs"),
        (lambda: run(step_size=[(1, 0.1)]), "step_size must begin at step 0"),
        (lambda: run(step_size=[(0, 0.1), (0, 0.2)]), "go on in order"),
        (lambda: run(step_size=-1.0), "step_size must be positive"),
        (lambda: TwoLayerModel(START, "cubic"), "kind must be"),
        (
            lambda: catapults.batch_threshold(1.0, diagonal=0.1, off_diagonal=0.2),
            "diagonal must exceed",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
