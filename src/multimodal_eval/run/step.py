"""What the steps of a run are, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from multimodal_eval.analysis.failure_conventions import failure_label
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.corpus import corpus_key, default_state, load_state
from multimodal_eval.core.failures import label
from multimodal_eval.core.metric import Metric, declared_options, signature_of
from multimodal_eval.core.metric_failures import blamed_on
from multimodal_eval.core.options import signed_values
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import Results, RunInfo, State, StoredSignature
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.engine.base import Executor, Inline
from multimodal_eval.run.plan import Plan

if TYPE_CHECKING:
    from multimodal_eval.data.readers.parts import Input
    from multimodal_eval.run.generation import Generation

__all__ = ["WORKING", "RunContext", "Step", "noting_death"]


class Step(msgspec.Struct, dict=True, eq=False):
    """One step of a run. It writes its own files and nothing else; whatever it refuses, it refuses before."""

    run: RunContext
    threads: int = 1  # for one item: more than one if there are fewer items than cores

    state: ClassVar[State | None] = None  # in run.json while the step works, for people
    feeds_results: ClassVar[bool] = True  # whether the results must be computed again after it
    may_refuse: ClassVar[bool] = False  # whether `make` itself calls `run.unfinish`, after whatever it refuses
    runs_metrics: ClassVar[bool] = False  # whether it runs code that may crash the process

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
    info: RunInfo  # the content of run.json
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

    def note(self, **fields: Any) -> RunInfo:
        """Change run.json. A step notes what it has made after its files are written."""
        self.info = msgspec.structs.replace(self.info, **fields)
        self.folder.write_info(self.info)
        return self.info

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
            folder.clear_scratch(WORKING)


# The corpus statistics of a run's metrics, and their signatures, as stored in run.json.


class States(msgspec.Struct):
    """Reads the state of each metric once. Metrics with the same statistics share one."""

    plan: Plan
    folder: RunFolder
    by_metric: dict[str, Any] = msgspec.field(default_factory=dict)  # those that were read or are new

    def of(self, metric: Metric) -> Any:
        """The state of a metric for the whole run."""
        if metric.corpus is None:
            return None
        if metric.name not in self.by_metric:
            same = [other for other in self.plan.metrics if corpus_key(other) == corpus_key(metric)]
            known = next((self.by_metric[other.name] for other in same if other.name in self.by_metric), None)
            if not self.folder.has_state(metric.name):
                known = default_state(metric)
            elif known is None:
                with self.folder.state_copy(metric.name) as path, blamed_on(metric.name, "reading its statistics"):
                    known = load_state(metric, path)
            self.by_metric[metric.name] = known
        return self.by_metric[metric.name]


def stored_signature(metric: Metric, state: Any, config: RunConfig) -> StoredSignature:
    """The signature as it is read back from run.json, with the options as they were given."""
    signature = signature_of(metric, state)
    errors = label(config.error_patterns)  # which samples are scored depends on them
    signature = signature if errors is None else signature.extended(errors=errors)
    signature = signature.extended(**run_settings(config, metric))
    options = signed_values(declared_options(metric), metric.options)
    stored = StoredSignature(str(signature), signature.to_dict(), dict(options))
    return msgspec.json.decode(msgspec.json.encode(stored, enc_hook=str), type=StoredSignature)


def run_settings(config: RunConfig, metric: Metric | None, name: str = "") -> dict[str, object]:
    """What a run adds to the signature of a metric, or to that of the composite `name`.

    The strata; the name and version of a task file with a checksum of its data; what failed answers count as; what
    chooses the samples of an input.
    """
    settings: dict[str, object] = {}
    if config.strata is not None:
        settings |= {"strata": dict(config.strata.weights), "by": config.strata.by, "unit": "group"}
    if config.origin is not None:
        settings |= {"task": f"{config.origin.name}@{config.origin.version}", "data": config.origin.data[:12]}
    if config.count_failures is not None:
        settings["failures"] = failure_label(metric, name)
    if config.limit is not None:
        settings["limit"] = config.limit
    if config.ids is not None:
        names = sorted(set(map(str, config.ids)))
        settings["ids"] = f"{len(names)}@{sha256(chr(10).join(names).encode()).hexdigest()[:8]}"
    if config.only_answered:
        settings["answered"] = "only"
    return settings
