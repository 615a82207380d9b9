"""Open the input of a run, make its plan, and execute it in a new folder."""

from __future__ import annotations

import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from multimodal_eval import __version__
from multimodal_eval.core.config import GenerationConfig, RunConfig
from multimodal_eval.core.errors import (
    ConfigError,
    MultimodalEvalError,
    OpenSamplesError,
    RetryableError,
    RunFolderError,
)
from multimodal_eval.core.machine import operating_system, package_version
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import RUN_FORMAT, ImportInfo, InputFile, Results, RunInfo, Source
from multimodal_eval.core.registry import plugin_digests
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import STATISTICS
from multimodal_eval.core.scoring import averages
from multimodal_eval.core.system_files import DEVICE
from multimodal_eval.data.readers.memory_input import MemoryInput, Table
from multimodal_eval.data.readers.parts import Input
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.runs.grants import signed
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location, located
from multimodal_eval.evaluation.tasks_config import get_task
from multimodal_eval.models.runtime import PACKAGES as EXTRA_PACKAGES
from multimodal_eval.run.engine.base import Engine
from multimodal_eval.run.plan import Plan, generating_plan, make_plan, needed_resources
from multimodal_eval.run.progress import recorded, shown
from multimodal_eval.run.runner import execute
from multimodal_eval.run.step import RunContext

if TYPE_CHECKING:
    from multimodal_eval.data.readers.inputs import FileInput
    from multimodal_eval.run.generation import Generation
    from multimodal_eval.run.rescore import Earlier

__all__ = [
    "Data",
    "Started",
    "describe",
    "described_metrics",
    "file_name",
    "new_folder",
    "now",
    "open_input",
    "opened_again",
    "planned",
    "run_name",
    "start",
]

# Packages whose version may change a score or the stored files.
PACKAGES = ("numpy", "pyarrow", "msgspec", *EXTRA_PACKAGES, "pillow")


class Started(NamedTuple):
    """A run that was executed: what `Run` needs, which then reads nothing again. The records are as they are stored."""

    folder: RunFolder
    scratch: Path | None  # the temporary folder that contains it, if no output was given
    info: RunInfo
    results: Results | None


def start(
    plan: Plan,
    source: Input | Earlier,
    output: Location | None,
    engine: Engine | None = None,
    progress: Progress | bool | None = False,
    *,
    overwrite: bool | None = None,
    generation: Generation | None = None,
    imported: ImportInfo | None = None,
) -> Started:
    """Execute a run in a new folder. A refused input leaves no folder behind; `overwrite` is as in RunFolder.created.

    `source` is an input, or an earlier run whose samples are scored again. `generation` asks a model for the answers,
    which the input then need not have. `imported` describes the logs of another harness that the input is.
    """
    engine = engine or Engine()
    if output is None and engine.address is not None:
        raise ConfigError("a run on a cluster needs an `output` folder that all its machines can access")
    scratch = None
    if output is None:
        scratch = Path(tempfile.mkdtemp(prefix="mmeval-"))
        output = scratch / "run"
    path, is_kept = located(output), scratch is None
    with _removed_on_failure(scratch), shown(progress) as report:
        if generation is not None:
            from multimodal_eval.run.ask.ask import refuse_remote

            refuse_remote(path)
            if generation.config.until is not None:
                from multimodal_eval.run.ask.until import settled_until

                plan = settled_until(plan)
        if isinstance(source, Input):
            files = [InputFile(path=str(path)) for path in source.paths]  # a resumed run opens absolute paths
            info = describe(plan, source.recipe(), input=files, imported=imported)
        else:
            info = source.describe(path, overwrite=overwrite)
        info = signed(info, is_kept=is_kept)
        with (
            engine.executor(plan) as executor,
            RunFolder.created(path, info, is_durable=is_kept, overwrite=overwrite) as folder,
        ):
            run = RunContext(plan, folder, info, engine=executor, progress=report, generation=generation)
            if isinstance(source, Input):
                run.source = lambda: source
            else:
                source.begin(run)
            with _discarded_if_refused(run), recorded(folder, report) as run.progress:
                execute(run)
    results = None if run.results is None else msgspec.json.decode(msgspec.json.encode(run.results), type=Results)
    folder = folder if folder.storage.defers else RunFolder(folder.location)  # without a cache of its parts
    return Started(folder, scratch, run.info, results)


@contextmanager
def _removed_on_failure(scratch: Path | None) -> Iterator[None]:
    """Remove a temporary folder if its run fails."""
    try:
        yield
    except OpenSamplesError:  # the scored parts are kept, and the run can be resumed
        raise
    except BaseException:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        raise


def describe(plan: Plan, source: Source | None, **more: Any) -> RunInfo:
    """The initial content of run.json, as it is read back. `source` describes how to open the input again."""
    info = RunInfo(
        format=RUN_FORMAT,
        state="reading",
        created=now(),
        versions={
            "multimodal_eval": __version__,
            "statistics": STATISTICS,
            "python": platform.python_version(),
            "platform": operating_system(),
            **_installed_versions(),
        },
        task=plan.task.name if plan.task else None,
        unavailable=plan.unavailable,
        seed=plan.config.seed,
        config=plan.config,
        source=source,
        plugins=plugin_digests(plan.config.plugins) if plan.config.plugins else {},
        **described_metrics(plan),
        **more,
    )
    return msgspec.json.decode(msgspec.json.encode(info), type=RunInfo)


def _installed_versions() -> dict[str, str]:
    """Those of an extra are left out if they are not installed, or under another name, as onnxruntime-gpu."""
    versions = {}
    for package in PACKAGES:
        if package in EXTRA_PACKAGES and find_spec(package) is None:
            continue
        with suppress(ModuleNotFoundError):
            versions[package] = package_version(package)
    return versions


def described_metrics(plan: Plan) -> dict[str, Any]:
    """The entries of run.json about the metrics."""
    return {
        "metrics": [metric.name for metric in plan.metrics],
        "headline": plan.headline,
        "bounds": plan.bounds,
        "means": [metric.name for metric in plan.metrics if averages(metric)],
    }


def now() -> str:
    """The current time, as in run.json."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def _discarded_if_refused(run: RunContext) -> Iterator[None]:
    """Remove a new folder if its input, its settings or all requests to its model are refused.

    The folder is kept if it has an answer of the model, if scoring has started, or if some samples are only open.
    """
    try:
        yield
    except (OpenSamplesError, RetryableError):
        run.folder.storage.sync()
        raise
    except MultimodalEvalError as error:
        if not run.info.signatures and (not run.has_asked or _is_refused(run, error)):
            run.folder.discard()
        raise


def _is_refused(run: RunContext, error: Exception) -> bool:
    from multimodal_eval.run.ask.ask import is_refused

    return is_refused(run.folder, error)


# Open the input of a run, make its plan, and find the place of its folder.

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
    if config.ids is not None:
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
        columns, annotators = parse_map(config.map) if config.map else {}, tuple(config.annotators)
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
