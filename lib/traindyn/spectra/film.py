"""Spectra along a trajectory: top eigenpairs of every block at every saved time.

A film follows *chains*: one matrix and one block through all times. The spectra of a chain
start from its eigenvectors at the time before; the chains of one time share one forward pass
of the network and run in parallel threads, with linear algebra on one thread each (two BLAS
threads on a busy two-core machine can be a hundred times slower on skinny products).

Up to `dense_size` rows a block is formed, by symmetric rank-k products, where the few hundred
products of an iteration would cost more (d = 1000, 10^4 samples, one core: 0.18 s to form,
0.02 s to solve, against 0.7 s without forming). Larger blocks are only multiplied, and so are
those whose chain needed few products last time, as it does where its outliers are far from the
bulk. Samples of weight zero take no part in either, and a block that is zero altogether costs
nothing.

Memory: the sample itself, and per worker three d x d arrays and the Krylov basis, besides the
leading eigenvectors of every chain. Eigenvectors of earlier times are kept only when asked for.

The alignments are those that MDL Theorems 13.3 and 13.6 are about.

:func:`film` is for the problems of this library, whose blocks it can form. :func:`follow` is
for any other training: it takes the operators at each time, of this library or another one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate, linalg, parallel
from traindyn._threads import one_thread
from traindyn._types import RNG, Array
from traindyn.linalg import LambdaOperator, Operator, Spectrum
from traindyn.problems.base import MATRICES, Block, Matrix, Problem, Sample, require
from traindyn.spectra import blocks as block_operators
from traindyn.spectra.blocks import FactorSource, WeightedGram
from traindyn.trajectory import Trajectory

_WIDTH = 4
"""Columns per product of the eigensolver."""
_FEW_PRODUCTS = 1 / 15
"""Products, per row of a block, that cost as much as forming it (measured, d = 400 and 1000)."""


@dataclass(frozen=True)
class Film:
    """Top eigenpairs of blocks along a trajectory, by matrix.

    With blocks of different sizes, r is the largest number of eigenpairs of any of them, and
    what a block does not have is NaN (`converged`: True).

    Attributes
    ----------
    times : ndarray, shape (T,)
    blocks : tuple of Block
        B diagonal blocks; of :func:`follow` a single one, (0, 0), for the whole matrix.
    eigenvalues : dict of ndarray, shape (T, B, r)
        Decreasing in absolute value.
    residuals : dict of ndarray, shape (T, B, r)
        ``|A v - theta v| / max |theta|``.
    converged : dict of ndarray of bool, shape (T, B, r)
    alignment : dict of ndarray, shape (T, B)
        :func:`traindyn.linalg.alignment` of the block's own parameter with its top
        ``problem.outlier_count(block)`` eigenvectors (BGHJ Definition 2.1), or of the vector
        given to :func:`follow` with all r; NaN where the block is zero and has no top
        eigenvectors, and where that vector is zero or was not given.
    overlaps : dict of ndarray, shape (T, B, r, m)
        Squared inner products of each eigenvector with each of m unit reference
        directions; m is zero when none were given. NaN where the block is zero, and for blocks
        of another size than the directions.
    kept_times : ndarray, shape (K,)
        Times at which eigenvectors were kept.
    eigenvectors : dict of tuple of ndarray
        One array of shape (K, size, pairs) per block.
    """

    times: Array
    blocks: tuple[Block, ...]
    eigenvalues: dict[str, Array]
    residuals: dict[str, Array]
    converged: dict[str, NDArray[np.bool_]]
    alignment: dict[str, Array]
    overlaps: dict[str, Array]
    kept_times: Array
    eigenvectors: dict[str, tuple[Array, ...]]

    @property
    def matrices(self) -> tuple[str, ...]:
        """The matrices filmed."""
        return tuple(self.eigenvalues)


@dataclass(frozen=True)
class _Chain:
    """One block of one matrix through all times."""

    matrix: Matrix
    block: Block
    r: int
    outliers: int


@dataclass(frozen=True)
class _Settings:
    """What every chain of one film shares."""

    tolerance: float
    dense_size: int
    directions: Array | None


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
    r: int | Sequence[int] | None = None,
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
        Its ``outlier_count`` says how many eigenvectors the alignment takes.
    trajectory : Trajectory
        A single path with snapshots.
    sample : Sample
        Test or training data of the empirical matrices; at least as many draws as the
        eigenpairs of any block.
    r : int or sequence of int, optional
        Eigenpairs of every block, or of each one; ``problem.outlier_count(block)`` unless
        given, and at least that. A single number must not be more than the largest block has;
        smaller blocks are then solved completely.
    matrices : sequence of {"hessian", "g_matrix"}
        Which to compute; both unless given.
    blocks : sequence of Block, optional
        Some of ``problem.blocks``; all unless given.
    tolerance : float
        Bound on the residuals, relative to the largest eigenvalue.
    directions : array_like, shape (m, d), optional
        Reference directions (rows, normalised here) for `overlaps`, of the size of at least
        one block.
    keep : array_like of int, optional
        Indices of the times at which eigenvectors are kept; none unless given.
    dense_size : int
        Largest block that is formed, unless few products are expected; larger ones are only
        multiplied.
    rng : int, SeedSequence or Generator
        For the starts of the Krylov iteration; one child per chain and time.
    workers : int, optional
        Threads (-1: all cores). The result does not depend on it.
    progress : bool, str or callable
        As in :func:`traindyn.parallel.map_ordered`, counting times.

    Raises
    ------
    ValueError
        If the trajectory has no snapshots or has replicas, a block is not diagonal or its
        parameter is zero at some time, `r` is smaller than an outlier count or larger than a
        block or the sample, or a shape is wrong.

    Warns
    -----
    RuntimeWarning
        If a pair did not converge; `converged` says which.
    """
    points = _points(trajectory)
    require(problem, "spectra.film", "blocks", "parameter", "outlier_count")
    matrices = tuple(_validate.choice("matrices", matrix, MATRICES) for matrix in matrices)
    chosen = tuple(
        _validate.choice("blocks", block, problem.blocks)
        for block in (problem.blocks if blocks is None else blocks)
    )
    if not matrices or not chosen:
        raise ValueError(f"matrices and blocks must not be empty, got {matrices} and {chosen}")
    count = trajectory.times.size
    sizes = [_size(problem, block, points, trajectory.times) for block in chosen]
    pairs = _pairs(problem, chosen, sizes, r, sample)
    kept = _kept_indices(keep, count)
    settings = _Settings(
        tolerance=_validate.positive("tolerance", tolerance),
        dense_size=_validate.integer("dense_size", dense_size, least=0),
        directions=_directions(directions, sizes),
    )
    chains = [
        _Chain(matrix, block, number, problem.outlier_count(block))
        for matrix in matrices
        for block, number in zip(chosen, pairs)
    ]
    frames = _shoot(problem, points, sample, chains, settings, set(kept), rng, workers, progress)
    each = len(chosen)
    rows: dict[str, list[list[_Frame]]] = {
        matrix: frames[first * each : (first + 1) * each] for first, matrix in enumerate(matrices)
    }
    result = _film(trajectory.times, chosen, rows, max(pairs), kept)
    _warn_unconverged(result, settings.tolerance)
    return result


def follow(
    frames: Iterable[tuple[float, Mapping[str, Operator], ArrayLike | None]],
    r: int,
    *,
    tolerance: float = 1e-6,
    keep: bool = False,
    rng: RNG = 0,
) -> Film:
    """Compute top eigenpairs of the operators that a training yields, one time after the other.

    Parameters
    ----------
    frames : iterable of tuple
        At each time the time, the operators by name, and a vector whose alignment with their top
        r eigenvectors is wanted, such as the gradient, or None. Operators are all that
        :func:`traindyn.linalg.as_operator` takes; names and sizes are the same at all times. They
        are multiplied before the next frame is asked for, so that a generator may train one and
        the same model in between.
    r : int
        Eigenpairs of every operator.
    tolerance : float
        Bound on the residuals, relative to the largest eigenvalue. Products in single precision
        allow about 1e-5.
    keep : bool
        Whether to keep the eigenvectors of all times.
    rng : int, SeedSequence or Generator
        For the starts of the Krylov iteration; one child per operator and time.

    Returns
    -------
    Film

    Raises
    ------
    ValueError
        If there is no frame or one is no such tuple, times do not increase, names or sizes change,
        or an argument is out of range.

    Warns
    -----
    RuntimeWarning
        If a pair did not converge; `converged` says which.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.spectra import film
    >>> def frames():
    ...     for time in range(3):
    ...         yield time, {"hessian": np.diag([1.0, 2.0 + time, 0.5])}, [0.0, 1.0, 0.0]
    >>> seen = film.follow(frames(), 1)
    >>> seen.eigenvalues["hessian"][:, 0, 0]
    array([2., 3., 4.])
    >>> seen.alignment["hessian"][:, 0]
    array([1., 1., 1.])
    """
    r = _validate.integer("r", r, least=1)
    tolerance = _validate.positive("tolerance", tolerance)
    generator = _validate.generator("rng", rng)
    if not isinstance(frames, Iterable):
        raise ValueError(f"frames must be a list or a generator, got {frames!r:.60}")
    times: list[float] = []
    rows: dict[str, list[_Frame]] = {}
    starts: dict[str, Array] = {}
    for n, frame in enumerate(frames):
        time, operators, vector = _yielded(f"frames[{n}]", frame)
        if times and time <= times[-1]:
            raise ValueError(f"frames must have increasing times, got {time:g} after {times[-1]:g}")
        if times and operators.keys() != rows.keys():
            raise ValueError(
                f"frames must have the same operators at all times, {sorted(rows)}, got "
                f"{sorted(operators)} at time {time:g}"
            )
        times.append(time)
        for name, operator in operators.items():
            size = operator.size
            if name in starts and starts[name].shape[0] != size:
                raise ValueError(
                    f"frames must have operators of the same sizes at all times, got {name!r} of "
                    f"size {size} after {starts[name].shape[0]}"
                )
            spectrum = linalg.top_eigenpairs(
                operator,
                _validate.integer("r", r, least=1, most=size),
                start=starts.get(name),
                width=_WIDTH,
                tolerance=tolerance,
                rng=generator.spawn(1)[0],
            )
            vectors = starts[name] = spectrum.eigenvectors
            aligned = np.nan
            if vector is not None and vector.size != size:
                raise ValueError(f"frames[{n}][2] must have size {size}, got {vector.size}")
            if vector is not None and np.any(vector) and np.any(spectrum.eigenvalues):
                aligned = float(linalg.alignment(vector, vectors))
            seen = _Frame(spectrum, aligned, _overlaps(vectors, None))
            rows.setdefault(name, []).append(seen if keep else _without_vectors(seen))
    if not times:
        raise ValueError("frames must not be empty")
    kept = np.arange(len(times) if keep else 0)
    chains = {name: [chain] for name, chain in rows.items()}
    result = _film(np.array(times), ((0, 0),), chains, r, kept)
    _warn_unconverged(result, tolerance)
    return result


def _yielded(
    name: str, frame: Any
) -> tuple[float, dict[str, linalg.SymmetricOperator], Array | None]:
    """Check one frame of :func:`follow`."""
    if not isinstance(frame, tuple) or len(frame) != 3:
        raise ValueError(f"{name} must be a tuple of time, operators and vector, got {frame!r:.60}")
    time, operators, vector = frame
    if not isinstance(operators, Mapping) or not operators:
        raise ValueError(f"{name}[1] must map names to operators, got {operators!r:.60}")
    known = {key: linalg.as_operator(operator) for key, operator in operators.items()}
    if vector is not None:
        vector = _validate.finite(f"{name}[2]", vector, shape=(None,))
    return _validate.number(f"{name}[0]", time), known, vector


def _film(
    times: Array,
    blocks: tuple[Block, ...],
    rows: Mapping[str, Sequence[Sequence[_Frame]]],
    pairs: int,
    kept: NDArray[np.int64],
) -> Film:
    """Put a film together from the frames of each matrix: by block, then by time."""

    def collect(read: Callable[[_Frame], Any], filler: Any = np.nan) -> dict[str, Any]:
        """Read every frame, filled up along the axis of the eigenpairs; by matrix."""
        return {
            matrix: np.array(
                [
                    [_filled(read(chain[n]), pairs, filler) for chain in chains]
                    for n in range(times.size)
                ]
            )
            for matrix, chains in rows.items()
        }

    return Film(
        times=times,
        blocks=blocks,
        eigenvalues=collect(lambda frame: frame.spectrum.eigenvalues),
        residuals=collect(lambda frame: frame.spectrum.residuals),
        converged=collect(lambda frame: frame.spectrum.converged, True),
        alignment=collect(lambda frame: frame.alignment),
        overlaps=collect(lambda frame: frame.overlaps),
        kept_times=times[kept],
        eigenvectors={
            matrix: tuple(
                np.array([chain[n].spectrum.eigenvectors for n in kept])
                for chain in chains
                if kept.size
            )
            for matrix, chains in rows.items()
        },
    )


@dataclass(frozen=True)
class WholeFilm:
    """Top eigenvalues of the whole matrices along a trajectory, by matrix.

    Attributes
    ----------
    times : ndarray, shape (T,)
    eigenvalues : dict of ndarray, shape (T, r)
        Decreasing in absolute value.
    residuals : dict of ndarray, shape (T, r)
        As in :class:`Film`.
    converged : dict of ndarray of bool, shape (T, r)
    eigenvectors : dict of ndarray, shape (size, r)
        At the last time, in the order of :func:`traindyn.spectra.blocks.parameters`.
    """

    times: Array
    eigenvalues: dict[str, Array]
    residuals: dict[str, Array]
    converged: dict[str, NDArray[np.bool_]]
    eigenvectors: dict[str, Array]


def whole(
    problem: Problem,
    trajectory: Trajectory[Any],
    sample: Sample,
    *,
    r: int,
    matrices: Sequence[Matrix] = MATRICES,
    tolerance: float = 1e-8,
    rng: RNG = 0,
) -> WholeFilm:
    """Compute top eigenpairs of the whole Hessian and G-matrix at every snapshot.

    Parameters
    ----------
    problem : Problem
        Its ``blocks`` give the parameters and their order.
    trajectory : Trajectory
        A single path with snapshots.
    sample : Sample
        Test or training data of the empirical matrices.
    r : int
        Eigenpairs, at most the number of parameters.
    matrices : sequence of {"hessian", "g_matrix"}
        Which to compute; both unless given.
    tolerance : float
        Bound on the residuals, relative to the largest eigenvalue.
    rng : int, SeedSequence or Generator
        For the starts of the Krylov iteration.

    Returns
    -------
    WholeFilm

    Raises
    ------
    ValueError
        If the trajectory has no snapshots or has replicas, or `r` is out of range.

    Warns
    -----
    RuntimeWarning
        If a pair did not converge; `converged` says which.

    Examples
    --------
    >>> from traindyn.problems import KGaussianMixture
    >>> from traindyn.sgd import direct
    >>> from traindyn.spectra import film
    >>> problem = KGaussianMixture.orthonormal(3, 20, precision=10.0, ridge=0.05)
    >>> start = problem.initial(rng=0)
    >>> run = direct.run(problem, start, [0, 1], step_size=0.05, rng=1, snapshots=True)
    >>> film.whole(problem, run, problem.sample(100, rng=2), r=4).eigenvalues["hessian"].shape
    (2, 4)
    """
    points = _points(trajectory)
    require(problem, "spectra.film", "blocks", "parameter")
    tolerance = _validate.positive("tolerance", tolerance)
    chosen = tuple(_validate.choice("matrices", matrix, MATRICES) for matrix in matrices)
    size = block_operators.parameters(problem, points[0]).size
    r = _validate.integer("r", r, least=1, most=size)
    found: dict[str, list[Spectrum]] = {}
    for matrix, generator in zip(chosen, _validate.generator("rng", rng).spawn(len(chosen))):
        frames: list[Spectrum] = []
        for point in points:
            frames.append(
                linalg.top_eigenpairs(
                    block_operators.full(problem, matrix, point, sample),
                    r,
                    start=frames[-1].eigenvectors if frames else None,
                    tolerance=tolerance,
                    rng=generator,
                )
            )
        found[matrix] = frames
    result = WholeFilm(
        trajectory.times,
        {m: np.array([each.eigenvalues for each in found[m]]) for m in chosen},
        {m: np.array([each.residuals for each in found[m]]) for m in chosen},
        {m: np.array([each.converged for each in found[m]]) for m in chosen},
        {m: found[m][-1].eigenvectors for m in chosen},
    )
    _warn_unconverged(result, tolerance)
    return result


def _points(trajectory: Trajectory[Any]) -> list[Any]:
    """Snapshots of a single path, one by one."""
    if trajectory.snapshots is None or trajectory.replicas is not None:
        raise ValueError(
            "trajectory must be a single path with snapshots, got "
            + ("no snapshots" if trajectory.snapshots is None else "several replicas")
        )
    return [
        type(trajectory.snapshots)(*(field[n] for field in trajectory.snapshots))
        for n in range(trajectory.times.size)
    ]


def _shoot(
    problem: Problem,
    points: Sequence[Any],
    sample: Sample,
    chains: Sequence[_Chain],
    settings: _Settings,
    kept: set[int],
    rng: RNG,
    workers: int | None,
    progress: parallel.Progress,
) -> list[list[_Frame]]:
    """Frames of every chain, time by time."""
    frames: list[list[_Frame]] = [[] for _ in chains]
    starts: list[Spectrum | None] = [None] * len(chains)
    generators = _validate.generator("rng", rng).spawn(len(chains))
    report = parallel.reporter(progress)
    for n, point in enumerate(points):
        with one_thread:
            source = block_operators.at(problem, point, sample)
        # A child per frame: a generator that another process used would come back unused.
        streams = [generator.spawn(1)[0] for generator in generators]

        def shot(
            index: int,
            source: FactorSource = source,
            point: Any = point,
            streams: Sequence[np.random.Generator] = streams,
        ) -> _Frame:
            chain = chains[index]
            gram = block_operators.operator_of(source, chain.matrix, chain.block)
            parameter = problem.parameter(chain.block, point)
            return _frame(gram, parameter, chain, settings, starts[index], streams[index])

        for index, frame in enumerate(
            parallel.map_ordered(shot, range(len(chains)), workers=workers, shared_memory=True)
        ):
            starts[index] = frame.spectrum
            frames[index].append(frame if n in kept else _without_vectors(frame))
        report(n + 1, len(points))
    return frames


def _frame(
    gram: WeightedGram,
    parameter: Array,
    chain: _Chain,
    settings: _Settings,
    last: Spectrum | None,
    generator: np.random.Generator,
) -> _Frame:
    """Solve one block at one time, from its spectrum at the time before."""
    if gram.zero:
        vectors = np.eye(gram.size)[:, : chain.r] if last is None else last.eigenvectors
        spectrum = Spectrum(
            eigenvalues=np.zeros(chain.r),
            eigenvectors=vectors,
            residuals=np.zeros(chain.r),
            converged=np.ones(chain.r, dtype=np.bool_),
            products=0,
        )
        overlaps = np.full_like(_overlaps(vectors, settings.directions), np.nan)
        return _Frame(spectrum, np.nan, overlaps)
    few = last is not None and 0 < last.products < _FEW_PRODUCTS * gram.size
    spectrum = linalg.top_eigenpairs(
        gram if few or gram.size > settings.dense_size else _formed(gram),
        chain.r,
        start=None if last is None else last.eigenvectors,
        # Finite samples have simple spectra, so a narrow block loses no multiplicity.
        width=_WIDTH,
        tolerance=settings.tolerance,
        rng=generator,
    )
    vectors = spectrum.eigenvectors
    return _Frame(
        spectrum,
        float(linalg.alignment(parameter, vectors[:, : chain.outliers])),
        _overlaps(vectors, settings.directions),
    )


def _formed(gram: WeightedGram) -> LambdaOperator:
    """Form the block, and multiply by that."""
    matrix = gram.dense()
    return LambdaOperator(gram.size, lambda vectors: matrix @ vectors)


def _overlaps(eigenvectors: Array, directions: Array | None) -> Array:
    if directions is None:
        return np.empty((eigenvectors.shape[1], 0))
    if directions.shape[1] != eigenvectors.shape[0]:
        return np.full((eigenvectors.shape[1], directions.shape[0]), np.nan)
    squared: Array = (eigenvectors.T @ directions.T) ** 2
    return squared


def _without_vectors(frame: _Frame) -> _Frame:
    spectrum = frame.spectrum
    empty = np.empty((0, spectrum.eigenvalues.size))
    return replace(frame, spectrum=replace(spectrum, eigenvectors=empty))


def _filled(values: Any, length: int, filler: Any) -> Any:
    """Fill up the first axis of an array; a number stays as it is."""
    if np.ndim(values) == 0:
        return values
    missing = [(0, length - len(values)), *[(0, 0)] * (values.ndim - 1)]
    return np.pad(values, missing, constant_values=filler)


def _size(problem: Problem, block: Block, points: Sequence[Any], times: Array) -> int:
    """Size of a block whose parameter never vanishes."""
    parameters = [problem.parameter(block, point) for point in points]
    for time, parameter in zip(times, parameters):
        if not np.any(parameter):
            raise ValueError(
                f"trajectory must keep the parameter of block {block} away from zero, where its "
                f"alignment is not defined; got zero at time {time:g}"
            )
    return int(parameters[0].size)


def _pairs(
    problem: Problem,
    blocks: Sequence[Block],
    sizes: Sequence[int],
    r: int | Sequence[int] | None,
    sample: Sample,
) -> list[int]:
    """Eigenpairs of each block."""
    least = [problem.outlier_count(block) for block in blocks]
    if r is None:
        pairs = least
    elif np.ndim(r) == 0:
        single = _validate.integer("r", r, least=1)
        if single < max(least):
            raise ValueError(
                f"r must be at least {max(least)}, the largest problem.outlier_count of the "
                f"blocks, as so many eigenvectors enter the alignment, got {single}"
            )
        _validate.integer("r", single, least=max(least), most=max(sizes))
        pairs = [min(single, size) for size in sizes]
    else:
        wanted = list(np.asarray(r))
        if len(wanted) != len(blocks):
            raise ValueError(f"r must have one entry per block, {len(blocks)}, got {len(wanted)}")
        pairs = [
            _validate.integer(f"r[{b}]", number, least=least[b], most=sizes[b])
            for b, number in enumerate(wanted)
        ]
    _validate.providing("sample", sample, "inputs", "labels")
    draws = len(_validate.numeric("sample.inputs", sample.inputs, shape=(None, None)))
    if draws < max(pairs):
        raise ValueError(
            f"sample must have at least as many draws as eigenpairs asked for, {max(pairs)}, "
            f"got {draws}"
        )
    return pairs


def _kept_indices(keep: ArrayLike | None, count: int) -> NDArray[np.int64]:
    indices = np.asarray([] if keep is None else keep)
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise ValueError(f"keep must be a list of time indices, got {keep!r}")
    bad = [int(n) for n in indices if not -count <= n < count]
    if bad:
        raise ValueError(f"keep must be indices in [{-count}, {count - 1}], got {bad[0]}")
    return np.unique(indices.astype(np.int64) % count)


def _directions(directions: ArrayLike | None, sizes: Sequence[int]) -> Array | None:
    """Return reference directions as unit rows."""
    if directions is None:
        return None
    rows = _validate.finite("directions", directions, shape=(None, None))
    if rows.shape[1] not in sizes:
        raise ValueError(
            f"directions must have as many columns as a block has rows, "
            f"{sorted(set(sizes))}, got {rows.shape[1]}"
        )
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if np.any(norms == 0):
        raise ValueError("directions must be non-zero, got a zero row")
    unit: Array = rows / norms
    return unit


def _warn_unconverged(result: Film | WholeFilm, tolerance: float) -> None:
    for matrix, converged in result.converged.items():
        missed = int(np.count_nonzero(~converged))
        if missed:
            warnings.warn(
                f"{missed} of {converged.size} eigenpairs of {matrix} did not reach the residual "
                f"{tolerance:g}; the worst is {np.nanmax(result.residuals[matrix]):.3g}",
                RuntimeWarning,
                stacklevel=3,
            )
