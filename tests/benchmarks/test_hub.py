"""Data of recipes from a hub on this machine: fetched, continued, refused, checked, and run."""

from __future__ import annotations

import json

import pytest
from huggingface_hub import constants

from multimodal_eval.benchmarks.recipes import recipe, recipe_names
from multimodal_eval.benchmarks.sample import write_sample
from multimodal_eval.benchmarks.task_format import TaskData
from multimodal_eval.data.runs.run import Run
from multimodal_eval.run.recipe_checks import goldens_of, sample_of
from tests.benchmarks.hub_server import COMMIT, TOKEN, Dataset, serving
from tests.captured_call import captured_call

BLINK = "BLINK-Benchmark/BLINK"
WITH_FILES = ("mvbench",)  # whose media are files, which a sample does not have
SHARD = "sample/val-00000-of-00001.parquet"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with the data of BLINK, and an empty home."""
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "hf" / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    with serving({BLINK: Dataset.of(recipe("blink-val"), tmp_path / "source")}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        yield server


def called(*words):
    call = captured_call(*words)
    return call.status, call.out.decode(), call.err.decode()


def place(tmp_path):
    return tmp_path / "home" / "benchmarks" / "BLINK-Benchmark--BLINK" / COMMIT


def test_the_licence_is_shown_before_the_data_are_fetched_once(hub, tmp_path):
    status, out, err = called("fetch", "blink-val")
    assert (status, out) == (0, f"blink-val: fetched, {place(tmp_path)}\n")
    assert err.startswith(f"blink-val: 1 file, 0.0 MB, {BLINK}@{COMMIT[:12]}. Licence: Apache-2.0")
    assert not (place(tmp_path) / "README.md").exists()  # only what the recipe reads
    transfers = [path for method, path, _ in hub.asked if method == "GET" and "/resolve/" in path]
    assert called("fetch", "blink-val")[1].endswith(f"already here, {place(tmp_path)}\n")
    assert [path for method, path, _ in hub.asked if method == "GET" and "/resolve/" in path] == transfers
    assert called("fetch", "blink-val", "--verify")[:2] == (0, "blink-val: intact\n")


def test_the_commit_is_in_the_run(hub, tmp_path):
    called("fetch", "blink-val")
    (tmp_path / "answers.json").write_text(json.dumps({row.id: "(B)" for row in sample_of(recipe("blink-val"))[1]}))
    status, _, err = called(
        *("run", "blink-val", "--model", "script:answers.json", "--allow-partial", "--no-report", "-o", "run")
    )
    assert status == 0, err
    origin = Run(tmp_path / "run").info.config.origin
    assert (origin.commit, origin.notes[0][:38]) == (COMMIT, "blink-val: 4 rows instead of 1,901 in ")


def test_a_run_fetches_the_data_only_if_it_is_asked_to(hub):
    command = ("run", "blink-val", "--model", "echo", "--allow-partial", "--no-report", "-o", "run")
    assert "Fetch them: mmeval fetch blink-val" in called(*command)[2]
    assert not hub.asked
    status, out, err = called(*command, "--fetch")
    assert status == 0, err
    assert out.startswith("blink-val: fetched, ")


def test_an_interrupted_transfer_continues_where_it_ended(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 512)
    dataset = hub.datasets[BLINK]
    dataset.cuts = [SHARD]
    assert called("fetch", "blink-val")[0] == 0
    ranges = [asked for method, path, asked in hub.asked if method == "GET" and path.endswith(SHARD)]
    assert ranges[0] == ""
    assert ranges[1].startswith("bytes=")
    assert (place(tmp_path) / SHARD).read_bytes() == dataset.files[SHARD]


def test_a_gated_dataset_needs_a_token(hub, monkeypatch):
    hub.datasets[BLINK].is_gated = True
    status, _, err = called("fetch", "blink-val")
    assert status == 1
    assert "for accounts that have accepted its terms. Accept them on its page, then log in with `hf auth login`" in err
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert called("fetch", "blink-val")[0] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda dataset: dataset.other.update({SHARD: dataset.files[SHARD][:-4] + b"----"}),
            "is corrupt",
        ),
        (
            lambda dataset: dataset.files.update({"a/b/val-0.parquet": dataset.files.pop(SHARD)}),
            "has no files \\*/val-",
        ),
        (lambda dataset: dataset.files.update({"../val-0.parquet": b"out"}), "an unsafe name: '../val-0.parquet'"),
    ],
)
def test_other_files_are_refused_and_leave_nothing(hub, tmp_path, change, message):
    change(hub.datasets[BLINK])
    status, _, err = called("fetch", "blink-val")
    assert status == 1
    assert message.replace("\\", "") in err
    assert not place(tmp_path).exists()


def test_what_does_not_exist_and_a_dead_hub(hub, monkeypatch):
    hub.datasets.clear()
    assert "does not exist, or needs an account" in called("fetch", "blink-val")[2]
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert "fetch it again to continue, or name a folder with a copy: --data DIR" in called("fetch", "blink-val")[2]


def test_a_changed_file_is_found_and_fetched_again(hub, tmp_path):
    called("fetch", "blink-val")
    shard = place(tmp_path) / SHARD
    shard.write_bytes(b"PAR1" + shard.read_bytes()[4:-8] + b"damagedX")
    status, out, err = called("fetch", "blink-val", "--verify")
    assert (status, out, err) == (1, f"blink-val: damaged: {SHARD}\n", "repair it with: mmeval fetch blink-val\n")
    shard.write_bytes(b"short")
    assert (
        "is not as it was fetched. Fetch it again: mmeval fetch blink-val"
        in called("run", "blink-val", "--model", "echo")[2]
    )
    called("fetch", "blink-val")
    assert called("fetch", "blink-val", "--verify")[0] == 0


def test_the_first_contact_reports_what_differs(hub, tmp_path):
    write_sample(recipe("blink-val"), tmp_path / "copy")
    status, out, _ = called("fetch", "blink-val", "--check", "--data", "copy")
    assert status == 1
    assert "- rows: 4 (the recipe says 1901)" in out
    assert "- 4 rows instead of 1,901" in out
    assert out.count("Select from the following choices.") == 4
    assert not hub.asked


@pytest.mark.slow
def test_all_recipes_are_fetched_and_run(hub, tmp_path):
    """With the answers of the goldens; answers in a file if nothing is asked."""
    faults = []
    for name in recipe_names():
        benchmark = recipe(name)
        assert isinstance(benchmark.task.data, TaskData)
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        more = ["--allow-partial"]
        if benchmark.task.data.hub is None:
            write_sample(benchmark, folder / "copy")
            more += ["--data", str(folder / "copy")]
        else:
            hub.datasets[benchmark.task.data.hub.repository] = Dataset.of(benchmark, folder / "source")
            status, _, err = called("fetch", name)
            faults += [f"{name}: {err}"] if status else []
        answers = {golden.id: golden.answer for golden in goldens_of(benchmark)}
        (folder / "answers.json").write_text(json.dumps(answers))
        lines = "".join(json.dumps({"id": key, "prediction": said}) + "\n" for key, said in answers.items())
        (folder / "answers.jsonl").write_text(lines)
        asking = ["run", name, "--model", f"script:{folder / 'answers.json'}"]
        is_asked = bool(benchmark.task.prompts) and name not in WITH_FILES
        command = asking if is_asked else ["score", name, str(folder / "answers.jsonl")]
        status, out, err = called(*command, "--no-report", "-o", str(folder / "run"), *more)
        if status or "scored" not in out:
            faults.append(f"{name}: {err or out}")
    assert not faults, "\n".join(faults)
