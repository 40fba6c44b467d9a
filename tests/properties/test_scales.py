"""Other units: powers of two far apart change a result exactly as they must.

Multiplying by a power of two changes no digit, so that what is homogeneous comes out in the new
unit to the last bit. A threshold that is not relative, an overflow of a square or a tolerance in
some unit of its own shows as another number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import tally

from claimbook import Control, mean_equals
from companion.catapults.optimisers import references
from companion.foundations.implicit_bias.margin import max_margin
from traindyn import diffusion, gaussian, linalg, relu
from traindyn.catapults.agop import agop, alignment
from traindyn.kernels.flow import KernelFlow
from traindyn.laws import HardSubspace, MarchenkoPastur, SampleCovariance, WeightedMarchenkoPastur
from traindyn.problems.population_block import PopulationBlock
from traindyn.problems.regression import LeastSquares
from traindyn.spectra import blocks, density

RNG = np.random.default_rng(7)
ROWS, LABELS, START = RNG.standard_normal((6, 4)), RNG.standard_normal(6), RNG.standard_normal(4)
MATRIX = ROWS.T @ ROWS
FLIPPED = MATRIX @ np.diag([1.0, -1.0, 1.0, -1.0])
SYMMETRIC = FLIPPED + FLIPPED.T
BASIS = np.linalg.qr(RNG.standard_normal((4, 2)))[0]
TIMES, PAIR = np.array([0.5, 2.0]), np.array([0.25, 0.75])
SIGNS = np.array([1.0, 1.0, 1.0, 1.0, -1.0, -1.0])
#: Inputs that the signs separate.
APART = ROWS + 4.0 * SIGNS[:, None] * np.array([1.0, 0.0, 0.0, 0.0])

#: What a function finds at a scale, each with the power of the scale by which it changes.
Found = list[tuple[Any, int]]


#: Of decompositions by LAPACK, which multiplies matrices far from one by a number of its own.
ROUNDING = 1e-12


class Unit(NamedTuple):
    """A call in a unit; `rtol`, of the largest entry, is zero but for decompositions and roots."""

    name: str
    call: Callable[[float], Found]
    rtol: float = 0.0

    def __str__(self) -> str:
        return self.name


def _spectrum(s: float, **options: Any) -> Found:
    found = linalg.top_eigenpairs(s * SYMMETRIC, 2, rng=0, **options)
    return [(found.eigenvalues, 1), (found.eigenvectors, 0)]


def _flow(s: float) -> Found:
    """Kernel in other units, times in one over them."""
    flow = KernelFlow(s * MATRIX, START)
    times = TIMES / s
    return [
        (flow.outputs(times), 0), (flow.loss(times), 0), (flow.eigenvalues, 1),
        (flow.critical_step, -1),
    ]  # fmt: skip


def _diffusion(s: float) -> Found:
    law = diffusion.LinearDiffusion(tuple("abcd"), -MATRIX, s * MATRIX)
    return [(law.covariance(TIMES, s * np.eye(4)), 1), (law.stationary(), 1)]


def _faster(s: float) -> Found:
    law = diffusion.LinearDiffusion(tuple("abcd"), -s * MATRIX, s * MATRIX)
    return [(law.covariance(TIMES / s, np.eye(4)), 0), (law.stationary(), 0)]


def _squares(s: float) -> Found:
    squares = LeastSquares(ROWS, s * LABELS)
    return [
        (squares.minimum_norm(), 1), (squares.project(s * START), 1),
        (squares.loss(s * START), 2), (squares.gradient(s * START), 1),
    ]  # fmt: skip


def _long_inputs(s: float) -> Found:
    squares = LeastSquares(s * ROWS, LABELS)
    return [
        (squares.minimum_norm(), -1), (squares.project(START / s), -1),
        (squares.loss(START / s), 0), (squares.gradient(START / s), 1),
        (squares.critical_step_size, -2),
    ]  # fmt: skip


def _margin(s: float) -> Found:
    found = max_margin(s * APART, SIGNS)
    return [(found.margin, 1), (found.weights, -1)]


def _half_space(s: float) -> Found:
    found = relu.half_space(s * START, ROWS[0], 2.0)
    return [(part, 0) for part in found]


def _machine(s: float) -> Found:
    fitted = references.KernelRegression(s * ROWS, LABELS, s)
    return [(fitted.outputs(s * APART), 0), (fitted.input_gradients(s * APART), -1)]


def _classical(s: float) -> Found:
    law = MarchenkoPastur(0.5, s)
    return [
        (law.edges, 1), (law.outlier(2.0), 1), (law.density(s * TIMES), -1),
        (law.cdf(s * TIMES), 0), (law.stieltjes(-s), -1), (law.overlap(2.0), 0),
    ]  # fmt: skip


def _sampled(s: float) -> Found:
    law = SampleCovariance(s * np.array([1.0, 2.0, 4.0]), 0.5)
    return [(law.edges, 1), (law.effective_ridge(0.5 * s), 1), (law.stieltjes(-s), -1)]


def _weighted(s: float) -> Found:
    law = WeightedMarchenkoPastur(s * np.array([-1.0, 2.0, 0.5]), 0.25)
    found = law.outliers(ROWS[:3, :2])
    return [
        (law.edges, 1), (found.values, 1), (found.overlaps, 0), (law.density(s * TIMES), -1),
        (law.cdf(s * TIMES), 0), (law.stieltjes(-50 * s), -1),
    ]  # fmt: skip


def _hard(s: float) -> Found:
    law = HardSubspace(s * np.array([-1.0, 2.0, 0.5]), ROWS[:3, :2], 2.0)
    return [(law.edge, 1), (law.statistic, 0), (law.outliers.values, 1)]


def _block(s: float) -> Found:
    block = PopulationBlock(s, BASIS, s * SYMMETRIC[:2, :2])
    return [(block.dense(), 1), (block.matmat(ROWS.T), 1), (np.sort(block.eigenvalues()), 1)]


def _gram(s: float) -> Found:
    gram = blocks.WeightedGram(LABELS, s * ROWS)
    return [(gram.matmat(np.eye(4)), 2), (gram.dense(), 2)]


def _density(s: float) -> Found:
    found = density.estimate(s * SYMMETRIC, probes=2, rng=0)
    return [(found.smoothed(s * TIMES, s).value, -1)]


def _p_value(s: float) -> Found:
    found = mean_equals(
        "c", samples=s * LABELS, expected=0.5 * s, control=Control("far", expected=100 * s)
    )
    return [(found.p_value, 0)]


UNITS = [
    Unit("top_eigenpairs", _spectrum, ROUNDING),
    Unit("top_eigenpairs, algebraic", lambda s: _spectrum(s, which="algebraic"), ROUNDING),
    Unit("subspace_error", lambda s: [(linalg.subspace_error(s * SYMMETRIC, BASIS), 0)], ROUNDING),
    Unit("alignment", lambda s: [(linalg.alignment(s * START, BASIS), 0)]),
    Unit("symmetric_sqrt", lambda s: [(gaussian.symmetric_sqrt(s * s * MATRIX), 1)], ROUNDING),
    Unit("expect", lambda s: [(gaussian.gauss_hermite(2, 3).expect(s * np.arange(9.0)), 1)]),
    Unit("second_moment", lambda s: [(relu.second_moment(s * START, s * s * MATRIX), 2)], ROUNDING),
    *(
        Unit(
            f"rectified_moment {k}",
            lambda s, k=k: [(relu.rectified_moment(s * START, s * np.abs(ROWS[0, 0]), k), k)],
        )
        for k in (1, 2)
    ),
    Unit("half_space", _half_space),
    Unit("agop", lambda s: [(agop(s * ROWS), 2)]),
    Unit("agop.alignment", lambda s: [(alignment(s * MATRIX, SYMMETRIC), 0)]),
    Unit("KernelFlow", _flow, ROUNDING),
    Unit("LinearDiffusion", _diffusion, ROUNDING),
    Unit("LinearDiffusion, faster", _faster, ROUNDING),
    Unit("LeastSquares", _squares),
    Unit("LeastSquares, long inputs", _long_inputs, ROUNDING),
    Unit("max_margin", _margin, ROUNDING),
    Unit("KernelRegression", _machine),
    Unit("MarchenkoPastur", _classical),
    Unit("SampleCovariance", _sampled, ROUNDING),
    Unit("WeightedMarchenkoPastur", _weighted, ROUNDING),
    Unit("HardSubspace", _hard, ROUNDING),
    Unit("PopulationBlock", _block),
    Unit("WeightedGram", _gram),
    Unit("density.estimate", _density, ROUNDING),
    Unit("mean_equals", _p_value),
]
#: The squares of the outer ones are the last that numbers can have.
EXPONENTS = (-500, -300, -100, -30, 30, 100, 300, 500)


def departures(unit: Unit, exponent: int) -> Iterator[str]:
    """Yield what is found at a scale and should be another number."""
    found = zip(unit.call(2.0**exponent), unit.call(1.0), strict=True)
    tally.tried("accepted")
    for index, ((seen, power), (ordinary, _)) in enumerate(found):
        wanted = np.ldexp(np.asarray(ordinary, dtype=np.float64), power * exponent)
        allowed = unit.rtol * np.abs(wanted).max(initial=0.0)
        if not (np.shape(seen) == wanted.shape and np.all(np.abs(seen - wanted) <= allowed)):
            yield f"result {index} is {seen}, not {wanted}"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_units_change_no_digit(unit: Unit, exponent: int) -> None:
    """A function could have a floor of its own, or lose digits where numbers are large."""
    assert list(departures(unit, exponent)) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda s: [(s + 1e-12, 1)],
        lambda s: [(np.sqrt((s * START) @ (s * START) + 1e-300), 1)],
        lambda s: [(s * 3.0, 0)],
    ],
)
def test_units_of_one_s_own_are_found(call: Callable[[float], Found]) -> None:
    """Controls: a floor, a smaller one under a root, a wrong power."""
    unit = Unit("wrong", call)
    assert any(list(departures(unit, exponent)) for exponent in EXPONENTS)
