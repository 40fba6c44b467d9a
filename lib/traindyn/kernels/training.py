r"""A network and its linearisation, trained side by side.

Both descend :math:`\frac{1}{2n} |y - f|^2` from the same parameters, by gradient flow or by
gradient descent with the same step (MDL Chapter 9, Equation 1.1 and its linearisation). The
linearised one needs no integration: with :math:`K_0 = Df_0 Df_0^T` its outputs are
:class:`~traindyn.kernels.flow.KernelFlow`, and its parameters
:math:`\bar\theta_t = \theta_0 + Df_0^T a_t`.

At infinite width both are the same, with the limiting kernel and a Gaussian start: the law of the
outputs over initialisations is
:func:`~companion.lazy_training.tangent_kernel.ensembles.wide_ensemble`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from traindyn import _validate
from traindyn._evaluations import bounded
from traindyn._types import Array
from traindyn.kernels.flow import KernelFlow
from traindyn.trajectory import Trajectory, whole_steps

__all__ = ["Comparison", "Linearisable", "Pullback", "compare"]

Pullback: TypeAlias = Callable[[Array], Array]
"""Maps weights of the outputs to the gradient of their weighted sum, ``Df^T weights``."""


class Linearisable(Protocol):
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
    model: Linearisable,
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
    model : Linearisable
        Such as :class:`~companion.lazy_training.tangent_kernel.network.Network` or
        :class:`~traindyn.kernels.two_layer.TwoLayer`.
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
        If the shapes disagree, or the last time of a flow is not reached within a million
        evaluations of its velocity.
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
        bounded(lambda _, moved: velocity(start + moved), float(grid[-1]), most=10**6),
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
