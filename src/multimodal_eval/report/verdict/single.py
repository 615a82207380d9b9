"""What the report of one run says: the headline with its interval, and how precise it is."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from multimodal_eval.core.metric import Bounds
from multimodal_eval.core.records import Entry
from multimodal_eval.report.charts.labels import label
from multimodal_eval.report.comparisons import Comparisons
from multimodal_eval.report.figures import estimate, plain
from multimodal_eval.report.one_run import OneRun
from multimodal_eval.report.verdict.sentence import Verdict, counted, listed

__all__ = ["of_headline", "of_labels", "of_ratings"]


def of_headline(run: OneRun, main: str) -> Iterator[Verdict]:
    """The score of the run, or what its judge says about the systems that it compares."""
    compared = run.comparisons.get(main)
    entry = run.entries[main]
    if compared is not None and not compared.is_score:
        yield from of_ratings(run, compared)
        return
    if entry.value is None:
        yield Verdict("What is the score?", f"{label(main)} has no value: {_nothing(entry)}.", "warning")
        return
    figure = estimate(entry.value, entry.low, entry.high)
    covered = _covered(entry, "pair" if compared is not None and compared.conclusion else "sample")
    if compared is not None and compared.conclusion:
        answer = f"{compared.what}, {label(main)}: {figure}; {compared.conclusion}; {covered}."
        yield Verdict("Which system is better?", answer[0].upper() + answer[1:])
        return
    what = f" ({compared.what})" if compared is not None else ""
    scale = _scale(run.run.info.bounds_of(main), entry.direction)
    yield Verdict("What is the score?", f"{label(main)}{what} of {label(run.name)} is {figure}, {scale}; {covered}.")
    yield _precision(run, main, entry)


def _nothing(entry: Entry) -> str:
    return f"none of {counted(entry.n_total, 'sample')} is scored" if not entry.n_scored else entry.method


def _covered(entry: Entry, noun: str) -> str:
    verb = "is" if entry.n_total == 1 else "are"
    return f"{entry.n_scored:,} of {counted(entry.n_total, noun)} {verb} scored"


def _scale(bounds: Bounds, direction: str) -> str:
    low, high = bounds
    if low is not None and high is not None:
        return f"on a scale from {low:g} to {high:g} ({direction} is better)"
    return f"{direction} is better"


def _precision(run: OneRun, main: str, entry: Entry) -> Verdict:
    """What the interval means, and what would halve it."""
    question = "How precise is it?"
    if entry.value is None or entry.low is None or entry.high is None or not isfinite(entry.high - entry.low):
        return Verdict(question, f"It has no interval: {entry.method}.", "warning")
    low, high = (plain(end, entry.low, entry.high) for end in (entry.low, entry.high))
    if entry.high <= entry.low:
        return Verdict(
            question, "All scored samples have the same value, so that the interval says nothing.", "warning"
        )
    needed = counted(4 * entry.n_scored, "sample")
    return Verdict(
        question,
        f"With 95 % confidence, the score over all samples like these is between {low} and {high}; to halve this "
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
    total = f"of {counted(len(board.systems), 'system')} by {label(compared.metric)}, with 95 % confidence"
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
        f"By {counted(corrected.labels, 'human label')}, people would give {label(run.name)} "
        f"{estimate(corrected.value, corrected.low, corrected.high)} on {label(main)}; without labels it is "
        f"{plain(entry.value, entry.low, entry.high)}.",
    )
