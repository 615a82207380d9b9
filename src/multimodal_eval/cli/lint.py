"""`mmeval lint`."""

from __future__ import annotations

from typing import Any

import click

from multimodal_eval.cli.options import RunLocation, format_option
from multimodal_eval.core.errors import ThresholdError, did_you_mean


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


@click.command()
@click.argument("run", type=RunLocation())
@format_option
@click.option(
    "--fail-on",
    type=Codes(),
    multiple=True,
    help="Exit 3 if there is a warning with one of these codes: MARKUP,TRUNCATED.",
)
def lint(run: Any, format_: str, fail_on: tuple[list[str], ...]) -> None:
    """Warn about problems in RUN: blank, copied, truncated or repeated answers, constant metrics, …"""
    from multimodal_eval.data.runs.run import Run

    content = Run(run).lint_report()
    if format_ == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json(content).decode(), nl=False)
    else:
        from multimodal_eval.cli.show import show_lint

        show_lint(content)
    fatal = {code for codes in fail_on for code in codes}
    failed = list(dict.fromkeys(finding.code for finding in content.findings if finding.code in fatal))
    if failed:
        raise ThresholdError(f"lint warnings: {', '.join(failed)}")
