"""The records of Every Eval Ever, schema 0.3.0, as types: an aggregate per run, and an instance per sample and score.

Only this module knows their keys. A key that starts with `mmeval.` is ours: it says what the schema has no place for,
and other programs ignore it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from multimodal_eval.data.readers.problems import Columns

__all__ = [
    "BY_SAMPLE",
    "OF_LOG",
    "ORDER",
    "ORIGIN",
    "OURS",
    "SAMPLE",
    "SCHEMA_VERSION",
    "UNSCORED",
    "UNSCORED_SAMPLES",
    "Aggregate",
    "Attribution",
    "Detailed",
    "Engine",
    "Evaluation",
    "EvaluationSource",
    "GenerationArguments",
    "GenerationConfig",
    "Inputs",
    "Instance",
    "Interval",
    "Library",
    "MetricConfig",
    "ModelInfo",
    "Origin",
    "Output",
    "Performance",
    "Result",
    "ScoreDetails",
    "SourceData",
    "StandardError",
    "TokenUsage",
    "Turn",
    "Uncertainty",
    "UnscoredSample",
]

SCHEMA_VERSION = "0.3.0"
OURS = "mmeval."
SAMPLE = f"{OURS}sample"  # in the metadata of the first instance of a sample: the fields that differ from the instance
UNSCORED = f"{OURS}unscored"  # in the details of a score: {status: {reason: [ids]}}
UNSCORED_SAMPLES = f"{OURS}unscored_samples"  # of the instances' file: samples without any score
OF_LOG = f"{OURS}log"  # detail of a metric: the log, of several in the run, that the result is about
ORIGIN = f"{OURS}imported"  # detail of the library: an `Origin` as JSON
ORDER = f"{OURS}order"  # of the instances' file
BY_SAMPLE = "by sample"  # the instances of a sample follow each other

Texts = dict[str, str]  # additional details: all values are texts
Bound = float | Literal["Infinity", "-Infinity"] | None


class _Record(msgspec.Struct, omit_defaults=True):
    """A record whose absent fields are not written, and whose unknown fields are ignored."""


class EvaluationSource(_Record, kw_only=True):
    """Who evaluated."""

    source_name: str | None = None
    source_type: str
    source_organization_name: str
    evaluator_relationship: str
    additional_details: Texts = {}


class Library(_Record, kw_only=True):
    """The program that evaluated."""

    name: str
    version: str
    additional_details: Texts = {}


class Engine(_Record, kw_only=True):
    """The program that ran the model."""

    name: str | None = None
    version: str | None = None


class ModelInfo(_Record, kw_only=True):
    """The model."""

    name: str
    id: str
    developer: str | None = None
    inference_platform: str | None = None
    inference_engine: Engine | None = None
    additional_details: Texts = {}


class SourceData(_Record, kw_only=True):
    """The data: `hf_dataset`, `url` or `other`."""

    dataset_name: str
    source_type: str
    hf_repo: str | None = None
    hf_split: str | None = None
    samples_number: int | None = None
    url: list[str] | None = None
    additional_details: Texts = {}


class MetricConfig(_Record, kw_only=True):
    """The metric."""

    lower_is_better: bool
    metric_id: str | None = None
    metric_name: str | None = None
    metric_unit: str | None = None
    metric_parameters: dict[str, str | float | bool | None] = {}
    score_type: str | None = None
    min_score: Bound = None
    max_score: Bound = None
    additional_details: Texts = {}


class StandardError(_Record, kw_only=True):
    """A standard error."""

    value: float
    method: str | None = None


class Interval(_Record, kw_only=True):
    """A confidence interval."""

    lower: float
    upper: float
    confidence_level: float | None = None
    method: str | None = None


class Uncertainty(_Record, kw_only=True):
    """How certain a score is."""

    standard_error: StandardError | None = None
    confidence_interval: Interval | None = None
    standard_deviation: float | None = None
    num_samples: int | None = None


class ScoreDetails(_Record, kw_only=True):
    """The score of a result."""

    score: float
    details: Texts = {}
    uncertainty: Uncertainty | None = None


class GenerationArguments(_Record, kw_only=True):
    """Parameters of the generation."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    prompt_template: str | None = None


class GenerationConfig(_Record, kw_only=True):
    """How the answers were generated."""

    generation_args: GenerationArguments | None = None
    additional_details: Texts = {}


class Result(_Record, kw_only=True):
    """One metric of the evaluation."""

    evaluation_name: str
    metric_config: MetricConfig
    score_details: ScoreDetails
    source_data: SourceData | None = None
    evaluation_result_id: str | None = None
    generation_config: GenerationConfig | None = None

    @property
    def key(self) -> str:
        """What instances refer to."""
        return self.evaluation_result_id or self.evaluation_name


class Detailed(_Record, kw_only=True):
    """The file with the instances."""

    file_path: str
    format: str
    hash_algorithm: str | None = None
    checksum: str | None = None
    total_rows: int | None = None
    additional_details: Texts = {}


class Aggregate(_Record, kw_only=True):
    """The content of `<uuid>.json`."""

    schema_version: str
    evaluation_id: str
    retrieved_timestamp: str
    evaluation_timestamp: str | None = None
    source_metadata: EvaluationSource
    eval_library: Library
    model_info: ModelInfo
    evaluation_results: list[Result]
    detailed_evaluation_results: Detailed | None = None


class Inputs(_Record, kw_only=True):
    """The question, the references, and the choices."""

    raw: str
    reference: list[str]
    formatted: str | None = None
    choices: list[str] | None = None


class Output(_Record, kw_only=True):
    """The answers of the model."""

    raw: list[str]
    reasoning_trace: list[str] | None = None


class Turn(_Record, kw_only=True):
    """A message of a conversation."""

    turn_idx: int
    role: str
    content: str | None = None
    reasoning_trace: str | None = None


class Attribution(_Record, kw_only=True):
    """Where the scored answer is."""

    turn_idx: int
    source: str
    extracted_value: str
    extraction_method: str
    is_terminal: bool


class Evaluation(_Record, kw_only=True):
    """The score of an instance."""

    score: float
    is_correct: bool
    num_turns: int | None = None


class TokenUsage(_Record, kw_only=True):
    """Tokens of an answer."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    reasoning_tokens: int | None = None


class Performance(_Record, kw_only=True):
    """Times of an answer."""

    latency_ms: float | None = None


class Instance(_Record, kw_only=True):
    """A line of `<uuid>_samples.jsonl`: one score of one sample."""

    schema_version: str
    evaluation_id: str
    model_id: str
    evaluation_name: str
    evaluation_result_id: str | None = None
    sample_id: str | int
    sample_hash: str | None = None
    interaction_type: str
    input: Inputs
    output: Output | None = None
    messages: list[Turn] | None = None
    answer_attribution: list[Attribution]
    evaluation: Evaluation
    token_usage: TokenUsage | None = None
    performance: Performance | None = None
    error: str | None = None
    metadata: dict[str, str] | None = None

    @property
    def key(self) -> str:
        """The result that the score belongs to."""
        return self.evaluation_result_id or self.evaluation_name

    @property
    def stated_epoch(self) -> str | None:
        """The epoch, if the metadata say it."""
        return (self.metadata or {}).get("epoch")


class Origin(_Record, kw_only=True):
    """The harness whose log a run of ours was imported from."""

    harness: str
    version: str | None = None
    task: str | None = None
    settings: Columns = {}


class UnscoredSample(msgspec.Struct):
    """A sample without any score, and its number among all samples, from 0."""

    row: int
    sample: Columns
