"""A small shared task on Codabench and its platform: folders as the compute worker lays them out."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multimodal_eval.contests.codabench.program import main
from multimodal_eval.interop.export.registry import export
from multimodal_eval.report.build import submission_page

REFERENCES = {"a": "a zebra on a hill", "b": "two ferries", "c": "nobody", "d": "7"}
GOOD = {"a": "a zebra on a hill", "b": "two boats", "c": "somebody", "d": "7"}
SECRETS = ("zebra", "ferries", "nobody", "unpublished")


def write_data(folder: Path) -> Path:
    """Data with references, a column of metadata, and an answer of somebody."""
    path = folder / "data.jsonl"
    records = [
        {"id": id, "question": f"what is {id}?", "references": [text], "note": "unpublished", "prediction": "old"}
        for id, text in REFERENCES.items()
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def jsonl(answers: Mapping[str, Any]) -> str:
    """A file of answers."""
    return "".join(json.dumps({"id": id, "generated_answer": answer}) + "\n" for id, answer in answers.items())


@dataclass(frozen=True)
class Platform:
    """/app of Codabench, in another folder."""

    app: Path

    @property
    def res(self) -> Path:
        """The folder of the unpacked submission."""
        return self.app / "input" / "res"

    @property
    def output(self) -> Path:
        """The folder for the output."""
        return self.app / "output"

    @property
    def arguments(self) -> list[str]:
        """Of the scoring program."""
        return [str(self.app / "input"), str(self.output)]

    def score(self) -> int:
        """The exit status of the scoring program, called in this process."""
        return main(self.app / "program", self.arguments, submission_page)

    def call(self, *flags: str) -> subprocess.CompletedProcess[str]:
        """Run the command of the scoring program's metadata in a process, as the platform does."""
        command = (self.app / "program" / "metadata.yaml").read_text().removeprefix("command: ").strip()
        python, *words = [word.replace("/app", str(self.app)) for word in command.split(" ")]
        assert python == "python3"
        called = [sys.executable, *flags, *words]
        return subprocess.run(called, capture_output=True, text=True, timeout=600, check=False)

    def submit(self, name: str, content: str | bytes) -> Path:
        """Put a file into the submission."""
        path = self.res / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


def platform(folder: Path, metrics: Sequence[str] | None = ("exact_match", "bleu"), **options: Any) -> Platform:
    """A platform with a task of the data above."""
    target = folder / "bundle.zip"
    export(write_data(folder), "codabench", target, metrics=metrics and list(metrics), **options)
    with zipfile.ZipFile(target) as archive:
        archive.extractall(folder / "bundle")
    app = folder / "app"
    (app / "input" / "res").mkdir(parents=True)
    (app / "output").mkdir()
    shutil.copytree(folder / "bundle" / "reference_data", app / "input" / "ref")
    shutil.copytree(folder / "bundle" / "scoring_program", app / "program")
    return Platform(app)
