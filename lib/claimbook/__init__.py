"""Claims, their evidence and the verdicts on them: what a book that checks papers is made with.

A chapter records each claim of its source with one call::

    from claimbook import Chapter, Control, identity

    chapter = Chapter("part/chapter", profile=profile, seed=seed)
    chapter.claim("KEY-L3.1", identity(..., control=Control(...)))

``python -m claimbook build`` collects the verdicts from the executed notebooks into
``ledger.json``, `site` turns them into pages. Nothing here depends on the mathematics of a
book; ``tests/example`` is a book of one chapter that shows what is needed.

=============  ======================================================================
`registry`     ``book/claims.toml``: what the sources claim
`numbering`    how the sources number their statements
`proofs`       what the proof of a statement uses, and what it rests on
`chapter`      the object with which a chapter records evidence
`evidence`     what one check leaves behind, and its control
`checks`       identities, inequalities, orderings, bands
`statistical`  tests with a null law and a level
`one_sided`    tests that put the burden of proof on the claim
`sequential`   the same of a probability, with no more draws than it takes to decide
`student`      the level of t-tests on skewed samples
`smirnov`      exact law of the two-sample Kolmogorov-Smirnov distance
`verdict`      from evidence to a verdict
`collect`      from executed notebooks to ``ledger.json``
`compare`      whether two ledgers agree
`statements`   from the number of a statement to its claims, functions and tests
`seeds`        how often each check failed at other seeds
`render`       verdicts and evidence as HTML
`report`       writes the `pages`
`run`          runs chapters
`site`         builds the site: cards of claims, API reference, check of links
`cli`          looks up claims, verifies one
=============  ======================================================================
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from claimbook.chapter import Chapter
    from claimbook.checks import below, exceeds, identity, ordering, within
    from claimbook.evidence import Control, ControlResult, Evidence
    from claimbook.one_sided import (
        estimate_below,
        estimate_exceeds,
        mean_below,
        mean_exceeds,
        share_below,
        share_exceeds,
    )
    from claimbook.registry import Claim, ClaimError, Registry, find_registry, load_registry
    from claimbook.sequential import SequentialTest
    from claimbook.statistical import (
        binomial,
        covariance_equals,
        equal_laws,
        follows_law,
        mean_equals,
        median_equals,
        rate,
        statistic_below,
    )
    from claimbook.verdict import MIME, Record

#: Modules of the names below; a module is read when one of its names is first used, so that the
#: command line and the tools of the site start without SciPy.
_MODULES = (
    "chapter", "checks", "evidence", "one_sided", "registry", "sequential", "statistical",
    "verdict",
)  # fmt: skip

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
    "SequentialTest",
    "below",
    "binomial",
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
    "median_equals",
    "ordering",
    "rate",
    "share_below",
    "share_exceeds",
    "statistic_below",
    "within",
]


def __getattr__(name: str) -> Any:
    """Look a public name up in the module that defines it."""
    if name in __all__:
        for module in _MODULES:
            found = vars(import_module(f"claimbook.{module}"))
            if name in found:
                return globals().setdefault(name, found[name])
    raise AttributeError(f"module 'claimbook' has no attribute {name!r}")
