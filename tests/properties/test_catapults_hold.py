"""Reduced maps, schedules and counts of catapults, at arguments that nobody chose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from companion.catapults.optimisers.association import association
from companion.catapults.sgd.gates import critical_probability
from companion.catapults.sgd.schedules import triangular
from traindyn.catapults import (
    TrainingState,
    agop,
    alignment,
    batch_order,
    iterate,
    reduced_step,
    step_sizes,
)

few = settings(max_examples=20, derandomize=True, deadline=None)
seeds = st.integers(0, 2**32)


@few
@given(st.floats(0, 6), st.floats(-1, 6))
def test_products_along_the_map(u: float, v: float) -> None:
    """Both product formulas hold without a label."""
    after = reduced_step(u, v)
    assert float(4 - after.v) == pytest.approx((4 - v) * (1 + u), rel=1e-9, abs=1e-9)
    discriminant = (v**2 - 4 * u) * (1 - u) ** 2
    assert float(after.v**2 - 4 * after.u) == pytest.approx(discriminant, rel=1e-8, abs=1e-6)
    assert after.u >= 0
    assert after.w == 0


@few
@given(
    st.floats(-1, 1), st.floats(0.1, 2), st.floats(0.1, 1.9), st.floats(-1, 1), st.floats(0.2, 5)
)
def test_units_and_sign_of_the_output(
    e: float, kernel: float, eta: float, y: float, unit: float
) -> None:
    """Outputs may be measured in any unit, of either sign: the kernel does not know."""
    plain = iterate(e, kernel, step_size=eta, coupling=0.01, label=y, steps=8)
    options = {"step_size": eta, "coupling": 0.01 / unit**2, "label": -unit * y, "steps": 8}
    other = iterate(-unit * e, kernel, **options)
    np.testing.assert_allclose(other.kernels, plain.kernels, rtol=1e-9)
    np.testing.assert_allclose(other.residuals, -unit * plain.residuals, rtol=1e-7, atol=1e-12)


@few
@given(st.integers(2, 6), seeds, st.booleans())
def test_association_is_kendalls_test(size: int, seed: int, increasing: bool) -> None:
    """Tau and the exact p-value of SciPy, unchanged by any increasing map of a measurement."""
    x, y = np.random.default_rng(seed).standard_normal((2, size))
    found = association(x, y, increasing=increasing)
    side = "greater" if increasing else "less"
    other = stats.kendalltau(x, y, alternative=side, method="exact")
    assert found.tau == pytest.approx(other.statistic)
    assert found.p_value == pytest.approx(other.pvalue)
    assert found == association(np.exp(x), y**3, increasing=increasing)


@few
@given(st.floats(0.1, 2), st.floats(1, 3), st.integers(1, 6), st.integers(0, 30))
def test_triangles_stay_between_their_ends(low: float, ratio: float, half: int, steps: int) -> None:
    """Periodic, and the same rule when given as an array."""
    rates = triangular(low, ratio * low, period=2 * half, steps=steps)
    assert rates.shape == (steps,)
    assert np.all((rates >= low * (1 - 1e-12)) & (rates <= ratio * low * (1 + 1e-12)))
    np.testing.assert_allclose(rates[2 * half :], rates[: max(steps - 2 * half, 0)])
    rule = step_sizes(rates, steps)
    assert [rule(TrainingState(t, [], [], None)) for t in range(steps)] == rates.tolist()


@few
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 12), seeds)
def test_batches_of_an_epoch_do_not_overlap(n: int, size: int, steps: int, seed: int) -> None:
    """Each example once, as far as whole batches go."""
    assume(size <= n)
    order = batch_order(n, size, steps, rng=seed)
    assert order.shape == (steps, size)
    per_epoch = n // size
    for first in range(0, steps, per_epoch):
        seen = order[first : first + per_epoch].ravel()
        assert np.unique(seen).size == seen.size
        assert np.all((seen >= 0) & (seen < n))


@few
@given(seeds, st.integers(1, 6), st.integers(1, 4), st.floats(0.1, 10))
def test_outer_products_and_splits(seed: int, n: int, d: int, scale: float) -> None:
    """Positive, in any frame; alignments are cosines."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    found = agop(rows)
    assert np.linalg.eigvalsh(found)[0] > -1e-12
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    np.testing.assert_allclose(agop(rows @ turn), turn.T @ found @ turn, atol=1e-12)
    other = agop(rng.standard_normal((n, d)))
    assert 0 <= alignment(found, other) <= 1 + 1e-12
    assert alignment(found, scale * found) == pytest.approx(1)


@few
@given(st.integers(1, 200), st.floats(0.1, 5))
def test_larger_steps_are_more_often_critical(width: int, square: float) -> None:
    """A probability, increasing in the step size."""
    shares = critical_probability(np.geomspace(0.01, 100, 30), width=width, square=square)
    assert np.all((shares >= 0) & (shares <= 1))
    assert np.all(np.diff(shares) >= 0)
