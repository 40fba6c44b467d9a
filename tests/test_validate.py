"""What is no number, no integer or no source of random numbers is refused by name."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import claimbook._validate
from traindyn import _validate, gaussian, laws, parallel

SIDES = (_validate, claimbook._validate)
RNG = np.random.RandomState(1)


@pytest.mark.parametrize("module", SIDES)
@pytest.mark.parametrize(
    "entry", ["1", b"1", np.str_("1"), np.timedelta64(1, "ns"), np.datetime64(1, "ns")]
)
@pytest.mark.parametrize("check", ["finite", "numeric", "finite_complex"])
def test_words_and_durations_among_objects_are_no_numbers(module, entry, check):
    """Python makes floats of them, so that an array of objects let them pass."""
    with pytest.raises(ValueError, match="x must be numeric, got array"):
        getattr(module, check)("x", np.array([entry, 2.0], dtype=object))


@pytest.mark.parametrize("module", SIDES)
def test_numbers_among_objects_are_numbers(module):
    """NumPy has no type of its own for these."""
    exact = np.array([Fraction(1, 2), Decimal("0.25"), 10**30, np.longdouble(3)], dtype=object)
    assert np.array_equal(module.finite("x", exact), [0.5, 0.25, 1e30, 3.0])
    assert module.finite("x", np.array([1, 2], np.longdouble)).dtype == np.float64


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("module", SIDES)
@pytest.mark.parametrize(
    "value",
    [10**400, [1, 10**400], 10**5000, np.longdouble("1e400"), np.array([1, "-1e400"], "g")],
    ids=["integer", "list", "digits", "long", "longs"],
)
def test_numbers_that_no_float_holds_are_refused(module, value):
    """The cast raised an error of Python, or warned and went on with infinity."""
    for check in (module.finite, module.numeric, module.finite_complex):
        with pytest.raises(ValueError, match=r"^x must be below 1e308 in size, got "):
            check("x", value)


def test_the_name_is_that_of_the_argument():
    """As everywhere."""
    with pytest.raises(ValueError, match=r"^ratio must be below 1e308 in size, got 1000"):
        laws.MarchenkoPastur(10**400)


def test_integers_fit_into_64_bits():
    """Larger ones became negative."""
    large = np.array([2**63 + 5], np.uint64)
    with pytest.raises(ValueError, match=r"x must consist of integers below 2\*\*63, got 92233720"):
        _validate.integers("x", large, least=0)
    fit = _validate.integers("x", np.array([2**63 - 1], np.uint64), least=0)
    assert fit.dtype == np.int64
    assert fit[0] == 2**63 - 1


@pytest.mark.parametrize("value", [np.timedelta64(1, "s"), np.bool_(True), 1.0, "1", -1, 4, "x"])
def test_what_is_no_integer_of_a_range_is_refused(value):
    """Durations are integers to NumPy, and Python writes out no integer of any length."""
    with pytest.raises(ValueError, match=r"^n must be an integer in \[0, 3\], got "):
        _validate.integer("n", value, least=0, most=3)
    with pytest.raises(ValueError, match=r"^block\[1\] must be an integer in \[0, 3\], got "):
        _validate.pair("block", (0, value), most=3)


@pytest.mark.parametrize(
    "call",
    [
        lambda rng: gaussian.sobol(3, 64, rng=rng),
        lambda rng: parallel.map_replicas(lambda generator: None, 2, rng=rng),
        lambda rng: parallel.sweep(lambda x, rng: None, [{"x": 1}], rng=rng),
    ],
)
@pytest.mark.parametrize(
    ("rng", "message"),
    [
        (RNG, r"rng must be a non-negative int, a SeedSequence or a Generator, got RandomState"),
        (np.random.Generator(RNG._bit_generator), "rng must be able to spawn other streams"),
    ],
    ids=["state", "generator"],
)
def test_legacy_generators_are_refused(call, rng, message):
    """They cannot spawn streams, which somebody else's error said."""
    with pytest.raises(ValueError, match=f"^{message}"):
        call(rng)
