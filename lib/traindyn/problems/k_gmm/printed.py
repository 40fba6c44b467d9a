"""The k-Gaussian mixture with SGD as BGHJ (2.1) prints it.

Nothing here describes training: a check that confirms the right step must reject this one.
"""

from __future__ import annotations

from dataclasses import replace

from traindyn import _validate
from traindyn.problems.k_gmm import KGaussianMixture

__all__ = ["literal_ridge"]


def literal_ridge(problem: KGaussianMixture, step_size: float) -> KGaussianMixture:
    """Problem whose SGD is BGHJ (2.1) as printed, ``x <- x - step_size grad - ridge x``.

    The ridge term lacks its step size, which amounts to a ridge of ridge / step_size.
    """
    step_size = _validate.positive("step_size", step_size)
    return replace(problem, ridge=problem.ridge / step_size)
