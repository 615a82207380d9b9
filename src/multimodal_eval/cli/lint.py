"""`mmeval lint`."""

from __future__ import annotations

from typing import Any

import click

from multimodal_eval.cli.options import RunLocation
from multimodal_eval.core.errors import ThresholdError, did_you_mean


class Codes(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """CODE,CODE…"""

    name = "CODE,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """The codes, each of them known."""
        from multimodal_eval.lint.findings import CODES

        codes = [code.strip().upper() for code in str(value).split(",") if code.strip()]
        for code in codes:
            if code not in CODES:
                self.fail(f"no finding has the code {code!r}.{did_you_mean(code, tuple(CODES))}", param, ctx)
        return codes


@click.command()
@click.argument("run", type=RunLocation())
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--fail-on", type=Codes(), multiple=True, help="Exit 3 if one of these was found: MARKUP,TRUNCATED.")
def lint(run: Any, format_: str, fail_on: tuple[list[str], ...]) -> None:
    """Show what makes the numbers of RUN doubtful: blank, copied, cut off or repeated answers, constant metrics, …"""
    from multimodal_eval.data.runs.run import Run

    content = Run(run).lint_report()
    if format_ == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json(content).decode(), nl=False)
    else:
        from multimodal_eval.cli.show import show_lint

        show_lint(content)
    named = {code for codes in fail_on for code in codes}
    found = list(dict.fromkeys(finding.code for finding in content.findings if finding.code in named))
    if found:
        raise ThresholdError(f"found: {', '.join(found)}")
