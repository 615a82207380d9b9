"""The options of commands whose metrics may ask a judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import Command, Params, PositiveNumber

if TYPE_CHECKING:
    from multimodal_eval.core.config import RunConfig
    from multimodal_eval.run.judging.settings import JudgeSettings

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
        help="The model that the judges among --metrics ask: PROVIDER:NAME; several are a panel.",
    ),
    click.option(
        "--judge-url",
        "judge_urls",
        multiple=True,
        help="The address of the judge's endpoint; one for all or each.",
    ),
    click.option(
        "--judge-key-env",
        "judge_key_envs",
        multiple=True,
        help="The environment variable with the judge's key; one for all or each.",
    ),
    click.option("--judge-repeats", type=click.IntRange(1), help="Ask the judge every question this many times."),
    click.option("--judge-concurrency", type=click.IntRange(1), help="At most this many questions at once per judge."),
    click.option("--judge-prices", type=click.Path(), help="A YAML file with the prices of the judges, as --prices."),
    click.option("--judge-budget", type=PositiveNumber(), help="Stop before a judge costs more; needs --judge-prices."),
    click.option(
        "--no-judge-cache",
        "use_judge_cache",
        is_flag=True,
        flag_value=False,
        default=None,
        help="Ask the judge again what it was asked before.",
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
    from multimodal_eval.run.judging.settings import with_judge

    return with_judge(config, judge_settings(params))


def judge_settings(params: Params) -> JudgeSettings:
    """The settings that were given for the judges."""
    from multimodal_eval.run.judging.settings import JudgeSettings

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
    changes = {name: params[option] for option, name in _CHANGEABLE.items() if params[option] not in (None, ())}
    for name in ("base_url", "key_env"):
        if name in changes:
            changes[name] = list(changes[name])
    return changes
