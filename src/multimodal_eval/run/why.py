"""Why two numbers differ: runs, logs of other harnesses, published answers or a recipe as the two sides.

`Asking` asks a model again what A and B asked: with A's request, with B's prompt, and with B's prompt and parameters.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from multimodal_eval.analysis.why import Why, explained
from multimodal_eval.analysis.why_chain import Asked, Chain, drawn_rows
from multimodal_eval.analysis.why_pairs import Key, Side
from multimodal_eval.benchmarks.recipes import find_recipe, recipe
from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.machine import without_collection
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.logs.log_format import RecordedScore
from multimodal_eval.data.runs.grants import Consent
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.generate.engine import Asker, OpenRequestError, effort_of, for_each, run_async
from multimodal_eval.generate.protocol import Generator, Request
from multimodal_eval.generate.registry import find_generator, is_python_file
from multimodal_eval.run.crosswalk import axis_of
from multimodal_eval.run.evaluate import evaluate
from multimodal_eval.run.generation import Model, as_generator
from multimodal_eval.run.import_log import import_log, recorded_settings
from multimodal_eval.run.reproduction.answers import Row, Source, answers_of
from multimodal_eval.run.reproduction.ledger import OVERALL, UNITS, read_ledger
from multimodal_eval.run.rescore import rescore
from multimodal_eval.run.why_rules import Rescoring
from multimodal_eval.run.why_sides import SideReader, Stated

__all__ = ["Asking", "OpenedSide", "opened_side", "why"]

_VERDICT = "published.verdict"


def why(
    a: Location | Run,
    b: Location | Run,
    *,
    metrics: Sequence[str] = (),
    names: Sequence[str] | None = None,
    ask: int = 0,
    model: Model | None = None,
    base_url: str | None = None,
    seed: int = 0,
) -> Why:
    """Split the difference of two headline numbers into parts that sum exactly to it.

    A side is a run, its folder, the log of another harness, a ledger with one entry of published answers, or the
    name of a benchmark, whose recipe then scores the answers of the other side. `metrics` names the score of both, or
    that of each. `ask` asks a model again, for this many samples with other requests, which measures what the prompt
    and the parameters contribute. `model`, at `base_url`, is by default that of the runs.
    """
    if ask < 0:
        raise ConfigError(f"`ask` is a number of samples. Got {ask}")
    if len(metrics) > 2:
        raise ConfigError(f"name one metric, or that of each side. Got {', '.join(metrics)}")
    with without_collection():
        asking = partial(Asking, count=ask, model=model, base_url=base_url, seed=seed)
        return _explained(a, b, metrics, names, asking, asks=ask > 0)


def _explained(
    a: Location | Run,
    b: Location | Run,
    metrics: Sequence[str],
    names: Sequence[str] | None,
    asking: Callable[[tuple[SideReader, SideReader], Rescoring], Asking],
    *,
    asks: bool,
) -> Why:
    first, second = _opened(a, b)
    chosen = [
        _metric(each, metrics[min(place, len(metrics) - 1)] if metrics else None)
        for place, each in enumerate((first, second))
    ]
    shown = list(names) if names is not None else _names(first, second)
    sides = [
        SideReader(each.run, metric, name, each.headline)
        for each, metric, name in zip((first, second), chosen, shown, strict=True)
    ]
    has_news = sides[0].program != sides[1].program or asks  # answers that the program of both has not scored
    if any(side.rule is None for side in sides) and has_news:
        both = {*sides[0].rule_names} & {*sides[1].rule_names}
        for side in sides:
            side.settle_rule([name for name in side.rule_names if name in both])
    for each, side in zip((first, second), sides, strict=True):
        if not metrics and each.run.headline not in (None, side.metric):
            side.notes.append(
                f"{each.run.headline} of {side.name} is not a mean over samples, so {side.metric} is explained"
            )
    readers = (sides[0], sides[1])
    rescoring = Rescoring(readers)
    return explained(readers[0].side, readers[1].side, rescoring, asking(readers, rescoring))


@dataclass(frozen=True)
class OpenedSide:
    """A run, its name, and the number that is stated beside it."""

    run: Run
    name: str
    headline: Stated | None = None  # value, 100 if in percent, decimals


def _opened(a: Location | Run, b: Location | Run) -> tuple[OpenedSide, OpenedSide]:
    """Both sides; a recipe scores the answers of the other one."""
    recipes = [isinstance(each, str | Path) and not Path(each).exists() and find_recipe(each) for each in (a, b)]
    if all(recipes):
        raise ConfigError(f"{a} and {b} are both benchmarks: one side needs answers, such as a run or a log")
    if recipes[0]:
        second = opened_side(b)
        return _by_recipe(str(a), second), second
    first = opened_side(a)
    return first, (_by_recipe(str(b), first) if recipes[1] else opened_side(b))


def opened_side(side: Location | Run) -> OpenedSide:
    """The run of a side."""
    if isinstance(side, Run):
        return OpenedSide(side, side.folder.name)
    path = Path(side) if isinstance(side, str | Path) and "://" not in str(side) else None
    if path is None or (path / "run.json").is_file():
        run = Run(side)
        return OpenedSide(run, run.folder.name)
    if not path.exists():
        raise ConfigError(f"{path} does not exist, and no benchmark has this name: see `mmeval ls benchmarks`")
    if path.suffix in (".yaml", ".yml"):
        return _published(path)
    try:
        return OpenedSide(import_log(path, progress=False).run, path.name)
    except ConfigError as error:
        raise ConfigError(f"{error}\n`--why` compares scores of samples") from None


def _by_recipe(name: str, other: OpenedSide) -> OpenedSide:
    """The answers of the other side under the metric, rule and average of a recipe."""
    chosen = recipe(name)
    task = chosen.task
    column = task.headline or (task.metrics or [""])[0]
    base = task.variants.get(column, column)
    if not base:
        raise ConfigError(f"{chosen.file} has no metric by which answers could be scored")
    axis = axis_of(resolve(base))
    ruled = {axis: task.rules[column]} if axis is not None and column in task.rules else {}
    settings: JsonObject = {
        "metrics": [column],
        "options": {column: {**task.options.get(column, {}), **ruled}},
        "headline": column,
        "skip_lint": True,
        **({"variants": {column: base}} if base != column else {}),
    }
    run = rescore(other.run, settings, progress=False)
    return OpenedSide(run, f"{other.name} by {chosen.name}")


def _published(path: Path) -> OpenedSide:
    """Published answers with the verdicts of their authors: the only entry of a ledger."""
    ledger = read_ledger(path)
    if len(ledger.entries) != 1:
        titles = ", ".join(entry.title for entry in ledger.entries[:5])
        raise ConfigError(f"{path} has {len(ledger.entries)} entries ({titles}). Keep the one that is compared")
    (entry,) = ledger.entries
    chosen = recipe(path.parent / entry.recipe if (path.parent / entry.recipe).exists() else entry.recipe)
    answers = answers_of(entry, chosen, Source(path.parent, path.parent), f"{path}: {entry.title}")
    rows = [row for row in answers.rows if row.has_verdict]
    if not rows:
        raise ConfigError(f"{path}: the answers of {entry.title} have no verdicts, so their score cannot be explained")
    samples = [_as_published(row) for row in rows]
    settings = recorded_settings([RecordedScore(_VERDICT, low=0.0, high=1.0)])
    run = evaluate(samples, progress=False, skip_lint=True, **settings)
    stated = next((each for each in entry.published if each.figure == OVERALL and each.value is not None), None)
    headline = None
    if stated is not None:
        scale = int(UNITS[stated.unit or chosen.task.unit or "fraction"])
        headline = Fraction(repr(stated.value)), scale, stated.printed_digits
    return OpenedSide(run, f"{entry.title}, as published", headline)


def _as_published(row: Row) -> Sample:
    """The sample with the verdict of the authors. Columns with lists stay out: files mix them with texts."""
    kept = {name: value for name, value in row.columns.items() if isinstance(value, str)}
    kept = {name: value for name, value in kept.items() if name not in FIELDS}
    more = {_VERDICT: row.verdict or 0.0, **({} if row.extraction is None else {"extracted_answer": row.extraction})}
    gold = [row.gold] if isinstance(row.gold, str) else row.gold
    return msgspec.structs.replace(
        row.sample(row.response), expected_answer=None, references=gold, metadata={**kept, **more}
    )


def _names(a: OpenedSide, b: OpenedSide) -> list[str]:
    return [a.name, b.name] if a.name != b.name else [f"A ({a.name})", f"B ({b.name})"]


def _metric(opened: OpenedSide, name: str | None) -> str:
    """The metric that is compared: the named one, or the headline."""
    run = opened.run
    known = [each for each in run.entries if run.entries[each].value is not None]
    if name is None:
        if not known:
            raise ConfigError(f"no sample of {opened.name} has a score")
        means = [each for each in known if run.kind_of(each) != "corpus"]
        return next((each for each in (run.headline, *means) if each in means), known[0])
    if name in run.entries:
        return name
    ends = [each for each in run.entries if each.partition(".")[2] == name]
    if len(ends) == 1:
        return ends[0]
    raise UnknownNameError(f"metric of {opened.name}", name, list(run.entries))


_POINTS = ((0, 0), (1, 0), (1, 1))  # whose prompt, and whose parameters


@dataclass(frozen=True)
class Asking:
    """Asks for samples whose requests differ, without the cache, and leaves the answers to `rescoring`."""

    readers: tuple[SideReader, SideReader]
    rescoring: Rescoring
    count: int
    model: Model | None = None
    base_url: str | None = None
    seed: int = 0

    def __call__(self, chain: Chain) -> Asked | None:
        """The samples that were asked about; None, and a note that says why, if there is nothing to ask."""
        if not self.count:
            return None
        rows, points = chain.askable, _known_points((chain.a, chain.b))
        notes = self.readers[1].notes
        if not points:
            notes.append("nothing was asked again: the prompts or the parameters are not known")
            return None
        if not len(rows):
            notes.append("nothing was asked again: no sample has another request and a rule that scores it")
            return None
        config, generator = self._generator()
        drawn = drawn_rows(*chain.ends(rows), self.count, self.seed)
        rows_of = [[chain.rows[side][row] for row in rows[drawn].tolist()] for side in (0, 1)]
        requests = [
            self.readers[prompt].requests(rows_of[prompt], (chain.a, chain.b)[decoding].decoding or {})
            for prompt, decoding in points
        ]
        texts = run_async(_answers(generator, config, requests))
        is_asked = np.zeros(len(rows), np.bool_)
        is_asked[drawn] = [all(text is not None for text in each) for each in zip(*texts, strict=True)]
        if not is_asked.any():
            raise ConfigError(f"none of {len(drawn):,} samples got an answer to all of {len(points)} requests again")
        for answers in texts:
            self.rescoring.further.append(_answered(self.readers[0].samples, rows_of[0], answers))
        failed = len(drawn) - int(is_asked.sum())
        more = f"; {failed:,} more got no answer" if failed else ""
        notes.append(
            f"{generator.label} was asked again for {int(is_asked.sum()):,} of {len(rows):,} samples with other "
            f"requests, {len(points)} times each{more}"
        )
        return Asked(rows, is_asked, _step_keys(points))

    def _generator(self) -> tuple[GenerationConfig, Generator]:
        """The model that is named, or that of the runs."""
        consents = [Consent(reader.run.folder, reader.run.info) for reader in self.readers]
        stored = next((each for each in reversed(consents) if each.info.config.generation is not None), None)
        config = None if stored is None else stored.info.config.generation
        name = self.model if isinstance(self.model, str) else None
        if name is None and self.model is not None:
            return config or GenerationConfig(model="python"), as_generator(self.model)
        if name is None:
            names = {each.info.config.generation.model for each in consents if each.info.config.generation is not None}
            if stored is None or config is None or len(names) > 1:
                raise ConfigError("name the model that is asked again: --model PROVIDER:NAME, with --base-url URL")
            if self.base_url is None or is_python_file(config.model):
                stored.refuse(asks_model=True)
        asked = config if name is None and config is not None else GenerationConfig(model=name or "")
        if self.base_url is not None:
            asked = msgspec.structs.replace(asked, base_url=self.base_url)
        return asked, find_generator(asked)


def _known_points(sides: Sequence[Side]) -> list[tuple[int, int]]:
    """The requests that can be made, each with the sides of its prompt and its parameters."""
    prompts = [side.prompting is not None or side.request is not None for side in sides]
    points = [each for each in _POINTS if prompts[each[0]] and sides[each[1]].decoding is not None]
    return points if any(prompt == 1 for prompt, _ in points) else []


def _step_keys(points: Sequence[tuple[int, int]]) -> list[Key]:
    """The parts of the steps from A's answer over these requests to B's. A stored answer may be another draw."""
    keys: list[Key] = []
    path = [(0, 0), *points, (1, 1)]
    for place, (before, after) in enumerate(pairwise(path)):
        changed = [name for name, old, new in zip(("prompt", "decoding"), before, after, strict=True) if old != new]
        is_stored = place in (0, len(points))
        keys.append((*changed, *(["answer"] if is_stored else [])))
    return keys


async def _answers(
    generator: Generator, config: GenerationConfig, requests: Sequence[Sequence[Request | None]]
) -> list[list[str | None]]:
    """The answers to all requests; equal requests of one sample are sent once. None is a failure."""
    asker = Asker(generator, effort_of(config, generator), config.accept_truncated)
    different = {
        (place, each.digest): each for listed in requests for place, each in enumerate(listed) if each is not None
    }
    texts: dict[tuple[int, str], str | None] = {}

    async def ask(key: tuple[int, str]) -> None:
        try:
            texts[key] = (await asker.ask(different[key])).outcome.text
        except OpenRequestError:
            texts[key] = None

    async def each() -> AsyncIterator[tuple[int, str]]:
        for key in different:
            yield key

    await for_each(each(), ask, asker.effort.concurrency, asker)
    return [
        [None if request is None else texts[place, request.digest] for place, request in enumerate(listed)]
        for listed in requests
    ]


def _answered(samples: Sequence[Sample], rows: Sequence[int], answers: Sequence[str | None]) -> dict[int, Sample]:
    return {
        row: msgspec.structs.replace(samples[row], generated_answer=text, error=None)
        for row, text in zip(rows, answers, strict=True)
        if text is not None
    }
