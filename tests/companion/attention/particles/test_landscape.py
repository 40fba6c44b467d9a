"""The energy at infinite temperature, conserved cross-ratios, the limit of large temperatures."""

import numpy as np
import pytest
from scipy.cluster import hierarchy

from companion.attention.particles.attention import Attention, Head, energy, random_tokens
from companion.attention.particles.clusters import linkage
from companion.attention.particles.ensembles import random_head
from companion.attention.particles.landscape import consensus_hessian, cross_ratios
from companion.attention.particles.laws import opposite_share


def along(x, v, t):
    """Tokens moved along great circles."""
    speed = np.linalg.norm(v, axis=1, keepdims=True)
    return np.cos(t * speed) * x + np.sin(t * speed) * v / speed


def test_hessian():
    """Against second differences of the energy along geodesics, at points that are not critical."""
    n, d, step = 4, 3, 1e-3
    x = random_tokens(n, d, rng=0)
    tangents = np.linalg.qr(x[:, :, None], mode="complete").Q[:, :, 1:]
    hessian = consensus_hessian(x)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-14)
    for seed in range(5):
        w = np.random.default_rng(seed).standard_normal((n, d - 1))
        v = np.einsum("ikp,ip->ik", tangents, w)
        ends = [n * energy(along(x, v, t), 0.0) for t in (step, 0.0, -step)]
        second = (ends[0] - 2 * ends[1] + ends[2]) / step**2
        assert second == pytest.approx(w.ravel() @ hessian @ w.ravel(), rel=1e-4, abs=1e-5)
        flat = w.ravel() @ hessian @ w.ravel() + np.sum(w**2 * (x @ x.sum(0) / n)[:, None])
        assert abs(second - flat) > 1e-2


@pytest.mark.parametrize("minority", [0, 1, 2, 3])
def test_aligned_saddles(minority):
    """One unstable eigenvalue one in each direction of the sphere, and the balance elsewhere.

    The first are those of MDL Lemma 14.3.
    """
    n, d = 7, 4
    x = np.tile(np.eye(d)[0], (n, 1))
    x[:minority] *= -1
    balance = (n - 2 * minority) / n
    expected = [0.0] * (d - 1) + [-balance] * (d - 1) * (n - 1)
    if minority:
        expected = [0.0, 1.0] + [balance] * (minority - 1) + [-balance] * (n - minority - 1)
        expected = expected * (d - 1)
    found = np.linalg.eigvalsh(consensus_hessian(x))
    np.testing.assert_allclose(found, np.sort(expected), atol=1e-12)


def test_balanced_saddles():
    """Reached by repulsion: the largest eigenvalue is one less the least of the mean of xxᵀ.

    So it is positive, as MDL Lemma 14.3 says.
    """
    repelling = Attention(0.0, [Head(value=-np.eye(3))])
    x = repelling.flow(random_tokens(6, 3, rng=1), [0.0, 60.0]).tokens[-1]
    np.testing.assert_allclose(x.sum(axis=0), 0, atol=1e-8)
    top = np.linalg.eigvalsh(consensus_hessian(x))[-1]
    assert top == pytest.approx(1 - np.linalg.eigvalsh(x.T @ x / 6)[0], abs=1e-7)
    assert top >= 2 / 3


def test_cross_ratios():
    """Against their definition; conserved at infinite temperature only."""
    x = random_tokens(5, 3, rng=2)
    one = np.linalg.norm(x[0] - x[1]) * np.linalg.norm(x[2] - x[4])
    other = np.linalg.norm(x[0] - x[2]) * np.linalg.norm(x[1] - x[4])
    assert cross_ratios(x)[0, 2] == pytest.approx(one / other)
    for beta, kept in ((0.0, True), (0.5, False)):
        later = Attention(beta).flow(x, [0.0, 2.0], rtol=1e-11, atol=1e-13).tokens[-1]
        after, before = (cross_ratios(y)[~np.eye(3, dtype=bool)] for y in (later, x))
        change = np.abs(after / before - 1)
        assert bool(change.max() < 1e-8) is kept


@pytest.mark.parametrize("dimension", [2, 3, 6])
def test_opposite_share(dimension):
    """Against a count of 20 000 pairs of uniform tokens, within six standard errors.

    At late times the volume of MDL Lemma 14.2 vanishes at the rate d - 1.
    """
    x, y = (random_tokens(20_000, dimension, rng=seed) for seed in (3, 4))
    later = np.tanh(0.5 + np.arctanh(np.sum(x * y, axis=1)))
    share = float(opposite_share(0.5, dimension=dimension))
    error = np.sqrt(share * (1 - share) / 20_000)
    assert abs(np.mean(later < 0) - share) < 6 * error
    assert abs(np.mean(later < 0) - opposite_share(1.0, dimension=dimension)) > 6 * error
    late = opposite_share([10.0, 11.0], dimension=dimension)
    assert late[1] / late[0] == pytest.approx(np.exp(-(dimension - 1)), rel=1e-6)


def test_linkage_without_motion_is_single_linkage():
    """Pairs of far tokens: each pair merges at its own distance, as in SciPy's single linkage."""
    x = np.repeat(np.eye(3), 2, axis=0)
    x[1::2] += 0.2 * np.roll(np.eye(3), 1, axis=1) * np.arange(1, 4)[:, None]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    chains = hierarchy.linkage(x, "single")[:, 2] ** 2 / 2
    found = linkage(x)
    np.testing.assert_allclose(found[:3], chains[:3], rtol=1e-12)
    assert np.all(found[3:] > chains[3:] + 0.01)


def test_linkage_is_the_limit():
    """Times of mergers on a logarithmic scale; weights matter."""
    x, masses = random_tokens(4, 8, rng=5), np.array([0.7, 0.1, 0.1, 0.1])
    heights = linkage(x, masses=masses)
    errors = []
    for beta in (40.0, 160.0, 640.0):
        mergers = Attention(beta).flow(x, [0.0, 1e300], masses=masses).mergers
        errors.append(np.abs(np.log(mergers) / beta - heights[: len(mergers)]).max())
    assert errors[0] > 1.5 * errors[1] and errors[1] > 1.5 * errors[2] and errors[2] < 0.05
    assert np.abs(linkage(x) - heights).max() > 0.05


def test_linkage_weighs_squares_of_masses():
    """One of two groups has twice the mass of the other, and moves a fifth of the way."""
    angles, masses = np.array([0.0, 1.0, -2.0]), np.array([0.5, 0.25, 0.25])
    x = np.column_stack([np.cos(angles), np.sin(angles)])
    heights = linkage(x, masses=masses)
    np.testing.assert_allclose(heights, 1 - np.cos([1.0, 2.2]), rtol=1e-12)
    beta = 320.0
    mergers = Attention(beta).flow(x, [0.0, 1e300], masses=masses).mergers
    np.testing.assert_allclose(np.log(mergers) / beta, heights, atol=2 * np.log(2 * beta) / beta)
    assert 1 - np.cos(2 + 1 / 3) > heights[1] + 2 * np.log(2 * beta) / beta


def test_ensembles():
    """Symmetry, definiteness, spectral edges at dimension 200, variance of entries."""
    d = 200
    a, b, c, w = (random_head(panel, d, rng=6) for panel in "ABCD")
    assert np.abs(np.linalg.eigvals(a.value)).max() == pytest.approx(1, abs=0.15)
    assert np.linalg.eigvalsh(b.value)[0] > -1e-12
    assert np.linalg.eigvalsh(b.value)[-1] == pytest.approx(4, abs=0.4)
    for wigner in (b.key, w.key):
        assert np.linalg.norm(wigner - wigner.T) == 0
        assert np.linalg.eigvalsh(wigner)[-1] == pytest.approx(2, abs=0.15)
    np.testing.assert_allclose(c.value, c.query.T @ c.key, atol=1e-14)
    assert w.value is w.key and w.query is None and b.query is None
    assert d * np.var(c.query) == pytest.approx(1, abs=6 * np.sqrt(2) / d)


def test_messages():
    """Each names the argument."""
    for call, message in (
        (lambda: consensus_hessian(2 * np.eye(2)), "tokens must have norm one"),
        (lambda: cross_ratios(np.eye(3)), "tokens must be at least 4"),
        (lambda: cross_ratios(np.repeat(np.eye(2), 2, axis=0)), "tokens must be all different"),
        (lambda: linkage(np.eye(2), masses=[1.0, 1.0]), "masses must sum to one"),
        (lambda: linkage(np.eye(2), masses=[1.0]), "masses must have shape"),
        (lambda: opposite_share([-1.0], dimension=2), "times must be non-negative"),
        (lambda: random_head("E", 2, rng=0), "panel must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
