"""Kernel machines in a metric, and their features as the next metric."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from companion.catapults.features.kernel_machines import RIDGES, fit, iterate
from traindyn.catapults import agop, alignment, target

D = 6
RNG = np.random.default_rng(0)
GOAL = target("rank-2", D)
X, HELD = RNG.standard_normal((150, D)), RNG.standard_normal((100, D))
DATA = dict(inputs=X, labels=GOAL.value(X), validation=(HELD, GOAL.value(HELD)))
SHAPE = RNG.standard_normal((D, D))
METRIC = SHAPE @ SHAPE.T


def test_outputs_are_those_of_kernel_ridge_regression():
    """The kernel written out, solved by scikit-learn; one of the ridges fits."""
    machine = fit(METRIC, **DATA)
    scaled = METRIC * D / np.trace(METRIC)

    def kernel(a, b):
        apart = a[:, None] - b[None]
        return np.exp(
            -np.sqrt(np.einsum("ijk,kl,ijl->ij", apart, scaled, apart)) / machine.bandwidth
        )

    gaps = []
    for ridge in RIDGES:
        other = KernelRidge(alpha=ridge, kernel="precomputed").fit(kernel(X, X), DATA["labels"])
        values = other.predict(kernel(HELD, X))
        gaps.append(np.abs(values - machine.outputs(HELD)).max())
    assert min(gaps) < 1e-8 < 1e-3 < sorted(gaps)[1]


def test_gradients_are_those_of_the_outputs():
    """By differences, away from the centres; at a centre the mean of both sides."""
    machine = fit(METRIC, **DATA)
    along = np.random.default_rng(1).standard_normal(D)
    for points in (HELD, X):
        ends = [machine.outputs(points + s * along) for s in (1e-6, -1e-6)]
        slopes = machine.input_gradients(points) @ along
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-6, slopes, atol=1e-6)


def test_only_the_shape_of_the_metric_matters():
    """Units of the features must not decide."""
    first, second = (fit(scale * METRIC, **DATA) for scale in (1.0, 1e-200))
    np.testing.assert_allclose(first.outputs(HELD), second.outputs(HELD), rtol=1e-9)


def test_features_become_those_of_the_target():
    """The two directions of the target are found, which the isotropic kernel weights alike."""
    goal, rng = target("rank-2", 20), np.random.default_rng(2)
    x, held = rng.standard_normal((200, 20)), rng.standard_normal((100, 20))
    machines = iterate(x, goal.value(x), validation=(held, goal.value(held)), times=3)
    found = [alignment(agop(each.input_gradients(x)), goal.egop) for each in machines]
    assert len(machines) == 4
    assert found[0] < 0.9 < 0.95 < found[-1]
    assert machines[-1].validation_loss < machines[0].validation_loss / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(metric=np.zeros((D, D))), "metric must not be zero"),
        (dict(metric=-np.eye(D)), "metric must be positive semi-definite"),
        (dict(labels=np.ones(3)), "labels must have shape"),
        (dict(inputs=np.zeros((0, D)), labels=[]), "inputs must not be empty"),
        (dict(validation=None), "validation must be a pair"),
        (dict(validation=(HELD[:, :2], HELD[:, 0])), "validation inputs must have shape"),
        (dict(validation=(HELD[:0], [])), "validation inputs must not be empty"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    """An error names the argument."""
    with pytest.raises(ValueError, match=message):
        fit(**{"metric": np.eye(D), **DATA, **change})


def test_a_machine_without_features_is_named():
    """A constant has no direction."""
    with pytest.raises(ValueError, match="inputs and labels give a machine without features"):
        iterate(X, np.zeros(len(X)), validation=DATA["validation"], times=1)
