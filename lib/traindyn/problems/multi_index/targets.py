r"""Targets that depend on a few projections of the input, ``y = h(z) + noise * eps``.

Inputs are standard Gaussian; z, the projections on k orthonormal directions, is standard
Gaussian too, and so is eps, independent of it (MW, multi-index model).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.activations import GELU, Activation

__all__ = [
    "Target",
    "half_spaces",
    "orthonormal",
    "parity",
    "phase_retrieval",
    "polynomial",
    "two_layer_teacher",
]


@dataclass(frozen=True)
class Target:
    """A label law: a function of k Gaussian coordinates, plus Gaussian noise.

    Attributes
    ----------
    name : str
    k : int
        Number of directions, at least 1.
    signal : callable
        Maps coordinates, shape (n, k), to noiseless labels, shape (n,).
    gradient : callable or None
        Maps coordinates to the gradient of the signal, shape (n, k); None where there is
        none (half-spaces). Only a cross-check needs it: responses to the directions are
        computed by Gaussian integration by parts.
    noise : float
        Standard deviation of the additive noise.
    low, high : float
        Bounds of the signal, infinite if it has none.

    Raises
    ------
    ValueError
        If `k` or `noise` is out of range.

    Examples
    --------
    >>> from traindyn.problems.multi_index.targets import Target
    >>> import numpy as np
    >>> target = Target("cubic", 1, lambda z: z[:, 0] ** 3)
    >>> target.labels(np.array([[2.0], [-1.0]]), rng=0)
    array([ 8., -1.])
    """

    name: str
    k: int
    signal: Callable[[Array], Array]
    gradient: Callable[[Array], Array] | None = None
    noise: float = 0.0
    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        """Check the numbers."""
        object.__setattr__(self, "k", _validate.integer("k", self.k, least=1))
        object.__setattr__(self, "noise", _validate.non_negative("noise", self.noise))
        low, high = _validate.not_nan("low", self.low), _validate.not_nan("high", self.high)
        if low.ndim or high.ndim or not low <= high:
            raise ValueError(f"low must not exceed high, got {self.low} and {self.high}")

    def __repr__(self) -> str:
        noise = f", noise={self.noise:g}" if self.noise else ""
        return f"Target({self.name}, k={self.k}{noise})"

    @property
    def label_range(self) -> tuple[float, float]:
        """Least and largest label, noise included."""
        return (-np.inf, np.inf) if self.noise else (self.low, self.high)

    def labels(
        self, coordinates: Array, *, rng: int | np.random.SeedSequence | np.random.Generator
    ) -> Array:
        """Draw labels.

        Parameters
        ----------
        coordinates : ndarray, shape (n, k)
            Of the inputs along the target's directions.
        rng : int, SeedSequence or Generator
            Source of the noise; untouched without noise.

        Returns
        -------
        ndarray, shape (n,)
        """
        coordinates = _validate.finite("coordinates", coordinates, shape=(None, self.k))
        values = self.signal(coordinates)
        if self.noise:
            values = values + self.noise * _validate.generator("rng", rng).standard_normal(
                len(values)
            )
        return values

    def rotated(self, basis: ArrayLike) -> Target:
        """Return the target ``z -> h(basis^T z)``, its directions turned by `basis`.

        Parameters
        ----------
        basis : array_like, shape (k, k)
            Orthonormal columns.

        Raises
        ------
        ValueError
            If the columns are not orthonormal.
        """
        turn = _validate.frozen(orthonormal("basis", basis, rows=self.k))
        if turn.shape[1] != self.k:
            raise ValueError(f"basis must have shape ({self.k}, {self.k}), got {turn.shape}")
        gradient = self.gradient
        return replace(
            self,
            name=f"rotated {self.name}",
            signal=lambda z: self.signal(z @ turn),
            gradient=None if gradient is None else lambda z: gradient(z @ turn) @ turn.T,
        )


def orthonormal(name: str, basis: ArrayLike, *, rows: int) -> Array:
    """Check orthonormal columns.

    Parameters
    ----------
    name : str
        Of the argument, for the message.
    basis : array_like, shape (rows, r)
        What is checked; from one column to as many as rows.
    rows : int
        Dimension of the space, at least 1.

    Returns
    -------
    ndarray, shape (rows, r)
        The columns as they were given.

    Raises
    ------
    ValueError
        If the shape is wrong or the columns are not orthonormal to 1e-8.
    """
    rows = _validate.integer("rows", rows, least=1)
    columns = _validate.finite(name, basis, shape=(rows, None))
    if not 1 <= columns.shape[1] <= rows:
        raise ValueError(f"{name} must have 1 to {rows} columns, got shape {columns.shape}")
    deviation = float(np.abs(columns.T @ columns - np.eye(columns.shape[1])).max())
    if deviation > 1e-8:
        raise ValueError(
            f"{name} must have orthonormal columns, got a deviation of {deviation:.3g}"
        )
    return columns


def phase_retrieval(*, noise: float = 0.0, modulus: bool = False) -> Target:
    """Return the square of one coordinate, or its modulus: even, hence hard.

    Parameters
    ----------
    noise : float, default 0.0
        Standard deviation of the Gaussian noise of the labels.
    modulus : bool, default False
        Labels ``|z|`` instead of ``z^2``.
    """
    if modulus:
        return Target("modulus", 1, lambda z: np.abs(z[:, 0]), noise=noise, low=0.0)
    return Target(
        "phase retrieval", 1, lambda z: z[:, 0] ** 2, lambda z: 2 * z, noise=noise, low=0.0
    )


def two_layer_teacher(
    coefficients: ArrayLike = (1.0, 1.0),
    *,
    activation: Activation = GELU,
    noise: float = 0.0,
) -> Target:
    """Return a two-layer network, ``sum_j coefficients_j activation(z_j)``.

    Parameters
    ----------
    coefficients : array_like, shape (k,)
        Default: two equal neurons.
    activation : Activation
        Of the teacher's neurons, with a derivative.
    noise : float, default 0.0
        Standard deviation of the Gaussian noise of the labels.
    """
    c = _validate.finite("coefficients", coefficients, shape=(None,))
    if c.size == 0:
        raise ValueError("coefficients must not be empty")
    slope = activation.first("a target")
    # A coefficient of zero contributes no bound, whatever the activation's.
    low = sum(min(a * activation.low, a * activation.high) for a in c if a)
    high = sum(max(a * activation.low, a * activation.high) for a in c if a)
    return Target(
        f"{activation.name} teacher",
        c.size,
        lambda z: activation.value(z) @ c,
        lambda z: slope(z) * c,
        noise=noise,
        low=float(low),
        high=float(high),
    )


def half_spaces(k: int = 2, *, noise: float = 0.0) -> Target:
    """Return the indicator of an intersection of half-spaces, ``prod_j 1{z_j > 0}``.

    Parameters
    ----------
    k : int, default 2
        Number of half-spaces, one for each direction.
    noise : float, default 0.0
        Standard deviation of the Gaussian noise of the labels.
    """
    return Target(
        "half-spaces",
        k,
        lambda z: np.all(z > 0, axis=1).astype(np.float64),
        noise=noise,
        low=0.0,
        high=1.0,
    )


def parity(k: int = 2, *, noise: float = 0.0) -> Target:
    """Return the sign of a product, ``prod_j sign(z_j)``.

    Parameters
    ----------
    k : int, default 2
        Number of factors, one for each direction.
    noise : float, default 0.0
        Standard deviation of the Gaussian noise of the labels.
    """
    return Target(
        "parity", k, lambda z: np.prod(np.sign(z), axis=1), noise=noise, low=-1.0, high=1.0
    )


def polynomial(terms: Mapping[tuple[int, ...], float], *, noise: float = 0.0) -> Target:
    """Return a polynomial, ``sum coefficient * prod_j z_j ** power_j``.

    Parameters
    ----------
    terms : mapping of tuple of int to float
        Powers, one per coordinate, to coefficients: ``{(1, 1): 1.0}`` is ``z_1 z_2``.
    noise : float, default 0.0
        Standard deviation of the Gaussian noise of the labels.

    Raises
    ------
    ValueError
        If there is no term, the powers differ in length or one is negative.

    Examples
    --------
    >>> from traindyn.problems.multi_index.targets import polynomial
    >>> import numpy as np
    >>> target = polynomial({(2, 0): 1.0, (1, 1): -3.0})
    >>> z = np.array([[2.0, 1.0]])
    >>> target.signal(z), target.gradient(z)
    (array([-2.]), array([[ 1., -6.]]))
    """
    if not terms:
        raise ValueError("terms must not be empty")
    powers = list(terms)
    if any(len(first) != len(second) for first, second in pairwise(powers)) or not powers[0]:
        raise ValueError(f"terms must have one power per coordinate throughout, got {powers}")
    grid = np.array(
        [[_validate.integer("powers", p, least=0) for p in row] for row in powers], dtype=np.int64
    )
    coefficients = _validate.finite("coefficients", list(terms.values()), shape=(len(powers),))

    def signal(z: Array) -> Array:
        # (n, 1, k) ** (terms, k), multiplied over k.
        return np.asarray(np.prod(z[:, None, :] ** grid, axis=2) @ coefficients)

    def gradient(z: Array) -> Array:
        columns = []
        for j in range(grid.shape[1]):
            lowered = grid.copy()
            lowered[:, j] = np.maximum(lowered[:, j] - 1, 0)
            columns.append(np.prod(z[:, None, :] ** lowered, axis=2) @ (coefficients * grid[:, j]))
        return np.stack(columns, axis=1)

    even = bool(np.all(grid % 2 == 0))
    constant = float(coefficients[np.all(grid == 0, axis=1)].sum())
    varying = coefficients[np.any(grid > 0, axis=1)]
    return Target(
        "polynomial",
        grid.shape[1],
        signal,
        gradient,
        noise=noise,
        # Bounds that need no search: sums of squares with coefficients of one sign.
        low=constant if even and np.all(varying >= 0) else -np.inf,
        high=constant if even and np.all(varying <= 0) else np.inf,
    )
