"""The minimum with an overlap: its equations by Monte Carlo, its onset, its descent."""

import numpy as np
import pytest

from companion.phase_transitions.thresholds.minimum import (
    blind_overlap,
    informed_branch,
    informed_minimum,
)
from traindyn.dmft import proximal, stable_limit, stable_threshold
from traindyn.problems.multi_index import (
    MultiIndex,
    phase_retrieval,
    polynomial,
    two_layer_teacher,
)
from traindyn.sgd import full_batch

EIGHT = MultiIndex(second_layer=[8.0])


def test_equations_by_another_rule():
    """Each equation by the trapezoidal rule in (s, Z), and the first not at an overlap 1 % off."""
    found = informed_minimum(EIGHT, 8.0)
    s, z = (x.ravel() for x in np.meshgrid(np.linspace(-8, 8, 801), np.linspace(-7, 7, 121)))
    mass = np.exp(-(s**2 + z**2) / 2)
    mass /= mass.sum()

    def gaps(m):
        labels = s**2
        v = proximal(EIGHT, labels, m * s + found.rest * z, found.kappa)
        slope = EIGHT.force(v[:, None], labels)[1][:, 0]
        curved = found.kappa * EIGHT.hessian_weights(v[:, None], labels)[:, 0, 0]
        return np.array(
            [
                mass @ (s * slope) / np.sqrt(mass @ (s * slope) ** 2),
                8 * found.kappa**2 * (mass @ slope**2) / found.rest**2 - 1,
                8 * (mass @ (curved / (1 + curved))) - 1,
                8 * (mass @ (curved / (1 + curved)) ** 2) - found.stability,
                mass @ EIGHT.loss.value(labels, EIGHT.predict(v[:, None])) - found.train_loss,
            ]
        )

    assert np.abs(gaps(found.overlap)).max() < 2e-4
    assert abs(gaps(1.01 * found.overlap)[0]) > 1e-3


@pytest.mark.parametrize("scale", [7.0, 8.0, 10.0])
def test_continuous_branch_begins_at_the_threshold(scale):
    """The squared overlap falls linearly to zero there, and nothing is found below."""
    problem = MultiIndex(second_layer=[scale])
    onset = stable_threshold(problem, 11.0).sample_ratio
    far, near = (informed_minimum(problem, onset * x).overlap ** 2 for x in (1.002, 1.001))
    assert far / near == pytest.approx(2, abs=0.06)
    with pytest.raises(FloatingPointError, match="large enough"):
        informed_minimum(problem, 0.99 * onset)


def test_branch_is_its_minima():
    """Followed or found one by one, and cut where it ends."""
    ratios = [9.0, 7.0, 6.1, 5.9, 5.8]
    branch = informed_branch(EIGHT, ratios)
    assert [each.sample_ratio for each in branch] == ratios[:3]
    alone = [informed_minimum(EIGHT, ratio) for ratio in ratios[:3]]
    np.testing.assert_allclose(branch, alone, rtol=1e-6)


def test_small_output_scale_has_a_jump():
    """At a = 5 the cosine is 0.81 at the threshold and 0.79 a hundredth below; then it ends."""
    problem = MultiIndex(second_layer=[5.0])
    onset = stable_threshold(problem, 11.0).sample_ratio
    cosines = [informed_minimum(problem, onset * x).cosine for x in (1.0, 0.99)]
    np.testing.assert_allclose(cosines, [0.813, 0.793], atol=2e-3)
    with pytest.raises(FloatingPointError, match="large enough"):
        informed_minimum(problem, 0.95 * onset)


def test_many_samples_lead_to_the_minimum_of_the_population():
    """At 60 samples per dimension the neuron is nearly that of fresh samples."""
    found = informed_minimum(EIGHT, 60.0)
    s = np.random.default_rng(0).standard_normal(400_000)
    losses = [
        EIGHT.loss.value(s**2, EIGHT.predict((m * s)[:, None])).mean()
        for m in found.overlap * np.array([0.9, 1.015, 1.12])
    ]
    assert losses[1] < losses[0] and losses[1] < losses[2]
    assert found.rest < 0.15 * found.overlap and found.cosine > 0.99


def test_descent_ends_there():
    """Squared overlap and rest in d = 200 at 20 samples per dimension, from an informed start."""
    found, rows = informed_minimum(EIGHT, 20.0), []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        data, neuron = EIGHT.sample(4000, 200, rng=rng), 0.15 * EIGHT.initial(200, rng=rng)
        neuron[0, 0] = 0.15
        end = full_batch.run(EIGHT, data, neuron, [25.0], step_size=0.05).neurons[:, 0]
        rows.append([end[0] ** 2, end[1:] @ end[1:]])
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(24)
    expected = np.array([found.overlap**2, found.rest**2])
    assert np.all(np.abs(mean - expected) < 6 * error + 0.01 * expected)
    assert np.all(6 * error < 0.3 * expected)


def test_blind_overlap_is_the_response_to_a_field():
    """Noise of the gradient over the curvature, by differences and the trapezoidal rule."""
    ratio, h = 4.5, 1e-4
    limit = stable_limit(EIGHT, ratio)
    s, z = (x.ravel() for x in np.meshgrid(np.linspace(-8, 8, 801), np.linspace(-7, 7, 121)))
    mass = np.exp(-(s**2 + z**2) / 2)
    mass /= mass.sum()

    def pull(m):
        v = proximal(EIGHT, s**2, m * s + np.sqrt(limit.q) * z, limit.kappa)
        return s * EIGHT.force(v[:, None], s**2)[1][:, 0]

    curvature = mass @ (pull(h) - pull(-h)) / (2 * h)
    expected = mass @ pull(0.0) ** 2 / (ratio * curvature**2)
    assert blind_overlap(EIGHT, ratio) == pytest.approx(expected, rel=2e-3)


def test_blind_overlap_diverges_at_the_threshold():
    """Like the inverse square of the distance."""
    onset = stable_threshold(EIGHT, 11.0).sample_ratio
    near, nearer = (blind_overlap(EIGHT, onset - x) for x in (0.02, 0.01))
    assert nearer / near == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize("function", [informed_minimum, blind_overlap])
@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (MultiIndex(second_layer=[1.0, 1.0]), "one neuron"),
        (MultiIndex(phase_retrieval(noise=1.0), second_layer=[8.0]), "without noise"),
        (MultiIndex(polynomial({(1, 1): 1.0}), second_layer=[8.0]), "one direction"),
        (MultiIndex(two_layer_teacher((1.0,)), second_layer=[8.0]), "hard"),
    ],
)
def test_other_problems_are_refused(function, problem, message):
    """Several neurons, noise, several directions, an easy one."""
    with pytest.raises(ValueError, match=message):
        function(problem, 8.0)


def test_sample_ratios_out_of_range():
    """Each side of the threshold has its own function, and the continuation a start."""
    for ratios in ([61.0], [8.0, 8.0], [6.0, 8.0], [8.0, -1.0], []):
        with pytest.raises(ValueError, match="must decrease from at most 60"):
            informed_branch(EIGHT, ratios)
    with pytest.raises(ValueError, match="below the threshold"):
        blind_overlap(EIGHT, 6.5)
