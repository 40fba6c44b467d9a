r"""Texts of the registry without TeX: for a line of a list, and for what is searched.

A formula becomes the letters one would type or read aloud, in Unicode: :math:`\delta_{NN}` is
``δ_NN``, a fraction has a stroke. What cannot be written in a line (a large fraction, an
array) is still readable, and its card has the formula.
"""

from __future__ import annotations

import re
import unicodedata
from html import escape

_GREEK = (
    "alpha beta gamma delta zeta eta theta iota kappa mu nu xi pi rho sigma tau "
    "upsilon chi psi omega"
).split()
_SIGNS = {
    **{name: unicodedata.lookup(f"GREEK SMALL LETTER {name.upper()}") for name in _GREEK},
    **{
        name.capitalize(): unicodedata.lookup(f"GREEK CAPITAL LETTER {name.upper()}")
        for name in (*_GREEK, "phi")
    },
    **{"lambda": "λ", "Lambda": "Λ", "epsilon": "ε", "varepsilon": "ε", "vartheta": "ϑ"},
    **{"phi": "φ", "varphi": "φ", "varrho": "ρ", "varsigma": "ς", "ell": "ℓ", "hbar": "ħ"},
    **{"to": " → ", "rightarrow": " → ", "Rightarrow": " ⇒ ", "mapsto": " ↦ ", "iff": " ⇔ "},
    **{"le": " ≤ ", "leq": " ≤ ", "ge": " ≥ ", "geq": " ≥ ", "ne": " ≠ ", "neq": " ≠ "},
    **{"lesssim": " ≲ ", "gtrsim": " ≳ ", "ll": " ≪ ", "gg": " ≫ ", "approx": " ≈ "},
    **{"sim": " ∼ ", "simeq": " ≃ ", "asymp": " ≍ ", "propto": " ∝ ", "equiv": " ≡ "},
    **{"in": " ∈ ", "notin": " ∉ ", "subset": " ⊂ ", "subseteq": " ⊆ ", "preceq": " ⪯ "},
    **{"succeq": " ⪰ ", "mid": " | ", "pm": "±", "mp": "∓", "times": "×", "cdot": "·"},
    **{"otimes": "⊗", "odot": "⊙", "circ": "∘", "wedge": "∧", "vee": "∨", "cup": "∪", "cap": "∩"},
    **{"sum": "∑", "prod": "∏", "int": "∫", "oint": "∮", "partial": "∂", "nabla": "∇"},
    **{"infty": "∞", "dots": "…", "ldots": "…", "cdots": "⋯", "perp": "⊥", "top": "⊤"},
    **{"star": "⋆", "ast": "∗", "dagger": "†", "prime": "′", "langle": "⟨", "rangle": "⟩"},
    **{"lvert": "|", "rvert": "|", "vert": "|", "lVert": "‖", "rVert": "‖", "Vert": "‖"},
    **{"|": "‖", "{": "{", "}": "}", "%": "%", "_": "_", "&": "&", "#": "#", "lceil": "⌈"},
    **{"rceil": "⌉", "lfloor": "⌊", "rfloor": "⌋", "emptyset": "∅", "forall": "∀", "exists": "∃"},
    **{",": " ", ";": " ", ":": " ", " ": " ", "!": "", "quad": " ", "qquad": " "},
    **{"colon": ":", "setminus": "∖", "Re": "Re", "Im": "Im", "downarrow": " ↓ ", "uparrow": " ↑ "},
}
_ACCENTS = {
    **{"hat": "\u0302", "widehat": "\u0302", "tilde": "\u0303", "widetilde": "\u0303"},
    **{"bar": "\u0304", "overline": "\u0304", "dot": "\u0307", "ddot": "\u0308"},
}
#: Say how a letter looks, or how large a bracket is.
_DROPPED = frozenset(
    "mathrm mathbb mathbf mathcal mathsf mathit rm bf it text textrm operatorname boldsymbol left "
    "right big Big bigg Bigg bigl bigr Bigl Bigr middle displaystyle textstyle limits nolimits "
    "mathop underbrace substack".split()
)
_WORDS = frozenset(("text", "textrm"))
_FRACTIONS = frozenset(("frac", "tfrac", "dfrac"))
_VULGAR = {"1/2": "½", "1/3": "⅓", "2/3": "⅔", "1/4": "¼", "3/4": "¾", "1/8": "⅛"}
_TOKEN = re.compile(r"\\(?:[A-Za-z]+\*?|.)|[{}^_&~]|\s+|[^\\{}^_&~\s]", re.DOTALL)
#: An index of a letter or a power, in brackets, which may hold others, if it has several signs.
_SCRIPT = re.compile(
    r"(?:(?<=\w)(?P<mark>_)|\^)(?:(?P<name>[A-Za-z0-9α-ω]+|[⊤⋆∗])"
    r"|\((?P<group>(?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\))"
)
_DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def plain(written: str) -> str:
    r"""Return a text of the registry as one line of Unicode.

    Parameters
    ----------
    written : str
        MyST text with ``$...$`` mathematics.

    Examples
    --------
    >>> from claimbook.pages.plain import plain
    >>> plain(r"For $\delta>\delta_{\rm NN}$ the overlap is of order $\sqrt{d}/n^{1/2}$.")
    'For δ > δ_NN the overlap is of order √d/n^(1/2).'
    >>> plain(r"The rate $\frac{1}{2k}$, with $\dot m=-m^2$ and {doc}`ledger`.")
    'The rate 1/(2k), with ṁ = −m² and ledger.'
    """
    parts = " ".join(written.split()).split("$")
    parts[::2] = map(_prose, parts[::2])
    parts[1::2] = map(tex, parts[1::2])
    return " ".join("".join(parts).split())


def _prose(text: str) -> str:
    """Drop what Markdown adds to words: roles, links, stars and ticks."""
    text = re.sub(r"\{[\w:]+\}`(?:([^`<]*?)\s*<[^`]*>|([^`]*))`", r"\1\2", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`([^`]*)`|\*+(\w[^*]*)\*+", r"\1\2", text)


def tex(formula: str) -> str:
    r"""Return a TeX formula in Unicode.

    Examples
    --------
    >>> from claimbook.pages.plain import tex
    >>> tex(r"\|K_t-K_0\|\le C\,m^{-1/2}"), tex(r"\lambda_1(\hat\Sigma)")
    ('‖K_t − K_0‖ ≤ C m^(−1/2)', 'λ_1(Σ̂)')
    """
    text = _line(_Reader(formula))
    text = re.sub(r"\s*(?<![(=<>≤≥^_∈,])([=<>+−])\s*(?=\S)", r" \1 ", text)
    # A sign in front of a number or a letter is no operation.
    text = re.sub(r"((?:^|[(\[,=<>≤≥≈∼→/^±])\s*)([+−]) (?=\S)", r"\1\2", text)
    text = re.sub(r"(?<=\w) (?=[_^¹²³⁰-⁹])", "", text)
    text = re.sub(r"([\[(⟨])\s+|\s+([\])⟩,.;:])", r"\1\2", text)
    return unicodedata.normalize("NFC", " ".join(text.split()))


def printed(written: str) -> str:
    """Return a line of plain text as HTML, with indices, powers and signs as they are printed.

    Parameters
    ----------
    written : str
        Such as a caption.

    Examples
    --------
    >>> from claimbook.pages.plain import printed
    >>> printed("Slope -1, in units of n/σ_min² < 1.")
    'Slope −1, in units of n/σ<sub>min</sub>² &lt; 1.'
    >>> printed("It is of order λ^(−1/2), not e^(−d^(o(1))).")
    'It is of order λ<sup>−1/2</sup>, not e<sup>−d<sup>o(1)</sup></sup>.'
    """
    return _printed(re.sub(r"(?<![\w)])-(?=\d)", "−", escape(written)))


def _printed(text: str) -> str:
    def script(match: re.Match[str]) -> str:
        tag = "sub" if match["mark"] == "_" else "sup"
        return f"<{tag}>{match['name'] or _printed(match['group'])}</{tag}>"

    return _SCRIPT.sub(script, text)


class _Reader:
    """The tokens of a formula, one after the other."""

    def __init__(self, formula: str) -> None:
        self.tokens: list[str] = _TOKEN.findall(formula)
        self.place = 0

    def next(self) -> str | None:
        if self.place == len(self.tokens):
            return None
        self.place += 1
        return self.tokens[self.place - 1]

    def argument(self) -> str:
        """Read a group in braces, or one token with what belongs to it."""
        while (token := self.next()) is not None and token.isspace():
            pass
        if token is None or token == "}":
            return ""
        if token[1:] in _DROPPED and token[1:] not in _WORDS:
            return self.argument()
        return _line(self).strip() if token == "{" else _sign(token, self)


def _line(reader: _Reader) -> str:
    """Read up to the brace that closes the group, or the end."""
    text = ""
    while (token := reader.next()) not in (None, "}"):
        assert token is not None
        if token == "{":
            text += _line(reader)
        elif token in "^_":
            text += _script(token, reader.argument())
        else:
            text += _sign(token, reader)
    return text


def _sign(token: str, reader: _Reader) -> str:
    if token.isspace() or token in "&~":
        return "" if token.isspace() else " "
    if not token.startswith("\\"):
        return {"-": "−", "'": "′"}.get(token, token)
    name = token[1:].removesuffix("*")
    if name in _DROPPED:
        # The words of a text keep their spaces.
        return _words(reader) if name in _WORDS else ""
    if name in _FRACTIONS:
        above, below = reader.argument(), reader.argument()
        if f"{above}/{below}" in _VULGAR:
            return _VULGAR[f"{above}/{below}"]
        below = f"({below})" if len(below) > 1 and not below.isdigit() else below
        return f"{_grouped(above)}/{below} "  # what follows does not belong to it
    if name == "binom":
        return f"({reader.argument()} over {reader.argument()})"
    if name in ("overset", "stackrel"):
        reader.argument()
        return reader.argument()
    if name == "sqrt":
        return f"√{_grouped(reader.argument())}"
    if name in _ACCENTS:
        letters = reader.argument()
        return letters + _ACCENTS[name] if len(letters) == 1 else letters
    return _SIGNS.get(name, f"{name} " if name.isalpha() else name)


def _words(reader: _Reader) -> str:
    if reader.next() != "{":
        return ""
    text = ""
    while (token := reader.next()) not in (None, "}"):
        assert token is not None
        text += " " if token.isspace() else token
    return text


def _script(mark: str, text: str) -> str:
    text = text.strip()
    if mark == "^" and re.fullmatch(r"\d+", text):
        return text.translate(_DIGITS)
    if mark == "^" and text in ("′", "″"):
        return text
    return f"{mark}{_grouped(text)}" if text else ""


def _grouped(text: str) -> str:
    """Put brackets around what is more than a name or a number."""
    text = text.strip()
    one = re.fullmatch(r"\d+|[^\W\d][\w\u0300-\u036f]*|\W", text)
    return text if one else f"({text})"
