"""What an attack is: a function that builds one hostile case from a random generator, and checks how we took it.

    @campaign("media", cases=300)
    def attack(random: Random, folder: Path) -> str | None:
        (folder / "image.png").write_bytes(mutated(random, IMAGE))
        return mmeval(folder, "score", …).verdict    # or raise FaultError("…")

The runner calls it once per case, in a child process with a limit on time and memory, with an empty folder and a random
generator that depends only on the seed, the name and the number of the case. It returns a word that is counted (such as
"accepted" or "refused"). A fault is a `FaultError`, any other exception, a case that takes too long, or a dead process.
Everything that a case needs must be in its folder, because the folder of a fault is kept. Files that all cases share
are built once per process, in `shared()`.
"""

from __future__ import annotations

import os
import pkgutil
import traceback
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from tempfile import gettempdir

Attack = Callable[[Random, Path], str | None]
GIGABYTE = 1 << 30
EVERY = "MMEVAL_HOSTILE_EVERY" in os.environ  # all cases, not some; set by `.ci/long hostile`


class FaultError(Exception):
    """Something that no input may cause: a hang, a traceback, a wrong score, a file outside the folder."""


@dataclass(frozen=True)
class Campaign:
    """An attack, how many cases `.ci/long hostile` tries, and the limits of one case."""

    name: str
    attack: Attack
    cases: int
    seconds: float
    memory: int | None  # None: no limit

    def random(self, seed: int, case: int) -> Random:
        """The generator of a case, the same on every machine and in every process."""
        return Random(f"{self.name} {seed} {case}")


CAMPAIGNS: dict[str, Campaign] = {}


def campaign(
    name: str, *, cases: int, seconds: float = 60, memory: int | None = 2 * GIGABYTE
) -> Callable[[Attack], Attack]:
    """Register an attack. Tests try `cases` cases or some of them; one may use `memory` bytes and take `seconds`."""

    def register(attack: Attack) -> Attack:
        if name in CAMPAIGNS:
            raise ValueError(f"two campaigns are named {name!r}")
        CAMPAIGNS[name] = Campaign(name, attack, cases, seconds, memory)
        return attack

    return register


def all_campaigns() -> dict[str, Campaign]:
    """The campaigns of every module in this folder, by name."""
    package = import_module("tests.hostile")
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith(("test_", "__")):
            import_module(f"tests.hostile.{module.name}")
    return dict(sorted(CAMPAIGNS.items()))


def shared() -> Path:
    """A folder for files that the cases of a process share."""
    return Path(os.environ.get("MMEVAL_HOSTILE_SHARED") or gettempdir())


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and its exit code."""

    code: int
    stdout: str
    stderr: str

    @property
    def verdict(self) -> str:
        """The exit code in a word."""
        return {0: "accepted", 1: "refused", 2: "usage", 3: "check failed"}[self.code]


def mmeval(folder: Path, *arguments: str) -> Outcome:
    """Call the command line in this process, in this folder. Anything but a documented exit is a fault."""
    from tests.captured_call import captured_call
    from tests.registry_state import restored_registries

    with chdir(folder), restored_registries():
        try:
            call = captured_call(*arguments)
        except BaseException as error:
            raise FaultError(f"mmeval {list(arguments)}: {_traceback(error)}") from error
    status, printed, errors = call.status, call.out.decode(), call.err.decode()
    check_printed(printed + errors)
    if status not in (0, 1, 2, 3):
        raise FaultError(f"mmeval {list(arguments)}: exit {status!r}\n{errors[-2000:]}")
    if status == 1 and "error: " not in errors and not printed.strip():  # some commands list what they refuse
        raise FaultError(f"mmeval {list(arguments)}: exit 1 without a message\n{errors[-2000:]}")
    assert isinstance(status, int)
    return Outcome(status, printed, errors)


def check_printed(text: str) -> None:
    """No traceback and no control characters may reach a terminal."""
    if "Traceback (most recent call last)" in text:
        raise FaultError(f"a traceback was printed:\n{text[-2000:]}")
    for character in text:
        if (character < " " and character not in "\n\t\r") or "\x7f" <= character <= "\x9f":
            place = text.index(character)
            raise FaultError(f"a control character was printed: {text[max(0, place - 100) : place + 100]!r}")


def tried(action: Callable[[], object]) -> str:
    """Call one of our functions: "accepted", or "refused" with one of our errors. Other exceptions pass."""
    from multimodal_eval.core.errors import MultimodalEvalError

    try:
        action()
    except MultimodalEvalError as error:
        check_printed(str(error))
        return "refused"
    return "accepted"


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-4000:]
