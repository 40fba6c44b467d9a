"""Bad input for catapults: reduced maps, quadratic models, runs and what is read off them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from harness import Case, collect, without_example

from companion.catapults.features.runs import problem
from companion.catapults.gradient_descent import Directions, eigen_observer
from companion.catapults.many_examples.quadratic import QuadraticModel
from companion.catapults.many_examples.scalar_inputs import sign_classes
from companion.catapults.optimisers.references import kernel_regression
from companion.catapults.sgd.matching import History, history, snapshots
from traindyn.catapults import Training, TwoLayerModel, Weights, train

INPUTS, LABELS = [[1.0, 0.0], [0.5, 1.0], [-1.0, 0.5]], [1.0, -1.0, 0.5]
START = TwoLayerModel.initial(4, 2, rng=0)
MODEL = TwoLayerModel(START)
STEP = {"step_size": 0.5, "coupling": 0.1, "label": 0.2}


def _batch() -> Any:
    return MODEL.prepare(INPUTS)


@cache
def _run() -> Training:
    return train(
        MODEL, START, INPUTS, LABELS, step_size=0.1, steps=3, batch_size=1, rng=0,
        observe=snapshots(MODEL, INPUTS, LABELS),
    )  # fmt: skip


@cache
def _history() -> History:
    return history(_run())


def _quadratic(examples: int = 2) -> QuadraticModel:
    return QuadraticModel(np.eye(2)[:examples], [1.0, -1.0], 0.5)


def _directions() -> Directions:
    return Directions(np.array([[3.0, 1.0], [2.0, 1.0]]), np.array([[0.5, 0.25], [0.1, 0.2]]))


def _class() -> Any:
    return sign_classes([1.0, -1.0], [0.5, 0.2], [1.0, -1.0], [1.0, 1.0])[0]


def _train(**changes: Any) -> dict[str, Any]:
    return {
        "model": MODEL, "start": START, "inputs": INPUTS, "labels": LABELS, "step_size": 0.1,
        "steps": 2, "batch_size": 2, "validation": None, "every": 1, "leading": 1, "stop": 0.0,
        "track": True, "rng": 0,
    } | changes  # fmt: skip


EXAMPLES = {
    "catapults.agop.alignment": lambda: {"first": np.eye(2), "second": [[2.0, 1.0], [1.0, 3.0]]},
    "companion.catapults.gradient_descent.Directions.leading": lambda: (_directions(), {"count": 1}),
    "companion.catapults.gradient_descent.Directions.rest": lambda: (_directions(), {"count": 1}),
    "companion.catapults.gradient_descent.Directions.super_critical": lambda: (
        _directions(), {"step_sizes": [1.0, 2.0]},
    ),
    "companion.catapults.gradient_descent.Directions.trailing": lambda: (_directions(), {"count": 1}),
    "companion.catapults.gradient_descent.descent_bound": lambda: {
        "losses": [1.0, 0.5], "squared_gradients": [2.0, 1.0], "step_size": 0.1, "curvature": 1.0,
    },
    "companion.catapults.gradient_descent.directions": lambda: {
        "run": train(
            MODEL, START, INPUTS, LABELS, step_size=0.1, steps=1,
            observe=eigen_observer(MODEL, _batch(), LABELS),
        )
    },
    "companion.catapults.gradient_descent.eigen_observer": lambda: {
        "model": MODEL, "batch": _batch(), "labels": LABELS,
    },
    "companion.catapults.sgd.gates.train_one_by_one": lambda: {
        "inputs": INPUTS, "labels": LABELS, "order": [0, 2, 1], "width": 3, "step_size": 0.1,
        "rng": 0,
    },
    "companion.catapults.beyond.laws.phase_effect": lambda: {"excess": 0.5, "phases": 4},
    "catapults.maps.fate": lambda: {
        "residual": [0.1, 0.2], "kernel": [1.0, 1.0], "step_size": 0.5, "coupling": 0.1,
        "label": 0.0, "most_steps": 1000, "tolerance": 1e-3,
    },
    "catapults.maps.iterate": lambda: {"residual": 0.1, "kernel": 1.0, **STEP, "steps": 4},
    "companion.catapults.one_example.jacobian": lambda: {"residual": 0.1, "kernel": 1.0, **STEP},
    "catapults.maps.limit_orbits": lambda: {"excess": 0.5, "phases": 3, "start": 1e-6},
    "companion.catapults.one_example.reduced": lambda: {"residual": [0.1, 0.2], "kernel": [1.0, 2.0], **STEP},
    "catapults.maps.reduced_step": lambda: {"u": [0.1, 0.2], "v": [1.0, 2.0], "w": [0.1, 0.1]},
    "companion.catapults.one_example.subcritical_drift": lambda: {"u": 0.1, "v": 1.5, "w": 0.1},
    "companion.catapults.sgd.matching.History.batch_spikes": lambda: (_history(), {"factor": 1.5}),
    "companion.catapults.sgd.matching.History.kernel_ratios": lambda: (_history(), {"steps": [0, 1], "wait": 1}),
    "companion.catapults.sgd.matching.History.leading_shares": lambda: (_history(), {"steps": [0, 1]}),
    "companion.catapults.sgd.matching.History.spikes": lambda: (_history(), {"factor": 1.5}),
    "companion.catapults.sgd.matching.history": lambda: {"run": _run(), "outputs": 1, "leading": 1},
    "companion.catapults.sgd.matching.snapshots": lambda: {
        "model": MODEL, "inputs": INPUTS, "labels": LABELS,
    },
    "companion.catapults.beyond.momentum.heavy_ball": lambda: {
        "residual": 0.1, "kernel": 1.0, **STEP, "momentum": 0.5, "decay": 0.1, "steps": 4,
    },
    "companion.catapults.beyond.momentum.heavy_ball_fate": lambda: {
        "residual": [0.1, 0.2], "kernel": [1.0, 1.0], "step_size": [0.5, 0.6], "coupling": 0.1,
        "label": 0.0, "momentum": [0.5, 0.2], "most_steps": 1000, "tolerance": 1e-3,
    },
    "companion.catapults.many_examples.quadratic.QuadraticModel.jacobian": lambda: (_quadratic(), {"weights": [1.0, 2.0]}),
    "companion.catapults.many_examples.quadratic.QuadraticModel.kernel_step": lambda: (
        _quadratic(), {"weights": [1.0, 2.0], "labels": [0.0, 1.0], "step_size": 0.1},
    ),
    "companion.catapults.many_examples.quadratic.QuadraticModel.one_example": lambda: (
        _quadratic(1), {"weights": [1.0, 2.0], "label": 0.5},
    ),
    "companion.catapults.many_examples.quadratic.QuadraticModel.run": lambda: (
        _quadratic(), {"start": [1.0, 2.0], "labels": [0.0, 1.0], "step_size": 0.1, "steps": 3},
    ),
    "companion.catapults.many_examples.quadratic.printed_kernel_step": lambda: {
        "model": _quadratic(), "weights": [1.0, 2.0], "labels": [0.0, 1.0], "step_size": 0.1,
    },
    "companion.catapults.optimisers.references.KernelRegression": lambda: {
        "centres": INPUTS, "coefficients": LABELS, "bandwidth": 1.0,
    },
    "companion.catapults.optimisers.references.KernelRegression.input_gradients": lambda: (
        kernel_regression(INPUTS, LABELS, bandwidth=1.0), {"inputs": INPUTS},
    ),
    "companion.catapults.many_examples.scalar_inputs.SignClass.run": lambda: (_class(), {"step_size": 0.1, "steps": 3}),
    "companion.catapults.many_examples.scalar_inputs.kernel_step": lambda: {
        "residuals": [1.0, 2.0], "kernel": [[2.0, 1.0], [1.0, 3.0]], "inputs": [1.0, -1.0],
        "labels": [0.5, 1.0], "width": 5, "step_size": 0.1,
    },
    "companion.catapults.gradient_descent.RepeatedCatapults": lambda: {
        "catapults": 2, "ratio": 1.5, "wait": 3, "factor": 2.0, "most_increase": 2.0, "end": 0.5,
    },
    "catapults.schedules.step_sizes": lambda: {"step_size": np.array([0.1, 0.2]), "steps": 2},
    "companion.catapults.many_examples.remainders.remainders": lambda: {
        "residuals": [[1.0, 2.0], [0.5, 1.0]], "kernels": [np.diag([2.0, 1.0])] * 2,
        "step_size": 0.1,
    },
    "catapults.training.critical_step": lambda: {
        "model": MODEL, "weights": START, "batch": _batch(),
    },
    "catapults.training.train": _train,
    "catapults.two_layer.TwoLayerModel": lambda: {"expansion": START, "kind": "quadratic"},
    "catapults.two_layer.TwoLayerModel.gradient": lambda: (
        MODEL, {"weights": START, "batch": _batch(), "labels": np.array(LABELS)},
    ),
    "catapults.two_layer.TwoLayerModel.initial": lambda: {
        "width": 4, "dimension": 2, "signs": True, "rng": 0,
    },
    "catapults.two_layer.TwoLayerModel.input_gradients": lambda: (
        MODEL, {"weights": START, "batch": _batch()},
    ),
    "catapults.two_layer.TwoLayerModel.outputs": lambda: (
        MODEL, {"weights": START, "batch": _batch()},
    ),
    "catapults.two_layer.TwoLayerModel.prepare": lambda: (MODEL, {"inputs": INPUTS}),
    "catapults.two_layer.TwoLayerModel.tangent_kernel": lambda: (
        MODEL, {"weights": START, "batch": _batch()},
    ),
    "companion.catapults.features.runs.fit": lambda: {
        "model": MODEL, "start": START, "given": problem("rank-2", 2, (3, 2, 2), rng=0),
        "step_size": 0.1, "batch_size": 2, "every": 1, "steps": 2, "track": True, "rng": 0,
    },
    "companion.catapults.features.runs.problem": lambda: {
        "name": "rank-2", "dimension": 2, "sizes": (3, 2, 2), "rng": 0,
    },
    "companion.catapults.features.source_size.recorded": lambda: {"group": "rank 2"},
}  # fmt: skip
REASONS = {
    "companion.catapults.features.source_size.ends": "takes minutes; its test has refusals",
    "catapults.training.Observer": "made by snapshots and eigen_observer, which look at all of it",
    "catapults.training.Observer.same": "asked by train, about what it has looked at itself",
    "catapults.two_layer.TwoLayerModel.descend": "the update of train, at the bottom of its loop",
}
# What train calls at every step looks at shapes only: entries are checked where a run begins, and
# those of a run that diverges are seen in its loss.
_ENTRIES = [
    f"{field}: {label}"
    for field in (*Weights._fields, "inputs")
    for label in ("nan", "inf", "words")
]
_STEP = {"weights": _ENTRIES, "batch": _ENTRIES}
LENIENT = {
    **{
        f"catapults.two_layer.TwoLayerModel.{name}": _STEP
        for name in ("input_gradients", "outputs", "tangent_kernel")
    },
    "catapults.two_layer.TwoLayerModel.gradient": {
        **_STEP, "labels": ["nan", "inf"],
    },
    "catapults.training.critical_step": _STEP,
    # Not looked at.
    "companion.catapults.gradient_descent.directions": {
        "run": [f"{f}: nan" for f in ("steps", "losses", "validation_losses", "step_sizes")],
    },
    "companion.catapults.gradient_descent.eigen_observer": {
        # What model.prepare has made is kept by reference.
        "batch": ["inputs: nan", "shared"],
    },
    "companion.catapults.sgd.matching.history": {"run": ["validation_losses: nan"]},
    # The final kernel of runs that diverge is NaN.
    "catapults.maps.fate": {"kernel": ["zero"]},
}  # fmt: skip
CASES = collect(
    [
        "catapults",
        "companion.catapults.many_examples.remainders",
        "companion.catapults.one_example",
        "companion.catapults.sgd.schedules",
        "companion.catapults.beyond.laws",
        "companion.catapults.beyond.momentum",
        "companion.catapults.features.kernel_machines",
        "companion.catapults.features.runs",
        "companion.catapults.features.source_size",
        "companion.catapults.features.spikes",
        "companion.catapults.gradient_descent",
        "companion.catapults.many_examples.quadratic",
        "companion.catapults.many_examples.scalar_inputs",
        "companion.catapults.optimisers.association",
        "companion.catapults.optimisers.references",
        "companion.catapults.sgd.batch_law",
        "companion.catapults.sgd.gates",
        "companion.catapults.sgd.matching",
    ],
    EXAMPLES,
    REASONS,
    LENIENT,
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_by_name(case: Case) -> None:
    """One argument spoilt: an error that names it, or a result without NaN."""
    assert case.defects() == []


def test_every_public_callable_has_an_example_or_a_reason() -> None:
    """Nothing public is left out without a word."""
    assert without_example(CASES) == []
