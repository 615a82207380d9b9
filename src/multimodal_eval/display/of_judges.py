"""What is known about the judges of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from multimodal_eval.core.display import DASH, number, printed
from multimodal_eval.core.judge_records import Agreement, JudgeFindings, JudgesReport, Rate, Variance
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Finding, Folded, Row, Table, Text
from multimodal_eval.display.of_labels import calibration_blocks, rate_figure
from multimodal_eval.display.wording import counted, estimate

if TYPE_CHECKING:
    from multimodal_eval.analysis.preferences import Preference
    from multimodal_eval.core.records import JudgingInfo
    from multimodal_eval.data.runs.run import Run

__all__ = [
    "FIRST",
    "TURNED",
    "asked_table",
    "consistency",
    "figures_of_judge",
    "judge_blocks",
    "judge_findings_blocks",
    "judge_lines",
    "judged_run_blocks",
    "judges_report_blocks",
    "preference_of_run_blocks",
]


TURNED, FIRST = "verdicts that turn around with the order", "verdicts for the answer shown first"
_LONGER = "pairs that the longer answer wins"


def judge_blocks(run: Run, only: str | None = None) -> Iterator[Block]:
    """One or two lines per judge, then its warnings; `only` names one metric."""
    from multimodal_eval.analysis.judges import judges_of

    report = judges_of(run)
    for metric, known in () if report is None else report.metrics.items():
        if only in (None, metric):
            yield from map(Text, judge_lines(metric, known))
            for line in known.warnings:
                yield Finding(line, about=[metric])


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
    yield f"{printed(metric)}: {'; '.join(counts)}"
    for line in _changes(known):
        yield f"  {line}"


def consistency(known: JudgeFindings) -> Iterator[str]:
    """How consistent the verdicts are, in the words of the table of findings."""
    rates: dict[str, Rate | None] = {
        TURNED: None if known.flips is None else known.flips.flips,
        FIRST: None if known.flips is None else known.flips.first,
        _LONGER: None if known.length is None else known.length.longer_wins,
    }
    for name, rate in rates.items():
        if rate is not None and rate.value is not None:
            yield f"{name}: {_share(rate)}"
    for each in known.agreement:
        if each.alpha.value is not None:
            alpha = estimate(each.alpha.value, each.alpha.low, each.alpha.high)
            yield f"{_alpha(each)}: {alpha} ({each.units:,} units)"


def _changes(known: JudgeFindings) -> Iterator[str]:
    yield from consistency(known)
    if known.variance is not None:
        both = known.variance.stderr_of_samples**2 + known.variance.stderr_of_judge**2
        if both > 0:
            yield f"{100 * known.variance.stderr_of_judge**2 / both:.0f}% of the squared standard error is the judge's"


def _alpha(agreement: Agreement) -> str:
    return f"Krippendorff's alpha between {agreement.between}, {agreement.level}"


def _share(rate: Rate) -> str:
    """`32.0% [18.6%, 49.2%] (8 of 25)`."""
    value, low, high = (None if each is None else f"{100 * each:.1f}%" for each in (rate.value, rate.low, rate.high))
    between = "" if low is None or high is None else f" [{low}, {high}]"
    return f"{value}{between} ({rate.count:,} of {rate.total:,})"


def judged_run_blocks(run: Run, metric: str) -> Iterator[Block]:
    """What to know about a run that a judge scored, beside its result: injections, the judge, and what it measures."""
    from multimodal_eval.display.run_findings import lint_findings

    findings = run.lint_report().findings if run.is_linted else []
    injections = list(lint_findings([finding for finding in findings if finding.code == "JUDGE_INJECTION"]))
    yield from injections
    if injections and run.is_kept:
        yield Text(f"  samples and reasons: mmeval lint {run.folder.label}")
    yield from judge_blocks(run, metric)


def judge_findings_blocks(findings: JudgeFindings) -> Iterator[Block]:
    """Who judged, how consistent the verdicts are, and what human labels say."""
    title = f"judge ({findings.form}): {', '.join(findings.models)}, {counted(findings.questions, 'question')}"
    yield Figures(list(figures_of_judge(findings)), ("finding",), value="value", title=title, counts="of")
    if findings.variance is not None:
        yield _variance(findings.variance)
    yield from map(Finding, findings.warnings)
    for reason, count in {**findings.unreadable, **findings.failed}.items():
        yield Finding(f"{count:,} × {reason}")
    if findings.injections:
        yield Finding(f"{findings.injections:,} answers address the judge")
    if findings.calibration is not None:
        yield from calibration_blocks(findings.calibration)


def figures_of_judge(findings: JudgeFindings) -> Iterator[FigureRow]:
    """What order and length change, the judges of a panel, and how far verdicts agree."""
    rates: dict[str, Rate] = {}
    if (flips := findings.flips) is not None:
        rates[TURNED] = flips.flips
        rates["verdicts that differ between the orders"] = flips.disagreements
        rates[FIRST] = flips.first
    if findings.length is not None:
        rates[_LONGER] = findings.length.longer_wins
    for name, rate in rates.items():
        yield FigureRow(rate_figure(rate, name))
    if (length := findings.length) is not None:
        yield FigureRow(replace(length.win_rate, name="win rate, as judged"))
        yield FigureRow(replace(length.controlled, name="win rate at equal lengths"))
        yield FigureRow(replace(length.effect, name="effect of the length on the log-odds"))
    for member in findings.panel:
        lost = f" ({member.unreadable:,} unreadable, {member.failed:,} failed)"
        remark = lost if member.unreadable or member.failed else ""
        yield FigureRow(replace(member.mean, name=f"mean of {member.model}"), remark=remark)
        if member.bias is not None:
            yield FigureRow(replace(member.bias, name=f"bias of {member.model}: its mean minus that of the panel"))
    for each in findings.agreement:
        yield FigureRow(replace(each.alpha, name=_alpha(each), n_scored=each.units))


def asked_table(findings: JudgeFindings, judging: JudgingInfo | None, form: str) -> Table:
    """Who was asked for what, and what became of the verdicts."""
    models = ", ".join(findings.models)
    if judging is not None and judging.models:
        models += f"; the endpoint names {'them' if len(findings.models) > 1 else 'it'} {', '.join(judging.models)}"
    tokens = "" if judging is None else f", tokens: {judging.input_tokens:,} in, {judging.output_tokens:,} out"
    lost = {"unreadable": findings.unreadable, "failed": findings.failed}
    facts = {"asked for": form, "judges" if len(findings.models) > 1 else "judge": models}
    facts["verdicts"] = f"{findings.questions:,}{tokens}"
    if judging is not None and judging.cost is not None:
        facts["cost"] = f"{judging.cost:,.4g} {judging.currency or ''}".strip()
    for name, reasons in lost.items():
        shown = "; ".join(f"{count:,} × {reason.replace('_', ' ')}" for reason, count in reasons.items())
        facts[name] = f"{sum(reasons.values()):,}: {shown}" if reasons else "none"
    if findings.injections:
        facts["answers that address the judge"] = f"{findings.injections:,}: see JUDGE_INJECTION among the warnings"
    return Table(["judge", ""], [Row([name, value]) for name, value in facts.items()], 2)


def _variance(variance: Variance) -> Table:
    """Where the variance of single verdicts comes from, and its parts of the standard error."""
    parts = {"between samples": variance.samples}
    if variance.judges is not None:
        between = "between judges" if variance.repeats is not None else "between judges, and by chance"
        parts[between] = variance.judges
    if variance.repeats is not None:
        parts["between repetitions"] = variance.repeats
    total = sum(parts.values())
    errors = [
        variance.stderr_of_samples,
        *[None] * (len(parts) - 2),
        *([variance.stderr_of_judge] if len(parts) > 1 else []),
    ]
    rows = [
        Row(
            [
                name,
                number(value),
                f"{100 * value / total:.1f}%" if total > 0 else DASH,
                "" if error is None else number(error),
            ]
        )
        for (name, value), error in zip(parts.items(), errors, strict=True)
    ]
    explained = (
        "the squares of both parts add up to the squared standard error of the mean over independent samples; more "
        "repetitions or judges reduce only the second part"
    )
    heads = ["variance of a verdict", "variance", "share", "part of the std. error"]
    return Table(heads, rows, caption=explained)


def judges_report_blocks(report: JudgesReport) -> Iterator[Block]:
    """One section per metric."""
    if not report.metrics:
        yield Text("no judge was asked")
    for metric, findings in report.metrics.items():
        yield Text(metric, tone="strong")
        yield from judge_findings_blocks(findings)


def preference_of_run_blocks(run: Run, preference: Preference) -> Iterator[Block]:
    """Which of two systems is better by the judge of a run, and what to know about that judge."""
    from multimodal_eval.display.of_rankings import preference_blocks
    from multimodal_eval.display.run_findings import claims

    yield from preference_blocks(preference)
    yield from map(Finding, claims(run, preference.metric))
    yield from judged_run_blocks(run, preference.metric)
    signature = Text(f"  {run.info.signatures[preference.metric].text}", tone="quiet", is_code=True)
    yield Folded("signature", [signature])
    if run.is_kept:
        yield Text(f"run folder: {run.folder.label}")
