"""Caches of compiled code that a full disk or a power cut has damaged.

Numba and JAX keep what they compiled in files. A file that was cut short stops them, or makes them
warn, in every later run until somebody deletes it; without it they compile once more.
"""

from __future__ import annotations

import pickletools
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

_ZSTD = b"\x28\xb5\x2f\xfd"


def mend(environment: Mapping[str, str]) -> list[Path]:
    """Remove the files of compiled code that cannot be read to their end.

    Nothing is unpickled and nothing is imported that compiles: a thousand files take half a
    second. A file that another process is writing may go too, which costs no more than compiling
    once more.

    Parameters
    ----------
    environment : mapping
        ``NUMBA_CACHE_DIR`` and ``JAX_COMPILATION_CACHE_DIR`` name the folders, if they are set.

    Returns
    -------
    list of Path
        The files removed.

    Examples
    --------
    >>> from claimbook.run.caches import mend
    >>> mend({})
    []
    """
    damaged = [path for path, whole in _examined(environment) if not whole]
    for path in damaged:
        path.unlink(missing_ok=True)
    return damaged


def _examined(environment: Mapping[str, str]) -> Iterator[tuple[Path, bool]]:
    """Yield the files of both caches and whether they are whole."""
    kinds = (
        ("NUMBA_CACHE_DIR", "**/*.nbi", _whole_index),
        ("NUMBA_CACHE_DIR", "**/*.nbc", _whole_pickle),
        ("JAX_COMPILATION_CACHE_DIR", "*-cache", _whole_executable),
    )
    for name, pattern, whole in kinds:
        folder = environment.get(name)
        for path in sorted(Path(folder).glob(pattern)) if folder else ():
            try:
                content = path.read_bytes()
            except OSError:  # of somebody else, or gone in the meantime
                continue
            yield path, whole(content)


def _whole_pickle(content: bytes) -> bool:
    """Whether this is one pickle."""
    return _end(content) == len(content)


def _whole_index(content: bytes) -> bool:
    """Whether this is a pickle of Numba's version, with another behind it."""
    end = _end(content)
    return end is not None and _whole_pickle(content[end:])


def _end(content: bytes) -> int | None:
    """Where the first pickle ends, found from the lengths in it; None if it does not."""
    try:
        last = 0
        for _, _, place in pickletools.genops(content):
            last = place or 0
    except ValueError:
        return None
    return last + 1  # behind the instruction to stop, which is one byte


def _whole_executable(content: bytes) -> bool:
    """Whether this unpacks; without a library for its packing it counts as whole."""
    if content.startswith(_ZSTD):
        if sys.version_info >= (3, 14):
            from compression import zstd

            try:
                zstd.decompress(content)
            except zstd.ZstdError:
                return False
        return True
    try:
        zlib.decompress(content)
    except zlib.error:
        return False
    return True
