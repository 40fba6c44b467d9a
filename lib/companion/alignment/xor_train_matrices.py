r"""What SGD keeps of a sample: matrices of the training data at finite samples per dimension.

A step of size :math:`c_\delta / N` moves :math:`W_i` by a multiple of the input X it is made
with, of square length :math:`N / \lambda`. The preactivations of that very input change by an
amount that the dimension does not diminish,

.. math:: s_i = -\frac{c_\delta}{\lambda}\, v_i\, 1\{z_i > 0\}\, e,

and what was added along X then follows the linear equation that every direction outside the
signal space obeys,

.. math::

    \dot u_i = -v_i \sum_j C_{ij} u_j - \alpha u_i, \qquad A^\perp = C R^\perp,

with the response :math:`A^\perp_{ij} = A_i \cdot W_j^\perp` of
:class:`~traindyn.problems.two_layer.integrals.Integrals`. With its propagator
:math:`\Phi(t, \tau)`, a sample used at time :math:`\tau` has at time t the preactivations
:math:`z(t) + \Phi(t, \tau) s`, where the noise parts of z at the two times have the covariance
:math:`\Phi(t, \tau) R^\perp(\tau) / \lambda`. Averages over the training set are averages over
:math:`\tau`; the difference from fresh samples does not vanish in large dimension. It is a cavity
argument, of leading order in 1 / N.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm
from scipy.special import expit

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.gaussian import Rule, symmetric_sqrt
from traindyn.problems.base import Matrix
from traindyn.problems.two_layer import integrals
from traindyn.problems.two_layer.curvature import weight
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture, checked

__all__ = ["propagators", "training_block"]


def propagators(
    problem: TwoLayerMixture,
    times: ArrayLike,
    statistics: Statistics,
    *,
    rule: Rule | None = None,
) -> Array:
    r"""Propagators from every time to the last one, outside the signal space.

    Parameters
    ----------
    problem : TwoLayerMixture
        Of finite precision.
    times : array_like, shape (T,)
        Increasing, close enough for the midpoint rule.
    statistics : Statistics
        A solution of the effective dynamics there, with leading axis T and regular `R_perp`.
    rule : Rule, optional
        As for :meth:`~traindyn.problems.two_layer.mixture.TwoLayerMixture.drift`.

    Returns
    -------
    ndarray, shape (T, K, K)
        :math:`\Phi(t_{T-1}, t_n)`; the last one is the identity.

    Raises
    ------
    ValueError
        If the times do not increase or the statistics do not fit them.

    Examples
    --------
    Without second layer everything decays at the rate of the ridge:

    >>> import numpy as np
    >>> from companion.alignment.xor_train_matrices import propagators
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> problem = TwoLayerMixture.xor(2, 50, precision=10.0, ridge=0.5)
    >>> still = Statistics(np.zeros((2, 2)), np.zeros((2, 2, 2)), np.tile(np.eye(2), (2, 1, 1)))
    >>> bool(np.allclose(propagators(problem, [0.0, 1.0], still)[0], np.exp(-0.5) * np.eye(2)))
    True
    """
    statistics = checked(problem, statistics)
    grid = _validate.increasing("times", times)
    if len(statistics.v) != grid.size:
        raise ValueError(f"statistics must have {grid.size} rows, got {len(statistics.v)}")
    rates = []
    for v, m, R_perp in zip(*statistics, strict=True):
        A_perp = integrals.evaluate(problem, Statistics(v, m, R_perp), rule).A_perp
        response = np.linalg.solve(R_perp, A_perp.T).T
        rates.append(-v[:, None] * response - problem.ridge * np.eye(problem.width))
    found = np.tile(np.eye(problem.width), (grid.size, 1, 1))
    for n in range(grid.size - 2, -1, -1):
        step = 0.5 * (grid[n + 1] - grid[n]) * (rates[n] + rates[n + 1])
        found[n] = found[n + 1] @ expm(step)
    return found


def training_block(
    problem: TwoLayerMixture,
    times: ArrayLike,
    statistics: Statistics,
    matrix: Matrix,
    *,
    c_delta: float,
    draws: int = 2**13,
    rng: RNG,
    rule: Rule | None = None,
) -> tuple[Array, Array]:
    r"""Block (K, K) of all samples that SGD has used, at the last time, in large dimension.

    Parameters
    ----------
    problem, times, statistics, rule
        As for :func:`propagators`; the times start at zero.
    matrix : {"hessian", "g_matrix"}
        Mean over samples of the loss's Hessian, or of its gradient's outer product with itself.
    c_delta : float
        Step size times dimension.
    draws : int, default 8192
        Inputs drawn for each time.
    rng : int, SeedSequence or Generator
        Of the inputs and of the noise parts of the preactivations.

    Returns
    -------
    trained, fresh : ndarray, shape (K, K)
        The block of the training data, and that of fresh samples by the same draws.

    Raises
    ------
    ValueError
        As :func:`propagators`, or if the times do not start at zero or a number is out of range.

    Examples
    --------
    What has been seen is fitted better:

    >>> import numpy as np
    >>> from companion.alignment.xor_train_matrices import training_block
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.effective import ode
    >>> problem = TwoLayerMixture.xor(2, 100, precision=2.0, ridge=0.05)
    >>> start = problem.initial_statistics(v=[1.0, -1.0])
    >>> path = ode.solve(problem, start, np.linspace(0, 2, 5), c_delta=1.0)
    >>> trained, fresh = training_block(
    ...     problem, path.times, path.statistics, "g_matrix", c_delta=1.0, rng=0
    ... )
    >>> bool(np.trace(trained) < 0.95 * np.trace(fresh))
    True
    """
    statistics = checked(problem, statistics)
    grid = _validate.increasing("times", times)
    if grid[0] != 0:
        raise ValueError(f"times must start at 0, got {grid[0]:g}")
    c_delta = _validate.non_negative("c_delta", c_delta)
    draws = _validate.integer("draws", draws, least=1)
    flow = propagators(problem, grid, statistics, rule=rule)
    generator = _validate.generator("rng", rng)
    v_end, m_end, R_end = (part[-1] for part in statistics)
    shares = np.gradient(grid)
    shares[[0, -1]] *= 0.5
    blocks = np.zeros((2, problem.width, problem.width))
    deviation = 1.0 / np.sqrt(problem.precision)
    for share, Phi, v, m, R in zip(shares / shares.sum(), flow, *statistics, strict=True):
        index = generator.choice(problem.weights.size, size=draws, p=problem.weights)
        label = problem.labels[index]
        noise = generator.standard_normal((draws, problem.signal))
        seen = problem.centroids[index] + deviation * noise
        at_step = generator.standard_normal((draws, problem.width)) @ symmetric_sqrt(R, scale=1.0)
        later = generator.standard_normal((draws, problem.width))
        fed = R_end - Phi @ R @ Phi.T
        values, vectors = np.linalg.eigh((fed + fed.T) / 2)
        # quadrature may leave a trace of a negative eigenvalue
        fed_root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        at_end = at_step @ Phi.T + later @ fed_root
        z_step = seen @ m.T + deviation * at_step
        z_end = seen @ m_end.T + deviation * at_end
        error = expit(np.maximum(z_step, 0.0) @ v) - label
        kick = -(c_delta / problem.precision) * v * (z_step > 0) * error[:, None]
        for k, z in enumerate((z_end + kick @ Phi.T, z_end)):
            felt = np.maximum(z, 0.0)
            w = weight(matrix, felt @ v_end, label)
            blocks[k] += share / draws * (felt.T * w) @ felt
    return blocks[0], blocks[1]
