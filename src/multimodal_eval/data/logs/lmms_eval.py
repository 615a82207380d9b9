"""Logs of lmms-eval: `<date>_samples_<task>.jsonl` and, beside it, `<date>_results.json`.

A line has no document and does not name its filter: the n-th line of a document is that of the n-th filter in the
results. The value of a metric is often an object with what the aggregate needs; its `score` is the value, its `answer`
the references, and the rest is metadata `doc.<key>`. `doc_hash` is the same for all documents and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from multimodal_eval.data.logs.log_format import Head, LogInfo, RecordedScore, as_score
from multimodal_eval.data.logs.sample_lines import (
    ByOccurrence,
    Document,
    Results,
    SampleLines,
    Scan,
    column_of,
    finite,
    likelihoods,
    read_results,
    references_of,
    score_or_text,
    split_reasoning,
    texts,
)
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT"]

HARNESS = "lmms-eval"
_NAME = re.compile(r"(?P<date>.+?)_samples_(?P<task>.+)\.jsonl(?:\.gz|\.zst)?")
_COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens")
_SCALARS = (str, int, float, bool)


def _results(path: Path) -> Results:
    match = _NAME.fullmatch(path.name)
    if match is None:
        return Results({}, None, "the file is not named DATE_samples_TASK.jsonl, so its results cannot be found")
    return read_results(path.with_name(f"{match['date']}_results.json"), match["task"])


_LINES = SampleLines(
    HARNESS,
    frozenset("doc_id doc target arguments resps filtered_resps token_counts doc_hash input_media input".split()),
    ByOccurrence,
    _results,
)


class LmmsEval:
    """The format of lmms-eval."""

    name, harness = "lmms-eval", HARNESS
    suffixes = (".jsonl",)
    files = "DATE_samples_TASK.jsonl, with DATE_results.json beside it"
    takes = "reply, reasoning, targets, prompt, media, tokens, scores of every filter"

    def recognises(self, head: Head) -> bool:
        """By the keys of the first line; those of lm-eval have more."""
        return head.has_keys("doc_id", "target", "filtered_resps", "doc_hash") and not head.has_keys("arguments")

    def part_name(self, path: Path) -> str:
        """The task."""
        match = _NAME.fullmatch(path.name)
        return path.name.partition(".")[0] if match is None else match["task"]

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per document, in the order of the file."""
        names, scan = _filter_names(path, _results(path)), _LINES.scan(path)
        for document in _LINES.documents(path, problems):
            yield document[0], _record(document, names, scan)

    def info(self, path: Path) -> LogInfo:
        """What the results beside the samples say."""
        results, scan = _results(path), _LINES.scan(path)
        names = _filter_names(path, results)
        version, model = results.text("lmms_eval_version"), results.text("model_name", "model_source")
        return LogInfo(
            HARNESS,
            version=None if version is None or version.startswith("unknown") else version,
            model=model or None,
            task=results.task,
            scores=tuple(
                _score(_LINES.column(metric, names[int(place)], names), metric, names[int(place)], results)
                for metric, place in scan.scores.values()
            ),
            notes=results.notes(scan),
            settings=results.settings(),
        )


FORMAT = LmmsEval()


def _filter_names(path: Path, results: Results) -> list[str]:
    """The names of the filters, in the order of their blocks: those of the results, or numbers from 1."""
    count = len(_LINES.scan(path).filters)
    return list(results.filters) if len(results.filters) == count else [str(place + 1) for place in range(count)]


def _score(column: str, metric: str, name: str, results: Results) -> RecordedScore:
    values = results.of_task("results")
    lower = results.of_task("higher_is_better").get(metric) is False
    return RecordedScore(
        column,
        "lower" if lower else "higher",
        own_mean=as_score(values.get(f"{metric},{name}", values.get(f"{metric},none"))),
        own_count=results.samples,
        aggregation=_function_name(results.aggregation(metric, (metric,))),
    )


def _function_name(aggregation: str | None) -> str | None:
    """`<function pope_aggregate_f1 at 0x7f…>` without the address."""
    if aggregation is None:
        return None
    function = re.fullmatch(r"<function (\S+) at 0x[0-9a-f]+>", aggregation)
    return aggregation if function is None else function[1]


def _record(document: Document, names: list[str], scan: Scan) -> Columns:
    _, entries = document
    first = entries[0][1]
    prompt = first.get("input")
    record: Columns = {
        "id": first.get("doc_id"),
        "prompt": prompt if isinstance(prompt, str) else None,
        **_reply(first),
        "references": _references(first),
        **_tokens(first.get("token_counts")),
    }
    media = [source for source in texts(first.get("input_media")) if source]
    if media:
        record["images"] = media
    for place, (_, item) in enumerate(entries):
        for metric in _LINES.metrics(item):
            if scan.has_numbers(metric):
                record[_LINES.column(metric, names[place], names)] = score_or_text(item[metric])
            if place == 0 and not metric.endswith("submission"):
                _add_details(record, item[metric])
        taken = texts(item.get("filtered_resps"))
        if taken and (len(entries) > 1 or record["generated_answer"] not in (None, taken[0])):
            record[column_of("answer", names[place])] = taken[0]
    return record


def _reply(item: Mapping[str, object]) -> Columns:
    """The reply without its reasoning. Log-likelihoods have no texts: only the place of the best is known."""
    chosen = likelihoods(item.get("filtered_resps"))
    if chosen is not None:
        values = [value for value, _ in chosen]
        return {"generated_answer": None, "log_likelihoods": finite(values), "chosen": values.index(max(values))}
    replies = texts(item.get("resps")) or texts(item.get("filtered_resps"))
    if not replies:
        return {"generated_answer": None}
    answer, reasoning = split_reasoning(replies[0])
    record: Columns = {"generated_answer": answer, "reasoning": reasoning}
    return {**record, "replies": replies} if len(replies) > 1 else record


def _references(item: Mapping[str, object]) -> list[str] | None:
    """The references in the value of a caption metric, else the target."""
    for metric in _LINES.metrics(item):
        value = item[metric]
        if isinstance(value, dict) and "pred" in value and isinstance(value.get("answer"), list):
            return references_of(value["answer"])
    return references_of(item.get("target"))


def _tokens(counts: object) -> Columns:
    """The tokens of all requests of a document."""
    known = [count for count in counts if isinstance(count, dict)] if isinstance(counts, list) else []
    sums = {name: [count[name] for count in known if isinstance(count.get(name), int)] for name in _COUNTS}
    return {name: sum(values) for name, values in sums.items() if values}


def _add_details(record: Columns, value: object) -> None:
    """What the value of a metric says about the document, such as its category."""
    if not isinstance(value, dict):
        return
    for key, detail in value.items():
        if key not in ("score", "answer", "pred", "prediction") and isinstance(detail, _SCALARS):
            record.setdefault(column_of("doc", key), detail)
