"""Texts without TeX, the index of the search page, and the script that looks in it."""

import json
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest
from sphinx.search.en import SearchEnglish

from claimbook import load_registry, report
from claimbook.collect import build
from claimbook.pages import contents, finding
from claimbook.pages.plain import plain, tex
from claimbook.statements import Place, Reference, Statement

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "lib" / "claimbook" / "static"


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        (r"\delta>\delta_{\rm NN}", "δ > δ_NN"),
        (r"\delta_\mathrm{alg}", "δ_alg"),
        (r"\frac12\|w\|^2", "½‖w‖²"),
        (r"\frac{a+b}{2k}x", "(a + b)/(2k) x"),
        (r"\sqrt{d}\,e^{-\lambda t}", "√d e^(−λt)"),
        (r"\hat\Sigma\to\bar y'", "Σ̂ → ȳ′"),
        (r"-x\le-1", "−x ≤ −1"),
        (r"0\text{ for every }k\ge3", "0 for every k ≥ 3"),
        (r"\lambda_{\max}(K)", "λ_max(K)"),
        (r"\unknown{x}_", "unknown x"),
        (r"\frac{1", "1/ "),
    ],
)
def test_formulas_fit_in_a_line(formula, said):
    """A line of the errata, or of what is found, could be TeX."""
    assert tex(formula).strip() == said.strip()


def test_no_statement_of_the_book_keeps_tex():
    """A sign that is not known could be lost, or its name be read."""
    for claim in load_registry(ROOT / "book" / "claims.toml"):
        for text in (claim.statement, claim.reason, claim.settle):
            assert not set(plain(text)) & set("\\$"), claim.id


@pytest.fixture
def ledger(claims, executed, tmp_path):
    """A small ledger, as read from its file."""
    path = tmp_path / "ledger.json"
    build(claims, executed, profile="quick", seed=1, out=path)
    return report.read_ledger(path)


NOTATION = r"""# Notation

## One letter

$\lambda$
: a rate, *signal*

## Many letters

| here | BGHJ | library |
|---|---|---|
| norm | $\lvert x\rvert$ | `laws.norm`<br>`laws.size` |
| threshold | $\delta_{NN}$; $\delta_j^*$ | – |
"""


GLOSSARY = r"""# Glossary

Terms.

```{glossary}
BBP transition
  An eigenvalue leaves the {term}`bulk`,
  of size $\lambda$.
```

```{glossary}
bulk
  All others. See {doc}`alignment/matrices`.

Marchenko–Pastur law of c_d
  A law.
```
"""


QUESTIONS = """
synonyms = [["learning rate", "step size"], ["benign overfitting", "harmless interpolation"]]

[[page]]
place = "errata"
title = "Errata"
text = "What is false."
words = ["counterexample", "what is false"]

[[page]]
place = "intro#cite"
title = "Citation"
text = "How to cite the book."
words = ["cite"]
"""

CHAPTER = """---
a: 1
---
# The *rank* of $H$

## The question

Does harmless interpolation
change the *rank* of $H$?

A second paragraph.
"""


@pytest.fixture
def book(tmp_path):
    """A folder of sources with a page of notation, what readers ask, and one chapter."""
    folder = tmp_path / "book"
    (folder / "alignment").mkdir(parents=True)
    (folder / "notation.md").write_text(NOTATION, encoding="utf8")
    (folder / "glossary.md").write_text(GLOSSARY, encoding="utf8")
    (folder / contents.QUESTIONS).write_text(QUESTIONS, encoding="utf8")
    (folder / "alignment" / "matrices.md").write_text(CHAPTER, encoding="utf8")
    return folder


def test_index_has_numbers_letters_and_functions(ledger, claims, book):
    """A claim could be found, and lead nowhere."""
    claim = load_registry(claims)["BGHJ-L3.1"]
    lemma = Statement(
        Reference("BGHJ", "Lemma 3.1"),
        claims=[claim],
        functions=[Place("a.block", Path("a.py"), 3), Place("a._hidden", Path("a.py"), 9)],
    )
    index = finding.index(ledger, [lemma], book)
    first = index["claims"][0]
    assert first["text"] == "Blocks are Φ_bc = −E[π_bπ_c] | with a bar & <brackets>."
    assert first["place"] == "claim-bghj-l3-1" and first["functions"] == ["a.block"]
    assert index["sources"] == ["BGHJ", "OWN"]
    titles = {"alignment/matrices": "The rank of H", "alignment/alignment": "alignment/alignment"}
    assert index["chapters"] == titles
    assert index["letters"] == [
        {"name": "λ", "text": "a rate, signal", "place": "one-letter"},
        {
            "name": "norm",
            "text": "|x| (BGHJ); laws.norm, laws.size (library)",
            "place": "many-letters",
        },
        {"name": "threshold", "text": "δ_NN; δ_j^* (BGHJ)", "place": "many-letters"},
    ]
    assert index["figures"] == [
        {
            "chapter": "alignment/alignment",
            "number": 1,
            "text": "A blue: picture [of] $x$",
            "place": "figure-alignment-over-time",
        }
    ]
    chapter, *others = index["pages"]
    assert chapter == {
        "place": "alignment/matrices",
        "title": "The rank of H",
        "text": "Does harmless interpolation change the rank of H?",
        "words": [],
    }
    assert [page["place"] for page in others] == ["errata", "intro#cite"]
    assert index["synonyms"][0] == ["learning rate", "step size"]
    transition, bulk, law = index["terms"]
    assert transition == {
        "name": "BBP transition",
        "text": "An eigenvalue leaves the bulk, of size λ.",
        "place": "term-BBP-transition",
    }
    assert bulk["text"].startswith("All others.")
    assert law["place"] == "term-MarchenkoPastur-law-of-c_d"


def test_index_is_written_beside_the_pages(claims, executed, tmp_path):
    """The search page could look for a file that is not there."""
    path = tmp_path / "ledger.json"
    build(claims, executed, profile="quick", seed=1, out=path)
    report.write_pages(path, tmp_path / "pages")
    text = (tmp_path / "pages" / "_static" / "claims-index.js").read_text(encoding="utf8")
    assert text.startswith("window.claimsIndex = {") and text.endswith("};\n")
    index = json.loads(text.removeprefix("window.claimsIndex = ").removesuffix(";\n"))
    assert index["folder"] == "pages" and len(index["claims"]) == 4 and index["letters"] == []
    assert index["pages"] == index["synonyms"] == [], "no book, no words of its own"


def test_index_keeps_each_word_of_a_check_once(ledger, book):
    """The index could hold texts of checks twice, or leave out what the statement does not say."""
    claim = {
        **ledger["claims"][0],
        "statement": "Blocks of $H$.",
        "reason": "Quadrature.",
        "tested": "Blocks by quadrature; blocks at 40 nodes, $k=3$, nodes of Hermite.",
    }
    (entry,) = finding.index({**ledger, "claims": [claim]}, [], book)["claims"]
    assert entry["reason"] == "Quadrature." and entry["tested"] == "nodes hermite"


@pytest.fixture
def page_of(browser):
    """A page of the browser."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.fixture
def ask(ledger, book, tmp_path, page_of):
    """Ask a search page, opened from a folder of files, and return the titles of what it finds."""
    site = tmp_path / "site"
    shutil.copytree(STATIC, site / "_static")
    # The script of Sphinx's own search page that has the stems of words.
    stems = SearchEnglish.js_stemmer_code
    (site / "_static" / "language_data.js").write_text(stems, encoding="utf8")

    def change(claim, **changes):
        return {**ledger["claims"][0], **claim, **changes}

    claims = [
        change({"id": "BGHJ-T2.6-W", "number": "Theorem 2.6"}, statement="Weights."),
        change({"id": "BGHJ-T2.7", "number": "Theorem 2.7"}, statement="As Theorem 2.6."),
        change({"id": "BGHJ-F2.6", "number": "Figure 2.6"}, statement="A spurious point."),
        change({"id": "BGHJ-E3.3", "number": "Equation 3.3"}, statement=r"$\hat y=x_0$ by Hölder."),
        change({"id": "BGHJ-L3.3", "number": "Lemma 3.3"}, statement=r"$\lambda_{\max}\le2$"),
        change({"id": "BGHJ-L3.30", "number": "Lemma 3.30"}, statement="Points 3.30."),
        change(
            {"id": "OWN-grok", "number": "Grokking", "source": "OWN"},
            statement="Late points.",
            reason="It is late. The first overlap waits for a time of order $\\log d$.",
            tested="Twelve seeds of logistic regression.",
        ),
        change(
            {"id": "OWN-step", "number": "Largest step size", "source": "OWN"},
            statement="It is below two.",
        ),
        change({"id": "BGHJ-F1", "number": "Chapter 4, Figure 1"}, statement=r"$\delta_{\rm NN}$"),
        change({"id": "BGHJ-P1", "number": "Proof of Lemma 3.3"}, statement="By $c_\\delta$."),
    ]
    written = finding.script({**ledger, "claims": claims}, [], folder="book", book=book)
    (site / "_static" / "claims-index.js").write_text(written, encoding="utf8")
    (site / "search.html").write_text(
        '<!doctype html><html lang="en" data-content_root="./"><title>S</title>'
        '<meta charset="utf8"><h1>Search</h1><div id="search-results"></div>'
        '<script src="_static/language_data.js"></script><script src="_static/search.js"></script>',
        encoding="utf8",
    )
    page = page_of
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))

    def asked(question):
        page.goto(f"{(site / 'search.html').as_uri()}?q={quote(question)}")
        page.wait_for_function("window.claimsIndex")
        assert errors == []
        return page.eval_on_selector_all(
            "section[aria-labelledby=td-found] li a",
            "links => links.map((link) => link.textContent)",
        )

    return asked


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("(3.3)", ["BGHJ, Equation 3.3", "BGHJ, Lemma 3.3", "BGHJ, Proof of Lemma 3.3"]),
        ("eq. 3.3", ["BGHJ, Equation 3.3"]),
        ("3.3", ["BGHJ, Equation 3.3", "BGHJ, Lemma 3.3", "BGHJ, Proof of Lemma 3.3"]),
        ("Theorem 2.6", ["BGHJ, Theorem 2.6", "BGHJ, Theorem 2.7", "BGHJ, Figure 2.6"]),
        ("thm 2.6", ["BGHJ, Theorem 2.6", "BGHJ, Theorem 2.7", "BGHJ, Figure 2.6"]),
        ("BGHJ Theorem 2.7", ["BGHJ, Theorem 2.7"]),
        ("OWN Theorem 2.7", []),
        ("Figure 4.1", ["BGHJ, Chapter 4, Figure 1"]),
        ("bghj-t2.6", ["BGHJ, Theorem 2.6"]),
        ("BGHJ-F2.6", ["BGHJ, Figure 2.6"]),
        ("delta_NN", ["BGHJ, Chapter 4, Figure 1", "Notation: threshold"]),
        ("δ_NN", ["BGHJ, Chapter 4, Figure 1", "Notation: threshold"]),
        (r"$\delta_{NN}$", ["BGHJ, Chapter 4, Figure 1", "Notation: threshold"]),
        ("λ_max", ["BGHJ, Lemma 3.3"]),
        ("lambda_max", ["BGHJ, Lemma 3.3"]),
        (r"\hat{y}", ["BGHJ, Equation 3.3"]),
        ("x₀", ["BGHJ, Equation 3.3"]),
        ("Hoelder", ["BGHJ, Equation 3.3"]),
        ("spurious points", ["BGHJ, Figure 2.6"]),
        ("waiting log d", ["OWN, Grokking"]),
        ("logistic seeds", ["OWN, Grokking"]),
        ("learning rate", ["OWN, Largest step size"]),
        ("learning rate unheardof", ["OWN, Largest step size"]),
        ("learning unheardof untold", []),
        ("blue picture", ["Figure 1: alignment/alignment"]),
        ("benign overfitting", ["The rank of H"]),
        ("overfitting", []),
        ("counterexamples", ["Errata"]),
        ("what is false?", ["Errata"]),
        ("cite", ["Citation"]),
        ("BGHJ citation", []),
        ("the grokking", ["OWN, Grokking"]),
        ("grok", ["OWN, Grokking"]),
        ("<img src=q onerror=w>", []),
        ("(", []),
    ],
)
def test_questions_find_claims(ask, question, first):
    """A number, a letter or a word could lead past the claim that it names."""
    assert ask(question)[: max(len(first), 1)] == first


def test_what_is_shown_has_what_was_asked_for(ask, page_of):
    """A claim could be found by its reason, and show a statement that says nothing of it."""
    ask("overlap waits")
    assert page_of.locator("section[aria-labelledby=td-found] li p").first.inner_text() == (
        "Reason: The first overlap waits for a time of order log d."
    )
    ask("late points")
    text = page_of.locator("section[aria-labelledby=td-found] li p").first.inner_text()
    assert text == "Late points."
