"""`mmeval`: the commands and the handling of errors."""

from __future__ import annotations

import atexit
import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any

import click

from multimodal_eval import __version__
from multimodal_eval.cli.examples import SHORT, add_examples
from multimodal_eval.cli.layers import LayeredGroup, older_command
from multimodal_eval.cli.messages import (
    flush,
    refuse_silent_exits,
    show_warnings_plainly,
    silence_output,
    tell,
)
from multimodal_eval.core.visible import protect_streams, protected_streams

_COMPLETION = {"_MMEVAL_COMPLETE"}  # variables of the shell's completion, which ends with `sys.exit`


# By section of the help. Each is the function of that name in the module of that name.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Everyday commands": ("score", "run", "compare", "table", "report", "view", "import", "export"),
    "Contests": ("leaderboard", "clarity", "dialogue"),
    "More commands": (
        *("demo", "ls", "card", "fetch", "validate", "lint", "rescore", "crosswalk", "power", "judge", "meta"),
        *("agree", "verify", "reproduce"),
    ),
}
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)
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


class Commands(LayeredGroup):
    """The group of commands; control characters in what they print have no effect."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = CommandsByName()  # type: ignore[assignment]  # nobody adds commands
        add_examples(self, below=False)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named, also by an older name."""
        return super().resolve_command(ctx, older_command(args))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, one line each."""
        for section, names in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, SHORT[name]) for name in names])

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
    3 a check failed: a threshold, `compare --fail-if-worse`, `lint --fail-on` or `reproduce`.
    """


def main() -> None:
    """Run a command. Every failure prints a message, and only a command that succeeds exits with 0."""
    protect_streams()  # also for the messages below, warnings and tracebacks
    os.environ.setdefault("PYTHON_COLORS", "0")  # Python would colour a traceback with escape sequences
    show_warnings_plainly()
    gc.set_threshold(200_000)  # samples and scores contain no cycles; by default, 5% of a run would look for some
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
    """Run a command in a process of its own, which SIGTERM interrupts as Ctrl-C does.

    With torch, the process ends at once: to free all objects takes half a second.
    """
    codes: list[int] = []
    process = os.getpid()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:  # a forked worker ends at once
            os._exit(128 + number)
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background of a script
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)

    def leave() -> None:
        if codes and "torch" in sys.modules:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError, AttributeError):  # closed, or there is none
                    stream.flush()
            os._exit(codes[0])

    signal.signal(signal.SIGTERM, interrupt)
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
