"""What a problem is: data law + network + loss, in one file.

A problem describes how training data are drawn, how the loss depends on them, and
which finitely many *summary statistics* of the parameters its training dynamics
close on. Everything else is written once, in the rooms above, against the protocols
below:

* :class:`Dynamics` is all that SGD in full dimension, SGD on the statistics alone and
  the effective dynamics need; :class:`LimitDynamics` adds the limit of infinite
  precision, :class:`NoisyDynamics` the covariance of a step;
* :class:`Problem` adds data and curvature, for Hessian and G blocks and their predicted
  spectra.

Each room checks for the methods it uses by :func:`require`; :mod:`traindyn.conformance` tests
whether those of a new problem agree with each other.

The spectra rely on one structural fact: inputs are isotropic Gaussian outside the span of
finitely many *directions* (means, teacher directions) and the loss depends on an input only
through its projections on the directions and on the parameters. Hence

* each block of the Hessian and of the G-matrix is a weighted Gram matrix of the
  inputs (:class:`Factors`);
* the pair (problem, point) can be *embedded* in a few dimensions with the same
  summary statistics, so population quantities and predicted spectra need only
  low-dimensional Gaussian integrals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from traindyn._types import RNG, Array
from traindyn.gaussian import Rule

Matrix = Literal["hessian", "g_matrix"]
Block: TypeAlias = tuple[int, int]

MATRICES: tuple[Matrix, Matrix] = ("hessian", "g_matrix")


class Sample(NamedTuple):
    """Independent draws from the data law.

    Attributes
    ----------
    inputs : ndarray, shape (n, d)
    labels : ndarray of int, shape (n,)
        The mixture component (or class) of each draw.
    """

    inputs: Array
    labels: NDArray[np.int64]


class Factors(NamedTuple):
    """One block of an empirical matrix, ``(1/n) sum_i weights_i left_i right_i^T``.

    Features may be the inputs of the sample themselves, and not a copy.

    Attributes
    ----------
    weights : ndarray, shape (n,)
        May be negative (off-diagonal blocks).
    left : ndarray, shape (n, p)
    right : ndarray, shape (n, q)
        The same object as `left` for a symmetric block.
    """

    weights: Array
    left: Array
    right: Array


class Kernel(NamedTuple):
    """A jitted one-step map and what it needs.

    Attributes
    ----------
    step : callable
        numba function ``step(state, constants, rng, step_size)`` that draws one fresh
        sample from `rng` and updates the arrays of `state` in place.
    constants : tuple
        Passed through unchanged.
    """

    step: Callable[..., None]
    constants: tuple[Any, ...]


@runtime_checkable
class Dynamics(Protocol):
    """One-pass SGD that closes on summary statistics."""

    @property
    def dimension(self) -> int:
        """Dimension d of one input."""

    @property
    def ridge(self) -> float:
        """Ridge coefficient (beta) of the loss that SGD descends."""

    def initial(self, *, rng: RNG) -> Any:
        """Draw an uninformative starting point."""

    def draw_initial_statistics(self, *, rng: RNG) -> Any:
        """Draw from the law of the statistics of :meth:`initial`, at a cost free of d."""

    def initial_statistics(self) -> Any:
        """Large-dimension limit of the statistics of :meth:`initial`."""

    def statistics(self, point: Any) -> Any:
        """Summary statistics of a point."""

    @property
    def drift_dimension(self) -> int:
        """Dimension of the Gaussian integrals of :meth:`drift`, zero if it has none."""

    def drift(self, statistics: Any, *, rule: Rule | None = None, c_delta: float) -> Any:
        """Drift of the effective dynamics, corrector included.

        Without a rule the problem chooses its quadrature, the same at every call.
        """

    def direct_kernel(self) -> Kernel:
        """One SGD step in full dimension; the state is a point."""

    def reduced_kernel(self) -> Kernel:
        """One SGD step on the statistics; the state is :meth:`reduced_state`."""

    def reduced_state(self, statistics: Any) -> tuple[Array, ...]:
        """Arrays the reduced kernel updates, with the law of `statistics`."""

    def reduced_statistics(self, state: tuple[Array, ...]) -> Any:
        """Statistics of a reduced state (leading axes allowed)."""


@runtime_checkable
class LimitDynamics(Dynamics, Protocol):
    """SGD whose effective dynamics has a limit of infinite precision."""

    def limit_drift(self, statistics: Any) -> Any:
        """Drift in the limit of infinite precision."""


@runtime_checkable
class NoisyDynamics(Dynamics, Protocol):
    """SGD the noise of whose steps is known, for its fluctuations around the limit."""

    def volatility(self, statistics: Any, *, rule: Rule | None = None, c_delta: float) -> Array:
        """Limit covariance of one step of the statistics, in units of ``step_size**2``.

        A square matrix in the order in which the problem writes its statistics as a vector.
        """


@runtime_checkable
class Problem(LimitDynamics, Protocol):
    """A data law, a network and a loss, with their summary statistics and curvature."""

    @property
    def precision(self) -> float:
        """Inverse noise variance per coordinate (lambda)."""

    @property
    def weights(self) -> Array:
        """Probability of each component of the mixture that inputs are drawn from, shape (k,)."""

    @property
    def means(self) -> Array:
        """Mean of each component, shape (k, d)."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Diagonal blocks of the Hessian and the G-matrix."""

    def sample(self, n: int, *, rng: RNG) -> Sample:
        """Draw `n` independent (input, label) pairs."""

    def stream(self, n: int, *, rng: RNG) -> Sample:
        """Return the first `n` draws that SGD in full dimension makes from the same `rng`."""

    def loss(self, point: Any, sample: Sample) -> Array:
        """Loss of each draw, without the ridge, shape (n,)."""

    def gradient(self, point: Any, sample: Sample) -> Any:
        """Gradient of the mean loss, without the ridge, shaped like `point`."""

    def factors(self, matrix: Matrix, block: Block, point: Any, sample: Sample) -> Factors:
        """Weights and features of one block of the Hessian or the G-matrix."""

    def parameter(self, block: Block, point: Any) -> Array:
        """Return the parameter vector a diagonal block belongs to, which may be a view."""

    def outlier_count(self, block: Block) -> int:
        """Dimension of the top eigenspace the source aligns the block's parameter with."""

    def embed(self, statistics: Any) -> tuple[Problem, Any]:
        """Return a problem in the fewest dimensions and a point of it with these statistics."""


def require(problem: Any, room: str, *names: str) -> None:
    """Refuse a problem that lacks what a room needs.

    Parameters
    ----------
    problem : object
        What was passed to the room; its methods are looked up, never called.
    room : str
        Name of the caller, such as ``effective.ode.solve``.
    *names : str
        Methods and properties of the protocols above.

    Raises
    ------
    ValueError
        Says what is missing, and for whom.

    Examples
    --------
    >>> from traindyn.problems.base import require
    >>> require(object(), "effective.ode.solve", "drift")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: problem must have drift for effective.ode.solve (see ...), got object without
    """
    # On the class first: a property is not evaluated to see that it is there.
    missing = [
        each for each in names if not (hasattr(type(problem), each) or hasattr(problem, each))
    ]
    if missing:
        raise ValueError(
            f"problem must have {', '.join(missing)} for {room} (see traindyn.problems.base), got "
            f"{type(problem).__name__} without"
        )
