"""Linear algebra on one thread, for calls that may overlap."""

from __future__ import annotations

import threading
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits


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
            # Each time, since another library may have come in; the first knows the old limits.
            self._limits.append(threadpool_limits(limits=1))
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


def _threads() -> dict[str, int]:
    return {each["filepath"]: each["num_threads"] for each in threadpool_info()}


#: For ``with one_thread:``.
one_thread = _OneThread()
