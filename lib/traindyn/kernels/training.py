r"""A network and its linearisation, trained side by side.

Both descend :math:`\frac{1}{2n} |y - f|^2` from the same parameters, by gradient flow or by
gradient descent with the same step (MDL Equation 1.1 of chapter 9 and its linearisation). The
linearised one needs no integration: with :math:`K_0 = Df_0 Df_0^T` its outputs are
:class:`~traindyn.kernels.KernelFlow`, and its parameters
:math:`\bar\theta_t = \theta_0 + Df_0^T a_t`.

At infinite width both are the same, with the limiting kernel and a Gaussian start: the law of the
outputs over initialisations is :func:`wide_ensemble`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from traindyn import _validate
from traindyn.activations import Activation
from traindyn.kernels.dual import Array
from traindyn.kernels.flow import KernelFlow
from traindyn.kernels.network import Pullback
from traindyn.kernels.recursion import infinite_width
from traindyn.trajectory import Trajectory, whole_steps

__all__ = ["Comparison", "Ensemble", "Model", "compare", "rectifier_drift", "wide_ensemble"]


class Model(Protocol):
    """A network with its parameters in one vector and its outputs in another."""

    @property
    def size(self) -> int:
        """Number of parameters."""

    def outputs(self, parameters: ArrayLike, x: ArrayLike) -> Array:
        """Return the outputs at the inputs."""

    def vjp(self, parameters: ArrayLike, x: ArrayLike) -> tuple[Array, Pullback]:
        """Return outputs, and ``Df^T`` as a function of a vector."""

    def tangent_kernel(
        self, parameters: ArrayLike, x: ArrayLike, other: ArrayLike | None = None
    ) -> Array:
        """Product of two Jacobians, ``Df(x) Df(other)^T``."""


class Comparison(NamedTuple):
    r"""A network and its linearisation at each time.

    Attributes
    ----------
    outputs, linearised : ndarray, shape (T, N)
        On the training set.
    distance, linearised_distance : ndarray, shape (T,)
        :math:`|\theta_t - \theta_0|` and :math:`|\bar\theta_t - \theta_0|`.
    deviation : ndarray, shape (T,)
        :math:`|\theta_t - \bar\theta_t|`.
    fresh, linearised_fresh : ndarray, shape (T, q)
        Outputs at the fresh inputs.
    """

    outputs: Array
    linearised: Array
    distance: Array
    linearised_distance: Array
    deviation: Array
    fresh: Array
    linearised_fresh: Array


class Parameters(NamedTuple):
    """Snapshots.

    Attributes
    ----------
    parameters : ndarray, shape (T, p)
    """

    parameters: Array


def compare(
    model: Model,
    start: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    times: ArrayLike,
    *,
    step_size: float | None = None,
    fresh: ArrayLike | None = None,
    keep: bool = False,
    rtol: float = 1e-8,
    atol: float = 1e-10,
) -> Trajectory[Comparison]:
    r"""Train a network and its linearisation from the same start.

    Parameters
    ----------
    model : Model
        Such as :class:`~traindyn.kernels.Network` or :class:`~traindyn.kernels.TwoLayer`.
    start : array_like, shape (p,)
        Parameters :math:`\theta_0`.
    x : array_like, shape (n, d)
        Training inputs.
    y : array_like, shape (N,)
        Targets, one per output.
    times : array_like, shape (T,)
        Increasing and non-negative.
    step_size : float, optional
        Of gradient descent for both; gradient flow for both unless given. Give one where the
        activation has a kink: the solver of the flow would stop at each that a neuron crosses.
    fresh : array_like, shape (q, d), optional
        Inputs outside the training set.
    keep : bool, default False
        Keep the parameters at each time as snapshots.
    rtol, atol : float
        Tolerances of the flow's solver (Dormand-Prince of order 8), on the way from the start.

    Returns
    -------
    Trajectory
        Of :class:`Comparison`.

    Raises
    ------
    ValueError
        If the shapes disagree.
    FloatingPointError
        If the network's training diverges.
    """
    _validate.providing("model", model, "size", "outputs", "vjp", "tangent_kernel")
    inputs = _validate.finite("x", x, shape=(None, None))
    theta = _validate.finite("start", start, shape=(model.size,))
    tolerances = _validate.positive("rtol", rtol), _validate.positive("atol", atol)
    grid = _validate.increasing("times", times)
    if step_size is not None:
        step_size = _validate.positive("step_size", step_size)
        grid = np.asarray(whole_steps(grid, step_size) * step_size, dtype=np.float64)
    others = inputs[:0] if fresh is None else _validate.finite("fresh", fresh, shape=(None, None))
    before, pullback = model.vjp(theta, inputs)
    targets = _validate.finite("y", y, shape=before.shape)
    samples = inputs.shape[0]

    linear = KernelFlow(
        model.tangent_kernel(theta, inputs), targets, before, samples=samples, step_size=step_size
    )
    coefficients = linear.coefficients(grid)
    cross: Array = np.empty((0, targets.size))
    if others.size:
        cross = model.tangent_kernel(theta, others, inputs)
    start_fresh = model.outputs(theta, others) if others.size else np.empty(0)

    def velocity(parameters: Array) -> Array:
        outputs, pull = model.vjp(parameters, inputs)
        return pull((targets - outputs) / samples)

    rows: list[tuple[Any, ...]] = []
    kept = []
    path = _flow(velocity, theta, grid, *tolerances) if step_size is None else None
    current, done = theta, 0
    for index, time in enumerate(grid):
        if path is not None:
            current = path[index]
        else:
            assert step_size is not None
            steps = round(time / step_size) - done
            current = _descend(velocity, current, steps, step_size)
            done += steps
        linearised = theta + pullback(coefficients[index])
        rows.append(
            (
                model.outputs(current, inputs),
                np.linalg.norm(current - theta),
                np.linalg.norm(current - linearised),
                model.outputs(current, others) if others.size else np.empty(0),
            )
        )
        if keep:
            kept.append(current)
    outputs, distance, deviation, outside = (np.stack(column) for column in zip(*rows))
    statistics = Comparison(
        outputs=outputs,
        linearised=linear.outputs(grid),
        distance=distance,
        linearised_distance=linear.distance(grid),
        deviation=deviation,
        fresh=outside,
        linearised_fresh=linear.elsewhere(grid, cross, start_fresh),
    )
    return Trajectory(
        grid,
        statistics,
        step_size=step_size,
        snapshots=Parameters(np.stack(kept)) if keep else None,
    )


class Ensemble(NamedTuple):
    r"""Outputs of infinitely wide networks in training: a Gaussian process at each time.

    Attributes
    ----------
    mean : ndarray, shape (T, q)
    covariance : ndarray, shape (T, q, q)
    response : ndarray, shape (T, q, n)
        :math:`A_t`: a network that starts from the outputs :math:`f_0` has
        :math:`f_t(x) = f_0(x) + A_t(x) (y - f_0(X))`.
    """

    mean: Array
    covariance: Array
    response: Array


def wide_ensemble(
    x: ArrayLike,
    y: ArrayLike,
    fresh: ArrayLike,
    times: ArrayLike,
    *,
    depth: int,
    activation: Activation,
    bias: float = 0.0,
    step_size: float | None = None,
    last_layer: bool = False,
) -> Ensemble:
    r"""Mean and covariance over initialisations of infinitely wide networks in training.

    The kernel stays :math:`K = K_\infty^{(L)}` and the start is Gaussian of covariance
    :math:`\Sigma = \Sigma^{(L)}`, so with :math:`A_t = K(x, X) K^{-1} (1 - e^{-t K / n})`

    .. math:: E f_t(x) = A_t y, \qquad
              \mathrm{Cov} f_t = \Sigma - A_t \Sigma(X, x) - \Sigma(x, X) A_t^T
              + A_t \Sigma(X, X) A_t^T .

    Parameters
    ----------
    x : array_like, shape (n, n_0)
        Training inputs.
    y : array_like, shape (n,)
        Targets.
    fresh : array_like, shape (q, n_0)
        Inputs at which the outputs are wanted.
    times : array_like, shape (T,)
        Increasing and non-negative; the last may be infinite.
    depth, activation, bias
        Of the networks, as for :func:`~traindyn.kernels.infinite_width`.
    step_size : float, optional
        Of gradient descent; gradient flow unless given.
    last_layer : bool, default False
        Train the last layer alone, with kernel :math:`\Sigma`: at infinite time that is the
        posterior of the Gaussian process, without noise.

    Returns
    -------
    Ensemble

    Raises
    ------
    ValueError
        If the shapes disagree or an argument is out of range.

    Examples
    --------
    At a training input nothing is left of the start:

    >>> from traindyn.activations import ERF
    >>> found = wide_ensemble([[1.0], [2.0]], [1.0, 0.0], [[2.0]], [0.0, np.inf], depth=2,
    ...     activation=ERF, bias=1.0)
    >>> abs(found.mean.ravel().round(9)).tolist()
    [0.0, 0.0]
    >>> abs(found.covariance.ravel().round(3)).tolist()
    [1.726, 0.0]
    """
    inputs = _validate.finite("x", x, shape=(None, None))
    targets = _validate.finite("y", y, shape=(inputs.shape[0],))
    others = _validate.finite("fresh", fresh, shape=(None, inputs.shape[1]))
    n = inputs.shape[0]
    limit = infinite_width(
        np.concatenate([inputs, others]), depth=depth, activation=activation, bias=bias
    )
    start = limit.nngp
    kernel = start if last_layer else limit.ntk
    # Linear in the residual at the start: one column of the response for each unit residual.
    response = np.stack(
        [
            KernelFlow(kernel[:n, :n], unit, step_size=step_size).elsewhere(times, kernel[n:, :n])
            for unit in np.eye(n)
        ],
        axis=-1,
    )
    mixed = response @ start[:n, n:]
    covariance = (
        start[n:, n:]
        - mixed
        - np.swapaxes(mixed, 1, 2)
        + response @ start[:n, :n] @ np.swapaxes(response, 1, 2)
    )
    return Ensemble(response @ targets, covariance, response)


def rectifier_drift(own: float, cross: float, coefficient: float) -> tuple[float, float]:
    r"""Change of the tangent kernel of a wide ReLU network in training, times root of the width.

    One hidden layer, trained from zero output on two inputs with opposite targets. Put
    :math:`\kappa = x \cdot x' / n_0 + \beta^2`, with :math:`\kappa_0` on the diagonal, and let a be
    the dual coefficient of the first input, :math:`-a` that of the other. Take a neuron of output
    weight v that answers the second input. Where its pre-activation at the first is just below
    zero it moves at the speed :math:`-v \kappa \dot a / \sqrt n`, just above zero at
    :math:`v (\kappa_0 - \kappa) \dot a / \sqrt n`. For :math:`v > 0` both lead away from zero, and
    no neuron is switched. For :math:`v < 0` both lead to zero, where the neuron stays, on for a
    share :math:`\kappa / \kappa_0` of the time. One that does not answer the second input can only
    be switched off. With the Gaussian density at zero,

    .. math:: \sqrt n\, E\,\Delta K(x, x') \to \frac{\kappa\, a\, (2 \kappa - \kappa_0)}
              {\pi \sqrt{\kappa_0}}, \qquad
              \sqrt n\, E\,\Delta K(x, x) \to -\frac{a \sqrt{\kappa_0}\, (\kappa_0 - \kappa)}{\pi} .

    Parameters
    ----------
    own, cross : float
        :math:`\kappa_0` and :math:`\kappa`, with :math:`0 \le \kappa < \kappa_0`.
    coefficient : float
        a, as :meth:`KernelFlow.coefficients` gives it with the limiting kernel.

    Returns
    -------
    diagonal, off_diagonal : float

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> diagonal, off_diagonal = rectifier_drift(1.0, 0.5, 2.0)
    >>> round(diagonal * np.pi, 9), off_diagonal
    (-1.0, 0.0)
    """
    own = _validate.positive("own", own)
    cross = _validate.number("cross", cross)
    if not 0 <= cross < own:
        raise ValueError(f"cross must be in [0, {own:g}), got {cross:g}")
    a = _validate.number("coefficient", coefficient)
    root = np.sqrt(own)
    return (
        float(-a * root * (own - cross) / np.pi),
        float(cross * a * (2 * cross - own) / (np.pi * root)),
    )


def _descend(velocity: Pullback, parameters: Array, steps: int, step_size: float) -> Array:
    current = parameters
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            current = current + step_size * velocity(current)
            if not np.isfinite(current).all():
                raise FloatingPointError(
                    f"training must stay finite, it diverged at step_size {step_size:g}"
                )
    return current


def _flow(velocity: Pullback, start: Array, grid: Array, rtol: float, atol: float) -> Array:
    """Integrate the gradient flow from time 0, shape (T, p)."""
    if grid[-1] == 0:
        return start[None]
    solution = solve_ivp(
        lambda _, moved: velocity(start + moved),
        (0.0, grid[-1]),
        np.zeros_like(start),
        method="DOP853",
        t_eval=grid,
        rtol=rtol,
        atol=atol,
    )
    if not solution.success:
        raise FloatingPointError(f"training must stay finite: {solution.message}")
    path: Array = start + solution.y.T
    return path
