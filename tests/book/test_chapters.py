"""What every chapter has: the same anatomy, nothing imported in vain."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from nbformat import NotebookNode

from claimbook.run import chapters, execute

BOOK = Path(__file__).resolve().parents[2] / "book"
SECTIONS = ("The question", "The smallest case", "What is claimed", "Why", "Set-up", "Try it")


@pytest.fixture(params=chapters.chapters(BOOK))
def notebook(request: pytest.FixtureRequest) -> NotebookNode:
    """Each chapter in turn, as a notebook."""
    return execute.read(BOOK / f"{request.param}.md")


def code(notebook: NotebookNode) -> list[str]:
    """Source of the code cells."""
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def test_sections_stand_in_order(notebook: NotebookNode) -> None:
    """A reader finds question, claim, idea and suggestions at the same place everywhere."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    titles = [line[3:].strip() for line in text.splitlines() if line.startswith("## ")]
    assert [title for title in titles if title in SECTIONS] == list(SECTIONS)


def test_no_line_of_text_is_lost(notebook: NotebookNode) -> None:
    """MyST takes a line that begins with a per cent sign for a comment."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert not re.findall(r"^%.*", "\n".join(texts), re.MULTILINE)


def test_no_sentence_becomes_a_list(notebook: NotebookNode) -> None:
    """A number with a full stop, or a dash, at the beginning of a line would break a paragraph."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert not re.findall(r"^[A-Za-z$`*(].*\n(?:1[.)]|[-+*]) .*", "\n".join(texts), re.MULTILINE)


def test_a_chapter_opens_with_its_main_picture(notebook: NotebookNode) -> None:
    """It is one of its figures, which the site puts behind the question."""
    assert notebook.metadata.get("picture") in re.findall(
        r'label="([^"]+)"', "\n".join(code(notebook))
    )


def test_an_opening_answers_in_three_sentences(notebook: NotebookNode) -> None:
    """What is learnt could be a page of its own; two pages show a tool, and say one thing more."""
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    opening = text.split("## The question")[1].split("\n## ")[0].strip()
    answer = " ".join(opening.split("\n\n")[-1].split())
    most = 4 if text.lstrip().startswith("# Your own") else 3
    assert 1 <= len(re.findall(r"[.!?](?= [A-Z$]|$)", answer)) <= most


def test_every_import_is_used(notebook: NotebookNode) -> None:
    """An unused import makes the chapter run again for nothing, and readers wonder."""
    nodes = list(ast.walk(ast.parse("\n".join(code(notebook)))))
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    assert imported - used == set()


#: What a caption began its fragments with: "Dashed: the prediction."
FRAGMENT = re.compile(
    r"(?:^|[.;] )(?:(?:Left|Right|Middle|First|Second|Third|Fourth|Last|Above|Below|Top|Bottom)"
    r"(?: and \w+)?(?: panels?)?|Dashed|Dotted|Solid|Thick|Thin|Dots|Bars|Lines|Curves|Crosses"
    r"|Squares|Colou?rs?|Grey|Black|Blue|Orange|Red|Green|Yellow)\b[^.;:]{0,30}:"
)


def test_captions_are_sentences(notebook: NotebookNode) -> None:
    """A caption could be a list of fragments, which nobody can read aloud."""
    calls = [node for source in code(notebook) for node in ast.walk(ast.parse(source))]
    captions = [
        "".join(part.value for part in ast.walk(word.value) if isinstance(part, ast.Constant))
        for node in calls
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg == "alt"
    ]
    assert captions
    assert [FRAGMENT.search(caption) for caption in captions if FRAGMENT.search(caption)] == []


def test_a_fragment_would_be_seen() -> None:
    """As captions had them."""
    assert FRAGMENT.search("One run. Left: loss against time.")
    assert FRAGMENT.search("Dashed in both: the share of all steps.")
    assert not FRAGMENT.search("The left panel shows one thing: the loss.")
