"""The error tree, and the problem record that every refused input carries.

MultimodalEvalError            exit 1
├── InputError                 one or many Problems of the input
│   └── NothingScoredError     a metric without a single score
├── UnknownNameError           an unknown metric, task, resource … (also a KeyError)
├── RetryableError             a time-out, a rate limit, a lost connection: not the fault of the sample
├── DuplicateNameError         a name that is already taken
├── ConfigError                invalid weights, tasks, options
│   └── NothingNamedError      neither a task nor metrics (exit 2)
├── MetricError                a metric that fails outside of a sample, or ends the process
├── UnavailableError           a model, resource or package that is not on this machine
│   ├── MissingPackageError    an optional package that is not installed
│   └── ModelError             a model whose files cannot be used
├── ClusterError               a Ray cluster that died during a run
├── RunFolderError             a run folder that cannot be read, continued or overwritten
│   ├── MissingFileError       a missing file of a run folder
│   ├── DamagedFileError       a file of a run folder that differs from its checksum
│   ├── OutsideError           a link in a run folder that leads out of it
│   └── OpenSamplesError       samples without a result after all retries; the run can be resumed
├── FetchError                 a resource that could not be fetched or does not match its checksum
├── MediaError                 a file of a sample that cannot or may not be opened
│   ├── ImageError             … an image
│   └── AudioError             … an audio file
└── ThresholdError             a score below a threshold (exit 3)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.metric_names import metric_advice

__all__ = [
    "AudioError",
    "ClusterError",
    "ConfigError",
    "DamagedFileError",
    "DuplicateNameError",
    "FetchError",
    "ImageError",
    "InputError",
    "MediaError",
    "MetricError",
    "MissingFileError",
    "MissingPackageError",
    "ModelError",
    "MultimodalEvalError",
    "NothingNamedError",
    "NothingScoredError",
    "OpenSamplesError",
    "OutsideError",
    "Problem",
    "RetryableError",
    "RunFolderError",
    "ThresholdError",
    "UnavailableError",
    "UnknownNameError",
]

SHOWN_KINDS = 20  # kinds of problems in a message
SHOWN_IN_FULL = 3  # problems of a kind
SHOWN_PLACES = 5  # of further problems of the kind
LONGEST_TEXT = 2_000  # characters of a text from a metric
_VALUES = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\d[\d,.]*")  # in a message: quoted texts and numbers


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem of the input: where, what is wrong, what was found, what to do."""

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
        sample = f" (id {self.id!r})" if self.id is not None else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{head}{self.code}: {self.message}{sample}{hint}"

    @property
    def kind(self) -> tuple[str | None, ...]:
        """Equal for problems that differ only in their place and their values."""
        return self.file, self.code, self.field, self.hint and _VALUES.sub("", self.hint), _VALUES.sub("", self.message)

    @property
    def place(self) -> str:
        """Where further problems of a kind are."""
        if self.line is not None:
            return f"{'line' if self.file else 'sample'} {self.line}"
        return "" if self.id is None else f"id {self.id!r}"


class MultimodalEvalError(Exception):
    """The base class of all errors that this package raises on purpose.

    A note names the arguments in Python for the options of the command line that the message names.
    """

    exit_code = 1

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if args and "--" in str(args[0]):
            from multimodal_eval.core.option_words import arguments_in

            if arguments := arguments_in(str(args[0])):
                self.add_note(f"In Python: {', '.join(arguments)}")


class InputError(MultimodalEvalError, ValueError):
    """The input was refused. `problems` lists what is wrong; `total` also counts problems that are not listed."""

    def __init__(self, problems: Iterable[Problem], total: int | None = None) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.total = len(self.problems) if total is None else total
        super().__init__(self._text())

    def __reduce__(self) -> tuple[Any, ...]:  # so that it can be pickled
        return type(self), (self.problems, self.total)

    def _text(self) -> str:
        """The problems, those of one kind together: the first ones in full, then their number and their places."""
        kinds: dict[object, list[Problem]] = {}
        for problem in self.problems:
            kinds.setdefault(problem.kind, []).append(problem)
        lines = [line for kind in list(kinds.values())[:SHOWN_KINDS] for line in _kind_lines(kind)]
        listed = sum(map(len, list(kinds.values())[:SHOWN_KINDS]))
        if self.total > listed:
            lines.append(f"… {self.total:,} problems in total, the first {listed:,} listed")
        elif self.total > 1:
            lines.append(f"{self.total:,} problems")
        return "\n".join(lines)


def _kind_lines(problems: Sequence[Problem]) -> Iterator[str]:
    yield from map(str, problems[:SHOWN_IN_FULL])
    if rest := problems[SHOWN_IN_FULL:]:
        places = [place for problem in rest[:SHOWN_PLACES] if (place := problem.place)]
        more = " …" if len(rest) > SHOWN_PLACES else ""
        yield f"  {len(rest):,} more like this{': ' + ', '.join(places) + more if places else ''}"


class NothingScoredError(InputError):
    """A metric has no score for any sample. `run` is the folder of the finished run, if it was kept."""

    def __init__(self, problems: Iterable[Problem], total: int | None = None, run: str | Path | None = None) -> None:
        self.run = run
        super().__init__(problems, total)

    def __reduce__(self) -> tuple[Any, ...]:  # so that it can be pickled
        return type(self), (self.problems, self.total, self.run)


class UnknownNameError(MultimodalEvalError, KeyError):
    """An unknown name, with the closest known one."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        advice = metric_advice(str(name), self.known) if kind.startswith("metric") else None
        known_names = f" Known: {', '.join(sorted(self.known)) or 'none'}"
        rest = did_you_mean(name, self.known) if advice is None else f" {advice}{known_names}"
        super().__init__(f"no {kind} is named {name!r}.{rest}")

    def __reduce__(self) -> tuple[Any, ...]:  # so that it can be pickled
        return type(self), (self.kind, self.name, self.known)

    def __str__(self) -> str:  # KeyError would show the repr of its argument
        return str(self.args[0])


class RetryableError(MultimodalEvalError):
    """A failure that is not the fault of the sample: a time-out, a rate limit, a lost connection.

    Raise it in a metric to have the sample retried; it never becomes an error of the sample.
    """


class DuplicateNameError(MultimodalEvalError, ValueError):
    """A name that is already registered."""


class ConfigError(MultimodalEvalError, ValueError):
    """An invalid setting."""


class NothingNamedError(ConfigError):
    """A run without a task or metrics."""

    exit_code = 2


class MetricError(MultimodalEvalError, RuntimeError):
    """A metric whose code fails when it is imported, fitted, opened or aggregated, or that ends the process."""


class UnavailableError(MultimodalEvalError, RuntimeError):
    """Something a metric needs is not on this machine; the message says how to get it."""


class MissingPackageError(UnavailableError):
    """An optional package is not installed; the message names the extra."""


class ModelError(UnavailableError):
    """A model whose files are broken or unsupported."""


class ClusterError(MultimodalEvalError):
    """A Ray cluster, or a process that it needs, died during a run. What was scored is kept."""


class RunFolderError(MultimodalEvalError):
    """A run folder that cannot be read, continued or written."""


class MissingFileError(RunFolderError):
    """A missing file of a run folder."""


class DamagedFileError(RunFolderError):
    """A file of a run folder that differs from its checksum. `name` is relative to the folder."""

    def __init__(self, folder: str, name: str, problem: str, advice: str) -> None:
        self.folder, self.name, self.problem, self.advice = folder, name, problem, advice
        super().__init__(f"{folder}/{name} {problem}. {advice}")

    def __reduce__(self) -> tuple[Any, ...]:  # so that it can be pickled
        return type(self), (self.folder, self.name, self.problem, self.advice)


class OutsideError(RunFolderError):
    """A link in a run folder that leads out of it; nothing was read, written or removed there."""


class AskingError(MultimodalEvalError):
    """A model or a judge was asked in vain. What was answered so far is kept."""


class OpenSamplesError(RunFolderError):
    """Samples without a result because every attempt failed; `resume` retries only these."""


class FetchError(MultimodalEvalError):
    """A resource that could not be fetched, or whose checksum is wrong."""


class MediaError(MultimodalEvalError, ValueError):
    """An image or audio file that cannot or may not be opened."""


class ImageError(MediaError):
    """An image that cannot or may not be opened; the message is the reason why its sample is unscored."""


class AudioError(MediaError):
    """An audio file that cannot or may not be opened."""


class ThresholdError(MultimodalEvalError):
    """A result below the user's threshold."""

    exit_code = 3


def did_you_mean(name: object, known: Sequence[str]) -> str:
    """The second half of an unknown-name message: the closest name, and all known ones."""
    from difflib import get_close_matches

    by_case = {option.casefold(): option for option in known}
    near = get_close_matches(str(name).casefold(), by_case, n=1, cutoff=0.6)
    guess = f" Did you mean {by_case[near[0]]!r}?" if near else ""
    return f"{guess} Known: {', '.join(sorted(known)) or 'none'}"


def shorten(value: Any, limit: int = 60) -> str:
    """A value for a message: its repr, cut at `limit` characters."""
    if isinstance(value, str | bytes | list | tuple) and len(value) > 4 * limit:
        value = value[: 4 * limit]
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of thousands of digits, values nested too deeply
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def valid_text(text: object, limit: int = LONGEST_TEXT) -> str:
    """A text from a metric that can be stored and shown: encodable, and cut at `limit` characters."""
    if not isinstance(text, str):
        text = shorten(text, limit)
    if len(text) > limit:
        text = f"{text[:limit]}… ({len(text):,} characters)"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def described(error: BaseException, depth: int = 3) -> str:
    """An exception in words: its type and message, whatever its own code does."""
    try:
        message = str(error)
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the exception's own code may raise anything
        message = f"(no message: its text raises {type(fault).__name__})"
    if isinstance(error, BaseExceptionGroup) and depth:
        inner = "; ".join(described(member, depth - 1) for member in error.exceptions[:SHOWN_IN_FULL])
        message = f"{message}: {inner}"
    return valid_text(f"{type(error).__name__}: {message}")
