r"""The kernels of mean-field theory, measured on one run of gradient descent.

Correlations are averages over samples or coordinates. Responses are derivatives of the run: the
tangent of the whole recursion to a push in a random direction, projected back on the push. With
signs :math:`g_{il} = \pm 1`, a push :math:`g` of the preactivations at step s gives

.. math:: R_F(t, s) \approx \frac1n \sum_i \partial F(x_i, t)\, g_i^T ,

and a push of the neurons after step s by signs :math:`q` over :math:`\sqrt d` gives
:math:`R(t, s) \approx \partial \Theta(t)^T q`, both in the mean over the signs and up to
:math:`O(d^{-1/2})`. The kernels are those of :mod:`traindyn.dmft.kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.problems.multi_index import Data, MultiIndex

__all__ = ["Measured", "measure"]


class Measured(NamedTuple):
    """Kernels and preactivations of one run of T steps, with P probes.

    Attributes
    ----------
    correlation : ndarray, shape (T + 1, T + 1, m, m)
        Products of neurons at two times, C(t, s).
    overlap : ndarray, shape (T + 1, m, k)
        ``C(t, *)``.
    force_correlation : ndarray, shape (T + 1, T + 1, m, m)
        C_F(t, s).
    response, force_response : ndarray, shape (T + 1, P, m, m)
        R(t, s) and R_F(t, s) at the steps s that were probed.
    preactivations, forces : ndarray, shape (T + 1, n, m)
        V(t) and F(t) of every training sample.
    neurons : ndarray, shape (T + 1, d, m)
    """

    correlation: Array
    overlap: Array
    force_correlation: Array
    response: Array
    force_response: Array
    preactivations: Array
    forces: Array
    neurons: Array


def measure(
    problem: MultiIndex,
    data: Data,
    start: ArrayLike,
    steps: int,
    *,
    step_size: float,
    probes: Sequence[int] = (),
    rng: RNG | None = None,
) -> Measured:
    """Run gradient descent and measure its kernels.

    Parameters
    ----------
    problem : MultiIndex
        With probes, its activation must have a second derivative.
    data : Data
        As from ``problem.sample``.
    start : array_like, shape (d, m)
        Neurons where the run begins, left unchanged.
    steps : int
        Number T of gradient steps, at least 0.
    step_size : float
        Positive; the neurons move by ``-step_size X^T F / n``.
    probes : sequence of int, shape (P,)
        Steps s, below T, at which the run is pushed.
    rng : int, SeedSequence or Generator, optional
        Of the signs of the pushes; required with probes.

    Raises
    ------
    ValueError
        If an argument is out of range, or responses are asked for where the activation has no
        second derivative.

    Examples
    --------
    >>> from companion.phase_transitions.mean_field import measure
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> problem = MultiIndex()
    >>> data = problem.sample(400, 100, rng=0)
    >>> start = problem.initial(100, rng=1)
    >>> found = measure(problem, data, start, 3, step_size=0.5, probes=[1], rng=2)
    >>> found.response[:, 0, 0, 0].round(2)
    array([0.  , 0.  , 1.  , 0.93])
    """
    x = _validate.finite("data.inputs", data.inputs, shape=(None, None))
    (n, d), m = x.shape, problem.width
    y = _validate.finite("data.labels", data.labels, shape=(n,))
    theta = _validate.finite("start", start, shape=(d, m)).copy()
    total = _validate.integer("steps", steps, least=0) + 1
    rate = _validate.positive("step_size", step_size) / n
    listed = _validate.listed("probes", probes)
    pushed = np.array([_validate.integer("probes", s, least=0, most=total - 2) for s in listed])
    p = pushed.size
    if p and rng is None:
        raise ValueError("rng must be given with probes, got None")
    if p:
        problem.activation.second("responses")
    # Without probes nothing is drawn.
    generator = _validate.generator("rng", 0 if rng is None else rng)
    fields = generator.choice([-1.0, 1.0], size=(n, p, m))
    pushes = generator.choice([-1.0, 1.0], size=(d, p, m)) / np.sqrt(d)
    # Tangents to the pushes of the preactivations, then to those of the neurons.
    tangents = np.zeros((d, 2 * p, m))
    path, hidden, forces = np.empty((total, d, m)), np.empty((total, n, m)), np.empty((total, n, m))
    response, force_response = np.zeros((2, total, p, m, m))
    for t in range(total):
        path[t], hidden[t] = theta, x @ theta
        forces[t] = problem.force(hidden[t], y)[1]
        theta -= rate * (x.T @ forces[t])
        if p == 0:
            continue
        response[t] = np.einsum("dpj,dpl->pjl", tangents[:, p:], pushes)
        moved = (x @ tangents.reshape(d, -1)).reshape(n, 2 * p, m)
        moved[:, :p] += fields * (pushed == t)[:, None]
        turned = np.einsum("njl,npl->npj", problem.hessian_weights(hidden[t], y) / m, moved)
        force_response[t] = np.einsum("npj,npl->pjl", turned[:, :p], fields) / n
        tangents -= rate * (x.T @ turned.reshape(n, -1)).reshape(d, 2 * p, m)
        tangents[:, p:] += pushes * (pushed == t)[:, None]
    return Measured(
        correlation=np.einsum("tdj,sdl->tsjl", path, path, optimize=True),
        overlap=path[:, : problem.k].transpose(0, 2, 1).copy(),
        force_correlation=np.einsum("tnj,snl->tsjl", forces, forces, optimize=True) / n,
        response=response,
        force_response=force_response,
        preactivations=hidden,
        forces=forces,
        neurons=path,
    )
