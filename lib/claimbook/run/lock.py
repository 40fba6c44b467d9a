"""One build at a time in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil


class LockedError(Exception):
    """A folder in which another process builds."""


def take(folder: Path, owner: int) -> None:
    """Note down which process builds in a folder, unless another one that runs is noted there.

    Two builds would overwrite each other's stamps, and the numbers of one settings could come
    under those of the other. What a process has noted that is gone does not count, so that no
    lock is ever left.

    Parameters
    ----------
    folder : Path
        Such as ``_build/quick``; made if there is none.
    owner : int
        Id of the process, such as that of make. It may take the folder again.

    Raises
    ------
    LockedError
        If another process builds there.

    Examples
    --------
    >>> import os, tempfile
    >>> from pathlib import Path
    >>> from claimbook.run import lock
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock.take(Path(folder), os.getpid())
    ...     lock.take(Path(folder), os.getpid())
    """
    import fcntl  # not on Windows, where there is no make either

    me = _named(owner)
    if me is None:
        raise ValueError(f"owner must be the id of a process that runs, got {owner}")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+", encoding="utf8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        other = _noted(file.read())
        if other not in (None, me) and _named(other[0]) == other:
            raise LockedError(
                f"{folder} is being built already, by process {other[0]}; wait for it or stop it"
            )
        file.truncate(0)
        json.dump(me, file)


def _named(process: int) -> list[Any] | None:
    """Id and start of a process that runs: the id alone may be given to another later."""
    try:
        return [process, psutil.Process(process).create_time()]
    except psutil.NoSuchProcess:
        return None


def _noted(text: str) -> Any:
    try:
        noted = json.loads(text)
    except ValueError:
        return None
    return noted if isinstance(noted, list) and len(noted) == 2 else None
