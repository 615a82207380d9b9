"""`--dry-run` and `--show-request` of commands that ask a model: nothing is sent, and no folder is created."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.generation_options import generation_settings
from multimodal_eval.cli.options import Params
from multimodal_eval.cli.running import settings_of

if TYPE_CHECKING:
    from multimodal_eval.core.config import GenerationConfig
    from multimodal_eval.generate.estimate import Estimate


def shown_preview(data: Any, params: Params, *, scores: bool) -> bool:
    """Show what would be sent, if the options ask for it. Returns whether they do."""
    from multimodal_eval.run.generation.model import generation_of, with_model
    from multimodal_eval.run.generation.preview import estimated, request_for
    from multimodal_eval.run.opening import planned

    if not params["dry_run"] and params["show_request"] is None:
        return False
    config = with_model(settings_of(params, generation=generation_settings(params)), None)
    plan, source = planned(config, data, None, scores=scores and params["dry_run"])  # a request needs no metrics
    generation = generation_of(plan)
    assert generation is not None
    if params["show_request"] is not None:
        from multimodal_eval.generate.shown import as_json, show

        request, unknown = request_for(plan, source, generation, params["show_request"])
        click.echo(as_json(request) if params["format_"] == "json" else show(request))
        if unknown:
            click.echo("\nReplies that are not known yet are in parentheses; the digest is another one.", err=True)
        return True
    estimate = estimated(plan, source, generation)
    if params["format_"] == "json":
        _print_json(generation.config, estimate)
    else:
        for line in _lines(generation.config, estimate):
            click.echo(line)
    return True


def _print_json(config: GenerationConfig, estimate: Estimate) -> None:
    from dataclasses import asdict

    from multimodal_eval.core.records import to_json
    from multimodal_eval.generate.estimate import RULE

    cost = _costs(config, estimate)
    content = {"model": config.model, **asdict(estimate), "rule": RULE}
    if cost is not None and config.price is not None:
        content |= {"input_cost": cost[0], "most_output_cost": cost[1], "currency": config.price.currency}
    click.echo(to_json(content).decode(), nl=False)


def _costs(config: GenerationConfig, estimate: Estimate) -> tuple[float, float | None] | None:
    """The estimated cost of the input, and the highest of the output; None without prices or without a limit."""
    from multimodal_eval.generate.prices import cost_of

    if config.price is None:
        return None
    most = estimate.most_output_tokens
    output = None if most is None else cost_of(config.price, 0, most)
    return cost_of(config.price, estimate.input_tokens, 0), output


def _lines(config: GenerationConfig, estimate: Estimate) -> Iterator[str]:
    from multimodal_eval.generate.estimate import RULE
    from multimodal_eval.generate.prices import money

    yield f"model          {config.model}"
    cached = f", {estimate.cached:,} of them answered from the cache" if estimate.cached else ""
    yield f"requests       {estimate.requests:,}{cached}"
    if estimate.unreadable:
        yield f"unreadable     {estimate.unreadable:,} samples whose media cannot be opened; they are not asked"
    yield f"to be sent     {estimate.bytes / 1e6:,.1f} MB of text and media"
    yield f"input tokens   about {estimate.input_tokens:,}"
    most = estimate.most_output_tokens
    yield f"output tokens  {'not limited; --max-tokens N limits them' if most is None else f'at most {most:,}'}"
    costs = _costs(config, estimate)
    if costs is None:
        yield "cost           unknown; --prices FILE names the prices"
    else:
        assert config.price is not None
        currency, (entered, left) = config.price.currency, costs
        if left is None:
            yield f"cost           about {money(entered, currency)} for the input; the output is not limited"
        else:
            whole = money(entered + left, currency)
            yield f"cost           at most about {whole}: {money(entered, currency)} for the input"
    yield f"Estimated by {RULE}."
    yield "Nothing was sent."
