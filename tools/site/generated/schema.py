"""The settings of a run, from the JSON Schema of the configuration."""

from __future__ import annotations

import json
from typing import Any

from multimodal_eval.run.config import json_schema

Schema = dict[str, Any]
HEAD = """# Settings

Every setting of the [configuration file](configuration.md), from its [JSON Schema](run.schema.json).
"""


def schema_page() -> str:
    """One table per object of the schema."""
    definitions = json_schema()["$defs"]
    return HEAD + "".join(_table(name, definition) for name, definition in definitions.items())


def _table(name: str, definition: Schema) -> str:
    required = definition.get("required", [])
    rows = "".join(
        f"| `{key}` | {_type(value)} | {_default(key, value, required)} |\n"
        for key, value in definition.get("properties", {}).items()
    )
    about = definition.get("description", "").replace("\n", " ")
    return f"\n## {name}\n\n{about}\n\n| key | value | default |\n|---|---|---|\n{rows}"


def _default(key: str, value: Schema, required: list[str]) -> str:
    if key in required or "default" not in value:
        return "required"
    return "none" if value["default"] is None else f"`{json.dumps(value['default'], ensure_ascii=False)}`"


def _type(value: Schema) -> str:
    """The values that a key takes, in words."""
    if "anyOf" in value:
        return " or ".join(_type(each) for each in value["anyOf"] if each.get("type") != "null")
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in value:
        return ", ".join(f"`{json.dumps(each)}`" for each in value["enum"] if each is not None)
    if value.get("type") == "array":
        items = value.get("items")
        return f"list of {_type(items)}" if isinstance(items, dict) and items else "list"
    if value.get("type") == "object":
        inner = value.get("additionalProperties")
        return f"object with values: {_type(inner)}" if isinstance(inner, dict) else "object"
    return str(value.get("type", "any value")) + _limits(value)


def _limits(value: Schema) -> str:
    words = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {value[key]:g}" for key, sign in words.items() if key in value]
    return f", {', '.join(limits)}" if limits else ""
