"""A small registry, and executed notebooks made without a kernel."""

import base64
import io
import json

import pytest

from claimbook import MIME, Chapter, Control, identity, mean_equals

CLAIMS = r"""
[sources]
BGHJ = "A paper with $x$ in its title"

[[claim]]
id = "BGHJ-L3.1"
source = "BGHJ"
number = "Lemma 3.1"
kind = "formula"
statement = "Blocks are $\\Phi_{bc} = -E[\\pi_b \\pi_c]$ | with a bar & <brackets>."
chapter = "alignment/matrices"
tested = "All of it."
not_tested = "Nothing."
finding = "corrected"
matters = "number"
printed = "\\Phi_{bc} = \\mathbb{E}[\\pi_b\\pi_c]"
ours = "\\Phi_{bc} = -\\mathbb{E}[\\pi_b\\pi_c]"

[[claim]]
id = "BGHJ-T2.3"
source = "BGHJ"
number = "Theorem 2.3"
kind = "theorem"
statement = "Alignment."
chapter = "alignment/alignment"
tested = "All of it."
not_tested = "Nothing."

[[claim]]
id = "BGHJ-F2.1"
source = "BGHJ"
number = "Figure 2.1"
kind = "figure"
statement = "Alignment over time."
chapter = "alignment/alignment"
tested = "All of it."
not_tested = "Nothing."
finding = "partial"
reason = "Only for $\\alpha \\ge 40$."
settle = "The number of samples."

[[claim.panels]]
panel = "(a)"
setting = "Dimension $1000$, ten thousand samples"
ours = "Dimension $500$"
finding = "confirmed"
checks = ["closed form <b> against quadrature"]

[[claim.panels]]
panel = "(b)"
setting = "The same with other data"
finding = "open"

[[claim]]
id = "OWN-rank"
source = "OWN"
number = "Rank"
kind = "remark"
statement = "The rank is at most $2k$."
chapter = "alignment/alignment"
finding = "false"
reason = "A counter-example."
tested = "Dimension two."
not_tested = "Other dimensions."
credit = "Elementary."
printed = "the rank is $k^2$"

[[smaller]]
chapter = "alignment/alignment"
source = "$d=1000$"
ours = "$d=500$"
why = "Four times faster."

[uses.BGHJ]
"Theorem 2.3" = ["Lemma 3.1"]
"Lemma 3.1" = ["Lemma 3.0"]
"Lemma 3.0" = []
"""


@pytest.fixture
def claims(tmp_path):
    """Path of a registry inside a checkout of its own, of a project that is installed."""
    path = tmp_path / "checkout" / "book" / "claims.toml"
    path.parent.mkdir(parents=True)
    project = path.parents[1] / "pyproject.toml"
    project.write_text('[project]\nname = "traindyn"\n', encoding="utf-8")
    path.write_text(CLAIMS, encoding="utf-8")
    return path


@pytest.fixture
def good():
    """Build evidence that passes, with its control rejected."""

    def build(printed=False, **change):
        pieces = {"observed": 1.0, "expected": 1.0, "tolerance": 1e-9, "reason": "precision"}
        wrong = Control("sign as printed", printed=printed, observed=-1.0)
        return identity("closed form <b> against quadrature", control=wrong, **{**pieces, **change})

    return build


@pytest.fixture
def noisy():
    """Statistical evidence."""
    samples = [0.1, -0.1, 0.15, -0.15, 0.02, -0.02, -0.04, 0.04]  # of skewness zero
    return mean_equals("mean", samples=samples, expected=0, control=Control("5", expected=5))


def painted(colour):
    """Return PNG bytes of one colour."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (1600, 900), colour).save(buffer, format="PNG")
    return buffer.getvalue()


@pytest.fixture
def picture():
    """Return PNG bytes of a figure."""
    return painted((240, 240, 255))


@pytest.fixture
def dark_picture():
    """Return PNG bytes of the same figure on a dark ground."""
    return painted((10, 10, 40))


@pytest.fixture
def notebook(picture, dark_picture):
    """Write an executed notebook from records and figure labels."""
    light, dark = (base64.b64encode(each).decode() for each in (picture, dark_picture))
    shown = "".join(
        f'<img class="only-{theme}" alt="a &gt; b" src="data:image/png;base64,{data}">'
        for theme, data in (("light", light), ("dark", dark))
    )

    def write(folder, chapter, records, figures=(), edit=None):
        outputs = [
            {
                "output_type": "display_data",
                "metadata": {},
                "data": {"text/plain": "badge", MIME: json.loads(json.dumps(record))},
            }
            for record in records
        ]
        outputs += [
            {
                "output_type": "display_data",
                "metadata": {"claimbook": {"figure": label, "alt": "A blue: picture [of] $x$"}},
                "data": {"image/png": light, "text/html": shown},
            }
            for label in figures
        ]
        cells = [
            {"cell_type": "markdown", "metadata": {}, "source": f"# On {chapter.rsplit('/')[-1]}"},
            *(
                {
                    "cell_type": "code",
                    "execution_count": count,
                    "metadata": {},
                    "source": "chapter.claim(...)",
                    "outputs": [output],
                }
                for count, output in enumerate(outputs, start=1)
            ),
        ]
        if edit:
            edit(cells)
        path = folder / f"{chapter}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        for index, cell in enumerate(cells):
            cell["id"] = f"cell-{index}"
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        metadata = {"kernelspec": kernel, "claimbook": {"seconds": 75.0, "memory_mib": 310}}
        content = {"cells": cells, "metadata": metadata}
        path.write_text(json.dumps({**content, "nbformat": 4, "nbformat_minor": 5}))
        return path

    return write


@pytest.fixture
def executed(tmp_path, claims, good, noisy, notebook):
    """Folder with the two executed chapters of the registry, all in order."""
    folder = tmp_path / "notebooks"
    matrices = Chapter("alignment/matrices", profile="quick", seed=1, claims=claims)
    matrices.claim("BGHJ-L3.1", good(printed=True))
    alignment = Chapter("alignment/alignment", profile="quick", seed=1, claims=claims)
    alignment.claim("BGHJ-T2.3", good(), noisy)
    alignment.claim("BGHJ-F2.1", good(), figure="alignment over time")
    alignment.claim("OWN-rank", good(printed=True))
    for chapter, figures in ((matrices, ()), (alignment, ("alignment over time",))):
        records = [record.to_json() for record in chapter.records.values()]
        notebook(folder, chapter.name, records, figures)
    return folder
