r"""One step of SGD against the premises of the limit theorem (BGJ Theorem 2.2), by sampling.

For statistics that are quadratic in the point, one step moves them by exactly

.. math:: \Delta u = \delta a + \delta^2 b, \qquad a = -\langle \nabla L, \nabla u \rangle,
          \qquad b = \tfrac12 \langle \nabla^2 u, \nabla L \otimes \nabla L \rangle,

with L the loss of one sample and its ridge. A kernel run from the same start on the same
sample with step sizes :math:`\delta` and :math:`-\delta` therefore gives a and b sample by
sample, without any gradient. With :math:`\Phi = E L`, :math:`H = L - \Phi`, V the covariance
of :math:`\nabla L`, and the operators of the theorem
:math:`A = \langle \nabla\Phi, \nabla \rangle` and
:math:`\mathcal L = \tfrac12 \langle V, \nabla^2 \rangle`,

.. math::

    E a &= -A u, \qquad
    \delta E b = \delta \mathcal L u
      + \tfrac\delta2 \langle \nabla^2 u, \nabla\Phi \otimes \nabla\Phi \rangle, \\
    \delta\,\mathrm{Cov}\,a &= \delta \langle \nabla u, V \nabla u \rangle, \qquad
    \tfrac1\delta \mathrm{Cov}\,\Delta u = \delta\,\mathrm{Cov}\,a
      + \delta^2 (\mathrm{Cov}(a, b) + \mathrm{Cov}(b, a)) + \delta^3\,\mathrm{Cov}\,b .

The last matrix is the general diffusion matrix, whose second-order part survives for
statistics blown up too far (BGJ Remark 2, where the constants are other ones).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.effective._layout import Layout
from traindyn.gaussian import Estimate
from traindyn.problems import chain
from traindyn.problems.base import Dynamics

__all__ = ["OneStep", "measure"]

# Entries of sampled states held at a time: eight megabytes.
_ENTRIES = 2**20


@dataclass(frozen=True)
class OneStep:
    r"""Moments of one step, per unit of time, with standard errors.

    Vectors hold the n entries of the statistics in order (of Gram matrices the upper
    triangle), times their scaling. Every moment is a value and its standard error.

    Attributes
    ----------
    names : tuple of str
        What the entries are.
    step_size : float
    samples : int
    drift : Estimate, shape (n,)
        :math:`E a`, minus the population drift of the theorem.
    corrector : Estimate, shape (n,)
        :math:`\delta E b`: the population corrector :math:`\delta \mathcal L u`, and
        :math:`\tfrac\delta2 \langle \nabla^2 u, \nabla\Phi \otimes \nabla\Phi \rangle`, which
        vanishes with the step size unless the statistics are blown up.
    mean : Estimate, shape (n,)
        :math:`E \Delta u / \delta`, the sum of the two.
    diffusion : Estimate, shape (n, n)
        :math:`\delta\,\mathrm{Cov}\,a`, the diffusion matrix of the theorem.
    generalised : Estimate, shape (n, n)
        :math:`\mathrm{Cov}\,\Delta u / \delta`, with the second order.
    fourth : Estimate, shape (n,)
        :math:`E \langle \nabla H, \nabla u_i \rangle^4`, of order :math:`\delta^{-2}` at most
        where the theorem holds (BGJ Definition 2.1).
    second_order : Estimate, shape (n,)
        :math:`E Q^2` with :math:`Q = 2 (b - E b)`, that is
        :math:`\langle \nabla^2 u_i, \nabla H \otimes \nabla H - V \rangle` and the smaller
        :math:`2 \langle \nabla^2 u_i, \nabla\Phi \otimes \nabla H \rangle`. The theorem needs
        :math:`o(\delta^{-3})`; BGJ Definition 2.1 prints :math:`o(\delta^{-1})`.
    """

    names: tuple[str, ...]
    step_size: float
    samples: int
    drift: Estimate
    corrector: Estimate
    mean: Estimate
    diffusion: Estimate
    generalised: Estimate
    fourth: Estimate
    second_order: Estimate


def measure(
    problem: Dynamics,
    start: Any,
    *,
    step_size: float,
    samples: int,
    rng: RNG,
    scaling: ArrayLike = 1.0,
) -> OneStep:
    r"""Sample one step of SGD from one place.

    Parameters
    ----------
    problem : Dynamics
        Its kernels make the steps.
    start : point or statistics
        A point is stepped in full dimension, statistics by the reduced kernel; both have the
        same law.
    step_size : float
        Learning rate :math:`\delta > 0` of the step.
    samples : int
        At least two; two kernel steps are taken for each, 16 n bytes kept.
    rng : int, SeedSequence or Generator
        Draws the data of the steps.
    scaling : array_like, shape () or (n,)
        Of the entries: :math:`\sqrt d` for statistics blown up by it.

    Raises
    ------
    ValueError
        If an argument is out of range, or the draws of the kernel depend on the step size.
    FloatingPointError
        If a step leaves the finite numbers.

    Examples
    --------
    >>> from traindyn.effective.one_step import measure
    >>> from traindyn.problems import SpikedTensor
    >>> problem = SpikedTensor(2, 1000, signal=1.5)
    >>> start = problem.initial_statistics()
    >>> found = measure(problem, start, step_size=1e-3, samples=10_000, rng=0)
    >>> found.names
    ('m', 'r2')
    >>> gap = abs(found.mean.value - problem.drift(start, c_delta=1.0))
    >>> bool((gap < 5 * found.mean.error).all())
    True
    """
    step_size = _validate.positive("step_size", step_size)
    samples = _validate.integer("samples", samples, least=2)
    on_statistics = isinstance(start, type(problem.initial_statistics()))
    begin = (chain.reduced if on_statistics else chain.direct)(problem, start)
    before, forth, back = _steps(begin, step_size, samples, _validate.generator("rng", rng))
    layout = Layout(before)
    size = _validate.finite("scaling", scaling)
    if size.shape not in ((), (layout.size,)):
        raise ValueError(f"scaling must have shape () or ({layout.size},), got {size.shape}")
    here = layout.pack(before)
    # Moves per unit of time: both orders, the first and the second alone.
    move = size * (forth - here) / step_size
    first = size * (forth - back) / (2.0 * step_size)
    second = move - first
    return OneStep(
        names=layout.names,
        step_size=step_size,
        samples=samples,
        drift=_mean(first),
        corrector=_mean(second),
        mean=_mean(move),
        diffusion=_covariance(first, step_size),
        generalised=_covariance(move, step_size),
        fourth=_mean((first - first.mean(axis=0)) ** 4),
        second_order=_mean((2.0 / step_size * (second - second.mean(axis=0))) ** 2),
    )


def _steps(
    begin: chain.Chain, step_size: float, samples: int, rng: np.random.Generator
) -> tuple[Any, Array, Array]:
    """Statistics before, and packed after steps forth and back on the same samples."""
    vector, state = begin.state()
    start = vector.copy()
    before = _row(begin.observe(begin.arrays(start[None])), 0)
    layout = Layout(before)
    found = np.empty((2, samples, layout.size))
    twin = copy.deepcopy(rng)
    most = max(1, _ENTRIES // start.size)
    for first in range(0, samples, most):
        records = np.empty((min(most, samples - first), start.size))
        for target, generator, size in ((0, rng, step_size), (1, twin, -step_size)):
            _draws(*begin.kernel, state, generator, size, vector, start, records)
            if not np.isfinite(records).all():
                raise FloatingPointError(
                    f"step_size = {step_size:g} makes one step leave the finite numbers; "
                    "take a smaller step_size"
                )
            seen = begin.observe(begin.arrays(records))
            found[target, first : first + most] = layout.pack(seen)
    if rng.random() != twin.random():
        raise ValueError(
            "problem must have kernels whose draws do not depend on the step size, got one "
            f"that draws differently at {step_size:g} and {-step_size:g}"
        )
    return before, found[0], found[1]


def _row(statistics: Any, index: int) -> Any:
    return type(statistics)(*(array[index] for array in statistics))


def _mean(draws: Array) -> Estimate:
    """Mean over the draws and its standard error."""
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    return Estimate(draws.mean(axis=0), error)


def _covariance(draws: Array, step_size: float) -> Estimate:
    """Step size times the covariance over the draws, and its standard error."""
    centred = draws - draws.mean(axis=0)
    square = centred**2
    value = centred.T @ centred / (len(draws) - 1)
    error = np.sqrt(np.maximum(square.T @ square / len(draws) - value**2, 0.0) / len(draws))
    return Estimate(step_size * value, step_size * error)


@njit(nogil=True)
def _draws(
    step: Any,
    constants: Any,
    state: Any,
    rng: np.random.Generator,
    step_size: float,
    vector: Array,
    start: Array,
    records: Array,
) -> None:
    """Take one step from `start` for each record; not cached, as any loop over a step."""
    for i in range(len(records)):
        # Entry by entry: numba takes seconds to compile the assignment of a row.
        for j in range(vector.size):
            vector[j] = start[j]
        step(state, constants, rng, step_size)
        for j in range(vector.size):
            records[i, j] = vector[j]
