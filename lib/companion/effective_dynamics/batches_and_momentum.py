r"""SGD with batches and heavy-ball momentum, and what its statistics do in large dimension.

A step with batch size b, momentum :math:`\beta` and fresh samples is

.. math:: V_\ell = \beta V_{\ell-1} - \frac\delta b \sum_{i=1}^b \nabla L(X_{\ell-1}, Y_{\ell,i}),
    \qquad X_\ell = X_{\ell-1} + V_\ell, \qquad V_0 = 0 .

:class:`HeavyBall` takes such steps for the problems of the library. The mean of b spiked tensors
is a spiked tensor with less noise, so that batches of tensors need no simulator of their own
(:func:`averaged`), at a cost that depends neither on b nor on the dimension. Where b grows in
proportion to the dimension n and the step size stays fixed, the statistics follow a map in place
of a differential equation (:func:`large_batch_step`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy import optimize

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.problems.base import Dynamics, Kernel, require
from traindyn.problems.spiked import SpikedTensor, Statistics
from traindyn.problems.spiked.matrix import need_order_two
from traindyn.sgd import reduced
from traindyn.trajectory import Trajectory

__all__ = [
    "Averaged",
    "Edge",
    "HeavyBall",
    "Moving",
    "averaged",
    "edge",
    "large_batch_step",
    "run_averaged",
]


class Moving(NamedTuple):
    """Parameters that move.

    Attributes
    ----------
    x : ndarray, shape (D,)
        All entries of a point of the problem, one array after the other.
    velocity : ndarray, shape (D,)
        Last step, decayed and renewed by the next one.
    """

    x: Array
    velocity: Array


@dataclass(frozen=True)
class HeavyBall:
    r"""A problem whose SGD takes batches and has momentum, in full dimension.

    Attributes
    ----------
    problem : Dynamics
        Its direct kernel makes the steps of the single samples; its points have one or two arrays.
    batch : int, optional
        Fresh samples per step, at least 1.
    momentum : float, optional
        :math:`\beta` in [0, 1). One step with momentum moves as much in the long run as
        :math:`1 / (1 - \beta)` steps without.

    Raises
    ------
    ValueError
        If the batch or the momentum is out of range.

    Examples
    --------
    A thousand steps of size ``0.5 / 1000`` with momentum 0.5 lead as far as a thousand of size
    ``1 / 1000`` without:

    >>> import numpy as np
    >>> from companion.effective_dynamics.batches_and_momentum import HeavyBall
    >>> from traindyn.effective import ode
    >>> from traindyn.problems.spiked import SpikedTensor, Statistics
    >>> from traindyn.sgd import direct
    >>> pca, begin = SpikedTensor(2, 1000, signal=1.5), Statistics(np.array(0.3), np.array(0.2))
    >>> moving = HeavyBall(pca, momentum=0.5)
    >>> path = direct.run(moving, moving.place(begin), [0.5], step_size=0.5 / 1000, rng=0)
    >>> limit = ode.solve(pca, begin, [1.0], c_delta=1.0)
    >>> bool(np.abs(path.statistics.r2 - limit.statistics.r2) < 0.2)
    True
    """

    problem: Dynamics
    batch: int = 1
    momentum: float = 0.0

    def __post_init__(self) -> None:
        """Convert and check the numbers."""
        require(self.problem, "HeavyBall", "statistics", "direct_kernel", "ridge")
        set_field = object.__setattr__
        set_field(self, "batch", _validate.integer("batch", self.batch, least=1))
        momentum = _validate.non_negative("momentum", self.momentum)
        if momentum >= 1.0:
            raise ValueError(f"momentum must be less than 1, got {momentum:g}")
        set_field(self, "momentum", momentum)

    @property
    def dimension(self) -> int:
        """Dimension of one input."""
        return self.problem.dimension

    @property
    def ridge(self) -> float:
        """Ridge coefficient of the loss that SGD descends."""
        return self.problem.ridge

    def rest(self, point: Any) -> Moving:
        """Return a point of the problem, without velocity."""
        self.problem.statistics(point)
        flat = np.concatenate([np.ravel(array) for array in point]).astype(np.float64)
        flat = _validate.finite("point", flat)
        return Moving(flat, np.zeros_like(flat))

    def place(self, statistics: Any) -> Moving:
        """Return a point with these statistics, without velocity."""
        require(self.problem, "HeavyBall.place", "place")
        return self.rest(self.problem.place(statistics))  # type: ignore[attr-defined]

    def initial(self, *, rng: RNG) -> Moving:
        """Draw a start of the problem, without velocity."""
        return self.rest(self.problem.initial(rng=rng))

    def statistics(self, point: Moving) -> Any:
        """Summary statistics of the parameters, wherever they move."""
        kind, shapes = self._layout
        size = sum(math.prod(shape) for shape in shapes)
        flat = _validate.finite("point.x", point.x, shape=(size,))
        _validate.finite("point.velocity", point.velocity, shape=(size,))
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        parts = zip(np.split(flat, ends), shapes, strict=True)
        return self.problem.statistics(kind(*(part.reshape(shape) for part, shape in parts)))

    def direct_kernel(self) -> Kernel:
        """One step with a batch and momentum; the state is ``tuple(point)``."""
        step, constants = self.problem.direct_kernel()
        return Kernel(_moving(step, self._layout[1]), (constants, self.batch, self.momentum))

    @cached_property
    def _layout(self) -> tuple[type[Any], tuple[tuple[int, ...], ...]]:
        """Type of a point of the problem and the shapes of its arrays."""
        point = self.problem.initial(rng=0)
        return type(point), tuple(np.shape(array) for array in point)


@cache
def _moving(step: Any, shapes: tuple[tuple[int, ...], ...]) -> Callable[..., None]:
    """Compile the step with a batch and momentum, of the step of a single sample."""
    if len(shapes) == 1:
        (only,) = shapes

        @njit(nogil=True)
        def arrays(flat):  # type: ignore[no-untyped-def]
            return (flat.reshape(only),)

    elif len(shapes) == 2:
        first, second = shapes
        middle = math.prod(first)

        @njit(nogil=True)
        def arrays(flat):  # type: ignore[no-untyped-def]
            return flat[:middle].reshape(first), flat[middle:].reshape(second)

    else:
        raise ValueError(f"problem must have points of one or two arrays, got {len(shapes)}")

    @njit(nogil=True)
    def moved(state, constants, rng, step_size):  # type: ignore[no-untyped-def]
        # V <- momentum V + the mean of the single steps from x; x <- x + V
        x, velocity = state
        inner, batch, momentum = constants
        after = np.empty_like(x)
        for i in range(x.size):
            velocity[i] *= momentum
        for _ in range(batch):
            for i in range(x.size):
                after[i] = x[i]
            step(arrays(after), inner, rng, step_size)
            for i in range(x.size):
                velocity[i] += (after[i] - x[i]) / batch
        for i in range(x.size):
            x[i] += velocity[i]

    return moved


class Averaged(NamedTuple):
    """SGD on the mean of a batch of tensors, as SGD on single tensors in other units.

    Attributes
    ----------
    problem : SpikedTensor
        With one tensor per step.
    length : float
        Its x is so many times the x with batches.
    step : float
        Its step size is so many times the step size with batches.
    """

    problem: SpikedTensor
    length: float
    step: float


def averaged(problem: SpikedTensor, batch: int) -> Averaged:
    r"""Return the problem with single tensors that has the law of one with batches.

    The loss of a batch has the gradient of :math:`\|\bar Y - x^{\otimes k}\|^2`, with the mean
    :math:`\bar Y = \lambda v^{\otimes k} + W / \sqrt b` of the batch. With
    :math:`x = b^{-1/2k} x'` a step of size :math:`\delta` in x is one of size
    :math:`b^{-(k-1)/k} \delta` in :math:`x'`, at signal :math:`\sqrt b \lambda` and ridge
    :math:`b^{(k-1)/k} \alpha`.

    Parameters
    ----------
    problem : SpikedTensor
        What the batches are drawn from.
    batch : int
        Fresh tensors per step, at least 1.

    Examples
    --------
    The effective dynamics depends on ``c_delta / batch`` alone:

    >>> from companion.effective_dynamics.batches_and_momentum import averaged
    >>> from traindyn.problems import SpikedTensor
    >>> from traindyn.problems.spiked.equilibria import critical_signal
    >>> c, batch = 3.0, 4
    >>> single = averaged(SpikedTensor(3, 100, signal=critical_signal(3, c_delta=c / batch)), batch)
    >>> print(round(critical_signal(3, c_delta=c * single.step) / single.problem.signal, 12))
    1.0
    """
    problem = _validate.instance("problem", problem, SpikedTensor)
    batch = _validate.integer("batch", batch, least=1)
    power = batch ** ((problem.order - 1) / problem.order)
    single = SpikedTensor(
        problem.order,
        problem.dimension,
        signal=math.sqrt(batch) * problem.signal,
        ridge=power * problem.ridge,
    )
    return Averaged(single, batch ** (0.5 / problem.order), 1.0 / power)


def run_averaged(
    problem: SpikedTensor,
    times: ArrayLike,
    *,
    step_size: float,
    batch: int,
    replicas: int,
    rng: RNG,
    start: Statistics,
) -> Trajectory[Statistics]:
    """Run independent replicas of the statistics of SGD with batches of spiked tensors.

    Parameters
    ----------
    problem : SpikedTensor
        What the batches are drawn from.
    times, step_size, replicas, rng
        As in :func:`traindyn.sgd.reduced.run_replicas`; times are ``steps * step_size``.
    batch : int
        Fresh tensors per step; costs nothing.
    start : Statistics
        Of every replica.

    Returns
    -------
    Trajectory
        With a leading axis over replicas.

    Raises
    ------
    ValueError, FloatingPointError
        As :func:`traindyn.sgd.reduced.run_replicas`.
    """
    step_size = _validate.positive("step_size", step_size)
    grid = _validate.increasing("times", times)
    single, length, step = averaged(problem, batch)
    path = reduced.run_replicas(
        single,
        grid * step,
        step_size=step_size * step,
        replicas=replicas,
        rng=rng,
        start=Statistics(np.multiply(start.m, length), np.multiply(start.r2, length**2)),
        workers=-1,
    )
    m, r2 = path.statistics
    seen = Statistics(m / length, r2 / length**2)
    return Trajectory(path.times / step, seen, step_size=step_size, replicas=replicas)


def large_batch_step(
    problem: SpikedTensor, statistics: Statistics, *, step_size: float, ratio: float
) -> Statistics:
    r"""Statistics after one step, for :math:`n \to \infty` at a fixed step size and n / b.

    .. math::

        m &\mapsto m (1 - 2 k \delta R^{2k-2} - \delta \alpha) + 2 \delta \lambda k m^{k-1} \\
        r_\perp^2 &\mapsto r_\perp^2 (1 - 2 k \delta R^{2k-2} - \delta \alpha)^2
            + 4 k \delta^2 \tfrac nb R^{2k-2} .

    Small steps at a fixed :math:`c_\delta / b = \delta n / b` make it BGJ (3.1) at that value.

    Parameters
    ----------
    problem : SpikedTensor
        Its dimension is not used.
    statistics : Statistics
        Leading axes allowed.
    step_size : float
        Learning rate :math:`\delta`, not small.
    ratio : float
        Dimension over batch size, n / b; zero for gradient descent on the mean loss.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.effective_dynamics.batches_and_momentum import large_batch_step
    >>> from traindyn.problems.spiked import SpikedTensor, Statistics
    >>> problem, here = SpikedTensor(2, 9, signal=1.5), Statistics(0.3, 1.3)
    >>> after = large_batch_step(problem, here, step_size=1e-6, ratio=1e6)
    >>> speed = problem.drift(here, c_delta=1.0)
    >>> print(np.allclose((after.r2 - 1.3) / 1e-6, speed.r2, rtol=1e-4))
    True
    """
    step_size = _validate.positive("step_size", step_size)
    ratio = _validate.non_negative("ratio", ratio)
    m, r2 = np.asarray(statistics.m, np.float64), np.asarray(statistics.r2, np.float64)
    k = problem.order
    power = 2.0 * k * (m**2 + r2) ** (k - 1)
    keep = 1.0 - step_size * (power + problem.ridge)
    return Statistics(
        np.asarray(keep * m + 2.0 * step_size * problem.signal * k * m ** (k - 1)),
        np.asarray(keep**2 * r2 + 2.0 * step_size**2 * ratio * power),
    )


class Edge(NamedTuple):
    """Where steps become too large for the fixed point with overlap.

    Attributes
    ----------
    step_size : float
    beyond : {"lost", "turning", "alternating"}
        What happens there: the overlap vanishes, a pair of complex multipliers leaves the unit
        circle, or a multiplier is -1.
    """

    step_size: float
    beyond: Literal["lost", "turning", "alternating"]


def edge(problem: SpikedTensor, *, ratio: float) -> Edge:
    r"""Smallest step size at which batches of matrices lose their fixed point with overlap.

    The map :func:`large_batch_step` of order two without ridge has the fixed point
    :math:`R^2 = \lambda`, :math:`r_\perp^2 = \delta (n/b) / (1 - 2 \delta \lambda)`. With
    :math:`s = \delta \lambda` and :math:`q = n / (b \lambda^2)`, its share
    :math:`r_\perp^2 / \lambda = s q / (1 - 2 s)` is

    .. math:: 1, \qquad \frac{16 s^2 - 10 s + 2}{16 s^2 - 6 s + 1}, \qquad
        \frac{(4 s - 1) (8 s^2 - 4 s + 1)}{4 s (8 s^2 - 2 s + 1)}

    where the overlap vanishes, the multipliers have the product 1, and one of them is -1. The
    first comes first for :math:`q \ge 2`, so that :math:`1 / \delta = n / (b \lambda) + 2 \lambda`;
    the third for :math:`q` below 0.111, with :math:`\delta = 2 / L` at q = 0, where
    :math:`L = 8 \lambda` is the largest eigenvalue of the Hessian of the mean loss at its minimum.

    Parameters
    ----------
    problem : SpikedTensor
        Of order two, without ridge.
    ratio : float
        Dimension over batch size, n / b.

    Raises
    ------
    ValueError
        If the problem has another order, or a ridge.

    Examples
    --------
    >>> from companion.effective_dynamics.batches_and_momentum import edge
    >>> from traindyn.problems import SpikedTensor
    >>> problem = SpikedTensor(2, 100, signal=2.0)
    >>> edge(problem, ratio=12.0), edge(problem, ratio=0.0)
    (Edge(step_size=0.1, beyond='lost'), Edge(step_size=0.125, beyond='alternating'))
    """
    need_order_two(problem)
    if problem.ridge:
        raise ValueError(f"problem.ridge must be 0, got {problem.ridge:g}")
    signal = problem.signal
    q = _validate.non_negative("ratio", ratio) / signal**2
    if q >= 2.0:
        return Edge(1.0 / (signal * (q + 2.0)), "lost")
    if q == 0.0:
        return Edge(0.25 / signal, "alternating")
    peak = optimize.minimize_scalar(
        lambda s: -_alternating(s), bounds=(0.25, 0.5), method="bounded", options={"xatol": 1e-12}
    ).x
    if _alternating(peak) > q:
        s = optimize.brentq(lambda s: _alternating(s) - q, 0.25, peak, xtol=1e-14)
        return Edge(float(s) / signal, "alternating")
    s = optimize.brentq(lambda s: _turning(s) - q, 0.25, 0.5, xtol=1e-14)
    return Edge(float(s) / signal, "turning")


def _turning(s: float) -> float:
    """Find the q at which the product of the multipliers is 1."""
    return (16 * s**2 - 10 * s + 2) / (16 * s**2 - 6 * s + 1) * (1 - 2 * s) / s


def _alternating(s: float) -> float:
    """Find the q at which a multiplier is -1."""
    share = (4 * s - 1) * (8 * s**2 - 4 * s + 1) / (4 * s * (8 * s**2 - 2 * s + 1))
    return share * (1 - 2 * s) / s
