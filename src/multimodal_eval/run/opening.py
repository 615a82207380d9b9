"""Open the input of a run, make its plan, and find the place of its folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.config import GenerationConfig, RunConfig
from multimodal_eval.core.errors import ConfigError, RunFolderError
from multimodal_eval.core.records import Source
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.system_files import DEVICE
from multimodal_eval.data.readers.memory_input import MemoryInput, Table
from multimodal_eval.data.readers.parts import Input
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.evaluation.tasks_config import get_task
from multimodal_eval.run.plan import Plan, generating_plan, make_plan, needed_resources

if TYPE_CHECKING:
    from multimodal_eval.data.readers.inputs import FileInput

__all__ = [
    "Data",
    "file_name",
    "new_folder",
    "open_input",
    "opened_again",
    "planned",
    "run_name",
]

_TIME = re.compile(
    r"^\d{8}_\d{6}_(?=.)|(?<=.)_\d{4}-\d\d-\d\dT[\d.-]+$|^\d{4}-\d\d-\d\dT[\d+-]+_(?=.)"
)  # harnesses' logs
_ODD = re.compile(r"[^\w.-]+")  # in the name of a folder
_LONGEST = 80

Data = str | Path | Iterable[Sample | Mapping[str, Any]] | Mapping[str, Sequence[Any]] | Table


def planned(
    config: RunConfig,
    data: Data,
    predictions: str | Path | None,
    fetch: Callable[[list[str]], None] | None = None,
    *,
    scores: bool = True,
) -> tuple[Plan, Input]:
    """The plan and the opened input. Without a task or metrics, a COCO pair gets the COCO metrics, and VQA files get
    VQA accuracy and exact match.

    `fetch` is called with the names of missing resources. Without `scores`, the run stops after the answers of its
    model.
    Image paths are relative to the folder of the data file (for a pattern: the folder before its first * or ?), unless
    the configuration sets another.
    """
    config = with_ids(config)
    source = open_input(data, predictions, config)
    if config.image_root is not None and not Path(config.image_root).is_dir():
        raise ConfigError(f"`image_root` must be a folder. Got {config.image_root!r} instead.")
    if config.image_root is None:
        if isinstance(source, MemoryInput):  # samples in memory may refer to any file; relative paths start here
            config = msgspec.structs.replace(config, image_root=str(Path.cwd()), allow_outside_images=True)
        else:
            config = msgspec.structs.replace(config, image_root=str(source.data_files.folder.absolute()))
    if config.questions is not None:  # a resumed run may start in another folder
        config = msgspec.structs.replace(config, questions=str(Path(config.questions).resolve()))
    if config.generation is not None and config.task is None and not isinstance(source, MemoryInput):
        config = msgspec.structs.replace(config, generation=_with_usual_prompt(config.generation, source))
    if not scores:
        return generating_plan(config), source
    if config.task is None and not config.metrics and not isinstance(source, MemoryInput):
        has_model = config.generation is not None
        config = msgspec.structs.replace(config, metrics=_usual_metrics(source, has_model=has_model))
    if fetch is not None:
        fetch(needed_resources(config))
    return make_plan(config), source


def _with_usual_prompt(config: GenerationConfig, source: FileInput) -> GenerationConfig:
    """The settings with the prompt of files whose format belongs to a task, unless they name a prompt."""
    prompt = "caption" if source.has_captions else "vqa" if source.is_vqa else None
    is_named = config.prompt is not None or config.template is not None
    return config if prompt is None or is_named else msgspec.structs.replace(config, prompt=prompt)


def _usual_metrics(source: FileInput, *, has_model: bool) -> list[str] | None:
    """The metrics of files whose format belongs to a task."""
    if source.is_coco or (has_model and source.has_captions):
        return ["coco"]
    return list(get_task("vqa").extras) if source.is_vqa else None


def with_ids(config: RunConfig) -> RunConfig:
    """The configuration with the ids instead of their file, so that a continued run does not read it again."""
    if config.ids is None:
        return config
    if config.limit is not None:
        raise ConfigError("`ids` and `limit` both choose samples. Give one of them")
    ids = _ids_in(Path(config.ids)) if isinstance(config.ids, str) else config.ids
    if not ids:
        raise ConfigError("`ids`: there is no id. Give one per line, or a JSON list")
    return msgspec.structs.replace(config, ids=list(dict.fromkeys(map(str, ids))))


def _ids_in(path: Path) -> Sequence[str | int]:
    """The ids in a file: one per line, or a JSON list."""
    try:
        text = path.read_text("utf-8-sig")
        if text.lstrip()[:1] in ("[", "{"):
            return msgspec.json.decode(text, type=list[str | int])
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise ConfigError(f"`ids`: {path} must have one id per line, or a JSON list of ids: {error}") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def open_input(data: Data, predictions: str | Path | None, config: RunConfig) -> FileInput | MemoryInput:
    """Open the input of a call."""
    if isinstance(data, str | Path):
        from multimodal_eval.data.readers.inputs import FileInput

        second = Path(predictions) if predictions is not None else None
        questions = None if config.questions is None else Path(config.questions)
        columns, annotators = parse_map(config.map), tuple(config.annotators)
        ids = None if config.ids is None else frozenset(map(str, config.ids))
        partial, log = config.allow_partial, config.format
        return FileInput(Path(data), second, columns, partial, annotators, questions, log, ids, config.only_answered)
    if config.ids is not None or config.only_answered:
        raise ConfigError("`ids` and `only_answered` choose samples of a file; choose those in memory before the call")
    if config.questions is not None:
        raise ConfigError("`questions` needs VQA annotations in a file; samples in memory have the field `question`")
    if predictions is not None:
        raise ConfigError("`predictions` needs data in a file; samples in memory must include their answers")
    return MemoryInput(data, tuple(config.annotators), parse_map(config.map))


def opened_again(source: Source | None, plan: Plan) -> Input | None:
    """Open the input of an interrupted run; None if its samples were in memory."""
    return None if source is None else open_input(source.data, source.predictions, plan.config)


def run_name(plan: Plan, source: Input | None = None) -> str:
    """What a run is called: its model, else the file of its answers, else its task."""
    if plan.config.generation is not None:
        provider, _, model = plan.config.generation.model.partition(":")
        return file_name(model) if model else provider
    from multimodal_eval.data.readers.inputs import FileInput

    files = source.prediction_files or source.data_files if isinstance(source, FileInput) else None
    return plan.label if files is None else file_name(files.name)


def file_name(path: str | Path) -> str:
    """A name after a file, a folder or a pattern, without suffixes and the time: `answers` for answers.jsonl.gz."""
    from multimodal_eval.data.readers.blocks import COMPRESSED
    from multimodal_eval.data.readers.formats import SUFFIXES

    path = Path(path)
    name = path.name or path.resolve().name
    while (suffix := Path(name).suffix.lower()) in {*SUFFIXES, *COMPRESSED, ".zip", ".eval"}:
        name = name[: -len(suffix)]
    return _TIME.sub("", name)


def new_folder(name: str, parent: Path = Path("runs")) -> Path:
    """runs/NAME, followed by a number if that exists."""
    stem = _ODD.sub("-", name)[:_LONGEST].strip("-.") or "run"
    stem = f"run-{stem}" if DEVICE.fullmatch(stem) else stem
    for number in range(1, 1000):
        path = parent / (stem if number == 1 else f"{stem}-{number}")
        if not path.exists():
            return path
    raise RunFolderError(f"{parent / stem} and the next 1000 names all exist")
