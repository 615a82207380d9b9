"""How a submission of each kind is scored: to the dialogue contest, to CLARITY, or answers to any other data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from multimodal_eval.contests.clarity import contest as clarity
from multimodal_eval.contests.clarity.predictions import UnknownLabels, first_columns
from multimodal_eval.contests.clarity.tasks import TASKS, TaskName
from multimodal_eval.contests.dialogue import contest as dialogue
from multimodal_eval.contests.dialogue.contest import Contest
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.formats import SUFFIXES, reader_of
from multimodal_eval.data.readers.json_file import first_character, read_coco_annotations, read_json_object
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run import execute
from multimodal_eval.run.evaluate import planned
from multimodal_eval.run.plan import make_plan

OUTPUT, PERPLEXITIES = "output.json", "ppl_output.json"
Kind = Literal["dialogue", "clarity", "samples"]


def kind_of(gold: Path) -> Kind:
    """What a gold file is for, by its content: dialogues, CLARITY's columns, or samples of any task.

    A JSON object is COCO's annotations or dialogues; what is wrong with it is said by whoever reads it as such.
    """
    if bare_suffix(gold) == ".json" and gold.is_file() and first_character(gold) == "{":
        problems = Problems()
        content = read_json_object(gold, problems) or {}
        problems.raise_if_any()
        return "samples" if isinstance(content.get("annotations"), list) else "dialogue"
    columns = first_columns(gold)
    return "clarity" if any(task.gold_column in columns for task in TASKS.values()) else "samples"


@dataclass(frozen=True)
class DialogueScoring:
    """A folder with output.json and ppl_output.json."""

    contest: Contest

    @property
    def numbers(self) -> list[str]:
        """What a run of it will have."""
        return make_plan(self.contest.config).names

    def accepts(self, path: Path) -> bool:
        """Folders."""
        return path.is_dir()

    def __call__(self, path: Path, folder: Location) -> None:
        """Score it into a run folder."""
        plan, source = dialogue.prepare(self.contest, path / OUTPUT, path / PERPLEXITIES)
        execute.start(plan, source, folder)


@dataclass(frozen=True)
class ClarityScoring:
    """A table of predictions, or the contest's zip."""

    data: Path
    task: TaskName
    unknown_labels: UnknownLabels = "error"
    group: str | None = None

    @property
    def numbers(self) -> list[str]:
        """What a run of it will have; those of annotators only where there are any."""
        return ["f1_strict", *clarity.OF_ANNOTATORS, COMPOSITE]

    def accepts(self, path: Path) -> bool:
        """Tables and zips."""
        return path.is_file() and (path.suffix.lower() == ".zip" or bare_suffix(path) in SUFFIXES)

    def __call__(self, path: Path, folder: Location) -> None:
        """Score it into a run folder."""
        given: dict[str, Any] = {"unknown_labels": self.unknown_labels, "group": self.group}
        prepared = clarity.prepare(self.data, path, task=self.task, **given)
        clarity.carry_out(prepared, folder)


@dataclass(frozen=True)
class SampleScoring:
    """A file of answers, joined with the data by id."""

    data: Path
    config: RunConfig

    def __post_init__(self) -> None:
        if self.data.is_dir():
            raise ConfigError(f"{self.data} is a folder: name the file with the references")

    @property
    def numbers(self) -> list[str]:
        """What a run of it will have."""
        named = self.config.task or self.config.metrics
        is_coco = not named and reader_of(self.data) is read_coco_annotations
        return make_plan(msgspec.structs.replace(self.config, metrics=["coco"]) if is_coco else self.config).names

    def accepts(self, path: Path) -> bool:
        """Files of any format that samples are read from."""
        return path.is_file() and bare_suffix(path) in SUFFIXES

    def __call__(self, path: Path, folder: Location) -> None:
        """Score it into a run folder."""
        execute.start(*planned(self.config, self.data, path), folder)
