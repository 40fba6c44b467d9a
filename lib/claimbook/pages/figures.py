"""The page of figures: the number of the source, our picture, the chapter, the time."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html import escape
from pathlib import Path

from claimbook.files import write
from claimbook.pages import parts
from claimbook.pages.parts import Entry, Ledger
from claimbook.registry import ClaimError

_WIDTH = 640  # pixels; shown at half of that
_COLOURS = 128  # of a thumbnail: lines and areas of a few colours, and their smooth edges
_THEMES = {"light": "image", "dark": "dark"}


@dataclass(frozen=True)
class Thumbnail:
    """A small picture in both themes, with the same name in a folder for each."""

    name: str
    alt: str
    size: tuple[int, int]

    def markup(self) -> str:
        """Both versions, of which the theme of the page shows one."""
        width, height = self.size
        lines = [f'<div class="td-thumb" style="aspect-ratio:{width}/{height}">', ""]
        for theme in _THEMES:
            lines += [
                f"```{{image}} thumbnails/{theme}/{self.name}",
                f":class: only-{theme}",
                f":alt: {' '.join(self.alt.split())}",
                ":loading: lazy",
                "```",
                "",
            ]
        return "\n".join([*lines, "</div>"])


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
        small.save(buffer, format="PNG")
        write(out_dir / "thumbnails" / theme / path.name, buffer.getvalue())
    return Thumbnail(path.name, figure["alt"], size)


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
    groups = list(parts.by_source(ledger, shown))
    links = " · ".join(f"{{ref}}`{source} <{_place(source)}>`" for source, _ in groups)
    return "\n".join(
        [
            "# Figures\n",
            "The figures of each source in the order of their numbers, each with the one we "
            "recompute for it; then the pictures that go with other statements. Of a figure with "
            "several panels the first is shown. Runtimes are those of this build (profile "
            f"`{ledger['profile']}`, {ledger['environment']['cores']} cores), counted from the "
            "claim before.\n",
            *([f"{links}\n", parts.STYLE] if groups else ["None.\n"]),
            *(
                line
                for source, claims in groups
                for line in _section(ledger, source, claims, thumbnails)
            ),
        ]
    )


def _place(source: str) -> str:
    return parts.anchor("figures", source)


def _section(
    ledger: Ledger, source: str, claims: list[Entry], thumbnails: Thumbnails
) -> Iterator[str]:
    """Figures and tables of a source, then the pictures of its other statements."""
    seconds = {entry["chapter"]: entry["seconds"] for entry in ledger["chapters"]}
    yield f"({_place(source)})="
    yield f"## {source}\n"
    if source in ledger["sources"]:
        yield f"{parts.text(ledger['sources'][source])}\n"
    numbered = [claim for claim in claims if claim["kind"] in ("figure", "table")]
    others = [claim for claim in claims if claim["kind"] not in ("figure", "table")]
    for title, chosen in (("Figures and tables", numbered), ("Other statements", others)):
        if chosen:
            rows = [
                _row(group, thumbnails[place], seconds[place[0]])
                for place, group in _grouped(chosen)
            ]
            heads = ("Source", "Ours", "Verdicts", "Runtime")
            yield f"### {source}: {title.lower()}\n"
            yield parts.table("td-table td-figures", heads, rows)


def _grouped(claims: list[Entry]) -> Iterator[tuple[tuple[str, str], list[Entry]]]:
    """Claims of one number that show the same figure, in the order of the numbers."""
    shown: dict[tuple[str, str, str], list[Entry]] = {}
    for claim in sorted(claims, key=lambda claim: parts.numerically(claim["number"])):
        key = (claim["number"], claim["chapter"], claim["figure"])
        shown.setdefault(key, []).append(claim)
    for (_, chapter, label), group in shown.items():
        yield (chapter, label), group


def _row(claims: list[Entry], thumbnail: Thumbnail, seconds: float) -> str:
    first = claims[0]
    verdicts = [f"- {claim['verdict']} {parts.ledger_link(claim['id'])}" for claim in claims]
    own = sum(claim["seconds"] for claim in claims)
    return "\n".join(
        [
            f"<tr><td>{escape(first['number'])}",
            "",
            parts.chapter_link(first["chapter"]),
            "",
            "</td><td>",
            "",
            thumbnail.markup(),
            "",
            "</td><td>",
            "",
            *verdicts,
            "",
            f"</td><td>{parts.duration(own)}<br>(chapter {parts.duration(seconds)})</td></tr>",
        ]
    )
