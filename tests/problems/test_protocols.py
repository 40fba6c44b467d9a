"""The protocols of problems: what they list is all that the rooms ask for."""

from __future__ import annotations

import types
from typing import Any, Protocol

import numpy as np
import pytest

from companion.sample_complexity.information_exponent.models import phase_retrieval
from traindyn import conformance
from traindyn.effective import fixed_points, linear_noise, ode
from traindyn.gaussian import gauss_hermite
from traindyn.problems import KGaussianMixture, SpikedTensor, TwoLayerMixture
from traindyn.problems.base import Dynamics, LimitDynamics, NoisyDynamics, Problem
from traindyn.sgd import direct, reduced
from traindyn.spectra import blocks, film, population, predict


def members(protocol: type) -> set[str]:
    """Names that a protocol lists."""
    return {
        name
        for base in protocol.__mro__
        if base not in (object, Protocol) and getattr(base, "_is_protocol", False)
        for name in vars(base)
        if not name.startswith("_")
    }


def only(protocol: type, problem: Any) -> Any:
    """Return an object that has what the protocol lists, taken from a problem, and nothing else."""

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
    predict.block(problem, statistics, "hessian", block, sample_ratio=5.0, rule=rule)
    path = direct.run(problem, point, [0.0, 0.1], step_size=0.05, rng=2, snapshots=True)
    film.film(problem, path, sample)
    report = conformance.check(problem, rng=3)
    assert report.passed, report


def problem_dimension(problem: Any) -> int:
    """Dimension in which the problem is embedded."""
    return int(problem.embed(problem.statistics(problem.initial(rng=1)))[0].dimension)
