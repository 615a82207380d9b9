"""Damaged files of a run folder: every command ends with an error in words, and other runs stay usable.

MMEVAL_HOSTILE_COUNT sets the number of damaged folders, MMEVAL_HOSTILE_SEED the first seed.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample
from tests.cli.command_line import called
from tests.hostile.run_mutations import RAW, damage

COUNT = int(os.environ.get("MMEVAL_HOSTILE_COUNT", "40"))
SEED = int(os.environ.get("MMEVAL_HOSTILE_SEED", "0"))
COMMANDS = (
    "ls runs {runs}",
    "report {bad} -o {page}",
    "report {good} {bad} -o {page}",
    "compare {good} {bad}",
    "compare {bad} {good} --format json",
    "lint {bad}",
    "compare {bad} --vary-weights",
    "rescore {bad} --config {config} -o {other}",
    "score --resume {bad} --no-report",
    "meta {bad} --human judged",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    words = ["a cat", "a dog runs", "the red ball", ""]
    samples = [
        Sample(
            str(number),
            references=["a cat sat", "a cat"],
            expected_answer="a cat",
            generated_answer=words[number % 4],
            group=f"g{number // 2}",
            metadata={"colour": ["red", "blue"][number % 2], "judged": number % 5},
        )
        for number in range(12)
    ]
    weights = {
        "tasks": {"both": {"metrics": ["rouge_l", "exact_match"], "weights": {"rouge_l": 0.5, "exact_match": 0.5}}}
    }
    for name in ("good", "bad"):
        evaluate(samples, output=folder / "runs" / name, task="both", by=["colour"], config=weights)
    labels = [Sample(f"c{number}", expected_answer="yn"[number % 2], generated_answer="y") for number in range(8)]
    evaluate(labels, output=folder / "runs" / "classes", task="classification")
    (folder / "config.yaml").write_text("metrics: [rouge_l, bleu]\n")
    return folder


def _faults(folder: Path, chance: random.Random) -> list[str]:
    """Damage a run and open it with every command; return what ended in any other way than success or an error."""
    bad = folder / "runs" / chance.choice(("bad", "bad", "classes"))
    how = damage(bad, chance)
    places = {
        "runs": folder / "runs",
        "good": folder / "runs" / "good",
        "bad": bad,
        "page": folder / "page.html",
        "config": folder / "config.yaml",
        "other": folder / "other",
    }
    faults = []
    for command in COMMANDS:
        shutil.rmtree(folder / "other", ignore_errors=True)
        try:
            done = called(*(piece.format(**places) for piece in command.split()))
        except Exception as error:  # noqa: BLE001 - counted as a fault
            faults.append(f"{how}\n  {command}: {type(error).__name__}: {str(error)[:300]}")
            continue
        is_fault = done.returncode not in (0, 1, 2, 3) or "Traceback" in done.stderr or "BUG:" in done.stderr
        is_told = any(line.startswith(("error:", "Usage:")) for line in done.stderr.splitlines())
        if is_fault or (done.returncode in (1, 2) and not is_told):
            faults.append(f"{how}\n  {command}: {done.returncode} {done.stderr[-300:]}")
        if command.startswith("ls runs") and done.returncode:
            faults.append(f"{how}\n  ls runs failed: {done.stderr[-300:]}")
    return faults


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT, 20))
def test_no_damage_ends_in_a_traceback(whole: Path, tmp_path: Path, seed: int) -> None:
    faults: list[str] = []
    for number in range(seed, min(seed + 20, SEED + COUNT)):
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder)
        faults += (f"seed {number}: {fault}" for fault in _faults(folder, random.Random(number)))
        shutil.rmtree(folder)
    assert not faults, f"{len(faults)} faults\n" + "\n".join(faults)


@pytest.mark.parametrize("file", ["run.json", "results.json"])
@pytest.mark.parametrize("how", RAW)
def test_the_list_shows_a_malformed_run_as_damaged(whole: Path, tmp_path: Path, file: str, how: str) -> None:
    shutil.copytree(whole, tmp_path / "all")
    (tmp_path / "all/runs/bad" / file).write_bytes(RAW[how])
    done = called("ls", "runs", str(tmp_path / "all/runs"))
    assert done.returncode == 0, done.stderr
    lines = {line.split("  ")[0].strip(): line for line in done.stdout.splitlines() if "  " in line}
    assert "damaged" in lines["bad"]
    assert "done" in lines["good"]


PAGES = (
    "/",
    "/run/{bad}",
    "/samples/{bad}",
    "/sample/{bad}?row=0",
    "/progress/{bad}",
    "/export/run.csv/{bad}",
    "/export/samples.csv/{bad}",
    "/runs.csv",
    "/compare/numbers?run=good&run={bad}",
    "/pairs?run=good&run={bad}",
)


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT, 20))
def test_no_damage_breaks_the_viewer(whole: Path, tmp_path: Path, seed: int) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("starlette")
    from tests.report.viewer.viewed import client

    faults: list[str] = []
    for number in range(seed, min(seed + 20, SEED + COUNT)):
        chance = random.Random(number)
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder)
        bad = chance.choice(("bad", "bad", "classes"))
        how = damage(folder / "runs" / bad, chance)
        browser = client(folder / "runs")
        for page in PAGES:
            try:
                status = browser.get(page.format(bad=bad)).status_code
            except Exception as error:  # noqa: BLE001 - counted as a fault
                faults.append(f"seed {number}: {how}: {page}: {type(error).__name__}: {str(error)[:200]}")
                continue
            if status >= 500 or (status != 200 and page in ("/", "/runs.csv")):
                faults.append(f"seed {number}: {how}: {page}: {status}")
    assert not faults, f"{len(faults)} faults\n" + "\n".join(faults)


@pytest.mark.parametrize("file", ["run.json", "results.json"])
def test_the_viewer_lists_a_malformed_run_as_damaged(whole: Path, tmp_path: Path, file: str) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("starlette")
    from tests.report.viewer.viewed import client

    shutil.copytree(whole, tmp_path / "all")
    for how, content in RAW.items():
        (tmp_path / "all/runs/bad" / file).write_bytes(content)
        page = client(tmp_path / "all/runs").get("/")
        assert page.status_code == 200, how
        assert '<span class="tag bad">damaged</span>' in page.text, how
        assert "good" in page.text
