"""The price of a threshold: closed forms, quadrature, and labels in cells."""

import numpy as np
import pytest

from companion.phase_transitions.thresholds.bounds import price
from traindyn.activations import QUADRATIC
from traindyn.dmft import initial_threshold, solve, stable_limit
from traindyn.gaussian import gauss_hermite
from traindyn.problems.multi_index import MultiIndex, delta_alg, phase_retrieval

RULE = gauss_hermite(2, 61)


def start(problem, delta):
    """Price of the Hessian at initialisation, by quadrature."""
    s, v = RULE.nodes.T
    weights = problem.hessian_weights(v[:, None], s**2)[:, 0, 0]
    return price(weights, s, s**2, delta, probabilities=RULE.weights)


@pytest.mark.parametrize("delta", [0.52, 0.6, 1.0, 4.0])
def test_best_weights_pay_nothing(delta):
    """All three factors are one, and the criterion is the bound."""
    s = RULE.nodes[:, 0]
    best = -(s**2 - 1) / (s**2 - 1 + np.sqrt(2 * delta))
    found = price(best, s, s**2, delta, probabilities=RULE.weights)
    assert found[2:] == pytest.approx((1.0, 1.0, 1.0), abs=1e-8)
    assert found.statistic == pytest.approx(np.sqrt(2 * delta), rel=1e-8)


@pytest.mark.parametrize("problem", [MultiIndex(), MultiIndex(activation=QUADRATIC)])
@pytest.mark.parametrize("delta", [0.7, 2.0, 8.0])
def test_factors_multiply_to_the_criterion(problem, delta):
    """The equation behind the bound, and its control: another delta."""
    found = start(problem, delta)
    squared = delta * found.information * found.factor
    assert squared == pytest.approx(found.statistic**2, rel=1e-9)
    assert found.information == pytest.approx(1 / delta_alg(phase_retrieval()).threshold, rel=1e-4)
    assert max(found[2:]) <= 1 + 1e-9 and min(found[2:]) > 0
    assert start(problem, 1.1 * delta).statistic ** 2 > 1.02 * squared


def test_at_the_threshold_the_factors_give_it():
    """delta* = delta_alg / factor, by quadrature at initialisation."""
    delta = initial_threshold(MultiIndex(), rule=RULE)
    assert 0.5 / start(MultiIndex(), delta).factor == pytest.approx(delta, rel=1e-6)


def test_positive_edge_costs_stability():
    """Limit at a = 8: stability below one, as the closed form has it."""
    problem = MultiIndex(second_layer=[8.0])
    limit = stable_limit(problem, 8.0, rule=RULE)
    v = limit.hessian
    s = RULE.nodes[RULE.weights > 1e-18, 0]
    found = price(v._given, s, s**2, 8.0, probabilities=v._masses)
    assert found.stability == pytest.approx(limit.stability, rel=1e-4)
    assert found.stability < 0.9


def test_cells_on_sampled_paths():
    """Cells of labels from sampled paths: the same product up to their width."""
    problem = MultiIndex()
    paths = solve(
        problem, 4, sample_ratio=4.0, step_size=0.5, rng=0, paths=2**13, replicas=1
    ).paths[0]
    weights = problem.block_weights(paths.preactivations[4], paths.labels)[:, 0]
    s = paths.coordinates[:, 0]
    found = price(weights, s, paths.labels, 4.0, cells=300)
    assert 4.0 * found.information * found.factor == pytest.approx(found.statistic**2, rel=0.01)
    # Every label a cell of its own: nothing is left to the preactivation.
    assert price(weights, s, paths.labels, 4.0).share == pytest.approx(1.0)
    assert 0.1 < found.share < 0.95


def test_requests_that_make_no_sense_are_refused():
    """Shapes by name."""
    for call, message in (
        (lambda: price([1.0, 2.0], [1.0], [1.0], 1.0), r"weights must have shape \(1\)"),
        (lambda: price([1.0], [1.0], [1.0, 2.0], 1.0), r"labels must have shape \(1\)"),
        (lambda: price([1.0, -1.0], [0.0, 1.0], [0.0, 1.0], 1.0, cells=0), "cells must be"),
        (lambda: price([1.0], [1.0], [1.0], 0.0), "sample_ratio must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
