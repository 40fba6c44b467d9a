"""Proximal points of a neuron's loss.

A sample that is left out and put back moves its own preactivation from w to the point V with
``V + kappa L'(V, y) = w``, where ``L(v, y)`` is the loss of one neuron with preactivation v.
"""

from __future__ import annotations

import numpy as np

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.multi_index import MultiIndex

__all__ = ["proximal"]

_STEPS = 200


def proximal(
    problem: MultiIndex, labels: Array, points: Array, kappa: float, *, start: Array | None = None
) -> Array:
    """Solve ``V + kappa L'(V, y) = w`` by damped Newton steps.

    Parameters
    ----------
    problem : MultiIndex
        One neuron.
    labels : ndarray, shape (n,)
        y of each sample.
    points : ndarray, shape (n,)
        w of each sample.
    kappa : float
        Positive; the solution is unique where ``1 + kappa L''`` is positive.
    start : ndarray, shape (n,), optional
        A guess. Default: the points.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        If there are several neurons, kappa is not positive, or shapes disagree.
    FloatingPointError
        If the steps do not converge; the message gives the last residual.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.dmft import proximal
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> problem, y, w = MultiIndex(), np.array([0.5, 4.0]), np.array([1.0, 1.0])
    >>> v = proximal(problem, y, w, 0.3)
    >>> slopes = problem.force(v[:, None], y)[1][:, 0]
    >>> bool(np.allclose(v + 0.3 * slopes, w))
    True
    """
    if problem.width != 1:
        raise ValueError(f"problem must have one neuron, got {problem.width}")
    kappa = _validate.positive("kappa", kappa)
    w = _validate.finite("points", points, shape=(None,))
    y = _validate.finite("labels", labels, shape=w.shape)
    v = w if start is None else _validate.finite("start", start, shape=w.shape)
    misfit = v - w + kappa * _slope(problem, v, y)
    for _ in range(_STEPS):
        curvature = 1 + kappa * problem.hessian_weights(v[:, None], y)[:, 0, 0]
        # Downhill even where the objective is concave, and never far.
        rate = np.maximum(np.abs(curvature), np.where(curvature > 0, 1e-3, 0.2))
        v = v + np.clip(-misfit / rate, -1.0, 1.0)
        pull = kappa * _slope(problem, v, y)
        misfit = v - w + pull
        if np.all(np.abs(misfit) <= 1e-11 * (1 + np.abs(w) + np.abs(pull))):
            return v
    raise FloatingPointError(
        f"the proximal map must converge, got a residual of {np.abs(misfit).max():.3g} after "
        f"{_STEPS} steps at kappa = {kappa:.4g}"
    )


def _slope(problem: MultiIndex, v: Array, y: Array) -> Array:
    """L'(v, y)."""
    return np.asarray(problem.force(v[:, None], y)[1][:, 0])
