r"""The dynamics of tokens under self-attention with layer normalisation, in continuous depth.

.. math::

    \dot x_i = P^\perp_{x_i} \Big( \sum_h \sum_j A^h_{ij} V_h x_j + W \sigma(a x_i + b) \Big),
    \qquad A^h_{ij} = \frac1{Z_i} e^{\beta \langle Q_h x_i, K_h x_j \rangle} ,

on the unit sphere, :math:`P^\perp_x y = y - \langle x, y \rangle x`
(MDL Chapter 14, Equation 1.7).
One head with identity matrices and no feed-forward layer is the notes' (SA).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import DOP853

from companion.attention.particles._tokens import group_masses, unit_tokens
from traindyn import _validate
from traindyn._types import RNG, Array

__all__ = [
    "Attention",
    "FeedForward",
    "Flow",
    "Head",
    "energy",
    "energy_growth",
    "random_tokens",
]

# SciPy's method of order eight; nodes are not needed, the field is autonomous.
_STAGES = np.vstack([DOP853.A[1:], DOP853.B])
_FIFTH, _THIRD = DOP853.E5, DOP853.E3


class Head(NamedTuple):
    """One head of attention; None stands for the identity.

    Attributes
    ----------
    query, key : array_like, shape (r, d), or None
        The scores are inner products of ``query @ x_i`` and ``key @ x_j``.
    value : array_like, shape (d, d), or None
        With the projection that follows, where there is one.
    """

    query: ArrayLike | None = None
    key: ArrayLike | None = None
    value: ArrayLike | None = None


class FeedForward(NamedTuple):
    r"""The layer :math:`W \sigma(a x + b)`.

    Attributes
    ----------
    outer : array_like, shape (d, p)
    inner : array_like, shape (p, d)
    shift : array_like, shape (p,)
    activation : {"relu", "tanh"}
    """

    outer: ArrayLike
    inner: ArrayLike
    shift: ArrayLike
    activation: Literal["relu", "tanh"] = "relu"


class _Field(NamedTuple):
    """The dynamics as the compiled code takes it.

    Attributes
    ----------
    beta : float
    plain : bool
        Whether all matrices are the identity and there is no feed-forward layer.
    forms, values : ndarray, shape (heads, d, d)
        Matrices between tokens in the scores, and transposed matrices of values.
    outer, inner : ndarray, shape (p, d) and (d, p)
        Transposed.
    shift : ndarray, shape (p,)
    kind : int
        Activation of the feed-forward layer: none, relu, tanh.
    """

    beta: float
    plain: bool
    forms: Array
    values: Array
    outer: Array
    inner: Array
    shift: Array
    kind: int


class Flow(NamedTuple):
    """Tokens along the flow.

    Attributes
    ----------
    times : ndarray, shape (T,)
    tokens : ndarray, shape (T, n, d)
    mergers : ndarray, shape (k,)
        Times, in order, at which two groups of tokens came as close as the tolerance and were
        followed as one from then on; ``n - k`` groups are left at the end.
    accepted, rejected : int
        Steps of the integrator.
    """

    times: Array
    tokens: Array
    mergers: Array
    accepted: int
    rejected: int


def random_tokens(count: int, dimension: int, *, rng: RNG) -> Array:
    """Draw tokens uniformly from the sphere, shape (count, dimension).

    Parameters
    ----------
    count, dimension : int
        At least one token, in dimension two or more.
    rng : int, SeedSequence or Generator
        Of the Gaussian vectors that become the tokens.
    """
    n = _validate.integer("count", count, least=1)
    d = _validate.integer("dimension", dimension, least=2)
    drawn = _validate.generator("rng", rng).standard_normal((n, d))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def energy(tokens: ArrayLike, inverse_temperature: float) -> float:
    r"""Return :math:`\frac1{2 \beta n^2} \sum_{ij} e^{\beta \langle x_i, x_j \rangle}`.

    It increases along (SA). For :math:`\beta = 0` the limit of what varies,
    :math:`\frac12 |\frac1n \sum_i x_i|^2`, is returned.

    Parameters
    ----------
    tokens : array_like, shape (n, d)
        At least one, of norm one.
    inverse_temperature : float
        :math:`\beta \ge 0`.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.attention.particles.attention import energy
    >>> energy(np.eye(2), 0.0)
    0.25
    """
    x = unit_tokens(tokens, least=1)
    beta = _validate.non_negative("inverse_temperature", inverse_temperature)
    products = x @ x.T
    if beta == 0:
        return float(products.mean() / 2)
    return float(np.exp(beta * products).mean() / (2 * beta))


def energy_growth(tokens: ArrayLike, inverse_temperature: float) -> float:
    r"""Return :math:`\dot E_\beta = \frac1{n^2} \sum_i Z_i |\dot x_i|^2` along (SA).

    With :math:`Z_i = \sum_j e^{\beta \langle x_i, x_j \rangle}`. The field of a token is its
    gradient of :func:`energy` times :math:`n^2 / Z_i`.

    Parameters
    ----------
    tokens : array_like, shape (n, d)
        At least one, of norm one.
    inverse_temperature : float
        :math:`\beta \ge 0`.

    Examples
    --------
    >>> from companion.attention.particles.attention import energy_growth
    >>> energy_growth([[1.0, 0.0], [0.0, 1.0]], 0.0)
    0.25
    """
    attention = Attention(inverse_temperature)
    x = unit_tokens(tokens, least=1)
    sums = np.exp(attention.inverse_temperature * (x @ x.T)).sum(axis=1)
    return float(sums @ np.sum(attention.velocity(x) ** 2, axis=1)) / len(x) ** 2


@dataclass(frozen=True)
class Attention:
    """Self-attention on the unit sphere of dimension d - 1.

    Parameters
    ----------
    inverse_temperature : float
        Non-negative.
    heads : sequence of Head
        One head with identity matrices without it.
    feed_forward : FeedForward, optional

    Raises
    ------
    ValueError
        If the inverse temperature is negative, there is no head, or shapes do not match.

    Examples
    --------
    Two tokens approach each other as the hyperbolic tangent at infinite temperature:

    >>> import numpy as np
    >>> from companion.attention.particles.attention import Attention
    >>> flow = Attention(0.0).flow([[1.0, 0.0], [0.0, 1.0]], [0.0, 1.0])
    >>> bool(abs(flow.tokens[1, 0] @ flow.tokens[1, 1] - np.tanh(1.0)) < 1e-7)
    True
    """

    inverse_temperature: float
    heads: Sequence[Head] = (Head(),)
    feed_forward: FeedForward | None = None

    def __post_init__(self) -> None:
        _validate.non_negative("inverse_temperature", self.inverse_temperature)
        if not self.heads:
            raise ValueError("heads must not be empty")
        # What is compiled from the matrices and the matrices themselves stay together.
        for name in ("heads", "feed_forward"):
            object.__setattr__(self, name, deepcopy(getattr(self, name)))
        self._compiled  # noqa: B018

    @cached_property
    def _compiled(self) -> tuple[int, _Field]:
        """Dimension, zero if no matrix fixes it, and what the compiled code takes."""
        named = [
            (f"{name} of head {h}", matrix)
            for h, head in enumerate(self.heads)
            for name, matrix in zip(Head._fields, head)
            if matrix is not None
        ]
        if self.feed_forward is not None:
            named.append(("feed_forward.inner", self.feed_forward.inner))
        checked = {
            name: _validate.finite(name, matrix, shape=(None, None)) for name, matrix in named
        }
        sizes = {matrix.shape[1] for matrix in checked.values()}
        if len(sizes) > 1:
            raise ValueError(
                "all matrices must act on one dimension, those of heads and of feed_forward, "
                f"got {sorted(sizes)}"
            )
        d = sizes.pop() if sizes else 0
        forms, values = [], []
        for h in range(len(self.heads)):
            query, key, value = (
                checked.get(f"{name} of head {h}", np.eye(d)) for name in Head._fields
            )
            if len(query) != len(key):
                raise ValueError(
                    f"query and key of head {h} must have one number of rows, "
                    f"got {len(query)} and {len(key)}"
                )
            if value.shape != (d, d):
                raise ValueError(f"value of head {h} must have shape ({d}, {d}), got {value.shape}")
            forms.append(query.T @ key)
            values.append(value.T)
        if self.feed_forward is None:
            w, a, b, kind = np.zeros((d, 0)), np.zeros((0, d)), np.zeros(0), 0
        else:
            a = checked["feed_forward.inner"]
            b = _validate.finite("feed_forward.shift", self.feed_forward.shift, shape=(len(a),))
            w = _validate.finite("feed_forward.outer", self.feed_forward.outer, shape=(d, len(a)))
            names = ("relu", "tanh")
            kind = 1 + names.index(
                _validate.choice("feed_forward.activation", self.feed_forward.activation, names)
            )
        return d, _Field(
            float(self.inverse_temperature),
            not checked,
            np.array(forms),
            np.array(values),
            np.ascontiguousarray(w.T),
            np.ascontiguousarray(a.T),
            b,
            kind,
        )

    def _tokens(self, tokens: ArrayLike) -> Array:
        return unit_tokens(tokens, dimension=self._compiled[0] or None, least=1)

    def velocity(self, tokens: ArrayLike) -> Array:
        """Return the velocities of tokens, shape (n, d), each orthogonal to its token.

        Parameters
        ----------
        tokens : array_like, shape (n, d)
            Of norm one.

        Raises
        ------
        ValueError
            If the shape is wrong, or a norm is not one.
        """
        x = self._tokens(tokens)
        return np.asarray(_velocity(x, np.full(len(x), 1 / len(x)), self._compiled[1]))

    def weights(self, tokens: ArrayLike, head: int = 0) -> Array:
        """Return the matrix of attention of a head, shape (n, n); its rows sum to one.

        Parameters
        ----------
        tokens : array_like, shape (n, d)
            Of norm one.
        head : int, default 0
            Its place among the heads.

        Returns
        -------
        ndarray
            Row i: how much token i attends to each.
        """
        x = self._tokens(tokens)
        h = _validate.integer("head", head, least=0, most=len(self.heads) - 1)
        field = self._compiled[1]
        read = x if field.plain else x @ field.forms[h]
        scores = self.inverse_temperature * (read @ x.T)
        return np.asarray(_softmax(scores, np.full(len(x), 1 / len(x))))

    def flow(
        self,
        tokens: ArrayLike,
        times: ArrayLike,
        *,
        masses: ArrayLike | None = None,
        rtol: float = 1e-8,
        atol: float = 1e-10,
        most_steps: int = 1_000_000,
    ) -> Flow:
        """Follow tokens, with an adaptive step and norms that stay one.

        Equal tokens stay equal. So tokens that have come closer than `atol` are followed as one,
        with the sum of their masses; a trajectory costs little once there are few clusters, and
        times of any length can be reached.

        Parameters
        ----------
        tokens : array_like, shape (n, d)
            At the first of the times.
        times : array_like, shape (T,)
            Increasing.
        masses : array_like, shape (n,), optional
            Positive, of sum one: the weights of the tokens in the empirical measure. Default:
            all equal.
        rtol, atol : float
            Tolerances of a step, as in ``scipy.integrate.solve_ivp``.
        most_steps : int, default 1 000 000
            Of the integrator, rejected ones included.

        Raises
        ------
        ValueError
            If a shape is wrong, a norm is not one, or times do not increase.
        FloatingPointError
            If the step becomes too small to go on, or steps do not suffice.
        """
        x = self._tokens(tokens)
        n = len(x)
        t = _validate.frozen(_validate.increasing("times", times, least=-np.inf))
        share = group_masses(masses, n)
        tolerances = (_validate.positive("rtol", rtol), _validate.positive("atol", atol))
        field = self._compiled[1]
        # With identity matrices tokens stay in the space they span: few coordinates will do.
        basis = None
        if field.plain and x.shape[1] > n:
            basis, triangle = np.linalg.qr(x.T)
            x = np.ascontiguousarray(triangle.T)
        most = _validate.integer("most_steps", most_steps, least=1)
        found, mergers, accepted, rejected, reached = _integrate(
            x, share, t, *tolerances, most, field
        )
        if reached < t[-1]:
            why = "too many steps" if accepted + rejected >= most else "the step became too small"
            raise FloatingPointError(f"{why} at t = {reached:g}")
        if basis is not None:
            found = found @ basis.T
        return Flow(t, found, mergers, int(accepted), int(rejected))


@numba.njit(cache=True, nogil=True)
def _softmax(scores: Array, masses: Array) -> Array:
    """Normalise the exponentials of every row, times the masses, in place."""
    for i in range(scores.shape[0]):
        top = scores[i].max()
        total = 0.0
        for j in range(scores.shape[1]):
            scores[i, j] = masses[j] * np.exp(scores[i, j] - top)
            total += scores[i, j]
        for j in range(scores.shape[1]):
            scores[i, j] /= total
    return scores


@numba.njit(cache=True, nogil=True)
def _others(x: Array, masses: Array, beta: float) -> Array:
    """Pull of the other tokens under one head with identity matrices.

    A token does not pull itself. Its own term is left out, because at large inverse temperatures
    the pull of far tokens would be lost beside it: exponentials are of inner products less one.
    """
    n = len(x)
    weights = np.dot(x, x.T)
    totals = masses.copy()
    for i in range(n):
        weights[i, i] = 0.0
        for j in range(i):
            size = np.exp(beta * (weights[i, j] - 1.0))
            weights[i, j], weights[j, i] = masses[j] * size, masses[i] * size
            totals[i] += weights[i, j]
            totals[j] += weights[j, i]
    for i in range(n):
        for j in range(n):
            weights[i, j] /= totals[i]
    pull: Array = np.dot(weights, x)
    return pull


@numba.njit(cache=True, nogil=True)
def _velocity(x: Array, masses: Array, field: _Field) -> Array:
    pull: Array
    if field.plain:
        # Every head with identity matrices is the same.
        if field.beta == 0.0:
            # Without their own, which would make errors of norms stiff.
            mean = np.dot(masses, x)
            pull = np.empty_like(x)
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    pull[i, j] = mean[j] - masses[i] * x[i, j]
        else:
            pull = _others(x, masses, field.beta)
        pull *= len(field.forms)
    else:
        pull = np.zeros_like(x)
        for h in range(len(field.forms)):
            scores = _softmax(field.beta * np.dot(np.dot(x, field.forms[h]), x.T), masses)
            pull += np.dot(scores, np.dot(x, field.values[h]))
    if field.kind > 0:
        hidden = np.dot(x, field.inner) + field.shift
        pull += np.dot(np.maximum(hidden, 0.0) if field.kind == 1 else np.tanh(hidden), field.outer)
    for i in range(x.shape[0]):
        along = 0.0
        for j in range(x.shape[1]):
            along += x[i, j] * pull[i, j]
        for j in range(x.shape[1]):
            pull[i, j] -= along * x[i, j]
    return pull


@numba.njit(cache=True, nogil=True)
def _normalise(vector: Array) -> None:
    total = 0.0
    for k in range(len(vector)):
        total += vector[k] ** 2
    for k in range(len(vector)):
        vector[k] /= np.sqrt(total)


@numba.njit(cache=True, nogil=True)
def _stage(trial: Array, now: Array, slopes: Array, step: float, s: int) -> None:
    """Set where the field is taken next: the end of the step after the last stage."""
    for i in range(now.shape[0]):
        for j in range(now.shape[1]):
            moved = 0.0
            for r in range(s + 1):
                moved += _STAGES[s, r] * slopes[r, i, j]
            trial[i, j] = now[i, j] + step * moved


@numba.njit(cache=True, nogil=True)
def _close(one: Array, other: Array, distance: float) -> bool:
    total = 0.0
    for k in range(len(one)):
        total += (one[k] - other[k]) ** 2
        if total > distance**2:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def _merge(x: Array, masses: Array, groups: NDArray[np.int64], distance: float) -> int:
    """Join groups closer than a distance in their centre, in place; return how many are left."""
    left = len(x)
    i = 0
    while i < left:
        j = i + 1
        while j < left:
            if not _close(x[i], x[j], distance):
                j += 1
                continue
            both = masses[i] + masses[j]
            left -= 1
            for k in range(x.shape[1]):
                x[i, k] = (masses[i] * x[i, k] + masses[j] * x[j, k]) / both
                x[j, k] = x[left, k]
            _normalise(x[i])
            masses[i], masses[j] = both, masses[left]
            for k in range(len(groups)):
                if groups[k] == j:
                    groups[k] = i
                elif groups[k] == left:
                    groups[k] = j
        i += 1
    return left


@numba.njit(cache=True, nogil=True)
def _error(slopes: Array, step: float, now: Array, end: Array, rtol: float, atol: float) -> float:
    """Error of a step over the tolerance, from both embedded formulas."""
    fifth, third = 0.0, 0.0
    for i in range(now.shape[0]):
        for j in range(now.shape[1]):
            scale = atol + rtol * max(abs(now[i, j]), abs(end[i, j]))
            one, other = 0.0, 0.0
            for r in range(13):
                one += _FIFTH[r] * slopes[r, i, j]
                other += _THIRD[r] * slopes[r, i, j]
            # With the step, as speeds may be so small that their squares underflow.
            fifth += (step * one / scale) ** 2
            third += (step * other / scale) ** 2
    both = (fifth + 0.01 * third) * now.size
    # Not a NaN: that is no small error.
    return 0.0 if both == 0.0 else fifth / float(np.sqrt(both))


@numba.njit(cache=True, nogil=True)
def _integrate(
    x: Array, masses: Array, times: Array, rtol: float, atol: float, most: int, field: _Field
) -> tuple[Array, Array, int, int, float]:
    found = np.empty((len(times), *x.shape))
    found[0] = x
    now, shares, groups = x.copy(), masses.copy(), np.arange(len(x))
    trial = np.empty_like(now)
    mergers, count = np.empty(len(x)), 0
    t, h = times[0], 0.05
    slopes = np.empty((13, *x.shape))
    accepted, rejected = 0, 0
    slopes[0] = _velocity(now, shares, field)
    for k in range(1, len(times)):
        while t < times[k]:
            if accepted + rejected >= most:
                return found, mergers[:count], accepted, rejected, t
            step = min(h, times[k] - t)
            for s in range(12):
                _stage(trial, now, slopes, step, s)
                slopes[s + 1] = _velocity(trial, shares, field)
            error = _error(slopes, step, now, trial, rtol, atol)
            if error <= 1.0:
                accepted += 1
                # A step that was cut to end at a given time reaches it exactly.
                t = times[k] if step < h or t + step >= times[k] else t + step
                now, trial = trial, now
                for i in range(len(now)):
                    _normalise(now[i])
                left = _merge(now, shares, groups, atol)
                if left < len(now):
                    for _ in range(len(now) - left):
                        mergers[count] = t
                        count += 1
                    now, shares = now[:left].copy(), shares[:left].copy()
                    trial = np.empty_like(now)
                    slopes = np.empty((13, left, now.shape[1]))
                    slopes[0] = _velocity(now, shares, field)
                else:
                    # At the end of the step, before norms were set to one: within the tolerance.
                    slopes[0] = slopes[12]
            else:
                rejected += 1
                # Written so that a NaN stops it too.
                if not step * np.abs(slopes[0]).max() > 1e-16:
                    return found, mergers[:count], accepted, rejected, t
            factor = 10.0 if error == 0.0 else 0.9 * error ** (-0.125)
            grown = step * min(10.0, max(0.2, factor))
            # A cut step says little about how large the next may be.
            h = max(h, grown) if error <= 1.0 and step < h else grown
        for i in range(len(x)):
            for j in range(x.shape[1]):
                found[k, i, j] = now[groups[i], j]
    return found, mergers[:count], accepted, rejected, t
