"""What is no point, statistics, sample, batch or rule, or hides entries, is refused by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from traindyn import deep, effective, linalg, problems, sgd
from traindyn.catapults import TwoLayerModel
from traindyn.effective._layout import Layout
from traindyn.problems.multi_index import MultiIndex
from traindyn.problems.two_layer import curvature, integrals
from traindyn.spectra import film
from traindyn.trajectory import Trajectory

GMM = problems.KGaussianMixture.orthonormal(3, 8, precision=10.0, ridge=0.1)
POINT, SAMPLE = GMM.initial(rng=0), GMM.sample(6, rng=1)
TENSOR = problems.SpikedTensor(3, 5, 2.0)
LAYERS = problems.TwoLayerMixture.binary(2, 6, precision=10.0, ridge=0.1)
START = TwoLayerModel.initial(4, 2, rng=0)
NETWORK = TwoLayerModel(START)
BATCH = NETWORK.prepare(np.eye(2))
DEEP = deep.models.perceptron([2, 3, 1])
WEIGHTS = DEEP.initial(rng=0)
PATH = Trajectory(np.arange(3.0), SAMPLE._replace(inputs=np.zeros(3), labels=np.zeros(3)))
RUN = sgd.direct.run(GMM, POINT, [0.0, 1.0], step_size=0.05, rng=0, snapshots=True)
MULTI = MultiIndex()
DATA, THETA = MULTI.sample(20, 4, rng=0), MULTI.initial(4, rng=1)

CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("point", lambda given: GMM.loss(given, SAMPLE)),
    ("start", lambda given: effective.ode.solve(GMM, given, [0.0, 1.0])),
    ("statistics", Layout),
    ("sample", lambda given: film.film(GMM, RUN, given, r=4)),
    ("sample", lambda given: GMM.loss(POINT, given)),
    ("sample", lambda given: GMM.residual(POINT, given)),
    ("sample", lambda given: GMM.forward(POINT, given)),
    ("point", lambda given: GMM.parameter((0, 0), given)),
    ("rule", lambda given: GMM.moments(GMM.statistics(POINT), rule=given)),
    ("point", TENSOR.statistics),
    ("statistics", TENSOR.population_loss),
    ("statistics", TENSOR.reduced_state),
    ("point", lambda given: curvature.population_block(LAYERS, "hessian", given, (0, 0))),
    ("statistics", lambda given: integrals.step_covariance(LAYERS, given, None, corrector=1.0)),
    ("weights", lambda given: NETWORK.outputs(given, BATCH)),
    ("batch", lambda given: NETWORK.outputs(START, given)),
    ("expansion", TwoLayerModel),
    ("weights", lambda given: DEEP.outputs(given, DEEP.prepare(np.eye(2)))),
    ("batch", lambda given: DEEP.outputs(WEIGHTS, given)),
]


@pytest.mark.parametrize("given", [None, "word", 2.0])
@pytest.mark.parametrize(("name", "call"), CALLS)
def test_foreign_objects_are_refused_by_name(
    name: str, call: Callable[[Any], Any], given: Any
) -> None:
    """An error of Python named an attribute, and neither the argument nor what was given."""
    with pytest.raises(ValueError, match=rf"^{name} must .*, got {given!r}$"):
        call(given)


ROWS, LABELS = np.eye(3, 8), np.array([0, 1, 1])
HIDDEN = np.ma.array(LABELS, mask=[1, 0, 0])


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sample.labels", lambda: GMM.loss(POINT, SAMPLE._replace(inputs=ROWS, labels=HIDDEN))),
        (
            "sample.labels",
            lambda: LAYERS.loss(
                LAYERS.initial(rng=0), LAYERS.sample(3, rng=0)._replace(labels=HIDDEN)
            ),
        ),
        ("labels", lambda: dataclasses.replace(LAYERS, labels=np.ma.array([0, 1], mask=[1, 0]))),
        (
            "batch.inputs",
            lambda: DEEP.outputs(
                WEIGHTS, deep.differentiated.Batch(np.ma.masked_less(np.eye(2), 1))
            ),
        ),
        (
            "vectors",
            lambda: linalg.alignment([[HIDDEN, HIDDEN]], np.eye(3)[:, :1]),
        ),
        ("vectors", lambda: linalg.alignment([[np.ma.masked, 1.0]], np.eye(2)[:, :1])),
        (
            "vectors",
            lambda: linalg.alignment(np.array([np.ma.masked, 1.0], object), np.eye(2)[:, :1]),
        ),
        ("indices", lambda: PATH.select(np.ma.array([0, 1], mask=[0, 1]))),
        (
            "data.labels",
            lambda: sgd.full_batch.run(
                MULTI,
                DATA._replace(labels=np.ma.masked_less(DATA.labels, 9)),
                THETA,
                [1],
                step_size=0.5,
            ),
        ),
    ],
)
def test_masked_entries_of_a_sample_are_refused(name: str, call: Callable[[], Any]) -> None:
    """Labels went round the check of other arrays, and what is under a mask was trained on."""
    with pytest.raises(ValueError, match=f"^{name} must have no masked entries"):
        call()
