"""The exact critical step against dense Hessians, linear models and gradient descent itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

import jax.numpy as jnp  # noqa: E402
from jax.flatten_util import ravel_pytree  # noqa: E402

from traindyn import deep  # noqa: E402, F401  (double precision)
from traindyn.deep.critical import LossHessian  # noqa: E402


def small_net(weights: Any, batch: Any) -> Any:
    """Two layers of tanh."""
    hidden = jnp.tanh(batch @ weights["first"].T)
    return hidden @ weights["second"]


def draw(outputs: int | None, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Weights of a small net, five inputs and labels."""
    tail = () if outputs is None else (outputs,)
    weights = {
        "first": rng.standard_normal((12, 7)),
        "second": rng.standard_normal((12, *tail)),
    }
    return weights, rng.standard_normal((5, 7)), rng.standard_normal((5, *tail))


@pytest.mark.nightly
@pytest.mark.parametrize("outputs", [None, 3])
def test_against_the_dense_hessian(outputs: int | None) -> None:
    """The mean is over all outputs; the eigenvalue is the largest, not the largest in size."""
    weights, batch, labels = draw(outputs, np.random.default_rng(1))
    flat, restore = ravel_pytree(weights)

    def loss(at: Any) -> Any:
        return jnp.mean((small_net(restore(at), batch) - labels) ** 2)

    dense = np.asarray(jax.hessian(loss)(flat))
    hessian = LossHessian(small_net)
    vectors = np.random.default_rng(2).standard_normal((flat.size, 2))
    operator = hessian.operator(weights, batch, labels)
    np.testing.assert_allclose(operator.matmat(vectors), dense @ vectors, atol=1e-12)
    found = hessian.curvature(weights, batch, labels)
    top = np.linalg.eigvalsh(dense)[-1]
    assert found.converged and found.residual < 1e-6
    assert found.eigenvalue == pytest.approx(top, rel=1e-10)
    assert found.critical_step == pytest.approx(2 / top, rel=1e-10)
    np.testing.assert_allclose(dense @ found.vector, top * found.vector, atol=1e-5 * top)


def test_large_residuals_of_one_sign() -> None:
    """Where the second term rules, the kernel is wrong and the Hessian is not."""
    weights, batch, _ = draw(None, np.random.default_rng(3))
    flat, restore = ravel_pytree(weights)
    jacobian = np.asarray(jax.jacobian(lambda at: small_net(restore(at), batch))(flat))
    proxy = 5 / np.linalg.eigvalsh(jacobian @ jacobian.T)[-1]
    near = np.asarray(small_net(weights, batch))
    hessian = LossHessian(small_net)
    assert hessian.curvature(weights, batch, near).critical_step == pytest.approx(proxy, rel=1e-9)
    assert hessian.curvature(weights, batch, near - 1e3).critical_step < proxy / 10


def test_linear_model_and_its_threshold() -> None:
    """Gradient descent on squares decreases below the critical step and increases above."""
    rng = np.random.default_rng(4)
    inputs, labels = rng.standard_normal((30, 80)), rng.standard_normal(30)
    hessian = LossHessian(lambda weights, batch: batch @ weights)
    found = hessian.curvature(np.zeros(80), inputs, labels, start=inputs[0])
    kernel = inputs @ inputs.T
    assert found.critical_step == pytest.approx(30 / np.linalg.eigvalsh(kernel)[-1], rel=1e-10)
    for factor, grows in ((0.99, False), (1.01, True)):
        eta, w = factor * found.critical_step, inputs.T @ np.linalg.solve(kernel, labels)
        w = w + 1e-3 * found.vector
        for _ in range(20):
            before = np.mean((inputs @ w - labels) ** 2)
            w = w - 2 * eta / 30 * inputs.T @ (inputs @ w - labels)
        assert (np.mean((inputs @ w - labels) ** 2) > before) == grows


def test_maximum_is_no_threshold() -> None:
    """At a maximum in every direction no step size is critical."""
    hessian = LossHessian(lambda weights, batch: batch * jnp.cos(jnp.sum(weights)))
    found = hessian.curvature(np.zeros(1), np.ones(1), np.zeros(1))
    assert found.eigenvalue == pytest.approx(-2.0) and found.critical_step == np.inf


def test_errors() -> None:
    """Labels of another shape, or not finite, and a loss that overflows."""
    weights, batch, labels = draw(None, np.random.default_rng(5))
    hessian = LossHessian(small_net)
    with pytest.raises(ValueError, match=r"labels must have shape \(5,\), got \(4,\)"):
        hessian.operator(weights, batch, labels[:4])
    with pytest.raises(ValueError, match="labels"):
        hessian.operator(weights, batch, np.full(5, np.nan))
    with pytest.raises(FloatingPointError):
        hessian.curvature({**weights, "second": np.full(12, 1e308)}, batch, labels)
