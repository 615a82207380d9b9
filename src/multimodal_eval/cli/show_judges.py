"""What is known about the judges of a run, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.cli import terminal
from multimodal_eval.core.display import number

if TYPE_CHECKING:
    from multimodal_eval.core.judge_records import JudgeFindings, Rate
    from multimodal_eval.data.runs.run import Run


def show_judges(run: Run, only: str | None = None) -> None:
    """Print one or two lines per judge under the table of a run, then its warnings; `only` names one metric."""
    from multimodal_eval.analysis.judges import judges_of

    report = judges_of(run)
    if report is None:
        return
    out = terminal.console()
    for metric, known in report.metrics.items():
        if only in (None, metric):
            for line in judge_lines(metric, known):
                out.print(terminal.as_text(line), soft_wrap=True)
            _show_warnings(metric, known)


def show_injections(run: Run) -> None:
    """Print the warning about answers that address the judge, if there are any."""
    from multimodal_eval.cli.show import lint_lines

    findings = run.lint_report().findings if run.is_linted else []
    lines = lint_lines([finding for finding in findings if finding.code == "JUDGE_INJECTION"])
    out = terminal.console()
    for line in lines:
        out.print(terminal.warning(line), soft_wrap=True)
    if lines and run.is_kept:
        out.print(f"  samples and reasons: mmeval lint {terminal.as_text(run.folder.label)}", soft_wrap=True)


def _show_warnings(metric: str, known: JudgeFindings) -> None:
    out = terminal.console()
    for line in known.warnings:
        out.print(terminal.warning(f"{metric}: {line}"), soft_wrap=True)


def judge_lines(metric: str, known: JudgeFindings) -> Iterator[str]:
    """How many verdicts there are, then what order, length, panel and repetitions change."""
    counts = [f"{known.questions:,} verdicts of {', '.join(known.models)}"]
    if known.unreadable:
        counts.append(f"{sum(known.unreadable.values()):,} unreadable")
    if known.failed:
        counts.append(f"{sum(known.failed.values()):,} failed")
    if known.injections:
        verb = "answer addresses" if known.injections == 1 else "answers address"
        counts.append(f"{known.injections:,} {verb} the judge")
    yield f"{metric}: {'; '.join(counts)}"
    if changes := list(_changes(known)):
        yield f"  {'; '.join(changes)}"


def _changes(known: JudgeFindings) -> Iterator[str]:
    if known.flips is not None:
        if known.flips.flips.total:
            yield f"flips {_share(known.flips.flips)}"
        yield f"first shown wins {_share(known.flips.first)}"
    if known.length is not None:
        yield f"longer wins {_share(known.length.longer_wins)}"
    for agreement in known.agreement:
        yield f"alpha between {agreement.between} {number(agreement.alpha.value)}"
    if known.variance is not None:
        both = known.variance.stderr_of_samples**2 + known.variance.stderr_of_judge**2
        if both > 0:
            yield f"{100 * known.variance.stderr_of_judge**2 / both:.0f} % of the squared standard error is the judge's"


def _share(rate: Rate) -> str:
    if rate.value is None:
        return "–"
    return f"{100 * rate.value:.1f} % ({rate.count:,} of {rate.total:,})"
