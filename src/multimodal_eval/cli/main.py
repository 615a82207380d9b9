"""`mmeval`: the commands and the handling of errors."""

from __future__ import annotations

import atexit
import faulthandler
import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from multimodal_eval import __version__
from multimodal_eval.cli.examples import add_examples
from multimodal_eval.cli.messages import (
    flush,
    refuse_silent_exits,
    show_warnings_plainly,
    silence_output,
    tell,
)
from multimodal_eval.core.visible import protect_streams, protected_streams

_COMPLETION = {"_MMEVAL_COMPLETE"}  # variables of the shell's completion, which ends with `sys.exit`


# In the order of the documentation. Each is the function of that name in the module of that name.
COMMANDS = (
    "run",
    "generate",
    "score",
    "import",
    "rescore",
    "compare",
    "crosswalk",
    "sensitivity",
    "report",
    "export",
    "judge",
    "meta",
    "agree",
    "clarity",
    "dialogue",
    "leaderboard",
    "view",
    "lint",
    "validate",
    "verify",
    "demo",
    "ls",
    "card",
    "fetch",
    "schema",
)
_IN_PYTHON = {"import": "import_log"}  # names that differ


class CommandsByName(Mapping[str, click.Command]):
    """The commands, each imported when it is used: a command does not wait for the code of the others."""

    def __init__(self) -> None:
        self._imported: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in COMMANDS:
            raise KeyError(name)
        if name not in self._imported:
            function = _IN_PYTHON.get(name, name)
            command: click.Command = getattr(import_module(f"multimodal_eval.cli.{function}"), function)
            add_examples(command, name)
            self._imported[name] = command
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(click.Group):
    """The group of commands; control characters in what they print have no effect."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = CommandsByName()  # type: ignore[assignment]  # nobody adds commands
        add_examples(self, below=False)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command with protected streams."""
        with protected_streams():
            return super().invoke(ctx)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="mmeval")
def cli() -> None:
    """Exact, offline scores with intervals for the output of multimodal models.

    \b
    Exit codes: 0 success, 1 error, 2 wrong usage,
    3 a check failed: a threshold, `compare --fail-if-worse` or `lint --fail-on`.
    """


def main() -> None:
    """Run a command. Every failure prints a message, and only a command that succeeds exits with 0."""
    protect_streams()  # also for the messages below, warnings and tracebacks
    os.environ.setdefault("PYTHON_COLORS", "0")  # Python would colour a traceback with escape sequences
    show_warnings_plainly()
    gc.set_threshold(50_000)  # samples and scores contain no cycles; by default, 5 % of a run would look for some
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    with suppress(OSError, ValueError, AttributeError):  # standard error may be closed, or not a file
        faulthandler.enable()  # after a crash of compiled code, at least a message
    restore = refuse_silent_exits()
    try:
        code = cli.main(standalone_mode=False) or 0  # the code of an `Exit`; commands return None
        flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = 130
    except BrokenPipeError:  # `mmeval … | head`
        silence_output()
        code = 0
    except BaseException as error:
        if isinstance(error, SystemExit) and _COMPLETION & os.environ.keys():
            raise
        code = 0 if isinstance(error, SystemExit) and _reader_has_left() else tell(error)
        if isinstance(error, OSError):
            silence_output()
    finally:
        restore()
    sys.exit(code)


def run_process() -> None:
    """Run a command in a process of its own. With torch, it ends at once: to free all objects takes half a second."""
    codes: list[int] = []

    def leave() -> None:
        if codes and "torch" in sys.modules:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError, AttributeError):  # closed, or there is none
                    stream.flush()
            os._exit(codes[0])

    atexit.register(leave)  # the last to be called, because it is the first to be registered
    try:
        main()
    except SystemExit as end:
        codes += [end.code] if isinstance(end.code, int) else []
        raise


def _reader_has_left() -> bool:
    """Whether click has found that nobody reads the output any more: it then replaces the stream and exits."""
    kind = type(sys.stdout)
    return kind.__module__.startswith("click.") and kind.__name__.endswith("PacifyFlushWrapper")


if __name__ == "__main__":
    run_process()
