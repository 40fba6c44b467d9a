"""Distances of the matrices of a network from their expectations (BGHJ Theorem 6.2)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from traindyn import _validate, gaussian
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.base import Matrix
from traindyn.problems.two_layer import Statistics, TwoLayerMixture, curvature
from traindyn.spectra.concentration import Distance, solve_distance

__all__ = ["network_distance"]

_NETWORK_NODES = 2**12


def network_distance(
    problem: TwoLayerMixture, statistics: Statistics, matrix: Matrix, *, rule: Rule | None = None
) -> Distance:
    r"""Limit of ``sqrt(alpha) |A - E A|`` for the full matrix of two layers (BGHJ Theorem 6.2).

    With :math:`a_i = v_i 1\{W_i \cdot X > 0\}`, the error e and the weight w of the matrix, the
    first layer has the weights :math:`w\, a a^T`; coordinate u of neuron i couples to the noise
    in neuron j with :math:`w\, a_i a_j u` and entry k of the second layer with
    :math:`w\, g_k a_j`, in the Hessian plus :math:`\delta_{kj}\, e\, 1\{W_j \cdot X > 0\}`.

    Parameters
    ----------
    problem : TwoLayerMixture
        Of finite precision; its dimension does not matter.
    statistics : Statistics
        Summary statistics of the fixed parameters.
    matrix : {"hessian", "g_matrix"}
        Which of the two A is.
    rule : Rule, optional
        Gaussian rule of the dimension ``d + rank(R_perp)`` of the embedded problem; a fixed
        Sobol rule of 2**12 nodes unless given. With n nodes and centroids together and r for
        that dimension it takes ``8 n K^2 (r + 1)`` bytes.

    Returns
    -------
    Distance
        As :func:`~traindyn.spectra.concentration.large_sample_distance`.

    Raises
    ------
    ValueError
        If the precision is infinite, the matrix does not exist or `rule` does not have the
        dimension of the embedded problem.
    """
    precision = _validate.positive("problem.precision", problem.precision)
    small, point = problem.embed(statistics)
    chosen = gaussian.sobol(small.dimension, _NETWORK_NODES, rng=0) if rule is None else rule
    if chosen.dim != small.dimension:
        raise ValueError(
            f"rule must have the dimension {small.dimension} of the embedded problem, "
            f"got {chosen.dim}"
        )
    beside = np.zeros((len(small.centroids), small.dimension - small.signal))
    means = np.hstack([small.centroids, beside])
    inputs = (means[:, None] + chosen.nodes / np.sqrt(precision)).reshape(-1, small.dimension)
    labels = np.repeat(small.labels, chosen.size)
    z = inputs @ point.W.T
    active, hidden = (z > 0).astype(np.float64), np.maximum(z, 0.0)
    output = hidden @ point.v
    w, a = curvature.weight(matrix, output, labels), point.v * active
    first = (w[:, None] * a)[:, :, None] * inputs[:, None, :]
    seen = np.hstack([first.reshape(len(w), -1), w[:, None] * hidden])
    couplings = seen[:, :, None] * a[:, None, :]
    if matrix == "hessian":
        own = (expit(output) - labels)[:, None] * active
        couplings[:, -small.width :] += own[:, :, None] * np.eye(small.width)
    masses = np.outer(small.weights, chosen.weights).ravel()
    flat = couplings.reshape(len(w), -1)
    moments = ((flat.T * masses) @ flat / precision).reshape(couplings.shape[1:] * 2)

    def on_span(resolvent: Array) -> float:
        total = np.einsum("sbtc,bc->st", moments, resolvent)
        return float(np.linalg.eigvalsh((total + total.T) / 2)[-1])

    return solve_distance(
        masses, w[:, None, None] * a[:, :, None] * a[:, None, :], precision, on_span
    )
