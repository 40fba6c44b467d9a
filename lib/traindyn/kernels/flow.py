r"""Least squares with a fixed kernel: gradient flow and gradient descent in closed form.

For a model that is linear in its parameters, with kernel K on n inputs, gradient flow of
:math:`\frac{1}{2n} |y - f|^2` moves the outputs by (MDL Example 8.3, with the right sign and
factor)

.. math:: \dot f_t = \tfrac1n K (y - f_t), \qquad f_t = y + e^{-t K / n} (f_0 - y) .

Its parameters are :math:`\theta_t = \theta_0 + Df_0^T a_t` with the *dual coefficients*

.. math:: a_t = \tfrac1n \int_0^t (y - f_s)\, ds = K^{-1} (1 - e^{-t K / n}) (y - f_0),

which also carry the outputs elsewhere, :math:`f_t(x) = f_0(x) + K(x, X) a_t`, and the distance
:math:`|\theta_t - \theta_0|^2 = a_t \cdot K a_t`. Gradient descent with step :math:`\eta` has
:math:`(1 - \eta \lambda / n)^{t / \eta}` for :math:`e^{-t \lambda / n}`. Eigenvalues zero of K are
allowed: along them nothing moves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.trajectory import whole_steps

__all__ = ["KernelFlow"]

_ROUNDING = 1e-10


class KernelFlow:
    r"""Training of a model with a fixed kernel.

    Parameters
    ----------
    kernel : array_like, shape (N, N)
        Symmetric positive semi-definite, on the training outputs.
    targets : array_like, shape (N,)
    start : array_like, shape (N,), optional
        Outputs at time 0; zero unless given.
    samples : int, optional
        The n in the loss, where an input has several outputs; N unless given.
    step_size : float, optional
        Of gradient descent; gradient flow unless given.

    Raises
    ------
    ValueError
        If the shapes disagree or the kernel has a negative eigenvalue, which is named.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.kernels import KernelFlow
    >>> flow = KernelFlow([[2.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    >>> flow.rates.tolist(), flow.outputs([0.0, np.inf]).tolist()
    ([0.5, 1.0], [[0.0, 0.0], [1.0, 1.0]])
    """

    def __init__(
        self,
        kernel: ArrayLike,
        targets: ArrayLike,
        start: ArrayLike | None = None,
        *,
        samples: int | None = None,
        step_size: float | None = None,
    ) -> None:
        matrix = _validate.symmetric("kernel", kernel)
        size = matrix.shape[0]
        self.kernel = _validate.frozen(matrix)
        self.targets = _validate.frozen(_validate.finite("targets", targets, shape=(size,)))
        begin = np.zeros(size) if start is None else start
        self.start = _validate.frozen(_validate.finite("start", begin, shape=(size,)))
        self.samples = _validate.integer("samples", size if samples is None else samples, least=1)
        self.step_size = None if step_size is None else _validate.positive("step_size", step_size)
        values, vectors = np.linalg.eigh(matrix)
        if values[0] < -_ROUNDING * max(0.0, values[-1]):
            raise ValueError(
                f"kernel must be positive semi-definite, got smallest eigenvalue {values[0]:.6g}"
            )
        # What rounding leaves of an eigenvalue zero must not be inverted at infinite time.
        self._values = np.where(values > size * np.finfo(float).eps * values[-1], values, 0.0)
        self._vectors = vectors
        self._residual = vectors.T @ (self.targets - self.start)

    @property
    def eigenvalues(self) -> Array:
        """Of the kernel, increasing, shape (N,)."""
        return self._values

    @property
    def rates(self) -> Array:
        r"""Decay rates :math:`\lambda_i / n` of the residual under gradient flow, increasing."""
        return self._values / self.samples

    @property
    def critical_step(self) -> float:
        r"""Largest step at which gradient descent is stable, :math:`2 n / \lambda_{\max}`."""
        top = self.rates[-1]
        return float(2 / top) if top > 0 else np.inf

    def coefficients(self, times: ArrayLike) -> Array:
        """Dual coefficients a_t, shape (T, N).

        Parameters
        ----------
        times : array_like, shape (T,)
            Increasing and non-negative; the last may be infinite, which is the minimum-norm
            interpolator. With a step size they are rounded to whole steps.
        """
        return np.asarray((self._integrals(times) * self._residual) @ self._vectors.T)

    def outputs(self, times: ArrayLike) -> Array:
        """Return the outputs on the training set, shape (T, N).

        Parameters
        ----------
        times : array_like, shape (T,)
            As for :meth:`coefficients`.
        """
        moved = self._integrals(times) * self._values * self._residual
        return np.asarray(self.start + moved @ self._vectors.T)

    def elsewhere(self, times: ArrayLike, cross: ArrayLike, start: ArrayLike = 0.0) -> Array:
        """Return the outputs at other inputs, shape (T, q).

        Parameters
        ----------
        times : array_like, shape (T,)
            As for :meth:`coefficients`.
        cross : array_like, shape (q, N)
            Kernel between the other inputs and the training set.
        start : array_like, shape (q,), default 0
            Outputs there at time 0.
        """
        block = _validate.finite("cross", cross, shape=(None, self.targets.size))
        begin = _validate.finite("start", start)
        if begin.shape not in ((), block.shape[:1]):
            raise ValueError(f"start must have shape () or {block.shape[:1]}, got {begin.shape}")
        return begin + self.coefficients(times) @ block.T

    def loss(self, times: ArrayLike) -> Array:
        r"""Training loss :math:`\frac{1}{2n} |y - f_t|^2`, shape (T,).

        Parameters
        ----------
        times : array_like, shape (T,)
            As for :meth:`coefficients`.
        """
        left = self._residual * (1 - self._integrals(times) * self._values)
        return np.asarray(np.square(left).sum(axis=1) / (2 * self.samples))

    def distance(self, times: ArrayLike) -> Array:
        r"""Distance :math:`|\theta_t - \theta_0|` of the parameters, shape (T,).

        Parameters
        ----------
        times : array_like, shape (T,)
            As for :meth:`coefficients`.
        """
        moved = self._integrals(times) * np.sqrt(self._values) * self._residual
        return np.asarray(np.linalg.norm(moved, axis=1))

    def _integrals(self, times: ArrayLike) -> Array:
        r"""Integral of the decay over time, :math:`(1 - e^{-t\lambda/n})/\lambda`, shape (T, N)."""
        # The last may be infinite, and only that.
        grid = _validate.numeric("times", times)
        last = grid.ndim == 1 and grid[-1:].tolist() == [np.inf]
        found: Array = np.empty((0, self._values.size))
        if grid.size > 1 or not last:
            known = _validate.increasing("times", grid[:-1] if last else grid)
            found = self._finite(known)
        if last:
            # The pseudo-inverse: what lies in the kernel's null space does not move the model.
            inverse: Array = np.divide(
                1.0, self._values, out=np.zeros_like(self._values), where=self._values > 0
            )
            found = np.concatenate([found, inverse[None]])
        return found

    def _finite(self, times: Array) -> Array:
        if self.step_size is None:
            decay = np.expm1(-times[:, None] * self.rates)
        else:
            steps = whole_steps(times, self.step_size)
            times = np.asarray(steps * self.step_size, dtype=np.float64)
            factors = 1 - self.step_size * self.rates
            # For a small rate the power is one to rounding; its logarithm keeps the digits.
            small = factors > 0.5
            logs = np.log1p(-self.step_size * np.where(small, self.rates, 0.0))
            with np.errstate(over="raise"):
                decay = np.where(
                    small,
                    np.expm1(steps[:, None] * logs),
                    np.where(small, 1.0, factors) ** steps[:, None] - 1,
                )
        # Along an eigenvalue zero the residual stays, and its integral grows linearly.
        still = np.repeat(times[:, None] / self.samples, self._values.size, axis=1)
        return np.divide(-decay, self._values, out=still, where=self._values > 0)
