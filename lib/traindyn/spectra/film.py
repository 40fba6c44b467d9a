"""Spectra along a trajectory: top eigenpairs of every block at every saved time.

A film follows *chains*: one matrix and one block through all times. A chain's spectra
are computed in order, each from the eigenvectors of the one before; different chains are
independent and run in parallel threads, with linear algebra on one thread each (two BLAS
threads on a busy two-core machine can be a hundred times slower on skinny products).

Up to `dense_size` rows a block is formed, by a symmetric rank-k product into an array
that the chain reuses, because the few hundred products an iteration needs would cost
more (d = 1000, 10^4 samples, one core: 0.18 s to form, 0.02 s to solve, against 0.7 s
without forming). Larger blocks are only multiplied.

Memory: the sample itself, and per worker two d x d arrays, the Krylov basis and what
``problem.factors`` makes. Eigenvectors are kept only at the times asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate, linalg, parallel
from traindyn.linalg import LambdaOperator, Spectrum
from traindyn.problems.base import MATRICES, RNG, Array, Block, Matrix, Problem, Sample
from traindyn.spectra import blocks as block_operators
from traindyn.spectra.blocks import WeightedGram
from traindyn.trajectory import Trajectory

_WIDTH = 4
"""Columns per product of the eigensolver."""


@dataclass(frozen=True)
class Film:
    """Top eigenpairs of blocks along a trajectory, by matrix.

    Attributes
    ----------
    times : ndarray, shape (T,)
    blocks : tuple of Block
        B diagonal blocks.
    eigenvalues : dict of ndarray, shape (T, B, r)
        Decreasing in absolute value.
    residuals : dict of ndarray, shape (T, B, r)
        ``|A v - theta v| / max |theta|``.
    converged : dict of ndarray of bool, shape (T, B, r)
    alignment : dict of ndarray, shape (T, B)
        :func:`traindyn.linalg.alignment` of the block's own parameter with its top
        ``problem.outlier_count(block)`` eigenvectors (BGHJ Definition 2.1).
    overlaps : dict of ndarray, shape (T, B, r, m)
        Squared inner products of each eigenvector with each of m unit reference
        directions; m is zero when none were given.
    kept_times : ndarray, shape (K,)
        Times at which eigenvectors were kept.
    eigenvectors : dict of tuple of ndarray
        One array of shape (K, d, r) per block.
    """

    times: Array
    blocks: tuple[Block, ...]
    eigenvalues: dict[Matrix, Array]
    residuals: dict[Matrix, Array]
    converged: dict[Matrix, NDArray[np.bool_]]
    alignment: dict[Matrix, Array]
    overlaps: dict[Matrix, Array]
    kept_times: Array
    eigenvectors: dict[Matrix, tuple[Array, ...]]

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """The matrices filmed."""
        return tuple(self.eigenvalues)


@dataclass(frozen=True)
class _Settings:
    """What every chain of one film shares."""

    r: int
    tolerance: float
    dense_size: int
    directions: Array | None
    kept: frozenset[int]


@dataclass(frozen=True)
class _Frame:
    """One block at one time."""

    spectrum: Spectrum
    alignment: float
    overlaps: Array


def film(
    problem: Problem,
    trajectory: Trajectory[Any],
    sample: Sample,
    *,
    r: int,
    matrices: Sequence[Matrix] = MATRICES,
    blocks: Sequence[Block] | None = None,
    tolerance: float = 1e-8,
    directions: ArrayLike | None = None,
    keep: ArrayLike | None = None,
    dense_size: int = 2000,
    rng: RNG = 0,
    workers: int | None = None,
    progress: parallel.Progress = False,
) -> Film:
    """Compute top eigenpairs of diagonal blocks at every snapshot of a trajectory.

    Parameters
    ----------
    problem : Problem
    trajectory : Trajectory
        A single path with snapshots.
    sample : Sample
        Test or training data of the empirical matrices.
    r : int
        Eigenpairs per block; at least ``problem.outlier_count`` and at most its size.
    matrices : sequence of {"hessian", "g_matrix"}
    blocks : sequence of Block, optional
        Some of ``problem.blocks``; all unless given.
    tolerance : float
        Bound on the residuals, relative to the largest eigenvalue.
    directions : array_like, shape (m, d), optional
        Reference directions (rows, normalised here) for `overlaps`.
    keep : array_like of int, optional
        Indices of the times at which eigenvectors are kept; none unless given.
    dense_size : int
        Largest block that is formed rather than multiplied.
    rng : int, SeedSequence or Generator
        For the starts of the Krylov iteration; one child per chain.
    workers : int, optional
        Threads (-1: all cores). The result does not depend on it.
    progress : bool, str or callable
        As in :func:`traindyn.parallel.map_ordered`, counting chains.

    Returns
    -------
    Film

    Raises
    ------
    ValueError
        If the trajectory has no snapshots or has replicas, a block is not diagonal, `r` is
        smaller than an outlier count or larger than a block, or a shape is wrong.

    Warns
    -----
    RuntimeWarning
        If a pair did not converge; `converged` says which.
    """
    if trajectory.snapshots is None or trajectory.replicas is not None:
        raise ValueError(
            "trajectory must be a single path with snapshots, got "
            + ("no snapshots" if trajectory.snapshots is None else "several replicas")
        )
    matrices = tuple(_validate.choice("matrices", matrix, MATRICES) for matrix in matrices)
    chosen = tuple(
        _validate.choice("blocks", block, problem.blocks)
        for block in (problem.blocks if blocks is None else blocks)
    )
    if not matrices or not chosen:
        raise ValueError(f"matrices and blocks must not be empty, got {matrices} and {chosen}")
    r = _validate.integer("r", r, least=max(problem.outlier_count(block) for block in chosen))
    count = trajectory.times.size
    kept = _kept_indices(keep, count)
    settings = _Settings(
        r=r,
        tolerance=_validate.positive("tolerance", tolerance),
        dense_size=_validate.integer("dense_size", dense_size, least=0),
        directions=_unit_rows(directions),
        kept=frozenset(kept.tolist()),
    )
    chains = [(matrix, block) for matrix in matrices for block in chosen]
    generators = np.random.default_rng(rng).spawn(len(chains))

    def run(index: int) -> list[_Frame]:
        matrix, block = chains[index]
        return _chain(problem, trajectory, sample, matrix, block, settings, generators[index])

    done = parallel.map_ordered(run, range(len(chains)), workers=workers, progress=progress)
    frames = {
        matrix: done[first * len(chosen) : (first + 1) * len(chosen)]
        for first, matrix in enumerate(matrices)
    }

    def collect(read: Any) -> dict[Matrix, Any]:
        return {
            matrix: np.array([[read(row[n]) for row in rows] for n in range(count)])
            for matrix, rows in frames.items()
        }

    result = Film(
        times=trajectory.times,
        blocks=chosen,
        eigenvalues=collect(lambda frame: frame.spectrum.eigenvalues),
        residuals=collect(lambda frame: frame.spectrum.residuals),
        converged=collect(lambda frame: frame.spectrum.converged),
        alignment=collect(lambda frame: frame.alignment),
        overlaps=collect(lambda frame: frame.overlaps),
        kept_times=trajectory.times[kept],
        eigenvectors={
            matrix: tuple(
                np.array([row[n].spectrum.eigenvectors for n in kept])
                for row in (rows if kept.size else [])
            )
            for matrix, rows in frames.items()
        },
    )
    _warn_unconverged(result, settings.tolerance)
    return result


def _chain(
    problem: Problem,
    trajectory: Trajectory[Any],
    sample: Sample,
    matrix: Matrix,
    block: Block,
    settings: _Settings,
    generator: np.random.Generator,
) -> list[_Frame]:
    """Film one block of one matrix through all times."""
    frames: list[_Frame] = []
    scratch: Array | None = None
    warm: Array | None = None
    outliers = problem.outlier_count(block)
    for n in range(trajectory.times.size):
        point = type(trajectory.snapshots)(*(field[n] for field in trajectory.snapshots))
        gram = block_operators.operator(problem, matrix, block, point, sample)
        r = _validate.integer("r", settings.r, least=1, most=gram.size)
        if scratch is None and gram.size <= settings.dense_size:
            scratch = np.empty((gram.size, gram.size))
        spectrum = linalg.top_eigenpairs(
            _formed(gram, scratch) if scratch is not None else gram,
            r,
            start=warm,
            # Finite samples have simple spectra, so a narrow block loses no multiplicity.
            width=_WIDTH,
            tolerance=settings.tolerance,
            rng=generator,
        )
        warm = spectrum.eigenvectors
        frames.append(
            _Frame(
                spectrum=spectrum if n in settings.kept else _without_vectors(spectrum),
                alignment=float(
                    linalg.alignment(
                        problem.parameter(block, point), spectrum.eigenvectors[:, :outliers]
                    )
                ),
                overlaps=_overlaps(spectrum.eigenvectors, settings.directions),
            )
        )
    return frames


def _formed(gram: WeightedGram, scratch: Array) -> LambdaOperator:
    """Form the block in `scratch`, and multiply by that."""
    matrix = gram.dense(out=scratch)
    return LambdaOperator(gram.size, lambda vectors: matrix @ vectors)


def _overlaps(eigenvectors: Array, directions: Array | None) -> Array:
    if directions is None:
        return np.empty((eigenvectors.shape[1], 0))
    if directions.shape[1] != eigenvectors.shape[0]:
        raise ValueError(
            f"directions must have {eigenvectors.shape[0]} columns, the size of the blocks, "
            f"got {directions.shape[1]}"
        )
    squared: Array = (eigenvectors.T @ directions.T) ** 2
    return squared


def _without_vectors(spectrum: Spectrum) -> Spectrum:
    return replace(spectrum, eigenvectors=np.empty((0, spectrum.eigenvalues.size)))


def _kept_indices(keep: ArrayLike | None, count: int) -> NDArray[np.int64]:
    indices = np.asarray([] if keep is None else keep)
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise ValueError(f"keep must be a list of time indices, got {keep!r}")
    bad = [int(n) for n in indices if not -count <= n < count]
    if bad:
        raise ValueError(f"keep must be indices in [{-count}, {count - 1}], got {bad[0]}")
    return np.unique(indices.astype(np.int64) % count)


def _unit_rows(directions: ArrayLike | None) -> Array | None:
    if directions is None:
        return None
    rows = _validate.finite("directions", directions, shape=(None, None))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if np.any(norms == 0):
        raise ValueError("directions must be non-zero, got a zero row")
    unit: Array = rows / norms
    return unit


def _warn_unconverged(result: Film, tolerance: float) -> None:
    for matrix, converged in result.converged.items():
        missed = int(np.count_nonzero(~converged))
        if missed:
            warnings.warn(
                f"{missed} of {converged.size} eigenpairs of {matrix} did not reach the residual "
                f"{tolerance:g}; the worst is {result.residuals[matrix].max():.3g}",
                RuntimeWarning,
                stacklevel=3,
            )
