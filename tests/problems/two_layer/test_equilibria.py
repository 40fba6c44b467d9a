"""Fixed points at infinite precision: classification, components, stability, basins."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from companion.effective_dynamics.binary_mixture.printed import printed_loss
from companion.effective_dynamics.xor_mixture import component_count
from traindyn.effective import sliding
from traindyn.problems.two_layer import Statistics, TwoLayerMixture, limit
from traindyn.problems.two_layer.equilibria import (
    ZERO,
    FixedSet,
    classes,
    components,
    destination,
    fixed_sets,
    initial_set,
    locate,
    success_probability,
)
from traindyn.problems.two_layer.printed import printed_drift

BINARY = TwoLayerMixture.binary(2, 20, precision=math.inf, ridge=0.1)
XOR = TwoLayerMixture.xor(4, 20, precision=math.inf, ridge=0.05)
TURNED = TwoLayerMixture.xor(4, 20, precision=math.inf, ridge=0.05, mu=(0.6, 0.8), nu=(-0.8, 0.6))
# Unequal weights and lengths: every class has its own gain and size.
UNEVEN = TwoLayerMixture(
    np.array([[1.5, 0.0], [-1.0, 0.0], [0.0, 0.8], [0.0, -2.0]]),
    np.array([1, 1, 0, 0]),
    np.array([0.2, 0.3, 0.35, 0.15]),
    4,
    20,
    math.inf,
    0.05,
)


def size_of(drift):
    """Largest entry of a drift."""
    return max(np.abs(array).max() for array in drift)


def printed_block_drift(problem, here):
    """Drift of XOR by the reduction of BGJ Section 9.4, with the gain 1/2 for 1/4."""
    rate = limit.drift(replace(problem, ridge=problem.ridge / 2), here)
    return Statistics(*(2 * part for part in rate))


@pytest.mark.parametrize("problem", [BINARY, XOR, UNEVEN])
def test_all_of_them_stand_still(problem):
    """Random points of all sets, with the loss of the set; printed dynamics move.

    Along turned axes the zeros of a point are not exact, so that neurons would chatter.
    """
    rng = np.random.default_rng(0)
    moved = []
    for place in fixed_sets(problem):
        here = place.point(rng.uniform(0.2, 1.0, size=problem.width))
        assert size_of(limit.drift(problem, here)) < 1e-15
        assert math.isclose(place.loss, problem.population_loss(here), rel_tol=1e-13)
        if len(place.members):
            moved.append(size_of(printed_block_drift(problem, here)))
        if any(place.classes.signs[c] < 0 for c in place.occupied) and problem.signal == 2:
            moved.append(size_of(printed_drift(problem, here)))
    assert min(moved) > 1e-3


def test_sizes_and_losses_of_the_source():
    """C_alpha and losses of BGJ Propositions 4.2 and 9.3; the printed ones are rejected."""
    for ridge, expected in ((0.05, 2.19722), (0.1, 1.38629), (0.2, 0.40547)):
        np.testing.assert_allclose(classes(replace(BINARY, ridge=ridge)).sizes, expected, atol=1e-5)
    for ridge, expected in ((0.05, 1.38629), (0.1, 0.405465)):
        np.testing.assert_allclose(classes(replace(XOR, ridge=ridge)).sizes, expected, atol=1e-5)
    found = [FixedSet(BINARY, each).loss for each in ((ZERO, ZERO), (0, 0), (0, 1))]
    np.testing.assert_allclose(found, [0.693147, 0.596775, 0.500402], atol=1e-6)
    assert math.isclose(found[1], (found[0] + found[2]) / 2)
    arc = FixedSet(BINARY, (0, 0))
    assert abs(printed_loss(arc) - BINARY.population_loss(arc.point())) > 0.05
    for ridge, losses in (
        (0.1, [0.693147, 0.688113, 0.683079, 0.678046, 0.673012]),
        (0.05, [0.693147, 0.644961, 0.596775, 0.548589, 0.500402]),
    ):
        problem = replace(XOR, ridge=ridge)
        for count, expected in enumerate(losses):
            assignment = tuple(range(count)) + (ZERO,) * (4 - count)
            assert abs(FixedSet(problem, assignment).loss - expected) < 1e-6


@pytest.mark.parametrize("problem", [BINARY, XOR, UNEVEN])
def test_none_is_missed(problem):
    """Flows from random starts end on a listed set."""
    rng = np.random.default_rng(1)
    lines = len(limit.lines(problem).directions)
    for _ in range(4):
        start = random_start(problem, rng)
        signs = rng.choice([-1, 1], size=(problem.width, lines))
        end = flow(problem, start, signs, 1500.0)
        locate(problem, end, tolerance=1e-5)


def random_start(problem, rng):
    """A start in general position."""
    width = problem.width
    m = rng.normal(size=(width, problem.signal))
    return Statistics(rng.normal(size=width), m, np.eye(width))


def uninformative_start(problem, rng):
    """A draw of the second layer with the limit of the first."""
    return problem.initial_statistics(v=rng.normal(size=problem.width))


def flow(problem, start, signs, time):
    """End of the limit flow."""
    path = sliding.solve_limit(problem, start, [time], signs=signs)
    return Statistics(*(array[-1] for array in path.statistics))


def glued(problem, tolerance=1e-4):
    """Pairs of sets that touch: points of one within `tolerance` of a point of the other."""
    sets = fixed_sets(problem)
    place = {each.assignment: k for k, each in enumerate(sets)}
    pairs = []
    for k, each in enumerate(sets):
        for i in each.members:
            shares = np.ones(problem.width)
            shares[i] = 1e-12
            other = locate(problem, each.point(shares), tolerance=tolerance)
            if other.assignment != each.assignment:
                pairs.append((k, place[other.assignment]))
    return len(sets), pairs


@pytest.mark.parametrize(
    ("kind", "width"),
    [("binary", 1), ("binary", 2), ("binary", 3), *(("xor", k) for k in (1, 2, 3, 4))],
)
def test_components_by_brute_force(kind, width):
    """Touching points, glued by an independent algorithm, against both counts of the library."""
    problem = replace(BINARY if kind == "binary" else XOR, width=width)
    count, pairs = glued(problem)
    ones = np.ones(len(pairs))
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((ones, (rows, columns)), shape=(count, count))
    number, label = connected_components(graph, directed=False)
    assert number == component_count(width, classes=len(problem.labels))
    groups = components(problem)
    sets = {each.assignment: k for k, each in enumerate(fixed_sets(problem))}
    assert len(groups) == number
    for group in groups:
        assert len({label[sets[each.assignment]] for each in group.sets}) == 1
        assert len({round(each.loss, 12) for each in group.sets}) == 1
        assert all(each.stable == group.stable for each in group.sets)


def test_components_of_the_source():
    """BGJ Proposition 9.3: 39, of which 24 stable points; one stable component beyond width 4."""
    found = components(XOR)
    stable = [each for each in found if each.stable]
    assert len(found) == 39 and len(stable) == 24
    assert all(each.dimension == 0 and len(each.sets) == 1 for each in stable)
    by_count = np.bincount([len(each.occupied) for each in found])
    assert by_count.tolist() == [1, 4, 6, 4, 24]
    wide = components(replace(XOR, width=5))
    assert len(wide) == component_count(5) == 16
    assert [each.dimension for each in wide if each.stable] == [1]
    closed = components(BINARY)
    assert sorted(len(each.sets) for each in closed) == [1, 1, 1, 3, 3]


def by_signature(width):
    """BGJ (5.2) as printed, a sum over the number k of positive weights of the second layer."""
    terms = (
        math.comb(width, k) * (1 - 2 ** (1 - k)) * (1 - 2 ** (1 + k - width))
        for k in range(2, width - 1)
    )
    return sum(terms) / 2**width


def test_success_probability():
    """All patterns counted one by one and the closed form: BGJ (5.2), MDL Section 12.4.3."""
    for width in (4, 5, 6):
        good = sum(len(set(pattern)) == 4 for pattern in itertools.product(range(4), repeat=width))
        assert math.isclose(success_probability(width), good / 4**width, rel_tol=1e-14)
        assert math.isclose(by_signature(width), good / 4**width)
        # A class of probability 1/4 that is missed by all neurons, counted once.
        assert abs(1 - 4 * 0.75**width - good / 4**width) > 1e-2
    for width, expected in ((7, 0.512695), (8, 0.622925), (12, 0.874759), (20, 0.987321)):
        assert abs(success_probability(width) - expected) < 1e-6
        assert math.isclose(by_signature(width), success_probability(width))
    assert success_probability(3) == 0.0
    for width in (2, 3, 5):
        good = sum(len(set(pattern)) == 2 for pattern in itertools.product((0, 1), repeat=width))
        assert success_probability(width, classes=2) == good / 2**width


@pytest.mark.parametrize(
    ("problem", "width", "runs"),
    [(BINARY, 2, 25), (BINARY, 5, 5), (XOR, 4, 20), (XOR, 6, 5), (TURNED, 4, 3), (UNEVEN, 6, 3)],
)
def test_pattern_decides_the_outcome(problem, width, runs):
    """Starts of BGHJ Lemma 5.22 end where the pattern says, at the point frozen ratios say."""
    problem = replace(problem, width=width)
    rng = np.random.default_rng(2)
    lines = len(limit.lines(problem).directions)
    for _ in range(runs):
        start = uninformative_start(problem, rng)
        signs = rng.choice([-1, 1], size=(width, lines))
        end = flow(problem, start, signs, 700.0)
        expected = initial_set(problem, start, signs=signs)
        assert locate(problem, end, tolerance=1e-6).assignment == expected.assignment
        predicted = destination(problem, start, signs=signs)
        gap = max(np.abs(one - two).max() for one, two in zip(end, predicted, strict=True))
        assert gap < 1e-7
        assert np.abs(expected.point().v - end.v).max() > 1e-3 or expected.dimension == 0


def test_basins_of_general_starts():
    """Binary from anywhere, XOR where |v| exceeds |m|; the sign of v alone is not enough."""
    rng = np.random.default_rng(3)
    by_sign = []
    for _ in range(15):
        start = random_start(BINARY, rng)
        expected = initial_set(BINARY, start)
        end = locate(BINARY, flow(BINARY, start, None, 700.0), tolerance=1e-5)
        assert end.assignment == expected.assignment
        by_sign.append(tuple((start.v < 0).astype(int)) == end.assignment)
    assert not all(by_sign)
    for _ in range(5):
        start = random_start(XOR, rng)
        m = start.m / np.linalg.norm(start.m, axis=1, keepdims=True)
        start = start._replace(m=0.9 * np.abs(start.v)[:, None] * m)
        end = locate(XOR, flow(XOR, start, None, 1500.0), tolerance=1e-5)
        assert end.assignment == initial_set(XOR, start).assignment


def active_field(place):
    """Flow of the neurons that do not vanish in v and m along their class, and its base."""
    problem, known = place.problem, place.classes
    group = np.array(place.assignment)[place.members]
    base = place.point(np.arange(1.0, problem.width + 1.0))
    count = len(group)

    def field(u):
        v, m = base.v.copy(), base.m.copy()
        v[place.members] = u[:count]
        m[place.members] = u[count:, None] * known.directions[group]
        rate = limit.drift(problem, Statistics(v, m, base.R_perp))
        along = (rate.m[place.members] * known.directions[group]).sum(axis=1)
        return np.concatenate([rate.v[place.members], along])

    return field, np.concatenate([base.v[place.members], np.abs(base.v[place.members])])


def jacobian(field, u, h=1e-6):
    """Central differences."""
    steps = h * np.eye(u.size)
    return np.stack([(field(u + step) - field(u - step)) / (2 * h) for step in steps], axis=1)


@pytest.mark.parametrize(
    ("problem", "assignment"),
    [
        (BINARY, (0, 0)),
        (BINARY, (1, 0)),
        (BINARY, (ZERO, 1)),
        (XOR, (0, 0, 3, 3)),
        (XOR, (0, 1, 2, 3)),
        (XOR, (2, ZERO, 2, 2)),
        (UNEVEN, (0, 2, 3, 3)),
    ],
)
def test_eigenvalues(problem, assignment):
    """Against the numerical Jacobian; the flow of BGJ Section 9.4 has others."""
    place = FixedSet(problem, assignment)
    field, base = active_field(place)
    found = np.linalg.eigvals(jacobian(field, base))
    np.testing.assert_allclose(np.sort(found.real)[::-1], place.eigenvalues, atol=1e-8)
    assert np.abs(found.imag).max() < 1e-8
    assert np.count_nonzero(place.eigenvalues == 0.0) == place.dimension


@pytest.mark.parametrize("problem", [BINARY, XOR, UNEVEN])
def test_growth_of_a_vanishing_neuron(problem):
    """Rate of a tiny neuron set to join each class, from the drift itself."""
    problem = replace(problem, width=4)
    for occupied in ((0, 0, 0), (0, 1, 1), (1, ZERO, ZERO)):
        place = FixedSet(problem, (*occupied, ZERO))
        base = place.point()
        for c, rate in enumerate(place.growth):
            v, m = base.v.copy(), base.m.copy()
            v[3] = 1e-6 * place.classes.signs[c]
            m[3] = 1e-6 * place.classes.directions[c]
            drift = limit.drift(problem, Statistics(v, m, base.R_perp))
            assert abs(drift.v[3] / v[3] - rate) < 1e-9
            assert abs(drift.m[3] @ m[3] / (m[3] @ m[3]) - rate) < 1e-9


def test_bad_sets_attract_where_no_neuron_vanishes():
    """Perturbed arcs are returned to, although called unstable; their end points are left."""
    rng = np.random.default_rng(4)
    for problem, assignment in ((BINARY, (0, 0)), (XOR, (0, 0, 3, 1)), (UNEVEN, (1, 1, 1, 2))):
        place = FixedSet(problem, assignment)
        assert place.attracting and not place.stable
        base = place.point(rng.uniform(0.5, 1.0, size=problem.width))
        pushed = base._replace(
            v=base.v + 0.05 * rng.normal(size=base.v.shape),
            m=base.m + 0.05 * rng.normal(size=base.m.shape),
        )
        end = flow(problem, pushed, None, 1500.0)
        assert locate(problem, end, tolerance=1e-6).assignment == assignment
    end_point = FixedSet(BINARY, (0, ZERO))
    assert not end_point.attracting
    base = end_point.point()
    pushed = base._replace(v=base.v - np.array([0.0, 1e-4]), m=base.m - np.array([[0.0], [1e-4]]))
    end = flow(BINARY, pushed, None, 700.0)
    assert locate(BINARY, end, tolerance=1e-6).assignment == (0, 1)
    early = flow(BINARY, pushed, None, 10.0)
    assert math.isclose(early.v[1] / -1e-4, math.exp(0.15 * 10.0), rel_tol=1e-3)


def test_stability_above_the_threshold():
    """Only the origin is left, and it is stable; just below, it is not."""
    for problem, threshold in ((BINARY, 0.25), (XOR, 0.125)):
        (origin,) = fixed_sets(replace(problem, ridge=1.01 * threshold))
        assert origin.stable and origin.attracting and origin.members.size == 0
        below = replace(problem, ridge=0.99 * threshold)
        origin = FixedSet(below, (ZERO,) * problem.width)
        assert not origin.stable and not origin.attracting
        assert len(components(below)) == component_count(problem.width, classes=len(problem.labels))
    # One class can die out while the others live.
    uneven = replace(UNEVEN, ridge=0.145)
    assert {c for each in fixed_sets(uneven) for c in each.occupied} == {0, 1, 3}
    assert FixedSet(uneven, (0, 1, 3, 3)).stable


def test_infeasible_requests_are_refused():
    """Classes above the threshold, undecided starts, points that are not fixed."""
    with pytest.raises(ValueError, match=r"ridge must be below 0\.25 .* got 0\.3"):
        FixedSet(replace(BINARY, ridge=0.3), (0, 1))
    with pytest.raises(ValueError, match=r"ridge must be below 0\.125 .* got 0\.2"):
        FixedSet(replace(XOR, ridge=0.2), (0, 1, 2, 3))
    with pytest.raises(ValueError, match="assignment must hold 4 classes"):
        FixedSet(XOR, (0, 1, 2, 4))
    with pytest.raises(ValueError, match=r"problem\.ridge must be positive"):
        classes(replace(XOR, ridge=0.0))
    with pytest.raises(ValueError, match="at most 1000000 sets"):
        fixed_sets(replace(XOR, width=12))
    with pytest.raises(ValueError, match="shares must be positive"):
        FixedSet(BINARY, (0, 0)).point([1.0, 0.0])
    off = FixedSet(BINARY, (0, 0)).point()
    with pytest.raises(ValueError, match="fixed point up to 1e-09"):
        locate(BINARY, off._replace(v=1.1 * off.v))
    with pytest.raises(ValueError, match="fixed point up to 1e-09"):
        locate(replace(XOR, ridge=0.2), FixedSet(XOR, (0, 1, 2, 3)).point())
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="signs must tell the side of neuron 0"):
        initial_set(XOR, uninformative_start(XOR, rng))
    undecided = Statistics(np.full(4, 0.1), np.ones((4, 2)), np.eye(4))
    with pytest.raises(ValueError, match="class of neuron 0"):
        initial_set(XOR, undecided)
    tilted = Statistics(np.full(2, 0.1), np.full((2, 1), -0.05), np.eye(2))
    with pytest.raises(ValueError, match="aligned with the classes"):
        destination(BINARY, tilted)
    fan = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    with pytest.raises(ValueError, match="one label must lie on one line"):
        classes(TwoLayerMixture(fan, np.array([1, 1, 0]), np.full(3, 1 / 3), 2, 20, math.inf, 0.1))
