"""What a report says, in the order in which it says it, from run folders alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from multimodal_eval.analysis.compare import RunComparison
from multimodal_eval.analysis.numbers import headline
from multimodal_eval.analysis.scored_rows import scored_rows
from multimodal_eval.analysis.sensitivity import Sensitivity
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.cards import card_text
from multimodal_eval.report.charts import Chart, charts_of
from multimodal_eval.report.choice import EXPLANATIONS, PER_GROUP, TITLES, Chosen, choose
from multimodal_eval.report.distributions import Distribution, distribution
from multimodal_eval.report.markdown import Block, blocks
from multimodal_eval.report.one_run import OneRun, one_run
from multimodal_eval.report.samples import Shown, shown_samples


@dataclass(frozen=True)
class Group:
    """Samples that were chosen for one reason."""

    kind: str
    title: str
    explanation: str
    samples: list[Shown]
    elsewhere: list[tuple[str, str]]  # id and group of samples that belong here too


@dataclass(frozen=True)
class Content:
    """A whole report. `charts` is what the page's script draws, by the name of the place where it draws it."""

    title: str
    runs: list[OneRun]
    main: str
    numbers: list[str]
    distributions: dict[str, Distribution]
    comparison: RunComparison | None
    sensitivity: Sensitivity | None
    groups: list[Group]
    cards: dict[str, list[Block] | None]  # None: a plug-in's, which has none here
    charts: dict[str, Chart]


def content_of(
    runs: Sequence[Run],
    names: Sequence[str],
    *,
    comparison: RunComparison | None = None,
    sensitivity: Sensitivity | None = None,
    per_group: int = PER_GROUP,
    fetch: bool = False,
) -> Content:
    """Collect what is to be said of the runs; `comparison` and `sensitivity` are what those commands found."""
    scored = scored_rows(runs, names)
    told = [one_run(own) for own in scored]
    numbers = [name for name in runs[0].entries if all(name in run.entries for run in runs)]
    main = headline(*(run.entries for run in runs))
    chosen = choose(scored, main, per_group)
    shown = shown_samples(scored, chosen, fetch=fetch)
    spread = {
        name: found
        for name in numbers
        if (found := distribution([own.values[name] for own in scored], runs[0].info.bounds_of(name))) is not None
    }
    metrics = dict.fromkeys(name for run in runs for name in run.entries if name != COMPOSITE)
    return Content(
        _title(runs, names),
        told,
        main,
        numbers,
        spread,
        comparison,
        sensitivity,
        _groups(chosen, shown, main, len(runs) > 1),
        {name: _card(name) for name in metrics},
        charts_of(told, numbers, spread, comparison, sensitivity),
    )


def _title(runs: Sequence[Run], names: Sequence[str]) -> str:
    task = runs[0].outcome.task
    return f"{task + ': ' if task else ''}{' and '.join(names) if len(names) < 3 else f'{len(names)} runs'}"


def _groups(chosen: Sequence[Chosen], shown: Sequence[list[Shown]], main: str, several: bool) -> list[Group]:
    mean = ", averaged over the runs" if several else ""
    places = {
        row: (sample.id, TITLES[one.kind])
        for one, samples in zip(chosen, shown, strict=True)
        for row, sample in zip(one.rows, samples, strict=True)
    }
    return [
        Group(
            one.kind,
            TITLES[one.kind],
            EXPLANATIONS[one.kind].format(main=main, mean=mean),
            samples,
            [places[row] for row in one.elsewhere],
        )
        for one, samples in zip(chosen, shown, strict=True)
    ]


def _card(name: str) -> list[Block] | None:
    try:
        return blocks(card_text(name))
    except MultimodalEvalError:
        return None
