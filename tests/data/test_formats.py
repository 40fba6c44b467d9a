"""Readers refuse files of another form, and say which and why."""

import gzip

import numpy as np
import pytest

from traindyn.data.formats import read_idx, read_matlab, read_records


def saved(folder, content):
    """A file of this content."""
    path = folder / "file"
    path.write_bytes(content)
    return path


def test_idx_is_big_endian_and_row_by_row(tmp_path):
    """Written out byte by byte."""
    content = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255])
    found = read_idx(saved(tmp_path, gzip.compress(content)), axes=2)
    np.testing.assert_array_equal(found, [[1, 2, 3], [4, 5, 255]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bytes([0, 0, 8, 3]) + bytes(12), "must start with 00 00 08 01, got 00 00 08 03"),
        (bytes([0, 0, 13, 1, 0, 0, 0, 0]), "must start with 00 00 08 01, got 00 00 0d 01"),
        (b"\x1f", "must start with 00 00 08 01, got 1f"),
        (bytes([0, 0, 8, 1, 0]), "must have a header of 8 bytes, got 5"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 2, 7]), "must hold 2 entries, got 1"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 7, 7]), "must hold 2 entries, got 3"),
    ],
)
def test_idx_of_another_form(tmp_path, content, message):
    """Number of axes, type, header and size are all checked."""
    path = saved(tmp_path, gzip.compress(content))
    with pytest.raises(ValueError, match=message) as caught:
        read_idx(path, axes=1)
    assert str(path) in str(caught.value)


def test_records_come_in_the_order_asked_for(tmp_path, write):
    """Not in the order of the archive."""
    path = saved(tmp_path, write.archive({"b": bytes([1, 10, 11]), "a": bytes([0, 20, 21] * 2)}))
    pixels, labels = read_records(path, ["a", "b"], shape=(1, 2), classes=2)
    np.testing.assert_array_equal(pixels[:, 0], [[20, 21], [20, 21], [10, 11]])
    np.testing.assert_array_equal(labels, [0, 0, 1])


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a": bytes([0, 1, 1])}, r"must hold b, got \['a'\]"),
        ({"a": bytes([0, 1, 1]), "b": bytes(4)}, "b in .* records of 3 bytes, got 4 bytes"),
        ({"a": bytes([2, 1, 1]), "b": b""}, "must have labels from 0 to 1, got 2 to 2"),
        ({"a": b"", "b": b""}, "must hold at least one image"),
    ],
)
def test_records_of_another_form(tmp_path, write, members, message):
    """A missing member, half a record, an unknown label, nothing at all."""
    path = saved(tmp_path, write.archive(members))
    with pytest.raises(ValueError, match=message):
        read_records(path, ["a", "b"], shape=(1, 2), classes=2)


def test_matlab_of_another_form(tmp_path, write):
    """Arrays missing, images in another order or of another type, labels from zero."""
    images, marks = np.zeros((2, 3, 1, 4), np.uint8), np.full((4, 1), 10, np.uint8)
    good = read_matlab(saved(tmp_path, write.matlab(X=images, y=marks)), shape=(1, 2, 3))
    assert good[0].shape == (4, 1, 2, 3)
    np.testing.assert_array_equal(good[1], 0)
    for arrays, message in (
        ({"X": images}, "must hold X and y, got no y"),
        ({"X": images.T, "y": marks}, r"X in .* must have shape \(2, 3, 1, 4\) of uint8"),
        ({"X": images.astype(float), "y": marks}, "got .* of float64"),
        ({"X": images, "y": marks % 10}, "must have labels from 1 to 10, got 0 to 0"),
    ):
        with pytest.raises(ValueError, match=message):
            read_matlab(saved(tmp_path, write.matlab(**arrays)), shape=(1, 2, 3))
