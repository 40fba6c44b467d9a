r"""One-pass SGD on two classes of images, and on Gaussians with their means and covariances.

Images of a finite set are drawn with replacement, so that the set *is* the law of the inputs, and
its means and covariances are known exactly. Inputs are centred and multiplied by their label, -1
or 1, so that the margin of a linear classifier is :math:`s = \langle w, x \rangle`, and one step
on the logistic loss is :math:`w \leftarrow w + \delta f x` with :math:`f = 1 / (1 + e^s)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from traindyn import _validate, gaussian
from traindyn._types import RNG, Array
from traindyn.problems.base import Kernel
from traindyn.problems.clouds.direction import Weights

__all__ = ["Fit", "Resampled", "whitened"]


class Fit(NamedTuple):
    """What is recorded of a classifier.

    Attributes
    ----------
    overlap : ndarray
        Mean margin.
    spread : ndarray
        Variance of the margin within a class, mean of both classes.
    """

    overlap: Array
    spread: Array


def whitened(inputs: ArrayLike, labels: ArrayLike, *, components: int) -> Array:
    """Principal components of the noise within classes, scaled to variance one.

    Parameters
    ----------
    inputs : array_like, shape (n, d)
        One per row.
    labels : array_like of int, shape (n,)
        Class of each input.
    components : int
        How many of the leading components are kept.

    Returns
    -------
    ndarray, shape (n, components)
        Inputs less their mean in these components.

    Raises
    ------
    ValueError
        If no input varies within its class, or the noise has fewer components.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.effective_dynamics.other_inputs.images import whitened
    >>> inputs, labels = np.random.default_rng(0).normal(size=(60, 5)) * 3, np.arange(60) % 2
    >>> white = whitened(inputs, labels, components=2)
    >>> within = sum(np.cov(white[labels == each].T, bias=True) for each in (0, 1)) / 2
    >>> np.allclose(within, np.eye(2))
    True
    """
    rows = _validate.finite("inputs", inputs, shape=(None, None))
    marks = _validate.integers("labels", labels, least=0, shape=(len(rows),))
    components = _validate.integer("components", components, least=1, most=rows.shape[1])
    within = rows.copy()
    for each in np.unique(marks):
        within[marks == each] -= within[marks == each].mean(axis=0)
    if not within.any():
        raise ValueError("inputs must vary within a class, got none that does")
    values, vectors = np.linalg.eigh(within.T @ within / len(rows))
    top = slice(rows.shape[1] - components, None)
    if values[top].min() <= 1e-12 * values.max():
        raise ValueError(f"components must be at most the rank of the noise, got {components}")
    return np.asarray((rows - rows.mean(axis=0)) @ (vectors[:, top] / np.sqrt(values[top])))


@dataclass(frozen=True, eq=False)
class Resampled:
    """Logistic regression on inputs drawn from a finite set, or on Gaussians like them.

    Attributes
    ----------
    inputs : ndarray, shape (n, d)
        As many of one class as of the other.
    signs : ndarray, shape (n,)
        Label of each input, -1 or 1.
    gaussian : bool, optional
        Draw Gaussians with the mean and the covariance of each class in place of its inputs.

    Raises
    ------
    ValueError
        If the labels are not -1 and 1, each as often as the other.
    """

    inputs: Array
    signs: Array
    gaussian: bool = False

    def __post_init__(self) -> None:
        """Check and centre the inputs."""
        rows = _validate.finite("inputs", self.inputs, shape=(None, None))
        signs = _validate.finite("signs", self.signs, shape=(len(rows),))
        if np.any(np.abs(signs) != 1.0) or signs.sum() != 0.0:
            raise ValueError("signs must be -1 and 1, each as often as the other")
        object.__setattr__(self, "inputs", _validate.frozen(rows - rows.mean(axis=0)))
        object.__setattr__(self, "signs", _validate.frozen(signs))

    @property
    def dimension(self) -> int:
        """Dimension d of an input."""
        return int(self.inputs.shape[1])

    @property
    def ridge(self) -> float:
        """Return zero: the loss has no ridge."""
        return 0.0

    @cached_property
    def mean(self) -> Array:
        """Mean of an input times its label, the same for both classes."""
        return _validate.frozen((self.inputs * self.signs[:, None]).mean(axis=0))

    @cached_property
    def covariances(self) -> Array:
        """Covariances of the two classes, shape (2, d, d)."""
        found = [
            np.cov(self.inputs[self.signs == sign].T, bias=True).reshape(2 * [self.dimension])
            for sign in (-1.0, 1.0)
        ]
        return _validate.frozen(np.stack(found))

    def initial(self, *, rng: RNG) -> Weights:
        """Return the origin, whatever is drawn."""
        _validate.generator("rng", rng)
        return Weights(np.zeros(self.dimension))

    def statistics(self, point: Weights) -> Fit:
        """Mean and variance of the margin."""
        w = _validate.finite("point.w", point.w, shape=(self.dimension,))
        spread = np.mean([w @ covariance @ w for covariance in self.covariances])
        return Fit(np.asarray(w @ self.mean), np.asarray(spread))

    def direct_kernel(self) -> Kernel:
        """One step on a fresh draw; the state is ``tuple(point)``."""
        if not self.gaussian:
            return Kernel(_drawn_step, (self.inputs * self.signs[:, None],))
        values, vectors = np.linalg.eigh(self.covariances)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        return Kernel(_normal_step, (self.mean, np.ascontiguousarray(roots)))

    def follow(self, times: ArrayLike, *, step_size: float) -> Fit:
        r"""Solve the effective dynamics of Gaussians with these means and covariances.

        With the mean :math:`\bar w` and the covariance S of w, the margin of a class with
        covariance C has the law :math:`N(\bar w \cdot \mu, \bar w^\top C \bar w +
        \mathrm{tr}\, C S)`, and averaged over the classes a step adds

        .. math::

            \delta (\mathbb E f\, \mu + \mathbb E f'\, C \bar w) \text{ to } \bar w, \qquad
            \delta\, \mathbb E f' (C S + S C) + \delta^2\, \mathbb E f^2
            (C + \mu \mu^\top) \text{ to } S .

        Parameters
        ----------
        times : array_like, shape (T,)
            Increasing, rounded to whole steps, from w = 0.
        step_size : float
            Learning rate.

        Returns
        -------
        Fit
            Of arrays of shape (T,).
        """
        grid = _validate.increasing("times", times)
        step_size = _validate.positive("step_size", step_size)
        marks = np.rint(grid / step_size).astype(int)
        normal = gaussian.gauss_hermite(1, 30)
        w, cloud = np.zeros(self.dimension), np.zeros(2 * (self.dimension,))
        both, outer = self.covariances, np.outer(self.mean, self.mean)
        seen = []
        for step in range(int(marks[-1]) + 1):
            here = w @ self.mean
            spread = np.einsum("kij,ij->k", both, np.outer(w, w) + cloud)
            if step in marks:
                seen.append((here, spread.mean()))
            f = expit(-here - np.sqrt(np.maximum(spread, 0.0))[:, None] * normal.nodes[:, 0])
            mean, bend, square = (value @ normal.weights for value in (f, f * (f - 1.0), f**2))
            pull: NDArray[Any] = np.tensordot(bend / 2, both, axes=1)
            noise = np.tensordot(square / 2, both, axes=1) + square.mean() * outer
            drift = pull @ cloud
            cloud = cloud + step_size * (drift + drift.T) + step_size**2 * noise
            w = w + step_size * (mean.mean() * self.mean + pull @ w)
        return Fit(*(np.array(part) for part in zip(*seen, strict=True)))


@njit(nogil=True, error_model="numpy")
def _descend(w: Array, x: Array, step_size: float) -> None:
    """Add step_size f(s) x to w, in place, for the logistic loss."""
    margin = 0.0
    for i in range(w.size):
        margin += w[i] * x[i]
    pull = step_size / (1.0 + math.exp(margin))
    for i in range(w.size):
        w[i] += pull * x[i]


@njit(nogil=True, error_model="numpy")
def _drawn_step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    """Take a step on a row that is drawn."""
    (w,) = state
    (rows,) = constants
    _descend(w, rows[rng.integers(0, rows.shape[0])], step_size)


@njit(nogil=True, error_model="numpy")
def _normal_step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    """Take a step on a Gaussian, mean + root @ (a normal vector)."""
    (w,) = state
    mean, roots = constants
    root = roots[rng.integers(0, 2)]
    z = np.empty(w.size)
    for i in range(w.size):
        z[i] = rng.standard_normal()
    _descend(w, mean + root @ z, step_size)
