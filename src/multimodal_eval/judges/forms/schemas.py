"""The JSON Schemas of replies."""

from __future__ import annotations

from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.records import JsonObject

__all__ = ["explained", "object_schema"]


def explained(config: JudgeConfig, fields: JsonObject) -> JsonObject:
    """The fields of a reply, after the reason for them if the judge gives one."""
    reason: JsonObject = {"reason": {"type": "string"}} if config.explain else {}
    return reason | fields


def object_schema(fields: JsonObject) -> JsonObject:
    """An object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
