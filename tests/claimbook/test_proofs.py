"""What the proofs of the sources use, and the map of it."""

import json
import re

import pytest

from claimbook import proofs
from claimbook.collect import build
from claimbook.pages import layers
from claimbook.pages import map as map_page
from claimbook.site import cards

CHAIN = {"Theorem 4": ["Lemma 3"], "Lemma 3": ["Lemma 2"], "Lemma 2": ["Lemma 1"], "Lemma 1": []}


def entries(**verdicts):
    """Claims of a source, by the ends of their ids: L2 is on Lemma 2, L2b on a part of it."""
    kinds = {"L": "Lemma", "T": "Theorem"}
    return [
        {
            "id": f"A-{end}",
            "source": "A",
            "number": f"{kinds[end[0]]} {end[1]}{' (a part)' if end[2:] else ''}",
            "chapter": f"part/{end[0].lower()}",
            "verdict": verdict,
            "statement": "Something.",
            "reason": "A counter-example.",
        }
        for end, verdict in verdicts.items()
    ]


def test_the_worst_verdict_on_the_way_counts():
    """A theorem could look sound above a lemma that is false two steps below."""
    nodes = proofs.graph(
        "A", entries(T4="confirmed", L3="corrected", L2="false", L1="partial"), CHAIN
    )
    assert {number: node.rests for number, node in nodes.items()} == {
        "Theorem 4": "false",
        "Lemma 3": "false",
        "Lemma 2": "undecided",
        "Lemma 1": "confirmed",
    }
    assert nodes["Theorem 4"].through == ("Lemma 2",)
    assert nodes["Lemma 2"].through == ("Lemma 1",)
    assert nodes["Lemma 2"].used_by == ("Lemma 3",)
    assert nodes["Lemma 1"].verdict == "partial"


@pytest.mark.parametrize(
    ("verdict", "rests"),
    [
        ("confirmed", "confirmed"),
        ("corrected", "corrected"),
        ("partial", "undecided"),
        ("data", "undecided"),
        ("false", "false"),
    ],
)
def test_each_verdict_has_its_weight(verdict, rests):
    """What is not decided could pass for what holds."""
    nodes = proofs.graph("A", entries(T4="confirmed", L1=verdict), {"Theorem 4": ["Lemma 1"]})
    assert nodes["Theorem 4"].rests == rests
    assert nodes["Theorem 4"].through == (() if rests == "confirmed" else ("Lemma 1",))


def test_what_has_no_claim_is_undecided():
    """A lemma that nobody checked could count as confirmed."""
    nodes = proofs.graph("A", entries(T4="confirmed"), {"Theorem 4": ["Lemma 1"], "Lemma 1": []})
    assert nodes["Lemma 1"].verdict is None and nodes["Theorem 4"].rests == "undecided"


def test_of_a_part_its_own_verdict_counts():
    """A proof that uses the true half of a lemma does not pass through the false one."""
    lemmas = entries(T4="confirmed", T5="confirmed", T6="confirmed", L1="confirmed", L1b="false")
    uses = {
        "Theorem 4": ["A-L1"],
        "Theorem 5": ["A-L1b"],
        "Theorem 6": ["A-L1", "Lemma 1"],  # the whole includes the part
    }
    nodes = proofs.graph("A", lemmas, uses)
    assert nodes["Lemma 1"].verdict == "false" and nodes["Lemma 1"].first["id"] == "A-L1b"
    assert [nodes[number].rests for number in uses] == ["confirmed", "false", "false"]
    assert nodes["Theorem 6"].uses == {"Lemma 1": ()}
    shown = {claim["id"]: cards._users(claim, nodes["Lemma 1"], nodes) for claim in lemmas[3:]}
    assert {id: [number for number, _ in users] for id, users in shown.items()} == {
        "A-L1": ["Theorem 4", "Theorem 6"],
        "A-L1b": ["Theorem 5", "Theorem 6"],
    }


def test_ledger_hands_on_what_proofs_use(claims, executed, tmp_path):
    """The pages are made from the ledger alone."""
    path = tmp_path / "ledger.json"
    ledger = build(claims, executed, profile="quick", seed=1, out=path)
    assert ledger["uses"]["BGHJ"]["Theorem 2.3"] == ["Lemma 3.1"]
    nodes = proofs.graphs(json.loads(path.read_text("utf8")))["BGHJ"]
    assert nodes["Theorem 2.3"].rests == "undecided"  # through Lemma 3.0
    assert nodes["Lemma 3.0"].through == ()


def test_what_is_used_stands_below():
    """A line could lead upwards, or a box stand far from the only one that uses it."""
    uses = {**CHAIN, "Theorem 5": ["Lemma 2", "Fact 1"], "Fact 1": []}
    found = layers.layers(uses)
    assert found["Theorem 4"] == 3 and found["Theorem 5"] == 2 and found["Fact 1"] == 1
    for name, used in uses.items():
        assert all(found[other] < found[name] for other in used)


def boxes(drawing, widths):
    """Left, right, and height of each box."""
    return [(x - widths[n] / 2, x + widths[n] / 2, y) for n, (x, y) in drawing.places.items()]


def test_boxes_do_not_overlap_and_lines_meet_them():
    """A box could hide another, or stand outside the picture."""
    uses = {f"T{i}": [f"L{j}" for j in range(6) if (i + j) % 3 == 0] for i in range(5)}
    uses |= {f"L{j}": ["F"] if j % 2 else [] for j in range(6)}
    uses |= {"F": [], "T0": ["L0", "L3", "F"], "alone": ["with this"], "with this": []}
    widths = {name: 60.0 + 10 * len(name) for name in uses}
    drawing = layers.draw(uses, widths)
    found = boxes(drawing, widths)
    for index, (left, right, y) in enumerate(found):
        assert left >= 0 and right <= drawing.width
        assert layers.BOX / 2 <= y <= drawing.height - layers.BOX / 2
        for other_left, other_right, other_y in found[:index]:
            assert y != other_y or right < other_left or other_right < left
            assert y == other_y or abs(y - other_y) >= layers.BOX
    assert set(drawing.lines) == {(name, other) for name, used in uses.items() for other in used}
    for (name, other), line in drawing.lines.items():
        (x, y), (to_x, to_y) = drawing.places[name], drawing.places[other]
        assert line[0] == (x, pytest.approx(y + layers.BOX / 2))
        assert line[-1] == (to_x, pytest.approx(to_y - layers.BOX / 2))
    assert layers.draw(uses, widths) == drawing
    assert layers.draw({}, {}).places == {}


def test_wide_graphs_are_folded():
    """Many small parts beside each other would make a picture of any width."""
    uses = {f"{kind}{i}": [f"L{i}"] if kind == "T" else [] for kind in "TL" for i in range(30)}
    drawing = layers.draw(uses, dict.fromkeys(uses, 100.0), wide=500)
    assert drawing.width <= 500
    assert len({y for _, y in drawing.places.values()}) > 4


def page(verdicts, uses):
    """The text of the page."""
    ledger = {"sources": {"A": "A paper"}, "claims": entries(**verdicts), "uses": {"A": uses}}
    return map_page.page(ledger)


def test_map_shows_both_marks_and_leads_to_cards():
    """The mark of a statement could hide that its proof fails."""
    text = page({"T4": "confirmed", "L3": "confirmed", "L1": "false"}, CHAIN)
    (svg,) = re.findall(r"<svg.*?</svg>", text)
    theorem = re.search(r'<a [^>]*data-node="A-Theorem-4".*?</a>', svg).group()
    assert 'class="td-node td-is-confirmed"' in theorem
    assert 'href="part/t.html#claim-a-t4"' in theorem
    assert "Theorem 4: confirmed; rests on something false as stated" in theorem
    assert "td-rests td-on-false" in theorem
    assert '<g class="td-node td-is-none" data-node="A-Lemma-2" tabindex="0"' in svg
    assert svg.count('class="td-line td-on-false"') == 3
    # Above all: what is false, and what rests on it.
    table = text[: text.index("<form")]
    assert "A counter-example." in table and table.count("Theorem 4</a>") == 1


def test_map_keeps_lines_that_others_imply():
    """A view of one statement would lack what its proof cites."""
    uses = {**CHAIN, "Theorem 4": ["Lemma 1", "Lemma 3"]}
    text = page({"T4": "confirmed"}, uses)
    lines = re.findall(r'class="td-line td-on-undecided( td-implied)?" data-from="(.*?)"', text)
    assert sorted(lines) == [
        ("", "A-Lemma-2"),
        ("", "A-Lemma-3"),
        ("", "A-Theorem-4"),
        (" td-implied", "A-Theorem-4"),
    ]


def test_map_without_faults_or_proofs_says_so():
    """An empty table could stand for a check that was not made."""
    assert "No statement rests on a false one." in page({"T4": "confirmed"}, {"Theorem 4": []})
    assert "does not say what the proofs use" in page({"T4": "confirmed"}, {})
