"""Argument checks that name the argument, what was given and what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def finite(name: str, value: ArrayLike, *, shape: tuple[int | None, ...] | None = None) -> Array:
    """Return `value` as a finite float array, of the given shape (None: any length)."""
    array = np.asarray(value, dtype=np.float64)
    if shape is not None and (
        array.ndim != len(shape)
        or any(want is not None and want != got for want, got in zip(shape, array.shape))
    ):
        wanted = "(" + ", ".join("any" if s is None else str(s) for s in shape) + ")"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    bad = np.size(array) - np.count_nonzero(np.isfinite(array))
    if bad:
        raise ValueError(f"{name} must be finite, got {bad} NaN or infinite entries")
    return array


def number(name: str, value: Any) -> float:
    """Return `value` as a finite float."""
    return float(finite(name, value, shape=()))


def positive(name: str, value: Any) -> float:
    """Return `value` as a float in (0, infinity)."""
    result = number(name, value)
    if result <= 0:
        raise ValueError(f"{name} must be positive, got {value!r}")
    return result


def non_negative(name: str, value: Any) -> float:
    """Return `value` as a float in [0, infinity)."""
    result = number(name, value)
    if result < 0:
        raise ValueError(f"{name} must be non-negative, got {value!r}")
    return result


def integer(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Return `value` as an int in [least, most]."""
    allowed = f"an integer >= {least}" if most is None else f"an integer in [{least}, {most}]"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {allowed}, got {value}")
    return int(value)


def mask(name: str, value: ArrayLike, *, size: int) -> NDArray[np.bool_]:
    """Return `value` as an array of `size` bools."""
    array = np.asarray(value)
    if array.shape != (size,) or array.dtype != np.bool_:
        raise ValueError(
            f"{name} must have shape ({size},) of bool, got {array.shape} of {array.dtype}"
        )
    return array


def choice(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """Return `value` if it is one of `allowed`."""
    if value not in allowed:
        options = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} must be one of {options}, got {value!r}")
    return value


def probability_vector(name: str, value: ArrayLike) -> Array:
    """Return `value` as a 1-D array of positive weights that sum to one."""
    array = finite(name, value, shape=(None,))
    if np.any(array <= 0):
        raise ValueError(f"{name} must be positive, got smallest entry {array.min():.6g}")
    if abs(array.sum() - 1) > 1e-12 * max(array.size, 10):
        raise ValueError(f"{name} must sum to one, got sum {array.sum():.15g}")
    return array


def symmetric(name: str, value: ArrayLike, *, size: int | None = None) -> Array:
    """Return `value` as a finite symmetric matrix."""
    array = finite(name, value, shape=(size, size))
    if array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} must be square, got shape {array.shape}")
    asymmetry = np.abs(array - array.T).max(initial=0.0)
    if asymmetry > 1e-12 * max(1.0, np.abs(array).max(initial=0.0)):
        raise ValueError(f"{name} must be symmetric, got asymmetry {asymmetry:.3g}")
    return array


def positive_semidefinite(name: str, value: ArrayLike, *, size: int | None = None) -> Array:
    """Return `value` as a symmetric matrix without negative eigenvalues (up to rounding)."""
    array = symmetric(name, value, size=size)
    if array.size:
        eigenvalues = np.linalg.eigvalsh(array)
        if eigenvalues[0] < -1e-10 * max(1.0, abs(eigenvalues[-1])):
            raise ValueError(
                f"{name} must be positive semi-definite, got smallest eigenvalue "
                f"{eigenvalues[0]:.6g}"
            )
    return array


def unit_gram(name: str, value: ArrayLike) -> Array:
    """Return `value` as the Gram matrix of linearly independent unit vectors."""
    array = symmetric(name, value)
    worst = np.abs(np.diag(array) - 1).max(initial=0.0)
    if worst > 1e-12:
        raise ValueError(f"{name} must have unit diagonal, got a deviation of {worst:.3g}")
    smallest = np.linalg.eigvalsh(array)[0]
    if smallest < 1e-10:
        raise ValueError(
            f"{name} must be positive definite (linearly independent means), got smallest "
            f"eigenvalue {smallest:.6g}"
        )
    return array


def increasing(name: str, value: ArrayLike, *, least: float = 0.0) -> Array:
    """Return `value` as a non-empty strictly increasing 1-D array starting at or above `least`."""
    array = finite(name, value, shape=(None,))
    if array.size == 0:
        raise ValueError(f"{name} must not be empty")
    if array[0] < least:
        raise ValueError(f"{name} must start at {least:g} or later, got {array[0]:g}")
    if np.any(np.diff(array) <= 0):
        raise ValueError(
            f"{name} must be strictly increasing, got a step of {np.diff(array).min():.3g}"
        )
    return array
