"""A finished run, read back from its folder."""

from __future__ import annotations

import shutil
import warnings
import weakref
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.display import HasHtml, counted
from multimodal_eval.core.errors import RunFolderError, UnknownNameError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.metric import Kind, metric_and_part
from multimodal_eval.core.optional import require
from multimodal_eval.core.records import (
    CHECKED_FORMAT,
    COMPOSITE,
    JsonObject,
    LintReport,
    Results,
    RunInfo,
    differences,
    headline_of,
    refuse_faults,
)
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.visible import visible
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import LocalStorage, Location, below, copy_file, storage_at

if TYPE_CHECKING:
    from multimodal_eval.data.runs.sample_rows import SampleRows


# A run as text: its metrics with intervals, and the notes about its input.

_OTHER_NAMES = {"composite": COMPOSITE, "bleu_4": "bleu"}
_DASH = "–"
_HEAD = ("metric", "value", "95% interval", "scored")


def figures_of(run: Run) -> dict[str, Figure]:
    """Every result by name. A part has its own name if that starts with the metric's, else `metric.part`."""
    figures: dict[str, Figure] = {}
    for metric, entry in run.entries.items():
        figures[metric] = entry
        figures |= {_part_name(metric, part): figure for part, figure in entry.parts.items()}
    return figures


def figure_named(run: Run, name: str) -> Figure | None:
    """A result by its name, by `metric.part`, or by the name of a part that only one metric has."""
    entry = run.entries.get(name) or run.entries.get(_OTHER_NAMES.get(name, name))
    if entry is not None:
        return entry
    matching = [
        figure
        for metric, entry in run.entries.items()
        for part, figure in entry.parts.items()
        if name in (part, f"{metric}.{part}")
    ]
    return matching[0] if len(matching) == 1 else None


def _part_name(metric: str, part: str) -> str:
    return part if part.startswith(metric) else f"{metric}.{part}"


def _rows(run: Run) -> Iterator[tuple[str, ...]]:
    for name, figure in figures_of(run).items():
        arrow = " ↓" if figure.direction == "lower" else ""
        coverage = f"{figure.n_scored:,} / {figure.n_total:,}" if figure.n_total is not None else ""
        yield name + arrow, _number(figure.value), _interval(figure), coverage
        if (corrected := figure.calibrated) is not None:
            labels = f"{corrected.labels:,} label{'' if corrected.labels == 1 else 's'}"
            yield f"{name}, calibrated", _number(corrected.value), _interval(corrected), labels
        if (other := figure.with_failures or figure.without_failures) is not None:
            counted = "as wrong" if other is figure.with_failures else "left out"
            yield f"{name}, {figure.failed:,} failed {counted}", _number(other.value), _interval(other), ""


def _number(value: float | None) -> str:
    return _DASH if value is None else f"{value:.4f}"


def _interval(figure: Figure) -> str:
    return _DASH if figure.low is None or figure.high is None else f"{figure.low:.4f} … {figure.high:.4f}"


def title_of(run: Run) -> str:
    """The number of samples, and the folder."""
    where = f"in {run.folder.label}" if run.is_kept else "in a temporary folder; save(PATH) keeps it"
    task = f", task {run.outcome.task}" if run.outcome.task else ""
    return f"Run of {counted(len(run), 'sample')}{run.info.config.selection}{task}, {where}"


def _notes(run: Run) -> list[str]:
    return [*run.outcome.notes, *run.info.input_notes]


def as_text(run: Run) -> str:
    """The title, a line per metric, and the notes."""
    rows = [_HEAD, *_rows(run)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    sides = (str.ljust, str.rjust, str.rjust, str.rjust)
    lines = ["  ".join(map(lambda cell, width, side: side(cell, width), row, widths, sides)) for row in rows]
    return "\n".join([title_of(run), *(line.rstrip() for line in lines), *(f"! {note}" for note in _notes(run))])


class UncheckedRunWarning(UserWarning):
    """A run of an earlier version, which has no checksums."""


KEYS = 3  # the first columns of the scores: row, id, group


class Run(HasHtml):
    """Results, per-sample scores and samples of one run.

    `run["cider_d"]` is the metric's entry in results.json (value, stderr, low, high, n_scored, …), and `run["bleu_1"]`
    one of its parts; `run.keys()` lists the names. `run.scores()` is an Arrow table with one row per sample, in input
    order.
    """

    def __init__(
        self,
        location: Location | RunFolder,
        scratch: Path | None = None,
        info: RunInfo | None = None,
        results: Results | None = None,
    ) -> None:
        self.folder = location if isinstance(location, RunFolder) else RunFolder(location)
        self.info: RunInfo = self.folder.read_info() if info is None else info
        if results is None:  # then the run was not just computed
            results = self.folder.read_results()
            refuse_faults(f"{self.folder.label}/results.json", differences(self.info, results))
            if self.info.format < CHECKED_FORMAT:
                message = f"{self.folder.label} is from a version without checksums: damaged files may not be noticed"
                warnings.warn(message, UncheckedRunWarning, stacklevel=2)
        self.outcome: Results = results
        self.is_kept = scratch is None  # whether the folder outlives this object
        if scratch is not None:  # a run without an output folder exists as long as this object
            weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)

    @property
    def path(self) -> Path:
        """The run folder on this machine; a run at a URL has none."""
        return self.folder.path

    @property
    def location(self) -> Location:
        """The location of the run folder: a path or a URL."""
        self.folder.storage.sync()
        return self.folder.location

    @property
    def headline(self) -> str | None:
        """The metric that leads: the one that the run declares, or else by the rule of `leading_metric`."""
        return headline_of(self.info, self.outcome)

    def kind_of(self, name: str) -> Kind | None:
        """What the score of a metric, or of `metric.part`, is; None if a run of an older version does not say."""
        metric, part = metric_and_part(name, self.info.signatures)
        stored = self.outcome.kinds
        if stored or part:
            return stored.get(name, stored.get(metric) if part and self.info.config.strata else None)
        signature = self.info.signatures.get(metric)
        if self.info.config.strata is not None:
            return "weighted mean"
        if metric in self.info.means or (signature is not None and signature.weights):
            return "mean"
        return None

    @property
    def results(self) -> JsonObject:
        """The content of results.json, as plain dicts and lists."""
        content: JsonObject = msgspec.to_builtins(self.outcome)
        return content

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics, without the composite."""
        return list(self.outcome.metrics)

    @property
    def entries(self) -> dict[str, Figure]:
        """All results by name: the metrics, then `composite_score` if there is one."""
        return self.outcome.entries

    @property
    def figures(self) -> dict[str, Figure]:
        """All results by name, as `entries`, with what only run.json says: kind, bounds, and the level of intervals."""
        return {name: self._described(name, entry) for name, entry in self.entries.items()}

    def slice_figures(self, column: str) -> dict[str, dict[str, Figure]]:
        """The same of each value of a column."""
        values = self.outcome.slices[column]
        return {
            value: {name: self._described(name, entry) for name, entry in cut.metrics.items()}
            for value, cut in values.items()
        }

    def _described(self, name: str, entry: Figure) -> Figure:
        bounds, direction = self.info.bounds_of(name), self.entries[name].better
        parts = {
            part: msgspec.structs.replace(figure, name=f"{name}.{part}", kind=self.kind_of(f"{name}.{part}"))
            for part, figure in entry.parts.items()
        }
        return msgspec.structs.replace(
            entry,
            name=name,
            kind=self.kind_of(name),
            bounds=bounds,
            level=self._level(name),
            direction=direction,
            parts=parts,
        )

    def _level(self, name: str) -> float | None:
        """The level of an interval that is not the usual one: that of a run or a judge that stopped early."""
        generation, judge = self.info.config.generation, self.info.config.judges.get(name)
        stopped = self.info.generation is not None and self.info.generation.stopped
        if generation is not None and generation.until is not None and stopped and generation.until.metric == name:
            return generation.until.confidence
        if judge is not None and judge.until is not None and any(p.is_stopped for p in self.info.judging[name].pairs):
            return judge.until.confidence
        return None

    def keys(self) -> list[str]:
        """The names of all results: metrics, their parts (`bleu_1`, `vqa_accuracy.agreement`), the composite."""
        return list(figures_of(self))

    def __getitem__(self, name: str) -> JsonObject:
        figure = figure_named(self, name)
        if figure is None:
            raise UnknownNameError("result of this run", name, self.keys())
        entry: JsonObject = msgspec.to_builtins(figure)
        return entry

    def calibrated(self, metric: str) -> Figure | None:
        """The score of a metric, corrected by human labels, with its interval; None if the run has no labels for it."""
        if metric not in self.entries:
            raise UnknownNameError("metric of this run", metric, list(self.entries))
        return self.entries[metric].calibrated

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and figure_named(self, name) is not None

    def _ipython_key_completions_(self) -> list[str]:
        return self.keys()

    def __len__(self) -> int:
        return self.outcome.n

    def __repr__(self) -> str:
        return visible(as_text(self))

    def scores(self, columns: list[str] | None = None) -> Any:
        """The scores as an Arrow table with one row per sample, in input order."""
        import pyarrow as pa

        parts = [self.folder.read_part("scores", number, columns) for number in range(len(self.info.parts))]
        return pa.concat_tables(parts, promote_options="default")

    def samples(self, fields: Collection[str] | None = None) -> Iterator[Sample]:
        """The samples in input order, with all fields or only ids and the given ones."""
        for number in range(len(self.info.parts)):
            yield from self.folder.read_samples(number, fields)

    def worst(self, metric: str | None = None, count: int = 6) -> SampleRows:
        """The samples with the worst values of a metric, by default the headline; a notebook shows a gallery."""
        from multimodal_eval.data.runs.sample_rows import ordered_rows

        return ordered_rows(self, metric, count, best=False)

    def best(self, metric: str | None = None, count: int = 6) -> SampleRows:
        """The samples with the best values of a metric, by default the headline."""
        from multimodal_eval.data.runs.sample_rows import ordered_rows

        return ordered_rows(self, metric, count, best=True)

    @property
    def is_linted(self) -> bool:
        """Whether the run has lint findings: False if it was run without lint."""
        return not self.info.config.skip_lint or self.folder.read_lint() is not None

    def lint(self) -> JsonObject:
        """Warnings about the scores (lint.json): `findings`, each with code, count, share and examples."""
        content: JsonObject = msgspec.to_builtins(self.lint_report())
        return content

    def lint_report(self) -> LintReport:
        """The same as a record. If the folder has no lint.json, it is computed now."""
        stored = self.folder.read_lint()
        if stored is None:
            from multimodal_eval.data.runs.run_lint import lint_of

            stored = lint_of(self.folder, self.info)
            with suppress(OSError, RunFolderError):  # a read-only folder can be linted too
                self.folder.write_lint(stored)
        return stored

    def to_pandas(self, *, with_samples: bool = False, with_details: bool = False) -> Any:
        """The ids, answers and scores as a pandas DataFrame (needs the extra `pandas`).

        `with_details` has status, reason, warning and details of each score, too, and `with_samples` also the fields of
        the samples.
        """
        pandas = require("pandas", extra="pandas", purpose="Run.to_pandas")
        scores = self._frame(whole=with_samples or with_details).to_pandas()
        if not with_samples:
            return scores
        columns = {name: pandas.Series(values) for name, values in self._sample_columns().items()}
        return pandas.concat([scores.iloc[:, :KEYS], pandas.DataFrame(columns), scores.iloc[:, KEYS:]], axis=1)

    def _frame(self, *, whole: bool) -> Any:
        """Ids, answers and one column per score; or everything that is stored about the scores."""
        scores = self.scores()
        if whole:
            return scores
        answers = [sample.generated_answer for sample in self.samples(["generated_answer"])]
        names = [name for name in scores.column_names[KEYS:] if ":" not in name]
        return scores.select(["id", *names]).add_column(1, "answer", [answers])

    def to_polars(self, *, with_samples: bool = False, with_details: bool = False) -> Any:
        """The same as a polars DataFrame (needs the extra `polars`)."""
        polars = require("polars", extra="polars", purpose="Run.to_polars")
        scores = polars.from_arrow(self._frame(whole=with_samples or with_details))
        if not with_samples:
            return scores
        columns = [polars.Series(name, values, strict=False) for name, values in self._sample_columns().items()]
        return polars.DataFrame([*scores.get_columns()[:KEYS], *columns, *scores.get_columns()[KEYS:]])

    def _sample_columns(self) -> dict[str, list[object]]:
        from multimodal_eval.data.runs.sample_rows import sample_columns

        return sample_columns(self.samples(), self.scores().column_names)

    def write_jsonl(self) -> Location:
        """Write the scores to scores.jsonl in the run folder: one object per sample, without nulls."""
        self.folder.storage.write("scores.jsonl", self._write_rows)
        return below(self.location, "scores.jsonl")

    def _write_rows(self, path: Path) -> None:
        encoder = msgspec.json.Encoder()
        with path.open("wb") as out:
            for number in range(len(self.info.parts)):
                for row in self.folder.read_part("scores", number).to_pylist():
                    out.write(encoder.encode({key: value for key, value in row.items() if value is not None}) + b"\n")

    def save(self, location: Location) -> Run:
        """Copy the run folder to a path or a URL."""
        source, target = self.folder.storage, storage_at(location)
        if isinstance(source, LocalStorage) and isinstance(target, LocalStorage):
            if target.path.exists():
                raise RunFolderError(f"{target.label} already exists")
            self.folder.refuse_links_out()  # before anything is copied
            shutil.copytree(self.path, target.path, symlinks=True)
            return Run(location)
        if target.is_taken():
            raise RunFolderError(f"{target.label} already exists")
        target.make()
        for name in sorted(source.files(), key=lambda name: name == "run.json"):  # run.json last: it marks a run
            copy_file(source, target, name)
        return Run(location)


def load_run(location: Location) -> Run:
    """Read a finished run folder, at a path or a URL."""
    return Run(location)
