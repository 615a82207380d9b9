"""Human labels in runs: refused early, stored with the results, and never shown to a model."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest

from multimodal_eval import calibrate, evaluate, generate, load_run, rescore, resume
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.analysis.judge_calibration import calibration_of
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import ConfigError, InputError, RunFolderError, UnknownNameError
from multimodal_eval.generate.registry import FunctionGenerator
from multimodal_eval.judges.panel import use_generators
from multimodal_eval.run.calibrate import calibrated_run, differences
from multimodal_eval.run.verify import verify_run
from multimodal_eval.stats.ppi import ppi_mean
from tests.run.labelled_samples import judge_of, judged_samples, text_of

HUMAN = {"exact_match": "rating"}


def arrays(records):
    judge = np.array([float(record["generated_answer"] == "yes") for record in records])
    human = np.array([np.nan if record["rating"] is None else record["rating"] for record in records])
    return judge, human


@pytest.fixture
def run(tmp_path):
    return evaluate(judged_samples(), metrics=["exact_match"], human=HUMAN, output=tmp_path / "run")


def test_the_results_have_the_corrected_score(run):
    judge, human = arrays(judged_samples())
    expected = ppi_mean(judge, human).interval
    corrected = run.calibrated("exact_match")
    assert (corrected.value, corrected.stderr, corrected.low, corrected.high) == pytest.approx(
        (expected.value, expected.stderr, expected.low, expected.high)
    )
    assert (corrected.labels, corrected.column) == (60, "rating")
    assert run["exact_match"]["value"] == pytest.approx(judge.mean())
    assert run["exact_match"]["calibrated"]["method"] == f"{expected.method}, for the mean over the population"
    with pytest.raises(UnknownNameError):
        run.calibrated("bleu")


def test_a_notebook_shows_the_corrected_score(run):
    assert "exact_match, calibrated" in repr(run)
    assert "60 labels" in run._repr_html_()


def test_without_labels_nothing_changes(tmp_path):
    run = evaluate(judged_samples(), metrics=["exact_match"], output=tmp_path / "run")
    assert run.calibrated("exact_match") is None
    assert "calibrated" not in (tmp_path / "run" / "results.json").read_text()
    assert '"human"' not in (tmp_path / "run" / "run.json").read_text()


def test_slices_with_enough_labels_are_corrected(tmp_path):
    records = judged_samples(labels=24)
    for record in records[:12:2]:
        record["rating"] = None
    run = evaluate(records, metrics=["exact_match"], human=HUMAN, by=["kind"])
    slices = run.outcome.slices["kind"]
    assert slices["b"].metrics["exact_match"].calibrated.labels == 12
    assert slices["b"].metrics["exact_match"].calibrated.value is not None
    few = slices["a"].metrics["exact_match"].calibrated
    assert (few.value, few.labels) == (None, 6)
    assert few.method == "no calibrated value: 6 human labels, and 10 are needed"
    assert any("only 18 human labels are used" in note for note in run.outcome.notes)


def test_groups_are_the_clusters(tmp_path):
    records = [{**record, "group": str(number // 4)} for number, record in enumerate(judged_samples())]
    run = evaluate(records, metrics=["exact_match"], human=HUMAN)
    judge, human = arrays(records)
    expected = ppi_mean(judge, human, clusters=np.arange(200) // 4).interval
    assert run.calibrated("exact_match").stderr == pytest.approx(expected.stderr)
    assert "15 labelled clusters" in run.calibrated("exact_match").method


def test_inclusion_probabilities_are_used():
    records = [
        {**record, "human_weight": 0.2 + 0.6 * (number % 2)} if record["rating"] is not None else record
        for number, record in enumerate(judged_samples())
    ]
    run = evaluate(records, metrics=["exact_match"], human=HUMAN)
    judge, human = arrays(records)
    chance = np.array([record.get("human_weight", np.nan) for record in records])
    expected = ppi_mean(judge, human, probability=chance).interval
    assert run.calibrated("exact_match").value == pytest.approx(expected.value)
    del records[3]["human_weight"]
    with pytest.raises(InputError, match="`human_weight` is missing for 1 of 60 labelled samples"):
        evaluate(records, metrics=["exact_match"], human=HUMAN)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"human": "rating"}, "this run has no judge. Name the metric that the labels correct: --human METRIC=rating"),
        ({"human": {"exact_macth": "rating"}}, "does not compute 'exact_macth'. Did you mean 'exact_match'"),
        (
            {"human": {"exact_match": "ratings"}},
            "no sample has a value in that column. Did you mean 'rating'",
        ),
        ({"human": {"bleu": "rating"}, "metrics": ["bleu"]}, "bleu is not a mean over samples"),
        ({"human": {"exact_match": " "}}, "must name a column"),
        ({"human": HUMAN, "strata": {"by": "kind", "weights": {"a": 0.5, "b": 0.5}}}, "exclude each other"),
    ],
)
def test_labels_that_cannot_be_used(settings, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        evaluate(judged_samples(), **({"metrics": ["exact_match"]} | settings), output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_label_outside_the_scale_names_the_sample(tmp_path):
    records = judged_samples()
    records[5]["rating"] = 3
    with pytest.raises(InputError, match=r"the human label 3 is not on the scale of the metric, from 0 to 1.*'s5'"):
        evaluate(records, metrics=["exact_match"], human=HUMAN, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_column_without_labels_is_refused():
    with pytest.raises(ConfigError, match=r"--human rating: no sample has a value in that column. Known: kind"):
        evaluate(judged_samples(labels=0), metrics=["exact_match"], human=HUMAN)
    blank = [{**record, "rating": " "} for record in judged_samples()]
    with pytest.raises(InputError, match="--human rating: none of 200 samples has a label: every value is null"):
        evaluate(blank, metrics=["exact_match"], human=HUMAN)


def test_a_judge_sees_no_label_and_all_judges_are_corrected(tmp_path):
    seen = []

    def score(text):
        seen.append(text)
        return 4 if "yes" in text.split("answer")[-1] else 2

    records = [
        {**record, "rating": None if record["rating"] is None else 4 - 2 * record["rating"] + 0.125}
        for record in judged_samples(60, 40)
    ]
    run = evaluate(
        records, metrics=["helpful"], judges={"helpful": judge_of(score)}, human="rating", output=tmp_path / "run"
    )
    assert run.calibrated("helpful").labels == 40
    assert len(seen) == 60
    assert not any(".125" in text or "rating" in text for text in seen)
    again = rescore(run, {"human": {"helpful": "rating"}})
    assert len(seen) == 60  # the stored verdicts are used
    assert again.calibrated("helpful").value == run.calibrated("helpful").value


def test_win_rates_are_corrected_by_wins_ties_and_losses():
    # The judge prefers the longer answer, and people agree in 30 of 40 labelled pairs; in the others they see a tie.
    def reply(request):
        first, second = (len(text) for text in re.findall(r"<answer-\d \w+>\n(.*?)\n</", text_of(request), re.DOTALL))
        return json.dumps({"verdict": "1" if first > second else "2"})

    use_generators({"test:pairs": FunctionGenerator(reply, "test:pairs")})
    records = [
        {"id": str(n), "question": "?", "generated_answer": "long answer" if n % 2 else "no", "baseline": "middle"}
        | ({"vote": "tie" if n % 4 == 3 else "win" if n % 2 else "Loss"} if n < 40 else {})
        for n in range(100)
    ]
    judge = {"form": "pairwise", "models": [{"model": "test:pairs"}]}
    run = evaluate(records, metrics=["better"], judges={"better": {**judge, "name": "better"}}, human="vote")
    assert run["better"]["value"] == 0.5
    verdicts = np.arange(100) % 2.0
    votes = np.where(np.arange(100) < 40, np.array([0, 1, 0, 0.5])[np.arange(100) % 4], np.nan)
    assert run.calibrated("better").value == pytest.approx(ppi_mean(verdicts, votes).interval.value)
    assert run.calibrated("better").labels == 40


def test_bad_labels_are_refused_before_a_judge_is_asked():
    seen = []
    records = judged_samples(20, 5)
    records[0]["rating"] = 9
    with pytest.raises(InputError, match="from 1 to 5"):
        evaluate(records, metrics=["helpful"], judges={"helpful": judge_of(seen.append)}, human="rating")
    assert not seen


@pytest.mark.parametrize(
    "prompt",
    ["{{ rating }}", "{{ metadata.rating }}", "{{ metadata }}", "{{ metadata | items | list }}"],
)
def test_a_prompt_that_shows_labels_is_refused(prompt, tmp_path):
    asked = []
    generation = {"template": f"{{{{ id }}}} {prompt}"}
    with pytest.raises(ConfigError, match="human labels"):
        evaluate(judged_samples(9, 9), metrics=["exact_match"], human=HUMAN, model=asked.append, generation=generation)
    assert not asked


def test_labels_from_before_the_answers_are_told():
    generation = {"template": "{{ id }} {{ metadata.kind }} rating"}
    run = evaluate(
        judged_samples(40, 35), metrics=["exact_match"], human=HUMAN, model=lambda request: "yes", generation=generation
    )
    assert any("'rating' were in the input, before the answers were generated" in note for note in run.outcome.notes)


def test_verify_recomputes_the_corrected_score(run, tmp_path):
    assert verify_run(tmp_path / "run", deep=True).faults == ()


# after the run


def label_file(path, records, **columns):
    lines = [{"id": r["id"], "label": r["rating"], **columns} for r in records]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def unlabelled(tmp_path):
    return evaluate(judged_samples(), metrics=["exact_match"], output=tmp_path / "first")


def test_a_file_of_labels_corrects_a_finished_run(unlabelled, run, tmp_path):
    path = label_file(tmp_path / "labels.jsonl", judged_samples())
    (result,) = calibrate([unlabelled], path)
    calibration = result.metrics["exact_match"]
    assert calibration.corrected.value == run.calibrated("exact_match").value
    assert (calibration.labels, calibration.samples, calibration.column) == (60, 200, "labels.jsonl")
    new = calibrated_run(unlabelled, path, output=tmp_path / "new")
    path.unlink()  # the content is recorded
    new = load_run(tmp_path / "new")
    assert new.calibrated("exact_match").value == run.calibrated("exact_match").value
    assert new.calibrated("exact_match").column == "human.json"
    assert str(path) not in (tmp_path / "new" / "human.json").read_text()
    assert verify_run(tmp_path / "new", deep=True).faults == ()
    rescored = rescore(new, {"metrics": ["exact_match", "rouge_l"]}, output=tmp_path / "more")
    assert rescored.calibrated("exact_match") == new.calibrated("exact_match")
    assert rescore(new, {"metrics": ["rouge_l"]}).calibrated("rouge_l") is None


def test_a_damaged_file_of_labels_is_refused(unlabelled, tmp_path):
    calibrated_run(unlabelled, label_file(tmp_path / "labels.jsonl", judged_samples()), output=tmp_path / "new")
    stored = tmp_path / "new" / "human.json"
    stored.write_text(stored.read_text().replace('"label": 1', '"label": 0', 1))
    assert [fault.name for fault in verify_run(tmp_path / "new").faults] == ["human.json"]
    with pytest.raises(
        RunFolderError, match=r"mmeval judge calibrate .* --human LABELS --metrics exact_match -o .* --overwrite"
    ):
        calibration_of(load_run(tmp_path / "new"), "exact_match")


def test_a_run_without_its_labels_is_refused(unlabelled, tmp_path):
    calibrated_run(unlabelled, label_file(tmp_path / "labels.jsonl", judged_samples()), output=tmp_path / "new")
    (tmp_path / "new" / "human.json").unlink()
    assert [fault.name for fault in verify_run(tmp_path / "new").faults] == ["human.json"]
    before = (tmp_path / "new" / "results.json").read_bytes()
    with pytest.raises(
        RunFolderError, match=r"human\.json is missing\. Restore it from a copy, or make the"
    ) as refused:
        resume(tmp_path / "new")
    command = str(refused.value).partition("labels: ")[2]  # no run says which file its labels are from
    words = shlex.split(command.replace("LABELS", shlex.quote(str(tmp_path / "labels.jsonl"))))
    cli(words[1:], standalone_mode=False)
    assert verify_run(tmp_path / "new", deep=True).faults == ()
    assert (tmp_path / "new" / "results.json").read_bytes() == before


def test_labels_that_the_earlier_run_has_are_taken_from_it_again(unlabelled, tmp_path):
    calibrated_run(unlabelled, label_file(tmp_path / "labels.jsonl", judged_samples()), output=tmp_path / "new")
    rescore(tmp_path / "new", {"metrics": ["exact_match", "rouge_l"]}, output=tmp_path / "more")
    before = {name: (tmp_path / "more" / name).read_bytes() for name in ("human.json", "results.json")}
    (tmp_path / "more" / "human.json").unlink()
    resume(tmp_path / "more")
    assert {name: (tmp_path / "more" / name).read_bytes() for name in before} == before
    (tmp_path / "more" / "human.json").unlink()
    other = [{**record, "rating": record["rating"] and 0} for record in judged_samples()]
    path = label_file(tmp_path / "other.jsonl", other)
    calibrated_run(unlabelled, path, output=tmp_path / "new", overwrite=True)
    again = resume(tmp_path / "more")
    assert again.calibrated("exact_match").signature == load_run(tmp_path / "new").calibrated("exact_match").signature
    assert verify_run(tmp_path / "more", deep=True).faults == ()


def test_other_labels_change_the_signature_of_the_score(unlabelled, tmp_path):
    records = judged_samples()
    first = calibrated_run(unlabelled, label_file(tmp_path / "labels.jsonl", records))
    again = calibrated_run(unlabelled, label_file(tmp_path / "other.jsonl", records[::-1]))
    assert first.calibrated("exact_match").signature == again.calibrated("exact_match").signature
    records[0]["rating"] = 1 - records[0]["rating"]
    other = calibrated_run(unlabelled, label_file(tmp_path / "labels.jsonl", records))
    assert other.calibrated("exact_match").signature != first.calibrated("exact_match").signature
    assert other.info.signatures == first.info.signatures


def test_the_last_label_of_an_annotator_counts(unlabelled, tmp_path):
    lines = [
        {"id": "s0", "label": 0, "annotator": "ann"},
        {"id": "s0", "label": 1, "annotator": "ann"},
        {"id": "s0", "label": 0, "annotator": "bob"},
        {"id": "s1", "label": 1, "annotator": "bob", "metric": "exact_match"},
        {"id": "s2", "label": 1, "annotator": "bob", "metric": "exact_match"},
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (result,) = calibrate([unlabelled], path)
    assert result.labels["exact_match"].values[:4].tolist()[:3] == [0.5, 1, 1]
    assert result.metrics["exact_match"].labels == 3


def test_labels_of_other_samples_and_runs_are_refused(unlabelled, run, tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": "s0", "label": 1}\n{"id": "t0", "label": 1}\n')
    with pytest.raises(InputError, match=r"labels.jsonl:2: UNMATCHED: the label belongs to no sample.*'t0'"):
        calibrate([unlabelled], path)
    with pytest.raises(ConfigError, match=r"labels.jsonl:1: the label does not say which run its answer is from"):
        calibrate([unlabelled, run], path)
    path.write_text('{"id": "s0", "label": 1, "run": "third"}\n')
    with pytest.raises(UnknownNameError, match="third"):
        calibrate([unlabelled, run], path)
    with pytest.raises(ConfigError, match="does not exist"):
        calibrate([unlabelled], "nowhere.jsonl")


def test_differences_of_runs_are_corrected(tmp_path):
    good, bad = judged_samples(seed=1), judged_samples(seed=2, sensitivity=0.5)
    for record in bad:
        record["rating"] = record["rating"] and int(record["generated_answer"] == "yes")
    runs = [
        evaluate(records, metrics=["exact_match"], human=HUMAN, output=tmp_path / name)
        for name, records in (("good", good), ("bad", bad))
    ]
    (pair,) = compare_runs(runs, rounds=100).numbers[0].pairs
    (first, human_first), (second, human_second) = arrays(good), arrays(bad)
    expected = ppi_mean(second - first, human_second - human_first).interval
    assert (pair.difference, pair.low, pair.high) == pytest.approx(
        (expected.value, expected.low, expected.high), abs=0.02
    )
    assert pair.uncorrected.value == pytest.approx((second - first).mean())
    again = differences(calibrate(runs, "rating"))[0].difference
    assert (again.value, again.stderr) == (pair.difference, pair.stderr)
    content = compare_runs(runs, rounds=100).to_dict()["numbers"][0]
    assert content["pairs"][0]["uncorrected"]["value"] == pair.uncorrected.value
    assert [system["labels"] for system in content["systems"]] == [60, 60]
    corrected, raw = (run["exact_match"]["calibrated"]["value"] for run in runs), (first.mean(), second.mean())
    assert [system["value"] for system in content["systems"]] == list(corrected)
    assert [system["uncorrected"]["value"] for system in content["systems"]] == pytest.approx(raw)


def test_labels_of_one_run_do_not_correct_a_comparison(unlabelled, run):
    content = compare_runs([unlabelled, run], rounds=100).to_dict()["numbers"][0]
    assert not any("uncorrected" in record for record in (*content["pairs"], *content["systems"]))
    assert content["remark"].startswith("no human labels in ")
    assert content["systems"][1]["value"] == run["exact_match"]["value"]


def test_answers_that_were_generated_first_are_corrected(tmp_path):
    records = [{key: r[key] for key in ("id", "references", "kind", "rating")} for r in judged_samples(50, 40)]
    prompt = {"template": "{{ id }}"}
    generated = generate(records, model=lambda request: "yes", generation=prompt, output=tmp_path / "run")
    run = generated.score(config={"metrics": ["exact_match"], "human": HUMAN})
    assert run.calibrated("exact_match").labels == 40
