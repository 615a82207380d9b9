"""The content of a site: the leaderboard, with what the run folders of its submissions add."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from math import ceil, floor, log10

from multimodal_eval.analysis.leaderboard import Leaderboard, Refused, Standing
from multimodal_eval.contests.submissions import UNKNOWN
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.records import InputFile
from multimodal_eval.core.system_files import DEVICE
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location, below
from multimodal_eval.display.scales import round_step
from multimodal_eval.report.site.published_run import files_of, named, published_run

__all__ = ["Column", "Scale", "SiteContent", "Submission", "Whisker", "scale_of", "site_content", "slugs_of"]


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


# Intervals as small drawings on a scale that all rows of a table share.


WIDTH = 180
MARGIN = 8  # on both sides, for dots at the ends
TICKS = 4  # at most this many steps
FACTORS = (1, 2, 5, 10)  # of round steps
LARGEST = 1e12  # larger values do not stretch a scale


@dataclass(frozen=True)
class Tick:
    """A value on the axis, and its position in the drawing."""

    x: float
    label: str
    is_labelled: bool  # there is no room for all labels


@dataclass(frozen=True)
class Whisker:
    """A dot, and the ends of its interval if it has one."""

    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Scale:
    """From values to places in a drawing."""

    low: float
    high: float
    step: float

    @property
    def ticks(self) -> list[Tick]:
        """Round values, from left to right."""
        digits = max(0, -floor(log10(self.step)))
        count = round((self.high - self.low) / self.step)
        values = [round(self.low + number * self.step, 12) + 0.0 for number in range(count + 1)]
        labelled = {values[0], values[-1], 0.0 if 0.0 in values else values[len(values) // 2]}
        return [Tick(self.place(value), f"{value:.{digits}f}", value in labelled) for value in values]

    def place(self, value: float) -> float:
        """Where a value is drawn; a value outside the scale is drawn at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(MARGIN + share * (WIDTH - 2 * MARGIN), 2)

    def whisker(self, value: float, low: float | None, high: float | None) -> Whisker:
        """A value with its interval."""
        ends = [None if end is None else self.place(end) for end in (low, high)]
        return Whisker(self.place(value), *ends)


def scale_of(values: Iterable[float | None], *, include: float | None = None) -> Scale:
    """A scale with round ends that shows all values; `include` is a value that it shows in any case."""
    shown = [value for value in (*values, include) if value is not None and abs(value) <= LARGEST]
    low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
    if high - low <= 1e-9 * max(1.0, abs(low), abs(high)):
        padding = max(0.05, abs(low) * 0.05)
        low, high = low - padding, high + padding
    step = round_step((high - low) / TICKS, FACTORS)
    return Scale(floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step, step)


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


def _counted(name: str, entry: Figure, counted: Mapping[str, Figure]) -> Figure:
    """The entry with the figures of the leaderboard, if these are others. Calibration leaves failed answers out."""
    if name not in counted:
        return entry
    parts = {part: counted.get(f"{name}.{part}", figure) for part, figure in entry.parts.items()}
    return entry.with_estimate(counted[name], parts=parts, calibrated=None)


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
