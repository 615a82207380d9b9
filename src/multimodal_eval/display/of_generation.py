"""How a model answered: outcomes, tokens, time and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from multimodal_eval.core.display import DASH
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Finding, Folded, Row, Table, Text, Verdict

if TYPE_CHECKING:
    from multimodal_eval.analysis.generation import GenerationSummary, StatusCount
    from multimodal_eval.analysis.probes import Probed
    from multimodal_eval.core.records import RunInfo
    from multimodal_eval.data.runs.run_folder import RunFolder

__all__ = ["generation_blocks", "generation_lines", "probe_blocks"]


def generation_lines(folder: RunFolder, info: RunInfo) -> Iterator[str]:
    """The counts of statuses with the first reasons of failures, then tokens, time, cost and cache hits."""
    from multimodal_eval.analysis.generation import generation_summary

    summary = generation_summary(folder, info)
    if summary is None:
        return
    yield from summary.outcome_lines
    if details := list(_details(summary, folder, info)):
        yield "; ".join(details)


def _details(summary: GenerationSummary, folder: RunFolder, info: RunInfo) -> Iterator[str]:
    from multimodal_eval.analysis.generation import busy_seconds
    from multimodal_eval.core.progress import duration
    from multimodal_eval.generate.meter import money
    from multimodal_eval.run.ask.replies import ANSWERS, paid

    generation = summary.info
    if generation.input_tokens or generation.output_tokens:
        yield f"tokens: {generation.input_tokens:,} in, {generation.output_tokens:,} out"
    seconds = busy_seconds(folder, len(info.parts))
    asked = summary.samples - summary.cached
    if seconds >= 1 and asked:
        yield f"{duration(seconds)}, {asked / seconds:,.1f} requests per second"
    if summary.cached:
        yield f"{summary.cached:,} from the cache"
    config = info.config.generation
    if config is not None and config.price is not None:
        yield f"cost: {money(paid(folder, info, ANSWERS, [config.price]), config.price.currency)}"


def generation_blocks(summaries: Mapping[str, GenerationSummary]) -> Iterator[Block]:
    """Models, settings and outcomes of runs, one column per run; then the reasons of failures, and the prompts."""
    several = len(summaries) > 1
    facts = {name: dict(_facts(summary)) for name, summary in summaries.items()}
    rows = [
        Row([fact, *(known.get(fact, DASH) for known in facts.values())])
        for fact in dict.fromkeys(fact for known in facts.values() for fact in known)
    ]
    heads = ["", *summaries] if several else ["", "generation"]
    yield Table(heads, rows, len(heads), "models and settings")
    outcomes = [
        Row(
            [
                *([name] if several else []),
                status.status.replace("_", " "),
                _reasons(status),
                f"{status.count:,}",
                _share(status),
            ]
        )
        for name, summary in summaries.items()
        for status in summary.statuses
    ]
    if outcomes:
        names = ["run"] if several else []
        yield Table(
            [*names, "outcome", "most frequent reasons", "samples", "share"], outcomes, len(names) + 2, "outcomes"
        )
    for name, summary in summaries.items():
        of = f" of {name}" if several else ""
        for title, text in (("system prompt", summary.system), ("prompt template", summary.template)):
            if text is not None:
                yield Folded(f"{title}{of}", [Text(text)])
        yield Folded(f"signature{of}", [Text(summary.info.signature, is_code=True)])


def _facts(summary: GenerationSummary) -> Iterator[tuple[str, str]]:
    """What is known about the answers of one run."""
    info = summary.info
    named = f"; the endpoint names it {', '.join(info.models)}" if info.models else ""
    yield "model", f"{summary.model}{named}"
    if info.base_url is not None:
        yield "endpoint", info.base_url
    if summary.prompt is not None:
        yield "prompt", summary.prompt
    yield "parameters", _named(summary.parameters) or "the model's defaults"
    if summary.settings:
        yield "other settings", _named(summary.settings)
    if info.requests is not None:
        yield "digest of all requests", info.requests
    if summary.statuses:
        yield "answered", f"{summary.samples - summary.failed:,} of {summary.samples:,}"
        failed = ", ".join(f"{s.count:,} {s.status.replace('_', ' ')}" for s in summary.statuses if s.status != "ok")
        yield "failed", failed or "none"
        yield "tokens", f"{info.input_tokens:,} in, {info.output_tokens:,} out"
        yield "cost", "not known" if info.cost is None else f"{info.cost:,.4g} {info.currency or ''}".strip()
    if (latency := summary.latency) is not None:
        shown = f"{latency.p50:.3g} s (median), {latency.p95:.3g} s (95%), {latency.longest:.3g} s (longest)"
        yield "latency", f"{shown} of {latency.requests:,} requests"
    if summary.cached or summary.retried:
        yield "requests", f"{summary.cached:,} answered from the cache, {summary.retried:,} retried"
    if info.stopped is not None:
        of = "" if info.population is None else f" ({summary.samples:,} of {info.population:,} samples)"
        yield "stopped early", f"{info.stopped}{of}"


def _named(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _reasons(status: StatusCount) -> str:
    return "; ".join(f"{each.count:,} × {each.reason}" for each in status.reasons)


def _share(status: StatusCount) -> str:
    return f"{100 * status.share:.1f}%"


def probe_blocks(probed: Probed, model: str) -> Iterator[Block]:
    """Whether a model looks, its scores under the probes, the shares that are lost, and the scores by position."""
    verdicts = {
        True: f"{model} looks: its score needs the image",
        False: f"it is not shown that {model} looks: its score may not need the image",
    }
    remarks = []
    if probed.depends_on_position is not None:
        matters = "matters" if probed.depends_on_position else "is not shown to matter"
        p_value = f"p = {probed.position_p:.4f}, randomization"
        remarks.append(Finding(f"the place of the right choice {matters} ({p_value})", level="note"))
    if probed.looks is not None:
        yield Verdict(verdicts[probed.looks], tone="good" if probed.looks else "bad", evidence=remarks)
    else:
        yield from remarks
    rows = [FigureRow(probed.score, names=["plain"], is_main=True)]
    rows += [FigureRow(figure, names=[name]) for name, figure in probed.scores.items()]
    yield Figures(rows, heads=["probe"], value=probed.metric, title=model)
    lost = [FigureRow(figure, names=[name]) for name, figure in probed.shares.items()]
    yield Figures(lost, heads=["probe"], value="share lost", caption="of the score: 1 - score with the probe / score")
    if probed.positions:
        places = [FigureRow(figure, names=[letter]) for letter, figure in probed.positions.items()]
        yield Figures(places, heads=["right choice"], value=probed.metric)
