"""Two runs compared by judges with known leanings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multimodal_eval import Run, Sample, compare_by_judge, evaluate, resume
from multimodal_eval.analysis.preferences import preference_of
from multimodal_eval.core.errors import ConfigError, NothingScoredError
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.generate.protocol import Answer, EndpointError, Request
from tests.judges.server import Leanings, scripted_judge


def run_of(answers: list[str], path: Path | None = None, **fields: Any) -> Run:
    samples = [
        Sample(f"s{number}", question=f"q{number}?", references=["x"], generated_answer=answer, **fields)
        for number, answer in enumerate(answers)
    ]
    return evaluate(samples, metrics=["exact_match"], output=path)


def named(tmp_path: Path, **answers: list[str]) -> list[Run]:
    return [run_of(texts, tmp_path / name) for name, texts in answers.items()]


class Counting:
    """A judge that counts its questions."""

    label = "counting"
    is_cacheable = True

    def __init__(self, leanings: Leanings | None = None) -> None:
        self.asked: list[Request] = []
        self._judge = scripted_judge(leanings or Leanings())

    async def answer(self, request: Request) -> Answer:
        self.asked.append(request)
        return Answer(self._judge(request))


def test_a_comparison_worked_out_by_hand(tmp_path):
    # The judge reads the quality in the text: A wins s0 and s1, loses s2; s3 is equal, and the judge says tie.
    first = ["[quality 0.9]", "[quality 0.8]", "[quality 0.1]", "[quality 0.5]"]
    second = ["[quality 0.1]", "[quality 0.2]", "[quality 0.7]", "[quality 0.5]"]
    run = compare_by_judge(*named(tmp_path, parrot=first, owl=second), judge=scripted_judge())
    assert run.scores(["preference"]).column("preference").to_pylist() == [1, 1, 0, 0.5]
    assert run["preference"]["value"] == 2.5 / 4
    parts = {part: run[f"preference.{part}"]["value"] for part in ("win", "tie", "loss", "flip", "first")}
    assert parts == {"win": 0.5, "tie": 0.25, "loss": 0.25, "flip": 0, "first": 0.5}
    preference = preference_of(run, "preference")
    assert (preference.system, preference.baseline) == ("parrot", "owl")
    assert (preference.wins, preference.ties, preference.losses, preference.identical) == (2, 1, 1, 1)
    assert preference.p_value is None  # four pairs cannot show anything


def test_the_input_is_known_by_its_answers(tmp_path):
    """Two runs with the same answers have other times and paths in run.json."""
    first, second = named(tmp_path, a=["x", "y"], b=["u", "v"])
    same, other = named(tmp_path, c=["x", "y"], d=["x", "z"])
    in_memory = run_of(["x", "y"])
    digests = [
        compare_by_judge(run, second, judge=scripted_judge()).info.input[0].sha256
        for run in (first, same, in_memory, other)
    ]
    assert digests[0] == digests[1] == digests[2] != digests[3]


def test_both_orders_cost_twice_as_much(tmp_path):
    runs = named(tmp_path, a=["x", "y", "z"], b=["u", "v", "w"])
    asked = {}
    for orders in ("both", "given", "random"):
        judge = Counting()
        compare_by_judge(*runs, judge=judge, orders=orders, use_cache=False)
        asked[orders] = len(judge.asked)
    assert asked == {"both": 6, "given": 3, "random": 3}


def test_the_cache_makes_a_second_comparison_free(tmp_path):
    runs = named(tmp_path, a=["x", "y", "z"], b=["u", "v", "w"])
    first, second = Counting(), Counting()
    before = compare_by_judge(*runs, judge=first)
    after = compare_by_judge(*runs[::-1], judge=second)  # the same questions, in the other order
    assert (len(first.asked), len(second.asked)) == (6, 0)
    assert after["preference"]["value"] == pytest.approx(1 - before["preference"]["value"])


def test_a_failed_answer_is_unscored_and_not_a_loss(tmp_path):
    first = run_of(["[quality 0.9]", "[quality 0.9]", "[ERROR] lost"], tmp_path / "a")
    second = run_of(["[quality 0.1]", "[ERROR] timed out", "[quality 0.1]"], tmp_path / "b")
    judge = Counting()
    run = compare_by_judge(first, second, judge=judge, use_cache=False)
    assert run.scores(["preference"]).column("preference").to_pylist() == [1, None, None]
    assert {request.id for request in judge.asked} == {"s0"}
    failures = {failure.id: failure.reason for failure in preference_of(run, "preference").failures}
    assert failures.keys() == {"s1", "s2"}
    assert "b: '[ERROR] timed out'" in failures["s1"]


def test_one_unreadable_order_leaves_the_pair_unscored(tmp_path):
    def judge(request: Request) -> str:
        is_first = request.prompt.index("parrot says") < request.prompt.index("owl says")
        return '{"verdict": "1"}' if is_first else "Both are fine."

    first, second = (run_of([f"{name} says {n}" for n in range(2)], tmp_path / name) for name in ("parrot", "owl"))
    with pytest.raises(NothingScoredError, match="unreadable verdict"):
        compare_by_judge(first, second, judge=judge)


def test_equal_answers_are_not_asked_if_wished(tmp_path):
    runs = named(tmp_path, a=["same", "[quality 0.9]"], b=["same", "[quality 0.1]"])
    judge = Counting()
    run = compare_by_judge(*runs, judge=judge, skip_identical=True, use_cache=False)
    assert {request.id for request in judge.asked} == {"s1"}
    assert run.scores(["preference"]).column("preference").to_pylist() == [0.5, 1]
    assert preference_of(run, "preference").identical == 1


ANSWERS = [
    [f"{name}{number} [quality {(number * step) % 97 / 97}]" for number in range(400)]
    for name, step in (("p", 31), ("o", 57))
]


def test_planted_flips_and_places_are_recovered(tmp_path):
    # In 20% of the pairs the judge takes a place and not an answer, and in 3/4 of these the first: so the share of
    # flips is 0.2, and the first answer gets 0.8/2 + 0.2 * 3/4 = 0.55 of all verdicts.
    leanings = Leanings(flips=0.2, prefers_first=0.75, seed=1)
    run = compare_by_judge(*named(tmp_path, p=ANSWERS[0], o=ANSWERS[1]), judge=scripted_judge(leanings))
    flip, first = run["preference.flip"], run["preference.first"]
    assert flip["low"] < 0.2 < flip["high"]
    assert first["low"] < 0.55 < first["high"]
    assert flip["high"] - flip["low"] < 0.1


def test_a_planted_length_effect_is_taken_out(tmp_path):
    # The judge sees nothing but the length, and the answers of the first system are longer: at equal lengths, neither
    # would win more often.
    answers = [
        [f"{number} " + "word " * (number * step % 13 + extra) for number in range(400)]
        for step, extra in ((5, 8), (7, 0))
    ]
    judge = scripted_judge(Leanings(length=1.5, strength=0.0))
    run = compare_by_judge(*named(tmp_path, p=answers[0], o=answers[1]), judge=judge, orders="given")
    raw, controlled = run["preference"], run["preference.length_controlled"]
    assert raw["low"] > 0.55
    assert controlled["low"] < 0.5 < controlled["high"]


BALANCED = ["both", "random"]
texts = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=8)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(texts, texts), min_size=1, max_size=6), st.integers(0, 9), st.sampled_from(["both", "random"])
)
def test_exchanged_runs_mirror_all_results(pairs, seed, orders):
    """And names change nothing: the runs here are in temporary folders, whose names differ every time."""
    leanings = Leanings(flips=0.3, ties=0.2, length=0.5, strength=2.0, seed=seed)
    runs = [run_of([pair[place] for pair in pairs]) for place in (0, 1)]
    run = compare_by_judge(*runs, judge=scripted_judge(leanings), orders=orders)
    mirror = compare_by_judge(*runs[::-1], judge=scripted_judge(leanings), orders=orders)
    shares = [each.scores(["preference"]).column("preference").to_pylist() for each in (run, mirror)]
    assert shares[1] == [1 - share for share in shares[0]]
    for part, mirrored in (("win", "loss"), ("tie", "tie"), ("loss", "win"), ("flip", "flip"), ("first", "first")):
        if f"preference.{part}" in run:
            assert run[f"preference.{part}"] == mirror[f"preference.{mirrored}"]
    controlled = [each["preference.length_controlled"]["value"] for each in (run, mirror)]
    assert controlled[1] == pytest.approx(1 - controlled[0], abs=1e-9)


def test_the_names_of_the_systems_change_nothing(tmp_path):
    answers = {"first": ANSWERS[0][:40], "second": ANSWERS[1][:40]}
    leanings = Leanings(flips=0.3, strength=2.0)
    results = []
    for folder, names in (("x", ("a", "b")), ("y", ("b", "a"))):
        (tmp_path / folder).mkdir()
        runs = [run_of(texts, tmp_path / folder / name) for name, texts in zip(names, answers.values(), strict=True)]
        run = compare_by_judge(*runs, judge=scripted_judge(leanings))
        results.append({name: run[name] for name in run})
    assert results[0] == results[1]


def test_repeats_and_panels_are_averaged(tmp_path):
    runs = named(tmp_path, a=["x", "y"], b=["u", "v"])

    def first(request: Request) -> str:
        return json.dumps({"verdict": "1"})

    run = compare_by_judge(*runs, judge=[first, scripted_judge(Leanings(seed=3))], repeats=2, orders="given")
    # The first judge always takes the first answer, A; the other one takes the same answer in each repetition.
    other = compare_by_judge(*runs, judge=scripted_judge(Leanings(seed=3)), orders="given")
    assert run["preference"]["value"] == pytest.approx((1 + other["preference"]["value"]) / 2)
    assert run["preference.first"]["value"] == run["preference"]["value"]


def test_media_are_found_as_in_the_run(tmp_path):
    from PIL import Image

    (tmp_path / "data").mkdir()
    Image.new("RGB", (4, 4), "red").save(tmp_path / "data" / "red.png")
    data = tmp_path / "data" / "answers.jsonl"
    data.write_text(json.dumps({"id": "1", "image": "red.png", "references": ["x"], "prediction": "a"}) + "\n")
    first = evaluate(data, metrics=["exact_match"], output=tmp_path / "a")
    data.write_text(data.read_text().replace('"a"', '"b"'))
    second = evaluate(data, metrics=["exact_match"], output=tmp_path / "b")
    judge = Counting()
    compare_by_judge(first, second, judge=judge, use_cache=False)
    assert [[media.kind for media in request.media] for request in judge.asked] == [["image"], ["image"]]


def test_a_baseline_is_a_file_a_run_or_a_column(tmp_path):
    run = run_of(["[quality 0.9]", "[quality 0.2]"], tmp_path / "a", metadata={"human": "[quality 0.5]"})
    other = tmp_path / "owl.jsonl"
    other.write_text("".join(json.dumps({"id": f"s{n}", "prediction": "[quality 0.5]"}) + "\n" for n in range(2)))
    run_of(["[quality 0.5]", "[quality 0.5]"], tmp_path / "b")
    for baseline, name in ((str(other), "owl"), ("human", "human"), (tmp_path / "b", "b")):
        compared = compare_by_judge(run, judge=scripted_judge(), baseline=baseline)
        assert compared.scores(["preference"]).column("preference").to_pylist() == [1, 0]
        assert preference_of(compared, "preference").baseline == name
    assert [file.path for file in compared.info.input] == [str(tmp_path / "a"), str(tmp_path / "b")]


def test_equal_answers_alone_need_no_judge(tmp_path):
    judge = Counting()
    run = compare_by_judge(*named(tmp_path, a=["x", "y"], b=["x", "y"]), judge=judge, skip_identical=True)
    assert judge.asked == []
    assert run["preference"]["value"] == 0.5


def test_an_interrupted_comparison_is_resumed(tmp_path):
    runs = named(tmp_path, a=[f"a{n}" for n in range(6)], b=[f"b{n}" for n in range(6)])

    class Dying(Counting):
        is_cacheable = False

        async def answer(self, request: Request) -> Answer:
            if len(self.asked) >= 5:
                raise EndpointError("the endpoint is gone")
            return await super().answer(request)

    whole = compare_by_judge(*runs, judge=Counting(), use_cache=False, concurrency=1)
    with pytest.raises(EndpointError):
        compare_by_judge(*runs, judge=Dying(), output=tmp_path / "pairs", concurrency=1)
    judge = Counting()
    resumed = resume(tmp_path / "pairs", judge=judge)
    assert len(judge.asked) == 12 - 5
    assert resumed.scores().equals(whole.scores())


def test_lists_of_answers_are_ranked():
    # Of three answers, the one of the sample is the best in s0, the worst in s1, and in the middle in s2.
    samples = [
        Sample(f"s{number}", generated_answer=f"[quality {quality}]", metadata={"baseline": others})
        for number, (quality, others) in enumerate(
            [
                (0.9, ["[quality 0.1]", "[quality 0.2]"]),
                (0.1, ["[quality 0.5]", "[quality 0.4]"]),
                (0.5, ["[quality 0.2]", "[quality 0.8]"]),
            ]
        )
    ]
    judge = Counting()
    config = JudgeConfig(name="order", form="listwise", use_cache=False)
    run = evaluate(samples, metrics=[config], judge=judge)
    assert run.scores(["order"]).column("order").to_pylist() == [1, 0, 0.5]
    assert run["order.rank"]["value"] == 2
    assert run["order.best"]["value"] == pytest.approx(1 / 3)
    assert len(judge.asked) == 6
    details = json.loads(run.scores(["order:details"]).column("order:details")[2].as_py())
    assert [verdict["ranking"] for verdict in details["verdicts"]] == [[["3"], ["1"], ["2"]]] * 2


def test_wrong_calls_are_refused(tmp_path):
    run, other = named(tmp_path, a=["x"], b=["y"])
    with pytest.raises(ConfigError, match="name two runs, or one run and a baseline"):
        compare_by_judge(run, judge=scripted_judge())
    with pytest.raises(ConfigError, match=r"has no model\. Name one with --judge"):
        compare_by_judge(run, other)
    with pytest.raises(ConfigError, match=r"a judge has no setting 'order'\. Did you mean 'orders'"):
        compare_by_judge(run, other, judge=scripted_judge(), order="both")
    with pytest.raises(ConfigError, match="has the form 'scale'; pairs need the form 'pairwise'"):
        compare_by_judge(run, other, judge=scripted_judge(), metric=JudgeConfig(name="help"))
    with pytest.raises(ConfigError, match="a comparison needs one metric of a judge"):
        compare_by_judge(run, other, judge=scripted_judge(), metric="bleu")


@pytest.mark.parametrize("is_declared", [True, False])
def test_the_judge_of_a_python_program_has_its_own_template(tmp_path, is_declared):
    file = tmp_path / "mine.md"
    file.write_text("Mine: {{ instruction }} {{ answers[0] }} {{ answers[1] }} {{ reply }}")
    judge, runs = Counting(), named(tmp_path, parrot=["a", "b"], owl=["c", "d"])
    if is_declared:
        config = JudgeConfig(name="mine", form="pairwise", prompt=str(file))
        run = compare_by_judge(*runs, judge=judge, metric=config, output=tmp_path / "pairs")
    else:
        run = compare_by_judge(*runs, judge=judge, prompt=str(file), output=tmp_path / "pairs")
    assert len(judge.asked) == 4
    assert all("Mine: " in request.prompt for request in judge.asked)
    assert Run(run.folder.path).metrics == run.metrics  # run.json has the text of the template


def test_a_wrong_setting_is_named_in_words(tmp_path):
    runs = named(tmp_path, parrot=["a", "b"], owl=["c", "d"])
    with pytest.raises(ConfigError, match="'preference': `orders` must be 'both' or 'given' or 'random'"):
        compare_by_judge(*runs, judge=scripted_judge(), orders="twice")
