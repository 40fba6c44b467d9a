"""Bad input for quadrature, activations, linear algebra, trajectories and diffusions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import FIXED, Case, collect, judge_drawn, without_example
from hypothesis import given
from hypothesis import strategies as st

from traindyn import activations, diffusion
from traindyn.problems import KGaussianMixture
from traindyn.sgd import direct
from traindyn.trajectory import Trajectory

SYMMETRIC = np.diag([3.0, 2.0, 1.0, 0.5])


def _path() -> Trajectory[Any]:
    """Return a path of two replicas."""
    problem = KGaussianMixture.orthonormal(2, 6, precision=5.0, ridge=0.1)
    return direct.run_replicas(problem, [0.0, 0.1], step_size=0.05, replicas=2, rng=1)


def _linear() -> diffusion.LinearDiffusion:
    return diffusion.LinearDiffusion(("a", "b"), -np.eye(2), 0.5 * np.eye(2))


EXAMPLES: dict[str, Any] = {
    "activations.Activation.first": lambda: (activations.TANH, {"purpose": "a test"}),
    "diffusion.LinearDiffusion": lambda: {
        "names": ("a", "b"),
        "matrix": -np.eye(2),
        "noise": 0.5 * np.eye(2),
    },
    "diffusion.LinearDiffusion.covariance": lambda: (
        _linear(),
        {"times": [0.0, 1.0], "start": np.eye(2)},
    ),
    "diffusion.van_loan": lambda: {
        "matrix": -np.eye(2),
        "noise": 0.5 * np.eye(2),
        "times": np.array([0.0, 1.0]),
    },
    "gaussian.default_rule": lambda: {"dim": 2},
    "linalg.LambdaOperator": lambda: {"size": 4, "product": lambda v: SYMMETRIC @ v},
    "linalg.subspace_error": lambda: {"matrix": SYMMETRIC, "basis": np.eye(4)[:, :2]},
    "trajectory.Trajectory.replica": lambda: (_path(), {"index": 1}),
    "trajectory.Trajectory.select": lambda: (_path(), {"indices": [0, 1]}),
    "trajectory.Trajectory.sup_distance": lambda: (_path().mean(), {"other": _path().mean()}),
    "trajectory.stack": lambda: {"paths": [_path().replica(0), _path().replica(1)]},
}
RECORD = "a record of results: nobody builds it by hand"
INSIDE = "called by the library at every step, on arrays it has made itself"
REASONS: dict[str, str] = {
    "activations.Activation.value_and_slope": INSIDE,
    "linalg.CountedOperator.matmat": INSIDE,
    "linalg.DenseOperator.matmat": INSIDE,
    "linalg.LambdaOperator.matmat": INSIDE,
    "linalg.Spectrum": RECORD,
}
LENIENT: dict[str, Any] = {
    # A matrix may be large, and is kept by reference.
    "linalg.DenseOperator": {"matrix": ["shared"]},
    "linalg.CountedOperator": {"operator": ["shared"]},
}
ROOMS = ["gaussian", "relu", "activations", "linalg", "trajectory", "diffusion"]
CASES = collect(ROOMS, EXAMPLES, REASONS, LENIENT)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_by_name(case: Case) -> None:
    """One argument at a time, each way it can be wrong."""
    assert case.defects() == []


def test_every_public_callable_has_an_example_or_a_reason() -> None:
    """Nothing public is left out in silence."""
    assert without_example(CASES) == []


@FIXED
@given(st.data())
def test_drawn_input_is_taken_or_refused_by_name(data: st.DataObject) -> None:
    """Any value in place of any argument: a result without NaN, or an error that names it."""
    judge_drawn(CASES, data)
