"""Passage times of the overlap: how many samples SGD takes to reach given levels.

The overlap is stepped by the exact chain of
:mod:`companion.sample_complexity.information_exponent.model` and looked at after every
step; nothing is stored but the steps at which a level is first passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from companion.sample_complexity.information_exponent.model import SingleIndex, Statistics, advance
from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.parallel import map_replicas

__all__ = ["Decomposition", "Passages", "decompose", "passages"]


@dataclass(frozen=True)
class Passages:
    """Passage times of independent replicas.

    Attributes
    ----------
    levels : ndarray, shape (L,)
    steps : ndarray, shape (replicas, L)
        First step at which the overlap is above a level; infinite if it never was.
    highest : ndarray, shape (replicas,)
        Largest modulus of the overlap on the way.
    lowest : ndarray, shape (replicas,)
        Smallest overlap (or modulus, as asked for) after the last level was passed; infinite if
        it never was. Of use where all steps are taken.
    last : ndarray, shape (replicas,)
        Overlap at the end.
    """

    levels: Array
    steps: Array
    highest: Array
    lowest: Array
    last: Array


def passages(
    problem: SingleIndex,
    levels: ArrayLike,
    *,
    c_delta: float,
    most: int,
    replicas: int,
    rng: RNG,
    start: float | None = None,
    modulus: bool = False,
    stay: bool = False,
    workers: int | None = None,
) -> Passages:
    """Run SGD until the overlap has passed all levels.

    Parameters
    ----------
    problem : SingleIndex
        Whose loss SGD descends, in dimension N.
    levels : array_like, shape (L,)
        Increasing, in (0, 1); may be empty.
    c_delta : float
        Step size, which the algorithm divides by N.
    most : int
        Largest number of steps.
    replicas : int
        Number of independent runs.
    rng : int, SeedSequence or Generator
        Root of the streams, one child per replica.
    start : float, optional
        Overlap of every start; default: a uniform point of the upper half-sphere each.
    modulus : bool
        Look at the modulus of the overlap, where the direction is known up to its sign only.
    stay : bool
        Take all steps, also after the last level is passed.
    workers : int, optional
        As in :func:`traindyn.parallel.map_ordered`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.sample_complexity.information_exponent.passage import passages
    >>> from companion.sample_complexity.information_exponent.models import OnlinePCA
    >>> found = passages(OnlinePCA(1000, signal=2.0), [0.3, 0.6], c_delta=0.1, most=10**6,
    ...                  replicas=3, rng=0, modulus=True)
    >>> bool(np.all(found.steps[:, 0] <= found.steps[:, 1]))
    True
    """
    replicas = _validate.integer("replicas", replicas, least=1)
    rng = _validate.generator("rng", rng)
    size = _validate.positive("c_delta", c_delta)
    total = _validate.integer("most", most, least=1)
    marks = _validate.frozen(_validate.finite("levels", levels, shape=(None,)))
    if marks.size:
        marks = _validate.increasing("levels", marks)
        if marks[0] == 0 or marks[-1] >= 1:
            raise ValueError(f"levels must lie in (0, 1), got {marks[0]:g} to {marks[-1]:g}")
    first, one, half, parameters = _prepared(problem, start)

    def run(generator: np.random.Generator) -> tuple[Array, float, float, float]:
        steps = np.full(marks.size, np.inf)
        highest, lowest, last = _walk(
            one, first(generator), half, parameters, generator, size / problem.dimension,
            marks, modulus, total, stay, steps,
        )  # fmt: skip
        return steps, highest, lowest, last

    found = map_replicas(run, replicas, rng=rng, workers=workers)
    steps, *ends = zip(*found, strict=True)
    return Passages(marks, np.stack(steps), *(np.array(each) for each in ends))


@njit(nogil=True, error_model="numpy")
def _walk(
    one: Callable[..., Any],
    m: float,
    half: float,
    parameters: Any,
    rng: np.random.Generator,
    h: float,
    levels: Array,
    modulus: bool,
    most: int,
    stay: bool,
    steps: Array,
) -> tuple[float, float, float]:
    """Fill `steps` and return the largest modulus, the smallest later and the last overlap."""
    highest, lowest, passed = abs(m), np.inf, 0
    for i in range(most + 1):
        if i > 0:
            m = one(m, half, parameters, rng, h)[0]
            highest = max(highest, abs(m))
        seen = abs(m) if modulus else m
        while passed < levels.size and seen > levels[passed]:
            steps[passed] = i
            passed += 1
        if passed == levels.size and passed > 0:
            lowest = min(lowest, seen)
            if not stay:
                break
    return highest, lowest, m


@dataclass(frozen=True)
class Decomposition:
    r"""A path of the overlap, taken apart.

    :math:`m_t - m_0 = -\frac\delta N \sum_{j<t} \phi'(m_j)(1-m_j^2) - M_t + R_t` with the
    directional error martingale :math:`M_t = \frac\delta N \sum_j \langle \nabla H_j, v_0 \rangle`
    and the effect R of the normalisation.

    Attributes
    ----------
    overlap : ndarray, shape (replicas, T + 1)
    gradient : ndarray, shape (replicas, T + 1)
        :math:`\frac\delta N \sum_{j<t} \langle \nabla L_j, v_0 \rangle`, error included.
    drift : ndarray, shape (replicas, T + 1)
        The same sum of the expectations :math:`\phi'(m_j)(1-m_j^2)`.
    """

    overlap: Array
    gradient: Array
    drift: Array

    @property
    def martingale(self) -> Array:
        """Directional error martingale M, shape (replicas, T + 1)."""
        return self.gradient - self.drift


def decompose(
    problem: SingleIndex,
    steps: int,
    *,
    c_delta: float,
    replicas: int,
    rng: RNG,
    start: float | None = None,
    workers: int | None = None,
) -> Decomposition:
    """Run SGD and take the path of the overlap apart into drift, martingale and the rest.

    Parameters
    ----------
    problem : SingleIndex
        Whose loss SGD descends, in dimension N.
    steps : int
        All are stored.
    c_delta, replicas, rng, start, workers
        As in :func:`passages`.
    """
    replicas = _validate.integer("replicas", replicas, least=1)
    rng = _validate.generator("rng", rng)
    size = _validate.positive("c_delta", c_delta)
    total = _validate.integer("steps", steps, least=1)
    first, one, half, parameters = _prepared(problem, start)
    h = size / problem.dimension
    # The expectation is a smooth function of the overlap: interpolated, not integrated anew.
    degree = 60
    nodes = np.polynomial.chebyshev.chebpts1(degree)
    pull = np.polynomial.chebyshev.Chebyshev.fit(
        nodes, problem.moments(nodes).pull, degree - 1, domain=[-1, 1]
    )

    def run(generator: np.random.Generator) -> tuple[Array, Array]:
        path, gradient = np.empty(total + 1), np.empty(total + 1)
        _record(one, first(generator), half, parameters, generator, h, path, gradient)
        return path, gradient

    found = map_replicas(run, replicas, rng=rng, workers=workers)
    paths, gradients = (np.stack(each) for each in zip(*found, strict=True))
    drift = np.zeros_like(paths)
    np.cumsum(h * pull(paths[:, :-1]), axis=1, out=drift[:, 1:])
    return Decomposition(paths, gradients, drift)


@njit(nogil=True, error_model="numpy")
def _record(
    one: Callable[..., Any],
    m: float,
    half: float,
    parameters: Any,
    rng: np.random.Generator,
    h: float,
    path: Array,
    gradient: Array,
) -> None:
    path[0], gradient[0] = m, 0.0
    for i in range(1, path.size):
        m, pull = one(m, half, parameters, rng, h)
        path[i], gradient[i] = m, gradient[i - 1] + h * pull


def _prepared(
    problem: SingleIndex, start: float | None
) -> tuple[Callable[[np.random.Generator], float], Callable[..., Any], float, tuple[float, ...]]:
    """Where a replica starts, one step of the chain, and its constants."""
    draw, slope, parameters = problem.compiled()
    if start is not None:
        problem.reduced_state(Statistics(np.asarray(start)))

    def first(generator: np.random.Generator) -> float:
        return float(problem.draw_initial_statistics(rng=generator).m if start is None else start)

    return first, advance(draw, slope), 0.5 * (problem.dimension - 2), parameters
