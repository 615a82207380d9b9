"""Blocks as LaTeX: tables with booktabs rules, findings as a list."""

from __future__ import annotations

import re
from collections.abc import Sequence

from multimodal_eval.core.visible import visible
from multimodal_eval.display.blocks import (
    Block,
    Cell,
    Drawing,
    Finding,
    Folded,
    Gallery,
    Grid,
    Lines,
    Notes,
    Strong,
    Table,
    Text,
    Verdict,
)
from multimodal_eval.display.figure_tables import grid_caption, grid_lines, in_words, without_drawings
from multimodal_eval.display.renderer import Renderer

__all__ = ["LatexRenderer", "latex_text", "markdown_text", "one_line"]


# Signs of this package that the default fonts do not have. They are replaced after the texts are escaped.
_SIGNS = {"↓": r"$\downarrow$", "★": r"$\star$", "▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$"}
_SIGNS |= {"…": r"\dots{}", "–": "--", "−": "$-$", "±": r"$\pm$", "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$"}
_SIGNS |= {"≈": r"$\approx$", "≥": r"$\geq$", "\\textbar{}": r"\textbar\allowbreak{}"}

_FITTING = 7  # columns of a grid; one with more is made as wide as the page
_LONGEST = 45  # characters of a text on one line of a table
_MINUS = re.compile(r"(?<![\w.\-}])-(?=\d)")


class LatexRenderer(Renderer[str]):
    """Each block is a paragraph, a list or a table environment, or the tabular alone with its caption as a comment."""

    def __init__(self, *, label: str = "", is_float: bool = True) -> None:
        self.label = label
        self.is_float = is_float

    def text(self, block: Text) -> str:
        """A paragraph."""
        lead = rf"\textbf{{{_text(block.lead)}}} " if block.lead else ""
        body = _text(block.text)
        return lead + (rf"\textbf{{{body}}}" if block.tone == "strong" else body)

    def table(self, block: Table) -> str:
        """A table environment; title and caption are its caption."""
        kept = without_drawings(block)
        words = ". ".join(_text(text).rstrip(".") for text in (kept.title, kept.caption) if text)
        sides = "".join(_side(kept, column) for column in range(len(kept.heads)))
        lines = [f"% {words}."] if words and not self.is_float else []
        if self.is_float:
            lines += [r"\begin{table}", r"\centering", *([rf"\caption{{{words}.}}"] if words else [])]
            lines += [rf"\label{{{self.label}}}"] if self.label else []
        lines += [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", _row([_text(head) for head in kept.heads])]
        lines += [
            r"\midrule",
            *(_row([_strong(_cell(cell), is_strong=row.is_strong) for cell in row.cells]) for row in kept.rows),
        ]
        ends = [r"\bottomrule", r"\end{tabular}", *([r"\end{table}"] if self.is_float else [])]
        return "\n".join([*lines, *ends])

    def grid(self, block: Grid) -> str:
        """A table environment with the lines below the heads, and small intervals below the values."""
        words = ". ".join(_text(text).rstrip(".") for text in (block.title, grid_caption(block)) if text)
        is_wide = len(block.heads) > _FITTING
        lines = [f"% {words}."] if not self.is_float else [r"\begin{table}", r"\centering", r"\small"]
        lines += [rf"\caption{{{words}.}}"] if self.is_float else []
        lines += [rf"\label{{{self.label}}}"] if self.label and self.is_float else []
        lines += [r"\setlength{\tabcolsep}{4pt}"] if self.is_float else []
        lines += [r"\resizebox{\linewidth}{!}{%"] if is_wide else []
        lines += [rf"\begin{{tabular}}{{l{'r' * len(block.heads)}}}", r"\toprule"]
        lines.append(_row([_text(block.corner), *map(_text, block.heads)]))
        for place in range(max(map(len, block.below), default=0)):
            below = [each[place] if place < len(each) else "" for each in block.below]
            lines.append(_row(["", *(_small(_text(text)) for text in below)]))
        lines.append(r"\midrule")
        for row in block.rows:
            cells = [_stacked(list(map(_text, grid_lines(cell, block))), cell.is_strong) for cell in row.cells]
            lines.append(_row([_text(row.name), *cells]))
            lines += [r"\addlinespace"] if row is not block.rows[-1] else []
        lines += [r"\bottomrule", r"\end{tabular}" + ("}" if is_wide else "")]
        return "\n".join([*lines, *([r"\end{table}"] if self.is_float else [])])

    def finding(self, block: Finding) -> str:
        """An item of a list."""
        code = rf"\textbf{{{_text(block.code)}}}: " if block.code else ""
        more = [*([] if block.figure is None else [in_words(block.figure)]), *block.details]
        return _list([f"{code}{_text(block.sentence)}" + "".join(rf" \\ {_text(each)}" for each in more)])

    def verdict(self, block: Verdict) -> str:
        """The question in bold, the sentence, and the evidence."""
        return "\n".join([self.text(Text(block.sentence, block.question)), *(map(self.finding, block.evidence))])

    def gallery(self, block: Gallery) -> str:
        """The texts of the samples."""
        items = []
        for card in block.cards:
            scores = ", ".join(f"{name} {value}" for name, value in card.scores)
            fields = [f"{name}: {text}" for name, text in card.fields]
            more = "".join(rf" \\ {_text(each)}" for each in [*fields, *card.remarks])
            items.append(rf"\textbf{{{_text(card.title)}}} {_text(scores)}{more}")
        return _list(items)

    def notes(self, block: Notes) -> str:
        """A list."""
        return _list([_text(line) for line in block.lines])

    def folded(self, block: Folded) -> str:
        """A paragraph with a heading."""
        body = "\n\n".join(filter(None, map(self.block, block.blocks)))
        return rf"\paragraph{{{_text(block.summary)}}}" + f"\n{body}"

    def drawing(self, block: Drawing) -> str:
        """Nothing."""
        return ""

    def page(self, blocks: Sequence[Block]) -> str:
        """All blocks, to be included with `\\input`."""
        written = "\n\n".join(filter(None, map(self.block, blocks)))
        packages = "booktabs,amssymb,graphicx" if r"\resizebox" in written else "booktabs,amssymb"
        return f"% needs \\usepackage{{{packages}}}\n{written}\n"


def _text(text: str) -> str:
    escaped = latex_text(text).replace(r" \%", r"~\%")
    for sign, command in _SIGNS.items():
        escaped = escaped.replace(sign, command)
    return _MINUS.sub("$-$", escaped)


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _strong(text: str, *, is_strong: bool) -> str:
    return rf"\textbf{{{text}}}" if is_strong and text else text


def _side(table: Table, column: int) -> str:
    """How a column is aligned; one with long texts, such as signatures, breaks its lines."""
    if column >= table.left:
        return "r"
    texts = [row.cells[column] for row in table.rows]
    longest = max((len(text) for text in texts if isinstance(text, str)), default=0)
    return r"p{.5\linewidth}" if longest > _LONGEST else "l"


def _small(text: str) -> str:
    return rf"{{\scriptsize {text}}}" if text else ""


def _stacked(lines: Sequence[str], is_strong: bool) -> str:
    """The first line, and the others in small type below it."""
    first, *others = lines or [""]
    shown = _strong(first, is_strong=is_strong)
    if not others:
        return shown
    return r"\begin{tabular}[t]{@{}r@{}}" + r" \\[-2pt] ".join([shown, *map(_small, others)]) + r"\end{tabular}"


def _list(items: Sequence[str]) -> str:
    if not items:
        return ""
    return "\n".join([r"\begin{itemize}", *(rf"\item {item}" for item in items), r"\end{itemize}"])


def _cell(cell: Cell) -> str:
    if isinstance(cell, Drawing):
        return ""
    if isinstance(cell, Strong):
        return _strong(_text(cell.text), is_strong=True)
    if isinstance(cell, Lines):
        lines = list(map(_text, cell.lines))
        return r" / ".join([_strong(lines[0], is_strong=cell.is_strong), *lines[1:]]) if lines else ""
    return _text(cell)


# Texts inside LaTeX and Markdown: every character that has a meaning there is escaped.

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\char34{}",  # not \textquotedbl, which the default font encoding does not have
        "\n": " ",
        "\r": " ",
    }
)
_MARKDOWN = str.maketrans({**{c: "\\" + c for c in "\\`*_{}[]()#+!|~$"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"})


def latex_text(text: str) -> str:
    """The text in LaTeX, on one line. Control characters, which LaTeX refuses, are written as escapes."""
    return visible(text.replace("\r", " ").replace("\n", " ")).translate(_LATEX)


def markdown_text(text: str) -> str:
    """The text in a cell or a paragraph of Markdown, on one line."""
    return one_line(text).translate(_MARKDOWN)


def one_line(text: str) -> str:
    """The text with single spaces instead of line ends."""
    return " ".join(text.split())
