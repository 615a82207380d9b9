"""Formulas of the metric cards as plain text."""

from __future__ import annotations

from pathlib import Path

import pytest

from multimodal_eval.evaluation.cards import with_plain_formulas

CARDS = sorted((Path(__file__).parents[2] / "docs" / "metrics").glob("*.md"))


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (r"\mathrm{df}_k", "df_k"),
        (r"\frac{1}{m} \sum_{j=1}^{m} a_j", "1/m Σ_{j=1..m} a_j"),
        (r"\frac{2 H_k}{N_k + P_k}", "(2 H_k) / (N_k + P_k)"),
        (r"x = \frac{k-1}{3}", "x = (k-1) / 3"),  # without brackets it would be k - 1/3
        (r"x_{<i}^{1/t}", "x_{<i}^(1/t)"),
        (r"\mathrm{clip\_score}", "clip_score"),
        (r"\max_{s \in S} \left[ n(c) = n(s) \right]", "max_{s ∈ S} [n(c) = n(s)]"),
        (r"\begin{cases} 1 & c \ge r \\ e^{1 - r/c} & c < r \end{cases}", "{ 1 if c ≥ r; e^(1 - r/c) if c < r }"),
        (r"\begin{cases} 1 & a \\ 0 & \text{else} \end{cases}", "{ 1 if a; 0 else }"),
        (r"\ln \max(1, x) \, \cdot \sigma^2", "ln max(1, x) · σ^2"),
        (r"\unknown{x}_1", r"\unknown{x}_1"),  # the source stays
    ],
)
def test_formulas(formula, text):
    assert with_plain_formulas(f"so ${formula}$ is") == f"so `{text}` is"


def test_a_displayed_formula_is_a_block_with_one_line_per_equation():
    source = "$$\nP = \\frac{m}{w_t}, \\qquad\nR = \\frac{m}{w_r}\n$$"
    assert with_plain_formulas(source) == "```\nP = m/w_t\nR = m/w_r\n```"


def test_code_is_left_alone():
    source = "by default `$CLIP_MODEL_ID`, in `$MMEVAL_HOME/cache`\n```\n$x$ \\frac\n```"
    assert with_plain_formulas(source) == source


def test_every_card_is_plain_text():
    texts = {card.stem: with_plain_formulas(card.read_text(encoding="utf-8")) for card in CARDS}
    assert len(texts) > 40
    assert [name for name, text in texts.items() if "\\frac" in text or "$$" in text] == []
    assert [name for name, text in texts.items() if "\\mathrm" in formulas(text)] == []


def formulas(text: str) -> str:
    """The part of a card with its definition."""
    return text.split("## Formal Definition")[1].split("## ")[0] if "## Formal Definition" in text else text
