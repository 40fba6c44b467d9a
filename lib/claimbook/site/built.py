"""What is done with every page of a built site, on all cores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import joblib

T = TypeVar("T")

#: Fewer pages than this for each core are read sooner than another process is started.
_WORTH_A_PROCESS = 10


def pages(html: Path) -> list[Path]:
    """List the pages of a site, in order.

    Parameters
    ----------
    html : Path
        Folder of the site.

    Returns
    -------
    list of Path
        Without the templates that the theme leaves among its static files.
    """
    return [path for path in sorted(html.rglob("*.html")) if "_static" not in path.parts]


def each(function: Callable[[Path], T], paths: list[Path]) -> list[T]:
    """Call a function with every page.

    Parameters
    ----------
    function : callable
        Of a module, so that other processes find it.
    paths : list of Path
        The pages.

    Returns
    -------
    list
        In the order of the pages.
    """
    jobs = max(1, min(joblib.cpu_count(), len(paths) // _WORTH_A_PROCESS))
    return list(joblib.Parallel(n_jobs=jobs)(joblib.delayed(function)(path) for path in paths))
