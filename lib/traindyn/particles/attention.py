r"""The dynamics of tokens under self-attention with layer normalisation, in continuous depth.

.. math::

    \dot x_i = P^\perp_{x_i} \Big( \sum_h \sum_j A^h_{ij} V_h x_j + W \sigma(a x_i + b) \Big),
    \qquad A^h_{ij} = \frac1{Z_i} e^{\beta \langle Q_h x_i, K_h x_j \rangle} ,

on the unit sphere, :math:`P^\perp_x y = y - \langle x, y \rangle x` (course notes, Chapter 14).
One head with identity matrices and no feed-forward layer is the notes' (SA).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate

__all__ = ["Attention", "FeedForward", "Flow", "Head", "energy", "random_tokens"]

Array: TypeAlias = NDArray[np.float64]
RNG: TypeAlias = int | np.random.SeedSequence | np.random.Generator

_UNIT = 1e-8
# Dormand and Prince's pair of orders five and four: nodes are not needed, the field is autonomous.
_STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
_ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])


class Head(NamedTuple):
    """One head of attention; None stands for the identity.

    Attributes
    ----------
    query, key, value : array_like, shape (d, d), or None
        The scores are inner products of ``query @ x_i`` and ``key @ x_j``.
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
    accepted, rejected : int
        Steps of the integrator.
    """

    times: Array
    tokens: Array
    accepted: int
    rejected: int


def random_tokens(count: int, dimension: int, *, rng: RNG) -> Array:
    """Draw tokens uniformly from the sphere, shape (count, dimension).

    Parameters
    ----------
    count, dimension : int
    rng : int, SeedSequence or Generator

    Returns
    -------
    ndarray
    """
    n = _validate.integer("count", count, least=1)
    d = _validate.integer("dimension", dimension, least=2)
    drawn = np.random.default_rng(rng).standard_normal((n, d))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def energy(tokens: ArrayLike, inverse_temperature: float) -> float:
    r"""Return :math:`\frac1{2 \beta n^2} \sum_{ij} e^{\beta \langle x_i, x_j \rangle}`.

    It increases along (SA). For :math:`\beta = 0` the limit of what varies,
    :math:`\frac12 |\frac1n \sum_i x_i|^2`, is returned.

    Parameters
    ----------
    tokens : array_like, shape (n, d)
    inverse_temperature : float

    Returns
    -------
    float

    Examples
    --------
    >>> energy(np.eye(2), 0.0)
    0.25
    """
    x = _validate.finite("tokens", tokens, shape=(None, None))
    beta = _validate.non_negative("inverse_temperature", inverse_temperature)
    products = x @ x.T
    if beta == 0:
        return float(products.mean() / 2)
    return float(np.exp(beta * products).mean() / (2 * beta))


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
            named.append(("outer", self.feed_forward.outer))
        checked = {
            name: _validate.finite(name, matrix, shape=(None, None)) for name, matrix in named
        }
        sizes = {len(matrix) for matrix in checked.values()}
        if len(sizes) > 1:
            raise ValueError(f"all matrices must have one number of rows, got {sorted(sizes)}")
        d = sizes.pop() if sizes else 0
        forms, values = [], []
        for h in range(len(self.heads)):
            query, key, value = (
                self._square(checked.get(f"{name} of head {h}"), d, f"{name} of head {h}")
                for name in Head._fields
            )
            forms.append(query.T @ key)
            values.append(value.T)
        if self.feed_forward is None:
            w, a, b, kind = np.zeros((d, 0)), np.zeros((0, d)), np.zeros(0), 0
        else:
            w = checked["outer"]
            b = _validate.finite("shift", self.feed_forward.shift, shape=(w.shape[1],))
            a = _validate.finite("inner", self.feed_forward.inner, shape=(w.shape[1], d))
            names = ("relu", "tanh")
            kind = 1 + names.index(
                _validate.choice("activation", self.feed_forward.activation, names)
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

    @staticmethod
    def _square(matrix: Array | None, d: int, name: str) -> Array:
        if matrix is None:
            return np.eye(d)
        if matrix.shape != (d, d):
            raise ValueError(f"{name} must have shape ({d}, {d}), got {matrix.shape}")
        return matrix

    def _tokens(self, tokens: ArrayLike) -> Array:
        d = self._compiled[0] or None
        x = np.ascontiguousarray(_validate.finite("tokens", tokens, shape=(None, d)))
        worst = float(np.abs(np.linalg.norm(x, axis=1) - 1).max(initial=0.0))
        if worst > _UNIT:
            raise ValueError(f"tokens must have norm one, got one that is off by {worst:.3g}")
        return x

    def velocity(self, tokens: ArrayLike) -> Array:
        """Return the velocities of tokens, shape (n, d), each orthogonal to its token.

        Parameters
        ----------
        tokens : array_like, shape (n, d)
            Of norm one.

        Returns
        -------
        ndarray

        Raises
        ------
        ValueError
            If the shape is wrong, or a norm is not one.
        """
        return np.asarray(_velocity(self._tokens(tokens), self._compiled[1]))

    def weights(self, tokens: ArrayLike, head: int = 0) -> Array:
        """Return the matrix of attention of a head, shape (n, n); its rows sum to one.

        Parameters
        ----------
        tokens : array_like, shape (n, d)
        head : int, default 0

        Returns
        -------
        ndarray
        """
        x = self._tokens(tokens)
        h = _validate.integer("head", head, least=0, most=len(self.heads) - 1)
        field = self._compiled[1]
        read = x if field.plain else x @ field.forms[h]
        return np.asarray(_softmax(self.inverse_temperature * (read @ x.T)))

    def flow(
        self, tokens: ArrayLike, times: ArrayLike, *, rtol: float = 1e-8, atol: float = 1e-10
    ) -> Flow:
        """Follow tokens, with an adaptive step and norms that stay one.

        Parameters
        ----------
        tokens : array_like, shape (n, d)
            At the first of the times.
        times : array_like, shape (T,)
            Increasing.
        rtol, atol : float
            Tolerances of a step, as in :func:`scipy.integrate.solve_ivp`.

        Returns
        -------
        Flow

        Raises
        ------
        ValueError
            If a shape is wrong, a norm is not one, or times do not increase.
        FloatingPointError
            If the step becomes too small to go on.
        """
        x = self._tokens(tokens)
        t = _validate.increasing("times", times, least=-np.inf)
        tolerances = (_validate.positive("rtol", rtol), _validate.positive("atol", atol))
        found, accepted, rejected, reached = _integrate(x, t, *tolerances, self._compiled[1])
        if reached < t[-1]:
            raise FloatingPointError(f"the step became too small at t = {reached:g}")
        return Flow(t, found, int(accepted), int(rejected))


@numba.njit(cache=True, nogil=True)
def _softmax(scores: Array) -> Array:
    """Normalise the exponentials of every row, in place."""
    for i in range(scores.shape[0]):
        top = scores[i].max()
        total = 0.0
        for j in range(scores.shape[1]):
            scores[i, j] = np.exp(scores[i, j] - top)
            total += scores[i, j]
        scores[i] /= total
    return scores


@numba.njit(cache=True, nogil=True)
def _velocity(
    x: Array,
    field: _Field,
) -> Array:
    pull: Array
    if field.plain:
        # Every head with identity matrices is the same.
        pull = len(field.forms) * np.dot(_softmax(field.beta * np.dot(x, x.T)), x)
    else:
        pull = np.zeros_like(x)
        for h in range(len(field.forms)):
            scores = _softmax(field.beta * np.dot(np.dot(x, field.forms[h]), x.T))
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
def _integrate(
    x: Array,
    times: Array,
    rtol: float,
    atol: float,
    field: _Field,
) -> tuple[Array, int, int, float]:
    found = np.empty((len(times), *x.shape))
    found[0] = x
    now, t, h = x.copy(), times[0], 0.05
    slopes = np.empty((7, *x.shape))
    accepted, rejected = 0, 0
    slopes[0] = _velocity(now, field)
    for k in range(1, len(times)):
        while t < times[k]:
            step = min(h, times[k] - t)
            if t + step == t:
                return found, accepted, rejected, t
            for s in range(6):
                trial = now.copy()
                for r in range(s + 1):
                    if _STAGES[s, r] != 0.0:
                        trial += (step * _STAGES[s, r]) * slopes[r]
                slopes[s + 1] = _velocity(trial, field)
            total = 0.0
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    off = 0.0
                    for r in range(7):
                        off += _ERROR[r] * slopes[r, i, j]
                    size = max(abs(now[i, j]), abs(trial[i, j]))
                    total += (step * off / (atol + rtol * size)) ** 2
            error = np.sqrt(total / x.size)
            if error <= 1.0:
                accepted += 1
                # A step that was cut to end at a given time reaches it exactly.
                t = times[k] if step < h or t + step >= times[k] else t + step
                for i in range(x.shape[0]):
                    norm = np.sqrt(np.sum(trial[i] ** 2))
                    now[i] = trial[i] / norm
                slopes[0] = _velocity(now, field)
            else:
                rejected += 1
            factor = 10.0 if error == 0.0 else 0.9 * error ** (-0.2)
            grown = step * min(10.0, max(0.2, factor))
            # A cut step says little about how large the next may be.
            h = max(h, grown) if error <= 1.0 and step < h else grown
        found[k] = now
    return found, accepted, rejected, t
