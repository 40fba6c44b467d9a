r"""Hessian of a multi-index network on given data: matrix, blocks, extreme eigenpairs.

With :math:`u_{ij} = \theta_j \cdot x_i` the rescaled Hessian, m times that of the risk, has
blocks

.. math:: H_{jl} = \frac1n \sum_i g_{jl}(u_i, y_i)\, x_i x_i^T ,

with the weights of :class:`~traindyn.problems.multi_index.MultiIndex` (MW, Hessian; the factor
1/n is missing in the proof there). For a single neuron H is the matrix of
:mod:`traindyn.laws.hard_subspace`. For several, the part of order 1/m in a diagonal block is
dropped and

.. math:: H_j = \frac1n \sum_i a_j\, \ell'(y_i, f_i)\, \sigma''(u_{ij} + b_j)\, x_i x_i^T , \qquad
          \min_j \lambda_{\min}(H_j) \le \lambda_{\min}(H) \le \min_j \lambda_{\min}(H_j) + O(1/m)

for a convex loss. The sign of :math:`a_j` is part of the block: without it, the lower edge of a
block with :math:`a_j < 0` would be the upper one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate, linalg
from traindyn.dmft.kernels import hard_basis
from traindyn.laws import WeightedMarchenkoPastur
from traindyn.problems.base import Array, Factors
from traindyn.problems.multi_index import Data, MultiIndex
from traindyn.spectra.blocks import FullMatrix, WeightedGram

__all__ = [
    "Extreme",
    "block",
    "extreme",
    "hessian",
    "limit_resolvent",
    "limit_share",
    "residue",
    "weights",
]

_FORMED = 2000
"""Blocks up to this size are formed and diagonalised directly; larger ones are multiplied."""
_BATCH_ENTRIES = 2**20
"""Entries of one temporary (points times draws)."""


class Extreme(NamedTuple):
    """Eigenpairs of one block at one end of its spectrum.

    Attributes
    ----------
    values : ndarray, shape (r,)
        The outermost first: increasing on the left, decreasing on the right.
    vectors : ndarray, shape (d, r)
        Unit columns.
    overlaps : ndarray, shape (r,)
        Squared norm of each one's projection on the hard directions.
    """

    values: Array
    vectors: Array
    overlaps: Array


def hessian(problem: MultiIndex, data: Data, neurons: ArrayLike) -> Array:
    """Form the Hessian of m times the risk.

    Parameters
    ----------
    problem : MultiIndex
    data : Data
    neurons : array_like, shape (d, m)

    Returns
    -------
    ndarray, shape (m d, m d)
        One neuron after the other; symmetric.

    Raises
    ------
    ValueError
        If shapes disagree, the activation has no second derivative, or the matrix is too large
        to be formed.

    Examples
    --------
    >>> problem = MultiIndex(second_layer=(1.0, -1.0))
    >>> data = problem.sample(50, 3, rng=0)
    >>> hessian(problem, data, problem.initial(3, rng=1)).shape
    (6, 6)
    """
    inputs, labels, theta = _checked(problem, data, neurons)
    g = problem.hessian_weights(inputs @ theta, labels)
    rows = [
        [Factors(np.ascontiguousarray(g[:, j, i]), inputs, inputs) for i in range(j + 1)]
        for j in range(problem.width)
    ]
    return FullMatrix(rows).dense()


def weights(
    problem: MultiIndex, data: Data, neurons: ArrayLike, neuron: int = 0
) -> tuple[Array, Array]:
    """Return what the spectrum of one block depends on, sample by sample.

    Parameters
    ----------
    problem, data, neurons
        As for :func:`hessian`.
    neuron : int, default 0

    Returns
    -------
    g : ndarray, shape (n,)
        Weights of the block.
    z : ndarray, shape (n, k)
        Coordinates of the target.

    Raises
    ------
    ValueError
        As :func:`hessian`, or if there is no such neuron.
    """
    inputs, labels, theta = _checked(problem, data, neurons)
    index = _validate.integer("neuron", neuron, least=0, most=problem.width - 1)
    g = problem.block_weights(inputs @ theta, labels)[:, index]
    return np.ascontiguousarray(g), inputs[:, : problem.k].copy()


def block(problem: MultiIndex, data: Data, neurons: ArrayLike, neuron: int = 0) -> Array:
    """Form one neuron's block, for a single neuron the whole Hessian.

    Parameters
    ----------
    problem, data, neurons
        As for :func:`hessian`.
    neuron : int, default 0

    Returns
    -------
    ndarray, shape (d, d)
        With the weights of :meth:`MultiIndex.block_weights`: the sign of the second layer in
        it, the part of order 1/m not.

    Raises
    ------
    ValueError
        As :func:`weights`.
    """
    return _gram(problem, data, neurons, neuron).dense()


def extreme(
    problem: MultiIndex,
    data: Data,
    neurons: ArrayLike,
    r: int,
    *,
    neuron: int = 0,
    side: str = "left",
    hard: ArrayLike | None = None,
) -> Extreme:
    """Compute the outermost eigenpairs of one block.

    Parameters
    ----------
    problem, data, neurons
        As for :func:`hessian`.
    r : int
        How many.
    neuron : int, default 0
    side : {"left", "right"}
        Which end of the spectrum.
    hard : array_like, shape (k, q), optional
        Orthonormal basis of the hard directions. Default: computed from the target.

    Returns
    -------
    Extreme

    Raises
    ------
    ValueError
        As :func:`weights`, or if an argument is out of range or nothing is hard.
    FloatingPointError
        If the eigenvectors of a large block do not converge.

    Examples
    --------
    >>> problem = MultiIndex()
    >>> data = problem.sample(4000, 100, rng=0)
    >>> found = extreme(problem, data, problem.initial(100, rng=1), 2)
    >>> bool(found.values[0] < found.values[1] < 0), bool(found.overlaps[0] > 0.5)
    (True, True)
    """
    basis = hard_basis(problem, hard)
    sign = -1.0 if _validate.choice("side", side, ("left", "right")) == "left" else 1.0
    gram = _gram(problem, data, neurons, neuron)
    operator: Any
    if gram.size <= _FORMED:
        operator = sign * gram.dense()
    else:
        operator = linalg.LambdaOperator(gram.size, lambda vectors: sign * gram.matmat(vectors))
    found = linalg.top_eigenpairs(operator, r, which="algebraic")
    if not np.all(found.converged):
        raise FloatingPointError(
            f"the eigenvectors must converge, got residuals up to {found.residuals.max():.3g} "
            f"after {found.products} products; ask for fewer than {r} eigenpairs"
        )
    overlaps = np.sum((basis.T @ found.eigenvectors[: problem.k]) ** 2, axis=0)
    return Extreme(sign * found.eigenvalues, found.eigenvectors, overlaps)


def limit_resolvent(
    weights: ArrayLike,
    features: ArrayLike,
    delta: float,
    z: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
) -> NDArray[np.complex128]:
    r"""Return the limit of the resolvent on the hard directions.

    .. math:: \Big(E\Big[\frac{\delta G}{\delta + \alpha(z) G}\, s s^T\Big] - z I\Big)^{-1}

    with the Stieltjes transform :math:`\alpha` of the bulk. Its poles are the informative
    outliers and its residues their overlaps; in the bulk, its imaginary part over
    :math:`\pi` is the density of the hard directions' weight on the eigenvectors (MW, equation
    of the outliers).

    Parameters
    ----------
    weights : array_like, shape (N,)
        Draws of G.
    features : array_like, shape (N,) or (N, r)
        The hard coordinates of the same draws.
    delta : float
        Samples per dimension.
    z : array_like of complex
        Off the real axis.
    probabilities : array_like, shape (N,), optional
        Of the draws; uniform unless given.

    Returns
    -------
    ndarray, shape (*z.shape, r, r)

    Raises
    ------
    ValueError
        If an argument is out of range or z is real.
    FloatingPointError
        If the equation of the bulk could not be solved.

    Examples
    --------
    Weights that know nothing of the feature: the resolvent of the bulk itself.

    >>> from traindyn.laws import MarchenkoPastur
    >>> entry = limit_resolvent([1.0, 1.0], [-1.0, 1.0], 4.0, 1 + 0.1j)
    >>> bool(np.isclose(entry[0, 0], MarchenkoPastur(0.25).stieltjes(1 + 0.1j)))
    True
    """
    return _Limit(weights, features, delta, probabilities)(np.asarray(z, dtype=np.complex128))


def limit_share(
    weights: ArrayLike,
    features: ArrayLike,
    delta: float,
    x: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    points: int = 64,
) -> Array:
    r"""Return the limit of the squared overlaps of all eigenvectors up to a level, summed.

    The spectral measure of the hard directions on :math:`(-\infty, x]`, outliers included:
    :math:`\frac r2 - \frac1\pi \int_0^\infty \operatorname{Re} \operatorname{tr} R(x + iu)\, du`
    with the resolvent R of :func:`limit_resolvent`, smooth on that line.

    Parameters
    ----------
    weights, features, delta, probabilities
        As for :func:`limit_resolvent`.
    x : array_like
        Not at an outlier.
    points : int, default 64
        Nodes on the line.

    Returns
    -------
    ndarray
        Of the shape of `x`; it grows from 0 to r.

    Raises
    ------
    ValueError, FloatingPointError
        As for :func:`limit_resolvent`.

    Examples
    --------
    >>> weights, signs = np.array([1.0, 1.0]), np.array([-1.0, 1.0])
    >>> limit_share(weights, signs, 4.0, [0.2, 2.3]).round(6)
    array([0., 1.])
    """
    levels = _validate.finite("x", x)
    count = _validate.integer("points", points, least=2)
    limit = _Limit(weights, features, delta, probabilities)
    edges = limit.law.edges
    nodes, masses = np.polynomial.legendre.leggauss(count)
    share = (nodes + 1) / 2
    # The half-line on (0, 1), nodes crowding on the scale of the spectrum.
    height = (edges[-1] - edges[0]) * share / (1 - share)
    stretch = (edges[-1] - edges[0]) / (1 - share) ** 2 * masses / 2
    traces = np.trace(limit(levels[..., None] + 1j * height), axis1=-2, axis2=-1)
    return np.asarray(limit.rank / 2 - traces.real @ stretch / np.pi)


def residue(
    resolvent: Callable[[complex], Any], centre: float, radius: float, *, points: int = 64
) -> Any:
    r"""Return minus the contour integral of a resolvent over :math:`2 \pi i`.

    For the resolvent :math:`(H - z)^{-1}` this is the projector on the eigenvectors of the
    eigenvalues inside the circle (MW, residue formula), for an entry of it that of the projector.
    The trapezoidal rule on a circle converges geometrically.

    Parameters
    ----------
    resolvent : callable
        Of a complex number; real on the real axis, so that half the circle is enough.
    centre, radius : float
        The circle; no eigenvalue may lie on it.
    points : int, default 64
        Even; half as many evaluations.

    Returns
    -------
    ndarray
        Of the shape of `resolvent`'s values.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> matrix = np.diag([-1.0, 1.0, 2.0])
    >>> projector = residue(lambda z: np.linalg.inv(matrix - z * np.eye(3)), -1.0, 0.5)
    >>> bool(np.allclose(projector, np.diag([1.0, 0.0, 0.0])))
    True
    """
    count = _validate.integer("points", points, least=2)
    if count % 2:
        raise ValueError(f"points must be even, got {points}")
    middle, length = _validate.number("centre", centre), _validate.positive("radius", radius)
    angles = 2 * np.pi * (np.arange(count // 2) + 0.5) / count
    arms = length * np.exp(1j * angles)
    terms = [np.real(resolvent(complex(middle + arm)) * arm) for arm in arms]
    return -np.sum(terms, axis=0) * 2 / count


class _Limit:
    """The limit of the resolvent as a function of z."""

    def __init__(
        self,
        weights: ArrayLike,
        features: ArrayLike,
        delta: float,
        probabilities: ArrayLike | None,
    ) -> None:
        ratio = 1 / _validate.positive("delta", delta)
        self.law = WeightedMarchenkoPastur(weights, ratio, probabilities=probabilities)
        g = _validate.finite("weights", weights, shape=(None,))
        s = _validate.finite("features", features)
        if s.ndim not in (1, 2) or len(s) != g.size or s.size == 0:
            raise ValueError(f"features must have {g.size} rows, not empty, got shape {s.shape}")
        s = s.reshape(len(s), -1)
        self.rank = int(s.shape[1])
        share = np.full(g.size, 1 / g.size) if probabilities is None else np.asarray(probabilities)
        products = (s[:, :, None] * s[:, None, :]).reshape(g.size, -1)
        self._terms, self._scaled = products * (share * g)[:, None], g * ratio

    def __call__(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        flat = z.ravel()
        alpha = np.asarray(self.law.stieltjes(flat))
        phi = np.empty((flat.size, self.rank**2), dtype=np.complex128)
        batch = max(1, _BATCH_ENTRIES // self._scaled.size)
        for first in range(0, flat.size, batch):
            part = slice(first, first + batch)
            phi[part] = (1 / (1 + np.multiply.outer(alpha[part], self._scaled))) @ self._terms
        schur = phi.reshape(-1, self.rank, self.rank) - flat[:, None, None] * np.eye(self.rank)
        result = np.asarray(np.linalg.inv(schur), dtype=np.complex128)
        return result.reshape(*z.shape, self.rank, self.rank)


def _gram(problem: MultiIndex, data: Data, neurons: ArrayLike, neuron: int) -> WeightedGram:
    """One block as an operator."""
    inputs, labels, theta = _checked(problem, data, neurons)
    index = _validate.integer("neuron", neuron, least=0, most=problem.width - 1)
    g = problem.block_weights(inputs @ theta, labels)[:, index]
    return WeightedGram(np.ascontiguousarray(g), inputs)


def _checked(
    problem: MultiIndex, data: Data, neurons: ArrayLike
) -> tuple[NDArray[np.float64], Array, Array]:
    """Check shapes; double precision, as a spectrum is a difference of large sums."""
    inputs = _validate.finite("data.inputs", data.inputs)
    if inputs.ndim != 2 or inputs.shape[1] < problem.k:
        raise ValueError(
            f"data.inputs must have shape (n, d >= {problem.k}), got {np.shape(data.inputs)}"
        )
    labels = _validate.finite("data.labels", data.labels, shape=inputs.shape[:1])
    theta = _validate.finite("neurons", neurons, shape=(inputs.shape[1], problem.width))
    return inputs, labels, theta
