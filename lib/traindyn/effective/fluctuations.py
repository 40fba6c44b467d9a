r"""Gaussian fluctuations of SGD around its effective dynamics.

Where the effective dynamics is an ordinary differential equation, the statistics of SGD in
dimension d are :math:`u(t) + d^{-1/2} G(t)` to leading order, with the Gaussian process

.. math:: dG = J G\, dt + \sqrt{c_\delta D}\, dB, \qquad
          \mathrm{Cov}\, G(0) = d\, \mathrm{Cov}(u(x_0)),

J the Jacobian of the drift and D the covariance of one step in units of ``step_size**2``,
both along the solution u. At a fixed point both are constant, and G is a linear diffusion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.diffusion import LinearDiffusion, van_loan
from traindyn.effective._layout import Layout
from traindyn.effective.fixed_points import _STEP, FixedPoint, _jacobian
from traindyn.gaussian import symmetric_sqrt
from traindyn.trajectory import Trajectory

__all__ = ["LinearNoise", "fixed_point_noise", "linear_noise"]


@dataclass(frozen=True)
class LinearNoise:
    """The Gaussian process G on a grid of times, as a Markov chain.

    Vectors hold the entries of the statistics in order, of Gram matrices (fields whose name
    starts with R) the upper triangle.

    Attributes
    ----------
    times : ndarray, shape (T,)
        From 0 on.
    transitions : ndarray, shape (T - 1, n, n)
        ``E[G(t_{i+1}) | G(t_i)] = transitions[i] @ G(t_i)``.
    noises : ndarray, shape (T - 1, n, n)
        Covariance of G at the next time given G at this one.
    start : ndarray, shape (n, n)
        Covariance of G(0).
    """

    times: Array
    transitions: Array
    noises: Array
    start: Array

    def covariance(self) -> Array:
        """Covariance of G at each time, shape (T, n, n)."""
        found = [self.start]
        for transition, noise in zip(self.transitions, self.noises, strict=True):
            found.append(transition @ found[-1] @ transition.T + noise)
        return np.stack(found)

    def sample(self, replicas: int, *, rng: RNG) -> Array:
        """Draw independent paths of G.

        Parameters
        ----------
        replicas : int
            Number of paths.
        rng : int, SeedSequence or Generator
            Draws G(0) and the noise of each interval.

        Returns
        -------
        ndarray, shape (replicas, T, n)
        """
        replicas = _validate.integer("replicas", replicas, least=1)
        generator = _validate.generator("rng", rng)
        draws = generator.standard_normal((self.times.size, replicas, self.start.shape[0]))
        path = [draws[0] @ symmetric_sqrt(self.start)]
        for transition, noise, draw in zip(self.transitions, self.noises, draws[1:], strict=True):
            path.append(path[-1] @ transition.T + draw @ symmetric_sqrt(noise, scale=1.0))
        return np.stack(path, axis=1)


def fixed_point_noise(
    point: FixedPoint, *, volatility: Callable[[Any], Array], c_delta: float
) -> LinearDiffusion:
    r"""Limit of :math:`\sqrt d\,(u - u_*)` at a fixed point :math:`u_*`.

    Parameters
    ----------
    point : FixedPoint
        Of the drift at the same `c_delta`, stable or not.
    volatility : callable
        Covariance of one step in units of ``step_size**2``, shape (n, n).
    c_delta : float
        Step size times d.

    Returns
    -------
    LinearDiffusion
        Its ``stationary()`` is the covariance of the fluctuations where the point is stable.

    Raises
    ------
    ValueError
        If `c_delta` is negative, or the volatility is misshaped or not symmetric.

    Examples
    --------
    >>> from traindyn.effective import fixed_point_noise
    >>> from traindyn.effective import find
    >>> from traindyn.problems import SpikedTensor
    >>> problem = SpikedTensor(3, 100, signal=5.0)
    >>> equator = find(problem, problem.initial_statistics(), c_delta=1.0)
    >>> noise = fixed_point_noise(equator, volatility=problem.volatility, c_delta=1.0)
    >>> noise.names, noise.stationary().round(6).tolist()
    (('m', 'r2'), [[1.0, 0.0], [0.0, 6.0]])
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    layout = Layout(point.statistics)
    noise = c_delta * _validate.symmetric(
        "volatility", volatility(point.statistics), size=layout.size, scale=1.0
    )
    return LinearDiffusion(layout.names, point.jacobian, noise)


def linear_noise(
    path: Trajectory[Any],
    times: ArrayLike,
    *,
    drift: Callable[[Any], Any],
    volatility: Callable[[Any], Array],
    start: ArrayLike,
    c_delta: float,
) -> LinearNoise:
    """Linearise SGD around its effective dynamics.

    Parameters
    ----------
    path : Trajectory
        The effective dynamics from time 0 on, at the times where Jacobian and volatility are
        evaluated; between them they are interpolated by cubic splines.
    times : array_like, shape (T,)
        From 0 on, within those of `path`. Jacobian and volatility are frozen at the middle
        of each interval, an error of second order in its length.
    drift : callable
        Drift of the statistics.
    volatility : callable
        Covariance of one step in units of ``step_size**2``, shape (n, n).
    start : array_like, shape (n, n)
        Covariance of the statistics at time 0, times d.
    c_delta : float
        Step size times d.

    Raises
    ------
    ValueError
        If an argument is out of range, or the path has fewer than four times, or path or
        times do not begin at 0.
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    grid = _validate.frozen(_validate.increasing("times", times))
    if path.times.size < 4:
        raise ValueError(f"path must have at least 4 times, got {path.times.size}")
    for name, values in (("path.times", path.times), ("times", grid)):
        if values[0] != 0 or values[-1] > path.times[-1]:
            raise ValueError(
                f"{name} must run from 0 to at most {path.times[-1]:g}, "
                f"got {values[0]:g} to {values[-1]:g}"
            )
    kind: Any = type(path.statistics)
    seen = [kind(*record) for record in zip(*path.statistics, strict=True)]
    layout = Layout(seen[0])
    begin = _validate.frozen(_validate.symmetric("start", start, size=layout.size))

    def field(vector: Array) -> Array:
        return layout.pack(drift(layout.unpack(vector)))

    slopes = [_jacobian(field, layout, layout.pack(u), _STEP) for u in seen]
    jacobian = CubicSpline(path.times, slopes)
    diffusion = CubicSpline(path.times, [c_delta * volatility(u) for u in seen])
    middles, widths = 0.5 * (grid[1:] + grid[:-1]), np.diff(grid)
    pairs = [van_loan(jacobian(t), diffusion(t), w) for t, w in zip(middles, widths, strict=True)]
    return LinearNoise(
        times=grid,
        transitions=np.stack([pair[0] for pair in pairs]),
        noises=np.stack([pair[1] for pair in pairs]),
        start=begin,
    )
