r"""Fixed points at infinite precision, components and basins (BGJ Propositions 4.2 and 9.3).

Every centroid is a *class* that neurons can join: a neuron of class c answers that centroid
alone, with :math:`m_i = |v_i|\, s_c / |s_c|` and the sign of :math:`v_i` that of the label. With
the gain :math:`\kappa_c = p_c |s_c|`, the fixed points are :math:`R^\perp = 0`, some neurons at
zero, the others distributed over classes in any way, and on each occupied class

.. math:: \sum_{i \in I_c} v_i^2 = C_c
          = \frac{1}{|s_c|} \log\Big( \frac{\kappa_c}{\alpha} - 1 \Big), \qquad
          \alpha < \frac{\kappa_c}{2},

that is :math:`-\mathrm{logit}(2 \alpha)` in the binary and :math:`-\mathrm{logit}(4 \alpha)` in
the XOR mixture. A distribution of neurons over classes is thus a set of fixed points, a product
of open pieces of spheres; these sets are glued to components where neurons vanish.

The source calls all sets with an empty class unstable. Without a neuron at zero they are
nevertheless *attracting*: every direction of escape starts at a neuron that vanishes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array, IntArray
from traindyn.problems.two_layer import limit
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture, checked

__all__ = [
    "ZERO",
    "Classes",
    "Component",
    "FixedSet",
    "classes",
    "components",
    "destination",
    "discerned",
    "fixed_sets",
    "initial_set",
    "locate",
    "success_probability",
]

#: Stands for the class of a neuron that vanishes (the source's :math:`I_0`).
ZERO = -1

_ORTHOGONAL = 1e-12
_MOST_SETS = 10**6
_ON_SET = 1e-9


class Classes(NamedTuple):
    r"""The classes neurons can join, one for each centroid.

    Attributes
    ----------
    directions : ndarray, shape (C, d)
        Unit vectors :math:`s_c / |s_c|`.
    signs : ndarray, shape (C,)
        Sign of v: +1 for label 1, -1 for label 0.
    radii : ndarray, shape (C,)
        :math:`|s_c|`.
    gains : ndarray, shape (C,)
        :math:`\kappa_c = p_c |s_c|`; twice the ridge at which the class vanishes.
    sizes : ndarray, shape (C,)
        :math:`C_c` of an occupied class, zero where the ridge is not below half the gain.
    """

    directions: Array
    signs: Array
    radii: Array
    gains: Array
    sizes: Array


def classes(problem: TwoLayerMixture) -> Classes:
    """Classes of a mixture.

    Parameters
    ----------
    problem : TwoLayerMixture
        Its centroids of one label lie on one line, at most one on either side of the origin,
        and the lines of the two labels are equal or orthogonal, as in the binary and the XOR
        mixture. Positive ridge.

    Raises
    ------
    ValueError
        If the centroids are not of that kind, or there is no ridge.

    Examples
    --------
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.equilibria import classes
    >>> found = classes(TwoLayerMixture.binary(2, 20, precision=10.0, ridge=0.1))
    >>> found.sizes.round(5).tolist()
    [1.38629, 1.38629]
    """
    ridge = _validate.positive("problem.ridge", problem.ridge)
    known = limit.lines(problem)
    labels = np.asarray(problem.labels)
    seats = set(zip(known.line.tolist(), known.side.tolist(), strict=True))
    cosines = known.directions @ known.directions.T - np.eye(len(known.directions))
    if (
        any(len(set(known.line[labels == label].tolist())) > 1 for label in (0, 1))
        or len(seats) < labels.size
        or np.abs(cosines).max() > _ORTHOGONAL
    ):
        raise ValueError(
            "centroids of one label must lie on one line, one on each side of the origin, and "
            f"the lines of the labels be equal or orthogonal, got {problem.centroids.tolist()}"
        )
    radii = np.sqrt(np.square(problem.centroids).sum(axis=1))
    gains = problem.weights * radii
    sizes = np.log(np.maximum(gains / ridge - 1.0, 1.0)) / radii
    return Classes(
        _validate.frozen(problem.centroids / radii[:, None]),
        _validate.frozen(np.where(labels == 1, 1.0, -1.0)),
        _validate.frozen(radii),
        _validate.frozen(gains),
        _validate.frozen(np.asarray(sizes)),
    )


@dataclass(frozen=True)
class FixedSet:
    """A set of fixed points: which class each neuron belongs to.

    Attributes
    ----------
    problem : TwoLayerMixture
    assignment : tuple of int, length K
        Class of each neuron, or ``ZERO``.

    Raises
    ------
    ValueError
        If the assignment does not name a class per neuron, or the ridge is too large for an
        occupied class to exist.

    Examples
    --------
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.equilibria import FixedSet
    >>> problem = TwoLayerMixture.binary(2, 20, precision=10.0, ridge=0.1)
    >>> arc, best = FixedSet(problem, (0, 0)), FixedSet(problem, (0, 1))
    >>> round(arc.loss, 6), arc.dimension, arc.attracting, arc.stable
    (0.596775, 1, True, False)
    >>> round(best.loss, 6), best.dimension, best.attracting, best.stable
    (0.500402, 0, True, True)
    """

    problem: TwoLayerMixture
    assignment: tuple[int, ...]

    def __post_init__(self) -> None:
        """Convert and check the assignment."""
        count = len(self.classes.gains)
        width = self.problem.width
        given = tuple(np.atleast_1d(self.assignment).tolist())
        if len(given) != width or not all(each in range(ZERO, count) for each in given):
            raise ValueError(
                f"assignment must hold {width} classes in [0, {count - 1}] or {ZERO}, got {given}"
            )
        object.__setattr__(self, "assignment", tuple(int(each) for each in given))
        for c in self.occupied:
            if self.classes.sizes[c] == 0:
                raise ValueError(
                    f"ridge must be below {0.5 * self.classes.gains[c]:g} for class {c} to be "
                    f"occupied, got {self.problem.ridge:g}"
                )

    @cached_property
    def classes(self) -> Classes:
        """Classes of the problem."""
        return classes(self.problem)

    @property
    def occupied(self) -> tuple[int, ...]:
        """Classes that hold a neuron, increasing."""
        return tuple(sorted(set(self.assignment) - {ZERO}))

    @property
    def members(self) -> IntArray:
        """Neurons that do not vanish, increasing."""
        return np.flatnonzero(np.array(self.assignment) != ZERO)

    @property
    def dimension(self) -> int:
        """Dimension of the set."""
        return len(self.members) - len(self.occupied)

    @property
    def loss(self) -> float:
        r"""Population loss, ridge included, the same at all points.

        In the binary mixture with one occupied class it is
        :math:`\tfrac12 (\log 2 + \log(1 + e^{-C})) + \alpha C`; BGJ Section 8.2 prints
        :math:`\alpha C / 2`.
        """
        known = self.classes
        reached = np.zeros(len(known.sizes))
        reached[list(self.occupied)] = known.sizes[list(self.occupied)]
        fit = self.problem.weights @ np.logaddexp(0.0, -known.radii * reached)
        return float(fit + self.problem.ridge * reached.sum())

    @property
    def growth(self) -> Array:
        r"""Growth rate of a small neuron that is set to join each class, shape (C,).

        It is :math:`\kappa_c / 2 - \alpha` for an empty class and 0 for an occupied one.
        """
        rates = 0.5 * self.classes.gains - self.problem.ridge
        rates[list(self.occupied)] = 0.0
        return np.asarray(rates)

    @property
    def eigenvalues(self) -> Array:
        r"""Eigenvalues of the flow of the neurons that do not vanish, decreasing.

        In the coordinates :math:`v_i` and the component of :math:`m_i` along the line of its
        class; in any other line of centroids :math:`m_i` comes to zero in finite time. There
        are :attr:`dimension` zeros, along the set; for each occupied class the radial rate
        :math:`-2 \alpha (1 - \alpha / \kappa_c) |s_c| C_c`; and for each neuron
        :math:`-2 \alpha`, for the difference of v and m. The Gram matrix decays at the rate
        :math:`2 \alpha` too.
        """
        ridge, known = self.problem.ridge, self.classes
        kept = list(self.occupied)
        radial = (1.0 - ridge / known.gains[kept]) * known.radii[kept] * known.sizes[kept]
        rates = [np.zeros(self.dimension), -2 * ridge * radial]
        rates.append(np.full(len(self.members), -2 * ridge))
        return np.sort(np.concatenate(rates))[::-1]

    @property
    def attracting(self) -> bool:
        """Whether every start close enough to an interior point ends on the set.

        True without a neuron at zero; with one, if no class is left for it to grow into.
        """
        return len(self.members) == len(self.assignment) or self.stable

    @property
    def stable(self) -> bool:
        """Whether the component of the set attracts a neighbourhood of itself.

        It is then the set of minimisers of the loss: every class that can be occupied is.
        """
        return bool(np.all(self.growth <= 0.0))

    def point(self, shares: ArrayLike | None = None) -> Statistics:
        """Return a point of the set.

        Parameters
        ----------
        shares : array_like, shape (K,), optional
            Positive relative sizes of :math:`v_i^2` within each class; by default equal. Those
            of neurons at zero are not used.

        Raises
        ------
        ValueError
            If a share that is used is not positive.

        Examples
        --------
        >>> from traindyn.problems import TwoLayerMixture
        >>> from traindyn.problems.two_layer.equilibria import FixedSet
        >>> problem = TwoLayerMixture.binary(2, 20, precision=10.0, ridge=0.1)
        >>> FixedSet(problem, (1, 1)).point([3.0, 1.0]).v.round(5).tolist()
        [-1.01967, -0.58871]
        """
        width, known = len(self.assignment), self.classes
        given = np.ones(width) if shares is None else shares
        weights = _validate.finite("shares", given, shape=(width,))
        chosen = np.array(self.assignment)
        if np.any(weights[self.members] <= 0):
            raise ValueError(f"shares must be positive, got {weights.tolist()}")
        v, m = np.zeros(width), np.zeros((width, known.directions.shape[1]))
        for c in self.occupied:
            mine = chosen == c
            v[mine] = known.signs[c] * np.sqrt(known.sizes[c] * weights[mine] / weights[mine].sum())
            m[mine] = np.abs(v[mine])[:, None] * known.directions[c]
        return Statistics(v, m, np.zeros((width, width)))

    def at(self, a: ArrayLike) -> Statistics:
        """Return the point of the set at which the neurons have given sizes.

        Parameters
        ----------
        a : array_like, shape (K,)
            Sizes :math:`|v_i|`, whose signs are not used; those of the neurons of a class have
            squares that sum to its C.

        Raises
        ------
        ValueError
            If the squares do not sum to it.

        Examples
        --------
        >>> import numpy as np
        >>> from traindyn.problems import TwoLayerMixture
        >>> from traindyn.problems.two_layer.equilibria import FixedSet
        >>> problem = TwoLayerMixture.binary(2, 20, precision=np.inf, ridge=0.1)
        >>> radius = np.sqrt(np.log(4.0))
        >>> FixedSet(problem, (0, 0)).at([0.6 * radius, 0.8 * radius]).m.round(5).tolist()
        [[0.70645], [0.94193]]
        """
        sizes = _validate.finite("a", a, shape=(len(self.assignment),))
        chosen = np.array(self.assignment)
        for c in self.occupied:
            square = float(np.square(sizes[chosen == c]).sum())
            wanted = float(self.classes.sizes[c])
            if abs(square - wanted) > _ON_SET * max(1.0, wanted):
                raise ValueError(
                    f"a must have squares that sum to {wanted:.12g} in class {c}, got {square:.12g}"
                )
        return self.point(np.square(sizes))


class Component(NamedTuple):
    """A connected component of the fixed points.

    Attributes
    ----------
    sets : tuple of FixedSet
        The sets it consists of.
    occupied : tuple of int
        Classes occupied everywhere on it.
    dimension : int
        Largest dimension of its sets.
    loss : float
    stable : bool
    """

    sets: tuple[FixedSet, ...]
    occupied: tuple[int, ...]
    dimension: int
    loss: float
    stable: bool


def fixed_sets(problem: TwoLayerMixture) -> tuple[FixedSet, ...]:
    """All sets of fixed points, in lexicographic order of their assignments.

    Those of the XOR mixture are the ones of MDL Section 12.4.3, corrected.

    Raises
    ------
    ValueError
        If there are more than a million.

    Examples
    --------
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.equilibria import fixed_sets
    >>> len(fixed_sets(TwoLayerMixture.xor(4, 20, precision=10.0, ridge=0.1)))
    625
    >>> len(fixed_sets(TwoLayerMixture.xor(4, 20, precision=10.0, ridge=0.13)))
    1
    """
    alive = np.flatnonzero(classes(problem).sizes).tolist()
    count = (len(alive) + 1) ** problem.width
    if count > _MOST_SETS:
        raise ValueError(f"width must give at most {_MOST_SETS} sets, got {count}")
    choices = itertools.product([ZERO, *alive], repeat=problem.width)
    return tuple(FixedSet(problem, choice) for choice in choices)


def components(problem: TwoLayerMixture) -> tuple[Component, ...]:
    """Return the connected components of fixed points (BGJ Section 5: 39 for XOR of width four).

    Two sets are joined when one neuron of the first vanishes in the second and leaves no
    class empty; closures of other pairs of sets of equal classes meet through such steps only.

    Examples
    --------
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.equilibria import components
    >>> found = components(TwoLayerMixture.xor(4, 20, precision=10.0, ridge=0.1))
    >>> len(found), sum(each.stable for each in found)
    (39, 24)
    """
    sets = fixed_sets(problem)
    place = {each.assignment: k for k, each in enumerate(sets)}
    parent = list(range(len(sets)))

    def root(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    for k, each in enumerate(sets):
        for i in each.members.tolist():
            if each.assignment.count(each.assignment[i]) > 1:
                fewer = (*each.assignment[:i], ZERO, *each.assignment[i + 1 :])
                parent[root(k)] = root(place[fewer])
    groups: dict[int, list[FixedSet]] = {}
    for k, each in enumerate(sets):
        groups.setdefault(root(k), []).append(each)
    return tuple(
        Component(
            tuple(group),
            group[0].occupied,
            max(each.dimension for each in group),
            group[0].loss,
            group[0].stable,
        )
        for group in groups.values()
    )


def success_probability(width: int, *, classes: int = 4) -> float:
    r"""Probability that a random start leads to the best classifier, at infinite precision.

    The probability of BGJ (5.2) and MDL Section 12.4.3, where its value at width four is
    misprinted. From the uninformative start each neuron joins one of the classes, independently
    and uniformly, so that by inclusion and exclusion all n of them are occupied with probability

    .. math:: P_K = \sum_{j=0}^{n} (-1)^j \binom nj \Big( 1 - \frac jn \Big)^K .

    Parameters
    ----------
    width : int
        Number K of neurons; with fewer than there are classes the probability is zero.
    classes : int, default 4
        Four for the XOR mixture, two for the binary one.

    Examples
    --------
    >>> from traindyn.problems.two_layer.equilibria import success_probability
    >>> success_probability(4) == 3 / 32, success_probability(2, classes=2)
    (True, 0.5)
    """
    width = _validate.integer("width", width, least=1)
    count = _validate.integer("classes", classes, least=1)
    ways = sum((-1) ** j * math.comb(count, j) * (count - j) ** width for j in range(count + 1))
    return float(ways / count**width)


def initial_set(
    problem: TwoLayerMixture, statistics: Statistics, *, signs: ArrayLike | None = None
) -> FixedSet:
    """Set of fixed points that the flow from a start ends on (its basin).

    Parameters
    ----------
    problem : TwoLayerMixture
        Its precision is not used: it stands for infinity.
    statistics : Statistics
        A start. With labels on orthogonal lines (XOR), neurons whose class is not decided by
        the signs alone are refused: those of :math:`|v_i| < |m_i|` with a component along the
        line of the other label.
    signs : array_like, shape (K, L), optional
        Which way neurons leave zero, as for
        :func:`traindyn.effective.sliding.solve_limit`.

    Returns
    -------
    FixedSet
        Neurons bound for a class that the ridge does not allow end at zero.

    Raises
    ------
    ValueError
        If the fate of a neuron is not known from the start.

    Notes
    -----
    :math:`v_i^2 - |m_i|^2` keeps its sign. With both labels on one line, a neuron therefore
    takes the sign of :math:`v_i + m_i` (along the centroid of label 1); otherwise the sign of
    :math:`v_i` stays, :math:`m_i` grows along the line of its label and keeps its side.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.equilibria import initial_set
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> problem = TwoLayerMixture.binary(2, 20, precision=10.0, ridge=0.1)
    >>> start = Statistics(np.array([0.6, -0.2]), np.zeros((2, 1)), np.eye(2))
    >>> initial_set(problem, start).assignment
    (0, 1)
    """
    statistics = checked(problem, statistics, single=True)
    known, labels = limit.lines(problem), np.asarray(problem.labels)
    sizes = classes(problem).sizes
    v, m = np.asarray(statistics.v), np.asarray(statistics.m)
    along = m @ known.directions.T
    wanted = along.shape
    chosen = np.zeros(wanted) if signs is None else _validate.finite("signs", signs, shape=wanted)
    sides = np.where(along == 0, np.sign(chosen), np.sign(along))
    if known.directions.shape[0] == 1:
        towards = known.side[labels == 1]
        forward = int(towards[0]) if towards.size else -int(known.side[0])
        drive = v + forward * along[:, 0]
        ends = [(0, forward * int(np.sign(each))) for each in drive]
        fired = drive != 0
    else:
        _check_decided(v, along, known, labels)
        own = [int(known.line[labels == int(each > 0)][0]) for each in v]
        ends = [(line, int(sides[i, line])) for i, line in enumerate(own)]
        fired = (v != 0) | (np.square(m).sum(axis=1) > 0)
    seats = {
        (int(line), int(side)): c
        for c, (line, side) in enumerate(zip(known.line, known.side, strict=True))
    }
    assignment = []
    for i, end in enumerate(ends):
        if not fired[i]:
            assignment.append(ZERO)
            continue
        if end not in seats:
            raise ValueError(
                f"signs must tell the side of neuron {i} along line {end[0]}, where a centroid "
                f"is, got {end[1]}"
            )
        assignment.append(seats[end] if sizes[seats[end]] > 0 else ZERO)
    return FixedSet(problem, tuple(assignment))


def _check_decided(v: Array, along: Array, known: limit.Lines, labels: IntArray) -> None:
    """Refuse neurons whose sign of v may change."""
    for i, each in enumerate(v):
        other = known.line[labels != int(each > 0)]
        aside = np.abs(along[i, other]).max(initial=0.0) if each != 0 else np.abs(along[i]).max()
        if aside > 0 and each**2 < np.square(along[i]).sum():
            raise ValueError(
                f"statistics must decide the class of neuron {i}: |v| at least |m|, or m along "
                f"the line of the label that the sign of v stands for; got v = {each:g}, "
                f"m = {along[i].tolist()}"
            )


def destination(
    problem: TwoLayerMixture, statistics: Statistics, *, signs: ArrayLike | None = None
) -> Statistics:
    r"""Return the fixed point that the flow from an aligned start ends at.

    Neurons of one class grow at one common rate, so that the ratios of :math:`|v_i| + |m_i|` within
    a class never change: they decide where on its circle a class settles. In the XOR mixture
    no neuron of zero overlap and :math:`v_i \ne 0` ends idle below the ridge 1/8 (BGHJ Lemma 5.22).

    Parameters
    ----------
    problem : TwoLayerMixture
        Its precision is not used: it stands for infinity.
    statistics : Statistics
        A start at which each :math:`m_i` is zero or along its class.
    signs : array_like, shape (K, L), optional
        As for :func:`initial_set`.

    Raises
    ------
    ValueError
        If a neuron is not aligned with its class, or as :func:`initial_set`.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.equilibria import destination
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> problem = TwoLayerMixture.binary(2, 20, precision=10.0, ridge=0.1)
    >>> start = Statistics(np.array([0.3, 0.4]), np.zeros((2, 1)), np.eye(2))
    >>> destination(problem, start).v.round(5).tolist()
    [0.70645, 0.94193]
    """
    statistics = checked(problem, statistics, single=True)
    end = initial_set(problem, statistics, signs=signs)
    v, m = np.asarray(statistics.v), np.asarray(statistics.m)
    for i in end.members.tolist():
        c = end.assignment[i]
        along = float(m[i] @ end.classes.directions[c])
        off = np.abs(m[i] - along * end.classes.directions[c]).max()
        if off > _ORTHOGONAL * max(1.0, abs(along)) or along < 0 or v[i] * end.classes.signs[c] < 0:
            raise ValueError(
                f"statistics must be aligned with the classes they lead to, got v = {v[i]:g}, "
                f"m = {m[i].tolist()} for neuron {i}, bound for class {c}"
            )
    return end.point(np.square(np.abs(v) + np.linalg.norm(m, axis=1)))


def locate(
    problem: TwoLayerMixture, statistics: Statistics, *, tolerance: float = 1e-9
) -> FixedSet:
    """Set that a fixed point belongs to.

    Parameters
    ----------
    problem : TwoLayerMixture
        Its precision is not used: it stands for infinity.
    statistics : Statistics
        Of one point, without leading axes.
    tolerance : float, default 1e-9
        Largest entry by which the statistics may miss the set; neurons below it are zero.

    Raises
    ------
    ValueError
        If the statistics are not a fixed point up to the tolerance.

    Examples
    --------
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.equilibria import FixedSet, locate
    >>> problem = TwoLayerMixture.xor(4, 20, precision=10.0, ridge=0.1)
    >>> known = FixedSet(problem, (3, 0, -1, 0))
    >>> locate(problem, known.point()).assignment
    (3, 0, -1, 0)
    """
    statistics = checked(problem, statistics, single=True)
    tolerance = _validate.positive("tolerance", tolerance)
    known, v = classes(problem), np.asarray(statistics.v)
    likeness = np.asarray(statistics.m) @ known.directions.T
    likeness = np.where(known.signs * np.sign(v)[:, None] > 0, likeness, -np.inf)
    assignment = np.where(np.abs(v) <= tolerance, ZERO, np.argmax(likeness, axis=1))
    if any(known.sizes[c] == 0 for c in assignment if c != ZERO):
        miss = float(np.abs(v).max())
    else:
        found = FixedSet(problem, tuple(assignment.tolist()))
        nearest = found.point(np.where(v == 0, 1.0, np.square(v)))
        miss = max(_gap(pair) for pair in zip(nearest, statistics, strict=True))
        if miss <= tolerance:
            return found
    raise ValueError(
        f"statistics must be a fixed point up to {tolerance:g}, got entries off by {miss:.3g}"
    )


def discerned(
    problem: TwoLayerMixture, statistics: Statistics, *, threshold: float | None = None
) -> NDArray[np.bool_]:
    r"""Tell which classes have a neuron, for statistics that need not be a fixed point.

    A neuron discerns class c when v_i has the sign of the class and the overlap along its
    centroid exceeds the threshold. Signs alone would not do: at m = 0 noise has the right
    ones as often as not.

    Parameters
    ----------
    problem : TwoLayerMixture
        Its classes; the default threshold is that of infinite precision.
    statistics : Statistics
        Leading axes allowed.
    threshold : float, optional
        By default half of :math:`\sqrt{C_c / K}`, the size of the overlaps when all neurons
        share one class evenly; infinite where the ridge lets no class live.

    Returns
    -------
    ndarray of bool, shape (..., C)

    Examples
    --------
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.equilibria import FixedSet, discerned
    >>> problem = TwoLayerMixture.xor(4, 20, precision=10.0, ridge=0.1)
    >>> discerned(problem, FixedSet(problem, (3, 0, -1, 0)).point()).tolist()
    [True, False, False, True]
    """
    statistics = checked(problem, statistics)
    known = classes(problem)
    if threshold is None:
        size = np.where(known.sizes > 0, known.sizes, np.inf)
        least = 0.5 * np.sqrt(size / problem.width)
    else:
        least = np.full(known.signs.size, _validate.positive("threshold", threshold))
    overlap = np.asarray(statistics.m) @ known.directions.T
    right = np.asarray(statistics.v)[..., None] * known.signs > 0
    return np.asarray((right & (overlap > least)).any(axis=-2))


def _gap(pair: Iterable[Array]) -> float:
    first, second = pair
    return float(np.abs(np.asarray(first) - np.asarray(second)).max())
