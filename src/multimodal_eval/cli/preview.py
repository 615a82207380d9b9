"""`--dry-run` and `--show-request` of commands that ask a model: nothing is sent, and no folder is created."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from multimodal_eval.cli.generation_options import generation_settings
from multimodal_eval.cli.judge_options import with_judge_options
from multimodal_eval.cli.options import Params
from multimodal_eval.cli.running import settings_of

if TYPE_CHECKING:
    from multimodal_eval.core.config import GenerationConfig
    from multimodal_eval.data.readers.inputs import Input
    from multimodal_eval.generate.estimate import Estimate
    from multimodal_eval.run.plan import Plan


def shown_preview(data: Any, params: Params, *, scores: bool) -> bool:
    """Show what would be sent, if the options ask for it. Returns whether they do."""
    import msgspec

    from multimodal_eval.run.generation.model import generation_of, with_model
    from multimodal_eval.run.generation.preview import estimated, request_for
    from multimodal_eval.run.opening import planned

    if not params["dry_run"] and params["show_request"] is None:
        return False
    config = with_model(settings_of(params, generation=generation_settings(params)), None)
    has_judges = scores and bool(config.judges)
    if has_judges:
        config = with_judge_options(config, params)
    wants_metrics = scores and (params["dry_run"] or has_judges)  # a request needs none
    config = msgspec.structs.replace(config, skip_unavailable=True)  # nothing is scored, so no model is needed
    plan, source = planned(config, data, None, scores=wants_metrics)
    generation = generation_of(plan)
    assert generation is not None
    if params["show_request"] is not None:
        from multimodal_eval.generate.shown import as_json, show

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
    from multimodal_eval.run.opening import planned

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
    from multimodal_eval.generate.shown import show
    from multimodal_eval.run.judging.preview import UNKNOWN_ANSWER, questions_about

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
        yield f"To be fetched before the run: what {', '.join(plan.unavailable)} need (`mmeval fetch`)."


def _end() -> tuple[str, str]:
    from multimodal_eval.generate.estimate import RULE

    return f"Estimated by {RULE}.", "Nothing was sent."


class _Judged(NamedTuple):
    """What the judges would be asked, as lines and as JSON."""

    lines: list[str]
    content: dict[str, Any]


def _judged(plan: Plan, source: Input) -> _Judged:
    from multimodal_eval.run.judging.preview import estimated_questions

    judged = _Judged([], {})
    for estimate in estimated_questions(plan, source):
        config, entries = estimate.metric.config, []
        for number, each in enumerate(estimate.models):
            judged.lines.extend(["", f"judge          {estimate.metric.name}"])
            judged.lines.extend(_lines(config.generation(number), each, "`max_tokens` in its file", "--judge-prices"))
            entries.append(_content(config.generation(number), each))
        judged.content.setdefault("judges", {})[estimate.metric.name] = entries
    if judged.lines and plan.config.generation is not None:
        judged.lines.append("The answers that are judged are not known yet: their tokens are not in these numbers.")
    return judged


def _content(config: GenerationConfig, estimate: Estimate) -> dict[str, Any]:
    from dataclasses import asdict

    from multimodal_eval.generate.estimate import RULE

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
    from multimodal_eval.generate.prices import cost_of

    if config.price is None:
        return None
    most = estimate.most_output_tokens
    output = None if most is None else cost_of(config.price, 0, most)
    return cost_of(config.price, estimate.input_tokens, 0), output


def _lines(
    config: GenerationConfig, estimate: Estimate, limit: str = "--max-tokens N", prices: str = "--prices"
) -> Iterator[str]:
    from multimodal_eval.generate.prices import money
    from multimodal_eval.generate.shown import size

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
        yield f"cost           unknown; {prices} FILE names the prices"
    else:
        assert config.price is not None
        currency, (entered, left) = config.price.currency, costs
        if left is None:
            yield f"cost           about {money(entered, currency)} for the input; the output is not limited"
        else:
            whole = money(entered + left, currency)
            yield f"cost           at most about {whole}: {money(entered, currency)} for the input"
