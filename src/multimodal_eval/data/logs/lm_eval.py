"""Logs of lm-evaluation-harness: `samples_<task>_<date>.jsonl` and, beside it, `results_<date>.json`.

A line is one pair of document and filter. The lines of a document become one sample: the reply of the model is the
answer, what a filter took from it is metadata `answer.<filter>`, and every filter has its own scores,
`lm-eval.<metric>_<filter>`. A choice by log-likelihood has the most likely continuation as its answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from multimodal_eval.data.logs.log_format import Head, LogInfo, RecordedScore, as_score
from multimodal_eval.data.logs.sample_lines import (
    ByName,
    Document,
    Results,
    SampleLines,
    Scan,
    column_of,
    finite,
    likelihoods,
    metadata_of,
    read_results,
    references_of,
    score_or_text,
    split_reasoning,
    texts,
)
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT", "IMAGE_HASHES"]

HARNESS = "lm-eval"
IMAGE_HASHES = "image_hashes"  # the column with all that the log has of images
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[0-9-]+(?:\.\d+)?)\.jsonl(?:\.gz|\.zst)?")
# Metrics that are means, unless a task says otherwise.
_MEANS = frozenset("acc acc_norm acc_bytes acc_mutual_info exact_match bypass".split())
_OF_LIKELIHOODS = frozenset(("perplexity", "likelihood"))  # aggregates of log-likelihoods, which are better if higher


def _pretrained(arguments: object) -> str | None:
    """The model in its arguments: an object, or a text as on the command line, `pretrained=acme/parrot,dtype=auto`."""
    if isinstance(arguments, str):
        pairs = (pair.partition("=") for pair in arguments.split(","))
        arguments = {name.strip(): value.strip() for name, _, value in pairs}
    if not isinstance(arguments, dict):
        return None
    values = (arguments.get(name) for name in ("pretrained", "model"))
    return next((value for value in values if isinstance(value, str) and value), None)


def _results(path: Path) -> Results:
    match = _NAME.fullmatch(path.name)
    if match is None:
        return Results({}, None, "the file is not named samples_TASK_DATE.jsonl, so its results cannot be found")
    return read_results(path.with_name(f"results_{match['date']}.json"), match["task"])


_LINES = SampleLines(
    HARNESS,
    frozenset(
        "doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash target_hash".split()
    ),
    ByName,
    _results,
    renamed=(("perplexity", "loglikelihood"),),  # of a sample; only the aggregate is a perplexity
)


class LmEval:
    """The format of lm-evaluation-harness."""

    name, harness = "lm-eval", HARNESS
    suffixes = (".jsonl",)
    files = "samples_TASK_DATE.jsonl, with results_DATE.json beside it"
    takes = "reply, choices, targets, prompt, document, scores of every filter"

    def recognises(self, head: Head) -> bool:
        """By the keys of the first line."""
        return head.has_keys("doc_id", "doc", "arguments", "resps", "filtered_resps")

    def part_name(self, path: Path) -> str:
        """The task."""
        match = _NAME.fullmatch(path.name)
        return path.name.partition(".")[0] if match is None else match["task"]

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per document, in the order of the file."""
        scan = _LINES.scan(path)
        for document in _LINES.documents(path, problems):
            yield document[0], _record(document, scan)

    def info(self, path: Path) -> LogInfo:
        """What the results beside the samples say."""
        results, scan = _results(path), _LINES.scan(path)
        return LogInfo(
            HARNESS,
            version=results.text("lm_eval_version"),
            model=_pretrained(results.config.get("model_args")) or results.text("model_name", "model_source"),
            task=results.task,
            scores=tuple(_score(column, *pair, results) for column, pair in scan.scores.items()),
            notes=results.notes(scan),
            settings=results.settings(),
        )


FORMAT = LmEval()


def _score(column: str, metric: str, name: str, results: Results) -> RecordedScore:
    aggregation = results.aggregation(metric, _MEANS)
    lower = results.of_task("higher_is_better").get(metric) is False and aggregation not in _OF_LIKELIHOODS
    return RecordedScore(
        column,
        "lower" if lower else "higher",
        own_mean=as_score(results.of_task("results").get(f"{metric},{name}")),
        own_count=results.samples,
        aggregation=aggregation,
    )


def _record(document: Document, scan: Scan) -> Columns:
    _, entries = document
    first = entries[0][1]
    filters = [name for name, _ in entries]
    doc = first.get("doc")
    record: Columns = {"id": first.get("doc_id")}
    if isinstance(doc, dict) and isinstance(doc.get("question"), str):
        record["question"] = doc["question"]
    pairs = _arguments(first.get("arguments"))
    chosen = likelihoods(first.get("filtered_resps"))
    record |= _reply(first, pairs) if chosen is None else _choice(first, pairs, chosen)
    if images := _images(first.get("arguments")):
        record[IMAGE_HASHES] = images
    record["prompt"] = pairs[0][0] if pairs and isinstance(pairs[0][0], str) else None
    for name, item in entries:
        for metric in filter(scan.has_numbers, _LINES.metrics(item)):
            record[_LINES.column(metric, name, filters)] = score_or_text(item[metric])
        taken = texts(item.get("filtered_resps")) if chosen is None else []
        if taken and (len(entries) > 1 or name != "none" or taken[0] != record["generated_answer"]):
            record[column_of("answer", name)] = taken[0]
    return record | metadata_of("doc", doc)


def _reply(item: Mapping[str, object], pairs: list[tuple[object, object]]) -> Columns:
    """The reply of the model before the filters; the document of a perplexity has none."""
    record: Columns = {"generated_answer": None, "references": references_of(item.get("target"))}
    if pairs and pairs[0][1] is None:
        return record
    replies = texts(item.get("resps")) or texts(item.get("filtered_resps"))
    if replies:
        record["generated_answer"], record["reasoning"] = split_reasoning(replies[0])
    if len(replies) > 1:
        record["replies"] = replies
    return record


def _choice(
    item: Mapping[str, object], pairs: list[tuple[object, object]], chosen: list[tuple[float, bool]]
) -> Columns:
    """The most likely continuation, or the only one if the model would write it."""
    values = [value for value, _ in chosen]
    best = values.index(max(values))
    options = _options(pairs) if len(pairs) == len(chosen) else []
    record: Columns = {"generated_answer": None, "log_likelihoods": finite(values)}
    if options and (len(options) > 1 or chosen[0][1]):
        record["generated_answer"] = options[best]
    if len(options) > 1:
        record["choices"] = options
    else:
        record["chosen"] = best
    targets = references_of(item.get("target")) or []
    indexed = [int(target) if target.isdecimal() and len(target) < 6 else len(options) for target in targets]
    known = len(options) > 1 and all(place < len(options) for place in indexed)
    texts_of = [options[place] for place in indexed] if known else [target.strip() for target in targets]
    return {**record, "references": [text for text in texts_of if text] or None}


def _options(pairs: list[tuple[object, object]]) -> list[str]:
    """The continuations; the contexts, if only these differ."""
    continuations = [str(continuation).strip() for _, continuation in pairs]
    contexts = [str(context).strip() for context, _ in pairs]
    options = contexts if len(set(continuations)) < len(set(contexts)) else continuations
    return options if all(options) else []


def _images(arguments: object) -> list[str]:
    """The hashes of the images in the input, which are all that the log has of them."""
    entries = list(arguments.values()) if isinstance(arguments, dict) else []
    media = entries[0].get("arg_2") if entries and isinstance(entries[0], dict) else None
    return texts(media.get("visual")) if isinstance(media, dict) else []


def _arguments(arguments: object) -> list[tuple[object, object]]:
    """(context, continuation or settings) of every request; older versions write lists."""
    entries = list(arguments.values()) if isinstance(arguments, dict) else arguments
    pairs: list[tuple[object, object]] = []
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            pairs.append((entry.get("arg_0"), entry.get("arg_1")))
        elif isinstance(entry, list) and entry:
            pairs.append((entry[0], entry[1] if len(entry) > 1 else None))
    return pairs
