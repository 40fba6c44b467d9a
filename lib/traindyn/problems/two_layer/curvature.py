r"""Population blocks of the Hessian and the G-matrix (BGHJ Section 4), at every precision.

With outputs :math:`o = v \cdot g(W X)`, errors :math:`e = \sigma(o) - y`, active neurons
:math:`1_i = 1\{W_i \cdot X > 0\}` and the weight w, :math:`\sigma'(o)` for the Hessian and
:math:`e^2` for the G-matrix, everything derives from the matrices
:math:`M_{ij} = E[w\, 1_i 1_j X X^T]`:

=====================  =========================================================
block                  average over the data law, ridge not included
=====================  =========================================================
``(i, j)``, both < K   :math:`v_i v_j M_{ij}`
``(K, K)``             :math:`E[w\, g(WX) g(WX)^T]`, entries :math:`W_i \cdot M_{ij} W_j`
``(K, j)``             row i :math:`v_j M_{ij} W_i`, for the Hessian plus
                       :math:`\delta_{ij} E[e\, 1_j X]`
=====================  =========================================================

**Which Hessian.** The second derivative of one sample's loss exists almost everywhere, and what
it averages to is :func:`population_block`, the matrix the source writes :math:`E[\nabla^2 L]`.
It is not the Hessian of the population loss: the ReLU's kink adds :func:`kink_block` to the
blocks (i, i), which no average of samples shows and which grows like :math:`\sqrt\lambda` where
a neuron is orthogonal to a centroid. The sum is :func:`loss_hessian_block`.

**Three accuracies.** :func:`population_block` is exact up to its quadrature rule.
:func:`frozen_block` keeps the features exact and takes the weight at the centroids, a closed
form that is also the control variate of the quadrature. :func:`leading_block` is the source's
approximation at large precision, (4.10), (4.14), (4.16) and (4.17), of rank at most C.

All functions take a point whose weights W have any number n of columns from d on; the first d
are the signal coordinates. The embedded point of
:meth:`~traindyn.problems.two_layer.mixture.TwoLayerMixture.embed` serves for given statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr, ndtri

from traindyn import _validate, gaussian, relu
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.base import MATRICES, Block, Matrix
from traindyn.problems.population_block import PopulationBlock
from traindyn.problems.two_layer.mixture import Point, TwoLayerMixture

__all__ = [
    "active_error",
    "frozen_block",
    "kink_block",
    "leading_block",
    "loss_hessian_block",
    "mixed_block",
    "population_block",
    "weight",
]

_NODES = 2**14
_PARALLEL = 1e-9
_TINY = 1e-300


def weight(matrix: Matrix, output: ArrayLike, label: ArrayLike) -> Array:
    r"""Weight of an input: :math:`\sigma'(o)` or :math:`(\sigma(o) - y)^2`.

    Parameters
    ----------
    matrix : {"hessian", "g_matrix"}
        The Hessian has the first of the two weights, the G-matrix the second.
    output, label : array_like
        Network output o and label y in {0, 1}, of compatible shapes.

    Returns
    -------
    ndarray
        Of the common shape, not negative.

    Examples
    --------
    >>> from traindyn.problems.two_layer.curvature import weight
    >>> weight("hessian", 0.0, 1.0).item(), weight("g_matrix", 0.0, 1.0).item()
    (0.25, 0.25)
    """
    _validate.choice("matrix", matrix, MATRICES)
    output = _validate.finite("output", output)
    label = _validate.finite("label", label)
    if matrix == "hessian":
        return np.asarray(expit(output) * expit(-output))
    return np.asarray(np.square(expit(output) - label))


def population_block(
    problem: TwoLayerMixture,
    matrix: Matrix,
    point: Point,
    block: Block,
    *,
    rule: Rule | None = None,
) -> PopulationBlock:
    """Average of the almost-everywhere Hessian, or the G-matrix, over the data law.

    Parameters
    ----------
    problem : TwoLayerMixture
        Its width, and the law of its data; its dimension does not matter.
    matrix : {"hessian", "g_matrix"}
        Decides on the weight of an input, see :func:`weight`.
    point : Point
        ``v`` of shape (K,), ``W`` of shape (K, n).
    block : Block
        (i, j) of the first layer, or (K, K).
    rule : Rule, optional
        Gaussian rule of dimension ``r = d + min(K, n - d)``; a fixed Sobol rule of 2**14 nodes
        unless given. It integrates only the deviation from :func:`frozen_block`; the error of
        the default is about 1e-3 of the block where the output fluctuates by several units and
        shrinks with the fluctuation. Independent scramblings measure it.

    Returns
    -------
    PopulationBlock
        Of size n, or K for the second layer. Off the span of signal and neurons a block of the
        first layer is its `shift` times the identity.

    Raises
    ------
    ValueError
        If `point`, `block` or the dimension of `rule` does not fit the problem.
    """
    frame, block = _frame(problem, point), _block(problem, block)
    if block == (problem.width, problem.width):
        second = _second_layer_frozen(problem, matrix, frame)
        for c, (X, masses) in enumerate(_nodes(problem, frame, rule)):
            felt = np.maximum(X @ frame.W.T, 0.0)
            excess = masses * _excess(problem, matrix, frame, c, felt)
            second += problem.weights[c] * ((felt.T * excess) @ felt)
        return PopulationBlock(0.0, np.eye(problem.width), (second + second.T) / 2)
    i, j = block
    moment, mean = _first_layer_frozen(problem, matrix, frame, i, j, kink=0.0)
    for c, (X, masses) in enumerate(_active_nodes(problem, frame, rule, i, j)):
        felt = np.maximum(X @ frame.W.T, 0.0)
        excess = problem.weights[c] * masses * _excess(problem, matrix, frame, c, felt)
        moment += (X.T * excess) @ X
        mean += float(excess.sum())
    return _assemble(problem, frame, i, j, moment, mean)


def frozen_block(
    problem: TwoLayerMixture, matrix: Matrix, point: Point, block: Block, *, kink: float = 0.0
) -> PopulationBlock:
    r"""Block with the weight of each input taken at its centroid, in closed form.

    .. math:: v_i v_j \sum_c p_c w_c\, E_c[1_i 1_j X X^T], \qquad
              \sum_c p_c w_c\, E_c[g(WX) g(WX)^T].

    Unlike :func:`leading_block` it has the right bulk at order :math:`1 / \lambda`.

    Parameters
    ----------
    problem, matrix, point, block
        As for :func:`population_block`.
    kink : float, default 0
        As for :func:`traindyn.relu.half_space`: one half gives the limit of high precision.

    Raises
    ------
    ValueError
        As :func:`population_block`.
    """
    frame, block = _frame(problem, point), _block(problem, block)
    if block == (problem.width, problem.width):
        second = _second_layer_frozen(problem, matrix, frame)
        return PopulationBlock(0.0, np.eye(problem.width), (second + second.T) / 2)
    moment, mean = _first_layer_frozen(problem, matrix, frame, *block, kink=kink)
    return _assemble(problem, frame, *block, moment, mean)


def leading_block(
    problem: TwoLayerMixture, matrix: Matrix, point: Point, block: Block, *, kink: float = 0.0
) -> PopulationBlock:
    r"""Approximation at large precision (BGHJ Lemmas 4.4 and 4.5, corrected).

    With :math:`a_{ic} = \sqrt{\lambda / R_{ii}}\, m_i \cdot s_c`, the outputs at the centroids
    and the weights :math:`w_c` there,

    .. math:: \sum_c p_c w_c\, g(W s_c) g(W s_c)^T, \qquad
              v_i^2 \sum_c p_c w_c\, \Phi(a_{ic})\, s_c s_c^T,

    and for i and j distinct the probability that both neurons are active instead of
    :math:`\Phi`. The source's (4.11) takes the weight of one neuron's output alone and its (7.11),
    (7.13), (7.16) leave the weight out, see
    :mod:`companion.alignment.xor_population_matrices.printed`. The errors are bounded in
    :mod:`companion.alignment.xor_population_matrices.expansions`.

    Parameters
    ----------
    problem, matrix, point, block, kink
        As for :func:`frozen_block`.

    Returns
    -------
    PopulationBlock
        With zero shift; `basis` has the columns :math:`s_c`, or :math:`g(W s_c)`, and `core`
        is diagonal.

    Raises
    ------
    ValueError
        As :func:`population_block`.
    """
    frame, block = _frame(problem, point), _block(problem, block)
    weights = problem.weights * _at_centroids(problem, matrix, frame)
    if block == (problem.width, problem.width):
        felt = np.maximum(frame.W @ frame.centroids.T, 0.0)
        return PopulationBlock(0.0, felt, np.diag(weights))
    i, j = block
    both = _both_active(problem, frame, i, j, kink)
    scale = float(frame.v[i] * frame.v[j])
    basis = frame.basis @ frame.centroids.T
    return PopulationBlock(0.0, basis, np.diag(scale * weights * both))


def mixed_block(
    problem: TwoLayerMixture,
    matrix: Matrix,
    point: Point,
    j: int,
    *,
    rule: Rule | None = None,
) -> Array:
    r"""Block (K, j) between the second layer and neuron j of the first, exact.

    .. math:: E\big[\{ e\, 1_j \mathbf e_j + v_j \sigma'(o) 1_j\, g(WX) \} X^T\big], \qquad
              v_j E[e^2\, 1_j\, g(WX) X^T].

    The source's (6.16) and (6.21) print the opposite sign of the first term. The ReLU's kink
    adds nothing here.

    Parameters
    ----------
    problem, matrix, point, rule
        As for :func:`population_block`.
    j : int
        Neuron.

    Returns
    -------
    ndarray, shape (K, n)

    Raises
    ------
    ValueError
        If `point`, `j` or the dimension of `rule` does not fit the problem.
    """
    frame, j = _frame(problem, point), _validate.integer("j", j, least=0, most=problem.width - 1)
    error, curve = _mixed_terms(problem, matrix, frame, j, rule)
    mixed = frame.v[j] * curve
    if matrix == "hessian":
        mixed[j] += error
    return np.asarray(mixed @ frame.basis.T)


def active_error(
    problem: TwoLayerMixture, point: Point, j: int, *, rule: Rule | None = None
) -> Array:
    r"""Response :math:`A_j = E[e\, 1_j X]` of a neuron in all directions, shape (n,).

    The first term of :func:`mixed_block`; the gradient of the population loss in
    :math:`W_j` is :math:`v_j A_j`.

    Parameters
    ----------
    problem, point, j, rule
        As for :func:`mixed_block`.

    Returns
    -------
    ndarray, shape (n,)
    """
    frame, j = _frame(problem, point), _validate.integer("j", j, least=0, most=problem.width - 1)
    return np.asarray(frame.basis @ _mixed_terms(problem, "hessian", frame, j, rule)[0])


def kink_block(
    problem: TwoLayerMixture, point: Point, i: int, *, rule: Rule | None = None
) -> PopulationBlock:
    r"""Return what the ReLU's kink adds to block (i, i) of the population loss's Hessian.

    .. math:: D_i = v_i E[e\, \delta(W_i \cdot X)\, X X^T]
              = v_i \sum_c p_c \sqrt{\frac{\lambda}{2 \pi R_{ii}}}\,
                e^{-\lambda m_{ic}^2 / (2 R_{ii})}\, E_c[e\, X X^T \mid W_i \cdot X = 0].

    It vanishes along :math:`W_i` and is of order :math:`\sqrt\lambda` as soon as one centroid is
    orthogonal to :math:`W_i`.

    Parameters
    ----------
    problem, point, rule
        As for :func:`population_block`; the precision must be finite.
    i : int
        Neuron, with :math:`W_i \ne 0`.

    Returns
    -------
    PopulationBlock
        Of size n; may be indefinite.

    Raises
    ------
    ValueError
        If the precision is infinite, the weights of the neuron vanish, or as
        :func:`population_block`.
    """
    frame, i = _frame(problem, point), _validate.integer("i", i, least=0, most=problem.width - 1)
    precision = _validate.positive("problem.precision", problem.precision)
    length = float(np.linalg.norm(frame.W[i]))
    if length == 0:
        raise ValueError(f"point.W must not vanish in row {i}, whose neuron has a kink there")
    unit = frame.W[i] / length
    plane = np.eye(len(unit)) - np.outer(unit, unit)
    heights = np.sqrt(precision) * frame.centroids @ unit
    densities = np.sqrt(precision / (2 * np.pi)) / length * np.exp(-0.5 * heights**2)
    moment = np.zeros_like(plane)
    mean = 0.0
    for c, (X, masses) in enumerate(_nodes(problem, frame, rule)):
        center = plane @ frame.centroids[c]
        X = X @ plane
        mass = problem.weights[c] * densities[c]
        error, middle = (
            expit(np.maximum(inputs @ frame.W.T, 0.0) @ frame.v) - problem.labels[c]
            for inputs in (X, center)
        )
        excess = mass * masses * (error - middle)
        moment += mass * middle * (np.outer(center, center) + plane / precision)
        moment += (X.T * excess) @ X
        mean += mass * middle + float(excess.sum())
    scale = float(frame.v[i])
    shift = scale * mean / precision
    core = scale * moment - shift * np.eye(len(unit))
    return PopulationBlock(shift, frame.basis, (core + core.T) / 2)


def loss_hessian_block(
    problem: TwoLayerMixture, point: Point, block: Block, *, rule: Rule | None = None
) -> PopulationBlock:
    """Block of the Hessian of the population loss, the ReLU's kink included.

    Parameters
    ----------
    problem, point, block, rule
        As for :func:`population_block`; the precision must be finite.

    Raises
    ------
    ValueError
        As :func:`population_block` and :func:`kink_block`.
    """
    smooth = population_block(problem, "hessian", point, block, rule=rule)
    i, j = block
    if i != j or i == problem.width:
        return smooth
    kink = kink_block(problem, point, i, rule=rule)
    return PopulationBlock(smooth.shift + kink.shift, smooth.basis, smooth.core + kink.core)


class _Frame(NamedTuple):
    """A point in orthonormal coordinates of the span of signal and neurons.

    ``basis`` has shape (n, r); ``W`` (K, r) and ``centroids`` (C, r) are coordinates in it.
    """

    v: Array
    W: Array
    centroids: Array
    basis: Array


def _frame(problem: TwoLayerMixture, point: Point) -> _Frame:
    d, K = problem.centroids.shape[1], problem.width
    _validate.providing("point", point, "v", "W")
    v = _validate.finite("point.v", point.v, shape=(K,))
    W = _validate.finite("point.W", point.W, shape=(K, None))
    n = W.shape[1]
    if n < d:
        raise ValueError(f"point.W must have at least d = {d} columns, got {n}")
    off, *_ = np.linalg.svd(W[:, d:].T, full_matrices=False)
    basis = np.zeros((n, d + off.shape[1]))
    basis[:d, :d] = np.eye(d)
    basis[d:, d:] = off
    # Coordinates by their weight in the output: a quasi-random rule is best in its first ones.
    frame = _Frame(v, W @ basis, problem.centroids @ basis[:d], basis)
    turn = _turned(np.zeros((0, basis.shape[1])), frame)
    return _Frame(v, frame.W @ turn, frame.centroids @ turn, basis @ turn)


def _block(problem: TwoLayerMixture, block: Block) -> Block:
    K = problem.width
    i, j = _validate.pair("block", block, most=K)
    if i == j == K:
        return i, j
    return _validate.pair("block", block, most=K - 1)


@cache
def _default(dim: int) -> Rule:
    # Not Gauss-Hermite in few dimensions: the integrand has a kink where a neuron switches.
    return gaussian.sobol(dim, _NODES, rng=0)


def _noise(problem: TwoLayerMixture, frame: _Frame, rule: Rule | None) -> Rule:
    """Return the rule for the noise in units of its deviation, one node without noise."""
    r = frame.basis.shape[1]
    if problem.precision == np.inf:
        return Rule(np.zeros((1, r)), np.ones(1))
    chosen = _default(r) if rule is None else rule
    if chosen.dim != r:
        raise ValueError(
            f"rule must have the dimension d + min(K, n - d) = {r} of signal and neurons, "
            f"got {chosen.dim}"
        )
    return chosen


def _nodes(
    problem: TwoLayerMixture, frame: _Frame, rule: Rule | None
) -> Iterator[tuple[Array, Array]]:
    """Nodes of the inputs around each centroid, and their masses."""
    chosen = _noise(problem, frame, rule)
    for center in frame.centroids:
        yield center + chosen.nodes / np.sqrt(problem.precision), chosen.weights


def _active_nodes(
    problem: TwoLayerMixture, frame: _Frame, rule: Rule | None, i: int, j: int
) -> Iterator[tuple[Array, Array]]:
    """Nodes of the inputs that neurons i and j answer, and their masses.

    The nodes are mapped into the wedge, one coordinate along neuron i, one along what neuron j
    adds to it, rather than cut off at its faces, where the integrand would jump.
    """
    chosen, W = _noise(problem, frame, rule), frame.W[[i, j]]
    lengths = np.linalg.norm(W, axis=1)
    if problem.precision == np.inf or lengths.min() == 0:
        for center in frame.centroids:
            yield center + 0 * chosen.nodes, chosen.weights * np.all(W @ center > 0)
        return
    units = W / lengths[:, None]
    cosine = float(np.clip(units[0] @ units[1], -1.0, 1.0))
    off = units[1] - cosine * units[0]
    sine = float(np.linalg.norm(off))
    if sine < _PARALLEL:
        sine, off = 0.0, np.zeros_like(off)
    turn = _turned(np.stack([units[0], off / sine]) if sine else units[:1], frame)
    shares = ndtr(chosen.nodes)
    for center in frame.centroids:
        height, other = np.sqrt(problem.precision) * units @ center
        noise, masses = chosen.nodes.copy(), chosen.weights * ndtr(height)
        noise[:, 0] = _beyond(shares[:, 0], height)
        if sine:
            margin = (other + cosine * noise[:, 0]) / sine
            masses = masses * ndtr(margin)
            noise[:, 1] = _beyond(shares[:, 1], margin)
        elif cosine < 0:
            masses = 0 * masses
        yield center + noise @ turn.T / np.sqrt(problem.precision), masses


def _turned(first: Array, frame: _Frame) -> Array:
    """Orthonormal columns that begin with these rows, the others by weight in the output."""
    rest = np.linalg.qr(first.T, mode="complete")[0][:, len(first) :]
    rest = rest @ np.linalg.svd(frame.v[:, None] * (frame.W @ rest))[2].T
    return np.column_stack([first.T, rest])


def _beyond(share: Array, height: Array | float) -> Array:
    """Return standard normal values above ``-height``, at these shares of their mass."""
    return np.asarray(-ndtri(np.clip(share * ndtr(height), _TINY, None)))


def _at_centroids(problem: TwoLayerMixture, matrix: Matrix, frame: _Frame) -> Array:
    """Weights at the centroids, shape (C,)."""
    outputs = frame.v @ np.maximum(frame.W @ frame.centroids.T, 0.0)
    return weight(matrix, outputs, problem.labels)


def _excess(problem: TwoLayerMixture, matrix: Matrix, frame: _Frame, c: int, felt: Array) -> Array:
    """Weights of inputs around centroid c minus the one at it."""
    label = problem.labels[c]
    middle = frame.v @ np.maximum(frame.W @ frame.centroids[c], 0.0)
    return weight(matrix, felt @ frame.v, label) - weight(matrix, middle, label)


def _both_active(problem: TwoLayerMixture, frame: _Frame, i: int, j: int, kink: float) -> Array:
    """Probability that neurons i and j answer an input around each centroid, shape (C,)."""
    return relu.wedge(
        frame.W[i], frame.W[j], frame.centroids, problem.precision, kink=kink
    ).probability


def _first_layer_frozen(
    problem: TwoLayerMixture, matrix: Matrix, frame: _Frame, i: int, j: int, *, kink: float
) -> tuple[Array, float]:
    """``E[w 1_i 1_j X X^T]`` and ``E[w 1_i 1_j]`` for the weights at the centroids."""
    weights = problem.weights * _at_centroids(problem, matrix, frame)
    found = relu.wedge(frame.W[i], frame.W[j], frame.centroids, problem.precision, kink=kink)
    moment = np.einsum("c,cab->ab", weights, found.second)
    return moment, float(weights @ found.probability)


def _second_layer_frozen(problem: TwoLayerMixture, matrix: Matrix, frame: _Frame) -> Array:
    """``E[w g g^T]`` for the weights at the centroids."""
    weights = problem.weights * _at_centroids(problem, matrix, frame)
    gram = frame.W @ frame.W.T / problem.precision
    second = relu.second_moment(
        frame.centroids @ frame.W.T, np.broadcast_to(gram, (len(weights), *gram.shape))
    )
    return np.asarray(np.einsum("c,cij->ij", weights, second))


def _mixed_terms(
    problem: TwoLayerMixture, matrix: Matrix, frame: _Frame, j: int, rule: Rule | None
) -> tuple[Array, Array]:
    """``E[e 1_j X]``, shape (r,), and ``E[w 1_j g X^T]``, shape (K, r)."""
    K, r = frame.W.shape
    weights = _at_centroids(problem, matrix, frame)
    error, curve = np.zeros(r), np.zeros((K, r))
    for c, (X, masses) in enumerate(_active_nodes(problem, frame, rule, j, j)):
        center, share = frame.centroids[c], problem.weights[c]
        felt = np.maximum(X @ frame.W.T, 0.0)
        middle = expit(frame.v @ np.maximum(frame.W @ center, 0.0)) - problem.labels[c]
        change = expit(felt @ frame.v) - problem.labels[c] - middle
        found = relu.wedge(frame.W, frame.W[j], center, problem.precision)
        own = share * middle * (found.probability[j] * center + found.noise[j])
        error += own + share * (masses * change) @ X
        excess = share * masses * _excess(problem, matrix, frame, c, felt)
        frozen = np.einsum("iab,ib->ia", found.second, frame.W)
        curve += share * weights[c] * frozen + (felt.T * excess) @ X
    return error, curve


def _assemble(
    problem: TwoLayerMixture, frame: _Frame, i: int, j: int, moment: Array, mean: float
) -> PopulationBlock:
    scale = float(frame.v[i] * frame.v[j])
    shift = scale * mean / problem.precision
    moment = (moment + moment.T) / 2
    return PopulationBlock(shift, frame.basis, scale * moment - shift * np.eye(len(moment)))
