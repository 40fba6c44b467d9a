"""Formulas of MDL chapters 4 and 5 as printed, where they differ from the correct ones.

The wrong variants against which those of :mod:`traindyn.problems.regression` are tested: a
check that confirms ours must reject these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from companion.foundations.implicit_bias.margin import MaxMargin
from companion.foundations.implicit_bias.separable import Classifier
from traindyn import _validate
from traindyn._types import Array

__all__ = ["printed_drift_pieces", "printed_step_size"]


def printed_drift_pieces(
    solution: MaxMargin, weights: ArrayLike, times: ArrayLike
) -> tuple[Array, Array]:
    r"""Parts (I) and (II) of the proof of MDL Theorem 4.7 as printed.

    Without the factor 1/n, with the offset at c = 1, and with :math:`-\hat w/t` in both. Shapes as
    for :meth:`~companion.foundations.implicit_bias.margin.MaxMargin.drift_pieces`.
    """
    w = _validate.finite("weights", weights, shape=(None, solution.points.shape[1]))
    t = _validate.positives("times", times, shape=(len(w),))
    r = w - np.log(t)[:, None] * solution.weights - solution.offset(1.0)
    pull = np.exp(-w @ solution.points.T) * (r @ solution.points.T)
    shift = r @ solution.weights / t
    inside = pull[:, solution.support].sum(axis=1)
    return np.asarray(inside - shift), np.asarray(pull[:, ~solution.support].sum(axis=1) - shift)


def printed_step_size(model: Classifier, constant: float) -> float:
    r"""Bound on the step of MDL Theorem 4.7 as printed, :math:`1/(c\lambda_{\max}^2)`."""
    return 1 / (_validate.positive("constant", constant) * model.curvature**2)
