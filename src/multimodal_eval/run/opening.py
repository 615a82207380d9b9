"""Open the input of a run, make its plan, and find the place of its folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig, RunConfig
from multimodal_eval.core.errors import ConfigError, OpenSamplesError, RunFolderError
from multimodal_eval.core.records import Source
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.frames import Table
from multimodal_eval.data.readers.inputs import FileInput, Input
from multimodal_eval.data.readers.memory_input import MemoryInput
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.runs.storage import Location, located
from multimodal_eval.evaluation.tasks_config import get_task
from multimodal_eval.run.engine.base import Engine
from multimodal_eval.run.plan import Plan, generating_plan, make_plan, needed_resources

__all__ = [
    "Data",
    "default_folder",
    "open_input",
    "opened_again",
    "place",
    "planned",
    "removed_on_failure",
    "timed_folder",
]

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
    source = open_input(data, predictions, config)
    if config.image_root is not None and not Path(config.image_root).is_dir():
        raise ConfigError(f"`image_root` must be a folder. Got {config.image_root!r} instead.")
    if isinstance(source, FileInput) and config.image_root is None:
        config = msgspec.structs.replace(config, image_root=str(source.data_files.folder.absolute()))
    elif config.image_root is None:  # samples in memory may refer to any file; relative paths start here
        config = msgspec.structs.replace(config, image_root=str(Path.cwd()), allow_outside_images=True)
    if config.questions is not None:  # a resumed run may start in another folder
        config = msgspec.structs.replace(config, questions=str(Path(config.questions).resolve()))
    if config.generation is not None and config.task is None and isinstance(source, FileInput):
        config = msgspec.structs.replace(config, generation=_with_usual_prompt(config.generation, source))
    if not scores:
        return generating_plan(config), source
    if config.task is None and not config.metrics and isinstance(source, FileInput):
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


def open_input(data: Data, predictions: str | Path | None, config: RunConfig) -> Input:
    """Open the input of a call."""
    if isinstance(data, str | Path):
        second = Path(predictions) if predictions is not None else None
        questions = None if config.questions is None else Path(config.questions)
        columns, annotators = parse_map(config.map), tuple(config.annotators)
        return FileInput(Path(data), second, columns, config.allow_partial, annotators, questions, config.format)
    if config.questions is not None:
        raise ConfigError("`questions` needs VQA annotations in a file; samples in memory have the field `question`")
    if predictions is not None:
        raise ConfigError("`predictions` needs data in a file; samples in memory must include their answers")
    return MemoryInput(data, tuple(config.annotators), parse_map(config.map))


def opened_again(source: Source | None, plan: Plan) -> Input | None:
    """Open the input of an interrupted run; None if its samples were in memory."""
    return None if source is None else open_input(source.data, source.predictions, plan.config)


def place(output: Location | None, engine: Engine) -> tuple[Location, Path | None]:
    """The run folder, and the temporary folder that contains it if no output was given."""
    if output is not None:
        return located(output), None
    if engine.address is not None:
        raise ConfigError("a run on a cluster needs an `output` folder that all its machines can access")
    scratch = Path(tempfile.mkdtemp(prefix="mmeval-"))
    return scratch / "run", scratch


@contextmanager
def removed_on_failure(scratch: Path | None) -> Iterator[None]:
    """Remove a temporary folder if its run fails."""
    try:
        yield
    except OpenSamplesError:  # the scored parts are kept, and the run can be resumed
        raise
    except BaseException:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        raise


def default_folder(plan: Plan, parent: Path = Path("runs")) -> Path:
    """runs/<time>-<task>, followed by a number if that exists."""
    return timed_folder(plan.label, parent)


def timed_folder(label: str, parent: Path = Path("runs")) -> Path:
    """runs/<time>-<label>, followed by a number if that exists."""
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{label}"
    for number in range(1, 1000):
        path = parent / (stem if number == 1 else f"{stem}-{number}")
        if not path.exists():
            return path
    raise RunFolderError(f"{parent / stem} and the next 1000 names all exist")
