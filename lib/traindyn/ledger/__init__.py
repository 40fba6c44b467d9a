"""Claims, their evidence and the verdicts on them.

A chapter records each claim of its source with one call::

    from traindyn.ledger import Chapter, Control, identity

    chapter = Chapter("alignment/population-matrices", profile=profile, seed=seed)
    chapter.claim("BGHJ-L3.1", identity(..., control=Control(...)))

The build (``python -m traindyn.ledger build``) collects the verdicts from the executed
notebooks into ``ledger.json`` and turns them into pages. The ledger knows nothing of the
mathematics it records.
"""

from traindyn.ledger.chapter import Chapter
from traindyn.ledger.checks import below, exceeds, identity, ordering, within
from traindyn.ledger.collect import build
from traindyn.ledger.evidence import Control, ControlResult, Evidence
from traindyn.ledger.one_sided import (
    estimate_below,
    estimate_exceeds,
    mean_below,
    mean_exceeds,
    share_below,
    share_exceeds,
)
from traindyn.ledger.registry import Claim, ClaimError, Registry, find_registry, load_registry
from traindyn.ledger.report import write_pages
from traindyn.ledger.statistical import (
    binomial,
    covariance_equals,
    equal_laws,
    follows_law,
    mean_equals,
    rate,
    statistic_below,
)
from traindyn.ledger.verdict import MIME, Record

__all__ = [
    "MIME",
    "Chapter",
    "Claim",
    "ClaimError",
    "Control",
    "ControlResult",
    "Evidence",
    "Record",
    "Registry",
    "below",
    "binomial",
    "build",
    "covariance_equals",
    "equal_laws",
    "estimate_below",
    "estimate_exceeds",
    "exceeds",
    "find_registry",
    "follows_law",
    "identity",
    "load_registry",
    "mean_below",
    "mean_equals",
    "mean_exceeds",
    "ordering",
    "rate",
    "share_below",
    "share_exceeds",
    "statistic_below",
    "within",
    "write_pages",
]
