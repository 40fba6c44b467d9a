r"""Spectra of the k-Gaussian mixture's matrices at infinite precision, orthonormal means.

Then a block is a sum of multiples of ``mu_l mu_l^T`` (BGHJ (7.1), (7.2), (7.7), (7.8)) and
its eigenvalues are the coefficients. They are functions of ``q_l``, the softmax probability
that the mean of class l gives to its own class, wherever all other classes share the rest
equally, ``r_l = (1 - q_l) / (k - 1)``: at every time of the dynamics from zero overlap and at
the fixed point (BGHJ Proposition 5.14), for any class weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.base import MATRICES, Block, Matrix
from traindyn.problems.k_gmm._moments import coefficients

__all__ = ["LimitSpectra", "leading_coefficients", "limit_spectra"]


@dataclass(frozen=True)
class LimitSpectra:
    """Spectra of the population matrices at infinite precision, orthonormal means.

    Attributes
    ----------
    own : ndarray, shape (k,)
        Probabilities q_l of the own class.
    weights : ndarray, shape (k,)
        Class weights p_l.

    Raises
    ------
    ValueError
        If shapes disagree, `own` leaves [0, 1] or `weights` is no probability vector of at
        least two classes.
    """

    own: Array
    weights: Array

    def __post_init__(self) -> None:
        """Convert and check every field."""
        weights = _validate.probability_vector("weights", self.weights)
        _validate.integer("number of classes", weights.size, least=2)
        own = _validate.finite("own", self.own, shape=(weights.size,))
        if np.any((own < 0) | (own > 1)):
            raise ValueError(f"own must lie in [0, 1], got {own.min():g} to {own.max():g}")
        object.__setattr__(self, "own", _validate.frozen(own))
        object.__setattr__(self, "weights", _validate.frozen(weights))

    @property
    def k(self) -> int:
        """Number of classes."""
        return int(self.weights.size)

    @property
    def other(self) -> Array:
        """Probability ``r_l = (1 - q_l) / (k - 1)`` of each other class, shape (k,)."""
        return np.asarray((1 - self.own) / (self.k - 1))

    @property
    def probabilities(self) -> Array:
        """Softmax probabilities at the means, shape (k, k), row l for the mean of class l."""
        spread = np.repeat(self.other[:, None], self.k, axis=1)
        np.fill_diagonal(spread, self.own)
        return spread

    def block(self, matrix: Matrix, a: int) -> Array:
        """Eigenvalues of the diagonal block of class `a`; entry l belongs to ``mu_l``.

        Hessian: ``p_a q_a (1 - q_a)`` along the own mean and ``p_l r_l (1 - r_l)`` along
        the others; G-matrix: ``p_a (1 - q_a)^2`` and ``p_l r_l^2``. The own mean is the
        top eigenvector of the Hessian block only if its entry is the largest, for equal
        weights and q > 1/k if and only if k >= 3 (BGHJ Theorem 2.5 needs both).
        So does MDL Theorem 13.5.

        Parameters
        ----------
        matrix : {"hessian", "g_matrix"}
            Mean of the loss's Hessian, or of the outer product of its gradient with itself.
        a : int
            Class.

        Returns
        -------
        ndarray, shape (k,)
        """
        a = _validate.integer("a", a, least=0, most=self.k - 1)
        return leading_coefficients(self.weights, self.probabilities, matrix, (a, a))

    def full(self, matrix: Matrix) -> Array:
        """Non-zero eigenvalues of the full kd x kd matrix, decreasing.

        Hessian, rank k (k - 1): ``k p_l q_l r_l`` on :attr:`directions` and ``p_l r_l``, of
        multiplicity k - 2 each, on vectors whose block l is zero and whose others sum to
        zero. G-matrix, rank k: ``p_l k (1 - q_l)^2 / (k - 1)`` on :attr:`directions`.

        Parameters
        ----------
        matrix : {"hessian", "g_matrix"}
            As for :meth:`block`.

        Returns
        -------
        ndarray, shape (k (k - 1),) or (k,)
        """
        _validate.choice("matrix", matrix, MATRICES)
        k, p, q, r = self.k, self.weights, self.own, self.other
        if matrix == "g_matrix":
            values = p * k * (1 - q) ** 2 / (k - 1)
        else:
            values = np.concatenate([k * p * q * r, np.repeat(p * r, k - 2)])
        return np.sort(values)[::-1]

    @property
    def directions(self) -> Array:
        """Unit vectors along ``e_l - sum_{a != l} e_a / (k - 1)``, shape (k, k), row l.

        The Kronecker product of row l with ``mu_l`` is an eigenvector of both full
        matrices. The overlaps trained from zero are a combination of these k vectors, so
        the parameters lie in their span exactly.
        """
        rows = (self.k * np.eye(self.k) - 1) / (self.k - 1)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def limit_spectra(
    q: ArrayLike, k: int | None = None, weights: ArrayLike | None = None
) -> LimitSpectra:
    """Return the spectra at infinite precision from the own-class probabilities.

    Parameters
    ----------
    q : array_like, shape (k,) or ()
        Own-class probability of each class, or one for all; see
        :func:`traindyn.problems.k_gmm.limit.own_probability`.
    k : int, optional
        Number of classes, needed if neither `q` nor `weights` tells it.
    weights : array_like, shape (k,), optional
        Class weights, equal by default.

    Raises
    ------
    ValueError
        As :class:`LimitSpectra`.

    Examples
    --------
    >>> from companion.alignment.beyond.spectra import limit_spectra
    >>> at_start = limit_spectra(0.25, 4)
    >>> at_start.block("g_matrix", 0) * 64
    array([9., 1., 1., 1.])
    """
    own = _validate.finite("q", q)
    if np.any((own < 0) | (own > 1)):
        raise ValueError(f"q must lie in [0, 1], got {own.min():g} to {own.max():g}")
    if k is None:
        k = own.size if weights is None else np.size(weights)
    k = _validate.integer("k", k, least=2)
    p = np.full(k, 1 / k) if weights is None else _validate.probability_vector("weights", weights)
    if p.size != k or own.size not in (1, k):
        raise ValueError(f"q and weights must have k = {k} entries, got {own.size} and {p.size}")
    return LimitSpectra(np.broadcast_to(own, (k,)).copy(), p)


def leading_coefficients(
    weights: Array, probabilities: Array, matrix: Matrix, block: Block
) -> Array:
    """Coefficients of ``mu_l mu_l^T`` in a block at infinite precision.

    Parameters
    ----------
    weights : ndarray, shape (k,)
        Class weights.
    probabilities : ndarray, shape (k, k)
        Softmax probabilities at the means, row l for the mean of class l: the softmax of
        the column ``m[:, l]`` of the overlaps (BGHJ (5.16)).
    matrix : {"hessian", "g_matrix"}
        Decides on the weight: ``pi(b) 1{b = c} - pi(b) pi(c)`` or ``(pi(b) - y_b) (pi(c) - y_c)``.
    block : Block
        Pair (b, c).

    Returns
    -------
    ndarray, shape (k,)
        Entry l multiplies ``mu_l mu_l^T``; for orthonormal means they are the eigenvalues.

    Examples
    --------
    >>> from companion.alignment.beyond.spectra import leading_coefficients
    >>> import numpy as np
    >>> thirds = np.full(3, 1 / 3)
    >>> leading_coefficients(thirds, np.full((3, 3), 1 / 3), "g_matrix", (0, 0)) * 27
    array([4., 1., 1.])
    """
    weights = _validate.probability_vector("weights", weights)
    k = weights.size
    pi = _validate.finite("probabilities", probabilities, shape=(k, k))[:, None, :]
    block = _validate.pair("block", block, most=k - 1)
    return coefficients(weights, pi, np.ones(1), matrix, block)
