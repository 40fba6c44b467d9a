"""Options of compiled loops."""

from __future__ import annotations

FAST = {"reassoc", "contract", "arcp", "nsz"}
"""Freedom to reorder sums, which lets the compiler vectorise them. NaN and infinity keep their
meaning, so that a diverging run is seen as such; for the same reason the steps of SGD divide as
NumPy does."""
