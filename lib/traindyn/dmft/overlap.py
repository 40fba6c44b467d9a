r"""The overlap with hard directions at order :math:`d^{-1/2}`.

A bounded number of steps learns no hard direction (MW, Hard directions), but the overlap of order
:math:`d^{-1/2}` that a random start has is amplified. If all directions are hard,
:math:`x(t) = \sqrt d\, \Theta(t)^T \Theta_*`, shape (m, k), is asymptotically Gaussian:
an overlap x(s) shifts W(s) by :math:`x(s) V_* / \sqrt d`, so that

.. math:: x(t + 1)_{ja} = x(t)_{ja}
          - \eta \sum_{s \le t} \sum_{lb} E\Big[V_{*a} V_{*b} \frac{\partial F_j(t)}
            {\partial W_l(s)}\Big] x(s)_{lb} + \eta\, q(t)_{ja}, \qquad
          cov(q(t)_{ja}, q(s)_{lb}) = \frac1\delta E[F_j(t) F_l(s) V_{*a} V_{*b}] ,

with x(0) of independent standard entries (derived here). It predicts how often training
succeeds in finite dimension, and when: the overlap is of order one when the variance of x
reaches d.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.dmft.kernels import MeanField
from traindyn.gaussian import symmetric_sqrt
from traindyn.problems.multi_index import decompose

__all__ = ["OverlapLaw", "overlap_law"]


@dataclass(frozen=True, eq=False)
class OverlapLaw:
    """Law of the scaled overlaps, a Gaussian process; entries (j, a) in row-major order.

    Attributes
    ----------
    times : ndarray, shape (T + 1,)
        Steps times step size.
    amplification : ndarray, shape (T + 1, m k, m k)
        Response to the start.
    joint : ndarray, shape (T + 1, T + 1, m k, m k)
        Covariances of the scaled overlaps at two times, start included.
    """

    times: Array
    amplification: Array
    joint: Array

    @property
    def covariance(self) -> Array:
        """Covariance at one time, shape (T + 1, m k, m k)."""
        index = np.arange(self.times.size)
        return np.asarray(self.joint[index, index])

    @property
    def second_moment(self) -> Array:
        """Mean squared norm of the scaled overlaps, shape (T + 1,)."""
        return np.asarray(np.trace(self.covariance, axis1=1, axis2=2))

    def sample(self, count: int, *, rng: RNG) -> Array:
        """Draw paths of the scaled overlaps, as for times of first passage.

        Parameters
        ----------
        count : int
            Number of paths.
        rng : int, SeedSequence or Generator
            Draws the paths.

        Returns
        -------
        ndarray, shape (count, T + 1, m k)
        """
        number = _validate.integer("count", count, least=1)
        total, _, size, _ = self.joint.shape
        joint = self.joint.transpose(0, 2, 1, 3).reshape(total * size, -1)
        root = symmetric_sqrt(joint, scale=1.0)
        normal = _validate.generator("rng", rng).standard_normal((number, total * size))
        return np.asarray((normal @ root).reshape(number, total, size))


def overlap_law(solution: MeanField) -> OverlapLaw:
    """Compute the law of the scaled overlaps along a mean-field solution.

    Parameters
    ----------
    solution : MeanField
        Solved with ``moments=True``, for a target whose directions are all hard.

    Raises
    ------
    ValueError
        If the solution has no moments or a direction is easy.
    """
    moments = solution.moments
    if moments is None:
        raise ValueError("solution must have been solved with moments=True, got none")
    k, m = solution.problem.k, solution.problem.width
    hard = decompose(solution.problem.target).hard
    if hard.shape[1] < k:
        raise ValueError(
            f"solution must have a target with hard directions only, got "
            f"{solution.problem.target.name} with {k - hard.shape[1]} easy ones"
        )
    total, size, eta = solution.steps + 1, m * k, solution.step_size

    def matrices(kernel: Array) -> Array:
        # (t, s, j, l, a, b) to (t, s, ja, lb).
        return np.asarray(kernel.transpose(0, 1, 2, 4, 3, 5).reshape(total, total, size, size))

    response = matrices(moments.force_response)
    noise = matrices(moments.force_correlation) / solution.sample_ratio
    # Column block 0 responds to x(0), block s + 1 to q(s).
    linear = np.zeros((total, total, size, size))
    linear[0, 0] = np.eye(size)
    for t in range(total - 1):
        past = np.einsum("rij,rsjk->sik", response[t, : t + 1], linear[: t + 1])
        linear[t + 1] = linear[t] - eta * past
        linear[t + 1, t + 1] += eta * np.eye(size)
    amplification = linear[:, 0]
    # Of x(0), q(0), q(1), ...: independent of the start, and drawn in that order.
    sources = np.zeros((total, total, size, size))
    sources[0, 0] = solution.kernels.correlation[0, 0, 0, 0] * np.eye(size)
    sources[1:, 1:] = noise[:-1, :-1]
    flat, rows = (
        each.transpose(0, 2, 1, 3).reshape(total * size, total * size) for each in (sources, linear)
    )
    joint = (rows @ flat @ rows.T).reshape(total, size, total, size).transpose(0, 2, 1, 3)
    times = eta * np.arange(total, dtype=np.float64)
    return OverlapLaw(times, amplification, joint)
