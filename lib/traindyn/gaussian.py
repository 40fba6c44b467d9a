"""Gaussian expectations: quadrature rules with their errors, and matrix square roots.

A :class:`Rule` is a set of nodes and weights for the standard Gaussian law in a few
dimensions. Two families are offered: the tensor Gauss-Hermite rule, exact for
polynomials and the choice up to dimension four or so, and scrambled Sobol points,
whose cost does not grow with the dimension. A rule is drawn once and used for a whole
computation (common random numbers), so that an expectation is a smooth function of the
parameters: differential equations and Newton iterations built on it converge to the
accuracy of the solver, and the error of the rule is measured apart, by repeating the
computation over independent scramblings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import qmc

from traindyn import _validate
from traindyn._types import RNG, Array

__all__ = [
    "Estimate",
    "Rule",
    "default_rule",
    "gauss_hermite",
    "rule",
    "sobol",
    "symmetric_sqrt",
]

_LARGEST_GRID = 2**24
_MOST_AXES = 64
_LEAST_TENSOR_ORDER = 10
_MOST_TENSOR_ORDER = 64
_SOBOL_BITS = 30


@dataclass(frozen=True)
class Rule:
    """Quadrature rule for the standard Gaussian law N(0, I_dim).

    Attributes
    ----------
    nodes : ndarray, shape (n, dim)
        A read-only copy, as the weights: rules are shared.
    weights : ndarray, shape (n,)
        Sum to one.

    Raises
    ------
    ValueError
        If the shapes disagree, an entry is not finite or the weights do not sum to one.

    Examples
    --------
    >>> from traindyn.gaussian import Rule
    >>> import numpy as np
    >>> three = Rule(np.sqrt(3) * np.array([[-1.0], [0.0], [1.0]]), np.array([1, 4, 1]) / 6)
    >>> np.allclose(three.expect(three.nodes[:, 0] ** 4), 3)
    True
    """

    nodes: Array
    weights: Array

    def __post_init__(self) -> None:
        """Check shapes and normalisation."""
        nodes = _validate.finite("nodes", self.nodes, shape=(None, None))
        weights = _validate.finite("weights", self.weights, shape=(nodes.shape[0],))
        if abs(weights.sum() - 1) > 1e-10:
            raise ValueError(f"weights must sum to one, got sum {weights.sum():.15g}")
        object.__setattr__(self, "nodes", _validate.frozen(nodes))
        object.__setattr__(self, "weights", _validate.frozen(weights))

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(self.nodes.shape[0])

    @property
    def dim(self) -> int:
        """Dimension of one node."""
        return int(self.nodes.shape[1])

    def expect(self, values: Array) -> Array:
        """Average `values`, shape (n, ...), over the nodes along axis 0.

        Parameters
        ----------
        values : ndarray, shape (n, ...)
            A function evaluated at the nodes.

        Returns
        -------
        ndarray, shape (...)

        Raises
        ------
        ValueError
            If axis 0 does not run over the nodes.
        """
        _validate.unmasked("values", values)
        values = np.asarray(values)
        if values.dtype.kind not in "biufc":
            raise ValueError(f"values must be numeric, got an array of {values.dtype}")
        if values.ndim == 0 or values.shape[0] != self.size:
            raise ValueError(
                f"values must have length {self.size} along axis 0, got shape {values.shape}"
            )
        found = np.asarray(np.tensordot(self.weights, values, axes=1))
        # Cheaper than looking at the values; a NaN there is a NaN here.
        if not np.isfinite(found).all():
            _validate.finite("values", values)
        return found


class Estimate(NamedTuple):
    """An expectation with its error.

    Attributes
    ----------
    value : ndarray
    error : ndarray
        Standard error of `value`; same shape.
    """

    value: Array
    error: Array


def gauss_hermite(dim: int, order: int) -> Rule:
    """Tensor Gauss-Hermite rule, exact up to degree ``2 * order - 1`` in each coordinate.

    Parameters
    ----------
    dim : int
        Dimension, at least 1.
    order : int
        Nodes per coordinate, at least 1; the rule has ``order ** dim`` nodes.

    Raises
    ------
    ValueError
        If `dim` or `order` is below 1 or the grid would exceed 2**24 nodes.

    Examples
    --------
    >>> from traindyn.gaussian import gauss_hermite
    >>> import numpy as np
    >>> cubic = gauss_hermite(2, 3)
    >>> z = cubic.nodes
    >>> np.allclose(cubic.expect(z[:, 0] ** 2 * z[:, 1] ** 4), 3)
    True
    """
    dim = _validate.integer("dim", dim, least=1)
    order = _validate.integer("order", order, least=1)
    # Not the power first: of large numbers it is one of as many digits as fit into the memory.
    if dim * math.log2(order) > math.log2(_LARGEST_GRID) + 1e-9:
        raise ValueError(
            f"order ** dim must be at most {_LARGEST_GRID}, got {order} ** {dim}; use sobol"
        )
    dim = _validate.integer("dim", dim, least=1, most=_MOST_AXES)
    points, masses = np.polynomial.hermite_e.hermegauss(order)
    masses = masses / masses.sum()
    nodes = np.stack(np.meshgrid(*[points] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = masses
    for _ in range(dim - 1):
        weights = np.multiply.outer(weights, masses)
    return Rule(nodes, np.ravel(weights))


def sobol(dim: int, n: int, *, rng: RNG) -> Rule:
    """Scrambled Sobol points mapped to the Gaussian law, in antithetic pairs.

    Half of the nodes are Owen-scrambled Sobol points through the inverse normal
    distribution function, the other half their negatives: odd moments vanish exactly.

    Parameters
    ----------
    dim : int
        Dimension, at least 1.
    n : int
        Number of nodes, a power of two, at least 2.
    rng : int, SeedSequence or Generator
        Source of the scrambling.

    Raises
    ------
    ValueError
        If `dim` or `n` is out of range.

    Examples
    --------
    >>> from traindyn.gaussian import sobol
    >>> pairs = sobol(3, 64, rng=0)
    >>> float(abs(pairs.expect(pairs.nodes**3)).max()) < 1e-14
    True
    """
    dim = _validate.integer("dim", dim, least=1, most=qmc.Sobol.MAXDIM)
    n = _validate.integer("n", n, least=2, most=2 ** (_SOBOL_BITS + 1))
    if n & (n - 1):
        raise ValueError(f"n must be a power of two, got {n}")
    engine = qmc.Sobol(dim, scramble=True, bits=_SOBOL_BITS, rng=_validate.generator("rng", rng))
    # Half a grid cell keeps the points inside the open cube, symmetrically.
    half = ndtri(engine.random(n // 2) + 2.0 ** -(_SOBOL_BITS + 1))
    return Rule(np.concatenate([half, -half]), np.full(n, 1 / n))


def rule(dim: int, *, size: int = 2**13, rng: RNG = 0) -> Rule:
    """Return the better suited rule of at most `size` nodes.

    The tensor Gauss-Hermite rule if at least ten (at most 64 are used) nodes per
    coordinate fit into `size`, scrambled Sobol points otherwise.

    Parameters
    ----------
    dim : int
        Dimension, at least 1.
    size : int, default 8192
        Largest number of nodes, at least 16.
    rng : int, SeedSequence or Generator, default 0
        Source of the scrambling, unused by Gauss-Hermite. The default is one fixed
        rule: the same call gives the same numbers.

    Raises
    ------
    ValueError
        If `dim` or `size` is out of range.

    Examples
    --------
    >>> from traindyn.gaussian import rule
    >>> rule(2, size=1000).size, rule(9, size=1000).size
    (961, 512)
    """
    dim = _validate.integer("dim", dim, least=1)
    size = _validate.integer("size", size, least=16)
    order = int(np.floor(size ** (1 / dim) + 1e-9))
    if order >= _LEAST_TENSOR_ORDER:
        return gauss_hermite(dim, min(order, _MOST_TENSOR_ORDER))
    return sobol(dim, 2 ** (size.bit_length() - 1), rng=rng)


def default_rule(dim: int) -> Rule:
    """Return :func:`rule` of this dimension at its default size, built once per process.

    Parameters
    ----------
    dim : int
        Number of coordinates.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError
        If `dim` is not a positive integer.
    """
    return _default_rule(_validate.integer("dim", dim, least=1))


@cache
def _default_rule(dim: int) -> Rule:
    return rule(dim)


def symmetric_sqrt(cov: ArrayLike, *, tolerance: float = 1e-6, scale: float = 0.0) -> Array:
    """Symmetric square root of a covariance matrix, singular ones included.

    Parameters
    ----------
    cov : array_like, shape (n, n)
        Symmetric positive semi-definite.
    tolerance : float, default 1e-6
        Negative eigenvalues down to ``-tolerance * max(scale, largest)`` are taken for zero.
        The default leaves room for difference quotients at a singular covariance.
    scale : float, default 0.0
        Size of the numbers whose difference `cov` is, if it is one: what is left of them may be
        rounding alone.

    Returns
    -------
    ndarray, shape (n, n)
        Symmetric, with ``root @ root == cov``.

    Raises
    ------
    ValueError
        If `cov` is not symmetric or has an eigenvalue below the tolerance.

    Examples
    --------
    >>> from traindyn.gaussian import symmetric_sqrt
    >>> import numpy as np
    >>> np.round(symmetric_sqrt([[2.0, 2.0], [2.0, 2.0]]), 12)
    array([[1., 1.],
           [1., 1.]])
    """
    tolerance = _validate.non_negative("tolerance", tolerance)
    scale = _validate.non_negative("scale", scale)
    matrix = _validate.symmetric("cov", cov, scale=scale)
    values, vectors = np.linalg.eigh(matrix)
    if values.size and values[0] < -tolerance * max(scale, values[-1]):
        raise ValueError(
            f"cov must be positive semi-definite, got smallest eigenvalue {values[0]:.6g}"
        )
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
