"""Argument checks that name the argument, what was given and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import ArrayLike, NDArray

from traindyn._types import Array

T = TypeVar("T")
K = TypeVar("K", bound=np.generic)

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


def real(name: str, value: ArrayLike, *, shape: tuple[int | None, ...] | None = None) -> Array:
    """Return `value` as a float array of the given shape, whose entries nobody has looked at.

    For what is called in every step of a loop.
    """
    unmasked(name, value)
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        raise ValueError(f"{name} must be numeric, got {_shown(value)}") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numeric and real, got an array of {array.dtype}")
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


def frozen(array: NDArray[K]) -> NDArray[K]:
    """Return a read-only copy: what an object holds changes with no array of its caller's."""
    # The layout is kept too: the last digits of matrix products depend on it.
    low, high = np.lib.array_utils.byte_bounds(array)
    start = array.__array_interface__["data"][0] - low
    copy = np.ndarray(
        array.shape, array.dtype, np.empty(high - low, np.uint8), start, array.strides
    )
    copy[...] = array
    copy.setflags(write=False)
    return copy


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


def function(name: str, value: Any) -> Any:
    """Return `value` if it can be called."""
    if not callable(value):
        raise ValueError(f"{name} must be callable, got {_shown(value)}")
    return value


def instance(name: str, value: Any, kind: type[T]) -> T:
    """Return `value` if it is of a class."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be a {kind.__name__}, got {_shown(value)}")
    return value


def providing(name: str, value: Any, *attributes: str) -> Any:
    """Return `value` if it has the attributes that are asked of it."""
    missing = [each for each in attributes if not hasattr(value, each)]
    if missing:
        raise ValueError(f"{name} must have {', '.join(missing)}, got {_shown(value)}")
    return value


def generator(name: str, rng: Any) -> np.random.Generator:
    """Return the generator that an int, a SeedSequence or a Generator stands for."""
    try:
        # Nothing given would be different numbers in every run.
        found = None if rng is None else np.random.default_rng(rng)
    except (TypeError, ValueError):
        found = None
    if found is None or isinstance(rng, np.random.RandomState):
        raise ValueError(
            f"{name} must be a non-negative int, a SeedSequence or a Generator, got {_shown(rng)}"
        )
    if not isinstance(found.bit_generator.seed_seq, ISpawnableSeedSequence):
        raise ValueError(
            f"{name} must be able to spawn other streams, as a Generator of an int or a "
            f"SeedSequence is, got {_shown(rng)}"
        )
    return found


def number(name: str, value: Any) -> float:
    """Return `value` as a finite float."""
    return float(finite(name, value, shape=()))


def positive(name: str, value: Any) -> float:
    """Return `value` as a float in (0, infinity)."""
    result = number(name, value)
    if result <= 0:
        raise ValueError(f"{name} must be positive, got {value!r}")
    return result


def positives(name: str, value: ArrayLike, *, shape: tuple[int | None, ...] | None = None) -> Array:
    """Return `value` as a finite array of positive numbers, of the given shape."""
    array = finite(name, value, shape=shape)
    if array.size and array.min() <= 0:
        raise ValueError(f"{name} must be positive, got {array.min():g}")
    return array


def positive_or_infinite(name: str, value: Any) -> float:
    """Return `value` as a float in (0, infinity]."""
    infinite = np.ndim(value) == 0 and not isinstance(value, str) and value == math.inf
    return math.inf if infinite else positive(name, value)


def not_nan(name: str, value: ArrayLike) -> Array:
    """Return `value` as a float array that may have infinite entries."""
    array = numeric(name, value)
    bad = np.count_nonzero(np.isnan(array))
    if bad:
        raise ValueError(f"{name} must not be NaN, got {bad} such entries")
    return array


def non_negative(name: str, value: Any) -> float:
    """Return `value` as a float in [0, infinity)."""
    result = number(name, value)
    if result < 0:
        raise ValueError(f"{name} must be non-negative, got {value!r}")
    return result


def share(name: str, value: Any) -> float:
    """Return `value` as a float in [0, 1]."""
    result = number(name, value)
    if not 0 <= result <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return result


def integer(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Return `value` as an int in [least, most]."""
    allowed = f"an integer >= {least}" if most is None else f"an integer in [{least}, {most}]"
    # NumPy counts durations as integers.
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be {allowed}, got {_shown(value)}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {allowed}, got {_shown(int(value))}")
    return int(value)


def listed(name: str, value: Any) -> list[Any]:
    """Return the entries of a sequence, which a string is not."""
    scalar = isinstance(value, np.ndarray) and value.ndim == 0
    if isinstance(value, str) or scalar or not isinstance(value, Iterable):
        raise ValueError(f"{name} must be a list, got {_shown(value)}")
    return list(value)


def integers(
    name: str,
    value: ArrayLike,
    *,
    least: int,
    most: int | None = None,
    shape: tuple[int | None, ...] | None = None,
) -> NDArray[np.int64]:
    """Return `value` as an array of integers in [least, most], of the given shape."""
    array = _array(name, value)
    allowed = f"integers >= {least}" if most is None else f"integers in [{least}, {most}]"
    # An empty list has no type of its own.
    if array.dtype.kind not in "iu" and array.size:
        raise ValueError(f"{name} must consist of {allowed}, got {_shown(value)}")
    _checked(name, array, shape)
    if array.size and (array.min() < least or (most is not None and array.max() > most)):
        raise ValueError(
            f"{name} must consist of {allowed}, got {array.min():g} to {array.max():g}"
        )
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must consist of integers below 2**63, got {array.max()}")
    return array.astype(np.int64)


def pair(name: str, value: Any, *, most: int) -> tuple[int, int]:
    """Return `value` as two integers in [0, most]."""
    if np.ndim(value) != 1 or len(value) != 2:
        raise ValueError(f"{name} must be two integers, got {_shown(value)}")
    first, second = value
    return (
        integer(f"{name}[0]", first, least=0, most=most),
        integer(f"{name}[1]", second, least=0, most=most),
    )


def mask(name: str, value: ArrayLike, *, size: int) -> NDArray[np.bool_]:
    """Return `value` as an array of `size` bools."""
    unmasked(name, value)
    array = np.asarray(value)
    if array.shape != (size,) or array.dtype != np.bool_:
        raise ValueError(
            f"{name} must have shape ({size},) of bool, got {array.shape} of {array.dtype}"
        )
    return array


def choice(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """Return `value` if it is one of `allowed`."""
    try:
        known = value in allowed
    except ValueError:  # an array is neither equal nor unequal
        known = False
    if not known:
        options = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} must be one of {options}, got {value!r}")
    return value


def ending(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return `value` as a finite float array whose last axes have the given shape."""
    array = finite(name, value)
    if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
        wanted = ", ".join(str(size) for size in shape)
        raise ValueError(f"{name} must have shape (..., {wanted}), got {array.shape}")
    return array


def record(
    name: str, value: T, shapes: tuple[tuple[str, ...], ...], *, single: bool = False, **sizes: int
) -> T:
    """Return a named tuple with its fields as finite float arrays of fitting shapes.

    `shapes` names the last axes of each field; an axis has the same size wherever it is named,
    and that in `sizes` if it is there. All fields have the same leading axes, none if `single`.
    """
    fields = getattr(value, "_fields", ())
    if len(fields) != len(shapes):
        raise ValueError(f"{name} must be a record of {len(shapes)} arrays, got {_shown(value)}")
    known, parts = dict(sizes), []
    leading: tuple[int, ...] | None = () if single else None
    for field, axes in zip(fields, shapes):
        array = finite(f"{name}.{field}", getattr(value, field))
        cut = array.ndim - len(axes)
        fits = cut >= 0 and all(
            known.setdefault(axis, got or -1) == got for axis, got in zip(axes, array.shape[cut:])
        )
        if not fits or (leading is not None and array.shape[:cut] != leading):
            begin = ("...",) if leading is None else leading
            wanted = ", ".join(str(each) for each in (*begin, *(known.get(a, a) for a in axes)))
            raise ValueError(f"{name}.{field} must have shape ({wanted}), got {array.shape}")
        leading = array.shape[:cut]
        parts.append(array)
    return type(value)(*parts)


def probability_vector(name: str, value: ArrayLike) -> Array:
    """Return `value` as a 1-D array of positive weights that sum to one."""
    array = finite(name, value, shape=(None,))
    if np.any(array <= 0):
        raise ValueError(f"{name} must be positive, got smallest entry {array.min():.6g}")
    if abs(array.sum() - 1) > 1e-12 * max(array.size, 10):
        raise ValueError(f"{name} must sum to one, got sum {array.sum():.15g}")
    return array


def symmetric(name: str, value: ArrayLike, *, size: int | None = None, scale: float = 0.0) -> Array:
    """Return `value` as a finite symmetric matrix.

    Rounding is relative to the largest entry, or to `scale`: the size of the numbers whose
    difference the matrix is, such as statistics in units of the means.
    """
    array = finite(name, value, shape=(size, size))
    if array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} must be square, got shape {array.shape}")
    asymmetry = np.abs(array - array.T).max(initial=0.0)
    if asymmetry > 1e-12 * max(scale, np.abs(array).max(initial=0.0)):
        raise ValueError(f"{name} must be symmetric, got asymmetry {asymmetry:.3g}")
    return array


def positive_semidefinite(
    name: str, value: ArrayLike, *, size: int | None = None, scale: float = 0.0
) -> Array:
    """Return `value` as a symmetric matrix without negative eigenvalues, up to rounding.

    Rounding is as in :func:`symmetric`.
    """
    array = symmetric(name, value, size=size, scale=scale)
    if array.size:
        eigenvalues = np.linalg.eigvalsh(array)
        if eigenvalues[0] < -1e-10 * max(scale, abs(eigenvalues[-1])):
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


def broadcast(**arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return arrays in their common shape."""
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError:
        *most, last = arrays
        shapes = ", ".join(str(array.shape) for array in arrays.values())
        raise ValueError(
            f"{', '.join(most)} and {last} must have shapes that broadcast, got {shapes}"
        ) from None


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
