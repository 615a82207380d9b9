"""The format of task files and recipes: YAML that declares data, columns, prompts, metrics and rules.

A recipe is a task file in a folder of its own, with what a published benchmark has besides: the source of its data,
what they must look like, prompts of several origins, how sure its authors are of it, and files that check it.
docs/recipes.md describes every key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from multimodal_eval.core.config import Parameters, StrataConfig, TaskConfig
from multimodal_eval.core.setting_words import INSIDE
from multimodal_eval.data.datasets.declared_rows import Groups

__all__ = [
    "SECTIONS",
    "UNVERIFIED",
    "Exactness",
    "HubData",
    "Prompt",
    "Reproduction",
    "TaskData",
    "TaskFile",
    "TaskGeneration",
]

UNVERIFIED: Literal["unverified"] = "unverified"  # a revision, a number of rows or columns that nobody has seen
Unverified = Literal["unverified"]
Certainty = Literal["verified", "read", "known"]
Pattern = Annotated[str, msgspec.Meta(pattern=INSIDE)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class HubData(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """A dataset on the Hugging Face hub."""

    repository: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    files: Pattern  # of the files that are read, relative to the repository
    also: list[Pattern] = []  # patterns of further files that are fetched: images beside the data
    revision: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{40}|unverified)$")] = UNVERIFIED
    sha256: dict[str, Sha256] = {}  # file -> checksum, as far as they are known
    gated: bool = False  # whether an account must accept terms before the data can be fetched


class TaskData(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """The data of a task: beside the file, on the hub, or from a source that the user copies them from."""

    path: str | None = None  # a file, a folder or a pattern, relative to the task file
    hub: HubData | None = None
    source: str | None = None  # where the data are if they are neither beside the file nor on the hub
    files: Pattern | None = None  # the pattern of the files of such a source
    format: str | None = None  # None: by its content
    sha256: Sha256 | None = None
    image_root: str | None = None
    questions: str | None = None
    split: str | None = None  # for people: the pattern of the files chooses it
    rows: Annotated[int, msgspec.Meta(ge=1)] | Unverified | None = None
    columns: list[str] | Unverified | None = None  # those that the files must have
    # What becomes of a row before its columns are read as fields.
    folder: str | None = None  # the name of a column that gets the name of the file's folder
    add: dict[str, Any] = {}  # columns that are the same in every row
    keep: dict[str, list[str]] = {}  # column -> values: other rows are left out; `present` is any value
    lists: list[str] = []  # columns with lists that are written as text
    last: list[str] = []  # columns with lists of which the last element counts
    values: dict[str, dict[str, str | None]] = {}  # column -> value -> the value that it means; null is none
    groups: Groups = {}  # new column -> column that it is made of -> group -> values

    @property
    def pattern(self) -> str | None:
        """The pattern of the files below a folder with a copy of the data."""
        return self.files if self.hub is None else self.hub.files


class TaskGeneration(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """How a model is asked, without the model."""

    prompt: str | None = None
    system: str | None = None
    shots: str | None = None
    shot_count: Annotated[int, msgspec.Meta(ge=0)] | None = None
    history: bool = False
    parameters: Parameters = Parameters()
    epochs: Annotated[int, msgspec.Meta(ge=1)] = 1
    max_pixels: Annotated[int, msgspec.Meta(ge=1)] | None = None
    detail: Literal["low", "high", "auto"] | None = None
    frames: Annotated[int, msgspec.Meta(ge=1)] | None = None
    frames_per_second: Annotated[float, msgspec.Meta(gt=0)] | None = None
    media_as: Literal["data", "url", "none"] = "data"
    accept_truncated: bool = False


class Prompt(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """A prompt with a name, and its origin."""

    text: str  # a template
    origin: str
    licence: str | None = None  # of a text that is quoted
    parameters: Parameters = Parameters()  # on top of those of `generation`


class Exactness(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """How sure the authors of a recipe are of its parts.

    verified: equal to the origin's program, or to its published figures; read: from its source; known: from hearsay.
    """

    verdicts: Certainty  # the rule
    aggregation: Certainty
    prompt: Certainty
    data: Certainty = "known"  # the repository, its columns and its rows
    about: str | None = None  # what was compared with what, and what differs


class Reproduction(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """How the published figures were made of the published answers, if not by the recipe."""

    rule: str | None = None  # of the published verdicts
    # Whether the metric reads the answer, the authors' extraction if it reads nothing in the answer, or the extraction.
    extraction: Literal["never", "unread", "always"] = "never"
    columns: dict[
        str, list[str]
    ] = {}  # field, or column of the recipe -> columns of the authors' files, the first there
    names: dict[str, dict[str, str]] = {}  # column -> value in published tables -> value in the files
    groups: Groups = {}  # as those of the data


class TaskFile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """The content of a task file, or of a recipe."""

    name: str
    data: str | TaskData
    version: str | int | float = "1"
    description: str | None = None
    columns: dict[str, str | list[str]] = {}  # field -> column, as --map; several columns become one field
    prompt: str | None = None  # a name, a file, or the text of a template
    prompts: dict[str, Prompt] = {}  # those of several origins, for `prompt` and --prompt
    rules: dict[str, str] = {}  # metric -> rule
    generation: TaskGeneration = TaskGeneration()
    task: str | None = None
    metrics: list[str] | None = None
    headline: str | None = None
    tasks: dict[str, TaskConfig] = {}
    options: dict[str, dict[str, Any]] = {}
    variants: dict[str, str] = {}
    labels: str | list[Any] | dict[str, Any] | None = None
    unknown_labels: Literal["error", "wrong"] = "error"
    annotators: list[str] = []
    by: list[str] = []
    strata: StrataConfig | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    seed: int = 0
    error_patterns: list[str] | None = None
    complete: list[str] = []
    # What is published about the benchmark.
    title: str | None = None
    licence: str | None = None  # of the data
    citation: str | None = None
    home: str | None = None
    figure: str | None = None  # the published figure, METRIC.PART; None: the metric that leads
    unit: str | None = None  # of the published figure: %, fraction, points of 1000, …
    exactness: Exactness | None = None
    crosswalk: list[str] = []  # rules that `mmeval crosswalk NAME` compares with that of the recipe; none: all of them
    traps: list[str] = []  # what makes figures of others differ
    reproduction: Reproduction = Reproduction()
    goldens: str | None = None  # how the verdicts in goldens.jsonl were made


# Where the decoder is -> the settings that are known there; the first that fits.
SECTIONS: Mapping[str, type[msgspec.Struct]] = {
    "$.data.hub": HubData,
    "$.data": TaskData,
    "$.generation.parameters": Parameters,
    "$.generation": TaskGeneration,
    "$.prompts[...].parameters": Parameters,
    "$.prompts": Prompt,
    "$.exactness": Exactness,
    "$.reproduction": Reproduction,
    "$.tasks": TaskConfig,
    "$.strata": StrataConfig,
}
