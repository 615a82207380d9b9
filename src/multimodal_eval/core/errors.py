"""The error tree, and the problem record that every refused input carries.

MultimodalEvalError            exit 1
├── InputError                 one or many Problems of the input
├── UnknownNameError           a metric, task, resource … that is not there (also a KeyError)
├── RetryableError             a time-out, a rate limit, a lost connection: it says nothing of the sample
├── DuplicateNameError         a name that is already taken
├── ConfigError                weights, tasks, options that cannot be used
│   └── NothingNamedError      neither a task nor metrics (exit 2)
├── UnavailableError           a model, resource or optional package that is not on this machine
│   └── ModelError             a model whose files cannot be used
├── RunFolderError             a run folder that cannot be read, continued or overwritten
│   ├── MissingFileError       a file of a run folder that is not there
│   └── OpenSamplesError       samples whose scoring gave up for now; the run can be resumed
├── FetchError                 a resource that could not be fetched or does not match its checksum
├── MediaError                 a file of a sample that cannot or may not be opened
│   ├── ImageError             … a picture
│   └── AudioError             … a sound
└── ThresholdError             a score below what was asked for (exit 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

SHOWN_PROBLEMS = 20


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with the input: who, what, what was got, what to do."""

    code: str
    message: str
    file: str | None = None
    line: int | None = None
    id: str | None = None
    field: str | None = None
    value: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        where = self.file or ""
        if self.line is not None:
            where += f":{self.line}" if where else f"sample {self.line}"
        head = f"{where}: " if where else ""
        who = f" (id {self.id!r})" if self.id is not None else ""
        todo = f" {self.hint}" if self.hint else ""
        return f"{head}{self.code}: {self.message}{who}{todo}"


class MultimodalEvalError(Exception):
    """Everything that this package raises on purpose."""

    exit_code = 1


class InputError(MultimodalEvalError, ValueError):
    """The input was refused; `problems` lists what is wrong, `total` counts what is not listed too."""

    def __init__(self, problems: Iterable[Problem], total: int | None = None) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.total = len(self.problems) if total is None else total
        super().__init__(self._text())

    def __reduce__(self) -> tuple[Any, ...]:  # from another process it comes whole
        return type(self), (self.problems, self.total)

    def _text(self) -> str:
        lines = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        if self.total > len(lines):
            lines.append(f"… {self.total} problems in all, the first {len(lines)} shown")
        elif self.total > 1:
            lines.append(f"{self.total} problems")
        return "\n".join(lines)


class UnknownNameError(MultimodalEvalError, KeyError):
    """A name that is not known, with the nearest one that is."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        super().__init__(f"no {kind} is named {name!r}.{did_you_mean(name, self.known)}")

    def __reduce__(self) -> tuple[Any, ...]:  # from another process it comes whole
        return type(self), (self.kind, self.name, self.known)

    def __str__(self) -> str:  # KeyError would show the repr of its argument
        return str(self.args[0])


class RetryableError(MultimodalEvalError):
    """A failure that says nothing of the sample: a time-out, a rate limit, a lost connection. Raise it in a metric, and
    the sample is asked for again; it is never an error of the sample.
    """


class DuplicateNameError(MultimodalEvalError, ValueError):
    """A name that is registered already."""


class ConfigError(MultimodalEvalError, ValueError):
    """A setting that cannot be used."""


class NothingNamedError(ConfigError):
    """A run that was told neither a task nor metrics."""

    exit_code = 2


class UnavailableError(MultimodalEvalError, RuntimeError):
    """Something a metric needs is not on this machine; the message says how to get it."""


class ModelError(UnavailableError):
    """A model that is here, but whose files are broken or of a kind that cannot be run."""


class RunFolderError(MultimodalEvalError):
    """A run folder that cannot be read, continued or written."""


class MissingFileError(RunFolderError):
    """A file of a run folder that is not there."""


class OpenSamplesError(RunFolderError):
    """Samples that have no result yet, because asking for it failed each time; `resume` asks again for just them."""


class FetchError(MultimodalEvalError):
    """A resource that could not be fetched, or whose checksum is wrong."""


class MediaError(MultimodalEvalError, ValueError):
    """A picture or a sound that cannot or may not be opened."""


class ImageError(MediaError):
    """A picture that cannot or may not be opened; the message is the reason that its sample is unscored."""


class AudioError(MediaError):
    """A sound that cannot or may not be opened."""


class ThresholdError(MultimodalEvalError):
    """A result below the threshold that the user set."""

    exit_code = 3


def did_you_mean(name: object, known: Sequence[str]) -> str:
    """The helpful half of an unknown-name message."""
    near = get_close_matches(str(name), known, n=1, cutoff=0.6)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    return f"{guess} Known: {', '.join(sorted(known)) or 'none'}"


def shorten(value: Any, limit: int = 60) -> str:
    """A value as a message shows it: its repr, cut in the middle of nowhere rather than filling the screen."""
    if isinstance(value, str | bytes) and len(value) > 4 * limit:
        value = value[: 4 * limit]
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
