r"""Spectral density of an operator that is known through its products only.

For a random unit vector v the weights :math:`(v \cdot u_i)^2` of the eigenvectors have the mean
1/n, so that the spectral measure of v is an unbiased estimate of the spectral measure of the
operator. Lanczos iteration from v gives the Gauss rule of the former: its m nodes and weights
integrate polynomials up to degree 2 m - 1 exactly. The mean over independent probes is stochastic
Lanczos quadrature (Ubaru, Chen and Saad, SIAM J. Matrix Anal. Appl. 38, 2017; for Hessians of
networks Ghorbani, Krishnan and Xiao, ICML 2019).

Two errors travel with every number: the standard error over the probes, which falls with their
number and with the size of the operator, and that of the rule, which falls with the steps. For
distribution functions the second is bounded (by the inequality of Chebyshev, Markov and Stieltjes);
for smooth functions it is measured by leaving out the last quarter of the steps.

All vectors of an iteration are kept orthogonal to each other. What is left over from a product
then tells, free of charge, whether the operator is symmetric; one that is not is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh_tridiagonal

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.linalg import CountedOperator, Operator, as_operator

__all__ = ["Density", "Estimate", "estimate"]

_BASIS_BYTES = 2**30
"""Lanczos vectors kept at a time; as many probes share a product."""
_EXHAUSTED = 1e-13
"""Length, relative to the operator, of a next vector that is rounding alone."""
_ASYMMETRY = 1e-3
"""Relative asymmetry that no precision of products explains."""


class Estimate(NamedTuple):
    """A number, or several, with their two errors.

    Attributes
    ----------
    value : ndarray
    error : ndarray
        Standard error of `value` over the probes; same shape.
    truncation : ndarray
        Error of the quadrature, bounded or measured; same shape.
    """

    value: Array
    error: Array
    truncation: Array


@dataclass(frozen=True)
class Density:
    """Spectral measure of an operator, as one quadrature rule per probe.

    Attributes
    ----------
    nodes : ndarray, shape (probes, steps)
        Increasing in every row.
    weights : ndarray, shape (probes, steps)
        Sum to one in every row. An iteration that exhausts its space early leaves weights zero.
    shorter : tuple of two ndarray, shape (probes, fewer)
        Nodes and weights of three quarters of the steps.
    size : int
        Number n of eigenvalues.
    products : int
        Operator-vector products spent.
    """

    nodes: Array
    weights: Array
    shorter: tuple[Array, Array]
    size: int
    products: int

    def mean(self, function: Callable[[Array], ArrayLike]) -> Estimate:
        r"""Estimate the mean of a function of the eigenvalues, :math:`\frac1n tr f(A)`.

        Parameters
        ----------
        function : callable
            Smooth; maps an array of numbers to an array of the same shape, or with further axes
            after it.

        Returns
        -------
        Estimate
            The truncation is the difference to three quarters of the steps.

        Raises
        ------
        ValueError
            If `function` returns another shape.
        FloatingPointError
            If a value is not finite.

        Examples
        --------
        >>> import numpy as np
        >>> from traindyn.spectra import density
        >>> found = density.estimate(np.diag(np.linspace(1.0, 2.0, 1000)), probes=20, rng=0)
        >>> exact = np.log(np.linspace(1.0, 2.0, 1000)).mean()
        >>> log = found.mean(np.log)
        >>> bool(abs(log.value - exact) < 4 * log.error), bool(log.truncation < 1e-10)
        (True, True)
        """
        _validate.function("function", function)
        full, fewer = (
            _summed(function, nodes, weights)
            for nodes, weights in ((self.nodes, self.weights), self.shorter)
        )
        return Estimate(*_over_probes(full), np.abs(full - fewer).mean(axis=0))

    def smoothed(self, points: ArrayLike, width: float) -> Estimate:
        """Estimate the density of the eigenvalues, each spread out to a normal law.

        Parameters
        ----------
        points : array_like, shape (p,)
            Where.
        width : float
            Standard deviation of the normal laws. m steps resolve about the length of the spectrum
            over m; the truncation tells.

        Returns
        -------
        Estimate
            Of shape (p,); integrates to one.

        Raises
        ------
        ValueError
            If an argument is out of range.
        """
        at = _validate.finite("points", points, shape=(None,))
        width = _validate.positive("width", width)

        def kernel(nodes: Array) -> Array:
            with np.errstate(over="ignore"):
                distance = (at - nodes[..., None]) / width
                return np.asarray(np.exp(-(distance**2) / 2) / (np.sqrt(2 * np.pi) * width))

        return self.mean(kernel)

    def cdf(self, points: ArrayLike) -> Estimate:
        """Estimate the share of the eigenvalues up to given points.

        Parameters
        ----------
        points : array_like, shape (p,)
            Where.

        Returns
        -------
        Estimate
            Of shape (p,). The truncation is a bound: that share of the measure of each probe lies
            between the weights of the nodes before the last one up to the point, and those up to
            the next one after it.

        Raises
        ------
        ValueError
            If a point is not finite.

        Examples
        --------
        >>> import numpy as np
        >>> from traindyn.spectra import density
        >>> found = density.estimate(np.diag(np.arange(1000.0)), rng=0)
        >>> share = found.cdf([249.5])
        >>> bool(abs(share.value[0] - 0.25) < share.truncation[0] + 4 * share.error[0])
        True
        """
        at = _validate.finite("points", points, shape=(None,))
        middles, halves = [], []
        for nodes, weights in zip(self.nodes, self.weights):
            held = weights > 0
            sums = np.concatenate([[0.0, 0.0], np.cumsum(weights[held]), [1.0]])
            before = np.searchsorted(nodes[held], at, side="right")
            low, high = sums[before], np.minimum(sums[before + 2], 1.0)
            middles.append((low + high) / 2)
            halves.append((high - low) / 2)
        return Estimate(*_over_probes(np.array(middles)), np.mean(halves, axis=0))


def estimate(operator: Operator, *, probes: int = 10, steps: int = 80, rng: RNG = 0) -> Density:
    """Estimate the spectral measure of a symmetric operator.

    Parameters
    ----------
    operator : object
        What :func:`traindyn.linalg.as_operator` takes.
    probes : int
        Independent random vectors, at least two, so that there is an error.
    steps : int
        Lanczos steps of each: a product per step and probe.
    rng : int, SeedSequence or Generator
        Draws the probes, one child for each.

    Returns
    -------
    Density

    Raises
    ------
    ValueError
        If `operator` is none, not square, complex or not symmetric, or an argument is out of
        range.
    FloatingPointError
        If a product is not finite.

    Examples
    --------
    The law of Marchenko and Pastur:

    >>> import numpy as np
    >>> from traindyn.laws import MarchenkoPastur
    >>> from traindyn.spectra import density
    >>> data = np.random.default_rng(0).standard_normal((800, 400))
    >>> found = density.estimate(data.T @ data / 800, rng=1)
    >>> law = MarchenkoPastur(0.5)
    >>> x = np.linspace(*law.edges, 9)
    >>> share = found.cdf(x)
    >>> bool(np.all(abs(share.value - law.cdf(x)) < share.truncation + 4 * share.error + 2 / 400))
    True
    """
    probes = _validate.integer("probes", probes, least=2)
    steps = _validate.integer("steps", steps, least=1)
    streams = _validate.generator("rng", rng).spawn(probes)
    counted = CountedOperator(as_operator(operator))
    steps = min(steps, counted.size)
    starts = np.stack([stream.standard_normal(counted.size) for stream in streams], axis=1)
    at_once = max(1, _BASIS_BYTES // (8 * counted.size * steps))
    tridiagonal = [
        each
        for first in range(0, probes, at_once)
        for each in _lanczos(counted, starts[:, first : first + at_once], steps)
    ]
    rules = [
        [_gauss(diagonal[:m], off[: m - 1], m) for diagonal, off in tridiagonal]
        for m in (steps, max(1, 3 * steps // 4))
    ]
    (nodes, weights), shorter = (tuple(map(np.array, zip(*rule))) for rule in rules)
    unit = -counted.exponent
    return Density(
        nodes=np.ldexp(nodes, unit),
        weights=weights,
        shorter=(np.ldexp(shorter[0], unit), shorter[1]),
        size=counted.size,
        products=counted.products,
    )


def _lanczos(operator: CountedOperator, starts: Array, steps: int) -> list[tuple[Array, Array]]:
    """Diagonals of the Lanczos matrices of several starts, which share their products."""
    size, count = starts.shape
    basis = np.zeros((count, steps, size))
    diagonal, off = np.zeros((count, steps)), np.zeros((count, steps))
    lengths = np.full(count, steps)
    vectors = starts / np.linalg.norm(starts, axis=0)
    scale = 0.0
    for k in range(steps):
        basis[:, k] = vectors.T
        images = operator.matmat(vectors)
        for j in np.flatnonzero(lengths > k):
            known, image = basis[j, : k + 1], images[:, j]
            overlaps = known @ image
            scale = max(scale, float(np.linalg.norm(image)))
            expected = np.zeros(k + 1)
            expected[k] = diagonal[j, k] = overlaps[k]
            if k:
                expected[k - 1] = off[j, k - 1]
            asymmetry = np.abs(overlaps - expected).max()
            if asymmetry > _ASYMMETRY * scale:
                raise ValueError(
                    f"operator must be symmetric, got products whose asymmetry is "
                    f"{asymmetry / scale:.3g} of their size"
                )
            rest = image - overlaps @ known
            rest -= (known @ rest) @ known
            off[j, k] = np.linalg.norm(rest)
            if off[j, k] <= _EXHAUSTED * scale:
                lengths[j] = k + 1
                vectors[:, j] = 0.0
            else:
                vectors[:, j] = rest / off[j, k]
    return [(a[:m], b[:m]) for a, b, m in zip(diagonal, off, lengths)]


def _gauss(diagonal: Array, off: Array, length: int) -> tuple[Array, Array]:
    """Nodes and weights of a Gauss rule, filled up with weights zero at the last node."""
    nodes, vectors = eigh_tridiagonal(diagonal, off[: diagonal.size - 1])
    weights = vectors[0] ** 2
    missing = length - nodes.size
    return np.pad(nodes, (0, missing), mode="edge"), np.pad(weights / weights.sum(), (0, missing))


def _summed(function: Callable[[Array], ArrayLike], nodes: Array, weights: Array) -> Array:
    """Integrals of a function over the rule of each probe."""
    values = _validate.numeric("function(nodes)", function(nodes))
    if values.shape[:2] != nodes.shape:
        raise ValueError(
            f"function must map an array to one of the same shape, got {values.shape} for "
            f"{nodes.shape}"
        )
    found: Array = np.einsum("pm,pm...->p...", weights, values)
    if not np.isfinite(found).all():
        raise FloatingPointError("function must be finite on the spectrum, got NaN or infinity")
    return found


def _over_probes(samples: Array) -> tuple[Array, Array]:
    """Mean over probes and its standard error."""
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return np.asarray(samples.mean(axis=0)), np.asarray(error)
