"""Gradient descent on one example of a quadratic model: fixed points of the map and its slow start.

The map itself is :mod:`traindyn.catapults.maps`, whose variables u, v and w are used here too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.catapults.maps import Reduced

__all__ = [
    "Equilibrium",
    "equilibria",
    "initial",
    "jacobian",
    "reduced",
    "subcritical_drift",
]


def initial(
    width: int, replicas: int, *, rng: int | np.random.SeedSequence | np.random.Generator
) -> tuple[Array, Array]:
    r"""Draw output and tangent kernel at the start, in law, at a cost that no width changes.

    For a rectified linear unit, one input with :math:`|x|^2 = d`, a standard normal first layer
    and random signs: with N the number of open gates, binomial, and N standard normal
    :math:`s_k`, the products of sign and preactivation,

    .. math:: f = m^{-1/2} \sum s_k, \qquad \lambda = \frac1m \Big(N + \sum s_k^2\Big) ,

    and the sums have the law of :math:`\sqrt N \xi` and :math:`\xi^2 + \chi^2_{N-1}`.

    Parameters
    ----------
    width : int
        Number m of neurons.
    replicas : int
        Number of independent starts.
    rng : int, SeedSequence or Generator
        Of the number of open gates and of the two sums.

    Returns
    -------
    outputs, kernels : ndarray, shape (replicas,)

    Examples
    --------
    >>> from companion.catapults.one_example import initial
    >>> outputs, kernels = initial(10**12, 3, rng=0)
    >>> kernels.round(4).tolist()
    [1.0, 1.0, 1.0]
    """
    m = _validate.integer("width", width, least=1)
    count = _validate.integer("replicas", replicas, least=1)
    generator = _validate.generator("rng", rng)
    active = generator.binomial(m, 0.5, size=count)
    sums = generator.standard_normal(count)
    others = np.where(active > 1, generator.chisquare(np.maximum(active - 1, 1)), 0.0)
    squares = np.where(active > 0, sums**2 + others, 0.0)
    return np.sqrt(active / m) * sums, (active + squares) / m


class Equilibrium(NamedTuple):
    """A fixed point of the map.

    Attributes
    ----------
    name : str
    residual, kernel : float
    eigenvalues : ndarray, shape (2,)
        Of the Jacobian, the larger modulus first.
    """

    name: str
    residual: float
    kernel: float
    eigenvalues: NDArray[np.complex128]

    @property
    def unstable(self) -> bool:
        """An eigenvalue lies outside the unit circle."""
        return bool(abs(self.eigenvalues[0]) > 1 + 1e-12)


def reduced(
    residual: ArrayLike,
    kernel: ArrayLike,
    *,
    step_size: float,
    coupling: float,
    label: float = 0.0,
) -> Reduced:
    r"""Return u, v, w of states (ZHU, above (3.13)).

    Parameters
    ----------
    residual, kernel : array_like
        Of shapes that broadcast.
    step_size, coupling, label : float
        :math:`\eta`, c and y; the first two positive.

    Returns
    -------
    Reduced
        :math:`u = c \eta^2 e^2`, :math:`v = \eta \lambda` and :math:`w = c \eta^2 e y`, each of
        the common shape.

    Examples
    --------
    >>> from companion.catapults.one_example import reduced
    >>> u, v, w = reduced(2.0, 1.5, step_size=2.0, coupling=0.25, label=1.0)
    >>> float(u), float(v), float(w)
    (4.0, 3.0, 2.0)
    """
    e, at = _validate.broadcast(
        residual=_validate.finite("residual", residual), kernel=_validate.finite("kernel", kernel)
    )
    eta, y = _validate.positive("step_size", step_size), _validate.number("label", label)
    scale = _validate.positive("coupling", coupling) * eta**2
    return Reduced(scale * e**2, eta * at, scale * e * y)


def jacobian(
    residual: float, kernel: float, *, step_size: float, coupling: float, label: float = 0.0
) -> Array:
    r"""Return the derivative of one step in residual and kernel.

    Parameters
    ----------
    residual, kernel, step_size, coupling, label : float
        e, :math:`\lambda`, :math:`\eta`, c and y; step size and coupling positive.

    Returns
    -------
    ndarray, shape (2, 2)
        Rows: residual and kernel after the step; columns: before it.

    Examples
    --------
    >>> from companion.catapults.one_example import jacobian
    >>> jacobian(0.0, 1.0, step_size=0.5, coupling=0.1, label=1.0).tolist()
    [[0.5, -0.0], [-0.2, 1.0]]
    """
    e, at = _validate.number("residual", residual), _validate.number("kernel", kernel)
    eta, c = _validate.positive("step_size", step_size), _validate.positive("coupling", coupling)
    y = _validate.number("label", label)
    return np.array(
        [
            [1 - eta * at + c * eta**2 * (3 * e**2 + 2 * y * e), -eta * e],
            [-4 * eta * c * (2 * e + y) + 2 * eta**2 * c * e * at, 1 + eta**2 * c * e**2],
        ]
    )


def equilibria(
    *, step_size: float, coupling: float, label: float, kernel: float
) -> list[Equilibrium]:
    r"""Return the fixed points of the map, each with the eigenvalues that decide on its stability.

    There is a line of them at zero residual, stable for :math:`0 < \eta\lambda < 2` (its second
    eigenvalue is one: along the line). The other three are isolated and unstable: output and
    kernel zero, and the pair u = 4, v = 4 + w, which the proof of ZHU Theorem 3.3.4 leaves out.

    Parameters
    ----------
    step_size, coupling : float
        Positive.
    label : float
        y, of any sign.
    kernel : float
        Where on the line.

    Returns
    -------
    list of Equilibrium
        Four.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from companion.catapults.one_example import equilibria
    >>> for each in equilibria(step_size=2.5, coupling=1e-4, label=1.0, kernel=0.5):
    ...     print(each.name, each.eigenvalues.round(4).real.tolist(), each.unstable)
    interpolation [1.0, -0.25] False
    zero output [1.0506, 0.9506] True
    large positive residual [9.0, 5.05] True
    large negative residual [9.0, 4.95] True
    """
    eta = _validate.positive("step_size", step_size)
    c = _validate.positive("coupling", coupling)
    y = _validate.number("label", label)
    far = 2 / (eta * np.sqrt(c))
    points = [
        ("interpolation", 0.0, _validate.number("kernel", kernel)),
        ("zero output", -y, 0.0),
        ("large positive residual", far, (4 + c * eta**2 * far * y) / eta),
        ("large negative residual", -far, (4 - c * eta**2 * far * y) / eta),
    ]
    found = []
    for name, e, at in points:
        values = np.linalg.eigvals(jacobian(e, at, step_size=eta, coupling=c, label=y))
        order = np.argsort(-np.abs(values))
        found.append(Equilibrium(name, float(e), float(at), values[order].astype(np.complex128)))
    return found


def subcritical_drift(u: float, v: float, w: float = 0.0) -> float:
    r"""Return the whole change of :math:`v = \eta\lambda` below the critical step size.

    To first order in u and w, which are O(1/m) at the start: summing the geometric series of
    residuals in :math:`v' - v = -u (4 - v) - 4 w`,

    .. math:: v_\infty - v_0 = -\frac{u_0 (4 - v_0)}{v_0 (2 - v_0)} - \frac{4 w_0}{v_0} ,

    the constant in ZHU, Theorem B.3.1.

    Parameters
    ----------
    u, v, w : float
        At the start, v in (0, 2).

    Raises
    ------
    ValueError
        If v lies outside (0, 2).

    Examples
    --------
    >>> from companion.catapults.one_example import subcritical_drift
    >>> round(subcritical_drift(1.21e-6, 1.0, -0.44e-6) * 1e6, 3)
    -1.87
    """
    u, v, w = _validate.number("u", u), _validate.number("v", v), _validate.number("w", w)
    if not 0 < v < 2:
        raise ValueError(f"v must be in (0, 2), got {v:g}")
    return -u * (4 - v) / (v * (2 - v)) - 4 * w / v
