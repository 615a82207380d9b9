"""The parts of a difference: planted causes are found with their sizes, and nothing is left over."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval import Run, Why, evaluate, import_log, why
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.display.of_comparison import _adding_up
from multimodal_eval.stats.exact import Nested, exact_sum
from tests.analysis.planted_causes import CAUSES, faults, planted
from tests.data.logs.fixture_logs import FIXTURES, LM_EVAL, LMMS_EVAL, log_of


@pytest.fixture(autouse=True)
def without_cache(monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")


@pytest.mark.parametrize("causes", [*((name,) for name in CAUSES), tuple(CAUSES), ("gold", "answer", "reading")])
def test_planted_causes(causes):
    first, second, sizes = planted(len(causes), causes)
    assert faults(why(first, second, names=("A", "B")), sizes) == []


@pytest.mark.slow
def test_200_planted_causes():
    result = {}
    for seed in range(200):
        source = random.Random(seed)
        causes = source.sample(list(CAUSES), source.choice((1, 1, 2, 3, 4, 9)))
        first, second, sizes = planted(seed, causes)
        result[seed, tuple(causes)] = faults(why(first, second, names=("A", "B")), sizes)
    assert {key: each for key, each in result.items() if each} == {}


COLOURS = {"A": "red", "B": "green", "C": "blue"}


def run_of(answers: list[str], golds: str, metric: str = "multiple_choice", **settings) -> Run:
    rows = [
        {"id": str(n), "question": f"colour {n}?", "choices": COLOURS, "references": [gold], "generated_answer": answer}
        for n, (answer, gold) in enumerate(zip(answers, golds, strict=True))
    ]
    settings = {"options": {metric: settings.pop("options")}, **settings} if "options" in settings else settings
    return evaluate(rows, metrics=[metric], progress=False, skip_lint=True, **settings)


def parts_of(result: Why) -> dict[str, Fraction]:
    return {part.name: part.value for part in result.parts if part.value}


def test_values_worked_out_by_hand():
    # A, rule mmmu@2024: "A" is right, "B" wrong, "none" has no letter and is left out: 1/2.
    # B: the second answer is right now (2/2: +1/2); the letter of the third is drawn: 1/3, so 7/9 (-2/9).
    first = run_of(["A", "B", "none"], "AAC", options={"rule": "mmmu@2024"})
    second = run_of(["A", "A", "none"], "AAC", options={"rule": "mmmu@2024", "random": "expected"})
    result = why(first, second, names=("A", "B"))
    third = Fraction(1 / 3)  # as it is stored
    expected = {"prompt + decoding + answer": Fraction(50), "failure": 100 * ((2 + third) / 3 - 1)}
    assert parts_of(result) == expected
    assert result.sum_error == 0
    assert [part.confidence for part in result.parts if part.value] == ["unknown", "certain"]
    assert [part.ids for part in result.parts if part.value] == [["1"], ["2"]]


def test_a_part_may_have_another_size_at_the_end_of_the_chain():
    # Another answer to question 0 and another gold answer. Gold first: 0 to 1, then the answer: 1 to 0. With A's gold
    # answer and B's answer it would be right, too, so that B's gold answer, taken last, costs 1.
    first, second = run_of(["B", "A"], "AA"), run_of(["A", "A"], "BA")
    result = {part.name: part for part in why(first, second, names=("A", "B")).parts if part.value}
    assert {name: (part.value, part.last) for name, part in result.items()} == {
        "gold": (Fraction(50), Fraction(-50)),
        "prompt + decoding + answer": (Fraction(-50), Fraction(-50)),
    }


def test_boxes_are_gold_answers():
    boxes = [[[0, 0, 10, 10]], [[0, 0, 10, 20]]]
    first, second = (
        evaluate([{"id": "0", "boxes": box, "generated_answer": "[0, 0, 10, 10]"}], metrics=["acc_at_iou"],
                 options={"acc_at_iou": {"threshold": 0.9}}, progress=False)
        for box in boxes
    )  # fmt: skip
    assert parts_of(why(first, second, names=("A", "B"))) == {"gold": -100}


def test_other_samples_and_gold_answers_change_the_statistics_of_all_samples():
    """CIDEr weights words by how many references have them: both parts move samples that are otherwise the same."""
    texts = ("a red bus on a road", "a dog in the grass", "two cats on a bed", "a red car", "a bird on a branch")
    rows = [{"id": str(n), "references": [text], "generated_answer": text[:-2]} for n, text in enumerate(texts)]
    other = [{**rows[0], "references": ["a cat on a bed"]}, *rows[1:]]
    runs = [evaluate(each, metrics=["cider_d"], progress=False) for each in (rows, rows[:4], other[:4])]
    sizes = [Fraction(run["cider_d"]["value"]) for run in runs]
    result = why(runs[0], runs[2], names=("A", "B"))
    expected = {"samples": sizes[1] - sizes[0], "gold": sizes[2] - sizes[1]}
    assert {name: float(value) for name, value in parts_of(result).items()} == pytest.approx(
        {name: float(value) for name, value in expected.items()}
    )
    assert (result.sum_error, {part.confidence for part in result.parts}) == (0, {"certain"})


def test_choices_in_another_order_are_another_prompt():
    # The gold answers are the same texts with other letters. "A" is right in the first order, and wrong in the second.
    order = {"A": "blue", "B": "red", "C": "green"}
    rows = [
        {"id": str(n), "question": f"colour {n}?", "choices": order, "references": ["B"], "generated_answer": answer}
        for n, answer in enumerate(("A", "B", "C"))
    ]
    second = evaluate(rows, metrics=["multiple_choice"], progress=False, skip_lint=True)
    result = why(run_of(["A", "A", "B"], "AAA"), second, names=("A", "B"))
    parts = {part.name: part for part in result.parts if part.value}
    assert sum(part.value for part in parts.values()) == 100 * (Fraction(1, 3) - Fraction(2, 3))
    (part,) = parts.values()
    assert "prompt" in part.key
    assert "3 samples with choices in another order" in part.why


def test_thinking_in_one_only_is_decoding():
    parameters = {"generation": {"parameters": {"temperature": 0}, "use_cache": False}}
    rows = [{"id": str(n), "question": f"q{n}", "references": ["yes"]} for n in range(4)]
    settings = {"metrics": ["exact_match"], "progress": False, "skip_lint": True, **parameters}
    first = evaluate(rows, model=lambda request: "yes", **settings)
    second = evaluate(rows, model=lambda request: f"{'<think>so</think>' * (request.id == '0')}yes", **settings)
    (part,) = (part for part in why(first, second, names=("A", "B")).parts if part.value)
    assert (part.key, part.value, part.why) == (("decoding",), -25, "1 answer with thinking in one only")


def test_two_metrics_are_told_apart_by_what_they_read():
    # Both read the normalised answer; exact_match wants all of it, contains a part of it.
    first = run_of(["red", "it is blue"], ["red", "blue"], "exact_match")
    second = run_of(["red", "it is blue"], ["red", "blue"], "contains")
    result = why(first, second, names=("A", "B"))
    assert parts_of(result) == {"scoring": 50}
    # token_f1 with its rule: without the article, "the red" is 1; of "it is blue", 2 / (1 + 3) = 1/2.
    first = run_of(["the red", "it is blue"], ["red", "blue"], "exact_match", options={"rule": "none@1"})
    second = run_of(["the red", "it is blue"], ["red", "blue"], "token_f1")
    assert parts_of(why(first, second, names=("A", "B"))) == {"reading": 50, "scoring": 25}


def test_shown_parts_add_up_to_the_shown_difference():
    # Of six samples, gold, answer and failure change one each: 16.67 points three times would be 50.01.
    first = run_of(["A", "A", "A", "A", "A", "A"], "AAAAAA")
    second = run_of(["A", "A", "A", "A", "B", ""], "AAABAA", options={"unread": "wrong"})
    result = why(first, second, names=("A", "B"))
    shown = json.loads(msgspec.json.encode(list(_adding_up(result, 2).values()), enc_hook=float))
    assert round(sum(shown), 9) == round(float(result.difference), 2)
    assert len([value for value in shown if value]) == len(parts_of(result))


def log_with(folder: Path, name: str, scores: list[float], mean: float, **more: list[str]) -> Path:
    """A log of lm-eval and its results."""
    folder.mkdir()
    lines = [
        {
            "doc_id": n,
            "doc": {"subject": more["subjects"][n]} if "subjects" in more else {},
            "target": "A",
            "arguments": {"gen_args_0": {"arg_0": f"question {n}", "arg_1": {}}},
            "resps": [["A" if score else "B"]],
            "filtered_resps": ["A" if score else "B"],
            "filter": "none",
            "metrics": ["acc"],
            "doc_hash": str(n),
            "prompt_hash": "",
            "target_hash": "",
            "acc": score,
        }
        for n, score in enumerate(scores)
    ]
    path = folder / "samples_mine_2026-01-01T00-00-00.000000.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    results = {"results": {"mine": {"alias": "mine", "acc,none": mean}}, "configs": {"mine": {}}, "n-shot": {"mine": 0}}
    (folder / "results_2026-01-01T00-00-00.000000.json").write_text(json.dumps(results))
    return path


def test_the_average_of_a_log_is_found(tmp_path):
    # micro: 2/3; macro over the subjects: (1 + 0) / 2
    first = log_with(tmp_path / "a", "a", [1, 1, 0], 2 / 3, subjects=["x", "x", "y"])
    second = log_with(tmp_path / "b", "b", [1, 1, 0], 0.5, subjects=["x", "x", "y"])
    result = why(first, second)
    (part,) = (part for part in result.parts if part.value)
    assert (part.name, part.confidence) == ("aggregation", "certain")
    assert "macro(doc.subject)" in part.why
    assert abs(float(part.value) + 100 / 6) < 1e-9


def test_an_average_that_nobody_knows_is_said_to_be_unknown(tmp_path):
    first = log_with(tmp_path / "a", "a", [1, 1, 0], 2 / 3)
    second = log_with(tmp_path / "b", "b", [1, 1, 0], 0.9)
    (part,) = (part for part in why(first, second).parts if part.value)
    assert (part.name, part.confidence) == ("aggregation", "unknown")
    assert "does not say how its number is computed" in part.settle


def test_percent_and_shares_are_compared_in_percent(tmp_path):
    first = log_with(tmp_path / "a", "a", [1, 1, 0], 66.6667)
    result = why(first, log_with(tmp_path / "b", "b", [1, 0, 0], 1 / 3))
    assert result.unit == "points"
    assert any("compared in percent" in note for note in result.notes)
    assert result.headlines[0] == Fraction("66.6667")
    assert result.sum_error == 0


def test_the_rule_of_a_log_is_found():
    # lm-eval's filter takes the whole answer; flexible-extract reads a number out of it.
    log = log_of(LM_EVAL, "toy_sum")
    result = why(log, log, metrics=["exact_match_strict-match", "exact_match_flexible-extract"])
    assert result.difference == Fraction(100, 3)
    assert any("names no rule: exact_match" in note and "gives 6 of 6 scores" in note for note in result.notes)
    assert {part.confidence for part in result.parts if part.value} == {"certain"}


def test_logs_of_every_harness_can_be_sides():
    logs = [
        FIXTURES / "inspect" / "choices.eval",
        FIXTURES / "vlmevalkit" / "choices",
        FIXTURES / "evalscope" / "choices" / "reviews" / "mockllm" / "general_mcq_toy.jsonl",
        log_of(LMMS_EVAL, "toy_pope"),
        log_of(LM_EVAL, "toy_choice"),
        next((FIXTURES / "lighteval").rglob("details_toy_choice*.parquet")),
        next((FIXTURES / "eee" / "data" / "toy_sum").rglob("*9.json")),
        FIXTURES / "helm",
    ]
    for log in logs:
        run = import_log(log, progress=False).run
        rows = [sample for sample in run.samples() if sample.generated_answer is not None]
        again = evaluate(rows[1:], metrics=["exact_match"], options={"exact_match": {"rule": "none@1"}}, progress=False)
        result = why(log, again, names=(str(log), "again"))
        assert result.sum_error == 0, log
        assert result.samples[2] == len(again), log


def test_a_recipe_scores_the_answers_of_the_other_side():
    first = run_of(["A", "The answer is B.", "none"], "ABC", options={"rule": "mmmu@2024"})
    result = why(first, "mmmu-val", names=("A", "B"))
    assert result.metrics == ("multiple_choice", "open_answer")
    assert result.sum_error == 0


@pytest.mark.parametrize(
    ("metrics", "message"),
    [(["cider"], "no metric of A"), (["a", "b", "c"], "name one metric, or that of each side")],
)
def test_wrong_metrics_are_refused(metrics, message):
    first = run_of(["A", "B"], "AB")
    with pytest.raises((ConfigError, UnknownNameError)):
        why(first, first, metrics=metrics, names=("A", "B"))


def test_what_cannot_be_explained_is_refused():
    first = run_of(["A", "B", "C"], "ABC")
    rows = [{"id": name, "references": ["x"], "generated_answer": "x"} for name in "xyz"]
    with pytest.raises(ConfigError, match="no sample in common"):
        why(first, evaluate(rows, metrics=["exact_match"], progress=False), names=("A", "B"))
    captions = evaluate(rows, metrics=["bleu"], progress=False)
    with pytest.raises(ConfigError, match="one score of all samples together"):
        why(captions, captions, names=("A", "B"))
    with pytest.raises(ConfigError, match="both benchmarks"):
        why("mmmu-val", "mmstar")
    with pytest.raises(ConfigError, match="does not exist"):
        why("nowhere", first)
    with pytest.raises(ConfigError, match="compares scores of samples"):
        why(next(LM_EVAL.glob("results_*.json")), first)


def test_other_questions_with_the_same_ids_are_another_benchmark():
    rows = [{"id": str(n), "question": f"q{n}", "references": [f"a{n}"], "generated_answer": "x"} for n in range(4)]
    others = [{**row, "question": "other " + row["question"], "references": ["z"]} for row in rows]
    first, second = (evaluate(each, metrics=["exact_match"], progress=False) for each in (rows, others))
    with pytest.raises(ConfigError, match="not about the same benchmark"):
        why(first, second, names=("A", "B"))


def test_samples_are_paired_by_question_if_ids_are_others():
    first = run_of(["A", "B", "C"], "ABB")
    rows = [
        {**row, "id": f"other-{row['id']}"}
        for row in ({"id": s.id, "question": s.question, "choices": s.choices, "references": s.references,
                     "generated_answer": s.generated_answer} for s in first.samples())
    ]  # fmt: skip
    result = why(first, evaluate(rows[::-1], metrics=["multiple_choice"], progress=False), names=("A", "B"))
    assert result.samples == (3, 3, 3)
    assert any("paired by their questions" in note for note in result.notes)


finite = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-200)


@given(st.lists(finite, max_size=12))
def test_sums_are_those_of_fractions(values):
    assert exact_sum(np.array(values, np.float64)) == sum(map(Fraction, values), Fraction(0))


@given(st.lists(st.tuples(finite, st.integers(-1, 4)), min_size=1, max_size=12), st.booleans())
def test_nested_means_are_those_of_fractions(rows, is_product):
    values, codes = np.array([value for value, _ in rows]), np.array([code for _, code in rows])
    groups: dict[int, list[Fraction]] = {}
    for value, code in rows:
        if code >= 0:
            groups.setdefault(code, []).append(Fraction(value))
    means = []
    for members in groups.values():
        product = Fraction(1)
        for member in members:
            product *= member
        means.append(product if is_product else sum(members) / len(members))
    expected = sum(means) / len(means) if means else None
    assert Nested([codes], is_product=is_product).of(values) == expected
