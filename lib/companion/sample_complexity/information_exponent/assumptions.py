r"""Assumption A (MDL Definition 11.5): the sample error of the gradient is not too large.

With :math:`H = L - \Phi` it asks, uniformly on the sphere, for

.. math:: E \langle \nabla H, v_0 \rangle^2 \le C, \qquad
          E |\nabla H|^p \le C N^{p/2} \quad\text{for some } p > 4 .

The second has the size it has for independent sub-Gaussian coordinates, by Jensen's inequality
over the coordinates: :math:`(\sum_i z_i^2)^{p/2} \le N^{p/2-1} \sum_i |z_i|^p`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.special import gammaln

from companion.sample_complexity.information_exponent.model import SingleIndex
from traindyn import _validate
from traindyn._types import RNG, Array

__all__ = ["GradientErrors", "gradient_errors", "norm_moment", "norm_moment_bound"]


class GradientErrors(NamedTuple):
    r"""Sample errors of the spherical gradient at one overlap.

    Attributes
    ----------
    along : ndarray, shape (n,)
        :math:`\langle \nabla H, v_0 \rangle`.
    norm : ndarray, shape (n,)
        :math:`|\nabla H|`.
    """

    along: Array
    norm: Array


def gradient_errors(problem: SingleIndex, m: float, n: int, *, rng: RNG) -> GradientErrors:
    """Draw sample errors of the gradient, at a cost that does not depend on N.

    Parameters
    ----------
    problem : SingleIndex
        Gives the law of a sample and the loss, in dimension N.
    m : float
        In (-1, 1).
    n : int
        Number of independent samples.
    rng : int, SeedSequence or Generator
        Of the samples.

    Raises
    ------
    ValueError
        If `m` or `n` is out of range.
    """
    place = _validate.number("m", m)
    if not -1 < place < 1:
        raise ValueError(f"m must lie in (-1, 1), got {m!r}")
    count = _validate.integer("n", n, least=1)
    draw, slope, parameters = problem.compiled()
    root = math.sqrt(1 - place * place)
    tangent, rest = np.empty(count), np.empty(count)
    generator = _validate.generator("rng", rng)
    freedom = 0.5 * (problem.dimension - 2)
    _sample(draw, slope, place, root, freedom, parameters, generator, tangent, rest)
    tangent -= float(problem.moments(place).pull) / root
    return GradientErrors(root * tangent, np.hypot(tangent, rest))


@njit(nogil=True, error_model="numpy")
def _sample(
    draw: Callable[..., Any],
    slope: Callable[..., Any],
    m: float,
    r: float,
    half: float,
    parameters: Any,
    rng: np.random.Generator,
    tangent: Array,
    rest: Array,
) -> None:
    """Component of the gradient towards the direction, and the length of all others."""
    for i in range(tangent.size):
        s, y = draw(rng, parameters)
        g = rng.standard_normal()
        c = slope(m * s + r * g, y, parameters)
        tangent[i] = c * (r * s - m * g)
        rest[i] = abs(c) * math.sqrt(2.0 * rng.standard_gamma(half))


def norm_moment(n: ArrayLike, p: float) -> Array:
    r"""Return :math:`E|z|^p` for n independent standard normal coordinates.

    Parameters
    ----------
    n : array_like
        Positive.
    p : float
        Positive.

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.assumptions import norm_moment
    >>> norm_moment([1, 10], 4.0).round(9).tolist()  # n (n + 2)
    [3.0, 120.0]
    """
    size = _validate.positives("n", n)
    half = _validate.positive("p", p) / 2
    return np.asarray(np.exp(half * np.log(2.0) + gammaln(size / 2 + half) - gammaln(size / 2)))


def norm_moment_bound(n: ArrayLike, p: float) -> Array:
    r"""Bound :math:`N^{p/2} E|z_1|^p` on :func:`norm_moment`, for p from 2 on."""
    if _validate.positive("p", p) < 2:
        raise ValueError(f"p must be at least 2, got {p!r}")
    return np.asarray(_validate.positives("n", n) ** (p / 2) * norm_moment(1, p))
