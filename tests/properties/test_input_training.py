"""Bad input for training, effective dynamics and spectra: refused by the argument's name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import FIXED, Case, collect, judge_drawn, without_example
from hypothesis import given
from hypothesis import strategies as st

from companion.phase_transitions.hessian import conditioning
from traindyn.effective import ode
from traindyn.gaussian import gauss_hermite
from traindyn.problems import KGaussianMixture, multi_index
from traindyn.sgd import direct
from traindyn.spectra import blocks, density, population


def _mixture() -> dict[str, Any]:
    problem = KGaussianMixture.orthonormal(2, 6, precision=5.0, ridge=0.1)
    point = problem.initial(rng=1)
    sample = problem.sample(5, rng=2)
    path = direct.run(problem, point, [0.0, 0.1], step_size=0.05, rng=3, snapshots=True)
    rule = gauss_hermite(2, 4)
    return {
        "problem": problem,
        "point": point,
        "sample": sample,
        "statistics": problem.statistics(point),
        "start": problem.statistics(point),
        "trajectory": path,
        "path": path,
        "rule": rule,
        "matrix": "hessian",
        "block": (0, 0),
        "times": [0.0, 0.1],
        "step_size": 0.05,
        "c_delta": 0.3,
        "sample_ratio": 3.0,
        "replicas": 2,
        "size": 64,
        "rng": 3,
        "operator": blocks.operator(problem, "hessian", (0, 0), point, sample),
        "full": blocks.full(problem, "hessian", point, sample),
        "features": np.ones((3, 2)),
        "vectors": np.ones((6, 2)),
    }


def _spectra() -> dict[str, Any]:
    words = _mixture()
    rule = gauss_hermite(4, 3)
    embedding = population.Embedding(words["problem"], words["statistics"], rule)
    return {**words, "rule": rule, "embedding": embedding}


def _network() -> dict[str, Any]:
    problem = multi_index.MultiIndex(multi_index.targets.phase_retrieval(modulus=False))
    data = problem.sample(6, 4, rng=1)
    neurons = problem.initial(4, rng=2)
    return {
        "problem": problem,
        "data": data,
        "neurons": neurons,
        "path": np.stack([neurons, neurons]),
        "seen": conditioning.seen(problem, data, np.stack([neurons, neurons])),
        "inputs": np.ones((6, 4)),
        "times": [0.0, 0.1],
        "step_size": 0.05,
        "dimension": 4,
        "samples": 6,
        "replicas": 2,
        "steps": [0, 1],
        "sample_ratios": [1.0, 2.0, 4.0],
        "rng": 3,
    }


def _replicas() -> dict[str, Any]:
    kept = ("problem", "times", "step_size", "replicas", "rng")
    return {name: value for name, value in _mixture().items() if name in kept}


def _linear_noise() -> dict[str, Any]:
    problem = KGaussianMixture.orthonormal(2, 6, precision=5.0, ridge=0.1)
    path = ode.solve_limit(problem, problem.initial_statistics(), np.linspace(0.0, 1.0, 5))
    return {
        "path": path,
        "times": [0.0, 0.5, 1.0],
        "drift": problem.limit_drift,
        "volatility": lambda statistics: np.eye(7),
        "start": np.eye(7),
        "c_delta": 0.5,
    }


EXAMPLES: dict[str, Any] = {
    "spectra.population.nodes": lambda: {
        "problem": _mixture()["problem"],
        "rule": gauss_hermite(6, 2),
    },
    "spectra.density.Density.smoothed": lambda: (
        density.estimate(np.diag([1.0, 2.0, 3.0]), rng=1),
        {"points": [1.0, 2.0], "width": 0.1},
    ),
    "spectra.film.follow": lambda: {
        "frames": [(time, {"a": np.diag([1.0, 2.0, 3.0])}, np.ones(3)) for time in range(2)],
        "r": 1,
    },
    "sgd.direct.run_replicas": _replicas,
    "sgd.reduced.run_replicas": _replicas,
    "effective.fluctuations.linear_noise": _linear_noise,
    "companion.sample_complexity.effective_dynamics.classical.printed_interpolation": lambda: {
        "path": [0.0, 1.0, 0.5],
        "times": [0.0, 0.1],
        "step_size": 0.1,
    },
}
RECORD = "a record of results: nobody builds it by hand"
INSIDE = "called by the library at every step, on arrays it has made itself"
REASONS: dict[str, str] = {
    "effective.fixed_points.FixedPoint": RECORD,
    "effective.fluctuations.LinearNoise": RECORD,
    "effective.one_step.OneStep": RECORD,
    "spectra.blocks.FullMatrix": INSIDE,
    "spectra.blocks.WeightedGram.matmat": INSIDE,
    "spectra.blocks.at": "looks at nothing before factors are asked of what it returns",
    "spectra.blocks.operator_of": "the second half of operator, which takes the same bad input",
    "spectra.population.Embedding.sees_inputs": INSIDE,
    "companion.phase_transitions.hessian.conditioning.Seen": RECORD,
    "spectra.density.Density": RECORD,
    "spectra.film.Film": RECORD,
    "spectra.film.WholeFilm": RECORD,
    "spectra.population.FullPopulation": RECORD,
    "spectra.predict.BlockPrediction": RECORD,
    "spectra.predict.PredictedFilm": RECORD,
}
SLOW = {"call": ("slow",)}
#: Films hold NaN where there is no eigenvalue or edge.
_MISSING = ("nan",)
LENIENT: dict[str, Any] = {
    # What does not fit the caller's field fails in the field.
    "effective.sliding.solve": {
        "start": ("one row more", "one row less", "one column more", "drawn"),
        "switches": ("one row less", "empty", "drawn"),
    },
    # NaN where there is no outlier.
    "spectra.predict.along": {"return": ("nan",)},
    "spectra.predict.block": {"return": ("nan",)},
    # Not looked at: a film builds a thousand operators on the same data.
    "spectra.blocks.WeightedGram": {"features": ("nan", "shared")},
    # Inputs may be large, and are kept by reference.
    "spectra.blocks.operator": {"sample": ("shared",)},
    "spectra.blocks.full": {"sample": ("shared",)},
    "spectra.population.Embedding.factors": {"return": ("shared",)},
    "spectra.density.estimate": SLOW,
    # NaN where there is no threshold.
    "companion.phase_transitions.thresholds.null_branch.null_branch_curve": {"return": ("nan",)},
    "companion.alignment.xor_rank.counting.before_gap": {"eigenvalues": _MISSING},
    "companion.alignment.xor_rank.counting.outside": {
        "eigenvalues": _MISSING,
        "lower": _MISSING,
        "upper": _MISSING,
    },
}
VOCABULARY = {
    "sgd": _mixture,
    "effective": _mixture,
    "spectra": _spectra,
    "sgd.full_batch": _network,
    "spectra.network": _network,
    "companion.phase_transitions.hessian.conditioning": _network,
    "companion.phase_transitions.thresholds.null_branch": _network,
}
CASES = collect(
    [
        "sgd",
        "effective",
        "spectra",
        "companion.phase_transitions.hessian.limit",
        "companion.phase_transitions.hessian.determinant",
        "companion.alignment.xor_rank.counting",
        "companion.phase_transitions.hessian.conditioning",
        "companion.phase_transitions.thresholds.null_branch",
        "companion.sample_complexity.effective_dynamics.classical",
        "companion.sample_complexity.effective_dynamics.generator",
    ],
    EXAMPLES,
    REASONS,
    LENIENT,
    VOCABULARY,
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_by_name(case: Case) -> None:
    """One argument at a time, each way it can be wrong."""
    assert case.defects() == []


@pytest.mark.nightly
@pytest.mark.parametrize("case", [each for each in CASES if "call" in each.lenient], ids=str)
def test_slow_calls_share_nothing(case: Case) -> None:
    """Arrays of the caller's, or calls in other threads, could change a result."""
    assert case.shared() == []


def test_every_public_callable_has_an_example_or_a_reason() -> None:
    """Nothing public is left out in silence."""
    assert without_example(CASES) == []


@FIXED
@given(st.data())
def test_drawn_input_is_taken_or_refused_by_name(data: st.DataObject) -> None:
    """Any value in place of any argument: a result without NaN, or an error that names it."""
    judge_drawn(CASES, data)
