"""`mmeval leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.clarity import column_options, columns_of
from multimodal_eval.cli.dialogue_options import contest_of, contest_options
from multimodal_eval.cli.leaderboard_site import (
    publish,
    require_one_source,
    site_folder,
    site_options,
    stored_board,
)
from multimodal_eval.cli.options import MetricOption, RunLocation, format_option, options_by_metric
from multimodal_eval.cli.recorded_command import Recorded, repeatable

if TYPE_CHECKING:
    from multimodal_eval.analysis.failures import Choice
    from multimodal_eval.analysis.leaderboard import Leaderboard
    from multimodal_eval.contests.protocol import Contest

WHAT = {"dialogue": "dialogues", "clarity": "CLARITY's data", "samples": "samples"}
_DEFAULTS = {"failed_answers": "worst"}
CLARITY_FIELDS = {"clarity_label", "evasion_label", "clarity_pred", "evasion_pred"}  # names in --map
# Options that would have no effect, by kind of gold.
_EVERY_ANSWER = ("failed_answers",)  # these contests refuse a submission without a score for every sample
_DIALOGUE_OPTIONS = ("questions", "weights", "rule", "language", "synonyms", "present_types_only")
UNFIT = {
    "dialogue": ("metrics", "task", "options", "mapping", "annotators", *_EVERY_ANSWER),
    "clarity": (*_DIALOGUE_OPTIONS, "options", "config", "plugins", *_EVERY_ANSWER),
    "samples": _DIALOGUE_OPTIONS,
}


class FailedAnswers(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """`worst`, `blank`, `left-out`, or a value."""

    name = "rule"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Choice:
        """The choice; a value becomes a number."""
        if value in ("worst", "blank", "left-out"):
            choice: Choice = value
            return choice
        try:
            return float(value)
        except ValueError:
            self.fail(f"must be worst, blank, left-out or a value of the metric. Got {value!r}.", param, ctx)


@click.command(cls=Recorded, short_help="Rank submissions against one gold file, with intervals and ties.")
@click.argument("gold", type=click.Path(path_type=Path), required=False)
@click.argument("submissions", type=click.Path(path_type=Path), required=False)
@click.option("--task", help="clarity or evasion (default) for CLARITY; captioning, vqa … for other data.")
@click.option("--metrics", help="For other data: cider,bleu. Default: the task's.")
@click.option("--option", "options", type=MetricOption(), multiple=True, help="An option of a metric.")
@click.option("--by", help="The metric to rank by. Default: the headline, which is the composite if there is one.")
@click.option("-o", "--output", type=RunLocation(), help="Folder or URL of the runs. Default: below runs/.")
@contest_options
@column_options
@click.option(
    "--failed-answers",
    type=FailedAnswers(),
    default="worst",
    help="What a failed answer (none, an error message) counts as: the metric's worst value (default), a number, a "
    "blank answer (blank), or nothing: left-out removes its sample for all.",
)
@click.option("--allow-partial", is_flag=True, help="Also rank submissions that lack ids: these are failed answers.")
@click.option("--workers", type=click.IntRange(1), help="Processes. Default: one per core.")
@site_options
@format_option
@click.pass_context
def leaderboard(context: click.Context, /, gold: Path | None, submissions: Path | None, **params: Any) -> None:
    """Rank submissions against one gold file, with intervals and ties; each submission becomes a run.

    The content of GOLD determines what a submission is. For dialogues of the contest, SUBMISSIONS has one folder per
    submission with output.json and ppl_output.json, or one zip of both; for CLARITY's data, one table or zip of
    predictions; for other data (a COCO annotation file, or samples with references), one file of answers, joined by id.

    Places 1, 2, 3 … are by score. Beside each is shown with which places it is tied, because the difference may be due
    to chance. A refused submission is listed with the reason and has no place; the exit code is then 1.

    Only ids and answers of a submission are read. An answer that failed counts as the worst value, and the board says
    who failed how often. To leave samples out, remove them from GOLD.

    With --site, the leaderboard also becomes a folder of pages for any file host. No page shows answers, references or
    ids of samples, unless --site-samples is given.
    """
    from multimodal_eval.cli.leaderboard_table import show_board

    require_one_source(context)
    site = site_folder(params)  # before anything is scored
    if params["runs"] is not None:
        board, path = stored_board(params["runs"]), params["runs"]
    else:
        assert gold is not None
        assert submissions is not None
        board, path = _scored(gold, submissions, context, params)
    if params["format_"] == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json({**board.to_dict(), "runs": str(path)}).decode(), nl=False)
    else:
        show_board(board, path)
    if site is not None:
        publish(site, path, board, params)
    if board.refused and params["runs"] is None:
        raise click.exceptions.Exit(1)


def _scored(gold: Path, submissions: Path, context: click.Context, params: dict[str, Any]) -> tuple[Leaderboard, Any]:
    """Score and rank all submissions; gives also the folder of their runs."""
    from multimodal_eval.analysis.leaderboard import leaderboard as ranked
    from multimodal_eval.analysis.leaderboard import metric_to_rank_by
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.contests.submissions import score_all, skipped_entries, submissions_in
    from multimodal_eval.run.opening import timed_folder

    contest, by = _contest(gold, params)
    by = metric_to_rank_by(contest.numbers, by)  # before anything is scored
    accepted = submissions_in(submissions, contest.accepts)
    if skipped := skipped_entries(submissions, contest.accepts):
        click.echo(f"skipped, not a submission of this kind: {', '.join(skipped)}", err=True)
    path = params["output"] or timed_folder("leaderboard")
    with progress_bar() as progress:
        names, refused = score_all(accepted, contest, path, workers=params["workers"], progress=progress)
    partial, command, failed = params["allow_partial"], repeatable(context), params["failed_answers"]
    return ranked(path, names, refused, by=by, allow_partial=partial, command=command, failed_answers=failed), path


def _contest(gold: Path, params: dict[str, Any]) -> tuple[Contest, str | None]:
    """The contest that scores the submissions, and the metric that ranks them."""
    from multimodal_eval.analysis.leaderboard import metric_to_rank_by
    from multimodal_eval.contests.clarity.contest import ClarityContest
    from multimodal_eval.contests.submissions import SampleContest, kind_of
    from multimodal_eval.run.config import overlaid

    mapping, by = dict(params["mapping"]), params["by"]
    kind = "clarity" if CLARITY_FIELDS & mapping.keys() else kind_of(gold)
    if kind == "clarity" and (params["metrics"] or params["task"] not in (None, "clarity", "evasion")):
        kind = "samples"
    unfit = next((name for name in UNFIT[kind] if params[name] and params[name] != _DEFAULTS.get(name)), None)
    if unfit is not None:
        singular = {"weights": "weight", "options": "option", "plugins": "plugin", "mapping": "map"}
        option = singular.get(unfit, unfit.replace("_", "-"))
        raise click.UsageError(f"--{option} has no effect on {gold}, which is scored as {WHAT[kind]}")
    if kind == "dialogue":
        return contest_of(gold, params, skip_lint=True), by
    if kind == "clarity":
        return ClarityContest(gold, params["task"] or "evasion", columns=columns_of(params)), by
    config = overlaid(
        params["config"],
        task=params["task"],
        metrics=params["metrics"],
        options=options_by_metric(params["options"]),
        plugins=list(params["plugins"]) or None,
        allow_partial=params["allow_partial"],
        map=mapping or None,
        annotators=params["annotators"],
        skip_lint=True,
    )
    contest = SampleContest(gold, config)
    by = metric_to_rank_by(contest.numbers, by or contest.headline)
    contest.require_rule(by, params["failed_answers"])
    return contest, by
