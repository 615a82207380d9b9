"""The commands and the code in docs/human-labels.md are real. `python -m tests.docs.test_human_labels_guide`."""

from __future__ import annotations

import json
import re
import tempfile
from contextlib import chdir
from pathlib import Path

from multimodal_eval import evaluate
from tests.docs.transcripts import assert_outputs_are_pasted, with_new_output
from tests.run.labelled_samples import judge_of, judged_samples

GUIDE = Path(__file__).parents[2] / "docs" / "human-labels.md"


def prepare(folder: Path) -> None:
    records = judged_samples(1000, 150)
    judge = {**judge_of(_verdict, "example:judge"), "scale": [0, 1]}
    with chdir(folder):
        lines = [{"id": record["id"], "label": record["rating"]} for record in records]
        Path("labels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        Path("answers.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        evaluate("answers.jsonl", metrics=["helpful"], judges={"helpful": judge}, output="runs/judged", skip_lint=True)
        for name, sensitivity in (("first", 0.9), ("second", 0.6)):
            samples = judged_samples(1000, 150, sensitivity=sensitivity)
            human = {"exact_match": "rating"}
            evaluate(samples, metrics=["exact_match"], human=human, output=f"runs/{name}", skip_lint=True)


def _verdict(text: str) -> int:
    return int("\nyes\n" in text.rpartition("<answer")[2])


def test_the_commands_are_real(tmp_path):
    prepare(tmp_path)
    update = "python -m tests.docs.test_human_labels_guide"
    assert_outputs_are_pasted(GUIDE.read_text(encoding="utf-8"), tmp_path, update)


def test_the_python_runs():
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert code
    exec(code[1], {})


if __name__ == "__main__":
    text = GUIDE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        prepare(Path(scratch))
        GUIDE.write_text(with_new_output(text, Path(scratch)), encoding="utf-8")
