r"""How often gradient descent learns phase retrieval, up to dimensions that take hours.

A run in d dimensions reads its :math:`\delta d^2` inputs in each of some hundred steps, so that its
cost grows with the square of d. The counts up to d = 3200 are therefore recorded once, in the
module :mod:`~companion.phase_transitions.thresholds.record`, which

.. code-block:: console

   python -m companion.phase_transitions.thresholds.success --store FOLDER

makes again: in about an hour and a half on two cores, sooner on a cluster whose scheduler the
variable ``TRAINDYN_CLUSTER`` names. What is finished is kept in the folder, so that an interrupted
sweep goes on where it stopped. The chapter repeats the smaller dimensions whenever it runs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from companion.phase_transitions.thresholds.record import COUNTS
from traindyn import _validate
from traindyn._records import rewrite
from traindyn._types import RNG, Array
from traindyn.activations import QUADRATIC
from traindyn.gaussian import gauss_hermite
from traindyn.parallel import sweep
from traindyn.problems.multi_index import MultiIndex
from traindyn.sgd import full_batch

__all__ = ["DIMENSIONS", "SETTINGS", "Counts", "Setting", "count", "recorded"]

_FILE = Path(__file__).with_name("record.py")
_SEED = 2024
_PART = 20
"""Runs of one task."""
_SHARES = (0.25, 0.5, 1.0)
"""Of the horizon: where runs are counted."""
_BEGIN = "COUNTS: Counted = {"

DIMENSIONS = (50, 100, 200, 400, 800, 1600, 3200)
"""In which successes are counted."""
_RUNS = dict.fromkeys(DIMENSIONS, 200) | {1600: 100, 3200: 40}
"""At each sample ratio."""


class Setting(NamedTuple):
    """A neuron, how it is trained, and where its runs are counted.

    Attributes
    ----------
    problem : MultiIndex
        One neuron; phase retrieval with the pseudo-Huber loss of width 1.
    step_size, horizon : float
        Learning rate, and the time until which a run may learn.
    lowest : tuple of int
        For each of :data:`DIMENSIONS`, the least sample ratio; three others follow at distance one.
    """

    problem: MultiIndex
    step_size: float
    horizon: float
    lowest: tuple[int, ...]

    def sample_ratios(self, dimension: int) -> Array:
        """Return the four sample ratios of a dimension."""
        known = _validate.choice("dimension", dimension, DIMENSIONS)
        return self.lowest[DIMENSIONS.index(known)] + np.arange(4.0)


SETTINGS = {
    "a = 1": Setting(MultiIndex(), 1.6, 320.0, (3, 4, 4, 5, 5, 6, 6)),
    "a = 8": Setting(MultiIndex(second_layer=[8.0]), 0.05, 40.0, (2, 3, 4, 4, 5, 5, 5)),
    "quadratic": Setting(MultiIndex(activation=QUADRATIC), 0.1, 24.0, (1, 2, 2, 3, 3, 4, 4)),
}
"""GeLU neurons of two output scales, and the quadratic neuron of output scale one."""


class Counts(NamedTuple):
    """Successes in one dimension.

    Attributes
    ----------
    sample_ratios : ndarray, shape (4,)
    times : ndarray, shape (3,)
        Until which a run may learn; the last is the horizon.
    successes : ndarray of int, shape (3, 4)
    runs : int
        At each sample ratio, independent of each other.
    """

    sample_ratios: Array
    times: Array
    successes: Array
    runs: int


def count(
    settings: Sequence[str],
    dimensions: Sequence[int],
    *,
    runs: int,
    rng: RNG,
    store: str | os.PathLike[str] | None = None,
    workers: int | None = -1,
    progress: bool = False,
) -> dict[tuple[str, int], Counts]:
    """Count successes at the sample ratios of the settings.

    Parameters
    ----------
    settings : sequence of str
        Keys of :data:`SETTINGS`.
    dimensions : sequence of int
        Among :data:`DIMENSIONS`.
    runs : int
        At each sample ratio, a multiple of 20.
    rng : int, SeedSequence or Generator
        Root of the streams: each task has its own, whichever others there are.
    store, workers, progress
        As for :func:`traindyn.parallel.sweep`.

    Returns
    -------
    dict
        :class:`Counts` for each setting and dimension.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from companion.phase_transitions.thresholds.success import count
    >>> found = count(["quadratic"], [50], runs=20, rng=0)["quadratic", 50]
    >>> found.successes.shape, found.runs
    ((3, 4), 20)
    """
    total = _validate.integer("runs", runs, least=_PART)
    if total % _PART:
        raise ValueError(f"runs must be a multiple of {_PART}, got {total}")
    names = [
        _validate.choice("settings", x, tuple(SETTINGS)) for x in _several("settings", settings)
    ]
    sizes = [
        _validate.choice("dimensions", _validate.integer("dimensions", x, least=1), DIMENSIONS)
        for x in _several("dimensions", dimensions)
    ]
    points = [
        (setting, dimension, float(ratio))
        for dimension in sizes
        for setting in names
        for ratio in SETTINGS[setting].sample_ratios(dimension)
    ]
    cases = [
        {"part": part, "setting": setting, "dimension": dimension, "sample_ratio": ratio}
        for setting, dimension, ratio in points
        for part in range(total // _PART)
    ]
    found = sweep(_part, cases, rng=rng, store=store, workers=workers, progress=progress)
    times = dict(zip(points, np.reshape(found, (len(points), total)), strict=True))
    counts = {}
    for setting in names:
        until = np.array(_SHARES) * SETTINGS[setting].horizon
        for dimension in sizes:
            ratios = SETTINGS[setting].sample_ratios(dimension)
            rows = np.array([times[setting, dimension, float(ratio)] for ratio in ratios])
            hits = (rows <= until[:, None, None] * (1 + 1e-9)).sum(axis=2)
            counts[setting, dimension] = Counts(ratios, until, hits, total)
    return counts


def _part(
    part: int, setting: str, dimension: int, sample_ratio: float, *, rng: np.random.Generator
) -> Array:
    """Return when the runs of one task succeed; the number of the part makes its stream its own."""
    problem, step_size, horizon, _ = SETTINGS[setting]
    found = full_batch.run_replicas(
        problem,
        [0.0, horizon],
        dimension=dimension,
        samples=round(sample_ratio * dimension),
        step_size=step_size,
        replicas=_PART,
        rng=rng,
        stop=full_batch.learnt(),
        rule=gauss_hermite(2, 2),  # no losses are looked at
    )
    return np.asarray(found.stopped)


def _several(name: str, value: Any) -> list[Any]:
    """Entries of a list that is not empty and has no entry twice."""
    entries = _validate.listed(name, value)
    if not entries or any(entry in entries[:i] for i, entry in enumerate(entries)):
        raise ValueError(f"{name} must be a list of different entries, got {value!r}")
    return entries


def recorded(setting: str, dimension: int) -> Counts:
    """Read what was counted once.

    Parameters
    ----------
    setting : str
        A key of :data:`SETTINGS`.
    dimension : int
        Among :data:`DIMENSIONS`.

    Raises
    ------
    ValueError
        If an argument is not one of these.

    Examples
    --------
    >>> from companion.phase_transitions.thresholds.success import recorded
    >>> recorded("a = 8", 3200).sample_ratios
    array([5., 6., 7., 8.])
    """
    _validate.choice("setting", setting, tuple(SETTINGS))
    _validate.choice("dimension", dimension, DIMENSIONS)
    runs, successes = COUNTS[setting, dimension]
    held = SETTINGS[setting]
    times = np.array(_SHARES) * held.horizon
    return Counts(held.sample_ratios(dimension), times, np.array(successes), runs)


def _record(store: str, file: Path, dimensions: Sequence[int]) -> None:
    """Count in each dimension and write the module after each; others that it holds stay."""
    known = dict(COUNTS)
    for dimension in dimensions:
        found = count(
            list(SETTINGS),
            [dimension],
            runs=_RUNS[dimension],
            rng=_SEED,
            store=store,
            progress=True,
        )
        for key, counts in found.items():
            known[key] = counts.runs, tuple(map(tuple, counts.successes.tolist()))
        lines = [
            f'    ("{setting}", {d}): {known[setting, d]},'
            for setting in SETTINGS
            for d in DIMENSIONS
            if (setting, d) in known
        ]
        rewrite(file, _FILE, _BEGIN, lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", required=True, help="folder for what is finished")
    parser.add_argument(
        "--output", type=Path, default=_FILE, help="default: the record of the book"
    )
    parser.add_argument(
        "--dimensions", nargs="+", type=int, choices=DIMENSIONS, default=DIMENSIONS, metavar="D",
        help=f"among {', '.join(map(str, DIMENSIONS))}; default: all",
    )  # fmt: skip
    given = parser.parse_args()
    _record(given.store, given.output, given.dimensions)
