"""Quadratic models: exact kernel dynamics against gradient descent on the weights."""

import numpy as np
import pytest

from companion.catapults.many_examples import quadratic, remainders, scalar_inputs
from companion.catapults.many_examples.quadratic import QuadraticModel
from traindyn import catapults


@pytest.fixture
def model():
    """Four examples, each with a curvature of its own."""
    rng = np.random.default_rng(3)
    curvature = rng.standard_normal((4, 7, 7))
    return QuadraticModel(
        rng.standard_normal((4, 7)), curvature + np.swapaxes(curvature, 1, 2), scale=0.3
    )


def test_kernel_step(model):
    """ZHU (3.15) and (3.16), corrected, to 1e-12; the printed kernel is off by more than 1e-2."""
    rng = np.random.default_rng(4)
    w, y = rng.standard_normal(7), rng.standard_normal(4)
    residuals, kernel = model.kernel_step(w, y, step_size=0.01)
    after = w - 0.01 * (model.outputs(w) - y) @ model.jacobian(w)
    np.testing.assert_allclose(residuals, model.outputs(after) - y, atol=1e-12)
    np.testing.assert_allclose(kernel, model.tangent_kernel(after), atol=1e-12)
    printed = quadratic.printed_kernel_step(model, w, y, step_size=0.01)
    assert np.abs(printed - kernel).max() > 1e-2


def test_jacobian_against_differences(model):
    """Exact for a quadratic, up to rounding."""
    rng = np.random.default_rng(5)
    w, direction = rng.standard_normal((2, 7))
    quotient = (model.outputs(w + direction) - model.outputs(w - direction)) / 2
    np.testing.assert_allclose(model.jacobian(w) @ direction, quotient, atol=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_example_is_the_map(seed):
    """With a curvature that squares to 4, through a catapult (ZHU Proposition B.13.1)."""
    rng = np.random.default_rng(seed)
    signs = 2 * np.sign(rng.standard_normal(9))
    model = QuadraticModel(rng.standard_normal((1, 9)), signs, scale=0.002)
    w = rng.standard_normal(9)
    one = model.one_example(w, 0.7)
    eta = 2.8 / one.kernel
    run = model.run(w, [0.7], step_size=eta, steps=60)
    orbit = catapults.iterate(
        one.residual, one.kernel, step_size=eta, coupling=one.coupling, label=one.label, steps=60
    )
    assert run.losses.max() > 10 * run.losses[0]
    np.testing.assert_allclose(run.losses, orbit.losses, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(run.kernels, orbit.kernels, rtol=1e-9)
    unshifted = catapults.iterate(
        one.residual, one.kernel, step_size=eta, coupling=one.coupling, label=0.7, steps=60
    )
    assert np.abs(unshifted.kernels - run.kernels).max() > 1e-3 * one.kernel


def test_remainders_of_a_quadratic_model(model):
    """Along the top eigenvector they are those of ZHU (3.15) and (3.16), by formula."""
    rng = np.random.default_rng(8)
    w, y, eta = rng.standard_normal(7), rng.standard_normal(4), 0.01
    residuals, kernels, exact = [], [], []
    for _ in range(5):
        rows, e = model.jacobian(w), model.outputs(w) - y
        residuals.append(e)
        kernels.append(rows @ rows.T)
        p = np.linalg.eigh(rows @ rows.T)[1][:, -1]
        turned = 0.3 * model.curvature @ (e @ rows)
        exact.append(
            [
                eta**2 / 2 * p @ turned @ (e @ rows) / (p @ e),
                2 * eta * p @ turned @ (p @ rows) - eta**2 * np.sum((p @ turned) ** 2),
            ]
        )
        w = w - eta * (e @ rows)
    found = remainders.remainders(residuals, kernels, step_size=eta)
    np.testing.assert_allclose(found.residual, np.array(exact)[:-1, 0], atol=1e-10)
    np.testing.assert_allclose(found.kernel, np.array(exact)[:-1, 1], atol=1e-10)


def test_divergence_ends_the_run():
    """The step is named, and what was recorded is finite."""
    model = QuadraticModel([[1.0, 0.0]], [1.0, -1.0], scale=1e-3)
    run = model.run([1.0, 1.0], [0.0], step_size=4.5, steps=1000)
    assert run.diverged is not None and run.losses.size == run.diverged
    assert np.all(np.isfinite(run.losses))


def test_scalar_inputs_decouple():
    """Losses of the two signs add up to those of the weights; kernel by ZHU (B.7), (B.8).

    The inputs of a sign could be no eigenvector (ZHU Proposition B.11.1), or the rest of the
    residual could move (ZHU Proposition B.11.3).
    """
    rng = np.random.default_rng(6)
    n, m = 9, 50
    x, y = rng.standard_normal((2, n))
    u, v = rng.standard_normal((2, m))
    both = scalar_inputs.sign_classes(x, y, u, v)
    eta = 2.6 / max(each.kernel for each in both)
    gates = u * x[:, None] >= 0
    kernel = (gates * (u**2 + v**2)) @ gates.T / m * np.outer(x, x)
    for each in both:
        p = each.direction
        np.testing.assert_allclose(kernel @ p, each.kernel * p, atol=1e-12)
    residuals = (gates * u * v).sum(axis=1) * x / np.sqrt(m) - y
    losses = []
    for _ in range(40):
        direct = (gates * u * v).sum(axis=1) * x / np.sqrt(m) - y
        np.testing.assert_allclose(residuals, direct, atol=1e-10)
        losses.append(direct @ direct / 2)
        pull = (direct * x) @ gates / np.sqrt(m)
        residuals, kernel = scalar_inputs.kernel_step(
            residuals, kernel, x, y, width=m, step_size=eta
        )
        u, v = u - eta * pull * v, v - eta * pull * u
    reduced = sum(each.run(step_size=eta, steps=39).losses + each.floor for each in both)
    np.testing.assert_allclose(reduced, losses, rtol=1e-10)
    assert max(losses) > 2 * losses[0]


def test_messages(model):
    """Each names the argument."""
    for call, message in (
        (lambda: QuadraticModel(np.ones((2, 3)), np.ones(2), 1.0), "curvature must have shape"),
        (lambda: QuadraticModel(np.ones((1, 2)), [[0, 1], [0, 0]], 1.0), "must be symmetric"),
        (lambda: model.outputs(np.ones(3)), "weights must have shape"),
        (lambda: model.one_example(np.ones(7), 0.0), "features must have one row, got 4"),
        (
            lambda: QuadraticModel(np.ones((1, 2)), [1.0, 2.0], 1.0).one_example([0, 0], 0.0),
            "multiple of the identity",
        ),
        (
            lambda: scalar_inputs.sign_classes([1, 2], [0, 0], [1], [1]),
            "inputs must have both signs",
        ),
        (lambda: scalar_inputs.sign_classes([1, -2], [0], [1], [1]), "labels must have shape"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
