r"""Dynamical mean field theory of full-batch gradient descent, as a closed recursion.

With n samples in d dimensions, :math:`n / d \to \delta`, and a number of steps that does not
grow, the preactivations :math:`V(t) \in R^m` of a training sample follow an effective process
(MW, Dynamical mean field equations). With the force :math:`F` of
:class:`~traindyn.problems.multi_index.model.MultiIndex`, step size :math:`\eta` and
:math:`(W(0), W(1), \dots, V_*)` jointly Gaussian, of covariances
:math:`C(t, s), C(t, *), I_k`,

.. math::

   V(t) &= W(t) - \frac{\eta}{\delta} \sum_{s < t} R(t, s) F(s), \qquad
       F(t) = F(V(t), y), \quad y = h(V_*) + noise, \\
   C_F(t, s) &= E[F(t) F(s)^T], \qquad R_F(t, s) = E[\partial F(t) / \partial W(s)], \qquad
       R_F(t, *) = E[\partial F(t) / \partial V_*], \\
   \Theta(t + 1) &= \Theta(t) - \eta \sum_{s \le t} R_F(t, s) \Theta(s)
       - \eta R_F(t, *) \Theta_* + \eta Q(t), \qquad Q \sim GP(0, C_F / \delta),

where C is the covariance of :math:`\Theta` and :math:`R(t, s) = \eta^{-1} E[\partial
\Theta(t) / \partial Q(s)]`. As the second equation is linear, all kernels obey a closed
recursion forward in time, in which only expectations over (V, W, V_*) need sampling:

.. math::

   R(t + 1, s) &= R(t, s) - \eta \sum_{r = s + 1}^{t} R_F(t, r) R(r, s) + 1[s = t] I, \\
   C(t + 1, *) &= C(t, *) - \eta \sum_{r \le t} R_F(t, r) C(r, *) - \eta R_F(t, *), \\
   C(t + 1, s) &= C(t, s) - \eta \sum_{r \le t} R_F(t, r) C(r, s) - \eta R_F(t, *) C(s, *)^T
       + \frac{\eta^2}{\delta} \sum_{r < s} C_F(t, r) R(s, r)^T .

Responses to W are propagated path by path. The response to :math:`V_*` needs no derivative
of the target: Gaussian integration by parts gives
:math:`R_F(t, *) = E[F(t) V_*^T] - \sum_{s \le t} R_F(t, s) C(s, *)` (MW, Response to the
target's directions).

Two means keep the sampling error small: the innovations are scrambled Sobol points (at ten
steps the error of C(t, t) is ten times below that of independent draws), and they are whitened
against all earlier ones, so that second moments of (W, V_*) over the paths are exactly C. The
loss of a fresh sample has W in the place of V (MW, Training and test loss).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import ndtri
from scipy.stats import qmc

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.gaussian import Estimate
from traindyn.laws import HardSubspace
from traindyn.parallel import map_replicas
from traindyn.problems.multi_index import MultiIndex, Statistics, decompose, orthonormal
from traindyn.trajectory import Trajectory

__all__ = ["Kernels", "MeanField", "Paths", "TargetMoments", "hard_basis", "solve"]

_MEMORY_LIMIT = 16 * 2**30
_SOBOL_BITS = 30


class Kernels(NamedTuple):
    """Kernels of the theory; T steps make T + 1 times.

    Attributes
    ----------
    correlation : ndarray, shape (T + 1, T + 1, m, m)
        C(t, s), of neurons at two times.
    overlap : ndarray, shape (T + 1, m, k)
        ``C(t, *)``, with the target's directions: of order one along easy ones at most (MW,
        Hard directions, and MW, Easy directions).
    response : ndarray, shape (T + 1, T + 1, m, m)
        R(t, s), zero unless t > s.
    force_correlation : ndarray, shape (T + 1, T + 1, m, m)
        C_F(t, s).
    force_response : ndarray, shape (T + 1, T + 1, m, m)
        R_F(t, s), zero unless t >= s.
    force_star : ndarray, shape (T + 1, m, k)
        ``R_F(t, *)``.
    train_loss, test_loss : ndarray, shape (T + 1,)
        Losses of a training sample and of a fresh one (MW, Training and test loss).
    """

    correlation: Array
    overlap: Array
    response: Array
    force_correlation: Array
    force_response: Array
    force_star: Array
    train_loss: Array
    test_loss: Array


class TargetMoments(NamedTuple):
    """Kernels weighted by products of the target's coordinates.

    Attributes
    ----------
    force_correlation : ndarray, shape (T + 1, T + 1, m, m, k, k)
        ``E[F(t) F(s)^T x V_* V_*^T]``.
    force_response : ndarray, shape (T + 1, T + 1, m, m, k, k)
        ``E[dF(t)/dW(s) x V_* V_*^T]``.
    """

    force_correlation: Array
    force_response: Array


class Paths(NamedTuple):
    """Sampled effective paths (MW, Law of the preactivations).

    Attributes
    ----------
    coordinates : ndarray, shape (N, k)
        V_*.
    labels : ndarray, shape (N,)
    preactivations : dict of int to ndarray, shape (N, m)
        V(t) at the steps that were kept.
    """

    coordinates: Array
    labels: Array
    preactivations: dict[int, Array]


@dataclass(frozen=True, eq=False)
class MeanField:
    """Solution of the mean-field equations, with its sampling error.

    Attributes
    ----------
    problem : MultiIndex
    sample_ratio, step_size : float
    kernels : Kernels
        Means over independent replicas.
    errors : Kernels or None
        Standard errors of these means; None for a single replica.
    replicas : tuple of Kernels
        One per replica.
    paths : tuple of Paths
        One per replica.
    moments : TargetMoments or None
        Means over replicas, if they were asked for.
    conditional_variance : float
        Least variance of W(t) given its past and V_*, relative to C(t, t): where it is below the
        floor, W(t) was given a little more freedom than it has.
    """

    problem: MultiIndex
    sample_ratio: float
    step_size: float
    kernels: Kernels
    errors: Kernels | None
    replicas: tuple[Kernels, ...]
    paths: tuple[Paths, ...]
    moments: TargetMoments | None
    conditional_variance: float

    @property
    def steps(self) -> int:
        """Number T of steps."""
        return int(self.kernels.train_loss.size - 1)

    def trajectory(self) -> Trajectory[Statistics]:
        """Return overlaps, products of neurons and losses, on the time axis of simulations.

        Returns
        -------
        Trajectory
            With `errors` if there are two replicas or more.
        """
        times = self.step_size * np.arange(self.steps + 1, dtype=np.float64)
        errors = None if self.errors is None else _statistics(self.errors)
        return Trajectory(times, _statistics(self.kernels), self.step_size, errors=errors)

    def hard_subspace(
        self,
        step: int,
        *,
        neuron: int = 0,
        hard: ArrayLike | None = None,
        side: str = "left",
        replica: int | None = None,
    ) -> HardSubspace:
        """Return the Hessian's edge and informative outliers at one step (MW, Main theorem).

        Parameters
        ----------
        step : int
            One of those kept.
        neuron : int, default 0
            Which block; for a single neuron the whole Hessian.
        hard : array_like, shape (k, r), optional
            Orthonormal basis of the hard subspace. Default: computed from the target.
        side : {"left", "right"}
            Which end of the spectrum.
        replica : int, optional
            Use the paths of one replica instead of all.

        Raises
        ------
        ValueError
            If the step was not kept, an argument is out of range, nothing is hard, or the
            weights of the Hessian are unbounded below.
        """
        self.problem.require_bounded_curvature()
        basis = hard_basis(self.problem, hard)
        index = _validate.integer("neuron", neuron, least=0, most=self.problem.width - 1)
        kept = self.paths[0].preactivations
        step = _validate.integer("step", step, least=0)
        if step not in kept:
            raise ValueError(f"step must be one of those kept, {sorted(kept)}, got {step}")
        chosen = self.paths
        if replica is not None:
            chosen = (chosen[_validate.integer("replica", replica, least=0, most=len(chosen) - 1)],)
        weights, features = [], []
        for paths in chosen:
            both = self.problem.block_weights(paths.preactivations[step], paths.labels)
            weights.append(both[:, index])
            features.append(paths.coordinates @ basis)
        return HardSubspace(
            np.concatenate(weights), np.concatenate(features), self.sample_ratio, side=side
        )

    def statistic(self, step: int, *, neuron: int = 0, hard: ArrayLike | None = None) -> Estimate:
        """Return the criterion of an informative outlier: above one there is one.

        Parameters
        ----------
        step, neuron, hard
            As for :meth:`hard_subspace`.

        Returns
        -------
        Estimate
            Mean over replicas with its standard error (NaN for one replica).
        """
        basis = hard_basis(self.problem, hard)
        values = np.array(
            [
                self.hard_subspace(step, neuron=neuron, hard=basis, replica=replica).statistic
                for replica in range(len(self.paths))
            ]
        )
        return Estimate(values.mean(), _standard_error(values))


def solve(
    problem: MultiIndex,
    steps: int,
    *,
    sample_ratio: float,
    step_size: float,
    rng: RNG,
    paths: int = 2**14,
    replicas: int = 2,
    keep: Sequence[int] | None = None,
    radius: float = 1.0,
    star: str = "parts",
    floor: float = 1e-4,
    moments: bool = False,
    fresh: bool = False,
    memory: float = 1.0,
    noise: float = 1.0,
    workers: int | None = None,
) -> MeanField:
    """Solve the mean-field equations forward in time (MW, Dynamical mean field equations).

    Parameters
    ----------
    problem : MultiIndex
        Its activation must have a second derivative.
    steps : int
        Number T of gradient steps, at least 0.
    sample_ratio : float
        Samples per dimension.
    step_size : float
        Learning rate of the risk (for wide networks, of order m).
    rng : int, SeedSequence or Generator
        Root of the streams; each of the replicas has a child of its own.
    paths : int, default 16384
        Sampled paths per replica, best a power of two; memory grows as ``4 paths (T m)^2`` bytes.
    replicas : int, default 2
        Number of independent solutions, which give the errors.
    keep : sequence of int, optional
        Steps whose paths are kept. Default: the last.
    radius : float, default 1.0
        Norm of the neurons at the start, where they are independent.
    star : {"parts", "gradient"}
        Response to the directions by Gaussian integration by parts, or (a cross-check, for
        smooth targets) by propagating derivatives.
    floor : float, default 1e-4
        Least conditional variance of W(t), relative to its variance; sampling noise is
        amplified by its inverse root.
    moments : bool, default False
        Also return the kernels weighted with products of the target's coordinates, which
        :func:`~traindyn.dmft.overlap.overlap_law` needs.
    fresh : bool, default False
        Draw new samples, as many, for every step: there is no memory, V = W.
    memory, noise : float, default 1.0
        Factors of the memory of V and of the covariance of Q. Other values than one are wrong
        on purpose: departures that a test of the equations must tell from them.
    workers : int, optional
        Threads over replicas, as in :func:`traindyn.parallel.map_replicas`.

    Raises
    ------
    ValueError
        If an argument is out of range, the activation has no second derivative, or the
        target no gradient where one is asked for.
    FloatingPointError
        If the paths diverge; the message gives the step size, the step and the last loss.

    Examples
    --------
    >>> from traindyn.dmft import solve
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> found = solve(MultiIndex(), 2, sample_ratio=4.0, step_size=0.5, rng=0, paths=4000)
    >>> found.kernels.correlation[2, 2, 0, 0].round(1)
    np.float64(0.9)
    """
    problem.activation.second("the mean-field equations")
    count = _validate.integer("steps", steps, least=0)
    least = 4 * (problem.k + 1 + (count + 1) * problem.width)
    setting = _Setting(
        problem=problem,
        steps=count,
        sample_ratio=_validate.positive("sample_ratio", sample_ratio),
        step_size=_validate.positive("step_size", step_size),
        paths=_validate.integer("paths", paths, least=least, most=2**24),
        keep=tuple(
            _validate.integer("keep", each, least=0, most=count)
            for each in ((count,) if keep is None else _validate.listed("keep", keep))
        ),
        radius=_validate.positive("radius", radius),
        by_parts=_validate.choice("star", star, ("parts", "gradient")) == "parts",
        floor=_validate.positive("floor", floor),
        moments=bool(moments),
        fresh=bool(fresh),
        memory=float(_validate.number("memory", memory)) * (not fresh),
        noise=_validate.positive("noise", noise),
    )
    if not setting.by_parts and problem.target.gradient is None:
        raise ValueError(f"star must be 'parts' for {problem.target.name}, which has no gradient")
    needed = 4 * setting.paths * ((count + 1) * problem.width) ** 2
    if needed > _MEMORY_LIMIT:
        raise ValueError(
            f"paths * (steps * width)^2 must stay below {_MEMORY_LIMIT / 4:.3g}, got "
            f"{needed / 4:.3g}, or {needed / 2**30:.0f} GiB"
        )
    number = _validate.integer("replicas", replicas, least=1)
    generator = _validate.generator("rng", rng)
    runs = map_replicas(partial(_run, setting), number, rng=generator, workers=workers)
    stacked = [np.stack(each) for each in zip(*(run.kernels for run in runs))]
    both = None
    if moments:
        both = TargetMoments(
            *(np.mean(each, axis=0) for each in zip(*(run.moments for run in runs)))
        )
    return MeanField(
        problem=problem,
        sample_ratio=setting.sample_ratio,
        step_size=setting.step_size,
        kernels=Kernels(*(each.mean(axis=0) for each in stacked)),
        errors=Kernels(*map(_standard_error, stacked)) if number > 1 else None,
        replicas=tuple(run.kernels for run in runs),
        paths=tuple(run.paths for run in runs),
        moments=both,
        conditional_variance=min(run.variance for run in runs),
    )


def hard_basis(problem: MultiIndex, hard: ArrayLike | None) -> Array:
    """Return an orthonormal basis of the hard subspace, computed if not given, shape (k, r).

    Raises
    ------
    ValueError
        If its columns are not orthonormal, or no direction is hard.
    """
    if hard is not None:
        return _validate.frozen(orthonormal("hard", hard, rows=problem.k))
    found = decompose(problem.target).hard
    if found.shape[1] == 0:
        raise ValueError(
            f"problem.target must have a hard direction, got {problem.target.name}, which has none"
        )
    return found


class _Setting(NamedTuple):
    """Checked arguments of :func:`solve`."""

    problem: MultiIndex
    steps: int
    sample_ratio: float
    step_size: float
    paths: int
    keep: tuple[int, ...]
    radius: float
    by_parts: bool
    floor: float
    moments: bool
    fresh: bool
    memory: float
    noise: float


class _Run(NamedTuple):
    """What one replica gives."""

    kernels: Kernels
    moments: Any
    paths: Paths
    variance: float


class _Innovations:
    """Columns of quasi-random Gaussian draws, orthonormal in the mean over the paths."""

    def __init__(self, paths: int, columns: int, generator: np.random.Generator) -> None:
        engine = qmc.Sobol(columns, scramble=True, bits=_SOBOL_BITS, rng=generator)
        # The first points of a power of two; half a cell keeps them inside the open cube.
        points = engine.random_base2((paths - 1).bit_length())[:paths]
        self._basis = np.ascontiguousarray(ndtri(points + 2.0 ** -(_SOBOL_BITS + 1)).T)
        self._used = 0

    def draw(self, count: int) -> Array:
        """Whiten the next `count` columns against all earlier ones, shape (count, paths)."""
        n = self._basis.shape[1]
        known = self._basis[: self._used]
        fresh = self._basis[self._used : self._used + count]
        fresh -= fresh.mean(axis=1, keepdims=True)
        fresh -= (fresh @ known.T / n) @ known
        fresh[:] = np.linalg.solve(np.linalg.cholesky(fresh @ fresh.T / n), fresh)
        self._used += count
        return fresh


def _run(setting: _Setting, generator: np.random.Generator) -> _Run:
    """One replica; overflow is reported as divergence, with the step."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _forward(setting, generator)


def _forward(setting: _Setting, generator: np.random.Generator) -> _Run:
    problem, eta, sample_ratio = setting.problem, setting.step_size, setting.sample_ratio
    m, k, n, total = problem.width, problem.k, setting.paths, setting.steps + 1
    noisy = problem.target.noise > 0
    source = _Innovations(n, k + noisy + total * m, generator)
    star = source.draw(k)
    labels = problem.target.signal(star.T)
    if noisy:
        labels = labels + problem.target.noise * source.draw(1)[0]
    pairs = (star[:, None, :] * star[None, :, :]).reshape(k * k, n)

    kernels = _empty_kernels(total, m, k)
    c, overlap, r, c_f, r_f, r_star, train, test = kernels
    c[0, 0] = setting.radius**2 * np.eye(m)
    weighted = TargetMoments(*(np.zeros((total, total, m, m, k, k)) for _ in range(2)))
    innovations = np.empty((total, m, n))
    forces = np.empty((total, m, n))
    factor = np.zeros((total, total, m, m))
    # slopes[s][r - s] is dF(r)/dW(s), shape (m, m, n): output, input, path.
    slopes = [np.empty((total - s, m, m, n)) for s in range(total)]
    by_star = np.empty((0 if setting.by_parts else total, m, k, n))
    kept: dict[int, Array] = {}
    least = np.inf

    for t in range(total):
        innovations[t] = source.draw(m)
        if not np.all(np.isfinite(c[t, : t + 1])):
            raise _diverged(setting, t, train)
        least = min(least, _conditional(t, c, overlap, factor, setting.floor))
        w = overlap[t] @ star + _row(factor[t, : t + 1]) @ _stack(innovations[: t + 1])
        memory = -eta / sample_ratio * r[t] * setting.memory
        v = w + _row(memory[:t]) @ _stack(forces[:t])
        if not np.all(np.isfinite(v)):
            raise _diverged(setting, t, train)
        if t in setting.keep:
            kept[t] = np.ascontiguousarray(v.T)
        prediction, force = problem.force(v.T, labels)
        jacobian = np.ascontiguousarray(
            (problem.hessian_weights(v.T, labels) / m).transpose(1, 2, 0)
        )
        forces[t] = force.T
        train[t] = problem.loss.value(labels, prediction).mean()
        test[t] = problem.loss.value(labels, problem.predict(w.T)).mean()

        for s in range(t + 1):
            slot = slopes[s][t - s]
            if s == t:
                slot[:] = jacobian
            else:
                past = slopes[s][: t - s].reshape((t - s) * m, m * n)
                through = (_row(memory[s:t]) @ past).reshape(m, m, n)
                if m == 1:
                    np.multiply(jacobian, through, out=slot)
                else:
                    np.einsum("ijn,jln->iln", jacobian, through, out=slot)
            r_f[t, s] = slot.mean(axis=2)
            if setting.moments:
                weighted.force_response[t, s] = (slot @ pairs.T / n).reshape(m, m, k, k)
        # The forces of different samples are independent.
        together = range(t if setting.fresh else 0, t + 1)
        since = together.start
        crossed = forces[t] @ _stack(forces[since : t + 1]).T / n
        c_f[t, since : t + 1] = crossed.reshape(m, len(together), m).transpose(1, 0, 2)
        c_f[since : t + 1, t] = c_f[t, since : t + 1].transpose(0, 2, 1)
        if setting.moments:
            for s in together:
                products = forces[t][:, None, :] * forces[s][None, :, :] @ pairs.T / n
                weighted.force_correlation[t, s] = products.reshape(m, m, k, k)
                weighted.force_correlation[s, t] = weighted.force_correlation[t, s].transpose(
                    1, 0, 2, 3
                )
        if setting.by_parts:
            parts = forces[t] @ star.T / n
            r_star[t] = parts - np.einsum("sij,sjk->ik", r_f[t, : t + 1], overlap[: t + 1])
        else:
            through = _row(memory[:t]) @ by_star[:t].reshape(t * m, k * n)
            gradient = _label_slope(problem, v.T, labels, star.T)
            inner = np.einsum("ijn,jkn->ikn", jacobian, through.reshape(m, k, n))
            by_star[t] = inner + gradient
            r_star[t] = by_star[t].mean(axis=2)
        if not all(np.isfinite(each[t]).all() for each in (train, test, r_f, c_f, r_star)):
            raise _diverged(setting, t, train)
        if t + 1 < total:
            _advance(t, kernels, eta, sample_ratio / setting.noise)
    return _Run(kernels, weighted, Paths(star.T.copy(), labels, kept), float(least))


def _diverged(setting: _Setting, step: int, train: Array) -> FloatingPointError:
    given = f"sample_ratio {setting.sample_ratio:g}"
    for name, value in (("memory", setting.memory), ("noise", setting.noise)):
        given += "" if value == 1 or setting.fresh else f" and {name} {value:g}"
    return FloatingPointError(
        f"step_size must be small enough for the paths to stay finite, got {setting.step_size:g} "
        f"at {given}: divergence at step {step} (last train loss {train[max(step - 1, 0)]:.3g})"
    )


def _empty_kernels(total: int, m: int, k: int) -> Kernels:
    square, tall = (total, total, m, m), (total, m, k)
    shapes = (square, tall, square, square, square, tall, (total,), (total,))
    return Kernels(*(np.zeros(shape) for shape in shapes))


def _row(blocks: Array) -> Array:
    """Blocks (t, m, m) side by side, shape (m, t m)."""
    t, m, _ = blocks.shape
    return np.asarray(blocks.transpose(1, 0, 2).reshape(m, t * m))


def _stack(vectors: Array) -> Array:
    """Vectors (t, m, n) one below the other, shape (t m, n)."""
    t, m, n = vectors.shape
    return vectors.reshape(t * m, n)


def _conditional(t: int, c: Array, overlap: Array, factor: Array, floor: float) -> float:
    """Extend the block Cholesky factor of the covariance of W given V_* by row t.

    Returns the least conditional variance relative to the variance of W(t).
    """
    row, m = factor[t], c.shape[-1]
    if t > 0:
        # The blocks up to here are one lower triangular matrix.
        known = factor[:t, :t].transpose(0, 2, 1, 3).reshape(t * m, t * m)
        rest = c[t, :t] - np.einsum("ik,sjk->sij", overlap[t], overlap[:t])
        solved = solve_triangular(
            known, rest.transpose(0, 2, 1).reshape(t * m, m), lower=True, check_finite=False
        )
        row[:t] = solved.reshape(t, m, m).transpose(0, 2, 1)
    rest = c[t, t] - overlap[t] @ overlap[t].T - np.einsum("rij,rkj->ik", row[:t], row[:t])
    values, vectors = np.linalg.eigh((rest + rest.T) / 2)
    scale = float(np.trace(c[t, t])) / len(rest)
    relative = float(values[0]) / scale
    rooted = np.sqrt(np.maximum(values, floor * scale))
    # Lower triangular, for the solves above.
    row[t] = np.linalg.qr((vectors * rooted).T)[1].T
    return relative


def _label_slope(problem: MultiIndex, v: Array, labels: Array, star: Array) -> Array:
    """Partial derivative of the force in V_*, shape (m, k, n), through the label."""
    gradient = problem.target.gradient
    assert gradient is not None
    step = 1e-5 * (1 + np.abs(labels))
    up, down = problem.force(v, labels + step)[1], problem.force(v, labels - step)[1]
    by_label = (up - down) / (2 * step)[:, None]
    return np.asarray(np.einsum("nj,nk->jkn", by_label, gradient(star)))


def _advance(t: int, kernels: Kernels, eta: float, sample_ratio: float) -> None:
    """Kernels at t + 1 from those up to t."""
    c, overlap, r, c_f, r_f, r_star, _, _ = kernels
    now = slice(0, t + 1)
    # R(t + 1, s), s <= t.
    moved = np.einsum("rij,rsjk->sik", r_f[t, now], r[now, now])
    r[t + 1, now] = r[t, now] - eta * moved
    r[t + 1, t] += np.eye(r.shape[2])
    overlap[t + 1] = (
        overlap[t] - eta * np.einsum("rij,rjk->ik", r_f[t, now], overlap[now]) - eta * r_star[t]
    )
    # E[Q(t) Theta(s)^T] / eta for s <= t + 1.
    ahead = slice(0, t + 2)
    noise = np.einsum("rij,srkj->sik", c_f[t, now], r[ahead, now]) * (eta / sample_ratio)
    c[t + 1, now] = (
        c[t, now]
        - eta * np.einsum("rij,rsjk->sik", r_f[t, now], c[now, now])
        - eta * np.einsum("ij,skj->sik", r_star[t], overlap[now])
        + eta * noise[: t + 1]
    )
    c[now, t + 1] = c[t + 1, now].transpose(0, 2, 1)
    corner = (
        c[t, t + 1]
        - eta * np.einsum("rij,rjk->ik", r_f[t, now], c[now, t + 1])
        - eta * r_star[t] @ overlap[t + 1].T
        + eta * noise[t + 1]
    )
    c[t + 1, t + 1] = (corner + corner.T) / 2


def _statistics(kernels: Kernels) -> Statistics:
    diagonal = np.arange(kernels.train_loss.size)
    return Statistics(
        overlap=kernels.overlap,
        gram=kernels.correlation[diagonal, diagonal],
        train_loss=kernels.train_loss,
        test_loss=kernels.test_loss,
    )


def _standard_error(values: Array) -> Array:
    """Return the standard error of the mean over axis 0; NaN for a single value."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))
