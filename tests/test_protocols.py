"""The protocols of problems and models: what they list is all that the rooms ask for."""

from __future__ import annotations

import types
from typing import Any, Protocol

import numpy as np
import pytest

from companion.lazy_training.tangent_kernel.network import Network
from companion.sample_complexity.information_exponent.models import phase_retrieval
from traindyn import catapults, conformance
from traindyn.activations import ERF
from traindyn.catapults import TwoLayerModel
from traindyn.catapults.training import Trainable
from traindyn.effective import fixed_points, linear_noise, ode, one_step
from traindyn.gaussian import gauss_hermite
from traindyn.kernels import training
from traindyn.problems import KGaussianMixture, SpikedTensor, TwoLayerMixture
from traindyn.problems.base import Dynamics, LimitDynamics, NoisyDynamics, Problem
from traindyn.sgd import direct, reduced
from traindyn.spectra import blocks, concentration, film, population, predict
from traindyn.spectra.blocks import SharedForward


def members(protocol: type) -> set[str]:
    """Names that a protocol lists."""
    return {
        name
        for base in protocol.__mro__
        if base not in (object, Protocol) and getattr(base, "_is_protocol", False)
        for name in vars(base)
        if not name.startswith("_") or name == "__call__"
    }


def only(protocol: type, problem: Any) -> Any:
    """Return an object that has what the protocol lists, taken from another, and nothing else."""

    def hand_on(name: str) -> Any:
        if not callable(getattr(problem, name)):
            return property(lambda self: getattr(problem, name))

        def method(self: Any, *arguments: Any, **options: Any) -> Any:
            result = getattr(problem, name)(*arguments, **options)
            if name != "embed":
                return result
            small, point = result
            return only(protocol, small), point

        return method

    return types.new_class(
        "Only",
        (),
        {},
        lambda body: body.update({name: hand_on(name) for name in members(protocol)}),
    )()


MIXTURES = [
    KGaussianMixture.orthonormal(3, 12, precision=10.0, ridge=0.1),
    TwoLayerMixture.binary(2, 12, precision=10.0, ridge=0.1),
]


@pytest.mark.parametrize("mixture", MIXTURES, ids=["k_gmm", "two_layer"])
def test_dynamics_are_all_that_simulation_and_limits_need(mixture):
    """A problem written after the protocol would be refused by a room."""
    problem = only(Dynamics, mixture)
    assert isinstance(problem, Dynamics) and not isinstance(problem, LimitDynamics)
    start = problem.initial(rng=1)
    times = [0.0, 0.5, 1.0]
    direct.run(problem, start, times, step_size=0.05, rng=2)
    direct.run_replicas(problem, times, step_size=0.05, replicas=2, rng=2)
    statistics = problem.statistics(start)
    reduced.run(problem, statistics, times, step_size=0.05, rng=2)
    reduced.run_replicas(problem, times, step_size=0.05, replicas=2, rng=2)
    ode.solve(problem, problem.initial_statistics(), times, c_delta=0.5)
    for begin in (start, statistics):
        one_step.measure(problem, begin, step_size=0.05, samples=10, rng=2)
    limit = only(LimitDynamics, mixture)
    ode.solve_limit(limit, limit.initial_statistics(), times)


def test_fixed_points_need_no_more():
    """Newton's method could ask for members that no protocol lists."""
    fixed_points.find(only(Dynamics, MIXTURES[0]), c_delta=0.5)
    fixed_points.find(only(LimitDynamics, MIXTURES[0]), limit=True)


NOISY = [MIXTURES[1], SpikedTensor(3, 12, signal=5.0), phase_retrieval(12)]


@pytest.mark.parametrize("full", NOISY, ids=["two_layer", "spiked", "teacher"])
def test_fluctuations_need_the_covariance_of_a_step(full):
    """It had three signatures, and was in no protocol."""
    problem = only(NoisyDynamics, full)
    assert isinstance(problem, NoisyDynamics)
    path = ode.solve(problem, problem.initial_statistics(), [0.0, 0.1, 0.2, 0.3], c_delta=0.5)

    def volatility(statistics: Any) -> Any:
        return problem.volatility(statistics, rule=None, c_delta=0.5)

    size = len(volatility(problem.initial_statistics()))
    found = linear_noise(
        path,
        [0.0, 0.2],
        drift=lambda statistics: problem.drift(statistics, rule=None, c_delta=0.5),
        volatility=volatility,
        start=np.zeros((size, size)),
        c_delta=0.5,
    )
    assert (found.covariance()[-1].diagonal() >= 0).all()


@pytest.mark.parametrize("mixture", MIXTURES, ids=["k_gmm", "two_layer"])
def test_problems_are_all_that_spectra_need(mixture):
    """Members that no protocol listed were asked for by the predicted spectra."""
    problem = only(Problem, mixture)
    assert isinstance(problem, Problem)
    point, sample = problem.initial(rng=1), problem.sample(40, rng=2)
    block = problem.blocks[0]
    blocks.operator(problem, "hessian", block, point, sample)
    blocks.full(problem, "g_matrix", point, sample)
    statistics, rule = problem.statistics(point), gauss_hermite(problem_dimension(problem), 5)
    population.block(problem, statistics, "hessian", block, rule=rule)
    population.full(problem, statistics, "g_matrix", rule=rule)
    concentration.large_sample_distance(problem, statistics, "hessian", block, rule=rule)
    concentration.large_sample_distance(problem, statistics, "hessian", rule=rule)
    predict.block(problem, statistics, "hessian", block, sample_ratio=5.0, rule=rule)
    path = direct.run(problem, point, [0.0, 0.1], step_size=0.05, rng=2, snapshots=True)
    seen = film.film(problem, path, sample)
    predicted = predict.along(problem, path, sample_ratio=40 / problem.dimension, rule=rule)
    assert seen.blocks == predicted.blocks
    report = conformance.check(problem, rng=3)
    assert report.passed, report


def problem_dimension(problem: Any) -> int:
    """Dimension in which the problem is embedded."""
    return int(problem.embed(problem.statistics(problem.initial(rng=1)))[0].dimension)


@pytest.mark.parametrize("mixture", MIXTURES, ids=["k_gmm", "two_layer"])
def test_a_forward_pass_is_all_that_a_block_needs(mixture):
    """A problem that knows all blocks at once would have to know each of them alone too."""

    class Shared:
        """With one forward pass, the list of blocks, and nothing else."""

        forward = staticmethod(mixture.forward)
        blocks = mixture.blocks

    assert members(SharedForward) == {"forward"} and isinstance(Shared(), SharedForward)
    point, sample = mixture.initial(rng=1), mixture.sample(40, rng=2)
    for block in mixture.blocks:
        shared, alone = (
            blocks.operator(problem, "hessian", block, point, sample).dense()
            for problem in (Shared(), only(Problem, mixture))
        )
        np.testing.assert_allclose(shared, alone, rtol=1e-12)


def test_trainable_is_all_that_training_needs():
    """A model written after the protocol would be refused, or trained in another way."""
    start = TwoLayerModel.initial(8, 3, rng=0)
    whole = TwoLayerModel(start)
    inputs = np.random.default_rng(1).normal(size=(6, 3))
    labels = np.sign(inputs[:, 0])
    runs = [
        catapults.train(
            model,
            start,
            inputs,
            labels,
            step_size=0.1,
            steps=6,
            batch_size=3,
            validation=(inputs[:2], labels[:2]),
            every=3,
            leading=2,
            track=True,
            rng=2,
        )
        for model in (whole, only(Trainable, whole))
    ]
    # The whole model makes several steps in one call, the other step after step.
    np.testing.assert_allclose(runs[1].losses, runs[0].losses, rtol=1e-12)
    np.testing.assert_allclose(runs[1].critical_steps, runs[0].critical_steps, rtol=1e-12)


def test_models_are_all_that_the_linearisation_needs():
    """Kernels could ask a network for more than its outputs and their derivatives."""
    network = Network((2, 8, 1), ERF)
    start = network.initial(rng=0)
    inputs = np.random.default_rng(1).normal(size=(4, 2))
    options = {"step_size": 0.1, "fresh": inputs[:2] + 1}
    model = only(training.Linearisable, network)
    for more in (options, {}):
        found = training.compare(model, start, inputs, inputs[:, 0], [0.0, 0.5], **more)
        assert np.isfinite(found.statistics.deviation).all()


def test_architectures_are_all_that_a_model_needs():
    """A model could look into an architecture, and refuse all but those of its own module."""
    pytest.importorskip("jax")
    from traindyn.deep import models
    from traindyn.deep.architectures import Architecture

    whole = models.perceptron([3, 8, 1], biases=True)
    model = models.Model(only(Architecture, whole.architecture))
    start = model.initial(rng=0)
    inputs = np.random.default_rng(1).normal(size=(6, 3))
    runs = [
        catapults.train(each, start, inputs, inputs[:, 0], step_size=0.1, steps=4, every=2)
        for each in (whole, model)
    ]
    np.testing.assert_allclose(runs[1].losses, runs[0].losses, rtol=1e-12)
    batch = model.prepare(inputs)
    np.testing.assert_allclose(
        model.tangent_kernel(start, batch), whole.tangent_kernel(start, batch), rtol=1e-10
    )


def test_connections_are_all_that_a_network_needs():
    """Norms of Hessians could ask a layer for more than its connection."""
    jax = pytest.importorskip("jax")
    from traindyn import deep
    from traindyn.deep.connections import Connection, Dense
    from traindyn.deep.network import Network, layer

    whole = deep.fully_connected([3, 8, 1], activation="tanh")
    layers = []
    for index, one in enumerate(whole.layers):
        connection = only(Connection, Dense(one.connection.size, one.connection.fan))
        jax.tree_util.register_static(type(connection))
        layers.append(layer(connection, [index], one.activations))
    network = Network(3, tuple(layers))
    weights, points = network.initial(rng=0), np.ones((2, 3))
    found, expected = (
        (
            each.values(weights, points),
            deep.gradients(each, weights, points),
            deep.tangent_kernel(each, weights, points),
            deep.hessian_norms(each, weights, points[0]).norms,
        )
        for each in (network, whole)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
