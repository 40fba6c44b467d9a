"""Bad input for data sets and figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Case, collect, without_example
from matplotlib.figure import Figure

from traindyn.data import Images
from traindyn.data.images import Raw

LABELS = np.array([0, 1, 1, 0, 1])
PIXELS = np.arange(20).reshape(5, 2, 2) % 7


AXES: Any = Figure().add_subplot()


def _raw() -> Raw:
    return Raw(PIXELS, LABELS, ("even", "odd"), top=6)


EXAMPLES = {
    "data.images.Images.take": lambda: (
        Images(PIXELS.reshape(5, 4) / 6.0, LABELS, (2, 2), ("even", "odd")), {"rows": [0, 3]},
    ),
    "data.images.choose": lambda: {
        "raw": _raw(), "classes": [1, 0], "samples": 3, "scale": "unit", "rng": 0,
    },
    "data.loaders.digits": lambda: {
        "classes": (3, 8), "samples": 5, "scale": "standard", "rng": 1,
    },
    "data.loaders.mnist_sample": lambda: {
        "part": "test", "classes": (3, 8), "samples": 5, "scale": "standard", "rng": 1,
    },
    "figures.band": lambda: {
        "ax": AXES, "x": [0.0, 1.0], "mean": [1.0, 2.0], "error": [0.1, 0.2], "label": "run",
        "color": "red",
    },
    "figures.plain_ticks": lambda: {"axis": AXES.xaxis, "values": [1.0, 2.0]},
    "figures.spectral_density": lambda: {
        "ax": AXES, "eigenvalues": [1.0, 2.0, 2.5], "bins": 3, "label": "spectrum",
    },
    "figures.theory": lambda: {
        "ax": AXES, "x": [0.0, 1.0], "y": [1.0, 2.0], "label": "theory",
    },
}  # fmt: skip
LOADERS = ("celeba", "cifar10", "fashion_mnist", "mnist", "svhn", "usps")
_FILES = "needs files that are not shipped; its arguments go through `choose`"
REASONS = {
    "data.files": "names and downloads published files",
    "data.formats": "readers of published files, called with what a format fixes",
    "data.images.Images": "a record of results",
    "data.images.Raw": "a record of what a file holds",
    **{f"data.loaders.{name}": _FILES for name in LOADERS},
    "figures.Theme": "a record: the two themes are LIGHT and DARK",
    "figures.publish": "hands on what render made",
    "figures.render": "draws what the functions given to it draw",
    "figures.show": "draws what the functions given to it draw",
}
# A curve has gaps where it is NaN.
_GAPS = ("nan", "objects", "None")
LENIENT = {
    "figures.band": {"x": _GAPS, "mean": _GAPS, "error": _GAPS},
    "figures.theory": {"x": _GAPS, "y": _GAPS},
}
CASES = collect(["data", "figures"], EXAMPLES, REASONS, LENIENT)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_by_name(case: Case) -> None:
    """One argument spoilt: an error that names it, or a result without NaN."""
    assert case.defects() == []


def test_every_public_callable_has_an_example_or_a_reason() -> None:
    """Nothing public is left out without a word."""
    assert without_example(CASES) == []
