"""The harness itself: a function that checks its argument passes, those that do not fail."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tally
from harness import Case, Public

from traindyn import _validate
from traindyn.trajectory import Trajectory


@pytest.fixture(autouse=True)
def _uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out of the counts what is wrong on purpose."""
    monkeypatch.setattr(tally, "tried", lambda outcome: None)


def _sound(x: float) -> float:
    return _validate.number("x", x) + 1.0


def _misnamed(x: float) -> float:
    return _validate.number("y", x) + 1.0


def _silent(x: float) -> float:
    return float(x) * 2.0 if isinstance(x, float) else _sound(x)


def _outside(x: float) -> float:
    return math.sqrt(_validate.number("x", x))


def _native(x: Any) -> float:
    """Read the bytes of an array as if they were those of this machine, as compiled code does."""
    x = np.asarray(x)
    return float(_validate.finite("x", x, shape=(2,)) @ x.view(x.dtype.newbyteorder("=")))


def _unmasking(x: Any) -> float:
    return float(_validate.finite("x", np.asarray(x), shape=(2,)).sum())


@pytest.mark.parametrize(
    ("function", "message"),
    [(_native, "byte order): another result"), (_unmasking, "masked entries pass")],
)
def test_arrays_that_are_read_wrongly_are_found(function: Callable[..., Any], message: str) -> None:
    """Controls: what NumPy knows of an array, and compiled code or a conversion forgets."""
    entry = Public(function.__name__, sys.modules[__name__], None, function)
    found = Case(entry, lambda: {"x": np.array([0.5, 2.0])}).defects()
    assert any(message in defect for defect in found), found


def _case(function: Callable[..., Any], **lenient: Any) -> Case:
    entry = Public(function.__name__, sys.modules[__name__], None, function)
    return Case(entry, lambda: {"x": 0.5}, lenient)


def test_a_function_that_checks_has_no_defects() -> None:
    """Every bad value is refused by name, or gives a number."""
    assert _case(_sound).defects() == []


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_misnamed, "does not name `x`"),
        (_silent, "NaN passes"),
        (_silent, "an infinite value passes and spreads"),
        (_outside, "raised outside the library"),
        (lambda x: x + 1.0, "TypeError"),
    ],
)
def test_every_kind_of_defect_is_found(function: Callable[..., Any], message: str) -> None:
    """Controls: a wrong name, NaN and infinity that pass, an error of another's, no check."""
    assert any(message in defect for defect in _case(function).defects())


def test_a_documented_value_may_pass() -> None:
    """Only the value that is named, for the argument that is named."""
    found = _case(_silent, x=("nan",)).defects()
    assert found and not any("NaN" in defect for defect in found)


class _Holder:
    """Keeps an array, and hands it out."""

    def __init__(self) -> None:
        self.kept = np.zeros(2)

    def keep(self, x: Any) -> float:
        self.kept = _validate.finite("x", x, shape=(2,))
        return 1.0

    def show(self, x: Any) -> Any:
        _validate.finite("x", x, shape=(2,))
        return self.kept


_KEPT = np.zeros(2)


def _doubled(x: Any) -> Any:
    x = _validate.finite("x", x, shape=(2,))
    if x.flags.writeable:
        x *= 2.0
    return float(x[0])


def _same(x: Any) -> Any:
    return {"found": _validate.finite("x", x, shape=(2,))[::-1]}


def _closed(x: Any) -> Callable[[], float]:
    x = _validate.finite("x", x, shape=(2,))
    return lambda: float(x[0])


def _cached(x: Any) -> Any:
    _validate.finite("x", x, shape=(2,))
    return _KEPT


def _confused(x: Any, y: Any) -> float:
    return 1.0 if x is y else 2.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (_doubled, "writes to `x`"),
        (_same, "the result shares memory with `x`"),
        (_closed, "the result shares memory with `x`"),
        (_Holder().keep, "the object keeps `x`"),
        (_Holder().show, "what the object keeps can be written to"),
        (_cached, "one array that can be written to is handed out twice"),
        (_confused, "one array for `x` and `y` gives another result than two"),
    ],
)
def test_shared_arrays_are_found(call: Callable[..., Any], message: str) -> None:
    """Controls: arrays that change with one of the caller's, or with a result of another call."""
    entry = Public(call.__name__, sys.modules[__name__], None, call)
    names = ("x", "y") if call is _confused else ("x",)
    case = Case(entry, lambda: {name: np.array([0.5, 2.0]) for name in names})
    assert any(message in defect for defect in case.sharing()), case.sharing()


def test_a_result_with_copies_shares_nothing() -> None:
    """Not even where it is an object with arrays."""
    entry = Public("Trajectory", sys.modules[__name__], None, Trajectory)
    record = namedtuple("record", ["m"])
    case = Case(entry, lambda: {"times": np.arange(2.0), "statistics": record(np.ones(2))})
    assert case.shared() == []


def test_calls_that_disturb_each_other_are_found() -> None:
    """Control: a buffer that all calls share, read after the other threads have had their turn."""
    buffer = np.zeros(1)

    def disturbed(x: float) -> float:
        mine = threading.get_ident()
        buffer[0] = mine
        time.sleep(0.01)
        return x if buffer[0] == mine else -x

    entry = Public("disturbed", sys.modules[__name__], None, disturbed)
    (found,) = Case(entry, lambda: {"x": 0.5}).overlapping()
    assert "in threads: another result" in found


CONFTEST = """
from tally import Tally

def pytest_configure(config):
    config.addinivalue_line("markers", "fault: x")
    config.pluginmanager.register(Tally(), "tally")
"""
COUNTING = """
import pytest, tally

@pytest.mark.parametrize("i", range(4))
def test_inputs(i):
    tally.tried("accepted")
    tally.tried("refused")
    tally.tried("refused")

@pytest.mark.fault
def test_one_fault():
    pass

@pytest.mark.fault
def test_faults():
    tally.fault(3)

@pytest.mark.fault
def test_skipped():
    pytest.skip("what a skipped test counts is left out")
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_counts_reach_the_summary(tmp_path: Path, workers: str) -> None:
    """Also from the workers of pytest-xdist; what a skipped test counts is left out."""
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf8")
    (tmp_path / "test_counting.py").write_text(COUNTING, encoding="utf8")
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", workers, "--rootdir", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(tally.__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    line = "odd calls tried: 12; accepted: 4; refused by name: 8; faults injected: 4, by 2 tests"
    assert line in found.stdout.splitlines(), found.stdout
