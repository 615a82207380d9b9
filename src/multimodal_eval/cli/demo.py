"""`mmeval demo`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click
from msgspec import structs

from multimodal_eval.cli.finish import print_blocks
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import MetricOptions, progress_bar, result_format_option
from multimodal_eval.core.metric import configured
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Row, Table, Text
from multimodal_eval.display.wording import listed

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import RunComparison
    from multimodal_eval.core.config import RunConfig
    from multimodal_eval.data.readers.parts import Input
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.plan import Plan


# The part of `mmeval demo` in which a model on this machine writes answers: SmolLM2 rephrases captions.


MODEL = "llama:smollm2-135m"
SAMPLES = 8
METRICS = ("rouge_l", "meteor", "cider", "semantic_similarity")
PROMPT = "Rephrase this image caption in one short sentence: "


def generated_blocks(data: Path, folder: Path) -> Iterator[Block]:
    """Generate and score. If the model cannot be used, the demo says so and continues without it."""
    from multimodal_eval.core.errors import ModelError, UnavailableError

    try:
        run = _generated(data / "captioning.jsonl", folder / "generated" / "smollm2")
    except (UnavailableError, ModelError) as fault:
        yield Text(f"generated: left out, because the model cannot be used here ({fault})")
        return
    yield from _written(run)


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


def _written(run: Run) -> Iterator[Block]:
    title = f"generated: SmolLM2 rephrases captions, {SAMPLES} samples"
    yield Figures([FigureRow(run.figures[name]) for name in METRICS], value="SmolLM2", title=title)
    examples = []
    for sample in list(run.samples())[:3]:
        answer = sample.generated_answer or sample.error or ""
        examples.append(Row([(sample.prompt or "").removeprefix(PROMPT), answer]))
    yield Table(["caption that it reads", "what it makes of it"], examples, 2, "what it writes")


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


@click.command(cls=LayeredCommand)
@click.option("--fetch", "fetching", is_flag=True, help="First fetch the two models that the demo needs: once, 176 MB.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Keep the runs in this folder.")
@click.option(
    "--files", type=click.Path(path_type=Path), help="Only copy the data into this new folder, to try commands on them."
)
@result_format_option
def demo(fetching: bool, output: Path | None, files: Path | None, format_: str) -> None:
    """Score two imaginary systems on all five tasks and in dialogues, with every metric, and compare them."""
    if files is None:
        _run_demo(fetching, output, format_)
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
    click.echo(f"data: {target}\nNext, for example:")
    for command in next_steps(target):
        click.echo(f"  {command}")


def next_steps(data: Path) -> list[str]:
    """Commands for the files of the demo. They need no models."""
    captions = quote(str(data / "captioning.jsonl"))
    names = [f"captioning.{system}" for system in SYSTEMS]
    scored = [f"mmeval score {captions} {quote(str(data / name))}.jsonl --metrics rouge_l,cider_d" for name in names]
    runs = " ".join(f"runs/{name}" for name in names)
    compared = f"mmeval compare {runs} --allow-partial"
    return [*scored, compared, f"mmeval report {runs} -o report.html", "mmeval card cider_d"]


def _run_demo(fetching: bool, output: Path | None, format_: str) -> None:
    from importlib.resources import as_file, files

    from multimodal_eval.cli.fetch import fetch_all
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
        print_blocks(_blocks(configs, data, folder, with_models=no_models is None), format_)
    if output is not None and format_ == "table":
        click.echo(f"\nruns: {output}     Compare two of them: mmeval compare {output}/vqa/alba {output}/vqa/boreas")


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


def _blocks(configs: dict[str, RunConfig], data: Path, folder: Path, *, with_models: bool) -> Iterator[Block]:
    from multimodal_eval.run.start import planned

    yield Text(
        "Two imaginary systems, Alba and Boreas, see 24 drawn images and 20 photographs and hold 24 conversations."
    )
    yield Text("Who is better?")
    comparisons: dict[str, RunComparison] = {}
    for task, config in configs.items():
        comparisons[task] = comparison = _compared(
            {system: planned(config, data / f"{task}.jsonl", data / f"{task}.{system}.jsonl") for system in SYSTEMS},
            folder / task,
        )
        yield _differences(f"{task}: {TASKS[task][0]}, {comparison.samples} samples", comparison)
    comparisons["dialogue"] = comparison = _compared(_dialogues(data / "dialogue"), folder / "dialogue")
    yield _differences(f"dialogue: {DIALOGUE}, {comparison.samples} replies", comparison)
    if with_models:
        yield _extremes(folder / "captioning")
        yield from generated_blocks(data, folder)
    yield Text(
        "Scores are over the samples that both systems answered. ▲ Boreas is better, ▼ Boreas is worse, beyond chance. "
        "A generator's error message is unscored and never counts as 0. Dialogues are weighted by type."
    )
    yield Text(f"Who is better? {who_is_better(comparisons)}", tone="strong")
    yield Text("Next, for example:")
    yield from (Text(f"  {command}") for command in ("mmeval demo --files demo", *next_steps(Path("demo"))))


def who_is_better(comparisons: Mapping[str, RunComparison]) -> str:
    """The answer in a sentence, by the headline of each task: Alba is the first system, Boreas the second."""
    won: dict[str, list[str]] = {"worse": [], "better": [], "": []}
    for task, comparison in comparisons.items():
        pair = next((each.pairs[0] for each in comparison.numbers if each.name == comparison.headline), None)
        won["" if pair is None else pair.verdict if pair.verdict in won else ""].append(task.replace("_", " "))
    clauses = [
        f"{system.title()} is better in {listed(won[verdict], len(comparisons))}"
        for system, verdict in zip(SYSTEMS, ("worse", "better"), strict=True)
        if won[verdict]
    ]
    if won[""]:
        clauses.append(f"no difference is shown in {listed(won[''], len(comparisons))}")
    sentence = "; ".join(clauses)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _differences(title: str, comparison: RunComparison) -> Figures:
    """The metrics of both systems and their differences, the composite last."""
    from multimodal_eval.display.of_comparison import two_runs

    metrics = sorted(comparison.numbers, key=lambda metric: metric.name == "composite_score")
    names = tuple(system.title() for system in SYSTEMS)
    return two_runs(replace(comparison, numbers=tuple(metrics)), comparison.headline or "", title, names)


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


def _extremes(folder: Path) -> Table:
    """The best and the worst captions by the composite, each with a reference."""
    from multimodal_eval.data.runs.run import Run

    rows = []
    for system in SYSTEMS:
        run = Run(folder / system)
        scores = {row["id"]: row["composite_score"] for row in run.scores(["id", "composite_score"]).to_pylist()}
        rows += [(scores[s.id], system, s) for s in run.samples() if scores[s.id] is not None]
    rows.sort(key=lambda row: (-row[0], row[1], row[2].id))
    shown = []
    for score, system, sample in [*rows[:3], *rows[-3:]]:
        answer = sample.generated_answer or ""
        caption = answer if answer.strip() else "(blank)"
        shown.append(Row([f"{score:.4f}", system.title(), caption, sample.reference_texts[0]]))
    heads = ["composite", "system", "caption", "a reference"]
    return Table(heads, shown, 4, "the best and the worst captions by the composite")
