"""Fixed points of the effective dynamics, their Jacobian and their stability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.effective._layout import Layout
from traindyn.effective.ode import _integrate
from traindyn.gaussian import Rule
from traindyn.problems.base import Dynamics, LimitDynamics, require

__all__ = ["FixedPoint", "find"]

# Near the cube root of the rounding unit, where truncation and rounding of a central
# difference balance; small enough for `gaussian.symmetric_sqrt` at a singular Gram matrix.
_STEP = 2.0**-20
_MOST_HALVINGS = 40


@dataclass(frozen=True)
class FixedPoint:
    """A zero of the drift.

    Attributes
    ----------
    statistics : NamedTuple of arrays
    residual : float
        Largest absolute entry of the drift.
    jacobian : ndarray, shape (n, n)
        Derivative of the drift in the packed coordinates: the entries of the statistics
        in order, of Gram matrices (fields whose name starts with R) the upper triangle.
    jacobian_error : float
        Largest entry of the change between differences of step h and 2h;
        about three times the truncation error, rounding included.
    eigenvalues : ndarray of complex, shape (n,)
        Of `jacobian`, decreasing real part. Their accuracy is that of `jacobian` times the
        condition number of the eigenvectors.
    stable : bool
        Whether every real part lies below ``-n * jacobian_error``.
    iterations : int
        Newton steps taken.
    """

    statistics: Any
    residual: float
    jacobian: Array
    jacobian_error: float
    eigenvalues: NDArray[np.complex128]
    stable: bool
    iterations: int


def find(
    problem: Dynamics,
    start: Any = None,
    *,
    c_delta: float = 0.0,
    rule: Rule | None = None,
    limit: bool = False,
    tolerance: float = 1e-10,
    max_iterations: int = 50,
) -> FixedPoint:
    """Find a fixed point of the effective dynamics by Newton's method.

    Parameters
    ----------
    problem : Dynamics
        Whose drift, or limit drift, is to vanish.
    start : NamedTuple of arrays, optional
        Where the iteration begins. By default the end of an integration from
        ``problem.initial_statistics()`` over ten relaxation times of the ridge.
    c_delta : float, default 0
        Step size times dimension; not used in the limit.
    rule : Rule, optional
        Gaussian rule, as for :func:`traindyn.effective.ode.solve`. The fixed point found
        is that of the dynamics discretised by this rule.
    limit : bool, default False
        Infinite precision (``problem.limit_drift``) instead of finite.
    tolerance : float, default 1e-10
        Largest residual accepted.
    max_iterations : int, default 50
        Newton steps before giving up. A step that does not decrease the residual, or
        leaves the domain of the drift, is halved.

    Raises
    ------
    ValueError
        If an argument is out of range.
    FloatingPointError
        If the iteration does not reach `tolerance`; the message gives the residual.

    Notes
    -----
    The Jacobian is a difference, central inside the domain of the drift, with step
    ``2**-20 * max(1, |u_i|)``, accurate to about 1e-10 for a drift of order one;
    `jacobian_error` measures it.
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    tolerance = _validate.positive("tolerance", tolerance)
    max_iterations = _validate.integer("max_iterations", max_iterations, least=1)

    if limit:
        require(problem, "effective.find with limit=True", "limit_drift")
        drift = cast("LimitDynamics", problem).limit_drift
    else:
        require(problem, "effective.find", "drift")
        drift = partial(problem.drift, rule=rule, c_delta=c_delta)
    if start is None:
        require(problem, "effective.find without a start", "initial_statistics", "ridge")
        start = _relaxed(problem, drift)
    layout = Layout(start)

    def field(vector: Array) -> Array:
        return layout.pack(drift(layout.unpack(vector)))

    vector, residual, iterations = _newton(
        field, layout, layout.pack(start), tolerance=tolerance, max_iterations=max_iterations
    )
    jacobian = _jacobian(field, layout, vector, _STEP)
    doubled = _jacobian(field, layout, vector, 2 * _STEP)
    jacobian_error = float(np.abs(jacobian - doubled).max())
    eigenvalues = np.linalg.eigvals(jacobian).astype(np.complex128)
    eigenvalues = eigenvalues[np.argsort(-eigenvalues.real, kind="stable")]
    return FixedPoint(
        statistics=layout.unpack(vector),
        residual=residual,
        jacobian=jacobian,
        jacobian_error=jacobian_error,
        eigenvalues=eigenvalues,
        stable=bool(eigenvalues[0].real < -layout.size * jacobian_error),
        iterations=iterations,
    )


def _relaxed(problem: Dynamics, drift: Callable[[Any], Any]) -> Any:
    """Return the statistics after ten relaxation times of the ridge."""
    ridge = _validate.positive("problem.ridge (start not given)", problem.ridge)
    end = _integrate(drift, problem.initial_statistics(), [10 / ridge], rtol=1e-6, atol=1e-8)
    kind: Any = type(end.statistics)
    return kind(*(array[-1] for array in end.statistics))


def _newton(
    field: Callable[[Array], Array],
    layout: Layout,
    start: Array,
    *,
    tolerance: float,
    max_iterations: int,
) -> tuple[Array, float, int]:
    """Damped Newton iteration: the point, its residual and the number of steps.

    The Jacobian is kept as long as a step with it divides the residual by ten.
    """
    point, value = start, field(start)
    residual = float(np.abs(value).max())
    jacobian, fresh = _jacobian(field, layout, point, _STEP), True
    for iteration in range(max_iterations):
        # One step past the tolerance: nearly free accuracy.
        converged = residual <= tolerance
        step = np.asarray(np.linalg.lstsq(jacobian, -value, rcond=None)[0])
        trial = _shortened(field, point, step, residual)
        if converged and trial is None:
            return point, residual, iteration
        if trial is None and fresh:
            break
        before = residual
        if trial is not None:
            point, value = trial
            residual = float(np.abs(value).max())
        if converged:
            return point, residual, iteration + 1
        fresh = residual > 0.1 * before
        if fresh:
            jacobian = _jacobian(field, layout, point, _STEP)
    if residual <= tolerance:
        return point, residual, max_iterations
    raise FloatingPointError(
        f"Newton iteration must reach a residual of {tolerance:g} from the given start, got "
        f"residual {residual:.3g} within {max_iterations} steps"
    )


def _shortened(
    field: Callable[[Array], Array], point: Array, step: Array, residual: float
) -> tuple[Array, Array] | None:
    """First of ``point + step / 2**j`` with a smaller residual, and its drift."""
    for halvings in range(_MOST_HALVINGS):
        candidate = point + step / 2**halvings
        # Outside the domain is, for example, a Gram matrix that is not positive.
        value = _inside(field, candidate)
        if value is None:
            continue
        if np.all(np.isfinite(value)) and np.abs(value).max() < residual:
            return candidate, value
    return None


def _jacobian(field: Callable[[Array], Array], layout: Layout, point: Array, step: float) -> Array:
    """Differences of `field`, shape (n, n), error of order ``step**2``.

    Central ones; where one side leaves the domain of the field, as at a Gram matrix that is
    barely positive, those of the other side. Where both do, as when an entry beside a zero of the
    diagonal is moved, both entries of the diagonal are moved along and their slopes subtracted.
    """
    columns: list[Array] = []
    coupled: dict[int, tuple[int, ...]] = {}
    for index in range(point.size):
        width = step * max(1.0, abs(point[index]))
        shift = np.zeros_like(point)
        shift[index] = width
        ahead, behind = (_inside(field, point + sign * shift) for sign in (1, -1))
        if ahead is not None and behind is not None:
            columns.append((ahead - behind) / (2 * width))
            continue
        if ahead is None and behind is None and (ends := layout.diagonal(index)):
            coupled[index] = ends
            shift[list(ends)] = width
        # Raises what the field says if both sides are outside.
        sign = 1 if behind is None else -1
        # Without the point itself, which may be beyond the edge by the tolerance.
        first, second, third = (field(point + sign * count * shift) for count in (1, 2, 3))
        columns.append(sign * (8 * second - 5 * first - 3 * third) / (2 * width))
    for index, ends in coupled.items():
        columns[index] = columns[index] - sum(columns[end] for end in ends)
    return np.stack(columns, axis=1)


def _inside(field: Callable[[Array], Array], point: Array) -> Array | None:
    """Return the field, or None outside its domain."""
    try:
        return field(point)
    except (ValueError, FloatingPointError):
        return None
