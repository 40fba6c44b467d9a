"""Population loss, information exponent, laws of the search: closed forms and simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import expm

from companion.sample_complexity.information_exponent.comparison import (
    bihari_lasalle,
    comparison_constant,
    slowest_growth,
)
from companion.sample_complexity.information_exponent.links import (
    ABSOLUTE,
    COSINE,
    LINEAR,
    RELU,
    TANH,
    Link,
    coefficients,
    hermite,
    series,
)
from companion.sample_complexity.information_exponent.model import SingleIndex, Statistics
from companion.sample_complexity.information_exponent.models import (
    BinaryMixture,
    OnlinePCA,
    TeacherStudent,
    phase_retrieval,
)
from companion.sample_complexity.information_exponent.passage import passages
from companion.sample_complexity.information_exponent.population import (
    critical_step,
    equator,
    fisher_consistent,
    information_exponent,
    taylor,
    travel_time,
)
from companion.sample_complexity.information_exponent.printed import (
    printed_coefficients,
    printed_martingale_scale,
    printed_norm_moment_bound,
)
from companion.sample_complexity.information_exponent.search import Explosion, escape_law, explosion
from traindyn.diffusion import Diffusion
from traindyn.effective import find, sde

MODELS = [
    OnlinePCA(50, signal=1.5),
    BinaryMixture(50, field=0.4),
    TeacherStudent(50, TANH, label_noise=0.5),
    TeacherStudent(50, RELU, ABSOLUTE),
]


@pytest.mark.parametrize("problem", MODELS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("m", [-0.3, 0.0, 0.7])
def test_moments_against_monte_carlo(problem: SingleIndex, m: float) -> None:
    """Loss, pull, power and noise from plain draws."""
    rng = np.random.default_rng(1)
    n, root = 200_000, math.sqrt(1 - m * m)
    s, g, y = rng.standard_normal(n), rng.standard_normal(n), np.zeros(n)
    if isinstance(problem, OnlinePCA):
        s *= math.sqrt(1 + problem.signal)
    elif isinstance(problem, BinaryMixture):
        s += np.where(rng.random(n) < problem.share, 1.0, -1.0)
    elif isinstance(problem, TeacherStudent):
        y = problem.teacher.value(s) + problem.label_noise * rng.standard_normal(n)
    t = m * s + root * g
    c = problem.slope_at(t, y)
    pull = c * (s - m * t)  # root p = s - m t, another way to write it
    found = problem.moments(m)
    wanted = (problem.loss_at(t, y), pull, c**2, (pull - pull.mean()) ** 2)
    for values, expected in zip(wanted, found, strict=True):
        assert abs(values.mean() - expected) < 5 * values.std() / math.sqrt(n)
    assert abs(np.mean(pull**2) - found.power) > 10 * np.std(pull**2) / math.sqrt(n) or m == 0


def test_closed_moments() -> None:
    """PCA (MDL Section 11.2.1), and polynomial links at the equator."""
    m = np.array([0.0, 0.3, 0.9])
    found = OnlinePCA(50, signal=2.0).moments(m)
    np.testing.assert_allclose(found.loss, -1 - 2 * m**2, atol=1e-12)
    np.testing.assert_allclose(found.pull, -4 * m * (1 - m**2), atol=1e-12)
    np.testing.assert_allclose(found.power, 4 * (1 + 2 * m**2), atol=1e-11)
    assert OnlinePCA(50, signal=2.0).moments(0.0).noise == pytest.approx(12)
    assert TeacherStudent(50, hermite(2)).moments(0.0).power == pytest.approx(48)
    assert TeacherStudent(50, hermite(3)).moments(0.0).power == pytest.approx(384)
    assert phase_retrieval(50, label_noise=0.5).moments(1.0).loss == pytest.approx(0.25)


@pytest.mark.parametrize("link", [TANH, RELU, ABSOLUTE, COSINE, hermite(4)], ids=repr)
def test_series_is_the_population_loss(link: Link) -> None:
    """The series of MDL Section 11.2.3 against the quadrature, value and slope."""
    problem, m = TeacherStudent(50, link), np.array([-0.5, 0.2, 0.6])
    u = coefficients(link, 60)
    found = problem.moments(m)
    flat = problem.moments(0.0).loss + 2 * u[0] ** 2
    np.testing.assert_allclose(found.loss, flat - 2 * series(u, u, m), atol=2e-9)
    slopes = np.polynomial.Polynomial(-2 * u * u).deriv()(m)
    np.testing.assert_allclose(found.pull, slopes * (1 - m * m), atol=2e-9)
    np.testing.assert_allclose(taylor(problem, 8)[1:], -2 * u[1:8] ** 2, atol=2e-9)


def test_known_coefficients() -> None:
    """ReLU in closed form; the prefactor printed in MDL Section 11.2.3 makes them complex."""
    root = 1 / math.sqrt(2 * math.pi)
    expected = [root, 0.5, root / math.sqrt(2), 0.0, -root / math.sqrt(24)]
    np.testing.assert_allclose(coefficients(RELU, 5), expected, atol=1e-13)
    np.testing.assert_allclose(coefficients(TANH.scaled(2.0), 4), 2 * coefficients(TANH, 4))
    assert abs(printed_coefficients(RELU, 2).imag).min() > 0.1
    # Mehler: the correlation of two links at correlation m.
    rng = np.random.default_rng(2)
    s, z = rng.standard_normal((2, 10**6))
    product = np.tanh(s) * np.maximum(0.6 * s + 0.8 * z, 0)
    found = series(coefficients(TANH, 40), coefficients(RELU, 40), 0.6)
    assert abs(product.mean() - found) < 5 * product.std() / 1000


def test_mixture_at_the_equator() -> None:
    """Both derivatives (MDL Section 11.2.2) in closed form up to one-dimensional integrals."""
    z, w = np.polynomial.hermite_e.hermegauss(100)
    w = w / w.sum()
    for h in (0.0, 0.3, 2.0):
        found = taylor(BinaryMixture(50, field=h), 3)
        assert found[1] == pytest.approx(-math.tanh(h) * (w @ np.tanh(z + h)), abs=1e-8)
        assert 2 * found[2] == pytest.approx(-(w @ np.cosh(z + h) ** -2.0), abs=1e-7)


def test_information_exponents() -> None:
    """The examples of MDL Definition 11.9, a mismatch, and what has none."""
    exponents = [
        information_exponent(TeacherStudent(50, link)).order
        for link in (RELU, TANH, LINEAR, COSINE, ABSOLUTE, hermite(3), hermite(4))
    ]
    assert exponents == [1, 1, 1, 2, 2, 3, 4]
    assert information_exponent(phase_retrieval(50)).pull == pytest.approx(8.0)
    with pytest.raises(ValueError, match="rises"):
        information_exponent(TeacherStudent(50, TANH, TANH.scaled(-1.0)))
    with pytest.raises(ValueError, match="at most"):
        information_exponent(TeacherStudent(50, hermite(2), hermite(3)))
    for largest in (2, 3):  # the search ends where it is told to
        with pytest.raises(ValueError, match=f"at most {largest}, got none"):
            information_exponent(TeacherStudent(50, hermite(4)), largest=largest)
    assert information_exponent(TeacherStudent(50, hermite(4)), largest=4).order == 4


def test_assumption_b() -> None:
    """A product of coefficients of both signs turns the slope around."""
    down = Link("h1 - h2", lambda z: z - (z * z - 1) / math.sqrt(2),
                lambda z: 1 - math.sqrt(2) * z)  # fmt: skip
    up = Link("h1 + h2", lambda z: z + (z * z - 1) / math.sqrt(2), lambda z: 1 + math.sqrt(2) * z)
    turned = TeacherStudent(50, down, up)
    assert not fisher_consistent(turned)
    stuck = find(turned, Statistics(np.asarray(0.4)))
    assert stuck.stable
    assert float(stuck.statistics.m) == pytest.approx(0.5)  # phi' = -2 (1 - 2 m)
    assert all(fisher_consistent(problem) for problem in MODELS[:3])


def test_pca_at_constant_step_size() -> None:
    """Fixed point, threshold and equator in closed form; travel time by hand."""
    problem, delta = OnlinePCA(50, signal=2.0), 0.5
    best = find(problem, Statistics(np.asarray(0.9)), c_delta=delta)
    assert float(best.statistics.m) ** 2 == pytest.approx(1.5 / 3.0)
    assert critical_step(problem) == pytest.approx(2.0)
    slow = OnlinePCA(400, signal=0.2)
    assert equator(slow, c_delta=0.6).stationary()[0, 0] == pytest.approx(1.8)
    assert not math.isfinite(travel_time(problem, 0.1, 0.9, c_delta=delta))
    with pytest.raises(ValueError, match="at least 2"):
        equator(TeacherStudent(50, TANH), c_delta=0.1)
    with pytest.raises(ValueError, match="must have information exponent 2"):
        critical_step(TeacherStudent(50, TANH))


def test_equator_of_the_chain() -> None:
    """The stationary variance, finite N included to a few per cent."""
    problem = OnlinePCA(1000, signal=0.2)
    found = passages(problem, [], c_delta=0.6, most=8000, replicas=2000, rng=3, stay=True)
    ratio = 1000 * np.mean(found.last**2) / 1.8
    assert abs(ratio - 1) < 5 * math.sqrt(2 / 2000) + 0.01


def test_escape_law() -> None:
    """Length of the search (MDL Theorem 11.12) at order two; without noise the law is another."""
    problem, delta = OnlinePCA(20_000, signal=1.0), 0.3
    law = escape_law(problem, 0.4, c_delta=delta)
    found = passages(
        problem, [0.4], c_delta=delta, most=10**7, replicas=200, rng=4, modulus=True, workers=2
    )
    times = found.steps[:, 0] * delta / 20_000
    assert stats.kstest(times, law.cdf).pvalue > 1e-4
    bare = type(law)(law.rate, 1.0, law.delay + 0.5)
    assert stats.kstest(times, bare.cdf).pvalue < 1e-4
    np.testing.assert_allclose(law.cdf(law.quantile([0.1, 0.9])), [0.1, 0.9])
    with pytest.raises(ValueError, match="critical step"):
        escape_law(problem, 0.4, c_delta=1.5)


@pytest.mark.parametrize("order", [3, 4])
def test_explosion_law(order: int) -> None:
    """The birth-and-death chain against Euler–Maruyama, to a finite height."""
    limit = explosion(TeacherStudent(50, hermite(order), hermite(order).scaled(0.1)), scale=4.0)
    times, reach, n = np.linspace(0, 2, 41), 8.0, 2000
    law = limit.cdf(times, reach=reach)
    rng = np.random.default_rng(6)
    y = np.abs(rng.standard_normal(n))
    passed, dt = np.full(n, np.inf), 2.5e-4
    for i in range(int(2 / dt)):
        y += limit.drift(y) * dt + math.sqrt(limit.noise * dt) * rng.standard_normal(n)
        over = np.isinf(passed) & ((np.abs(y) if order % 2 == 0 else y) > reach)
        passed[over] = (i + 1) * dt
        y[np.isfinite(passed)] = 0.0
    share = np.array([np.mean(passed <= t) for t in times])
    assert np.abs(share - law).max() < 0.045  # 1e-6 level of the distance: 0.058
    other = explosion(TeacherStudent(50, hermite(order), hermite(order).scaled(0.1)), scale=0.5)
    assert np.abs(share - other.cdf(times, reach=reach)).max() > 0.058
    assert np.all(limit.cdf(times) <= law + 1e-12)
    with pytest.raises(ValueError, match="equally spaced"):
        limit.cdf([0.0, 1.0, 3.0])
    with pytest.raises(ValueError, match="from 3 on"):
        explosion(MODELS[0], scale=1.0)


@pytest.mark.parametrize("k", [3, 4, 5])
def test_comparison(k: int) -> None:
    """Ours is below the slowest sequence; the differential equation and, k = 3, the print not."""
    a, b = 0.1, 0.05
    path = slowest_growth(a, b, k, 10**6)
    t = np.arange(path.size)
    c = comparison_constant(b, k)
    assert c < k - 2
    assert np.all(path >= bihari_lasalle(t, a, b, k, constant=c))
    assert not np.all(path >= bihari_lasalle(t, a, b, k, constant=k - 2))
    printed = np.all(path >= bihari_lasalle(t, a, b, k, constant=1.0))
    assert printed == (k > 3)


def test_printed_scales() -> None:
    """Square roots that do not belong there."""
    assert printed_norm_moment_bound(100, 4.0) == pytest.approx(100.0)
    assert printed_martingale_scale(100, delta=0.5, alpha=4.0) == pytest.approx(0.01)


@pytest.mark.parametrize("order", [3, 4])
def test_mass_of_the_chain_against_its_exponential(order: int) -> None:
    """Dense exponentials of the generator; control: steps ten times as long."""
    limit = Explosion(order, 0.6, 0.4, 0.5)
    places, generator = limit._chain(6.0)
    row = np.zeros(places.size)
    row[np.searchsorted(places, 1.4)] = 1.0
    transition, step = expm(0.1 * generator), 0.1
    expected, moved = [0.0], row
    for _ in range(50):
        moved = moved @ transition
        expected.append(moved[-1])
    found = limit._absorbed(generator, row, step, 50)
    assert np.abs(found - expected).max() < 1e-5
    slow = Explosion(order, 0.06, 0.04, 0.05)._absorbed(generator, row, step, 50)
    assert np.abs(slow - expected).max() > 1e-5


def test_diffusion_form_of_the_explosion() -> None:
    """The limit as an equation of the effective room starts like its law."""
    limit = explosion(TeacherStudent(50, hermite(3), hermite(3).scaled(0.1)), scale=1.0)
    equation = Diffusion(
        ("y",), limit.drift, lambda y: np.full((*y.shape, 1), math.sqrt(limit.noise))
    )
    path = sde.solve(equation, np.array([1.0]), [0.05], step=0.01, replicas=2000, rng=1)
    values = path.statistics.u[:, 0, 0]
    assert abs(values.var() / (0.05 * limit.noise) - 1) < 0.25
