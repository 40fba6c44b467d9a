"""A problem given by its local loss is the problem that was written out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from companion.alignment.training_dynamics.dynamics import volatility
from traindyn import conformance, sgd
from traindyn._types import Array
from traindyn.effective import ode, one_step
from traindyn.effective._layout import Layout
from traindyn.gaussian import gauss_hermite
from traindyn.problems import KGaussianMixture
from traindyn.problems.k_gmm import Point as Rows
from traindyn.problems.projection_model import Local, Point, ProjectionModel, Statistics
from traindyn.sgd._loop import Diverged
from traindyn.spectra import population

RULE = gauss_hermite(4, 16)


def value(z: Array, u: Array, label: int) -> float:
    """Cross-entropy of the logits z."""
    return float(np.logaddexp(z[0], z[1]) - z[label])


def slope(z: Array, u: Array, label: int) -> Array:
    """Softmax less the label."""
    share = 1 / (1 + np.exp(z[1] - z[0]))
    return np.array([share - 1 + label, 1 - share - label])


def curvature(z: Array, u: Array, label: int) -> Array:
    """Its Jacobian."""
    share = 1 / (1 + np.exp(z[1] - z[0]))
    e = share * (1 - share)
    return np.array([[e, -e], [-e, e]])


@pytest.fixture(scope="module")
def model() -> ProjectionModel:
    """Softmax regression on two Gaussians, by its local loss."""
    local = Local(value, slope, curvature)
    weights = np.array([0.3, 0.7])
    return ProjectionModel(local, np.eye(2), weights, 6.0, 40, ridge=0.2, width=2)


@pytest.fixture(scope="module")
def known() -> KGaussianMixture:
    """The same, written out."""
    return KGaussianMixture.orthonormal(2, 40, precision=6.0, ridge=0.2, weights=[0.3, 0.7])


@pytest.fixture(scope="module")
def statistics() -> Statistics:
    """Some place."""
    m = np.array([[0.8, -0.3], [-0.5, 0.6]])
    return Statistics(m, np.array([[0.9, 0.2], [0.2, 0.5]]), np.empty(0))


def test_data_and_derivatives(model: ProjectionModel, known: KGaussianMixture) -> None:
    """Same stream, losses, gradients and factors, to rounding."""
    data, other = model.stream(30, rng=3), known.stream(30, rng=3)
    np.testing.assert_allclose(data.inputs, other.inputs, atol=1e-14)
    np.testing.assert_array_equal(data.labels, other.labels)
    point = model.initial(rng=5)
    rows = Rows(point.x)
    np.testing.assert_allclose(model.loss(point, data), known.loss(rows, data), rtol=1e-12)
    found = model.gradient(point, data).x
    np.testing.assert_allclose(found, known.gradient(rows, data).x, atol=1e-13)
    for matrix in ("hessian", "g_matrix"):
        for block in ((0, 0), (1, 0), (1, 1)):
            mine = model.factors(matrix, block, point, data)
            theirs = known.factors(matrix, block, rows, data)
            np.testing.assert_allclose(mine.weights, theirs.weights, atol=1e-13)


def test_drift_and_volatility(
    model: ProjectionModel, known: KGaussianMixture, statistics: Statistics
) -> None:
    """Integrals over directions and neurons agree with those by parts over neurons alone."""
    there: Any = type(known.initial_statistics())(statistics.m, statistics.R_perp)
    fine = gauss_hermite(2, 40)
    for c_delta in (0.0, 1.5):
        mine = model.drift(statistics, rule=RULE, c_delta=c_delta)
        theirs = known.drift(there, rule=fine, c_delta=c_delta)
        np.testing.assert_allclose(mine.m, theirs.m, atol=1e-8)
        np.testing.assert_allclose(mine.R_perp, theirs.R_perp, atol=1e-8)
    limit = model.limit_drift(statistics)
    np.testing.assert_allclose(limit.m, known.limit_drift(there).m, atol=1e-14)
    np.testing.assert_allclose(limit.R_perp, known.limit_drift(there).R_perp, atol=1e-14)
    assert np.abs(mine.R_perp - model.drift(statistics, rule=RULE, c_delta=0.0).R_perp).max() > 0.01


def test_volatility_is_that_of_a_step(model: ProjectionModel, statistics: Statistics) -> None:
    """The limit covariance against steps of the chain on the statistics, second order included."""
    wide = replace(model, dimension=4000)
    seen = one_step.measure(wide, statistics, step_size=2.0 / 4000, samples=20_000, rng=4)
    found = wide.volatility(statistics, c_delta=2.0, rule=RULE)
    value, error = seen.generalised.value * 2000, seen.generalised.error * 2000
    scale = np.abs(found).max()
    assert (np.abs(value - found) < 6 * error + 0.01 * scale).all()
    # Without the second order the error shows.
    first = wide.volatility(statistics, c_delta=0.0, rule=RULE)
    assert (np.abs(value - first) > 6 * error + 0.01 * scale).any()


def test_population_blocks(
    model: ProjectionModel, known: KGaussianMixture, statistics: Statistics
) -> None:
    """Embedded in four dimensions, both have the same expected blocks."""
    there: Any = type(known.initial_statistics())(statistics.m, statistics.R_perp)
    mine = population.full(model, statistics, "hessian", rule=RULE)
    theirs = population.full(known, there, "hessian", rule=RULE)
    for ours, other in zip(mine.eigenvalues(), theirs.eigenvalues(), strict=True):
        np.testing.assert_allclose(ours, other, atol=1e-12)


def test_two_neurons_agree_with_themselves(model: ProjectionModel) -> None:
    """The chain with a 2 x 2 Gram matrix has the law of SGD; a wrong curvature is found."""
    report = conformance.check(model, parts=("chain",), rng=8, replicas=300)
    assert report.passed, str(report)
    bent = replace(model, local=Local(value, slope, lambda z, u, label: np.zeros((2, 2))))
    report = conformance.check(bent, parts=("curvature",), point=bent.initial(rng=0), rng=8)
    assert {finding.method for finding in report.failures} == {"factors, hessian"}
    with pytest.raises(ValueError, match="factors, hessian"):
        report.require()


def test_singular_gram_matrix(model: ProjectionModel, statistics: Statistics) -> None:
    """A rank-one R_perp survives the way to the chain and back, and is embedded in fewer."""
    flat = statistics._replace(R_perp=np.array([[4.0, 2.0], [2.0, 1.0]]))
    again = model.reduced_statistics(model.reduced_state(flat))
    np.testing.assert_allclose(again.R_perp, flat.R_perp, atol=1e-12)
    small, point = model.embed(flat)
    assert small.dimension == 3
    packed = Layout(flat).pack(small.statistics(point))
    np.testing.assert_allclose(packed, Layout(flat).pack(flat), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1.0]}, "weights must have one entry per centre"),
        ({"precision": 0.0}, "precision must be positive"),
        ({"dimension": 1}, "dimension must be an integer >= 2"),
        ({"width": 3}, "local.value must return|local.slope must return|curvature must"),
        ({"ridge": -1.0}, "ridge must be non-negative"),
        (
            {"local": Local(value, lambda z, u, label: np.zeros(1), curvature)},
            "local.slope must return",
        ),
        ({"local": Local(value, 3, curvature)}, "local.slope must be callable"),  # type: ignore
    ],
)
def test_refusals(model: ProjectionModel, change: dict[str, Any], message: str) -> None:
    """Bad fields are named; the last slope would be read past its end once compiled."""
    if "width" in change:
        change = {**change, "local": Local(value, lambda z, u, label: z[:2], curvature)}
    with pytest.raises(ValueError, match=message):
        replace(model, **change)


def logarithm(z: Array, u: Array, label: int) -> float:
    """No number for half of the draws."""
    return float(np.log(z[0]))


def its_slope(z: Array, u: Array, label: int) -> Array:
    """Not its derivative, but with the same domain."""
    return np.array([np.log(z[0])])


def its_curvature(z: Array, u: Array, label: int) -> Array:
    """Likewise."""
    return np.array([[np.log(z[0])]])


@pytest.mark.filterwarnings("error")
def test_local_functions_that_are_not_finite_are_named() -> None:
    """The drift was NaN without a word, and errors named the statistics or the step size."""
    local = Local(logarithm, its_slope, its_curvature)
    bad = ProjectionModel(local, [[1.0], [-1.0]], [0.5, 0.5], 4.0, 20)
    statistics, point, sample = bad.initial_statistics(), bad.initial(rng=0), bad.sample(9, rng=0)
    slope, value = (
        rf"local\.{name} must be finite, got {got} at z = \[-\d+\.\d+\] and label 0"
        for name, got in (("slope", r"\[nan\]"), ("value", "nan"))
    )
    for call in (bad.drift, bad.volatility):
        with pytest.raises(FloatingPointError, match=slope):
            call(statistics, c_delta=1.0)
    with pytest.raises(FloatingPointError, match=value):
        bad.population_loss(statistics)
    with pytest.raises(FloatingPointError, match=r"local\.value must be finite, got nan at z = "):
        bad.loss(point, sample)
    with pytest.raises(FloatingPointError, match=r"local\.slope must be finite, got "):
        bad.gradient(point, sample)
    with pytest.raises(FloatingPointError, match=rf"the solver stopped near 0: {slope}"):
        ode.solve(bad, statistics, [0.0, 1.0], c_delta=1.0)
    with pytest.raises(Diverged, match=rf"^{slope}; the iterates left the finite numbers"):
        sgd.reduced.run(bad, statistics, [0.0, 10.0], step_size=0.05, rng=0)
    with pytest.raises(Diverged, match=r"^replica 0 of 2: local\.slope must be finite"):
        sgd.direct.run_replicas(bad, [0.0, 10.0], step_size=0.05, replicas=2, rng=0)


def quartic(z: Array, u: Array, label: int) -> float:
    """A loss on which large steps diverge."""
    return float(z[0] ** 4 / 4)


def cubic(z: Array, u: Array, label: int) -> Array:
    """Its slope."""
    return np.array([z[0] ** 3])


def square(z: Array, u: Array, label: int) -> Array:
    """Its curvature."""
    return np.array([[3 * z[0] ** 2]])


@pytest.mark.parametrize("times", [[0.0, 30.0], np.arange(0.0, 30.0, 1.5)])
def test_a_step_that_is_too_large_is_blamed_itself(times: Any) -> None:
    """The slope overflows too where the iterates have long diverged."""
    model = ProjectionModel(Local(quartic, cubic, square), [[1.0], [-1.0]], [0.5, 0.5], 4.0, 50)
    with pytest.raises(Diverged, match=r"^step_size = 1\.5 makes the iterates diverge"):
        sgd.direct.run(model, model.initial(rng=0), times, step_size=1.5, rng=0)


def test_bad_calls(model: ProjectionModel, statistics: Statistics) -> None:
    """Shapes, labels, rules and blocks out of range."""
    data = model.sample(4, rng=0)
    with pytest.raises(ValueError, match=r"point\.x"):
        model.loss(Point(np.zeros((2, 3)), np.empty(0)), data)
    with pytest.raises(ValueError, match=r"sample.labels must be at least one and lie in \[0, 1\]"):
        model.loss(model.initial(rng=0), data._replace(labels=data.labels + 2))
    with pytest.raises(ValueError, match=r"rule must have dimension k \+ K = 4"):
        model.drift(statistics, rule=gauss_hermite(2, 4), c_delta=0.0)
    with pytest.raises(ValueError, match="block"):
        model.factors("hessian", (2, 0), model.initial(rng=0), data)
    with pytest.raises(ValueError, match="dimension must be greater than k"):
        replace(model, dimension=4).reduced_kernel()


def test_volatility_of_the_mixture(
    model: ProjectionModel, known: KGaussianMixture, statistics: Statistics
) -> None:
    """Against the covariance of a step of the mixture written out."""
    there: Any = type(known.initial_statistics())(statistics.m, statistics.R_perp)
    theirs = volatility(known, there, c_delta=1.5, rule=RULE)
    mine = model.volatility(statistics, c_delta=1.5, rule=RULE)
    np.testing.assert_allclose(mine, theirs, atol=1e-8)
