"""Texts inside LaTeX and Markdown: every character that has a meaning there is escaped."""

from __future__ import annotations

from multimodal_eval.core.visible import visible

__all__ = ["latex_text", "markdown_text", "one_line"]

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
