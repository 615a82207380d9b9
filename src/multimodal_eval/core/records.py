"""The content of run.json, results.json, manifest.json and lint.json as types. Only this module knows their keys.

Fields without a default are always written; a field with its default value is omitted.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Literal, TypeVar

import msgspec

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import RunFolderError, UnknownNameError, shorten
from multimodal_eval.core.failures import FIRST
from multimodal_eval.core.figure import Bounds, Figure, Kind
from multimodal_eval.core.metric import is_name

RUN_FORMAT = 3  # of run.json; format 1 has no `means`, formats 1 and 2 have no checksums
CHECKED_FORMAT = 3  # the first format with checksums
RESULTS_FORMAT = 1
MANIFEST_FORMAT = 1
LINT_FORMAT = 3
READABLE_FORMATS = (1, 2, 3)

RECORDED = "recorded"  # the metric that looks up scores of another program
NOT_SCORED_BY_TASK = "the task does not score this document by"  # the start of a reason, before a metric
LOG = "log_name"  # the column with the name of a log, if several were read together
COMPOSITE = "composite_score"  # the name of the composite among the metrics of a run

State = Literal["reading", "generating", "generated", "judging", "scoring", "done"]
T = TypeVar("T")
JsonObject = dict[str, Any]  # a JSON object with free keys: options, settings, details


# results.json


class Slice(msgspec.Struct, frozen=True, omit_defaults=True):
    """The samples with one value of a column, and their metrics."""

    n: int
    metrics: dict[str, Figure] = {}


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The content of results.json."""

    format: int = RESULTS_FORMAT
    task: str | None
    headline: str | None = None  # the metric that leads; None in older versions, see `leading_metric`
    n: int
    metrics: dict[str, Figure]
    composite: Figure | None
    slices: dict[str, dict[str, Slice]]  # column -> value -> its samples
    notes: list[str]
    kinds: dict[str, Kind] = {}  # metric, or metric.part -> what its score is; empty in older versions

    def __post_init__(self) -> None:
        for name, entry in self.metrics.items():
            _refuse_missing(name, entry, "direction", "signature")
        if self.composite is not None:
            _refuse_missing(COMPOSITE, self.composite, "signature")
        for values in self.slices.values():
            for cut in values.values():
                for name, entry in cut.metrics.items():
                    _refuse_missing(name, entry)

    @property
    def entries(self) -> dict[str, Figure]:
        """The metrics by name, then the composite if there is one."""
        return {**self.metrics, **({} if self.composite is None else {COMPOSITE: self.composite})}


_COUNTS = ("n_scored", "n_total", "unscored", "reasons", "warnings")


def _refuse_missing(name: str, entry: Figure, *fields: str) -> None:
    """Refuse an entry of results.json without the fields that every entry has, unlike other figures."""
    for field in (*_COUNTS, *fields):
        if getattr(entry, field) is (msgspec.UNSET if field == "signature" else None):
            raise ValueError(f"Object missing required field `{field}` of `{name}`")
    if entry.calibrated is not None and entry.calibrated.labels is None:
        raise ValueError(f"Object missing required field `labels` of `{name}`")


# run.json


class StoredSignature(msgspec.Struct, frozen=True, omit_defaults=True):
    """The signature of a metric: as text, its settings, and the metric's options."""

    text: str
    settings: JsonObject
    options: JsonObject | None = None  # None for the composite

    @property
    def version(self) -> str:
        """The version of the metric."""
        return str(self.settings.get("version", ""))

    @property
    def code(self) -> str | None:
        """The digest of the metric's source, if it has no declared version."""
        return self.settings.get("code")

    @property
    def counts_the_corpus(self) -> bool:
        """Whether document frequencies come from the run's references."""
        return str(self.settings.get("df", "")).startswith("corpus")

    @property
    def headline(self) -> str | None:
        """The metric that is the composite, if the composite is not a weighted sum."""
        return self.settings.get("headline")

    @property
    def weights(self) -> Mapping[str, float]:
        """The weights of a composite's parts."""
        return self.settings.get("weights") or {}


class Counts(msgspec.Struct, frozen=True):
    """How many samples the input had, and how many of its records had no match."""

    samples: int
    blank_answers: int
    unmatched_data: int
    unmatched_predictions: int


class InputFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An input file, with size and checksum; samples in memory have no path."""

    path: str | None
    bytes: int | None = None
    sha256: str | None = None
    samples: int | None = None


class Source(msgspec.Struct, frozen=True):
    """How to open the input again."""

    data: str
    predictions: str | None


class GenerationInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the answers of a run were generated. Times and latencies are in the exchanges, not here."""

    signature: str  # the model and every setting that changes an answer
    settings: JsonObject
    base_url: str | None = None  # recorded, and not part of the signature
    models: list[str] = []  # as the endpoint names them
    statuses: dict[str, int] = {}  # outcome -> samples
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None  # by the price file of the user
    currency: str | None = None
    population: int | None = None  # samples in the input, if only some of them were drawn
    stopped: str | None = None  # why generation stopped before all samples were answered
    second_draws: int = 0  # answers to requests whose first answer was a failure
    requests: str | None = None  # SHA-256 of all requests' digests, one per line in the order of the rows


class ComparedPair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Two systems whose comparisons could stop early: how many samples were compared, and what is certain then."""

    system: str
    baseline_system: str
    compared: int  # samples, out of the population from which they were drawn
    population: int
    win_rate: float | None = None  # of the first system, with an interval that is valid at any time; None if unscored
    low: float | None = None
    high: float | None = None
    outcome: Literal["better", "worse", "equal", "open"]  # equal: the win rate is within the margin around a half
    is_stopped: bool = False  # before all samples were compared


class JudgingInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdicts of a judge on the samples of a run."""

    settings: JsonObject  # what changes a request: with the same settings, the verdicts can be used again
    addresses: list[str | None] = []  # of the models; recorded, and not part of a signature
    models: list[str] = []  # as the endpoints name them
    statuses: dict[str, int] = {}  # outcome -> questions
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None  # by the price file of the user
    currency: str | None = None
    pairs: list[ComparedPair] = []  # with `until`, once it is decided

    @property
    def skipped(self) -> int:
        """Samples that were not compared because their pair of systems was decided before."""
        return sum(pair.population - pair.compared for pair in self.pairs)


class ReportedScore(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a harness itself reports for one of its scores."""

    metric: str
    value: float
    log: str | None = None  # which of several logs reports it
    samples: int | None = None  # how many it is about
    aggregation: str | None = None  # as the harness names it, if it is not a mean
    decimals: int | None = None  # to which the harness rounds it


class ImportInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The logs of another harness from which a run was imported."""

    harness: str
    version: str | None = None
    model: str | None = None
    task: str | None = None  # several are separated by commas
    files: list[str] = []
    settings: JsonObject = {}  # of the generation, as the harness names them
    reported: list[ReportedScore] = []
    notes: list[str] = []  # what was left out, and why


class RunInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of run.json. Fields that are known only after reading the input or fitting have a default."""

    format: int
    state: State
    created: str
    versions: dict[str, str]
    task: str | None
    metrics: list[str]
    unavailable: dict[str, str]  # metric -> why it could not run
    seed: int
    config: RunConfig
    source: Source | None
    headline: str | None = None  # the metric that leads
    bounds: dict[str, Bounds] = {}
    means: list[str] = []  # metrics whose result is the mean of their values
    unicode: str = "NFC"
    input: list[InputFile] = []
    counts: Counts | None = None
    input_notes: list[str] = []
    parts: list[int] = []  # number of samples in each part
    signatures: dict[str, StoredSignature] = {}
    finished: str | None = None
    rescored_from: str | None = None
    generation: GenerationInfo | None = None
    imported: ImportInfo | None = None
    judging: dict[str, JudgingInfo] = {}  # by metric
    plugins: dict[str, str] = {}  # plug-in file -> the SHA-256 of its content; never imported from here
    owner: str | None = None  # a number and a keyed digest of what the run was started with; see data.runs.grants

    @property
    def command(self) -> str:
        """The command that continues the run with --resume: `score`, or `run` if a model is asked."""
        return "score" if self.config.generation is None or self.rescored_from is not None else "run"

    @property
    def has_metrics(self) -> bool:
        """Whether the run computes scores, instead of stopping after the answers of a model."""
        return bool(self.metrics or self.unavailable)

    @property
    def has_answers(self) -> bool:
        """Whether the samples are stored with all their answers, be they those of the input or those of a model."""
        if self.rescored_from is not None:  # they are taken before anything is scored
            return bool(self.signatures)
        is_asked = self.config.generation is not None
        return bool(self.parts) and (not is_asked or (self.generation is not None and bool(self.generation.statuses)))

    def bounds_of(self, name: str) -> Bounds:
        """The lower and upper bound of a metric; None for no bound."""
        return self.bounds.get(name, (None, None))

    def unrecorded(self, metric: str) -> str | None:
        """The reason of samples for which the imported log has no such score, as it does not apply to them.

        They are of another task or perturbation. None if the metric is not a score of the log.
        """
        if self.imported is None or self.config.variants.get(metric) != RECORDED:
            return None
        options = self.config.options.get(metric, {})
        column = options.get("column", metric)
        return f"no metadata.{column}" if options.get("task") is None else f"{NOT_SCORED_BY_TASK} {column}"


def statistics_of(info: RunInfo) -> str:
    """The version of the statistics of a run's intervals."""
    return info.versions.get("statistics", "1")


def computed_scores(config: RunConfig) -> dict[str, Mapping[str, Any]]:
    """The metrics of a run that an installed harness computes, with their options."""
    options = {name: config.options.get(name, {}) for name, metric in config.variants.items() if metric == RECORDED}
    return {name: values for name, values in options.items() if values.get("task") is not None}


# lint.json


class Repeated(msgspec.Struct, frozen=True):
    """An answer that many samples have."""

    answer: str
    count: int


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A warning of lint; it concerns `count` of `total` samples (or answers)."""

    code: str
    metric: str | None = None
    count: int
    total: int
    share: float
    what: str
    why: str
    examples: list[str] = []
    answers: list[Repeated] = []


class LintReport(Displayed, msgspec.Struct, frozen=True):
    """The content of lint.json."""

    format: int
    n: int
    findings: list[Finding]


# manifest.json


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of manifest.json."""

    format: int = MANIFEST_FORMAT
    files: dict[str, str]  # name -> sha256


# reading and writing


def to_json(content: object) -> bytes:
    """JSON as in a run folder: indented, and the same bytes for the same content."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


class _Format(msgspec.Struct):
    format: int | None = None


def read_run_info(content: bytes, label: str) -> RunInfo:
    """run.json; `label` names the run folder in messages."""
    file = f"{label}/run.json"
    version = _decoded(content, _Format, file).format
    if version not in READABLE_FORMATS:
        raise RunFolderError(
            f"{label} has format {version}; this version reads formats {READABLE_FORMATS[0]} to {READABLE_FORMATS[-1]}"
        )
    info = _decoded(content, RunInfo, file)
    if info.config.error_patterns is None:  # from a version that had only one set of patterns
        first = msgspec.structs.replace(info.config, error_patterns=[FIRST])
        info = msgspec.structs.replace(info, config=first)
    return info


def run_format(content: bytes) -> int:
    """The format in a run.json; 0 if it cannot be read."""
    try:
        return msgspec.json.decode(content, type=_Format).format or 0
    except (msgspec.DecodeError, UnicodeDecodeError):
        return 0


def read_manifest(content: bytes, label: str) -> Manifest:
    """manifest.json; `label` names the run folder in messages."""
    return _decoded(content, Manifest, f"{label}/manifest.json")


def read_results(content: bytes, label: str) -> Results:
    """results.json; `label` names the run folder in messages."""
    return _decoded(content, Results, f"{label}/results.json")


def read_lint(content: bytes) -> LintReport | None:
    """lint.json; None if it cannot be read, or is from a version with other rules."""
    try:
        if msgspec.json.decode(content, type=_Format).format != LINT_FORMAT:
            return None
        return msgspec.json.decode(content, type=LintReport)
    except (msgspec.DecodeError, RecursionError, UnicodeError, OverflowError):
        return None


def _decoded(content: bytes, kind: type[T], file: str) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeError, OverflowError) as error:  # includes ValidationError
        raise RunFolderError(f"{file} cannot be read: {error}. Score the run again") from None


# Whether run.json and results.json say the same: what a decoder cannot see in one value alone.

MAX_SAMPLES = 1 << 48  # more than any disk holds


def refuse_faults(file: str, faults: Iterator[str]) -> None:
    """Refuse a file of a run folder that has a fault."""
    fault = next(faults, None)
    if fault is not None:
        raise RunFolderError(f"{file} is damaged: {fault}. Score the run again")


def info_faults(info: RunInfo) -> Iterator[str]:
    """Impossible parts, bounds, signatures and judges in a run.json."""
    for size in info.parts:
        if not 0 <= size <= MAX_SAMPLES:
            yield f"a part of {size:,} samples"
    if sum(info.parts) > MAX_SAMPLES:
        yield f"{sum(info.parts):,} samples"
    for name, (low, high) in info.bounds.items():
        if not all(bound is None or isfinite(bound) for bound in (low, high)):
            yield f"the bounds of {shorten(name)} are not finite"
    if info.signatures or info.finished is not None:  # they are noted together, before anything is scored
        missing = [name for name in info.metrics if name not in info.signatures]
        if missing:
            yield f"{shorten(missing[0])} has no signature"
    yield from _judge_faults(info)
    for name, signature in info.signatures.items():
        if signature.headline is not None and not isinstance(signature.headline, str):
            yield f"the headline in the signature of {shorten(name)} is not a name"
        if not isinstance(signature.weights, Mapping) or not all(map(_is_weight, signature.weights.values())):
            yield f"the weights in the signature of {shorten(name)} are not numbers"


def _judge_faults(info: RunInfo) -> Iterator[str]:
    """Judges whose names are not those of files, and impossible counts of verdicts."""
    for name in (*info.judging, *info.config.judges):
        if not is_name(name):
            yield f"{shorten(name)} cannot name a metric"
    for name, judge in info.config.judges.items():
        if judge.name not in ("", name):
            yield f"the judge of {name} has another name"
        if judge.prompt is not None and judge.template is None:  # a run stores the text, and reads no file again
            yield f"the template of the judge of {name} is missing"
    for name, judged in info.judging.items():
        counts = (*judged.statuses.values(), judged.input_tokens, judged.output_tokens)
        if any(count < 0 for count in counts):
            yield f"the counts of the judge of {name} are negative"
        if judged.cost is not None and not isfinite(judged.cost):
            yield f"the cost of the judge of {name} is not finite"


def _is_weight(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def result_faults(results: Results) -> Iterator[str]:
    """Impossible counts and values in a results.json."""
    if results.n < 1:
        yield f"{results.n:,} samples"
    for name, entry in results.entries.items():
        if entry.n_total != results.n:
            yield f"{shorten(name)} has {entry.n_total:,} samples instead of {results.n:,}"
        yield from _entry_faults(name, entry)
    for column, values in results.slices.items():
        for value, cut in values.items():
            for name, part in cut.metrics.items():
                where = f"{name} of {shorten(column)}={shorten(value)}"
                if part.n_total != cut.n or not 0 <= cut.n <= results.n:
                    yield f"{where} has {part.n_total:,} samples instead of {cut.n:,}"
                yield from _entry_faults(where, part)


def _entry_faults(name: str, entry: Figure) -> Iterator[str]:
    if not 0 <= entry.coverage.scored <= entry.coverage.total:
        yield f"{shorten(name)} has {entry.n_scored:,} scored samples of {entry.n_total:,}"
    covered = entry.coverage
    counts = (*covered.unscored.values(), *covered.warnings.values(), *(each.count for each in covered.reasons))
    if any(not 0 <= count <= covered.total for count in counts):
        yield f"the counts of {shorten(name)} are not between 0 and {entry.n_total:,}"
    others = (entry.calibrated, entry.with_failures, entry.without_failures)
    for figure in (entry, *entry.parts.values(), *filter(None, others)):
        numbers = (figure.value, figure.stderr, figure.low, figure.high, figure.lowest, figure.highest)
        if not all(number is None or isfinite(number) for number in numbers):
            yield f"{shorten(name)} has a value that is not finite"


def differences(info: RunInfo, results: Results) -> Iterator[str]:
    """Why a results.json does not belong to its run.json."""
    if sum(info.parts) != results.n:
        yield f"it has {results.n:,} samples, and run.json {sum(info.parts):,}"
    known = {*info.metrics, *info.unavailable}
    for name in {*results.metrics} ^ known:
        yield f"{shorten(name)} is {'not ' if name in results.metrics else ''}a metric of run.json"
    for name, entry in results.entries.items():
        signature = info.signatures.get(name)
        if entry.signature != (None if signature is None else signature.text):
            yield f"the signature of {shorten(name)} is not that of run.json"
    if results.composite is None and COMPOSITE in info.signatures:
        yield "the composite is missing"
    for headline in (info.headline, results.headline):
        if headline is not None and headline not in results.entries:
            yield f"the headline {shorten(headline)} is not among the results"


# The headline of a run: the metric that leads. Tables, lists, reports, the viewer and leaderboards all ask here.

PRESET_HEADLINES = {"coco": "cider_d"}  # preset -> the metric that leads its runs

Entries = Mapping[str, Figure]


def leading_metric(
    names: Sequence[str],
    *,
    chosen: str | None = None,
    presets: Sequence[str] = (),
    values: Mapping[str, float | None] | None = None,
) -> str | None:
    """The metric of `names` that leads; None if there are none.

    The metric that the user chose; else the composite; else the headline of a preset (`cider_d` for `coco`); else the
    first metric that the task has or that was asked for. A metric without a value leads only if the user chose it, or
    if no metric has a value.
    `names` are in the order of the run; `chosen` is the user's choice; `values` are known after scoring.
    """
    if chosen is not None:
        name = COMPOSITE if chosen == "composite" else chosen
        if name not in names:
            raise UnknownNameError("metric of this run", chosen, names)
        return name
    preferred = [COMPOSITE, *(PRESET_HEADLINES[preset] for preset in presets if preset in PRESET_HEADLINES)]
    order = [*(name for name in preferred if name in names), *(name for name in names if name not in preferred)]
    with_value = (name for name in order if values is None or values.get(name) is not None)
    return next(with_value, order[0] if order else None)


def headline_of(info: RunInfo, results: Results | None = None) -> str | None:
    """The headline that the run declares; for a run of an older version, the same rule.

    Without `results`, for a run that is not finished, no values are known.
    """
    stored = info.headline if results is None else results.headline
    names = [*info.metrics, *info.unavailable] if results is None else list(results.entries)
    if stored in names:
        return stored
    values = None if results is None else {name: entry.value for name, entry in results.entries.items()}
    chosen = info.config.headline
    return leading_metric(names, chosen=chosen if chosen in names else None, presets=info.config.presets, values=values)


def shared_headline(runs: Sequence[tuple[RunInfo, Results]]) -> str:
    """The headline of several runs side by side: the first run's that all runs have a value of."""
    entries: list[Entries] = [results.entries for _, results in runs]
    shared = [name for name in entries[0] if all(name in others for others in entries)]
    headlines = [headline_of(info, results) for info, results in runs]
    order = [*dict.fromkeys(name for name in headlines if name in shared), *shared]
    if len(runs) == 1:
        return order[0]
    with_value = (name for name in order if all(others[name].value is not None for others in entries))
    return next(with_value, order[0])
