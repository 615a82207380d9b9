"""Blocks as GitHub Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.display.blocks import (
    Block,
    Cell,
    Drawing,
    Finding,
    Folded,
    Gallery,
    Lines,
    Notes,
    Strong,
    Table,
    Text,
    Verdict,
)
from multimodal_eval.display.figure_tables import in_words, without_drawings
from multimodal_eval.display.latex import markdown_text
from multimodal_eval.display.renderer import Renderer

__all__ = ["MarkdownRenderer"]

_SIGNS = {"good": "▲ ", "bad": "▼ ", "warning": "⚠ "}


class MarkdownRenderer(Renderer[str]):
    """Each block is a paragraph, a list or a table."""

    def text(self, block: Text) -> str:
        """A paragraph."""
        body = markdown_text(block.text)
        lead = f"**{markdown_text(block.lead)}** " if block.lead else ""
        return _SIGNS.get(block.tone, "") + lead + (f"**{body}**" if block.tone == "strong" else body)

    def table(self, block: Table) -> str:
        """A table, with the title above and the caption below."""
        kept = without_drawings(block)
        sides = "".join("---|" if column < kept.left else "--:|" for column in range(len(kept.heads)))
        lines = [_row([markdown_text(head) for head in kept.heads]), f"|{sides}"]
        lines += [_row([_strong(_cell(cell), is_strong=row.is_strong) for cell in row.cells]) for row in kept.rows]
        title = [f"**{markdown_text(kept.title)}**", ""] if kept.title else []
        caption = ["", markdown_text(kept.caption)] if kept.caption else []
        return "\n".join([*title, *lines, *caption])

    def finding(self, block: Finding) -> str:
        """An item of a list."""
        code = f"**{markdown_text(block.code)}**: " if block.code else ""
        more = [*([] if block.figure is None else [in_words(block.figure)]), *block.details]
        sign = _SIGNS["warning"] if block.level == "warning" else ""
        return "\n".join([f"- {sign}{code}{markdown_text(block.sentence)}", *(f"  {markdown_text(m)}" for m in more)])

    def verdict(self, block: Verdict) -> str:
        """The question in bold, the sentence, and the evidence."""
        return "\n".join(
            [self.text(Text(block.sentence, block.question, block.tone)), *(map(self.finding, block.evidence))]
        )

    def gallery(self, block: Gallery) -> str:
        """The texts of the samples."""
        lines = []
        for card in block.cards:
            scores = ", ".join(f"{name} {value}" for name, value in card.scores)
            lines.append(f"- **{markdown_text(card.title)}** {markdown_text(scores)}".rstrip())
            lines += [f"  - {markdown_text(name)}: {markdown_text(text)}" for name, text in card.fields]
            lines += [f"  - {_SIGNS['warning']}{markdown_text(remark)}" for remark in card.remarks]
        return "\n".join(lines)

    def notes(self, block: Notes) -> str:
        """A list."""
        return "\n".join(f"- {_SIGNS['warning']}{markdown_text(line)}" for line in block.lines)

    def folded(self, block: Folded) -> str:
        """A details element, which GitHub folds."""
        summary = markdown_text(block.summary)
        return f"<details><summary>{summary}</summary>\n\n{self._joined(block.blocks)}\n\n</details>"

    def drawing(self, block: Drawing) -> str:
        """Nothing."""
        return ""

    def _joined(self, blocks: Sequence[Block]) -> str:
        written = [(type(block), self.block(block)) for block in blocks]
        kept = [(kind, text) for kind, text in written if text]
        text = ""
        for place, (kind, each) in enumerate(kept):
            follows = place > 0 and kind is Finding and kept[place - 1][0] is Finding
            text += ("" if place == 0 else "\n" if follows else "\n\n") + each
        return text

    def page(self, blocks: Sequence[Block]) -> str:
        """All blocks, with empty lines between them."""
        return self._joined(blocks) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _strong(text: str, *, is_strong: bool) -> str:
    return f"**{text}**" if is_strong and text else text


def _cell(cell: Cell) -> str:
    if isinstance(cell, Drawing):
        return ""
    if isinstance(cell, Strong):
        return _strong(markdown_text(cell.text), is_strong=True)
    if isinstance(cell, Lines):
        lines = list(map(markdown_text, cell.lines))
        return "<br>".join([_strong(lines[0], is_strong=cell.is_strong), *lines[1:]]) if lines else ""
    return markdown_text(cell)
