"""The command line: output, files and exit codes."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import pyarrow as pa
import pytest

from multimodal_eval.core.display import printed
from tests.cli.command_line import mmeval
from tests.edited_runs import stored_json

ROWS = [
    {"id": "a", "references": ["a red dog runs", "the dog"], "generated_answer": "a red dog", "system": "x"},
    {"id": "b", "references": ["a cat sleeps on a chair"], "generated_answer": "a cat sleeps", "system": "y"},
    {"id": "c", "references": ["a train in the snow"], "generated_answer": None, "system": "y"},
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def test_score_prints_a_table_and_keeps_the_run(folder):
    out = mmeval("score", "data.jsonl", "--metrics", "cider", "--by", "system", "-v").stdout
    assert "CIDEr" in out
    assert "2 / 3" in out
    assert "by system" in out
    assert "1 of 3 (33.3%): samples unscored (1 missing_input); most often: no generated_answer" in out
    assert "cider|v:2|tokenizer:ptb|df:corpus@" in out
    (run,) = (folder / "runs").iterdir()
    assert run.name == "data"
    assert {path.name for path in run.iterdir()} == {
        "run.json",
        "manifest.json",
        "results.json",
        "lint.json",
        "report.html",
        "samples",
        "scores",
        "state",
    }
    listed = mmeval("ls", "runs").stdout
    assert run.name in listed
    assert "done" in listed


def test_patterns_and_folders(folder):
    (folder / "parts").mkdir()
    for number, row in enumerate(ROWS):
        (folder / "parts" / f"part-{number}.jsonl").write_text(json.dumps(row))
    assert "3 samples in 3 files, no problems" in mmeval("validate", "parts").stdout
    mmeval("score", "parts/part-*.jsonl", "--metrics", "cider", "-o", "pattern")
    mmeval("score", "data.jsonl", "--metrics", "cider", "-o", "file")
    assert (folder / "pattern" / "results.json").read_bytes() == (folder / "file" / "results.json").read_bytes()
    assert mmeval("lint", "pattern").stdout == mmeval("lint", "file").stdout
    refused = mmeval("validate", "parts/x*.jsonl", code=1).stderr
    assert "parts/x*.jsonl: NOT_FOUND: no file matches this pattern" in refused


def test_score_as_json_and_jsonl(folder):
    out = mmeval("score", "data.jsonl", "--metrics", "cider", "-o", "run", "--format", "json", "--jsonl").stdout
    results = json.loads(out)
    assert results["metrics"]["cider"]["n_scored"] == 2
    stored = stored_json(folder / "run" / "results.json")
    findings = json.loads((folder / "run" / "lint.json").read_text())["findings"]
    assert {**stored, "run": "run", "lint": findings} == results
    rows = [json.loads(line) for line in (folder / "run" / "scores.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert "cider" not in rows[2]
    assert rows[2]["cider:status"] == "missing_input"


def test_two_files_and_a_map(folder):
    (folder / "refs.csv").write_text("image,ref1,ref2\na,a dog,the dog\nb,a cat,the cat\n")
    (folder / "pred.tsv").write_text("image\tpred\nb\ta cat\na\ta dog\n")
    arguments = ["refs.csv", "pred.tsv", "--metrics", "cider", "--map", "id=image", "--map", "references=ref1,ref2"]
    results = json.loads(mmeval("score", *arguments, "--map", "generated_answer=pred", "--format", "json").stdout)
    assert results["metrics"]["cider"]["n_scored"] == 2


def test_bad_input_exits_1_and_writes_nothing(folder):
    (folder / "bad.jsonl").write_text('{"id": "a", "references": 5}\n{"id": "a", "perplexity": NaN}\n')
    done = mmeval("score", "bad.jsonl", "--metrics", "cider", "-o", "run", code=1)
    assert "bad.jsonl:1: TYPE: `references` must be a list of strings. Got 5 instead." in done.stderr
    assert "bad.jsonl:2: NONFINITE" in done.stderr
    assert "2 problems" in done.stderr
    assert not (folder / "run").exists()
    assert done.stdout == ""


def test_validate(folder):
    out = mmeval("validate", "data.jsonl").stdout
    assert "3 samples, no problems" in out
    (folder / "bad.jsonl").write_text('{"id": "a"}\n{"id": "a"}\n')
    assert "lines 1 and 2" in mmeval("validate", "bad.jsonl", code=1).stderr
    assert sorted(path.name for path in folder.iterdir()) == ["bad.jsonl", "data.jsonl"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["score"],
        ["score", "data.jsonl"],
        ["score", "data.jsonl", "--resume", "x"],
        ["score", "data.jsonl", "--metrics", "cider", "--map", "nonsense"],
        ["score", "data.jsonl", "--metrics", "cider", "--limit", "0"],
        ["score", "data.jsonl", "--metrics", "cider", "--fail-under", "composite=0.5"],
        ["score", "data.jsonl", "--metrics", "cider", "--fail-under", "cider=high"],
        ["score", "data.jsonl", "--metrics", "cider", "--fail-under", "cider=nan"],
        ["score", "data.jsonl", "--metrics", "cider", "--min-coverage", "nan"],
        ["nonsense"],
    ],
)
def test_wrong_usage_exits_2(folder, arguments):
    mmeval(*arguments, code=2)
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", "data.jsonl", "--metrics", "cidr"], "Did you mean 'cider'?"),
        (["score", "data.jsonl", "--task", "captoning"], "Did you mean 'captioning'?"),
        (["score", "data.jsonl", "--task", "captioning"], "--metrics cider"),
        (["score", "nowhere.jsonl", "--metrics", "cider"], "no such file"),
        (["score", "data.jsonl", "--config", "nowhere.yaml"], "No such file"),
        (["score", "--resume", "nowhere"], "no run.json"),
        (["rescore", "nowhere", "--config", "x.yaml"], "no run.json"),
        (["card", "cidr"], "Did you mean 'cider'?"),
        (["fetch", "metor"], "no resource is named 'metor'"),
    ],
)
def test_errors_of_the_package_exit_1_without_a_traceback(folder, arguments, message):
    assert message in mmeval(*arguments, code=1).stderr


def test_thresholds_exit_3_after_showing_the_result(folder):
    done = mmeval("score", "data.jsonl", "--metrics", "cider", "--fail-under", "cider=0.99", code=3)
    assert "below 0.99" in done.stderr
    assert "cider" in done.stdout
    done = mmeval("score", "data.jsonl", "--metrics", "cider", "--min-coverage", "0.95", code=3)
    assert "0.6667 of the samples" in done.stderr
    mmeval("score", "data.jsonl", "--metrics", "cider", "--fail-under", "cider=0", "--min-coverage", "0.6")


def test_an_unscored_composite_misses_every_threshold(folder):
    arguments = ["score", "data.jsonl", "--task", "captioning", "--skip-unavailable", "--fail-under", "composite=0"]
    assert "composite is unscored" in mmeval(*arguments, code=3).stderr


def test_a_configuration_file_a_plugin_and_rescore(folder):
    (folder / "my_metric.py").write_text(
        "from multimodal_eval import metric\n"
        "@metric('short', needs=('generated_answer',), bounds=(0, 1), version='1')\n"
        "def short(sample):\n"
        "    '''Is the answer short?'''\n"
        "    return 1 / len(sample.generated_answer.split())\n"
    )
    (folder / "run.yaml").write_text(
        "task: mine\ntasks:\n  mine:\n    weights: {cider: 0.25, short: 0.75}\nplugins: [my_metric.py]\nseed: 5\n"
    )
    results = json.loads(mmeval("score", "data.jsonl", "--config", "run.yaml", "-o", "one", "--format", "json").stdout)
    # 1/3 words each: 0.75 * 1/3 + 0.25 * mean cider
    expected = 0.75 / 3 + 0.25 * results["metrics"]["cider"]["value"]
    assert results["composite"]["value"] == pytest.approx(expected)
    (folder / "new.yaml").write_text("tasks:\n  mine:\n    metrics: [cider, short]\n    weights: {short: 1}\n")
    plugin = ("--plugin", "my_metric.py")
    out = json.loads(mmeval("rescore", "one", "--config", "new.yaml", *plugin, "-o", "two", "--format", "json").stdout)
    assert out["composite"]["value"] == pytest.approx(1 / 3)
    assert out["metrics"] == results["metrics"]
    assert "short" in mmeval("ls", "metrics", *plugin).stdout
    assert "Is the answer short?" in mmeval("card", "short", *plugin).stdout


def test_a_broken_plugin_keeps_its_traceback(folder):
    (folder / "broken.py").write_text("1 / 0\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "multimodal_eval.cli.main",
            "score",
            "data.jsonl",
            "--metrics",
            "x",
            "--plugin",
            "broken.py",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def test_the_data_of_the_demo_can_be_copied_and_scored(folder):
    printed = mmeval("demo", "--files", "demo").stdout
    command = printed.partition("mmeval ")[2].splitlines()[0].split()
    assert "24 / 24" in mmeval(*command).stdout
    assert (folder / "demo" / "images" / "scene-01.png").is_file()
    assert "already exists" in mmeval("demo", "--files", "demo", code=1).stderr
    assert "leave out --fetch and -o" in mmeval("demo", "--files", "other", "-o", "runs", code=2).stderr
    assert not (folder / "other").exists()


def test_an_id_in_both_files_is_counted_once(folder):
    mmeval("demo", "--files", "demo")
    shown = mmeval("validate", "demo/vqa.jsonl", "demo/vqa.alba.jsonl").stdout
    assert re.search(r"^id +24$", shown, re.MULTILINE)


def test_the_demo_names_its_missing_models(folder):
    refused = mmeval("demo", code=1).stderr
    assert "all-minilm-l6-v2, smollm2-135m" in refused
    assert "mmeval demo --fetch" in refused


@pytest.mark.weights
def test_the_demo_shows_every_metric_and_composite(folder, weights):
    from multimodal_eval import load_run
    from multimodal_eval.evaluation.tasks_config import TASKS

    out = mmeval("demo", "-o", "kept").stdout
    shown = re.findall(r"^ *([\w-]+)", out, re.MULTILINE)
    composed_of = {metric for task in TASKS.values() if task.weights or task.headline for metric in task.all_metrics}
    assert {
        *map(printed, (*composed_of, "chair_i")),
        "BLEU-4",
        "CIDEr-D",
        "METEOR",
        "perplexity",
        "f1_any_match",
    } <= set(shown)
    composed = [*(name for name, task in TASKS.items() if task.weights or task.headline), "dialogue"]
    assert shown.count("composite_score") == len(composed)
    assert "23 / 24" in out  # one generator failed
    assert "generated: SmolLM2 rephrases captions" in out
    generated = load_run(folder / "kept" / "generated" / "smollm2")
    assert generated.info.generation.statuses == {"ok": 8}
    assert generated["semantic_similarity"]["value"] > 0.8
    for task in composed:
        assert load_run(folder / "kept" / task / "alba").entries["composite_score"].value > 0.4
    assert load_run(folder / "kept" / "classification" / "alba")["f1_any_match"]["value"] > 0.5
    assert "alba" in mmeval("compare", "kept/vqa/alba", "kept/vqa/boreas").stdout
    assert "already exists" in mmeval("demo", "-o", "kept", code=1).stderr
    assert "composite_score" in (narrow := shown_in_100_columns(folder / "kept" / "dialogue"))
    assert (
        max(len(line) for line in narrow.splitlines() if re.search(r"\d  |─", line)) <= 100
    )  # nothing is split or cut
    signature = load_run(folder / "kept" / "dialogue" / "alba")["meteor"]["signature"]
    assert "synonyms:wordnet-3.0+none" in signature  # the same scores without the extra [ru]


def test_the_demo_continues_without_a_model_that_cannot_be_used(folder):
    from importlib.resources import as_file, files

    from multimodal_eval.cli.demo import generated_blocks

    with as_file(files("multimodal_eval.data") / "demo") as data:
        (text,) = generated_blocks(data, folder)
    assert text.text.startswith("generated: left out, because the model cannot be used here")
    assert not (folder / "generated").exists()


def shown_in_100_columns(runs):
    from rich.console import Console

    from multimodal_eval.analysis.compare import compare_runs
    from multimodal_eval.display.renderer import blocks_of
    from multimodal_eval.display.terminal import TerminalRenderer

    compared = compare_runs([runs / "alba", runs / "boreas"])
    return TerminalRenderer(Console(width=100, file=io.StringIO())).page(list(blocks_of(compared)))


def test_lists_and_cards(folder):
    assert "0 … 1" in mmeval("ls", "metrics").stdout
    assert "contextual_relevance" in (tasks := mmeval("ls", "tasks").stdout)
    assert "mmeval dialogue" in tasks
    assert re.search(r"classification .* none", tasks)
    assert "meteor-1.5-en" in mmeval("ls", "resources").stdout
    card = mmeval("card", "cider").stdout
    assert "Metric Card for CIDEr" in card
    assert re.search(r"Options\s+option +default +allowed .*tokenizer +ptb +one of ptb, 13a", card, re.DOTALL)
    assert "This metric has no options" in mmeval("card", "chair_i").stdout
    assert json.loads(mmeval("schema").stdout)["title"] == "mmeval run configuration"


def test_hostile_text_is_shown_as_text(folder):
    rows = [{**ROWS[0], "id": "[bold]a[/]", "system": "[red]\x1b[31m"}, ROWS[1]]
    (folder / "odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = mmeval("score", "odd.jsonl", "--metrics", "cider", "--by", "system").stdout
    assert "[red]" in out
    assert "\x1b[31m" not in out


def test_zst_coco_and_partial(folder):
    coco = {"annotations": [{"image_id": i, "caption": f"a dog number {i}"} for i in range(4)]}
    (folder / "captions.json.zst").write_bytes(pa.compress(json.dumps(coco).encode(), "zstd", asbytes=True))
    (folder / "results.json").write_text(json.dumps([{"image_id": i, "caption": f"dog {i}"} for i in range(3)]))
    assert "UNMATCHED" in mmeval("score", "captions.json.zst", "results.json", "--metrics", "cider", code=1).stderr
    out = mmeval("score", "captions.json.zst", "results.json", "--metrics", "cider", "--allow-partial").stdout
    assert "3 / 4" in out


LIGHT = """
import sys
{statement}
suspects = ("numpy", "scipy", "pyarrow", "rich", "yaml", "jinja2", "torch", "onnxruntime", "pandas")
heavy = [name for name in suspects if name in sys.modules]
assert not heavy, heavy
"""


@pytest.mark.parametrize(
    "statement",
    [
        "import multimodal_eval",
        "from multimodal_eval import Sample, evaluate_sample, metric",
        "from multimodal_eval.cli.main import cli; cli.main(['--help'], standalone_mode=False)",
    ],
)
def test_start_up_loads_nothing_heavy(statement):
    done = subprocess.run(
        [sys.executable, "-c", LIGHT.format(statement=statement)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_command_does_not_load_the_others():
    script = """
import sys
from multimodal_eval.cli.main import COMMANDS, cli
cli.main(["verify", "--help"], standalone_mode=False)
loaded = [name for name in COMMANDS if f"multimodal_eval.cli.{name}" in sys.modules]
assert loaded == ["verify"], loaded
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_resume_needs_no_input_and_checks_thresholds_first(folder):
    mmeval("score", "data.jsonl", "--metrics", "cider", "-o", "run")
    (folder / "data.jsonl").unlink()
    assert "cider" in mmeval("score", "--resume", "run").stdout
    assert "does not compute it" in mmeval("score", "--resume", "run", "--fail-under", "nope=1", code=2).stderr


def test_a_damaged_run_does_not_hide_the_others(folder):
    mmeval("score", "data.jsonl", "--metrics", "cider", "-o", "runs/good")
    (folder / "runs" / "bad").mkdir()
    (folder / "runs" / "bad" / "run.json").write_text("{")
    out = mmeval("ls", "runs").stdout
    assert "damaged" in out
    assert "good" in out


def test_a_coco_pair_gets_the_coco_metrics_by_default(folder):
    captions = {7: ["a red dog runs", "the dog"], 8: ["a cat sleeps on a chair", "a cat"]}
    annotations = [{"image_id": image, "caption": text} for image, texts in captions.items() for text in texts]
    (folder / "captions.json").write_text(json.dumps({"annotations": annotations}))
    results = [{"image_id": 7, "caption": "a red dog"}, {"image_id": 8, "caption": "a cat sleeps"}]
    (folder / "results.json").write_text(json.dumps(results))
    out = mmeval("score", "captions.json", "results.json").stdout
    for name in ("Bleu_1", "Bleu_4", "ROUGE_L", "CIDEr", "CIDEr-D", "BLEU-2"):
        assert name in out
    named = mmeval("score", "captions.json", "results.json", "--metrics", "cider").stdout
    assert "ROUGE_L" not in named


def test_a_part_may_have_a_threshold(folder):
    arguments = ["score", "data.jsonl", "--metrics", "coco", "--fail-under"]
    mmeval(*arguments, "bleu.bleu_1=0.01")
    assert "bleu.bleu_1 is" in mmeval(*arguments, "bleu.bleu_1=0.99", code=3).stderr
    assert "unscored" in mmeval(*arguments, "bleu.nothing=0", code=3).stderr


def test_a_run_with_a_report_loads_nothing_that_it_does_not_use(folder):
    samples = [{"id": str(i), "generated_answer": f"dog {i}", "references": [f"a dog {i}"]} for i in range(8)]
    (folder / "plain.jsonl").write_text("\n".join(map(json.dumps, samples)))
    command = ["score", "plain.jsonl", "--metrics", "cider,bleu", "-o", "plain"]
    script = f"""
import sys
from multimodal_eval.cli.main import cli
cli.main({command}, standalone_mode=False)
suspects = ("pandas", "pyarrow.compute", "pyarrow.dataset", "scipy.special", "scipy.stats", "torch", "onnxruntime")
suspects += ("aiohttp", "multimodal_eval.judges", "multimodal_eval.lint.injection")
suspects += ("multimodal_eval.run.why", "multimodal_eval.analysis.suite_table", "multimodal_eval.contests.shared_task")
heavy = [name for name in suspects if name in sys.modules]
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("loads_torch", [True, False])
@pytest.mark.parametrize(("metric", "code"), [("cider", 0), ("nothing", 1)])
def test_a_process_with_torch_ends_at_once_but_finishes_its_work(folder, metric, code, loads_torch):
    """What must be done at the end is done, the output is complete, and the exit code is that of the command."""
    script = f"""
import atexit, sys, threading, types
from multimodal_eval.cli import main
from multimodal_eval.cli.main import run_process

class Late:
    def __del__(self):
        print("freed")

def at_the_end():
    threading.main_thread().join()
    print("thread ended")

def run():
    atexit.register(print, "exit handler called")
    threading.Thread(target=at_the_end).start()
    if {loads_torch}:
        sys.modules["torch"] = types.ModuleType("torch")
    original()

original, main.main = main.main, run
late = Late()
sys.argv = ["mmeval", "score", "data.jsonl", "--metrics", {metric!r}, "-o", "run", "--no-report"]
run_process()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    expected = ["thread ended", "exit handler called", *([] if loads_torch else ["freed"])]
    assert done.stdout.splitlines()[-len(expected) :] == expected
    assert ("cider" in done.stdout) == (code == 0)
