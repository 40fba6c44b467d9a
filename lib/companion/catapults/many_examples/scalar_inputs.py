r"""Many examples with scalar inputs: two independent copies of the one-example map.

The two-layer network with frozen gates and d = 1,
:math:`f(x) = m^{-1/2} \sum_k v_k u_k x\, 1\{u_{0,k} x \ge 0\}`, is linear in x on either side of
zero. Let p be the inputs of one sign. There :math:`f = a x`, the residual along p is that of
*one* example with input :math:`|p|` and label :math:`p \cdot y / |p|`, and the rest of the
residual never moves. So each sign has its own kernel eigenvalue, critical step size and catapult
(ZHU, Theorem 3.3.6, Appendices B.10 and B.11).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.catapults.maps import Orbit, iterate

__all__ = ["SignClass", "kernel_step", "sign_classes", "top_kernel_scale"]


class SignClass(NamedTuple):
    """The inputs of one sign, as one example.

    Attributes
    ----------
    direction : ndarray, shape (n,)
        The inputs, zero where the sign is the other: an eigenvector of the tangent kernel, whose
        rank is at most two (ZHU Proposition B.11.1).
    residual, kernel, coupling, label : float
        Of the equivalent example.
    floor : float
        Loss that training cannot reach, half the squared residual off the direction (ZHU
        Proposition B.11.3).
    """

    direction: Array
    residual: float
    kernel: float
    coupling: float
    label: float
    floor: float

    def run(self, *, step_size: float, steps: int) -> Orbit:
        """Run gradient descent on this sign (:func:`traindyn.catapults.maps.iterate`)."""
        return iterate(
            self.residual,
            self.kernel,
            step_size=step_size,
            coupling=self.coupling,
            label=self.label,
            steps=steps,
        )


def sign_classes(
    inputs: ArrayLike, labels: ArrayLike, first_layer: ArrayLike, second_layer: ArrayLike
) -> tuple[SignClass, SignClass]:
    """Return the examples that the inputs of either sign amount to.

    Parameters
    ----------
    inputs, labels : array_like, shape (n,)
        Both signs must occur.
    first_layer, second_layer : array_like, shape (m,)
        Weights at the start; the gates are frozen there.

    Returns
    -------
    positive, negative : SignClass
        Losses are half the sums of squares.

    Raises
    ------
    ValueError
        If shapes do not match or a sign is missing.

    Examples
    --------
    >>> from companion.catapults.many_examples.scalar_inputs import sign_classes
    >>> both = sign_classes([2.0, -1.0, 1.0], [1.0, 0.0, 1.0], [1.0, -1.0], [1.0, 1.0])
    >>> [(round(each.kernel, 6), round(each.floor, 6)) for each in both]
    [(5.0, 0.1), (1.0, 0.0)]
    """
    x = _validate.finite("inputs", inputs, shape=(None,))
    y = _validate.finite("labels", labels, shape=(x.size,))
    u = _validate.finite("first_layer", first_layer, shape=(None,))
    v = _validate.finite("second_layer", second_layer, shape=(u.size,))
    if not (np.any(x > 0) and np.any(x < 0)):
        raise ValueError("inputs must have both signs, got one only")
    found = []
    for sign in (1.0, -1.0):
        side, gates = sign * x > 0, sign * u >= 0
        p = np.where(side, x, 0.0)
        length = float(np.sqrt(p @ p))
        slope = float(v[gates] @ u[gates]) / np.sqrt(u.size)
        label = float(p @ y) / length
        found.append(
            SignClass(
                direction=p,
                residual=slope * length - label,
                kernel=length**2 * float(u[gates] @ u[gates] + v[gates] @ v[gates]) / u.size,
                coupling=length**2 / u.size,
                label=label,
                floor=max(0.0, (float(y[side] @ y[side]) - label**2) / 2),
            )
        )
    return found[0], found[1]


def kernel_step(
    residuals: ArrayLike,
    kernel: ArrayLike,
    inputs: ArrayLike,
    labels: ArrayLike,
    *,
    width: int,
    step_size: float,
) -> tuple[Array, Array]:
    r"""Advance residuals and kernel matrix by one step (ZHU (B.7), (B.8)).

    Parameters
    ----------
    residuals, inputs, labels : array_like, shape (n,)
        e before the step, x and y of each example, :math:`e = f(x) - y`.
    kernel : array_like, shape (n, n)
        Before the step, symmetric.
    width : int
        Number m of neurons.
    step_size : float
        Of the loss :math:`\frac12 \sum_i e_i^2`.

    Returns
    -------
    residuals : ndarray, shape (n,)
    kernel : ndarray, shape (n, n)

    Raises
    ------
    ValueError
        If an argument is out of range or shapes do not match.
    """
    e = _validate.finite("residuals", residuals, shape=(None,))
    x = _validate.finite("inputs", inputs, shape=(e.size,))
    y = _validate.finite("labels", labels, shape=(e.size,))
    before = _validate.symmetric("kernel", kernel, size=e.size)
    eta = _validate.positive("step_size", step_size)
    m = _validate.integer("width", width, least=1)
    output_change = np.zeros_like(before)
    after = before.copy()
    for side in (x >= 0, x < 0):
        p, own = np.where(side, x, 0.0), np.where(side, e, 0.0)
        product = float(own @ (e + y))
        outer = np.outer(p, p)
        output_change += eta**2 / m * product * outer
        after += (eta**2 * float(own @ before @ own) - 4 * eta * product) / m * outer
    return e - eta * before @ e + output_change @ e, after


def top_kernel_scale(inputs: ArrayLike) -> float:
    r"""Return M of ZHU, Proposition B.11.2, around which the top eigenvalue concentrates.

    The printed expression is the larger of :math:`\sum x_i^2` over the inputs of either sign: at
    the start the eigenvalues are that times an average of :math:`u_k^2 + v_k^2`, whose mean, over
    half of the neurons, is one.

    Parameters
    ----------
    inputs : array_like, shape (n,)
        One number for each example, of any sign.

    Examples
    --------
    >>> from companion.catapults.many_examples.scalar_inputs import top_kernel_scale
    >>> top_kernel_scale([2.0, -1.0, 1.0])
    5.0
    """
    x = _validate.finite("inputs", inputs, shape=(None,))
    return float(max(x[x >= 0] @ x[x >= 0], x[x < 0] @ x[x < 0]))
