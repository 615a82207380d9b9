"""Metrics against people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from multimodal_eval.core.display import p_value
from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Finding, Folded, Text, Tone
from multimodal_eval.display.names import printed
from multimodal_eval.display.of_labels import calibration_blocks
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.analysis.meta import MetaEvaluation, MetricPair

__all__ = ["COEFFICIENTS", "meta_evaluation_blocks"]

COEFFICIENTS = {"tau_b": "tau-b", "tau_c": "tau-c", "spearman": "Spearman", "pearson": "Pearson", "acc_eq": "acc_eq"}


def meta_evaluation_blocks(meta: MetaEvaluation) -> Iterator[Block]:
    """Every coefficient of each metric, the pairs of metrics, calibrations, and what is left out."""
    judged = f"{counted(meta.n_judgments, 'human judgment')} of {counted(meta.n_samples, 'sample')}"
    title = f"agreement with {judged} in {counted(meta.n_clusters, 'cluster')}"
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


def _head(coefficient: str) -> str:
    return COEFFICIENTS.get(coefficient, coefficient)


def _coefficients(meta: MetaEvaluation) -> Iterator[FigureRow]:
    for name, figures in meta.metrics.items():
        shown = printed(name)
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
