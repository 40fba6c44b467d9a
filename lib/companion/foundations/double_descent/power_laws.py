r"""Power laws of the risk of linear regression: in samples, in projections and in steps of SGD.

The covariance has the eigenvalues :math:`\lambda_i = i^{-a}` with :math:`a > 1`, and the target
the share :math:`\beta_i^2 \lambda_i = i^{-b}` of mode i with :math:`b > 1` (the *source
condition*). With :math:`u = (b - 1) / a`,

.. math:: \sum_{i \ge 1} \frac{\kappa^m\, i^{ma - b}}{(1 + \kappa i^a)^m}
          = \frac{\Gamma(u)\, \Gamma(m - u)}{a\, \Gamma(m)}\, \kappa^u
          + \zeta(b - ma)\, \kappa^m + O(\kappa^{m + 1}) :

the first term is the integral over the modes with :math:`\lambda_i` near :math:`\kappa`, and the
second (Euler and Maclaurin, or the poles of a Mellin transform) belongs to the first modes, which
are fitted up to :math:`\kappa / \lambda_i`. It saturates the exponent: the smaller of u and m
decides. In the same way the degrees of freedom are

.. math:: \operatorname{tr} \Sigma (\Sigma + \kappa)^{-1} = A \kappa^{-1/a} - \tfrac12
          + O(\kappa), \quad
          \operatorname{tr} \Sigma^2 (\Sigma + \kappa)^{-2}
          = (1 - \tfrac1a) A \kappa^{-1/a} - \tfrac12 + O(\kappa), \quad
          A = \frac{\pi / a}{\sin(\pi / a)} .

The deterministic equivalents of :mod:`companion.foundations.double_descent.risk` turn these sums
into risks. Sums over infinitely many modes are exact up to the mode 512, and an integral beyond
(midpoints, Gauss's rule in the logarithm).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gamma, rgamma, zeta

from traindyn import _validate
from traindyn._compiled import FAST
from traindyn._types import RNG, Array
from traindyn.problems.ridgeless import Risk

__all__ = ["Draw", "Exponents", "PowerLaw", "draw_risks"]

#: Modes that are summed one by one; the midpoint rule beyond errs by 1e-7 of the summand there.
_EXACT = 512
#: Smallest exponents, for which the integral beyond already spans 500 units of the logarithm.
_LEAST = 1.05


class Exponents(NamedTuple):
    r"""Exponents of the risk: it falls like the variable to the power of minus these.

    Attributes
    ----------
    ridgeless : float
        In samples, without noise and without ridge: :math:`\min(b - 1, 2a)`.
    best_ridge : float
        In samples, with noise and the best ridge: :math:`\frac{v}{v + 1}` with the exponent v
        before.
    projection : float
        In the number of random projections: :math:`\min(b - 1, a)`.
    sgd : float
        In steps of one-pass SGD without noise: :math:`\min(\frac{b - 1}a, 2 - \frac1a)`.
    """

    ridgeless: float
    best_ridge: float
    projection: float
    sgd: float


@dataclass(frozen=True)
class PowerLaw:
    r"""Linear regression with :math:`\lambda_i = i^{-a}` and :math:`\beta_i^2\lambda_i = i^{-b}`.

    Parameters
    ----------
    decay : float
        :math:`a \ge 1.05`.
    source : float
        :math:`b \ge 1.05`.
    modes : int, optional
        Number of modes; infinitely many unless given. The closed forms (`exponents` and what ends
        in ``_series``) are those of infinitely many.

    Examples
    --------
    >>> from companion.foundations.double_descent.power_laws import PowerLaw
    >>> law = PowerLaw(1.5, 2.0)
    >>> [round(value, 3) for value in law.exponents]
    [1.0, 0.5, 1.0, 0.667]
    >>> round(10_000 * law.limit_risk(10_000).bias, 3)
    2.924
    >>> round(law.limit_risk(10_000, noise=1.0).variance, 4)
    0.4999
    """

    decay: float
    source: float
    modes: int | None = None

    def __post_init__(self) -> None:
        for name in ("decay", "source"):
            value = _validate.positive(name, getattr(self, name))
            if value < _LEAST:
                raise ValueError(f"{name} must be at least {_LEAST}, got {value:g}")
            object.__setattr__(self, name, value)
        if self.modes is not None:
            object.__setattr__(self, "modes", _validate.integer("modes", self.modes, least=1))

    @property
    def exponents(self) -> Exponents:
        """Exponents of the risk for infinitely many modes."""
        a, b = self.decay, self.source
        ridgeless = min(b - 1, 2 * a)
        best = ridgeless / (ridgeless + 1)
        return Exponents(ridgeless, best, min(b - 1, a), min((b - 1) / a, 2 - 1 / a))

    def effective_ridge(self, n: float, ridge: float = 0.0) -> float:
        r"""Ridge on the covariance that acts like a ridge on the sample covariance.

        The root of :math:`\kappa = z + \frac\kappa n \operatorname{tr}\Sigma(\Sigma+\kappa)^{-1}`.

        Parameters
        ----------
        n : float
            Samples; without ridge fewer than modes.
        ridge : float
            :math:`z \ge 0`.
        """
        count, z = _validate.positive("n", n), _validate.non_negative("ridge", ridge)
        if z == 0 and self.modes is not None and count >= self.modes:
            raise ValueError(f"n must be below modes = {self.modes} without ridge, got {count:g}")

        def excess(log: float) -> float:
            kappa = float(np.exp(log))
            return self._freedom(kappa, 1) + count * z / kappa - count

        # Above: every mode adds less than its eigenvalue over the ridge.
        high = np.log(z + self._atoms[1].sum() / count)
        low = high - 1
        while excess(low) <= 0:
            low -= 2 * (high - low)
        return float(np.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)))

    def limit_risk(self, n: float, ridge: float = 0.0, *, noise: float = 0.0) -> Risk:
        r"""Deterministic equivalents of bias and variance of ridge(less) regression.

        With :math:`t = \frac1n \operatorname{tr}\Sigma^2(\Sigma + \kappa)^{-2}`,

        .. math:: B = \frac{\kappa^2 \sum_i i^{-b} / (\lambda_i + \kappa)^2}{1 - t}, \qquad
                  V = \frac{\sigma^2 t}{1 - t} .

        Without ridge :math:`V / \sigma^2 = a - 1 - a / (2n + 1)`, up to the order
        :math:`n^{-a-1}`: the variance does not vanish.

        Parameters
        ----------
        n : float
            Samples.
        ridge : float
            :math:`z \ge 0`.
        noise : float
            :math:`\sigma^2 \ge 0`.

        Returns
        -------
        Risk
            Of floats.
        """
        s2 = _validate.non_negative("noise", noise)
        return self._risk(self.effective_ridge(n, ridge), float(n), s2)

    def best_ridge(self, n: float, *, noise: float) -> float:
        r"""Ridge z of smallest limiting risk.

        Parameters
        ----------
        n : float
            Samples, fewer than modes.
        noise : float
            :math:`\sigma^2 > 0`.
        """
        s2, least = _validate.positive("noise", noise), self.effective_ridge(n)
        found = minimize_scalar(
            lambda log: self._risk(np.exp(log), float(n), s2).total,
            bounds=(np.log(least), np.log(least + self._atoms[1].sum())),
            method="bounded",
            options={"xatol": 1e-10},
        )
        kappa = float(np.exp(found.x))
        return max(kappa * (1 - self._freedom(kappa, 1) / float(n)), 0.0)

    def projection_risk(self, features: float) -> float:
        r"""Deterministic equivalent of the risk of the best fit on random projections.

        The inputs are seen through p independent Gaussian vectors, and samples are unlimited. The
        part of :math:`\Sigma^{1/2}\beta` outside of a random row space is left,
        :math:`\kappa \sum_i i^{-b} / (\lambda_i + \kappa)` with :math:`\kappa` as for p samples.

        Parameters
        ----------
        features : float
            p, below the number of modes.
        """
        values, _, shares = self._atoms
        kappa = self.effective_ridge(_validate.positive("features", features))
        return float(np.sum(shares * (kappa / (values + kappa))))

    def sgd_risk(self, step_size: float, times: ArrayLike, *, noise: float = 0.0) -> Array:
        r"""Mean excess risk of one-pass SGD from zero on Gaussian inputs, batch one.

        Exact for any number of modes: for :math:`w \mapsto w - \eta\, (x\cdot w - y)\, x` the
        mean shares :math:`f_i = \lambda_i E (w_i - \beta_i)^2` obey, with
        :math:`\rho = \sum_i f_i`,

        .. math:: f_i \mapsto (1 - 2\eta\lambda_i + 2\eta^2\lambda_i^2)\, f_i
                  + \eta^2 \lambda_i^2\, (\rho + \sigma^2) .

        Parameters
        ----------
        step_size : float
            :math:`\eta`, between zero and one.
        times : array_like, shape (t,)
            Numbers of steps, increasing.
        noise : float
            :math:`\sigma^2 \ge 0` of the targets.

        Returns
        -------
        ndarray, shape (t,)

        Examples
        --------
        >>> from companion.foundations.double_descent.power_laws import PowerLaw
        >>> PowerLaw(1.5, 2.0, modes=1).sgd_risk(0.5, [0, 1, 2])  # (1 - 1/2)^2 + 2/4 each step
        array([1.    , 0.75  , 0.5625])
        """
        eta, s2 = self._stable(step_size), _validate.non_negative("noise", noise)
        clock = _validate.increasing("times", times)
        if np.any(clock != np.round(clock)) or clock[-1] > 1e8:
            raise ValueError(f"times must be integers up to 1e8, got {clock}")
        values, masses, shares = self._atoms
        scaled = eta * values
        keep, source = 1 - 2 * scaled * (1 - scaled), eta * masses * scaled
        found: Array = _recursion(shares.copy(), keep, source, s2, clock.astype(np.int64))
        return found

    def feedback(self, step_size: float) -> float:
        r"""Share of the risk that the noise of its gradients brings back in all later steps.

        :math:`\|K\| = \frac\eta2 \sum_i \lambda_i / (1 - \eta\lambda_i)`; the mean risk of
        one-pass SGD stays bounded where it is below one.

        Parameters
        ----------
        step_size : float
            :math:`\eta`, between zero and one.
        """
        eta = _validate.positive("step_size", step_size)
        if eta >= 1:
            raise ValueError(f"step_size must be below one, got {eta:g}")
        values, masses, _ = self._atoms
        return float(np.sum(masses / (1 - eta * values))) * eta / 2

    def ridgeless_series(self, n: ArrayLike) -> Array:
        r"""Leading terms of the bias without ridge and noise, of order 1 - b and -2a in n.

        .. math:: B = \frac{an}{n + \frac12} \Big(\frac1a \Gamma(u)\Gamma(2 - u)\, \kappa^u
                  + \zeta(b - 2a)\, \kappa^2\Big), \qquad
                  \kappa = \Big(\frac A{n + \frac12}\Big)^a .

        The correction is a share of the order :math:`n^{-a}`, or smaller.

        Parameters
        ----------
        n : array_like, shape (k,)
            Samples.

        Returns
        -------
        ndarray, shape (2, k)
            The two terms; the risk is their sum.
        """
        count = _validate.positives("n", n)
        factor = self.decay * count / (count + 0.5)
        return factor * self._two(2, self._leading_ridge(count))

    def projection_series(self, features: ArrayLike) -> Array:
        r"""Leading terms of the risk of p random projections, of order 1 - b and -a in p.

        .. math:: \frac1a \Gamma(u)\Gamma(1 - u)\, \kappa^u + \zeta(b - a)\, \kappa .

        Parameters
        ----------
        features : array_like, shape (k,)
            p.

        Returns
        -------
        ndarray, shape (2, k)
        """
        return self._two(1, self._leading_ridge(_validate.positives("features", features)))

    def best_ridge_series(self, n: ArrayLike, *, noise: float) -> Array:
        r"""Risk at the best ridge: its leading order in n, and the next.

        The leading order is the minimum over :math:`\kappa` of
        :math:`c \kappa^v + \sigma^2 (1 - \frac1a) A \kappa^{-1/a} / n`, with the larger
        :math:`c \kappa^v` of the two terms of the bias. There the next terms are added: the other
        of the two, the :math:`-\frac12` of the degrees of freedom, and the factor
        :math:`1 / (1 - t)`.

        Parameters
        ----------
        n : array_like, shape (k,)
            Samples.
        noise : float
            :math:`\sigma^2 > 0`.

        Returns
        -------
        ndarray, shape (2, k)
            Leading order and correction.
        """
        count, s2 = _validate.positives("n", n), _validate.positive("noise", noise)
        a, u = self.decay, (self.source - 1) / self.decay
        capacity = (1 - 1 / a) * _capacity(a) * s2 / count
        power = min(u, 2.0)
        constant = self._two(2, np.ones(1))[0 if u < 2 else 1, 0]
        kappa = (capacity / (a * power * constant)) ** (1 / (power + 1 / a))
        terms = self._two(2, kappa)
        variance = capacity * kappa ** (-1 / a)
        lead = terms[0 if u < 2 else 1] + variance
        rest = terms[1 if u < 2 else 0] - s2 / (2 * count) + lead * variance / s2
        return np.stack([lead, rest])

    def sgd_series(self, step_size: float, times: ArrayLike) -> Array:
        r"""Leading terms of the mean risk of one-pass SGD without noise, as the time grows.

        The recursion is a renewal equation :math:`\rho = F + K * \rho`, with the forgetting of the
        start :math:`F \approx f t^{-u}` and the noise of the gradients
        :math:`K \approx k t^{-1-r}`, :math:`r = 1 - \frac1a`. With :math:`\|K\| = \sum_t K(t) < 1`
        and :math:`|F| = \sum_t F(t)` (its analytic continuation for :math:`u < 1`) its Laplace
        transform gives

        .. math:: \rho \approx \frac{f t^{-u}}{1 - \|K\|}
                  + \frac{|F|\, k\, t^{-1-r}}{(1 - \|K\|)^2} ,

        and, with :math:`g = k\, \Gamma(1 - r) / r(1 - \|K\|)`, the corrections
        :math:`(-g)^j f \Gamma(1 - u) t^{-u-jr} / \Gamma(1 - u - jr) (1 - \|K\|)` for
        :math:`j = 1, 2` and :math:`|F| g^2 t^{-1-2r} / \Gamma(-2r) (1 - \|K\|)`.

        Parameters
        ----------
        step_size : float
            :math:`\eta`.
        times : array_like, shape (k,)
            Positive, large in comparison with :math:`1 / \eta`.

        Returns
        -------
        ndarray, shape (5, k)
            The two terms above, then their corrections.
        """
        eta, t = self._stable(step_size), _validate.positives("times", times)
        a, b = self.decay, self.source
        u, r = (b - 1) / a, 1 - 1 / a
        self._off_poles(1, u)
        values, _, shares = self._atoms
        f = gamma(u) / a * (2 * eta) ** -u
        k = eta**2 * gamma(1 + r) / a * (2 * eta) ** (-1 - r)
        left = 1 - self.feedback(eta)
        total = (zeta(b - a) + np.sum(shares * eta / (1 - eta * values))) / (2 * eta)
        g = k * gamma(1 - r) / (r * left)
        start, steps = f * t**-u / left, g * t**-r
        return np.stack(
            [
                start,
                total * k * t ** (-1 - r) / left**2,
                *(start * gamma(1 - u) * rgamma(1 - u - j * r) * (-steps) ** j for j in (1, 2)),
                total / (t * left) * steps**2 * rgamma(-2 * r),
            ]
        )

    @cached_property
    def _atoms(self) -> tuple[Array, Array, Array]:
        """Eigenvalues, and what each adds to the sums of eigenvalues and of shares."""
        a, b = self.decay, self.source
        if self.modes is not None:
            places = np.arange(1.0, self.modes + 1)
            return places**-a, places**-a, places**-b
        # Up to where what is left of either sum for 1e8 samples is below a share of 1e-10.
        start, span = np.log(_EXACT + 0.5), np.log(1e8) + 23 / (min(a, b) - 1)
        panels = int(np.ceil(span))
        nodes, weights = np.polynomial.legendre.leggauss(8)
        width = span / panels / 2
        logs = start + width * (2 * np.arange(panels)[:, None] + 1 + nodes).ravel()
        measure = np.tile(width * weights, panels)
        places = np.arange(1.0, _EXACT + 1)
        return (
            np.concatenate([places**-a, np.exp(-a * logs)]),
            np.concatenate([places**-a, measure * np.exp((1 - a) * logs)]),
            np.concatenate([places**-b, measure * np.exp((1 - b) * logs)]),
        )

    def _freedom(self, kappa: float, power: int) -> float:
        """Trace of a power of the covariance times its regularised inverse."""
        values, masses, _ = self._atoms
        return float(np.sum(masses * (values / (values + kappa)) ** (power - 1) / (values + kappa)))

    def _risk(self, kappa: float, n: float, noise: float) -> Risk:
        """Return the risk at an effective ridge."""
        values, _, shares = self._atoms
        used = self._freedom(kappa, 2) / n
        bias = float(np.sum(shares * (kappa / (values + kappa)) ** 2)) / (1 - used)
        return Risk(bias, noise * used / (1 - used))

    def _leading_ridge(self, n: Array) -> Array:
        """Return the effective ridge without ridge, to two orders."""
        kappa: Array = (_capacity(self.decay) / (n + 0.5)) ** self.decay
        return kappa

    def _two(self, power: int, kappa: Array) -> Array:
        """Both leading terms of the sum over the modes; its formula heads this module."""
        a, b = self.decay, self.source
        u = (b - 1) / a
        self._off_poles(power, u)
        middle = gamma(u) * gamma(power - u) / (a * gamma(power)) * kappa**u
        return np.stack([middle, zeta(b - power * a) * kappa**power])

    def _off_poles(self, least: int, u: float) -> None:
        """Refuse exponents at which two terms meet, which gives a logarithm."""
        if u > least - 0.5 and abs(u - round(u)) < 1e-9:
            raise ValueError(
                f"source must not be 1 + {round(u)} decay, where the risk has a logarithm, "
                f"got {self.source:g}"
            )

    def _stable(self, step_size: float) -> float:
        """Return a step size for which the risk stays bounded."""
        eta = _validate.positive("step_size", step_size)
        if self.feedback(eta) >= 1:
            raise ValueError(f"step_size must leave the mean risk bounded, got {eta:g}")
        return eta


class Draw(NamedTuple):
    """Risks of one set of inputs, on average over the noise of the targets.

    Attributes
    ----------
    bias : ndarray, shape (k,)
        For each source.
    variance : float
        For noise of variance one.
    residual : ndarray, shape (k,)
        Of the best fit on as many random projections, for each source; without ridge.
    """

    bias: Array
    variance: float
    residual: Array


def draw_risks(
    decay: float, sources: ArrayLike, n: int, modes: int, *, ridge: float = 0.0, rng: RNG
) -> Draw:
    r"""Draw Gaussian inputs and compute the risks of ridge(less) regression on them, exactly.

    For random projections the rows of the inputs :math:`G\Sigma^{1/2}` play the vectors G, and the
    risk is the squared distance of :math:`\Sigma^{1/2}\beta` from the row space.

    Parameters
    ----------
    decay : float
        a.
    sources : array_like, shape (k,)
        Values of b; the targets share the inputs.
    n, modes : int
        Samples (or projections), and modes, more than samples.
    ridge : float
        :math:`z \ge 0`.
    rng : int, SeedSequence or Generator
        Of the inputs.

    Returns
    -------
    Draw

    Examples
    --------
    >>> from companion.foundations.double_descent.power_laws import draw_risks
    >>> draw = draw_risks(1.5, [2.0, 5.0], 20, 200, rng=1)
    >>> bool(draw.bias[1] < draw.bias[0]), draw.residual.shape
    (True, (2,))
    """
    b = _validate.positives("sources", sources, shape=(None,))
    a, z = _validate.positive("decay", decay), _validate.non_negative("ridge", ridge)
    total = _validate.integer("modes", modes, least=2)
    count = _validate.integer("n", n, least=1, most=total - 1)
    places = np.arange(1.0, total + 1)
    values = places**-a
    x = _validate.generator("rng", rng).standard_normal((count, total)) * np.sqrt(values)
    solved = np.linalg.solve(x @ x.T + count * z * np.eye(count), x)
    shares = places[:, None] ** (-b / 2)  # square roots
    targets = shares / np.sqrt(values)[:, None]
    missed = targets - solved.T @ (x @ targets)
    outside = shares - solved.T @ (x @ shares)
    spread = float(np.sum(values * np.sum(solved**2, axis=0)))
    return Draw(values @ missed**2, spread, np.sum(outside**2, axis=0))


def _capacity(a: float) -> float:
    """Integral of 1 / (1 + x^a)."""
    return float(np.pi / a / np.sin(np.pi / a))


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _recursion(state: Array, keep: Array, source: Array, noise: float, times: Array) -> Array:
    """Sum of the state at the given times; compiled, for a million steps."""
    out = np.empty(times.size)
    total = state.sum()
    now = 0
    for k in range(times.size):
        while now < times[k]:
            drive = total + noise
            total = 0.0
            for i in range(state.size):
                state[i] = keep[i] * state[i] + source[i] * drive
                total += state[i]
            now += 1
        out[k] = total
    return out
