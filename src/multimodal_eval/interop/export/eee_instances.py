"""The samples of a run as instances of Every Eval Ever: one line per sample and score."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.analysis.generation import StoredAnswer, stored_answers
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.logs.eee_records import (
    OURS,
    SAMPLE,
    SCHEMA_VERSION,
    Attribution,
    Evaluation,
    Inputs,
    Instance,
    Output,
    Performance,
    TokenUsage,
    Turn,
    UnscoredSample,
)
from multimodal_eval.data.logs.eee_samples import change_of, columns_of
from multimodal_eval.data.readers.problems import Columns
from multimodal_eval.data.runs.run import Run

__all__ = ["Instances", "ScoreColumn", "score_columns"]

_MEDIA = ("image", "audio", "video", "images")
_OF_ANSWERS = ("reasoning", "input_tokens", "output_tokens")
_ENCODE = msgspec.json.Encoder(enc_hook=str).encode
# Python's `splitlines`, by which other programs read the file, also splits at these characters.
_LINE_ENDS = {"\x85": b"\\u0085", "\u2028": b"\\u2028", "\u2029": b"\\u2029"}


@dataclass(frozen=True)
class ScoreColumn:
    """A metric or a part of one: its name, its column in the table of scores, and its best value, if it has one."""

    name: str
    metric: str
    figure: Figure
    best: float | None
    rule: str


def score_columns(run: Run, metrics: Sequence[str]) -> list[ScoreColumn]:
    """The columns of the metrics that have a result, each followed by its parts."""
    columns = []
    for metric in metrics:
        entry = run.entries[metric]
        bounds = run.info.bounds_of(metric)
        signature = run.info.signatures.get(metric)
        rule = "none" if signature is None else str(signature.settings.get("rule", "none"))
        columns.append(ScoreColumn(metric, metric, entry, bounds[0 if entry.direction == "lower" else 1], rule))
        for part, figure in entry.parts.items():
            columns.append(ScoreColumn(f"{metric}.{part}", metric, figure, None, rule))
    return [column for column in columns if column.figure.value is not None]


Unscored = dict[str, dict[str, list[str]]]  # status -> reason -> ids


@dataclass
class Instances:
    """The instances of a run. After `write`: how many there are, and what has no instance."""

    run: Run
    columns: Sequence[ScoreColumn]
    evaluation_id: str
    model_id: str
    evaluation_name: str
    rows: int = 0
    checksum: str = ""
    unscored: dict[str, Unscored] = field(default_factory=dict)  # by column
    without_scores: list[UnscoredSample] = field(default_factory=list)
    media_bytes: int = 0  # samples whose media are bytes, which are left out
    media: int = 0  # samples with media
    are_binary: dict[str, bool] = field(default_factory=dict)  # by column: whether every score is 0 or 1

    def write(self, path: Path) -> None:
        """Write all instances of the run, sample by sample."""
        digest = hashlib.sha256()
        with path.open("wb") as out:
            for lines in self._parts():
                digest.update(lines)
                out.write(lines)
        self.checksum = digest.hexdigest()

    def _parts(self) -> Iterator[bytes]:
        row = 0
        for number in range(len(self.run.info.parts)):
            samples = self.run.folder.read_samples(number)
            table = self.run.folder.read_part("scores", number)
            names = [column.name for column in self.columns]
            extras = {f"{column.metric}:{kind}" for column in self.columns for kind in ("status", "reason", "warning")}
            values = {name: table.column(name).to_pylist() for name in table.column_names if name in {*names, *extras}}
            answers = stored_answers(self.run.folder, number, range(len(samples)))
            lines: list[bytes] = []
            for place, sample in enumerate(samples):
                answer = answers[place] if answers else None
                scores = {name: column[place] for name, column in values.items()}
                lines += self._sample(row, sample, scores, answer)
                row += 1
            yield b"".join(lines)

    def _sample(self, row: int, sample: Sample, scores: dict[str, Any], answer: StoredAnswer | None) -> list[bytes]:
        lines: list[bytes] = []
        instance = self._instance(sample, answer)
        shared = dict(instance.metadata or {})
        for column in self.columns:
            value = scores.get(column.name)
            if value is None:
                self._note_unscored(column, sample.id, scores)
                continue
            self.are_binary[column.name] = self.are_binary.get(column.name, True) and value in (0.0, 1.0)
            metadata = dict(shared)
            if not lines and (change := self._change(instance, sample)):
                metadata[SAMPLE] = _ENCODE(change).decode()
            warning = scores.get(f"{column.metric}:warning")
            if warning is not None:
                metadata[f"{OURS}warning"] = warning
            instance.metadata = metadata or None
            instance.evaluation_result_id = column.name
            instance.evaluation.score = value
            instance.evaluation.is_correct = value == column.best
            for attribution in instance.answer_attribution:
                attribution.extraction_method = column.rule
            lines.append(_line(instance))
            instance.metadata = shared
        self.rows += len(lines)
        if not lines:
            self.without_scores.append(UnscoredSample(row, self._stored(sample)))
        return lines

    def _change(self, instance: Instance, sample: Sample) -> Columns:
        """What the instance does not say of the sample. What it says beyond the sample, about the answer, stays."""
        columns, stored = columns_of(instance), self._stored(sample)
        read, metadata = columns["metadata"], stored["metadata"]
        assert isinstance(read, dict)
        assert isinstance(metadata, dict)
        stored["metadata"] = {**{key: read[key] for key in _OF_ANSWERS if key in read}, **metadata}
        return change_of(columns, stored)

    def _note_unscored(self, column: ScoreColumn, sample_id: str, scores: dict[str, Any]) -> None:
        status = scores.get(f"{column.metric}:status") or "missing_input"
        reason = scores.get(f"{column.metric}:reason") or ""
        if status == "ok":  # a part without a value of a metric that has one
            status, reason = "missing_input", "no value of this part"
        self.unscored.setdefault(column.name, {}).setdefault(status, {}).setdefault(reason, []).append(sample_id)

    def _stored(self, sample: Sample) -> Columns:
        """All fields of a sample; bytes of media are left out."""
        changes: dict[str, Any] = {}
        for name in _MEDIA:
            media = getattr(sample, name)
            if isinstance(media, bytes) or (isinstance(media, list) and any(isinstance(each, bytes) for each in media)):
                changes[name] = None
        if changes:
            self.media_bytes += 1
            sample = msgspec.structs.replace(sample, **changes)
        self.media += any(getattr(sample, name) is not None for name in _MEDIA) or bool(changes)
        columns: Columns = msgspec.to_builtins(sample, enc_hook=str)
        columns.setdefault("metadata", {})
        return columns

    def _instance(self, sample: Sample, answer: StoredAnswer | None) -> Instance:
        """The instance without a score."""
        is_dialogue = sample.messages is not None and len([each for each in sample.messages if each.role == "user"]) > 1
        references = sample.reference_texts
        question = sample.question if sample.question is not None else sample.prompt
        if question is None and sample.messages:
            question = next((each.text for each in reversed(sample.messages) if each.role == "user"), None)
        inputs = Inputs(
            raw=question or "",
            reference=references,
            formatted=sample.prompt if sample.question is not None else None,
            choices=list(sample.choices.values()) if isinstance(sample.choices, dict) else sample.choices,
        )
        reasoning = _reasoning(sample, answer)
        text = sample.generated_answer
        turns = _turns(sample, reasoning) if is_dialogue else None
        last = len(turns) - 1 if turns else 0
        return Instance(
            schema_version=SCHEMA_VERSION,
            evaluation_id=self.evaluation_id,
            model_id=self.model_id,
            evaluation_name=self.evaluation_name,
            sample_id=sample.id,
            sample_hash=hashlib.sha256((inputs.raw + "".join(references)).encode()).hexdigest(),
            interaction_type="multi_turn" if turns else "single_turn",
            input=inputs,
            output=None
            if turns
            else Output(raw=[] if text is None else [text], reasoning_trace=None if reasoning is None else [reasoning]),
            messages=turns,
            answer_attribution=[]
            if text is None
            else [
                Attribution(
                    turn_idx=last,
                    source=f"messages[{last}].content" if turns else "output.raw",
                    extracted_value=text,
                    extraction_method="",
                    is_terminal=True,
                )
            ],
            evaluation=Evaluation(score=0.0, is_correct=False, num_turns=len(turns) if turns else None),
            token_usage=_tokens(sample, answer),
            performance=None
            if answer is None or answer.latency is None
            else Performance(latency_ms=answer.latency * 1000),
            metadata=_visible(sample),
        )


def _line(instance: Instance) -> bytes:
    line = _ENCODE(instance)
    for character, escape in _LINE_ENDS.items():
        if (raw := character.encode()) in line:
            line = line.replace(raw, escape)
    return line + b"\n"


def _turns(sample: Sample, reasoning: str | None) -> list[Turn]:
    """The conversation as text, with the answer."""
    turns = [
        Turn(turn_idx=place, role=each.role, content=each.text) for place, each in enumerate(sample.messages or ())
    ]
    if sample.generated_answer is not None:
        answer = Turn(turn_idx=len(turns), role="assistant", content=sample.generated_answer, reasoning_trace=reasoning)
        turns.append(answer)
    return turns


def _reasoning(sample: Sample, answer: StoredAnswer | None) -> str | None:
    stored = sample.metadata.get("reasoning")
    if isinstance(stored, str):
        return stored
    return None if answer is None else answer.reasoning


def _tokens(sample: Sample, answer: StoredAnswer | None) -> TokenUsage | None:
    used, written = _count(sample.metadata.get("input_tokens")), _count(sample.metadata.get("output_tokens"))
    if answer is not None and answer.input_tokens is not None:
        used, written = answer.input_tokens, answer.output_tokens
    if used is None or written is None:
        return None
    return TokenUsage(input_tokens=used, output_tokens=written, total_tokens=used + written)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _visible(sample: Sample) -> dict[str, str] | None:
    """The metadata, group and epoch as texts, for other programs."""
    metadata = {
        key: value if isinstance(value, str) else _ENCODE(value).decode()
        for key, value in sample.metadata.items()
        if not key.startswith(OURS) and value is not None
    }
    for name in ("group", "epoch"):
        if (value := getattr(sample, name)) is not None:
            metadata.setdefault(name, str(value))
    return metadata or None
