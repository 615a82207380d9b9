"""A plain run imports nothing of the features that it does not use: the modules of `mmeval score` are recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RECORDED = Path(__file__).with_name("modules_of_a_plain_score.txt")
# All but the leaves that every run needs, whatever its features are.
PACKAGES = ("analysis", "contests", "generate", "interop", "judges", "media", "models", "report", "run")
PROGRAM = """
import sys
from multimodal_eval.cli.main import cli
cli.main(sys.argv[1:], standalone_mode=False)
print("\\n".join(sorted(name for name in sys.modules if name.startswith("multimodal_eval."))), file=sys.stderr)
"""


def modules(folder: Path) -> list[str]:
    """The modules of these packages that a run of a few captions loads."""
    rows = [{"id": str(n), "references": [f"a dog runs {n}"], "generated_answer": "a dog"} for n in range(3)]
    (folder / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["score", "x.jsonl", "--metrics", "cider,rouge_l", "--no-report", "-o", "run"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command], cwd=folder, capture_output=True, text=True, check=True
    )
    loaded = [name.removeprefix("multimodal_eval.") for name in done.stderr.splitlines() if "multimodal_eval." in name]
    return [name for name in loaded if name.partition(".")[0] in PACKAGES]


EVALUATION = """
import sys
from multimodal_eval import evaluate
rows = [{"id": n, "generated_answer": "a dog", "references": ["a dog runs"]} for n in range(3)]
evaluate(rows, metrics=["rouge_l"], progress=False)
others = {"asyncio", "ssl", "numpy.ma", "importlib.metadata", "email.parser", "jinja2", "csv", "json"}
ours = ("analysis.pairing", "benchmarks.recipes", "data.labels.taxonomy", "data.logs.recognised", "data.readers.inputs")
print(*(others | {f"multimodal_eval.{name}" for name in ours}) & set(sys.modules))
"""


@pytest.mark.slow
def test_a_first_evaluation_imports_nothing_for_models_files_and_comparisons():
    done = subprocess.run([sys.executable, "-c", EVALUATION], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.slow
def test_a_plain_score_loads_only_what_is_recorded(tmp_path):
    """To record another list: python -m tests.run.test_plain_run"""
    assert modules(tmp_path) == RECORDED.read_text().split()


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        RECORDED.write_text("".join(f"{name}\n" for name in modules(Path(scratch))))
