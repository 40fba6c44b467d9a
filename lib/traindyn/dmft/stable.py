r"""The limit of infinite time in closed form, in its stable phase.

If all directions are hard and a single neuron's dynamics converges exponentially fast, its
fixed point is that of a minimiser of the risk (MW, closed form in the stable phase; derived
here). With :math:`L(v, y) = \ell(y, a \sigma(v + b))`,
Z standard Gaussian independent of y, the preactivation is a proximal point,

.. math:: V + \kappa L'(V, y) = \sqrt q\, Z, \qquad
          q = \delta \kappa^2 E[L'(V, y)^2], \qquad
          \frac1\delta = E\Big[\frac{\kappa G}{1 + \kappa G}\Big], \quad G = L''(V, y).

The step size drops out. The Hessian's weights are G; :math:`z = 0` belongs to
:math:`a = \delta \kappa`, and the limit is stable if and only if
:math:`\delta E[(\kappa G / (1 + \kappa G))^2] < 1`: then the left edge of the Hessian is
positive, and an informative negative eigenvalue appears where
:math:`E[G s^2 / (1 + \kappa G)]` changes sign. Otherwise the dynamics ages and this limit is
not reached.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from traindyn import _validate
from traindyn._types import Array
from traindyn.dmft.proximal import proximal
from traindyn.gaussian import Rule, gauss_hermite
from traindyn.laws import HardSubspace
from traindyn.problems.multi_index import MultiIndex, decompose

__all__ = ["StableLimit", "stable_limit", "stable_threshold"]

_ORDERS = {2: 81, 3: 25}
_MAX_ITERATIONS = 500
_TOLERANCE = 1e-9
_NEAR = 1e-3
"""Residual below which the iteration is extrapolated, to so many times a damped step."""
_FARTHEST = 10.0
_DESCENT = 1.04
_MAX_DESCENTS = 1000
_LEAST_RTOL = 1e-12
_START = 400.0
"""Samples per dimension where the continuation in sample ratio starts."""


@dataclass(frozen=True, eq=False)
class StableLimit:
    """Fixed point of training at infinite time.

    Attributes
    ----------
    sample_ratio : float
    q : float
        Squared norm of the neuron.
    kappa : float
        Variance parameter of the proximal map.
    stability : float
        ``sample_ratio E[T^2]``; the limit describes the dynamics if it is below one.
    train_loss, test_loss : float
    hessian : HardSubspace
        The Hessian's left side: `statistic` above one means an informative negative
        eigenvalue; at ``stability < 1`` that is the threshold.
    residual : float
        Last residual of the two equations, relative.
    """

    sample_ratio: float
    q: float
    kappa: float
    stability: float
    train_loss: float
    test_loss: float
    hessian: HardSubspace
    residual: float

    @property
    def stable(self) -> bool:
        """Whether the dynamics converges to this limit."""
        return self.stability < 1


def stable_limit(
    problem: MultiIndex,
    sample_ratio: float,
    *,
    rule: Rule | None = None,
    start: tuple[float, float] | None = None,
) -> StableLimit:
    """Solve the equations of the limit at one sample ratio.

    Parameters
    ----------
    problem : MultiIndex
        One neuron; all directions hard.
    sample_ratio : float
        Samples per dimension.
    rule : Rule, optional
        Of dimension k + 1 (one more with label noise): the coordinates, then Z.
        Default: tensor Gauss-Hermite.
    start : (float, float), optional
        q and kappa of a neighbouring sample ratio. Default: continuation from a large one.

    Returns
    -------
    StableLimit
        Look at :attr:`StableLimit.stable` before using it.

    Raises
    ------
    ValueError
        If an argument is out of range, there are several neurons or easy directions.
    FloatingPointError
        If the proximal map or the iteration does not converge; the message gives the last
        residual.

    Examples
    --------
    >>> from traindyn.dmft import stable_limit
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> limit = stable_limit(MultiIndex(second_layer=[8.0]), 5.0)
    >>> limit.stable, round(limit.q, 2)
    (True, 0.04)
    """
    equations = _Equations(problem, rule)
    d = _validate.positive("sample_ratio", sample_ratio)
    if start is not None:
        q, kappa = _validate.finite("start", start, shape=(2,)).tolist()
        if q <= 0 or kappa <= 0:
            raise ValueError(f"start must be two positive numbers, got {start!r}")
        return equations.solve(d, q, kappa)
    if d >= _START:
        return equations.solve(d, 0.0, 1 / d)
    found = equations.solve(_START, 0.0, 1 / _START, _NEAR)
    ladder = np.geomspace(_START, d, max(2, 1 + int(np.ceil(np.log(_START / d) / 0.25))))
    # On the way a guess is all that is needed.
    for each in ladder[1:-1]:
        found = equations.solve(float(each), found.q, found.kappa, _NEAR)
    return equations.solve(d, found.q, found.kappa)


def stable_threshold(
    problem: MultiIndex, start: float, *, rule: Rule | None = None, rtol: float = 1e-6
) -> StableLimit:
    """Find delta_NN in closed form: the least sample ratio with an informative negative eigenvalue.

    Parameters
    ----------
    problem : MultiIndex
        One neuron; all directions hard.
    start : float
        A sample ratio above the threshold; the search goes down from there, because the limit may
        cease to exist below.
    rule : Rule, optional
        As for :func:`stable_limit`.
    rtol : float, default 1e-6
        Relative accuracy of the threshold, in [1e-12, 1).

    Returns
    -------
    StableLimit
        At the threshold, ``.sample_ratio``.

    Raises
    ------
    ValueError
        If the start is not above the threshold, or as for :func:`stable_limit`.
    FloatingPointError
        If the limit is not stable at the threshold (the thresholds of finite times can still be
        extrapolated), or does not converge on the way, or there is no threshold within 17 powers of
        ten below the start.

    Examples
    --------
    >>> from traindyn.dmft import stable_threshold
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> round(stable_threshold(MultiIndex(second_layer=[8.0]), 7.0).sample_ratio, 2)
    5.95
    """
    tolerance = _validate.number("rtol", rtol)
    if not _LEAST_RTOL <= tolerance < 1:
        raise ValueError(f"rtol must be in [{_LEAST_RTOL:g}, 1), got {rtol!r}")
    above = stable_limit(problem, _validate.positive("start", start), rule=rule)
    if _criterion(above) <= 1:
        raise ValueError(
            f"start must be above the threshold, got a criterion of {_criterion(above):.4g} <= 1 "
            f"at {start:g}"
        )
    for _ in range(_MAX_DESCENTS):
        below = _next(problem, above, above.sample_ratio / _DESCENT, rule)
        if _criterion(below) < 1:
            break
        above = below
    else:
        raise FloatingPointError(
            f"start must be near the threshold, got a criterion of {_criterion(above):.4g} > 1 "
            f"still at {above.sample_ratio:.4g}, {_MAX_DESCENTS} steps below {start:g}"
        )
    near = above

    def gap(sample_ratio: float) -> float:
        nonlocal near
        near = _next(problem, near, sample_ratio, rule)
        return _criterion(near) - 1

    root = float(brentq(gap, below.sample_ratio, above.sample_ratio, xtol=1e-12, rtol=tolerance))
    found = _next(problem, near, root, rule)
    if not found.stable:
        raise FloatingPointError(
            f"problem must be stable at its threshold for the closed form, got sample_ratio "
            f"E[T^2] = {found.stability:.4g} >= 1 at sample_ratio = {root:.4g}: extrapolate the "
            f"thresholds of finite times instead"
        )
    return found


def _next(
    problem: MultiIndex, known: StableLimit, sample_ratio: float, rule: Rule | None
) -> StableLimit:
    return stable_limit(problem, sample_ratio, rule=rule, start=(known.q, known.kappa))


def _criterion(limit: StableLimit) -> float:
    """Largest eigenvalue of P at z = 0, whatever the sign of the edge."""
    return float(np.linalg.eigvalsh(limit.hessian.matrix(limit.sample_ratio * limit.kappa))[-1])


def _mirrored(problem: MultiIndex, nodes: Array) -> NDArray[np.intp]:
    """For each node one with the same preactivation: itself, or that of opposite coordinates.

    The latter where labels do not change with the sign of the coordinates, and the rule is
    symmetric; then half of the nodes need no preactivation of their own.
    """
    own = np.arange(len(nodes))
    coordinates, others = nodes[:, : problem.k], nodes[:, problem.k :]
    signal = problem.target.signal
    if not np.array_equal(signal(coordinates), signal(-coordinates)):
        return own
    turned = np.column_stack([-coordinates, others])
    order, image = np.lexsort(nodes.T), np.lexsort(turned.T)
    if not np.array_equal(nodes[order], turned[image]):
        return own
    own[order] = np.minimum(order, image)
    return own


class _Mixing:
    """Anderson's extrapolation of a damped iteration, in logarithms, from three points."""

    def __init__(self) -> None:
        self._points: list[Array] = []
        self._moves: list[Array] = []

    def next(self, now: tuple[float, float], damped: tuple[float, float]) -> tuple[float, float]:
        """Return the next point; the damped one where the extrapolation goes far."""
        point = np.log(now)
        move = np.log(damped) - point
        self._points, self._moves = [*self._points[-2:], point], [*self._moves[-2:], move]
        step = move
        if len(self._moves) > 1:
            changes, shifts = np.diff(self._moves, axis=0), np.diff(self._points, axis=0)
            mixed = np.linalg.lstsq(changes.T, move, rcond=1e-10)[0]
            longer = move - (changes + shifts).T @ mixed
            if np.linalg.norm(longer) <= _FARTHEST * np.linalg.norm(move):
                step = longer
        q, kappa = np.exp(point + step).tolist()
        return q, kappa


class _Equations:
    """The equations of one problem on one rule."""

    def __init__(self, problem: MultiIndex, rule: Rule | None) -> None:
        if problem.width != 1:
            raise ValueError(f"problem must have one neuron, got {problem.width}")
        if decompose(problem.target).easy.shape[1]:
            raise ValueError(
                f"problem.target must have hard directions only, got {problem.target.name}"
            )
        dim = problem.k + 1 + (problem.target.noise > 0)
        if rule is None:
            rule = gauss_hermite(dim, _ORDERS.get(dim, 15))
        _validate.providing("rule", rule, "nodes", "weights")
        if rule.dim != dim:
            raise ValueError(f"rule must have dimension {dim}, got {rule.dim}")
        used = rule.weights > 1e-18
        nodes, self.weights = rule.nodes[used], rule.weights[used] / rule.weights[used].sum()
        self.problem = problem
        self.coordinates = nodes[:, : problem.k]
        self.z = nodes[:, problem.k]
        self.labels = problem.target.signal(self.coordinates)
        if problem.target.noise:
            self.labels = self.labels + problem.target.noise * nodes[:, -1]
        self.full = self.labels, self.weights
        chosen, self.back = np.unique(_mirrored(problem, nodes), return_inverse=True)
        self.z, self.labels = self.z[chosen], self.labels[chosen]
        self.weights = np.bincount(self.back, self.weights)

    def slope(self, v: Array) -> Array:
        """L'(v, y)."""
        return np.asarray(self.problem.force(v[:, None], self.labels)[1][:, 0])

    def curvature(self, v: Array) -> Array:
        """L''(v, y)."""
        return self.problem.hessian_weights(v[:, None], self.labels)[:, 0, 0]

    def solve(
        self, sample_ratio: float, q: float, kappa: float, tolerance: float = _TOLERANCE
    ) -> StableLimit:
        """Damped iteration from a guess."""
        v = np.sqrt(q) * self.z
        residual = np.inf
        mixing = _Mixing()
        for _ in range(_MAX_ITERATIONS):
            w = np.sqrt(q) * self.z
            start = v if np.isfinite(residual) else w
            v = proximal(self.problem, self.labels, w, kappa, start=start)
            curvature = kappa * self.curvature(v)
            if curvature.min() <= -1:
                raise FloatingPointError(
                    f"the proximal map must be single-valued, got 1 + kappa G = "
                    f"{1 + curvature.min():.3g} at sample_ratio = {sample_ratio:.4g} "
                    f"(last residual {residual:.3g})"
                )
            t = curvature / (1 + curvature)
            share = sample_ratio * float(self.weights @ t)
            new_q = sample_ratio * kappa**2 * float(self.weights @ self.slope(v) ** 2)
            residual = max(abs(share - 1), abs(new_q - q) / max(new_q, 1e-12))
            if residual <= tolerance:
                break
            # E[T] = 1 / sample_ratio needs another kappa; a bounded factor keeps the branch.
            factor = float(np.clip(1 / share if share > 0 else 2.0, 0.5, 2.0)) ** 0.5
            damped = (q + new_q) / 2, kappa * factor
            q, kappa = mixing.next((q, kappa), damped) if residual < _NEAR else damped
        else:
            raise FloatingPointError(
                f"the equations of the limit must converge, got a residual of {residual:.3g} "
                f"after {_MAX_ITERATIONS} iterations at sample_ratio = {sample_ratio:.4g}; where "
                f"neurons grow at a large sample ratio there is no stable limit, and finite times "
                f"must be extrapolated"
            )
        loss, (labels, weights) = self.problem.loss.value, self.full
        v, w = v[self.back], w[self.back]
        return StableLimit(
            sample_ratio=sample_ratio,
            q=q,
            kappa=kappa,
            stability=sample_ratio * float(self.weights @ t**2),
            train_loss=float(weights @ loss(labels, self.problem.predict(v[:, None]))),
            test_loss=float(weights @ loss(labels, self.problem.predict(w[:, None]))),
            hessian=HardSubspace(
                curvature[self.back] / kappa, self.coordinates, sample_ratio, probabilities=weights
            ),
            residual=residual,
        )
