"""Self-attention on the sphere: the field, its integration, what is exact about it."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ive

from companion.attention.particles.attention import (
    Attention,
    FeedForward,
    Head,
    energy,
    energy_growth,
    random_tokens,
)
from companion.attention.particles.clusters import cluster_count, clustered_share
from companion.attention.particles.laws import cluster_time, equiangular, growth_rate, pair_time

RNG = np.random.default_rng(0)
X = random_tokens(7, 4, rng=1)
MATRICES = [Head(*RNG.standard_normal((3, 4, 4))) for _ in range(2)]
LAYER = FeedForward(
    RNG.standard_normal((4, 6)), RNG.standard_normal((6, 4)), RNG.standard_normal(6)
)


def by_loops(attention, x):
    """The field, token by token, as it is written."""
    beta, found = attention.inverse_temperature, np.zeros_like(x)
    for i, one in enumerate(x):
        for head in attention.heads:
            q, k, v = (np.eye(len(one)) if m is None else np.asarray(m) for m in head)
            weights = np.array([np.exp(beta * (q @ one) @ (k @ other)) for other in x])
            weights /= weights.sum()
            found[i] += sum(w * v @ other for w, other in zip(weights, x))
        if attention.feed_forward is not None:
            w, a, b, name = attention.feed_forward
            sums = np.asarray(a) @ one + b
            found[i] += np.asarray(w) @ (np.maximum(sums, 0) if name == "relu" else np.tanh(sums))
        found[i] -= (found[i] @ one) * one
    return found


@pytest.mark.parametrize(
    "attention",
    [
        Attention(1.5),
        Attention(0.0, (Head(),) * 3),
        Attention(2.0, MATRICES),
        Attention(1.0, [Head(value=MATRICES[0].value), Head()], LAYER),
        Attention(1.0, feed_forward=LAYER._replace(activation="tanh")),
    ],
)
def test_field(attention):
    """Against loops (MDL Chapter 14, Equation 1.7); orthogonal to tokens; rows sum to one."""
    speed = attention.velocity(X)
    np.testing.assert_allclose(speed, by_loops(attention, X), atol=1e-12)
    np.testing.assert_allclose(np.sum(speed * X, axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(attention.weights(X).sum(axis=1), 1, atol=1e-14)


def test_query_and_key_are_not_exchanged():
    """The wrong variant of the field is another."""
    head = MATRICES[0]
    exchanged = Attention(2.0, [Head(head.key, head.query, head.value)])
    assert np.abs(exchanged.velocity(X) - by_loops(Attention(2.0, [head]), X)).max() > 0.1


@pytest.mark.parametrize("attention", [Attention(3.0), Attention(1.0, MATRICES, LAYER)])
def test_flow(attention):
    """Against SciPy at tight tolerances; norms stay one; the times asked for are hit."""
    times = np.array([0.0, 0.3, 0.31, 2.0, 6.0])
    flow = attention.flow(X, times)
    solved = solve_ivp(
        lambda _, x: by_loops(attention, x.reshape(X.shape)).ravel(),
        (0, 6), X.ravel(), t_eval=times, rtol=1e-11, atol=1e-13, method="DOP853",
    )  # fmt: skip
    expected = solved.y.T.reshape(-1, *X.shape)
    np.testing.assert_allclose(flow.tokens, expected, atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(flow.tokens, axis=2), 1, atol=1e-14)
    assert flow.accepted > 3
    coarse = attention.flow(X, times, rtol=1e-3, atol=1e-5)
    assert coarse.accepted < flow.accepted
    assert np.abs(coarse.tokens - expected).max() > np.abs(flow.tokens - expected).max()


def test_rectangular_query_and_key():
    """Only their product counts."""
    query, key, value = RNG.standard_normal((3, 2, 4))
    head = Head(query, key, np.outer(value[0], value[1]))
    square = Head(np.eye(4), query.T @ key, head.value)
    np.testing.assert_allclose(
        Attention(1.0, [head]).velocity(X), Attention(1.0, [square]).velocity(X), atol=1e-13
    )


def test_masses_are_multiplicities():
    """A token of double mass is two tokens; equal masses are none; tokens are not exchanged."""
    times = [0.0, 1.0, 5.0]
    twice = Attention(2.0).flow(np.vstack([X, X[:2]]), times).tokens
    masses = np.array([2, 2, 1, 1, 1, 1, 1]) / 9
    once = Attention(2.0).flow(X, times, masses=masses).tokens
    np.testing.assert_allclose(twice[:, :7], once, atol=1e-8)
    np.testing.assert_allclose(twice[:, 7:], once[:, :2], atol=1e-8)
    assert np.abs(Attention(2.0).flow(X, times).tokens - once).max() > 1e-2


@pytest.mark.parametrize("attention", [Attention(2.0), Attention(2.0, [MATRICES[0], MATRICES[1]])])
def test_merging_changes_nothing(attention):
    """With a tolerance so small that none merges the tokens are where they are with merging."""
    times = [0.0, 10.0, 30.0]
    merged = attention.flow(X, times, rtol=1e-9, atol=1e-7)
    apart = attention.flow(X, times, rtol=1e-9, atol=1e-30)
    np.testing.assert_allclose(merged.tokens, apart.tokens, atol=3e-6)
    assert np.all(np.diff(merged.mergers) >= 0)
    assert len(merged.mergers) >= len(apart.mergers)


def test_equal_tokens_are_one_from_the_start():
    """Three and three: three mergers at once after the first step, and groups stay apart."""
    x = np.repeat(np.eye(2), 3, axis=0)
    flow = Attention(30.0).flow(x, [0.0, 1.0])
    assert len(flow.mergers) == 4 and cluster_count(flow.tokens[-1]) == 2
    np.testing.assert_allclose(flow.tokens[-1], x, atol=1e-9)


@pytest.mark.parametrize("beta", [6.0, 60.0, 300.0])
def test_long_times(beta):
    """Two groups of unequal mass meet when they should, be it after 10 to the 200 units of time."""
    x = np.array([[1.0, 0.0], [np.cos(2.5), np.sin(2.5)]])
    time = pair_time(np.cos(2.5), inverse_temperature=beta, masses=(0.3, 0.7), tolerance=5e-17)
    flow = Attention(beta).flow(x, [0.0, 1e300], masses=[0.3, 0.7], atol=1e-8)
    assert flow.mergers[0] == pytest.approx(time, rel=1e-3)
    wrong = pair_time(np.cos(2.5), inverse_temperature=beta, tolerance=5e-17)
    assert flow.mergers[0] != pytest.approx(wrong, rel=1e-2)


def test_energy_increases_at_its_slope():
    """Twice the gradient on the sphere at infinite temperature; otherwise it increases."""
    flow = Attention(4.0).flow(random_tokens(12, 3, rng=2), np.linspace(0, 8, 60))
    energies = np.array([energy(x, 4.0) for x in flow.tokens])
    assert np.all(np.diff(energies) > 0)
    speed, step = Attention(0.0).velocity(X), 1e-5
    moved = [X + sign * step * speed for sign in (1, -1)]
    ends = [energy(x / np.linalg.norm(x, axis=1, keepdims=True), 0.0) for x in moved]
    # energy is half the squared mean, whose gradient at a token is the mean over n: the field
    # is n times that, so the energy grows at the squared speed over n.
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(np.sum(speed**2) / len(X), rel=1e-7)
    assert energy(X, 1e-6) - 1 / 2e-6 == pytest.approx(energy(X, 0.0), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("beta", [0.0, 3.0])
def test_energy_growth(beta):
    """Against the energy a little later and a little earlier; without the sums it is another."""
    x = Attention(beta).flow(X, [0.0, 0.999, 1.0, 1.001], rtol=1e-11, atol=1e-13).tokens
    slope = (energy(x[3], beta) - energy(x[1], beta)) / 0.002
    assert slope == pytest.approx(energy_growth(x[2], beta), rel=1e-5)
    plain = np.mean(np.sum(Attention(beta).velocity(x[2]) ** 2, axis=1))
    assert (abs(plain / slope - 1) < 1e-3) == (beta == 0)


def test_flows_end():
    """Overflow in the field, and a flow without end, are errors."""
    huge = Attention(1.0, [Head(value=1e308 * np.ones((4, 4)))])
    with pytest.raises(FloatingPointError, match="the step became too small"):
        huge.flow(X, [0.0, 1.0])
    turning = Attention(0.0, [Head(value=np.array([[0.0, -1.0], [1.0, 0.0]]))])
    with pytest.raises(FloatingPointError, match="too many steps"):
        turning.flow([[1.0, 0.0]], [0.0, 1e12], most_steps=50)


@pytest.mark.parametrize("beta", [0.0, 1.0, 4.0])
def test_equiangular_curve(beta):
    """Of orthonormal tokens in the direct dynamics; another number of tokens is not on it."""
    times = np.linspace(0, 6, 13)
    flow = Attention(beta).flow(np.eye(8), times)
    products = np.einsum("tid,tjd->tij", flow.tokens, flow.tokens)[:, ~np.eye(8, dtype=bool)]
    curve = equiangular(times, inverse_temperature=beta, count=8)
    np.testing.assert_allclose(products, np.tile(curve[:, None], (1, 56)), atol=1e-6)
    wrong = equiangular(times, inverse_temperature=beta, count=9)
    assert np.abs(wrong - curve).max() > 1e-2


@pytest.mark.parametrize("beta", [0.0, 2.0, 7.0])
def test_cluster_time(beta):
    """The curve reaches the level then."""
    time = cluster_time(inverse_temperature=beta, count=32)
    level = equiangular([time], inverse_temperature=beta, count=32)
    assert 1 - level[0] == pytest.approx(1e-3, rel=1e-6)
    late = [cluster_time(inverse_temperature=beta, count=32, tolerance=t) for t in (1e-7, 1e-8)]
    assert late[1] - late[0] == pytest.approx(np.log(10) / 2, rel=1e-4)


@pytest.mark.parametrize("beta", [0.5, 2.0, 8.0])
def test_growth_rates_of_particles(beta):
    """Tokens at a perturbed uniform density of the circle, its modes growing as predicted.

    The control, the rates with the Bessel functions of the next order, is rejected.
    """
    n, size = 400, 1e-6
    modes = np.arange(1, 5)
    rates = growth_rate(modes, dimension=2, inverse_temperature=beta)
    wrong = growth_rate(modes + 1, dimension=2, inverse_temperature=beta)
    found = []
    for k in modes:
        angles = 2 * np.pi * np.arange(n) / n
        # Shifting angles by a sine adds a cosine to the density.
        angles = angles + size * np.sin(k * angles)
        x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        speed = Attention(beta).velocity(x)
        turning = x[:, 0] * speed[:, 1] - x[:, 1] * speed[:, 0]
        found.append(2 * np.mean(turning * np.sin(2 * np.pi * k * np.arange(n) / n)) / size)
    np.testing.assert_allclose(found, rates, rtol=1e-5)
    assert np.all(np.abs(found - wrong) > 1e-3)


def test_growth_rate_by_bessel_functions():
    """Where they do not underflow."""
    for d, beta in ((2, 0.5), (3, 4.0), (10, 30.0)):
        degrees, order = np.arange(1, 9), d / 2 - 1
        expected = (
            degrees * (degrees + d - 2) / beta * ive(degrees + order, beta) / ive(order, beta)
        )
        found = growth_rate(degrees, dimension=d, inverse_temperature=beta)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_growth_rate_at_infinite_temperature():
    """The limit of small inverse temperatures, in three dimensions too."""
    for d in (2, 3, 128):
        small = growth_rate([1, 2], dimension=d, inverse_temperature=1e-6)
        np.testing.assert_allclose(
            small, growth_rate([1, 2], dimension=d, inverse_temperature=0.0), atol=1e-6
        )


def test_clusters():
    """Chains connect; shares count pairs."""
    angles = np.array([0.0, 0.04, 0.08, 2.0])
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert cluster_count(x) == 2 and cluster_count(x, tolerance=1e-5) == 4
    assert clustered_share(x) == pytest.approx(2 / 6)


def test_tokens_are_uniform():
    """Second moments of 20 000 draws, within six standard errors of the identity over d."""
    x = random_tokens(20_000, 3, rng=3)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, atol=1e-14)
    error = 6 * np.sqrt(4 / 45 / 20_000)
    assert np.abs(x.T @ x / 20_000 - np.eye(3) / 3).max() < error


def test_messages():
    """Each names the argument."""
    for call, message in (
        (lambda: Attention(-1.0), "inverse_temperature must be non-negative"),
        (lambda: Attention(1.0, ()), "heads must not be empty"),
        (
            lambda: Attention(1.0, [Head(np.ones((2, 3)))]),
            "query and key of head 0 must have one number of rows, got 2 and 3",
        ),
        (lambda: Attention(1.0, [Head(value=np.ones((2, 3)))]), "value of head 0 must have shape"),
        (
            lambda: Attention(1.0, [Head(np.eye(2), np.eye(3))]),
            "all matrices must act on one dimension",
        ),
        (
            lambda: Attention(1.0, MATRICES).velocity(np.eye(3)),
            r"tokens must have shape \(any, 4\)",
        ),
        (lambda: Attention(1.0).velocity(2 * np.eye(3)), "tokens must have norm one"),
        (lambda: Attention(1.0).flow(np.eye(3), [0.0, 0.0]), "times"),
        (lambda: Attention(1.0).flow(np.eye(3), [0.0], masses=[1.0]), "masses must have shape"),
        (lambda: Attention(1.0).flow(np.eye(2), [0.0], masses=[0.5, 0.6]), "masses must sum"),
        (lambda: energy(2 * np.eye(2), 1.0), "tokens must have norm one"),
        (lambda: energy(np.eye(2), -1.0), "inverse_temperature must be non-negative"),
        (lambda: Attention(1.0).weights(np.eye(3), 1), "head must be an integer"),
        (
            lambda: Attention(1.0, feed_forward=LAYER._replace(shift=np.ones(2))),
            "shift must have shape",
        ),
        (
            lambda: Attention(1.0, feed_forward=LAYER._replace(activation="sine")),
            "activation must be one of",
        ),
        (lambda: random_tokens(2, 1, rng=0), "dimension must be an integer >= 2"),
        (lambda: clustered_share(np.eye(1)), "tokens must be at least 2"),
        (lambda: cluster_time(inverse_temperature=1.0, count=2, tolerance=1.0), "tolerance must"),
        (lambda: growth_rate([0], dimension=2, inverse_temperature=1.0), "degree must consist"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
