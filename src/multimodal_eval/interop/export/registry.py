"""The formats that `mmeval export` writes, and the function that writes them.

A format is a line of `FORMATS` and a module, or an object in one (`module:NAME`), with

    OPTIONS = Options(…)                                 # what --set NAME=VALUE accepts; optional
    def export(runs, path, options) -> Exported: ...     # `options` has a value for every declared option

`runs` are the opened runs, or paths if the format takes data. A format of text returns `Exported(text=…)` and leaves
`path` alone: the text is printed, or written to the path. Other formats write below `path` themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.options import Option, Options, OptionValues, checked_values, defaults_of
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.interop.export.files import write_text

__all__ = ["FORMATS", "Exported", "Exporter", "Format", "export", "export_format", "format_options"]

_HERE = "multimodal_eval.interop.export"
_TRACKERS = "multimodal_eval.interop.trackers"


@dataclass(frozen=True)
class Exported:
    """What an export wrote: a text, or files; and what the reader should know, such as what the format cannot say."""

    text: str | None = None
    paths: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """One format: its exporter, a line for lists, how many runs it takes (or data), and what it writes.

    `output` is `text` (printed without a path), `file` or `folder` (a path is needed; an existing file is only replaced
    on request, and a folder may have other files), or `service` (a path is optional: the tracker has its own place).
    """

    exporter: str
    summary: str
    takes: Literal["run", "runs", "data"] = "runs"
    output: Literal["text", "file", "folder", "service"] = "text"


FORMATS: Mapping[str, Format] = {
    "eee": Format(f"{_HERE}.eee", "Every Eval Ever: results with uncertainty, and instances.", output="folder"),
    "hf-eval-results": Format(f"{_HERE}.hf_eval_results", "Hugging Face Hub: .eval_results/NAME.yaml of a model."),
    "model-index": Format(f"{_HERE}.model_index", "Hugging Face Hub: model-index of a model card."),
    "inspect": Format(f"{_HERE}.inspect_log", "inspect_ai: a log that its viewer opens.", takes="run", output="file"),
    "codabench": Format(
        f"{_HERE}.shared_tasks:CODABENCH", "A shared task on Codabench, from data.", takes="data", output="file"
    ),
    "evalai": Format(
        f"{_HERE}.shared_tasks:EVALAI", "A shared task on EvalAI, from data.", takes="data", output="file"
    ),
    "cite": Format(f"{_HERE}.cite", "A paragraph for a paper with every interval, signatures and BibTeX."),
    "csv": Format(f"{_HERE}.row_tables:CSV", "One row per sample, or one per metric.", output="file"),
    "jsonl": Format(f"{_HERE}.row_tables:JSONL", "One object per sample, or one per metric.", output="file"),
    "latex": Format(f"{_HERE}.score_tables:Latex", "Runs side by side as papers print them, with a paired test."),
    "markdown": Format(f"{_HERE}.score_tables:Markdown", "Runs side by side with a paired test, for GitHub."),
    "mlflow": Format(f"{_TRACKERS}.mlflow_tracker", "Metrics, report and samples in MLflow.", output="service"),
    "parquet": Format(f"{_HERE}.row_tables:PARQUET", "One row per sample, or one per metric.", output="file"),
    "trackio": Format(f"{_TRACKERS}.trackio_tracker", "Metrics, report and samples in Trackio.", output="service"),
    "wandb": Format(f"{_TRACKERS}.wandb_tracker", "Metrics, report and samples in Weights & Biases.", output="service"),
}


class Exporter(Protocol):
    """The module or object of a format."""

    OPTIONS: Options

    def export(self, runs: Sequence[Any], path: Path | None, options: OptionValues) -> Exported:
        """Write runs, or data; the options are checked and complete."""
        ...


def export_format(name: str) -> Format:
    """The format with that name."""
    if name not in FORMATS:
        raise UnknownNameError("export format", name, FORMATS)
    return FORMATS[name]


def format_options(name: str) -> Mapping[str, Option]:
    """The options that a format declares."""
    return getattr(_exporter(name), "OPTIONS", None) or Options()


def export(
    inputs: Sequence[Run | Location] | Run | Location,
    to: str,
    path: str | Path | None = None,
    *,
    overwrite: bool = False,
    **options: Any,
) -> Exported:
    """Write runs in the format `to`. The options are those that the format declares.

    A format of text is written to `path`, if one is given. An existing file is only replaced with `overwrite`.
    """
    target = export_format(to)
    values = {**defaults_of(format_options(to)), **checked_values(format_options(to), f"the format {to}", options)}
    several = [inputs] if isinstance(inputs, Run | str | Path) else list(inputs)
    if not several:
        raise ConfigError("no run to export")
    if target.takes == "run" and len(several) > 1:
        raise ConfigError(f"the format {to} takes one run. Got {len(several)}. Export them one by one")
    place = None if path is None else Path(path)
    _check_place(to, target, place, overwrite=overwrite)
    opened: list[Any] = several if target.takes == "data" else [_opened(each) for each in several]
    try:
        exported = _exporter(to).export(opened, place, values)
        if exported.text is not None and place is not None:
            write_text(place, exported.text)
            exported = Exported(None, (place,), exported.notes)
    except OSError as error:
        raise ConfigError(f"{error.filename or place} cannot be written: {error.strerror or error}") from None
    return exported


def _opened(run: Run | Location) -> Run:
    return run if isinstance(run, Run) else Run(run)


def _check_place(name: str, target: Format, path: Path | None, *, overwrite: bool) -> None:
    if path is None:
        if target.output in ("file", "folder"):
            raise ConfigError(f"the format {name} needs a path: -o {'FOLDER' if target.output == 'folder' else 'FILE'}")
        return
    if target.output in ("text", "file"):
        if path.is_dir():
            raise ConfigError(f"{path} is a folder, but the format {name} writes one file")
        if path.exists() and not overwrite:
            raise ConfigError(f"{path} already exists. Replace it with --overwrite, or choose another -o")
    elif path.exists() and not path.is_dir():
        raise ConfigError(f"{path} is a file, but the format {name} writes a folder")


def _exporter(name: str) -> Exporter:
    module, _, part = export_format(name).exporter.partition(":")
    exporter: Any = import_module(module)
    return cast(Exporter, getattr(exporter, part) if part else exporter)
