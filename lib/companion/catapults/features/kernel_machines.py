r"""Kernel machines that measure distances by a matrix of features.

The Laplace kernel :math:`e^{-|x - z|_M / L}` with :math:`|u|_M^2 = u^\top M u` sees the directions
that M weights. Its average gradient outer product can take the place of M, again and again: the
recursive feature machine of Radhakrishnan, Beaglehole, Pandit and Belkin (2024), arXiv:2212.13881.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.spatial.distance import cdist

from traindyn import _validate
from traindyn._types import Array
from traindyn.catapults import agop
from traindyn.gaussian import symmetric_sqrt

__all__ = ["BANDWIDTHS", "RIDGES", "KernelMachine", "fit", "iterate"]

BANDWIDTHS = (1.0, 2.0, 4.0, 8.0)
"""Over the root mean square distance of two standard normal inputs."""
RIDGES = (1e-3, 1e-2, 1e-1)
"""Added to the diagonal of the kernel, whose entries are one."""


@dataclass(frozen=True)
class KernelMachine:
    """Kernel ridge regression in a metric.

    Attributes
    ----------
    centres : ndarray, shape (n, d)
        Inputs of the training data.
    root : ndarray, shape (d, d)
        Symmetric root of the metric, whose trace is d.
    bandwidth : float
        L, in the units of the metric.
    coefficients : ndarray, shape (n,)
    validation_loss : float
        Mean squared error by which bandwidth and ridge were chosen.

    Raises
    ------
    ValueError
        If a shape does not fit, an entry is not finite, the root is not positive semi-definite, or
        the bandwidth is not positive.
    """

    centres: Array
    root: Array
    bandwidth: float
    coefficients: Array
    validation_loss: float

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "centres": _validate.finite("centres", self.centres, shape=(None, None)),
            "bandwidth": _validate.positive("bandwidth", self.bandwidth),
            "validation_loss": _validate.non_negative("validation_loss", self.validation_loss),
        }
        n, d = checked["centres"].shape
        checked["root"] = _validate.positive_semidefinite("root", self.root, size=d)
        checked["coefficients"] = _validate.finite("coefficients", self.coefficients, shape=(n,))
        for name, value in checked.items():
            held = _validate.frozen(value) if isinstance(value, np.ndarray) else value
            object.__setattr__(self, name, held)

    def outputs(self, inputs: ArrayLike) -> Array:
        """Return the values of the machine.

        Parameters
        ----------
        inputs : array_like, shape (m, d)
            Where they are taken.

        Returns
        -------
        ndarray, shape (m,)

        Raises
        ------
        ValueError
            If the shape is another or an entry is not finite.

        Examples
        --------
        >>> import numpy as np
        >>> from companion.catapults.features.kernel_machines import KernelMachine
        >>> machine = KernelMachine(np.zeros((1, 2)), np.eye(2), 2.0, np.array([3.0]), 0.0)
        >>> machine.outputs([[0.0, 0.0], [0.0, 2.0]]).round(3).tolist()
        [3.0, 1.104]
        """
        return np.asarray(np.exp(-self._distances(inputs) / self.bandwidth) @ self.coefficients)

    def input_gradients(self, inputs: ArrayLike) -> Array:
        """Return the gradients in the input.

        At a centre, where its own term has a kink, that term counts as zero.

        Parameters
        ----------
        inputs : array_like, shape (m, d)
            Where they are taken.

        Returns
        -------
        ndarray, shape (m, d)

        Raises
        ------
        ValueError
            If the shape is another or an entry is not finite.
        """
        points, distances = self._points(inputs), self._distances(inputs)
        # Two copies of one point are apart by what rounding leaves.
        apart = distances > 1e-7 * self.bandwidth
        inverse = np.divide(1.0, distances, out=np.zeros_like(distances), where=apart)
        weights = np.exp(-distances / self.bandwidth) * inverse * self.coefficients
        moved = weights.sum(axis=1)[:, None] * points - weights @ self.centres
        return np.asarray(-moved @ self.root @ self.root / self.bandwidth)

    def _points(self, inputs: ArrayLike) -> Array:
        return _validate.finite("inputs", inputs, shape=(None, self.centres.shape[1]))

    def _distances(self, inputs: ArrayLike) -> Array:
        return np.asarray(cdist(self._points(inputs) @ self.root, self.centres @ self.root))


def fit(
    metric: ArrayLike,
    inputs: ArrayLike,
    labels: ArrayLike,
    *,
    validation: tuple[ArrayLike, ArrayLike],
) -> KernelMachine:
    """Fit a kernel machine in a metric, with the best of some bandwidths and ridges.

    Parameters
    ----------
    metric : array_like, shape (d, d)
        Symmetric positive semi-definite and not zero, such as an average gradient outer product.
        It is scaled to the trace d, so that only its shape matters.
    inputs : array_like, shape (n, d)
        Those to fit.
    labels : array_like, shape (n,)
        Their values.
    validation : pair of array_like
        Inputs and labels that choose.

    Returns
    -------
    KernelMachine
        That of the least mean squared error on the validation data, over :data:`BANDWIDTHS` and
        :data:`RIDGES`.

    Raises
    ------
    ValueError
        If a shape does not fit, an entry is not finite, or the metric is zero or not positive
        semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.catapults.features.kernel_machines import fit
    >>> x = np.random.default_rng(0).standard_normal((300, 5))
    >>> y = x[:, 0] * x[:, 1]
    >>> data = dict(inputs=x[:200], labels=y[:200], validation=(x[200:], y[200:]))
    >>> blind, told = fit(np.eye(5), **data), fit(np.diag([1.0, 1, 0, 0, 0]), **data)
    >>> bool(told.validation_loss < blind.validation_loss / 2)
    True
    """
    x = _validate.finite("inputs", inputs, shape=(None, None))
    if not x.size:
        raise ValueError("inputs must not be empty")
    y = _validate.finite("labels", labels, shape=(len(x),))
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise ValueError(f"validation must be a pair of inputs and labels, got {validation!r}")
    held = _validate.finite("validation inputs", validation[0], shape=(None, x.shape[1]))
    wanted = _validate.finite("validation labels", validation[1], shape=(len(held),))
    if not held.size:
        raise ValueError("validation inputs must not be empty")
    matrix = _validate.positive_semidefinite("metric", metric, size=x.shape[1])
    if not np.trace(matrix) > 0:
        raise ValueError("metric must not be zero")
    root = symmetric_sqrt(matrix / (np.trace(matrix) / len(matrix)))
    inside, outside = (cdist(points @ root, x @ root) for points in (x, held))
    machines = []
    for bandwidth in np.sqrt(2.0 * len(root)) * np.array(BANDWIDTHS):
        kernel, across = (np.exp(-apart / bandwidth) for apart in (inside, outside))
        for ridge in RIDGES:
            coefficients = linalg.solve(kernel + ridge * np.eye(len(x)), y, assume_a="pos")
            loss = float(np.mean((across @ coefficients - wanted) ** 2))
            machines.append(KernelMachine(x, root, float(bandwidth), coefficients, loss))
    return min(machines, key=lambda machine: machine.validation_loss)


def iterate(
    inputs: ArrayLike,
    labels: ArrayLike,
    *,
    validation: tuple[ArrayLike, ArrayLike],
    times: int,
) -> list[KernelMachine]:
    """Fit kernel machines, each in the metric of the features of the one before.

    Parameters
    ----------
    inputs, labels, validation
        As for :func:`fit`.
    times : int
        How often the features become the metric; the first machine has the isotropic one.

    Returns
    -------
    list of KernelMachine
        The first, and one for each time.

    Raises
    ------
    ValueError
        As from :func:`fit`, if the number is negative, or if a machine is constant.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.catapults.features.kernel_machines import iterate
    >>> x = np.random.default_rng(0).standard_normal((300, 5))
    >>> y = x[:, 0] * x[:, 1]
    >>> machines = iterate(x[:200], y[:200], validation=(x[200:], y[200:]), times=2)
    >>> first, second, third = (machine.validation_loss for machine in machines)
    >>> third < second < first
    True
    """
    times = _validate.integer("times", times, least=0)
    x = _validate.finite("inputs", inputs, shape=(None, None))
    machines = [fit(np.eye(x.shape[1]), x, labels, validation=validation)]
    for _ in range(times):
        features = agop(machines[-1].input_gradients(x))
        if not features.any():
            raise ValueError("inputs and labels give a machine without features: it is constant")
        machines.append(fit(features, x, labels, validation=validation))
    return machines
