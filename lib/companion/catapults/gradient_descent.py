r"""Gradient descent along the eigenvectors of the tangent kernel (ZHU Section 4.3).

A step on the mean of N squared residuals changes them by

.. math:: e' = \Big(I - \frac{2\eta}N K\Big) e + \Delta, \qquad
          \Delta_i = \tfrac12 \langle dw, \nabla^2 f_i(\xi_i)\, dw \rangle

(ZHU (4.3), where the one half is missing), with a point :math:`\xi_i` between the weights for
each residual. While K stays and :math:`\Delta` is small, the loss along the eigenvector
:math:`u_i` is multiplied by :math:`(1 - 2 \eta \lambda_i / N)^2` at every step: it grows where
:math:`\eta > N / \lambda_i`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.catapults.schedules import TrainingState
from traindyn.catapults.training import Observer, Trainable, Training

__all__ = [
    "Directions",
    "RepeatedCatapults",
    "descent_bound",
    "directions",
    "eigen_observer",
    "linear_losses",
]


class Directions(NamedTuple):
    """The loss of a run along the eigenvectors of the kernel, which change on the way.

    ZHU Claim 1 says of a catapult that only the leading part of the loss has a spike.

    Attributes
    ----------
    eigenvalues : ndarray, shape (T, N)
        Of the tangent kernel, descending.
    losses : ndarray, shape (T, N)
        Squares of the residuals' coefficients over N: their sum is the loss.
    """

    eigenvalues: Array
    losses: Array

    def leading(self, count: int) -> Array:
        """Return the loss in so many leading directions, shape (T,) (ZHU (4.2))."""
        return np.asarray(self.losses[:, : self._checked(count)].sum(axis=1))

    def rest(self, count: int) -> Array:
        """Return the loss in all but so many leading directions, shape (T,)."""
        return np.asarray(self.losses[:, self._checked(count) :].sum(axis=1))

    def trailing(self, count: int) -> Array:
        """Return the loss in so many last directions, shape (T,)."""
        return np.asarray(self.losses[:, -self._checked(count) :].sum(axis=1))

    def super_critical(self, step_sizes: ArrayLike) -> NDArray[np.int64]:
        r"""Count the directions with :math:`\eta > N / \lambda_i`.

        Parameters
        ----------
        step_sizes : array_like, shape (T,) or scalar
            :math:`\eta` at each of the T observations, or at all, for the mean squared residual.

        Returns
        -------
        ndarray of int, shape (T,)
        """
        eta = _validate.finite("step_sizes", step_sizes)
        if eta.shape not in ((), (len(self.losses),)):
            raise ValueError(
                f"step_sizes must have shape () or ({len(self.losses)},), got {eta.shape}"
            )
        eta = np.broadcast_to(eta, len(self.losses))
        above = eta[:, None] * self.eigenvalues > self.losses.shape[1]
        return np.asarray(above.sum(axis=1))

    def _checked(self, count: int) -> int:
        return _validate.integer("count", count, least=1, most=self.losses.shape[1])


def eigen_observer(model: Trainable[Any, Any], batch: Any, labels: ArrayLike) -> Observer:
    """Return what a training may observe: eigenvalues, and the loss along eigenvectors.

    Parameters
    ----------
    model : Trainable
        With the methods `outputs` and `tangent_kernel`.
    batch : tuple of arrays
        From ``model.prepare``. Kept by reference.
    labels : array_like, of the shape of the outputs
        Targets of the batch.

    Returns
    -------
    Observer
        From the weights to an array of shape (2, N), for :func:`directions`.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.catapults.gradient_descent import directions, eigen_observer
    >>> from traindyn.catapults import TwoLayerModel, train
    >>> start = TwoLayerModel.initial(64, 2, rng=0)
    >>> model, labels = TwoLayerModel(start), [1.0, -1.0]
    >>> observe = eigen_observer(model, model.prepare(np.eye(2)), labels)
    >>> run = train(model, start, np.eye(2), labels, step_size=0.5, steps=9, observe=observe)
    >>> found = directions(run)
    >>> bool(np.allclose(found.leading(1) + found.rest(1), run.losses))
    True
    """
    y = _validate.frozen(_validate.finite("labels", labels))
    _validate.providing("model", model, "outputs", "tangent_kernel")

    def see(weights: Any, residuals: Array) -> Array:
        values, vectors = np.linalg.eigh(model.tangent_kernel(weights, batch))
        e = np.ravel(residuals)
        return np.array([values[::-1], (vectors.T @ e)[::-1] ** 2 / e.size])

    return Observer(model, batch, y, see)


def directions(run: Training) -> Directions:
    """Read what :func:`eigen_observer` saw.

    Parameters
    ----------
    run : Training
        Made with the observer as its argument `observe`.

    Raises
    ------
    ValueError
        If the run did not observe that.
    """
    seen = _validate.finite("run.observed", run.observed)
    if seen.ndim != 3 or seen.shape[1] != 2:
        raise ValueError(f"run must have observed arrays (2, N), got shape {seen.shape}")
    return Directions(seen[:, 0].copy(), seen[:, 1].copy())


def linear_losses(
    eigenvalues: ArrayLike, losses: ArrayLike, *, step_size: float, steps: int
) -> Array:
    r"""Return the losses along eigenvectors if the kernel stays: the linear model's.

    Parameters
    ----------
    eigenvalues, losses : array_like, shape (N,)
        At the start.
    step_size : float
        :math:`\eta` of the mean squared residual.
    steps : int
        The last t.

    Returns
    -------
    ndarray, shape (steps + 1, N)
        :math:`(1 - 2 \eta \lambda_i / N)^{2t}` times the losses.

    Raises
    ------
    ValueError
        If shapes do not match.

    Examples
    --------
    >>> from companion.catapults.gradient_descent import linear_losses
    >>> linear_losses([1.5, 0.5], [1.0, 1.0], step_size=1.0, steps=2).tolist()
    [[1.0, 1.0], [0.25, 0.25], [0.0625, 0.0625]]
    """
    values = _validate.finite("eigenvalues", eigenvalues, shape=(None,))
    first = _validate.finite("losses", losses, shape=values.shape)
    eta = _validate.positive("step_size", step_size)
    count = _validate.integer("steps", steps, least=0)
    factors = 1 - 2 * eta * values / values.size
    return np.asarray(first * factors ** (2 * np.arange(count + 1)[:, None]))


def descent_bound(
    losses: ArrayLike, squared_gradients: ArrayLike, *, step_size: ArrayLike, curvature: ArrayLike
) -> Array:
    r"""Return the loss that a step of gradient descent does not exceed (ZHU Lemma 4.2.2).

    Parameters
    ----------
    losses, squared_gradients : array_like
        Before the step.
    step_size : array_like
        :math:`\eta`; all shapes broadcast.
    curvature : array_like
        A bound on the largest eigenvalue of the Hessian everywhere.

    Returns
    -------
    ndarray
        :math:`L - \eta (1 - \eta \beta / 2) |\nabla L|^2`.

    Examples
    --------
    Half a square, with its own curvature:

    >>> from companion.catapults.gradient_descent import descent_bound
    >>> float(descent_bound(0.5, 1.0, step_size=0.5, curvature=1.0))
    0.125
    """
    now, squares, eta, beta = _validate.broadcast(
        losses=_validate.finite("losses", losses),
        squared_gradients=_validate.finite("squared_gradients", squared_gradients),
        step_size=_validate.finite("step_size", step_size),
        curvature=_validate.finite("curvature", curvature),
    )
    return np.asarray(now - eta * (1 - eta * beta / 2) * squares)


@dataclass(frozen=True)
class RepeatedCatapults:
    """Raise the step size above the critical one whenever a catapult is over (ZHU Figure 4.4).

    The run begins at `ratio` times the critical step size. A catapult is over when the loss has
    risen by more than `factor` since the step size last changed, has come back below where it
    was then, and stayed there for `wait` steps. Then the step size becomes `ratio` times the
    critical one of that moment, at most `most_increase` times the last one; after the last
    catapult it becomes `end` times the critical one, or stays.

    Parameters
    ----------
    catapults : int
    ratio : float, default 1.5
        Above one. Two-layer networks diverge from about two on.
    wait : int, default 30
    factor : float, default 2.0
    most_increase : float, default 2.0
        The critical step size overshoots after a catapult of a deep network, and falls back.
    end : float, optional

    Raises
    ------
    ValueError
        If an argument is out of range; when called, if the loss is not recorded at every step
        or the kernel is not followed.

    Examples
    --------
    >>> from companion.catapults.gradient_descent import RepeatedCatapults
    >>> from traindyn.catapults import TrainingState
    >>> rule = RepeatedCatapults(2, ratio=1.5, wait=1)
    >>> rule(TrainingState(0, [1.0], [], 4.0))
    6.0
    >>> rule(TrainingState(3, [1.0, 5.0, 0.9, 0.8], [6.0] * 3, 7.0))
    10.5
    """

    catapults: int
    ratio: float = 1.5
    wait: int = 30
    factor: float = 2.0
    most_increase: float = 2.0
    end: float | None = None

    def __post_init__(self) -> None:
        _validate.integer("catapults", self.catapults, least=1)
        _validate.integer("wait", self.wait, least=0)
        for name in ("ratio", "factor", "most_increase"):
            if _validate.number(name, getattr(self, name)) <= 1:
                raise ValueError(f"{name} must be above 1, got {getattr(self, name)!r}")
        if self.end is not None:
            _validate.positive("end", self.end)

    def __call__(self, state: TrainingState) -> float:
        """Name the next step size."""
        if state.critical_step is None or len(state.losses) != state.step + 1:
            raise ValueError(
                "RepeatedCatapults needs the kernel and the loss of every step: "
                "train with leading given and every=1"
            )
        rates = state.step_sizes
        if not rates:
            return self.ratio * state.critical_step
        changes = [t for t in range(1, len(rates)) if rates[t] != rates[t - 1]]
        stage = len(changes) + 1
        since = state.losses[changes[-1] if changes else 0 :]
        back = len(since) - self.wait - 1
        if stage > self.catapults or back < 1:
            return rates[-1]
        risen = max(since[:back]) > self.factor * since[0]
        if not risen or max(since[back:]) >= since[0]:
            return rates[-1]
        if stage == self.catapults:
            return rates[-1] if self.end is None else self.end * state.critical_step
        return min(self.ratio * state.critical_step, self.most_increase * rates[-1])
