"""Write files whole: a reader finds the old content or the new one, never a part of it."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, content: bytes) -> Path:
    """Write under another name, then rename; folders are made as needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path
