"""The results of a run of the dialogue contest: the integral score, one row per type, and the worst replies."""

from __future__ import annotations

import msgspec

from multimodal_eval.contests.dialogue.contest import PARTS
from multimodal_eval.contests.dialogue.dialogues import TYPE
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run import Run

WORST = 5


class TypeReport(msgspec.Struct, frozen=True):
    """One type of dialogue: means over its dialogues, and its part of the integral score."""

    type: str
    n: int
    replies: int
    weight: float
    meteor: Figure
    hidden_metric: Figure
    mean: Figure
    part: float | None


class ReplyReport(msgspec.Struct, frozen=True):
    """One reply with its scores."""

    id: str
    type: str
    question: str | None
    answer: str | None
    variants: list[str] | None
    perplexity: float | None
    composite_score: float
    meteor: float
    hidden_metric: float


class DialogueReport(msgspec.Struct, frozen=True):
    """The integral score, its two parts, one row per type, and the worst replies."""

    integral: Figure
    meteor: Figure
    hidden_metric: Figure
    types: list[TypeReport]
    worst: list[ReplyReport]


def is_dialogue_run(run: Run) -> bool:
    """Whether a run is a submission to the dialogue contest."""
    strata = run.info.config.strata
    return strata is not None and strata.by == TYPE and TYPE in run.outcome.slices and {*PARTS} <= {*run.metrics}


def dialogue_report(run: Run, worst: int = WORST) -> DialogueReport:
    """The results of a run, from its run folder alone."""
    entries = run.entries
    return DialogueReport(
        entries[COMPOSITE].bare,
        entries["meteor"].bare,
        entries["hidden_metric"].bare,
        _types(run),
        _worst(run, worst),
    )


def _types(run: Run) -> list[TypeReport]:
    dialogues: dict[str, set[str]] = {}
    for sample in run.samples(["group", "metadata"]):
        dialogues.setdefault(sample.metadata[TYPE], set()).add(str(sample.group))
    slices, types = run.outcome.slices[TYPE], []
    weights = {} if run.info.config.strata is None else run.info.config.strata.weights
    for name, weight in weights.items():
        if name in slices:
            figures = {key: entry.bare for key, entry in slices[name].metrics.items()}
            mean = figures[COMPOSITE]
            part = None if mean.value is None else weight * mean.value
            types.append(
                TypeReport(
                    name,
                    len(dialogues[name]),
                    slices[name].n,
                    weight,
                    figures["meteor"],
                    figures["hidden_metric"],
                    mean,
                    part,
                )
            )
    return types


def _worst(run: Run, count: int) -> list[ReplyReport]:
    """The replies with the lowest (METEOR + HM) / 2; equal values in their original order."""
    names = [COMPOSITE, *PARTS]
    rows = [tuple(row[name] for name in names) for row in run.scores(names).to_pylist()]
    scored = [(row[0], index) for index, row in enumerate(rows) if row[0] is not None]
    lowest = {index for _, index in sorted(scored)[:count]}
    replies = [
        _reply(sample, *rows[index]) for index, sample in enumerate(run.samples() if lowest else ()) if index in lowest
    ]
    return sorted(replies, key=lambda reply: reply.composite_score)


def _reply(sample: Sample, composite: float, meteor: float, hidden_metric: float) -> ReplyReport:
    return ReplyReport(
        sample.id,
        sample.metadata[TYPE],
        sample.question,
        sample.generated_answer,
        sample.references,
        sample.perplexity,
        composite,
        meteor,
        hidden_metric,
    )
