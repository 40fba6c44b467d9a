"""Formulas of MDL chapter 11 as printed, to be rejected by the checks that ours pass."""

from __future__ import annotations

import cmath
import math

import numpy as np
from numpy.typing import ArrayLike

from companion.sample_complexity.information_exponent.links import Link, coefficients
from traindyn import _validate
from traindyn._types import Array

__all__ = ["printed_coefficients", "printed_martingale_scale", "printed_norm_moment_bound"]


def printed_coefficients(link: Link, count: int) -> Array:
    r"""Hermite coefficients with the printed prefactor :math:`1/\sqrt{2\pi i}`, complex."""
    return np.asarray(coefficients(link, count) / cmath.sqrt(1j))


def printed_norm_moment_bound(n: ArrayLike, p: float) -> Array:
    r"""Bound of MDL Remark 11.6, :math:`\sqrt{(E \sum_i z_i^2)^{p/2}}`, for normal coordinates."""
    return np.asarray(np.sqrt(_validate.positives("n", n) ** (_validate.positive("p", p) / 2)))


def printed_martingale_scale(n: ArrayLike, *, delta: float, alpha: float) -> Array:
    r"""Size of the directional error up to :math:`\alpha N` steps, :math:`\delta\sqrt\alpha/N`."""
    size, level = _validate.positive("delta", delta), _validate.positive("alpha", alpha)
    return np.asarray(size * math.sqrt(level) / _validate.positives("n", n))
