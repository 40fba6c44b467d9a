"""The package jsonschema, without the grammar that it would build at its import."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["jsonschema"]


@contextmanager
def _without(name: str) -> Iterator[None]:
    """Let imports of a package fail that is not there yet."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


# With JupyterLab comes a package that jsonschema takes two seconds to import, in every process that
# reads a notebook, for the format "iri": no schema of notebooks or of this package has one.
with _without("rfc3987_syntax"):
    import jsonschema
