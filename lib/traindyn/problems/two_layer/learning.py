r"""Learning at infinite precision: how many classes fill, how each grows, how far it goes.

Started without overlap, every neuron joins the class of one centroid and stays: the sign of
:math:`v_i` selects the label, the sign of the first overlap the centroid. A neuron answers its
own centroid alone, so that the classes do not interact and within a class all neurons keep their
proportions. With :math:`A = |v|` and :math:`B = |m|` over the class of a centroid of length
:math:`\rho` and gain :math:`\kappa = p \rho`,

.. math:: \dot A = \kappa\, \sigma(-\rho A B)\, B - \alpha A, \qquad
          \dot B = \kappa\, \sigma(-\rho A B)\, A - \alpha B, \qquad B(0) = 0,

and :math:`v_i(t) = v_i(0) A(t) / A(0)`. As :math:`A^2 - B^2 = A(0)^2 e^{-2 \alpha t}` there is one
scalar equation for each class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.special import expit, lambertw

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.two_layer.equilibria import ZERO, classes
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture, checked

__all__ = ["from_zero_overlap", "growth", "norm_bounds"]

_TOLERANCE = 1e-12

# Largest value of x sigma(-x), the Lambert W function at 1 / e.
_MOST_PULL = float(lambertw(np.exp(-1.0)).real)


def growth(
    start: float,
    ridge: float,
    times: ArrayLike,
    *,
    gain: float = 0.25,
    radius: float = 1.0,
) -> tuple[Array, Array]:
    r"""Lengths A and B of both layers over a class that starts without overlap.

    Integrates :math:`x = A B`,

    .. math:: \dot x = \kappa\, \sigma(-\rho x) \sqrt{A(0)^4 e^{-4 \alpha t} + 4 x^2}
              - 2 \alpha x.

    Parameters
    ----------
    start : float
        A(0), the length of v over the class; non-negative.
    ridge : float
        Non-negative.
    times : array_like, shape (T,)
        Increasing, from 0 on.
    gain : float, default 1/4
        Probability of the centroid times its length.
    radius : float, default 1
        Length of the centroid.

    Returns
    -------
    A, B : ndarray, shape (T,)

    Raises
    ------
    ValueError
        If an argument is out of range.
    FloatingPointError
        If the equation could not be integrated.

    Examples
    --------
    In the XOR mixture the product tends to ``log((1 - 4 ridge) / (4 ridge))``:

    >>> from traindyn.problems.two_layer.learning import growth
    >>> A, B = growth(1.0, 0.05, [0.0, 400.0])
    >>> (A * B).round(6).tolist()
    [0.0, 1.386294]
    """
    start = _validate.non_negative("start", start)
    ridge = _validate.non_negative("ridge", ridge)
    gain, radius = _validate.positive("gain", gain), _validate.positive("radius", radius)
    grid = _validate.increasing("times", times)

    def slope(t: float, x: Array) -> Array:
        total = np.hypot(start**2 * np.exp(-2 * ridge * t), 2 * x)
        return np.asarray(gain * expit(-radius * x) * total - 2 * ridge * x)

    product = np.zeros_like(grid)
    if start > 0 and grid[-1] > 0:
        solved = solve_ivp(
            slope,
            (0.0, grid[-1]),
            np.zeros(1),
            method="DOP853",
            t_eval=grid,
            rtol=_TOLERANCE,
            atol=_TOLERANCE * min(1.0, start**2),
        )
        if not solved.success:
            raise FloatingPointError(f"the class equation was not integrated: {solved.message}")
        product = solved.y[0]
    difference = start**2 * np.exp(-2 * ridge * grid)
    A = np.sqrt(0.5 * (np.hypot(difference, 2 * product) + difference))
    return A, np.divide(product, A, out=np.zeros_like(A), where=A > 0)


def from_zero_overlap(
    problem: TwoLayerMixture,
    v: ArrayLike,
    assignment: ArrayLike,
    times: ArrayLike,
    *,
    R_perp: ArrayLike,
) -> Statistics:
    """Effective dynamics at infinite precision from zero overlap, one equation per class.

    Parameters
    ----------
    problem : TwoLayerMixture
        Such as the binary or the XOR mixture, see
        :func:`~traindyn.problems.two_layer.equilibria.classes`. Its precision is not used.
    v : array_like, shape (K,)
        Second layer at the start.
    assignment : array_like of int, shape (K,)
        Class (centroid) of each neuron, whose label is one where v is positive and zero where
        it is negative, as from :func:`~traindyn.problems.two_layer.equilibria.initial_set`;
        -1 for a neuron with v = 0.
    times : array_like, shape (T,)
        Increasing, from 0 on.
    R_perp : array_like, shape (K, K)
        At the start.

    Returns
    -------
    Statistics
        With a leading axis of length T.

    Raises
    ------
    ValueError
        If the shapes disagree, or a class has not the label its neuron learns.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.learning import from_zero_overlap
    >>> problem = TwoLayerMixture.xor(4, 20, precision=100.0, ridge=0.05)
    >>> found = from_zero_overlap(
    ...     problem, [1.0, 0.5, -1.0, -2.0], [0, 1, 2, 3], [0.0, 400.0], R_perp=np.eye(4)
    ... )
    >>> found.v[-1].round(4).tolist()
    [1.1774, 1.1774, -1.1774, -1.1774]
    """
    K, known = problem.width, classes(problem)
    start = _validate.finite("v", v, shape=(K,))
    gram = _validate.positive_semidefinite("R_perp", R_perp, size=K, scale=1.0)
    grid = _validate.increasing("times", times)
    chosen = np.asarray(assignment)
    if (
        chosen.shape != (K,)
        or chosen.dtype.kind not in "iu"
        or not np.isin(chosen, np.arange(ZERO, len(known.signs))).all()
    ):
        raise ValueError(
            f"assignment must hold {K} classes in [0, {len(known.signs) - 1}] or {ZERO}, "
            f"got {chosen.tolist()}"
        )
    for i, c in enumerate(chosen.tolist()):
        if np.sign(start[i]) != (0.0 if c == ZERO else known.signs[c]) and start[i] != 0:
            raise ValueError(
                f"assignment must give neuron {i} a class of label {int(start[i] > 0)} for "
                f"v = {start[i]:g}, got {c}"
            )
    second = np.zeros((grid.size, K))
    overlaps = np.zeros((grid.size, K, problem.signal))
    for c in sorted(set(chosen.tolist()) - {ZERO}):
        members = np.flatnonzero((chosen == c) & (start != 0))
        if members.size == 0:
            continue
        length = float(np.linalg.norm(start[members]))
        A, B = growth(
            length, problem.ridge, grid, gain=float(known.gains[c]), radius=float(known.radii[c])
        )
        shares = start[members] / length
        second[:, members] = A[:, None] * shares
        overlaps[:, members] = B[:, None, None] * np.abs(shares)[:, None] * known.directions[c]
    decay = np.exp(-2 * problem.ridge * grid)
    return Statistics(second, overlaps, decay[:, None, None] * gram)


def norm_bounds(
    problem: TwoLayerMixture, statistics: Statistics, *, c_delta: float = 0.0
) -> tuple[float, float]:
    r"""Bounds of :math:`|v|^2` and :math:`|W|_F^2` along the effective dynamics, for all times.

    Since :math:`-e\, o \le \max_x x \sigma(-x) = W_0(1/e) \approx 0.2785` for every input, at
    every precision :math:`\tfrac{d}{dt} |v|^2 \le 2 W_0(1/e) - 2 \alpha |v|^2`, and the same for
    :math:`|W|_F^2` up to the corrector :math:`c_\delta |v|^2 / \lambda`. BGHJ Lemma 5.19 has the
    limit of infinite precision. The roots of both bounds serve as the L of BGHJ Proposition 5.2.

    Parameters
    ----------
    problem : TwoLayerMixture
        Of positive ridge.
    statistics : Statistics
        The start.
    c_delta : float, default 0
        Limit of ``step_size * dimension``; it enters the bound of the first layer.

    Returns
    -------
    second, first : float
        Bound of :math:`|v|^2`, then of :math:`|W|_F^2`.

    Raises
    ------
    ValueError
        If the ridge is zero.

    Examples
    --------
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.learning import norm_bounds
    >>> problem = TwoLayerMixture.xor(4, 20, precision=10.0, ridge=0.05)
    >>> [round(bound, 4) for bound in norm_bounds(problem, problem.initial_statistics())]
    [5.5693, 5.5693]
    """
    statistics = checked(problem, statistics, single=True)
    ridge = _validate.positive("problem.ridge", problem.ridge)
    c_delta = _validate.non_negative("c_delta", c_delta)
    v, m, R_perp = statistics
    second = max(float(v @ v), _MOST_PULL / ridge)
    fed = _MOST_PULL + 0.5 * c_delta / problem.precision * second
    return second, max(float(np.square(m).sum() + np.trace(R_perp)), fed / ridge)
