"""The conformance kit: right problems pass, and each mistake is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from companion.alignment.training_dynamics.printed import printed_drift
from companion.sample_complexity.information_exponent.models import OnlinePCA
from traindyn import conformance
from traindyn._types import Array
from traindyn.effective import find, ode
from traindyn.problems import KGaussianMixture, Sample, SpikedTensor, TwoLayerMixture
from traindyn.problems.base import Factors, Kernel
from traindyn.problems.projection_model import Local, Point, ProjectionModel, Statistics
from traindyn.sgd import direct, reduced
from traindyn.spectra import blocks, film, predict
from traindyn.trajectory import Trajectory


def value(z: Array, u: Array, label: int) -> float:
    """Squared loss."""
    return float((z[1] * z[0] - 1 + 2 * label) ** 2 / 2)


def slope(z: Array, u: Array, label: int) -> Array:
    """Gradient in z."""
    r = z[1] * z[0] - 1 + 2 * label
    return np.array([r * z[1], r * z[0]])


def curvature(z: Array, u: Array, label: int) -> Array:
    """Hessian in z."""
    e = 2 * z[1] * z[0] - 1 + 2 * label
    return np.array([[z[1] ** 2, e], [e, z[0] ** 2]])


LOCAL = Local(value, slope, curvature)
CENTRES, WEIGHTS = np.array([[1.0], [-1.0]]), np.array([0.4, 0.6])
FEW: dict[str, Any] = {"samples": 20_000, "replicas": 300, "c_delta": 2.0}


def two_layers(kind: Callable[..., Any] = ProjectionModel, local: Local = LOCAL) -> Any:
    """Two linear layers on two Gaussians, of some class."""
    return kind(local, CENTRES, WEIGHTS, 4.0, 80, ridge=0.1, scalars=[0.8])


def test_a_right_model_passes() -> None:
    """Every part has findings, and all agree."""
    report = conformance.check(two_layers(), rng=0, samples=5000, replicas=200)
    assert report.passed, str(report)
    report.require()
    assert {finding.part for finding in report.findings} == set(conformance.PARTS)
    assert str(report).splitlines()[0].endswith("0 wrong")


@pytest.mark.parametrize(
    "problem",
    [
        KGaussianMixture.orthonormal(2, 60, precision=10.0, ridge=0.1),
        TwoLayerMixture.xor(4, 60, precision=10.0, ridge=0.1),
        SpikedTensor(2, 100, signal=2.0),
        SpikedTensor(3, 100, signal=2.0, ridge=0.1),
        OnlinePCA(100, signal=2.0),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_the_problems_of_the_library_pass(problem: Any) -> None:
    """Those with data and curvature in every part, the others as chains."""
    report = conformance.check(problem, rng=2, samples=5000, replicas=200)
    assert report.passed, str(report)
    whole = isinstance(problem, KGaussianMixture | TwoLayerMixture)
    parts = set(conformance.PARTS) if whole else {"chain", "drift"}
    assert {finding.part for finding in report.findings} == parts


# ---------------------------------------------------------------------- one mistake each


class WrongSign(ProjectionModel):
    """Its gradient ascends."""

    def gradient(self, point: Point, sample: Sample) -> Point:
        """Return the gradient."""
        x, s = super().gradient(point, sample)
        return Point(-x, -s)


class ForgottenLayer(ProjectionModel):
    """The gradient of the scalar is left out."""

    def gradient(self, point: Point, sample: Sample) -> Point:
        """Return the gradient."""
        x, s = super().gradient(point, sample)
        return Point(x, 0.0 * s)


class HalfCorrector(ProjectionModel):
    """The corrector of Ito's formula with a half, as for a single coordinate."""

    def drift(self, statistics: Statistics, *, rule: Any = None, c_delta: float) -> Statistics:
        """Return the drift."""
        return super().drift(statistics, rule=rule, c_delta=c_delta / 2)


class NoRidge(ProjectionModel):
    """Its drift forgets the ridge."""

    def drift(self, statistics: Statistics, *, rule: Any = None, c_delta: float) -> Statistics:
        """Return the drift."""
        free: ProjectionModel = replace(two_layers(), ridge=0.0)
        return free.drift(statistics, rule=rule, c_delta=c_delta)


class WrongLimit(ProjectionModel):
    """BGHJ (5.18) prints beta for 2 beta."""

    def limit_drift(self, statistics: Statistics) -> Statistics:
        """Return the limit."""
        m, R_perp, s = super().limit_drift(statistics)
        return Statistics(m, R_perp / 2, s)


class UnsquaredResidual(ProjectionModel):
    """The weight of the G-matrix with an absolute value for a square."""

    def factors(self, matrix: Any, block: Any, point: Point, sample: Sample) -> Factors:
        """Return the factors."""
        found = super().factors(matrix, block, point, sample)
        if matrix == "g_matrix" and block == (0, 0):
            return found._replace(weights=np.sqrt(found.weights))
        return found


class FewerDimensions(ProjectionModel):
    """The noise of a reduced step has half the degrees of freedom."""

    def reduced_kernel(self) -> Kernel:
        """Return the kernel."""
        step, constants = super().reduced_kernel()
        return Kernel(step, (*constants[:-1], constants[-1] / 2))


class OtherStart(ProjectionModel):
    """The law of the initial statistics is that of rows from N(0, 2 I / d)."""

    def draw_initial_statistics(self, *, rng: Any) -> Statistics:
        """Draw the start."""
        m, R_perp, s = super().draw_initial_statistics(rng=rng)
        return Statistics(m, 2 * R_perp, s)


class OtherStream(ProjectionModel):
    """Its stream draws the noise before the component."""

    def stream(self, n: int, *, rng: Any) -> Sample:
        """Draw."""
        return self.sample(n, rng=rng)


class SwappedLabels(ProjectionModel):
    """Its test data have the labels of the other component."""

    def sample(self, n: int, *, rng: Any) -> Sample:
        """Draw."""
        inputs, labels = super().sample(n, rng=rng)
        return Sample(inputs, 1 - labels)


class LostNoise(ProjectionModel):
    """Its embedding forgets what is orthogonal to the direction."""

    def embed(self, statistics: Statistics) -> tuple[ProjectionModel, Point]:
        """Embed."""
        return super().embed(statistics._replace(R_perp=0.0 * statistics.R_perp))


class Raises(ProjectionModel):
    """Its embedding fails."""

    def embed(self, statistics: Statistics) -> tuple[ProjectionModel, Point]:
        """Embed."""
        raise np.linalg.LinAlgError("singular matrix")


@pytest.mark.parametrize(
    ("kind", "part", "named"),
    [
        (WrongSign, "gradient", {"gradient.x", "gradient.s", "direct_kernel"}),
        (ForgottenLayer, "gradient", {"gradient.s", "direct_kernel"}),
        (OtherStream, "gradient", {"direct_kernel"}),
        (HalfCorrector, "drift", {"drift, corrector"}),
        (NoRidge, "drift", {"drift", "limit_drift"}),
        (WrongLimit, "drift", {"limit_drift"}),
        (UnsquaredResidual, "curvature", {"factors, g_matrix"}),
        (FewerDimensions, "chain", {"reduced_kernel"}),
        (OtherStart, "chain", {"draw_initial_statistics"}),
        (SwappedLabels, "data", {"sample"}),
        (LostNoise, "embedding", {"embed"}),
        (Raises, "embedding", {"embedding"}),
    ],
    ids=lambda given: given.__name__ if isinstance(given, type) else "",
)
def test_a_mistake_is_named(kind: Any, part: Any, named: set[str]) -> None:
    """The failures name what is wrong and nothing else."""
    report = conformance.check(two_layers(kind), parts=(part,), rng=3, **FEW)
    assert {finding.method for finding in report.failures} == named
    with pytest.raises(ValueError, match=f"{kind.__name__} does not"):
        report.require()


def bent_curvature(z: Array, u: Array, label: int) -> Array:
    """The residual's part left out."""
    e = z[1] * z[0]
    return np.array([[z[1] ** 2, e], [e, z[0] ** 2]])


def test_a_wrong_local_loss_is_named() -> None:
    """A curvature that disagrees with the slope."""
    model = two_layers(local=Local(value, slope, bent_curvature))
    report = conformance.check(
        model, parts=("curvature",), point=model.initial(rng=0), rng=4, **FEW
    )
    assert {finding.method for finding in report.failures} == {"factors, hessian"}


def test_the_printed_drift_of_the_mixture_is_refused() -> None:
    """BGHJ (5.6) as printed is a wrong drift, and the kit says so."""

    @dataclass(frozen=True, eq=False)
    class Printed(KGaussianMixture):
        """The mixture with the printed drift."""

        def drift(self, statistics: Any, *, rule: Any = None, c_delta: float) -> Any:
            return printed_drift(self, statistics, rule=rule, c_delta=c_delta)

    problem = Printed(np.eye(2), np.array([0.5, 0.5]), 2.0, 0.1, 200)
    report = conformance.check(problem, parts=("drift",), rng=5, samples=20_000)
    assert any(finding.method.startswith("drift") for finding in report.failures)


# ---------------------------------------------------------------------- what is missing


class Nothing:
    """Has no method at all."""

    dimension = 10


def test_missing_methods_are_named() -> None:
    """By the kit, one finding each, and by the rooms, with the method and the room."""
    report = conformance.check(Nothing(), point=Point(np.ones(1), np.ones(1)), rng=0)
    names = {finding.method for finding in report.failures}
    assert {"drift", "reduced_kernel", "initial_statistics"} <= names
    assert all("missing" in finding.note for finding in report.failures)


def _rooms() -> list[tuple[str, Callable[[Any], Any]]]:
    model = two_layers()
    point, data, start = model.initial(rng=0), model.sample(9, rng=0), model.initial_statistics()
    path = Trajectory(
        np.array([0.0]),
        Statistics(*(part[None] for part in start)),
        snapshots=Point(*(part[None] for part in point)),
    )
    return [
        ("statistics.* for SGD in full", lambda p: direct.run(p, point, [1.0], step_size=1, rng=0)),
        (
            "initial for sgd.direct",
            lambda p: direct.run_replicas(p, [1.0], step_size=1, replicas=1, rng=0),
        ),
        ("reduced_kernel.* for SGD on", lambda p: reduced.run(p, start, [1], step_size=1, rng=0)),
        (
            "draw_initial_statistics for sgd.reduced",
            lambda p: reduced.run_replicas(p, [1.0], step_size=1, replicas=1, rng=0),
        ),
        ("drift for effective.ode.solve", lambda p: ode.solve(p, start, [1.0])),
        ("limit_drift for effective.ode", lambda p: ode.solve_limit(p, start, [1.0])),
        ("drift for effective.find", lambda p: find(p, start)),
        ("limit_drift for effective.find", lambda p: find(p, start, limit=True)),
        ("factors for blocks of the Hessian", lambda p: blocks.at(p, point, data)),
        ("blocks.* for spectra.film", lambda p: film.film(p, path, data)),
        ("blocks for spectra.predict.along", lambda p: predict.along(p, path, sample_ratio=2)),
        (
            "embed, .* for population",
            lambda p: predict.block(p, start, "hessian", (0, 0), sample_ratio=2),
        ),
    ]


@pytest.mark.parametrize(("message", "call"), _rooms(), ids=lambda given: str(given)[:30])
def test_rooms_say_what_they_need(message: str, call: Callable[[Any], Any]) -> None:
    """Each room names the missing methods, itself and the class."""
    with pytest.raises(ValueError, match=f"problem must have {message}.*got Nothing without"):
        call(Nothing())


def test_arguments_are_checked() -> None:
    """Out of range, unknown, missing."""
    for change, message in (
        ({"c_delta": 0.0}, "c_delta"),
        ({"samples": 5}, "samples"),
        ({"replicas": 2}, "replicas"),
        ({"parts": ("colour",)}, "parts"),
        ({"rng": None}, "rng"),
        ({"false_alarm": 0.0}, "false_alarm"),
    ):
        with pytest.raises(ValueError, match=message):
            conformance.check(two_layers(), **{"rng": 0, **change})  # type: ignore[arg-type]


def test_divergence_is_not_tested() -> None:
    """A right model at too large a step size is not called wrong, and the advice can be taken."""
    model = ProjectionModel(
        Local(
            lambda z, u, label: 0.75 * z[0] ** 4,
            lambda z, u, label: np.array([3 * z[0] ** 3]),
            lambda z, u, label: np.array([[9 * z[0] ** 2]]),
        ),
        [[2.0]],
        [1.0],
        precision=1.0,
        dimension=50,
    )
    report = conformance.check(model, c_delta=8.0, samples=500, replicas=20, rng=0)
    assert report.passed
    assert [finding.part for finding in report.untested] == ["chain"]
    assert "pass c_delta below 8" in str(report) and "1 not tested" in str(report)


def test_what_numba_cannot_compile_is_told_in_a_line() -> None:
    """The function is named, and numba's reason given without its page."""
    names = {"a": 1.0}
    model = ProjectionModel(
        Local(
            lambda z, u, label: names["a"] * float(z[0]),
            lambda z, u, label: np.array([names["a"]]),
            lambda z, u, label: np.array([[0.0]]),
        ),
        [[0.0]],
        [1.0],
        precision=1.0,
        dimension=5,
    )
    start = model.initial(rng=0)
    for name, call in (
        ("value", lambda: model.loss(start, model.sample(2, rng=0))),
        ("slope", lambda: direct.run(model, start, [1.0], step_size=0.1, rng=0)),
    ):
        with pytest.raises(ValueError, match=f"local.{name} must be a function that numba") as told:
            call()
        assert "\n" not in str(told.value)


def test_points_and_steps_are_named() -> None:
    """An array is no point, and a step longer than the run is no fault of the times."""
    model = two_layers()
    with pytest.raises(ValueError, match=r"start must be a point.*ndarray of shape"):
        direct.run(model, model.initial(rng=0)[0], [1.0], step_size=0.1, rng=0)
    with pytest.raises(ValueError, match=r"step_size must not be larger.*step_size = 100"):
        direct.run(model, model.initial(rng=0), [0.0, 1.0], step_size=100, rng=0)
    path = direct.run(model, model.initial(rng=0), [0.0, 1.0], step_size=0.1, rng=0)
    assert "\n" not in repr(path) and "2 times from 0 to 1" in repr(path)
