"""`mmeval lint`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.finish import print_result
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import RunLocation, result_format_option
from multimodal_eval.core.errors import ThresholdError, did_you_mean
from multimodal_eval.display.blocks import Block, Finding, Text

if TYPE_CHECKING:
    from multimodal_eval.analysis.failures import UnscoredReason


class Codes(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """CODE,CODE…"""

    name = "CODE,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """The codes; an unknown one is an error."""
        from multimodal_eval.lint.findings import CODES

        codes = [code.strip().upper() for code in str(value).split(",") if code.strip()]
        for code in codes:
            if code not in CODES:
                self.fail(f"no warning has the code {code!r}.{did_you_mean(code, tuple(CODES))}", param, ctx)
        return codes


def _reasons(unscored: Sequence[UnscoredReason], warned: Sequence[UnscoredReason]) -> Iterator[Block]:
    """Each reason and each warning with its samples; metrics with the same samples share it."""
    from multimodal_eval.display.run_findings import warning_text

    for title, reasons in (("unscored samples", unscored), ("scored samples with a warning", warned)):
        if reasons:
            yield Text(title, tone="strong")
        for each in reasons:
            what = each.reason if reasons is unscored else warning_text(each.reason)
            yield Finding(what, about=each.metrics, count=each.count, total=each.total, examples=each.ids)


@click.command(cls=LayeredCommand)
@click.argument("run", type=RunLocation())
@result_format_option
@click.option(
    "--fail-on",
    type=Codes(),
    multiple=True,
    help="Exit 3 if there is a warning with one of these codes: MARKUP,TRUNCATED.",
)
def lint(run: Any, format_: str, fail_on: tuple[list[str], ...]) -> None:
    """Show why samples of RUN are unscored, and warn about blank, copied, truncated or repeated answers, …"""
    import msgspec

    from multimodal_eval.analysis.failures import unscored_reasons, warned_samples
    from multimodal_eval.data.runs.run import Run

    opened = Run(run)
    content, unscored, warned = opened.lint_report(), unscored_reasons(opened), warned_samples(opened)
    stored = {**msgspec.to_builtins(content), "unscored": unscored, "warned": warned}
    print_result(content, format_, lambda: stored, _reasons(unscored, warned))
    fatal = {code for codes in fail_on for code in codes}
    failed = list(dict.fromkeys(finding.code for finding in content.findings if finding.code in fatal))
    if failed:
        raise ThresholdError(f"lint warnings: {', '.join(failed)}")
