"""The Hessian of a multi-index network in the limit: resolvent, residues and shares of an outlier.

Weights that are bounded give the limit law of :mod:`traindyn.laws.weighted`; its outliers carry a
share of the hard directions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.laws import WeightedMarchenkoPastur

__all__ = ["limit_resolvent", "limit_share", "residue"]

_BATCH_ENTRIES = 2**20


def limit_resolvent(
    weights: ArrayLike,
    features: ArrayLike,
    sample_ratio: float,
    z: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
) -> NDArray[np.complex128]:
    r"""Return the limit of the resolvent on the hard directions.

    .. math:: \Big(E\Big[\frac{\delta G}{\delta + \alpha(z) G}\, s s^T\Big] - z I\Big)^{-1}

    with the Stieltjes transform :math:`\alpha` of the bulk. Its poles are the informative
    outliers and its residues their overlaps; in the bulk, its imaginary part over
    :math:`\pi` is the density of the hard directions' weight on the eigenvectors (MW, Main
    theorem).

    Parameters
    ----------
    weights : array_like, shape (N,)
        Draws of G.
    features : array_like, shape (N,) or (N, r)
        The hard coordinates of the same draws.
    sample_ratio : float
        Samples per dimension.
    z : array_like of complex
        Off the real axis.
    probabilities : array_like, shape (N,), optional
        Of the draws; uniform unless given.

    Returns
    -------
    ndarray, shape (*z.shape, r, r)

    Raises
    ------
    ValueError
        If an argument is out of range or z is real.
    FloatingPointError
        If the equation of the bulk could not be solved.

    Examples
    --------
    For weights that are independent of the feature it is the resolvent of the bulk itself.

    >>> import numpy as np
    >>> from companion.phase_transitions.hessian.limit import limit_resolvent
    >>> from traindyn.laws import MarchenkoPastur
    >>> entry = limit_resolvent([1.0, 1.0], [-1.0, 1.0], 4.0, 1 + 0.1j)
    >>> bool(np.isclose(entry[0, 0], MarchenkoPastur(0.25).stieltjes(1 + 0.1j)))
    True
    """
    return _Limit(weights, features, sample_ratio, probabilities)(
        np.asarray(z, dtype=np.complex128)
    )


def limit_share(
    weights: ArrayLike,
    features: ArrayLike,
    sample_ratio: float,
    x: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    points: int = 64,
) -> Array:
    r"""Return the limit of the squared overlaps of all eigenvectors up to a level, summed.

    The spectral measure of the hard directions on :math:`(-\infty, x]`, outliers included:
    :math:`\frac r2 - \frac1\pi \int_0^\infty \operatorname{Re} \operatorname{tr} R(x + iu)\, du`
    with the resolvent R of :func:`limit_resolvent`, smooth on that line.

    Parameters
    ----------
    weights, features, sample_ratio, probabilities
        As for :func:`limit_resolvent`.
    x : array_like
        Not at an outlier.
    points : int, default 64
        Nodes on the line.

    Returns
    -------
    ndarray
        Of the shape of `x`; it grows from 0 to r.

    Raises
    ------
    ValueError, FloatingPointError
        As for :func:`limit_resolvent`.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.phase_transitions.hessian.limit import limit_share
    >>> weights, signs = np.array([1.0, 1.0]), np.array([-1.0, 1.0])
    >>> limit_share(weights, signs, 4.0, [0.2, 2.3]).round(6)
    array([0., 1.])
    """
    levels = _validate.finite("x", x)
    count = _validate.integer("points", points, least=2)
    limit = _Limit(weights, features, sample_ratio, probabilities)
    edges = limit.law.edges
    nodes, masses = np.polynomial.legendre.leggauss(count)
    share = (nodes + 1) / 2
    # The half-line on (0, 1), nodes crowding on the scale of the spectrum.
    height = (edges[-1] - edges[0]) * share / (1 - share)
    stretch = (edges[-1] - edges[0]) / (1 - share) ** 2 * masses / 2
    traces = np.trace(limit(levels[..., None] + 1j * height), axis1=-2, axis2=-1)
    return np.asarray(limit.rank / 2 - traces.real @ stretch / np.pi)


def residue(
    resolvent: Callable[[complex], Any], centre: float, radius: float, *, points: int = 64
) -> Any:
    r"""Return minus the contour integral of a resolvent over :math:`2 \pi i`.

    For the resolvent :math:`(H - z)^{-1}` this is the projector on the eigenvectors of the
    eigenvalues inside the circle (MW, Residue formula), for an entry of it that of the projector.
    The trapezoidal rule on a circle converges geometrically.

    Parameters
    ----------
    resolvent : callable
        Of a complex number; real on the real axis, so that half the circle is enough.
    centre, radius : float
        The circle; no eigenvalue may lie on it.
    points : int, default 64
        Even; half as many evaluations.

    Returns
    -------
    ndarray
        Of the shape of `resolvent`'s values.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.phase_transitions.hessian.limit import residue
    >>> matrix = np.diag([-1.0, 1.0, 2.0])
    >>> projector = residue(lambda z: np.linalg.inv(matrix - z * np.eye(3)), -1.0, 0.5)
    >>> bool(np.allclose(projector, np.diag([1.0, 0.0, 0.0])))
    True
    """
    count = _validate.integer("points", points, least=2)
    if count % 2:
        raise ValueError(f"points must be even, got {points}")
    middle, length = _validate.number("centre", centre), _validate.positive("radius", radius)
    angles = 2 * np.pi * (np.arange(count // 2) + 0.5) / count
    arms = length * np.exp(1j * angles)
    terms = [np.real(resolvent(complex(middle + arm)) * arm) for arm in arms]
    return -np.sum(terms, axis=0) * 2 / count


class _Limit:
    """The limit of the resolvent as a function of z."""

    def __init__(
        self,
        weights: ArrayLike,
        features: ArrayLike,
        sample_ratio: float,
        probabilities: ArrayLike | None,
    ) -> None:
        ratio = 1 / _validate.positive("sample_ratio", sample_ratio)
        self.law = WeightedMarchenkoPastur(weights, ratio, probabilities=probabilities)
        g = _validate.finite("weights", weights, shape=(None,))
        s = _validate.finite("features", features)
        if s.ndim not in (1, 2) or len(s) != g.size or s.size == 0:
            raise ValueError(f"features must have {g.size} rows, not empty, got shape {s.shape}")
        s = s.reshape(len(s), -1)
        self.rank = int(s.shape[1])
        share = np.full(g.size, 1 / g.size) if probabilities is None else np.asarray(probabilities)
        products = (s[:, :, None] * s[:, None, :]).reshape(g.size, -1)
        self._terms, self._scaled = products * (share * g)[:, None], g * ratio

    def __call__(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        flat = z.ravel()
        alpha = np.asarray(self.law.stieltjes(flat))
        phi = np.empty((flat.size, self.rank**2), dtype=np.complex128)
        batch = max(1, _BATCH_ENTRIES // self._scaled.size)
        for first in range(0, flat.size, batch):
            part = slice(first, first + batch)
            phi[part] = (1 / (1 + np.multiply.outer(alpha[part], self._scaled))) @ self._terms
        schur = phi.reshape(-1, self.rank, self.rank) - flat[:, None, None] * np.eye(self.rank)
        result = np.asarray(np.linalg.inv(schur), dtype=np.complex128)
        return result.reshape(*z.shape, self.rank, self.rank)
