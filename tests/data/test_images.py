"""Choosing classes and images, and scaling them, on a data set made by hand."""

import numpy as np
import pytest

from traindyn.data.images import Raw, choose

NAMES = ("cat", "dog", "fox")


def raw():
    """Five pictures of 1 x 2 pixels."""
    pixels = np.array([[0, 10], [20, 30], [40, 60], [70, 60], [90, 100]]).reshape(5, 1, 2)
    return Raw(pixels, np.array([0, 1, 2, 0, 1]), NAMES, top=100)


def chosen(**options):
    """All of it, but for the options."""
    nothing = {"classes": None, "samples": None, "scale": "unit", "rng": None}
    return choose(raw(), **(nothing | options))


def test_everything_in_the_order_of_the_file():
    """No option: nothing left out, pixels over the largest possible value."""
    found = chosen()
    np.testing.assert_array_equal(found.pictures * 100, raw().pixels)
    np.testing.assert_array_equal(found.labels, raw().labels)
    assert (found.shape, found.names, len(found)) == ((1, 2), NAMES, 5)
    assert (found.inputs.dtype, found.labels.dtype) == (np.float64, np.int64)


@pytest.mark.parametrize(
    "classes", [("dog", "cat"), (1, 0), np.array([1, 0]), (np.int64(1), "cat")]
)
def test_labels_follow_the_classes_asked_for(classes):
    """Names or numbers; the order given decides, so that labels can become signs."""
    found = chosen(classes=classes)
    assert found.names == ("dog", "cat")
    np.testing.assert_array_equal(found.labels, [1, 0, 1, 0])
    np.testing.assert_array_equal(found.signs, [1, -1, 1, -1])
    np.testing.assert_array_equal(found.inputs[:, 0] * 100, [0, 20, 70, 90])


def test_first_images_or_random_ones():
    """Without a generator the first; with one, all images come equally often, none twice."""
    np.testing.assert_array_equal(chosen(samples=2).labels, [0, 1])
    rng = np.random.default_rng(1)
    draws = np.array([chosen(samples=2, rng=rng).inputs[:, 0] for _ in range(500)])
    assert np.all(draws[:, 0] != draws[:, 1])
    values, counts = np.unique(draws, return_counts=True)
    assert len(values) == 5
    # Each is one of 1000 draws with probability 1/5: standard deviation below 13.
    assert np.all(abs(counts - 200) < 5 * 13)
    np.testing.assert_array_equal(chosen(samples=3, rng=7).inputs, chosen(samples=3, rng=7).inputs)
    # With all of them, a generator shuffles.
    np.testing.assert_array_equal(np.sort(chosen(rng=3).inputs[:, 0]), chosen().inputs[:, 0])


def test_labels_stay_with_their_images():
    """Shuffled, each label is still that of its image."""
    found = chosen(classes=("fox", "dog"), rng=5)
    for picture, label in zip(found.inputs, found.labels):
        row = np.flatnonzero((raw().pixels.reshape(5, 2) == np.round(100 * picture)).all(axis=1))
        assert NAMES[raw().labels[row.item()]] == found.names[label]


def test_standardised_by_image():
    """Mean zero and variance one in every image: the first is brought to (-1, 1)."""
    np.testing.assert_allclose(chosen(scale="standard", samples=1).inputs, [[-1, 1]], atol=1e-14)
    found = chosen(scale="standard").inputs
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-14)
    np.testing.assert_allclose(np.square(found).sum(axis=1), 2, rtol=1e-14)
    flat = Raw(np.full((1, 1, 3), 7), np.array([0]), NAMES)
    with pytest.raises(ValueError, match="constant"):
        choose(flat, classes=None, samples=None, scale="standard", rng=None)


def test_take_keeps_the_rest():
    """A slice, positions or a mask: images and labels together."""
    found = chosen()
    for rows in (slice(1, 3), [1, 2], np.array([False, True, True, False, False])):
        part = found.take(rows)
        np.testing.assert_array_equal(part.inputs, found.inputs[1:3])
        np.testing.assert_array_equal(part.labels, [1, 2])
        assert (part.shape, part.names) == (found.shape, found.names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ("cat", "cow")}, "classes must be one of 'cat', 'dog', 'fox', got 'cow'"),
        ({"classes": (0, 3)}, r"classes must be an integer in \[0, 2\], got 3"),
        ({"classes": (0, "cat")}, "classes must differ"),
        ({"classes": ()}, "classes must be a list of at least one class"),
        ({"classes": "cat"}, "classes must be a list of at least one class, got 'cat'"),
        ({"samples": 6}, r"samples must be an integer in \[1, 5\], got 6"),
        ({"samples": 3, "classes": ("cat",)}, r"samples must be an integer in \[1, 2\], got 3"),
        ({"samples": 0}, "samples must be"),
        ({"scale": "sphere"}, "scale must be one of 'unit', 'standard'"),
    ],
)
def test_refusals_name_what_is_allowed(options, message):
    """Unknown classes, too many images, an unknown scale."""
    with pytest.raises(ValueError, match=message):
        chosen(**options)


def test_only_two_classes_have_signs():
    """Three labels as signs would be nonsense."""
    with pytest.raises(ValueError, match="signs need two classes, got 3"):
        _ = chosen().signs
