r"""Other ways down the same gradient: what they converge to depends on their geometry.

Momentum and mini-batches move in the span of the data, like descent. The others do not:

=============  ====================================================================
`momentum`     heavy ball, velocity times 0.9
`sign`         :math:`\theta \leftarrow \theta - \eta\, \mathrm{sign}(g)`
`steepest`     :math:`\theta \leftarrow \theta - \eta |g|_1 \mathrm{sign}(g)`, steepest descent in
               the sup norm
`adam`         Adam with decay rates 0.9 and 0.999, without the constant in its denominator
`mirror`       mirror descent, :math:`\sinh^{-1}(\theta) \leftarrow \sinh^{-1}(\theta) - \eta g`
=============  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["Method", "descend"]

Method: TypeAlias = Literal["gradient", "momentum", "sign", "steepest", "adam", "mirror"]
_Update: TypeAlias = Callable[[Array, Array, float], Array]


def descend(
    gradient: Callable[[Array], Array],
    start: ArrayLike,
    *,
    step_sizes: ArrayLike,
    method: Method = "gradient",
    record: ArrayLike | None = None,
) -> Array:
    """Points of a run, one step per step size.

    Parameters
    ----------
    gradient : callable
        Of the loss, or of a mini-batch drawn at each call.
    start : array_like, shape (d,)
        The point before the first step, left unchanged.
    step_sizes : array_like, shape (T,)
        Positive.
    method : {"gradient", "momentum", "sign", "steepest", "adam", "mirror"}
        Plain descent, or one of the module's table.
    record : array_like of int, shape (R,), optional
        Strictly increasing numbers of steps after which to keep the point; all of them, that is
        the last point, unless given.

    Returns
    -------
    ndarray, shape (R, d)

    Raises
    ------
    ValueError
        If an argument is out of range.
    FloatingPointError
        If the run diverges.

    Examples
    --------
    >>> from companion.foundations.implicit_bias.methods import descend
    >>> descend(lambda w: 2 * w, [1.0], step_sizes=[0.25] * 3, record=[0, 1, 3]).tolist()
    [[1.0], [0.5], [0.125]]
    """
    steps = _validate.finite("step_sizes", step_sizes, shape=(None,))
    if np.any(steps <= 0):
        raise ValueError(f"step_sizes must be positive, got {steps.min():g}")
    point = _validate.finite("start", start, shape=(None,)).copy()
    update = _UPDATES[_validate.choice("method", method, get_args(Method))](point.size)
    stops = _validate.increasing("record", [steps.size] if record is None else record)
    if stops[-1] > steps.size or np.any(stops != np.round(stops)):
        raise ValueError(f"record must be whole numbers up to {steps.size}, got {stops}")
    path, done = np.empty((stops.size, point.size)), 0
    with np.errstate(over="ignore", invalid="ignore"):
        for row, stop in enumerate(stops.astype(int)):
            for step in steps[done:stop]:
                point = update(point, gradient(point), step)
            path[row], done = point, stop
    if not np.isfinite(path).all():
        raise FloatingPointError(f"{method} diverges with step_sizes up to {steps.max():g}")
    return path


def _gradient(_: int) -> _Update:
    return lambda point, slope, step: point - step * slope


def _momentum(size: int) -> _Update:
    velocity = np.zeros(size)

    def update(point: Array, slope: Array, step: float) -> Array:
        velocity[:] = 0.9 * velocity - step * slope
        return point + velocity

    return update


def _sign(_: int) -> _Update:
    return lambda point, slope, step: point - step * np.sign(slope)


def _steepest(_: int) -> _Update:
    return lambda point, slope, step: point - step * np.abs(slope).sum() * np.sign(slope)


def _adam(size: int) -> _Update:
    first, second, powers = np.zeros(size), np.zeros(size), np.ones(2)

    def update(point: Array, slope: Array, step: float) -> Array:
        first[:] = 0.9 * first + 0.1 * slope
        second[:] = 0.999 * second + 0.001 * slope**2
        powers[:] *= (0.9, 0.999)
        mean, square = first / (1 - powers[0]), second / (1 - powers[1])
        scale = np.sqrt(square)
        ratio = np.divide(mean, scale, out=np.zeros(size), where=scale > 0)
        return np.asarray(point - step * ratio)

    return update


def _mirror(_: int) -> _Update:
    return lambda point, slope, step: np.asarray(np.sinh(np.arcsinh(point) - step * slope))


_UPDATES: dict[Method, Callable[[int], _Update]] = {
    "gradient": _gradient,
    "momentum": _momentum,
    "sign": _sign,
    "steepest": _steepest,
    "adam": _adam,
    "mirror": _mirror,
}
