"""`--format` of every command that prints a result: an example of its help, in each format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import click
import pytest

from multimodal_eval.cli.examples import EXAMPLES
from multimodal_eval.cli.main import cli
from tools.site.generated.command_examples import NEEDS
from tools.site.setups import prepare
from tools.site.shell import run
from tools.site.workspace import workspace

IS = {
    "json": lambda text: json.loads(text) is not None,
    "latex": lambda text: "\\" in text,
    "markdown": lambda text: not text.startswith("<") and "\\begin" not in text,
    "html": lambda text: text.lstrip().startswith("<"),
}
PRINTS_NO_RESULT = re.compile(r"--(dry-run|show-request|files|format)\b|[|>]")
OUTPUT = re.compile(r"(?<= -o )\S+")


def with_format(command: click.Command, path: str = "") -> Iterator[str]:
    """The commands that have the option."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from with_format(inner, f"{path} {name}".strip())
    elif any("--format" in parameter.opts for parameter in command.params):
        yield path


def example_of(path: str) -> str | None:
    """The first example that prints a result without models that are fetched."""
    known = (example for example in EXAMPLES[path] if example not in NEEDS[path].not_run)
    return next((example for example in known if not PRINTS_NO_RESULT.search(example)), None)


PATHS = [path for path in with_format(cli) if example_of(path)]


def test_nearly_all_commands_have_such_an_example():
    assert set(with_format(cli)) - set(PATHS) <= {"demo"}
    assert len(PATHS) > 30


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_every_format_is_printed(path):
    example, faults = example_of(path), []
    with workspace() as work:
        prepare(NEEDS[path].setups, work)
        for name, text in NEEDS[path].files.items():
            (work.folder / name).write_text(text, encoding="utf-8")
        status = run(work.meant(example), work.folder).status
        for format_, is_written_in in IS.items():
            command = OUTPUT.sub(lambda match, end=format_: f"{match[0]}-{end}", example)
            done = run(work.meant(f"{command} --format {format_}"), work.folder)
            if done.status != status or not is_written_in(done.stdout):
                faults.append(f"{format_}: {done.status}, {done.stdout[:200]!r} {done.stderr[-200:]!r}")
    assert faults == []
