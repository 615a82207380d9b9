"""A run as a log of inspect_ai: `.eval` (a zip file), or one JSON object if the path ends in `.json`.

Every metric is a scorer. A sample without a score has the value NaN, which inspect_ai leaves out of its metrics too.
The status and the reason are its explanation. `mmeval import` reads such a log back.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import msgspec

from multimodal_eval.analysis.generation import StoredAnswer, stored_answers
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.arranged_input import epoch_id, sample_id
from multimodal_eval.data.readers.problems import Columns
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.files import UNCORRECTED, claim_of, method_of, published, whole_file
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.row_tables import metrics_of

__all__ = ["OPTIONS", "export"]

OPTIONS = Options(
    metrics=Option(list[str] | None, None, help="the metrics; null for all"),
    model=Option(str | None, None, help="the name of the model; by default that of the run"),
)
_OWN = "inspect."  # of metrics that were imported from a log of inspect_ai
_MEDIA = ("image", "audio", "video")
_TYPES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
    b"BM": "image/bmp",
}


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """Write the log of one run."""
    assert path is not None  # a format of files has a path
    (run,) = runs
    log = _Log(run, _columns(run, metrics_of(run, options["metrics"])), options["model"] or _model(run))
    with whole_file(path) as partial:
        if path.suffix.lower() == ".json":
            with partial.open("w", encoding="utf-8", newline="\n") as file:
                log.write_document(file)
        else:
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
                log.write_archive(archive)
    return Exported(paths=(path,))


@dataclass(frozen=True)
class _Column:
    """A metric, or a part of one: its name in the log, its column in the table of scores, and its result."""

    scorer: str
    name: str
    metric: str
    figure: Figure
    kind: str


def _columns(run: Run, metrics: Sequence[str]) -> list[_Column]:
    columns: list[_Column] = []
    for metric in metrics:
        entry = run.entries[metric]
        figures: dict[str, Figure] = {metric: entry, **{f"{metric}.{part}": each for part, each in entry.parts.items()}}
        for name, figure in figures.items():
            short = name.removeprefix(_OWN)
            scorer = name if short in metrics else short
            columns.append(_Column(scorer, name, metric, figure, run.kind_of(name) or "mean"))
    return columns


def _model(run: Run) -> str:
    """The model that was asked, or that a log names; `none/none`, as inspect_ai calls it, if none is known."""
    asked, imported = run.info.generation, run.info.imported
    if asked is None:
        return (imported.model if imported is not None else None) or "none/none"
    provider, _, name = str(asked.settings.get("model", "")).partition(":")
    name = (asked.models[:1] or [name.partition("@")[0]])[0]
    return f"{provider}/{name}"


def _dataset(run: Run) -> str | None:
    """The name of the first input file."""
    path = run.info.input[0].path if run.info.input else None
    return None if path is None else Path(path).name


@dataclass
class _Log:
    run: Run
    columns: Sequence[_Column]
    model: str
    epochs: int = 1

    def write_archive(self, archive: zipfile.ZipFile) -> None:
        """The entries that inspect_ai reads: samples, their summaries, and the header at the end."""
        with TemporaryFile("w+b") as summaries:
            for number, sample in enumerate(self._samples()):
                archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", _text(sample))
                summaries.write(f"{',' if number else '['}{_text(_summary(sample))}".encode())
            summaries.write(b"]")
            summaries.seek(0)
            with archive.open("summaries.json", "w", force_zip64=True) as entry:
                shutil.copyfileobj(summaries, entry)
        header = self._header()
        start = {"version": header["version"], "eval": header["eval"], "plan": header["plan"]}
        archive.writestr("_journal/start.json", _text(start))
        archive.writestr("header.json", _text(header))

    def write_document(self, file: IO[str]) -> None:
        """One object. Its header comes first, so the number of epochs must be known before."""
        self.epochs = max((sample.epoch or 1 for sample in self._epochs()), default=1)
        header = _text(self._header())
        file.write(f'{header[:-1]},"samples":[')
        for number, sample in enumerate(self._samples()):
            file.write(f"{',' if number else ''}\n{_text(sample)}")
        file.write("]}\n")

    def _epochs(self) -> Iterator[Sample]:
        for number in range(len(self.run.info.parts)):
            yield from self.run.folder.read_samples(number, ["epoch"])

    def _samples(self) -> Iterator[dict[str, Any]]:
        folder = self.run.folder
        for number in range(len(self.run.info.parts)):
            samples, table = folder.read_samples(number), folder.read_part("scores", number)
            needed = {
                name for each in self.columns for name in (each.name, f"{each.metric}:status", f"{each.metric}:reason")
            }
            values = {name: table.column(name).to_pylist() for name in table.column_names if name in needed}
            answers = stored_answers(folder, number, range(len(samples)))
            for place, sample in enumerate(samples):
                scores = {name: column[place] for name, column in values.items()}
                yield self._sample(sample, scores, answers[place] if answers else None)

    def _sample(self, sample: Sample, scores: Columns, answer: StoredAnswer | None) -> dict[str, Any]:
        epoch = sample.epoch or 1
        self.epochs = max(self.epochs, epoch)
        base = sample_id(sample.id)
        is_epoch = sample.epoch is not None and base and epoch_id(base, epoch) == sample.id
        logged: dict[str, Any] = {
            "id": base if is_epoch else sample.id,
            "epoch": epoch,
            "input": _input(sample),
            "target": _target(sample),
            "messages": [],
            "output": _output(sample, answer, self.model),
            "scores": {column.scorer: _score(column, scores, sample) for column in self.columns},
            "metadata": _metadata(sample, {key for column in self.columns for key in _keys(column).values()}),
        }
        if sample.choices:
            logged["choices"] = list(sample.choices.values() if isinstance(sample.choices, dict) else sample.choices)
        if sample.error is not None:
            logged["error"] = {"message": sample.error, "traceback": "", "traceback_ansi": ""}
        return logged

    def _header(self) -> dict[str, Any]:
        info = self.run.info
        total = sum(info.parts)
        spec = {
            "created": info.created,
            "task": info.task or self.run.folder.name or "run",
            "dataset": {"name": _dataset(self.run), "samples": total},
            "model": self.model,
            "config": {"epochs": self.epochs},
            "packages": {"multimodal-eval": info.versions.get("multimodal-eval", "")},
            "scorers": [{"name": column.scorer} for column in self.columns],
        }
        return {
            "version": 2,
            "status": "success",
            "eval": spec,
            "plan": {"name": "plan", "steps": []},
            "results": {
                "total_samples": total,
                "completed_samples": total,
                "scores": [self._result(column) for column in self.columns],
            },
            "stats": {"started_at": info.created, "completed_at": info.finished or info.created},
        }

    def _result(self, column: _Column) -> dict[str, Any]:
        entry, (figure, raw) = self.run.entries[column.metric], published(column.figure)
        values = {column.kind.replace(" ", "_"): figure.value, "stderr": figure.stderr}
        values |= {} if raw is None else {UNCORRECTED: raw.value, f"{UNCORRECTED}_stderr": raw.stderr}
        params = {"method": method_of(self.run, figure)} if figure.method else {}
        claim = claim_of(self.run, column.metric)
        bounds = {"low": figure.low, "high": figure.high}
        metrics = {name: {"name": name, "value": value} for name, value in values.items() if value is not None}
        metrics |= {
            name: {"name": name, "value": value, "params": params}
            for name, value in bounds.items()
            if value is not None
        }
        return {
            "name": column.scorer,
            "scorer": column.scorer,
            "scored_samples": entry.n_scored,
            "unscored_samples": entry.coverage.missing,
            "params": {} if claim is None else {"note": claim},
            "metrics": metrics,
        }


def _text(value: object) -> str:
    """JSON as inspect_ai writes it, with NaN."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _summary(sample: dict[str, Any]) -> dict[str, Any]:
    summary = {name: sample[name] for name in ("id", "epoch", "target", "scores")} | {"completed": True}
    shown = sample["input"]
    summary["input"] = shown if isinstance(shown, str) else _text_of_messages(shown)
    if "error" in sample:
        summary["error"] = sample["error"]["message"]
    return summary


def _text_of_messages(messages: list[dict[str, Any]]) -> str:
    content = messages[-1]["content"]
    parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return "\n".join(part for part in parts if part)


def _keys(column: _Column) -> dict[str, str]:
    """Where the metadata of a sample have what an imported log says about its score."""
    return {what: f"{what}.{column.scorer}" for what in ("answer", "explanation", "reason")}


def _score(column: _Column, scores: Columns, sample: Sample) -> dict[str, Any]:
    value = scores.get(column.name)
    logged = {what: sample.metadata[key] for what, key in _keys(column).items() if key in sample.metadata}
    if value is not None or sample.metadata.get(column.metric) == "NaN":
        return {"value": float("nan") if value is None else value, **logged}
    status, reason = (scores.get(f"{column.metric}:{what}") for what in ("status", "reason"))
    said = ": ".join(str(each) for each in (status, reason) if each and each != "ok")
    return {"value": float("nan"), "explanation": said or "no value", **logged}


def _input(sample: Sample) -> str | list[dict[str, Any]]:
    """The question; messages if there are several, or media."""
    question = sample.question if sample.question is not None else sample.prompt
    media = [(kind, getattr(sample, kind)) for kind in _MEDIA if getattr(sample, kind) is not None]
    media += [("image", each) for each in sample.images or ()]
    if sample.messages is None:
        if not media:
            return question or ""
        return [
            {"role": "user", "content": [*(_part(*each) for each in media), {"type": "text", "text": question or ""}]}
        ]
    waiting: dict[str, list[Any]] = {kind: [each for name, each in media if name == kind] for kind in _MEDIA}
    messages: list[dict[str, Any]] = []
    for message in sample.messages:
        role = message.role if message.role in ("system", "user", "assistant", "tool") else "user"
        if message.content is None or isinstance(message.content, str):
            messages.append({"role": role, "content": message.content or ""})
            continue
        parts = []
        for part in message.parts:
            content = part.content
            if content is None and waiting.get(part.type):
                content = waiting[part.type].pop(0)
            if part.type in _MEDIA and content is not None:
                parts.append(_part(part.type, content))
            else:
                parts.append({"type": "text", "text": str(content) if part.type == "text" else f"[{part.type}]"})
        messages.append({"role": role, "content": parts})
    return messages


def _part(kind: str, source: object) -> dict[str, Any]:
    if isinstance(source, bytes):
        default = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4"}[kind]
        media_type = next(
            (name for head, name in _TYPES.items() if kind == "image" and source.startswith(head)), default
        )
        source = f"data:{media_type};base64,{b64encode(source).decode()}"
    part: dict[str, Any] = {"type": kind, kind: str(source)}
    if kind != "image":
        name = str(source).rpartition(".")[2].lower()
        known = ("wav", "mp3") if kind == "audio" else ("mp4", "mpeg", "mov")
        part["format"] = name if name in known else known[0]
    return part


def _target(sample: Sample) -> str | list[str]:
    texts = sample.reference_texts
    return texts[0] if len(texts) == 1 else texts


def _output(sample: Sample, answer: StoredAnswer | None, model: str) -> dict[str, Any]:
    text, metadata = sample.generated_answer, sample.metadata
    output: dict[str, Any] = {"model": model, "choices": []}
    if text is not None:
        reasoning = metadata.get("reasoning") if answer is None else answer.reasoning
        content: Any = text
        if isinstance(reasoning, str) and reasoning:
            content = [{"type": "reasoning", "reasoning": reasoning}, {"type": "text", "text": text}]
        stop = metadata.get("stop_reason")
        choice = {
            "message": {"role": "assistant", "content": content, "source": "generate"},
            "stop_reason": stop if isinstance(stop, str) and stop in _STOPS else "stop",
        }
        output |= {"choices": [choice], "completion": text}
    names = ("input_tokens", "output_tokens")
    counts = [metadata.get(name) if answer is None else getattr(answer, name) for name in names]
    if all(isinstance(count, int) for count in counts):
        output["usage"] = {**dict(zip(names, counts, strict=True)), "total_tokens": sum(counts)}
    return output


_STOPS = ("stop", "max_tokens", "model_length", "tool_calls", "content_filter", "unknown")
_SAID = ("reasoning", "stop_reason", "input_tokens", "output_tokens")


def _metadata(sample: Sample, logged: set[str]) -> Columns:
    """The metadata that is nowhere else in the log: not the scores that inspect_ai gave, or what it says about them."""
    values: Columns = msgspec.to_builtins(sample.metadata, enc_hook=str)
    elsewhere = logged.union(_SAID)
    kept = {key: value for key, value in values.items() if key not in elsewhere and not key.startswith(_OWN)}
    if sample.group is not None and sample_id(sample.id) != sample.group:
        kept["group"] = sample.group
    return kept
