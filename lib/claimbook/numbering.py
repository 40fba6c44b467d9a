"""How the sources number their statements."""

from __future__ import annotations

import re

#: Kinds of numbered statements by the words that sources have for them, plurals among these.
KINDS: dict[str, str] = {
    "Appendices": "Appendix",
    "Appendix": "Appendix",
    "Assumption": "Assumption",
    "Chapter": "Chapter",
    "Claim": "Claim",
    "Corollaries": "Corollary",
    "Corollary": "Corollary",
    "Definition": "Definition",
    "Equation": "Equation",
    "Example": "Example",
    "Fact": "Fact",
    "Figure": "Figure",
    "Lemma": "Lemma",
    "Observation": "Observation",
    "Proposition": "Proposition",
    "Remark": "Remark",
    "Section": "Section",
    "Table": "Table",
    "Theorem": "Theorem",
}
#: Pattern of a number.
NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)*"


def statement_of(number: str) -> str:
    """Return the statement that a number of the registry belongs to.

    Examples
    --------
    >>> from claimbook.numbering import statement_of
    >>> statement_of("Theorem 2.7 (first-layer blocks)"), statement_of("Proof of Theorem 4.7")
    ('Theorem 2.7', 'Theorem 4.7')
    >>> statement_of("Main result (several neurons)"), statement_of("Chapter 14, Equation 1.2")
    ('Main result', 'Chapter 14, Equation 1.2')
    """
    bare = re.sub(r"\s*\(.*", "", number.removeprefix("Proof of "))
    head = re.match(rf"(?:Chapter \d+, )?(?:{'|'.join(KINDS)}) {NUMBER}", bare)
    return head.group() if head else bare
