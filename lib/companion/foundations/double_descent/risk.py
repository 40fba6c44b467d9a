r"""Ridgeless least squares: bias, variance and risk, given the data and in the limit.

Targets are :math:`y_i = x_i \cdot \beta + \epsilon_i` with inputs of covariance :math:`\Sigma`
in :math:`\mathbb R^p` and noise of variance :math:`\sigma^2`. Among the least-squares solutions
the one of smallest norm, :math:`\hat\beta = X^+ y`, has the excess risk
:math:`R = \|\Sigma^{1/2}(\hat\beta - \beta)\|^2` (a fresh target adds :math:`\sigma^2`). On
average over the noise, with the sample covariance :math:`S = \frac1n X^T X`,

.. math:: B_z = \|\Sigma^{1/2}\, z (S + z)^{-1} \beta\|^2, \qquad
          V_z = \frac{\sigma^2}{n} \operatorname{tr} \Sigma\, (S + z)^{-2} S ,

for ridge regression with penalty :math:`n z |\beta|^2`, and at :math:`z \to 0` for ridgeless
regression (MDL Lemma 7.3). With :math:`p / n \to \gamma` and :math:`\Sigma = I` both converge
(MDL Theorem 7.4, with the sign of the first variance corrected):

.. math:: B \to r^2 \Big(1 - \frac1\gamma\Big)_+, \qquad
          V \to \frac{\sigma^2 \gamma}{1 - \gamma}\ (\gamma < 1), \quad
          \frac{\sigma^2}{\gamma - 1}\ (\gamma > 1) .

At :math:`\gamma = 1` the limit is infinite, and reported as ``inf``. These are limits for inputs
with independent entries; covariance I alone is not enough (:func:`scaled_variance`).

Samples are rows here, as everywhere in this library; the notes put them in columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.laws import ENTRIES, SampleCovariance, wishart_bidiagonal
from traindyn.problems.ridgeless import Risk

__all__ = [
    "LinearModel",
    "best_ratio",
    "draw_gaussian_risk",
    "isotropic_risk",
    "minimum_norm",
    "optimal_ridge",
    "optimal_ridge_risk",
    "ridge_solution",
    "scaled_variance",
]


def minimum_norm(inputs: ArrayLike, targets: ArrayLike) -> Array:
    r"""Least-squares solution of smallest norm, :math:`X^+ y` (MDL Example 7.1).

    Parameters
    ----------
    inputs : array_like, shape (n, p)
        X, a sample in each row.
    targets : array_like, shape (n,) or (n, k)
        y; with two axes k problems with the same inputs.

    Returns
    -------
    ndarray, shape (p,) or (p, k)

    Examples
    --------
    >>> from companion.foundations.double_descent.risk import minimum_norm
    >>> minimum_norm([[1.0, 1.0]], [2.0]).round(12)
    array([1., 1.])
    """
    x, y = _data(inputs, targets)
    solution = np.linalg.lstsq(x, y, rcond=None)[0]
    return np.asarray(solution, dtype=np.float64)


def ridge_solution(inputs: ArrayLike, targets: ArrayLike, ridge: float) -> Array:
    r"""Minimiser of :math:`\frac1n |y - X b|^2 + z |b|^2`, from the smaller Gram matrix.

    Parameters
    ----------
    inputs : array_like, shape (n, p)
        X, a sample in each row.
    targets : array_like, shape (n,) or (n, k)
        y; with two axes k problems with the same inputs.
    ridge : float
        z > 0.

    Returns
    -------
    ndarray, shape (p,) or (p, k)
    """
    x, y = _data(inputs, targets)
    n, p = x.shape
    shift = n * _validate.positive("ridge", ridge)
    if p <= n:
        solution: Array = np.linalg.solve(x.T @ x + shift * np.eye(p), x.T @ y)
    else:
        solution = x.T @ np.linalg.solve(x @ x.T + shift * np.eye(n), y)
    return solution


@dataclass(frozen=True, eq=False)
class LinearModel:
    r"""Linear targets with noise: :math:`y = x \cdot \beta + \epsilon`, :math:`x \sim (0, \Sigma)`.

    Parameters
    ----------
    signal : array_like, shape (p,)
        :math:`\beta`.
    noise : float
        Variance :math:`\sigma^2 \ge 0` of :math:`\epsilon`.
    covariance : array_like, shape (p,) or (p, p), optional
        :math:`\Sigma`; one-dimensional: its diagonal. The identity unless given.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.foundations.double_descent.risk import LinearModel
    >>> model = LinearModel(np.ones(4) / 2, noise=0.25)
    >>> x, y = model.sample(2, rng=1)
    >>> model.conditional_risk(x).bias < 1
    np.True_
    """

    signal: Array
    noise: float
    covariance: Array | None = None

    def __post_init__(self) -> None:
        beta = _validate.finite("signal", self.signal, shape=(None,))
        if beta.size == 0:
            raise ValueError("signal must not be empty")
        object.__setattr__(self, "signal", _validate.frozen(beta))
        object.__setattr__(self, "noise", _validate.non_negative("noise", self.noise))
        if self.covariance is None:
            return
        given = np.asarray(self.covariance, dtype=np.float64)
        if given.ndim == 1:
            given = _validate.finite("covariance", given, shape=(beta.size,))
            if np.any(given < 0):
                raise ValueError(f"covariance must be non-negative, got {given.min():g}")
        else:
            given = _validate.positive_semidefinite("covariance", given, size=beta.size)
        object.__setattr__(self, "covariance", _validate.frozen(given))

    @property
    def dimension(self) -> int:
        """Number p of features."""
        return self.signal.size

    def first(self, features: int) -> LinearModel:
        r"""Return the model in which only the first features are observed.

        For independent features the others are noise to them: its variance is
        :math:`\sigma^2 + \sum_{j > k} \Sigma_{jj} \beta_j^2` (exactly of Gaussian law for Gaussian
        inputs). The error on fresh targets is the risk of this model plus its noise.

        Parameters
        ----------
        features : int
            k, at most p.

        Raises
        ------
        ValueError
            If the covariance is not diagonal.
        """
        k = _validate.integer("features", features, least=1, most=self.dimension)
        diagonal = np.ones(self.dimension) if self.covariance is None else self.covariance
        if diagonal.ndim == 2:
            raise ValueError("covariance must be a diagonal for the features to be independent")
        hidden = float(diagonal[k:] @ self.signal[k:] ** 2)
        part = None if self.covariance is None else diagonal[:k]
        return LinearModel(self.signal[:k], self.noise + hidden, part)

    def sample(self, n: int, *, entries: str = "Gaussian", rng: RNG) -> tuple[Array, Array]:
        r"""Draw inputs :math:`\Sigma^{1/2} z`, shape (n, p), and targets, shape (n,).

        Parameters
        ----------
        n : int
            Number of samples.
        entries : str
            Law of the independent entries of z: a key of :data:`~traindyn.laws.ensembles.ENTRIES`.
            The noise is Gaussian.
        rng : int, SeedSequence or Generator
            Of the inputs, then of the noise.
        """
        count = _validate.integer("n", n, least=1)
        law = ENTRIES[_validate.choice("entries", entries, tuple(ENTRIES))]
        generator = _validate.generator("rng", rng)
        x = law.draw(generator, (count, self.dimension))
        if self.covariance is not None:
            x = x * np.sqrt(self.covariance) if self.covariance.ndim == 1 else x @ self._root
        noise = np.sqrt(self.noise) * generator.standard_normal(count)
        return x, x @ self.signal + noise

    def risk(self, estimate: ArrayLike) -> Any:
        r"""Excess risk :math:`\|\Sigma^{1/2} (b - \beta)\|^2` of an estimate b.

        Parameters
        ----------
        estimate : array_like, shape (p,) or (p, k)
            b; with two axes k estimates, as columns.

        Returns
        -------
        float or ndarray, shape (k,)
        """
        found = _validate.finite("estimate", estimate)
        if found.ndim not in (1, 2) or len(found) != self.dimension:
            p = self.dimension
            raise ValueError(f"estimate must have shape ({p},) or ({p}, k), got {found.shape}")
        return self._square(np.asarray(found.T - self.signal))

    def conditional_risk(self, inputs: ArrayLike, ridge: ArrayLike = 0.0) -> Risk:
        r"""Bias and variance of (ridge or ridgeless) regression given the inputs (MDL Lemma 7.3).

        Exact: from one eigendecomposition of the smaller Gram matrix, whatever the number of
        ridges. Eigenvalues below ``max(n, p)`` times the precision, relative to the largest,
        count as zero.

        Parameters
        ----------
        inputs : array_like, shape (n, p)
            A sample in each row.
        ridge : array_like, shape (k,) or scalar
            :math:`z \ge 0`; zero: ridgeless.

        Returns
        -------
        Risk
            Of the shape of `ridge`.
        """
        x = _validate.finite("inputs", inputs, shape=(None, self.dimension))
        z = _validate.finite("ridge", ridge)
        if np.any(z < 0):
            raise ValueError(f"ridge must be non-negative, got {z.min():g}")
        n, p = x.shape
        if n == 0:
            raise ValueError("inputs must not be empty")
        values, vectors = np.linalg.eigh((x.T @ x if p <= n else x @ x.T) / n)
        keep = values > max(n, p) * np.finfo(float).eps * values[-1]
        values, vectors = values[keep], vectors[:, keep]
        flat = z.reshape(-1, 1)
        spread = self.noise / n * values / (values + flat) ** 2
        shrinkage = flat / (values + flat)
        if self.covariance is None:
            # along each eigenvector; orthogonal to all of them the estimate is zero
            along = (vectors.T @ self.signal) if p <= n else self._along(x, values, vectors)
            if values.size < p:
                rest = max(float(self.signal @ self.signal - along @ along), 0.0)
            else:
                rest = 0.0
            bias = shrinkage**2 @ along**2 + rest
            variance = spread.sum(axis=1)
        else:
            basis = vectors if p <= n else x.T @ (vectors / np.sqrt(n * values))
            learnt = (1 - shrinkage) * (basis.T @ self.signal)
            bias = self._square(learnt @ basis.T - self.signal)
            variance = spread @ self._square(basis.T)
        return Risk(bias.reshape(z.shape)[()], variance.reshape(z.shape)[()])

    def limit_risk(self, n: int, ridge: float = 0.0) -> Risk:
        r"""Risk in the proportional limit, for any covariance, at ``ratio = p / n``.

        Parameters
        ----------
        n : int
            Number of samples.
        ridge : float
            Non-negative.

        Returns
        -------
        Risk
            Of floats. The variance is ``inf`` without ridge where the rank of the covariance
            equals n.
        """
        ratio = self.dimension / _validate.integer("n", n, least=1)
        covariance = np.ones(self.dimension) if self.covariance is None else self.covariance
        law = SampleCovariance(covariance, ratio)
        spread = self.noise * law.ridge_variance(ridge) if self.noise > 0 else 0.0
        return Risk(law.ridge_bias(ridge, self.signal), spread)

    def _along(self, x: Array, values: Array, vectors: Array) -> Array:
        """Components of the signal on the right singular vectors."""
        components: Array = vectors.T @ (x @ self.signal) / np.sqrt(len(x) * values)
        return components

    def _square(self, rows: Array) -> Any:
        """Squared norms of the rows, in the metric of the covariance."""
        if self.covariance is None:
            return np.sum(rows**2, axis=-1)
        if self.covariance.ndim == 1:
            return rows**2 @ self.covariance
        return np.sum((rows @ self.covariance) * rows, axis=-1)

    @cached_property
    def _root(self) -> Array:
        """Symmetric square root of the covariance."""
        values, vectors = np.linalg.eigh(np.asarray(self.covariance))
        root: Array = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return root


def isotropic_risk(
    ratio: ArrayLike, *, signal: float, noise: float, ridge: ArrayLike = 0.0
) -> Risk:
    r"""Limits of bias and variance for isotropic inputs (MDL Theorem 7.4, and with ridge).

    With the effective ridge :math:`\kappa`, the positive root of
    :math:`\kappa = z + \gamma \kappa / (1 + \kappa)`, and :math:`t = \gamma / (1 + \kappa)^2`,

    .. math:: B_z = \frac{r^2 \kappa^2}{(1 + \kappa)^2 (1 - t)} = r^2 z^2 s'(-z), \qquad
              V_z = \frac{\sigma^2 t}{1 - t} = \sigma^2 \gamma\, (s(-z) - z s'(-z)) ,

    where s is the Stieltjes transform of the Marchenko-Pastur law.

    Parameters
    ----------
    ratio : array_like
        :math:`\gamma = p / n > 0`. At exactly one, without ridge, the variance is ``inf``
        (zero if there is no noise).
    signal : float
        :math:`r^2 = |\beta|^2 \ge 0`.
    noise : float
        :math:`\sigma^2 \ge 0`.
    ridge : array_like
        :math:`z \ge 0`, broadcast against `ratio`.

    Examples
    --------
    >>> from companion.foundations.double_descent.risk import isotropic_risk
    >>> risk = isotropic_risk([0.5, 1.0, 2.0], signal=1.0, noise=0.25)
    >>> risk.bias, risk.variance
    (array([0. , 0. , 0.5]), array([0.25,  inf, 0.25]))
    """
    gamma, z = _validate.broadcast(
        ratio=_validate.finite("ratio", ratio), ridge=_validate.finite("ridge", ridge)
    )
    if np.any(gamma <= 0):
        raise ValueError(f"ratio must be positive, got {gamma.min():g}")
    if np.any(z < 0):
        raise ValueError(f"ridge must be non-negative, got {z.min():g}")
    r2, s2 = _validate.non_negative("signal", signal), _validate.non_negative("noise", noise)
    half = (1 - gamma - z) / 2
    root = np.sqrt(half**2 + z)
    # the form without cancellation for either sign of `half`; at ratio one without ridge all is 0
    kappa = np.where(half > 0, z / np.where(half > 0, root + half, 1.0), root - half)
    freedom = gamma / (1 + kappa) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = np.where(kappa > 0, (kappa / (1 + kappa)) ** 2 / (1 - freedom), 0.0)
        variance = freedom / (1 - freedom) if s2 else np.zeros(gamma.shape)
    return Risk((r2 * bias)[()], (s2 * variance)[()])


def scaled_variance(
    ratio: float, squares: ArrayLike, weights: ArrayLike | None = None, *, noise: float
) -> float:
    r"""Limit of the variance for Gaussian inputs, each with a random length of its own.

    The inputs are :math:`x_i = \xi_i g_i` with standard Gaussian :math:`g_i` and independent
    scalars :math:`\xi_i` of a discrete law with :math:`\mathbb E \xi^2 = 1`. They have covariance
    I and all moments, but their entries are not independent, and the limit is not that of
    MDL Theorem 7.4:

    .. math:: V \to \frac{\sigma^2\, \mathbb E \xi^{-2}}{\gamma - 1}\ (\gamma > 1), \qquad
              V \to \sigma^2 s, \quad \mathbb E \frac{s\, \xi^2}{1 + s\, \xi^2} = \gamma\
              (\gamma < 1) .

    By Jensen's inequality both are larger than for :math:`\xi^2 = 1`.

    Parameters
    ----------
    ratio : float
        :math:`\gamma = p / n > 0`. At exactly one the variance is ``inf`` (zero if there is no
        noise).
    squares : array_like, shape (k,)
        Values of :math:`\xi^2`, positive.
    weights : array_like, shape (k,), optional
        Their probabilities, positive and of sum one; equal unless given.
    noise : float
        :math:`\sigma^2 \ge 0`.

    Raises
    ------
    ValueError
        Also if :math:`\mathbb E \xi^2` is not one.

    Examples
    --------
    >>> from companion.foundations.double_descent.risk import scaled_variance
    >>> round(scaled_variance(0.5, [0.5, 1.5], noise=1.0), 6)  # 2 / sqrt(3), in place of 1
    1.154701
    >>> round(scaled_variance(2.0, [0.5, 1.5], noise=1.0), 6)  # 4 / 3, in place of 1
    1.333333
    """
    gamma, s2 = _validate.positive("ratio", ratio), _validate.non_negative("noise", noise)
    u = _validate.finite("squares", squares, shape=(None,))
    equal = np.full(u.shape, 1 / max(u.size, 1))
    w = equal if weights is None else _validate.finite("weights", weights, shape=u.shape)
    for name, values in (("squares", u), ("weights", w)):
        if values.size == 0 or np.any(values <= 0):
            raise ValueError(f"{name} must be positive and not empty, got {values}")
    for name, total in (("weights must have sum", w.sum()), ("squares must have mean", w @ u)):
        if abs(total - 1) > 1e-9:
            raise ValueError(f"{name} one, got {total:g}")
    if s2 == 0:
        return 0.0
    if gamma == 1:
        return float("inf")
    if gamma > 1:
        return float(s2 * np.sum(w / u) / (gamma - 1))
    odds = gamma / (1 - gamma)
    # the mean lies between its values at the smallest and at the largest square alone
    low, high = (1 - 1e-9) * odds / u.max(), (1 + 1e-9) * odds / u.min()
    root = brentq(lambda s: w @ (s * u / (1 + s * u)) - gamma, low, high, xtol=1e-14 * high)
    return float(s2 * root)


def draw_gaussian_risk(
    n: int, p: int, replicas: int = 1, *, signal: float, noise: float, rng: RNG
) -> Risk:
    r"""Draw conditional bias and variance of isotropic Gaussian inputs, without the inputs.

    The exact joint law at a cost of min(n, p) operations a replica. Given their eigenvalues,
    the eigenvectors of S are uniform: the bias is :math:`r^2` times an independent
    :math:`\mathrm{Beta}(\frac{p-n}2, \frac n2)`, and the variance
    :math:`\sigma^2 \operatorname{tr} (L L^T)^{-1}` with the bidiagonal factor of
    :func:`~traindyn.laws.ensembles.wishart_bidiagonal`.

    Parameters
    ----------
    n, p : int
        Samples and features.
    replicas : int
        Number of independent draws.
    signal, noise : float
        :math:`|\beta|^2` and :math:`\sigma^2`.
    rng : int, SeedSequence or Generator
        Of the spectra, then of the shares of the bias.

    Returns
    -------
    Risk
        Shapes (replicas,).

    Examples
    --------
    >>> from companion.foundations.double_descent.risk import draw_gaussian_risk
    >>> risk = draw_gaussian_risk(200, 400, 1000, signal=1.0, noise=0.25, rng=1)
    >>> risk.bias.mean().round(2), risk.variance.mean().round(2)
    (np.float64(0.5), np.float64(0.25))
    """
    count = _validate.integer("n", n, least=1)
    features = _validate.integer("p", p, least=1)
    total = _validate.integer("replicas", replicas, least=1)
    r2, s2 = _validate.non_negative("signal", signal), _validate.non_negative("noise", noise)
    generator = _validate.generator("rng", rng)
    small, large = sorted((count, features))
    trace = wishart_bidiagonal(small, large, total, rng=generator).inverse_trace()
    if features > count:
        share = generator.beta((features - count) / 2, count / 2, total)
    else:
        share = np.zeros(total)
    return Risk(r2 * share, s2 * trace)


def best_ratio(signal: float, noise: float) -> float:
    r"""Return the ratio above one at which ridgeless regression has its smallest risk.

    With :math:`\rho = r^2 / \sigma^2` it is :math:`\sqrt\rho / (\sqrt\rho - 1)`, with risk
    :math:`\sigma^2 (2 \sqrt\rho - 1)`; infinite (the null estimate is best) for
    :math:`\rho \le 1`.

    Parameters
    ----------
    signal, noise : float
        :math:`|\beta|^2 \ge 0` and :math:`\sigma^2 > 0`.
    """
    root = np.sqrt(_validate.non_negative("signal", signal) / _validate.positive("noise", noise))
    return float(root / (root - 1)) if root > 1 else float("inf")


def optimal_ridge(ratio: ArrayLike, *, signal: float, noise: float) -> Any:
    r"""Ridge of smallest limiting risk, :math:`z^* = \gamma \sigma^2 / r^2`.

    Parameters
    ----------
    ratio : array_like
        :math:`\gamma > 0`.
    signal, noise : float
        :math:`|\beta|^2 > 0` and :math:`\sigma^2 > 0`.
    """
    gamma = _validate.finite("ratio", ratio)
    if np.any(gamma <= 0):
        raise ValueError(f"ratio must be positive, got {gamma.min():g}")
    return gamma * _validate.positive("noise", noise) / _validate.positive("signal", signal)


def optimal_ridge_risk(ratio: ArrayLike, *, signal: float, noise: float) -> Any:
    r"""Limiting risk of optimally tuned ridge regression, in closed form.

    .. math:: R^* = \sigma^2 \gamma\, s(-z^*)
              = \frac{-(1 - \gamma) \rho - \gamma
              + \sqrt{((1 - \gamma) \rho + \gamma)^2 + 4 \gamma^2 \rho}}{2 \gamma}\, \sigma^2,
              \qquad \rho = \frac{r^2}{\sigma^2} .

    The derivatives of s cancel between bias and variance. It has no peak.

    Parameters
    ----------
    ratio : array_like
        :math:`\gamma > 0`.
    signal, noise : float
        :math:`|\beta|^2 > 0` and :math:`\sigma^2 > 0`.

    Examples
    --------
    >>> from companion.foundations.double_descent.risk import optimal_ridge_risk
    >>> optimal_ridge_risk([0.5, 1.0, 2.0], signal=1.0, noise=0.25).round(4)
    array([0.1754, 0.3904, 0.6404])
    """
    ridge, gamma = optimal_ridge(ratio, signal=signal, noise=noise), np.asarray(ratio, dtype=float)
    half = (1 - gamma + ridge) / 2
    root = np.sqrt(half**2 + gamma * ridge)
    value = np.where(half > 0, gamma * ridge / (root + np.abs(half)), root - half)
    return (signal * value / gamma)[()]


def _data(inputs: ArrayLike, targets: ArrayLike) -> tuple[Array, Array]:
    x = _validate.finite("inputs", inputs, shape=(None, None))
    y = _validate.finite("targets", targets)
    if min(x.shape) == 0:
        raise ValueError(f"inputs must not be empty, got shape {x.shape}")
    if y.ndim not in (1, 2) or len(y) != len(x):
        raise ValueError(f"targets must have shape ({len(x)},) or ({len(x)}, k), got {y.shape}")
    return x, y
