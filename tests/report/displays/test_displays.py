"""Every result that people get has a display: HTML for notebooks, plain text for terminals."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from inspect import isclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import multimodal_eval
from multimodal_eval import evaluate
from multimodal_eval.core.display import Displayed, HasHtml
from multimodal_eval.display.drawings import BACKGROUNDS, COLOURS
from multimodal_eval.display.renderer import DISPLAYS
from multimodal_eval.interop.accumulator import compute
from tests.report.displays.results import calibration, comparison, of_a_run, of_every_class
from tests.report.hostile import ALL, TEXTS

# Public classes that are not results: settings, protocols, errors, and arrays inside of metrics.
NOT_RESULTS = set(
    "Accumulator Answer Batch Box Criterion Engine Estimate Generator JudgeConfig JudgeModel JudgeUntil Media Message "
    "MessagePart Metric MultimodalEvalError Option Options Reading Request RetryableError Rows Scorer Scores Signature "
    "Text Turn".split()
)
TAGS = set(
    "div p strong span bdi br table thead tbody tr th td details code summary svg g line circle rect text img".split()
)
ATTRIBUTES = set(
    "style width height viewbox role aria-label x y x1 x2 y1 y2 cx cy r fill fill-opacity stroke stroke-opacity "
    "stroke-width stroke-dasharray text-anchor font-size transform src alt".split()
)


class Elements(HTMLParser):
    """The elements and attributes of a display, checked one by one; `texts` are the texts between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag in TAGS, tag
        for name, value in attributes:
            assert name in ATTRIBUTES, (tag, name)
            if name == "src":
                assert re.fullmatch(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]+", value)
            if name == "style":
                assert not re.search(r"url|expression|import|[<>\"\\]|position", value)
        if tag not in ("br", "img", "line", "circle", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("line", "circle", "rect"):
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl):
        raise AssertionError(f"a declaration: {decl}")


def public_classes() -> dict[str, type]:
    values = {name: getattr(multimodal_eval, name) for name in multimodal_eval.__all__}
    return {name: value for name, value in values.items() if isclass(value)}


@pytest.mark.parametrize("name", public_classes())
def test_every_public_class_is_a_result_with_a_display_or_is_none(name):
    is_result = issubclass(public_classes()[name], HasHtml)
    assert is_result != (name in NOT_RESULTS)
    assert not is_result or name in DISPLAYS


def test_every_class_with_a_display_is_tried(tmp_path):
    tried = {type(result).__name__ for result in [*of_every_class("x"), *of_a_run(tmp_path / "run")]}
    # tests/report/displays/test_generated_run.py and tests/display have the others.
    others = {
        "GeneratedRun",
        "AgreementReport",
        "Checked",
        "Classification",
        "DialogueReport",
        "MetaSuite",
        "Reproduction",
        "SuiteTable",
        "Why",
    }
    assert tried | others == set(DISPLAYS)


@pytest.mark.parametrize("text", [*TEXTS, ALL], ids=range(len(TEXTS) + 1))
def test_no_text_becomes_an_element(text):
    for result in of_every_class(text):
        Elements(result._repr_html_())
        assert "\x1b" not in repr(result) or not isinstance(result, Displayed)


@settings(max_examples=25)
@given(st.text(alphabet=st.sampled_from("<>&\"'`/=!-;:{}()x\u202e\x00\n "), max_size=40))
def test_no_random_text_becomes_an_element(text):
    for result in of_every_class(text):
        Elements(result._repr_html_())


def test_no_text_of_a_run_becomes_an_element(tmp_path):
    for result in of_a_run(tmp_path / "run"):
        html = result._repr_html_()
        Elements(html)
        assert "pwned" in html
        assert "\x1b" not in repr(result)


def test_a_hostile_answer_is_shown_as_text(tmp_path):
    answer = "<script>alert(1)</script>"
    run = evaluate([{"generated_answer": answer, "references": ["x"]}], metrics="exact_match", progress=False)
    assert answer in Elements(run.worst()._repr_html_()).texts


def test_text_and_html_have_the_same_figures():
    for result in (comparison("metric"), calibration("column")):
        shown = " ".join(Elements(result._repr_html_()).texts)
        for number in re.findall(r"\d\.\d{4}", repr(result)):
            assert number in shown


def test_the_verdict_of_a_comparison_comes_first_and_labels_may_reverse_it():
    lines = repr(comparison("m")).splitlines()
    assert lines[0].startswith(
        "▲ Which run is better? 1 m is better than 0 m by 0.100 [0.060, 0.140] on m, corrected by human labels, p = "
        "0.0100; uncorrected, the difference is "
    )
    assert "! m: people say the opposite. The labels reverse the order of the two runs" in lines


def test_worst_and_best_samples():
    records = [{"id": str(n), "generated_answer": "a" * n or None, "references": ["aaa"]} for n in range(5)]
    run = evaluate(records, metrics=["exact_match", "cer"], progress=False)
    assert [row.sample.id for row in run.worst("exact_match", 2)] == ["1", "2"]
    # cer is the number of edits / 3, and lower is better: "a" needs 2, "aaaa" needs 1, "aaa" none; "0" is unscored
    assert [row.sample.id for row in run.worst("cer", 9)] == ["1", "2", "4", "3"]
    assert [row.scores["cer"] for row in run.best("cer", 2)] == [0.0, pytest.approx(1 / 3)]
    assert len(run.worst("cer", 9)[1:3]) == 2
    with pytest.raises(multimodal_eval.MultimodalEvalError, match="no metric of this run is named 'bleu'"):
        run.worst("bleu")
    with pytest.raises(multimodal_eval.MultimodalEvalError, match=r"`count` must be at least 1\. Got 0"):
        run.best("cer", 0)


def test_a_score_value_stays_a_float_with_a_plain_repr():
    (value,) = compute(predictions=["x"], references=["x"], metrics="exact_match").values()
    assert "1 of 1 samples scored" in value._repr_html_()
    assert repr(value).startswith("1.0000")


def _luminance(colour: str) -> float:
    """WCAG 2.1."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("tone", COLOURS)
def test_colours_are_seen_on_light_and_dark_pages(tone, background):
    a, b = sorted((_luminance(COLOURS[tone]), _luminance(background)))
    assert (b + 0.05) / (a + 0.05) >= 3  # of graphics, by WCAG 1.4.11
