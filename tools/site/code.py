"""Run the Python code of a page: plain blocks, and sessions as `pycon` writes them."""

from __future__ import annotations

import ast
import doctest
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from traceback import format_exception_only
from typing import Any

from tools.site.shell import stripped

Namespace = dict[str, Any]
STATED = re.compile(r"  # (?P<value>-?\d+(?:\.(?P<digits>\d+))?)(?=$|[,;: ])")
SESSION = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class StatedValueError(Exception):
    """A comment states another value than the code before it has."""


def run_python(code: str, space: Namespace, name: str) -> str:
    """Run a block; what it printed, then the representation of a last expression.

    An expression that is followed by `  # NUMBER` must have that value, to the digits that are written; other literals
    in a comment must be equal to the value.
    """
    tree = ast.parse(code, name)
    lines = code.splitlines()
    printed = io.StringIO()
    with redirect_stdout(printed):
        for node in tree.body:
            if isinstance(node, ast.Expr):
                value = eval(compile(ast.Expression(node.value), name, "eval"), space)
                last = lines[(node.end_lineno or node.lineno) - 1]
                if "  # " in last:
                    _check_stated(value, last, name)
                if node is tree.body[-1] and value is not None:
                    print(repr(value))
            else:
                exec(compile(ast.Module([node], []), name, "exec"), space)
    return stripped(printed.getvalue())


def _check_stated(value: object, line: str, name: str) -> None:
    stated = STATED.search(line)
    if stated is not None and isinstance(value, (int, float)) and not isinstance(value, bool):
        tolerance = 0.5 * 10.0 ** -len(stated["digits"] or "") * (1 + 1e-9)
        agrees = abs(float(value) - float(stated["value"])) <= tolerance
    else:
        try:
            agrees = bool(ast.literal_eval(line.rpartition("  # ")[2]) == value)
        except (SyntaxError, ValueError):  # words
            return
    if not agrees:
        raise StatedValueError(f"{name}: `{line.strip()}` has the value {value!r}")


def run_session(text: str, space: Namespace, name: str) -> str:
    """Run a session; the text with the outputs of now. `...` in an output matches anything."""
    lines: list[str] = []
    checker = doctest.OutputChecker()
    parser = doctest.DocTestParser()
    for part in parser.parse(text, name):
        if isinstance(part, str):
            lines.append(part)
            continue
        printed = _printed(part, space, name)
        same = checker.check_output(part.want, printed, SESSION)
        lines += [*_prompts(part.source), part.want if same else printed]
    return "".join(lines)


def _prompts(source: str) -> Iterator[str]:
    first, *others = source.splitlines()
    yield f">>> {first}\n"
    for line in others:
        yield f"... {line}\n" if line else "...\n"


def _printed(example: doctest.Example, space: Namespace, name: str) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        try:
            exec(compile(example.source, name, "single"), space)
        except Exception as error:
            if example.exc_msg is None:
                raise
            return f"Traceback (most recent call last):\n    ...\n{''.join(format_exception_only(error))}"
    return printed.getvalue()
