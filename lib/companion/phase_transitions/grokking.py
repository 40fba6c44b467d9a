r"""Training of one neuron with many samples per dimension, to first order in :math:`1/\delta`.

All directions of the target are hard and the overlap is zero. At :math:`\delta = \infty` the
memory of the mean-field equations is gone: with :math:`g = \partial F / \partial V` the neuron
only changes its length, :math:`\theta(t + 1) = (1 - \eta E[g(t)])\, \theta(t)`, so that all
:math:`W(t) = \sqrt{q(t)}\, Z` belong to one Gaussian variable Z. Two consequences (derived here,
time in steps times :math:`\eta`):

* *The gap.* It is small but there, though the slides (MW, Grokking) have none far above the
  threshold. Inserting :math:`V(t) = W(t) - \frac\eta\delta \sum_{s < t} R(t, s) F(s)` into the
  training loss, where :math:`F = \partial \ell / \partial V`,

  .. math:: test(t) - train(t) = \frac1\delta\, \eta \sum_{s < t}
            \sqrt{\frac{q(t)}{q(s + 1)}}\; E[F(t) F(s)] + O(\delta^{-2}) .

  The loss without overlap depends on q alone, so at its minimum every tangential direction is
  flat: nothing ends the sum, and the gap grows like :math:`E[F^2]\, t / \delta`.
* *The wait.* A small overlap obeys :math:`x(t + 1) = (I - \eta E[g\, s s^T])\, x(t)`, and the
  start is of order :math:`d^{-1/2}`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traindyn import _validate
from traindyn._types import Array
from traindyn.gaussian import Rule, gauss_hermite
from traindyn.problems.multi_index import MultiIndex, decompose

__all__ = ["ManySamples", "many_samples"]

_ORDERS = {2: 101, 3: 41, 4: 21}


class ManySamples(NamedTuple):
    """Leading orders in 1/delta along training; T steps make T + 1 times.

    Attributes
    ----------
    times : ndarray, shape (T + 1,)
        Steps times step size.
    radius : ndarray, shape (T + 1,)
        Squared norm q of the neuron at delta = infinity.
    gap : ndarray, shape (T + 1,)
        Limit of delta times (test loss less training loss).
    push : ndarray, shape (T + 1,)
        ``E[F^2]``, the slope of `gap` once q stands still.
    growth : ndarray, shape (T + 1, k, k)
        ``-E[g s s^T]``, at which small overlaps grow.
    """

    times: Array
    radius: Array
    gap: Array
    push: Array
    growth: Array

    def rate(self) -> float:
        """Rate per unit of time at which the overlap grows in the end.

        Discrete steps included: the logarithm of the factor of one step, over the step size.
        """
        step = float(self.times[1] - self.times[0])
        return float(np.log1p(step * np.linalg.eigvalsh(self.growth[-1])[-1]) / step)


def many_samples(
    problem: MultiIndex, steps: int, *, step_size: float, rule: Rule | None = None
) -> ManySamples:
    r"""Compute the gap and the growth of the overlap where samples abound.

    Parameters
    ----------
    problem : MultiIndex
        One neuron, a target without easy directions.
    steps : int
        Number T of steps, at least 1.
    step_size : float
        :math:`\eta` of gradient descent, positive.
    rule : Rule, optional
        Of dimension k + 1 (one more with label noise): coordinates, preactivation, noise.
        Default: Gauss-Hermite.

    Raises
    ------
    ValueError
        If an argument is out of range, there are several neurons, or a direction is easy.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.phase_transitions.grokking import many_samples
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> found = many_samples(MultiIndex(), 100, step_size=0.5)
    >>> round(np.diff(found.gap)[-1] / 0.5, 3), round(found.push[-1], 3)
    (np.float64(0.121), np.float64(0.121))
    """
    count = _validate.integer("steps", steps, least=1)
    eta = _validate.positive("step_size", step_size)
    if problem.width != 1:
        raise ValueError(f"problem must have one neuron, got {problem.width}")
    hard = decompose(problem.target).hard
    if hard.shape[1] < problem.k:
        raise ValueError(
            f"problem must have a target with hard directions only, got {problem.target.name} "
            f"with {problem.k - hard.shape[1]} easy ones"
        )
    noisy = problem.target.noise > 0
    dim = problem.k + 1 + noisy
    if rule is None:
        rule = gauss_hermite(dim, _ORDERS.get(dim, 10))
    if rule.dim != dim:
        raise ValueError(f"rule must have dimension {dim}, got {rule.dim}")
    s, z = rule.nodes[:, : problem.k], rule.nodes[:, problem.k : problem.k + 1]
    labels = problem.target.signal(s)
    if noisy:
        labels = labels + problem.target.noise * rule.nodes[:, -1]
    radius, growth = np.empty(count + 1), np.empty((count + 1, problem.k, problem.k))
    forces = np.empty((count + 1, rule.size))
    length = 1.0
    for t in range(count + 1):
        radius[t] = length**2
        forces[t] = problem.force(length * z, labels)[1][:, 0]
        weights = rule.weights * problem.hessian_weights(length * z, labels)[:, 0, 0]
        growth[t] = -(s.T * weights) @ s
        length *= 1 - eta * weights.sum()
    products = (forces * rule.weights) @ forces.T
    # Row t, column s: the length that a push at s, which acts from s + 1 on, has at t.
    carried = np.sqrt(radius[1:, None] / radius[None, 1:])
    gap = np.zeros(count + 1)
    gap[1:] = eta * np.tril(carried * products[1:, :-1]).sum(axis=1)
    times = eta * np.arange(count + 1, dtype=np.float64)
    return ManySamples(times, radius, gap, np.diag(products).copy(), growth)
