"""Tasks of lm-evaluation-harness and lmms-eval: what of their YAML maps to a task file of ours, and what does not.

Functions (`!function utils.score`) are never called. Every line that is not taken is named in a note.

`mmeval run lm-eval:TASK` and `lmms-eval:TASK` ask an installed harness instead: it writes the samples with their
messages and media once, in a process of its own. After that, they are a file like any other, in the cache folder under
a name that depends on their content, so that a run can be continued.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from multimodal_eval.core.config import TaskOrigin
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import RECORDED, JsonObject
from multimodal_eval.core.system_files import NamingFile, leading_out
from multimodal_eval.core.yaml_text import Tagged, read_tagged_yaml
from multimodal_eval.data.logs.log_format import score_column
from multimodal_eval.data.readers.column_names import peeked
from multimodal_eval.data.readers.files import file_set
from multimodal_eval.data.runs.checksums import sha256
from multimodal_eval.evaluation.harness.process import opened
from multimodal_eval.evaluation.harness.scorer import version_of
from multimodal_eval.resources.store import home, move_into_place

__all__ = ["HarnessTask", "functions_of", "harness_task", "installed_task", "is_harness_task"]

_MARKS = ("dataset_path", "doc_to_text", "doc_to_target", "output_type", "metric_list", "include")
_COLUMN = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}|([A-Za-z_]\w*)")
_SPLIT = re.compile(r"[\w.-]+")
# Keys that change neither a request nor a score.
_IGNORED = (
    "group",
    "tag",
    "task_alias",
    "dataset_kwargs",
    "dataset_name",
    "metadata",
    "include",
    "task",
    "dataset_path",
)
_SPLITS = ("test_split", "validation_split", "training_split")
_OTHER_SPLITS = ("fewshot_split",)
_LOADERS = ("json", "csv", "parquet", "text", "imagefolder", "webdataset")
# Metrics whose definition there is that of a metric here.
_METRICS = {
    "exact_match": "exact_match",
    "bleu": "sacrebleu",
    "chrf": "chrf",
    "ter": "ter",
    "anls": "anls",
    "coco_CIDEr": "cider_d",
    "coco_METEOR": "meteor",
    "coco_ROUGE_L": "rouge_l",
    "coco_Bleu_4": "bleu",
}
_PARAMETERS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_gen_toks": "max_tokens",
    "max_new_tokens": "max_tokens",
    "max_tokens": "max_tokens",
}
_DEEPEST = 5


@dataclass(frozen=True)
class HarnessTask:
    """The content of a task file of ours, and what was not taken."""

    content: JsonObject
    notes: tuple[str, ...]


def is_harness_task(content: object) -> bool:
    """Whether the content of a YAML file is a task of lm-eval or lmms-eval."""
    return isinstance(content, dict) and "data" not in content and any(mark in content for mark in _MARKS)


def harness_task(path: Path, *, task_data: Path | None = None, allow_outside: bool = False) -> HarnessTask:
    """The task in a file, as far as it maps. `task_data` replaces the data that it names."""
    reading = _Reading(NamingFile(path, "the task file", allow_outside), task_data, *_included(path))
    reading.take()
    return HarnessTask(reading.content, tuple(reading.notes))


Place = tuple[Path, int]  # a file and a line


def _included(path: Path, depth: int = 0) -> tuple[JsonObject, dict[str, Place]]:
    """The keys of a file on top of those that it includes, with the place of each."""
    content, lines = read_tagged_yaml(path, "the task file")
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: a task file must be a section with keys")
    places = {key: (path, line) for key, line in lines.items()}
    name = content.get("include")
    if not isinstance(name, str):
        return content, places
    other = path.parent / name
    if depth >= _DEEPEST or leading_out(path.parent, name) is not None or not other.is_file():
        line = lines.get("include", 1)
        raise ConfigError(f"{path}:{line}: `include: {name}` must be another file in the folder of the task")
    base, base_places = _included(other, depth + 1)
    return {**base, **content}, {**base_places, **places}


@dataclass
class _Reading:
    """A task while it is read."""

    naming: NamingFile
    task_data: Path | None
    given: JsonObject
    places: Mapping[str, Place]
    content: JsonObject = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    kinds: Mapping[str, str] = field(default_factory=dict)  # of the columns of the data

    @property
    def path(self) -> Path:
        """The file of the task."""
        return self.naming.path

    def take(self) -> None:
        """Take every key that maps, in the order of the file."""
        if isinstance(self.given.get("task"), list):
            raise ConfigError(f"{self.path}: this is a group of tasks. Name the file of one task")
        metadata = self.given.get("metadata")
        version = metadata.get("version") if isinstance(metadata, dict) else None
        self.content["name"] = str(self.given.get("task") or self.path.stem)
        self.content["version"] = str(version if version is not None else "1")
        self.content["data"] = self._numbered(str(self.task_data or self._data()))
        self.content["columns"] = {}
        takers: dict[str, Callable[[Any], bool]] = {
            "doc_to_text": self._prompt,
            "doc_to_target": self._target,
            "doc_to_choice": self._choices,
            "doc_to_image": self._images,
            "output_type": self._output,
            "generation_kwargs": self._parameters,
            "metric_list": self._metrics,
            "repeats": self._epochs,
            "num_fewshot": lambda value: value in (0, None),
            "description": lambda value: value in ("", None) or "doc_to_text" in self.given,
        }
        for key, value in self.given.items():
            if key in _IGNORED or key in _SPLITS or (key in _OTHER_SPLITS and not self.given.get("num_fewshot")):
                continue
            if isinstance(value, Tagged) or not takers.get(key, _not_taken)(value):
                self.note(key, value)

    def note(self, key: str, value: object, reason: str = "is not taken") -> None:
        """Name a line that is not taken."""
        file, line = self.places.get(key, (self.path, 1))
        shown = str(value) if isinstance(value, str | int | float | bool) else "…"
        shown = shown if len(shown) <= 60 and "\n" not in shown else f"{shown.splitlines()[0][:57]}…"
        self.notes.append(f"{file.name}:{line}: `{key.rpartition('.')[2]}: {shown}` {reason}")

    # the data

    def _data(self) -> str:
        """The files of the split that is evaluated, relative to the task file."""
        split = next((str(self.given[key]) for key in _SPLITS if self.given.get(key)), None)
        if split is not None and _SPLIT.fullmatch(split) is None:
            raise self._fault("test_split", f"{split!r} cannot name a split: use letters, digits, '.', '_', '-'")
        name, options = self.given.get("dataset_path"), self.given.get("dataset_kwargs")
        if name in _LOADERS:
            files = options.get("data_files") if isinstance(options, dict) else None
            files = files.get(split) if isinstance(files, dict) else files
            if isinstance(files, list) and len(files) == 1:
                files = files[0]
            if not isinstance(files, str):
                raise self._fault("dataset_path", f"`dataset_kwargs.data_files` names no file of the split {split!r}")
            return files
        folder = self._folder(str(name))
        patterns = [f"{split}-*.parquet", f"**/{split}-*.parquet", f"{split}.*", f"{split}"] if split else []
        for pattern in patterns:
            if any((self.path.parent / folder).glob(pattern)):
                return f"{folder}/{pattern}"
        return folder

    def _numbered(self, data: str) -> str | JsonObject:
        """The data; rows without ids are numbered, as these harnesses do."""
        place = self.task_data or self.naming.inside_with_content("dataset_path", data, "Name it with --data FILE")
        file = file_set(place).files[0]
        self.kinds = peeked(file.path, file.log)
        return data if "id" in self.kinds else {"path": data, "format": "rows"}

    def _folder(self, name: str) -> str:
        """The local copy of a dataset, relative to the task file."""
        near, last = self.path.parent, name.rpartition("/")[2]
        here = next((each for each in (name, last) if "\0" not in each and (near / each).is_dir()), None)
        if here is None:
            target = near / last
            raise self._fault(
                "dataset_path",
                f"the dataset {name!r} is not on this machine. Download it: "
                f"hf download {name} --repo-type dataset --local-dir {target}",
            )
        part = self.given.get("dataset_name")
        if isinstance(part, str) and "\0" not in part and (near / here / part).is_dir():
            here = f"{here}/{part}"
        self.naming.inside_with_content("dataset_path", here, "Name it with --data FILE")
        return here

    def _fault(self, key: str, message: str) -> ConfigError:
        file, line = self.places.get(key, (self.path, 1))
        return ConfigError(f"{file}:{line}: {message}")

    # the keys

    def _prompt(self, value: Any) -> bool:
        if not isinstance(value, str):
            return False
        match = _COLUMN.fullmatch(value.strip())
        text = f"{{{{ {match[1] or match[2]} }}}}" if match else value
        start = self.given.get("description")
        text = f"{start}{text}" if isinstance(start, str) and not isinstance(start, Tagged) else text
        self.content["prompt"] = text.replace("<image>", "{{ image }}").replace("<audio>", "{{ audio }}") + "\n"
        return True

    def _target(self, value: Any) -> bool:
        column = self._column(value)
        if column is None:
            return False
        kind = self.kinds.get(column)
        if kind not in ("text", "texts"):
            return False
        self.content["columns"]["references" if kind == "texts" else "expected_answer"] = column
        return True

    def _choices(self, value: Any) -> bool:
        column = self._column(value)
        if column is None or column not in self.kinds:
            return False
        self.content["columns"]["choices"] = column
        return True

    def _images(self, value: Any) -> bool:
        names = value if isinstance(value, list) else [value]
        columns = [self._column(name) for name in names]
        if len(columns) != 1 or columns[0] is None:
            return False
        if columns[0] not in ("image", "images"):
            self.content["columns"]["image"] = columns[0]
        return True

    def _column(self, value: Any) -> str | None:
        match = _COLUMN.fullmatch(value.strip()) if isinstance(value, str) and not isinstance(value, Tagged) else None
        return None if match is None else match[1] or match[2]

    def _output(self, value: Any) -> bool:
        return bool(value == "generate_until")

    def _parameters(self, value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        parameters: JsonObject = {}
        for key, item in value.items():
            if key == "until" and isinstance(item, str | list):
                parameters["stop"] = [item] if isinstance(item, str) else [str(each) for each in item]
            elif key in _PARAMETERS and isinstance(item, int | float) and not isinstance(item, bool):
                if key != "top_p" or item > 0:
                    parameters[_PARAMETERS[key]] = item
            elif key == "do_sample" and item is False:
                parameters["temperature"] = 0.0
            elif item not in (None, 1) or key != "num_beams":
                self.note(f"generation_kwargs.{key}", item)
        self.content["generation"] = {**self.content.get("generation", {}), "parameters": parameters}
        return True

    def _metrics(self, value: Any) -> bool:
        names: list[str] = []
        for item in value if isinstance(value, list) else ():
            metric = item.get("metric") if isinstance(item, dict) else None
            if isinstance(metric, Tagged) or metric not in _METRICS:
                self.note("metric_list", metric, "is not a metric here")
                continue
            names.append(_METRICS[str(metric)])
            for option in item.keys() - {"metric", "aggregation", "higher_is_better"}:
                self.note("metric_list", f"{metric} {option}={item[option]}")
        if names:
            self.content["metrics"] = list(dict.fromkeys(names))
        return isinstance(value, list)

    def _epochs(self, value: Any) -> bool:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            return False
        if value > 1:
            self.content["generation"] = {**self.content.get("generation", {}), "epochs": value}
        return True


def _not_taken(value: Any) -> bool:
    return False


SAMPLES = "samples.jsonl"


def installed_task(package: str, task: str, data: Path | None, *, may_download: bool) -> dict[str, Any]:
    """The name, samples, settings, generation and notes of a task. Raises ConfigError if it cannot be asked."""
    place = None if data is None else str(data.resolve())
    if data is not None and not data.exists():
        raise ConfigError(f"--data: {data} does not exist. Name a file or folder with the data of {package}:{task}")
    with _staging(package) as staging:
        about = opened(package, task, place, may_download=may_download).process.ask("prepare", folder=str(staging))
        digest = sha256((staging / SAMPLES).read_bytes())
        target = staging.parents[1] / f"{_plain(task)}-{digest[:16]}"
        if not (target / SAMPLES).is_file():
            move_into_place(staging, target, lambda: (target / SAMPLES).is_file())
    name = f"{package}:{task}"
    version = version_of(about)
    scores = _named(package, about["scores"])
    origin = TaskOrigin(name=name, version=version, data=digest)
    settings: JsonObject = {
        "map": {},
        "format": None,
        "origin": {"name": origin.name, "version": origin.version, "data": origin.data},
        "metrics": list(scores),
        "variants": dict.fromkeys(scores, RECORDED),
        "options": {
            column: {
                "column": f"{score['metric']},{score['filter']}",
                "direction": "higher" if score["higher"] else "lower",
                "task": name,
                "version": version,
                **({} if place is None else {"data": place}),
            }
            for column, score in scores.items()
        },
    }
    functions = dict.fromkeys(score["function"] for score in about["scores"])
    notes = (f"{name}: {package} {version}, scored by {', '.join(functions)}",)
    generation = {"parameters": about["generation"]}
    return {"name": name, "data": target / SAMPLES, "settings": settings, "generation": generation, "notes": notes}


def functions_of(about: Mapping[str, Any]) -> dict[str, str]:
    """ "metric,filter" -> the functions that compute it: of the filter, of a sample, and the aggregate."""
    return {
        f"{score['metric']},{score['filter']}": " > ".join(
            [*about["filters"].get(score["filter"], ()), score["function"], score["aggregation"]]
        )
        for score in about["scores"]
    }


def _named(package: str, scores: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The scores by the names of their columns, as those of an imported log."""
    has_filters = len({score["filter"] for score in scores}) > 1
    names = [f"{score['metric']}_{score['filter']}" if has_filters else score["metric"] for score in scores]
    return {score_column(package, name): score for name, score in zip(names, scores, strict=True)}


def _plain(task: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in task)[:60]


@contextmanager
def _staging(package: str) -> Iterator[Path]:
    parent = home() / "tasks" / package
    parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=parent))
    staging = scratch / "task"
    staging.mkdir()
    try:
        yield staging
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
