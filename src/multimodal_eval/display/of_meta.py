"""Metrics against people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from multimodal_eval.core.display import DASH, p_value
from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import (
    Block,
    FigureRow,
    Figures,
    Finding,
    Folded,
    Grid,
    GridCell,
    GridRow,
    Text,
    Tone,
)
from multimodal_eval.display.names import printed
from multimodal_eval.display.of_labels import calibration_blocks
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.analysis.meta import MetaEvaluation, MetaSuite, MetricPair

__all__ = ["COEFFICIENTS", "meta_evaluation_blocks", "meta_suite_blocks"]

COEFFICIENTS = {
    "tau_b": "tau-b",
    "tau_c": "tau-c",
    "spearman": "Spearman",
    "pearson": "Pearson",
    "acc_eq": "acc_eq",
    "strict": "accuracy, ties wrong",
    "auroc": "AUROC",
    "system_tau_b": "systems, tau-b",
    "system_spearman": "systems, Spearman",
    "system_pearson": "systems, Pearson",
}
CEILING = "one annotator"


def meta_evaluation_blocks(meta: MetaEvaluation) -> Iterator[Block]:
    """Every coefficient of each metric, the pairs of metrics, calibrations, and what is left out."""
    what = {"pairs": "pair", "foils": "pair", "systems": "battle"}.get(meta.form, "sample")
    judged = f"{counted(meta.n_judgments, 'human judgment')} of {counted(meta.n_samples, what)}"
    title = f"{meta.name}: " * bool(meta.name) + f"agreement with {judged} in {counted(meta.n_clusters, 'cluster')}"
    yield Figures(
        list(_coefficients(meta)), ("metric", "coefficient"), (), ("epsilon",), "value", title, counts="judgments"
    )
    if meta.pairs:
        pairs = [_pair(pair, meta) for pair in meta.pairs]
        title = f"{_head(meta.coefficient)} of A minus that of B"
        note = "▲ A agrees better, ▼ B agrees better, beyond chance: Holm-corrected p at most 0.05"
        yield Figures(
            pairs, ("A", "B"), (), ("p (Holm)",), "A - B", title, note, is_difference=True, counts="judgments"
        )
    for name, calibration in meta.calibrations.items():
        yield from calibration_blocks(calibration, name)
    for left in meta.left_out:
        yield Finding(f"{left.judgments:,} judgments excluded: {left.reason}")
    yield from map(Finding, meta.notes)
    yield from _undefined(meta)
    if signatures := list(dict.fromkeys(text for text in meta.signatures.values() if text)):
        yield Folded("signatures", [Text(f"  {text}", tone="quiet", is_code=True) for text in signatures])


def meta_suite_blocks(suite: MetaSuite) -> Iterator[Block]:
    """One grid of metrics by sets, in which every set has the coefficient that is published for it, and the notes."""
    names = list(dict.fromkeys(name for each in suite.sets for name in each.metrics))
    rows = [GridRow(printed(name), [_cell(each, name) for each in suite.sets]) for name in names]
    if any(each.ceiling for each in suite.sets):
        ends = [each.ceiling.get(each.coefficient) for each in suite.sets]
        rows.append(GridRow(CEILING, [GridCell(figure, "" if figure else DASH) for figure in ends]))
    yield Grid(
        "metric",
        [each.name for each in suite.sets],
        rows,
        below=[
            [_head(each.coefficient), f"{each.n_judgments:,} judgments", f"{each.n_clusters:,} images"]
            for each in suite.sets
        ],
        title="agreement with people, times 100",
        caption=f"{BEST} the best of its column, and those not significantly worse (paired tests, Holm)",
        digits=1,
        scale=100,
    )
    for each in suite.sets:
        yield from (
            Finding(f"{each.name}: {left.judgments:,} judgments excluded: {left.reason}") for left in each.left_out
        )
    yield from map(Finding, dict.fromkeys(note for each in suite.sets for note in each.notes))


BEST = "▲"


def _cell(meta: MetaEvaluation, name: str) -> GridCell:
    figure = meta.metrics.get(name, {}).get(meta.coefficient)
    if figure is None or figure.value is None:
        return GridCell(text=DASH)
    values = {other: figures[meta.coefficient].value for other, figures in meta.metrics.items()}
    best = max((value, other) for other, value in values.items() if value is not None)[1]
    worse = [pair for pair in meta.pairs if {pair.metric, pair.other} == {best, name} and pair.better == best]
    return GridCell(replace(figure, direction="higher"), mark="" if worse else BEST, is_strong=name == best)


def _head(coefficient: str) -> str:
    return COEFFICIENTS.get(coefficient, coefficient)


def _coefficients(meta: MetaEvaluation) -> Iterator[FigureRow]:
    ceiling = {CEILING: meta.ceiling} if meta.ceiling else {}
    for name, figures in {**meta.metrics, **ceiling}.items():
        shown = name if name == CEILING else printed(name)
        for coefficient, figure in figures.items():
            epsilon = "" if figure.epsilon is None else f"{figure.epsilon:.4g}"
            names = (shown, _head(coefficient))
            counts = replace(figure, n_scored=meta.n_judgments, direction="higher", level=meta.level, name=name)
            yield FigureRow(counts, names, after=[epsilon], is_strong=coefficient == meta.coefficient)
            shown = ""


def _pair(pair: MetricPair, meta: MetaEvaluation) -> FigureRow:
    ends = pair.difference, pair.stderr, pair.low, pair.high
    figure = Figure(*ends, pair.method, n_scored=meta.n_judgments, direction="higher", level=meta.level)
    tone: Tone = "" if pair.better is None else "good" if pair.better == pair.metric else "bad"
    return FigureRow(figure, (printed(pair.metric), printed(pair.other)), after=[p_value(pair.p_holm)], tone=tone)


def _undefined(meta: MetaEvaluation) -> Iterator[Finding]:
    """Why values or intervals are missing; those with the same reason share a finding."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, figures in meta.metrics.items():
        for coefficient, figure in figures.items():
            if figure.low is None:
                reasons.setdefault((name, figure.method), []).append(_head(coefficient))
    for (name, method), heads in reasons.items():
        yield Finding(f"{method} ({', '.join(heads)})", about=[name])
