r"""Softmax regression on classes of images, and on Gaussians with their means and covariances.

Images of a finite set are drawn with replacement, so that the set *is* the law of the inputs: the
diagonal blocks of Hessian and G-matrix are means over the set,

.. math:: H_{cc} = \mathbb E[\pi_c(1-\pi_c)\,YY^\top], \qquad
          G_{cc} = \mathbb E[(\pi_c-y_c)^2\,YY^\top],

with :math:`\pi` the softmax of the logits :math:`x^a\cdot Y` and y the indicator of the class, and
class means and covariances are known exactly. For Gaussian classes the blocks need an integral in
as many dimensions as there are classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import RNG, Array, IntArray
from traindyn.gaussian import Rule, default_rule
from traindyn.problems.base import MATRICES, Kernel, Matrix
from traindyn.problems.k_gmm import Point
from traindyn.problems.k_gmm.mixture import softmax

__all__ = ["Classes", "GaussianClasses", "ImageClasses"]

#: Variances of logits below this part of the largest one are taken for zero.
_ROUNDING = 1e-12


class Classes(ABC):
    """Softmax regression on inputs of k classes, from zero and without a ridge."""

    @property
    @abstractmethod
    def _shape(self) -> tuple[int, ...]:
        """Number k of classes and dimension d of an input."""

    @abstractmethod
    def direct_kernel(self) -> Kernel:
        """One step on a fresh draw; the state is ``tuple(point)``."""

    @property
    def k(self) -> int:
        """Number of classes."""
        return self._shape[0]

    @property
    def dimension(self) -> int:
        """Dimension d of an input."""
        return self._shape[1]

    @property
    def ridge(self) -> float:
        """Return zero: the loss has no ridge."""
        return 0.0

    def initial(self, *, rng: RNG) -> Point:
        """Return the origin, whatever is drawn."""
        _validate.generator("rng", rng)
        return Point(np.zeros((self.k, self.dimension)))

    def statistics(self, point: Point) -> Point:
        """Return the point itself: all of it is recorded."""
        return Point(self._checked("point.x", point.x))

    def _checked(self, name: str, x: ArrayLike) -> Array:
        return _validate.finite(name, x, shape=(self.k, self.dimension))


@dataclass(frozen=True, eq=False)
class GaussianClasses(Classes):
    r"""Gaussian classes, each with a covariance of its own.

    Attributes
    ----------
    shares : ndarray, shape (k,)
        Probability of each class.
    means : ndarray, shape (k, d)
    covariances : ndarray, shape (k, d, d)

    Raises
    ------
    ValueError
        If shapes disagree, the shares are no probabilities or a covariance is not symmetric and
        positive semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.alignment.images import GaussianClasses
    >>> two = GaussianClasses([0.5, 0.5], np.eye(3)[:2], [np.eye(3)] * 2)
    >>> np.diag(two.blocks(np.zeros((2, 3)), matrix="hessian")[0]).tolist()
    [0.375, 0.375, 0.25]
    """

    shares: Array
    means: Array
    covariances: Array

    def __post_init__(self) -> None:
        """Check the arrays, and keep copies."""
        shares = _validate.probability_vector("shares", self.shares)
        means = _validate.finite("means", self.means, shape=(len(shares), None))
        shape = (len(shares), means.shape[1], means.shape[1])
        covariances = _validate.finite("covariances", self.covariances, shape=shape)
        for each in covariances:
            _validate.positive_semidefinite("covariances", each)
        for name, value in (("shares", shares), ("means", means), ("covariances", covariances)):
            object.__setattr__(self, name, _validate.frozen(value))

    @property
    def _shape(self) -> tuple[int, ...]:
        return self.means.shape

    @cached_property
    def within(self) -> Array:
        """Mean of the covariances of the classes, shape (d, d)."""
        return _validate.frozen(np.tensordot(self.shares, self.covariances, axes=1))

    def direct_kernel(self) -> Kernel:
        """One step on a fresh draw; the state is ``tuple(point)``."""
        values, vectors = np.linalg.eigh(self.covariances)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        return Kernel(
            _normal_step, (np.cumsum(self.shares), self.means, np.ascontiguousarray(roots))
        )

    def blocks(self, x: ArrayLike, *, matrix: Matrix, rule: Rule | None = None) -> Array:
        r"""Return the expected diagonal blocks of a matrix.

        With the logits :math:`x\mu+R\zeta` of a class, :math:`RR^\top=xCx^\top`, and
        :math:`B=Cx^\top R^{+\top}`, an input is :math:`\mu+B\zeta` and an independent rest with
        the covariance :math:`C-BB^\top`, so that only :math:`\zeta` is integrated over.

        Parameters
        ----------
        x : array_like, shape (k, d)
            Parameters, one row for each class.
        matrix : str
            ``"hessian"`` or ``"g_matrix"``.
        rule : Rule, optional
            Quadrature in k dimensions.

        Returns
        -------
        ndarray, shape (k, d, d)

        Raises
        ------
        ValueError
            If an argument has another shape, name or dimension.
        """
        x = self._checked("x", x)
        rule = default_rule(self.k) if rule is None else rule
        if rule.dim != self.k:
            raise ValueError(f"rule must have dimension {self.k}, got {rule.dim}")
        found = np.zeros((self.k, self.dimension, self.dimension))
        for label, mean in enumerate(self.means):
            spread = self.covariances[label]
            values, vectors = np.linalg.eigh(x @ spread @ x.T)
            seen = values > _ROUNDING * max(values[-1], np.finfo(float).tiny)
            roots = np.sqrt(np.where(seen, values, 0.0))
            inverse = np.divide(1.0, roots, where=seen, out=np.zeros(self.k))
            logits = x @ mean + (rule.nodes * roots) @ vectors.T
            weights = _weights(softmax(logits), np.full(rule.size, label), matrix)
            along = spread @ x.T @ (vectors * inverse)
            rest = spread - along @ along.T + np.outer(mean, mean)
            for block, w in zip(found, rule.weights * weights.T, strict=True):
                tilt = np.outer(along @ (w @ rule.nodes), mean)
                inner = along @ ((rule.nodes.T * w) @ rule.nodes) @ along.T
                block += self.shares[label] * (w.sum() * rest + tilt + tilt.T + inner)
        return found


@dataclass(frozen=True, eq=False)
class ImageClasses(Classes):
    """Inputs drawn from a finite set.

    Attributes
    ----------
    inputs : ndarray, shape (n, d)
        Less their mean.
    labels : ndarray of int, shape (n,)
        Class of each, from 0 to k - 1.

    Raises
    ------
    ValueError
        If a class has no input, or an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.alignment.images import ImageClasses
    >>> three = ImageClasses(np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 0])
    >>> three.k, three.gaussians.shares.tolist()
    (3, [0.5, 0.25, 0.25])
    """

    inputs: Array
    labels: IntArray

    def __post_init__(self) -> None:
        """Check and centre the inputs."""
        rows = _validate.finite("inputs", self.inputs, shape=(None, None))
        labels = _validate.integers("labels", self.labels, least=0, shape=(len(rows),))
        if not len(rows) or not np.bincount(labels).all():
            raise ValueError("labels must name every class from 0 on, got a class without inputs")
        object.__setattr__(self, "inputs", _validate.frozen(rows - rows.mean(axis=0)))
        object.__setattr__(self, "labels", _validate.frozen(labels))

    @property
    def _shape(self) -> tuple[int, ...]:
        return self.gaussians.means.shape

    @cached_property
    def gaussians(self) -> GaussianClasses:
        """Gaussian classes with these shares, means and covariances."""
        classes = [self.inputs[self.labels == label] for label in range(self.labels.max() + 1)]
        return GaussianClasses(
            np.array([len(rows) for rows in classes]) / len(self.labels),
            np.stack([rows.mean(axis=0) for rows in classes]),
            np.stack([np.atleast_2d(np.cov(rows.T, bias=True)) for rows in classes]),
        )

    @property
    def within(self) -> Array:
        """Mean of the covariances of the classes, shape (d, d)."""
        return self.gaussians.within

    def weakened(self, directions: int) -> ImageClasses:
        """Shorten inputs along the strongest directions of the noise within classes.

        Parameters
        ----------
        directions : int
            So many leading principal components within classes get the variance of the next one,
            less than d.

        Returns
        -------
        ImageClasses

        Raises
        ------
        ValueError
            If there are no more directions than that.

        Examples
        --------
        >>> import numpy as np
        >>> from companion.alignment.images import ImageClasses
        >>> rows = np.diag([3.0, 2.0, 1.0])
        >>> one = ImageClasses(np.vstack([rows, -rows]), [0] * 6)
        >>> [np.diag(each.within).round(9).tolist() for each in (one, one.weakened(1))]
        [[3.0, 1.333333333, 0.333333333], [1.333333333, 1.333333333, 0.333333333]]
        """
        directions = _validate.integer("directions", directions, least=1, most=self.dimension - 1)
        values, vectors = np.linalg.eigh(self.within)
        level = values[-1 - directions]
        if level <= 0.0:
            raise ValueError(f"directions must be fewer than the noise has, got {directions}")
        strong = vectors[:, -directions:]
        shrink = 1.0 - np.sqrt(level / values[-directions:])
        return ImageClasses(self.inputs - (self.inputs @ strong * shrink) @ strong.T, self.labels)

    def direct_kernel(self) -> Kernel:
        """One step on a row that is drawn; the state is ``tuple(point)``."""
        return Kernel(_drawn_step, (self.inputs, self.labels))

    def blocks(self, x: ArrayLike, *, matrix: Matrix) -> Array:
        """Return the diagonal blocks of a matrix, expected over the set.

        Parameters
        ----------
        x : array_like, shape (k, d)
            Parameters, one row for each class.
        matrix : str
            ``"hessian"`` or ``"g_matrix"``.

        Returns
        -------
        ndarray, shape (k, d, d)

        Raises
        ------
        ValueError
            If the parameters have another shape or the matrix another name.
        """
        x = self._checked("x", x)
        weights = _weights(softmax(self.inputs @ x.T), self.labels, matrix)
        return np.stack([(self.inputs.T * w) @ self.inputs / len(w) for w in weights.T])


def _weights(probabilities: Array, labels: IntArray, matrix: Matrix) -> Array:
    """Weight of each input in each block, shape (n, k)."""
    if _validate.choice("matrix", matrix, MATRICES) == "hessian":
        return probabilities * (1.0 - probabilities)
    wrong: Array = probabilities - (labels[:, None] == np.arange(probabilities.shape[1]))
    return wrong**2


@njit(nogil=True, error_model="numpy")
def _descend(x: Array, y: Array, label: int, step_size: float) -> None:
    """Take the step x <- x - step_size (pi - e_label) y^T, in place."""
    logits = x @ y
    pi = np.exp(logits - logits.max())
    pi /= pi.sum()
    pi[label] -= 1.0
    for a in range(pi.size):
        for i in range(y.size):
            x[a, i] -= step_size * pi[a] * y[i]


@njit(nogil=True, error_model="numpy")
def _drawn_step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    """Take a step on a row that is drawn."""
    (x,) = state
    rows, labels = constants
    index = rng.integers(0, rows.shape[0])
    _descend(x, rows[index], labels[index], step_size)


@njit(nogil=True, error_model="numpy")
def _normal_step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    """Take a step on a Gaussian, mean + root @ (a normal vector)."""
    (x,) = state
    cumulative, means, roots = constants
    uniform = rng.random()
    label = 0
    while label < cumulative.size - 1 and uniform >= cumulative[label]:
        label += 1
    z = np.empty(x.shape[1])
    for i in range(z.size):
        z[i] = rng.standard_normal()
    _descend(x, means[label] + roots[label] @ z, label, step_size)
