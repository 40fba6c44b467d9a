r"""The inference problems of MDL chapter 11: PCA, a mixture, teacher and student."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit

from companion.sample_complexity.information_exponent.links import SQUARE, Link, Scalar, line_rule
from companion.sample_complexity.information_exponent.model import Compiled, DataRule, SingleIndex
from traindyn import _validate
from traindyn._types import Array

__all__ = ["BinaryMixture", "OnlinePCA", "TeacherStudent", "phase_retrieval"]


@dataclass(frozen=True)
class OnlinePCA(SingleIndex):
    r"""Online principal component analysis: covariance :math:`I + \lambda v_0 v_0^T`.

    The loss is :math:`-\langle x, Y \rangle^2`, the population loss :math:`-1 - \lambda m^2`
    (MDL Section 11.2.1).

    Attributes
    ----------
    dimension : int
    signal : float
        :math:`\lambda`, positive.

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.models import OnlinePCA
    >>> float(OnlinePCA(100, signal=2.0).moments(0.5).loss.round(12))
    -1.5
    """

    signal: float

    def __post_init__(self) -> None:
        """Check the signal."""
        super().__post_init__()
        _validate.positive("signal", self.signal)

    def compiled(self) -> Compiled:
        """Return the compiled formulas."""
        return Compiled(_draw_spiked, _slope_spiked, (math.sqrt(1 + self.signal),))

    def data_rule(self) -> DataRule:
        """Return a quadrature for (s, y); there is no label."""
        rule = line_rule()
        z = rule.nodes[:, 0]
        return DataRule(math.sqrt(1 + self.signal) * z, np.zeros_like(z), rule.weights)

    def loss_at(self, t: Array, y: Array) -> Array:
        """Return the loss at t, element by element."""
        t, _ = self.checked(t, y)
        return np.asarray(-t * t)

    def slope_at(self, t: Array, y: Array) -> Array:
        """Return the derivative of the loss in t, element by element."""
        t, _ = self.checked(t, y)
        return np.asarray(-2.0 * t)


@njit(nogil=True, cache=True)
def _draw_spiked(rng: np.random.Generator, parameters: Any) -> tuple[float, float]:
    return parameters[0] * rng.standard_normal(), 0.0


@njit(nogil=True, cache=True)
def _slope_spiked(t: float, y: float, parameters: Any) -> float:
    return -2.0 * t


@dataclass(frozen=True)
class BinaryMixture(SingleIndex):
    r"""Maximum likelihood for two antipodal Gaussian clusters (MDL Section 11.2.2).

    The weights are known: :math:`Y \sim p N(v_0, I) + (1 - p) N(-v_0, I)`,
    :math:`p = e^h / (e^h + e^{-h})`, and the loss is
    :math:`-\log \cosh(\langle x, Y \rangle + h)`.

    Attributes
    ----------
    dimension : int
    field : float, default 0
        h.
    """

    field: float = 0.0

    def __post_init__(self) -> None:
        """Check the field."""
        super().__post_init__()
        _validate.number("field", self.field)

    @property
    def share(self) -> float:
        """Weight p of the cluster at the unknown direction."""
        return 1 / (1 + math.exp(-2 * self.field))

    def compiled(self) -> Compiled:
        """Return the compiled formulas."""
        return Compiled(_draw_mixture, _slope_mixture, (self.share, float(self.field)))

    def data_rule(self) -> DataRule:
        """Return a quadrature for (s, y); the cluster is not a label."""
        rule = line_rule()
        z = rule.nodes[:, 0]
        weights = np.concatenate([self.share * rule.weights, (1 - self.share) * rule.weights])
        return DataRule(np.concatenate([z + 1, z - 1]), np.zeros(2 * z.size), weights)

    def loss_at(self, t: Array, y: Array) -> Array:
        """Return the loss at t, element by element."""
        t, _ = self.checked(t, y)
        size = np.abs(t + self.field)
        return np.asarray(math.log(2) - size - np.log1p(np.exp(-2 * size)))

    def slope_at(self, t: Array, y: Array) -> Array:
        """Return the derivative of the loss in t, element by element."""
        t, _ = self.checked(t, y)
        return np.asarray(-np.tanh(t + self.field))


@njit(nogil=True, cache=True)
def _draw_mixture(rng: np.random.Generator, parameters: Any) -> tuple[float, float]:
    centre = 1.0 if rng.random() < parameters[0] else -1.0
    return centre + rng.standard_normal(), 0.0


@njit(nogil=True, cache=True)
def _slope_mixture(t: float, y: float, parameters: Any) -> float:
    return -math.tanh(t + parameters[1])


@dataclass(frozen=True)
class TeacherStudent(SingleIndex):
    r"""Teacher and student: labels :math:`f(\langle a, v_0 \rangle) + \varepsilon`, squared loss.

    :math:`L = (y - g(\langle a, x \rangle))^2` with Gaussian inputs a; the population loss is
    :math:`\|f\|^2 + \|g\|^2 - 2 \sum_k u_k(f) u_k(g) m^k + E \varepsilon^2`
    (MDL Section 11.2.3).

    Attributes
    ----------
    dimension : int
    teacher : Link
        f.
    student : Link, optional
        g; default: the teacher's link, the well-specified case.
    label_noise : float, default 0
        Standard deviation of :math:`\varepsilon`, normal.

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.models import TeacherStudent
    >>> from companion.sample_complexity.information_exponent.links import TANH
    >>> float(TeacherStudent(100, TANH).moments(1.0).loss.round(9))
    0.0
    """

    teacher: Link
    student: Link | None = None
    label_noise: float = 0.0

    def __post_init__(self) -> None:
        """Check the label noise."""
        super().__post_init__()
        _validate.non_negative("label_noise", self.label_noise)

    @property
    def fit(self) -> Link:
        """Link of the student."""
        return self.teacher if self.student is None else self.student

    def compiled(self) -> Compiled:
        """Return the compiled formulas."""
        noisy = self.label_noise > 0
        return Compiled(
            _draw_teacher(self.teacher.compiled()[0], noisy),
            _slope_student(*self.fit.compiled()),
            (float(self.label_noise),),
        )

    def data_rule(self) -> DataRule:
        """Return a quadrature for (s, y).

        The slope is linear and the loss quadratic in the label, so that two atoms stand for
        the noise exactly.
        """
        rule = line_rule(self.teacher.kinks)
        s = rule.nodes[:, 0]
        y = self.teacher.value(s)
        if self.label_noise == 0:
            return DataRule(s, y, rule.weights, self.fit.kinks)
        both = np.concatenate([y + self.label_noise, y - self.label_noise])
        return DataRule(np.tile(s, 2), both, np.tile(rule.weights / 2, 2), self.fit.kinks)

    def loss_at(self, t: Array, y: Array) -> Array:
        """Return the loss at t, element by element."""
        t, y = self.checked(t, y)
        return np.asarray((y - self.fit.value(t)) ** 2)

    def slope_at(self, t: Array, y: Array) -> Array:
        """Return the derivative of the loss in t, element by element."""
        t, y = self.checked(t, y)
        return np.asarray(-2.0 * (y - self.fit.value(t)) * self.fit.slope(t))


@lru_cache(maxsize=64)
def _draw_teacher(f: Scalar, noisy: bool) -> Callable[..., Any]:
    @njit(nogil=True)
    def draw(rng: np.random.Generator, parameters: Any) -> tuple[float, float]:
        s = rng.standard_normal()
        if noisy:
            return s, f(s) + parameters[0] * rng.standard_normal()
        return s, f(s)

    made: Callable[..., Any] = draw
    return made


@lru_cache(maxsize=64)
def _slope_student(g: Scalar, dg: Scalar) -> Callable[..., Any]:
    @njit(nogil=True)
    def residual(t: float, y: float, parameters: Any) -> Any:
        return -2.0 * (y - g(t)) * dg(t)

    made: Callable[..., Any] = residual
    return made


def phase_retrieval(dimension: int, *, label_noise: float = 0.0) -> TeacherStudent:
    """Teacher and student with the square as their link.

    Parameters
    ----------
    dimension : int
        N, at least 3.
    label_noise : float, default 0
        Standard deviation of the normal noise of the labels.
    """
    return TeacherStudent(dimension, SQUARE, label_noise=label_noise)
