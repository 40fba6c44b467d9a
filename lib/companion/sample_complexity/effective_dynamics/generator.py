r"""The operators of the limit theorem at a point, in full dimension.

For a population loss :math:`\Phi`, the covariance V of the gradient of one sample and summary
statistics u with Jacobian J (BGJ Theorem 2.2; MDL Definition 12.3, Theorem 12.4),

.. math:: A u = \langle \nabla\Phi, \nabla u \rangle, \qquad
          \delta \mathcal L u = \tfrac\delta2 \langle V, \nabla^2 u \rangle, \qquad
          \delta J V J^T .

Where they converge to functions f, g and :math:`\Sigma` of u the statistics are closable, with
effective drift :math:`-f + g`. The sampled counterpart is
:mod:`traindyn.effective.one_step`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["Operators", "evaluate"]


class Operators(NamedTuple):
    r"""The operators applied to k statistics.

    Attributes
    ----------
    population : ndarray, shape (k,)
        :math:`A u`, whose limit is the population drift f.
    corrector : ndarray, shape (k,)
        :math:`\delta \mathcal L u`, whose limit is the population corrector g: zero where the
        step size is below the critical one (MDL Section 12.3.2).
    diffusion : ndarray, shape (k, k)
        :math:`\delta J V J^T`, whose limit is the diffusion matrix.
    """

    population: Array
    corrector: Array
    diffusion: Array


def evaluate(
    gradient: ArrayLike,
    covariance: ArrayLike,
    jacobian: ArrayLike,
    hessians: ArrayLike,
    *,
    step_size: float,
) -> Operators:
    r"""Apply the operators to statistics given by their derivatives.

    Parameters
    ----------
    gradient : array_like, shape (p,)
        Of the population loss.
    covariance : array_like, shape (p, p)
        Of the gradient of one sample, positive semidefinite.
    jacobian : array_like, shape (k, p)
        Of the statistics.
    hessians : array_like, shape (k, p, p)
        Of the statistics.
    step_size : float
        :math:`\delta`, positive.

    Raises
    ------
    ValueError
        If a shape is wrong or the step size is not positive.

    Examples
    --------
    The squared length in three dimensions, with unit noise:

    >>> import numpy as np
    >>> from companion.sample_complexity.effective_dynamics.generator import evaluate
    >>> x = np.array([1.0, 0.0, 2.0])
    >>> evaluate(x, np.eye(3), [2 * x], [2 * np.eye(3)], step_size=0.1).corrector.round(12)
    array([0.3])
    """
    step_size = _validate.positive("step_size", step_size)
    slope = _validate.finite("gradient", gradient, shape=(None,))
    noise = _validate.symmetric("covariance", covariance, size=slope.size)
    first = _validate.finite("jacobian", jacobian, shape=(None, slope.size))
    shape = (first.shape[0], slope.size, slope.size)
    second = _validate.finite("hessians", hessians, shape=shape)
    return Operators(
        np.asarray(first @ slope),
        np.asarray(0.5 * step_size * np.einsum("kij,ij->k", second, noise)),
        np.asarray(step_size * first @ noise @ first.T),
    )
