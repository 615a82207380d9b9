"""The schemas of Every Eval Ever 0.3.0 after their published description: required fields, types and choices."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXTS: Schema = {"type": "array", "items": TEXT}
DETAILS: Schema = {"type": "object", "additionalProperties": TEXT}
BOUND: Schema = {"oneOf": [NUMBER, {"enum": ["Infinity", "-Infinity"]}, {"type": "null"}]}
FILE = "^data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}_samples\\.jsonl$"


def closed(required: Schema, optional: Schema | None = None) -> Schema:
    """An object with these fields only."""
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


SOURCE_DATA = closed(
    {"dataset_name": TEXT, "source_type": {"enum": ["other", "hf_dataset", "url"]}},
    {
        "hf_repo": TEXT,
        "hf_split": TEXT,
        "samples_number": COUNT,
        "additional_details": DETAILS,
    },
)
METRIC = {
    **closed(
        {"lower_is_better": {"type": "boolean"}},
        {
            **dict.fromkeys(("metric_id", "metric_name", "metric_unit"), TEXT),
            "metric_parameters": {
                "type": "object",
                "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
            },
            "score_type": {"enum": ["binary", "continuous", "levels"]},
            "min_score": BOUND,
            "max_score": BOUND,
            "additional_details": DETAILS,
        },
    ),
    "if": {"properties": {"score_type": {"const": "continuous"}}},
    "then": {"required": ["min_score", "max_score"]},
}
UNCERTAINTY = closed(
    {},
    {
        "standard_error": closed({"value": NUMBER}, {"method": TEXT}),
        "confidence_interval": closed(
            {"lower": NUMBER, "upper": NUMBER},
            {"confidence_level": {"type": "number", "minimum": 0, "maximum": 1}, "method": TEXT},
        ),
        "standard_deviation": NUMBER,
        "num_samples": COUNT,
    },
)
RESULT = closed(
    {
        "evaluation_name": TEXT,
        "source_data": SOURCE_DATA,
        "metric_config": METRIC,
        "score_details": closed({"score": NUMBER}, {"details": DETAILS, "uncertainty": UNCERTAINTY}),
    },
    {
        "evaluation_result_id": TEXT,
        "generation_config": closed(
            {},
            {
                "generation_args": closed(
                    {},
                    {
                        "temperature": NUMBER,
                        "top_p": NUMBER,
                        "max_tokens": {"type": "integer", "minimum": 1},
                        "prompt_template": TEXT,
                    },
                ),
                "additional_details": DETAILS,
            },
        ),
    },
)
AGGREGATE = closed(
    {
        "schema_version": {"const": "0.3.0"},
        "evaluation_id": TEXT,
        "retrieved_timestamp": {"type": "string", "pattern": "^[0-9]+$"},
        "source_metadata": closed(
            {
                "source_type": {"enum": ["documentation", "evaluation_run"]},
                "source_organization_name": TEXT,
                "evaluator_relationship": {"enum": ["first_party", "third_party", "collaborative", "other"]},
            },
            {"source_name": TEXT, "additional_details": DETAILS},
        ),
        "eval_library": closed({"name": TEXT, "version": TEXT}, {"additional_details": DETAILS}),
        "model_info": closed(
            {
                "name": TEXT,
                "id": {"type": "string", "pattern": "^[^/]+/."},
                "additional_details": {
                    **DETAILS,
                    "required": ["deployment_type", "model_availability"],
                    "properties": {
                        "deployment_type": {"enum": ["self_deployed", "externally_managed", "unknown"]},
                        "model_availability": {"enum": ["open_weights", "closed_weights", "unknown"]},
                    },
                },
            },
            {"developer": TEXT, "inference_platform": TEXT, "inference_engine": closed({}, {"name": TEXT})},
        ),
        "evaluation_results": {"type": "array", "items": RESULT},
    },
    {
        "evaluation_timestamp": TEXT,
        "detailed_evaluation_results": closed(
            {"format": {"const": "jsonl"}, "file_path": {"type": "string", "pattern": FILE}},
            {
                "hash_algorithm": {"enum": ["sha256", "md5"]},
                "checksum": TEXT,
                "total_rows": COUNT,
                "additional_details": DETAILS,
            },
        ),
    },
)
INSTANCE = {
    **closed(
        {
            **dict.fromkeys(("evaluation_id", "model_id", "evaluation_name", "sample_id"), TEXT),
            "schema_version": {"const": "0.3.0"},
            "interaction_type": {"enum": ["single_turn", "multi_turn", "agentic"]},
            "input": closed({"raw": TEXT, "reference": TEXTS}, {"formatted": TEXT, "choices": TEXTS}),
            "answer_attribution": {
                "type": "array",
                "items": closed(
                    {
                        "turn_idx": COUNT,
                        **dict.fromkeys(("source", "extracted_value", "extraction_method"), TEXT),
                        "is_terminal": {"type": "boolean"},
                    }
                ),
            },
            "evaluation": closed(
                {"score": NUMBER, "is_correct": {"type": "boolean"}}, {"num_turns": {"type": "integer", "minimum": 1}}
            ),
        },
        {
            "evaluation_result_id": TEXT,
            "sample_hash": TEXT,
            "output": closed({"raw": TEXTS}, {"reasoning_trace": TEXTS}),
            "messages": {
                "type": "array",
                "items": closed({"turn_idx": COUNT, "role": TEXT}, {"content": TEXT, "reasoning_trace": TEXT}),
            },
            "token_usage": closed(dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), COUNT)),
            "performance": closed({}, {"latency_ms": {"type": "number", "minimum": 0}}),
            "metadata": DETAILS,
        },
    ),
    "if": {"properties": {"interaction_type": {"const": "single_turn"}}},
    "then": {"required": ["output"], "properties": {"messages": False}},
    "else": {"required": ["messages"], "properties": {"output": False}},
}
