r"""Spectra of the population matrices of the XOR mixture at fixed points and at the start.

At a fixed point of infinite precision every learned class of neurons has the square sum
:math:`s = \log((1 - 4\alpha) / (4\alpha))` of :math:`v`, and each block is a sum of few
orthogonal projections (:class:`LimitSpectra`). At finite precision, small steps and all four
classes learned, a fixed point of the same shape persists below the critical ridge of
:func:`~traindyn.problems.two_layer.thresholds.xor_critical_ridge`: with independent
:math:`z, z' \sim N(0, 1/\lambda)`, lengths :math:`p = |1 + z|, q = |z'|` and
:math:`D = p - q`,

.. math:: E[D\, \sigma(-s D)] = 4 \alpha, \qquad v_i = \pm |W_i|,\ W_i \text{ along a centroid}.

There the second-layer block is exactly of rank four, and all spectra are expectations in (p, q)
(:class:`FixedPointSpectra`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.base import MATRICES, Matrix
from traindyn.problems.two_layer.curvature import weight
from traindyn.problems.two_layer.thresholds import XOR_RIDGE, xor_critical_ridge

__all__ = ["FixedPointSpectra", "LimitSpectra", "class_sum", "lengths"]

# Gauss-Legendre nodes for the absolute value of a normal variable, over 9.5 deviations.
_ORDER = 96
_REACH = 9.5


def class_sum(ridge: float, precision: float = math.inf) -> float:
    r"""Square sum of v over a learned class at the fixed point with all four classes learned.

    At infinite precision :math:`s = \log((1 - 4 \alpha) / (4 \alpha)) = -\mathrm{logit}(4 \alpha)`
    for each learned class, however many there are; the source prints
    :math:`\mathrm{logit}(-4 \alpha)`, which is not defined. At finite precision the root of
    :math:`E[D\, \sigma(-s D)] = 4 \alpha`, for vanishing step size (``c_delta = 0``).

    Parameters
    ----------
    ridge : float
        Positive, below the critical ridge of this precision.
    precision : float, default inf
        :math:`\lambda`; the square sum has a closed form where it is infinite.

    Raises
    ------
    ValueError
        If the ridge is not below the critical one, above which only the origin is left.

    Examples
    --------
    >>> from traindyn.problems.two_layer.spectra import class_sum
    >>> round(class_sum(0.05), 3), round(class_sum(0.05, 10.0), 3)
    (1.386, 1.113)
    """
    precision = _validate.positive_or_infinite("precision", precision)
    ridge = _validate.positive("ridge", ridge)
    critical = xor_critical_ridge(precision)
    if ridge >= critical:
        raise ValueError(
            f"ridge must be below {critical:.6g}, the threshold at precision {precision:g}, "
            f"got {ridge:g}"
        )
    if precision == math.inf:
        return math.log((1 - 4 * ridge) / (4 * ridge))
    p, q, masses = lengths(precision)
    difference = p - q

    def excess(s: float) -> float:
        return float(np.sum(masses * difference * expit(-s * difference))) - 4 * ridge

    high = 1.0
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-14, rtol=1e-14))


@dataclass(frozen=True)
class LimitSpectra:
    """Spectra at a fixed point of infinite precision.

    The limit of high precision at a fixed point, so that a neuron orthogonal to a centroid
    answers half of its inputs.

    Attributes
    ----------
    ridge : float
        In (0, 1/8).
    learned : tuple of four bool
        Whether the class of each centroid mu, -mu, nu, -nu has a neuron.

    Raises
    ------
    ValueError
        If the ridge is out of range or `learned` does not hold four entries.

    Examples
    --------
    >>> from traindyn.problems.two_layer.spectra import LimitSpectra
    >>> found = LimitSpectra(0.05, (True, True, True, False))
    >>> found.second_layer("hessian").round(6).tolist()
    [0.055452, 0.055452, 0.055452]
    """

    ridge: float
    learned: tuple[bool, bool, bool, bool]

    def __post_init__(self) -> None:
        """Check the fields."""
        ridge = _validate.positive("ridge", self.ridge)
        if ridge >= XOR_RIDGE:
            raise ValueError(f"ridge must be below {XOR_RIDGE:g}, got {ridge:g}")
        if len(self.learned) != 4:
            raise ValueError(f"learned must have 4 entries, got {len(self.learned)}")
        object.__setattr__(self, "learned", tuple(bool(each) for each in self.learned))

    def weights(self, matrix: Matrix) -> Array:
        r"""Weights at the centroids, shape (4,).

        :math:`4 \alpha (1 - 4 \alpha)` for the Hessian and :math:`16 \alpha^2` for the G-matrix
        if the class is learned, 1/4 otherwise.
        """
        _validate.choice("matrix", matrix, MATRICES)
        rest = 1 - 4 * self.ridge if matrix == "hessian" else 4 * self.ridge
        return np.where(self.learned, 4 * self.ridge * rest, 0.25)

    def second_layer(self, matrix: Matrix) -> Array:
        r"""Non-zero eigenvalues of block (K, K), one for each learned class.

        :math:`\alpha (1 - 4 \alpha) s` or :math:`4 \alpha^2 s`; the eigenvector of a class is
        :math:`g(W s_c)`, the entries of v in the class.
        """
        levels = 0.25 * self.weights(matrix) * class_sum(self.ridge)
        return np.asarray(levels[np.array(self.learned)])

    def first_layer(self, matrix: Matrix, centroid: int) -> tuple[float, float]:
        r"""Eigenvalues of block (i, i) in units of :math:`v_i^2` for a neuron of this class.

        Along the neuron's own centroid and along the orthogonal one. With the other side
        learned both are equal, :math:`\alpha (1 - 4 \alpha)` or :math:`4 \alpha^2`; where it is
        not, the second is 1/16 in both matrices.

        Parameters
        ----------
        matrix : {"hessian", "g_matrix"}
            Decides on the weights at the centroids, see :meth:`weights`.
        centroid : int
            0 to 3 for mu, -mu, nu, -nu; its class must be learned.

        Returns
        -------
        own, other : float

        Raises
        ------
        ValueError
            If the class has no neuron.
        """
        centroid = _validate.integer("centroid", centroid, least=0, most=3)
        if not self.learned[centroid]:
            raise ValueError(f"centroid must have a learned class, got {centroid}")
        weights = self.weights(matrix)
        others = weights[2:] if centroid < 2 else weights[:2]
        return float(0.25 * weights[centroid]), float(0.125 * others.sum())


@dataclass(frozen=True)
class FixedPointSpectra:
    """Spectra at the fixed point of finite precision with all four classes learned.

    Attributes
    ----------
    ridge : float
        Positive, below the critical ridge.
    precision : float
        Positive and finite.
    class_sum : float
        Square sum of v over each class.

    Raises
    ------
    ValueError
        As :func:`class_sum`, or if the precision is infinite.

    Examples
    --------
    >>> from traindyn.problems.two_layer.spectra import FixedPointSpectra
    >>> found = FixedPointSpectra(0.03, 10.0)
    >>> round(found.class_sum, 3), found.second_layer("hessian").round(4).tolist()
    (1.9, [0.1155, 0.0765, 0.0765, 0.0375])
    """

    ridge: float
    precision: float
    class_sum: float = field(init=False)

    def __post_init__(self) -> None:
        """Solve for the class sum."""
        precision = _validate.positive("precision", self.precision)
        object.__setattr__(self, "precision", precision)
        object.__setattr__(self, "class_sum", class_sum(self.ridge, precision))

    def second_layer(self, matrix: Matrix) -> Array:
        r"""Non-zero eigenvalues of block (K, K), shape (4,), decreasing.

        .. math:: \frac s4 E[w (p + q)^2], \quad \frac s4 E[w (p^2 + q^2)] \text{ twice}, \quad
                  \frac s4 E[w (p - q)^2],

        with eigenvectors :attr:`directions`. The second layer v itself is the eigenvector of
        the smallest.
        """
        p, q, masses = self._weighted(matrix)
        levels = [(p + q) ** 2, p**2 + q**2, p**2 + q**2, (p - q) ** 2]
        return np.array([0.25 * self.class_sum * np.sum(masses * level) for level in levels])

    @property
    def directions(self) -> Array:
        """Eigenvectors of block (K, K), shape (4, 4), row by row as :meth:`second_layer`.

        In the orthonormal basis of the classes of mu, -mu, nu, -nu, whose vectors are the
        normalised absolute values of v on each class; v has the coordinates
        ``sqrt(s) * (1, 1, -1, -1)``.
        """
        half = math.sqrt(0.5)
        return np.array(
            [
                [0.5, 0.5, 0.5, 0.5],
                [half, -half, 0.0, 0.0],
                [0.0, 0.0, half, -half],
                [0.5, 0.5, -0.5, -0.5],
            ]
        )

    def first_layer(self, matrix: Matrix) -> tuple[float, float]:
        r"""Outlier and bulk of every block (i, i), in units of :math:`v_i^2`.

        The outlier :math:`\tfrac14 E[w (p^2 + q^2)]` is exactly double, along both centroids;
        the bulk is :math:`E[w] / (2 \lambda)`.

        Returns
        -------
        outlier, bulk : float
        """
        p, q, masses = self._weighted(matrix)
        outlier = 0.25 * float(np.sum(masses * (p**2 + q**2)))
        return outlier, 0.5 * float(np.sum(masses)) / self.precision

    def kink(self) -> tuple[float, float]:
        r"""Outlier and bulk of what the ReLU's kink adds to every block (i, i).

        .. math:: \tfrac12 \sqrt{\tfrac{\lambda}{2 \pi}} \big( E[\sigma(-s p)\, p^2]
                  - e^{-\lambda / 2} E[\sigma(s q)\, q^2] \big)

        along the centroid orthogonal to the neuron, the same with :math:`1 / \lambda` in place
        of the squares off the signal space, and zero along the neuron. It does not scale with
        :math:`v_i`: in the true Hessian it outgrows the average of
        :func:`~traindyn.problems.two_layer.curvature.population_block` when
        :math:`\sqrt\lambda` exceeds :math:`v_i^2`.

        Returns
        -------
        outlier, bulk : float
        """
        p, q, masses = lengths(self.precision)
        scale = 0.5 * math.sqrt(self.precision / (2 * math.pi))
        far = math.exp(-0.5 * self.precision)
        own, wrong = masses * expit(-self.class_sum * p), masses * expit(self.class_sum * q)
        outlier = scale * float(np.sum(own * p**2) - far * np.sum(wrong * q**2))
        return outlier, scale * float(np.sum(own) - far * np.sum(wrong)) / self.precision

    def _weighted(self, matrix: Matrix) -> tuple[Array, Array, Array]:
        """Nodes (p, q), and their masses times the weight of an input labelled one."""
        p, q, masses = lengths(self.precision)
        outputs = self.class_sum * (p - q)
        return p, q, masses * weight(matrix, outputs, np.ones_like(outputs))


def lengths(precision: float) -> tuple[Array, Array, Array]:
    r"""Quadrature for :math:`p = |1 + z|` and :math:`q = |z'|`, the lengths along both lines.

    Parameters
    ----------
    precision : float
        Inverse variance of the independent normal variables z and z'.

    Returns
    -------
    p, q : ndarray, shapes (n, 1) and (1, n)
        Nodes.
    masses : ndarray, shape (n, n)
        Summing to one.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems.two_layer.spectra import lengths
    >>> p, q, masses = lengths(10.0)
    >>> round(float(np.sum(masses * (p**2 + q**2))), 12)
    1.2
    """
    precision = _validate.positive("precision", precision)
    p, p_masses = _folded(1.0, precision)
    q, q_masses = _folded(0.0, precision)
    return p[:, None], q[None, :], np.outer(p_masses, q_masses)


def _folded(mean: float, precision: float) -> tuple[Array, Array]:
    """Gauss-Legendre rule for the absolute value of ``N(mean, 1 / precision)``."""
    deviation = 1 / math.sqrt(precision)
    low, high = max(0.0, mean - _REACH * deviation), mean + _REACH * deviation
    nodes, masses = np.polynomial.legendre.leggauss(_ORDER)
    x = low + 0.5 * (high - low) * (nodes + 1)
    density = np.exp(-0.5 * precision * (x - mean) ** 2)
    density += np.exp(-0.5 * precision * (x + mean) ** 2)
    masses = masses * density
    return x, masses / masses.sum()
