"""Critical ratios, precisions and times of outliers: closed forms, and the library's own law."""

from dataclasses import replace

import numpy as np
import pytest

from companion.alignment.beyond.initial import g_threshold
from companion.alignment.transitions import (
    EdgeLaw,
    critical_precision,
    crossing_times,
    edge_law,
)
from traindyn import gaussian
from traindyn.laws import MarchenkoPastur, WeightedMarchenkoPastur
from traindyn.problems import KGaussianMixture
from traindyn.problems.k_gmm import Statistics

PROBLEM = KGaussianMixture.orthonormal(2, 100, precision=4.0, ridge=0.05)
TRAINED = Statistics(0.5 * (2 * np.eye(2) - 1), 0.5 * np.eye(2))


def by_class(weights, masses, precision):
    """Law of weights that the class alone decides, for orthonormal means."""
    spikes = precision * np.eye(len(weights))[:, :, None] * np.eye(len(weights))[:, None, :]
    return EdgeLaw(np.asarray(weights), np.asarray(masses), spikes, float(np.max(weights)))


def test_equal_weights_are_a_spiked_sample_covariance():
    """The closed forms of Baik, Ben Arous and Péché, for a third of the samples in each class."""
    law = by_class(np.full(3, 0.2), np.full(3, 1 / 3), 6.0)
    (critical,) = law.critical_ratios(0)
    assert critical == pytest.approx(1 / 4)
    assert law.edge(4.0) == pytest.approx(0.2 * 3)
    np.testing.assert_allclose(law.margins(4.0), 2 * np.sqrt(4.0))
    closed = MarchenkoPastur(1 / 4.0, 0.2 / 6.0)
    assert law.overlap(4.0, 0) == pytest.approx(closed.overlap(2.0))
    assert law.overlap(0.2, 0) == 0.0


@pytest.mark.parametrize(("k", "precision"), [(3, 10.0), (5, 20.0)])
def test_two_weights_have_the_threshold_of_the_g_matrix_at_the_origin(k, precision):
    """The number that another chapter finds from the poles of the bulk."""
    weights = np.where(np.arange(k) == 0, (1 - 1 / k) ** 2, 1 / k**2)
    law = by_class(weights, np.full(k, 1 / k), precision)
    assert law.critical_ratios(1)[-1] == pytest.approx(g_threshold(k, precision), rel=1e-9)


def test_two_classes_need_the_ratio_of_two_averages():
    """The smallest case: the direction of the sum of the means does not see the weights."""
    law = edge_law(PROBLEM, TRAINED, "hessian", order=40)
    (critical,) = law.critical_ratios(0)
    gamma = law.edge(critical)
    tilted = law.weights / (gamma - law.weights)
    ratio = np.sqrt(law.masses @ tilted**2) / (law.masses @ tilted)
    assert PROBLEM.precision / 2 * np.sqrt(critical) == pytest.approx(ratio)
    assert ratio > 1.1


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_overlaps_and_counts_are_those_of_the_library(matrix):
    """The law of weighted sample covariances, on nodes in all directions of the span."""
    law = edge_law(PROBLEM, TRAINED, matrix, order=30)
    small, point = PROBLEM.embed(TRAINED)
    rule = gaussian.gauss_hermite(small.dimension, 9)
    inputs = (small.means[:, None] + rule.nodes / 2).reshape(-1, small.dimension)
    labels = np.repeat([0, 1], rule.size)
    sample = PROBLEM.sample(1, rng=0)._replace(inputs=inputs, labels=labels)
    parts = small.factors(matrix, (0, 0), point, sample)
    masses = np.tile(rule.weights / 2, 2)
    for alpha in (1.2, 6.0):
        full = WeightedMarchenkoPastur(parts.weights, 1 / alpha, 1 / 4, probabilities=masses)
        outliers = full.outliers(parts.left)
        found = outliers.overlaps[outliers.sides == 1]
        mine = [law.overlap(alpha, rank) for rank in range(np.sum(law.margins(alpha) > 1))]
        np.testing.assert_allclose(found[: len(mine)], mine, atol=0.02)


def test_the_edge_of_a_g_block_is_at_its_largest_weight():
    """Below alpha_0, where the critical ratio is one over a level and the overlap jumps."""
    law = edge_law(PROBLEM, TRAINED, "g_matrix", order=30)
    assert law.edge(0.9 * law.rigid_below) == 1.0
    assert law.edge(1.1 * law.rigid_below) > 1.0
    critical = law.critical_ratios(0)[-1]
    assert critical < law.rigid_below
    assert critical == pytest.approx(1 / law.levels(1.0)[0])
    assert law.overlap(0.999 * critical, 0) == 0.0
    assert law.overlap(1.001 * critical, 0) > 0.2


def test_the_precision_and_the_ratio_are_inverse_to_each_other():
    """At the critical ratio of a precision that precision is the critical one."""
    law = edge_law(PROBLEM, TRAINED, "hessian", order=30)
    other = replace(PROBLEM, precision=1.0)
    found = critical_precision(
        other,
        TRAINED,
        "hessian",
        sample_ratio=law.critical_ratios(0)[0],
        rank=0,
        low=1.0,
        high=20.0,
        order=30,
    )
    assert found == pytest.approx(4.0, rel=1e-6)


def test_times_are_found_in_both_directions():
    """A critical ratio that falls and rises is passed twice."""
    times, ratios = np.linspace(0, 4, 401), np.exp((np.linspace(0, 4, 401) - 2) ** 2)
    np.testing.assert_allclose(crossing_times(times, ratios, np.e), [1.0, 3.0], atol=1e-6)
    assert crossing_times(times, ratios, 0.5).size == 0


def test_bad_input_is_refused():
    """With the name of the argument."""
    law = edge_law(PROBLEM, TRAINED, "hessian", order=4)
    with pytest.raises(ValueError, match="gamma must be at least"):
        law.levels(0.2)
    with pytest.raises(ValueError, match="supremum must not be below"):
        EdgeLaw(law.weights, law.masses, law.spikes, 0.1)
    with pytest.raises(ValueError, match="masses and spikes must have shapes"):
        EdgeLaw(law.weights, np.array([0.5, 0.5]), law.spikes, 0.25)
    with pytest.raises(ValueError, match="statistics must have a non-zero parameter"):
        edge_law(PROBLEM, Statistics(np.zeros((2, 2)), np.zeros((2, 2))), "hessian")
    with pytest.raises(ValueError, match="low and high"):
        critical_precision(
            PROBLEM, TRAINED, "hessian", sample_ratio=1.0, rank=0, low=10.0, high=20.0
        )
