"""Projected steps: the Hessian of drawn inputs, drift against single steps, refusals."""

import numpy as np
import pytest
from steps import moved

from companion.effective_dynamics.other_steps.projected import ProjectedSteps
from traindyn.effective import ode
from traindyn.problems.clouds.mixture import Mixture
from traindyn.problems.spiked import Statistics

HERE = Statistics(np.array(0.8), np.array(2.5))


def spread(n):
    """Mean on all coordinates."""
    return np.full(n, n**-0.5)


def test_leading_eigenvector_of_the_hessian():
    """Of many drawn inputs, seen in the plane of the mean and w and outside of it."""
    steps = ProjectedSteps(Mixture(np.full(25, 0.2), precision=0.4), "leading")
    u, top, bulk = steps.leading(HERE)
    rng = np.random.default_rng(0)
    inputs = 0.2 + rng.standard_normal((400_000, 25)) / np.sqrt(0.4)
    w = steps.place(HERE, rng=1).w
    f = steps.inputs.response(inputs @ w)
    hessian = inputs.T @ (inputs * (f * (1 - f))[:, None]) / len(inputs)
    values, vectors = np.linalg.eigh(hessian)
    across = w - 0.8 * steps.direction
    expected = u[0] * steps.direction + u[1] * across / np.linalg.norm(across)
    assert abs(values[-1] - top) < 0.01
    assert abs(np.median(values) - bulk) < 0.01
    assert abs(vectors[:, -1] @ expected) > 0.995
    assert abs(u[1]) > 0.1


def test_hessian_of_the_square_loss():
    """The same everywhere: the mean stands out by one."""
    u, top, bulk = ProjectedSteps(Mixture(spread(100), loss="square"), "rest").leading(HERE)
    np.testing.assert_allclose([*u, top, bulk], [1.0, 0.0, 2.0, 1.0], atol=1e-12)


@pytest.mark.parametrize("part", ["leading", "rest"])
@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_drift_of_one_step(part, loss):
    """Mean of a step on drawn inputs."""
    n, c = 400, 1.5
    steps = ProjectedSteps(Mixture(spread(n), precision=0.6, loss=loss), part)
    moves = moved(steps, steps.place(HERE, rng=0), c / n, 20_000, 1) - np.array(HERE)
    moves *= n / c
    drift = np.array(steps.drift(HERE, c_delta=c))
    error = moves.std(axis=0) / np.sqrt(len(moves))
    assert np.all(np.abs(moves.mean(axis=0) - drift) <= 5 * error + 20 / n)


def test_parts_add_up():
    """To the drift of SGD, corrector included."""
    inputs = Mixture(spread(100), precision=0.6)
    parts = [ProjectedSteps(inputs, part).drift(HERE, c_delta=1.3) for part in ("leading", "rest")]
    np.testing.assert_allclose(np.sum(parts, axis=0), inputs.drift(HERE, c_delta=1.3), rtol=1e-6)


def test_there_is_always_an_outlier():
    """By the direction of the plane that is orthogonal to the weights."""
    for precision in (0.3, 1.0, 5.0):
        steps = ProjectedSteps(Mixture(spread(100), precision=precision), "leading")
        for m, r2 in ((0.0, 1.0), (2.0, 0.1), (6.0, 3.0), (-4.0, 0.5)):
            _, top, bulk = steps.leading(Statistics(np.array(m), np.array(r2)))
            assert top >= bulk * (1 + precision * r2 / (m**2 + r2)) * (1 - 1e-6)


def test_along_a_vanishing_rest():
    """A point on the mean stays there: the leading eigenvector is the mean."""
    steps = ProjectedSteps(Mixture(spread(100)), "leading")
    path = ode.solve(steps, Statistics(np.array(0.5), np.array(0.0)), [1.0], c_delta=1.0)
    assert path.statistics.r2[0] == 0.0
    moves = moved(steps, steps.place(Statistics(np.array(0.5), np.array(0.0)), rng=0), 0.1, 3, 1)
    np.testing.assert_allclose(moves[:, 1], 0.0, atol=1e-12)


def test_refuses_bad_fields():
    """The field is named."""
    with pytest.raises(ValueError, match="part"):
        ProjectedSteps(Mixture(spread(100)), "bulk")
    with pytest.raises(ValueError, match="fourth powers"):
        ProjectedSteps(Mixture(np.eye(9)[0]), "rest")
