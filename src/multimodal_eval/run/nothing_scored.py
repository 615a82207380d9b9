"""Metrics without a single score are an error: of the input if no sample has a field, else of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from multimodal_eval.core.batch import rows_without
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import InputError, NothingScoredError, Problem
from multimodal_eval.core.records import COMPOSITE, Results, RunInfo, computed_scores
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers.column_names import Kinds, kinds_of, map_flag, suggestion
from multimodal_eval.data.readers.summary import NOT_USED, PREFIX
from multimodal_eval.evaluation.metrics_registry import make_task

if TYPE_CHECKING:
    from multimodal_eval.data.runs.run_folder import RunFolder
    from multimodal_eval.run.plan import Plan

CODE = "NOTHING_SCORED"
ANSWERS = ("generated_answer", "perplexity", "logprobs")  # without any of these, no metric scores an answer
_SHOWN_COLUMNS = 20


def refuse_missing_fields(plan: Plan, folder: RunFolder, info: RunInfo, *, is_answered: bool = True) -> None:
    """Refuse samples none of which has a field that a metric needs, before anything is computed.

    Without `is_answered`, a model will give the answers.
    """
    if plan.config.allow_empty:
        return
    metrics_by_need: dict[str, list[str]] = {}
    for metric in plan.metrics:
        for need in metric.needs:
            metrics_by_need.setdefault(need, []).append(metric.name)
    needs = [need for need in metrics_by_need if is_answered or "generated_answer" not in need.split("|")]
    unmet = needs  # by any stored sample; usually the first part meets all
    for part in range(len(info.parts) if needs else 0):
        batch = folder.read_batch(part)
        unmet = [need for need in unmet if rows_without(batch, need).all()]
        if not unmet:
            break
    if _one_is_enough(plan.config):  # what only some metrics need may be missing
        unmet = [need for need in unmet if len(metrics_by_need[need]) == len(plan.metrics)]
    if any("generated_answer" in need.split("|") for need in unmet) and (failure := failed_answers(folder, info)):
        raise NothingScoredError([_failed(plan, failure, None if folder.is_kept else _accepting(info))])
    if unmet:
        kinds, data = _stored_columns(folder), _dataset(info)
        problems = [
            _missing(
                f"{_listed(metrics_by_need[need])} cannot score any sample: ", need, kinds, info.source is None, data
            )
            for need in unmet
        ]
        unused = [note for note in info.input_notes if NOT_USED in note]
        raise NothingScoredError(_with_advice(problems, "\n".join([*unused, _accepting(info)])))


def refuse_missing_answers(fields: Iterable[str], kinds: Kinds) -> None:
    """Refuse an input without answers, as a run would. `kinds` are the columns as they are in the files."""
    if not {*ANSWERS} & {*fields}:
        problem = _missing("metrics cannot score any sample: ", "generated_answer", kinds)
        raise NothingScoredError(_with_advice([problem], "To check data without answers: --allow-empty"))


def missing_answers(fields: Iterable[str], data: str) -> str | None:
    """A note about a dataset without answers."""
    return None if {*ANSWERS} & {*fields} else f"no sample has an answer. {_to_answer(data)}"


def missing_references(fields: Iterable[str], kinds: Kinds) -> str | None:
    """A note about an input without references."""
    if {"references", "expected_answer", "caption", "annotations"} & {*fields}:
        return None
    hint = _hint("references", kinds, in_memory=False).replace("\n", " ")
    return f"no sample has `references`, which most metrics need. {hint}"


def refuse_unscored(folder: RunFolder, info: RunInfo, results: Results, *, allow_empty: bool = False) -> None:
    """Refuse a finished run in which a metric has no score. The folder is kept, with the reasons of all samples."""
    if allow_empty or info.config.allow_empty:
        return
    empty = {
        name: entry
        for name, entry in results.entries.items()
        if entry.n_scored == 0 and all(part.value is None for part in entry.parts.values())
    }
    if not empty or (_one_is_enough(info.config) and not empty.keys() >= results.metrics.keys()):
        return
    names_by_reason: dict[tuple[str, int], list[str]] = {}
    for name, entry in empty.items():
        if not _is_accepted(name, info):
            reason = entry.reasons[0] if entry.reasons else None
            key = ("no reason is stored", 0) if reason is None else (reason.reason, reason.count)
            names_by_reason.setdefault(key, []).append(name)
    if names_by_reason:
        kinds: Kinds = _stored_columns(folder)
        problems = [
            Problem(code=CODE, message=_message(names, results.n, *reason), hint=_hint_for(results, names, kinds, info))
            for reason, names in names_by_reason.items()
        ]
        where = f"The run, with the reason of every sample, is in {folder.label}\n" if folder.is_kept else ""
        location = folder.location if folder.is_kept else None
        raise NothingScoredError(_with_advice(problems, where + _accepting(info)), run=location)


def _one_is_enough(config: RunConfig) -> bool:
    """Whether the metrics are those of a task whose data may have the inputs of only some."""
    if computed_scores(config):  # many harnesses score a document by one of several metrics
        return True
    task = make_task(config)
    return task is not None and task.one_is_enough and not config.metrics


def _is_accepted(name: str, info: RunInfo) -> bool:
    """Whether the user chose to continue without this metric, or it is a composite of such metrics."""
    return name in info.unavailable or (name == COMPOSITE and bool(info.unavailable))


def _message(names: Sequence[str], total: int, reason: str, count: int) -> str:
    return f"{_listed(names)}: no score for any of {total:,} samples. Commonest reason ({count:,} ×): {reason}."


def _hint_for(results: Results, names: Sequence[str], kinds: Kinds, info: RunInfo) -> str | None:
    """Advice about columns, if all samples lack an input."""
    entry = results.entries[names[0]]
    if entry.coverage.unscored.get("missing_input") != entry.coverage.total:
        return None
    need = entry.coverage.reasons[0].reason.removeprefix("no ").split(", ")[0].replace(" or ", "|")
    return _hint(need, kinds, in_memory=info.source is None, dataset=_dataset(info))


def _missing(subject: str, need: str, kinds: Kinds, in_memory: bool = False, dataset: str | None = None) -> Problem:
    shown = need.replace("|", "` or `")
    message = f"{subject}no sample has `{shown}`."
    return Problem(
        code=CODE, message=message, field=need, hint=_hint(need, kinds, in_memory=in_memory, dataset=dataset)
    )


def _dataset(info: RunInfo) -> str | None:
    """The data of a run, if they are a published dataset without a second file: its columns have no answers."""
    if info.source is None or info.source.predictions is not None:
        return None
    from multimodal_eval.data.logs.recognised import is_dataset
    from multimodal_eval.data.readers.files import file_set

    with suppress(InputError, OSError):
        if is_dataset(file_set(Path(info.source.data), info.config.format).files[0].log):
            return info.source.data
    return None


def _to_answer(data: str) -> str:
    return (
        f"Ask a model for answers: `mmeval run {quote(data)} --model PROVIDER:NAME`, "
        f"or give them in a second file: `mmeval score {quote(data)} ANSWERS`"
    )


def _failed(plan: Plan, failure: Sequence[str], advice: str | None) -> Problem:
    """The problem of a run whose model gave no answer; `failure` says why."""
    names = _listed([metric.name for metric in plan.metrics])
    lines = (f"{names} cannot score any sample: {failure[0]}", *failure[1:], advice)
    return Problem(code=CODE, message="\n".join(filter(None, lines)))


def _hint(need: str, kinds: Kinds, *, in_memory: bool, dataset: str | None = None) -> str:
    """The columns that are there, and the option that names the likely one. `dataset` has no answers."""
    names = [repr(column) for column in kinds]
    shown = ", ".join(names[:_SHOWN_COLUMNS]) + (", …" if len(names) > _SHOWN_COLUMNS else "")
    text = f"The columns are {shown}."
    if dataset is not None and "generated_answer" in need.split("|"):
        return f"{text}\n{_to_answer(dataset)}"
    likely = suggestion(need, kinds)
    if likely is None:
        return text
    setting = f"map={{{likely.field!r}: {likely.column!r}}}" if in_memory else map_flag(likely.field, likely.column)
    others = f" (or {', '.join(map(repr, likely.others))})" if likely.others else ""
    return f"{text}\nIf it is in {likely.column!r}{others}, add: {setting}"


def _accepting(info: RunInfo) -> str:
    setting = "allow_empty=True" if info.source is None else "--allow-empty"
    return f"To accept metrics without scores: {setting}"


def _with_advice(problems: list[Problem], advice: str) -> list[Problem]:
    """The problems; the last one also says how to continue anyway."""
    last = problems[-1]
    hint = "\n".join(filter(None, (last.hint or "", advice)))
    return [*problems[:-1], Problem(code=last.code, message=last.message, field=last.field, hint=hint)]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _stored_columns(folder: RunFolder) -> Kinds:
    """The fields and the metadata of the first samples, with the kinds of their values."""
    return kinds_of(map(_columns_of, folder.read_samples(0)[:1000]))


def _columns_of(sample: Sample) -> Mapping[str, object]:
    fields = {name: getattr(sample, name) for name in FIELDS if name != "metadata"}
    columns = {name: value for name, value in fields.items() if value is not None}
    for name, value in sample.metadata.items():
        columns.setdefault(name.removeprefix(PREFIX), value)  # as it is in the file
    return columns


# status of most samples -> what to do about it
_ADVICE = {
    "refused": "Change the prompt (--prompt, --system), or choose another model.",
    "filtered": "Change the settings of the endpoint's content filter, or choose another endpoint.",
    "truncated": "Raise --max-tokens, or score what is there: `generation: {accept_truncated: true}`.",
    "empty": "If the model reasons first, raise --max-tokens. A Python function must return text.",
    "tool_call": "Choose a model without tools of its own, or switch them off with `extra`.",
    "malformed": "Is it the right provider for this address? Check --model and --base-url.",
    "rejected": "Look at a request: --show-request ID.",
    "unreadable": "Check the paths of the media; relative ones start at --image-root.",
    "raised": "The exception is the model's own: call it for one sample. A function of a list of requests needs "
    "@batched(SIZE).",
    "unanswered": "Try again when the endpoint works: start a new run.",
}


def failed_answers(folder: RunFolder, info: RunInfo) -> list[str] | None:
    """What the model did instead of answering, and what to do; None if it has answered, or there is no model."""
    generation = info.generation
    if generation is None or not generation.statuses or generation.statuses.get("ok"):
        return None
    return list(_lines(folder, info))


def _lines(folder: RunFolder, info: RunInfo) -> Iterator[str]:
    from multimodal_eval.analysis.generation import generation_summary
    from multimodal_eval.run.ask.replies import resuming

    summary = generation_summary(folder, info)
    assert summary is not None
    yield f"none of the {summary.samples:,} samples has an answer."
    yield from summary.outcome_lines
    if advice := _ADVICE.get(summary.statuses[0].status):
        yield advice
    if folder.is_kept:
        yield f"The status and the reason of every sample are in {folder.label}/answers. Correct it in a new run."
        yield f"To finish this run without scores: {resuming(folder, info)} --allow-empty"
