"""Bad input for the whole public API: one valid call of everything, then one argument spoilt.

What is public is read off the package: the names in ``__all__`` of each module without a leading
underscore (all names of its own where there is no ``__all__``), and the public methods of the
public classes that take an argument. A valid call of each comes from a table of examples, or from
the doctests of the library, which are run once while every public callable notes how it is
called. From it follow bad calls, one argument at a time (:func:`bad_values`).

What a bad call may do:

- raise ``ValueError``, from a frame in the library, with a message that names the argument;
- raise ``FloatingPointError`` (a run diverged), from a frame in the library;
- raise ``TypeError`` where a function or an object of the library was expected;
- return a result, if the value was not NaN or masked and the result has no NaN, and, for an
  infinite value, is finite: some of these values are legal. The valid array in another byte order,
  backwards or with gaps between its entries, off its place in memory or read-only gives the result
  of the valid call.

Everything else is a defect: another exception, a warning, a NaN that passes.

Valid calls are made in odd ways too (:meth:`Case.sharing` and :meth:`Case.overlapping`): with one
array for two arguments, and from several threads at once. They must leave their arguments as they
were, and neither keep an array of the caller's nor hand out one that is kept and can be written to.
"""

from __future__ import annotations

import dataclasses
import doctest
import functools
import importlib
import inspect
import io
import itertools
import pkgutil
import re
import signal
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout, suppress
from enum import Enum
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import tally
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import traindyn

LIBRARY = Path(traindyn.__file__).parents[1]
#: Packages beside it; their rooms are named in full.
PACKAGES = ("claimbook", "companion")
#: Abstract classes whose methods are called on every class that fills them in.
FRAMES = ("Differentiated", "Linear", "Marked", "Steps")
#: A bad call that takes longer than this is stuck.
PATIENCE_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class Public:
    """A public callable: `name` is its path below ``traindyn``."""

    name: str
    module: types.ModuleType
    owner: type | None
    function: Any

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass
class Example:
    """A valid call: the callable (a bound one for a method) and its arguments by name."""

    call: Callable[..., Any]
    arguments: dict[str, Any]


#: A valid call as the tables of examples write it: what builds the arguments of a function or a
#: class, or the object and the arguments of a method.
Builder = Callable[[], Any]


def modules(rooms: Sequence[str]) -> list[types.ModuleType]:
    """The public modules of the rooms."""
    found = []
    for room in rooms:
        alone = room.partition(".")[0] in PACKAGES
        head = importlib.import_module(room if alone else f"traindyn.{room}")
        found.append(head)
        for info in pkgutil.walk_packages(getattr(head, "__path__", []), f"{head.__name__}."):
            if not any(part.startswith("_") for part in info.name.split(".")):
                found.append(importlib.import_module(info.name))
    return found


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {k: p for k, p in parameters.items() if p.kind not in variadic}


def is_passive(function: Any) -> bool:
    """Whether nothing is checked when this is called.

    So it is with protocols, enumerations and exceptions.
    """
    return isinstance(function, type) and (
        getattr(function, "_is_protocol", False)
        or inspect.isabstract(function)
        or issubclass(function, (Enum, BaseException))
    )


def is_record(function: Any) -> bool:
    """Whether this makes a named tuple: those who take it check it."""
    return hasattr(function, "_fields")


def public(rooms: Sequence[str]) -> list[Public]:
    """Every public callable with at least one argument, and public methods likewise."""
    found: dict[Any, Public] = {}
    for module in modules(rooms):
        own = [n for n in vars(module) if not n.startswith("_")]
        for name in getattr(module, "__all__", own):
            item = getattr(module, name)
            if getattr(item, "__module__", None) != module.__name__ or not callable(item):
                continue
            if is_passive(item):
                continue
            path = f"{module.__name__}.{name}".removeprefix("traindyn.")
            if _parameters(item) and not is_record(item):
                found.setdefault(id(item), Public(path, module, None, item))
            if isinstance(item, type):
                for key, value in _own(item).items():
                    if key.startswith("_") or not isinstance(
                        value, (types.FunctionType, classmethod, staticmethod)
                    ):
                        continue
                    method = getattr(item, key)
                    bound = isinstance(value, (classmethod, staticmethod))
                    if len(_parameters(method)) > (0 if bound else 1):
                        name = f"{path}.{key}"
                        found[id(value), name] = Public(name, module, item, method)
    return list(found.values())


def _own(item: type) -> dict[str, Any]:
    """Attributes of a class, with those of the frame that it fills in."""
    above = [each for each in reversed(item.__mro__) if each is item or each.__name__ in FRAMES]
    return {key: value for each in above for key, value in vars(each).items()}


# --- Examples from the doctests ---------------------------------------------------------------


class _Notes:
    """The first call of every public callable, as the doctests of one module make them."""

    def __init__(self) -> None:
        self.examples: dict[str, Example] = {}

    def note(self, entry: Public, call: Callable[..., Any], args: Any, keywords: Any) -> None:
        try:
            bound = inspect.signature(call).bind(*args, **keywords)
        except (TypeError, ValueError):
            return
        self.examples.setdefault(entry.name, Example(call, dict(bound.arguments)))


def _noting(notes: _Notes, entry: Public) -> Callable[[], None]:
    """Let `entry` note its calls; return what undoes it."""
    if isinstance(entry.function, type):
        cls: Any = entry.function
        before = cls.__init__
        own = "__init__" in vars(cls)

        @functools.wraps(before)
        def init(self: Any, *args: Any, **keywords: Any) -> None:
            if type(self) is cls:
                notes.note(entry, cls, args, keywords)
            before(self, *args, **keywords)

        cls.__init__ = init

        def undo() -> None:
            if own:
                cls.__init__ = before
            else:
                del cls.__init__

        return undo
    if entry.owner is not None:
        name = entry.name.rsplit(".", 1)[1]
        owner: Any = entry.owner
        raw, inherited = inspect.getattr_static(owner, name), name not in vars(owner)
        if isinstance(raw, (classmethod, staticmethod)):

            @functools.wraps(raw.__func__)
            def static(*args: Any, **keywords: Any) -> Any:
                notes.note(entry, entry.function, args, keywords)
                return entry.function(*args, **keywords)

            setattr(owner, name, staticmethod(static))
        else:

            @functools.wraps(raw)
            def method(self: Any, *args: Any, **keywords: Any) -> Any:
                notes.note(entry, functools.partial(raw, self), args, keywords)
                return raw(self, *args, **keywords)

            setattr(owner, name, method)
        return lambda: delattr(owner, name) if inherited else setattr(owner, name, raw)

    @functools.wraps(entry.function)
    def function(*args: Any, **keywords: Any) -> Any:
        notes.note(entry, entry.function, args, keywords)
        return entry.function(*args, **keywords)

    places = [
        (module, key)
        for label, module in list(sys.modules.items())
        if label.split(".")[0] in ("traindyn", *PACKAGES) and module is not None
        for key, value in list(vars(module).items())
        if value is entry.function
    ]
    for module, key in places:
        setattr(module, key, function)

    def restore() -> None:
        for module, key in places:
            setattr(module, key, entry.function)

    return restore


def _is_compiled(function: Any) -> bool:
    return hasattr(function, "py_func")


@functools.cache
def _from_doctests(module_name: str) -> dict[str, Example]:
    """Valid calls of what a module defines, noted while its doctests run."""
    module = importlib.import_module(module_name)
    package, room = module_name.split(".")[:2]
    room = f"{package}.{room}" if package in PACKAGES else room
    notes = _Notes()
    entries = [e for e in public([room]) if e.module is module and not _is_compiled(e.function)]
    undo = [_noting(notes, entry) for entry in entries]
    try:
        runner = doctest.DocTestRunner(verbose=False)
        for test in doctest.DocTestFinder(exclude_empty=True).find(
            module, globs=dict(vars(module)), extraglobs={"__name__": "__main__"}
        ):
            if test.examples:
                with redirect_stdout(io.StringIO()):
                    runner.run(test, out=lambda _: None, clear_globs=False)
    finally:
        for step in reversed(undo):
            step()
        plt.close("all")
    return notes.examples


# --- Bad values ---------------------------------------------------------------------------------


class Kind(Enum):
    """What an argument of a valid call is, and so what can be wrong with it."""

    SEED = "seed"
    SIZE = "size"
    NUMBER = "number"
    ARRAY = "array"
    WORD = "word"
    FUNCTION = "function"
    RECORD = "record"
    OTHER = "other"


def kind_of(name: str, value: Any) -> Kind:
    """Return the kind of an argument from its name and its valid value."""
    if name in ("rng", "seed"):
        return Kind.SEED
    if isinstance(value, (bool, np.bool_, Enum)):
        return Kind.OTHER
    if isinstance(value, (int, np.integer)):
        return Kind.SIZE
    if isinstance(value, (float, np.floating)):
        return Kind.NUMBER
    if isinstance(value, str):
        return Kind.WORD
    if isinstance(value, np.ndarray):
        return Kind.ARRAY if value.dtype.kind in "iuf" and value.ndim and value.size else Kind.OTHER
    if hasattr(value, "_fields"):
        return Kind.RECORD
    if isinstance(value, (list, tuple, range)):
        try:
            array = np.asarray(value)
        except ValueError:
            return Kind.OTHER
        return Kind.ARRAY if array.dtype.kind in "iuf" and array.size else Kind.OTHER
    if inspect.isfunction(value) or inspect.isbuiltin(value) or isinstance(value, np.ufunc):
        return Kind.FUNCTION
    return Kind.OTHER


@dataclasses.dataclass(frozen=True)
class Bad:
    """A value to try.

    `undefined` (NaN) must be refused, `infinite` may not spread, and a `misfit` may be wrong
    only together with another argument, which may then be named instead. What is the `same` as
    the valid value gives the same result. `field` is the spoilt field of a record.
    """

    label: str
    value: Any
    undefined: bool = False
    infinite: bool = False
    misfit: bool = False
    same: bool = False
    field: str | None = None


NAN, INF = float("nan"), float("inf")
#: The kinds of arguments for which values are drawn.
DRAWN = (Kind.ARRAY, Kind.NUMBER, Kind.SEED, Kind.SIZE, Kind.WORD)
#: What is tried of the bad arrays in the fields of a record.
FIELD_LABELS = (
    *("a number", "one row more", "one column more", "empty", "nan", "inf", "words"),
    *("another byte order", "backwards", "unaligned", "read-only"),
)


def _spoilt(array: Any, value: float) -> np.ndarray[Any, Any]:
    result = np.array(array, dtype=np.float64)
    result.flat[result.size // 2] = value
    return result


def _other_layouts(array: np.ndarray[Any, Any]) -> list[Bad]:
    """Return the same numbers as they may lie in memory."""
    gaps = np.empty(tuple(2 * size for size in array.shape), array.dtype)
    gaps[...] = 7
    spread = gaps[(slice(None, None, 2),) * array.ndim]
    spread[...] = array
    fixed = array.copy()
    fixed.setflags(write=False)
    # Columns after one another, and the last entry first.
    back = (slice(None, None, -1),) * array.ndim
    backwards = np.asfortranarray(array[back])[back]
    memory = np.empty(array.nbytes + 1, np.uint8)
    shifted = np.ndarray(array.shape, array.dtype, memory, offset=1)
    shifted[...] = array
    return [
        Bad("another byte order", array.astype(array.dtype.newbyteorder()), same=True),
        Bad("gaps", spread, same=True),
        Bad("backwards", backwards, same=True),
        Bad("unaligned", shifted, same=True),
        Bad("read-only", fixed, same=True),
    ]


def bad_values(name: str, value: Any) -> list[Bad]:
    """Return the bad values to try in place of a valid one."""
    kind = kind_of(name, value)
    undefined, infinite = Bad("nan", NAN, undefined=True), Bad("inf", INF, infinite=True)
    if kind is Kind.SEED:
        return [Bad("word", "x"), Bad("-1", -1), Bad("2.5", 2.5)]
    if kind is Kind.SIZE:
        rest = [Bad(repr(v), v, misfit=True) for v in (0, -1, 2.5, [2, 3])]
        rest += [Bad(repr(v), v) for v in (True, "3", None, 1j)]
        return [*rest, undefined, infinite]
    if kind is Kind.NUMBER:
        rest = [Bad(repr(v), v, misfit=True) for v in (0.0, -1.0, 1.5, [0.5, 0.25], [])]
        rest += [Bad(repr(v), v) for v in ("x", None, 1j)]
        rest.append(Bad("another byte order", np.array(value, ">f8"), same=True))
        return [*rest, undefined, infinite, Bad("-inf", -INF, infinite=True)]
    if kind is Kind.WORD:
        return [Bad("word", "no such"), Bad("3", 3), Bad("None", None)]
    if kind is Kind.FUNCTION:
        return [Bad("None", None), Bad("3", 3)]
    if kind is Kind.RECORD:
        return [
            dataclasses.replace(
                bad,
                label=f"{field}: {bad.label}",
                value=value._replace(**{field: bad.value}),
                field=field,
            )
            for field, part in zip(value._fields, value)
            if kind_of(field, part) is Kind.ARRAY
            for bad in bad_values(field, part)
            if bad.label in FIELD_LABELS
        ]
    if kind is Kind.ARRAY:
        array = np.asarray(value, dtype=np.float64)
        first = array[:1]
        return [
            Bad("one rank more", array[None], misfit=True),
            Bad("one rank less", array[0] if array.size else 0.0, misfit=True),
            Bad("a number", 1.0, misfit=True),
            Bad("one row more", np.concatenate([array, first]), misfit=True),
            Bad("one row less", array[1:], misfit=True),
            Bad("one column more", np.concatenate([array, array[..., :1]], axis=-1), misfit=True),
            Bad("empty", np.zeros(0), misfit=True),
            Bad("zero", np.zeros_like(array)),
            Bad("negative", -np.abs(array) - 1),
            *_other_layouts(np.asarray(value)),
            Bad("masked", np.ma.array(array, mask=np.ones(array.shape)), undefined=True),
            Bad("nan", _spoilt(array, NAN), undefined=True),
            Bad("inf", _spoilt(array, INF), infinite=True),
            Bad("words", np.full(array.shape, "x")),
            Bad("complex", array + 1j),
            Bad("objects", np.full(array.shape, None, dtype=object)),
            Bad("None", None),
        ]
    return []


# --- The judge ----------------------------------------------------------------------------------


class Stuck(Exception):
    """A call took too long."""


@contextmanager
def _patience() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: Any) -> None:
        raise Stuck(f"longer than {PATIENCE_SECONDS:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def numbers_in(value: Any, depth: int = 5) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays of numbers in a result."""
    if isinstance(value, (bool, str, bytes, type)) or value is None or depth == 0:
        return
    if isinstance(value, (int, float, complex, np.number)):
        yield np.asarray(value)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "iufc":
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from numbers_in(item, depth - 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from numbers_in(item, depth - 1)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from numbers_in(getattr(value, field.name, None), depth - 1)


def arrays_of(value: Any, *, closures: bool = True) -> Iterator[np.ndarray[Any, Any]]:
    """Yield every array that can be reached from a value: in lists, objects and functions."""
    seen: dict[int, Any] = {}
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (str, bytes, type, types.ModuleType)):
            continue
        seen[id(one)] = one
        if isinstance(one, np.ndarray):
            yield one
            continue
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one
        elif not closures and callable(one) and not dataclasses.is_dataclass(one):
            continue
        elif isinstance(one, functools.partial):
            waiting += [one.func, *one.args, *one.keywords.values()]
        elif isinstance(one, types.MethodType):
            waiting += [one.__self__]
        elif isinstance(one, types.FunctionType):
            for cell in one.__closure__ or ():
                with suppress(ValueError):  # not filled yet
                    waiting.append(cell.cell_contents)
        elif type(one).__module__.partition(".")[0] in ("traindyn", *PACKAGES, "tests"):
            waiting += getattr(one, "__dict__", {}).values()
            slots = [n for c in type(one).__mro__ for n in getattr(c, "__slots__", ())]
            waiting += [getattr(one, name, None) for name in slots]


def _meets(array: np.ndarray[Any, Any], others: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Whether an array has memory in common with one of others."""
    return any(np.may_share_memory(array, other) for other in others)


def _same_bytes(first: Sequence[Any], second: Sequence[Any]) -> bool:
    return [each.tobytes() for each in first] == [each.tobytes() for each in second]


def _counts(value: Any) -> tuple[bool, bool]:
    """Whether a result has a NaN, and whether it has an infinite entry."""
    arrays = list(numbers_in(value))
    return any(np.isnan(a).any() for a in arrays), any(np.isinf(a).any() for a in arrays)


def _agree(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether numbers are equal up to rounding, which may depend on how they lie in memory."""
    one, other = (np.concatenate([np.zeros(0), *map(np.ravel, each)]) for each in (first, second))
    return one.size == other.size and np.allclose(one, other, 1e-6, 1e-9, equal_nan=True)


def in_library(error: BaseException) -> bool:
    """Whether the innermost frame of an error lies in the library."""
    frames = traceback.extract_tb(error.__traceback__)
    # A dataclass's own __init__ has no file; the frame below it decides.
    files = [frame.filename for frame in frames if not frame.filename.startswith("<")]
    return Path(files[-1]).is_relative_to(LIBRARY)


@dataclasses.dataclass
class Case:
    """A public callable with its example, and what it may do that others may not.

    `lenient` maps an argument to the labels of the values it may let pass (``"nan"`` for a
    function whose contract is to hand NaN on, ``"drawn"`` for all drawn ones), or to ``"warning"``
    if it may be warned of by name, or to ``"shared"`` if its documentation says that the result
    keeps it by reference; ``"return"`` with ``"nan"`` is for a function whose result has NaN where
    there is nothing to return, and ``"call"`` with ``"slow"`` for one whose valid call is made in
    odd ways every night only.
    """

    entry: Public
    builder: Builder | None = None
    lenient: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    words: Builder | None = None
    refused: bool = dataclasses.field(default=False, init=False)

    def __str__(self) -> str:
        return self.entry.name

    @functools.cached_property
    def example(self) -> Example | None:
        """The valid call, from the table, the doctests or the vocabulary, in this order."""
        if self.builder is None:
            noted = _from_doctests(self.entry.module.__name__).get(self.entry.name)
            return noted or self._from_vocabulary()
        built = self.builder()
        if self.entry.owner is None or isinstance(built, dict):
            return Example(self.entry.function, built)
        instance, arguments = built
        return Example(getattr(instance, self.entry.name.rsplit(".", 1)[1]), arguments)

    def _from_vocabulary(self) -> Example | None:
        """Return a call with the arguments whose names have a meaning in this room."""
        words = self.words() if self.words else {}
        call = self.entry.function
        if self.entry.owner is not None and "self" in _parameters(call):
            fits = [v for v in words.values() if isinstance(v, self.entry.owner)]
            if not fits:
                return None
            call = getattr(fits[0], self.entry.name.rsplit(".", 1)[1])
        wanted = _parameters(call)
        needed = [n for n, p in wanted.items() if p.default is inspect.Parameter.empty]
        if any(name not in words for name in needed):
            return None
        return Example(call, {name: words[name] for name in wanted if name in words})

    @functools.cached_property
    def valid(self) -> dict[str, Any]:
        """The arguments of the example, and the numbers and words that are defaults."""
        assert self.example is not None, f"{self.entry}: no example"
        defaults = {
            name: parameter.default
            for name, parameter in _parameters(self.example.call).items()
            if isinstance(parameter.default, (int, float, str))
        }
        return {**defaults, **self.example.arguments}

    @functools.cached_property
    def baseline(self) -> tuple[bool, bool]:
        """Whether the valid call's own result has NaN or infinite entries."""
        assert self.example is not None, f"{self.entry}: no example"
        # Not timed: the first call may compile.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return _counts(self.result())

    def result(self) -> Any:
        """Make the valid call."""
        assert self.example is not None, f"{self.entry}: no example"
        return self.example.call(**self.example.arguments)

    @functools.cached_property
    def numbers(self) -> list[np.ndarray[Any, Any]] | None:
        """The numbers of the valid call's result, None if the next call gives others."""
        first, second = list(numbers_in(self.result())), list(numbers_in(self.result()))
        return first if _agree(first, second) else None

    def bad_calls(self) -> Iterator[tuple[str, Bad]]:
        """Yield the spoilt argument's name and its bad value."""
        assert self.example is not None, f"{self.entry}: no example"
        parameters = _parameters(self.entry.function)
        for name, value in self.valid.items():
            for bad in bad_values(name, value):
                if bad.value is None and name in parameters:
                    parameter = parameters[name]
                    if parameter.default is None or "None" in str(parameter.annotation):
                        continue
                if bad.label in self.lenient.get(name, ()):
                    continue
                yield name, bad

    def judge(self, name: str, bad: Bad) -> str | None:
        """Make one bad call, and count it; return what is wrong with what it did, or None."""
        self.refused = False
        verdict = self._judged(name, bad)
        tally.tried("else" if verdict else "refused" if self.refused else "accepted")
        return verdict

    def _judged(self, name: str, bad: Bad) -> str | None:
        assert self.example is not None, f"{self.entry}: no example"
        arguments = {**self.example.arguments, name: bad.value}
        kind = kind_of(name, self.valid[name])
        baseline = self.baseline
        try:
            with warnings.catch_warnings(), _patience():
                warnings.simplefilter("error")
                result = self.example.call(**arguments)
        except (ValueError, FloatingPointError, TypeError) as error:
            self.refused = True
            what = f"{type(error).__name__}: {str(error)[:150]}"
            if isinstance(error, TypeError):
                return None if kind is Kind.FUNCTION else what
            if not in_library(error):
                return f"raised outside the library: {what}"
            if isinstance(error, FloatingPointError):
                return None
            # Where two arguments do not fit together, either may be named.
            fit = [name] if bad.field is None else [name, bad.field]
            if bad.misfit:
                fit += [*arguments, *getattr(self.valid[name], "_fields", ())]
            named = any(re.search(rf"(?<!\w){re.escape(n)}(?!\w)", str(error)) for n in fit)
            return None if named else f"does not name `{name}`: {what}"
        except UserWarning as warning:
            self.refused = True
            said = name in str(warning) and "warning" in self.lenient.get(name, ())
            return None if said else f"UserWarning: {str(warning)[:150]}"
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:150]}"
        if bad.same and self.numbers is not None:
            return None if _agree(list(numbers_in(result)), self.numbers) else "another result"
        has_nan, has_infinite = _counts(result)
        if bad.undefined:
            return "NaN passes" if bad.label != "masked" else "masked entries pass"
        if bad.infinite and (has_nan or has_infinite) > max(baseline):
            return "an infinite value passes and spreads"
        spread = has_nan > baseline[0] and "nan" not in self.lenient.get("return", ())
        return "the result has NaN" if spread else None

    def defects(self) -> list[str]:
        """Make every bad call; return what is wrong, a line each."""
        found = []
        for name, bad in self.bad_calls():
            verdict = self.judge(name, bad)
            if verdict is not None:
                found.append(f"{self.entry}({name}={bad.label}): {verdict}")
        return found if "slow" in self.lenient.get("call", ()) else [*found, *self.shared()]

    def shared(self) -> list[str]:
        """Make the valid call in odd ways; return what is wrong, a line each."""
        return [*self.sharing(), *self.overlapping()]

    def sharing(self) -> list[str]:
        """Return the arrays that the valid call shares with its caller, a line each."""
        assert self.example is not None, f"{self.entry}: no example"
        # Arrays of the caller's own, where the example has lists of numbers.
        arguments = {
            name: np.array(value)
            if isinstance(value, (list, np.ndarray)) and kind_of(name, value) is Kind.ARRAY
            else value
            for name, value in self.example.arguments.items()
        }
        given = {
            name: [array for array in arrays_of(value) if array.flags.writeable]
            for name, value in arguments.items()
        }
        if not any(given.values()) and self.numbers is None:
            return []
        before = {name: [array.copy() for array in arrays] for name, arrays in given.items()}
        owner = getattr(self.example.call, "__self__", None)
        own = [array for array in arrays_of(owner) if array.flags.writeable]
        call = functools.partial(self.example.call, **arguments)
        found, results = [], [call(), call()]
        kept = list(arrays_of(owner))
        handed = [list(arrays_of(result)) for result in results]
        for name, lent in given.items():
            if not _same_bytes(lent, before[name]):
                found.append(f"writes to `{name}`")
            for array in lent:
                if "shared" in self.lenient.get(name, ()):
                    continue
                if _meets(array, handed[0]):
                    found.append(f"the result shares memory with `{name}`")
                # An example may give an object what the object has.
                if _meets(array, kept) and not _meets(array, own):
                    found.append(f"the object keeps `{name}`")
        theirs = [array for arrays in given.values() for array in arrays]
        visible = list(arrays_of(results[0], closures=False))
        for array in visible if "shared" not in self.lenient.get("return", ()) else ():
            if not array.flags.writeable or _meets(array, theirs):
                continue
            if _meets(array, kept):
                found.append("what the object keeps can be written to")
            elif _meets(array, handed[1]):
                found.append("one array that can be written to is handed out twice")
        found += self._twice(arguments)
        tally.tried("else" if found else "accepted")
        return [f"{self.entry}: {what}" for what in dict.fromkeys(found)]

    def _twice(self, arguments: dict[str, Any]) -> Iterator[str]:
        """Give one array for two arguments of one shape."""
        assert self.example is not None
        arrays = {
            name: value
            for name, value in arguments.items()
            if isinstance(value, np.ndarray) and kind_of(name, value) is Kind.ARRAY
        }
        for (one, first), (other, second) in itertools.combinations(arrays.items(), 2):
            if (first.shape, first.dtype) != (second.shape, second.dtype):
                continue
            seen = []
            for value in (first, first.copy()):
                try:
                    with warnings.catch_warnings(), _patience():
                        warnings.simplefilter("error")
                        seen.append(self._bytes({**arguments, one: first, other: value}))
                except (ValueError, FloatingPointError) as error:
                    seen.append(str(error))
            tally.tried("refused" if isinstance(seen[0], str) else "accepted")
            if self.numbers is not None and seen[0] != seen[1]:
                yield f"one array for `{one}` and `{other}` gives another result than two"

    def _bytes(self, arguments: dict[str, Any]) -> list[bytes]:
        assert self.example is not None
        return [array.tobytes() for array in numbers_in(self.example.call(**arguments))]

    def overlapping(self, threads: int = 2) -> list[str]:
        """Return what is wrong with the valid call made from several threads at once."""
        assert self.example is not None, f"{self.entry}: no example"
        if self.numbers is None:
            return []
        # An object of its own, which has computed nothing yet, where the table can make one.
        fresh = dataclasses.replace(self)
        assert fresh.example is not None
        arguments = fresh.example.arguments
        together: list[Any] = [None] * threads
        barrier = threading.Barrier(threads)

        def run(index: int) -> None:
            barrier.wait()
            try:
                together[index] = fresh._bytes(arguments)
            except Exception as error:
                together[index] = f"{type(error).__name__}: {str(error)[:150]}"

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(run, range(threads)))
        finally:
            sys.setswitchinterval(interval)
        alone = [array.tobytes() for array in self.numbers]
        wrong = [each for each in together if each != alone]
        for _ in range(threads):
            tally.tried("else" if wrong else "accepted")
        if not wrong:
            return []
        what = wrong[0] if isinstance(wrong[0], str) else "another result"
        return [f"{self.entry}: in threads: {what}"]


def collect(
    rooms: Sequence[str],
    examples: Mapping[str, Builder],
    reasons: Mapping[str, str],
    lenient: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    vocabulary: Mapping[str, Builder] | None = None,
) -> list[Case]:
    """Return a case for every public callable of the rooms without a reason to have none.

    Parameters
    ----------
    rooms
        Names below ``traindyn``.
    examples
        From the path below ``traindyn`` to what builds a valid call: a dict of arguments, or for
        a method the object and such a dict. Where there is none the doctests give it.
    reasons
        From a path to why there is no example; a path also covers all below it.
    lenient
        From a path to :attr:`Case.lenient`.
    vocabulary
        From a path to what builds a dict of values by the name of an argument, for the callables
        below the path that are in no table and no doctest; it also holds objects whose methods
        are called.
    """
    entries = {entry.name: entry for entry in public(rooms)}
    reasoned = {
        name for name in entries for key in reasons if name == key or name.startswith(f"{key}.")
    }
    unknown = [k for k in (*examples, *(lenient or {})) if k not in entries]
    unknown += [k for k in reasons if not any(n == k or n.startswith(f"{k}.") for n in entries)]
    assert not unknown, f"not public callables: {unknown}"
    cached = {key: functools.cache(build) for key, build in (vocabulary or {}).items()}

    def words(name: str) -> Builder | None:
        """Return the vocabulary of the longest path above `name`."""
        above = [key for key in cached if name.startswith(f"{key}.")]
        return cached[max(above, key=len)] if above else None

    return [
        Case(entry, examples.get(name), (lenient or {}).get(name, {}), words(name))
        for name, entry in entries.items()
        if name in examples or name not in reasoned
    ]


def without_example(cases: Sequence[Case]) -> list[str]:
    """Return the paths of the cases that have no valid call to start from."""
    return [case.entry.name for case in cases if case.example is None]


# --- Drawn values -------------------------------------------------------------------------------

#: The same calls in every run. A drawn call may be one of the slow ones.
FIXED = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
#: Small, so that a drawn time or number of steps ends.
ENTRIES = st.one_of(
    st.integers(-3, 3).map(float), st.floats(-3.0, 3.0), st.sampled_from([NAN, INF, -INF])
)


def drawn_value(kind: Kind) -> st.SearchStrategy[Any]:
    """Return a strategy for what may be given in place of an argument of a kind."""
    if kind is Kind.ARRAY:
        shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
        return arrays.arrays(np.float64, shapes, elements=ENTRIES)
    if kind is Kind.SEED:
        return st.one_of(st.integers(max_value=-1), st.text(max_size=3), st.floats())
    if kind is Kind.WORD:
        return st.text(max_size=5)
    return st.one_of(ENTRIES, st.integers(-3, 5), st.booleans(), st.text(max_size=3), st.none())


def judge_drawn(cases: Sequence[Case], data: st.DataObject) -> None:
    """Draw a callable, one of its arguments and a value for it; assert that the call is sound."""
    case = data.draw(st.sampled_from(cases), label="callable")
    assert case.example is not None
    kinds = {name: kind_of(name, value) for name, value in case.valid.items()}
    names = [name for name, kind in kinds.items() if kind in DRAWN]
    if not names:
        return
    name = data.draw(st.sampled_from(names), label="argument")
    value = data.draw(drawn_value(kinds[name]), label="value")
    if value is None and not any(
        bad.value is None for where, bad in case.bad_calls() if where == name
    ):
        return
    # A seed may go unused.
    parts = () if kinds[name] is Kind.SEED else numbers_in(value)
    numeric = [part for part in parts if part.dtype.kind == "f"]
    bad = Bad(
        "drawn",
        value,
        undefined=any(np.isnan(part).any() for part in numeric),
        infinite=any(np.isinf(part).any() for part in numeric),
        misfit=not isinstance(value, str),
    )
    lenient = case.lenient.get(name, ())
    unseen = (bad.undefined and "nan" in lenient) or (bad.infinite and "inf" in lenient)
    if unseen or bad.label in lenient:
        return
    verdict = case.judge(name, bad)
    assert verdict is None, verdict
