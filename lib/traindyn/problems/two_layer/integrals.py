r"""Gaussian integrals of the effective dynamics of a two-layer network at finite precision.

A neuron depends on an input only through :math:`z = W X`. Let the rows of U be an orthonormal
basis of a space that holds all neurons, W = L U with L lower triangular; then
:math:`z = m s_c + L \eta` with :math:`\eta \sim N(0, I_K / \lambda)` under centroid
:math:`s_c`, and given :math:`\eta` the input is
:math:`N(s_c + U^T \eta, (I - U^T U) / \lambda)`. Everything is therefore an integral over
:math:`\eta`, of K dimensions, whose integrand is smooth except across the K hyperplanes
:math:`z_i = 0`. Three quadratures are offered, as functions of the same form:

* :func:`by_polar`, K at most 2: polar coordinates around the point where all z vanish, so
  that the kinks are rays between panels. Ten digits (six where noise drives the logits to a
  hundred), and smooth in the statistics.
* :func:`by_orthants`, moderate K: one set of nodes for each sign pattern of z, mapped into
  it by truncated normal variables (Genz's sequential conditioning). Smooth in the
  statistics, as an adaptive integrator and Newton's method need.
* :func:`by_rule`, any K: the nodes of a Gaussian rule as they are. Cheapest per node, and
  unbiased over scramblings of the rule, but a step function of the statistics.

:func:`evaluate` chooses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numba import njit
from scipy.special import expit, ndtr, ndtri

from traindyn import _validate
from traindyn._types import Array
from traindyn.gaussian import Rule, sobol, symmetric_sqrt

if TYPE_CHECKING:
    from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture

__all__ = [
    "Integrals",
    "by_orthants",
    "by_polar",
    "by_rule",
    "evaluate",
    "step_covariance",
]

# Half-width of the windows around a mean, in standard deviations: 2e-17 of the mass is outside.
_REACH = 8.5

# Logits are within this in the first panel of a ray: the poles of the sigmoid are far from it.
_LOGIT = 12.0

# Nodes of the default Sobol rules in all, and the largest width with a set for each orthant.
_DEFAULT_NODES = 2**14
_WIDEST_ORTHANTS = 8

# Relative to the longest neuron, what a neuron adds to the span of those before it is
# rounding noise below this.
_DEPENDENT = 1e-13


class Integrals(NamedTuple):
    r"""What the drift of the statistics integrates.

    With :math:`c_i = 1\{z_i > 0\} (\sigma(o) - y)`, the response of neuron i to an input.

    Attributes
    ----------
    A : ndarray, shape (K, d)
        Signal coordinates of :math:`A_i = E[c_i X]`.
    A_perp : ndarray, shape (K, K)
        :math:`A^\perp_{ij} = A_i \cdot W_j^\perp`.
    B : ndarray, shape (K, K)
        :math:`E[c_i c_j]`.
    loss : ndarray, shape ()
        Mean cross-entropy, without the ridge.
    """

    A: Array
    A_perp: Array
    B: Array
    loss: Array


class _Frame(NamedTuple):
    """Neurons in an orthonormal basis of a space that holds them.

    Attributes
    ----------
    lower : ndarray, shape (K, K)
        L, with non-negative diagonal.
    signal : ndarray, shape (K, d)
        Signal coordinates of the basis vectors.
    beside : ndarray, shape (K, K)
        Their other coordinates.
    root : ndarray, shape (K, K)
        The other coordinates of the neurons, a square root of R_perp.
    """

    lower: Array
    signal: Array
    beside: Array
    root: Array


class _Nodes(NamedTuple):
    """Quadrature for the noise eta under one centroid.

    Attributes
    ----------
    eta : ndarray, shape (n, K)
    weights : ndarray, shape (n,)
    """

    eta: Array
    weights: Array


def evaluate(
    problem: TwoLayerMixture, statistics: Statistics, rule: Rule | None = None
) -> Integrals:
    """Integrate with a given rule, or with the quadrature that suits the width.

    Parameters
    ----------
    problem : TwoLayerMixture
        Its centroids, labels, class weights and precision give the law of the data.
    statistics : Statistics
        Of one point, without leading axes.
    rule : Rule, optional
        Of dimension K, for :func:`by_orthants` if K is at most 8 and for :func:`by_rule`
        beyond. Default: :func:`by_polar` for K at most 2, otherwise 2**14 Sobol nodes in all,
        the same at every call.

    Returns
    -------
    Integrals
        Finite sums over the centroids, exact, if the precision is infinite.

    Raises
    ------
    ValueError
        If the statistics are misshaped or not finite, R_perp is not positive semi-definite or
        the rule has another dimension.
    """
    frame = _frame(problem, statistics)
    return _integrate(
        problem,
        statistics,
        frame,
        _chosen(problem, np.asarray(statistics.v, dtype=np.float64), frame, rule),
    )


def by_rule(problem: TwoLayerMixture, statistics: Statistics, rule: Rule) -> Integrals:
    """Integrate over the nodes of a rule for N(0, I_K).

    Parameters
    ----------
    problem : TwoLayerMixture
        Of any width.
    statistics : Statistics
        Of one point, without leading axes.
    rule : Rule
        The same nodes serve every centroid.
    """
    frame = _frame(problem, statistics)
    return _integrate(problem, statistics, frame, _plain(problem, frame, rule))


def by_polar(
    problem: TwoLayerMixture, statistics: Statistics, *, radial: int = 40, angular: int = 24
) -> Integrals:
    """Integrate in polar coordinates, for one or two neurons.

    Parameters
    ----------
    problem : TwoLayerMixture
        Of width 1 or 2.
    statistics : Statistics
        Of one point, without leading axes.
    radial : int, default 40
        Gauss-Legendre nodes in each of two panels of a ray.
    angular : int, default 24
        Gauss-Legendre nodes in each panel of directions; panels end at the kinks, where the
        two neurons cancel, at the mean and at the edges of a window around it.

    Examples
    --------
    A second layer of zeros answers every input by 1/2, hence A = -mu / 4 for the binary
    mixture:

    >>> from traindyn.problems.two_layer.integrals import by_polar
    >>> import numpy as np
    >>> from traindyn.problems.two_layer import Statistics, TwoLayerMixture
    >>> problem = TwoLayerMixture.binary(2, 20, precision=3.0, ridge=0.1)
    >>> found = by_polar(problem, Statistics(np.zeros(2), np.array([[1.0], [0.2]]), np.eye(2)))
    >>> np.allclose(found.A, -0.25, atol=1e-12)
    True
    """
    if problem.width > 2:
        raise ValueError(f"problem.width must be at most 2 for by_polar, got {problem.width}")
    radial = _validate.integer("radial", radial, least=1)
    angular = _validate.integer("angular", angular, least=1)
    frame, v = _frame(problem, statistics), np.asarray(statistics.v, dtype=np.float64)
    return _integrate(problem, statistics, frame, _polar(problem, v, frame, radial, angular))


def by_orthants(problem: TwoLayerMixture, statistics: Statistics, rule: Rule) -> Integrals:
    """Integrate over each sign pattern of z apart, with nodes mapped into it.

    Parameters
    ----------
    problem : TwoLayerMixture
        Of moderate width K: the cost grows like ``2**K``.
    statistics : Statistics
        Of one point, without leading axes.
    rule : Rule
        For N(0, I_K); mapped once for each centroid and each of the 2**K patterns.
    """
    frame = _frame(problem, statistics)
    return _integrate(problem, statistics, frame, _orthants(problem, frame, rule))


def step_covariance(
    problem: TwoLayerMixture, statistics: Statistics, rule: Rule | None, *, corrector: float
) -> Array:
    """Covariance of the increments of one step, the square of the volatility; shape (n, n).

    Parameters
    ----------
    problem : TwoLayerMixture
        Its centroids, labels, class weights and precision give the law of the data.
    statistics : Statistics
        Where the step starts.
    rule : Rule, optional
        As in :func:`evaluate`.
    corrector : float
        Factor of v_i v_j c_i c_j in the increment of R_perp, c_delta / lambda or zero.

    Returns
    -------
    ndarray, shape (n, n)
        In the order v, m row by row, upper triangle of R_perp row by row.
    """
    corrector = _validate.number("corrector", corrector)
    frame = _frame(problem, statistics)
    quadrature = _chosen(problem, np.asarray(statistics.v, dtype=np.float64), frame, rule)
    v, m = (np.asarray(array, dtype=np.float64) for array in statistics[:2])
    width, signal = m.shape
    upper = np.triu_indices(width)
    size = width + m.size + upper[0].size
    mean, second, B = np.zeros(size), np.zeros((size, size)), np.zeros((width, width))
    for index, probability in enumerate(problem.weights):
        eta, weights = quadrature(index)
        z = m @ problem.centroids[index] + eta @ frame.lower.T
        sign = 1.0 - 2.0 * problem.labels[index]
        error = sign * expit(sign * (np.maximum(z, 0.0) @ v))
        c = (z > 0) * error[:, None]
        vc = v * c
        inputs = problem.centroids[index] + eta @ frame.signal
        beside = eta @ frame.beside @ frame.root.T
        cross = vc[:, :, None] * beside[:, None, :]
        dR = corrector * vc[:, :, None] * vc[:, None, :] - cross - np.swapaxes(cross, 1, 2)
        dm = -(vc[:, :, None] * inputs[:, None, :]).reshape(-1, m.size)
        step = np.hstack([-z * c, dm, dR[:, upper[0], upper[1]]])
        weighted = probability * weights[:, None]
        mean += (weighted * step).sum(axis=0)
        second += step.T @ (weighted * step)
        B += c.T @ (weighted * c)
    # Given eta the increment is linear in the rest of the input: slopes[k] is the factor of
    # c_k times that rest.
    slopes = np.zeros((width, size, signal + width))
    for k in range(width):
        for a in range(signal):
            slopes[k, width + k * signal + a, a] = -v[k]
        for row, (i, j) in enumerate(zip(*upper), start=width + m.size):
            slopes[k, row, signal:] -= v[k] * ((k == i) * frame.root[j] + (k == j) * frame.root[i])
    basis = np.hstack([frame.signal, frame.beside])
    rest = (np.eye(signal + width) - basis.T @ basis) / problem.precision
    second += np.einsum("kl,kpa,ab,lqb->pq", B, slopes, rest, slopes, optimize=True)
    covariance = second - np.outer(mean, mean)
    return np.asarray((covariance + covariance.T) / 2)


def _frame(problem: TwoLayerMixture, statistics: Statistics) -> _Frame:
    width, signal = problem.width, problem.signal
    _validate.providing("statistics", statistics, "v", "m", "R_perp")
    _validate.finite("statistics.v", statistics.v, shape=(width,))
    m = _validate.finite("statistics.m", statistics.m, shape=(width, signal))
    R_perp = _validate.finite("statistics.R_perp", statistics.R_perp, shape=(width, width))
    root = symmetric_sqrt(R_perp, scale=1.0)
    basis, upper = np.linalg.qr(np.hstack([m, root]).T)
    signs = np.where(np.diag(upper) < 0, -1.0, 1.0)
    basis = (basis * signs).T
    return _Frame((upper * signs[:, None]).T, basis[:, :signal], basis[:, signal:], root)


_Quadrature: TypeAlias = Callable[[int], _Nodes]


def _chosen(problem: TwoLayerMixture, v: Array, frame: _Frame, rule: Rule | None) -> _Quadrature:
    width = problem.width
    if rule is not None:
        _check_dimension(problem, rule)
    if math.isinf(problem.precision):
        point = _Nodes(np.zeros((1, width)), np.ones(1))
        return lambda index: point
    if rule is None and width <= 2:
        return _polar(problem, v, frame, 40, 24)
    rule = _default_rule(width) if rule is None else rule
    return (_orthants if width <= _WIDEST_ORTHANTS else _plain)(problem, frame, rule)


@cache
def _default_rule(width: int) -> Rule:
    patterns = 2**width if width <= _WIDEST_ORTHANTS else 1
    return sobol(width, _DEFAULT_NODES // patterns, rng=0)


def _check_dimension(problem: TwoLayerMixture, rule: Rule) -> None:
    _validate.providing("rule", rule, "nodes", "weights")
    if rule.dim != problem.width:
        raise ValueError(f"rule must have dimension {problem.width}, got {rule.dim}")


def _plain(problem: TwoLayerMixture, frame: _Frame, rule: Rule) -> _Quadrature:
    _check_dimension(problem, rule)
    nodes = _Nodes(rule.nodes / math.sqrt(problem.precision), rule.weights)
    return lambda index: nodes


def _integrate(
    problem: TwoLayerMixture, statistics: Statistics, frame: _Frame, quadrature: _Quadrature
) -> Integrals:
    v, m = (np.asarray(array, dtype=np.float64) for array in statistics[:2])
    width = problem.width
    A, A_perp = np.zeros_like(m), np.zeros((width, width))
    B, loss = np.zeros((width, width)), 0.0
    # One order in memory: every other one would be compiled for.
    v, lower = np.ascontiguousarray(v), np.ascontiguousarray(frame.lower)
    for index, probability in enumerate(problem.weights):
        centroid = problem.centroids[index]
        eta, weights = quadrature(index)
        mean, first, second, entropy = _moments(
            v, m @ centroid, lower, eta, weights, 1.0 - 2.0 * problem.labels[index]
        )
        A += probability * (np.outer(mean, centroid) + first @ frame.signal)
        A_perp += probability * (first @ frame.beside @ frame.root.T)
        B += probability * second
        loss += probability * entropy
    return Integrals(A, A_perp, B, np.asarray(loss))


@njit(cache=True, nogil=True, error_model="numpy")
def _moments(
    v: Array, base: Array, lower: Array, eta: Array, weights: Array, sign: float
) -> tuple[Array, Array, Array, float]:
    """Sum c_i, c_i eta, c_i c_j and the loss over nodes, for z = base + lower @ eta."""
    width = v.size
    mean = np.zeros(width)
    first = np.zeros((width, width))
    second = np.zeros((width, width))
    active = np.empty(width, dtype=np.int64)
    loss = 0.0
    for n in range(weights.size):
        output = 0.0
        count = 0
        for i in range(width):
            z = base[i]
            for j in range(i + 1):
                z += lower[i, j] * eta[n, j]
            if z > 0.0:
                output += v[i] * z
                active[count] = i
                count += 1
        # The error is sign * sigma(sign * output), the loss the softplus of sign * output.
        small = math.exp(-abs(output))
        positive = sign * output > 0.0
        error = sign * (1.0 if positive else small) / (1.0 + small)
        loss += weights[n] * (math.log1p(small) + (abs(output) if positive else 0.0))
        single = weights[n] * error
        double = single * error
        for a in range(count):
            i = active[a]
            mean[i] += single
            for j in range(width):
                first[i, j] += single * eta[n, j]
            for b in range(count):
                second[i, active[b]] += double
    return mean, first, second, loss


# ---------------------------------------------------------------------- polar coordinates


def _polar(
    problem: TwoLayerMixture, v: Array, frame: _Frame, radial: int, angular: int
) -> _Quadrature:
    """Nodes y = r omega around the point where all z vanish, eta = y - its mean."""
    means = problem.centroids @ frame.signal.T
    deviation = 1.0 / math.sqrt(problem.precision)
    if deviation == 0.0:
        raise ValueError("problem.precision must be finite for by_polar, got inf")
    radii, radial_weights = _legendre(radial)

    def nodes(index: int) -> _Nodes:
        mean = means[index]
        if problem.width == 1:
            directions, solid = np.array([[1.0], [-1.0]]), np.ones(2)
        else:
            angles, solid = _angles(
                mean, deviation, np.vstack([frame.lower, v @ frame.lower]), angular
            )
            directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        # On a ray the density is Gaussian around the projection of the mean, and the logit
        # proportional to r: two panels, the first one no longer than the sigmoid needs.
        along = directions @ mean
        start = np.maximum(along - _REACH * deviation, 0.0)
        length = np.maximum(along, 0.0) + _REACH * deviation - start
        steep = np.abs(np.maximum(directions @ frame.lower.T, 0.0) @ v)
        cut = np.minimum(0.5 * length, _LOGIT / np.maximum(steep, _LOGIT / length))
        panels = np.stack([cut, length - cut], axis=1)
        offsets = np.stack([np.zeros_like(cut), cut], axis=1)
        r = start[:, None, None] + offsets[:, :, None] + panels[:, :, None] * radii
        r = r.reshape(along.size, -1)
        y = r[:, :, None] * directions[:, None, :]
        eta = (y - mean).reshape(-1, problem.width)
        density = np.exp(-0.5 * (eta * eta).sum(axis=1) / deviation**2)
        density /= (2.0 * math.pi * deviation**2) ** (0.5 * problem.width)
        lengths = (panels[:, :, None] * radial_weights).reshape(r.shape)
        measure = solid[:, None] * lengths * r ** (problem.width - 1)
        return _Nodes(eta, density * measure.ravel())

    return nodes


def _angles(mean: Array, deviation: float, normals: Array, order: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes for directions in the plane, in panels, and their weights.

    Panels end across every normal: at the kinks, and where the two neurons cancel.
    """
    centre = math.atan2(mean[1], mean[0])
    sharpness = math.hypot(mean[0], mean[1]) / deviation
    width = math.asin(_REACH / sharpness) if sharpness > _REACH else math.pi
    peak = math.asin(3.0 / sharpness) if sharpness > 3.0 else 0.5 * math.pi
    cuts = [0.0, peak, -peak, 0.5 * math.pi, -0.5 * math.pi]
    for normal in normals:
        if normal.any():
            kink = math.atan2(normal[1], normal[0]) - centre
            cuts += [math.remainder(kink + turn * math.pi, 2.0 * math.pi) for turn in (0.5, -0.5)]
    edges = np.unique(np.clip([*cuts, -width, width], -width, width))
    nodes, weights = _legendre(order)
    lengths = np.diff(edges)
    angles = centre + edges[:-1, None] + lengths[:, None] * nodes
    return angles.ravel(), (lengths[:, None] * weights).ravel()


@cache
def _legendre(order: int) -> tuple[Array, Array]:
    """Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return _validate.frozen(0.5 * (nodes + 1.0)), _validate.frozen(0.5 * weights)


# ---------------------------------------------------------------------- sign patterns


def _orthants(problem: TwoLayerMixture, frame: _Frame, rule: Rule) -> _Quadrature:
    """Nodes in every sign pattern: eta_i truncated to the side of z_i, given those before it."""
    _check_dimension(problem, rule)
    deviation = 1.0 / math.sqrt(problem.precision)
    if deviation == 0.0:
        raise ValueError("problem.precision must be finite for by_orthants, got inf")
    uniform = ndtr(rule.nodes)
    lower = deviation * frame.lower
    shifts = problem.centroids @ (frame.signal.T @ frame.lower.T)
    smallest = _DEPENDENT * np.abs(lower).max(initial=0.0)

    def nodes(index: int) -> _Nodes:
        weights = rule.weights[None]
        noise = np.empty((1, 0, rule.size))
        for i in range(problem.width):
            z = shifts[index, i] + np.tensordot(noise, lower[i, :i], axes=(1, 0))
            found = []
            for side in (1.0, -1.0):
                if lower[i, i] > smallest:
                    mass = ndtr(side * z / lower[i, i])
                    drawn = -side * ndtri(np.maximum(mass * uniform[:, i], 1e-300))
                else:
                    mass = (side * z > 0) if side > 0 else ~(z > 0)
                    drawn = np.broadcast_to(rule.nodes[:, i], z.shape)
                found.append((weights * mass, np.concatenate([noise, drawn[:, None]], axis=1)))
            weights = np.concatenate([each for each, _ in found])
            noise = np.concatenate([each for _, each in found])
            kept = weights.max(axis=1) > 1e-20
            weights, noise = weights[kept], noise[kept]
        eta = deviation * np.moveaxis(noise, 1, 2).reshape(-1, problem.width)
        return _Nodes(np.ascontiguousarray(eta), weights.ravel())

    return nodes
