"""Argument checks that name the argument, what was given and what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_NO_NUMBERS = (str, bytes, np.datetime64, np.timedelta64)
"""What an array of objects may hold that Python makes a float of, and that is none."""
_MOST_AXES = 64
"""Depth of nested lists down to which NumPy makes an array of them."""


def finite(name: str, value: ArrayLike, *, shape: tuple[int | None, ...] | None = None) -> Array:
    """Return `value` as a finite float array, of the given shape (None: any length)."""
    return _checked(name, numeric(name, value), shape)


def numeric(name: str, value: ArrayLike, *, shape: tuple[int | None, ...] | None = None) -> Array:
    """Return `value` as a float array of the given shape; NaN is the caller's to look for."""
    array = _array(name, value)
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must be real, got an array of {array.dtype}")
    _check_shape(name, array, shape)
    return _as_type(name, array, np.float64)


def finite_complex(
    name: str, value: ArrayLike, *, shape: tuple[int | None, ...] | None = None
) -> NDArray[Any]:
    """Return `value` as a finite array of floats or of complex numbers, as :func:`finite`."""
    array = _array(name, value)
    kind = np.complex128 if array.dtype.kind == "c" else np.float64
    return _checked(name, _as_type(name, array, kind), shape)


def _as_type(name: str, array: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return an array of numbers in double precision."""
    if array.dtype.char not in "gG":
        return array.astype(kind, copy=False)
    try:
        with np.errstate(over="raise", under="ignore"):
            return array.astype(kind)
    except FloatingPointError:
        raise ValueError(f"{name} must be below 1e308 in size, got {_shown(array)}") from None


def _array(name: str, value: Any) -> NDArray[Any]:
    """Return `value` as an array of numbers."""
    unmasked(name, value)
    try:
        array = np.asarray(value)
        # A string is no number, also where it reads like one.
        number = array.dtype != object or not any(isinstance(e, _NO_NUMBERS) for e in array.flat)
        # What NumPy has no type for, such as fractions, may have a value as a float.
        array = array.astype(np.float64) if number and array.dtype == object else array
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numeric, got {_shown(value)}") from None
    except OverflowError:
        raise ValueError(f"{name} must be below 1e308 in size, got {_shown(value)}") from None
    if array.dtype.kind not in "biufc":
        raise ValueError(f"{name} must be numeric, got {_shown(value)}")
    return array


def unmasked(name: str, value: Any) -> None:
    """Refuse masked entries, which NumPy would take for numbers like the others."""
    if _masks(value, _MOST_AXES):
        raise ValueError(f"{name} must have no masked entries, got {_shown(value)}")


def _masks(value: Any, depth: int) -> bool:
    """Whether an array, or one in lists down to a depth, has masked entries."""
    if isinstance(value, np.ma.MaskedArray):
        return bool(np.ma.is_masked(value))
    objects = isinstance(value, np.ndarray) and value.dtype == object
    nested = (objects and value.ndim > 0) or isinstance(value, (list, tuple))
    return nested and depth > 0 and any(_masks(part, depth - 1) for part in value)


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
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python does not write out an integer of thousands of digits
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= 60 else f"{text[:57]}..."


def integer(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Return `value` as an int in [least, most]."""
    allowed = f"an integer >= {least}" if most is None else f"an integer in [{least}, {most}]"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {allowed}, got {value}")
    return int(value)
