r"""Points with a marked direction: the overlap with a unit vector, and the length of the rest.

The classifier of two clouds has the mean of its inputs as marked direction, matrix PCA its spike.
Both have the statistics :math:`m = \langle w, v \rangle` and :math:`r_\perp^2 = \|w\|^2 - m^2`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.problems.spiked import Statistics

__all__ = ["Linear", "Marked", "Weights", "unit"]


class Weights(NamedTuple):
    """Parameters of a linear model.

    Attributes
    ----------
    w : ndarray, shape (n,)
    """

    w: Array


def unit(name: str, vector: Array) -> Array:
    """Return a unit vector as an array of its own that cannot be written to.

    Parameters
    ----------
    name : str
        Of the argument, for errors.
    vector : array_like, shape (n,)
        Of length one.

    Raises
    ------
    ValueError
        If it is not finite, or has another length.

    Examples
    --------
    >>> from traindyn.problems.clouds.direction import unit
    >>> unit("mean", [0.6, 0.8]).tolist()
    [0.6, 0.8]
    """
    found = _validate.finite(name, vector, shape=(None,))
    if abs(found @ found - 1.0) > 1e-8:
        raise ValueError(f"{name} must be a unit vector, got length {np.sqrt(found @ found):g}")
    return _validate.frozen(found)


class Linear(ABC):
    """A linear model with a marked unit vector, without ridge."""

    @property
    @abstractmethod
    def direction(self) -> Array:
        """The unit vector, by the name that each model has for it."""

    @property
    def dimension(self) -> int:
        """Dimension n of the parameters."""
        return int(self.direction.size)

    @property
    def ridge(self) -> float:
        """Return zero: the loss has no ridge."""
        return 0.0

    def initial(self, *, rng: RNG) -> Weights:
        """Draw a start from N(0, I / n)."""
        generator = _validate.generator("rng", rng)
        return Weights(generator.standard_normal(self.dimension) / math.sqrt(self.dimension))


class Marked(Linear):
    """A linear model whose statistics are those of the marked unit vector."""

    def place(self, statistics: Statistics, *, rng: RNG) -> Weights:
        """Draw a point with these statistics, in a uniform direction orthogonal to that."""
        kept = _validate.instance("statistics", statistics, Statistics)
        m, r2 = _validate.number("m", kept.m), _validate.non_negative("r2", kept.r2)
        other = _validate.generator("rng", rng).standard_normal(self.dimension)
        other -= (other @ self.direction) * self.direction
        return Weights(m * self.direction + math.sqrt(r2) * other / np.linalg.norm(other))

    def statistics(self, point: Weights) -> Statistics:
        """Overlap with the marked direction, and squared length of the rest."""
        w = _validate.finite("point.w", point.w, shape=(self.dimension,))
        m = w @ self.direction
        return Statistics(np.asarray(m), np.asarray(w @ w - m**2))
