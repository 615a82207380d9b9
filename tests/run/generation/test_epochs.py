"""Runs that ask every sample several times."""

from math import sqrt

import pytest

from multimodal_eval import Sample, evaluate
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.core.config import Parameters
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.interop.export.row_tables import metric_table
from multimodal_eval.run.verify import verify_run

# What the model answers in epochs 1 to 4; the right answer is "a".
ANSWERS = {"x": "abbb", "y": "aaba", "z": "bbbb"}


class Model:
    """Answers by sample and epoch, and keeps its requests."""

    label = "test:epochs"

    def __init__(self, answers=ANSWERS):
        self.answers, self.requests = answers, []

    async def answer(self, request):
        self.requests.append(request)
        text = self.answers[request.id.partition("#")[0]][request.epoch - 1]
        return Answer(None, "content_filter") if text == "-" else Answer(text)


def ask(model, path=None, groups=None, metrics=("exact_match",), seed=0, **generation):
    data = [
        Sample(id=name, question=name, expected_answer="a", group=(groups or {}).get(name)) for name in model.answers
    ]
    settings = {"model": "x", "epochs": 4, "use_cache": False, **generation}
    return evaluate(data, metrics=list(metrics), model=model, output=path, generation=settings, seed=seed)


def test_pass_at_k_worked_out_by_hand(tmp_path):
    run = ask(Model(), tmp_path / "run")
    entry = run.outcome.metrics["exact_match"]
    assert entry.value == 4 / 12
    assert entry.method.startswith("95% Wilson interval, 3 clusters")
    parts = entry.parts
    assert list(parts) == ["pass@1", "pass@2", "pass@4", "epoch_sd"]
    # x: n = 4, c = 1. y: c = 3. z: c = 0.
    # pass@2 = 1 - C(n - c, 2) / C(4, 2): x 1 - 3/6, y 1 - 0, z 0.
    assert parts["pass@1"].value == pytest.approx((1 / 4 + 3 / 4 + 0) / 3)
    assert parts["pass@2"].value == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert parts["pass@4"].value == pytest.approx(2 / 3)
    # The standard error of a mean of three samples: s of (.5, 1, 0) is .5.
    assert parts["pass@2"].stderr == pytest.approx(0.5 / sqrt(3))
    assert parts["pass@2"].method == "95% t interval, 3 samples"
    # The means of the epochs are 2/3, 1/3, 0, 1/3: their variance (divisor 3) is 2/27.
    assert parts["epoch_sd"].value == pytest.approx(sqrt(2 / 27))
    assert run.outcome.kinds["exact_match.pass@2"] == "mean"
    assert run.outcome.kinds["exact_match.epoch_sd"] == "corpus"
    assert verify_run(tmp_path / "run", deep=True).faults == ()


def test_reducers_worked_out_by_hand():
    answers = {"x": "abbb", "y": "aaba", "z": "bbbb", "t": "aabb"}
    names = ["mode", "max", "majority", "at_least_2", "pass^2"]
    parts = ask(Model(answers), reducers=names).outcome.metrics["exact_match"].parts
    values = {name: parts[name].value for name in names}
    # Scores: x 1000, y 1101, z 0000, t 1100. mode: 0, 1, 0, and 1/2 for t. max: 1, 1, 0, 1. The majority answers b, a,
    # b, and both of a and b. At least 2 are right in y and t. pass^2 = C(c, 2) / 6: 0, 3/6, 0, 1/6.
    assert values == pytest.approx(
        {"mode": 1.5 / 4, "max": 3 / 4, "majority": 1.5 / 4, "at_least_2": 2 / 4, "pass^2": (3 / 6 + 1 / 6) / 4}
    )
    assert parts["max"].method == "95% Wilson interval, 4 samples"
    assert parts["pass^2"].low < values["pass^2"] < parts["pass^2"].high


def test_a_majority_counts_answers_and_not_scores():
    # Two different wrong answers do not make a majority: "a" is the most frequent answer, 0 the most frequent score.
    parts = ask(Model({"x": "aabc", "y": "aabd", "z": "bcda"}), reducers=["mode", "majority"])
    parts = parts.outcome.metrics["exact_match"].parts
    # z: four answers once each, one of them right
    assert parts["majority"].value == pytest.approx((1 + 1 + 1 / 4) / 3)
    assert parts["mode"].value == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)


def test_reducers_that_count_right_answers_need_scores_of_0_or_1():
    run = ask(
        Model({"x": ["a b", "a c"], "y": ["a b c", "b"]}), metrics=["rouge_l"], epochs=2, reducers=["max", "pass^2"]
    )
    assert {"max", "pass^2"} & set(run.outcome.metrics["rouge_l"].parts) == {"max"}
    with pytest.raises(ConfigError, match="reducers"):
        ask(Model(), reducers=["median"])


def test_failed_answers_are_left_out_of_pass_at_k():
    run = ask(Model({"x": "a-b-", "y": "bbba"}))
    parts = run.outcome.metrics["exact_match"].parts
    # x has n = 2, c = 1: pass@1 = 1/2, pass@2 = 1, no pass@4. y has n = 4, c = 1: 1/4, 1/2, 1.
    assert parts["pass@1"].value == pytest.approx(3 / 8)
    assert parts["pass@2"].value == pytest.approx(3 / 4)
    assert (parts["pass@4"].value, parts["pass@4"].method) == (1, "no interval: 1 sample")
    # 6 of 8 answers are scored; both samples have a pass@2, one has a pass@4.
    rows = {row["metric"]: (row["scored"], row["total"]) for row in metric_table([run]).to_pylist()}
    assert (rows["exact_match"], rows["exact_match.pass@2"], rows["exact_match.pass@4"]) == ((6, 8), (2, 2), (1, 2))


def test_intervals_are_clustered_by_the_groups_of_the_samples():
    run = ask(Model(), groups={"x": "image", "y": "image"})
    parts = run.outcome.metrics["exact_match"].parts
    assert parts["pass@2"].method.startswith("95% t interval, 2 clusters")


def test_metrics_with_other_values_have_no_pass_at_k():
    run = ask(Model({"x": ["a b", "a c"], "y": ["a b c", "b"]}), metrics=["rouge_l"], epochs=2)
    parts = run.outcome.metrics["rouge_l"].parts
    assert "epoch_sd" in parts
    assert not any(part.startswith("pass@") for part in parts)


def test_a_run_without_epochs_has_no_such_parts():
    run = ask(Model(), epochs=1)
    assert run.outcome.metrics["exact_match"].parts == {}
    assert [sample.id for sample in run.samples()] == ["x", "y", "z"]


def test_every_epoch_has_a_seed():
    model = Model()
    ask(model, parameters={"seed": 40})
    assert sorted({(request.epoch, request.parameters.seed) for request in model.requests}) == [
        *((1, 40), (2, 41), (3, 42), (4, 43)),
    ]
    assert len({request.digest for request in model.requests}) == len(model.requests) == 12


def test_without_a_seed_the_first_epoch_has_that_of_the_run():
    model = Model()
    ask(model, seed=7)
    assert {request.parameters.seed for request in model.requests} == {7, 8, 9, 10}


def test_one_epoch_leaves_the_seed_to_the_model():
    model = Model()
    ask(model, seed=7, epochs=1)
    assert {request.parameters.seed for request in model.requests} == {None}
    assert Parameters().of_epoch(3) == Parameters()


def test_dialogues_have_no_epochs():
    model = Model()
    with pytest.raises(ConfigError, match="`epochs` and `history` exclude each other"):
        ask(model, history=True)
    assert model.requests == []


def test_runs_with_epochs_are_compared_by_id(tmp_path):
    many = {f"s{number}": "abab" if number % 3 else "bbbb" for number in range(30)}
    better = {f"s{number}": "aaab" if number % 3 else "bbab" for number in range(30)}
    ask(Model(many), tmp_path / "one")
    ask(Model(better), tmp_path / "two")
    (exact_match,) = compare_runs([tmp_path / "one", tmp_path / "two"], metrics=["exact_match"]).numbers
    (pair,) = exact_match.pairs
    # Every one of the 30 samples gains one answer of four.
    assert (exact_match.samples, exact_match.clusters) == (120, 30)
    assert pair.difference == pytest.approx(0.25)
    assert (pair.wins, pair.losses) == (30, 0)
    assert pair.verdict == "better"
