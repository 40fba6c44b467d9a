r"""Diffusive limits of SGD on spiked PCA (BGJ Proposition 3.3 and Section 7.3-7.4).

Where the effective dynamics stands still, the statistics blown up by :math:`\sqrt n` follow
stochastic differential equations :math:`du = h(u)\,dt + F(u)\,dB`. They are given by their
drift and a noise factor F, which may lose rank, for any limit :math:`c_\delta` of
``step_size * dimension`` and any ridge unless stated; the source takes
:math:`c_\delta = 1` and no ridge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.linalg import expm, solve_continuous_lyapunov

from traindyn import _validate
from traindyn.gaussian import symmetric_sqrt
from traindyn.problems.base import Array
from traindyn.problems.spiked.tensor import SpikedTensor, Statistics

__all__ = [
    "Barrier",
    "Diffusion",
    "LinearDiffusion",
    "barrier",
    "critical_window",
    "critical_window_moment",
    "diverging_equator",
    "equator",
    "fluctuations",
    "with_diverging_signal",
]


class Diffusion(NamedTuple):
    """A stochastic differential equation ``du = drift(u) dt + factor(u) dB``.

    Attributes
    ----------
    names : tuple of str
        What the coordinates of u are.
    drift : callable
        From shape (..., dim) to shape (..., dim).
    factor : callable
        From shape (..., dim) to shape (..., dim, noises); the diffusion matrix is
        ``factor @ factor.T``.
    """

    names: tuple[str, ...]
    drift: Callable[[Array], Array]
    factor: Callable[[Array], Array]


class Barrier(NamedTuple):
    """The barrier that confines the equator for order three and more.

    Attributes
    ----------
    position : float
        Value of sqrt(n) m at its top.
    height : float
        In units of the noise temperature: escape times grow like its exponential.
    """

    position: float
    height: float


@dataclass(frozen=True)
class LinearDiffusion:
    """A linear equation ``du = matrix u dt + dM`` with ``d<M> = noise dt``.

    Attributes
    ----------
    names : tuple of str
    matrix : ndarray, shape (dim, dim)
    noise : ndarray, shape (dim, dim)
    """

    names: tuple[str, ...]
    matrix: Array
    noise: Array

    def diffusion(self) -> Diffusion:
        """Return the same equation by its drift and noise factor."""
        root = symmetric_sqrt(self.noise)
        return Diffusion(
            self.names,
            lambda u: np.asarray(u) @ self.matrix.T,
            lambda u: np.broadcast_to(root, (*np.shape(u)[:-1], *root.shape)),
        )

    def covariance(self, times: ArrayLike, start: ArrayLike) -> Array:
        """Covariance of u at given times.

        Parameters
        ----------
        times : array_like, shape (T,)
        start : array_like, shape (dim, dim)
            Covariance at time 0.

        Returns
        -------
        ndarray, shape (T, dim, dim)
        """
        n = self.matrix.shape[0]
        begin = _validate.positive_semidefinite("start", start, size=n)
        grid = _validate.finite("times", times, shape=(None,))
        # Van Loan's exponential: transition matrix and accumulated noise at once.
        block = np.zeros((2 * n, 2 * n))
        block[:n, :n], block[:n, n:], block[n:, n:] = -self.matrix, self.noise, self.matrix.T
        exponential = expm(grid[:, None, None] * block)
        transition = np.swapaxes(exponential[:, n:, n:], 1, 2)
        found = transition @ (begin @ np.swapaxes(transition, 1, 2) + exponential[:, :n, n:])
        return np.asarray(0.5 * (found + np.swapaxes(found, 1, 2)))

    def stationary(self) -> Array:
        """Stationary covariance, shape (dim, dim).

        Raises
        ------
        ValueError
            If the equation is not stable.
        """
        slowest = float(np.linalg.eigvals(self.matrix).real.max())
        if slowest >= 0:
            raise ValueError(
                "matrix must have eigenvalues with negative real parts for a stationary "
                f"covariance, got {slowest:.6g}"
            )
        found = solve_continuous_lyapunov(self.matrix, -self.noise)
        return np.asarray(0.5 * (found + found.T))


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
    :func:`traindyn.problems.spiked.printed.printed_double`. The source has no statement at
    the other fixed points.

    Parameters
    ----------
    problem : SpikedTensor
    statistics : Statistics
        A fixed point (:mod:`traindyn.problems.spiked.equilibria`).
    c_delta : float

    Returns
    -------
    LinearDiffusion

    Raises
    ------
    ValueError
        If the drift at the statistics exceeds 1e-8 of the largest rate times their size.

    Examples
    --------
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


def equator(problem: SpikedTensor, *, c_delta: float) -> Diffusion:
    r"""Limit of :math:`(\tilde m, r_\perp^2) = (\sqrt n\, m, r_\perp^2)` (BGJ 3.2).

    .. math::

        d\tilde m &= 2 \tilde m \big(2 \lambda 1_{k=2} - k r_\perp^{2(k-1)}
          - \tfrac\alpha2\big) dt + 2 \sqrt{k c_\delta}\, r_\perp^{k-1} dB \\
        d r_\perp^2 &= \big(-4 k r_\perp^{2(k-1)} (r_\perp^2 - c_\delta)
          - 2 \alpha r_\perp^2\big) dt.

    Parameters
    ----------
    problem : SpikedTensor
        Its signal is fixed as n grows.
    c_delta : float

    Returns
    -------
    Diffusion
        One noise, on the first coordinate.
    """
    signal = problem.signal if problem.order == 2 else 0.0
    return _equator(problem, signal, c_delta)


def with_diverging_signal(problem: SpikedTensor, ratio: float) -> SpikedTensor:
    r"""Return the problem with signal :math:`\lambda_n = \Lambda n^{(k-2)/2}`, Lambda = `ratio`."""
    ratio = _validate.positive("ratio", ratio)
    return replace(problem, signal=ratio * problem.dimension ** (0.5 * (problem.order - 2)))


def diverging_equator(problem: SpikedTensor, ratio: float, *, c_delta: float) -> Diffusion:
    r"""Limit of :math:`(\sqrt n\, m, r_\perp^2)` for :math:`\lambda_n = \Lambda n^{(k-2)/2}`.

    .. math:: d\tilde m = 2 k \tilde m \big(\Lambda \tilde m^{k-2} - r_\perp^{2(k-1)}
              - \tfrac{\alpha}{2k}\big) dt + 2 \sqrt{k c_\delta}\, r_\perp^{k-1} dB,

    with the radius as in :func:`equator`. BGJ (3.3) prints a drift linear in
    :math:`\tilde m`, see :func:`traindyn.problems.spiked.printed.printed_diverging_equator`.
    For order three and more there is no transition at :math:`\Lambda = 1`: zero attracts
    locally, and every path explodes in finite time, to plus infinity for odd k, for every
    :math:`\Lambda > 0` (:func:`barrier`).

    Parameters
    ----------
    problem : SpikedTensor
        Its signal is not used.
    ratio : float
        Lambda > 0.
    c_delta : float

    Returns
    -------
    Diffusion
    """
    return _equator(problem, _validate.positive("ratio", ratio), c_delta)


def barrier(order: int, ratio: float, *, c_delta: float) -> Barrier:
    r"""Barrier of :func:`diverging_equator` at :math:`r_\perp^2 = c_\delta`, without ridge.

    In units of the noise temperature the potential of :math:`\tilde m` is
    :math:`U = \tilde m^2 / (2 c_\delta) - \Lambda \tilde m^k / (k c_\delta^k)`, with its top at
    :math:`(c_\delta^{k-1} / \Lambda)^{1/(k-2)}`.

    Parameters
    ----------
    order : int
        At least three.
    ratio : float
        Lambda > 0.
    c_delta : float

    Returns
    -------
    Barrier

    Examples
    --------
    >>> barrier(4, 0.25, c_delta=1.0)
    Barrier(position=2.0, height=1.0)
    """
    k = _validate.integer("order", order, least=3)
    ratio = _validate.positive("ratio", ratio)
    c = _validate.positive("c_delta", c_delta)
    position = (c ** (k - 1) / ratio) ** (1.0 / (k - 2))
    return Barrier(position, (k - 2) / (2 * k) * position**2 / c)


def critical_window(kappa: float, *, c_delta: float) -> Diffusion:
    r"""Limit of :math:`y = n^{1/4} m` for order two at the threshold, without ridge.

    With :math:`\lambda = c_\delta + \kappa / \sqrt n` and time :math:`s = t / \sqrt n`,

    .. math:: dy = 4 (\kappa y - y^3)\, ds + 2 \sqrt 2\, c_\delta\, dB,

    an instance of the slower time scales left open in BGJ (footnote 2). It takes
    :math:`n^{3/2}` steps.

    Parameters
    ----------
    kappa : float
    c_delta : float

    Returns
    -------
    Diffusion
    """
    kappa = _validate.number("kappa", kappa)
    c = _validate.positive("c_delta", c_delta)

    def drift(u: Array) -> Array:
        y = np.asarray(u, dtype=np.float64)
        return np.asarray(4.0 * (kappa - y**2) * y)

    def factor(u: Array) -> Array:
        return np.full((*np.shape(u), 1), 2.0 * math.sqrt(2.0) * c)

    return Diffusion(("n^(1/4) m",), drift, factor)


def critical_window_moment(kappa: float, power: float, *, c_delta: float) -> float:
    r"""Stationary :math:`E |y|^p` in the critical window.

    The density is proportional to
    :math:`\exp((\kappa y^2 / 2 - y^4 / 4) / c_\delta^2)`.

    Examples
    --------
    >>> round(critical_window_moment(0.0, 2.0, c_delta=1.0), 3)
    0.676
    """
    kappa = _validate.number("kappa", kappa)
    power = _validate.non_negative("power", power)
    c = _validate.positive("c_delta", c_delta)
    top = max(kappa, 0.0) ** 2 / 4.0

    def density(y: float) -> float:
        return math.exp((0.5 * kappa * y**2 - 0.25 * y**4 - top) / c**2)

    # Beyond `far` the exponent is below -700 everywhere.
    far = math.sqrt(abs(kappa) + math.sqrt(2800.0) * c + max(kappa, 0.0))
    middle = [math.sqrt(kappa)] if kappa > 0 else None
    mass = quad(density, 0.0, far, points=middle, epsabs=0.0)[0]
    moment = quad(lambda y: y**power * density(y), 0.0, far, points=middle, epsabs=0.0)[0]
    return float(moment / mass)


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
