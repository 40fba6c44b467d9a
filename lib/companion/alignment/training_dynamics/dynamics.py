r"""What the statements of BGHJ Section 5.2 are about, for the k-Gaussian mixture.

The population loss and its gradient (5.11)-(5.12), one step of SGD from a given point, the
first correction in 1 / lambda of Lemma 5.11, explicit radii for the balls of Lemma 5.9, and
the covariance of one step, from which the size of the fluctuations around the effective
dynamics follows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import logsumexp, softmax

from traindyn import _validate
from traindyn._types import Array
from traindyn.gaussian import Rule, symmetric_sqrt
from traindyn.problems.base import Sample
from traindyn.problems.k_gmm import KGaussianMixture, Point, Statistics
from traindyn.problems.k_gmm.mixture import checked

__all__ = [
    "confinement_radius",
    "distance",
    "drift_gap",
    "initial_covariance",
    "one_step",
    "parallel_coordinates",
    "parallel_norms",
    "population_gradient",
    "population_loss",
    "probability_correction",
    "total_norm",
    "volatility",
]


def population_loss(problem: KGaussianMixture, statistics: Statistics, *, rule: Rule) -> float:
    r"""Evaluate the population loss with its ridge (BGHJ (5.11)).

    .. math:: \Phi = -\sum_a p_a m_{aa} + \sum_a p_a E \log \sum_b e^{x^b \cdot Y_a}
              + \frac\beta2 \sum_a |x^a|^2.

    Parameters
    ----------
    problem : KGaussianMixture
        The mixture; its ridge :math:`\beta` is that of the loss.
    statistics : Statistics
        Of the point, shapes (k, k).
    rule : Rule
        Quadrature for N(0, I_k).

    Examples
    --------
    At the origin it is log k, whatever the data:

    >>> import numpy as np
    >>> from companion.alignment.training_dynamics.dynamics import population_loss
    >>> from traindyn.problems import KGaussianMixture
    >>> from traindyn.problems.k_gmm import Statistics
    >>> from traindyn.gaussian import gauss_hermite
    >>> problem = KGaussianMixture.orthonormal(3, 20, precision=10.0, ridge=0.1)
    >>> origin = Statistics(np.zeros((3, 3)), np.zeros((3, 3)))
    >>> loss = population_loss(problem, origin, rule=gauss_hermite(3, 4))
    >>> bool(np.isclose(loss, np.log(3)))
    True
    """
    statistics = checked(problem, statistics, single=True)
    parallel = problem.coordinates(statistics.m)
    gram = statistics.R_perp + parallel @ parallel.T
    noise = rule.nodes @ symmetric_sqrt(gram / problem.precision, scale=1.0)
    fits = [
        rule.weights @ logsumexp(noise + statistics.m[:, c], axis=1) - statistics.m[c, c]
        for c in range(problem.k)
    ]
    return float(problem.weights @ fits + 0.5 * problem.ridge * np.trace(gram))


def population_gradient(problem: KGaussianMixture, point: Point, *, rule: Rule) -> Point:
    r"""Gradient of the population loss with its ridge (BGHJ (5.12)).

    .. math:: \nabla_c \Phi = -p_c \mu_c + \sum_a p_a E[\pi_{Y_a}(c) Y_a] + \beta x^c,

    with :math:`E[\pi_{Y_a}(c) Z] = \frac1\lambda \sum_b (K_a)_{cb} x^b` by parts, where
    :math:`K_a = \mathrm{diag}(P^a) - E \pi\pi^T`.

    Parameters
    ----------
    problem : KGaussianMixture
        The mixture; its ridge :math:`\beta` is that of the loss.
    point : Point
        ``x`` of shape (k, d).
    rule : Rule
        Quadrature for N(0, I_k).

    Returns
    -------
    Point
        Row c of its ``x`` is :math:`\nabla_c \Phi`.
    """
    moments = problem.moments(problem.statistics(point), rule=rule)
    response = np.tensordot(problem.weights, moments.response, axes=1) / problem.precision
    pull = (problem.weights[:, None] * moments.mean).T - np.diag(problem.weights)
    return Point(pull @ problem.means + response @ point.x + problem.ridge * point.x)


def probability_correction(problem: KGaussianMixture, statistics: Statistics) -> Array:
    r"""First correction to the class probabilities at large precision (BGHJ Lemma 5.11).

    .. math::

        P^c_a = \overline\pi_c(a) + \frac1\lambda \frac{\overline\pi_c(a)}2 \Big[ R_{aa}
          - 2 (R \overline\pi_c)_a - \sum_b \overline\pi_c(b) R_{bb}
          + 2\, \overline\pi_c^T R\, \overline\pi_c \Big] + O(\lambda^{-2}),

    half the Laplacian of the softmax for the covariance R of the logits times lambda.

    Parameters
    ----------
    problem : KGaussianMixture
        Its precision is not used.
    statistics : Statistics
        Shapes (k, k); m are the logits, m and R_perp together give R.

    Returns
    -------
    ndarray, shape (k, k)
        Entry (c, a) is the coefficient of 1 / lambda.
    """
    statistics = checked(problem, statistics, single=True)
    parallel = problem.coordinates(statistics.m)
    gram = statistics.R_perp + parallel @ parallel.T
    pi = softmax(statistics.m.T, axis=1)
    own = np.diag(gram)
    pulled = pi @ gram
    bracket = own - 2.0 * pulled - (pi @ own)[:, None]
    bracket += 2.0 * np.einsum("ca,ca->c", pulled, pi)[:, None]
    return np.asarray(0.5 * pi * bracket)


def parallel_coordinates(problem: KGaussianMixture, m: ArrayLike) -> Array:
    r"""Coordinates of the rows in the span of the means, with leading axes.

    Parameters
    ----------
    problem : KGaussianMixture
        Gives the means, of which the Gram matrix is all that enters.
    m : array_like, shape (..., k, k)
        Overlaps :math:`m_{ab} = x^a \cdot \mu_b` of the rows with the means.

    Returns
    -------
    ndarray, shape (..., k, k)
        Entry (..., a, i) is the i-th coordinate of row a in an orthonormal basis of the
        span; :meth:`~traindyn.problems.k_gmm.mixture.KGaussianMixture.coordinates` of each overlap
        matrix.
    """
    overlaps = _validate.finite("m", m)
    if overlaps.shape[-2:] != (problem.k, problem.k):
        raise ValueError(
            f"m must end in the axes {(problem.k, problem.k)}, got shape {overlaps.shape}"
        )
    inverse = solve_triangular(problem.rows, np.eye(problem.k), lower=True)
    return np.asarray(overlaps @ inverse.T)


def parallel_norms(problem: KGaussianMixture, m: ArrayLike) -> Array:
    r"""Length of the part of each row in the span of the means.

    Parameters
    ----------
    problem : KGaussianMixture
        Gives the Gram matrix :math:`\overline m` of the means.
    m : array_like, shape (..., k, k)
        Overlaps :math:`m_{ab} = x^a \cdot \mu_b` of the rows with the means.

    Returns
    -------
    ndarray, shape (..., k)
        :math:`|P x^c| = \sqrt{(m \overline m^{-1} m^T)_{cc}}`, which BGHJ Proposition 5.1 bounds
        from below.

    Examples
    --------
    >>> from companion.alignment.training_dynamics.dynamics import parallel_norms
    >>> from traindyn.problems import KGaussianMixture
    >>> problem = KGaussianMixture.orthonormal(2, 20, precision=10.0, ridge=0.1)
    >>> parallel_norms(problem, [[3.0, 4.0], [0.0, 1.0]])
    array([5., 1.])
    """
    return np.asarray(np.linalg.norm(parallel_coordinates(problem, m), axis=-1))


def total_norm(problem: KGaussianMixture, statistics: Statistics) -> Array:
    r"""Length of all parameters together, :math:`(\sum_c |x^c|^2)^{1/2}`.

    Parameters
    ----------
    problem : KGaussianMixture
        Gives the Gram matrix of the means.
    statistics : Statistics
        Leading axes allowed.

    Returns
    -------
    ndarray
        Of the shape of the leading axes.
    """
    statistics = checked(problem, statistics)
    parallel = parallel_coordinates(problem, statistics.m)
    squares = np.sum(parallel**2, axis=(-2, -1))
    return np.asarray(np.sqrt(squares + np.trace(statistics.R_perp, axis1=-2, axis2=-1)))


def distance(problem: KGaussianMixture, first: Statistics, second: Statistics) -> Array:
    r"""Distance in which the limit dynamics contracts at rate beta, whatever the means.

    Parameters
    ----------
    problem : KGaussianMixture
        Gives the Gram matrix of the means.
    first, second : Statistics
        With equal or broadcastable leading axes.

    Returns
    -------
    ndarray
        :math:`(|P_1 - P_2|_F^2 + |R^\perp_1 - R^\perp_2|_F^2)^{1/2}` with P the coordinates of
        the rows in the span of the means. There the limit dynamics is the gradient flow of
        a beta-strongly convex function.
    """
    first = checked(problem, first, name="first")
    second = checked(problem, second, name="second")
    parallel = parallel_coordinates(problem, first.m - second.m)
    orthogonal = first.R_perp - second.R_perp
    squares = np.sum(parallel**2, axis=(-2, -1)) + np.sum(orthogonal**2, axis=(-2, -1))
    return np.asarray(np.sqrt(squares))


def drift_gap(problem: KGaussianMixture, path: Statistics, *, rule: Rule, c_delta: float) -> Array:
    """Distance between the drifts at finite and at infinite precision, along a path.

    With G its largest value along the path at finite precision, that path is at time t within
    G t of the limit from the same start (BGHJ Corollary 5.12), as the limit dynamics contracts.

    Parameters
    ----------
    problem : KGaussianMixture
        Of finite precision, which the limit drift ignores.
    path : Statistics
        With one leading axis, shapes (T, k, k).
    rule : Rule
        Quadrature for N(0, I_k).
    c_delta : float
        Limit of ``step_size * dimension``, in the drift at finite precision only.

    Returns
    -------
    ndarray, shape (T,)
        In the norm of :func:`distance`.
    """
    path = checked(problem, path, name="path")
    if path.m.ndim != 3:
        raise ValueError(f"path must have one leading axis, got path.m of shape {path.m.shape}")
    seen = [Statistics(m, R_perp) for m, R_perp in zip(*path, strict=True)]
    return np.array(
        [
            distance(problem, problem.drift(u, rule=rule, c_delta=c_delta), problem.limit_drift(u))
            for u in seen
        ]
    )


def confinement_radius(
    problem: KGaussianMixture, statistics: Statistics, *, c_delta: float
) -> float:
    r"""Radius of a ball that the effective dynamics never leaves, for every precision.

    The loss without its ridge is convex in x, at least 0, and log k at the origin, so
    :math:`x \cdot \nabla \ge -\log k`; the corrector adds at most
    :math:`2 c_\delta / \lambda` to the speed of :math:`|x|^2`. Hence

    .. math:: \frac{d}{dt} |x|^2 \le -2 \beta |x|^2 + 2 \log k + 2 c_\delta / \lambda .

    Parameters
    ----------
    problem : KGaussianMixture
        Gives k, the precision :math:`\lambda` and the ridge :math:`\beta`.
    statistics : Statistics
        Where the dynamics starts.
    c_delta : float
        Limit of ``step_size * dimension``, non-negative.

    Returns
    -------
    float
        Bound on :math:`|x| = (\sum_c |x^c|^2)^{1/2}` at all times, an explicit form of the
        radius L of BGHJ Lemma 5.9 and Proposition 5.1.
    """
    statistics = checked(problem, statistics, single=True)
    c_delta = _validate.non_negative("c_delta", c_delta)
    parallel = problem.coordinates(statistics.m)
    start = float(np.sum(parallel**2) + np.trace(statistics.R_perp))
    level = (np.log(problem.k) + c_delta / problem.precision) / problem.ridge
    return float(np.sqrt(max(start, level)))


def one_step(
    problem: KGaussianMixture, point: Point, sample: Sample, *, step_size: float
) -> Statistics:
    """Statistics after one step of SGD from one point, for each of many draws.

    Parameters
    ----------
    problem : KGaussianMixture
        SGD descends its loss with the ridge.
    point : Point
        Where every step starts.
    sample : Sample
        One step is taken on each of its n draws.
    step_size : float
        Positive, not multiplied by the dimension.

    Returns
    -------
    Statistics
        With a leading axis over draws: shapes (n, k, k).
    """
    step_size = _validate.positive("step_size", step_size)
    residual = problem.residual(point, sample)
    before = problem.statistics(point)
    along = sample.inputs[:, problem.support] @ problem.rows.T
    outside = np.array(sample.inputs)
    outside[:, problem.support] = 0.0
    xi = outside @ point.x.T
    keep = 1.0 - step_size * problem.ridge
    move = step_size * residual
    m = keep * before.m - move[:, :, None] * along[:, None, :]
    cross = move[:, :, None] * xi[:, None, :]
    length = np.einsum("ni,ni->n", outside, outside)
    R_perp = keep**2 * before.R_perp - keep * (cross + np.swapaxes(cross, 1, 2))
    R_perp += length[:, None, None] * move[:, :, None] * move[:, None, :]
    return Statistics(m, R_perp)


def volatility(
    problem: KGaussianMixture, statistics: Statistics, *, rule: Rule, c_delta: float
) -> Array:
    r"""Covariance of one step of the statistics, in units of ``step_size**2``.

    In high dimension a step moves m by :math:`-\delta\, r (Y \cdot \mu)^T` and
    :math:`R^\perp` by :math:`-\delta (r \xi^T + \xi r^T) + \delta^2 (d / \lambda) r r^T`, up to
    what is not random, with :math:`r = \pi - y` and :math:`\xi = x^\perp \cdot Z`. Summed
    over the steps of a unit of time the covariance is :math:`\delta` times the matrix
    returned: it vanishes in the limit (:math:`\Sigma = 0` in BGHJ Theorem 5.5), and sets the
    size of the fluctuations before it.

    Parameters
    ----------
    problem : KGaussianMixture
        The mixture; its ridge, which is not random, does not enter.
    statistics : Statistics
        Where the step starts, shapes (k, k).
    rule : Rule
        Quadrature for N(0, I_{2k}): noise along the means, and along the rows outside.
    c_delta : float
        Limit of step_size * dimension.

    Returns
    -------
    ndarray, shape (n, n)
        With n = k^2 + k (k + 1) / 2: the entries of m, then the upper triangle of R_perp,
        both row by row.
    """
    statistics = checked(problem, statistics, single=True)
    k = problem.k
    c_delta = _validate.non_negative("c_delta", c_delta)
    if rule.dim != 2 * k:
        raise ValueError(f"rule must have dimension 2 k = {2 * k}, got {rule.dim}")
    nodes = rule.nodes / np.sqrt(problem.precision)
    parallel = problem.coordinates(statistics.m)
    xi = nodes[:, k:] @ symmetric_sqrt(statistics.R_perp, scale=1.0)
    upper = np.triu_indices(k)
    mean, second = 0.0, 0.0
    for label, weight in enumerate(problem.weights):
        inputs = problem.rows[label] + nodes[:, :k]
        r = softmax(inputs @ parallel.T + xi, axis=1)
        r[:, label] -= 1.0
        m = -r[:, :, None] * (inputs @ problem.rows.T)[:, None, :]
        cross = r[:, :, None] * xi[:, None, :]
        R = -cross - np.swapaxes(cross, 1, 2)
        R += (c_delta / problem.precision) * r[:, :, None] * r[:, None, :]
        moved = np.hstack([m.reshape(len(r), -1), R[:, *upper]])
        weighted = rule.weights[:, None] * moved
        mean = mean + weight * weighted.sum(axis=0)
        second = second + weight * (weighted.T @ moved)
    return np.asarray(second - np.outer(mean, mean))


def initial_covariance(problem: KGaussianMixture) -> Array:
    r"""Covariance of the statistics of the random start, times the dimension.

    In high dimension :math:`\sqrt d\, m` is Gaussian with the Gram matrix of the means for
    each row, and :math:`\sqrt d (R^\perp - I)` has the covariance of a Wishart matrix,
    :math:`\delta_{ac} \delta_{bd} + \delta_{ad} \delta_{bc}`.

    Parameters
    ----------
    problem : KGaussianMixture
        Gives k and the Gram matrix of the means; its noise does not enter.

    Returns
    -------
    ndarray, shape (n, n)
        In the coordinates of :func:`volatility`.
    """
    k = problem.k
    size, rows = k * k, np.triu_indices(k)
    covariance = np.zeros((size + rows[0].size,) * 2)
    covariance[:size, :size] = np.kron(np.eye(k), problem.gram)
    off_diagonal = rows[0] != rows[1]
    covariance[size:, size:] = np.diag(np.where(off_diagonal, 1.0, 2.0))
    return covariance
