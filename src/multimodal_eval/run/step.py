"""What the steps of a run are, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import Results, RunInfo, State
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.engine.base import Executor, Inline
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.signatures import States

if TYPE_CHECKING:
    from multimodal_eval.data.readers.parts import Input
    from multimodal_eval.run.generation import Generation

__all__ = ["WORKING", "RunContext", "Step", "noting_death"]


class Step:
    """One step of a run. It writes its own files and nothing else; whatever it refuses, it refuses before."""

    state: State | None = None  # in run.json while the step works, for people
    feeds_results = True  # whether the results must be computed again after it
    may_refuse = False  # whether `make` itself calls `run.unfinish`, after whatever it refuses
    runs_metrics = False  # whether it runs code that may crash the process
    threads = 1  # for one item: more than one if there are fewer items than cores

    def __init__(self, run: RunContext) -> None:
        self.run = run

    def left(self) -> Sequence[Any]:
        """What is missing or damaged: numbers of parts, names, or [None] for a step that makes everything at once."""
        raise NotImplementedError

    def make(self, left: Sequence[Any]) -> None:
        """Make it. Work on many items is done by `run.engine`, which may open the step in other processes."""
        raise NotImplementedError

    def open(self) -> None:
        """Prepare for work in several threads of this process."""

    def expect(self, items: Sequence[Any]) -> None:
        """Note the items that this process will get, in their order."""

    @property
    def is_concurrent(self) -> bool:
        """Whether two threads of this process may work with the models of the step."""
        return False

    def refuse_machine(self) -> None:
        """Refuse to work on another machine than the one that started the run, if the results would differ."""


class RunContext(msgspec.Struct, dict=True):
    """What the steps of a run share. Other processes know the plan, the folder and the three fields after it."""

    plan: Plan
    folder: RunFolder
    earlier: RunFolder | None = None  # a run with the same parts
    reusable: frozenset[str] = frozenset()  # metrics whose scores are copied from `earlier`
    accept_open: bool = False  # store samples that remain open as errors
    engine: Executor = msgspec.field(default_factory=Inline)
    progress: Progress = silent
    source: Callable[[], Input | None] = lambda: None  # opens the input
    generation: Generation | None = None  # the model that answers
    refused: Collection[str] = ()  # metrics whose judges only somebody else's run names
    taken: tuple[str, ...] = ()  # how the names of files start that are taken from `earlier`, beside states
    is_continued: bool = False
    isolates: bool = False  # work in child processes, because an earlier process of this run died
    damaged: set[str] = msgspec.field(default_factory=set)  # files that are missing or differ from their checksum
    has_asked: bool = False  # in this process
    results: Results | None = None  # computed in this process
    _info: RunInfo | None = None

    @property
    def info(self) -> RunInfo:
        """The content of run.json."""
        if self._info is None:
            self._info = self.folder.read_info()
        return self._info

    def note(self, **fields: Any) -> RunInfo:
        """Change run.json. A step notes what it has made after its files are written."""
        self.keep(msgspec.structs.replace(self.info, **fields))
        self.folder.write_info(self.info)
        return self.info

    def keep(self, info: RunInfo) -> None:
        """Use a content of run.json that is stored already."""
        self._info = info

    def unfinish(self, step: Step) -> None:
        """A finished run of which something is made again counts as unfinished from now on."""
        self.results = None
        if self.info.finished is not None:
            self.note(state=step.state or self.info.state, finished=None)

    @property
    def has_results(self) -> bool:
        """Whether results.json is that of the files that are there."""
        return self.info.finished is not None and self.has("results.json")

    def has(self, name: str) -> bool:
        """Whether a file is there and not damaged."""
        return name not in self.damaged and self.folder.storage.exists(name)

    def remove_damaged(self, *prefixes: str) -> None:
        """Remove damaged files, which will be made again."""
        for name in [name for name in self.damaged if name.startswith(prefixes)]:
            self.folder.storage.remove(name)
            self.damaged.discard(name)

    @property
    def parts(self) -> range:
        """The numbers of the run's parts, after its input is read."""
        return range(len(self.info.parts))

    @cached_property
    def input(self) -> Input | None:
        """The opened input; None if its samples were in memory and are gone."""
        return self.source()

    @cached_property
    def states(self) -> States:
        """The corpus statistics of the metrics."""
        return States(self.plan, self.folder)


WORKING = "working"  # a scratch file that exists while metrics work, and stays if their process dies


@contextmanager
def noting_death(folder: RunFolder) -> Iterator[None]:
    """If this process dies meanwhile, leave a mark in the run folder. Any other end removes it."""
    if folder.is_kept:
        folder.write_pieces(WORKING, [b""], is_temporary=True)
    try:
        yield
    finally:
        if folder.is_kept:
            folder.remove_pieces(WORKING)
