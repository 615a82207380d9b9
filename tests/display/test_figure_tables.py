"""Figures as tables: what is beside the name of a figure."""

from __future__ import annotations

from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import FigureRow, Figures
from multimodal_eval.display.figure_tables import in_words, shown_rows


def names(**figure) -> list[str]:
    rows = Figures([FigureRow(Figure(0.5, None, None, None, "", name="wer", **figure))], heads=["metric"])
    return [row.names[-1] for row in shown_rows(rows)]


def test_an_arrow_says_that_lower_is_better():
    assert names(direction="lower")[0].endswith(" \u2193")
    assert not names(direction="higher")[0].endswith(" \u2193")
    assert not names()[0].endswith(" \u2193")


def test_a_sentence_says_the_direction():
    assert "lower is better" in in_words(Figure(0.5, None, None, None, "", direction="lower"))
    assert "higher is better" in in_words(Figure(0.5, None, None, None, ""))
