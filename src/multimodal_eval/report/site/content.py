"""The content of a site: the leaderboard, with what the run folders of its submissions add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from multimodal_eval.analysis.leaderboard import Leaderboard, Refused, Standing
from multimodal_eval.contests.public_reasons import UNKNOWN
from multimodal_eval.core.records import CompositeEntry, Figure, InputFile, MetricEntry
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location, below
from multimodal_eval.report.site.published_run import files_of, named, published_run
from multimodal_eval.report.site.slugs import slugs_of
from multimodal_eval.report.site.whiskers import Scale, Whisker, scale_of

__all__ = ["Column", "SiteContent", "Submission", "site_content"]


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
    whisker: Whisker

    @property
    def name(self) -> str:
        """The name of the submission."""
        return self.row.name

    @property
    def entries(self) -> dict[str, MetricEntry | CompositeEntry]:
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
    scale: Scale
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
    def tied_with_first(self) -> list[Submission]:
        """The other submissions that may be as good as the first."""
        return [submission for submission in self.submissions[1:] if submission.leads]

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
    scale = scale_of(end for row in board.standings for end in (row.value, row.low, row.high))
    slugs = slugs_of(row.name for row in board.standings)
    tied = {board.standings[0].name, *(board.standings[0].tied_with or ())}
    submissions = [
        Submission(
            row,
            slugs[row.name],
            run,
            [named(file) for file in files_of(original) if file not in shared],
            row.name in tied,
            scale.whisker(row.value, row.low, row.high),
        )
        for row, original, run in zip(board.standings, stored, opened, strict=True)
    ]
    finished = max((run.info.finished for run in opened if run.info.finished), default=None)
    shown = board if with_samples else replace(board, refused=tuple(map(_public, board.refused)))
    gold = [named(file) for file in shared]
    return SiteContent(title, shown, submissions, _columns(opened, board), scale, gold, finished, with_samples)


def _counted(
    name: str, entry: MetricEntry | CompositeEntry, counted: Mapping[str, Figure]
) -> MetricEntry | CompositeEntry:
    """The entry with the figures of the leaderboard, if these are others. Calibration leaves failed answers out."""
    if name not in counted:
        return entry
    parts = {part: counted.get(f"{name}.{part}", figure) for part, figure in entry.parts.items()}
    return msgspec.structs.replace(entry, **msgspec.structs.asdict(counted[name]), parts=parts, calibrated=None)


def _public(refused: Refused) -> Refused:
    return Refused(refused.name, refused.public_reason or UNKNOWN, refused.public_reason)


def _columns(runs: Sequence[Run], board: Leaderboard) -> list[Column]:
    entries = {name: entry for run in runs for name, entry in run.entries.items()}
    return [Column(name, entry.direction) for name, entry in entries.items() if name != board.number]


def _shared_files(runs: Sequence[Run]) -> list[InputFile]:
    """Files that every run has read: the data of the contest. The data are the first file of a single run."""
    first, *others = (files_of(run) for run in runs)
    if others:
        return [file for file in first if all(file in files for files in others)]
    return first[:1]
