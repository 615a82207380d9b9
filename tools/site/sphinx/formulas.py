"""Formulas as MathML, which browsers typeset without scripts; and lexers for the languages of our blocks."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from latex2mathml.exceptions import InvalidAlignmentError
from pygments.lexers.data import JsonLexer
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

BRACKET = re.compile(r"(?<![A-Za-z])\[")


def mathml(latex: str, display: str) -> str:
    """A formula as MathML."""
    try:
        return str(convert(latex.strip(), display=display))
    except InvalidAlignmentError:  # a bracket after `\\\\` is taken for its option
        return str(convert(BRACKET.sub(r"\\lbrack ", latex.strip()), display=display))


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer and the lexers."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.add_lexer("jsonl", JsonLexer)
    for name in ("csv", "tsv"):
        app.add_lexer(name, TextLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
