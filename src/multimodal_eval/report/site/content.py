"""The content of a site: the leaderboard, with what the run folders of its submissions add."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace as replace_fields

from multimodal_eval.analysis.leaderboard import Leaderboard, Refused, Standing
from multimodal_eval.contests.submissions import UNKNOWN
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_records import JudgesReport
from multimodal_eval.core.records import InputFile, Results, RunInfo
from multimodal_eval.core.system_files import DEVICE
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location, below

__all__ = [
    "Column",
    "SiteContent",
    "Submission",
    "file_name",
    "files_of",
    "named",
    "published_run",
    "site_content",
    "slugs_of",
    "without_folders",
]


# Names of submissions as names of folders, which are safe on every file host.
#
# A name is anything a participant could write: a path, another script, `CON`, or the same as another in capital
# letters.


LONGEST = 40  # characters of a name that are kept
_DIGEST = 10  # hexadecimal digits
_PLAIN = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{LONGEST - 1}}}")
_WITH_DIGEST = re.compile(rf".*-[0-9a-f]{{{_DIGEST}}}[0-9a-f]*")


def slugs_of(names: Iterable[str]) -> dict[str, str]:
    """A folder name for each name. It depends on the other names only if two digests are equal.

    A plain name of small letters, digits, hyphens and underscores stays as it is. Any other is shortened to what is
    plain in it, and gets a digest, so that the address of a page does not change when a submission is added.
    """
    slugs: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        slug = _slug(name, _DIGEST)
        if slug in taken:
            slug = _slug(name, 64)
        taken.add(slug)
        slugs[name] = slug
    return slugs


def _slug(name: str, digits: int) -> str:
    if _PLAIN.fullmatch(name) and not DEVICE.fullmatch(name) and not _WITH_DIGEST.fullmatch(name):
        return name
    ascii_letters = unicodedata.normalize("NFKD", name[: 4 * LONGEST]).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", ascii_letters.lower()).strip("-")[:LONGEST].strip("-")
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    return f"{words or 'submission'}-{digest}"


@dataclass(frozen=True)
class Column:
    """A metric that the submissions have."""

    name: str
    direction: str


@dataclass(frozen=True)
class Submission:
    """A ranked submission: its place, its run, and its folder in the site."""

    row: Standing
    slug: str
    run: Run
    files: list[InputFile]  # those that it sent
    leads: bool  # the first, and those that are tied with it

    @property
    def name(self) -> str:
        """The name of the submission."""
        return self.row.name

    @property
    def entries(self) -> dict[str, Figure]:
        """Every metric of the run, with failed answers counted as on the leaderboard."""
        return {name: _counted(name, entry, self.row.counted) for name, entry in self.run.entries.items()}

    @property
    def address(self) -> str:
        """Its page, seen from the first page of the site."""
        return f"submissions/{self.slug}/index.html"


@dataclass(frozen=True)
class SiteContent:
    """A whole site."""

    title: str
    board: Leaderboard
    submissions: list[Submission]
    columns: list[Column]  # the metrics beside the one that ranks
    gold: list[InputFile]  # the files that all submissions were scored with
    finished: str | None  # when the last submission was scored
    with_samples: bool

    @property
    def is_tested(self) -> bool:
        """Whether ties were tested."""
        return self.board.standings[0].tied_with is not None

    @property
    def has_labels(self) -> bool:
        """Whether human labels correct a score."""
        return any(row.calibrated is not None for row in self.board.standings)

    @property
    def failed(self) -> list[Submission]:
        """The submissions with failed answers."""
        return [submission for submission in self.submissions if submission.row.failures]

    @cached_property
    def order(self) -> dict[str, int]:
        """The position of each submission in the list."""
        return {submission.name: position for position, submission in enumerate(self.submissions)}

    def find(self, name: str) -> Submission | None:
        """The submission with this name; None if the leaderboard names one that it does not rank."""
        return self.submissions[self.order[name]] if name in self.order else None


def site_content(runs: Location, board: Leaderboard, title: str, *, with_samples: bool) -> SiteContent:
    """Collect the content from the run folders of a leaderboard."""
    stored = [Run(below(runs, row.name)) for row in board.standings]
    shared = _shared_files(stored)
    opened = [published_run(run, with_samples=with_samples) for run in stored]
    slugs = slugs_of(row.name for row in board.standings)
    tied = {board.standings[0].name, *(board.standings[0].tied_with or ())}
    submissions = [
        Submission(
            row,
            slugs[row.name],
            run,
            [named(file) for file in files_of(original) if file not in shared],
            row.name in tied,
        )
        for row, original, run in zip(board.standings, stored, opened, strict=True)
    ]
    finished = max((run.info.finished for run in opened if run.info.finished), default=None)
    shown = board if with_samples else replace(board, refused=tuple(map(_public, board.refused)))
    gold = [named(file) for file in shared]
    return SiteContent(title, shown, submissions, _columns(opened, board), gold, finished, with_samples)


def _counted(name: str, entry: Figure, counted: Mapping[str, Figure]) -> Figure:
    """The entry with the figures of the leaderboard, if these are others. Calibration leaves failed answers out."""
    if name not in counted:
        return entry
    parts = {part: counted.get(f"{name}.{part}", figure) for part, figure in entry.parts.items()}
    failed = (counted[name].n_scored or 0) - (entry.n_scored or 0)
    figure = entry.with_estimate(counted[name], parts=parts, calibrated=None)
    if failed <= 0:
        return figure
    return msgspec.structs.replace(figure, failed=failed, with_failures=None, without_failures=entry.bare)


def _public(refused: Refused) -> Refused:
    return Refused(refused.name, refused.public_reason or UNKNOWN, refused.public_reason)


def _columns(runs: Sequence[Run], board: Leaderboard) -> list[Column]:
    entries = {name: entry for run in runs for name, entry in run.entries.items()}
    return [Column(name, entry.better) for name, entry in entries.items() if name != board.number]


def _shared_files(runs: Sequence[Run]) -> list[InputFile]:
    """Files that every run has read: the data of the contest. The data are the first file of a single run."""
    first, *others = (files_of(run) for run in runs)
    if others:
        return [file for file in first if all(file in files for files in others)]
    return first[:1]


# A run without what only its organiser may see.
#
# Reasons of unscored samples quote answers, notes about the input quote ids and labels, and a run knows paths and
# addresses of the machine that scored it. A published run has none of them; everything else is that of the run folder.

_ADDRESSES = ("base_url", "key_env")
_KEPT = ("error_patterns",)  # regular expressions, which can look like paths
_E = TypeVar("_E", bound=Figure)


class _PublishedFolder(RunFolder):
    """The folder, under the name of its submission."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.label = self.name  # without its path

    def read_judges(self) -> JudgesReport | None:
        """What is known about the judges, without quotations of replies."""
        report = super().read_judges()
        if report is None:
            return None
        metrics = {
            name: replace_fields(judge, unreadable=_counted_samples(judge.unreadable))
            for name, judge in report.metrics.items()
        }
        return replace_fields(report, metrics=metrics)


def published_run(run: Run, *, with_samples: bool = False) -> Run:
    """The run for a public page; `with_samples` keeps what quotes samples, and only paths are shortened."""
    folder = _PublishedFolder(run.folder.location)
    info = replace_fields(run.info, input=[named(file) for file in run.info.input], rescored_from=None, owner=None)
    if with_samples:
        return Run(folder, None, info, run.outcome)
    if folder.read_judges() is None:  # it would be derived from the verdicts, with their quotations
        info = replace_fields(info, judging={})
    return Run(folder, None, _published_info(info), _published_results(run.outcome))


def file_name(path: str | None) -> str | None:
    """The last component of a path of any system."""
    return None if path is None else PureWindowsPath(PurePosixPath(path).name).name or path


def named(file: InputFile) -> InputFile:
    """The file by its name, without its folder."""
    return replace_fields(file, path=file_name(file.path))


def files_of(run: Run) -> list[InputFile]:
    """The input files of a run; samples in memory have none."""
    return [file for file in run.info.input if file.path is not None]


def without_folders(value: Any, key: str = "") -> Any:
    """The value with names instead of absolute paths and without addresses, at any depth."""
    if key in _ADDRESSES:
        return None
    if key in _KEPT:
        return value
    if isinstance(value, dict):
        return {_named(name): without_folders(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_folders(inner, key) for inner in value]
    return _named(value) if isinstance(value, str) else value


def _named(text: str) -> str:
    is_path = PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute() or text.startswith("~/")
    return (file_name(text) or text) if is_path and "\n" not in text else text


def _published_info(info: RunInfo) -> RunInfo:
    config = msgspec.convert(without_folders(msgspec.to_builtins(info.config)), type(info.config))
    config = replace_fields(config, image_root=None, media_roots=[])
    judging = {name: replace_fields(judge, addresses=[]) for name, judge in info.judging.items()}
    generation = None if info.generation is None else replace_fields(info.generation, base_url=None, stopped=None)
    imported = None if info.imported is None else replace_fields(info.imported, files=[], notes=[])
    plugins = {_named(path): digest for path, digest in info.plugins.items()}
    return replace_fields(
        info,
        config=config,
        source=None,
        input_notes=[],
        unavailable=dict.fromkeys(info.unavailable, "not available on the machine that scored"),
        judging=judging,
        generation=generation,
        imported=imported,
        plugins=plugins,
    )


def _published_results(results: Results) -> Results:
    slices = {
        column: {
            value: replace_fields(part, metrics={name: _without_reasons(entry) for name, entry in part.metrics.items()})
            for value, part in parts.items()
        }
        for column, parts in results.slices.items()
    }
    metrics = {name: _without_reasons(entry) for name, entry in results.metrics.items()}
    composite = None if results.composite is None else _without_reasons(results.composite)
    return replace_fields(results, metrics=metrics, composite=composite, slices=slices)


def _without_reasons(entry: _E) -> _E:
    return replace_fields(entry, reasons=[])


def _counted_samples(reasons: dict[str, int]) -> dict[str, int]:
    return {"not readable": sum(reasons.values())} if reasons else {}
