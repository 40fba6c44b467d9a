"""The weighted law against closed forms and against simulated matrices.

Simulations compare each matrix with the prediction for its own weights and features, so
that only the noise off the span is random; biases are O(1/d) and allowed for explicitly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from traindyn.laws import TRACY_WIDOM_MEAN, MarchenkoPastur, WeightedMarchenkoPastur

# Two-sided normal quantile of a false alarm of 1e-6.
Z = 4.892
# Standard deviation of the Tracy-Widom law (beta = 1).
TW_SD = 1.2680


def signed_weights(features: np.ndarray) -> np.ndarray:
    """Bounded weights of both signs that depend on two projections."""
    return expit(3 * features[:, 0]) - 1.3 * expit(4 * features[:, 1] - 3)


def draw(d: int, samples: int, variance: float, rng: np.random.Generator) -> np.ndarray:
    """Inputs with means on the first two coordinates, isotropic noise everywhere."""
    inputs = np.sqrt(variance) * rng.standard_normal((samples, d))
    labels = rng.integers(0, 3, samples)
    inputs[labels == 0, 0] += 1.0
    inputs[labels == 1, 1] += 1.5
    return inputs


def initial_blocks(k: int, precision: float, own: bool) -> tuple[np.ndarray, ...]:
    """Weights, features and probabilities at x = 0 for k orthonormal means, exactly.

    For each label 2 k nodes reproduce the mean and covariance of the features; `own` picks
    the G-matrix of class 0, else the Hessian (the same for all classes).
    """
    weights, features = [], []
    for label in range(k):
        residual = (label == 0) - 1 / k
        weight = residual**2 if own else (1 / k) * (1 - 1 / k)
        for sign in (1, -1):
            weights += [weight] * k
            features.append(np.eye(k)[label] + sign * np.sqrt(k / precision) * np.eye(k))
    count = 2 * k * k
    return np.array(weights), np.concatenate(features), np.full(count, 1 / count)


@pytest.mark.parametrize("ratio", [0.25, 1.0, 4.0])
def test_equal_weights_give_the_classical_law(ratio: float) -> None:
    """Reduction to closed forms: density, cdf, atom, edges, transform, both signs."""
    classical = MarchenkoPastur(ratio, 0.7)
    x = np.linspace(*classical.edges, 52)[1:-1]
    for sign in (1.0, -1.0):
        law = WeightedMarchenkoPastur([2.0 * sign] * 3, ratio, 0.35)
        assert law.atom == pytest.approx(classical.atom)
        np.testing.assert_allclose(np.sort(sign * law.edges), classical.edges, atol=1e-12)
        np.testing.assert_allclose(law.density(sign * x), classical.density(x), rtol=1e-8)
        cdf = law.cdf(sign * x) if sign > 0 else 1 - law.cdf(-x)
        np.testing.assert_allclose(cdf, classical.cdf(x), atol=3e-5 if ratio != 1 else 2e-3)
        for z in (0.5 + 0.2j, -0.3 - 0.1j, 1.0 + 1e-6j):
            np.testing.assert_allclose(
                sign * law.stieltjes(sign * z), classical.stieltjes(z), rtol=1e-9
            )
        for real in (-2.0, 10.0):
            np.testing.assert_allclose(
                sign * law.stieltjes(sign * real), classical.stieltjes(real), rtol=1e-11
            )


@pytest.mark.parametrize("ratio", [0.05, 0.8, 3.0])
def test_transform_solves_its_equation(ratio: float) -> None:
    """The defining equation, and Im s > 0, pick the right root of many."""
    rng = np.random.default_rng(1)
    weights = rng.standard_normal(300)
    law = WeightedMarchenkoPastur(weights, ratio, 0.4)
    grid = np.linspace(-3, 3, 25)
    for height in (1.0, 1e-2, 1e-6):
        z = grid + 1j * height
        s = law.stieltjes(z)
        inner = np.mean(weights / (1 + ratio * 0.4 * weights * s[:, None]), axis=1)
        np.testing.assert_allclose(1 / s, -z + 0.4 * inner, rtol=1e-9)
        assert np.all(s.imag > 0)
        # |s| <= 1 / Im z holds for transforms of probability measures only.
        assert np.all(np.abs(s) <= 1 / height)
    np.testing.assert_allclose(law.stieltjes(z.conj()), s.conj(), rtol=1e-12)


@pytest.mark.parametrize("ratio", [0.05, 0.8, 3.0])
def test_density_is_normalised_and_matches_the_transform(ratio: float) -> None:
    """Mass 1 - atom over all support intervals, and density = Im s / pi near the axis."""
    rng = np.random.default_rng(2)
    law = WeightedMarchenkoPastur(rng.choice([-1.0, 0.5, 2.0, 0.0], 400), ratio, 1.5)
    mass = 0.0
    nodes, weights = np.polynomial.legendre.leggauss(200)
    for low, high in law.intervals:
        t = (nodes + 1) * np.pi / 2
        x = (low + high) / 2 - (high - low) / 2 * np.cos(t)
        mass += np.sum(weights * law.density(x) * np.sin(t)) * (high - low) * np.pi / 4
        middle = x[20:-20]
        near = law.stieltjes(middle + 1e-9j).imag / np.pi
        np.testing.assert_allclose(law.density(middle), near, rtol=1e-5)
    assert mass == pytest.approx(1 - law.atom, abs=1e-6)
    assert law.cdf(1e6) == pytest.approx(1, abs=3e-5)
    assert law.cdf(-1e6) == 0
    x = np.linspace(law.edges[0], law.edges[-1], 500)
    assert np.all(np.diff(law.cdf(x)) >= -1e-15)
    np.testing.assert_array_equal(law.density([law.edges[0] - 1e-6, law.edges[-1] + 1e-6]), 0.0)


def test_many_weights_are_binned_harmlessly() -> None:
    """The density bins weights beyond 4096; the transform does not: they must agree."""
    rng = np.random.default_rng(3)
    law = WeightedMarchenkoPastur(expit(rng.standard_normal(20_000)) ** 2, 0.1, 0.1)
    low, high = law.edges
    x = low + (high - low) * np.array([0.01, 0.1, 0.3, 0.6, 0.9, 0.99])
    exact = law.stieltjes(x + 1e-9j).imag / np.pi
    np.testing.assert_allclose(law.density(x), exact, rtol=1e-5)


def test_zero_weights_only_rescale() -> None:
    """Samples of weight zero amount to fewer samples: same matrix, other bookkeeping."""
    rng = np.random.default_rng(4)
    weights, features = rng.uniform(0.5, 1.5, 500), 2 * rng.standard_normal((500, 2))
    padded = WeightedMarchenkoPastur(np.append(weights, np.zeros(500)), 0.3)
    reduced = WeightedMarchenkoPastur(weights / 2, 0.6)
    np.testing.assert_allclose(padded.edges, reduced.edges, rtol=1e-12)
    first = padded.outliers(np.concatenate([features, rng.standard_normal((500, 2))]))
    second = reduced.outliers(features)
    assert first.values.size == 2
    np.testing.assert_allclose(first.values, second.values, rtol=1e-12)
    np.testing.assert_allclose(first.overlaps, second.overlaps, rtol=1e-9)
    assert WeightedMarchenkoPastur(np.append(weights, np.zeros(500)), 0.8).atom == pytest.approx(
        1 - 0.5 / 0.8
    )


def test_probabilities_weigh_the_nodes() -> None:
    """Repeating a node and giving it more probability are the same law."""
    features = np.array([[3.0], [1.0], [0.5]])
    repeated = np.array([0, 0, 0, 1, 2, 2])
    first = WeightedMarchenkoPastur([1.0, 2.0, -1.0], 0.2, probabilities=[0.5, 1 / 6, 1 / 3])
    second = WeightedMarchenkoPastur(np.array([1.0, 2.0, -1.0])[repeated], 0.2)
    np.testing.assert_allclose(first.edges, second.edges, rtol=1e-12)
    np.testing.assert_allclose(
        first.outliers(features).values, second.outliers(features[repeated]).values, rtol=1e-12
    )


@pytest.mark.parametrize(("k", "precision", "alpha"), [(10, 10.0, 10.0), (3, 2.0, 5.0)])
def test_hessian_at_initialisation_in_closed_form(k: int, precision: float, alpha: float) -> None:
    """Equal weights w, spike lambda p: a k-fold degenerate outlier with known overlap."""
    c, weight, spike = 1 / alpha, (1 / k) * (1 - 1 / k), precision / k
    weights, features, masses = initial_blocks(k, precision, own=False)
    law = WeightedMarchenkoPastur(weights, c, 1 / precision, probabilities=masses)
    found = law.outliers(features)
    np.testing.assert_allclose(law.edges[-1], weight / precision * (1 + np.sqrt(c)) ** 2)
    expected = weight / precision * (1 + spike) * (1 + c / spike)
    np.testing.assert_allclose(found.values, np.full(k, expected), rtol=1e-11)
    np.testing.assert_allclose(
        found.overlaps, np.full(k, (1 - c / spike**2) / (1 + c / spike)), rtol=1e-9
    )
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-8)
    # Wrong variant: c inverted.
    wrong = WeightedMarchenkoPastur(weights, alpha, 1 / precision, probabilities=masses)
    assert abs(wrong.edges[-1] / law.edges[-1] - 1) > 0.1


def test_threshold_at_initialisation() -> None:
    """Outliers appear exactly when lambda p sqrt(alpha) > 1."""
    weights, features, masses = initial_blocks(5, 4.0, own=False)
    critical = (5 / 4.0) ** 2
    for factor, count in ((0.99, 0), (1.01, 5)):
        law = WeightedMarchenkoPastur(weights, 1 / (factor * critical), 0.25, probabilities=masses)
        assert law.outliers(features).values.size == count


def test_g_matrix_at_initialisation() -> None:
    """Two weight levels: predicted numbers, and a threshold alpha for the other classes."""
    weights, features, masses = initial_blocks(10, 10.0, own=True)
    law = WeightedMarchenkoPastur(weights, 0.1, 0.1, probabilities=masses)
    found = law.outliers(features)
    assert law.edges[-1] == pytest.approx(0.0333, abs=5e-5)
    np.testing.assert_allclose(found.values, [0.0989], atol=5e-5)
    np.testing.assert_allclose(np.abs(found.vectors[:, 0]), np.eye(10)[0], atol=1e-9)
    weights, features, masses = initial_blocks(10, 100.0, own=True)
    law = WeightedMarchenkoPastur(weights, 1 / 40, 0.01, probabilities=masses)
    assert law.edges[-1] == pytest.approx(0.00191, abs=5e-6)
    np.testing.assert_allclose(law.outliers(features).values[1:], np.full(9, 0.00211), atol=5e-6)
    for k, precision, critical in (
        (10, 10.0, 809),
        (10, 100.0, 19),
        (3, 3.0, 10.9),
        (3, 10.0, 1.86),
    ):
        weights, features, masses = initial_blocks(k, precision, own=True)
        for factor, count in ((0.96, 1), (1.04, k)):
            law = WeightedMarchenkoPastur(
                weights, 1 / (factor * critical), 1 / precision, probabilities=masses
            )
            assert law.outliers(features).values.size == count


def test_degenerate_outliers_have_their_own_metric() -> None:
    """Equal outliers with different overlaps: overlaps need the metric, not one vector each."""

    # Two coordinates that never interact, tuned to the same outlier by their second moments.
    def law_and_features(gain: float) -> tuple[WeightedMarchenkoPastur, np.ndarray]:
        features = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, gain], [0.0, -gain]])
        return WeightedMarchenkoPastur([1.0, 1.0, 0.6, 0.6], 0.1), features

    low, high = 3.0, 5.0
    for _ in range(60):
        gain = (low + high) / 2
        law, features = law_and_features(gain)
        found = law.outliers(features)
        second = np.argmax(np.abs(found.vectors[1]))
        low, high = (gain, high) if second == 1 else (low, gain)
    separate = [
        law.outliers(np.where(np.arange(2) == j, features, 1e-3)).overlaps[0] for j in (0, 1)
    ]
    assert abs(separate[0] - separate[1]) > 0.01
    # A rotation of the span must not change what is found.
    rotation = np.linalg.qr(np.random.default_rng(5).standard_normal((2, 2)))[0]
    found = law.outliers(features @ rotation)
    assert abs(found.values[0] / found.values[1] - 1) < 1e-9
    np.testing.assert_allclose(np.sort(found.overlaps), np.sort(separate), atol=1e-4)


def test_bulk_against_simulation() -> None:
    """Resolvent traces, signed weights (MW, Law of the bulk): error O(1/d), wrong variants O(1)."""
    d, samples, variance = 300, 600, 0.25
    rng = np.random.default_rng(6)
    inputs = draw(d, samples, variance, rng)
    weights = signed_weights(inputs)
    eigenvalues = np.linalg.eigvalsh((inputs.T * weights) @ inputs / samples)
    z = np.array([-0.1, 0.0, 0.1, 0.3]) + 0.1j
    simulated = np.mean(1 / (eigenvalues[:, None] - z), axis=0)

    def error(weights: np.ndarray, ratio: float, variance: float) -> float:
        law = WeightedMarchenkoPastur(weights, ratio, variance)
        return float(np.abs(law.stieltjes(z) / simulated - 1).max())

    ratio = d / samples
    # Two outliers and the fluctuation of a trace, both of order 1/d, times 1/Im z scales.
    assert error(weights, ratio, variance) < 10 / d
    for wrong in (
        (weights, 1 / ratio, variance),
        (weights, ratio, 1.0),
        (np.abs(weights), ratio, variance),
        (np.full_like(weights, weights.mean()), ratio, variance),
    ):
        assert error(*wrong) > 30 / d


def test_edges_against_simulation() -> None:
    """Top and bottom eigenvalues fluctuate around the edges on the Tracy-Widom scale.

    The mean of n normalised deviations is within Z TW_SD / sqrt(n) of the Tracy-Widom mean
    with false alarm 1e-6, plus 0.25 for the finite size (d^(-1/3)).
    """
    d, samples, variance, n = 200, 500, 0.5, 60
    rng = np.random.default_rng(7)
    deviations: list[list[float]] = [[], []]
    wrong: list[float] = []
    for _ in range(n):
        weights = signed_weights(rng.standard_normal((samples, 2)))
        inputs = np.sqrt(variance) * rng.standard_normal((samples, d))
        eigenvalues = np.linalg.eigvalsh((inputs.T * weights) @ inputs / samples)
        law = WeightedMarchenkoPastur(weights, d / samples, variance)
        for side, (edge, extreme, sign) in enumerate(
            ((law.edges[-1], eigenvalues[-1], 1), (law.edges[0], eigenvalues[0], -1))
        ):
            # density ~ a sqrt(distance) / pi near the edge: eigenvalues there are spaced on
            # the scale (a d)^(-2/3).
            step = 1e-6 * abs(edge)
            a = np.pi * law.density(edge - sign * step) / np.sqrt(step)
            scale = (a * d) ** (-2 / 3)
            np.testing.assert_allclose(law.edge_scales(d)[-1 if side == 0 else 0], scale, rtol=1e-4)
            deviations[side].append(float(sign * (extreme - edge) / scale))
            if side == 0:
                other = WeightedMarchenkoPastur(weights, 1.1 * d / samples, variance).edges[-1]
                wrong.append(float((extreme - other) / scale))
    tolerance = Z * TW_SD / np.sqrt(n) + 0.25
    for values in deviations:
        assert abs(np.mean(values) - TRACY_WIDOM_MEAN) < tolerance
    # Power: a ratio 10 percent off is rejected.
    assert abs(np.mean(wrong) - TRACY_WIDOM_MEAN) > tolerance


def test_outliers_against_simulation() -> None:
    """Values and overlaps of outliers on both sides of a signed bulk.

    The mean over n matrices of (simulated - predicted) is compared with Z standard errors
    (false alarm 1e-6 per comparison) plus a bias of 1.5/d times the value. Wrong variants:
    features without their noise, overlap without its derivative term.
    """
    d, samples, variance, n = 300, 1200, 0.25, 40
    rng = np.random.default_rng(8)
    rows: list[np.ndarray] = []
    for _ in range(n):
        inputs = draw(d, samples, variance, rng)
        weights = signed_weights(inputs)
        features = inputs[:, :2]
        law = WeightedMarchenkoPastur(weights, (d - 2) / samples, variance)
        found = law.outliers(features)
        assert found.sides.tolist() == [1, -1]
        values, vectors = np.linalg.eigh((inputs.T * weights) @ inputs / samples)
        chosen = [int(np.argmin(np.abs(values - value))) for value in found.values]
        simulated = np.concatenate([values[chosen], np.sum(vectors[:2, chosen] ** 2, axis=0)])
        predicted = np.concatenate([found.values, found.overlaps])
        # 1 - overlap is the missing derivative term; noise-free features lose variance I.
        no_derivative = np.concatenate([found.values, np.ones(2)])
        moments = (features.T * weights) @ features / samples
        no_feedback = np.concatenate([np.linalg.eigvalsh(moments)[::-1], found.overlaps])
        rows.append(simulated - np.array([predicted, no_derivative, no_feedback]))
        for j in (0, 1):
            inside = vectors[:2, chosen[j]] / np.linalg.norm(vectors[:2, chosen[j]])
            assert abs(inside @ found.vectors[:, j]) > 0.95
    errors = np.array(rows)
    mean, standard_error = errors.mean(axis=0), errors.std(axis=0, ddof=1) / np.sqrt(n)
    size = np.abs(np.concatenate([found.values, found.overlaps]))
    tolerance = Z * standard_error + 1.5 / d * size
    assert np.all(np.abs(mean[0]) < tolerance[0])
    assert np.all(np.abs(mean[1, 2:]) > tolerance[1, 2:])
    assert np.all(np.abs(mean[2, :2]) > tolerance[2, :2])


def test_outliers_solve_the_determinant_equation() -> None:
    """Nodes stand in for 20000 draws: S(z) summed over all of them must be singular too.

    The overlap is compared with a numerical derivative of that sum, and with the wrong
    variant that forgets how s depends on z.
    """
    rng = np.random.default_rng(11)
    features = (
        np.sqrt(0.25) * rng.standard_normal((20_000, 3)) + np.eye(3)[rng.integers(0, 3, 20_000)]
    )
    weights = signed_weights(features)
    law = WeightedMarchenkoPastur(weights, 0.1, 0.25)

    def on_span(z: float, at: float) -> np.ndarray:
        scale = weights / (1 + 0.1 * 0.25 * weights * law.stieltjes(at))
        return (features.T * scale) @ features / weights.size - z * np.eye(3)

    found = law.outliers(features)
    assert set(found.sides) == {1, -1}
    for value, q, overlap in zip(found.values, found.vectors.T, found.overlaps):
        np.testing.assert_allclose(on_span(value, value) @ q, 0.0, atol=3e-8 * abs(value))
        step = 1e-5 * abs(value)
        high, low = value + step, value - step
        slope = q @ (on_span(high, high) - on_span(low, low)) @ q / (2 * step)
        assert overlap == pytest.approx(-1 / slope, rel=1e-6)
        frozen = q @ (on_span(high, value) - on_span(low, value)) @ q / (2 * step)
        assert abs(overlap + 1 / frozen) > 0.01


def test_outlier_in_a_gap() -> None:
    """Between two support intervals an outlier must be found too, and only where it is."""
    d, samples = 300, 6000
    rng = np.random.default_rng(9)
    inputs = rng.standard_normal((samples, d))
    weights = np.where(rng.random(samples) < 0.5, 4.0, -0.1)
    inputs[:, 0] *= np.where(weights > 0, 0.5, 1.0)
    law = WeightedMarchenkoPastur(weights, (d - 1) / samples)
    eigenvalues = np.linalg.eigvalsh((inputs.T * weights) @ inputs / samples)
    found = law.outliers(inputs[:, :1])
    assert found.values.size == 1
    assert np.min(np.abs(eigenvalues - found.values[0])) < 0.02
    # A second weight level far away splits the support.
    split = WeightedMarchenkoPastur([1.0, 20.0], 1.0, probabilities=[0.9, 0.1])
    assert split.intervals.shape == (2, 2)
    (_, low), (high, _) = split.intervals
    inside = split.outliers([[np.sqrt(5.0)], [0.0]])
    middle = [value for value, side in zip(inside.values, inside.sides) if side == 0]
    assert len(middle) == 1
    assert low < middle[0] < high


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_kernel_is_no_outlier(sign: float) -> None:
    """For c > 1 zero is an atom inside a gap: nothing is to be reported there."""
    rng = np.random.default_rng(10)
    law = WeightedMarchenkoPastur(sign * rng.uniform(0.5, 1, 200), 3.0)
    found = law.outliers(0.1 * rng.standard_normal((200, 3)))
    assert law.atom == pytest.approx(2 / 3)
    assert found.values.size == 0
    assert found.vectors.shape == (3, 0)
    with pytest.raises(ValueError, match="carries an atom"):
        law.stieltjes(0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: WeightedMarchenkoPastur([0.0, 0.0], 0.1), "weights must not be all zero"),
        (lambda: WeightedMarchenkoPastur([], 0.1), "weights must not be all zero"),
        (lambda: WeightedMarchenkoPastur([np.nan], 0.1), "weights must be finite"),
        (lambda: WeightedMarchenkoPastur([1.0], 0.0), "ratio must be positive, got 0"),
        (lambda: WeightedMarchenkoPastur([1.0], 0.1, -1.0), "variance must be positive"),
        (
            lambda: WeightedMarchenkoPastur([1.0, 2.0], 0.1, probabilities=[1.0]),
            "probabilities must have the 2 entries",
        ),
        (
            lambda: WeightedMarchenkoPastur([1.0, 2.0], 0.1, probabilities=[0.7, 0.7]),
            "probabilities must sum to one",
        ),
        (lambda: WeightedMarchenkoPastur([1.0], 0.1).outliers([[1.0]] * 2), "features must have"),
        (lambda: WeightedMarchenkoPastur([1.0], 0.1).outliers(np.ones((1, 0))), "at least one"),
        (lambda: WeightedMarchenkoPastur([1.0], 0.1).stieltjes(1.0), "outside the support"),
        (lambda: WeightedMarchenkoPastur([1.0], 0.1).stieltjes([1j, 5.0]), "z must be real, or"),
        (lambda: WeightedMarchenkoPastur([1.0], 0.1).density(np.inf), "x must be finite"),
    ],
)
def test_bad_input_is_named(call: Callable[[], Any], message: str) -> None:
    """Every refusal names the argument and the allowed range."""
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("ratio", [0.1, 0.5])
def test_edge_scales_are_those_of_white_wishart_matrices(ratio):
    """Upper edge: Johnstone's scale (2001); lower edge: the same with the roots subtracted."""
    d = 300
    samples = d / ratio
    lower, upper = WeightedMarchenkoPastur([1.0], ratio=ratio).edge_scales(d)
    for sign, found in ((1, upper), (-1, lower)):
        roots = np.sqrt(samples) + sign * np.sqrt(d)
        inverse = np.cbrt(abs(1 / np.sqrt(samples) + sign / np.sqrt(d)))
        np.testing.assert_allclose(found, roots * inverse / samples, rtol=1e-9)
    assert abs(upper / lower - 1) > 0.1


def test_negligible_masses_are_left_out():
    """A pole that rounding hides changes nothing but the stated error, and nothing hangs."""
    features = np.array([[0.1], [2.0], [1.0], [40.0]])
    weights, masses = [0.3, 1.0, 0.5, 60.0], [0.4, 0.1, 0.5, 1e-97]
    law = WeightedMarchenkoPastur(weights, 0.2, probabilities=masses)
    plain = WeightedMarchenkoPastur(weights[:3], 0.2, probabilities=masses[:3])
    assert law.left_out == pytest.approx(5e-97)
    np.testing.assert_array_equal(law.edges, plain.edges)
    np.testing.assert_array_equal(
        law.outliers(features).values, plain.outliers(features[:3]).values
    )


def test_weights_of_negligible_mass_alone_are_refused():
    """Nothing would be left of the law."""
    with pytest.raises(ValueError, match="ratio and probabilities must leave weights"):
        WeightedMarchenkoPastur([0.0, 1.0], 0.2, probabilities=[1.0, 1e-30])


@pytest.mark.parametrize("exponent", [-660, -31, 31, 660])
def test_rescaled_weights_rescale_the_law(exponent):
    """A power of two changes no digit that is not lost elsewhere, from 1e-199 to 1e199."""
    rng = np.random.default_rng(5)
    weights, features = rng.standard_normal(40), rng.standard_normal((40, 2)) * 1.5
    scale = 2.0**exponent
    law, scaled = (WeightedMarchenkoPastur(each * weights, 0.2, 0.7) for each in (1.0, scale))
    for this, that in (
        (law.edges, scaled.edges / scale),
        (law.outliers(features).values, scaled.outliers(features).values / scale),
        (law.outliers(features).overlaps, scaled.outliers(features).overlaps),
        (law.edge_scales(100), scaled.edge_scales(100) / scale),
        (law.cdf([-0.1, 0.0, 0.2]), scaled.cdf(scale * np.array([-0.1, 0.0, 0.2]))),
        (law.density([0.1, 0.2]), scaled.density(scale * np.array([0.1, 0.2])) * scale),
        (law.stieltjes([1 + 1j]), scaled.stieltjes(scale * np.array([1 + 1j])) * scale),
    ):
        np.testing.assert_allclose(that, this, rtol=1e-9)


def test_units_are_bounded():
    """What no number can hold is refused."""
    with pytest.raises(ValueError, match="weights must have a product with ratio and variance"):
        WeightedMarchenkoPastur([1e200], 0.1, 1e200)
    tiny = WeightedMarchenkoPastur([1e-200], 0.1)
    with pytest.raises(ValueError, match="z must be below"):
        tiny.stieltjes(1e300j)
    with pytest.raises(ValueError, match="features must have products"):
        WeightedMarchenkoPastur([1.0, 2.0], 0.1).outliers([[1e200], [1.0]])


@pytest.mark.parametrize("seed", range(40))
def test_masses_and_weights_of_all_scales(seed):
    """Masses down to 1e-120 and weights over sixty decades: an answer, finite and ordered."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    masses = 10.0 ** -rng.uniform(0, rng.choice([2, 20, 120]), n)
    masses = np.maximum(masses / masses.sum(), 1e-120)
    weights = 10.0 ** rng.uniform(-30, 30, n) * rng.choice([-1, 1], n)
    law = WeightedMarchenkoPastur(weights, 10.0 ** rng.uniform(-2, 1), probabilities=masses)
    found = law.outliers(rng.standard_normal((n, 2)) * 3)
    assert np.isfinite(law.edges).all() and np.all(np.diff(law.edges) >= 0)
    assert np.isfinite(found.values).all()
    assert np.all((found.overlaps >= 0) & (found.overlaps <= 1 + 1e-9))
