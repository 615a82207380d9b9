from __future__ import annotations

import json

import numpy as np
import pytest

from multimodal_eval import calibrate, evaluate, plan_labels
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError
from multimodal_eval.core.sample import Sample
from tests.cli.command_line import mmeval
from tests.judges.scripted import judged

COUNT = 120


def samples(labels: int = 0) -> list[Sample]:
    """Questions with answers; the first ones have a rating by a human. The third letter of the answer is arbitrary."""
    return [
        Sample(
            f"s{number}",
            question=f"question {number}",
            generated_answer=f"answer {number}",
            references=["reference"],
            metadata={"rating": 1 + number % 5 if number < labels else None},
        )
        for number in range(COUNT)
    ]


def score(sample: str, shift: int = 0) -> dict[str, int]:
    """A judge that is near the human rating."""
    number = int(sample[1:])
    return {"score": min(5, 1 + (number + (number % 3 == 0) * shift) % 5)}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two judges, who disagree on every third sample."""
    judges = {"a": lambda sample, *_: score(sample), "b": lambda sample, *_: score(sample, 2)}
    return judged(samples(60), judges, output=tmp_path_factory.mktemp("plan") / "run")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_samples_on_which_judges_disagree_are_drawn_more_often(run, tmp_path):
    plan = plan_labels(run, labels=30, output=tmp_path / "out.jsonl")
    assert (plan.metric, plan.samples, plan.known, plan.drawn) == ("quality", COUNT, 0, 30)
    assert plan.forecast is None
    records = lines(tmp_path / "out.jsonl")
    assert len(records) == 30
    first = records[0]
    number = first["id"][1:]
    assert first["question"] == f"question {number}"
    assert first["answer"] == f"answer {number}"
    assert first["references"] == ["reference"]
    assert first["label"] is None
    assert "score" not in first
    chance = {record["id"]: record["human_weight"] for record in records}
    apart = [chance[sample] for sample in chance if int(sample[1:]) % 3 == 0]
    together = [chance[f"s{number}"] for number in range(COUNT) if number % 5 in (0, 4) and f"s{number}" in chance]
    assert max(apart) > min(together)


def test_the_file_is_read_by_calibrate(run, tmp_path):
    path = tmp_path / "out.jsonl"
    plan_labels(run, labels=40, output=path)
    records = [{**record, "label": 1 + int(record["id"][1:]) % 5} for record in lines(path)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    (result,) = calibrate([run], path)
    calibration = result.metrics["quality"]
    assert calibration.labels == 40
    assert calibration.corrected.low < 3 < calibration.corrected.high
    # A second plan with these labels: the first ones are copied, and all of them have new weights.
    more = tmp_path / "more.jsonl"
    second = plan_labels(run, human=path, labels=20, output=more)
    assert second.known == 40
    assert second.forecast is not None
    assert second.forecast.labels == 60
    assert second.notes == []
    copied = lines(more)
    assert [record["label"] is None for record in copied] == [False] * 40 + [True] * 20
    before = {record["id"]: record["human_weight"] for record in records}
    assert all(record["human_weight"] > before[record["id"]] for record in copied[:40])


def test_weights_of_a_foreign_draw_count_once(run, tmp_path):
    path = tmp_path / "labels.jsonl"
    records = [{"id": f"s{number}", "label": 3, "human_weight": 0.1 + number / 100} for number in range(30)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    plan = plan_labels(run, human=path, labels=10, output=tmp_path / "out.jsonl")
    assert "each counts once" in plan.notes[-1]
    assert [record["human_weight"] for record in lines(tmp_path / "out.jsonl")[:30]] == [1.0] * 30


def test_labels_in_a_column_and_a_wanted_width(run, tmp_path):
    plan = plan_labels(run, human="rating", width=0.27, output=tmp_path / "out.jsonl")
    assert plan.known == 60
    assert plan.forecast is not None
    assert plan.forecast.half_width == pytest.approx(0.27, rel=0.02)
    assert plan.forecast.needed == plan.forecast.labels == 60 + plan.drawn
    assert plan.forecast.half_width <= plan.forecast.uniform < plan.forecast.alone
    assert plan.half_width > 0.27
    assert plan.notes == ["the earlier labels are assumed to be of randomly chosen samples"]
    # The column's labels, then new samples; the probability of a label is at least that of the pilot.
    records = lines(tmp_path / "out.jsonl")
    assert [record["label"] for record in records[:3]] == [1, 2, 3]
    assert min(record["human_weight"] for record in records) > 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "say how many"),
        ({"labels": 121}, "between 1 and 120"),
        ({"width": 0.1}, "needs at least 20 labels"),
        ({"width": 0.001, "human": "rating"}, "cannot be reached"),
        ({"width": 2.0, "human": "rating"}, "no more are needed"),
        ({"labels": 5, "metric": "qualty"}, "qualty"),
        ({"labels": 5, "human": "ratings"}, "no sample has a value in that column"),
    ],
)
def test_bad_settings(run, settings, message):
    with pytest.raises(MultimodalEvalError, match=message):
        plan_labels(run, **settings)


def test_an_existing_file_is_never_replaced(run, tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("labels of a week\n")
    with pytest.raises(ConfigError, match="may have labels"):
        plan_labels(run, labels=5, output=path)
    assert path.read_text() == "labels of a week\n"


def test_a_metric_without_a_judge_is_drawn_uniformly(tmp_path):
    exact = evaluate(samples(), metrics=["exact_match"])
    plan = plan_labels(exact, labels=12, output=tmp_path / "out.jsonl")
    assert plan.notes == ["drawn uniformly: nothing indicates on which samples the judge errs"]
    assert [record["human_weight"] for record in lines(tmp_path / "out.jsonl")] == pytest.approx([0.1] * 12)


def test_seeds(run, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        plan_labels(run, labels=10, seed=seed, output=tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def test_the_command(run, tmp_path):
    shown = mmeval("judge", "plan", str(run.path), "--labels", "30", "-o", str(tmp_path / "out.jsonl")).stdout
    assert "30 samples to label" in shown
    assert "from 20 labels on" in shown
    shown = mmeval("judge", "plan", str(run.path), "--human", "rating", "--width", "0.27").stdout
    assert "quality: 60 of 120 samples labelled" in shown
    assert "without the judge" in shown
    assert "One more label is as good as" in shown
    assert max(len(line) for line in shown.splitlines()) <= 100
    shown = mmeval("judge", "plan", str(run.path), "--labels", "5").stdout
    assert "5 samples would be drawn. Write them into a file with -o FILE" in shown
    content = json.loads(mmeval("judge", "plan", str(run.path), "--labels", "5", "--format", "json").stdout)
    assert (content["drawn"], content["known"]) == (5, 0)
    refused = mmeval("judge", "plan", str(run.path), code=1)
    assert "--labels" in refused.stderr


def test_data_in_the_sample_is_not_copied(tmp_path):
    image = "data:image/png;base64," + "A" * 5000
    content = [Sample(f"s{number}", image=image, generated_answer="a", references=["a"]) for number in range(3)]
    plan_labels(evaluate(content, metrics=["exact_match"]), labels=2, output=tmp_path / "out.jsonl")
    assert lines(tmp_path / "out.jsonl")[0]["image"] == "in the run: see `mmeval view`"
    assert np.isclose(lines(tmp_path / "out.jsonl")[0]["human_weight"], 2 / 3)
