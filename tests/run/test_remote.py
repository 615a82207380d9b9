"""Runs at a URL give the same results as on a disk when scored, resumed, rescored, compared, listed and saved."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from click.testing import CliRunner

from multimodal_eval import Sample, evaluate, load_run, rescore, resume
from multimodal_eval.analysis.compare import compare_runs
from multimodal_eval.analysis.composite import sensitivity
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import InputError, RunFolderError
from multimodal_eval.data.runs.storage import storage_at
from multimodal_eval.run.meta import Request, meta_evaluate
from tests.parts import set_part_size
from tests.run.stopping_executor import StoppedError, stopping

PLUGIN = str(Path(__file__).with_name("plugin.py"))
METRICS = ["cider", "rarity", "corpus_precision"]
SETTINGS = {"metrics": METRICS, "plugins": [PLUGIN], "by": ["system"]}


def records(answer="a dog runs fast"):
    return [
        {
            "id": f"s{number}",
            "references": [f"a dog number {number} runs", "the cat"],
            "generated_answer": " ".join(answer.split()[: 1 + number % 4]),
            "group": f"g{number // 2}",
            "system": "xy"[number % 2],
        }
        for number in range(50)
    ]


@pytest.fixture
def data(tmp_path, monkeypatch):
    set_part_size(monkeypatch, 13)  # 4 parts
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in records()))
    return path


@pytest.fixture
def base():
    return f"memory://{uuid4().hex}"


def content(location):
    """Every file of a run folder except run.json, which has times and paths."""
    storage = storage_at(location)
    return {name: storage.read_bytes(name) for name in storage.files() if name != "run.json"}


def test_a_run_at_a_url_equals_the_local_run(data, tmp_path, base):
    local = evaluate(data, **SETTINGS, output=tmp_path / "run")
    remote = evaluate(data, **SETTINGS, output=f"{base}/run/")
    assert content(f"{base}/run") == content(tmp_path / "run")
    assert len(content(tmp_path / "run")) == 3 + 2 * 4 + 2  # results, manifest and lint, parts, two states
    opened = load_run(f"{base}/run")
    assert opened.results == remote.results == local.results
    assert opened.scores().equals(local.scores())
    assert list(opened.samples()) == list(local.samples())
    assert opened.lint() == local.lint()
    assert (opened.location, repr(opened)) == (f"{base}/run", repr(local).replace(str(tmp_path), base))
    assert opened.write_jsonl() == f"{base}/run/scores.jsonl"
    assert opened.folder.storage.read_bytes("scores.jsonl") == Path(local.write_jsonl()).read_bytes()
    with pytest.raises(RunFolderError, match=f"already exists.*--resume {base}/run"):
        evaluate(data, **SETTINGS, output=f"{base}/run")


def test_a_refused_input_leaves_no_files(base):
    with pytest.raises(InputError):
        evaluate([Sample(id="1"), Sample(id="1")], metrics=["cider"], output=f"{base}/run")
    assert storage_at(base).names() == []


@pytest.mark.parametrize("burning", range(9))  # 4 parts to fit, 1 bucket to merge, 4 parts to score
def test_a_run_stopped_anywhere_resumes_to_the_same_bytes(data, base, burning):
    evaluate(data, **SETTINGS, output=f"{base}/whole")
    with pytest.raises(StoppedError):
        evaluate(data, **SETTINGS, output=f"{base}/broken", engine=stopping(burning))
    storage = storage_at(f"{base}/broken")
    assert len(storage.names("scores")) == max(0, burning - 5)
    storage.write("scratch/state", lambda path: path.write_bytes(b"of the stopped run"))
    storage.write("results.json.0123.partial", lambda path: path.write_bytes(b"{"))
    with pytest.raises(RunFolderError, match=f"--resume {base}/broken"):
        load_run(f"{base}/broken")
    assert resume(f"{base}/broken").info.state == "done"
    assert content(f"{base}/broken") == content(f"{base}/whole")


@pytest.mark.parametrize(
    "names", [("first", "second"), ("memory", "second"), ("first", "memory"), ("memory", "memory")]
)
def test_rescoring_reuses_stored_scores(data, tmp_path, base, names):
    old, new = (f"{base}/{number}" if name == "memory" else tmp_path / name for number, name in enumerate(names))
    first = evaluate(data, **SETTINGS, output=old)
    again = rescore(old, {"metrics": ["cider", "rouge_l"]}, output=new)
    assert again["cider"] == first["cider"]
    assert again["rouge_l"] == evaluate(data, metrics=["rouge_l"])["rouge_l"]
    assert again.info.rescored_from == str(old)
    info = again.folder.read_info()
    again.folder.write_info(msgspec.structs.replace(info, state="reading", finished=None, signatures={}))
    for name in ("results.json", "scores"):
        again.folder.storage.remove(name)
    assert resume(new).results == again.results


def test_a_local_and_a_remote_run_are_compared(data, tmp_path, base):
    weights = {"mine": {"metrics": ["cider", "rouge_l"], "weights": {"cider": 0.5, "rouge_l": 0.5}}}
    evaluate(records(), task="mine", tasks=weights, output=tmp_path / "first")
    runs = [evaluate(records("a cat"), task="mine", tasks=weights, output=p) for p in (f"{base}/b", tmp_path / "b")]
    mixed = compare_runs([tmp_path / "first", f"{base}/b"], rounds=200)
    assert mixed == compare_runs([tmp_path / "first", runs[1]], rounds=200)
    assert mixed.runs == ("first", "b")
    named = compare_runs([tmp_path / "first", runs[0]], rounds=200, baseline=f"{base}/b/")
    assert [(pair.first, pair.second) for pair in named.numbers[0].pairs] == [("b", "first")]
    same_names = compare_runs(runs, rounds=200)
    assert same_names.runs == (f"{base}/b", str(tmp_path / "b"))
    assert sensitivity([f"{base}/b"], draws=100).runs[0].value == sensitivity([runs[1]], draws=100).runs[0].value


def test_runs_are_saved_from_and_to_urls(data, tmp_path, base):
    run = evaluate(data, **SETTINGS)
    there = run.save(f"{base}/kept")
    back = there.save(tmp_path / "back")
    assert content(f"{base}/kept") == content(tmp_path / "back") == content(run.path)
    assert back.results == run.results
    for location in (f"{base}/kept", tmp_path / "back"):
        with pytest.raises(RunFolderError, match="already exists"):
            there.save(location)


def mmeval(*arguments):
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_line_accepts_urls(data, tmp_path, base):
    scored = json.loads(mmeval("score", data, "--metrics", "cider", "-o", f"{base}/a", "--format", "json"))
    assert scored["run"] == f"{base}/a"
    assert json.loads(mmeval("score", "--resume", f"{base}/a", "--format", "json")) == scored
    assert f"run folder: {base}/a" in mmeval("score", "--resume", f"{base}/a")
    assert json.loads(mmeval("lint", f"{base}/a", "--format", "json"))["n"] == 50
    (tmp_path / "new.yaml").write_text("metrics: [cider, rouge_l]\n")
    mmeval("rescore", f"{base}/a", "--config", tmp_path / "new.yaml", "-o", f"{base}/b")
    mmeval("score", data, "--metrics", "cider", "-o", tmp_path / "c")
    compared = json.loads(mmeval("compare", f"{base}/a", f"{base}/b", tmp_path / "c", "--format", "json"))
    assert compared["runs"] == ["a", "b", "c"]
    listed = mmeval("ls", "runs", base)
    assert [word for word in listed.split() if word in ("a", "b")] == ["a", "b"]


def test_a_file_url_is_a_local_folder(data, tmp_path):
    """In a separate process, as a user calls it, and without fsspec, which a local folder does not need."""
    program = (
        "import sys; sys.modules['fsspec'] = None; sys.argv[0] = 'mmeval'; "
        "from multimodal_eval.cli.main import main; main()"
    )
    url = f"file://{tmp_path}/a%20run"
    for arguments in (["score", str(data), "--metrics", "cider", "-o", url], ["score", "--resume", url], ["lint", url]):
        done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert load_run(tmp_path / "a run").metrics == ["cider"]
    assert load_run(url).path == tmp_path / "a run"


def test_a_leaderboard_can_be_at_a_url(data, tmp_path, base):
    (tmp_path / "answers").mkdir()
    for name in ("good", "bad"):
        rows = [{"id": row["id"], "generated_answer": row["generated_answer"]} for row in records(f"a dog {name}")]
        (tmp_path / "answers" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    gold = [{"id": row["id"], "references": row["references"]} for row in records()]
    data.write_text("".join(json.dumps(row) + "\n" for row in gold))
    options = ["--metrics", "rouge_l", "--workers", "1", "--format", "json"]
    boards = [
        json.loads(mmeval("leaderboard", data, tmp_path / "answers", *options, "-o", place))
        for place in (f"{base}/board", tmp_path / "board")
    ]
    assert boards[0].pop("runs") == f"{base}/board"
    assert boards[1].pop("runs") == str(tmp_path / "board")
    assert boards[0] == boards[1]
    assert storage_at(f"{base}/board").names() == ["bad", "good", "leaderboard.json"]


def test_meta_evaluation_of_a_run_at_a_url(base):
    rows = [{**row, "judged": number % 5} for number, row in enumerate(records())]
    here, there = (evaluate(rows, metrics=["rouge_l"], output=place) for place in (None, f"{base}/run"))
    request = Request(human=("judged",))
    assert meta_evaluate(there.location, request) == meta_evaluate(here.location, request)
