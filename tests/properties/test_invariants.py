"""What holds for every input: symmetries, positivity, and pairs of functions that undo each other.

The inputs are drawn, the same in every run; each test has a control that the property excludes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import FIXED
from hypothesis import given, settings
from hypothesis import strategies as st

from companion.alignment.xor_rank import counting
from companion.foundations.double_descent.risk import LinearModel
from companion.foundations.implicit_bias.margin import max_margin
from companion.sample_complexity.information_exponent import links
from traindyn import diffusion, gaussian, linalg, relu
from traindyn.problems import KGaussianMixture, TwoLayerMixture, chain
from traindyn.problems.base import Sample
from traindyn.problems.population_block import PopulationBlock
from traindyn.problems.regression import LeastSquares
from traindyn.sgd import reduced
from traindyn.trajectory import stack

FEW = settings(FIXED, max_examples=25)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 5)
positive = st.floats(0.1, 5.0)


def _covariance(rng: np.random.Generator, size: int, rank: int | None = None) -> Any:
    root = rng.standard_normal((size, size if rank is None else rank))
    return root @ root.T


def _rotation(rng: np.random.Generator, size: int) -> Any:
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


# --- Expectations -------------------------------------------------------------------------------


@FEW
@given(seeds, sizes)
def test_square_root_turns_with_its_matrix(seed: int, size: int) -> None:
    """The root squares to the matrix, is positive, and that of a turned matrix is the turned."""
    rng = np.random.default_rng(seed)
    cov, turn = _covariance(rng, size, max(1, size - 1)), _rotation(rng, size)
    root = gaussian.symmetric_sqrt(cov)
    np.testing.assert_allclose(root @ root, cov, atol=1e-10)
    assert np.linalg.eigvalsh(root)[0] >= -1e-12
    turned = gaussian.symmetric_sqrt(turn @ cov @ turn.T)
    np.testing.assert_allclose(turned, turn @ root @ turn.T, atol=1e-5)
    if size > 1:  # control: turning one side alone is not enough
        assert np.abs(turn @ root - turned).max() > 1e-4


@FEW
@given(seeds, st.integers(1, 3), positive)
def test_expectations_are_linear_and_positive(seed: int, dim: int, factor: float) -> None:
    """Of any function with values of any shape."""
    rule = gaussian.gauss_hermite(dim, 4)
    first, second = np.random.default_rng(seed).standard_normal((2, rule.size, 2))
    both = rule.expect(first + factor * second)
    np.testing.assert_allclose(both, rule.expect(first) + factor * rule.expect(second), atol=1e-12)
    assert np.all(rule.expect(np.square(first)) >= 0)
    assert np.all(rule.expect(np.square(first)) > np.square(rule.expect(first)))  # control: Jensen


@FEW
@given(seeds, st.integers(2, 4), positive)
def test_rectified_moments_scale_and_are_positive(seed: int, size: int, factor: float) -> None:
    """E g(z) g(z)^T is positive semi-definite, of degree two, and permutes with z."""
    rng = np.random.default_rng(seed)
    mean, cov = rng.standard_normal(size), _covariance(rng, size)
    moment = relu.second_moment(mean, cov)
    assert np.linalg.eigvalsh(moment)[0] >= -1e-10
    scaled = relu.second_moment(factor * mean, factor**2 * cov)
    np.testing.assert_allclose(scaled, factor**2 * moment, rtol=1e-9, atol=1e-12)
    order = rng.permutation(size)
    mixed = relu.second_moment(mean[order], cov[np.ix_(order, order)])
    np.testing.assert_allclose(mixed, moment[np.ix_(order, order)], atol=1e-12)
    # Control: the other sign of z has the rest of the second moment.
    rest = relu.second_moment(-mean, cov)
    whole = np.diag(cov + np.outer(mean, mean))
    np.testing.assert_allclose(np.diag(moment + rest), whole, rtol=1e-9)
    assert np.all(np.diag(rest) > 0)


@FEW
@given(seeds, st.integers(2, 8))
def test_hermite_polynomials_are_orthonormal(seed: int, count: int) -> None:
    """Products of two expansions have the expectation that `series` says."""
    rule = links.line_rule()
    table = links.hermite_table(rule.nodes[:, 0], count)
    np.testing.assert_allclose(
        rule.expect(table[:, :, None] * table[:, None]), np.eye(count), atol=1e-9
    )
    first, second = np.random.default_rng(seed).standard_normal((2, count))
    mean = rule.expect((table @ first) * (table @ second))
    assert links.series(first, second, 1.0) == pytest.approx(mean, abs=1e-9)
    assert links.series(first, second, 0.0) == pytest.approx(first[0] * second[0])  # control


# --- Linear algebra -----------------------------------------------------------------------------


@FEW
@given(seeds, st.integers(3, 8), st.integers(1, 2))
def test_alignment_is_a_share_that_no_basis_changes(seed: int, size: int, rank: int) -> None:
    """Between zero and one, the same in every orthonormal basis of the space and after turning."""
    rng = np.random.default_rng(seed)
    basis = _rotation(rng, size)[:, :rank]
    vector = rng.standard_normal(size)
    found = linalg.alignment(vector, basis)
    assert 0 <= found <= 1
    turn = _rotation(rng, size)
    for other in (basis @ _rotation(rng, rank), -basis):
        assert linalg.alignment(vector, other) == pytest.approx(found, abs=1e-12)
    assert linalg.alignment(turn @ vector, turn @ basis) == pytest.approx(found, abs=1e-12)
    assert linalg.alignment(basis[:, 0], basis) == pytest.approx(1.0)  # control: the largest


@FEW
@given(seeds, st.integers(3, 6), st.floats(-2.0, 2.0))
def test_population_block_is_its_matrix(seed: int, size: int, shift: float) -> None:
    """Products and eigenvalues of a block are those of the matrix it stands for."""
    rng = np.random.default_rng(seed)
    block = PopulationBlock(shift, rng.standard_normal((size, 2)), _covariance(rng, 2))
    dense, vectors = block.dense(), rng.standard_normal((size, 3))
    np.testing.assert_allclose(block.matmat(vectors), dense @ vectors, atol=1e-10)
    wanted = np.linalg.eigvalsh(dense)
    np.testing.assert_allclose(np.sort(block.eigenvalues()), wanted, atol=1e-9)
    assert np.trace(dense) == pytest.approx(wanted.sum())
    assert np.linalg.matrix_rank(dense - shift * np.eye(size), tol=1e-9) <= 2  # control


@FEW
@given(seeds, st.integers(2, 12))
def test_counting_looks_at_values_alone(seed: int, size: int) -> None:
    """What lies outside an interval is not inside it, in any order."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(size)
    low, high = np.sort(rng.standard_normal(2))
    outside = counting.outside(values, low, high)
    assert outside == np.count_nonzero((values < low) | (values > high))
    assert counting.outside(rng.permutation(values), low, high) == outside
    assert counting.outside(values, values.min(), values.max()) == 0
    assert counting.outside(values, values.max() + 1, values.max() + 2) == size  # control


# --- Diffusions and paths -----------------------------------------------------------------------


@FEW
@given(seeds, sizes, positive, positive)
def test_linear_diffusion_forgets_when_it_was_stopped(
    seed: int, size: int, first: float, second: float
) -> None:
    """The covariance after two times is that after the second, begun with that of the first."""
    rng = np.random.default_rng(seed)
    matrix = 0.3 * rng.standard_normal((size, size)) - np.eye(size)
    equation = diffusion.LinearDiffusion(tuple("abcde"[:size]), matrix, _covariance(rng, size))
    start = _covariance(rng, size)
    half, whole = equation.covariance([first, first + second], start)
    assert np.linalg.eigvalsh(whole)[0] >= -1e-10
    (again,) = equation.covariance([second], half)
    np.testing.assert_allclose(again, whole, rtol=1e-9, atol=1e-10)
    (fresh,) = equation.covariance([second], start)
    assert np.abs(fresh - whole).max() > 1e-9  # control: the first time counts


@settings(FIXED, max_examples=10)
@given(seeds, st.floats(0.01, 1.0), st.sampled_from([2, 3]))
def test_reduced_states_stay_admissible(seed: int, step_size: float, k: int) -> None:
    """After steps of any size the Gram matrix is positive, and replicas come apart and together."""
    problem = KGaussianMixture.orthonormal(k, 3 * k, precision=2.0, ridge=0.1)
    times = step_size * np.array([0, 1, 7])
    path = reduced.run_replicas(problem, times, step_size=step_size, replicas=3, rng=seed)
    lowest = np.linalg.eigvalsh(path.statistics.R_perp)[..., 0]
    assert np.all(lowest >= -1e-10)
    assert np.all(np.linalg.eigvalsh(path.statistics.R_perp)[:, -1, -1] > 0)  # control: not zero
    np.testing.assert_allclose(path.times, times)
    again = stack([path.replica(i) for i in (0, 1, 2)])
    for one, other in zip(again.statistics, path.statistics, strict=True):
        np.testing.assert_array_equal(one, other)
    for n, t in enumerate(times):
        np.testing.assert_allclose(path.at(t).m, path.statistics.m[:, n], atol=1e-12)


# --- Problems -----------------------------------------------------------------------------------

MIXTURES = [
    KGaussianMixture.orthonormal(3, 7, precision=4.0, ridge=0.1),
    TwoLayerMixture.xor(4, 6, precision=4.0, ridge=0.1),
]


def _turned(problem: Any, point: Any, sample: Sample, turn: Any) -> tuple[Any, Sample]:
    """Turn all coordinates beside the signal space."""
    whole = np.eye(problem.dimension)
    beside = problem.dimension - len(turn)
    whole[beside:, beside:] = turn
    neurons = point._fields[-1]
    moved = point._replace(**{neurons: getattr(point, neurons) @ whole.T})
    return moved, Sample(sample.inputs @ whole.T, sample.labels)


@pytest.mark.parametrize("problem", MIXTURES, ids=lambda each: type(each).__name__)
@FEW
@given(seed=seeds)
def test_mixtures_do_not_see_rotations_of_the_noise(problem: Any, seed: int) -> None:
    """Statistics and losses are the same, and the gradient turns with the point."""
    rng = np.random.default_rng(seed)
    point, sample = problem.initial(rng=rng), problem.sample(5, rng=rng)
    signal = 3 if isinstance(problem, KGaussianMixture) else 2
    turn = _rotation(rng, problem.dimension - signal)
    moved, turned = _turned(problem, point, sample, turn)
    np.testing.assert_allclose(problem.loss(moved, turned), problem.loss(point, sample), atol=1e-12)
    for one, other in zip(problem.statistics(moved), problem.statistics(point), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    gradient, _ = _turned(problem, problem.gradient(point, sample), sample, turn)
    for one, other in zip(problem.gradient(moved, turned), gradient, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    # Control: the point alone is seen to turn.
    assert np.abs(problem.loss(moved, sample) - problem.loss(point, sample)).max() > 1e-6


@pytest.mark.parametrize("problem", MIXTURES, ids=lambda each: type(each).__name__)
@FEW
@given(seed=seeds)
def test_statistics_survive_every_round_trip(problem: Any, seed: int) -> None:
    """Through the smallest problem with them, and through the state of the reduced chain."""
    statistics = problem.draw_initial_statistics(rng=seed)
    small, point = problem.embed(statistics)
    assert small.dimension <= problem.dimension
    if isinstance(problem, TwoLayerMixture):
        state = problem.reduced_state(statistics)
    else:
        large = KGaussianMixture.orthonormal(3, 9, precision=4.0, ridge=0.1)
        state = chain.reduced(large, statistics).start
    for back in (small.statistics(point), problem.reduced_statistics(state)):
        for one, other in zip(back, statistics, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)
    other = problem.draw_initial_statistics(rng=seed + 1)  # control: another draw is another
    assert np.abs(other.m - statistics.m).max() > 1e-9


# --- Regression ---------------------------------------------------------------------------------


@FEW
@given(seeds, st.integers(2, 6), st.integers(2, 6), positive)
def test_least_squares_projects_once(seed: int, n: int, p: int, factor: float) -> None:
    """The nearest solution is a stationary point, its own projection, and scales with y."""
    rng = np.random.default_rng(seed)
    x, y, start = rng.standard_normal((n, p)), rng.standard_normal(n), rng.standard_normal(p)
    problem = LeastSquares(x, y)
    nearest = problem.project(start)
    np.testing.assert_allclose(problem.gradient(nearest), 0.0, atol=1e-8)
    np.testing.assert_allclose(problem.project(nearest), nearest, atol=1e-8)
    scaled = LeastSquares(x, factor * y).minimum_norm()
    np.testing.assert_allclose(scaled, factor * problem.minimum_norm(), rtol=1e-7, atol=1e-9)
    assert problem.loss(nearest) <= problem.loss(start) + 1e-12
    assert np.abs(problem.gradient(start)).max() > 1e-6  # control


@FEW
@given(seeds, positive, st.integers(3, 8))
def test_margin_is_the_data_s(seed: int, factor: float, n: int) -> None:
    """Least output one; longer inputs make a longer margin; nothing beats it."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3)) + np.array([4.0, 0.0, 0.0])
    y = np.ones(n)
    found = max_margin(x, y)
    outputs = x @ found.weights
    assert outputs.min() == pytest.approx(1.0, abs=1e-8)
    np.testing.assert_allclose(max_margin(factor * x, y).margin, factor * found.margin, rtol=1e-7)
    rival = found.weights + 0.1 * rng.standard_normal(3)
    rival /= np.linalg.norm(rival)
    assert (x @ rival).min() < found.margin
    assert outputs.max() > 1 + 1e-6  # control: not every input is a support


@FEW
@given(seeds, st.integers(2, 6), st.integers(2, 6))
def test_ridge_trades_variance_for_bias(seed: int, n: int, p: int) -> None:
    """Neither part is negative; with the ridge one falls and the other grows."""
    rng = np.random.default_rng(seed)
    model = LinearModel(rng.standard_normal(p), 0.5)
    risk = model.conditional_risk(rng.standard_normal((n, p)), np.array([0.01, 0.1, 1.0, 10.0]))
    assert np.all(risk.bias >= 0)
    assert np.all(risk.variance >= 0)
    assert np.all(np.diff(risk.variance) < 0)
    assert np.all(np.diff(risk.bias) > -1e-12)
    np.testing.assert_allclose(risk.total, risk.bias + risk.variance)
    assert risk.bias[-1] > risk.bias[0]  # control: not both flat
