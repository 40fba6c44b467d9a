r"""Errors of the approximations at large precision (BGHJ Lemmas 4.1-4.5, 5.16), corrected.

Two kinds of statement. The *orders* are the right-hand sides of the source: they hold up to a
constant that depends on a ball of parameters, and show the exponent in the precision. The
*bounds* hold as they stand, constants included: they combine closed forms of the feature
moments with the Lipschitz constants of the weights, and are what a test can refute.

Notation of :mod:`traindyn.problems.two_layer.curvature`; :math:`\bar\Phi = 1 - \Phi`, and
:math:`a_{ic} = \sqrt{\lambda / R_{ii}}\, |m_i \cdot s_c|` is the margin of neuron i at centroid c
in units of its noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from traindyn import _validate, relu
from traindyn._types import Array
from traindyn.problems.base import MATRICES, Block, Matrix
from traindyn.problems.two_layer.curvature import weight
from traindyn.problems.two_layer.mixture import Point, TwoLayerMixture, checked_point

__all__ = [
    "LIPSCHITZ",
    "feature_excess",
    "first_layer_order",
    "fourth_moment_bound",
    "margins",
    "output_fluctuation",
    "psi_2",
    "psi_3",
    "remainder_bound",
    "response_order",
    "second_layer_order",
    "soft_response",
]

#: Lipschitz constants in the output o of the weights, ``max |sigma''|`` and
#: ``max 2 |sigma - y| sigma'``.
LIPSCHITZ: dict[Matrix, float] = {"hessian": 1 / (6 * np.sqrt(3)), "g_matrix": 8 / 27}


def margins(problem: TwoLayerMixture, point: Point) -> Array:
    r"""Signed margins :math:`\sqrt{\lambda / R_{ii}}\, m_i \cdot s_c`, shape (K, C).

    Infinite at infinite precision, and zero for a neuron that vanishes or is orthogonal to the
    centroid.

    Parameters
    ----------
    problem : TwoLayerMixture
        Gives the centroids and the precision :math:`\lambda`.
    point : Point
        ``v`` of shape (K,), ``W`` of shape (K, n).
    """
    point = checked_point(problem, point)
    along, lengths = _along(problem, point), np.linalg.norm(point.W, axis=1)
    cosines = along / np.where(lengths > 0, lengths, 1.0)[:, None]
    with np.errstate(invalid="ignore"):
        scaled = np.sqrt(problem.precision) * cosines
    return np.asarray(np.where(cosines == 0, 0.0, scaled))


def feature_excess(m: ArrayLike, gram: ArrayLike, precision: float) -> Array:
    r"""Return :math:`E[g(WX) g(WX)^T] - g(m) g(m)^T` at one centroid, in closed form.

    Where both means are non-negative it is (BGHJ Lemma 4.1, Case 1, corrected)

    .. math:: -E\big[(W_i \cdot X)(W_j \cdot X)\,
              1\{W_i \cdot X < 0 \text{ or } W_j \cdot X < 0\}\big] + R_{ij} / \lambda;

    the source replaces the variables in the expectation by their means.

    Parameters
    ----------
    m : array_like, shape (K,)
        Means :math:`W_i \cdot \theta`.
    gram : array_like, shape (K, K)
        :math:`R_{ij} = W_i \cdot W_j`.
    precision : float
        :math:`\lambda`, positive; at infinity the excess is zero.

    Returns
    -------
    ndarray, shape (K, K)

    Examples
    --------
    >>> from companion.alignment.xor_population_matrices.expansions import feature_excess
    >>> feature_excess([0.0], [[1.0]], 4.0).tolist()
    [[0.125]]
    """
    precision = _validate.positive_or_infinite("precision", precision)
    means, square = _means_and_gram(m, gram)
    felt = np.maximum(means, 0.0)
    return np.asarray(relu.second_moment(means, square / precision) - np.outer(felt, felt))


def psi_2(m: ArrayLike, gram: ArrayLike, precision: float) -> float:
    r"""Order of :math:`E[g(WX) g(WX)^T] - g(W\theta) g(W\theta)^T` (BGHJ Lemma 4.1, (4.6)).

    .. math:: \max_{ij} \big(|m_i|^3 + (R_{ii} / \lambda)^{3/2}\big)^{1/3}
              \big(|m_j|^3 + (R_{jj} / \lambda)^{3/2}\big)^{1/3}
              \big(\bar\Phi(a_i) + \bar\Phi(a_j)\big)^{1/3} + |R_{ij}| / \lambda.

    The source prints the last term without absolute value, which changes the maximum by at
    most a factor two.

    Parameters
    ----------
    m : array_like, shape (K,)
        Means :math:`W_i \cdot \theta`.
    gram : array_like, shape (K, K)
        :math:`R_{ij} = W_i \cdot W_j`.
    precision : float
        :math:`\lambda`, positive; at infinity the order is zero.

    Examples
    --------
    >>> from companion.alignment.xor_population_matrices.expansions import psi_2
    >>> round(psi_2([0.0], [[1.0]], 100.0), 6)
    0.02
    """
    precision = _validate.positive_or_infinite("precision", precision)
    means, square = _means_and_gram(m, gram)
    lengths = np.sqrt(np.diag(square))
    with np.errstate(divide="ignore", invalid="ignore"):
        heights = np.sqrt(precision) * np.abs(means) / lengths
    tails = ndtr(-np.where(means == 0, 0.0, heights))
    sizes = np.cbrt(np.abs(means) ** 3 + (lengths**2 / precision) ** 1.5)
    terms = np.outer(sizes, sizes) * np.cbrt(tails[:, None] + tails)
    return float((terms + np.abs(square) / precision).max())


def psi_3(x: ArrayLike) -> Array:
    r"""Order :math:`x (1 + x)` of the squared fluctuation of the weights (BGHJ Lemma 4.3).

    Its argument is :math:`|v|^2 |W|_F^2 / \lambda`; see :func:`output_fluctuation` for the
    exact second moment of the output, of which the weights are Lipschitz functions.

    Parameters
    ----------
    x : array_like
        Non-negative, of any shape.

    Returns
    -------
    ndarray
        Of the shape of `x`.

    Examples
    --------
    >>> from companion.alignment.xor_population_matrices.expansions import psi_3
    >>> psi_3(0.5).item()
    0.75
    """
    value = _validate.finite("x", x)
    return np.asarray(value * (1 + value))


def fourth_moment_bound(m: ArrayLike, gram: ArrayLike, precision: float) -> float:
    r"""Bound :math:`E|WX|^4` of :math:`E|g(WX)|^4` (BGHJ Lemma 4.2, corrected).

    .. math:: \Big(|m|^2 + \frac{\mathrm{tr} R}\lambda\Big)^2 + \frac2{\lambda^2} \mathrm{tr} R^2
              + \frac4\lambda m \cdot R m,

    for one neuron :math:`m^4 + 6 m^2 R / \lambda + 3 R^2 / \lambda^2`. The source loses the
    factors R and takes a square root of the left side alone.

    Parameters
    ----------
    m, gram, precision
        As for :func:`psi_2`.

    Examples
    --------
    >>> from companion.alignment.xor_population_matrices.expansions import fourth_moment_bound
    >>> fourth_moment_bound([1.0], [[2.0]], 4.0)  # 1 + 6 / 2 + 3 / 4
    4.75
    """
    precision = _validate.positive_or_infinite("precision", precision)
    means, square = _means_and_gram(m, gram)
    return float(_fourth_moment(means, square / precision))


def output_fluctuation(problem: TwoLayerMixture, point: Point) -> Array:
    r"""Second moment :math:`E_c[(o - o_c)^2]` of the output around each centroid, exact.

    At most :math:`|v|^2 |W|_F^2 / \lambda`. Times the squared constant :data:`LIPSCHITZ` it
    bounds :math:`E_c[(w - w_c)^2]` (BGHJ Lemma 4.3).

    Parameters
    ----------
    problem, point
        As for :func:`margins`.

    Returns
    -------
    ndarray, shape (C,)
    """
    point = checked_point(problem, point)
    means = _along(problem, point).T
    covariance = point.W @ point.W.T / problem.precision
    deviations = np.sqrt(np.diag(covariance))
    felt = np.maximum(means, 0.0)
    shape = (*means.shape, means.shape[1])
    second = relu.second_moment(means, np.broadcast_to(covariance, shape))
    first = relu.rectified_moment(means, deviations, 1)
    # E[(g - g_c)(g - g_c)^T], of which one quadratic form in v is needed.
    spread = second - _outer(felt, first) - _outer(first, felt) + _outer(felt, felt)
    moments = np.einsum("i,cij,j->c", point.v, spread, point.v)
    most = point.v @ point.v * np.trace(covariance)
    return np.asarray(np.clip(moments, 0.0, most))


def second_layer_order(problem: TwoLayerMixture, point: Point) -> float:
    r"""Order :math:`\max_c \psi_2 + 1 / \lambda` of the error of block (K, K).

    As in BGHJ (4.10), (4.16).

    Parameters
    ----------
    problem, point
        As for :func:`margins`.
    """
    point = checked_point(problem, point)
    gram = point.W @ point.W.T
    means = _along(problem, point).T
    return max(psi_2(m, gram, problem.precision) for m in means) + 1 / problem.precision


def first_layer_order(problem: TwoLayerMixture, point: Point, i: int) -> float:
    r"""Order of the error of block (i, i) of the first layer (BGHJ (4.11), (4.17)), corrected.

    .. math:: \frac1{\sqrt\lambda} \max_c \Big[ \bar\Phi(a_{ic})^{1/2}
              + \sum_j |v_j| \sqrt{R_{jj}}\, \bar\Phi(a_{jc})^{1/2} \Big] + \frac1\lambda.

    The source has the first term alone, the margin of neuron i. But a neuron j of zero margin
    shifts the mean output, and so the weight, by :math:`\lambda^{-1/2}` whatever neuron i does.

    Parameters
    ----------
    problem, point
        As for :func:`margins`.
    i : int
        Neuron.
    """
    point = checked_point(problem, point)
    i = _validate.integer("i", i, least=0, most=problem.width - 1)
    tails = np.sqrt(ndtr(-np.abs(margins(problem, point))))
    reach = np.abs(point.v) * np.linalg.norm(point.W, axis=1)
    worst = (tails[i] + reach @ tails).max()
    return float(worst / np.sqrt(problem.precision) + 1 / problem.precision)


def remainder_bound(problem: TwoLayerMixture, matrix: Matrix, point: Point, block: Block) -> float:
    r"""Bound in operator norm of a population block minus its leading order, all constants given.

    With :math:`\ell` the Lipschitz constant of the weight and :math:`\tau_c^2` the
    :func:`output_fluctuation`,

    .. math:: \sum_c p_c \Big[ w_c \big\| E_c[g g^T] - g_c g_c^T \big\|
              + \ell\, \tau_c\, (E_c |WX|^4)^{1/2} \Big]

    for the second layer and, for neurons i and j,

    .. math:: |v_i v_j| \sum_c p_c \Big[ w_c \big\| E_c[1_i 1_j X X^T]
              - P_c(1_i 1_j)\, s_c s_c^T \big\| + \ell\, \tau_c \sup_{|u| = 1}
              (E_c \langle u, X \rangle^4)^{1/2} \Big].

    Both are of order :math:`\lambda^{-1/2}`, the order the source uses in its theorems.

    Parameters
    ----------
    problem : TwoLayerMixture
        Of finite precision, if the block is one of the first layer.
    matrix : {"hessian", "g_matrix"}
        Decides on the weight w and its :math:`\ell`.
    point : Point
        ``v`` of shape (K,), ``W`` of shape (K, n).
    block : Block
        (i, j) of the first layer, or (K, K).
    """
    point = checked_point(problem, point)
    _validate.choice("matrix", matrix, MATRICES)
    means = _along(problem, point).T
    felt = np.maximum(means, 0.0)
    at_centroids = weight(matrix, felt @ point.v, problem.labels)
    swing = LIPSCHITZ[matrix] * np.sqrt(output_fluctuation(problem, point))
    gram = point.W @ point.W.T / problem.precision
    K = problem.width
    i, j = _validate.pair("block", block, most=K)
    if i == j == K:
        covariance = np.broadcast_to(gram, (*means.shape, means.shape[1]))
        feature = relu.second_moment(means, covariance) - _outer(felt, felt)
        fourth, scale = _fourth_moment(means, covariance), 1.0
    else:
        i, j = _validate.pair("block", block, most=K - 1)
        _validate.positive("problem.precision", problem.precision)
        centroids = _centroids(problem, point)
        found = relu.wedge(point.W[i], point.W[j], centroids, problem.precision)
        feature = found.second - found.probability[:, None, None] * _outer(centroids, centroids)
        line = (np.square(centroids).sum(axis=1) * problem.precision) ** 0.5
        fourth = _fourth_moment(line[:, None], np.ones((1, 1))) / problem.precision**2
        scale = abs(float(point.v[i] * point.v[j]))
    gaps = np.linalg.norm(feature, ord=2, axis=(-2, -1))
    return scale * float(problem.weights @ (at_centroids * gaps + swing * np.sqrt(fourth)))


def soft_response(problem: TwoLayerMixture, point: Point) -> Array:
    r"""Response at large precision with soft activities (BGHJ Lemma 5.16, Corollary 5.17).

    .. math:: A_i = E[X\, 1_i\, e] \approx \sum_c p_c\, \Phi(a_{ic}) (\sigma(o_c) - y_c)\, s_c.

    Parameters
    ----------
    problem, point
        As for :func:`margins`.

    Returns
    -------
    ndarray, shape (K, d)
    """
    point = checked_point(problem, point)
    outputs = point.v @ np.maximum(_along(problem, point), 0.0)
    pull = problem.weights * (expit(outputs) - problem.labels)
    return np.asarray((ndtr(margins(problem, point)) * pull) @ problem.centroids)


def response_order(problem: TwoLayerMixture, point: Point, i: int) -> float:
    r"""Order of the error of :func:`soft_response` (BGHJ Lemma 5.16), corrected.

    .. math:: \frac1{\sqrt\lambda} \max_c \Big[ e^{-a_{ic}^2 / 16}
              + \sum_j |v_j| \sqrt{R_{jj}}\, e^{-a_{jc}^2 / 16} \Big] + \frac1\lambda.

    The source prints :math:`\max_j (1 + v_j)(m_i + \sqrt{R_{ii} / \lambda})
    e^{-a_j^2 / 16} + 1 / \lambda`, which vanishes with the length of :math:`W_i`, while a
    neuron's activity, and the noise :math:`\varphi(a_i) \hat w_i / \sqrt\lambda` it lets through,
    depend on the direction of its weights alone.

    Parameters
    ----------
    problem, point, i
        As for :func:`first_layer_order`.
    """
    point = checked_point(problem, point)
    i = _validate.integer("i", i, least=0, most=problem.width - 1)
    tails = np.exp(-np.square(margins(problem, point)) / 16)
    reach = np.abs(point.v) * np.linalg.norm(point.W, axis=1)
    worst = (tails[i] + reach @ tails).max()
    return float(worst / np.sqrt(problem.precision) + 1 / problem.precision)


def _means_and_gram(m: ArrayLike, gram: ArrayLike) -> tuple[Array, Array]:
    """Check overlaps with one centroid and the products of the weights."""
    square = _validate.positive_semidefinite("gram", gram, scale=1.0)
    if square.size == 0:
        raise ValueError("gram must not be empty")
    return _validate.finite("m", m, shape=(len(square),)), square


def _along(problem: TwoLayerMixture, point: Point) -> Array:
    """Means of the preactivations at the centroids, shape (K, C)."""
    d = problem.centroids.shape[1]
    return np.asarray(point.W[:, :d] @ problem.centroids.T)


def _centroids(problem: TwoLayerMixture, point: Point) -> Array:
    """Centroids in the coordinates of the weights, shape (C, n)."""
    padded = np.zeros((len(problem.centroids), np.shape(point.W)[1]))
    padded[:, : problem.centroids.shape[1]] = problem.centroids
    return padded


def _outer(x: Array, y: Array) -> Array:
    return np.asarray(x[..., :, None] * y[..., None, :])


def _fourth_moment(means: Array, covariance: Array) -> Array:
    r"""Fourth moment :math:`E|U|^4` of Gaussian vectors, shapes (..., K) and (..., K, K).

    .. math:: (|m|^2 + \mathrm{tr}\, S)^2 + 2\, \mathrm{tr}\, S^2 + 4\, m \cdot S m.
    """
    square = np.square(means).sum(axis=-1) + np.trace(covariance, axis1=-2, axis2=-1)
    along = (means[..., :, None] * covariance * means[..., None, :]).sum(axis=(-2, -1))
    return np.asarray(square**2 + 2 * np.square(covariance).sum(axis=(-2, -1)) + 4 * along)
