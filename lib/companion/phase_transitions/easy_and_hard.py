r"""Information and generative exponents of a target, and targets that are symmetric.

The *information exponent* is the least degree :math:`p \ge 1` of a Hermite tensor that
correlates with the label itself, the *generative exponent* the least degree of one that
correlates with any function of the label: :math:`E[He_p(z) \mid y]` is not zero. Given
directions already known, functions of the label and of these directions count: that is the
exponent of the next leap. For one direction, hard means a generative exponent of at least
two, and the algorithmic threshold is finite if and only if it is two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.multi_index import _grid
from traindyn.problems.multi_index.targets import Target, orthonormal

__all__ = ["Exponent", "generative_exponent", "information_exponent", "symmetric_pair"]

_KNOWN_DEGREE = 4


class Exponent(NamedTuple):
    """The least degree with a correlation.

    Attributes
    ----------
    order : int
    size : float
        Norm of the correlations of this degree (of the best function of unit variance, among
        those tried, for the generative exponent).
    below : float
        Largest norm at lower degrees, zero up to the quadrature error.
    """

    order: int
    size: float
    below: float


def information_exponent(target: Target, *, largest: int = 8, tolerance: float = 1e-6) -> Exponent:
    """Find the least degree at which the label itself has a Hermite coefficient.

    Parameters
    ----------
    target : Target
        With at most four directions; noise plays no role.
    largest : int, default 8
        Degree at which the search ends.
    tolerance : float, default 1e-6
        Size below which a coefficient counts as zero, relative to the label's spread.

    Raises
    ------
    ValueError
        If there is none up to the largest degree, or an argument is out of range.

    Examples
    --------
    >>> from companion.phase_transitions.easy_and_hard import information_exponent
    >>> from traindyn.problems.multi_index import phase_retrieval, polynomial
    >>> information_exponent(phase_retrieval()).order
    2
    >>> information_exponent(polynomial({(3,): 1.0, (1,): -3.0})).order
    3
    """
    nodes, weights, labels = _setting(target)
    centred = labels - weights @ labels
    spread = np.sqrt(weights @ centred**2)
    # The weights sum to one only up to rounding, so neither is a constant's spread exactly zero.
    if spread <= 1e-12 * np.abs(labels).max():
        raise ValueError(f"target must not be constant, got {target.name}")
    functions = (weights * centred / spread)[:, None]
    return _first(functions, nodes, largest, tolerance)


def generative_exponent(
    target: Target,
    *,
    known: ArrayLike | None = None,
    largest: int = 6,
    tolerance: float = 1e-6,
) -> Exponent:
    """Find the least degree at which some function of the label has a Hermite coefficient.

    Parameters
    ----------
    target : Target
        With at most four directions.
    known : array_like, shape (k, e), optional
        Orthonormal basis of directions already known, ``e < k``.
    largest : int, default 6
        Degree at which the search ends.
    tolerance : float, default 1e-6
        Size below which the correlations of a degree count as zero.

    Returns
    -------
    Exponent
        Of the directions that are not known.

    Raises
    ------
    ValueError
        If there is none up to the largest degree, or an argument is out of range.

    Examples
    --------
    >>> from companion.phase_transitions.easy_and_hard import generative_exponent
    >>> from traindyn.problems.multi_index import polynomial
    >>> generative_exponent(polynomial({(3,): 1.0, (1,): -3.0})).order
    1
    """
    nodes, weights, labels = _setting(target)
    bank = _grid.label_functions(labels)
    if known is not None:
        basis = orthonormal("known", known, rows=target.k)
        if basis.shape[1] == target.k:
            raise ValueError("known must leave a direction unknown, got a basis of all of them")
        inside = nodes @ basis
        tables = [_grid.hermite(inside, order) for order in range(_KNOWN_DEGREE + 1)]
        joint = np.concatenate(tables, axis=1)
        bank = (bank[:, :, None] * joint[:, None, :]).reshape(len(nodes), -1)
        left = np.linalg.svd(basis)[0]
        nodes = nodes @ left[:, basis.shape[1] :]
    functions = _grid.orthonormal_columns(bank, weights) * weights[:, None]
    return _first(functions, nodes, largest, tolerance)


def _setting(target: Target) -> tuple[Array, Array, Array]:
    if target.k > _grid.LARGEST_DIMENSION:
        raise ValueError(
            f"target must have at most {_grid.LARGEST_DIMENSION} directions, got {target.k}"
        )
    rule = _grid.midpoint(target.k)
    return rule.nodes, rule.weights, target.signal(rule.nodes)


def _first(weighted: Array, coordinates: Array, largest: int, tolerance: float) -> Exponent:
    """First degree at which weighted functions (n, T) have a coefficient."""
    most = _validate.integer("largest", largest, least=1)
    level = _validate.positive("tolerance", tolerance)
    below = 0.0
    for order in range(1, most + 1):
        coefficients = weighted.T @ _grid.hermite(coordinates, order)
        size = float(np.linalg.norm(coefficients, ord=2))
        if size > level:
            return Exponent(order, size, below)
        below = max(below, size)
    raise ValueError(
        f"target must have an exponent of at most {most}, got no correlation above {level:g} "
        f"up to there (largest {below:.3g})"
    )


def symmetric_pair(
    function: Callable[[Array, Array], Array],
    *,
    noise: float = 0.0,
    low: float = -np.inf,
    high: float = np.inf,
) -> Target:
    """Return a symmetric function of two coordinates, the mean of g over their two orders.

    The difference of the coordinates is hard for every one of them; their sum is easy in
    general, but not if the function is even (MW, Symmetric target, the easy direction, corrected).

    Parameters
    ----------
    function : callable
        g, element by element.
    noise : float, default 0.0
        Standard deviation of the Gaussian noise of the labels.
    low, high : float
        Bounds of the function, if it has any.

    Examples
    --------
    >>> from companion.phase_transitions.easy_and_hard import symmetric_pair
    >>> import numpy as np
    >>> symmetric_pair(lambda a, b: a * b**2).signal(np.array([[1.0, 2.0]]))
    array([3.])
    """
    return Target(
        "symmetric pair",
        2,
        lambda z: (function(z[:, 0], z[:, 1]) + function(z[:, 1], z[:, 0])) / 2,
        noise=noise,
        low=low,
        high=high,
    )
