"""The card of a recipe, in Markdown: what it is, what a model is asked, how answers are scored, what is published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from multimodal_eval.benchmarks.recipes import Recipe, recipe
from multimodal_eval.benchmarks.task_format import Exactness, TaskData
from multimodal_eval.core.errors import MediaError
from multimodal_eval.core.metric import declared_options
from multimodal_eval.core.rules import Rule, rules_of
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.generate.engine import run_async
from multimodal_eval.generate.prompts import Prompts, with_files
from multimodal_eval.generate.protocol import Text
from multimodal_eval.generate.turns import media_of
from multimodal_eval.run.config import load_config
from multimodal_eval.run.recipe_checks import sample_of
from multimodal_eval.run.task_files import OpenedTask

__all__ = ["certainty", "metrics_of", "recipe_card", "rows_of", "rules_of_recipe"]

_CERTAINTY = {
    "verified": "equal to the benchmark's own program or published figures",
    "read": "read from the source",
    "known": "from general knowledge, not checked",
}


def certainty(exactness: Exactness | None) -> str:
    """How sure the authors of a recipe are, in one line."""
    if exactness is None:
        return "the recipe does not say how exact it is"
    if exactness.verdicts == "verified":
        return "verdicts equal those of the benchmark's authors"
    return f"{_CERTAINTY[exactness.verdicts]}, not yet run on the real data"


def rows_of(benchmark: Recipe) -> str:
    """The number of rows, if it is known."""
    rows = benchmark.task.data.rows if isinstance(benchmark.task.data, TaskData) else None
    return f"{rows:,}" if isinstance(rows, int) else "unverified"


def metrics_of(benchmark: Recipe) -> list[str]:
    """The names of the metrics."""
    return list(benchmark.task.metrics or ([benchmark.task.task] if benchmark.task.task else []))


def rules_of_recipe(benchmark: Recipe) -> dict[str, str]:
    """metric -> rule."""
    named = {name: options["rule"] for name, options in benchmark.task.options.items() if "rule" in options}
    return {**benchmark.task.rules, **named}


def recipe_card(name: str) -> str:
    """The card, from the files of the recipe."""
    benchmark = recipe(name)
    opened, samples = sample_of(benchmark)
    sections = [_head(benchmark), _data(benchmark), _prompts(benchmark, opened, samples)]
    sections += [_scores(benchmark), _published(benchmark)]
    if benchmark.task.traps:
        sections.append("## Why figures of others differ\n\n" + "\n".join(f"- {trap}" for trap in benchmark.task.traps))
    sections.append(_commands(benchmark))
    return "\n\n".join(sections) + "\n"


def _head(benchmark: Recipe) -> str:
    task = benchmark.task
    lines = [
        f"# {task.title or benchmark.name}",
        "",
        f"`{benchmark.name}`, version {task.version}. {task.description or ''}",
        "",
    ]
    mark = "**" if not benchmark.is_verified else ""
    lines.append(f"{mark}{certainty(task.exactness).capitalize()}.{mark}")
    if task.exactness is not None and task.exactness.about:
        lines += ["", task.exactness.about]
    return "\n".join(lines)


def _data(benchmark: Recipe) -> str:
    task, data = benchmark.task, benchmark.task.data
    assert isinstance(data, TaskData)
    rows: list[tuple[str, Any]] = [("home", task.home), ("licence", task.licence), ("citation", task.citation)]
    if data.hub is not None:
        rows += [
            ("data", f"`{data.hub.repository}`, files `{data.hub.files}`" + (", gated" if data.hub.gated else "")),
            ("revision", data.hub.revision),
        ]
    else:
        rows += [("data", f"{data.source}, files `{data.files}`")]
    columns = ", ".join(f"`{name}`" for name in data.columns) if isinstance(data.columns, list) else data.columns
    rows += [("split", data.split), ("rows", rows_of(benchmark)), ("columns", columns)]
    exact = task.exactness
    if exact is not None:
        parts = [("verdicts", exact.verdicts), ("average", exact.aggregation), ("prompt", exact.prompt)]
        parts.append(("data", exact.data))
        rows.append(("checked", "; ".join(f"{part}: {_CERTAINTY[mark]}" for part, mark in parts)))
    body = "\n".join(f"| {key} | {_cell(value)} |" for key, value in rows if value)
    return f"## Data\n\n| | |\n|---|---|\n{body}"


def _prompts(benchmark: Recipe, opened: OpenedTask, samples: Sequence[Sample]) -> str:
    """Each prompt as it is sent, for a question of each kind of the sample."""
    kinds = {bool(sample.choices): sample for sample in reversed(samples)}
    lines = ["## What a model is asked"]
    if not benchmark.task.prompts:
        lines.append("Nothing: answers, or scores, are read from a file.")
    for name in benchmark.task.prompts:
        asking = opened.asking({"model": "echo", "prompt": name})
        config = load_config({"generation": asking}).generation
        assert config is not None
        prompt = benchmark.task.prompts[name]
        usual = " The usual one." if name == benchmark.task.prompt else f" `--prompt {name}`."
        licence = f" ({prompt.licence})" if prompt.licence else ""
        lines.append(f"**{name}**: {prompt.origin}{licence}.{usual}")
        prompts = Prompts(with_files(config), opened.settings.get("task"))
        for sample in kinds.values():
            lines.append("```text\n" + run_async(_sent(prompts, sample)) + "\n```")
        given = ", ".join(f"{key}: {value}" for key, value in asking.get("parameters", {}).items())
        if given:
            lines.append(f"Parameters: {given}.")
    return "\n\n".join(lines)


async def _sent(prompts: Prompts, sample: Sample) -> str:
    try:
        request = await prompts.request(sample)
    except MediaError:  # a recipe has no audio and no video of its own: the file that the question names is not there
        plain = msgspec.structs.replace(prompts.config, media_as="none")
        request = await Prompts(plain, prompts.task).request(sample)
        media = [f"<{kind}>" for kind, items in media_of(sample).items() for _ in items]
        texts = [part.text for turn in request.turns for part in turn.parts if isinstance(part, Text)]
        return "\n".join([*media, *texts])
    parts = [part for turn in request.turns for part in turn.parts]
    return "\n".join(part.text if isinstance(part, Text) else f"<{part.kind}>" for part in parts)


def _scores(benchmark: Recipe) -> str:
    task = benchmark.task
    lines = ["## How answers are scored", ""]
    chosen = rules_of_recipe(benchmark)
    for metric in metrics_of(benchmark):
        options = {key: value for key, value in task.options.get(metric, {}).items() if key != "rule"}
        more = "".join(f", {key} `{value}`" for key, value in options.items())
        rule = f", rule `{chosen[metric]}`" if metric in chosen else ""
        base = task.variants.get(metric)
        lines.append(f"- `{metric}`{f' (a `{base}`)' if base else ''}{rule}{more}")
    if task.by:
        lines.append(f"- also by {', '.join(f'`{column}`' for column in task.by)}")
    if task.figure:
        lines.append(f"- the published figure: {task.figure}")
    if task.unit:
        lines.append(f"- published in: {task.unit}")
    for metric, name in chosen.items():
        if (used := _rule(task.variants.get(metric, metric), name)) is not None:
            lines += ["", f"**{used.name}**: {' '.join(used.about.split())} Origin: {used.origin}."]
    if task.goldens:
        lines += ["", f"Goldens: {task.goldens}"]
    return "\n".join(lines)


def _rule(metric: str, name: str) -> Rule | None:
    """The rule with that name in the family of a metric."""
    family = declared_options(resolve(metric))["rule"].rules
    return None if family is None else rules_of(family).get(name)


def _published(benchmark: Recipe) -> str:
    published = benchmark.published
    if not published:
        return "## Published scores\n\nNone are recorded."
    lines = ["## Published scores", "", "| model | score | right | where |", "|---|---|---|---|"]
    for entry in published:
        count = "" if entry.correct is None else f"{entry.correct:,} of {entry.total:,}"
        where = entry.source + (f"; {entry.settings}" if entry.settings else "")
        figure = "" if entry.figure == "overall" else f" ({entry.figure})"
        cells = (entry.model + figure, f"{entry.value:g} {benchmark.task.unit or ''}", count, where)
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join(lines)


def _commands(benchmark: Recipe) -> str:
    data = benchmark.task.data
    assert isinstance(data, TaskData)
    fetching = f"mmeval fetch {benchmark.name}\n" if data.hub is not None else ""
    copy = "" if data.hub is not None else " --data DIR"
    return (
        "## Commands\n\n<!-- not run: needs the data of the benchmark -->\n```bash\n"
        f"{fetching}mmeval run {benchmark.name} --model PROVIDER:NAME{copy}\n"
        f"mmeval score {benchmark.name} ANSWERS.jsonl{copy}\nmmeval crosswalk {benchmark.name} ANSWERS.jsonl{copy}\n```"
    )


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
