r"""Diffusive limits of SGD on spiked PCA (BGJ Proposition 3.3 and Section 7.3-7.4).

Where the effective dynamics stands still, the statistics blown up by :math:`\sqrt n` follow
stochastic differential equations :math:`du = h(u)\,dt + F(u)\,dB`. They are given by their
drift and a noise factor F, which may lose rank, for any limit :math:`c_\delta` of
``step_size * dimension`` and any ridge unless stated; the source takes
:math:`c_\delta = 1` and no ridge.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from traindyn import _validate
from traindyn._types import Array
from traindyn.diffusion import Diffusion, LinearDiffusion
from traindyn.problems.spiked.tensor import SpikedTensor, Statistics

__all__ = [
    "diverging_equator",
    "equator",
    "fluctuations",
    "mean_shift",
    "small_noise",
    "with_diverging_signal",
]


def fluctuations(
    problem: SpikedTensor, statistics: Statistics, *, c_delta: float
) -> LinearDiffusion:
    r"""Limit of :math:`\sqrt n (u - u_*)` at a fixed point :math:`u_*` with both coordinates.

    The matrix is the Jacobian of the effective dynamics and the noise
    :math:`c_\delta J V J^T`. At :math:`(0, c_\delta)` without ridge this is

    .. math::

        d\tilde m &= 2 k c_\delta^{k-1} \big(\tfrac\lambda{c_\delta} 1_{k=2} - 1\big)
          \tilde m\, dt + 2 \sqrt k\, c_\delta^{k/2}\, dB^{(1)} \\
        d\tilde r &= -4 k c_\delta^{k-1} \tilde r\, dt
          + 4 k\, c_\delta^{(k+1)/2}\, dB^{(2)},

    which corrects BGJ (3.5) and (7.8) in three places, see
    :func:`companion.effective_dynamics.pca.printed.printed_double`. The source has no statement at
    the other fixed points.

    Parameters
    ----------
    problem : SpikedTensor
        Its order, signal and ridge enter; n stands for infinity.
    statistics : Statistics
        A fixed point (:mod:`traindyn.problems.spiked.equilibria`).
    c_delta : float
        Limit of ``step_size * dimension``.

    Raises
    ------
    ValueError
        If the drift at the statistics exceeds 1e-8 of the largest rate times their size.

    Examples
    --------
    >>> from traindyn.problems import SpikedTensor
    >>> from traindyn.problems.spiked.diffusive import fluctuations
    >>> from traindyn.problems.spiked.tensor import Statistics
    >>> problem = SpikedTensor(3, 100, signal=5.0)
    >>> limit = fluctuations(problem, Statistics(0.0, 1.0), c_delta=1.0)
    >>> limit.stationary().round(12).tolist()
    [[1.0, 0.0], [0.0, 6.0]]
    """
    matrix = problem.jacobian(statistics, c_delta=c_delta)
    drift = np.abs(problem.drift(statistics, c_delta=c_delta)).max()
    allowed = 1e-8 * np.abs(matrix).max() * max(1.0, *np.abs(statistics))
    if drift > allowed:
        raise ValueError(
            f"statistics must be a fixed point, where the drift is below {allowed:.3g}, got a "
            f"drift of {drift:.3g}"
        )
    return LinearDiffusion(
        ("sqrt(n) (m - m*)", "sqrt(n) (r2 - r2*)"),
        matrix,
        c_delta * problem.volatility(statistics),
    )


def mean_shift(problem: SpikedTensor, statistics: Statistics, *, c_delta: float) -> Statistics:
    r"""Limit of :math:`n\,(E u - u_*)` in the stationary regime at a stable fixed point.

    Around :math:`u_*` the drift of one step has mean zero to the order 1/n, which gives

    .. math:: h'(u_*)\, b + \tfrac12 h''(u_*) : C + h_1(u_*) = 0,

    with C the stationary covariance of :func:`fluctuations` and h_1 the limit of n times the
    excess of the exact drift of one step over h, which has only the radial component
    :math:`c_\delta \big(d^2 r_\perp^2 - 4 k R^{2k-2} + 4 k (k-1) R^{2k-4} r_\perp^2\big)`,
    :math:`d = 2 k R^{2k-2} + \alpha`. Not in the source.

    Parameters
    ----------
    problem : SpikedTensor
        Its order, signal and ridge enter; n stands for infinity.
    statistics : Statistics
        A stable fixed point.
    c_delta : float
        Limit of ``step_size * dimension``.

    Raises
    ------
    ValueError
        As :func:`fluctuations`, and if the fixed point is not stable.

    Examples
    --------
    >>> from traindyn.problems import SpikedTensor
    >>> from traindyn.problems.spiked.diffusive import mean_shift
    >>> from traindyn.problems.spiked.tensor import Statistics
    >>> problem = SpikedTensor(2, 100, signal=2.0)
    >>> shift = mean_shift(problem, Statistics(1.0, 1.0), c_delta=1.0)
    >>> print(shift.m.round(6), shift.r2.round(6))
    -3.125 1.833333
    """
    covariance = fluctuations(problem, statistics, c_delta=c_delta).stationary()
    m, r2 = (float(value) for value in statistics)
    finite = np.array([0.0, _finite_drift(problem, np.array(m), np.array(r2), c_delta)])
    curved = 0.5 * np.einsum("ijk,jk->i", _curvature(problem, m, r2, c_delta), covariance)
    jacobian = problem.jacobian(statistics, c_delta=c_delta)
    return Statistics(*(np.array(part) for part in np.linalg.solve(jacobian, -curved - finite)))


def small_noise(problem: SpikedTensor, *, c_delta: float) -> Diffusion:
    r"""Equation with noise of order :math:`n^{-1/2}` that holds in every regime at once.

    .. math:: du = \big(h(u) + \tfrac1n h_1(u)\big)\, dt
              + \sqrt{\tfrac{c_\delta}{n} J V J^T(u)}\; dB, \qquad u = (m, r_\perp^2),

    whose drift is that of one step of SGD exactly: h is the effective dynamics (BGJ (3.1)), and
    h_1 as in :func:`mean_shift`. The ballistic limit and every diffusive one of this room are
    limits of it, so that it also covers the passage from the equator to the informative fixed
    points, for which BGJ Section 3 would stitch them together. It is good as long as one step
    changes the drift by little.

    Parameters
    ----------
    problem : SpikedTensor
        Its dimension n enters.
    c_delta : float
        Step size times dimension; zero leaves no noise.

    Returns
    -------
    Diffusion
        Two noises, along the spike and along the orthogonal part of x.
    """
    c = _validate.non_negative("c_delta", c_delta)
    k, scale = problem.order, c / problem.dimension

    def drift(u: Array) -> Array:
        m, r2 = np.moveaxis(np.asarray(u, dtype=np.float64), -1, 0)
        found = np.stack(problem.drift(Statistics(m, r2), c_delta=c), axis=-1)
        found[..., 1] += _finite_drift(problem, m, r2, c) / problem.dimension
        return np.asarray(found)

    def factor(u: Array) -> Array:
        m, r2 = np.moveaxis(np.asarray(u, dtype=np.float64), -1, 0)
        x = np.stack([m, np.sqrt(np.maximum(r2, 0.0))], axis=-1)
        square = (x**2).sum(axis=-1)[..., None, None]
        # Root of the covariance of the gradient, eigenvalues k apart; then the gradients of
        # m and r2 along the two directions.
        outer = x[..., :, None] * x[..., None, :]
        unit = np.divide(outer, square, out=np.zeros_like(outer), where=square > 0)
        root = np.eye(2) + (math.sqrt(k) - 1.0) * unit
        root *= 2.0 * np.sqrt(scale * k * square ** (k - 1))
        root[..., 1, :] *= 2.0 * x[..., 1, None]
        return np.asarray(root)

    return Diffusion(("m", "r2"), drift, factor)


def equator(problem: SpikedTensor, *, c_delta: float) -> Diffusion:
    r"""Limit of :math:`(\tilde m, r_\perp^2) = (\sqrt n\, m, r_\perp^2)` (BGJ (3.2)).

    .. math::

        d\tilde m &= 2 \tilde m \big(2 \lambda 1_{k=2} - k r_\perp^{2(k-1)}
          - \tfrac\alpha2\big) dt + 2 \sqrt{k c_\delta}\, r_\perp^{k-1} dB \\
        d r_\perp^2 &= \big(-4 k r_\perp^{2(k-1)} (r_\perp^2 - c_\delta)
          - 2 \alpha r_\perp^2\big) dt.

    At order two, c_delta = 1 and no ridge this is MDL Section 12.4.2, its radius corrected.

    Parameters
    ----------
    problem : SpikedTensor
        Its signal is fixed as n grows.
    c_delta : float
        Limit of ``step_size * dimension``.

    Returns
    -------
    Diffusion
        One noise, on the first coordinate.
    """
    signal = problem.signal if problem.order == 2 else 0.0
    return _equator(problem, signal, c_delta)


def with_diverging_signal(problem: SpikedTensor, scaled_signal: float) -> SpikedTensor:
    r"""Return the problem of signal :math:`\Lambda n^{(k-2)/2}`; `scaled_signal` is Lambda."""
    scaled_signal = _validate.positive("scaled_signal", scaled_signal)
    return replace(problem, signal=scaled_signal * problem.dimension ** (0.5 * (problem.order - 2)))


def diverging_equator(problem: SpikedTensor, scaled_signal: float, *, c_delta: float) -> Diffusion:
    r"""Limit of :math:`(\sqrt n\, m, r_\perp^2)` for :math:`\lambda_n = \Lambda n^{(k-2)/2}`.

    .. math:: d\tilde m = 2 k \tilde m \big(\Lambda \tilde m^{k-2} - r_\perp^{2(k-1)}
              - \tfrac{\alpha}{2k}\big) dt + 2 \sqrt{k c_\delta}\, r_\perp^{k-1} dB,

    with the radius as in :func:`equator`. BGJ (3.3) prints a drift linear in
    :math:`\tilde m`.
    For order three and more there is no transition at :math:`\Lambda = 1`: zero attracts
    locally, and every path explodes in finite time, to plus infinity for odd k, for every
    :math:`\Lambda > 0`.

    Parameters
    ----------
    problem : SpikedTensor
        Its signal is not used.
    scaled_signal : float
        Lambda > 0.
    c_delta : float
        Limit of ``step_size * dimension``.
    """
    return _equator(problem, _validate.positive("scaled_signal", scaled_signal), c_delta)


def _finite_drift(problem: SpikedTensor, m: Array, r2: Array, c: float) -> Array:
    """N times the excess of the exact drift of r2 in one step over its limit; m has none."""
    k, square = problem.order, m * m + r2
    bulk, extra = 4.0 * k * square ** (k - 1), 4.0 * k * (k - 1) * square ** (k - 2)
    return np.asarray(c * ((0.5 * bulk + problem.ridge) ** 2 * r2 - bulk + extra * r2))


def _curvature(problem: SpikedTensor, m: float, r2: float, c: float) -> Array:
    """Second derivatives of the drift of (m, r2), shape (2, 2, 2), first axis the drift."""
    k = problem.order
    square, excess = m * m + r2, r2 - c
    slope = 2.0 * k * (k - 1) * square ** (k - 2)
    bend = 2.0 * k * (k - 1) * (k - 2) * square ** (k - 3) if k > 2 else 0.0
    pull = 2.0 * problem.signal * k * (k - 1) * (k - 2) * m ** (k - 3) if k > 2 else 0.0
    mixed = slope + 2.0 * m * m * bend
    drift_m = [[pull - 6.0 * m * slope - 4.0 * m**3 * bend, -mixed], [-mixed, -m * bend]]
    across = m * (slope + excess * bend)
    drift_r2 = [[excess * mixed, across], [across, slope + 0.5 * excess * bend]]
    return np.array([drift_m, -4.0 * np.array(drift_r2)])


def _equator(problem: SpikedTensor, signal: float, c_delta: float) -> Diffusion:
    """Equator with the term ``2 k signal m**(k - 1)`` left in the limit."""
    c = _validate.non_negative("c_delta", c_delta)
    k, ridge = problem.order, problem.ridge

    def drift(u: Array) -> Array:
        m, r2 = np.moveaxis(np.asarray(u, dtype=np.float64), -1, 0)
        decay = 2.0 * k * r2 ** (k - 1)
        dm = 2.0 * k * signal * m ** (k - 1) - (decay + ridge) * m
        dr2 = -2.0 * decay * (r2 - c) - 2.0 * ridge * r2
        return np.stack([dm, dr2], axis=-1)

    def factor(u: Array) -> Array:
        r2 = np.asarray(u, dtype=np.float64)[..., 1]
        columns = np.zeros((*r2.shape, 2, 1))
        columns[..., 0, 0] = 2.0 * np.sqrt(k * c * np.abs(r2) ** (k - 1))
        return columns

    return Diffusion(("sqrt(n) m", "r2"), drift, factor)
