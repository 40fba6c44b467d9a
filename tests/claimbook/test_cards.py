"""Cards of claims: whose they are, the marks of what they rest on, and links to other pages."""

from __future__ import annotations

import json

import pytest

from claimbook import proofs
from claimbook.collect import build
from claimbook.site import cards, sources

BIBLIOGRAPHY = r"""
@misc{first,
  author = {Ben Arous, G{\'e}rard and M{\"u}ller, Ann and van der Berg, Jan},
  title = {A paper},
  note = {Short key BGHJ. Revised},
}
@misc{alone, author = {Zhu, Libin}, title = {A thesis}, note = {Short key ZHU}}
@misc{other, author = {Adams, Bo}, title = {Cited only}, note = {Slides of a short talk}}
@misc{nobody, title = {Without authors}, note = {Short key NONE}}
"""


@pytest.fixture
def ledger(claims, executed, tmp_path):
    """A small ledger, as read from its file."""
    path = tmp_path / "ledger.json"
    build(claims, executed, profile="quick", seed=1, out=path)
    return json.loads(path.read_text(encoding="utf8"))


@pytest.fixture
def authors(tmp_path):
    """The sources of a bibliography."""
    path = tmp_path / "references.bib"
    path.write_text(BIBLIOGRAPHY, encoding="utf8")
    return sources.read([path])


@pytest.fixture
def card(ledger, authors):
    """Return the card of a claim, of which some entries may differ."""
    claims = {claim["id"]: claim for claim in ledger["claims"]}

    def show(id, **changes):
        graphs = proofs.graphs(ledger)
        return cards.card({**claims[id], **changes}, {}, graphs, sources=authors)

    return show


def test_sources_are_those_with_a_key(authors):
    """A work that is cited only could pass for a source, or a name keep its TeX."""
    assert authors == {
        "BGHJ": sources.Source("Ben Arous, Müller and van der Berg", "first"),
        "ZHU": sources.Source("Zhu", "alone"),
    }
    assert sources.read([]) == {}


def test_a_card_names_its_source(card):
    """A reader could know the key of a paper, but not whose it is."""
    assert "*Source:* Ben Arous, Müller and van der Berg {cite}`first`" in card("BGHJ-T2.3")
    assert "*Source:*" not in card("OWN-rank")


def test_a_card_leads_to_the_pages_that_say_more(card):
    """Who lands on a card could miss the counter-example, or what is left open."""
    misprint, part = card("BGHJ-L3.1"), card("BGHJ-F2.1")
    assert '<a href="../errata.html#erratum-bghj-l3-1">erratum</a>' in misprint
    assert '<a href="../errata.html#erratum-own-rank">erratum</a>' in card("OWN-rank")
    assert '<a href="../limits.html#limit-bghj-f2-1">what would settle it</a>' in part
    assert '<a href="../panels.html#panels-bghj-f2-1">panel by panel</a>' in part
    assert "limits.html" not in misprint and "errata.html" not in part
    assert not any(f"{page}.html" in card("BGHJ-T2.3") for page in ("errata", "limits", "panels"))


def test_what_a_card_rests_on_has_the_mark_of_its_verdict(card):
    """A card could rest on something false, and not say so."""
    mark = '&nbsp;<span role="img" aria-label="{}">{}</span>'
    corrected = mark.format("misprint, corrected", "✎")
    rests = f'*Rests on:* <a href="matrices.html#claim-bghj-l3-1">Lemma 3.1</a>{corrected}'
    assert rests in card("BGHJ-T2.3")
    lemma = card("BGHJ-L3.1")
    unknown, confirmed = mark.format("not among the claims", "–"), mark.format("confirmed", "✓")
    assert f"*Rests on:* Lemma 3.0{unknown}" in lemma
    assert (
        f'*Used by:* <a href="alignment.html#claim-bghj-t2-3">Theorem 2.3</a>{confirmed}' in lemma
    )


def test_a_formula_that_holds_is_folded(card, ledger):
    """Details could stand between theorems, or something that was found be hidden."""
    (check, *_) = next(c["evidence"] for c in ledger["claims"] if c["id"] == "BGHJ-L3.1")
    assert check["kind"] == "identity"
    formula = dict(kind="formula", figure=None, evidence=[check], verdict="confirmed")
    folded = card("BGHJ-T2.3", **formula)
    assert '<details class="td-card td-entry" id="claim-bghj-t2-3"' in folded
    assert folded.rstrip().endswith("</details>")
    for change in (
        dict(kind="theorem"),
        dict(verdict="partial", reason="A part.", settle="More."),
        dict(evidence=[{**check, "kind": "inequality"}]),
    ):
        shown = card("BGHJ-T2.3", **formula | change)
        assert '<div class="td-card" id="claim-bghj-t2-3"' in shown
        assert shown.rstrip().endswith("</div>")
