"""Figures of the pages: files that are fetched when they come into view, with number and caption.

An executed chapter holds its pictures, in both themes, inside its own text; a page that did the
same would weigh ten megabytes. When the site is staged each picture becomes a file, and its output
a figure with a number, the caption, the number that the source gives it, and a link to an archive
of what the notebook keeps of each panel: the picture for print (``svg``, ``pdf``) and the numbers
drawn (``csv``).
"""

from __future__ import annotations

import base64
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claimbook.files import write
from claimbook.pages import parts
from claimbook.pages.parts import Entry
from claimbook.pages.templates import render

#: MIME type under which an output keeps the files of its panels: a list of mappings.
MIME = "application/vnd.claimbook.figure+json"
#: Folder of the pictures, among the static files of the site.
FOLDER = "figures"

_PICTURE = re.compile(
    r'<img class="only-(?P<theme>light|dark)" alt="[^"]*"(?P<style>[^>]*?) '
    r'src="data:image/png;base64,(?P<data>[^"]+)">'
)
#: What a figure with parameters is drawn from.
_SPECIFICATION = re.compile(r'<script type="application/json">(?P<data>.*?)</script>', re.DOTALL)
_PANELS = '<div class="traindyn-figure"'
_COLOURS = 256  # of a picture: lines and areas of a few colours, and their smooth edges
#: A picture in a notebook to be kept: what a column of JupyterLab shows, and fewer colours.
_KEPT_WIDTH, _KEPT_COLOURS = 640, 64


@dataclass
class Shown:
    """A figure of a page.

    Attributes
    ----------
    number : int
        Counted on its page.
    label, caption : str
        As the chapter gives them.
    pictures : list of dict
        For each panel the address of its file, by theme.
    sizes : list of tuple
        Width and height of each panel, in pixels.
    """

    number: int
    label: str
    caption: str
    pictures: list[dict[str, str]] = field(default_factory=list)
    sizes: list[tuple[int, int]] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Its place on the page."""
        return parts.anchor("figure", self.label)


def put(notebook: Any, chapter: str, static: Path, claims: Iterable[Entry]) -> dict[str, Shown]:
    """Write the pictures of an executed chapter to files and let its outputs refer to them.

    Parameters
    ----------
    notebook : NotebookNode
        Changed in place.
    chapter : str
        Its name, such as ``alignment/beyond``.
    static : Path
        Folder of the site's static files.
    claims : iterable of mapping
        Claims of the ledger; those about a figure name the source's number of it.

    Returns
    -------
    dict
        What is shown, by label.
    """
    sources: dict[str, list[str]] = {}
    for claim in claims:
        if claim["chapter"] == chapter and claim["kind"] in ("figure", "table") and claim["figure"]:
            sources.setdefault(claim["figure"], []).append(f"{claim['source']}, {claim['number']}")
    shown: dict[str, Shown] = {}
    with ThreadPoolExecutor() as pool:  # most of the work is done by PIL, without the lock
        for output, entry in _outputs(notebook):
            figure = Shown(len(shown) + 1, entry["figure"], entry["alt"])
            shown[figure.label] = figure
            panels = output["data"].pop(MIME, [])
            kept = _keep(panels, chapter, figure, static) if panels else None
            for kind in ("text/html", "text/markdown"):
                if kind in output["data"]:
                    text = "".join(output["data"][kind])
                    output["data"][kind] = render(
                        "figure",
                        figure=figure,
                        body=_linked(text, chapter, figure, static, pool),
                        kept=kept,
                        moves=bool(_SPECIFICATION.search(text)),
                        sources=list(dict.fromkeys(sources.get(figure.label, []))),
                    )
    return shown


def lead(notebook: Any, shown: Mapping[str, Shown]) -> None:
    """Put the main picture of a chapter behind its question.

    Parameters
    ----------
    notebook : NotebookNode
        Changed in place if its metadata name the label of a figure as ``picture``: the picture
        follows the first paragraph of the first section.
    shown : mapping
        Result of :func:`put`.

    Raises
    ------
    ValueError
        If the chapter shows no figure of that label, or has no section.
    """
    label = notebook.metadata.get("picture")
    if label is None:
        return
    if label not in shown:
        raise ValueError(f"picture must be one of {', '.join(sorted(shown))}, got {label!r}")
    for cell in notebook.cells:
        found = re.search(r"^## .*\n\n(?:.+\n)+", cell.source + "\n", re.MULTILINE)
        if cell.cell_type == "markdown" and found:
            picture = render("lead", figure=shown[label])
            cell.source = f"{cell.source[: found.end()]}\n{picture}{cell.source[found.end() :]}"
            return
    raise ValueError(f"picture {label!r}: the chapter has no section with a paragraph")


def compact(notebook: Any) -> None:
    """Leave of the figures of a notebook what a reader who downloads it needs: one light picture.

    Parameters
    ----------
    notebook : NotebookNode
        Changed in place: of a figure there stay the picture of all its panels, and the chart if it
        has parameters.
    """
    with ThreadPoolExecutor() as pool:
        outputs = list(_outputs(notebook))
        for (output, _), picture in zip(outputs, pool.map(_joined, [one for one, _ in outputs])):
            data = output["data"]
            for kind in (MIME, "text/html", "text/markdown"):
                data.pop(kind, None)
            data["image/png"] = picture


def _joined(output: Any) -> str:
    """Return the light panels of a figure as one picture in base64, two in a row."""
    from PIL import Image

    data = output["data"]
    text = "".join(data.get("text/html", data.get("text/markdown", "")))
    found = [match["data"] for match in _PICTURE.finditer(text) if match["theme"] == "light"]
    panels = [Image.open(io.BytesIO(base64.b64decode(code))) for code in found]
    if len(panels) < 2:
        return _reduced(Image.open(io.BytesIO(base64.b64decode("".join(data["image/png"])))))
    width, height = (max(panel.size[axis] for panel in panels) for axis in (0, 1))
    rows = -(-len(panels) // 2)
    whole = Image.new("RGB", (2 * width, rows * height), panels[0].convert("RGB").getpixel((0, 0)))
    for number, panel in enumerate(panels):
        whole.paste(panel, (number % 2 * width, number // 2 * height))
    return _reduced(whole)


def _outputs(notebook: Any) -> Iterator[tuple[Any, Mapping[str, str]]]:
    """Yield the outputs that are figures, with what the chapter says of them."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            entry = output.get("metadata", {}).get("claimbook", {})
            if "figure" in entry and "image/png" in output.get("data", {}):
                yield output, entry


def _keep(panels: Iterable[Mapping[str, str]], chapter: str, figure: Shown, static: Path) -> str:
    """Write what a notebook keeps of each panel to an archive and return its address."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number, panel in enumerate(panels, start=1):
            contents = {
                "svg": panel["svg"].encode(),
                "pdf": base64.b64decode(panel["pdf"]),
                "csv": _filled(panel["csv"]).encode(),
            }
            for kind, content in contents.items():
                # An entry without a time: the same figure gives the same archive.
                entry = zipfile.ZipInfo(f"{_name(chapter, figure, number)}.{kind}")
                archive.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=9)
    name = f"{_name(chapter, figure)}.zip"
    write(static / FOLDER / name, buffer.getvalue())
    return _to(chapter, name)


def _filled(table: str) -> str:
    """Return comma-separated values without the last columns if no line has an entry there."""
    head, *lines = table.splitlines()
    empty = min((len(line) - len(line.rstrip(",")) for line in lines), default=0)
    head = head.rsplit(",", empty)[0]
    return "\n".join([head, *(line[: len(line) - empty] for line in lines)]) + "\n"


def _linked(text: str, chapter: str, figure: Shown, static: Path, pool: ThreadPoolExecutor) -> str:
    """Replace the pictures in a piece of HTML by references to files."""
    numbers = {"light": 0, "dark": 0}
    jobs = []

    def refer(match: re.Match[str]) -> str:
        theme = match["theme"]
        numbers[theme] += 1
        name = f"{_name(chapter, figure, numbers[theme])}-{theme}.webp"
        raw = base64.b64decode(match["data"])
        jobs.append(pool.submit(_write_picture, raw, static / FOLDER / name))
        if theme == "light":
            figure.pictures.append({})
            figure.sizes.append(_size(raw))
        number = numbers[theme]
        figure.pictures[number - 1][theme] = _to(chapter, name)
        width, height = figure.sizes[number - 1]
        part = f", panel {number}" if text.count('"only-light"') > 1 else ""
        return (
            f'<img class="only-{theme}" alt="Figure {figure.number}{part}, described below"'
            f'{match["style"]} loading="lazy" width="{width}" height="{height}" '
            f'src="{_to(chapter, name)}">'
        )

    def move(match: re.Match[str]) -> str:
        # A script, not JSON: pages that are opened from a folder may not fetch anything else.
        name = f"{_name(chapter, figure, 1)}.js"
        content = f'(window.specifications ??= {{}})["{name}"] = {match["data"]};\n'
        write(static / FOLDER / name, content.encode())
        return f'<template data-specification="{_to(chapter, name)}"></template>'

    text = _SPECIFICATION.sub(move, _PICTURE.sub(refer, text))
    for job in jobs:
        job.result()
    return text.replace(_PANELS, f'{_PANELS} data-panels="{numbers["light"]}"').strip()


def _write_picture(png: bytes, path: Path) -> None:
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        small = _few_colours(image, _COLOURS)
    small.convert("RGB").save(buffer, format="WEBP", lossless=True, method=3)
    write(path, buffer.getvalue())


def _few_colours(image: Any, number: int) -> Any:
    """Return a picture with so few colours that it weighs little, the ground exactly the page's."""
    from PIL import Image

    whole = image.convert("RGB")
    small = whole.quantize(number, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    colours: Any = small.getpalette()
    ground: Any = small.getpixel((0, 0))
    colours[3 * ground : 3 * ground + 3] = whole.getpixel((0, 0))
    small.putpalette(colours)
    return small


def _size(png: bytes) -> tuple[int, int]:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        return image.size


def _reduced(image: Any) -> str:
    """Return a picture as small as a notebook needs it, in base64."""
    image = image.convert("RGB")
    image.thumbnail((_KEPT_WIDTH, 2 * _KEPT_WIDTH))
    buffer = io.BytesIO()
    _few_colours(image, _KEPT_COLOURS).save(buffer, format="PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def _name(chapter: str, figure: Shown, panel: int | None = None) -> str:
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", figure.label)
    name = f"{chapter.replace('/', '--')}--{label}"
    return name if panel is None else f"{name}-{panel}"


def _to(chapter: str, name: str) -> str:
    """Address of a picture from the page of a chapter, which stands in ``book``."""
    return f"{'../' * (chapter.count('/') + 1)}_static/{FOLDER}/{name}"
