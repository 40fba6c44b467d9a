"""Bad input for dynamical mean-field theory and its thresholds."""

from __future__ import annotations

from functools import cache

import pytest
from harness import Case, collect, without_example

from companion.phase_transitions.thresholds.success import SETTINGS
from traindyn.dmft import MeanField, OverlapLaw, solve
from traindyn.dmft.overlap import overlap_law
from traindyn.gaussian import gauss_hermite
from traindyn.problems.multi_index import MultiIndex

PROBLEM = MultiIndex()
STEEP = MultiIndex(second_layer=[8.0])
DELTAS = [4.0, 5.0, 6.0, 7.0]


@cache
def _solution() -> MeanField:
    return solve(
        PROBLEM, 1, sample_ratio=4.0, step_size=0.5, rng=0, paths=256, replicas=2, moments=True
    )


@cache
def _law() -> OverlapLaw:
    return overlap_law(_solution())


RULE = gauss_hermite(2, 21)
EXAMPLES = {
    "companion.phase_transitions.thresholds.bounds.price": lambda: {
        "weights": [-1.0, 0.5, 2.0], "coordinate": [1.5, 0.5, -1.0], "labels": [1.0, 0.2, 0.5],
        "sample_ratio": 2.0, "probabilities": [0.25, 0.25, 0.5], "cells": 2,
    },
    "companion.phase_transitions.thresholds.minimum.informed_minimum": lambda: {
        "problem": STEEP, "sample_ratio": 40.0,
    },
    "companion.phase_transitions.thresholds.minimum.informed_branch": lambda: {
        "problem": STEEP, "sample_ratios": [40.0, 30.0],
    },
    "companion.phase_transitions.thresholds.minimum.blind_overlap": lambda: {
        "problem": STEEP, "sample_ratio": 4.0,
    },
    "companion.phase_transitions.thresholds.success.Setting.sample_ratios": lambda: (
        SETTINGS["quadratic"], {"dimension": 50},
    ),
    "companion.phase_transitions.thresholds.success.count": lambda: {
        "settings": ["quadratic"], "dimensions": [50], "runs": 20, "rng": 0, "store": None,
        "workers": 1, "progress": False,
    },
    "companion.phase_transitions.thresholds.success.recorded": lambda: {
        "setting": "quadratic", "dimension": 50,
    },
    "companion.phase_transitions.generality.beside.overlap_law_beside": lambda: {
        "solution": _solution(), "hard": [[1.0]],
    },
    "companion.phase_transitions.generality.joint.joint_outlier": lambda: {
        "weights": [[[-0.5]], [[0.5]], [[1.0]]], "features": [[1.5], [0.5], [-1.0]],
        "sample_ratio": 2.0,
    },
    "companion.phase_transitions.generality.kernel.kernel_gradients": lambda: {
        "inputs": [[1.0, 0.5], [-0.5, 1.0], [0.2, -1.0]], "labels": [1.0, 0.0, 0.5], "ridge": 0.1,
    },
    "companion.phase_transitions.generality.kernel.field_variance": lambda: {
        "sample_ratio": 2.0, "ridge": 0.1,
    },
    "companion.phase_transitions.generality.start.small_start": lambda: {"problem": PROBLEM},
    "dmft.kernels.MeanField.hard_subspace": lambda: (
        _solution(), {"step": 1, "neuron": 0, "hard": [[1.0]], "side": "left", "replica": 0},
    ),
    "dmft.kernels.MeanField.statistic": lambda: (
        _solution(), {"step": 1, "neuron": 0, "hard": [[1.0]]},
    ),
    "dmft.kernels.hard_basis": lambda: {"problem": PROBLEM, "hard": [[1.0]]},
    "dmft.kernels.solve": lambda: {
        "problem": PROBLEM, "steps": 1, "sample_ratio": 4.0, "step_size": 0.5, "rng": 0, "paths": 64,
        "replicas": 1, "keep": [0], "radius": 1.0, "star": "parts", "floor": 1e-4,
        "moments": False, "fresh": False, "memory": 1.0, "noise": 1.0, "workers": 1,
    },
    "companion.phase_transitions.grokking.many_samples": lambda: {
        "problem": PROBLEM, "steps": 2, "step_size": 0.5, "rule": RULE,
    },
    "companion.phase_transitions.mean_field.measure": lambda: {
        "problem": PROBLEM, "data": PROBLEM.sample(6, 3, rng=0),
        "start": PROBLEM.initial(3, rng=1), "steps": 2, "step_size": 0.5, "probes": [0, 1],
        "rng": 2,
    },
    "dmft.overlap.OverlapLaw.sample": lambda: (_law(), {"count": 2, "rng": 0}),
    "dmft.overlap.overlap_law": lambda: {"solution": _solution()},
    "dmft.proximal.proximal": lambda: {
        "problem": STEEP, "labels": [0.5, 2.0], "points": [0.2, -0.3], "kappa": 0.01,
        "start": [0.2, -0.3],
    },
    "dmft.stable.stable_limit": lambda: {
        "problem": STEEP, "sample_ratio": 40.0, "rule": RULE, "start": (0.01, 0.02),
    },
    "dmft.stable.stable_threshold": lambda: {
        "problem": STEEP, "start": 6.2, "rule": RULE, "rtol": 1e-2,
    },
    "dmft.curve.crossing": lambda: {"sample_ratios": DELTAS, "statistics": [0.5, 0.8, 1.2, 1.7]},
    "dmft.curve.crossing_window": lambda: {"statistics": [0.5, 0.8, 1.2, 1.7]},
    "dmft.curve.extrapolate": lambda: {
        "times": [1.0, 2.0, 4.0, 8.0, 16.0], "values": [3.0, 2.5, 2.25, 2.12, 2.06],
        "errors": [0.1, 0.1, 0.1, 0.1, 0.1],
    },
    "dmft.curve.half_point": lambda: {
        "sample_ratios": DELTAS, "successes": [1, 6, 14, 19], "trials": [20, 20, 20, 20],
    },
    "dmft.thresholds.initial_threshold": lambda: {
        "problem": PROBLEM, "neuron": 0, "hard": [[1.0]], "radius": 1.0, "rule": RULE,
    },
    "dmft.curve.local_crossing": lambda: {
        "sample_ratios": DELTAS, "statistics": [0.5, 0.8, 1.2, 1.7],
    },
    "dmft.curve.threshold_curve": lambda: {
        "problem": PROBLEM, "steps": [0], "sample_ratios": [1.2, 1.7, 2.2], "step_size": 0.5, "rng": 0,
        "neuron": 0, "hard": [[1.0]], "paths": 256, "replicas": 1, "workers": 1,
    },
}  # fmt: skip
REASONS = dict.fromkeys(
    (
        "dmft.kernels.MeanField", "dmft.overlap.OverlapLaw", "dmft.stable.StableLimit",
        "dmft.curve.Thresholds",
    ),
    "a record of results",
)  # fmt: skip
LENIENT = {
    # No step can be probed then.
    "companion.phase_transitions.mean_field.measure": {"steps": ["0"]},
    "dmft.stable.stable_threshold": {"call": ["slow"]},
}
CASES = collect(
    [
        "dmft",
        "companion.phase_transitions.generality.beside",
        "companion.phase_transitions.generality.joint",
        "companion.phase_transitions.generality.kernel",
        "companion.phase_transitions.generality.start",
        "companion.phase_transitions.grokking",
        "companion.phase_transitions.mean_field",
        "companion.phase_transitions.thresholds.bounds",
        "companion.phase_transitions.thresholds.minimum",
        "companion.phase_transitions.thresholds.success",
    ],
    EXAMPLES,
    REASONS,
    LENIENT,
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_by_name(case: Case) -> None:
    """One argument spoilt: an error that names it, or a result without NaN."""
    assert case.defects() == []


@pytest.mark.nightly
@pytest.mark.parametrize("case", [each for each in CASES if "call" in each.lenient], ids=str)
def test_slow_calls_share_nothing(case: Case) -> None:
    """Arrays of the caller's, or calls in other threads, could change a result."""
    assert case.shared() == []


def test_every_public_callable_has_an_example_or_a_reason() -> None:
    """Nothing public is left out without a word."""
    assert without_example(CASES) == []
