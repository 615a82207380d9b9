"""Every code that the program prints: problems of the input, warnings of lint, classes of errors."""

from __future__ import annotations

from inspect import getdoc, isclass

from multimodal_eval.core import errors
from multimodal_eval.core.problem_codes import PROBLEM_CODES
from multimodal_eval.lint.findings import CODES

HEAD = """# Codes

<!-- Written by `python -m tools.reference`. -->

Messages of refused inputs have the form `file:line: CODE: what is wrong`, and warnings the form
`! CODE: what was found`. [Common mistakes](errors.md) shows whole messages, [input](input.md) says what is
refused, and [lint](lint.md) what is warned about.

## Problems of the input
"""


def codes_page() -> str:
    """One heading per code, so that each has an address."""
    parts = [HEAD, *(f"\n### {code}\n\n{text}\n" for code, text in sorted(PROBLEM_CODES.items()))]
    parts.append("\n## Warnings\n\nOf `mmeval lint`; they never change a score.\n")
    # A file and an answer can both be truncated.
    parts += (f"\n### {_title(code)}\n\n{text} [When it is given](lint.md)\n" for code, text in CODES.items())
    parts.append("\n## Exceptions\n\nWhat Python programs catch, and the exit code of the command line.\n")
    for name in errors.__all__:
        value = getattr(errors, name)
        if isclass(value) and issubclass(value, BaseException):
            status = getattr(value, "exit_code", None)
            exits = f" Exit code {status}." if isinstance(status, int) else ""
            text = (getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
            parts.append(f"\n### {name}\n\n{text}{exits}\n")
    return "".join(parts)


def _title(code: str) -> str:
    return f"{code} (warning)" if code in PROBLEM_CODES else code
