"""Packing of statistics into vectors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from traindyn.effective._layout import Layout


class Mixed(NamedTuple):
    """Statistics with a scalar, a vector, a general and a Gram matrix."""

    t: np.ndarray
    v: np.ndarray
    m: np.ndarray
    R: np.ndarray


def _mixed() -> Mixed:
    rng = np.random.default_rng(0)
    half = rng.standard_normal((3, 3))
    return Mixed(
        np.asarray(2.0), rng.standard_normal(3), rng.standard_normal((3, 2)), half @ half.T
    )


def test_round_trip_keeps_every_entry_and_leading_axes() -> None:
    """A wrong offset or axis order would mix fields."""
    given = _mixed()
    layout = Layout(given)
    assert layout.size == 1 + 3 + 6 + 6
    vector = layout.pack(given)
    for found, wanted in zip(layout.unpack(vector), given, strict=True):
        np.testing.assert_array_equal(found, wanted)
    stacked = layout.unpack(np.stack([vector, 2 * vector]))
    assert stacked.R.shape == (2, 3, 3)
    np.testing.assert_array_equal(stacked.m[1], 2 * given.m)


def test_gram_fields_unpack_symmetric_and_general_ones_do_not() -> None:
    """Keeping all entries of a Gram matrix would let rounding break its symmetry."""
    layout = Layout(Mixed(*(np.zeros_like(array) for array in _mixed())))
    unpacked = layout.unpack(np.random.default_rng(1).standard_normal(layout.size))
    np.testing.assert_array_equal(unpacked.R, unpacked.R.T)

    class Square(NamedTuple):
        m: np.ndarray

    square = Layout(Square(np.zeros((2, 2))))
    assert square.size == 4  # control: a symmetric start does not make m symmetric


def test_packing_keeps_leading_axes_and_names_entries() -> None:
    """Many records at once, in the order of the names."""
    given = _mixed()
    layout = Layout(given)
    vector = layout.pack(given)
    many = Mixed(*(np.stack([[array], [3 * array]]) for array in given))
    found = layout.pack(many)
    assert found.shape == (2, 1, layout.size)
    np.testing.assert_array_equal(found[:, 0], [vector, 3 * vector])
    names = layout.names
    assert len(names) == layout.size
    assert names[:2] == ("t", "v[0]") and names[4:6] == ("m[0,0]", "m[0,1]")
    assert names[10:] == ("R[0,0]", "R[0,1]", "R[0,2]", "R[1,1]", "R[1,2]", "R[2,2]")
    assert vector[names.index("R[1,2]")] == given.R[1, 2]
    with pytest.raises(ValueError, match=r"statistics\.v must have shape \(2, 1, 3\)"):
        layout.pack(many._replace(v=given.v))


def test_bad_statistics_are_named() -> None:
    """NaN or asymmetric statistics must not enter a solver."""
    given = _mixed()
    with pytest.raises(ValueError, match=r"statistics\.v must be finite"):
        Layout(given._replace(v=np.array([1.0, np.nan, 0.0])))
    with pytest.raises(ValueError, match=r"statistics\.R must be symmetric"):
        Layout(given._replace(R=np.arange(9.0).reshape(3, 3)))
    with pytest.raises(ValueError, match=r"statistics\.v must have shape \(3,\)"):
        Layout(given).pack(given._replace(v=np.zeros(2)))
