"""Bad input for the laws of random matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Case, collect, without_example

from traindyn.laws import (
    HardSubspace,
    MarchenkoPastur,
    SampleCovariance,
    WeightedMarchenkoPastur,
    wishart_bidiagonal,
)

PLANE = [[2.0, 1.0], [1.0, 3.0]]
POINTS = [0.4, 1.0]


def _bidiagonal() -> Any:
    return wishart_bidiagonal(3, 5, 2, rng=0)


def _covariance() -> SampleCovariance:
    return SampleCovariance([1.0, 2.0], 0.5)


def _weighted() -> WeightedMarchenkoPastur:
    return WeightedMarchenkoPastur([-1.0, 1.0, 2.0], 0.3)


def _hard() -> HardSubspace:
    s = np.array([-1.5, -0.5, 0.5, 1.5])
    return HardSubspace(1 - s**2, s, 2.0)


EXAMPLES = {
    "laws.ensembles.Bidiagonal.count_below": lambda: (_bidiagonal(), {"level": 2.0}),
    "laws.ensembles.Bidiagonal.extreme_eigenvalues": lambda: (_bidiagonal(), {"largest": True}),
    "companion.foundations.random_matrices.spectra.sample_covariance_eigenvalues": lambda: {"samples": PLANE},
    "laws.ensembles.wishart_bidiagonal": lambda: {
        "dimension": 3, "samples": 5, "replicas": 2, "rng": 0,
    },
    "laws.hard_subspace.HardSubspace": lambda: {
        "weights": [-1.0, 2.0], "features": [1.5, 0.5], "sample_ratio": 2.0,
        "probabilities": [0.5, 0.5], "side": "left",
    },
    "laws.hard_subspace.HardSubspace.matrix": lambda: (_hard(), {"a": 0.1}),
    "laws.marchenko_pastur.MarchenkoPastur": lambda: {"ratio": 0.5, "variance": 2.0},
    "laws.marchenko_pastur.MarchenkoPastur.density": lambda: (MarchenkoPastur(0.5), {"x": POINTS}),
    "laws.marchenko_pastur.MarchenkoPastur.stieltjes": lambda: (
        MarchenkoPastur(0.5), {"z": [-1.0, 9.0]},
    ),
    "laws.marchenko_pastur.MarchenkoPastur.stieltjes_derivative": lambda: (
        MarchenkoPastur(0.5), {"z": [-1.0, 9.0]},
    ),
    "companion.foundations.random_matrices.printed.printed_azuma_tail": lambda: {"deviation": POINTS, "increments": [1.0, 2.0]},
    "companion.foundations.random_matrices.printed.printed_leave_one_out_bound": lambda: {"z": 1.0 + 2.0j, "samples": 3},
    "companion.foundations.random_matrices.printed.printed_off_diagonal_variance": lambda: {"matrix": PLANE},
    "companion.foundations.random_matrices.printed.printed_rank_one_solution": lambda: {
        "matrix": PLANE, "vector": [1.0, 2.0], "step": 0.5,
    },
    "companion.foundations.random_matrices.resolvent.azuma_tail": lambda: {"deviation": POINTS, "increments": [1.0, 2.0]},
    "companion.foundations.random_matrices.resolvent.concentration_tail": lambda: {
        "deviation": POINTS, "z": 1.0 + 2.0j, "dimension": 3, "samples": 4,
    },
    "companion.foundations.random_matrices.resolvent.empirical_stieltjes": lambda: {"eigenvalues": [1.0, 3.0], "z": [-1.0, 2.0]},
    "companion.foundations.random_matrices.resolvent.leave_one_out_bound": lambda: {"z": 1.0 + 2.0j, "dimension": 3},
    "companion.foundations.random_matrices.resolvent.rank_one_inverse": lambda: {
        "inverse": PLANE, "vector": [1.0, 2.0], "step": 0.5,
    },
    "laws.sample_covariance.SampleCovariance": lambda: {"covariance": PLANE, "ratio": 0.5},
    "laws.sample_covariance.SampleCovariance.companion": lambda: (
        _covariance(), {"z": [-1.0, -2.0]},
    ),
    "laws.sample_covariance.SampleCovariance.coordinates": lambda: (
        _covariance(), {"name": "vector", "vector": [1.0, 2.0]},
    ),
    "laws.sample_covariance.SampleCovariance.degrees_of_freedom": lambda: (
        _covariance(), {"ridge": 0.5, "power": 2},
    ),
    "laws.sample_covariance.SampleCovariance.density": lambda: (_covariance(), {"x": POINTS}),
    "laws.sample_covariance.SampleCovariance.quadratic_form": lambda: (
        _covariance(), {"z": [-1.0, -2.0], "left": [1.0, 0.0], "right": [1.0, 2.0]},
    ),
    "laws.sample_covariance.SampleCovariance.resolvent": lambda: (
        _covariance(), {"z": [-1.0, -2.0]},
    ),
    "laws.sample_covariance.SampleCovariance.ridge_bias": lambda: (
        _covariance(), {"ridge": 0.5, "signal": [1.0, 2.0]},
    ),
    "laws.sample_covariance.SampleCovariance.ridge_variance": lambda: (
        _covariance(), {"ridge": 0.5},
    ),
    "laws.sample_covariance.SampleCovariance.stieltjes": lambda: (
        _covariance(), {"z": [-1.0, -2.0]},
    ),
    "laws.weighted.WeightedMarchenkoPastur": lambda: {
        "weights": [-1.0, 2.0], "ratio": 0.3, "variance": 1.0, "probabilities": [0.5, 0.5],
    },
    "laws.weighted.WeightedMarchenkoPastur.cdf": lambda: (_weighted(), {"x": POINTS}),
    "laws.weighted.WeightedMarchenkoPastur.density": lambda: (_weighted(), {"x": POINTS}),
    "laws.weighted.WeightedMarchenkoPastur.edge_scales": lambda: (_weighted(), {"n": 10}),
    "laws.weighted.WeightedMarchenkoPastur.outliers": lambda: (
        _weighted(), {"features": [[1.0], [2.0], [3.0]]},
    ),
    "laws.weighted.WeightedMarchenkoPastur.stieltjes": lambda: (
        _weighted(), {"z": [-50.0, 50.0]},
    ),
}  # fmt: skip
REASONS = {
    "laws.ensembles.Bidiagonal": "a record that wishart_bidiagonal draws",
    "laws.ensembles.EntryLaw": "a record: the entry laws there are stand in ENTRIES",
    "laws.weighted.Outliers": "a record of results",
}
# Transforms take complex points, and resolvents complex matrices.
LENIENT = {
    path: dict.fromkeys(names, ("complex",))
    for path, names in {
        "laws.marchenko_pastur.MarchenkoPastur.stieltjes": ("z",),
        "laws.marchenko_pastur.MarchenkoPastur.stieltjes_derivative": ("z",),
        "companion.foundations.random_matrices.printed.printed_rank_one_solution": (
            "matrix",
            "vector",
        ),
        "companion.foundations.random_matrices.resolvent.empirical_stieltjes": ("z",),
        "companion.foundations.random_matrices.resolvent.matrix_function": ("matrix",),
        "companion.foundations.random_matrices.resolvent.rank_one_inverse": ("inverse", "vector"),
        "laws.sample_covariance.SampleCovariance.companion": ("z",),
        "laws.sample_covariance.SampleCovariance.quadratic_form": ("z",),
        "laws.sample_covariance.SampleCovariance.resolvent": ("z",),
        "laws.sample_covariance.SampleCovariance.stieltjes": ("z",),
        "laws.weighted.WeightedMarchenkoPastur.stieltjes": ("z",),
    }.items()
}
CASES = collect(
    [
        "laws",
        "companion.foundations.random_matrices.printed",
        "companion.foundations.random_matrices.resolvent",
        "companion.foundations.random_matrices.spectra",
    ],
    EXAMPLES,
    REASONS,
    LENIENT,
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_by_name(case: Case) -> None:
    """One argument spoilt: an error that names it, or a result without NaN."""
    assert case.defects() == []


def test_every_public_callable_has_an_example_or_a_reason() -> None:
    """Nothing public is left out without a word."""
    assert without_example(CASES) == []
