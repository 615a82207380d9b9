"""Every metric has a card, and the facts in the card match the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from multimodal_eval.core.judge_config import JudgeConfig, JudgeModel
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


@pytest.fixture(params=list_available())
def metric(request):
    return resolve(request.param)


@pytest.fixture
def card(metric):
    return (CARDS / f"{metric.name}.md").read_text(encoding="utf-8")


def fact(card, name):
    match = re.search(rf"^- \*\*{re.escape(name)}:\*\* (.+)$", card, re.MULTILINE)
    assert match, f"the card has no line **{name}:**"
    return match[1]


def test_the_card_has_the_headings(metric, card):
    lines = card.splitlines()
    assert lines[0].startswith("# Metric Card for ")
    assert [line for line in lines if re.match(r"#{2,3} ", line)] == HEADINGS


def test_the_range_matches_the_code(metric, card):
    low, high = ("unbounded" if bound is None else f"{bound:g}" for bound in metric.bounds)
    assert fact(card, "Range").startswith(f"{low} to {high}")


def test_the_direction_matches_the_code(metric, card):
    assert fact(card, "Higher is Better?") == ("Yes" if metric.direction == "higher" else "No")


def test_the_needs_match_the_code(metric, card):
    assert fact(card, "Needs") == (", ".join(f"`{need}`" for need in metric.needs) or "none")
    alternatives = [need.split("|") for need in metric.needs]
    assert fact(card, "Reference-Based?") == ("Yes" if any("references" in need for need in alternatives) else "No")


def test_the_signature_matches_the_code(metric, card):
    example = fact(card, "Signature").strip("`")
    assert example == str(metric.signature(metric.default_state()))


def test_the_options_are_explained(metric):
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \| (.+) \|$", options_text(metric.name), re.MULTILINE)
    assert [row[0] for row in rows] == list(metric.options)
    for _, default, allowed, text in rows:
        assert default
        assert allowed != "any value"
        assert len(text) > 10


def test_there_are_no_other_cards():
    assert sorted(path.stem for path in CARDS.glob("*.md")) == sorted([*list_available(), JUDGE])


def test_the_card_of_judges():
    text = card_text(JUDGE)
    assert text == (CARDS / "judge.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if re.match(r"#{2,3} ", line)] == HEADINGS
    assert set(re.findall(r"^- `(\w+)`: ", text, re.MULTILINE)) == set(FORMS) - {"extract"}
    config = JudgeConfig(name="right", form="binary", models=[JudgeModel(model="openai:NAME")])
    signature = re.sub(r"prompt:\w+", "prompt:DIGEST", str(JudgeMetric(config).signature()))
    assert fact(text, "Signature").strip("`") == signature


def test_the_packaged_card_is_the_one_in_the_docs(metric, card):
    assert card_text(metric.name) == card
