"""What the steps of this room share: inputs, statistics, and the gradient of a batch."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from traindyn import _validate
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.clouds.direction import Marked
from traindyn.problems.clouds.mixture import SPREAD, Mixture, draw_input, response

__all__ = ["Steps"]


@dataclass(frozen=True, eq=False)
class Steps(Marked):
    """Steps of some kind on a linear classifier of two clouds.

    Attributes
    ----------
    inputs : Mixture
        Data and loss.
    """

    inputs: Mixture

    @property
    def direction(self) -> Array:
        """The mean of the inputs."""
        return self.inputs.mean

    @property
    def drift_dimension(self) -> int:
        """Return zero: the quadrature is the problem's own."""
        return 0

    def drift(self, statistics: Any, *, rule: Rule | None = None, c_delta: float) -> Any:
        """Drift of the effective dynamics at one point, corrector included.

        Parameters
        ----------
        statistics : NamedTuple
            Of one point.
        rule : None
            The quadrature is the problem's own.
        c_delta : float
            Step size times dimension.
        """
        return self._drift(statistics, _validate.non_negative("c_delta", c_delta))

    @abstractmethod
    def _drift(self, statistics: Any, c: float) -> Any:
        """Drift at one point, at a step size that has been checked."""

    def _need_spread(self) -> None:
        """Refuse a mean on few coordinates, whose part of the noise need not be normal."""
        if self.inputs.concentration > SPREAD:
            raise ValueError(
                f"inputs.mean must have fourth powers with a sum of at most {SPREAD:g}, got "
                f"{self.inputs.concentration:.3g}"
            )


@njit(nogil=True, error_model="numpy")
def descent(w: Array, inputs: tuple[Any, ...], batch: int, rng: np.random.Generator) -> Array:
    """Minus the gradient of the mean loss of fresh samples; compiled, for the kernels of SGD.

    Parameters
    ----------
    w : ndarray, shape (n,)
        Weights.
    inputs
        :attr:`~traindyn.problems.clouds.mixture.Clouds.constants` of the inputs.
    batch : int
        Number of samples.
    rng : Generator
        Source of the draws.
    """
    mean, law, mixing, logistic = inputs
    x, pull = np.empty(w.size), np.zeros(w.size)
    for _ in range(batch):
        draw_input(x, mean, law, mixing, rng)
        margin = 0.0
        for i in range(w.size):
            margin += w[i] * x[i]
        f = response(margin, logistic) / batch
        for i in range(w.size):
            pull[i] += f * x[i]
    return pull
