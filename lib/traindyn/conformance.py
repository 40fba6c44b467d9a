r"""Whether the methods of a new problem agree with each other.

Whoever writes a problem writes the same mathematics several times: a loss, its gradient, a
kernel that descends it, the same step on the statistics, its mean, weights of curvature. Here
each is confronted with the others, so that a wrong sign, factor or weight is named before it
becomes a wrong figure::

    report = conformance.check(problem, rng=0)
    print(report)
    report.require()

Exact relations are tested to rounding, laws by tests that a right problem fails together with
probability `false_alarm`. Formulas that hold in the limit of large dimension d are allowed an
error of order 1 / d: check a problem at the dimension it is used in, or a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.effective import one_step
from traindyn.effective._layout import Layout
from traindyn.problems.base import MATRICES, Block, Matrix, Sample
from traindyn.sgd import direct, reduced
from traindyn.sgd._loop import Diverged
from traindyn.spectra import blocks

__all__ = ["PARTS", "Finding", "Part", "Report", "check"]

Part: TypeAlias = Literal["data", "gradient", "curvature", "chain", "drift", "embedding"]

PARTS: tuple[Part, ...] = ("data", "gradient", "curvature", "chain", "drift", "embedding")
"""What can be checked, in the order of the checks."""

_NEEDS: dict[Part, tuple[str, ...]] = {
    "data": ("sample", "stream", "weights", "means", "precision"),
    "gradient": ("loss", "gradient", "sample", "stream", "direct_kernel", "ridge"),
    "curvature": ("gradient", "sample", "blocks", "parameter", "factors", "outlier_count"),
    "chain": (
        *("initial", "draw_initial_statistics", "initial_statistics", "statistics", "ridge"),
        *("direct_kernel", "reduced_kernel", "reduced_state", "reduced_statistics"),
    ),
    "drift": ("drift", "drift_dimension", "reduced_kernel", "reduced_state"),
    "embedding": ("embed", "loss", "sample", "statistics", "factors", "blocks"),
}
_COMPARISONS = 1000
"""More than any problem has: the false alarm is shared among so many."""
_BLOWN_UP = 1e3
"""Growth of the parameters in a unit of time that is divergence."""
_DIFFERENCE = 1e-6
"""Step of the finite differences, relative to the point."""


@dataclass(frozen=True)
class Finding:
    """One comparison.

    Attributes
    ----------
    part : str
        One of :data:`PARTS`.
    method : str
        What is wrong if it fails.
    against : str
        What it was compared with.
    observed : float
        Size of the deviation: relative, or in standard errors, as `against` says. Infinite if
        the method is missing or raised an error.
    allowed : float
        Largest deviation accepted.
    note : str
        Error that was raised, if any.
    tested : bool
        False where SGD diverges at this step size, so that nothing could be compared.
    """

    part: Part
    method: str
    against: str
    observed: float
    allowed: float
    note: str = ""
    tested: bool = True

    @property
    def passed(self) -> bool:
        """Whether the deviation is allowed."""
        return self.tested and self.observed <= self.allowed

    def __str__(self) -> str:
        """Return one line."""
        if not self.tested:
            return f"not tested  {self.method:<16} {self.note}"
        verdict = "agrees" if self.passed else "WRONG "
        numbers = f"{self.observed:9.2g} of {self.allowed:.2g}"
        return f"{verdict}  {self.method:<20} {numbers:<20} {self.note or self.against}"


@dataclass(frozen=True)
class Report:
    """Everything that was compared.

    Attributes
    ----------
    problem : str
        Its class.
    findings : tuple of Finding
    """

    problem: str
    findings: tuple[Finding, ...]

    @property
    def failures(self) -> tuple[Finding, ...]:
        """What does not agree."""
        return tuple(each for each in self.findings if each.tested and not each.passed)

    @property
    def untested(self) -> tuple[Finding, ...]:
        """What could not be compared, as SGD diverges."""
        return tuple(finding for finding in self.findings if not finding.tested)

    @property
    def passed(self) -> bool:
        """Whether everything that was tested agrees."""
        return not self.failures

    def require(self) -> None:
        """Raise ValueError, naming every method that does not agree, unless all do."""
        if self.failures:
            lines = "\n".join(f"  {finding}" for finding in self.failures)
            raise ValueError(f"problem must agree with itself, {self.problem} does not:\n{lines}")

    def __str__(self) -> str:
        """Return a table, a line for each finding."""
        wrong = len(self.failures)
        missed = len(self.untested)
        head = f"{self.problem}: {len(self.findings) - missed} comparisons, {wrong} wrong"
        head += f", {missed} not tested" if missed else ""
        return "\n".join([head, *(str(finding) for finding in self.findings)])


@dataclass(frozen=True)
class _Setting:
    """What the checks of one problem share."""

    problem: Any
    point: Any
    c_delta: float
    samples: int
    replicas: int
    seeds: Iterator[np.random.SeedSequence]
    alarm: float

    @property
    def dimension(self) -> int:
        return int(self.problem.dimension)

    @property
    def step_size(self) -> float:
        return self.c_delta / self.dimension

    @property
    def sigmas(self) -> float:
        """Standard errors that a true mean stays within."""
        return float(stats.norm.isf(self.alarm / 2))

    @property
    def blocks(self) -> list[tuple[Matrix, Block]]:
        """Blocks of both matrices on and below the diagonal."""
        count = len(self.problem.blocks)
        names = [first for first, _ in self.problem.blocks]
        pairs = [(names[a], names[b]) for a in range(count) for b in range(a + 1)]
        return [(matrix, pair) for matrix in MATRICES for pair in pairs]


_Found: TypeAlias = Iterator[tuple[str, str, float, float]]
"""Method, what it is compared with, deviation, deviation allowed."""


def check(
    problem: Any,
    *,
    point: Any = None,
    parts: tuple[Part, ...] | None = None,
    c_delta: float = 1.0,
    samples: int = 20_000,
    replicas: int = 500,
    rng: RNG,
    false_alarm: float = 1e-6,
) -> Report:
    """Confront the methods of a problem with each other.

    Parameters
    ----------
    problem : Problem or Dynamics
        Whose methods are compared with each other and with SGD.
    point : NamedTuple of ndarray, optional
        Where; by default what a unit time of SGD makes of ``problem.initial``.
    parts : tuple of str, optional
        Some of :data:`PARTS`. By default all that the problem has a method for: `Dynamics`
        without data and curvature are checked as such.
    c_delta : float
        Step size times dimension. The larger, the more the corrector matters.
    samples : int
        Draws of the data, and of one step on the statistics.
    replicas : int
        Runs of SGD in full dimension, and on the statistics, each of half a unit of time.
    rng : int, SeedSequence or Generator
        Root of the streams; every comparison has a child of its own.
    false_alarm : float
        Probability that a problem without fault fails, as far as this is a matter of chance.

    Raises
    ------
    ValueError
        If an argument is out of range. Errors of the problem's methods are findings.

    Examples
    --------
    >>> from traindyn.conformance import check
    >>> from traindyn.problems import SpikedTensor
    >>> report = check(SpikedTensor(2, 200, signal=2.0), parts=("drift",), rng=0)
    >>> report.passed
    True
    """
    c_delta = _validate.positive("c_delta", c_delta)
    samples = _validate.integer("samples", samples, least=100)
    replicas = _validate.integer("replicas", replicas, least=20)
    alarm = _validate.positive("false_alarm", false_alarm) / _COMPARISONS
    root = _validate.generator("rng", rng).bit_generator.seed_seq
    seeds = iter(root.spawn(_COMPARISONS))  # type: ignore[attr-defined]
    whole = all(hasattr(type(problem), name) for name in ("loss", "factors", "embed"))
    known: tuple[Part, ...] = PARTS if whole else ("chain", "drift")
    chosen = [
        _validate.choice("parts", part, PARTS) for part in (known if parts is None else parts)
    ]
    if point is None:
        point = _somewhere(problem, c_delta, next(seeds))
    setting = _Setting(problem, point, c_delta, samples, replicas, seeds, alarm)
    findings = [finding for part in chosen for finding in _run(part, setting)]
    return Report(type(problem).__name__, tuple(findings))


def _somewhere(problem: Any, c_delta: float, seed: np.random.SeedSequence) -> Any:
    """Return a point where nothing is zero by accident; the initial one if SGD fails."""
    initial, walk = seed.spawn(2)
    start = problem.initial(rng=initial)
    try:
        step_size = c_delta / problem.dimension
        path = direct.run(problem, start, [1.0], step_size=step_size, rng=walk, snapshots=True)
    except Exception:
        # The check of the chain will say what is wrong.
        return start
    found = type(start)(*(array[0] for array in path.snapshots))
    # On its way out of the finite numbers nothing can be compared.
    largest = max(_size(array, 0.0) for array in found if np.size(array))
    return start if largest > _BLOWN_UP * _size(np.concatenate([*map(np.ravel, start)])) else found


def _run(part: Part, setting: _Setting) -> list[Finding]:
    """Run one part; a missing method or an error is a finding."""
    missing = [name for name in _NEEDS[part] if not hasattr(type(setting.problem), name)]
    missing = [name for name in missing if not hasattr(setting.problem, name)]
    if missing:
        return [
            Finding(part, name, "", np.inf, 0.0, f"missing, see traindyn.problems.base ({part})")
            for name in missing
        ]
    found: list[Finding] = []
    try:
        with np.errstate(all="ignore"):
            for method, against, observed, allowed in _CHECKS[part](setting):
                # NaN agrees with nothing.
                size = float(observed) if np.isfinite(observed) else np.inf
                found.append(Finding(part, method, against, size, float(allowed)))
    except Diverged:
        note = (
            f"SGD diverges at step_size = c_delta / dimension = {setting.step_size:g}; "
            f"pass c_delta below {setting.c_delta:g}"
        )
        found.append(Finding(part, part, "", np.inf, 0.0, note, tested=False))
    except Exception as error:
        after = f" after {found[-1].method}" if found else ""
        note = f"{type(error).__name__}{after}: {error}"
        found.append(Finding(part, part, "", np.inf, 0.0, note))
    return found


# ---------------------------------------------------------------------- data and derivatives


def _data(setting: _Setting) -> _Found:
    problem, count = setting.problem, setting.samples // 10
    for name in ("sample", "stream"):
        inputs, labels = getattr(problem, name)(count, rng=_integer(next(setting.seeds)))
        shares = np.bincount(labels, minlength=len(problem.weights)) / count
        error = np.sqrt(problem.weights * (1 - problem.weights) / count)
        # Binomial counts of a few hundred leave the normal law by a little.
        worst = _most(shares - problem.weights, error)
        yield name, "weights of the components (s.e.)", worst, setting.sigmas + 1
        noise = inputs - problem.means[labels]
        sums = np.sqrt(problem.precision) * np.stack(
            [noise[labels == c].sum(0) / max(1, (labels == c).sum()) ** 0.5 for c in set(labels)]
        )
        allowed = stats.norm.isf(setting.alarm / (2 * sums.size))
        yield name, "means of the components (s.e.)", np.abs(sums).max(), allowed
        excess = (np.mean(noise**2) * problem.precision - 1) * np.sqrt(noise.size / 2)
        yield name, "precision of the noise (s.e.)", abs(excess), setting.sigmas


def _gradient(setting: _Setting) -> _Found:
    problem, point = setting.problem, setting.point
    sample = problem.sample(min(500, setting.samples), rng=next(setting.seeds))
    slope = problem.gradient(point, sample)
    for index, name in enumerate(point._fields):
        if not np.size(point[index]):
            continue
        direction = _direction(point, index, next(setting.seeds))
        ahead, behind = (
            problem.loss(_moved(point, direction, sign * _DIFFERENCE), sample).mean()
            for sign in (1, -1)
        )
        along = float(np.sum(slope[index] * direction[index]))
        scale = np.linalg.norm(slope[index]) * np.linalg.norm(direction[index])
        yield (
            f"gradient.{name}",
            "finite difference of loss (relative)",
            abs((ahead - behind) / (2 * _DIFFERENCE) - along) / _size(scale),
            1e-3,
        )
    seed, step_size = _integer(next(setting.seeds)), setting.step_size
    # Two steps: one draw alone would not tell in which order the stream makes them.
    marks = [step_size, 2 * step_size]
    path = direct.run(problem, point, marks, step_size=step_size, rng=seed, snapshots=True)
    inputs, labels = problem.stream(2, rng=seed)
    here = point
    for step in range(2):
        after = type(point)(*(array[step] for array in path.snapshots))
        draw = Sample(inputs[step : step + 1], labels[step : step + 1])
        for name, old, new, part in zip(
            point._fields, here, after, problem.gradient(here, draw), strict=True
        ):
            move = -step_size * (part + problem.ridge * old)
            gap = float(np.linalg.norm(new - old - move))
            yield (
                "direct_kernel",
                f"gradient of {name} at draw {step} of stream, and ridge (relative)",
                gap / _size(np.linalg.norm(move), step_size * 1e-3),
                1e-6,
            )
        here = after


def _curvature(setting: _Setting) -> _Found:
    problem, point = setting.problem, setting.point
    sample = problem.sample(min(200, setting.samples), rng=next(setting.seeds))
    few = Sample(sample.inputs[:3], sample.labels[:3])
    # Where in a point each parameter stands, found by asking for it.
    places = _places(problem, point)
    slopes = [
        problem.gradient(point, Sample(few.inputs[i : i + 1], few.labels[i : i + 1]))
        for i in range(3)
    ]
    for column, (_, second) in enumerate(problem.blocks):
        direction = _masked(_direction(point, None, next(setting.seeds)), places[column])
        along = problem.parameter((second, second), direction)
        ahead, behind = (
            problem.gradient(_moved(point, direction, sign * _DIFFERENCE), sample)
            for sign in (1, -1)
        )
        difference = type(point)(
            *((a - b) / (2 * _DIFFERENCE) for a, b in zip(ahead, behind, strict=True))
        )
        for first, _ in problem.blocks[column:]:
            block = (first, second)
            expected = {
                "hessian": problem.parameter((first, first), difference),
                "g_matrix": sum(
                    problem.parameter((first, first), slope)
                    * np.vdot(problem.parameter((second, second), slope), along)
                    for slope in slopes
                )
                / 3,
            }
            for matrix, data in (("hessian", sample), ("g_matrix", few)):
                weights, left, right = problem.factors(matrix, block, point, data)
                found = left.T @ (weights * (right @ along)) / len(weights)
                gap = float(np.linalg.norm(found - expected[matrix]))
                yield (
                    f"factors, {matrix}",
                    f"derivatives of the gradient, block {block} (relative)"
                    if matrix == "hessian"
                    else f"gradients of single draws, block {block} (relative)",
                    gap
                    / _size(np.linalg.norm(expected[matrix]), 1e-4 * _size(np.linalg.norm(along))),
                    1e-3,
                )
        size = along.size
        top = problem.outlier_count((second, second))
        yield "outlier_count", f"size {size} of block {column}", float(not 1 <= top <= size), 0.0


# ---------------------------------------------------------------------- statistics and chains


def _chain(setting: _Setting) -> _Found:
    problem, point = setting.problem, setting.point
    here = problem.statistics(point)
    layout = Layout(here)
    again = problem.reduced_statistics(problem.reduced_state(here))
    gap = np.abs(layout.pack(again) - layout.pack(here)).max()
    yield "reduced_state", "statistics, there and back", gap, 1e-9 * _size(layout.pack(here))

    # The start: in full dimension, by its law, and its limit.
    count = 2 * setting.replicas
    first, second = (next(setting.seeds).spawn(count) for _ in range(2))
    drawn = [
        np.stack([layout.pack(problem.statistics(problem.initial(rng=rng))) for rng in first]),
        np.stack([layout.pack(problem.draw_initial_statistics(rng=rng)) for rng in second]),
    ]
    yield from _same_law(setting, "draw_initial_statistics", "statistics(initial)", layout, *drawn)
    limit = layout.pack(problem.initial_statistics())
    error = drawn[0].std(axis=0, ddof=1) / np.sqrt(count)
    slack = 5 / np.sqrt(setting.dimension)
    gap = float(np.max(np.abs(drawn[0].mean(axis=0) - limit) - setting.sigmas * error))
    yield "initial_statistics", "mean of statistics(initial), up to O(d^-1/2)", gap, slack

    # Half a unit of time from one place, at the two levels.
    time = max(1, setting.dimension // 2) * setting.step_size
    step_size, replicas = setting.step_size, setting.replicas
    ends = [
        layout.pack(type(here)(*(array[:, 0] for array in path.statistics)))
        for path in (
            direct.run_replicas(
                problem,
                [time],
                step_size=step_size,
                replicas=replicas,
                rng=next(setting.seeds),
                start=point,
            ),
            reduced.run_replicas(
                problem,
                [time],
                step_size=step_size,
                replicas=replicas,
                rng=next(setting.seeds),
                start=here,
            ),
        )
    ]
    yield from _same_law(setting, "reduced_kernel", "direct_kernel", layout, *ends)


def _same_law(
    setting: _Setting, method: str, against: str, layout: Layout, first: Array, second: Array
) -> _Found:
    """Compare the laws of each entry: means by Welch's test, laws by that of Smirnov."""
    varies = np.maximum(first.std(axis=0), second.std(axis=0)) > 1e-12
    for name, a, b, random in zip(layout.names, first.T, second.T, varies, strict=True):
        if not random:
            gap = abs(a[0] - b[0]) / _size(a[:1])
            yield method, f"{against}: {name}, not random (relative)", gap, 1e-9
            continue
        error = np.sqrt(a.var(ddof=1) / a.size + b.var(ddof=1) / b.size)
        gap = abs(a.mean() - b.mean()) / error
        allowed = float(stats.t.isf(setting.alarm / 2, min(a.size, b.size) - 1))
        yield method, f"{against}: mean of {name} (s.e.)", gap, allowed
        distance = float(stats.ks_2samp(a, b).statistic)
        most = np.sqrt(-np.log(setting.alarm / 2) / 2 * (1 / a.size + 1 / b.size))
        yield method, f"{against}: law of {name} (Smirnov's distance)", distance, most


def _drift(setting: _Setting) -> _Found:
    problem = setting.problem
    here = problem.statistics(setting.point)
    layout = Layout(here)
    limit_drift = getattr(problem, "limit_drift", None)
    seen = one_step.measure(
        problem,
        here,
        step_size=setting.step_size,
        samples=setting.samples,
        rng=next(setting.seeds),
    )
    population = layout.pack(problem.drift(here, c_delta=0.0))
    corrector = layout.pack(problem.drift(here, c_delta=setting.c_delta)) - population
    # The part of a step that is odd in the step size, up to the error of a quadrature; the even
    # part up to directions and parameters out of d, and the square of the gradient.
    share = 4 * (1 + problem.drift_dimension) / setting.dimension
    largest = np.abs(population).max()
    slack = share * np.abs(corrector).max() + setting.step_size * largest**2
    for method, estimate, formula, allowed in (
        ("drift", seen.drift, population, 1e-3 * largest),
        ("drift, corrector", seen.corrector, corrector, slack),
    ):
        gaps = np.abs(estimate.value - formula)
        for name, gap, error in zip(layout.names, gaps, estimate.error, strict=True):
            yield method, f"mean of a reduced step: {name}", gap, setting.sigmas * error + allowed
    if limit_drift is not None and is_dataclass(problem) and hasattr(problem, "precision"):
        sharp: Any = replace(problem, precision=1e10)  # type: ignore[type-var]
        near = layout.pack(sharp.drift(here, c_delta=setting.c_delta))
        gap = np.abs(layout.pack(limit_drift(here)) - near).max()
        # Where every mean is the same there may be no drift at all.
        size = _size(near, 1e-3 * largest)
        yield "limit_drift", "drift at precision 1e10 (relative)", gap / size, 1e-3


def _embedding(setting: _Setting) -> _Found:
    problem, point = setting.problem, setting.point
    here = problem.statistics(point)
    layout = Layout(here)
    small, image = problem.embed(here)
    gap = np.abs(layout.pack(small.statistics(image)) - layout.pack(here)).max()
    yield "embed", "statistics of the point it returns", gap, 1e-8 * _size(layout.pack(here))
    count = setting.samples
    most = max(1000, 2**24 // setting.dimension)
    pairs = [
        (each, place, each.sample(min(count, most), rng=next(setting.seeds)))
        for each, place in ((problem, point), (small, image))
    ]
    yield (
        "embed",
        "mean loss in full dimension (s.e.)",
        _welch(*(each.loss(place, data) for each, place, data in pairs)),
        setting.sigmas + 1,
    )
    sources = [blocks.at(each, place, data) for each, place, data in pairs]
    for matrix, block in setting.blocks:
        weights = [source.factors(matrix, block).weights for source in sources]
        yield (
            "embed",
            f"mean weight of {matrix} {block} (s.e.)",
            _welch(*weights),
            setting.sigmas + 1,
        )


_CHECKS: dict[Part, Callable[[_Setting], _Found]] = {
    "data": _data,
    "gradient": _gradient,
    "curvature": _curvature,
    "chain": _chain,
    "drift": _drift,
    "embedding": _embedding,
}


# ---------------------------------------------------------------------- helpers


def _integer(seed: np.random.SeedSequence) -> int:
    """Return a seed that can be given twice."""
    return int(seed.generate_state(1)[0])


def _direction(point: Any, only: int | None, seed: np.random.SeedSequence) -> Any:
    """Return a random direction, of the length of the point, in one field or in all."""
    generator = np.random.default_rng(seed)
    parts = []
    for index, array in enumerate(point):
        drawn = generator.standard_normal(np.shape(array))
        norm = max(float(np.linalg.norm(array)), 1e-3)
        drawn *= norm / max(float(np.linalg.norm(drawn)), 1e-300)
        parts.append(drawn if only in (None, index) else np.zeros_like(drawn))
    return type(point)(*parts)


def _moved(point: Any, direction: Any, length: float) -> Any:
    return type(point)(*(a + length * b for a, b in zip(point, direction, strict=True)))


def _places(problem: Any, point: Any) -> list[NDArray[np.int64]]:
    """Flat positions in a point of the parameter of each block."""
    ends = np.cumsum([np.size(array) for array in point])
    numbered = type(point)(
        *(
            np.arange(end - np.size(array), end, dtype=np.float64).reshape(np.shape(array))
            for array, end in zip(point, ends, strict=True)
        )
    )
    return [problem.parameter(block, numbered).astype(np.int64) for block in problem.blocks]


def _masked(direction: Any, kept: NDArray[np.int64]) -> Any:
    """Return a direction with all but some entries zero."""
    flat = np.concatenate([np.ravel(array) for array in direction])
    mask = np.zeros(flat.size)
    mask[kept] = 1.0
    flat *= mask
    parts, begin = [], 0
    for array in direction:
        parts.append(flat[begin : begin + array.size].reshape(array.shape))
        begin += array.size
    return type(direction)(*parts)


def _welch(first: Array, second: Array) -> float:
    """Difference of two means in standard errors; zero if both are constant and equal."""
    gap = abs(float(first.mean() - second.mean()))
    error = np.sqrt(first.var(ddof=1) / first.size + second.var(ddof=1) / second.size)
    return gap / max(float(error), 1e-9 * _size(first[:1]))


def _most(gaps: Array, errors: Array) -> float:
    """Largest gap in units of its error."""
    return float(np.max(np.abs(gaps) / np.maximum(errors, 1e-12)))


def _size(value: Any, least: float = 1e-12) -> float:
    """Largest absolute entry, kept off zero."""
    return max(float(np.max(np.abs(value))), float(least))
