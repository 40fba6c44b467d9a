"""Thresholds at late times, from gradient descent without its hard components.

The mean-field equations cost the cube of the number of steps. Gradient descent on the null branch
(:mod:`traindyn.sgd.full_batch`) has the same pairs of weights and hard coordinates up to O(1/d),
at a cost that is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import RNG
from traindyn.dmft.curve import Thresholds, crossing, crossing_window
from traindyn.dmft.kernels import hard_basis
from traindyn.gaussian import gauss_hermite
from traindyn.laws import HardSubspace
from traindyn.parallel import map_ordered
from traindyn.problems.multi_index import MultiIndex
from traindyn.sgd import full_batch

__all__ = ["null_branch_curve"]


def null_branch_curve(
    problem: MultiIndex,
    steps: Sequence[int],
    sample_ratios: ArrayLike,
    *,
    dimension: int,
    step_size: float,
    rng: RNG,
    neuron: int | None = None,
    hard: ArrayLike | None = None,
    replicas: int = 8,
    workers: int | None = None,
) -> Thresholds:
    """Thresholds at late times, from gradient descent on the null branch in finite dimension.

    Parameters
    ----------
    problem : MultiIndex
        With hard directions, and weights of the Hessian that are bounded below.
    steps : sequence of int
        Increasing.
    sample_ratios : array_like, shape (D,)
        Increasing, at least three; a step whose threshold they do not bracket is NaN.
    dimension : int
        The criterion is off by O(1/dimension).
    step_size : float
        As in :func:`traindyn.sgd.full_batch.run`.
    rng : int, SeedSequence or Generator
        Each replica has the same numbers at every ratio.
    neuron, hard
        As for :func:`~traindyn.dmft.curve.threshold_curve`.
    replicas : int, default 8
        At least two.
    workers : int, optional
        As in :func:`traindyn.parallel.map_ordered`.

    Returns
    -------
    Thresholds
        Where the mean criterion reaches one, with the jackknife's error over replicas.

    Raises
    ------
    ValueError
        If an argument is out of range, the weights are unbounded below, or nothing is hard.
    FloatingPointError
        If gradient descent diverges.
    """
    grid = _validate.frozen(_validate.increasing("sample_ratios", sample_ratios))
    if grid.size < 3 or grid[0] <= 0:
        raise ValueError(f"sample_ratios must be at least three positive numbers, got {grid}")
    basis = hard_basis(problem, hard)
    problem.require_bounded_curvature()
    wanted = _validate.integers("steps", steps, least=0, shape=(None,)).tolist()
    if not wanted:
        raise ValueError("steps must not be empty")
    dimension = _validate.integer("dimension", dimension, least=problem.k)
    step_size = _validate.positive("step_size", step_size)
    number = _validate.integer("replicas", replicas, least=2)
    # Common random numbers: every ratio starts each replica's generator anew.
    seeds = _validate.generator("rng", rng).bit_generator.seed_seq.spawn(number)  # type: ignore[attr-defined]
    neurons = range(problem.width) if neuron is None else (neuron,)
    # Only the neurons are looked at, not the losses that come with them.
    crude = gauss_hermite(problem.k + problem.width + (problem.target.noise > 0), 2)

    def one(item: tuple[float, int]) -> list[float]:
        ratio, replica = item
        generator = np.random.default_rng(seeds[replica])
        start = problem.initial(dimension, rng=generator)
        n = max(1, round(ratio * dimension))
        data = problem.sample(n, dimension, rng=generator, dtype=np.float32)
        times = step_size * np.array(wanted, dtype=np.float64)
        found = full_batch.run(
            problem, data, start, times, step_size=step_size, null=basis, snapshots=True, rule=crude
        )
        assert found.trajectory.snapshots is not None
        labels = data.labels.astype(np.float64)
        coordinates = data.inputs[:, : problem.k].astype(np.float64) @ basis
        criteria = []
        for theta in found.trajectory.snapshots.neurons:
            preactivations = (data.inputs @ theta.astype(np.float32)).astype(np.float64)
            weights = problem.block_weights(preactivations, labels)
            criteria.append(
                max(
                    HardSubspace(weights[:, j], coordinates, n / dimension).statistic
                    for j in neurons
                )
            )
        return criteria

    items = list(product(grid.tolist(), range(number)))
    rows = map_ordered(one, items, workers=workers)
    statistics = np.array(rows).reshape(grid.size, number, len(wanted)).transpose(0, 2, 1)
    values, errors = np.full((2, len(wanted)), np.nan)
    for i in range(len(wanted)):
        columns = statistics[:, i]
        left_out = (columns.sum(axis=1, keepdims=True) - columns) / (number - 1)
        if left_out[0].max() < 1 < left_out[-1].min():
            mean = columns.mean(axis=1)
            # One window for all: a root must not jump because a replica is left out.
            near = crossing_window(mean)
            values[i] = crossing(grid[near], mean[near])
            roots = np.array([crossing(grid[near], column[near]) for column in left_out.T])
            errors[i] = np.sqrt((number - 1) * roots.var())
    return Thresholds(np.array(wanted), values, errors, grid, statistics)
