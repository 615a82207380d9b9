"""What `score` and `run` have in common: options, settings, starting, and the command that continues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from multimodal_eval.cli.model_options import generation_settings, with_batch_price, with_judge_options
from multimodal_eval.cli.options import (
    Command,
    MetricOption,
    Params,
    RunLocation,
    annotators_option,
    count_failures_option,
    empty_option,
    human_option,
    media_root_option,
    options_by_metric,
    overwrite_option,
    plugin_option,
    questions_option,
)

if TYPE_CHECKING:
    from multimodal_eval.core.config import GenerationConfig, RunConfig
    from multimodal_eval.core.progress import Progress
    from multimodal_eval.core.records import ImportInfo
    from multimodal_eval.data.readers.parts import Input
    from multimodal_eval.generate.meter import Estimate
    from multimodal_eval.run.engine.base import Engine
    from multimodal_eval.run.generation import Generation
    from multimodal_eval.run.plan import Plan
    from multimodal_eval.run.rescore import Earlier
    from multimodal_eval.run.start import Started


Decorator = Callable[[Any], Any]

# Parameter -> its option.
_OPTIONS: dict[str, Decorator] = {
    "task": click.option(
        "--task",
        help="The task: captioning, vqa, contextual_relevance, hallucination, classification, mcq, pope, mme, docvqa, "
        "chartqa, textvqa, ocr, grounding, asr, translation, or one from --config.",
    ),
    "metrics": click.option("--metrics", help="The metrics, separated by commas. The default is those of the task."),
    "headline": click.option(
        "--headline", help="The metric that leads. The default is the composite, cider_d for coco, or the first metric."
    ),
    "output": click.option(
        "-o",
        "--output",
        type=RunLocation(),
        help="Store the run in this folder or at this URL. The default is runs/NAME: the model or the file of answers.",
    ),
    "config": click.option(
        "--config", type=click.Path(path_type=Path), help="Read tasks, weights and settings from this YAML file."
    ),
    "resumed": click.option("--resume", "resumed", type=RunLocation(), help="Continue the run in this folder."),
    "options": click.option(
        "--option",
        "options",
        type=MetricOption(),
        multiple=True,
        help="Set an option of a metric, such as meteor.variant=fmean.",
    ),
    "labels": click.option(
        "--labels", type=click.Path(path_type=Path), help="Read the labels of a classification from this YAML file."
    ),
    "unknown_labels": click.option(
        "--unknown-labels",
        type=click.Choice(["error", "wrong"]),
        help="Refuse predicted labels that are not in --labels, or count them as wrong.  [default: error]",
    ),
    "questions": questions_option,
    "by": click.option("--by", multiple=True, help="Also score each value of this column separately."),
    "human": human_option,
    "ids": click.option(
        "--ids",
        type=click.Path(path_type=Path),
        help="Read only the samples whose ids this file lists: one per line, or a JSON list.",
    ),
    "seed": click.option("--seed", type=int, help="Set the seed of metrics that draw random numbers."),
    "image_root": click.option(
        "--image-root",
        type=click.Path(path_type=Path),
        help="Look for images in this folder. The default is the folder of DATA.",
    ),
    "allow_outside_images": click.option(
        "--allow-outside-images", is_flag=True, help="Open images outside that folder."
    ),
    "allow_image_urls": click.option(
        "--allow-image-urls", is_flag=True, help="Fetch images from http and https addresses."
    ),
    "skip_lint": click.option(
        "--no-lint", "skip_lint", is_flag=True, help="Do not check the answers now. `mmeval lint` does it later."
    ),
    "fetching": click.option("--fetch", "fetching", is_flag=True, help="First fetch missing resources and models."),
    "count_failures": count_failures_option,
    "skip_unavailable": click.option(
        "--skip-unavailable", is_flag=True, help="Leave metrics that cannot run on this machine unscored."
    ),
    "accept_open": click.option(
        "--accept-open", is_flag=True, help="With --resume, store samples that fail again as errors."
    ),
    "overwrite": overwrite_option,
    "allow_empty": empty_option,
    "plugins": plugin_option,
    "media_roots": media_root_option,
    "annotators": annotators_option,
}
OF_METRICS = (
    *("metrics", "headline", "options", "labels", "unknown_labels", "by", "human", "skip_lint", "fetching"),
    *("skip_unavailable", "allow_empty", "count_failures"),
)


def run_options(command: Command) -> Command:
    """The options of a run: what it reads and scores, and its folder."""
    for option in reversed(_OPTIONS.values()):
        command = option(command)
    return command


# Options of a resumed run: they change no score.
RESUMED = (
    *("format_", "jsonl", "fail_under", "fail_over", "min_coverage", "wants_report", "plugins", "media_roots"),
    *(
        "accept_open",
        "allow_empty",
        "engine",
        "workers",
        "address",
        "gpus_per_worker",
        "batch_out",
        "batch_in",
        "config",
    ),
)


def settings_of(params: Params, **more: Any) -> RunConfig:
    """The configuration of a new run: the file of --config, and the options on top. `more` are further settings."""
    from multimodal_eval.run.config import overlaid

    return overlaid(
        params["config"],
        task=params["task"],
        metrics=params.get("metrics"),
        headline=params.get("headline"),
        options=options_by_metric(params.get("options", ())),
        by=list(params.get("by", ())) or None,
        human=dict(params.get("human", ())) or None,
        human_target=params.get("human_target"),
        seed=params["seed"],
        plugins=list(params["plugins"]) or None,
        count_failures=params.get("count_failures"),
        skip_unavailable=params.get("skip_unavailable"),
        skip_lint=params.get("skip_lint"),
        map=dict(params["mapping"]) or None,
        annotators=params["annotators"],
        questions=None if params["questions"] is None else str(params["questions"]),
        labels=None if params.get("labels") is None else str(params["labels"]),
        unknown_labels=params.get("unknown_labels"),
        format=params["log_format"],
        limit=params["limit"],
        ids=None if params["ids"] is None else str(params["ids"]),
        only_answered=params.get("only_answered"),
        max_expansion=params["max_expansion"],
        max_record_mb=params["max_record_mb"],
        allow_partial=params["allow_partial"],
        allow_empty=params.get("allow_empty"),
        image_root=None if params["image_root"] is None else str(params["image_root"]),
        allow_outside=params.get("allow_outside"),
        allow_outside_images=params["allow_outside_images"],
        allow_image_urls=params["allow_image_urls"],
        **more,
    )


def opened_task(data: Any, params: Params) -> tuple[Any, dict[str, Any]]:
    """The data and the parameters of a command. A task file is replaced by its data, and its notes are printed.

    The settings of the file become those of --config, below the settings of a file that is given there.
    """
    from multimodal_eval.run.config import is_task_file, load_config

    if not is_task_file(data):
        if data is not None and not Path(data).exists():
            _refuse_misspelt(data)
        if params["task_data"] is not None:
            refuse_task_data(data)
        return data, dict(params)
    import msgspec

    from multimodal_eval.run.config import with_task

    if params.get("fetching") and params["task_data"] is None:
        _fetch_data(data)
    chosen, config = (params["task"], params.get("metrics")), params["config"]
    model, prompt = params.get("model"), params.get("prompt")
    config = msgspec.to_builtins(load_config(config, model))
    config |= {name: True for name in ("allow_outside", "allow_partial") if params[name]}
    if prompt is not None and model is not None:  # it may be one of the task
        config["generation"] = {**config.get("generation", {}), "model": model, "prompt": prompt}
        params = {**params, "prompt": None}
    more = {"task_data": params["task_data"], "may_download": bool(params.get("fetching"))}
    data, config, notes = with_task(data, config, model, *chosen, **more)
    for note in notes:
        click.echo(f"! {note}", err=True)
    return data, {**params, "config": config}


def _refuse_misspelt(data: Path) -> None:
    """Refuse data that do not exist, and whose name is almost that of a benchmark."""
    from multimodal_eval.benchmarks.recipes import similar_names
    from multimodal_eval.core.errors import ConfigError

    if names := similar_names(data):
        raise ConfigError(
            f"{data} is neither a file nor a benchmark. Did you mean {' or '.join(names)}? "
            "All names: mmeval ls benchmarks"
        )


def _fetch_data(data: Any) -> None:
    """Fetch the data of a benchmark that are not on this machine."""
    from multimodal_eval.benchmarks.data_files import fetched
    from multimodal_eval.benchmarks.recipes import find_recipe, recipe_of
    from multimodal_eval.benchmarks.task_format import TaskData

    if (file := find_recipe(data)) is None:
        return
    known = recipe_of(file)
    if isinstance(known.task.data, TaskData) and known.task.data.hub and fetched(known.task.data.hub) is None:
        from multimodal_eval.cli.fetch import fetch_benchmark

        fetch_benchmark(known)


def refuse_task_data(data: Any) -> None:
    """Refuse --data without a task file, whose data it replaces."""
    raise click.UsageError(f"--data replaces the data of a task file, and {data} is not one")


def refuse_others(params: Params, allowed: Collection[str], what: str) -> None:
    """Refuse options that would have no effect; `what` says why, before the flag."""
    flags = {option.name: max(option.opts, key=len) for option in click.get_current_context().command.params}
    flags["log_format"] = "--as"
    for name, value in params.items():
        if name not in allowed and value is not None and value is not False and value != ():
            raise click.UsageError(f"{what} {flags[name]}")


def started(
    plan: Plan,
    source: Input | Earlier,
    path: Any,
    engine: Engine,
    *,
    overwrite: bool,
    command: str = "score",
    generation: Generation | None = None,
    imported: ImportInfo | None = None,
    progress: Progress | None = None,
) -> Started:
    """Execute a plan in a new run folder, with progress. If it does not end, say how it continues."""
    from multimodal_eval.cli.options import progress_bar
    from multimodal_eval.run.start import start

    shown = progress_bar() if progress is None else nullcontext(progress)
    with shown as report, continuable(path, continuing(command, path, plan.config.plugins)):
        more: Any = {"generation": generation, "imported": imported}
        return start(plan, source, path, engine, report, overwrite=overwrite, **more)


@contextmanager
def continuable(path: Any, command: str) -> Iterator[None]:
    """Add to what stops a run the command that continues it, if its folder is there."""
    from multimodal_eval.cli.messages import file_fault
    from multimodal_eval.core.errors import AskingError, ClusterError, MetricError, RunFolderError
    from multimodal_eval.data.runs.run_folder import RunFolder

    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted. Continue with: {command}", err=True)
        raise click.exceptions.Exit(130) from None
    except (MetricError, ClusterError, OSError) as error:
        if not RunFolder(path).storage.exists("run.json"):
            raise
        fault = file_fault(error) if isinstance(error, OSError) else str(error)
        advice = f"What was scored so far is kept. After a repair, continue with: {command}"
        raise RunFolderError(f"{fault}\n{advice}") from error
    except AskingError as error:
        if "--resume" in str(error) or not RunFolder(path).storage.exists("run.json"):
            raise
        raise RunFolderError(f"{error}\nThe answers so far are kept. Continue with: {command}") from error


def continuing(command: str, path: Any, plugins: Collection[str] = ()) -> str:
    """The command that continues the run."""
    named = "".join(f" --plugin {quote(plugin)}" for plugin in plugins)
    return f"mmeval {command} --resume {quote(str(path))}{named}"


def fetch(names: list[str]) -> None:
    """Fetch missing resources, and name each."""
    from multimodal_eval.cli.fetch import fetch_all

    for line in fetch_all(names):
        click.echo(line, err=True)


# `--dry-run` and `--show-request` of commands that ask a model: nothing is sent, and no folder is created.


def shown_preview(data: Any, params: Params, *, scores: bool) -> bool:
    """Show what would be sent, if the options ask for it. Returns whether they do."""
    import msgspec

    from multimodal_eval.run.generation import generation_of, with_model
    from multimodal_eval.run.previews import estimated, request_for
    from multimodal_eval.run.start import planned

    if not params["dry_run"] and params["show_request"] is None:
        return False
    config = with_batch_price(with_model(settings_of(params, generation=generation_settings(params)), None), params)
    has_judges = scores and bool(config.judges)
    if has_judges:
        config = with_judge_options(config, params)
    wants_metrics = scores and (params["dry_run"] or has_judges)  # a request needs none
    config = msgspec.structs.replace(config, skip_unavailable=True)  # nothing is scored, so no model is needed
    plan, source = planned(config, data, None, scores=wants_metrics)
    generation = generation_of(plan)
    assert generation is not None
    if params["show_request"] is not None:
        from multimodal_eval.run.previews import as_json, show

        request, unknown = request_for(plan, source, generation, params["show_request"])
        click.echo(as_json(request, generation.generator) if params["format_"] == "json" else show(request))
        if unknown:
            click.echo("\nReplies that are not known yet are in parentheses; the digest is another one.", err=True)
        if has_judges and params["format_"] != "json":
            _show_questions_about(plan, source, params["show_request"])
        return True
    estimate = estimated(plan, source, generation)
    judged = _judged(plan, source)
    if params["format_"] == "json":
        _print_json({**_content(generation.config, estimate), **judged.content})
    else:
        for line in (*_lines(generation.config, estimate), *judged.lines, *_end(), *_unavailable(plan)):
            click.echo(line)
    return True


def show_questions(data: Any, predictions: Any, params: Params) -> None:
    """Show what judges would be asked about answers that exist."""
    from multimodal_eval.run.start import planned

    plan, source = planned(with_judge_options(settings_of(params), params), data, predictions)
    if not plan.judges:
        raise click.UsageError("no metric of this run asks a judge, so that nothing would be sent")
    if params["show_request"] is not None:
        _show_questions_about(plan, source, params["show_request"])
        return
    judged = _judged(plan, source)
    if params["format_"] == "json":
        _print_json(judged.content)
    else:
        for line in (*judged.lines[1:], *_end()):
            click.echo(line)


def _show_questions_about(plan: Plan, source: Input, name: str) -> None:
    from multimodal_eval.run.previews import UNKNOWN_ANSWER, questions_about, show

    is_unknown = plan.config.generation is not None
    for metric, requests in questions_about(plan, source, name):
        click.echo(f"\n{metric.name}: {len(requests):,} {'question' if len(requests) == 1 else 'questions'}")
        for request in dict.fromkeys(map(show, requests)):
            click.echo(request)
    if is_unknown:
        click.echo(f"\nThe judge gets the answer in the place of {UNKNOWN_ANSWER}.", err=True)


def _unavailable(plan: Plan) -> Iterator[str]:
    """A line about metrics that the run itself would refuse."""
    if plan.unavailable:
        yield f"To fetch before the run: the resources that {', '.join(plan.unavailable)} need (`mmeval fetch`)."


def _end() -> tuple[str, str]:
    from multimodal_eval.generate.meter import RULE

    return f"Estimated by {RULE}.", "Nothing was sent."


class _Judged(NamedTuple):
    """What the judges would be asked, as lines and as JSON."""

    lines: list[str]
    content: dict[str, Any]


def _judged(plan: Plan, source: Input) -> _Judged:
    from multimodal_eval.run.previews import estimated_questions

    judged = _Judged([], {})
    for estimate in estimated_questions(plan, source):
        config, entries = estimate.metric.config, []
        for number, each in enumerate(estimate.models):
            judged.lines.extend(["", f"judge          {estimate.metric.name}"])
            judged.lines.extend(_lines(config.generation(number), each, "`max_tokens` in its file", "`prices` there"))
            entries.append(_content(config.generation(number), each))
        judged.content.setdefault("judges", {})[estimate.metric.name] = entries
    if judged.lines and plan.config.generation is not None:
        judged.lines.append("The answers that are judged are not known yet: their tokens are not in these numbers.")
    return judged


def _content(config: GenerationConfig, estimate: Estimate) -> dict[str, Any]:
    from dataclasses import asdict

    from multimodal_eval.generate.meter import RULE

    cost = _costs(config, estimate)
    content = {"model": config.model, **asdict(estimate), "rule": RULE}
    if cost is not None and config.price is not None:
        content |= {"input_cost": cost[0], "most_output_cost": cost[1], "currency": config.price.currency}
    return content


def _print_json(content: dict[str, Any]) -> None:
    from multimodal_eval.core.records import to_json

    click.echo(to_json(content).decode(), nl=False)


def _costs(config: GenerationConfig, estimate: Estimate) -> tuple[float, float | None] | None:
    """The estimated cost of the input, and the highest of the output; None without prices or without a limit."""
    from multimodal_eval.generate.meter import cost_of

    if config.price is None:
        return None
    most = estimate.most_output_tokens
    output = None if most is None else cost_of(config.price, 0, most)
    return cost_of(config.price, estimate.input_tokens, 0), output


_PRICES = "`generation: {prices: FILE}` in the file of --config"


def _lines(
    config: GenerationConfig, estimate: Estimate, limit: str = "--max-tokens N", prices: str = _PRICES
) -> Iterator[str]:
    from multimodal_eval.generate.meter import money
    from multimodal_eval.run.previews import size

    yield f"model          {config.model}"
    cached = f", {estimate.cached:,} of them answered from the cache" if estimate.cached else ""
    yield f"requests       {estimate.requests:,}{cached}"
    if estimate.unreadable:
        yield f"unreadable     {estimate.unreadable:,} samples whose media cannot be opened; they are not asked"
    yield f"to be sent     {size(estimate.bytes)} of text and media"
    yield f"input tokens   about {estimate.input_tokens:,}"
    most = estimate.most_output_tokens
    yield f"output tokens  {f'not limited; {limit} limits them' if most is None else f'at most {most:,}'}"
    costs = _costs(config, estimate)
    if costs is None:
        yield f"cost           unknown without {prices}"
    else:
        assert config.price is not None
        currency, (entered, left) = config.price.currency, costs
        if left is None:
            yield f"cost           about {money(entered, currency)} for the input; the output is not limited"
        else:
            whole = money(entered + left, currency)
            yield f"cost           at most about {whole}: {money(entered, currency)} for the input"
