r"""The minimum of the risk that gradient descent reaches in the stable phase, with its overlap.

A neuron :math:`\theta = (x, \theta_\perp)` with :math:`\rho = \|\theta_\perp\|` learns a target
with one hard direction, whose coordinate is s. Leaving one sample out, as for the null branch
(:mod:`traindyn.dmft.stable`), but with a gradient that vanishes along the direction too, gives

.. math:: V + \kappa L'(V, y) = x s + \rho Z, \qquad E[s L'(V, y)] = 0, \qquad
          \rho^2 = \delta \kappa^2 E[L'(V, y)^2], \qquad
          \frac1\delta = E\Big[\frac{\kappa G}{1 + \kappa G}\Big], \quad G = L''(V, y)

(derived here). The second equation holds for x = 0, since the direction is hard. Divided by x it
becomes :math:`E[G s^2 / (1 + \kappa G)] = 0` as :math:`x \to 0`: the branch with an overlap leaves
the null branch where the Hessian of the latter has its first informative negative eigenvalue, at
:math:`\delta_{NN}`. For a GeLU neuron with a large output scale it goes to larger sample ratios
from there, and the overlap grows continuously; with a small one it first goes back, to a turning
point below :math:`\delta_{NN}`, and at :math:`\delta_{NN}` the minimum has an overlap already.

Below, the minimum has no overlap in the limit. In dimension d the gradient along the direction has
a mean square of :math:`E[s^2 L'^2] / n` where it would vanish in the limit, and the curvature there
is :math:`c = E[G s^2 / (1 + \kappa G)]`, so that

.. math:: d\, E[x^2] \to \frac{E[s^2 L'(V, y)^2]}{\delta c^2} ,

which diverges at :math:`\delta_{NN}`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import root

from traindyn import _validate
from traindyn._types import Array
from traindyn.dmft import proximal, stable_limit
from traindyn.gaussian import gauss_hermite
from traindyn.problems.multi_index import MultiIndex, decompose

__all__ = ["Minimum", "blind_overlap", "informed_branch", "informed_minimum"]

_RULE = gauss_hermite(2, 81)
_KEPT = _RULE.weights > 1e-18
_S, _Z = _RULE.nodes[_KEPT].T
_WEIGHTS = _RULE.weights[_KEPT] / _RULE.weights[_KEPT].sum()
_START = 60.0
"""Samples per dimension where the continuation starts, beside the minimum of the population."""
_STEP = 0.15
"""Of the continuation, in the logarithm of the sample ratio."""


class Minimum(NamedTuple):
    """A minimum of the risk with a positive overlap.

    Attributes
    ----------
    sample_ratio : float
    overlap : float
        x, the component along the hard direction.
    rest : float
        rho, the norm of the other components.
    kappa : float
        Variance parameter of the proximal map.
    stability : float
        ``sample_ratio E[T^2]``; below one where the equations describe a minimum.
    train_loss : float
    """

    sample_ratio: float
    overlap: float
    rest: float
    kappa: float
    stability: float
    train_loss: float

    @property
    def cosine(self) -> float:
        """Cosine of the neuron with the hard direction."""
        return self.overlap / float(np.hypot(self.overlap, self.rest))


def informed_minimum(problem: MultiIndex, sample_ratio: float) -> Minimum:
    """Solve the equations with an overlap, by continuation from a large sample ratio.

    Parameters
    ----------
    problem : MultiIndex
        One neuron; a target with one direction, hard and without noise.
    sample_ratio : float
        Samples per dimension, at most 60.

    Returns
    -------
    Minimum

    Raises
    ------
    ValueError
        If the problem is another one or the sample ratio is out of range.
    FloatingPointError
        If no solution with an overlap is found.

    Examples
    --------
    >>> from companion.phase_transitions.thresholds.minimum import informed_minimum
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> found = informed_minimum(MultiIndex(second_layer=[8.0]), 8.0)
    >>> round(found.cosine, 2), found.stability < 1
    (0.84, True)
    """
    delta = _validate.positive("sample_ratio", sample_ratio)
    if delta > _START:
        raise ValueError(f"sample_ratio must be at most {_START:g}, got {sample_ratio!r}")
    found = informed_branch(problem, [delta])
    if not found:
        raise FloatingPointError(
            f"sample_ratio must be large enough for a minimum with an overlap, got {sample_ratio!r}"
        )
    return found[0]


def informed_branch(problem: MultiIndex, sample_ratios: ArrayLike) -> list[Minimum]:
    """Follow the minimum with an overlap down to where it ends.

    Parameters
    ----------
    problem : MultiIndex
        As for :func:`informed_minimum`.
    sample_ratios : array_like, shape (D,)
        Decreasing, positive, at most 60.

    Returns
    -------
    list of Minimum
        At the sample ratios before the first at which none is found.

    Raises
    ------
    ValueError
        If the problem is another one or a sample ratio is out of range.

    Examples
    --------
    >>> from companion.phase_transitions.thresholds.minimum import informed_branch
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> len(informed_branch(MultiIndex(second_layer=[8.0]), [8.0, 6.0, 5.9]))
    2
    """
    _require(problem)
    wanted = _validate.finite("sample_ratios", sample_ratios, shape=(None,))
    if wanted.size == 0 or wanted[0] > _START or wanted[-1] <= 0 or np.any(np.diff(wanted) >= 0):
        raise ValueError(
            f"sample_ratios must decrease from at most {_START:g} and be positive, got "
            f"{sample_ratios!r}"
        )
    labels = problem.target.signal(_S[:, None])

    def mean_loss(overlap: float) -> float:
        predictions = problem.predict((overlap * _S)[:, None])
        return float(_WEIGHTS @ problem.loss.value(labels, predictions))

    scan = np.geomspace(1e-3, 1e2, 400)
    best = scan[np.argmin([mean_loss(overlap) for overlap in scan])]
    slopes, curvatures = _derivatives(problem, best * _S, labels)
    kappa = 1 / (_START * float(_WEIGHTS @ curvatures))
    rest = np.sqrt(_START * float(_WEIGHTS @ slopes**2)) * kappa
    point, last = np.log([best, rest, kappa]), _START
    minima: list[Minimum] = []
    for each in wanted.tolist():
        for delta in np.geomspace(last, each, 2 + int(np.log(last / each) / _STEP))[1:].tolist():
            try:
                found = root(_residuals, point, args=(problem, labels, delta))
            except FloatingPointError:  # beyond a turning point the search leads anywhere
                return minima
            if not found.success or found.x[0] < np.log(1e-4 * best):
                return minima
            point = found.x
        minima.append(_minimum(problem, labels, each, np.exp(point)))
        last = each
    return minima


def blind_overlap(problem: MultiIndex, sample_ratio: float) -> float:
    """Find the limit of d times the mean squared overlap of the minimum below the threshold.

    Parameters
    ----------
    problem : MultiIndex
        As for :func:`informed_minimum`.
    sample_ratio : float
        Samples per dimension, where the null branch is stable and below the threshold.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the problem is another one, or the sample ratio is above the threshold or outside the
        stable phase.
    FloatingPointError
        As for :func:`~traindyn.dmft.stable.stable_limit`.

    Examples
    --------
    >>> from companion.phase_transitions.thresholds.minimum import blind_overlap
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> round(blind_overlap(MultiIndex(second_layer=[8.0]), 4.0), 2)
    2.79
    """
    _require(problem)
    limit = stable_limit(problem, sample_ratio)
    labels = problem.target.signal(_S[:, None])
    v = proximal(problem, labels, np.sqrt(limit.q) * _Z, limit.kappa)
    slopes, _ = _derivatives(problem, v, labels)
    parameter = limit.sample_ratio * limit.kappa
    curvature = (1 - float(limit.hessian.matrix(parameter)[0, 0])) / parameter
    if not limit.stable or curvature <= 0:
        raise ValueError(
            f"sample_ratio must be below the threshold and in the stable phase, got "
            f"{sample_ratio!r} with a curvature of {curvature:.3g} and sample_ratio E[T^2] = "
            f"{limit.stability:.3g}"
        )
    return float(_WEIGHTS @ (_S * slopes) ** 2) / (limit.sample_ratio * curvature**2)


def _require(problem: MultiIndex) -> None:
    target = problem.target
    if problem.width != 1:
        raise ValueError(f"problem must have one neuron, got {problem.width}")
    if problem.k != 1 or target.noise or decompose(target).easy.shape[1]:
        raise ValueError(
            f"problem.target must have one direction, hard and without noise, got {target.name}"
        )


def _minimum(problem: MultiIndex, labels: Array, delta: float, point: Array) -> Minimum:
    overlap, rest, kappa = (float(value) for value in point)
    v = proximal(problem, labels, overlap * _S + rest * _Z, kappa)
    t = kappa * _derivatives(problem, v, labels)[1]
    t /= 1 + t
    loss = float(_WEIGHTS @ problem.loss.value(labels, problem.predict(v[:, None])))
    return Minimum(delta, overlap, rest, kappa, delta * float(_WEIGHTS @ t**2), loss)


def _derivatives(problem: MultiIndex, v: Array, labels: Array) -> tuple[Array, Array]:
    """L'(v, y) and L''(v, y)."""
    slopes = problem.force(v[:, None], labels)[1][:, 0]
    return np.asarray(slopes), problem.hessian_weights(v[:, None], labels)[:, 0, 0]


def _residuals(logarithms: Array, problem: MultiIndex, labels: Array, delta: float) -> Array:
    """Of the three equations, relative, at (x, rho, kappa); the first one divided by x."""
    overlap, rest, kappa = (float(value) for value in np.exp(logarithms))
    v = proximal(problem, labels, overlap * _S + rest * _Z, kappa)
    slopes, curvatures = _derivatives(problem, v, labels)
    shrunk = curvatures / (1 + kappa * curvatures)
    return np.array(
        [
            _WEIGHTS @ (_S * slopes) / (overlap * np.abs(shrunk).max()),
            delta * kappa**2 * (_WEIGHTS @ slopes**2) / rest**2 - 1,
            delta * kappa * (_WEIGHTS @ shrunk) - 1,
        ]
    )
