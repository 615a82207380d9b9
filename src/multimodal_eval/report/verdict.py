"""The conclusions at the top of a report, one sentence per question that the data answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from multimodal_eval.core.display import printed
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.metric import Bounds
from multimodal_eval.display.comparison_verdict import of_comparison
from multimodal_eval.display.of_judges import consistency
from multimodal_eval.display.run_findings import unscored_of
from multimodal_eval.display.wording import Tone, Verdict, counted, estimate, label, listed, plain, share
from multimodal_eval.report.one_run import Comparisons, JudgeView, OneRun

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import RunComparison
    from multimodal_eval.analysis.composite import Sensitivity
    from multimodal_eval.analysis.generation import GenerationSummary

__all__ = [
    "of_crosswalk",
    "of_generation",
    "of_headline",
    "of_import",
    "of_judges",
    "of_labels",
    "of_ratings",
    "of_unscored",
    "of_weights",
    "verdicts_of",
]


# One run: the headline with its interval, and how precise it is.


def of_headline(run: OneRun, main: str) -> Iterator[Verdict]:
    """The score of the run, or what its judge says about the systems that it compares."""
    compared = run.comparisons.get(main)
    entry = run.entries[main]
    if compared is not None and not compared.is_score:
        yield from of_ratings(run, compared)
        return
    if entry.value is None:
        yield Verdict("What is the score?", f"{label(printed(main))} has no value: {_nothing(entry)}.", "warning")
        return
    figure = estimate(entry.value, entry.low, entry.high)
    covered = _covered(entry, "pair" if compared is not None and compared.conclusion else "sample")
    if compared is not None and compared.conclusion:
        answer = f"{compared.what}, {label(printed(main))}: {figure}; {compared.conclusion}; {covered}."
        yield Verdict("Which system is better?", answer[0].upper() + answer[1:])
        return
    what = f" ({compared.what})" if compared is not None else ""
    scale = _scale(run.run.info.bounds_of(main), entry.better)
    yield Verdict(
        "What is the score?", f"{label(printed(main))}{what} of {label(run.name)} is {figure}, {scale}; {covered}."
    )
    yield _precision(run, main, entry)


def _nothing(entry: Figure) -> str:
    return f"none of {counted(entry.coverage.total, 'sample')} is scored" if not entry.coverage.scored else entry.method


def _covered(entry: Figure, noun: str) -> str:
    verb = "is" if entry.n_total == 1 else "are"
    return f"{entry.coverage.scored:,} of {counted(entry.coverage.total, noun)} {verb} scored"


def _scale(bounds: Bounds, direction: str) -> str:
    low, high = bounds
    if low is not None and high is not None:
        return f"on a scale from {low:g} to {high:g} ({direction} is better)"
    return f"{direction} is better"


def _precision(run: OneRun, main: str, entry: Figure) -> Verdict:
    """What the interval means, and what would halve it."""
    question = "How precise is it?"
    if entry.value is None or entry.low is None or entry.high is None or not isfinite(entry.high - entry.low):
        return Verdict(question, f"It has no interval: {entry.method}.", "warning")
    low, high = (plain(end, entry.low, entry.high) for end in (entry.low, entry.high))
    if entry.high <= entry.low:
        return Verdict(
            question, "All scored samples have the same value, so that the interval says nothing.", "warning"
        )
    needed = counted(4 * entry.coverage.scored, "sample")
    return Verdict(
        question,
        f"With 95% confidence, the score over all samples like these is between {low} and {high}; to halve this "
        f"interval takes four times as many, {needed}.",
    )


def of_ratings(run: OneRun, compared: Comparisons) -> Iterator[Verdict]:
    """Which of several systems is first, by a judge."""
    question = "Which system is best?"
    board = compared.ratings
    if board is None or not board.systems:
        yield Verdict(question, f"{label(compared.metric)} gives no ratings: {compared.problem}.", "warning")
        return
    leading = [system.name for system in compared.leading]
    total = f"of {counted(len(board.systems), 'system')} by {label(compared.metric)}, with 95% confidence"
    if len(leading) == 1:
        first, second = board.systems[0], board.systems[1]
        next_best = f"; the next is {label(second.name)} with {_rating(compared, second.rating)}"
        rating = _rating(compared, first.rating)
        yield Verdict(question, f"{label(first.name)} is first {total}: its rating is {rating}{next_best}.", "good")
        return
    decided = "the comparisons do not decide between them"
    yield Verdict(question, f"{listed(leading)} can be first {total}: {decided}.", "warning")


def _rating(compared: Comparisons, rating: float) -> str:
    return f"{rating:,.{compared.decimals}f}"


def of_labels(run: OneRun, main: str) -> Iterator[Verdict]:
    """What people would say, if labels of some samples correct the headline."""
    corrected = run.entries[main].calibrated
    if corrected is None or corrected.value is None:
        return
    entry = run.entries[main]
    yield Verdict(
        "What would people say?",
        f"By {counted(corrected.labels or 0, 'human label')}, people would give {label(run.name)} "
        f"{estimate(corrected.value, corrected.low, corrected.high)} on {label(printed(main))}; without labels it is "
        f"{plain(entry.value, entry.low, entry.high)}.",
    )


# What else the data say: the effect of the weights, what is unscored, models, judges, rules, and the harness.


_STABLE = 0.95  # of the random weights


def of_weights(sensitivity: Sensitivity) -> Iterator[Verdict]:
    """Whether the result of a composite depends on its weights."""
    question = "Does it depend on the weights?"
    draws = f"of {sensitivity.draws:,} random weights around the configured ones"
    if len(sensitivity.runs) == 1:
        run = sensitivity.runs[0]
        answer = f"In 95% {draws}, the composite is between {plain(run.low, run.low, run.high)} and "
        yield Verdict(question, f"{answer}{plain(run.high, run.low, run.high)}.")
        return
    best = max(sensitivity.runs, key=lambda run: run.value)
    first = best.ranks[0] if best.ranks else 0.0
    tone: Tone = "" if first >= _STABLE else "warning"
    yield Verdict(question, f"{label(best.run)} has the highest composite in {share(first)} {draws}.", tone)


def of_unscored(runs: Sequence[OneRun], main: str, comparison: RunComparison | None) -> Iterator[Verdict]:
    """How many samples have no score, and whether they could change the verdict on two runs."""
    question = "How much is unscored?"
    missing = {run.name: unscored for run in runs if (unscored := unscored_of(run.run, main)) is not None}
    others = {name: count for name in runs[0].entries if name != main and (count := _most_unscored(runs, name))}
    if not missing and not others:
        is_complete = all(entry.n_scored == entry.n_total for run in runs for entry in run.entries.values())
        where = "" if len(runs) == 1 else " in every run"
        every = (
            f"every metric has a score for every sample{where}"
            if is_complete
            else "no sample that needs a score lacks one"
        )
        yield Verdict(question, f"Nothing: {every}.")
        return
    several = len(runs) > 1
    counts = [
        f"{unscored.count:,} of {counted(unscored.total, 'sample')}{' of ' + label(name) if several else ''}"
        for name, unscored in missing.items()
    ]
    answer = f"On {label(printed(main))}, {' and '.join(counts) or 'nothing'}"
    most = max(others, key=lambda name: others[name]) if others else ""
    if most and others[most] > max((unscored.count for unscored in missing.values()), default=0):
        answer += f"; on {label(printed(most))}, up to {counted(others[most], 'sample')}"
    effect = "" if comparison is None else _possible_effect(runs, main, comparison)
    tone: Tone = "warning" if "could" in effect else ""
    yield Verdict(question, f"{answer}{effect}.", tone)


def _most_unscored(runs: Sequence[OneRun], name: str) -> int:
    """The unscored samples of the run that has the most of them."""
    every = (unscored_of(run.run, name) for run in runs if name in run.entries)
    return max((unscored.count for unscored in every if unscored is not None), default=0)


def _possible_effect(runs: Sequence[OneRun], main: str, comparison: RunComparison) -> str:
    """Whether any scores of the unscored samples could reverse the difference of two runs.

    With d over k of n samples of a metric with range w, the difference over all n is within (k d ± (n - k) w) / n.
    """
    metric = next((each for each in comparison.numbers if each.name == main), None)
    low, high = runs[0].run.info.bounds_of(main)
    if metric is None or len(runs) != 2 or not metric.left_out or low is None or high is None:
        return ""
    if runs[0].run.kind_of(main) != "mean" or not metric.pairs or not metric.pairs[0].difference:
        return ""
    sum_of_differences, largest = metric.samples * abs(metric.pairs[0].difference), metric.left_out * (high - low)
    if sum_of_differences > largest:
        return "; whatever scores these had, the difference would keep its sign"
    return "; their scores could reverse the sign of the difference"


def of_generation(runs: Sequence[OneRun]) -> Iterator[Verdict]:
    """How many samples the models answered, and what it took."""
    summaries = [run.generation for run in runs if run.generation is not None and run.generation.statuses]
    if summaries:
        answer = "; ".join(dict.fromkeys(map(_answered, summaries)))
        yield Verdict(
            "Did the model answer?", f"{answer}.", "warning" if any(each.failed for each in summaries) else ""
        )


def _answered(summary: GenerationSummary) -> str:
    failures = [status for status in summary.statuses if status.status != "ok"]
    kinds = label(", ".join(f"{each.count:,} {each.status.replace('_', ' ')}" for each in failures[:3]))
    info = summary.info
    facts = [
        f"{summary.samples - summary.failed:,} of {counted(summary.samples, 'sample')}{kinds and f' ({kinds})'}",
        f"{info.input_tokens:,} tokens in and {info.output_tokens:,} out" if info.input_tokens else "",
        "" if summary.latency is None else f"a median of {summary.latency.p50:.3g} s per request",
        "" if info.cost is None else f"{info.cost:,.4g} {label(info.currency or '')}".strip(),
    ]
    return f"{label(summary.model)} answered {', '.join(fact for fact in facts if fact)}"


def of_judges(runs: Sequence[OneRun]) -> Iterator[Verdict]:
    """What is known about how consistent the judges are. Runs whose judges do the same are named together."""
    several = len(runs) > 1
    names: dict[str, list[str]] = {}
    for run in runs:
        for judge in run.judges:
            if facts := "; ".join(_facts(judge)):
                names.setdefault(facts, []).append(f"{judge.metric}{' in ' + label(run.name) if several else ''}")
    if names:
        answer = "; ".join(f"{listed(judges)}: {facts}" for facts, judges in names.items())
        yield Verdict("How consistent is the judge?", f"{answer}.")


def _facts(judge: JudgeView) -> list[str]:
    facts = list(consistency(judge.findings))
    if judge.unreadable or judge.failed:
        facts.append(f"{judge.unreadable:,} verdicts are unreadable and {judge.failed:,} failed")
    return facts


def of_crosswalk(runs: Sequence[OneRun]) -> Iterator[Verdict]:
    """How far the rule that reads an answer changes the score."""
    parts = []
    for run in runs:
        rules = [] if run.crosswalk is None else [rule for rule in run.crosswalk.rules if rule.score.value is not None]
        if run.crosswalk is None or len(rules) < 2:
            continue
        least = min(rules, key=lambda rule: rule.score.value or 0.0)
        most = max(rules, key=lambda rule: rule.score.value or 0.0)
        where = f" in {label(run.name)}" if len(runs) > 1 else ""
        parts.append(
            f"{label(run.crosswalk.metric)}{where} is between {plain(least.score.value)} ({label(least.rule)}) and "
            f"{plain(most.score.value)} ({label(most.rule)}); {run.crosswalk.differing:,} of "
            f"{counted(run.crosswalk.samples, 'sample')} are not scored equally by all {len(rules)} rules"
        )
    if parts:
        yield Verdict("Does the rule matter?", f"{'; '.join(parts)}.")


def of_import(runs: Sequence[OneRun]) -> Iterator[Verdict]:
    """Whether the means here are those that the harness reports."""
    parts, is_different = [], False
    for run in runs:
        imported = run.imported
        if imported is None or imported.info is None or not imported.means:
            continue
        total = len(imported.means)
        differing = [each.mean.metric for each in imported.means if each.difference != 0.0]
        is_different = is_different or bool(differing)
        where = f" of {label(run.name)}" if len(runs) > 1 else ""
        same = f"{imported.equal:,} of {counted(total, 'mean')}{where} equal{'s' if imported.equal == 1 else ''} the "
        named = f"; different: {listed(differing)}" if differing else ""
        parts.append(f"{same}results of {label(imported.info.harness)}{named}")
    if parts:
        tone: Tone = "warning" if is_different else ""
        yield Verdict("Do the imported scores match?", f"{'; '.join(parts)}.", tone)


def verdicts_of(
    runs: Sequence[OneRun], main: str, comparison: RunComparison | None, sensitivity: Sensitivity | None
) -> list[Verdict]:
    """One sentence per question that the data answer."""
    return [*_results(runs, main, comparison), *_evidence(runs, main, comparison, sensitivity)]


def _results(runs: Sequence[OneRun], main: str, comparison: RunComparison | None) -> Iterator[Verdict]:
    if comparison is not None:
        yield from of_comparison(comparison, main)
    else:
        yield from of_headline(runs[0], main)
    for run in runs:
        yield from of_labels(run, main)
        for name, compared in run.comparisons.items():
            if compared.ratings is not None and (comparison is not None or name != main or compared.is_score):
                yield from of_ratings(run, compared)


def _evidence(
    runs: Sequence[OneRun], main: str, comparison: RunComparison | None, sensitivity: Sensitivity | None
) -> Iterator[Verdict]:
    if sensitivity is not None and sensitivity.runs:
        yield from of_weights(sensitivity)
    yield from of_unscored(runs, main, comparison)
    yield from of_judges(runs)
    yield from of_generation(runs)
    yield from of_crosswalk(runs)
    yield from of_import(runs)
