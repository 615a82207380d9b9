"""Which samples humans should label next, and how narrow the corrected interval will be."""

from __future__ import annotations

from collections.abc import Iterator

from multimodal_eval.report.displays.blocks import Block, Notes, Row, Table, Text
from multimodal_eval.report.verdict.sentence import counted
from multimodal_eval.run.label_plan import Forecast, LabelPlan

__all__ = ["blocks"]


def blocks(plan: LabelPlan) -> list[Block]:
    """The interval now, and with the samples that are drawn."""
    title = f"{plan.metric}: {plan.known:,} of {plan.samples:,} samples labelled, {plan.drawn:,} drawn for labelling"
    shown: list[Block] = [Text(title, tone="strong")]
    if rows := list(_rows(plan)):
        shown.append(Table(["interval of the corrected score", "labels", "± at 95 %"], rows))
    if plan.forecast is None:
        shown.append(Text("How narrow the interval will be is known from 20 labels on.", tone="quiet"))
    else:
        shown.append(Text(_sentence(plan.forecast)))
    return [*shown, Notes(plan.notes)]


def _rows(plan: LabelPlan) -> Iterator[Row]:
    if plan.half_width is not None:
        yield Row(["now", f"{plan.known:,}", f"{plan.half_width:.4f}"])
    if (forecast := plan.forecast) is not None:
        yield Row(["with the samples drawn here", f"{forecast.labels:,}", f"{forecast.half_width:.4f}"], is_strong=True)
        yield Row(["drawn uniformly", f"{forecast.labels:,}", f"{forecast.uniform:.4f}"])
        yield Row(["without the judge", f"{forecast.labels:,}", f"{forecast.alone:.4f}"])


def _sentence(forecast: Forecast) -> str:
    needed = "" if forecast.needed is None else f" The wanted width needs {counted(forecast.needed, 'label')}."
    more = (
        ""
        if forecast.calls_per_label is None
        else (f" One more label is as good as about {forecast.calls_per_label:,.0f} more judged samples.")
    )
    return (
        f"The judge correlates with the labels by {forecast.correlation:.2f}: {counted(forecast.labels, 'label')} are "
        f"worth {forecast.worth:,.0f} without a judge.{more}{needed}"
    )
