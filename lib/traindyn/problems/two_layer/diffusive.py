r"""Diffusive limits around fixed points at infinite precision (BGJ Propositions 4.3 and 5.1).

At a fixed point the neurons of class c have sizes :math:`a_i = |v_i| = |m_i|` with
:math:`\sum a_i^2 = C_c`. Let :math:`\tilde v_i` and :math:`\tilde m_i` be :math:`\sqrt N` times
the deviations of these two sizes, for step sizes :math:`c_\delta / N`. They follow

.. math:: d\tilde v_i &= \big[ \alpha (\tilde m_i - \tilde v_i)
            - \alpha (1 - \alpha / \kappa_c) |s_c|\, a_i\, p_c \big] dt + \alpha a_i\, d\beta_c, \\
          d\tilde m_i &= \big[ \alpha (\tilde v_i - \tilde m_i)
            - \alpha (1 - \alpha / \kappa_c) |s_c|\, a_i\, p_c \big] dt + \alpha a_i\, d\beta_c,

with :math:`p_c = \sum_{k \in I_c} a_k (\tilde v_k + \tilde m_k)` and one Brownian motion per
class, the same for all its neurons, of covariance
:math:`d\langle \beta_c, \beta_{c'} \rangle = c_\delta (1_{c = c'} / P_c - 1)\, dt` for class
probabilities :math:`P_c`: a draw from one class is none from another. In the binary mixture this
is rank one, with 1 and -1; in the XOR mixture it has 3 on and -1 off the diagonal.

The source prints the opposite sign in front of :math:`p_c`, with which it would grow. In fact
it is an Ornstein-Uhlenbeck process, :func:`radial`; :math:`\tilde v - \tilde m` decays without
noise, and the part of :math:`\tilde v + \tilde m` along the set of fixed points does not move.
Neurons at zero stay there exactly and are left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.diffusion import LinearDiffusion
from traindyn.problems.two_layer import limit
from traindyn.problems.two_layer.equilibria import FixedSet, locate
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture, checked

__all__ = ["around", "blown_up", "radial", "radial_part", "radial_pull"]


class _Base(NamedTuple):
    """A fixed point in the coordinates of its diffusion."""

    place: FixedSet
    neurons: NDArray[np.int64]  # that do not vanish
    group: NDArray[np.int64]  # class of each of them
    sizes: Array  # |v_i| of each
    v_sign: Array
    m_sign: Array  # sign of m along the line of the class
    lines: NDArray[np.int64]


def around(problem: TwoLayerMixture, base: Statistics, *, c_delta: float = 1.0) -> LinearDiffusion:
    r"""Limit of :math:`\sqrt N (u - u_*)` at a fixed point, for step sizes c_delta / N.

    BGJ Propositions 4.3 and 5.1 are those at quarter circles, with the other sign of p.

    Parameters
    ----------
    problem : TwoLayerMixture
        Its precision is not used: it stands for infinity.
    base : Statistics
        A fixed point at infinite precision (:mod:`traindyn.problems.two_layer.equilibria`),
        with ``R_perp = 0``.
    c_delta : float, default 1
        Limit of ``step_size * dimension``; only the noise depends on it, and is proportional to it.

    Returns
    -------
    LinearDiffusion
        In the coordinates of :func:`blown_up`: v of the neurons that do not vanish, then their
        m along the line of their class.

    Raises
    ------
    ValueError
        If `base` is not a fixed point.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.diffusive import around
    >>> from traindyn.problems.two_layer.equilibria import FixedSet
    >>> problem = TwoLayerMixture.binary(2, 20, precision=np.inf, ridge=0.1)
    >>> radius = np.sqrt(np.log(4.0))
    >>> base = FixedSet(problem, (0, 0)).at([0.6 * radius, 0.8 * radius])
    >>> limit = around(problem, base)
    >>> np.linalg.matrix_rank(limit.noise)
    np.int64(1)
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    known = _read(problem, base)
    ridge, count = problem.ridge, len(known.neurons)
    signs = np.concatenate([known.v_sign, known.m_sign])
    exchange = np.kron(np.array([[-1.0, 1.0], [1.0, -1.0]]), ridge * np.eye(count))
    kicks = c_delta * ridge**2 * np.outer(known.sizes, known.sizes)
    kicks = kicks * _beta(problem)[np.ix_(known.group, known.group)]
    turn = np.outer(signs, signs)
    return LinearDiffusion(
        _names(known), turn * exchange - radial_pull(problem, base), turn * np.tile(kicks, (2, 2))
    )


def radial_pull(problem: TwoLayerMixture, base: Statistics) -> Array:
    r"""Part of the drift of :func:`around` that pulls classes back to their size.

    Returns
    -------
    ndarray, shape (2 n, 2 n)
        The matrix of :math:`\alpha (1 - \alpha / \kappa_c) |s_c|\, a_i\, p_c`; positive
        semi-definite, it enters with a minus sign.
    """
    known = _read(problem, base)
    classes = known.place.classes
    rates = problem.ridge * (1.0 - problem.ridge / classes.gains) * classes.radii
    same = known.group[:, None] == known.group
    pull = same * np.outer(rates[known.group] * known.sizes, known.sizes)
    signs = np.concatenate([known.v_sign, known.m_sign])
    return np.asarray(np.outer(signs, signs) * np.tile(pull, (2, 2)))


def radial(problem: TwoLayerMixture, base: Statistics, *, c_delta: float = 1.0) -> LinearDiffusion:
    r"""Limit of :math:`p_c`, the noisy direction of each occupied class.

    .. math:: dp_c = -2 \alpha (1 - \alpha / \kappa_c) |s_c|\, C_c\, p_c\, dt
              + 2 \alpha C_c\, d\beta_c ,

    with stationary variance :math:`\alpha C / (1 - 2 \alpha)` in the binary mixture and
    :math:`3 \alpha C / (1 - 4 \alpha)`, correlation -1/3, in the XOR mixture.

    Parameters
    ----------
    problem, base, c_delta
        As for :func:`around`.

    Returns
    -------
    LinearDiffusion
        One coordinate per occupied class, in increasing order; see :func:`radial_part`.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.diffusive import radial
    >>> from traindyn.problems.two_layer.equilibria import FixedSet
    >>> problem = TwoLayerMixture.binary(2, 20, precision=np.inf, ridge=0.1)
    >>> radius = np.sqrt(np.log(4.0))
    >>> base = FixedSet(problem, (0, 0)).at([0.6 * radius, 0.8 * radius])
    >>> radial(problem, base).stationary().round(5).tolist()
    [[0.17329]]
    """
    base = checked(problem, base, name="base", single=True)
    c_delta = _validate.non_negative("c_delta", c_delta)
    place = locate(problem, base)
    ridge, classes = problem.ridge, place.classes
    kept = list(place.occupied)
    sizes = classes.sizes[kept]
    rates = 2.0 * ridge * (1.0 - ridge / classes.gains[kept]) * classes.radii[kept] * sizes
    kicks = 2.0 * ridge * sizes
    noise = c_delta * np.outer(kicks, kicks) * _beta(problem)[np.ix_(kept, kept)]
    return LinearDiffusion(tuple(f"p_{c}" for c in kept), -np.diag(rates), noise)


def blown_up(problem: TwoLayerMixture, base: Statistics, statistics: Statistics) -> Array:
    r"""Coordinates :math:`\sqrt N (u - u_*)` of :func:`around`, with N the dimension.

    Parameters
    ----------
    problem : TwoLayerMixture
        Its dimension sets the scale.
    base : Statistics
        The fixed point.
    statistics : Statistics
        Leading axes allowed, as in a trajectory.

    Returns
    -------
    ndarray, shape (..., 2 n)
        For n neurons that do not vanish.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.diffusive import blown_up
    >>> from traindyn.problems.two_layer.equilibria import FixedSet
    >>> problem = TwoLayerMixture.binary(2, 100, precision=np.inf, ridge=0.1)
    >>> radius = np.sqrt(np.log(4.0))
    >>> base = FixedSet(problem, (0, 0)).at([0.6 * radius, 0.8 * radius])
    >>> blown_up(problem, base, base._replace(v=base.v + 0.1)).round(12).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    statistics = checked(problem, statistics)
    known = _read(problem, base)
    return math.sqrt(problem.dimension) * (
        _coordinates(problem, known, statistics) - _coordinates(problem, known, base)
    )


def radial_part(problem: TwoLayerMixture, base: Statistics, u: ArrayLike) -> Array:
    """Return p of each occupied class, shape (..., classes), from coordinates (..., 2 n).

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.diffusive import radial_part
    >>> from traindyn.problems.two_layer.equilibria import FixedSet
    >>> problem = TwoLayerMixture.binary(2, 100, precision=np.inf, ridge=0.1)
    >>> base = FixedSet(problem, (0, 0)).at(np.sqrt(np.log(4.0)) * np.array([0.6, 0.8]))
    >>> radial_part(problem, base, [1.0, 0.0, 0.0, 0.0]).round(5).tolist()
    [0.70645]
    """
    known = _read(problem, base)
    count = len(known.neurons)
    values = _validate.ending("u", u, (2 * count,))
    grown = values[..., :count] * known.v_sign + values[..., count:] * known.m_sign
    mine = known.group[:, None] == np.array(known.place.occupied)
    return np.asarray((grown * known.sizes) @ mine.astype(np.float64))


def _beta(problem: TwoLayerMixture) -> Array:
    """Covariance of the Brownian motions of the classes, without c_delta."""
    return np.asarray(np.diag(1.0 / problem.weights) - 1.0)


def _read(problem: TwoLayerMixture, base: Statistics) -> _Base:
    base = checked(problem, base, name="base", single=True)
    place = locate(problem, base)
    known, neurons = limit.lines(problem), place.members
    group = np.array(place.assignment)[neurons]
    return _Base(
        place,
        neurons,
        group,
        np.abs(np.asarray(base.v)[neurons]),
        place.classes.signs[group],
        known.side[group].astype(np.float64),
        known.line[group],
    )


def _coordinates(problem: TwoLayerMixture, known: _Base, statistics: Statistics) -> Array:
    directions = limit.lines(problem).directions[known.lines]
    m = np.asarray(statistics.m)[..., known.neurons, :]
    along = (m * directions).sum(axis=-1)
    return np.concatenate([np.asarray(statistics.v)[..., known.neurons], along], axis=-1)


def _names(known: _Base) -> tuple[str, ...]:
    return tuple(
        f"sqrt(N) ({letter}_{i + 1} - {letter}_{i + 1}*)" for letter in "vm" for i in known.neurons
    )
