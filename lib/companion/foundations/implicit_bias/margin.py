r"""The :math:`L^2` max-margin predictor of separable data, and what descent adds to it.

With :math:`z_i = y_i x_i`, the predictor :math:`\hat w` is the shortest w with
:math:`\langle w, z_i \rangle \ge 1` for all i (MDL Definition 4.4): the least-distance problem of
Lawson and Hanson, *Solving Least Squares Problems*, chapter 23. They reduce it to one
non-negative least-squares problem,

.. math:: \min_{u \ge 0} \Big| \sum_i u_i z_i \Big|^2 + \Big( \sum_i u_i - 1 \Big)^2 ,

which an active-set method solves exactly in finitely many steps. Its residual vanishes if and
only if zero is a convex combination of the z_i, that is if no w separates: u is then the proof
(Farkas). Otherwise :math:`a = u / (1 - \sum u)` are the dual coefficients in
:math:`\hat w = \sum_i a_i z_i`, and they add up to :math:`|\hat w|^2`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize

from traindyn import _validate
from traindyn._types import RNG, Array

__all__ = [
    "MaxMargin",
    "NotSeparableError",
    "max_margin",
    "separable_data",
    "signed",
    "sup_norm_margin",
]

_SEPARATION = 1e-12  # least margin, of data scaled to the unit ball, that counts as one
_ACTIVE = 1e-9  # relative excess over one that still makes a support vector
_MAX_DRAWS = 100_000  # of support points, a minute
_MAX_ROUNDS = 1000  # of other points, in each of which four times as many are drawn as are wanted


class NotSeparableError(ValueError):
    r"""No w has :math:`y_i \langle w, x_i \rangle > 0` for all i.

    Attributes
    ----------
    certificate : ndarray, shape (n,)
        Weights, non-negative and adding up to one, with :math:`\sum_i c_i y_i x_i = 0`.
    """

    def __init__(self, message: str, certificate: Array) -> None:
        super().__init__(message)
        self.certificate = certificate


@dataclass(frozen=True, eq=False)
class MaxMargin:
    r"""Solution of the max-margin problem.

    Attributes
    ----------
    points : ndarray, shape (n, d)
        The signed inputs :math:`z_i = y_i x_i`.
    weights : ndarray, shape (d,)
        The predictor :math:`\hat w`.
    coefficients : ndarray, shape (n,)
        Non-negative a with :math:`\hat w = \sum_i a_i z_i`, zero off the support.
    support : ndarray of bool, shape (n,)
        Where :math:`\langle\hat w, z_i\rangle = 1`.
    """

    points: Array
    weights: Array
    coefficients: Array
    support: NDArray[np.bool_]

    @property
    def margin(self) -> float:
        r"""Distance of the nearest point from the separating plane, :math:`1/|\hat w|`."""
        return float(1 / np.linalg.norm(self.weights))

    @property
    def gap(self) -> float:
        r"""Least :math:`\langle\hat w, z_i\rangle` off the support (MDL: psi); infinite if none."""
        return float((self.points[~self.support] @ self.weights).min(initial=np.inf))

    @property
    def generic(self) -> bool:
        """Whether the support is linearly independent with positive coefficients, as a.s."""
        vectors, a = self.points[self.support], self.coefficients[self.support]
        if len(vectors) > vectors.shape[1] or a.min() <= _ACTIVE * a.max():
            return False
        singular = np.linalg.svd(vectors, compute_uv=False)
        return bool(singular[-1] > _ACTIVE * singular[0])

    def offset(self, scale: float) -> Array:
        r"""Limit of :math:`w_t - \hat w \log t` in the span of the support (MDL Theorem 4.7).

        The :math:`\tilde w` in that span with

        .. math:: \sum_{i \in S} e^{-\langle\tilde w, z_i\rangle} z_i = c\, \hat w, \qquad
                  \langle\tilde w, z_i\rangle = -\log(c\, a_i) .

        Parameters
        ----------
        scale : float
            The constant c: n for the gradient flow of the mean of the losses, :math:`n/\eta`
            for descent counted in steps of size :math:`\eta`, 1 for the flow of their sum.

        Returns
        -------
        ndarray, shape (d,)

        Raises
        ------
        ValueError
            If the data are not `generic`: then there may be none.
        """
        c = _validate.positive("scale", scale)
        if not self.generic:
            raise ValueError(
                "points must have a linearly independent support with positive coefficients, got "
                f"{self.support.sum()} support vectors, least coefficient "
                f"{self.coefficients[self.support].min():.3g}"
            )
        logs = -np.log(c * self.coefficients[self.support])
        return np.asarray(linalg.lstsq(self.points[self.support], logs)[0])

    def drift_pieces(self, weights: ArrayLike, times: ArrayLike) -> tuple[Array, Array]:
        r"""Parts of :math:`\frac{d}{dt}\frac12|r|^2` in the proof of MDL Theorem 4.7.

        With :math:`r = w - \hat w \log t - \tilde w` along the flow of the mean of the exponential
        losses and `offset` for :math:`\tilde w` at c = n,

        .. math::
           (I) = \Big\langle r, \frac1n \sum_{i \in S} e^{-\langle w, z_i\rangle} z_i
                 - \frac{\hat w}{t} \Big\rangle \le 0, \qquad
           (II) = \Big\langle r, \frac1n \sum_{i \notin S} e^{-\langle w, z_i\rangle} z_i
                 \Big\rangle .

        Parameters
        ----------
        weights : array_like, shape (T, d)
            Points of the flow.
        times : array_like, shape (T,)
            Positive.

        Returns
        -------
        support, others : ndarray, shape (T,)
            (I) and (II).
        """
        w = _validate.finite("weights", weights, shape=(None, self.points.shape[1]))
        t = _validate.positives("times", times, shape=(len(w),))
        r = w - np.log(t)[:, None] * self.weights - self.offset(len(self.points))
        pull = np.exp(-w @ self.points.T) * (r @ self.points.T) / len(self.points)
        first = pull[:, self.support].sum(axis=1) - r @ self.weights / t
        return np.asarray(first), np.asarray(pull[:, ~self.support].sum(axis=1))

    def rest_bound(self, times: ArrayLike) -> Array:
        r"""Bound on part (II) of `drift_pieces`, as :math:`ze^{-z} \le 1/e`.

        .. math:: (II) \le \frac{t^{-\psi}}{e\,n} \sum_{i \notin S} e^{-\langle\tilde w, z_i\rangle}
        """
        others = self.points[~self.support] @ self.offset(len(self.points))
        constant = np.exp(-others).sum() / (math.e * len(self.points))
        return np.asarray(constant * _validate.positives("times", times) ** -self.gap)

    @cached_property
    def remainder_exponent(self) -> float:
        r"""Power of 1/t with which :math:`w_t - \hat w\log t - \tilde w` vanishes.

        For generic data: the smaller of :math:`\psi - 1`, due to the other points (see `gap`), and
        the least positive eigenvalue of :math:`\sum_S a_i z_i z_i^\top`, the approach within the
        span. One eigenvalue is 1, along :math:`\hat w`: a shift of time.
        """
        root = np.sqrt(self.coefficients[self.support, None]) * self.points[self.support]
        values = np.linalg.svd(root, compute_uv=False) ** 2
        return float(min(self.gap - 1, values[values > _ACTIVE * values[0]].min()))


def signed(x: ArrayLike, y: ArrayLike) -> Array:
    """Signed inputs ``y[i] * x[i]``, shape (n, d).

    Raises
    ------
    ValueError
        If the shapes disagree or a label is not 1 or -1.
    """
    inputs = _validate.finite("x", x, shape=(None, None))
    labels = _validate.finite("y", y, shape=(len(inputs),))
    if not np.all(np.abs(labels) == 1):
        raise ValueError(f"y must be 1 or -1, got {labels[np.abs(labels) != 1][0]:g}")
    return labels[:, None] * inputs


def max_margin(x: ArrayLike, y: ArrayLike) -> MaxMargin:
    """Max-margin predictor without intercept, the direction of descent at last (MDL Remark 4.8).

    Parameters
    ----------
    x : array_like, shape (n, d)
        Inputs, one in each row.
    y : array_like, shape (n,)
        Labels 1 or -1.

    Raises
    ------
    NotSeparableError
        If the data are not separable; a ValueError with a certificate.
    FloatingPointError
        If the margin is too small for double precision.

    Examples
    --------
    >>> from companion.foundations.implicit_bias.margin import NotSeparableError, max_margin
    >>> solution = max_margin([[1.0, 0.0], [-1.0, -1.0], [0.0, 3.0]], [1, -1, 1])
    >>> solution.weights.round(4).tolist(), round(solution.margin, 4)
    ([1.0, 0.3333], 0.9487)
    >>> try:
    ...     max_margin([[1.0], [2.0]], [1, -1])
    ... except NotSeparableError as error:
    ...     print(error.certificate.round(12))
    [0.66666667 0.33333333]
    """
    points = signed(x, y)
    radius = float(np.linalg.norm(points, axis=1).max(initial=0.0))
    unit = points / radius if radius > 0 else points
    system = np.vstack([unit.T, np.ones(len(unit))])
    target = np.append(np.zeros(unit.shape[1]), 1.0)
    u, residual = optimize.nnls(system, target, maxiter=max(100, 30 * len(unit)))
    if residual <= _SEPARATION:
        weights = u / u.sum()
        raise NotSeparableError(
            "x and y must be linearly separable, got a convex combination of the y[i] x[i] that is "
            f"zero: {np.count_nonzero(weights)} points, weights in the attribute certificate",
            weights,
        )
    return _polish(points, unit, u)


def _polish(points: Array, unit: Array, u: Array) -> MaxMargin:
    """Solve the equations of the active set anew: the residual above squares their condition."""
    active = u > 0
    a = np.zeros(len(unit))
    predictor = linalg.lstsq(unit[active], np.ones(active.sum()))[0]
    a[active] = linalg.lstsq(unit[active].T, predictor)[0]
    outputs = unit @ predictor
    if outputs.min() < 1 - _ACTIVE or a.min() < -_ACTIVE * a.max():
        raise FloatingPointError(
            "the margin of x and y is too small for double precision: least output "
            f"{outputs.min():.12g} against 1, least coefficient {a.min():.3g}"
        )
    radius = float(np.linalg.norm(points, axis=1).max())
    return MaxMargin(
        points=points,
        weights=predictor / radius,
        coefficients=np.maximum(a, 0.0) / radius**2,
        support=outputs < 1 + _ACTIVE,
    )


def separable_data(
    n: int, d: int, *, support: int, exponent: float, rng: RNG
) -> tuple[Array, Array]:
    """Draw generic separable data on which descent reaches its asymptotics fast.

    Support points are Gaussian about a common direction and the others Gaussian too, beyond the
    margin: drawn anew until `MaxMargin.remainder_exponent` is at least `exponent`.

    Parameters
    ----------
    n, d : int
        Number of points and dimension.
    support : int
        Number of support points, at most n and d.
    exponent : float
        In [0, 0.9]; close to 1 draws take long.
    rng : int, SeedSequence or Generator
        Of points and labels; how much is drawn depends on the attempts.

    Returns
    -------
    x : ndarray, shape (n, d)
    y : ndarray, shape (n,)
        Random labels, 1 or -1.

    Raises
    ------
    ValueError
        If an argument is out of range.
    FloatingPointError
        If no support with that exponent is drawn in a minute, or too few other points: in many
        dimensions hardly any is beyond the margin of a small support.

    Examples
    --------
    >>> from companion.foundations.implicit_bias.margin import max_margin, separable_data
    >>> solution = max_margin(*separable_data(30, 3, support=2, exponent=0.3, rng=1))
    >>> solution.support.sum().item(), solution.remainder_exponent > 0.3
    (2, True)
    """
    n, d = _validate.integer("n", n, least=1), _validate.integer("d", d, least=1)
    count = _validate.integer("support", support, least=1, most=min(n, d))
    least = _validate.number("exponent", exponent)
    if not 0 <= least <= 0.9:
        raise ValueError(f"exponent must be in [0, 0.9], got {least:g}")
    generator = _validate.generator("rng", rng)
    for _ in range(_MAX_DRAWS):
        near = np.eye(d)[0] + generator.standard_normal((count, d))
        try:
            solution = max_margin(near, np.ones(count))
        except NotSeparableError:
            continue
        if solution.support.all() and solution.generic and solution.remainder_exponent >= least:
            break
    else:
        raise FloatingPointError(
            f"exponent must be one that is drawn, got none of at least {least:g} in {_MAX_DRAWS} "
            f"draws with support = {count}, d = {d}"
        )
    points = near
    for _ in range(_MAX_ROUNDS):
        if len(points) == n:
            break
        more = 2 * generator.standard_normal((4 * n, d))
        points = np.vstack([points, more[more @ solution.weights > 1 + least]])[:n]
    if len(points) < n:
        raise FloatingPointError(
            f"d must leave points beyond the margin to be drawn, got {len(points)} of {n} in "
            f"{_MAX_ROUNDS} rounds with support = {count}, d = {d}"
        )
    labels = generator.choice([-1.0, 1.0], size=n)
    return labels[:, None] * points, labels


def sup_norm_margin(x: ArrayLike, y: ArrayLike) -> tuple[Array, float]:
    r"""Largest :math:`\min_i y_i \langle u, x_i \rangle` over the cube :math:`|u|_\infty \le 1`.

    What steepest descent in the sup norm, sign descent, maximises; a linear programme.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Inputs, one in each row.
    y : array_like, shape (n,)
        Labels 1 or -1.

    Returns
    -------
    direction : ndarray, shape (d,)
        One maximiser; there may be several.
    margin : float
        Zero or less if the data are not separable.

    Examples
    --------
    >>> from companion.foundations.implicit_bias.margin import sup_norm_margin
    >>> sup_norm_margin([[1.0, 2.0], [-3.0, 1.0]], [1, -1])[1].__round__(4)
    2.3333
    """
    points = signed(x, y)
    d = points.shape[1]
    result = optimize.linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([-points, np.ones(len(points))]),
        b_ub=np.zeros(len(points)),
        bounds=[(-1, 1)] * d + [(None, None)],
        method="highs",
    )
    return np.asarray(result.x[:d]), float(-result.fun)
