"""What is known about the judges of a run, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.cli import terminal
from multimodal_eval.core.display import number

if TYPE_CHECKING:
    from multimodal_eval.core.judge_records import JudgeFindings, Rate
    from multimodal_eval.data.runs.run import Run


def show_judges(run: Run) -> None:
    """Print one or two lines per judge under the table of a run, then its warnings."""
    from multimodal_eval.analysis.judges import judges_of

    report = judges_of(run)
    if report is None:
        return
    out = terminal.console()
    for metric, found in report.metrics.items():
        for line in judge_lines(metric, found):
            out.print(terminal.as_text(line), soft_wrap=True)
        for line in found.warnings:
            out.print(terminal.warning(f"{metric}: {line}"), soft_wrap=True)


def judge_lines(metric: str, found: JudgeFindings) -> Iterator[str]:
    """How many verdicts there are, then what order, length, panel and repetitions change."""
    counts = [f"{found.questions:,} verdicts of {', '.join(found.models)}"]
    if found.unreadable:
        counts.append(f"{sum(found.unreadable.values()):,} unreadable")
    if found.failed:
        counts.append(f"{sum(found.failed.values()):,} failed")
    if found.injections:
        verb = "answer addresses" if found.injections == 1 else "answers address"
        counts.append(f"{found.injections:,} {verb} the judge")
    yield f"{metric}: {'; '.join(counts)}"
    if changes := list(_changes(found)):
        yield f"  {'; '.join(changes)}"


def _changes(found: JudgeFindings) -> Iterator[str]:
    if found.flips is not None:
        if found.flips.flips.total:
            yield f"flips {_share(found.flips.flips)}"
        yield f"first shown wins {_share(found.flips.first)}"
    if found.length is not None:
        yield f"longer wins {_share(found.length.longer_wins)}"
    for agreement in found.agreement:
        yield f"alpha between {agreement.between} {number(agreement.alpha.value)}"
    if found.variance is not None:
        both = found.variance.stderr_of_samples**2 + found.variance.stderr_of_judge**2
        if both > 0:
            yield f"{100 * found.variance.stderr_of_judge**2 / both:.0f} % of the squared standard error is the judge's"


def _share(rate: Rate) -> str:
    if rate.value is None:
        return "–"
    return f"{100 * rate.value:.1f} % ({rate.count:,} of {rate.total:,})"
