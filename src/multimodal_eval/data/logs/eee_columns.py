"""The columns of a sample from an instance of Every Eval Ever, and what an instance cannot say of a sample."""

from __future__ import annotations

from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.logs.eee_records import OURS, Instance, Output, TokenUsage, Turn
from multimodal_eval.data.readers.problems import Columns

__all__ = ["change_of", "changed", "columns_of"]


def columns_of(instance: Instance) -> Columns:
    """The columns of the sample that an instance is about, without its scores. Absent ones are left out."""
    metadata: Columns = {key: value for key, value in (instance.metadata or {}).items() if not key.startswith(OURS)}
    columns: Columns = {"id": str(instance.sample_id), "metadata": metadata}
    if instance.input.raw:
        columns["question"] = instance.input.raw
    if instance.input.formatted:
        columns["prompt"] = instance.input.formatted
    if instance.input.reference:
        columns["references"] = instance.input.reference
    if instance.input.choices:
        columns["choices"] = instance.input.choices
    if instance.output is not None:
        _add_output(columns, metadata, instance.output)
    elif instance.messages:
        _add_turns(columns, metadata, instance.messages)
    if instance.error:
        columns["error"] = instance.error
    if instance.token_usage is not None:
        metadata |= _tokens(instance.token_usage)
    return columns


def _add_output(columns: Columns, metadata: Columns, output: Output) -> None:
    if output.raw:
        columns["generated_answer"] = output.raw[0]
    if len(output.raw) > 1:
        metadata["answers"] = output.raw
    if output.reasoning_trace:
        metadata["reasoning"] = "\n\n".join(output.reasoning_trace)


def _add_turns(columns: Columns, metadata: Columns, turns: list[Turn]) -> None:
    """The conversation; its last message is the answer, if it is the assistant's."""
    before = turns
    if turns[-1].role == "assistant":
        before = turns[:-1]
        if turns[-1].content is not None:
            columns["generated_answer"] = turns[-1].content
        if turns[-1].reasoning_trace:
            metadata["reasoning"] = turns[-1].reasoning_trace
    messages = [{"role": turn.role, "content": turn.content} for turn in before if turn.content is not None]
    if messages:
        columns["messages"] = messages


def _tokens(usage: TokenUsage) -> Columns:
    tokens: Columns = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return tokens if usage.reasoning_tokens is None else {**tokens, "reasoning_tokens": usage.reasoning_tokens}


def changed(columns: Columns, change: Columns) -> Columns:
    """Columns with the values of a sample that its instance cannot say; null removes a value."""
    metadata = {**_mapping(columns.get("metadata")), **_mapping(change.get("metadata"))}
    fields = {**columns, **{name: value for name, value in change.items() if name in FIELDS}}
    kept = {name: value for name, value in fields.items() if value is not None and name != "metadata"}
    return {**kept, "metadata": {key: value for key, value in metadata.items() if value is not None}}


def change_of(columns: Columns, sample: Columns) -> Columns:
    """The change that turns columns into a sample: `changed(columns, change_of(columns, sample))` is the sample."""
    before, after = _mapping(columns.get("metadata")), _mapping(sample.get("metadata"))
    change = _difference(columns, sample)
    change.pop("metadata", None)
    inner = _difference(before, after)
    return {**change, "metadata": inner} if inner else change


def _difference(before: Columns, after: Columns) -> Columns:
    names = dict.fromkeys((*before, *after))
    return {name: after.get(name) for name in names if before.get(name) != after.get(name)}


def _mapping(value: object) -> Columns:
    return value if isinstance(value, dict) else {}
