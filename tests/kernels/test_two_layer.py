"""The two-layer family: its derivatives, and the Lipschitz constant of its Jacobian."""

import numpy as np
import pytest

from traindyn.activations import ERF, GELU, QUADRATIC, RELU, TANH
from traindyn.kernels import TwoLayer

RNG = np.random.default_rng(8)
X = RNG.standard_normal((5, 4))


def jacobian(net, theta, x):
    """Rows of the Jacobian by the pullback, shape (n, m d)."""
    return np.stack([net.vjp(theta, x)[1](row) for row in np.eye(len(x))])


@pytest.mark.parametrize("activation", [TANH, ERF, GELU, RELU], ids=lambda a: a.name)
def test_derivatives(activation):
    """Pullback, kernel and distance of Jacobians against differences and the Jacobian itself."""
    net = TwoLayer(4, 6, activation, scale=2.5)
    theta, other = net.initial(rng=0), net.initial(rng=1)
    step = 1e-6 * np.eye(net.size)
    differences = [
        (net.outputs(theta + row, X) - net.outputs(theta - row, X)) / 2e-6 for row in step
    ]
    rows = jacobian(net, theta, X)
    np.testing.assert_allclose(rows, np.stack(differences, axis=1), atol=1e-8)
    np.testing.assert_allclose(net.tangent_kernel(theta, X), rows @ rows.T, atol=1e-13)
    np.testing.assert_allclose(net.tangent_kernel(theta, X[:2], X), rows[:2] @ rows.T, atol=1e-13)
    change = np.linalg.norm(rows - jacobian(net, other, X), 2)
    assert net.jacobian_distance(theta, other, X) == pytest.approx(change, rel=1e-10)
    assert np.linalg.norm(rows - jacobian(net, other, X)) > 1.1 * change


def test_outputs_by_hand():
    """The definition of MDL chapter 9, neuron by neuron."""
    net = TwoLayer(4, 6, TANH, scale=2.5)
    theta = net.initial(rng=3)
    neurons = theta.reshape(6, 4)
    np.testing.assert_allclose(np.linalg.norm(neurons, axis=1), 1.0)
    hidden = np.tanh(X @ neurons.T)
    expected = 2.5 / 6**0.5 * (hidden[:, :3].sum(axis=1) - hidden[:, 3:].sum(axis=1))
    np.testing.assert_allclose(net.outputs(theta, X), expected, atol=1e-14)
    paired = net.initial(paired=True, rng=3)
    np.testing.assert_array_equal(net.outputs(paired, X), 0.0)
    assert np.linalg.eigvalsh(net.tangent_kernel(paired, X))[0] > 1e-3


@pytest.mark.parametrize("activation", [TANH, ERF, GELU], ids=lambda a: a.name)
@pytest.mark.parametrize(("n", "d"), [(5, 12), (30, 4)])
def test_lipschitz_constant(activation, n, d):
    """Attained from below, and never exceeded: by random pairs, nor by steps along its neuron."""
    x = RNG.standard_normal((n, d))
    net = TwoLayer(d, 10, activation, scale=3.0)
    found = net.lipschitz(x)
    assert 0.5 * found.upper < found.lower <= found.upper
    here = np.tile(found.neuron, (10, 1))
    there = here.copy()
    there[7] += 1e-5 * found.direction
    attained = net.jacobian_distance(here.ravel(), there.ravel(), x) / 1e-5
    assert attained == pytest.approx(found.lower, rel=1e-4)
    for length in (0.01, 0.3, 2.0):
        for seed in range(20):
            rng = np.random.default_rng(seed)
            start = rng.standard_normal(net.size)
            move = rng.standard_normal((10, d))
            if seed % 2:
                move[1:] = 0
            move *= length / np.linalg.norm(move)
            quotient = net.jacobian_distance(start, start + move.ravel(), x) / length
            assert quotient < found.lower
    # Several neurons at once attain the same, not more.
    spread = here + 1e-5 / 10**0.5 * found.direction
    quotient = net.jacobian_distance(here.ravel(), spread.ravel(), x) / 1e-5
    assert quotient == pytest.approx(found.lower, rel=1e-4)


def test_lipschitz_constant_in_closed_form():
    """Orthogonal inputs: the longest alone, c |x|^2, from both sides; an exact scaling law."""
    x = np.diag([1.0, 2.0, 3.0])
    found = TwoLayer(3, 4, TANH, scale=2.0).lipschitz(x)
    exact = 2.0 / 4**0.5 * 4 / 27**0.5 * 9.0
    assert found.lower == pytest.approx(exact, rel=1e-6)
    assert found.upper == pytest.approx(exact, rel=1e-6)
    # One input of length three, m neurons, quadratic: the Hessian is constant.
    line = TwoLayer(1, 16, QUADRATIC, scale=1.0).lipschitz([[3.0]])
    assert line.lower == pytest.approx(2 * 9 / 4) and line.upper == pytest.approx(2 * 9 / 4)
    assert TwoLayer(3, 16, TANH, scale=2.0).lipschitz(x).upper == pytest.approx(exact / 2)


@pytest.mark.parametrize(("n", "d"), [(3, 10), (30, 6), (200, 12)])
def test_lipschitz_constant_of_many_inputs(n, d):
    """GELU: attained at zero for any inputs; the relaxation is close, Frobenius and Gram not."""
    x = np.random.default_rng(n).standard_normal((n, d))
    net = TwoLayer(d, 10, GELU, scale=2.0)
    found = net.lipschitz(x)
    assert 0.95 * found.upper < found.lower <= found.upper <= found.frobenius
    there = np.zeros((10, d))
    there[3] = 1e-5 * found.direction
    attained = net.jacobian_distance(np.zeros(10 * d), there.ravel(), x) / 1e-5
    assert attained == pytest.approx(found.lower, rel=1e-4)
    # The quartic itself, against random directions and its Gram matrix.
    front = 2.0 / 10**0.5 * 2 / (2 * np.pi) ** 0.5
    draws = np.random.default_rng(0).standard_normal((d, 2000))
    draws /= np.linalg.norm(draws, axis=0)
    assert front * np.sqrt(((x @ draws) ** 4).sum(axis=0).max()) < found.lower
    gram = front * np.sqrt(np.linalg.eigvalsh((x @ x.T) ** 2)[-1])
    assert found.upper <= gram * (1 + 1e-12)
    if n == 200:
        assert found.upper < 0.85 * gram
    # Frobenius norm: attained along the top direction of its quadratic form.
    squares = np.square(x).sum(axis=1)
    there[3] = 1e-5 * np.linalg.eigh((x.T * squares) @ x)[1][:, -1]
    far = net.jacobian_distance(np.zeros(10 * d), there.ravel(), x, frobenius=True) / 1e-5
    assert far == pytest.approx(found.frobenius, rel=1e-4)
    rows = jacobian(net, there.ravel(), x) - jacobian(net, np.zeros(10 * d), x)
    assert far == pytest.approx(np.linalg.norm(rows) / 1e-5, rel=1e-6)


def test_lipschitz_constant_of_gaussian_inputs():
    """Chevet's bound holds on average with room, and with its tail in every draw."""
    for n, d in ((10, 10), (100, 10), (400, 20)):
        net = TwoLayer(d, 10, GELU)
        draws = [net.lipschitz(np.random.default_rng(seed).standard_normal((n, d))).lower
                 for seed in range(5)]  # fmt: skip
        assert np.mean(draws) < net.gaussian_lipschitz(n, miss=1.0) < 2 * np.mean(draws)
        assert max(draws) < net.gaussian_lipschitz(n)
    wide = TwoLayer(10, 40, GELU, scale=3.0)
    assert wide.gaussian_lipschitz(10) == pytest.approx(
        1.5 * TwoLayer(10, 10, GELU).gaussian_lipschitz(10)
    )


def test_refusals():
    """Each message names the argument."""
    with pytest.raises(ValueError, match="width must be even, got 5"):
        TwoLayer(3, 5, TANH)
    with pytest.raises(ValueError, match="width must be an integer >= 2, got 0"):
        TwoLayer(3, 0, TANH)
    with pytest.raises(ValueError, match="scale must be positive"):
        TwoLayer(3, 4, TANH, scale=0.0)
    with pytest.raises(ValueError, match=r"second derivative for the Lipschitz constant.*relu"):
        TwoLayer(4, 2, RELU).lipschitz(X)
    with pytest.raises(ValueError, match=r"miss must be in \(0, 1\], got 0"):
        TwoLayer(4, 2, TANH).gaussian_lipschitz(5, miss=0.0)
    with pytest.raises(ValueError, match="x must not be zero"):
        TwoLayer(4, 2, TANH).lipschitz(np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"parameters must have shape \(8\)"):
        TwoLayer(4, 2, TANH).outputs(np.zeros(4), X)
