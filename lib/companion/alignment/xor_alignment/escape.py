r"""Leaving zero overlap at finite precision: why alignment waits for log N (beyond the source).

If the centroids of each label have mean zero, neurons without overlap see both labels alike in
direction, and :math:`m = 0` is invariant under the effective dynamics. The limit of a random
start lies on that set; in dimension N the start, and every step, puts overlaps of size
:math:`N^{-1/2}` there. As long as they are small they obey a linear equation along the solution
:math:`(v, R^\perp)(t)` with m = 0, driven by the noise of the steps,

.. math::

    \dot m_i = -v_i \sum_y S_y \Big( h_{y,i}\, m_i + \sum_j D_{ij} v_j m_j \Big) - \alpha m_i,
    \qquad \mathrm{noise} = \frac{c_\delta}{N} v_i v_j \sum_y S_y B^y_{ij},

.. math::

    S_y = \sum_{c : y_c = y} p_c (s_c s_c^T + I / \lambda), \quad
    h_{y,i} = \sqrt{\frac{\lambda}{2 \pi R_{ii}}}\, E[e_y \mid \xi_i = 0], \quad
    D_{ij} = E[1_i 1_j \sigma'(o)], \quad B^y_{ij} = E[1_i 1_j e_y^2],

with activations :math:`\xi \sim N(0, R^\perp / \lambda)`, active neurons :math:`1_i`, output
:math:`o = v \cdot g(\xi)` and errors :math:`e_y = \sigma(o) - y`. The first term is the kink of
the ReLU: a small overlap decides the inputs near the boundary of a neuron.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm
from scipy.special import expit

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.gaussian import Rule, sobol, symmetric_sqrt
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture, checked

__all__ = ["Escape", "Linearisation", "escape", "linearise"]

_NODES = 2**12


class Linearisation(NamedTuple):
    """Linear dynamics of the overlaps near zero, in the order of m row by row.

    Attributes
    ----------
    growth : ndarray, shape (K d, K d)
        Derivative of the drift of m.
    noise : ndarray, shape (K d, K d)
        Covariance of one step, in units of ``step_size**2``.
    """

    growth: Array
    noise: Array


def linearise(
    problem: TwoLayerMixture, statistics: Statistics, *, rule: Rule | None = None
) -> Linearisation:
    """Linearise the dynamics of the overlaps around zero.

    Parameters
    ----------
    problem : TwoLayerMixture
        Of finite precision, such as the XOR mixture.
    statistics : Statistics
        Its m is taken for zero.
    rule : Rule, optional
        Gaussian rule of dimension K; 4096 Sobol nodes unless given.

    Raises
    ------
    ValueError
        If the precision is infinite, the centroids of a label do not have mean zero, or a
        neuron vanishes.

    Examples
    --------
    A single neuron of small v turns towards the line of its label, and away from the other one,
    at the rate ``v sqrt(lambda / (2 pi)) / 4``:

    >>> import numpy as np
    >>> from companion.alignment.xor_alignment.escape import linearise
    >>> from traindyn.problems import TwoLayerMixture
    >>> problem = TwoLayerMixture.xor(1, 100, precision=10.0, ridge=0.05)
    >>> found = linearise(problem, problem.initial_statistics(v=[1e-3]))
    >>> (np.diag(found.growth) + 0.05).round(6).tolist()
    [0.000315, -0.000315]
    """
    statistics = checked(problem, statistics, single=True)
    precision = _validate.positive("problem.precision", problem.precision)
    seconds = _second_moments(problem)
    v, R = np.asarray(statistics.v, dtype=float), np.asarray(statistics.R_perp, dtype=float)
    squares = np.diag(R)
    if squares.min() <= 0:
        raise ValueError(
            f"statistics must hold neurons that do not vanish, got R_perp[i, i] = {squares.min():g}"
        )
    rule = _default(problem.width) if rule is None else rule
    if rule.dim != problem.width:
        raise ValueError(f"rule must have dimension {problem.width}, got {rule.dim}")
    xi = rule.nodes @ symmetric_sqrt(R / precision, scale=1.0)
    active = (xi > 0).astype(float)
    o = np.maximum(xi, 0.0) @ v
    slope = (active.T * (rule.weights * expit(o) * expit(-o))) @ active
    at_boundary = np.array([_mean_output(rule, xi, v, R, i) for i in range(problem.width)])
    density = np.sqrt(precision / (2.0 * math.pi * squares))
    growth, noise = np.zeros((2, problem.width, problem.signal, problem.width, problem.signal))
    for y, S in enumerate(seconds):
        pull = np.diag(v * density * (at_boundary - y)) + np.outer(v, v) * slope
        kicks = (active.T * (rule.weights * np.square(expit(o) - y))) @ active
        growth -= np.einsum("ij,nm->injm", pull, S)
        noise += np.einsum("ij,nm->injm", np.outer(v, v) * kicks, S)
    size = problem.width * problem.signal
    return Linearisation(
        growth.reshape(size, size) - problem.ridge * np.eye(size), noise.reshape(size, size)
    )


@dataclass(frozen=True)
class Escape:
    r"""Overlaps in the linear regime: a Gaussian Markov chain on a grid of times.

    :math:`m(t_{n+1}) = P_n m(t_n) + N^{-1/2} Q_n \zeta_n` with :math:`\zeta_n \sim N(0, I)`.

    Attributes
    ----------
    times : ndarray, shape (T,)
    rates : ndarray, shape (T,)
        Largest growth rate at each time.
    transitions : ndarray, shape (T - 1, n, n)
        P, for n = K d.
    kicks : ndarray, shape (T - 1, n, n)
        Q, symmetric.
    signal : int
        Dimension d of the signal space.
    variance : float
        N times the variance of an initial overlap.
    """

    times: Array
    rates: Array
    transitions: Array
    kicks: Array
    signal: int
    variance: float

    def paths(self, dimension: float, draws: int, *, rng: RNG) -> Array:
        """Draw overlaps for SGD in dimension N, shape (draws, T, K, d).

        Parameters
        ----------
        dimension : float
            N.
        draws : int
            Number of independent paths.
        rng : int, SeedSequence or Generator
            Of the starts and of the kicks.
        """
        scale = 1.0 / math.sqrt(_validate.positive("dimension", dimension))
        draws = _validate.integer("draws", draws, least=1)
        generator = _validate.generator("rng", rng)
        size = self.transitions.shape[-1]
        found = np.empty((self.times.size, draws, size))
        found[0] = math.sqrt(self.variance) * scale * generator.standard_normal((draws, size))
        for n, (P, Q) in enumerate(zip(self.transitions, self.kicks, strict=True)):
            found[n + 1] = found[n] @ P.T + scale * generator.standard_normal((draws, size)) @ Q
        return np.moveaxis(found, 0, 1).reshape(draws, self.times.size, -1, self.signal)


def escape(
    problem: TwoLayerMixture,
    times: ArrayLike,
    statistics: Statistics,
    *,
    c_delta: float,
    rule: Rule | None = None,
) -> Escape:
    """Linearise along a solution of the effective dynamics without overlap.

    Parameters
    ----------
    problem : TwoLayerMixture
        Of finite precision; the centroids of each label have mean zero.
    times : array_like, shape (T,)
        Increasing from 0, close enough for the trapezoidal rule.
    statistics : Statistics
        The solution at these times, for example
        ``traindyn.effective.ode.solve(problem, problem.initial_statistics(v), times)``.
    c_delta : float
        Step size times dimension.
    rule : Rule, optional
        As for :func:`linearise`.

    Raises
    ------
    ValueError
        As :func:`linearise`, or if the times do not start at zero.
    """
    statistics = checked(problem, statistics)
    grid = _validate.frozen(_validate.increasing("times", times))
    c_delta = _validate.non_negative("c_delta", c_delta)
    if grid[0] != 0 or grid.size != len(statistics.v):
        raise ValueError(
            f"times must start at 0, one for each of the {len(statistics.v)} statistics, "
            f"got {grid.size} from {grid[0]:g} on"
        )
    found = [
        linearise(problem, Statistics(*row), rule=rule) for row in zip(*statistics, strict=True)
    ]
    transitions, kicks = [], []
    for h, here, there in zip(np.diff(grid), found[:-1], found[1:], strict=True):
        P = np.asarray(expm(0.5 * h * (here.growth + there.growth)))
        transitions.append(P)
        kick = 0.5 * h * c_delta * (P @ here.noise @ P.T + there.noise)
        kicks.append(symmetric_sqrt(kick, scale=1.0))
    return Escape(
        times=grid,
        rates=np.array([np.linalg.eigvals(each.growth).real.max() for each in found]),
        transitions=np.array(transitions),
        kicks=np.array(kicks),
        signal=problem.signal,
        variance=problem.initial_variance,
    )


def _second_moments(problem: TwoLayerMixture) -> list[Array]:
    """Second moments of the signal coordinates over each label, after checking their means."""
    noise = np.eye(problem.signal) / problem.precision
    found = []
    for y in (0, 1):
        chosen = problem.labels == y
        p, s = problem.weights[chosen], problem.centroids[chosen]
        mean = np.abs(p @ s).max(initial=0.0)
        if mean > 1e-12:
            raise ValueError(
                f"problem must have centroids of mean zero for each label, got {mean:g} for {y}"
            )
        found.append((s.T * p) @ s + p.sum() * noise)
    return found


def _mean_output(rule: Rule, xi: Array, v: Array, R: Array, i: int) -> float:
    """Mean of sigma(o) given that neuron i is at its boundary."""
    given = xi - np.outer(xi[:, i], R[i] / R[i, i])
    given[:, i] = 0.0
    return float(rule.weights @ expit(np.maximum(given, 0.0) @ v))


@cache
def _default(width: int) -> Rule:
    return sobol(width, _NODES, rng=0)
