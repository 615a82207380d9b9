"""`mmeval leaderboard`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from multimodal_eval.cli.clarity import column_options, columns_of
from multimodal_eval.cli.dialogue import contest_of, contest_options
from multimodal_eval.cli.finish import print_result
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import (
    Command,
    MetricOption,
    RunLocation,
    options_by_metric,
    overwrite_option,
    progress_bar,
    refuse_overwrite_alone,
    result_format_option,
)
from multimodal_eval.display.blocks import Block, Finding, Text

if TYPE_CHECKING:
    from multimodal_eval.analysis.failures import Choice
    from multimodal_eval.analysis.leaderboard import Leaderboard
    from multimodal_eval.contests.submissions import Contest
    from multimodal_eval.report.site.folder import SiteFolder


# A command that remembers how it was called, so that others can repeat it.


_KEY = "multimodal_eval.arguments"
# Where results go and how fast, not what they are.
_UNIMPORTANT = {"output", "overwrite", "workers", "site", "title", "site_samples", "format_", "runs"}


class Recorded(LayeredCommand):
    """A command that keeps its arguments as they were written."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them."""
        ctx.meta[_KEY] = list(args)
        return super().parse_args(ctx, args)


def repeatable(context: click.Context) -> str:
    """The command line without what does not change the results, and without folders of this machine."""
    command = context.command
    parser = command.make_parser(context)
    values, _, order = parser.parse_args(args=list(context.meta[_KEY]))
    words = ["mmeval", context.info_name or command.name or ""]
    for parameter in sorted(dict.fromkeys(order), key=lambda each: not isinstance(each, click.Argument)):
        name = parameter.name or ""
        given = values.get(name)
        if name in _UNIMPORTANT or not given:
            continue
        option = [] if isinstance(parameter, click.Argument) else [parameter.opts[0]]
        for value in given if isinstance(given, list) else [given]:
            words += option if getattr(parameter, "is_flag", False) else [*option, quote(_without_folder(str(value)))]
    return " ".join(words)


def _without_folder(text: str) -> str:
    path = PurePath(text)
    return path.name if path.is_absolute() and path.name else text


# `mmeval leaderboard --site`: the leaderboard as pages, from submissions or from runs that are scored already.


_WITH_STORED_RUNS = {"runs", "site", "title", "site_samples", "format_"}  # parameters that --from goes with
LONGEST_TITLE = 200  # characters


def site_options(command: Command) -> Command:
    """Options of the site."""
    for option in (
        click.option(
            "--site-samples", is_flag=True, help="Publish samples too, with answers, REFERENCES and the full reasons."
        ),
        click.option("--title", help="The title of the site. Default: Leaderboard."),
        click.option(
            "--site",
            type=click.Path(path_type=Path),
            help="Write the leaderboard as pages into this folder: a new or empty one, or a site to replace.",
        ),
        click.option(
            "--from",
            "runs",
            type=RunLocation(),
            help="Instead of GOLD SUBMISSIONS: show the leaderboard in this folder of runs again, or a suite's table, "
            "without scoring.",
        ),
    ):
        command = option(command)
    return command


def require_one_source(context: click.Context) -> None:
    """Either GOLD and SUBMISSIONS, or --from with nothing that would change the scores."""
    params = context.params
    if params["runs"] is None:
        missing = next((name for name in ("gold", "submissions") if params[name] is None), None)
        if missing is not None:
            raise click.UsageError(f"Missing argument '{missing.upper()}'. Or name a folder of scored runs with --from")
        return
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in _WITH_STORED_RUNS or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        shown = name.upper() if isinstance(parameter, click.Argument) else parameter.opts[-1]
        raise click.UsageError(f"{shown} has no effect with --from, which scores nothing")


def site_folder(params: dict[str, Any]) -> SiteFolder | None:
    """The folder of the site, if it can be written to."""
    if params["site"] is None:
        for name in ("title", "site_samples"):
            if params[name]:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --site, the folder of the pages")
        return None
    if params["title"] is not None and not 0 < len(params["title"].strip()) <= LONGEST_TITLE:
        raise click.UsageError(f"--title must have 1 to {LONGEST_TITLE} characters")
    site, output = params["site"], params["output"]
    if isinstance(output, Path) and site.resolve() == output.resolve():
        raise click.UsageError(f"-o and --site name the same folder, {site}. Runs hold the references: keep them apart")
    from multimodal_eval.report.site.folder import SiteFolder

    return SiteFolder(site)


def stored_board(runs: Any) -> Leaderboard:
    """The leaderboard in a folder of runs."""
    from multimodal_eval.analysis.leaderboard import read_leaderboard

    return read_leaderboard(runs)


def publish(folder: SiteFolder, runs: Any, board: Leaderboard, params: dict[str, Any]) -> None:
    """Write the site, and say which page to open first."""
    from multimodal_eval.report.site.build import TITLE, write_site

    with progress_bar("files") as progress:
        write_site(
            folder,
            runs,
            board,
            title=(params["title"] or TITLE).strip(),
            with_samples=params["site_samples"],
            progress=progress,
        )
    click.echo(f"site: {folder.path / 'index.html'}", err=params["format_"] != "table")
    if params["site_samples"]:
        click.echo("the site shows samples with their references: do not publish it while the task is open", err=True)


def _is_suite(runs: Any) -> bool:
    """Whether a folder has a suite: its file, or runs in MODEL/TASK, and no leaderboard."""
    from multimodal_eval.analysis.leaderboard import RESULT
    from multimodal_eval.data.runs.run_folder import run_folders
    from multimodal_eval.data.runs.storage import storage_at
    from multimodal_eval.data.runs.suite_folder import SUITE

    storage = storage_at(runs)
    if storage.exists(RESULT):
        return False
    return storage.exists(SUITE) or any("/" in name for name, _ in run_folders(runs))


def _show_suite(params: dict[str, Any], site: SiteFolder | None) -> None:
    """The table of a suite, and its site."""
    from multimodal_eval.analysis.suite import suite

    if params["site_samples"]:
        raise click.UsageError("--site-samples has no effect on a suite, whose site has no samples")
    table = suite(params["runs"])
    print_result(table, params["format_"], table.to_dict)
    if site is not None:
        from multimodal_eval.report.build import TITLE, write_suite_site

        write_suite_site(site, table, (params["title"] or TITLE).strip())
        click.echo(f"site: {site.path / 'index.html'}", err=params["format_"] != "table")


SHOWN_NOTES = 10  # lines about single submissions


def _notes(board: Leaderboard, path: Any) -> Iterator[Block]:
    """The notes that all runs have: those about the gold data. Then those about the input of single submissions."""
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.data.runs.storage import below

    runs = [Run(below(path, row.name)) for row in board.standings]
    first, *others = ([*run.outcome.notes, *run.info.input_notes] for run in runs)
    shared = [line for line in first if all(line in lines for lines in others)]
    by_run = ((run.folder.name, line) for run in runs for line in run.info.input_notes if line not in shared)
    individual = [f"{name}: {line}" for name, line in by_run]
    yield from map(Finding, [*shared, *individual[:SHOWN_NOTES]])
    if len(individual) > SHOWN_NOTES:
        yield Text(f"  … {len(individual) - SHOWN_NOTES:,} more: see {path}")
    yield Text(f"runs: {path}")


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
@click.option("--metrics", help="For other data: cider_d,bleu. Default: the task's.")
@click.option("--option", "options", type=MetricOption(), multiple=True, help="An option of a metric.")
@click.option("--by", help="The metric to rank by. Default: the headline, which is the composite if there is one.")
@click.option("-o", "--output", type=RunLocation(), help="Folder or URL of the runs. Default: below runs/.")
@overwrite_option
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
@result_format_option
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

    require_one_source(context)
    refuse_overwrite_alone(params)
    site = site_folder(params)  # before anything is scored
    if params["runs"] is not None and _is_suite(params["runs"]):
        _show_suite(params, site)
        return
    if params["runs"] is not None:
        board, path = stored_board(params["runs"]), params["runs"]
    else:
        assert gold is not None
        assert submissions is not None
        board, path = _scored(gold, submissions, context, params)
    print_result(board, params["format_"], lambda: {**board.to_dict(), "runs": str(path)}, _notes(board, path))
    if site is not None:
        publish(site, path, board, params)
    if board.refused and params["runs"] is None:
        raise click.exceptions.Exit(1)


def _scored(gold: Path, submissions: Path, context: click.Context, params: dict[str, Any]) -> tuple[Leaderboard, Any]:
    """Score and rank all submissions; gives also the folder of their runs."""
    from multimodal_eval.analysis.leaderboard import leaderboard as ranked
    from multimodal_eval.analysis.leaderboard import metric_to_rank_by
    from multimodal_eval.contests.submissions import score_all, skipped_entries, submissions_in
    from multimodal_eval.run.start import new_folder

    contest, by = _contest(gold, params)
    by = metric_to_rank_by(contest.numbers, by)  # before anything is scored
    accepted = submissions_in(submissions, contest.accepts)
    if skipped := skipped_entries(submissions, contest.accepts):
        click.echo(f"skipped, not a submission of this kind: {', '.join(skipped)}", err=True)
    path = params["output"] or new_folder("leaderboard")
    with progress_bar() as progress:
        names, refused = score_all(
            accepted, contest, path, workers=params["workers"], progress=progress, overwrite=params["overwrite"]
        )
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
