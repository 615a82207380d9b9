"""Multiple-choice answers in report and viewer: letters as in the prompt, what was read, and the gold letter."""

from __future__ import annotations

import re

import pytest

from multimodal_eval import evaluate
from multimodal_eval.analysis.columns import chance_level
from multimodal_eval.cli.report import page_of
from multimodal_eval.display.renderer import blocks_of, rendered
from multimodal_eval.report.highlight import Span, both_ends
from multimodal_eval.report.samples import marked_letter
from tests.report.tables import text_of
from tests.report.viewer.viewed import client

LONG = "It has long ears and a tail. " * 20
ANSWERS = {
    "wrong": "B",
    "stated": f"{LONG}Not a cow. So the answer is (C).",
    "text": "a red cat",
    "unread": "I do not know",
    "<b>": "**Answer: A**",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letters")
    samples = [
        {
            "id": name,
            "question": "What is it?",
            "choices": ["cat", "dog", "horse", "cow"] if name != "wrong" else ["cat", "dog"],
            "expected_answer": "A" if name != "stated" else "C",
            "generated_answer": answer,
        }
        for name, answer in ANSWERS.items()
    ]
    run = evaluate(samples, metrics=["multiple_choice"], output=folder / "letters", progress=False)
    return folder, run


READ = {
    "wrong": "read B, gold A ✗",
    "stated": "read C, gold C ✓",
    "text": "read A, gold A ✓",
    "unread": "nothing read, gold A ✗",
    "<b>": "read A, gold A ✓",
}


def test_the_report_says_what_was_read(runs):
    page = page_of([runs[1]])
    shown = page.partition('<h2 id="samples">')[2].partition('<h2 id="warnings">')[0]
    articles = re.findall(r'<article class="sample">.*?</article>', shown, re.DOTALL)
    assert len(articles) > 1
    for article in map(text_of, articles):
        assert sum(words in article for words in set(READ.values())) == 1
    assert '<mark class="read">' in shown
    assert re.search(r"choices A cat B dog ", text_of(shown))
    assert 'class="only"' not in page
    assert "Content words" not in page
    assert "read: " not in text_of(shown)  # it is said once


def test_the_viewer_says_it_in_table_gallery_and_page(runs):
    folder, _ = runs
    with client(folder) as browser:
        for address in ("/samples/letters", "/samples/letters?view=gallery"):
            text = text_of(browser.get(address).text)
            assert [words for words in READ.values() if words not in text] == []
            assert "So the answer is ( C )." in text  # the end of a long answer
            assert "A) cat B) dog C) horse D) cow" in text
        for row, (name, words) in enumerate(READ.items()):
            assert words in text_of(browser.get(f"/sample/letters?row={row}").text), name


def test_a_link_to_an_example_leads_to_its_sample(runs):
    folder, _ = runs
    with client(folder) as browser:
        for name in ANSWERS:
            answer = browser.get("/sample/letters", params={"id": name})
            assert answer.status_code == 200
            assert READ[name] in text_of(answer.text)
        assert browser.get("/sample/letters?id=wro").status_code == 404


def test_the_chance_level_is_beside_the_score(runs):
    # Four questions with four choices and one with two: (4 / 4 + 1 / 2) / 5.
    folder, run = runs
    assert chance_level(run, "multiple_choice") == pytest.approx(0.3)
    assert "multiple_choice ★ (unread 1, chance 0.3)" in rendered(blocks_of(run), "table")
    assert "chance 0.3" in text_of(page_of([run]))
    with client(folder) as browser:
        assert "chance 0.3" in text_of(browser.get("/run/letters").text)


def test_markup_raises_no_warning_if_a_letter_is_read(runs):
    answers = [{"id": str(n), "references": ["a"], "generated_answer": f"**Answer: A** <b>{n}</b>"} for n in range(4)]
    words = evaluate(answers, metrics=["rouge_l"], progress=False)
    assert "MARKUP" in {finding.code for finding in words.lint_report().findings}
    letters = [{**each, "choices": ["a", "b"], "references": ["A"]} for each in answers]
    chosen = evaluate(letters, metrics=["multiple_choice"], progress=False)
    assert "MARKUP" not in {finding.code for finding in chosen.lint_report().findings}


@pytest.mark.parametrize(
    ("answer", "read", "before"),
    [
        ("A dog. The answer is B", "B", "A dog. The answer is "),
        ("B, not A. Answer: B. A is wrong", "B", "B, not A. Answer: "),
        ("ABBA (B)", "B", "ABBA ("),
        ("it is the Dog", "X", "it is the "),
    ],
)
def test_the_letter_is_marked_where_it_is_stated(answer, read, before):
    spans = marked_letter(answer, read, ["dog"])
    assert spans[0] == Span(before)
    assert spans[1].mark == "read"
    assert "".join(span.text for span in spans) == answer


def test_both_ends_of_a_long_answer():
    spans = [Span("a" * 50), Span("b" * 50, "read"), Span("c" * 50)]
    shown = both_ends(spans, 40)
    assert [span.text for span in shown] == ["a" * 20, " … ", "c" * 20]
    assert both_ends(spans, 150) == spans
