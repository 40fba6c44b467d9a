"""Closed forms of the kernel at the start, against networks."""

import numpy as np
import pytest

from companion.catapults.beyond.parameterisation import kernel_entries, pytorch_start
from traindyn.activations import RELU
from traindyn.catapults import TwoLayerModel, batch_threshold, critical_step, train
from traindyn.kernels import infinite_width


def orthogonal(dimension):
    """Two orthogonal inputs with square length d."""
    return np.eye(2, dimension) * np.sqrt(dimension)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_ntk_entries_are_those_of_the_infinitely_wide_network(depth):
    """Without biases, L 2^(1 - L) on the diagonal; with standard normal ones."""
    for name, bias in (("ntk", 0.0), ("ntk, normal biases", 1.0)):
        kernel = infinite_width(orthogonal(7), depth=depth, activation=RELU, bias=bias).ntk
        found = kernel_entries(depth, name)
        assert found.diagonal == pytest.approx(kernel[0, 0], rel=1e-12)
        assert found.off_diagonal == pytest.approx(kernel[0, 1], rel=1e-12)
    assert kernel_entries(depth).diagonal == pytest.approx(depth * 2.0 ** (1 - depth))


def test_two_layers_by_hand():
    """Biases that start at zero add the slopes and one; the off-diagonal entry is 1/2 pi."""
    plain, biased = kernel_entries(2), kernel_entries(2, "ntk, zero biases")
    assert plain == pytest.approx((1.0, 1 / (2 * np.pi)))
    assert biased == pytest.approx((2.5, 1 / (2 * np.pi) + 1.25))
    assert plain.critical_step(1) == 1.0


def test_threshold_at_half_the_critical_step():
    """Many examples: the ratio of the entries less one."""
    found = kernel_entries(3)
    eta = found.critical_step(10**9) / 2
    b = batch_threshold(eta, diagonal=found.diagonal, off_diagonal=found.off_diagonal)
    assert b == pytest.approx(found.diagonal / found.off_diagonal - 1, rel=1e-6)


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", ["ntk", "ntk, zero biases", "ntk, normal biases", "pytorch"])
def test_entries_are_those_of_networks(name, depth):
    """Means over networks, to four standard errors and the order of one over the width."""
    deep = pytest.importorskip("traindyn.deep")
    d, m, draws = 6, 256, 60
    kind = "pytorch" if name == "pytorch" else "ntk"
    model = deep.perceptron([d, *[m] * (depth - 1), 1], biases=name != "ntk", parameterisation=kind)
    start = "normal" if name == "ntk, normal biases" else "zero"
    batch = model.prepare(orthogonal(d))
    kernels = np.array(
        [model.tangent_kernel(model.initial(rng=i, biases=start), batch) for i in range(draws)]
    )
    found = kernel_entries(depth, name, width=m, dimension=d)
    pairs = (kernels[:, 0, 0], found.diagonal), (kernels[:, 0, 1], found.off_diagonal)
    for seen, expected in pairs:
        error = seen.std(ddof=1) / np.sqrt(draws)
        assert abs(seen.mean() - expected) < 4 * error + 3 * expected / m


def test_pytorch_is_ntk_from_an_unbalanced_start():
    """Losses of a catapult, against the network with its own weights and step size."""
    deep = pytest.importorskip("traindyn.deep")
    d, m = 5, 300
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((4, d)), rng.standard_normal(4)
    start = pytorch_start(m, d, rng=2)
    theirs = deep.perceptron([d, m, 1], parameterisation="pytorch")
    first, second = (each / (m * d) ** 0.25 for each in start)
    weights = (first.T, second[:, None])
    eta = 1.3 * critical_step(theirs, weights, theirs.prepare(x))
    options = dict(steps=40)
    ours = train(TwoLayerModel(start), start, x, y, step_size=eta * np.sqrt(m * d), **options)
    run = train(theirs, weights, x, y, step_size=eta, **options)
    assert ours.losses.max() > 3 * ours.losses[0]
    np.testing.assert_allclose(ours.losses, run.losses, rtol=1e-6)


def test_arguments_out_of_range():
    """PyTorch's kernel needs sizes."""
    with pytest.raises(ValueError, match="width and dimension"):
        kernel_entries(2, "pytorch", width=5)
    with pytest.raises(ValueError, match="parameterisation"):
        kernel_entries(2, "mean field")
    with pytest.raises(ValueError, match="depth"):
        kernel_entries(1)
    with pytest.raises(ValueError, match="examples"):
        kernel_entries(2).critical_step(0)
