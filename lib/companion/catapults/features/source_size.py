"""Feature learning at the size of ZHU Section 4.4, where one draw of the data takes minutes.

The runs are made once and their ends recorded, in the module
:mod:`~companion.catapults.features.record`, which

.. code-block:: console

   python -m companion.catapults.features.source_size --store FOLDER

makes again: in about three hours on two cores, sooner on a cluster whose scheduler the
variable ``TRAINDYN_CLUSTER`` names. What is finished is kept in the folder, so that an interrupted
sweep goes on where it stopped. The chapter repeats some of the runs whenever it runs.
"""

from __future__ import annotations

import argparse
import os
import runpy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import joblib
import numpy as np
from scipy.sparse.linalg import eigsh

from companion.catapults.features.record import RUNS
from companion.catapults.features.runs import Fit, Problem, fit, problem
from traindyn import _validate, deep
from traindyn._records import rewrite
from traindyn._types import RNG, Array
from traindyn.catapults import TwoLayerModel, alignment
from traindyn.catapults.schedules import StepSize
from traindyn.deep.models import Parameterisation
from traindyn.parallel import sweep

__all__ = [
    "BATCHES",
    "GROUPS",
    "PYTORCH_STEP",
    "RISES",
    "End",
    "Group",
    "Setting",
    "ends",
    "recorded",
]

_FILE = Path(__file__).with_name("record.py")
_SEED = 2024
_BEGIN = "RUNS: Recorded = {"
_DIMENSION = 100
_SIZES = (2000, 5000, 5000)

BATCHES = (5, 10, 50, 100, 2000)
"""Batch sizes of ZHU Figure 4.9; the last is gradient descent."""
RISES = ((0, 6.0), (50, 8.0), (150, 16.0), (220, 30.0), (280, 50.0), (350, 75.0), (400, 80.0))
"""Steps and step sizes of ZHU Figure 4.8(a). The first step size is not printed there; that of
Figure C.17 is taken, which is just below the critical one."""
PYTORCH_STEP = 0.01
"""Step size of ZHU Figure C.18(a)."""


class End(NamedTuple):
    """What is recorded of a run.

    Attributes
    ----------
    loss, alignment : float
        Test loss, and alignment of the outer product, where the validation loss is least.
    held : float
        The least validation loss.
    over : int
        Super-critical batches until then; zero for all examples, where they are not counted.
    steps : int
        Those until then.
    diverged : int
        One if the loss left all bounds later on, else zero.
    contrast : float
        In the first ten rows and columns of the outer product: mean size of all entries but the
        first two of the diagonal, over the smaller of these two (ZHU Figure C.15).
    swapped : float
        The same for the first and the third of the diagonal.
    height : float
        Largest validation loss from the last rise of the step size on, over the one at that step;
        zero where the run has ended before. Without rises, from the start on, or from where the
        first rise would be.
    """

    loss: float
    alignment: float
    held: float
    over: int
    steps: int
    diverged: int
    contrast: float
    swapped: float
    height: float


def _end(found: Fit, given: Problem, since: int = 0) -> End:
    run = found.run
    later = run.validation_losses[run.steps >= since]
    return End(
        found.loss,
        alignment(found.agop, given.goal.egop),
        float(np.nanmin(run.validation_losses)),
        found.over,
        int(run.best_step),
        int(run.diverged is not None),
        _contrast(found.agop, (0, 1)),
        _contrast(found.agop, (0, 2)),
        float(np.nanmax(later) / later[0]) if len(later) else 0.0,
    )


def _contrast(matrix: Array, pair: tuple[int, int]) -> float:
    block = np.abs(matrix[:10, :10])
    two = np.diag(np.isin(np.arange(10), pair))
    return float(block[~two].mean() / block[two].min())


class Setting(NamedTuple):
    """A target and the networks that are trained on it.

    Attributes
    ----------
    target : str
    widths : tuple of int
        Of the hidden layers.
    biases : bool
        Whether each layer has them, as the formula of ZHU Appendix C.6 has; they start at zero, in
        PyTorch's parameterisation uniform. The step sizes printed there are those of networks
        without.
    parameterisation : {"ntk", "pytorch"}
    share : float
        Step size over the critical one of all examples; in PyTorch's parameterisation the step
        size is that of the source.
    epochs, steps : int
        A run in batches ends after so many, whichever of them is later.
    """

    target: str
    widths: tuple[int, ...]
    biases: bool = False
    parameterisation: Parameterisation = "ntk"
    share: float = 0.5
    epochs: int = 400
    steps: int = 8000


def _begin(setting: Setting, rng: np.random.Generator) -> tuple[Any, Any, Problem, float]:
    """Return a network, its weights, examples, and the critical step size of all of them."""
    given = problem(setting.target, _DIMENSION, _SIZES, rng=rng)
    if len(setting.widths) > 1 or setting.biases or setting.parameterisation != "ntk":
        model: Any = deep.perceptron(
            [_DIMENSION, *setting.widths, 1],
            biases=setting.biases,
            parameterisation=setting.parameterisation,
        )
        start = model.initial(rng=rng)
    else:
        (width,) = setting.widths
        start = TwoLayerModel.initial(width, _DIMENSION, signs=False, rng=rng)
        model = TwoLayerModel(start)
    kernel = np.asarray(model.tangent_kernel(start, model.prepare(given.inside.inputs)))
    # One eigenvalue is far above the others.
    (top,) = eigsh(kernel, 1, v0=np.ones(len(kernel)), return_eigenvectors=False)
    return model, start, given, float(len(kernel) / top)


Run: TypeAlias = Callable[[], End]


def _batches(rng: np.random.Generator, setting: Setting, sizes: Sequence[int]) -> Iterator[Run]:
    """Train with each batch size at the step size of the setting."""
    model, start, given, top = _begin(setting, rng)
    rate = setting.share * top if setting.parameterisation == "ntk" else PYTORCH_STEP
    for b in sizes:
        steps = max(setting.steps, setting.epochs * (_SIZES[0] // b))
        yield partial(_in_batches, model, start, given, rate, b, steps, rng)


def _rising(rng: np.random.Generator, setting: Setting, counts: Sequence[int]) -> Iterator[Run]:
    """Raise the step size of gradient descent so many times; then start near zero."""
    model, start, given, top = _begin(setting, rng)
    for last in counts:
        yield partial(_descend, model, start, given, RISES[: last + 1], RISES[max(last, 1)][0])
    small = type(start)(*(0.1 * w for w in start))
    yield partial(_descend, model, small, given, 2 * top)


def _in_batches(
    model: Any,
    start: Any,
    given: Problem,
    rate: float,
    b: int,
    steps: int,
    rng: np.random.Generator,
) -> End:
    """Train with records once in an epoch of a small batch, or after a hundred steps.

    The best validation loss is that of the records.
    """
    every = max(100, _SIZES[0] // b)
    found = fit(model, start, given, rate, batch_size=b, every=every, steps=steps, rng=rng)
    return _end(found, given)


def _descend(model: Any, start: Any, given: Problem, rate: StepSize, since: int = 0) -> End:
    return _end(fit(model, start, given, rate), given, since)


class Group(NamedTuple):
    """Runs on the same data from the same weights.

    Attributes
    ----------
    runs : callable
        From a generator, the setting and the cases to the runs, in turn.
    setting : Setting
    cases : tuple of int
        Batch sizes, or numbers of rises.
    names : tuple of str
        Of the runs.
    replicas : int
        Independent draws of data and weights that are recorded.
    """

    runs: Callable[[np.random.Generator, Setting, Sequence[int]], Iterator[Run]]
    setting: Setting
    cases: tuple[int, ...]
    names: tuple[str, ...]
    replicas: int


def _named_batches(setting: Setting, replicas: int, sizes: tuple[int, ...] = BATCHES) -> Group:
    return Group(_batches, setting, sizes, tuple(f"{b}" for b in sizes), replicas)


_TWO, _FOUR = (1024,), (256, 256, 256)
GROUPS = {
    "rank 2": _named_batches(Setting("rank-2", _TWO), 14),
    "rank 2, PyTorch": _named_batches(Setting("rank-2", _TWO, True, "pytorch"), 24, BATCHES[:3]),
    "rank 2, small steps": _named_batches(
        Setting("rank-2", _TWO, share=0.025, epochs=4000), 14, BATCHES[:4]
    ),
    "rank 2, rises": Group(
        _rising, Setting("rank-2", _TWO), tuple(range(len(RISES))),
        (*(f"{k}" for k in range(len(RISES))), "near zero"), 12,
    ),
    "rank 3": _named_batches(Setting("rank-3", _FOUR), 12, BATCHES[:3]),
    "rank 3, biases": _named_batches(Setting("rank-3", _FOUR, True), 12, BATCHES[:3]),
    "rank 3, small steps": _named_batches(
        Setting("rank-3", _FOUR, share=0.05), 12, BATCHES[1:2]
    ),
    "rank 3, biases, small steps": _named_batches(
        Setting("rank-3", _FOUR, True, share=0.025, epochs=15, steps=6000), 12
    ),
    "rank 3, PyTorch": _named_batches(
        Setting("rank-3", _FOUR, True, "pytorch"), 14, BATCHES[:4]
    ),
    "rank 4": _named_batches(Setting("rank-4", _FOUR), 12, BATCHES[:3]),
    "rank 4, biases": _named_batches(Setting("rank-4", _FOUR, True), 14, BATCHES[:3]),
}  # fmt: skip
"""Batches at half the critical step size, without biases and with them, at a tenth and a twentieth
of that, and in PyTorch's parameterisation; rises of the step size of gradient descent, and a start
of a tenth of the size."""


def ends(
    group: str,
    *,
    replicas: int,
    rng: RNG,
    only: Sequence[str] | None = None,
    store: str | os.PathLike[str] | None = None,
    workers: int | None = -1,
    progress: bool = False,
) -> list[dict[str, End]]:
    """Make the runs of a group, which takes some minutes for each replica.

    Parameters
    ----------
    group : str
        A key of :data:`GROUPS`.
    replicas : int
        Independent draws of data and weights.
    rng : int, SeedSequence or Generator
        Root of the streams: each replica has its own, whichever others there are.
    only : sequence of str, optional
        Names of the runs to make; all, unless given. A selection has streams of its own: other
        data and weights than all runs of the same replica.
    store, workers, progress
        As for :func:`traindyn.parallel.sweep`.

    Returns
    -------
    list of dict
        For each replica :class:`End` by the names of the runs.

    Raises
    ------
    ValueError
        If there is no such group, no replica, or a name is not one of the group's.

    Examples
    --------
    >>> from companion.catapults.features.source_size import GROUPS
    >>> GROUPS["rank 2, rises"].names
    ('0', '1', '2', '3', '4', '5', '6', 'near zero')
    """
    held = GROUPS[_validate.choice("group", group, tuple(GROUPS))]
    count = _validate.integer("replicas", replicas, least=1)
    wanted = held.names if only is None else _validate.listed("only", only)
    for name in wanted:
        _validate.choice("only", name, held.names)
    names = tuple(name for name in held.names if name in wanted)
    part = {} if only is None else {"only": names}
    cases = [{"group": group, "replica": replica} | part for replica in range(count)]
    found = sweep(_replica, cases, rng=rng, store=store, workers=workers, progress=progress)
    return [_named(names, rows.tolist()) for rows in found]


def _replica(
    group: str, replica: int, only: Sequence[str] | None = None, *, rng: np.random.Generator
) -> Array:
    """Return the ends of a group's runs; the number of the replica makes its stream its own."""
    held = GROUPS[group]
    runs = zip(held.names, held.runs(rng, held.setting, held.cases), strict=True)
    return np.array([run() for name, run in runs if only is None or name in only])


def _named(names: Sequence[str], rows: Sequence[Sequence[float]]) -> dict[str, End]:
    found = {}
    for name, row in zip(names, rows, strict=True):
        loss, cosine, held, over, steps, diverged, contrast, swapped, height = row
        whole = int(over), int(steps), int(diverged)
        found[name] = End(loss, cosine, held, *whole, contrast, swapped, height)
    return found


def _digits(end: End) -> tuple[float, ...]:
    return tuple(value if isinstance(value, int) else float(f"{value:.5g}") for value in end)


def recorded(group: str) -> list[dict[str, End]]:
    """Read what was found once, to five digits.

    Parameters
    ----------
    group : str
        A key of :data:`GROUPS`.

    Returns
    -------
    list of dict
        For each replica :class:`End` by the names of the runs.

    Raises
    ------
    ValueError
        If there is no such group.

    Examples
    --------
    >>> from companion.catapults.features.source_size import recorded
    >>> list(recorded("rank 2")[0])
    ['5', '10', '50', '100', '2000']
    """
    _validate.choice("group", group, tuple(GROUPS))
    return [_named(GROUPS[group].names, rows) for rows in RUNS[group]]


def _record(store: str, file: Path, groups: Sequence[str]) -> None:
    """Make the runs of each group and write the module after each; groups that it holds stay."""
    known = runpy.run_path(str(file))["RUNS"] if file.is_file() else {}
    for group in groups:
        found = ends(group, replicas=GROUPS[group].replicas, rng=_SEED, store=store, progress=True)
        if not np.all(np.isfinite([list(one.values()) for one in found])):
            raise FloatingPointError(f"ends of group {group!r} must be finite")
        known[group] = tuple(tuple(map(_digits, one.values())) for one in found)
        lines = []
        for name in [name for name in GROUPS if name in known]:
            lines.append(f'    "{name}": (')
            for replica in known[name]:
                lines += ["        (", *(f"            {row}," for row in replica), "        ),"]
            lines.append("    ),")
        rewrite(file, _FILE, _BEGIN, lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", required=True, help="folder for what is finished")
    parser.add_argument(
        "--output", type=Path, default=_FILE, help="default: the record of the book"
    )
    parser.add_argument(
        "--groups", nargs="+", choices=GROUPS, default=tuple(GROUPS), metavar="G",
        help=f"among {', '.join(GROUPS)}; default: all",
    )  # fmt: skip
    given = parser.parse_args()
    with joblib.parallel_config("loky", n_jobs=-1):  # threads would wait for one another
        _record(given.store, given.output, given.groups)
