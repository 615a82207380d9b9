"""A run end to end: what it stores, what it says, and that interruptions and sharding change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import multimodal_eval
from multimodal_eval import Sample, evaluate, load_run, metric, rescore, resume
from multimodal_eval.core.errors import ConfigError, RunFolderError, UnavailableError
from multimodal_eval.core.registry import registered
from multimodal_eval.run import plan as planning
from multimodal_eval.run.engine.executor import Inline
from multimodal_eval.run.sums import TreeSum
from tests.run.fuse import Fuse, StoppedError

PLUGIN = str(Path(__file__).with_name("plugin.py"))
METRICS = ["cider", "rarity", "corpus_precision"]


def samples(count=50):
    nouns = ["dog", "cat", "bird", "horse"]
    return [
        Sample(
            id=f"s{number}",
            references=[f"a {nouns[number % 4]} runs on the street {number}", f"the {nouns[number % 3]}"],
            generated_answer=" ".join([f"a {nouns[number % 3]} runs"] * (1 + number % 3) + ["fast"] * (number % 2))
            if number % 7
            else None,
            group=f"g{number // 2}",
            metadata={"system": "x" if number % 2 else "y"},
        )
        for number in range(count)
    ]


def test_the_folder_holds_everything(tmp_path):
    run = evaluate(samples(), metrics=METRICS, plugins=[PLUGIN], output=tmp_path / "run", seed=3)
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    assert info["state"] == "done"
    assert info["seed"] == 3
    assert info["counts"]["samples"] == 50
    assert set(info["signatures"]) == set(METRICS)
    assert info["versions"]["multimodal_eval"] == multimodal_eval.__version__
    assert json.loads((tmp_path / "run" / "results.json").read_text()) == run.results
    assert list(run.samples()) == samples()
    table = run.scores()
    assert table.column("id").to_pylist() == [sample.id for sample in samples()]
    assert table.column("cider:status").to_pylist()[0] == "missing_input"
    assert table.column("corpus_precision:stats").to_pylist()[1] == [6.0, 7.0]


def test_a_file_leaves_its_checksum(tmp_path):
    from hashlib import sha256

    data = tmp_path / "data.jsonl"
    data.write_text('{"id": "a", "generated_answer": "x y"}\n{"id": "b", "generated_answer": "x"}\n')
    run = evaluate(data, metrics=["rarity"], plugins=[PLUGIN])
    (source,) = run.info["input"]
    assert source["sha256"] == sha256(data.read_bytes()).hexdigest()


@pytest.mark.parametrize("size", [1, 7, 49, 50, 1000])
def test_parts_of_any_size_give_the_same_results(monkeypatch, size):
    whole = evaluate(samples(), metrics=METRICS, plugins=[PLUGIN], by=["system"])
    monkeypatch.setattr(planning, "PART_SIZE", size)
    parts = evaluate(samples(), metrics=METRICS, plugins=[PLUGIN], by=["system"])
    assert len(parts.info["parts"]) == -(-50 // size)
    assert parts.results == whole.results
    assert parts.scores().equals(whole.scores()) or parts.scores().to_pylist() == whole.scores().to_pylist()


def test_an_aggregate_that_is_no_mean(tmp_path):
    run = evaluate(samples(), metrics=["corpus_precision"], plugins=[PLUGIN], by=["system"])
    rows = [row for row in run.scores().to_pylist() if row["corpus_precision"] is not None]
    hits, words = np.array([row["corpus_precision:stats"] for row in rows]).T
    entry = run["corpus_precision"]
    assert entry["value"] == hits.sum() / words.sum()
    assert entry["value"] != np.mean([row["corpus_precision"] for row in rows])
    # Ratio estimator by hand: psi_i = n (h_i - R w_i) / sum w, clustered by g with C / (C - 1).
    psi = len(rows) * (hits - entry["value"] * words) / words.sum()
    groups = [row["group"] for row in rows]
    sums = np.array([psi[[g == name for g in groups]].sum() for name in sorted(set(groups))])
    clusters = len(sums)
    assert entry["stderr"] == pytest.approx(np.sqrt(clusters / (clusters - 1) * (sums**2).sum()) / len(rows))
    of_x = [row for row in rows if int(row["id"][1:]) % 2]
    x_hits, x_words = np.array([row["corpus_precision:stats"] for row in of_x]).sum(axis=0)
    assert run.results["slices"]["system"]["x"]["metrics"]["corpus_precision"]["value"] == x_hits / x_words


def test_slices_are_runs_over_their_rows():
    run = evaluate(samples(), metrics=["rarity"], plugins=[PLUGIN], by=["system", "group"])
    values = {row["id"]: row["rarity"] for row in run.scores().to_pylist()}
    of_x = [value for key, value in values.items() if int(key[1:]) % 2 and value is not None]
    entry = run.results["slices"]["system"]["x"]
    assert entry["n"] == 25
    assert entry["metrics"]["rarity"]["value"] == pytest.approx(np.mean(of_x), rel=1e-14)
    assert len(run.results["slices"]["group"]) == 25
    with pytest.raises(ConfigError, match="no sample has that column"):
        evaluate(samples(), metrics=["cider"], by=["sytem"])


def test_groups_are_clusters():
    run = evaluate(samples(), metrics=["rarity"], plugins=[PLUGIN])
    assert run["rarity"]["method"] == "95% t interval, 25 clusters"


def test_a_run_without_output_lives_as_long_as_its_object(tmp_path):
    import gc

    run = evaluate(samples(), metrics=["cider"])
    path = run.path
    kept = run.save(tmp_path / "kept")
    assert path.exists()
    del run
    gc.collect()
    assert not path.exists()
    assert load_run(tmp_path / "kept").results == kept.results
    assert kept.is_kept


def test_data_frames():
    run = evaluate(samples(), metrics=["cider"])
    assert run.to_pandas()["cider"].isna().sum() == 8
    assert run.to_polars()["cider"].null_count() == 8


def test_an_existing_folder_is_never_written_over(tmp_path):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    before = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(RunFolderError, match="exists already"):
        evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_folders_that_cannot_be_read(tmp_path):
    with pytest.raises(RunFolderError, match=r"no run\.json"):
        load_run(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunFolderError, match="cannot be read"):
        load_run(tmp_path)
    (tmp_path / "run.json").write_text('{"format": 99}')
    with pytest.raises(RunFolderError, match="format 99"):
        load_run(tmp_path)


@pytest.fixture
def composite_metrics():
    for name in ("clip_score", "semantic_similarity"):  # stand-ins that need no model
        del registered[name]

    @metric("clip_score", needs=("generated_answer",), bounds=(0, 1), version="1")
    def clip_score(sample):
        return len(sample.generated_answer) / 100

    @metric("semantic_similarity", needs=("generated_answer",), bounds=(0, 1), version="1")
    def semantic_similarity(sample):
        return 0.5


def test_the_composite_is_averaged_after_it_is_made(composite_metrics):
    run = evaluate(samples(), task="captioning")
    rows = [row for row in run.scores().to_pylist() if row["composite_score"] is not None]
    expected = [0.25 * row["clip_score"] + 0.5 * row["semantic_similarity"] + 0.25 * row["cider"] for row in rows]
    assert [row["composite_score"] for row in rows] == pytest.approx(expected, abs=1e-15)
    entry = run["composite"]
    assert entry["value"] == pytest.approx(np.mean(expected), abs=1e-15)
    assert (entry["n_scored"], entry["n_total"]) == (42, 50)
    assert "weights:0.25*clip_score+0.5*semantic_similarity+0.25*cider" in entry["signature"]
    assert "min(cider/1,1) a sample" in entry["signature"]


def test_a_missing_part_may_be_left_out_openly(composite_metrics):
    run = evaluate(samples(), task="captioning", metrics=["cider"], tasks={"captioning": {"on_missing": "renormalise"}})
    assert run["composite"]["value"] == pytest.approx(run["cider"]["value"])
    assert "on_missing:renormalise" in run["composite"]["signature"]


def test_unavailable_metrics_stop_the_run_before_it_reads_anything(tmp_path):
    with pytest.raises(UnavailableError) as refused:
        evaluate(samples(), task="captioning", output=tmp_path / "run")
    assert "--metrics cider" in str(refused.value)
    assert "--skip-unavailable" in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_unavailable_metrics_can_be_left_unscored():
    run = evaluate(samples(), task="captioning", skip_unavailable=True)
    assert run["clip_score"]["value"] is None
    assert (run["clip_score"]["n_scored"], run["clip_score"]["n_total"]) == (0, 50)
    assert run["composite"]["value"] is None
    assert run["composite"]["unscored"] == {"missing_input": 50}


def test_rescoring_computes_only_what_is_new(tmp_path):
    calls = []

    @metric("costly", bounds=(0, 1), version="1")
    def costly(sample):
        calls.append(sample.id)
        return 0.25

    @metric("other", bounds=(0, 1), version="1")
    def other(sample):
        return 0.75

    first = evaluate(samples(), task="mine", tasks={"mine": {"weights": {"costly": 1.0}}}, output=tmp_path / "first")
    assert len(calls) == 50
    weights = {"mine": {"metrics": ["costly", "other"], "weights": {"costly": 0.5, "other": 0.5}}}
    second = rescore(first, {"tasks": weights}, output=tmp_path / "second")
    assert len(calls) == 50
    assert first["composite"]["value"] == 0.25
    assert second["composite"]["value"] == 0.5
    assert second.info["rescored_from"] == str((tmp_path / "first").resolve())
    assert list(second.samples()) == samples()


def test_rescoring_with_another_option_computes_again():
    first = evaluate(samples(), metrics=["cider"])
    second = rescore(first, {"metrics": ["cider"], "options": {"cider": {"df": "coco-val2014"}}})
    same = rescore(first, {"metrics": ["cider"]})
    assert same["cider"] == first["cider"]
    assert second["cider"]["signature"] != first["cider"]["signature"]
    assert second["cider"]["value"] != first["cider"]["value"]


@pytest.mark.parametrize("burning", range(10))
def test_a_run_stopped_anywhere_resumes_to_the_same_bytes(tmp_path, monkeypatch, burning):
    monkeypatch.setattr(planning, "PART_SIZE", 13)  # 4 parts to fit, 1 bucket to merge, 4 parts to score
    data = tmp_path / "data.jsonl"
    data.write_text(
        "".join(
            json.dumps({"id": s.id, "references": s.references, "prediction": s.generated_answer}) + "\n"
            for s in samples()
        )
    )
    whole = evaluate(data, metrics=METRICS, plugins=[PLUGIN], output=tmp_path / "whole")
    with monkeypatch.context() as patched:
        fuse = Fuse(burning if burning < 5 else burning - 5)
        patched.setattr("multimodal_eval.run.engine.base.Local", lambda workers: fuse)
        if burning >= 5:  # let fitting through, break while scoring
            original = multimodal_eval.run.execute.fit  # type: ignore[attr-defined]
            patched.setattr(
                "multimodal_eval.run.execute.fit",
                lambda worker, info, executor, progress: original(worker, info, Inline(), progress),
            )
        if burning < 9:
            with pytest.raises(StoppedError):
                evaluate(data, metrics=METRICS, plugins=[PLUGIN], output=tmp_path / "broken")
        else:
            evaluate(data, metrics=METRICS, plugins=[PLUGIN], output=tmp_path / "broken")
    resumed = resume(tmp_path / "broken")
    assert (tmp_path / "broken" / "results.json").read_bytes() == (tmp_path / "whole" / "results.json").read_bytes()
    for kind in ("samples", "scores"):
        for part in range(4):
            assert resumed.folder.part(kind, part).read_bytes() == whole.folder.part(kind, part).read_bytes()


def test_resuming_with_another_metric_behind_the_name_is_refused(tmp_path):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    info["state"] = "scoring"
    info["signatures"]["cider"]["text"] += "|older"
    (tmp_path / "run" / "run.json").write_text(json.dumps(info))
    with pytest.raises(RunFolderError, match="older"):
        resume(tmp_path / "run")


def test_samples_in_memory_cannot_be_read_again(tmp_path):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**info, "state": "reading"}))
    with pytest.raises(RunFolderError, match="start it again"):
        resume(tmp_path / "run")


def test_a_resumed_run_that_was_done_is_left_alone(tmp_path):
    evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    before = (tmp_path / "run" / "run.json").read_bytes()
    resume(tmp_path / "run")
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def tree_sum(states):
    total = TreeSum()
    for state in states:
        total.add(state)
    return total.value


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 100])
def test_the_tree_adds_in_order(count):
    assert tree_sum([f"{number}." for number in range(count)]) == "".join(f"{number}." for number in range(count))


def test_neighbours_are_added_first():
    class Shape:
        def __init__(self, text):
            self.text = text

        def __add__(self, other):
            return Shape(f"({self.text}{other.text})")

    assert tree_sum([Shape(str(number)) for number in range(7)]).text == "(((01)(23))((45)6))"


def test_nothing_adds_up_to_none():
    assert tree_sum([]) is None


def test_an_unfit_part_of_a_composite_is_refused():
    @metric("long", bounds=(0, 10))
    def long(sample):
        return 5.0

    @metric("lower", bounds=(0, 1), direction="lower")
    def lower(sample):
        return 0.5

    with pytest.raises(ConfigError, match="maximum"):
        evaluate(samples(), task="mine", tasks={"mine": {"weights": {"long": 1.0}}})
    with pytest.raises(ConfigError, match="better when lower"):
        evaluate(samples(), task="mine", tasks={"mine": {"weights": {"lower": 1.0}}})
    run = evaluate(samples(), task="mine", tasks={"mine": {"weights": {"long": 1.0}, "maximum": {"long": 10}}})
    assert run["composite"]["value"] == 0.5


def test_options_for_a_metric_that_does_not_run_are_refused():
    with pytest.raises(ConfigError, match="does not compute"):
        evaluate(samples(), metrics=["cider"], options={"clip_score": {}})


def test_unknown_settings_of_evaluate_are_refused():
    with pytest.raises(ConfigError, match="Did you mean 'limit'"):
        evaluate(samples(), metrics=["cider"], limits=3)


def test_neither_task_nor_metrics():
    with pytest.raises(ConfigError, match="name a task"):
        evaluate(samples())


def stats_metric(name, rows):
    by_id = dict(rows)

    def first_sum(found):
        from multimodal_eval.stats.estimates import function_of_sums

        return function_of_sums(found, lambda sums: sums[0] / sums[1], lambda sums: np.array([1 / sums[1], 0.0]))

    metric(name, aggregate=first_sum)(lambda sample: by_id[sample.id])
    return evaluate([Sample(id=key) for key in by_id], metrics=[name])


def test_statistics_of_unscored_rows_do_not_count():
    from multimodal_eval import Score

    rows = [("a", Score(0.5, stats=(1, 2))), ("b", Score(0.5, stats=(1, 2)))]
    run = stats_metric("m", [*rows, ("c", Score(None, "degenerate", "x", stats=(100, 1)))])
    assert run["m"]["value"] == 0.5


def test_bad_statistics_are_refused():
    from multimodal_eval import Score
    from multimodal_eval.core.errors import InputError

    run = stats_metric("m", [("a", Score(0.5, stats=(1, 2))), ("b", Score(0.5, stats=(float("nan"), 2)))])
    assert run["m"]["unscored"] == {"error": 1}
    with pytest.raises(InputError, match="LENGTH"):
        stats_metric("n", [("a", Score(0.5, stats=(1, 2))), ("b", Score(0.5, stats=(1, 2, 3)))])
    with pytest.raises(InputError, match="LENGTH"):
        stats_metric("o", [("a", Score(0.5, stats=(1, 2))), ("b", Score(0.5))])


def test_rescoring_keeps_the_error_patterns():
    data = [Sample(id=str(i), references=[f"a {i}"], generated_answer="OOPS" if i == 0 else f"a {i}") for i in range(3)]
    first = evaluate(data, metrics=["cider"], error_patterns=["OOPS"], by=[])
    assert first["cider"]["n_scored"] == 2
    assert first["cider"]["signature"].endswith("|errors:OOPS")
    again = rescore(first, {"by": ["id"]})
    assert again["cider"] == first["cider"]
    other = rescore(first, {"error_patterns": []})
    assert other["cider"]["n_scored"] == 3
    assert other["cider"]["signature"].endswith("|errors:none")


def test_an_interrupted_rescore_resumes_with_the_stored_samples(tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text(
        "".join(json.dumps({"id": str(i), "references": [f"a {i}"], "prediction": "a"}) + "\n" for i in range(30))
    )
    first = evaluate(data, metrics=["cider"], limit=10, output=tmp_path / "first")
    whole = rescore(first, {"by": ["id"]}, output=tmp_path / "whole")
    rescore(first, {"by": ["id"]}, output=tmp_path / "broken")
    info = json.loads((tmp_path / "broken" / "run.json").read_text())
    (tmp_path / "broken" / "run.json").write_text(json.dumps({**info, "state": "reading"}))
    (tmp_path / "broken" / "results.json").unlink()
    (tmp_path / "broken" / "scores" / "part-00000.parquet").unlink()
    data.unlink()
    assert resume(tmp_path / "broken").results == whole.results
    assert len(whole) == 10


EDITED = """
from multimodal_eval import metric
@metric("edited", needs=("generated_answer",))
def edited(sample):
    return 1.0
@metric("gone", needs=("generated_answer",), version="1")
def gone(sample):
    return 2.0
"""


@pytest.fixture
def broken_rescore(tmp_path, monkeypatch):
    """A rescore that stopped half-way: the scores of `gone` are taken over, those of `edited` are new."""
    monkeypatch.setattr(planning, "PART_SIZE", 7)
    plugin = tmp_path / "plugin.py"
    plugin.write_text(EDITED)
    first = evaluate(samples(), metrics=["gone"], plugins=[str(plugin)], output=tmp_path / "first")

    def stop(stage, done, total):
        if stage == "scoring" and done > 20:
            raise StoppedError

    with pytest.raises(StoppedError):
        rescore(first, {"metrics": ["gone", "edited"]}, output=tmp_path / "run", workers=1, progress=stop)
    return tmp_path / "run", plugin


def test_a_broken_rescore_is_not_continued_with_another_metric_and_stays(broken_rescore):
    folder, plugin = broken_rescore
    scored = sorted((folder / "scores").iterdir())
    assert 0 < len(scored) < 8
    plugin.write_text(plugin.read_text().replace("1.0", "3.0"))
    with pytest.raises(RunFolderError, match="was begun with edited"):
        resume(folder)
    assert sorted((folder / "scores").iterdir()) == scored
    plugin.write_text(plugin.read_text().replace("3.0", "1.0"))
    assert resume(folder)["edited"]["value"] == 1.0


def test_a_broken_rescore_goes_on_without_the_model_of_what_it_takes_over(broken_rescore):
    folder, plugin = broken_rescore
    plugin.write_text(EDITED + 'gone.unavailable = lambda: "no model"\n')
    assert resume(folder, plugins=[plugin])["gone"]["value"] == 2.0


def test_a_state_of_plain_values_is_the_same_for_every_worker(tmp_path, monkeypatch):
    """It is kept as plain values, so that what was fitted is a `dict` after a resume: then it is one from the start."""
    from collections import Counter

    monkeypatch.setattr(planning, "PART_SIZE", 7)
    seen = set()

    def count(found):
        return Counter(word for sample in found for word in (sample.generated_answer or "").split())

    @metric("counting", needs=("generated_answer",), version="1", corpus=count)
    def counting(sample, corpus=None):
        seen.add(type(corpus))
        return 1.0

    evaluate(samples(), metrics=["counting"], workers=1)
    assert seen == {dict}


def test_rescoring_refuses_what_it_cannot_do():
    first = evaluate(samples(), metrics=["cider"])
    with pytest.raises(ConfigError, match="rescoring reads none"):
        rescore(first, {"limit": 3})
    with pytest.raises(ConfigError, match="no sample has that column"):
        rescore(first, {"by": ["nosuch"]})


def test_too_many_slices_are_refused_before_scoring(tmp_path):
    many = [Sample(id=str(i), references=[f"a {i}"], generated_answer="a") for i in range(201)]
    with pytest.raises(ConfigError, match="more than 200"):
        evaluate(many, metrics=["cider"], by=["id"], output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_part_outside_0_and_1_leaves_the_composite_unscored():
    metric("wild")(lambda sample: 2.5)
    run = evaluate(samples(), task="mine", tasks={"mine": {"weights": {"wild": 1.0}}})
    assert run["wild"]["value"] == 2.5
    assert run["composite"]["unscored"] == {"error": 50}
    metric("signed", bounds=(-1, 1))(lambda sample: -0.5)
    with pytest.raises(ConfigError, match="from 0"):
        evaluate(samples(), task="mine", tasks={"mine": {"weights": {"signed": 1.0}}})


def test_weights_replace_a_headline_and_exclude_one():
    run = evaluate(
        samples(), task="hallucination", tasks={"hallucination": {"metrics": ["cider"], "weights": {"cider": 1}}}
    )
    assert run["composite"]["value"] == run["cider"]["value"]
    with pytest.raises(ConfigError, match="one of them"):
        evaluate(samples(), task="x", tasks={"x": {"headline": "cider", "weights": {"cider": 1}}})


def test_every_task_of_a_configuration_is_looked_at():
    with pytest.raises(ConfigError, match="WEIGHTS"):
        evaluate(samples(), metrics=["cider"], tasks={"other": {"weights": {"cider": 9}}})


def test_mistakes_in_settings_are_no_sample_errors():
    with pytest.raises(ConfigError, match="regular expression"):
        evaluate(samples(), metrics=["cider"], error_patterns=["("])
    with pytest.raises(ConfigError, match=r"`tokenizer` of cider must be one of ptb, .*Got 'ptbb' instead"):
        evaluate(samples(), metrics=["cider"], options={"cider": {"df": "coco-val2014", "tokenizer": "ptbb"}})


def test_rebound_task_metrics_reach_runs(monkeypatch):
    from multimodal_eval.evaluation import metrics_registry

    monkeypatch.setattr(metrics_registry, "TASK_METRICS", {"captioning": ["cider"], "brand_new": ["cider"]})
    assert evaluate(samples(), task="brand_new").metrics == ["cider"]
    assert evaluate(samples(), task="captioning").metrics == ["cider"]


@pytest.mark.parametrize("name", ["id", "row", "group", "composite_score", "a.b", "a:b", "a/b", ""])
def test_names_that_a_run_could_not_store_are_refused(name):
    with pytest.raises(ConfigError, match="cannot name a metric"):
        metric(name)(lambda sample: 0.5)


def test_one_metric_may_be_named_as_text():
    assert evaluate(samples(), metrics="cider").metrics == ["cider"]


def test_an_edited_plugin_replaces_its_metrics(tmp_path):
    plugin = tmp_path / "mine.py"
    for value in (1.0, 2.0):
        plugin.write_text(
            f"from multimodal_eval import metric\n@metric('edited')\ndef edited(sample):\n    return {value}\n"
        )
        assert evaluate(samples(), metrics=["edited"], plugins=[str(plugin)])["edited"]["value"] == value


def test_a_run_that_is_being_worked_on_is_left_alone(tmp_path):
    run = evaluate(samples(), metrics=["cider"], output=tmp_path / "run")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**info, "state": "scoring"}))
    with run.folder.locked(), pytest.raises(RunFolderError, match="another process"):
        resume(tmp_path / "run")
    resume(tmp_path / "run")
