"""The first contact of a recipe with its data: what was expected and what is there, as a text for a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from multimodal_eval.benchmarks.data_files import contact, place_of
from multimodal_eval.benchmarks.recipes import Recipe, recipe
from multimodal_eval.benchmarks.task_format import TaskData
from multimodal_eval.core.errors import ConfigError, InputError, MediaError
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.files import describe_file, file_set
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.generate.engine import run_async
from multimodal_eval.generate.prompts import Prompts, with_files
from multimodal_eval.generate.protocol import Text
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.run.config import load_config
from multimodal_eval.run.task_files import OpenedTask, opened_recipe

__all__ = ["FirstContact", "first_contact"]

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
