"""The network on its data: gradient, Hessian, fresh loss, bounded curvature."""

import numpy as np
import pytest

from traindyn.activations import GELU, IDENTITY, QUADRATIC, RELU, TANH
from traindyn.gaussian import gauss_hermite
from traindyn.problems.multi_index import (
    SQUARED,
    MultiIndex,
    half_spaces,
    logistic,
    parity,
    phase_retrieval,
)


def test_force_is_the_gradient_of_the_risk(small_network, mean_loss):
    """X^T F / n against difference quotients, along a random direction."""
    problem = small_network
    data = problem.sample(30, 5, rng=0)
    theta, direction = problem.initial(5, rng=1), problem.initial(5, rng=2)
    predictions, force = problem.force(data.inputs @ theta, data.labels)
    np.testing.assert_array_equal(predictions, problem.predict(data.inputs @ theta))
    slope = np.sum(direction * (data.inputs.T @ force)) / 30
    up, down = (mean_loss(problem, data, theta + sign * 1e-5 * direction) for sign in (1, -1))
    assert slope == pytest.approx((up - down) / 2e-5, rel=1e-7)


def test_hessian_weights_are_second_derivatives(small_network, mean_loss):
    """u^T H u of m times the risk; dropping the off-diagonal blocks (control) is wrong."""
    problem = small_network
    data = problem.sample(30, 5, rng=0)
    theta, u = problem.initial(5, rng=1), problem.initial(5, rng=2)
    weights = problem.hessian_weights(data.inputs @ theta, data.labels)
    projected = data.inputs @ u
    form = np.einsum("nj,njl,nl->", projected, weights, projected) / 30
    values = [mean_loss(problem, data, theta + sign * 1e-4 * u) for sign in (1, 0, -1)]
    quotient = problem.width * (values[0] - 2 * values[1] + values[2]) / 1e-8
    assert form == pytest.approx(quotient, rel=1e-5)
    diagonal = np.einsum("nj,njj,nj->", projected, weights, projected) / 30
    assert problem.width == 1 or abs(diagonal / quotient - 1) > 1e-3


def test_block_weights_bound_the_spectrum_of_wide_networks():
    """min_j lambda_min(block) <= lambda_min(H) <= min_j lambda_min(block) + O(1/m).

    This is the bound of MW, Block-diagonal approximation, lowest eigenvalue.

    Without the signs a_j (the printed blocks) the lower bound fails.
    """
    m, d, n = 8, 20, 120
    signs = np.where(np.arange(m) % 2, -1.0, 1.0)
    problem = MultiIndex(second_layer=signs)
    data = problem.sample(n, d, rng=3)
    theta = problem.initial(d, rng=4)
    theta /= 2
    u = data.inputs @ theta
    full = np.einsum(
        "njl,na,nb->jalb", problem.hessian_weights(u, data.labels), data.inputs, data.inputs
    )
    lowest = np.linalg.eigvalsh(full.reshape(m * d, m * d) / n)[0]
    weights = problem.block_weights(u, data.labels)

    def block_low(sign):
        blocks = np.einsum("nj,na,nb->jab", weights * sign, data.inputs, data.inputs) / n
        return np.linalg.eigvalsh(blocks).min()

    assert block_low(1.0) <= lowest <= block_low(1.0) + 3 / m
    assert block_low(signs) != pytest.approx(block_low(1.0), rel=1e-3)


@pytest.fixture(params=["phase retrieval", "three neurons", "half-spaces"])
def populous(request, three_neurons):
    """One neuron or three, one direction or two."""
    return {
        "phase retrieval": MultiIndex(phase_retrieval(noise=0.5)),
        "three neurons": three_neurons,
        "half-spaces": MultiIndex(half_spaces(2)),
    }[request.param]


def test_population_loss_against_fresh_samples(populous):
    """Within 5 standard errors of 2e5 draws (false alarm 6e-7); train data would not do."""
    problem = populous
    theta = problem.initial(6, rng=1)
    theta[: problem.k] += 0.6
    gram, overlap = theta.T @ theta, theta[: problem.k].T
    data = problem.sample(200_000, 6, rng=2)
    losses = problem.loss.value(data.labels, problem.predict(data.inputs @ theta))
    error = losses.std() / np.sqrt(losses.size)
    found = problem.population_loss(gram, overlap)
    assert abs(found - losses.mean()) < 5 * error + 1e-4
    # The control: overlaps forgotten.
    wrong = problem.population_loss(gram, 0 * overlap)
    assert abs(wrong - losses.mean()) > 5 * error + 1e-4


def test_population_loss_takes_a_rule():
    """A finer rule changes little, one of another dimension is refused."""
    problem = MultiIndex()
    fine = problem.population_loss([[1.0]], [[0.3]], rule=gauss_hermite(2, 120))
    assert fine == pytest.approx(problem.population_loss([[1.0]], [[0.3]]), abs=1e-5)
    with pytest.raises(ValueError, match="rule must have dimension 2, got 3"):
        problem.population_loss([[1.0]], [[0.3]], rule=gauss_hermite(3, 5))
    with pytest.raises(ValueError, match="positive semi-definite"):
        problem.population_loss([[1.0]], [[1.3]])


def test_population_loss_knows_no_units(three_neurons):
    """Small neurons are neurons, and small products that no neurons have are refused."""
    k = three_neurons.k
    origin = three_neurons.population_loss(np.zeros((3, 3)), np.zeros((3, k)))
    small = three_neurons.initial(6, rng=1)
    for scale in (1e-150, 1e-8, 1.0, 1e3):
        theta = scale * small
        gram, overlap = theta.T @ theta, theta[:k].T
        found = three_neurons.population_loss(gram, overlap)
        assert (found == pytest.approx(origin, abs=1e-6)) == (scale < 1)
        # All that there is of the neurons lies in the directions of the target.
        three_neurons.population_loss((1 - 1e-6) * (overlap @ overlap.T), overlap)
        for wrong in ((-gram, 0 * overlap), (gram, 2 * overlap), (0 * gram, overlap)):
            with pytest.raises(ValueError, match="positive semi-definite, got smallest eigenvalue"):
                three_neurons.population_loss(*wrong)
    with pytest.raises(ValueError, match="positive semi-definite, got smallest eigenvalue -1e-06"):
        MultiIndex().population_loss([[-1e-6]], [[0.0]])


def test_samples_keep_their_type_and_seed(three_neurons):
    """float32 without a detour, labels from the first coordinates."""
    problem = MultiIndex()
    data = problem.sample(50, 4, rng=7, dtype=np.float32)
    assert data.inputs.dtype == data.labels.dtype == np.float32
    np.testing.assert_allclose(data.labels, data.inputs[:, 0] ** 2, rtol=1e-6)
    np.testing.assert_array_equal(data.inputs, problem.sample(50, 4, rng=7, dtype="f4").inputs)
    np.testing.assert_allclose(np.linalg.norm(three_neurons.initial(9, rng=0), axis=0), 1.0)
    predictions, force = problem.force(data.inputs[:, :1], data.labels)
    assert predictions.dtype == force.dtype == np.float32


@pytest.mark.parametrize(
    ("problem", "bounded"),
    [
        (MultiIndex(), True),
        (MultiIndex(loss=SQUARED), False),
        (MultiIndex(loss=SQUARED, second_layer=[-1.0]), False),
        (MultiIndex(loss=SQUARED, activation=QUADRATIC), False),
        # z^2 is bounded below, so that a negative second layer keeps 2 a (f - y) so too.
        (MultiIndex(loss=SQUARED, activation=QUADRATIC, second_layer=[-1.0]), True),
        (MultiIndex(phase_retrieval(noise=0.1), loss=SQUARED, second_layer=[-1.0]), False),
        (MultiIndex(half_spaces(2), loss=SQUARED), True),
        (MultiIndex(half_spaces(2), loss=SQUARED, second_layer=[1.0, 1.0]), False),
        (MultiIndex(half_spaces(2), loss=SQUARED, second_layer=[1.0] * 2, activation=TANH), True),
        (MultiIndex(half_spaces(2), loss=logistic()), True),
        (MultiIndex(loss=SQUARED, activation=IDENTITY), True),
    ],
)
def test_unbounded_curvature_is_refused(problem, bounded):
    """With the reason and the alternatives; and large samples agree on what is bounded."""
    rng = np.random.default_rng(5)
    z = 12 * rng.standard_normal((200_000, problem.k))
    u = 3 * rng.standard_normal((200_000, problem.width))
    lowest = problem.block_weights(u, problem.target.labels(z, rng=rng)).min()
    if bounded:
        problem.require_bounded_curvature()
        assert lowest > -10
    else:
        with pytest.raises(ValueError, match=r"no left edge.*pseudo_huber.*bounded labels"):
            problem.require_bounded_curvature()


def test_requests_that_make_no_sense_are_refused():
    """Each message names the argument."""
    for call, message in (
        (lambda: MultiIndex(second_layer=[]), "second_layer must have non-zero entries"),
        (lambda: MultiIndex(second_layer=[1.0, 0.0]), "second_layer must have non-zero entries"),
        (lambda: MultiIndex(biases=[1.0, 2.0]), r"biases must have shape \(1\)"),
        (lambda: MultiIndex(parity(2), loss=logistic()), r"labels in \[0, 1\] for the loss logi"),
        (lambda: MultiIndex().sample(5, 0, rng=0), "d must be an integer >= 1"),
        (lambda: MultiIndex().sample(5, 2, rng=0, dtype=int), "dtype must be float64 or float32"),
        (
            lambda: MultiIndex(activation=RELU).hessian_weights(np.ones((1, 1)), np.ones(1)),
            "activation must have a second derivative for the Hessian, got relu",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert MultiIndex().activation is GELU
