"""Summary statistics as vectors, for solvers that do not depend on their shapes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traindyn import _validate
from traindyn._types import Array


class _Field(NamedTuple):
    """One array of the statistics and where its entries stand in the vector."""

    name: str
    gram: bool
    kept: NDArray[np.int64]  # flat indices of the entries kept
    position: NDArray[np.int64]  # place in the vector of every entry, shape of the array


class Layout:
    """Pack a NamedTuple of arrays into a vector and back.

    Fields whose name starts with ``R`` are Gram matrices by the convention of the
    problems: only their upper triangle is kept, so a vector always unpacks to exactly
    symmetric matrices and a Jacobian has no directions that leave them.

    Parameters
    ----------
    statistics : NamedTuple of arrays
        Fixes names and shapes.

    Attributes
    ----------
    size : int
        Length of a vector.

    Raises
    ------
    ValueError
        If an entry is not finite or a Gram matrix is not symmetric.
    """

    def __init__(self, statistics: Any) -> None:
        _validate.providing("statistics", statistics, "_fields")
        self._kind: Any = type(statistics)
        fields = []
        self.size = 0
        for name, value in zip(self._kind._fields, statistics, strict=True):
            array = _validate.finite(f"statistics.{name}", value)
            indices = np.arange(array.size).reshape(array.shape)
            gram = name.startswith("R") and array.ndim == 2
            if gram:
                _validate.symmetric(f"statistics.{name}", array, scale=1.0)
                indices = np.minimum(indices, indices.T)
            kept, position = np.unique(indices, return_inverse=True)
            position = self.size + position.reshape(array.shape)
            fields.append(_Field(name, gram, kept, position))
            self.size += kept.size
        self._fields = tuple(fields)

    @property
    def names(self) -> tuple[str, ...]:
        """What the entries of a vector are, such as ``m[0,1]``."""
        found = []
        for field in self._fields:
            places = list(np.ndindex(field.position.shape))
            for place in (places[flat] for flat in field.kept):
                indices = ",".join(str(i) for i in place)
                found.append(f"{field.name}[{indices}]" if place else field.name)
        return tuple(found)

    def diagonal(self, index: int) -> tuple[int, ...]:
        """Places of (i, i) and (j, j) if the entry of a vector is (i, j) of a Gram matrix."""
        for field in self._fields:
            if field.gram and index in field.position:
                row, column = np.argwhere(field.position == index)[0]
                ends = (row, row), (column, column)
                return tuple(int(field.position[end]) for end in ends) if row != column else ()
        return ()

    def pack(self, statistics: Any) -> Array:
        """Return vectors, shape (..., size), of arrays that share their leading axes."""
        lead = np.shape(statistics[0])[: np.ndim(statistics[0]) - self._fields[0].position.ndim]
        parts = []
        for field, value in zip(self._fields, statistics, strict=True):
            array = np.asarray(value, dtype=np.float64)
            if array.shape != lead + field.position.shape:
                raise ValueError(
                    f"statistics.{field.name} must have shape {lead + field.position.shape}, "
                    f"got {array.shape}"
                )
            parts.append(array.reshape(*lead, -1)[..., field.kept])
        return np.concatenate(parts, axis=-1)

    def unpack(self, vector: Array) -> Any:
        """Return the statistics of vectors, shape (..., size), with the same leading axes."""
        return self._kind(*(vector[..., field.position] for field in self._fields))
