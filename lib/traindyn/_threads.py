"""Linear algebra on one thread, for calls that may overlap."""

from __future__ import annotations

import sys
import threading
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread:
    """Linear algebra on one thread while any map of this process runs, in any of its threads.

    Maps that overlap must not restore each other's limit: the last to end restores all. OpenBLAS
    obeys the thread that has set a limit before, and no other: what the last to end cannot
    restore, the next to begin does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._limits: list[Any] = []
        self._before: dict[str, int] = {}

    def __enter__(self) -> None:
        with self._lock:
            if not self._running:
                self._restore()
                self._limits = []
                self._before = _threads()
            # Each time, since another library may have come in; the first has the old limits.
            self._limits.append(_libraries().limit(limits=1))
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                self._restore()
                if self._before.items() <= _threads().items():
                    self._limits = []

    def _restore(self) -> None:
        for each in reversed(self._limits):
            each.restore_original_limits()


_found: tuple[int, ThreadpoolController | None] = (0, None)


def _libraries() -> ThreadpoolController:
    """Return the libraries of this process that have threads.

    To look for them takes two milliseconds; another can have come in with a module only.
    """
    global _found
    modules, libraries = _found
    if libraries is None or modules != len(sys.modules):
        _found = modules, libraries = len(sys.modules), ThreadpoolController()
    return libraries


def _threads() -> dict[str, int]:
    return {each["filepath"]: each["num_threads"] for each in _libraries().info()}


#: For ``with one_thread:``.
one_thread = _OneThread()
