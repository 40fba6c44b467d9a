r"""Which steps of SGD raise a loss, and whether their batches were super-critical.

A step is super-critical if its step size exceeds :math:`\tilde\eta = b / \lambda_1(K_B)`, with the
tangent kernel :math:`K_B` of its batch B. At a constant kernel it takes the residuals e to

.. math:: e' = e - \frac{2\eta}b K_{\cdot B}\, e_B ,

hence those of the batch to :math:`(1 - 2\eta K_B / b)\, e_B`, and the loss *of the batch* can rise
only if the step is super-critical. The loss of all examples also depends on the kernel
between the batch and the others: it may rise at any step size (ZHU Table 4.2 counts the steps in
which it does).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.catapults.spikes import leading_eigenpairs
from traindyn.catapults.training import Observer, Trainable, Training

__all__ = ["History", "Match", "history", "match", "snapshots"]


class History(NamedTuple):
    """What every step of a run did.

    Attributes
    ----------
    losses, leading_losses, kernel_norms : ndarray, shape (T + 1,)
        Training loss, its part along the leading eigenvectors of the kernel of all examples, and
        the largest eigenvalue of that kernel.
    step_sizes, critical_steps : ndarray, shape (T,)
        The latter of the batch of the step, before it.
    batch_before, batch_after : ndarray, shape (T,)
        Loss of the batch of the step, before and after it.
    predicted : ndarray, shape (T,)
        Training loss after the step if the kernel did not change in it.
    """

    losses: Array
    leading_losses: Array
    kernel_norms: Array
    step_sizes: Array
    critical_steps: Array
    batch_before: Array
    batch_after: Array
    predicted: Array

    @property
    def supercritical(self) -> NDArray[np.bool_]:
        """Whether each step was larger than the critical one of its batch."""
        return np.asarray(self.step_sizes > self.critical_steps)

    def spikes(self, factor: float = 1.0) -> NDArray[np.bool_]:
        """Whether each step raised the training loss by more than a factor."""
        return _rises(self.losses[:-1], self.losses[1:], factor)

    def batch_spikes(self, factor: float = 1.0) -> NDArray[np.bool_]:
        """Whether each step raised the loss of its own batch by more than a factor."""
        return _rises(self.batch_before, self.batch_after, factor)

    def leading_shares(self, steps: ArrayLike) -> Array:
        """Return how much of what changes in the training loss in some steps is its leading part.

        The change of the leading part over the absolute changes of both parts, from -1 (it falls
        alone) to 1 (it rises alone); 0 where nothing changes.
        """
        t = self._checked(steps)
        leading = np.diff(self.leading_losses)[t]
        both = np.abs(leading) + np.abs(np.diff(self.losses)[t] - leading)
        return np.asarray(np.divide(leading, both, out=np.zeros_like(both), where=both > 0))

    def kernel_ratios(self, steps: ArrayLike, *, wait: int) -> Array:
        """Return the norm of the kernel so many steps later, over that before the step.

        At the end of the run, fewer steps later.
        """
        t = self._checked(steps)
        after = np.minimum(t + _validate.integer("wait", wait, least=0), len(self.kernel_norms) - 1)
        return np.asarray(self.kernel_norms[after] / self.kernel_norms[t])

    def _checked(self, steps: ArrayLike) -> NDArray[np.int64]:
        return _validate.integers("steps", steps, least=0, most=len(self.step_sizes) - 1)


class Match(NamedTuple):
    """How often two flags are raised at one step.

    Attributes
    ----------
    both, spikes, flagged, steps : int
    """

    both: int
    spikes: int
    flagged: int
    steps: int

    @property
    def rate(self) -> float:
        """Share of the spikes that are flagged; NaN without spikes (ZHU Table 4.2)."""
        return self.both / self.spikes if self.spikes else float("nan")

    @property
    def converse(self) -> float:
        """Share of the flagged steps that spike; NaN without any."""
        return self.both / self.flagged if self.flagged else float("nan")

    @property
    def expected(self) -> float:
        """The rate if flags and spikes had nothing to do with each other."""
        return self.flagged / self.steps


def match(spikes: ArrayLike, flagged: ArrayLike) -> Match:
    """Count spikes, flagged steps, and those that are both.

    Parameters
    ----------
    spikes, flagged : array_like of bool, shape (T,)
        Whether each step raised the loss, and whether it is flagged, such as super-critical.

    Raises
    ------
    ValueError
        If there is no step, or not as many of both.

    Examples
    --------
    >>> from companion.catapults.sgd.matching import match
    >>> found = match([True, False, True, False], [True, False, False, False])
    >>> found.rate, found.converse, found.expected
    (0.5, 1.0, 0.25)
    """
    first, second = np.asarray(spikes, dtype=bool), np.asarray(flagged, dtype=bool)
    if first.ndim != 1 or first.shape != second.shape or first.size == 0:
        raise ValueError(
            "spikes and flagged must be of one length, at least 1, got shapes "
            f"{first.shape} and {second.shape}"
        )
    return Match(int((first & second).sum()), int(first.sum()), int(second.sum()), first.size)


def snapshots(model: Trainable[Any, Any], inputs: ArrayLike, labels: ArrayLike) -> Observer:
    """Return the observer of :func:`history`, of all residuals and beside them of the kernel.

    Parameters
    ----------
    model : Trainable
        With the methods `prepare`, `outputs` and `tangent_kernel`.
    inputs : array_like, shape (n, d)
        All examples, whatever the batches are.
    labels : array_like, shape (n,) or (n, k)
        Of the shape of the outputs.

    Returns
    -------
    Observer
        From weights to an array of shape (n k, n k + 1), for the argument `observe` of
        :func:`~traindyn.catapults.training.train`.
    """
    _validate.providing("model", model, "prepare", "outputs", "tangent_kernel")
    whole, y = model.prepare(inputs), _validate.frozen(_validate.finite("labels", labels))

    def see(weights: Any, residuals: Array) -> Array:
        return np.hstack([residuals.reshape(-1, 1), model.tangent_kernel(weights, whole)])

    return Observer(model, whole, y, see)


def history(run: Training, *, outputs: int = 1, leading: int = 1) -> History:
    """Work out every step of a run of SGD from its :func:`snapshots`.

    Parameters
    ----------
    run : Training
        Recorded at every step, with ``observe=snapshots(...)``.
    outputs : int
        Of one input.
    leading : int
        Number of leading eigenvectors.

    Raises
    ------
    ValueError
        If the run was not recorded so.
    """
    k = _validate.integer("outputs", outputs, least=1)
    seen = _validate.finite("run.observed", run.observed, shape=(None, None, None))
    residuals, kernels = seen[:, :, 0], seen[:, :, 1:]
    steps, size = len(seen) - 1, residuals.shape[1]
    if kernels.shape[2] != size:
        raise ValueError(
            f"run.observed must be that of snapshots(...), recorded at every step, got {seen.shape}"
        )
    if not np.array_equal(run.steps, np.arange(steps + 1)):
        raise ValueError("run.steps must be all steps: the run must be recorded at every step")
    losses = _validate.finite("run.losses", run.losses, shape=(steps + 1,))
    batches = _validate.integers("run.batches", run.batches, least=0, shape=(None, None))
    chosen = batches[:steps]  # the last step of a run that diverged led nowhere
    if len(chosen) < steps:
        raise ValueError("run.batches must have a batch for every step: the run must be of SGD")
    rates = _validate.finite("run.step_sizes", run.step_sizes, shape=(len(batches),))
    most = _validate.integer("leading", leading, least=1, most=size)
    if chosen.max(initial=0) * k >= size:
        raise ValueError(f"outputs must be those of the run, got {k} for {size} residuals")
    pairs = [leading_eigenpairs(kernel, most) for kernel in kernels]
    along = [np.sum((vectors.T @ e) ** 2) / size for (_, vectors), e in zip(pairs, residuals)]
    rows = []
    for t in range(steps):
        part = (chosen[t][:, None] * k + np.arange(k)).ravel()
        e, kernel = residuals[t], kernels[t]
        top = leading_eigenpairs(kernel[np.ix_(part, part)], 1)[0][0]
        step = 2 * rates[t] / part.size
        ahead = e - step * kernel[:, part] @ e[part]
        rows.append(
            (
                part.size / top,
                np.mean(e[part] ** 2),
                np.mean(residuals[t + 1][part] ** 2),
                np.mean(ahead**2),
            )
        )
    found = np.array(rows, dtype=np.float64).reshape(steps, 4)
    norms = np.array([values[0] for values, _ in pairs])
    return History(losses.copy(), np.array(along), norms, rates[:steps].copy(), *found.T)


def _rises(before: Array, after: Array, factor: float) -> NDArray[np.bool_]:
    if _validate.number("factor", factor) < 1:
        raise ValueError(f"factor must be at least 1, got {factor!r}")
    return np.asarray(after > factor * before)
