r"""What the inputs of a network are like, given what training has seen of them.

Up to step t, full-batch gradient descent has seen the inputs :math:`X \in R^{n \times d}` only
through products with the directions :math:`\Theta_*, \theta(0), \dots, \theta(t)` and with the
forces :math:`F(0), \dots, F(t-1)`. With the projections :math:`P_\Theta, P_F` on their spans in
:math:`R^d` and :math:`R^n`, given the trajectory,

.. math:: X \overset{d}{=} P_F^\perp \tilde X P_\Theta^\perp + X P_\Theta ,

with a fresh Gaussian :math:`\tilde X`. (The third term of Gaussian conditioning,
:math:`P_F X P_\Theta^\perp`, vanishes: :math:`X^T F(s) = n (\theta(s) - \theta(s + 1)) / \eta`.)
The same holds on the null branch, as what is removed there is spanned by :math:`\Theta_*`
(MW, Gaussian conditioning). Read backwards, adding fresh numbers on what was seen gives inputs
that are independent of the trajectory and differ from X in finite rank (MW, Finite-rank
perturbation).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.problems.multi_index import Data, MultiIndex

__all__ = ["Seen", "seen"]

_DEPENDENT = 1e-9
"""Directions that add less than this to a span, relative to the largest, are dropped."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Spans of what training has seen.

    Attributes
    ----------
    directions : ndarray, shape (d, p)
        Orthonormal basis of the target's directions and the neurons, up to the last step.
    samples : ndarray, shape (n, q)
        Orthonormal basis of the forces before it.
    """

    directions: Array
    samples: Array

    @property
    def rank(self) -> int:
        """Largest rank of a difference of Hessians of inputs that differ on what was seen."""
        return 2 * int(self.directions.shape[1] + self.samples.shape[1])

    def beyond(self, inputs: ArrayLike) -> Array:
        """Remove what was seen, ``(I - P_F) inputs (I - P_Theta)``, shape (n, d)."""
        x = self._matrix(inputs)
        x = x - (x @ self.directions) @ self.directions.T
        return np.asarray(x - self.samples @ (self.samples.T @ x))

    def crossed(self, inputs: ArrayLike) -> Array:
        """Return the term that should vanish, ``P_F inputs (I - P_Theta)``, shape (n, d)."""
        x = self.samples @ (self.samples.T @ self._matrix(inputs))
        return np.asarray(x - (x @ self.directions) @ self.directions.T)

    def resampled(self, inputs: ArrayLike, *, rng: RNG) -> Array:
        """Draw inputs from the law of the given ones, given the trajectory, shape (n, d)."""
        x = self._matrix(inputs)
        fresh = _validate.generator("rng", rng).standard_normal(x.shape)
        return (x @ self.directions) @ self.directions.T + self.beyond(fresh)

    def freed(self, inputs: ArrayLike, *, rng: RNG) -> Array:
        """Replace what was seen by fresh numbers: Gaussian, independent of the trajectory.

        The closest such inputs: the difference from the given ones has rank p + q.
        """
        x = self._matrix(inputs)
        fresh = _validate.generator("rng", rng).standard_normal(x.shape)
        return fresh + self.beyond(x - fresh)

    def _matrix(self, inputs: ArrayLike) -> Array:
        shape = len(self.samples), len(self.directions)
        return _validate.finite("inputs", inputs, shape=shape)


def seen(problem: MultiIndex, data: Data, path: ArrayLike) -> Seen:
    """Collect what training has seen.

    Parameters
    ----------
    problem : MultiIndex
        Gives the directions of the target and the forces F.
    data : Data
        float64.
    path : array_like, shape (t + 1, d, m)
        Neurons at every step from 0 to t, as the snapshots of
        :func:`traindyn.sgd.full_batch.run`.

    Raises
    ------
    ValueError
        If shapes disagree.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.phase_transitions.hessian.conditioning import seen
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> from traindyn.sgd import full_batch
    >>> problem = MultiIndex()
    >>> data = problem.sample(60, 20, rng=0)
    >>> found = full_batch.run(
    ...     problem, data, problem.initial(20, rng=1), range(4), step_size=1.0, snapshots=True
    ... )
    >>> known = seen(problem, data, found.trajectory.snapshots.neurons)
    >>> known.directions.shape, known.samples.shape
    ((20, 5), (60, 3))
    >>> bool(np.abs(known.crossed(data.inputs)).max() < 1e-10)
    True
    """
    inputs = _validate.finite("data.inputs", data.inputs, shape=(None, None))
    labels = _validate.finite("data.labels", data.labels, shape=inputs.shape[:1])
    d, m = inputs.shape[1], problem.width
    neurons = _validate.finite("path", path, shape=(None, d, m))
    if len(neurons) == 0:
        raise ValueError("path must hold at least the start, got no neurons")
    target = np.eye(d)[:, : problem.k]
    forces = [problem.force(inputs @ theta, labels)[1] for theta in neurons[:-1]]
    return Seen(_span([target, *neurons]), _span([np.empty((len(labels), 0)), *forces]))


def _span(parts: list[Array]) -> Array:
    """Orthonormal basis of the columns of all parts."""
    columns = np.concatenate(parts, axis=1)
    if columns.shape[1] == 0:
        return columns
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, values > _DEPENDENT * values[0]])
