"""The settings of a run, as in its YAML file and in run.json."""

from typing import Annotated, Any, Literal

import msgspec

from multimodal_eval.core.failures import expanded
from multimodal_eval.core.generation_config import (
    CHANGEABLE,
    Detail,
    GenerationConfig,
    MediaAs,
    ModelProfile,
    Parameters,
    Price,
    Probe,
    UntilConfig,
)
from multimodal_eval.core.judge_config import JudgeConfig

__all__ = [
    "CHANGEABLE",
    "Detail",
    "GenerationConfig",
    "JudgeConfig",
    "MediaAs",
    "ModelProfile",
    "OnMissing",
    "Parameters",
    "PartConfig",
    "Price",
    "Probe",
    "RunConfig",
    "StrataConfig",
    "TaskConfig",
    "TaskOrigin",
    "UntilConfig",
]

OnMissing = Literal["error", "zero", "renormalise"]


class PartConfig(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """How a part enters a composite: as its place in a range, from the low end or, inverted, from the high end."""

    range: tuple[float, float]
    invert: bool = False  # for a metric for which lower is better


class TaskConfig(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A new task, or changes to a known one."""

    metrics: list[str] | None = None
    weights: dict[str, float] | None = None
    headline: str | None = None
    on_missing: OnMissing | None = None
    maximum: dict[str, Annotated[float, msgspec.Meta(gt=0)]] | None = None
    parts: dict[str, PartConfig] | None = None


class StrataConfig(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Turns every metric into a weighted sum of means, one for each value of a column.

    The mean is over the groups with that value; a group counts by the mean of its samples. Contests weight kinds of
    tasks this way.
    """

    by: str  # a field of the samples, or a column of their metadata
    weights: dict[str, float]  # value of the column -> weight; they sum to 1


class TaskOrigin(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """The task file that a run was started with. Name, version and checksum are part of the signatures."""

    name: str
    version: str
    data: str  # SHA-256 of the data
    notes: list[str] = []  # what of the file was not taken
    title: str | None = None
    commit: str | None = None  # of the data, if they were fetched from the hub
    exactness: str | None = None  # of a recipe: how sure its authors are of the verdicts
    figure: str | None = None  # of a recipe: the part of the metric that is published
    unit: str | None = None  # of a recipe: that of the published figure


class RunConfig(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Every setting of a run. The field names are the keys of the YAML file."""

    task: str | None = None
    metrics: list[str] | None = None
    headline: str | None = None  # the metric that leads; None: by the rule of `leading_metric`
    tasks: dict[str, TaskConfig] = {}
    options: dict[str, dict[str, Any]] = {}  # metric -> option -> value
    variants: dict[str, str] = {}  # name of a further column -> metric that it computes, with options of that name
    labels: str | list[Any] | dict[str, Any] | None = None  # labels of a classification: a list, or a YAML file
    unknown_labels: Literal["error", "wrong"] = "error"  # for predicted labels outside `labels`
    format: str | None = None  # of a log of another harness; None: by its content
    map: dict[str, str] = {}
    annotators: list[str] = []  # columns that hold one annotator's labels each: names, or patterns with * and ?
    questions: str | None = None  # the questions of VQA annotations; None: the file beside them, if there is one
    by: list[str] = []
    strata: StrataConfig | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    ids: str | list[str | int] | None = None  # read only these samples: their ids, or a file with them
    only_answered: bool = False  # leave out samples that have no prediction
    max_expansion: Annotated[int, msgspec.Meta(ge=1)] | None = None  # content per byte of a file; None: 100
    max_record_mb: Annotated[int, msgspec.Meta(ge=1, le=2000)] | None = None  # memory of one record; None: 512
    seed: int = 0
    error_patterns: list[str] | None = None  # regular expressions, or `default`; None: only the default
    plugins: list[str] = []
    complete: list[str] = []  # metrics that must score every sample; otherwise the run fails
    count_failures: Literal["wrong"] | None = None  # failed answers count as the metric's worst value; None: left out
    skip_unavailable: bool = False
    allow_partial: bool = False
    allow_empty: bool = False  # a metric without a single score is not an error
    skip_lint: bool = False
    image_root: str | None = None  # None: the data file's folder; no root for samples in memory
    allow_outside: bool = False  # the files that a task file or a judge's file names may be in other folders
    allow_outside_images: bool = False
    allow_image_urls: bool = False
    media_roots: list[str] = []  # set by `--media-root`: further folders that media are read from
    generation: GenerationConfig | None = None  # None: the samples have answers
    judges: dict[str, JudgeConfig] = {}  # metric -> the judge whose verdicts it scores
    human: dict[str, str] = {}  # metric -> the column with human labels of its answers; "" for all judges
    human_target: Literal["population", "file"] = "population"  # what corrected scores are about
    origin: TaskOrigin | None = None  # set by a task file
    presets: list[str] = []  # set by the run: the presets that its metrics came from

    @property
    def selection(self) -> str:
        """Which samples of the input are in the run, beside their number: ` (--limit 100)`; empty for all."""
        chosen = [] if self.limit is None else [f"--limit {self.limit:,}"]
        chosen += [] if self.ids is None else ["--ids"]
        chosen += ["--only-answered"] if self.only_answered else []
        return f" ({', '.join(chosen)})" if chosen else ""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Patterns of a generator's error message at the start of an answer."""
        return expanded(self.error_patterns)
