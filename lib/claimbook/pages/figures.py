"""The page of figures: the number of the source, our picture, the chapter, the time."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from claimbook.files import write
from claimbook.pages import parts
from claimbook.pages.parts import Entry, Ledger
from claimbook.pages.templates import render
from claimbook.registry import ClaimError

_WIDTH = 480  # pixels; a list shows about half of them, a screen has two to a point
_COLOURS = 128  # of a thumbnail: lines and areas of a few colours, and their smooth edges
#: What the pictures can be narrowed to.
CHOICES = ("source", "verdict", "kind")
_THEMES = {"light": "image", "dark": "dark"}


@dataclass(frozen=True)
class Thumbnail:
    """A small picture in both themes, with the same name in a folder for each."""

    name: str
    alt: str
    size: tuple[int, int]


#: Thumbnails by chapter and label of the figure.
Thumbnails = Mapping[tuple[str, str], Thumbnail]


def write_thumbnails(ledger: Ledger, source: Path, out_dir: Path) -> Thumbnails:
    """Write the thumbnails of all figures to ``thumbnails/light`` and ``thumbnails/dark``.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.
    source : Path
        Folder of the ledger, to which its paths of figures are relative.
    out_dir : Path
        Folder of the pages.

    Returns
    -------
    mapping
        Thumbnails by chapter and label.

    Raises
    ------
    ClaimError
        If an image cannot be read.
    """
    # Threads: most of it is done by PIL, without the interpreter's lock.
    with ThreadPoolExecutor() as pool:
        made = pool.map(lambda figure: _thumbnail(figure, source, out_dir), ledger["figures"])
        return {
            (figure["chapter"], figure["label"]): thumbnail
            for figure, thumbnail in zip(ledger["figures"], made)
        }


def _thumbnail(figure: Mapping[str, str], source: Path, out_dir: Path) -> Thumbnail:
    from PIL import Image

    for theme, key in _THEMES.items():
        path = source / figure[key]
        try:
            with Image.open(path) as image:
                image.thumbnail((_WIDTH, 2 * _WIDTH))
                size = image.size
                small = image.convert("RGB").quantize(_COLOURS, Image.Quantize.FASTOCTREE)
        except OSError as error:
            message = f"figure {figure['label']!r}: cannot read {path}: {error}"
            raise ClaimError(message) from error
        buffer = io.BytesIO()
        small.convert("RGB").save(buffer, format="WEBP", lossless=True, method=3)
        name = path.with_suffix(".webp").name
        write(out_dir / "thumbnails" / theme / name, buffer.getvalue())
    return Thumbnail(name, figure["alt"], size)


def page(ledger: Ledger, thumbnails: Thumbnails) -> str:
    """Return the page as MyST text.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.
    thumbnails : mapping
        Result of :func:`write_thumbnails`.

    Returns
    -------
    str
    """
    shown = [claim for claim in ledger["claims"] if claim["figure"]]
    ordered = [claim for _, mine in parts.by_source(ledger, shown) for claim in mine]
    return render(
        "figures",
        titles=ledger["sources"],
        sources={
            source: list(_sections(claims)) for source, claims in parts.by_source(ledger, shown)
        },
        themes=_THEMES,
        thumbnails=thumbnails,
        choices=parts.choices(ordered, CHOICES),
        of=_values,
    )


def _values(claims: list[Entry]) -> dict[str, str]:
    """Return what some claims can be narrowed to; one picture may have several verdicts."""
    return {key: " ".join(dict.fromkeys(claim[key] for claim in claims)) for key in CHOICES}


def _sections(claims: list[Entry]) -> Iterator[tuple[str, list[list[Entry]]]]:
    """Yield figures and tables of a source, then the pictures of its other statements."""
    numbered = [claim for claim in claims if claim["kind"] in ("figure", "table")]
    others = [claim for claim in claims if claim["kind"] not in ("figure", "table")]
    for title, chosen in (("figures and tables", numbered), ("other statements", others)):
        if chosen:
            yield title, _grouped(chosen)


def _grouped(claims: list[Entry]) -> list[list[Entry]]:
    """Put claims of one number that show the same figure together, in order of the numbers."""
    shown: dict[tuple[str, str, str], list[Entry]] = {}
    for claim in sorted(claims, key=lambda claim: parts.numerically(claim["number"])):
        key = (claim["number"], claim["chapter"], claim["figure"])
        shown.setdefault(key, []).append(claim)
    return list(shown.values())
