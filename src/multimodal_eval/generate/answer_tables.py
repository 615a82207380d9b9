"""The tables of generated answers in a run folder: what was answered, and how each exchange went.

answers/part-00000.parquet     one row per sample: status, text, reasoning, tokens; the same for the same replies.
                               A part has the columns `tokens` and `top_logprobs` if one of its replies has them
exchanges/part-00000.parquet   one row per sample: times, latencies, attempts and the raw reply, which always differ
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval.generate.protocol import Answer, Exchange, Outcome, TokenProbability

if TYPE_CHECKING:
    import pyarrow as pa

_ANSWER_FIELDS = (
    *("finish", "reasoning", "refusal", "logprobs", "input_tokens", "output_tokens", "reasoning_tokens", "model"),
)
FIRST_TOKENS = "first_tokens"  # the key of the metadata with the most likely first tokens and their log-probabilities

__all__ = ["FIRST_TOKENS", "answer_table", "exchange_table", "exchanges_of", "with_answers"]


def answer_table(first_row: int, exchanges: Sequence[Exchange]) -> pa.Table:
    """What was answered."""
    import pyarrow as pa

    outcomes = [exchange.outcome for exchange in exchanges]
    answers = [outcome.answer for outcome in outcomes]
    table = pa.table(
        {
            "row": pa.array(range(first_row, first_row + len(exchanges)), pa.int64()),
            "status": pa.array([outcome.status for outcome in outcomes], pa.string()),
            "reason": pa.array([outcome.reason for outcome in outcomes], pa.string()),
            "text": pa.array([answer.text for answer in answers], pa.string()),
            "finish": pa.array([answer.finish for answer in answers], pa.string()),
            "reasoning": pa.array([answer.reasoning for answer in answers], pa.string()),
            "refusal": pa.array([answer.refusal for answer in answers], pa.string()),
            "logprobs": pa.array([answer.logprobs for answer in answers], pa.list_(pa.float64())),
            "input_tokens": pa.array([answer.input_tokens for answer in answers], pa.int64()),
            "output_tokens": pa.array([answer.output_tokens for answer in answers], pa.int64()),
            "reasoning_tokens": pa.array([answer.reasoning_tokens for answer in answers], pa.int64()),
            "model": pa.array([answer.model for answer in answers], pa.string()),
            "request": pa.array([exchange.digest for exchange in exchanges], pa.string()),
        }
    )
    if any(exchange.draw > 1 for exchange in exchanges):  # few runs ask again for failures
        table = table.append_column("draw", pa.array([exchange.draw for exchange in exchanges], pa.int64()))
    return table if all(answer.top_logprobs is None for answer in answers) else _with_alternatives(table, answers)


def _with_alternatives(table: pa.Table, answers: Sequence[Answer]) -> pa.Table:
    """The table with the answers' tokens and the most likely tokens at their places, which few endpoints tell."""
    import pyarrow as pa

    token = pa.struct([("token", pa.string()), ("logprob", pa.float64())])
    alternatives = [
        None
        if answer.top_logprobs is None
        else [[{"token": each.token, "logprob": each.logprob} for each in place] for place in answer.top_logprobs]
        for answer in answers
    ]
    table = table.append_column("tokens", pa.array([answer.tokens for answer in answers], pa.list_(pa.string())))
    return table.append_column("top_logprobs", pa.array(alternatives, pa.list_(pa.list_(token))))


def exchange_table(first_row: int, exchanges: Sequence[Exchange]) -> pa.Table:
    """How each exchange went. One without a request, or from the cache, has no times."""
    import pyarrow as pa

    return pa.table(
        {
            "row": pa.array(range(first_row, first_row + len(exchanges)), pa.int64()),
            "started": pa.array([exchange.started or None for exchange in exchanges], pa.float64()),
            "latency": pa.array(
                [exchange.latency if exchange.started else None for exchange in exchanges], pa.float64()
            ),
            "attempts": pa.array(
                [exchange.attempts if exchange.started else None for exchange in exchanges], pa.int64()
            ),
            "cached_tokens": pa.array([exchange.outcome.answer.cached_tokens for exchange in exchanges], pa.int64()),
            "is_cached": pa.array([exchange.is_cached for exchange in exchanges], pa.bool_()),
            "reply": pa.array([exchange.outcome.answer.reply for exchange in exchanges], pa.string()),
        }
    )


def exchanges_of(answers: pa.Table) -> list[Exchange]:
    """The stored answers, without what differs from time to time."""
    return [
        Exchange(
            Outcome(
                row["status"],
                Answer(
                    row["text"],
                    **{name: row[name] for name in _ANSWER_FIELDS},
                    tokens=row.get("tokens"),
                    top_logprobs=_alternatives(row.get("top_logprobs")),
                ),
                row["reason"],
            ),
            row["request"],
            draw=row.get("draw") or 1,
        )
        for row in answers.to_pylist()
    ]


def _alternatives(places: list[list[dict[str, Any]]] | None) -> list[list[TokenProbability]] | None:
    return None if places is None else [[TokenProbability(**each) for each in place] for place in places]


def with_answers(samples: pa.Table, exchanges: Sequence[Exchange]) -> pa.Table:
    """The samples with their answers, log-probabilities, the most likely first tokens, and the failures as errors."""
    import pyarrow as pa

    outcomes = [exchange.outcome for exchange in exchanges]
    columns = {
        "generated_answer": [outcome.text for outcome in outcomes],
        "error": [outcome.error for outcome in outcomes],
        "logprobs": [None if outcome.text is None else outcome.answer.logprobs for outcome in outcomes],
    }
    if any(outcome.answer.top_logprobs for outcome in outcomes):
        columns["metadata"] = _with_first_tokens(samples.column("metadata").to_pylist(), outcomes)
    for name, values in columns.items():
        place = samples.schema.get_field_index(name)
        field = samples.schema.field(place)
        samples = samples.set_column(place, field, pa.array(values, field.type))
    return samples


def _with_first_tokens(metadata: Sequence[str | None], outcomes: Sequence[Outcome]) -> list[str | None]:
    """The metadata of samples with the most likely first tokens of their answers."""
    import msgspec

    columns: list[str | None] = []
    for text, outcome in zip(metadata, outcomes, strict=True):
        places = outcome.answer.top_logprobs
        if not places:
            columns.append(text)
            continue
        content = {} if text is None else msgspec.json.decode(text)
        content[FIRST_TOKENS] = {each.token: each.logprob for each in places[0]}
        columns.append(msgspec.json.encode(content).decode())
    return columns
