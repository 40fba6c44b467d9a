"""Readers refuse files of another form, and say which and why."""

import gzip
import zipfile

import numpy as np
import pytest

from traindyn.data.formats import (
    Pictures,
    read_attributes,
    read_idx,
    read_matlab,
    read_partition,
    read_records,
    read_sparse,
)


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


def test_idx_need_not_be_compressed(tmp_path):
    """As it is after decompression."""
    content = bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 8])
    np.testing.assert_array_equal(read_idx(saved(tmp_path, content), axes=1), [7, 8])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 1:0.5 9:1\n", "must be a file of LIBSVM with 4 features"),
        (b"one 1:0.5\n", "must be a file of LIBSVM with 4 features"),
        (b"1 1:1.5\n", "must hold pixels from -1 to 1, got 0 to 1.5"),
        (b"11 1:0.5\n", "must have labels from 1 to 10, got 11.0 to 11.0"),
    ],
)
def test_sparse_file_of_another_form(tmp_path, content, message):
    """Too many features, words, grey beyond white, no digit."""
    with pytest.raises(ValueError, match=message):
        read_sparse(saved(tmp_path, content), shape=(2, 2))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("2\nBald Old\na 1 -1\nb -1\n", "got the row 'b -1'"),
        ("3\nBald Old\na 1 -1\nb -1 1\n", "must have 3 rows .* 2 marks, got 2 rows"),
        ("", "must begin with a number of images and names of attributes, got 0 lines"),
    ],
)
def test_attributes_of_another_form(tmp_path, content, message):
    """A mark too few, a row too few, nothing at all."""
    with pytest.raises(ValueError, match=message):
        read_attributes(saved(tmp_path, content.encode()), "Bald")


def test_a_file_without_a_part_is_named(tmp_path):
    """Missing in the table, or of a part that is none."""
    path = saved(tmp_path, b"a 0\nb 5\n")
    np.testing.assert_array_equal(read_partition(path, ["a"]), [0])
    for name, given in (("b", "'5'"), ("c", "None")):
        with pytest.raises(ValueError, match=f"must give {name} the part 0, 1 or 2, got {given}"):
            read_partition(path, ["a", name])


def test_a_missing_picture_is_named(tmp_path, write):
    """One that is not in the archive, and one that is no picture."""
    path = saved(tmp_path, write.faces(np.zeros((1, 4, 4, 3), np.uint8)))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("text.jpg", b"no picture")
    held = Pictures(path, ["img_align_celeba/000001.jpg", "text.jpg", "none.jpg"], (3, 2, 2))
    assert held[np.array([0])].shape == (1, 3, 2, 2)
    for row, name in ((1, "text.jpg"), (2, "none.jpg")):
        with pytest.raises(ValueError, match=f"must hold the picture {name}"):
            held[np.array([row])]


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
