"""Argument checks that name the argument, what was given and what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def finite(name: str, value: ArrayLike, *, shape: tuple[int | None, ...] | None = None) -> Array:
    """Return `value` as a finite float array, of the given shape (None: any length)."""
    return _checked(name, numeric(name, value), shape)


def numeric(name: str, value: ArrayLike, *, shape: tuple[int | None, ...] | None = None) -> Array:
    """Return `value` as a float array of the given shape; NaN is the caller's to look for."""
    array = _array(name, value)
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must be real, got an array of {array.dtype}")
    _check_shape(name, array, shape)
    return array.astype(np.float64, copy=False)


def finite_complex(
    name: str, value: ArrayLike, *, shape: tuple[int | None, ...] | None = None
) -> NDArray[Any]:
    """Return `value` as a finite array of floats or of complex numbers, as :func:`finite`."""
    array = _array(name, value)
    kind = np.complex128 if array.dtype.kind == "c" else np.float64
    return _checked(name, array.astype(kind, copy=False), shape)


def _array(name: str, value: Any) -> NDArray[Any]:
    """Return `value` as an array of numbers."""
    unmasked(name, value)
    try:
        array = np.asarray(value)
        # What NumPy has no type for, such as fractions, may have a value as a float.
        array = array.astype(np.float64) if array.dtype == object else array
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numeric, got {_shown(value)}") from None
    # A string is no number, also where it reads like one.
    if array.dtype.kind not in "biufc":
        raise ValueError(f"{name} must be numeric, got {_shown(value)}")
    return array


def unmasked(name: str, value: Any) -> None:
    """Refuse masked entries, which NumPy would take for numbers like the others."""
    parts = value if isinstance(value, (list, tuple)) else (value,)
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise ValueError(f"{name} must have no masked entries, got {_shown(value)}")


def _checked(name: str, array: NDArray[Any], shape: tuple[int | None, ...] | None) -> NDArray[Any]:
    """Return an array of numbers if it has the shape and is finite."""
    _check_shape(name, array, shape)
    bad = np.size(array) - np.count_nonzero(np.isfinite(array))
    if bad:
        raise ValueError(f"{name} must be finite, got {bad} NaN or infinite entries")
    return array


def _check_shape(name: str, array: NDArray[Any], shape: tuple[int | None, ...] | None) -> None:
    if shape is not None and (
        array.ndim != len(shape)
        or any(want is not None and want != got for want, got in zip(shape, array.shape))
    ):
        wanted = "(" + ", ".join("any" if s is None else str(s) for s in shape) + ")"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")


def _shown(value: Any) -> str:
    """Return what was given, shortened."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def integer(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Return `value` as an int in [least, most]."""
    allowed = f"an integer >= {least}" if most is None else f"an integer in [{least}, {most}]"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {allowed}, got {value}")
    return int(value)
