"""`mmeval demo`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from multimodal_eval.cli.options import MetricOptions, progress_bar
from multimodal_eval.core.display import with_margin
from multimodal_eval.core.metric import configured

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from multimodal_eval.analysis.compare import MetricComparison, RunComparison
    from multimodal_eval.core.config import RunConfig
    from multimodal_eval.data.readers.inputs import Input
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.plan import Plan


# The part of `mmeval demo` in which a model on this machine writes answers: SmolLM2 rephrases captions.


MODEL = "llama:smollm2-135m"
SAMPLES = 8
METRICS = ("rouge_l", "meteor", "cider", "semantic_similarity")
PROMPT = "Rephrase this image caption in one short sentence: "


def show_generated(data: Path, folder: Path, out: Console) -> None:
    """Generate, score and print. If the model cannot be used, the demo says so and continues without it."""
    from multimodal_eval.core.errors import ModelError, UnavailableError

    try:
        run = _generated(data / "captioning.jsonl", folder / "generated" / "smollm2")
    except (UnavailableError, ModelError) as fault:
        out.print(f"generated: left out, because the model cannot be used here ({fault})\n", soft_wrap=True)
        return
    _print(run, out)


def _generated(captions: Path, folder: Path) -> Run:
    """The model reads one person's caption and rewrites it. The captions of the others are the references."""
    import json

    from multimodal_eval.core.config import GenerationConfig, Parameters
    from multimodal_eval.run.evaluate import evaluate

    lines = captions.read_text(encoding="utf-8").splitlines()[:SAMPLES]
    samples = []
    for record in map(json.loads, lines):
        shown, *others = record["references"]
        samples.append({"id": record["id"], "prompt": PROMPT + shown, "references": others})
    generation = GenerationConfig(
        model=MODEL, prompt="plain", parameters=Parameters(max_tokens=32), accept_truncated=True
    )
    with progress_bar() as progress:
        return evaluate(
            samples,
            metrics=METRICS,
            output=folder,
            model=MODEL,
            generation=generation,
            options={"meteor": {"variant": "fmean"}},
            progress=progress,
        )


def _print(run: Run, out: Console) -> None:
    from multimodal_eval.cli.show import as_text, table_of

    title = f"generated: SmolLM2 rephrases captions, {SAMPLES} samples"
    table = table_of(title, ["metric"], ["SmolLM2", "scored"])
    for name in METRICS:
        entry = run.entries[name]
        score = with_margin(entry.value or 0, entry.low, entry.high)
        table.add_row(name, score, f"{entry.n_scored} / {entry.n_total}")
    out.print(table)
    examples = table_of("what it writes", ["caption that it reads", "what it makes of it"], [])
    for sample in list(run.samples())[:3]:
        answer = sample.generated_answer or sample.error or ""
        examples.add_row(as_text((sample.prompt or "").removeprefix(PROMPT)), as_text(answer))
    out.print(examples)


SYSTEMS = ("alba", "boreas")
CLIP = "shapes-clip"  # trained on drawn shapes only, which the demo's images show
# Each task's data, and the metrics shown in addition to the task's own.
TASKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "captioning": (
        "captions of drawn images",
        ("bleu", "meteor", "rouge_l", "cider_d", "clipscore", "ref_clipscore", "perplexity"),
    ),
    "vqa": ("questions about the images, ten human answers each", ("exact_match", "vqa_accuracy")),
    "contextual_relevance": ("descriptions of the images on request", ()),
    "hallucination": ("captions of photographs, given only as text", ("chair_i", "chair_s")),
    "classification": ("how objects are arranged in the images, labelled by three people", ()),
}
OPTIONS: MetricOptions = {
    **{name: {"model": CLIP} for name in ("clip_score", "clipscore", "ref_clipscore")},
    "meteor": {"variant": "fmean"},
    "perplexity": {"source": "model"},
}
DIALOGUE = "24 conversations in Russian and English, with images and speech"


@click.command()
@click.option("--fetch", "fetching", is_flag=True, help="First fetch the two models that the demo needs: once, 176 MB.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Keep the runs in this folder.")
@click.option(
    "--files", type=click.Path(path_type=Path), help="Only copy the data into this new folder, to try commands on them."
)
def demo(fetching: bool, output: Path | None, files: Path | None) -> None:
    """Score two imaginary systems on all five tasks and in dialogues, with every metric, and compare them."""
    if files is None:
        _run_demo(fetching, output)
    elif fetching or output is not None:
        raise click.UsageError("--files only copies the data: leave out --fetch and -o")
    else:
        _copy_data(files)


def _copy_data(target: Path) -> None:
    import shutil
    from importlib.resources import as_file, files

    from multimodal_eval.core.errors import RunFolderError

    if target.exists():
        raise RunFolderError(f"{target} already exists. Name another folder")
    with as_file(files("multimodal_eval.data") / "demo") as data:
        shutil.copytree(data, target, ignore=shutil.ignore_patterns("__pycache__"))
    pair = f"{target / 'captioning.jsonl'} {target / 'captioning.alba.jsonl'}"
    click.echo(f"data: {target}     Next, for example: mmeval score {pair} --metrics rouge_l")


def _run_demo(fetching: bool, output: Path | None) -> None:
    from importlib.resources import as_file, files

    from multimodal_eval.cli.fetch import fetch_all
    from multimodal_eval.cli.show import console
    from multimodal_eval.core.errors import RunFolderError, UnavailableError
    from multimodal_eval.models.runtime import missing_runtime
    from multimodal_eval.run.plan import needed_resources

    if output is not None and output.exists():
        raise RunFolderError(f"{output} already exists. Name another folder")
    no_models = missing_runtime("mmeval demo --fetch" if fetching else "each of them")
    if no_models and fetching:
        raise UnavailableError(f"{no_models}. Without models: mmeval demo")
    configs = {task: _config(task) for task in TASKS}
    missing = list(dict.fromkeys(name for config in configs.values() for name in needed_resources(config)))
    if no_models:
        configs, left_out = _without_models(configs)
        click.echo(f"left out: {', '.join(left_out)}: {no_models}\n", err=True)
        missing = []
    elif missing and not fetching:
        raise UnavailableError(
            f"the demo needs models that are not on this machine: {', '.join(missing)}. "
            "Get them with: mmeval demo --fetch"
        )
    for line in fetch_all(missing):
        click.echo(line, err=True)
    with ExitStack() as stack:
        data = stack.enter_context(as_file(files("multimodal_eval.data") / "demo"))
        folder = output or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mmeval-")))
        _show(configs, data, folder, console(), with_models=no_models is None)
    if output is not None:
        click.echo(f"\nruns: {output}     Next, for example: mmeval compare {output}/vqa/alba {output}/vqa/boreas")


def _config(task: str) -> RunConfig:
    from multimodal_eval.evaluation.tasks_config import get_task
    from multimodal_eval.run.config import overlaid

    metrics = list(dict.fromkeys([*get_task(task).metrics, *TASKS[task][1]]))
    return overlaid(
        None, task=task, metrics=metrics, options={name: OPTIONS[name] for name in metrics if name in OPTIONS}
    )


def _without_models(configs: Mapping[str, RunConfig]) -> tuple[dict[str, RunConfig], list[str]]:
    """The tasks with the metrics that can run here, and the metrics that cannot."""
    from multimodal_eval.evaluation.metrics_registry import resolve

    kept: dict[str, RunConfig] = {}
    left_out: dict[str, None] = {}
    for task, config in configs.items():
        metrics = []
        for name in config.metrics or ():
            if configured(resolve(name), config.options.get(name, {})).unavailable() is None:
                metrics.append(name)
            else:
                left_out[name] = None
        if metrics:
            options = {name: config.options[name] for name in metrics if name in config.options}
            kept[task] = structs.replace(config, metrics=metrics, options=options)
    return kept, [*left_out, "answers of SmolLM2"]


def _show(configs: dict[str, RunConfig], data: Path, folder: Path, out: Console, *, with_models: bool) -> None:
    from multimodal_eval.run.opening import planned

    out.print(
        "Two imaginary systems, Alba and Boreas, see 24 drawn images and 20 photographs and hold 24 conversations.\n"
        "Who is better?\n"
    )
    for task, config in configs.items():
        comparison = _compared(
            {system: planned(config, data / f"{task}.jsonl", data / f"{task}.{system}.jsonl") for system in SYSTEMS},
            folder / task,
        )
        out.print(_fitting(f"{task}: {TASKS[task][0]}, {comparison.samples} samples", comparison, out))
    comparison = _compared(_dialogues(data / "dialogue"), folder / "dialogue")
    out.print(_fitting(f"dialogue: {DIALOGUE}, {comparison.samples} replies", comparison, out))
    if with_models:
        _show_extremes(folder / "captioning", out)
        show_generated(data, folder, out)
    out.print(
        "± reaches the farther end of a 95 % interval. The interval of a difference is over the samples that both "
        "systems answered and is shown if the terminal is wide enough. ▲ better, ▼ worse, beyond chance; ↓ lower is "
        "better. A generator's error message is unscored and never counts as 0. Dialogues are weighted by type.\n"
        "Score your own data: mmeval score answers.jsonl --task captioning\n"
        "Let a model answer: mmeval run data.jsonl --model openai:NAME --base-url URL --task vqa\n"
        "Read about a metric: mmeval card clip_score"
    )


def _dialogues(data: Path) -> Mapping[str, tuple[Plan, Input]]:
    """Each system's submission to the dialogue contest, ready to be scored."""
    from multimodal_eval.contests.dialogue.contest import open_contest

    # Russian synonyms need an extra; without them, the demo's scores do not depend on it.
    contest = open_contest(data / "gold.json", questions=data / "questions.json", synonyms={"ru": "none"})
    prepared = {system: contest.prepare(data / "submissions" / system) for system in SYSTEMS}
    return {system: (submission.plan, submission.source) for system, submission in prepared.items()}


def _compared(prepared: Mapping[str, tuple[Plan, Input]], folder: Path) -> RunComparison:
    """Score each system into a separate run folder, and compare the runs."""
    from multimodal_eval.analysis.compare import compare_runs
    from multimodal_eval.cli.options import progress_bar
    from multimodal_eval.run.start import start

    for system, (plan, source) in prepared.items():
        with progress_bar() as progress:
            start(plan, source, folder / system, progress=progress)
    return compare_runs([folder / system for system in prepared], allow_partial=True)


# The columns of a comparison. A narrow terminal omits the interval first, then the coverage.
COLUMNS = (*map(str.title, SYSTEMS), "difference", "95 % interval", "p", "", "scored")
OMITTED: tuple[tuple[str, ...], ...] = ((), ("95 % interval",), ("95 % interval", "scored"))


def _fitting(title: str, comparison: RunComparison, out: Console) -> Table:
    """The table with the most columns that the terminal has room for."""
    from multimodal_eval.cli.show import fits

    tables = [_table(title, comparison, [head for head in COLUMNS if head not in omitted]) for omitted in OMITTED]
    return next((table for table in tables if fits(out, table)), tables[-1])


def _table(title: str, comparison: RunComparison, columns: Sequence[str]) -> Table:
    from multimodal_eval.cli.compare import difference_cells, shown_name
    from multimodal_eval.cli.show import table_of

    table = table_of(title, ["metric"], list(columns))
    metrics = sorted(comparison.numbers, key=lambda metric: metric.name == "composite_score")
    for metric in metrics:
        (pair,) = metric.pairs
        digits = 1 if metric.systems[0].value > 10 else 4
        cells = [
            *(with_margin(system.value, system.low, system.high, digits) for system in metric.systems),
            *difference_cells(pair, pair.p_value, digits),
            _coverage(metric),
        ]
        table.add_row(
            shown_name(metric),
            *(cell for head, cell in zip(COLUMNS, cells, strict=True) if head in columns),
            style="bold" if metric.name == comparison.headline else "dim" if "." in metric.name else "",
        )
    return table


def _coverage(metric: MetricComparison) -> str:
    return f"{metric.samples} / {metric.samples + metric.left_out}"


def _show_extremes(folder: Path, out: Console) -> None:
    """Print the best and the worst captions by the composite, each with a reference."""
    from multimodal_eval.cli.show import as_text, table_of
    from multimodal_eval.data.runs.run import Run

    rows = []
    for system in SYSTEMS:
        run = Run(folder / system)
        scores = {row["id"]: row["composite_score"] for row in run.scores(["id", "composite_score"]).to_pylist()}
        rows += [(scores[s.id], system, s) for s in run.samples() if scores[s.id] is not None]
    rows.sort(key=lambda row: (-row[0], row[1], row[2].id))
    table = table_of(
        "the best and the worst captions by the composite", ["composite", "system", "caption", "a reference"], []
    )
    for score, system, sample in [*rows[:3], *rows[-3:]]:
        answer = sample.generated_answer or ""
        cells = (f"{score:.4f}", system.title(), answer if answer.strip() else "(blank)", sample.reference_texts[0])
        table.add_row(*map(as_text, cells))
    out.print(table)
