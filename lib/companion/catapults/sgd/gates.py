r"""Networks of rectified linear units whose second layer is fixed: catapults made by gates alone.

.. math:: f(x) = m^{-1/2} \sum_k a_k\, (w_k \cdot x)_+ , \qquad a_k = \pm 1

(ZHU Figure 4.5). While no gate changes, the output is linear in the weights, the loss of one
example a parabola, and its critical step size that of the tangent kernel, exactly. The kernel of
one example is :math:`|x|^2 / m` times the number of its open gates: only closing gates lower it.
"""

from __future__ import annotations

from math import erfc, exp, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from traindyn import _validate
from traindyn._types import Array

__all__ = [
    "GateOrbit",
    "GateRun",
    "critical_probability",
    "gate_orbit",
    "train_one_by_one",
]


class GateRun(NamedTuple):
    """SGD with batches of one example.

    Attributes
    ----------
    losses : ndarray, shape (T + 1,)
        Mean squared residual of all examples.
    kernels : ndarray, shape (T + 1, n)
        Tangent kernel of every example with itself; its inverse is the critical step size.
    """

    losses: Array
    kernels: Array


def train_one_by_one(
    inputs: ArrayLike,
    labels: ArrayLike,
    order: ArrayLike,
    *,
    width: int,
    step_size: float,
    rng: int | np.random.SeedSequence | np.random.Generator,
) -> GateRun:
    r"""Train the first layer on one example after the other, from standard normal weights.

    A step on example j changes the preactivations :math:`z_i = W x_i` by
    :math:`-\frac{2\eta}{\sqrt m} e_j (x_i \cdot x_j)\, a \circ 1\{z_j > 0\}`, so no weights are
    kept and a step costs n m operations.

    Parameters
    ----------
    inputs : array_like, shape (n, d)
        At least one row.
    labels : array_like, shape (n,)
        Targets, to be subtracted from the outputs.
    order : array_like of int, shape (T,)
        Which example each step is on.
    width : int
        Number m of neurons.
    step_size : float
        Of the squared residual of the example.
    rng : int, SeedSequence or Generator
        Of the weights, then of the signs.

    Raises
    ------
    ValueError
        If shapes do not match, or `order` names an example that there is not.
    FloatingPointError
        If the loss overflows.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.catapults.sgd.gates import train_one_by_one
    >>> run = train_one_by_one(np.eye(2), [1.0, 1.0], [0, 1] * 9, width=50, step_size=1.0, rng=0)
    >>> bool(run.losses[-1] < 1e-3)
    True
    """
    x = _validate.finite("inputs", inputs, shape=(None, None))
    n, d = x.shape
    y = _validate.finite("labels", labels, shape=(n,))
    m = _validate.integer("width", width, least=1)
    eta = _validate.positive("step_size", step_size)
    if n == 0:
        raise ValueError(f"inputs must have at least one row, got shape {x.shape}")
    chosen = _validate.integers("order", order, least=0, most=n - 1, shape=(None,))
    generator = _validate.generator("rng", rng)
    z = x @ generator.standard_normal((m, d)).T
    signs = np.where(generator.random(m) < 0.5, 1.0, -1.0)
    gram, root = x @ x.T, np.sqrt(m)
    losses, open_gates = np.empty(chosen.size + 1), np.empty((chosen.size + 1, n))
    room = np.empty_like(z)
    for t in range(chosen.size + 1):
        gates = z > 0
        residuals = np.maximum(z, 0.0, out=room) @ signs / root - y
        losses[t], open_gates[t] = np.mean(residuals**2), np.count_nonzero(gates, axis=1)
        if not np.isfinite(losses[t]):
            raise FloatingPointError(f"loss left all bounds at step {t}; step_size = {eta:g}")
        if t < chosen.size:
            j = chosen[t]
            z -= np.outer(2 * eta / root * residuals[j] * gram[j], signs * gates[j], out=room)
    return GateRun(losses, open_gates * np.diag(gram) / m)


def critical_probability(step_size: ArrayLike, *, width: int, square: float) -> Array:
    r"""Return the probability that a step size is super-critical for a batch of one, at the start.

    An example with :math:`|x|^2 = s` has the critical step size :math:`m / (s N)`, with N open
    gates, binomial with mean m / 2.

    Parameters
    ----------
    step_size : array_like
        Of the squared residual.
    width : int
        Number m of neurons.
    square : float
        Squared length of the example.

    Returns
    -------
    ndarray
        Of the shape of `step_size`.

    Examples
    --------
    Whatever the step, a network of one neuron is as likely as not to have a closed gate:

    >>> from companion.catapults.sgd.gates import critical_probability
    >>> critical_probability([0.9, 1.1, 50.0], width=1, square=1.0).tolist()
    [0.0, 0.5, 0.5]
    """
    eta = _validate.finite("step_size", step_size)
    if np.any(eta <= 0):
        raise ValueError(f"step_size must be positive, got {eta.min():g}")
    m = _validate.integer("width", width, least=1)
    s = _validate.positive("square", square)
    return np.asarray(stats.binom.sf(np.floor(m / (s * eta)), m, 0.5))


class GateOrbit(NamedTuple):
    r"""Gradient descent on one unit input as the width grows, from a residual of order root m.

    Attributes
    ----------
    shifts : ndarray, shape (T + 1,)
        By how much the preactivations of open gates with :math:`a = 1` have come down.
    residuals : ndarray, shape (T + 1,)
        Over the root of m.
    kernels : ndarray, shape (T + 1,)
    """

    shifts: Array
    residuals: Array
    kernels: Array


def gate_orbit(residual: float, *, step_size: float, steps: int) -> GateOrbit:
    r"""Iterate the limit of gradient descent on one unit input: one number, and its extremes.

    With the cumulative shift s, M its largest value so far and N that of -s (at least zero), a
    gate with a = 1 is open while its first preactivation exceeds M, one with a = -1 while it
    exceeds N: a gate that has closed stays closed. For normal weights, with density
    :math:`\varphi` and tail Q,

    .. math::

        \epsilon = \epsilon_0 + \tfrac12 [\varphi(M) - \varphi(N)] - s K, \qquad
        K = \tfrac12 [Q(M) + Q(N)], \qquad s' = s + 2 \eta \epsilon ,

    where :math:`\epsilon` is the residual over the root of m.

    Parameters
    ----------
    residual : float
        At the start, over the root of m.
    step_size : float
        Of the squared residual; the critical one is two at the start.
    steps : int
        Number T of steps.

    Examples
    --------
    Above the critical step size gates close until the step size is below it:

    >>> from companion.catapults.sgd.gates import gate_orbit
    >>> low, high = (gate_orbit(1e-4, step_size=eta, steps=99).kernels[-1] for eta in (1.5, 2.5))
    >>> bool(low > 0.4999), bool(high < 1 / 2.5)
    (True, True)
    """
    start = _validate.number("residual", residual)
    eta = _validate.positive("step_size", step_size)
    count = _validate.integer("steps", steps, least=0)
    shift = most = least = 0.0
    rows = []
    for _ in range(count + 1):
        most, least = max(most, shift), max(least, -shift)
        kernel = (erfc(most / sqrt(2)) + erfc(least / sqrt(2))) / 4
        bend = (exp(-(most**2) / 2) - exp(-(least**2) / 2)) / sqrt(8 * pi)
        epsilon = start + bend - shift * kernel
        rows.append((shift, epsilon, kernel))
        shift += 2 * eta * epsilon
    return GateOrbit(*np.array(rows).T)
