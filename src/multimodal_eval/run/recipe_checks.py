"""Check a recipe: its keys, its prompts, that its rule gives the verdicts of its goldens, and the data that it meets.

`goldens.jsonl` has an answer per line: `id` (of a question of the sample), `answer`, `value` (null: unscored), and
optionally `rules`, the values under other rules of the metric. `first_contact` says what was expected of the data and
what is there, as a text for a report.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.benchmarks.data_files import contact, place_of
from multimodal_eval.benchmarks.recipes import GOLDENS, Recipe, recipe
from multimodal_eval.benchmarks.sample import sample_files, write_sample
from multimodal_eval.benchmarks.task_format import TaskData
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.corpus import fitted
from multimodal_eval.core.errors import ConfigError, InputError, MediaError, MultimodalEvalError, did_you_mean
from multimodal_eval.core.metric import Metric, configured
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.data.readers.files import describe_file, file_set
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.evaluation.averages import average_of
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.generate.engine import run_async
from multimodal_eval.generate.prompts import Prompts, with_files
from multimodal_eval.generate.protocol import Text
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.run.config import load_config
from multimodal_eval.run.task_files import OpenedTask, opened_recipe

__all__ = ["Checked", "FirstContact", "Golden", "check_recipe", "first_contact", "goldens_of", "sample_of"]

_SAME = 1e-9


class Golden(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True):
    """An answer, and what the origin's program gives it."""

    id: str
    answer: str
    value: float | None
    rules: dict[str, float | None] = {}


@dataclass(frozen=True)
class Checked:
    """What a recipe has, and what is wrong with it."""

    recipe: Recipe
    questions: int
    goldens: int
    verdicts: int
    faults: tuple[str, ...]


def goldens_of(benchmark: Recipe) -> list[Golden]:
    """The goldens of a recipe; empty if it has none."""
    path = benchmark.folder / GOLDENS
    if not path.is_file():
        return []
    goldens = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            goldens += [msgspec.json.decode(line, type=Golden)] if line.strip() else []
        except msgspec.DecodeError as fault:
            raise ConfigError(f"{path}:{number}: a golden answer needs id, answer and value: {fault}") from None
    return goldens


def sample_of(benchmark: Recipe) -> tuple[OpenedTask, list[Sample]]:
    """The task of a recipe and the questions of its sample, read as its data are."""
    assert isinstance(benchmark.task.data, TaskData)
    with tempfile.TemporaryDirectory() as folder:
        write_sample(benchmark, Path(folder))
        opened = opened_recipe(benchmark.file, Path(folder) / str(benchmark.task.data.pattern))
        problems = Problems()
        source = FileInput(opened.data, columns=parse_map(opened.settings["map"]), log=opened.settings["format"])
        samples = list(source.samples(problems, Summary()))
        problems.raise_if_any()
    return opened, samples


def check_recipe(name: str | Path) -> Checked:
    """Check a recipe. What cannot be read at all raises ConfigError; everything else is a fault."""
    benchmark = recipe(name)
    for fault in _column_faults(benchmark):
        raise ConfigError(fault)
    opened, samples = sample_of(benchmark)
    config = load_config(opened.settings)
    for key, changes in (("rules` or `options", {}), *(("crosswalk", {"rule": rule}) for rule in opened.rules)):
        try:
            _leading(config, changes)
        except MultimodalEvalError as error:
            raise ConfigError(f"{benchmark.file}: `{key}`: {error}") from None
    for fault in _averaged_faults(benchmark, config, samples):
        raise ConfigError(fault)
    faults = [*_figure_faults(benchmark, _leading(config, {})), *_prompt_faults(opened, samples)]
    goldens = goldens_of(benchmark)
    faults += [] if goldens else [f"{benchmark.folder / GOLDENS}: there are no goldens"]
    known = {sample.id: sample for sample in samples}
    for golden in goldens:
        if golden.id not in known:
            near = did_you_mean(golden.id, list(known))
            file = benchmark.folder / GOLDENS
            raise ConfigError(f"{file}: no question of the sample has the id {golden.id!r}.{near}")
    verdicts = 0
    for rule in dict.fromkeys(["", *(rule for golden in goldens for rule in golden.rules)]):
        chosen = [golden for golden in goldens if not rule or rule in golden.rules]
        for golden, score in zip(chosen, _scores(config, chosen, known, rule), strict=True):
            verdicts += 1
            expected = golden.rules[rule] if rule else golden.value
            if (score.value is None) != (expected is None) or abs((score.value or 0) - (expected or 0)) > _SAME:
                under = f" under {rule}" if rule else ""
                faults.append(
                    f"{benchmark.folder / GOLDENS}: {golden.id}, {golden.answer!r}: {score.value} instead of "
                    f"{expected}{under}"
                )
    benchmark.published  # noqa: B018 - raises if the file is damaged
    return Checked(benchmark, len(samples), len(goldens), verdicts, tuple(faults))


def _scores(config: RunConfig, goldens: Sequence[Golden], known: Mapping[str, Sample], rule: str) -> Sequence[Score]:
    """The scores of answers under the metric that leads. A rule may draw, so all of them are scored together."""
    answered = [
        msgspec.structs.replace(known[golden.id], id=f"{golden.id}#{number}", generated_answer=golden.answer)
        for number, golden in enumerate(goldens)
    ]
    metric = _leading(config, {"rule": rule} if rule else {}, without=("average",))  # of values that are not averaged
    return metric.open(fitted(metric, answered)).score(answered)


def _leading(config: RunConfig, changes: Mapping[str, Any], without: Sequence[str] = ()) -> Metric:
    name = config.headline or (config.metrics or [""])[0]
    base = config.variants.get(name, name)
    options = {key: value for key, value in config.options.get(name, {}).items() if key not in without}
    return configured(resolve(base), {**options, **changes})


def _column_faults(benchmark: Recipe) -> Iterator[str]:
    """Columns that the recipe uses and the data do not have."""
    data = benchmark.task.data
    if not isinstance(data, TaskData) or not isinstance(data.columns, list):
        return
    present = {*data.columns, *data.add, *([data.folder] if data.folder else []), "split"}
    fields = benchmark.task.columns
    used = {column: f"columns.{field}" for field, columns in fields.items() for column in _listed(columns)}
    used |= dict.fromkeys(data.keep, "data.keep") | dict.fromkeys(data.values, "data.values")
    used |= dict.fromkeys(data.lists, "data.lists") | dict.fromkeys(data.last, "data.last")
    used |= {origin: "data.groups" for origins in data.groups.values() for origin in origins}
    for column, key in used.items():
        if column not in present:
            near = did_you_mean(column, sorted(present))
            yield f"{benchmark.file}: `{key}` names the column {column!r}, which is not in `data.columns`.{near}"
    for rows in sample_files(benchmark).values():
        for column in dict.fromkeys(name for row in rows for name in row):
            if column not in present:
                yield f"{benchmark.folder / 'sample.jsonl'}: the column {column!r} is not in `data.columns`"


def _averaged_faults(benchmark: Recipe, config: RunConfig, samples: Sequence[Sample]) -> Iterator[str]:
    """Columns by which samples are grouped or averaged and that no question of the sample has."""
    used = dict.fromkeys(benchmark.task.by, "by")
    for metric, options in config.options.items():
        if isinstance(text := options.get("average"), str):
            columns = (column for grouping in average_of(text, metric).groupings for column in grouping)
            used |= dict.fromkeys(columns, f"options.{metric}.average")
    present = {"group", "task", "index", *(name for sample in samples for name in sample.metadata)}
    for column, key in used.items():
        if column not in present:
            near = did_you_mean(column, sorted(present))
            yield f"{benchmark.file}: `{key}` names the column {column!r}, which no question of the sample has.{near}"


def _listed(columns: str | list[str]) -> list[str]:
    return columns.split(",") if isinstance(columns, str) else columns


def _figure_faults(benchmark: Recipe, metric: Metric) -> Iterator[str]:
    """A published figure that the leading metric does not have."""
    figure = benchmark.task.figure
    aggregates = metric.aggregate if isinstance(metric.aggregate, Mapping) else {}
    parts = [f"{metric.name}.{part}" for part in aggregates if part]
    if figure is not None and figure not in parts:
        near = did_you_mean(figure, parts)
        yield f"{benchmark.file}: `figure` names {figure!r}, which the metric does not have.{near}"


def _prompt_faults(opened: OpenedTask, samples: Sequence[Sample]) -> Iterator[str]:
    """Prompts that cannot be rendered for the questions of the sample."""
    for name in [None, *opened.prompts] if opened.prompts else []:  # some recipes score files and ask nothing
        asking = opened.asking({"model": "echo", **({} if name is None else {"prompt": name})})
        config = load_config({"generation": asking}).generation
        assert config is not None
        try:
            Prompts(with_files(config), opened.settings.get("task")).check(samples)
        except (ConfigError, InputError) as fault:
            yield f"the prompt {name or 'of the recipe'}: {fault}"


_SHOWN = 10  # prompts


@dataclass(frozen=True)
class FirstContact:
    """What is to be reported, and what is wrong."""

    text: str
    faults: tuple[str, ...]


def first_contact(name: str | Path, copy: Path | None = None) -> FirstContact:
    """Compare the data of a recipe, fetched or in a copy, with what it says, and render ten prompts."""
    benchmark = recipe(name)
    data = benchmark.task.data
    assert isinstance(data, TaskData)
    place = place_of(benchmark.name, data, copy)
    seen = contact(data, place.path)
    faults = [*([seen.rows_fault] if seen.rows_fault else []), *seen.columns_faults]
    lines = [
        f"# First contact: {benchmark.name}, version {benchmark.task.version}",
        "",
        f"- commit: {place.commit or 'a copy, unknown'} (the recipe says {_revision(data)})",
        f"- rows: {seen.rows:,} (the recipe says {data.rows or 'nothing'})",
        f"- columns: {', '.join(seen.columns)} (the recipe says {_columns(data)})",
    ]
    lines += [f"- {line}" for line in _checksums(place.path)]
    try:
        opened, samples = _opened(benchmark, place.path)
        types = Counter(str(sample.metadata.get("question_type", "all")) for sample in samples)
        lines.append(
            f"- questions that are read: {len(samples):,} ({', '.join(f'{k} {n:,}' for k, n in types.items())})"
        )
        prompts, unread = run_async(_prompts(opened, samples))
        faults += unread
    except (ConfigError, InputError) as fault:
        faults.append(str(fault))
        prompts = []
    lines += ["", "## Differences", "", *([f"- {fault}" for fault in faults] or ["none"])]
    for title, prompt in prompts:
        lines += ["", f"## {title}", "", "```text", prompt, "```"]
    return FirstContact("\n".join(lines), tuple(faults))


def _revision(data: TaskData) -> str:
    return "nothing" if data.hub is None else data.hub.revision


def _columns(data: TaskData) -> str:
    return ", ".join(data.columns) if isinstance(data.columns, list) else data.columns or "nothing"


def _checksums(path: Path) -> Iterator[str]:
    for file in file_set(path).files:
        described = describe_file(file.path)
        yield f"{'/'.join(file.path.parts[-2:])}: {described.bytes:,} bytes, sha256 {described.sha256}"


def _opened(benchmark: Recipe, place: Path) -> tuple[OpenedTask, list[Sample]]:
    opened = opened_recipe(benchmark.file, place)
    problems = Problems()
    source = FileInput(opened.data, columns=parse_map(opened.settings["map"]), log=opened.settings["format"])
    samples = list(source.samples(problems, Summary()))
    problems.raise_if_any()
    return opened, samples


async def _prompts(opened: OpenedTask, samples: Sequence[Sample]) -> tuple[list[tuple[str, str]], list[str]]:
    """Ten requests as text, spread over the data, and the faults of those that cannot be made."""
    config = load_config({"generation": opened.asking({"model": "echo"})}).generation
    assert config is not None
    policy = MediaPolicy(root=file_set(opened.data).folder.absolute())
    prompts = Prompts(with_files(config), opened.settings.get("task"), policy=policy)
    step = max(1, len(samples) // _SHOWN)
    shown: list[tuple[str, str]] = []
    faults: list[str] = []
    for sample in islice(samples[::step], _SHOWN):
        try:
            request = await prompts.request(sample)
        except (MediaError, InputError) as fault:
            faults.append(f"{sample.id}: {fault}")
            continue
        parts = [part for turn in request.turns for part in turn.parts]
        text = "\n".join(part.text if isinstance(part, Text) else f"<{part.kind}>" for part in parts)
        shown.append((sample.id, text))
    return shown, faults
