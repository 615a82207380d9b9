"""Every metric has a card, and the facts in the card match the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from multimodal_eval.core.corpus import default_state
from multimodal_eval.core.judge_config import JudgeConfig, JudgeModel
from multimodal_eval.core.metric import signature_of
from multimodal_eval.evaluation.cards import JUDGE, card_text, options_text
from multimodal_eval.evaluation.judge_metric import JudgeMetric
from multimodal_eval.evaluation.metrics_registry import list_available, resolve
from multimodal_eval.judges.forms.by_name import FORMS

CARDS = Path(__file__).parents[2] / "docs" / "metrics"
HEADINGS = [
    "## Metric Details",
    "### Metric Description",
    "### Formal Definition",
    "### Inputs and Outputs",
    "## Intended Use",
    "### Domains and Tasks",
    "### Applicability and Limitations",
    "## Metric Implementation",
    "### Reference Implementations",
    "### Computational Complexity",
    "## Known Limitations",
    "## Related Metrics",
    "## Further Reading",
    "## Citation",
    "## Metric Card Authors",
]


@pytest.fixture(scope="module")
def metrics():
    """All metrics by name. The tests compare tables of all of them, so that a failure names every wrong card."""
    return {name: resolve(name) for name in list_available()}


@pytest.fixture(scope="module")
def cards(metrics):
    return {name: (CARDS / f"{name}.md").read_text(encoding="utf-8") for name in metrics}


def fact(card, name):
    match = re.search(rf"^- \*\*{re.escape(name)}:\*\* (.+)$", card, re.MULTILINE)
    return match[1] if match else f"the card has no line **{name}:**"


def facts(cards, name):
    return {metric: fact(card, name) for metric, card in cards.items()}


def headings(card):
    return [line for line in card.splitlines() if re.match(r"#{2,3} ", line)]


def test_the_cards_have_the_headings(cards):
    assert [name for name, card in cards.items() if not card.startswith("# Metric Card for ")] == []
    assert {name: headings(card) for name, card in cards.items()} == dict.fromkeys(cards, HEADINGS)


def test_the_ranges_match_the_code(metrics, cards):
    bounds = {
        name: "{} to {}".format(*("unbounded" if bound is None else f"{bound:g}" for bound in metric.bounds))
        for name, metric in metrics.items()
    }
    shown = facts(cards, "Range")
    assert {name: shown[name][: len(text)] for name, text in bounds.items()} == bounds


def test_the_directions_match_the_code(metrics, cards):
    expected = {name: "Yes" if metric.direction == "higher" else "No" for name, metric in metrics.items()}
    assert facts(cards, "Higher is Better?") == expected


def test_the_needs_match_the_code(metrics, cards):
    needs = {name: [need.split("|") for need in metric.needs] for name, metric in metrics.items()}
    expected = {name: ", ".join(f"`{need}`" for need in metric.needs) or "none" for name, metric in metrics.items()}
    assert facts(cards, "Needs") == expected
    based = {name: "Yes" if any("references" in need for need in needs[name]) else "No" for name in metrics}
    assert facts(cards, "Reference-Based?") == based


def test_the_signatures_match_the_code(metrics, cards):
    expected = {name: f"`{signature_of(metric, default_state(metric))}`" for name, metric in metrics.items()}
    assert facts(cards, "Signature") == expected


def test_the_options_are_explained(metrics):
    row = re.compile(r"^\| `(\w+)` \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
    rows = {name: row.findall(options_text(name)) for name in metrics}
    assert {name: [option for option, *_ in of_metric] for name, of_metric in rows.items()} == {
        name: list(metric.options) for name, metric in metrics.items()
    }
    assert [
        f"{name}: {option}"
        for name, of_metric in rows.items()
        for option, default, allowed, text in of_metric
        if not default or allowed == "any value" or len(text) <= 10
    ] == []


def test_there_are_no_other_cards():
    assert sorted(path.stem for path in CARDS.glob("*.md")) == sorted([*list_available(), JUDGE])


def test_the_card_of_judges():
    text = card_text(JUDGE)
    assert text == (CARDS / "judge.md").read_text(encoding="utf-8")
    assert headings(text) == HEADINGS
    assert set(re.findall(r"^- `(\w+)`: ", text, re.MULTILINE)) == set(FORMS) - {"extract"}
    config = JudgeConfig(name="right", form="binary", models=[JudgeModel(model="openai:NAME")])
    signature = re.sub(r"prompt:\w+", "prompt:DIGEST", str(signature_of(JudgeMetric(config))))
    assert fact(text, "Signature").strip("`") == signature


def test_the_packaged_cards_are_those_in_the_docs(cards):
    assert {name: card_text(name) for name in cards} == cards
