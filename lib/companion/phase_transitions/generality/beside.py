r"""The overlap with hard directions at order :math:`d^{-1/2}`, beside easy directions.

Let s be the hard coordinates of a sample and :math:`z_E` the easy ones. During a bounded number of
steps the overlaps with easy directions are of order one, those with hard directions of order
:math:`d^{-1/2}`. Both fluctuate at order :math:`d^{-1/2}`. The force F(t) is a function of the
label, of :math:`z_E` and of Gaussian fields. A hard overlap x(r) shifts the field W(r) by
:math:`x(r) s / \sqrt d`, an error :math:`e(r)` of an easy overlap by :math:`e(r) z_E / \sqrt d`.
In the mean force on a hard direction the second shift has no effect,

.. math:: E\Big[s\, z_E^T \frac{\partial F(t)}{\partial W(r)}\Big] = E\Big[z_E
          \frac{\partial F(t)}{\partial W(r)}\, E[s \mid y, z_E]\Big] = 0 ,

as without hard overlaps W depends on s through (y, :math:`z_E`) alone. So x obeys the recursion of
:func:`~traindyn.dmft.overlap.overlap_law` with weights :math:`s s^T`, along the mean-field solution
in which the easy directions are learnt (derived here).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from traindyn._types import Array
from traindyn.dmft import MeanField, OverlapLaw, overlap_law
from traindyn.dmft.kernels import TargetMoments, hard_basis
from traindyn.problems.multi_index import MultiIndex, polynomial

__all__ = ["overlap_law_beside"]


def overlap_law_beside(solution: MeanField, *, hard: ArrayLike | None = None) -> OverlapLaw:
    r"""Law of the overlaps with the hard directions alone, times :math:`\sqrt d`.

    Parameters
    ----------
    solution : MeanField
        Solved with ``moments=True``; the target may have easy directions.
    hard : array_like, shape (k, r), optional
        Orthonormal basis of the hard subspace. Default: computed from the target.

    Returns
    -------
    OverlapLaw
        With entries (neuron, hard direction) in row-major order.

    Raises
    ------
    ValueError
        If the solution has no moments, nothing is hard, or the basis is not orthonormal.

    Examples
    --------
    One of the two directions of this target is hard:

    >>> from companion.phase_transitions.generality.beside import overlap_law_beside
    >>> from traindyn.dmft import solve
    >>> from traindyn.problems.multi_index import MultiIndex, polynomial
    >>> problem = MultiIndex(polynomial({(1, 0): 2.0, (0, 2): 1.0}))
    >>> found = solve(problem, 3, sample_ratio=8.0, step_size=1.0, rng=0, paths=2**10, moments=True)
    >>> overlap_law_beside(found).covariance.shape
    (4, 1, 1)
    """
    if solution.moments is None:
        raise ValueError("solution must have been solved with moments=True, got none")
    given = solution.problem
    basis = hard_basis(given, hard)

    def inside(kernel: Array) -> Array:
        return np.asarray(np.einsum("tsjlab,ap,bq->tsjlpq", kernel, basis, basis))

    # What is left is the law of a problem all of whose r directions are hard; of the target the
    # recursion uses their number alone.
    count = basis.shape[1]
    squares = polynomial({tuple(row): 1.0 for row in (2 * np.eye(count, dtype=int)).tolist()})
    return overlap_law(
        replace(
            solution,
            problem=MultiIndex(
                squares,
                given.activation,
                second_layer=given.second_layer,
                biases=given.biases,
            ),
            moments=TargetMoments(*(inside(kernel) for kernel in solution.moments)),
        )
    )
