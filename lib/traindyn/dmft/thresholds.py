r"""The threshold at initialisation, by quadrature.

The threshold is the least sample ratio at which the Hessian has an informative negative eigenvalue:
the largest eigenvalue of :math:`P(a_{end})` of :class:`~traindyn.laws.hard_subspace.HardSubspace`
reaches one (MW, Main result, restricted to eigenvalues below min(0, edge)).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from traindyn import _validate
from traindyn.dmft.kernels import hard_basis
from traindyn.gaussian import Rule, default_rule, gauss_hermite
from traindyn.laws import HardSubspace
from traindyn.problems.multi_index import MultiIndex

__all__ = ["initial_threshold"]

_LEAST, _LARGEST, _LADDER = 0.05, 1e4, 1.25
"""Range in which thresholds are looked for, and the ratio of neighbours."""
_INITIAL_ORDER = 201


def initial_threshold(
    problem: MultiIndex,
    *,
    neuron: int = 0,
    hard: ArrayLike | None = None,
    radius: float = 1.0,
    rule: Rule | None = None,
) -> float:
    """Threshold of the Hessian at initialisation, by quadrature.

    Parameters
    ----------
    problem : MultiIndex
        The target, and the network whose Hessian is taken.
    neuron : int, default 0
        Which block; for a single neuron the whole Hessian.
    hard : array_like, shape (k, r), optional
        Orthonormal basis of the hard subspace. Default: computed from the target.
    radius : float, default 1.0
        Norm of the neurons.
    rule : Rule, optional
        Of dimension k + m (one more with label noise): coordinates, then preactivations.

    Returns
    -------
    float
        Infinite if there is no threshold below 10000.

    Raises
    ------
    ValueError
        If an argument is out of range, or the weights are unbounded below.

    Examples
    --------
    >>> from traindyn.dmft import initial_threshold
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> round(initial_threshold(MultiIndex()), 2)
    1.69
    """
    problem.require_bounded_curvature()
    basis = hard_basis(problem, hard)
    index = _validate.integer("neuron", neuron, least=0, most=problem.width - 1)
    noisy = problem.target.noise > 0
    dim = problem.k + problem.width + noisy
    if rule is None:
        rule = gauss_hermite(2, _INITIAL_ORDER) if dim == 2 else default_rule(dim)
    _validate.providing("rule", rule, "nodes", "weights")
    if rule.dim != dim:
        raise ValueError(f"rule must have dimension {dim}, got {rule.dim}")
    used = rule.weights > 1e-20
    nodes, weights = rule.nodes[used], rule.weights[used] / rule.weights[used].sum()
    z = nodes[:, : problem.k]
    labels = problem.target.signal(z)
    if noisy:
        labels = labels + problem.target.noise * nodes[:, -1]
    inner = _validate.positive("radius", radius) * nodes[:, problem.k : problem.k + problem.width]
    curvature = problem.block_weights(inner, labels)[:, index]

    def gap(log_delta: float) -> float:
        side = HardSubspace(curvature, z @ basis, np.exp(log_delta), probabilities=weights)
        return side.statistic - 1

    # From below: the criterion need not hold for all larger sample_ratios, as a positive definite
    # Hessian, averaged over many samples, has no negative outlier.
    ladder = np.arange(np.log(_LEAST), np.log(_LARGEST), np.log(_LADDER))
    for low, high in pairwise(ladder.tolist()):
        if gap(high) > 0:
            return float(np.exp(brentq(gap, low, high, xtol=1e-10)))
    return float("inf")
