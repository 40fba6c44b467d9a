r"""Deterministic equivalents of the resolvent of a sample covariance (Rubio and Mestre).

The matrix is :math:`S = \frac1n \sum_{i \le n} x_i x_i^T \in \mathbb R^{d \times d}` with
:math:`x_i = \Sigma^{1/2} z_i`, the entries of :math:`z_i` independent with mean 0 and variance
1, and :math:`d / n = c`. For fixed vectors u and v

.. math:: u^T (S - z)^{-1} v \;\to\; -\frac1z\, u^T (I + \tilde s(z) \Sigma)^{-1} v ,

where :math:`\tilde s` is the Stieltjes transform of the *companion*
:math:`\frac1n Z^T \Sigma Z \in \mathbb R^{n \times n}`, which has the same non-zero eigenvalues.
That is a weighted covariance of d vectors in n dimensions whose weights are the eigenvalues of
:math:`\Sigma`, so that :class:`~traindyn.laws.weighted.WeightedMarchenkoPastur` gives it. With
:math:`\Sigma = I` this is MDL Theorem 7.6.

At :math:`z = -\lambda < 0` the resolvent is that of ridge regression, and
:math:`\kappa = 1 / \tilde s(-\lambda)` the *effective ridge*: on average the sample covariance
with ridge :math:`\lambda` acts like :math:`\Sigma` with ridge :math:`\kappa`,

.. math:: \lambda (S + \lambda)^{-1} \to \kappa (\Sigma + \kappa)^{-1}, \qquad
          \kappa = \lambda + \frac{\kappa}{n} \operatorname{tr} \Sigma (\Sigma + \kappa)^{-1} .
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.laws.weighted import WeightedMarchenkoPastur


class SampleCovariance:
    r"""Resolvent of :math:`\frac1n \sum_i x_i x_i^T` for data of covariance :math:`\Sigma`.

    Parameters
    ----------
    covariance : array_like, shape (d, d) or (d,)
        :math:`\Sigma`; one-dimensional: its diagonal.
    ratio : float
        Dimensions per sample, ``c = d / n > 0``.

    Raises
    ------
    ValueError
        If an argument is out of range or the covariance is zero.

    Examples
    --------
    The identity gives back the law of Marchenko and Pastur.

    >>> import numpy as np
    >>> from traindyn.laws import SampleCovariance
    >>> from traindyn.laws import MarchenkoPastur
    >>> law = SampleCovariance(np.ones(3), ratio=0.5)
    >>> law.edges.round(12), law.stieltjes(-1.0).round(12)
    (array([0.08578644, 2.91421356]), np.float64(0.561552812809))
    >>> MarchenkoPastur(0.5).stieltjes(-1.0).round(12)
    np.float64(0.561552812809)
    """

    def __init__(self, covariance: ArrayLike, ratio: float) -> None:
        given = _validate.finite("covariance", covariance)
        self._basis: Array | None = None
        if given.ndim == 1:
            values = _validate.frozen(given)
            if np.any(values < 0):
                raise ValueError(f"covariance must be non-negative, got {values.min():g}")
        else:
            matrix = _validate.positive_semidefinite("covariance", given)
            values, self._basis = np.linalg.eigh(matrix)
            values = np.where(values > 1e-12 * values[-1:], values, 0.0)
        if not np.any(values):
            raise ValueError("covariance must not be zero")
        self.ratio = _validate.positive("ratio", ratio)
        self._values = values
        self._companion = WeightedMarchenkoPastur(values, 1 / self.ratio)

    def __repr__(self) -> str:
        return f"SampleCovariance(<{self._values.size} eigenvalues>, ratio={self.ratio!r})"

    @property
    def rank_ratio(self) -> float:
        """Rank of the covariance per sample; interpolation starts at one."""
        return self.ratio * float(np.mean(self._values > 0))

    @property
    def atom(self) -> float:
        """Mass of the spectrum at zero."""
        return 1 - min(self.rank_ratio, 1.0) / self.ratio

    @property
    def edges(self) -> Array:
        """All ends of intervals of the continuous spectrum, increasing."""
        edges: Array = self.ratio * self._companion.edges
        return edges

    def density(self, x: ArrayLike) -> Array:
        """Density of the continuous part, of total mass ``1 - atom``.

        Parameters
        ----------
        x : array_like
            Any real numbers; the density is zero outside the edges.

        Returns
        -------
        ndarray
            Of the shape of `x`.
        """
        points = _validate.finite("x", x)
        return self._companion.density(points / self.ratio) / self.ratio**2

    def companion(self, z: ArrayLike) -> Any:
        r"""Stieltjes transform :math:`\tilde s` of the companion matrix.

        Parameters
        ----------
        z : array_like
            Complex with non-zero imaginary part, or real outside the spectrum.

        Raises
        ------
        ValueError
            If a real point lies in the spectrum, or the transform or the point in its units is
            beyond the floating-point numbers.
        """
        points = _validate.finite_complex("z", z)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            scaled = points / self.ratio
            found = None
            if np.isfinite(scaled).all():
                found = self._companion.stieltjes(scaled) / self.ratio
        if found is None or not np.isfinite(found).all():
            raise ValueError(
                f"z must be where the transform can be computed, got sizes from "
                f"{np.abs(points).min():.3g} to {np.abs(points).max():.3g} at ratio {self.ratio:g}"
            )
        return found

    def stieltjes(self, z: ArrayLike) -> Any:
        r"""Stieltjes transform of the spectrum, :math:`(\tilde s(z) + (1 - c)/z) / c`.

        Parameters
        ----------
        z : array_like
            As in :meth:`companion`.
        """
        return np.mean(self.resolvent(z), axis=-1)

    def resolvent(self, z: ArrayLike) -> Any:
        r"""Eigenvalues of the equivalent of :math:`(S - z)^{-1}`, in the order of the covariance's.

        :math:`-1 / (z + z \tilde s(z) \tau)` for an eigenvalue :math:`\tau`; without
        cancellation at the ends of the spectrum.

        Parameters
        ----------
        z : array_like
            As in :meth:`companion`.

        Returns
        -------
        ndarray, shape (..., d)
            Eigenvalues increase for a matrix; the given order for a diagonal.
        """
        points = _validate.finite_complex("z", z)
        if np.any(points == 0):
            raise ValueError("z must not be 0, where the equivalent has a pole or is a limit")
        scaled = np.asarray(points * self.companion(points))
        return -1 / (points[..., None] + scaled[..., None] * self._values)

    def quadratic_form(self, z: ArrayLike, left: ArrayLike, right: ArrayLike | None = None) -> Any:
        r"""Limit of :math:`u^T (S - z)^{-1} v` (MDL Theorem 7.6 for isotropic data).

        Parameters
        ----------
        z : array_like
            As in :meth:`companion`.
        left, right : array_like, shape (d,)
            u and v (default: u), independent of the samples.

        Returns
        -------
        ndarray
            Of the shape of `z`.
        """
        u = self.coordinates("left", left)
        v = u if right is None else self.coordinates("right", right)
        return self.resolvent(z) @ (u * v)

    def coordinates(self, name: str, vector: ArrayLike) -> Array:
        """Coordinates of a vector in the eigenbasis of the covariance.

        Parameters
        ----------
        name : str
            What to call it if its shape is wrong.
        vector : array_like, shape (d,)
            In the basis in which the covariance was given.

        Returns
        -------
        ndarray, shape (d,)
            In the order of the eigenvalues, as for :meth:`resolvent`.
        """
        given = _validate.finite(name, vector, shape=(self._values.size,))
        return given.copy() if self._basis is None else self._basis.T @ given

    def effective_ridge(self, ridge: float) -> float:
        r"""Ridge :math:`\kappa` on the covariance that acts like a ridge on the sample covariance.

        Parameters
        ----------
        ridge : float
            :math:`\lambda \ge 0`. Without ridge :math:`\kappa > 0` where there are more
            dimensions than samples, and zero elsewhere.

        Examples
        --------
        >>> import numpy as np
        >>> from traindyn.laws import SampleCovariance
        >>> print(round(SampleCovariance(np.ones(2), 3.0).effective_ridge(0.0), 12))
        2.0
        """
        value = _validate.non_negative("ridge", ridge)
        if value == 0 and self.rank_ratio <= 1:
            return 0.0
        return float(1 / self.companion(-value))

    def degrees_of_freedom(self, ridge: float, power: int = 2) -> float:
        r"""Return :math:`\frac1n \operatorname{tr} (\Sigma (\Sigma + \kappa)^{-1})^k`.

        Parameters
        ----------
        ridge : float
            :math:`\lambda \ge 0`, of which :math:`\kappa` is the effective one.
        power : int
            k.
        """
        power = _validate.integer("power", power, least=1)
        kappa, positive = self.effective_ridge(ridge), self._values[self._values > 0]
        return float(
            self.ratio * np.sum((positive / (positive + kappa)) ** power) / self._values.size
        )

    def ridge_bias(self, ridge: float, signal: ArrayLike) -> float:
        r"""Limit of the bias :math:`\|\Sigma^{1/2} \lambda (S + \lambda)^{-1} \beta\|^2`.

        :math:`\kappa^2 \beta^T \Sigma (\Sigma + \kappa)^{-2} \beta / (1 - df_2)`.

        Parameters
        ----------
        ridge : float
            Non-negative; zero is the limit.
        signal : array_like, shape (d,)
            :math:`\beta`.
        """
        beta, kappa = self.coordinates("signal", signal), self.effective_ridge(ridge)
        if kappa == 0:
            return 0.0
        shrunk = np.sum(self._values * (kappa * beta / (self._values + kappa)) ** 2)
        return float(shrunk / (1 - self.degrees_of_freedom(ridge)))

    def ridge_variance(self, ridge: float) -> float:
        r"""Limit of :math:`\frac1n \operatorname{tr} \Sigma (S + \lambda)^{-2} S`.

        :math:`df_2 / (1 - df_2)`: infinite without ridge where there are as many samples as
        dimensions.

        Parameters
        ----------
        ridge : float
            Non-negative; zero is the limit.
        """
        freedom = self.degrees_of_freedom(ridge)
        return float("inf") if freedom >= 1 else freedom / (1 - freedom)
