"""The options of commands that ask a model, an OpenAI batch API, or a judge."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import Command, KeyValue, Params, PositiveNumber, RunLocation

if TYPE_CHECKING:
    from multimodal_eval.core.config import RunConfig
    from multimodal_eval.run.generation.batch import Batch
    from multimodal_eval.run.judging import JudgeSettings


_UNTIL = re.compile(r"\s*(?P<metric>[^\s±+]+)\s*(?:±|\+-|\+/-)\s*(?P<width>[0-9.eE-]+)\s*")


class JsonValue(KeyValue):
    """NAME=JSON."""

    name = "NAME=JSON"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name, and the value as JSON reads it."""
        import msgspec

        key, text = super().convert(value, param, ctx)
        try:
            return key, msgspec.json.decode(text)
        except msgspec.DecodeError:
            self.fail(f"{text!r} is not JSON. Quote text twice: {key}='\"text\"'", param, ctx)


class Header(KeyValue):
    """NAME=VALUE, or NAME: VALUE as other programs write it."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name and the value."""
        name, colon, rest = str(value).partition(":")
        return super().convert(f"{name}={rest}" if colon and "=" not in name else value, param, ctx)


class Until(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """METRIC ± WIDTH."""

    name = "METRIC ± WIDTH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The metric, and half the width of its interval."""
        fault = f"{value!r} must be written METRIC ± WIDTH, such as 'vqa_accuracy ± 0.01'"
        written = _UNTIL.fullmatch(str(value))
        if written is None:
            self.fail(fault, param, ctx)
        try:
            width = float(written["width"])
        except ValueError:
            self.fail(fault, param, ctx)
        if not 0 < width < float("inf"):
            self.fail(f"{fault}. The width must be above 0", param, ctx)
        return written["metric"], width


# Parameters of a command that are settings of the generation.
_SETTINGS = (
    *(
        "model",
        "base_url",
        "headers",
        "serve",
        "key_env",
        "revision",
        "profile",
        "schema",
        "prompt",
        "system",
        "shots",
        "shot_count",
        "history",
        "epochs",
    ),
    *("max_pixels", "detail", "frames", "media_as", "accept_truncated", "concurrency", "timeout", "retries"),
    *("prices", "budget", "use_cache", "use_probe", "retry_failures"),
)
# Parameter of a command -> parameter of the generation.
_PARAMETERS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "model_seed": "seed",
    "reasoning_effort": "reasoning_effort",
    "logprobs": "logprobs",
}


def model_options(command: Command) -> Command:
    """The model, what it is asked, and how."""
    for option in reversed((*_MODEL, *_PROMPT, *_SAMPLING, *_MEDIA, *_EFFORT, *_PREVIEW)):
        command = option(command)
    return command


def preview_options(command: Command) -> Command:
    """What would be sent."""
    for option in reversed(_PREVIEW):
        command = option(command)
    return command


def until_options(command: Command) -> Command:
    """When generation may stop before all samples are answered; it needs metrics."""
    better = click.option(
        "--until-better",
        type=RunLocation(),
        help="Stop as soon as the difference to this run is certain: samples are drawn at random.",
    )
    certain = click.option(
        "--until",
        type=Until(),
        help="Stop as soon as the interval of a metric is this narrow: 'vqa_accuracy ± 0.01'. Samples are drawn at "
        "random.",
    )
    return certain(better(command))


def _models(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> str | tuple[str, ...] | None:
    """The model; `run` may have several, or a file of them."""
    if len(values) < 2 and not "".join(values).endswith((".yaml", ".yml")):
        return values[0] if values else None
    if context.info_name != "run" or (context.parent is not None and context.parent.parent is not None):
        raise click.BadParameter("this command asks one model: PROVIDER:NAME")
    return values


Decorator = Callable[[Any], Any]
_MODEL: tuple[Decorator, ...] = (
    click.option(
        "--model",
        multiple=True,
        callback=_models,
        help="The model: PROVIDER:NAME, such as openai:NAME or vllm:NAME (`mmeval ls models`). Several, or a YAML file "
        "of them, are asked at the same time.",
    ),
    click.option(
        "--base-url",
        multiple=True,
        callback=lambda context, parameter, values: ",".join(values) or None,
        help="The address of the endpoint: http://localhost:8000/v1. Several share the load of one model.",
    ),
    click.option(
        "--profile",
        help="Ask as the model's publisher does: a name (`mmeval ls models`) or a YAML file. Other options replace its "
        "settings.",
    ),
    click.option(
        "--header",
        "headers",
        type=Header(),
        multiple=True,
        callback=lambda context, parameter, values: dict(values) or None,
        help="A further header of requests: X-Project=colors; $NAME is the value of an environment variable.",
    ),
    click.option("--key-env", help="The environment variable with the key. The default is that of the provider."),
    click.option("--revision", help="The revision of the model, for the record."),
)
_PROMPT: tuple[Decorator, ...] = (
    click.option("--prompt", help="A built-in prompt (`mmeval ls prompts`) or a file. The default is by the task."),
    click.option("--system", help="The system prompt, or @FILE with its text."),
    click.option("--schema", type=click.Path(), help="Ask for answers that follow the JSON Schema in this file."),
    click.option("--shots", type=click.Path(), help="Show the model solved examples from this file first."),
    click.option("--history", is_flag=True, default=None, help="The samples of a `group` are the turns of a dialogue."),
    click.option("--shot-count", type=click.IntRange(0), help="Use only this many of the examples, drawn by --seed."),
)
_SAMPLING: tuple[Decorator, ...] = (
    click.option("--temperature", type=click.FloatRange(0), help="The temperature. 0 is as deterministic as possible."),
    click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), help="Sample from this share of tokens."),
    click.option("--max-tokens", type=click.IntRange(1), help="The longest answer. A longer one is `truncated`."),
    click.option("--model-seed", type=int, help="The seed of the model's sampling."),
    click.option("--stop", multiple=True, help="Stop generating at this text. Repeatable."),
    click.option("--reasoning-effort", help="How much the model reasons: low, medium, high, as it accepts."),
    click.option("--logprobs", is_flag=True, default=None, help="Ask for the log-probabilities of the tokens."),
    click.option("--extra", type=JsonValue(), multiple=True, help="A further field of the request's body: top_k=20."),
    click.option("--epochs", type=click.IntRange(1), help="Ask every sample this many times."),
    click.option("--accept-truncated", is_flag=True, default=None, help="Score answers cut off at --max-tokens."),
)
_MEDIA: tuple[Decorator, ...] = (
    click.option("--max-pixels", type=click.IntRange(1), help="Make larger images smaller before they are sent."),
    click.option("--detail", type=click.Choice(["low", "high", "auto"]), help="How closely the model looks at images."),
    click.option("--frames", type=click.IntRange(1), help="Send this many images of a video instead of the video."),
    click.option(
        "--media-as",
        type=click.Choice(["data", "url", "none"]),
        help="Send media as data, their URLs for the endpoint to fetch, or none.  [default: data]",
    ),
)
_EFFORT: tuple[Decorator, ...] = (
    click.option("--concurrency", type=click.IntRange(1), help="At most this many requests at once.  [default: 100]"),
    click.option("--timeout", type=PositiveNumber(), help="Seconds for one request.  [default: 600]"),
    click.option("--retries", type=click.IntRange(0), help="Retry a failed request up to N times.  [default: 8]"),
    click.option("--prices", type=click.Path(), help="A YAML file with the price of a million tokens per model."),
    click.option("--budget", type=PositiveNumber(), help="Stop before the run costs more; needs `prices`."),
    click.option(
        "--no-cache", "use_cache", is_flag=True, flag_value=False, default=None, help="Ask again what was asked before."
    ),
    click.option(
        "--retry-failures",
        is_flag=True,
        default=None,
        help="Ask again for cached answers that are empty, cut off or refusals. The result counts the second draws.",
    ),
    click.option(
        "--no-probe", "use_probe", is_flag=True, flag_value=False, default=None, help="Do not try the endpoint first."
    ),
)
_PREVIEW: tuple[Decorator, ...] = (
    click.option("--dry-run", is_flag=True, help="Estimate requests, tokens and cost. Nothing is sent."),
    click.option("--show-request", metavar="ID", help="Print the request for this sample. Nothing is sent."),
)


def generation_settings(params: Params) -> dict[str, Any] | None:
    """The settings that were given; None if none were."""
    settings = {name: params[name] for name in _SETTINGS if params.get(name) is not None}
    parameters = {name: params[option] for option, name in _PARAMETERS.items() if params[option] is not None}
    if params["stop"]:
        parameters["stop"] = list(params["stop"])
    if params["extra"]:
        parameters["extra"] = dict(params["extra"])
    if parameters:
        settings["parameters"] = parameters
    if until := _until(params):
        settings["until"] = until
    return settings or None


def effort_changes(params: Params) -> dict[str, Any]:
    """The settings that were given for a run that is continued; they change no answer."""
    from multimodal_eval.core.config import CHANGEABLE
    from multimodal_eval.run.config import changes_in

    given = {name: params[name] for name in CHANGEABLE if params.get(name) is not None}
    return {**changes_in(params["config"], "generation"), **given}


def _until(params: Params) -> dict[str, Any] | None:
    certain, better = params.get("until"), params.get("until_better")
    if better is not None and certain is not None:
        raise click.UsageError("--until and --until-better exclude each other. --until-better decides by the headline")
    if better is not None:
        return {"better_than": str(better)}
    return None if certain is None else {"metric": certain[0], "width": certain[1]}


def refuse_no_model(params: Params) -> None:
    """Refuse a command that names no model, also not in its configuration file."""
    from multimodal_eval.run.config import load_config

    if params["model"] is None and load_config(params["config"]).generation is None:
        raise click.UsageError(
            "name a model: --model PROVIDER:NAME, such as openai:NAME with --base-url URL. Providers: mmeval ls models"
        )


# OpenAI's batch API: files instead of an endpoint.

_API = "api"  # in the place of a file: the API itself


def batch_options(command: Command) -> Command:
    """Requests that are written to files, and results that are read from files."""
    out = click.option(
        "--batch-out",
        type=click.Path(dir_okay=False),
        help="Write the requests to this file, for OpenAI's batch API, instead of asking. Several files if there are "
        "too many for one. With `api`, submit them.",
    )
    into = click.option(
        "--batch-in",
        type=click.Path(dir_okay=False),
        multiple=True,
        help="Read the answers, or errors, from this output file of the batch API. Repeatable. With `api`, "
        "wait for the submitted batches.",
    )
    return out(into(command))


def batch_of(params: Params, run: Any) -> Batch | None:
    """The files that take the place of the endpoint of a run, if any were named, or are fetched from the API."""
    from multimodal_eval.cli.options import progress_bar
    from multimodal_eval.run.generation.batch import BatchIn, BatchOut, collected, to_submit

    if params["batch_out"] and params["batch_in"]:
        raise click.UsageError("--batch-out writes requests and --batch-in reads results: give one of them")
    if params["batch_out"]:
        if params["accept_open"]:
            raise click.UsageError("--batch-out leaves every sample open until its result is read: no --accept-open")
        return to_submit(run) if params["batch_out"] == _API else BatchOut(params["batch_out"])
    if params["batch_in"] == (_API,):
        with progress_bar("requests") as progress:
            return BatchIn(collected(run, progress))
    return BatchIn(params["batch_in"]) if params["batch_in"] else None


def with_batch_price(config: RunConfig, params: Params) -> RunConfig:
    """The settings with the price of a batch, if the requests go into one."""
    import msgspec

    from multimodal_eval.run.generation.batch import half_price

    generation = config.generation
    if not params["batch_out"] or generation is None or generation.price is None:
        return config
    return msgspec.structs.replace(
        config, generation=msgspec.structs.replace(generation, price=half_price(generation.price))
    )


@contextmanager
def shown_if_written(params: Params) -> Iterator[None]:
    """Print where the requests of a batch are, or submit them. That is not a failure."""
    from multimodal_eval.run.generation.batch import BatchWrittenError, submitted

    try:
        yield
    except BatchWrittenError as written:
        click.echo(submitted(written) if params["batch_out"] == _API else str(written))
        raise click.exceptions.Exit(0) from None


# Judges.


# Parameter of a command -> setting of a judge that may change while a run is continued.
_CHANGEABLE = {
    "judge_urls": "base_url",
    "judge_key_envs": "key_env",
    "judge_concurrency": "concurrency",
    "judge_prices": "prices",
    "judge_budget": "budget",
    "use_judge_cache": "use_cache",
}
JUDGE_CHANGEABLE = tuple(_CHANGEABLE)
JUDGE_OPTIONS = ("judges", "judge_repeats", *JUDGE_CHANGEABLE)

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--judge",
        "judges",
        multiple=True,
        help="The model that acts as judge: PROVIDER:NAME. Repeat it for a panel of judges.",
    ),
    click.option(
        "--judge-url",
        "judge_urls",
        multiple=True,
        help="The address of the judge's endpoint: one for all judges, or one for each.",
    ),
    click.option(
        "--judge-key-env",
        "judge_key_envs",
        multiple=True,
        help="The environment variable with the judge's key: one for all judges, or one for each.",
    ),
    click.option("--judge-repeats", type=click.IntRange(1), help="Ask each question this many times."),
    click.option("--judge-concurrency", type=click.IntRange(1), help="At most this many questions at once per judge."),
    click.option(
        "--judge-prices", type=click.Path(), help="A YAML file with the judges' prices, in the format of --prices."
    ),
    click.option("--judge-budget", type=PositiveNumber(), help="Stop before a judge costs more; needs --judge-prices."),
    click.option(
        "--no-judge-cache",
        "use_judge_cache",
        is_flag=True,
        flag_value=False,
        default=None,
        help="Ignore cached verdicts, and ask the judge again.",
    ),
)


def judge_options(command: Command) -> Command:
    """Which model judges, and how it is asked."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def with_judge_options(config: RunConfig, params: Params) -> RunConfig:
    """The configuration with the settings that were given for its judges."""
    if all(params[option] in (None, ()) for option in JUDGE_OPTIONS):
        return config
    from multimodal_eval.run.judging import with_judge

    return with_judge(config, judge_settings(params))


def judge_settings(params: Params) -> JudgeSettings:
    """The settings that were given for the judges."""
    from multimodal_eval.run.judging import JudgeSettings

    return JudgeSettings(
        models=params["judges"],
        addresses=params["judge_urls"],
        key_envs=params["judge_key_envs"],
        repeats=params["judge_repeats"],
        concurrency=params["judge_concurrency"],
        prices=params["judge_prices"],
        budget=params["judge_budget"],
        use_cache=params["use_judge_cache"],
    )


def judge_changes(params: Params) -> dict[str, Any]:
    """The settings that were given for the judges of a run that is continued; they change no verdict."""
    from multimodal_eval.run.config import changes_in

    changes = {name: params[option] for option, name in _CHANGEABLE.items() if params[option] not in (None, ())}
    for name in ("base_url", "key_env"):
        if name in changes:
            changes[name] = list(changes[name])
    return {**changes_in(params["config"], "judges"), **changes}
