"""The settings of a run: what its YAML file may say, and what run.json remembers of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from multimodal_eval.core.scoring import ERROR_PATTERNS

OnMissing = Literal["error", "zero", "renormalise"]


class TaskConfig(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A task of one's own, or changes to a known one."""

    metrics: list[str] | None = None
    weights: dict[str, float] | None = None
    headline: str | None = None
    on_missing: OnMissing | None = None
    maximum: dict[str, Annotated[float, msgspec.Meta(gt=0)]] | None = None


class StrataConfig(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Every number becomes a weighted sum: over the values of a column, of the mean over the groups of each.

    A group counts by the mean of its samples. Contests weigh kinds of tasks so.
    """

    by: str  # a field of the samples, or a column of their metadata
    weights: dict[str, float]  # value of the column -> weight; they sum to 1


class RunConfig(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Every setting of a run. Keys of the YAML file are these names."""

    task: str | None = None
    metrics: list[str] | None = None
    tasks: dict[str, TaskConfig] = {}
    options: dict[str, dict[str, Any]] = {}  # metric -> option -> value
    labels: str | list[Any] | dict[str, Any] | None = None  # of a classification: a list, or a YAML file
    unknown_labels: Literal["error", "wrong"] = "error"  # predicted labels that are none of these
    map: dict[str, str] = {}
    annotators: list[str] = []  # columns that hold one annotator's labels each: names, or patterns with * and ?
    by: list[str] = []
    strata: StrataConfig | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    seed: int = 0
    error_patterns: list[str] | None = None  # None: the usual ones
    plugins: list[str] = []
    complete: list[str] = []  # metrics that must score every sample; one without a value refuses the run
    skip_unavailable: bool = False
    allow_partial: bool = False
    skip_lint: bool = False
    image_root: str | None = None  # None: the data file's folder; samples in memory have none
    allow_outside_images: bool = False
    allow_image_urls: bool = False
    presets: list[str] = []  # filled in by the run: which presets the metrics came from

    @property
    def patterns(self) -> tuple[str, ...]:
        """Answers that begin so are a generator's error message."""
        return ERROR_PATTERNS if self.error_patterns is None else tuple(self.error_patterns)
