"""`mmeval validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.finish import print_blocks
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import (
    RESULT_FORMATS,
    Params,
    annotators_option,
    data_format_option,
    empty_option,
    input_options,
    progress_bar,
    questions_option,
    task_options,
)
from multimodal_eval.core.display import counted
from multimodal_eval.display.blocks import Block, Finding, Row, Table, Text

_SHOWN_COLUMNS = 100


@click.command(cls=LayeredCommand)
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("predictions", required=False, type=click.Path(path_type=Path))
@empty_option
@annotators_option
@questions_option
@data_format_option(RESULT_FORMATS)
@input_options
@task_options
def validate(data: Path, predictions: Path | None, limit: int | None, **params: Any) -> None:
    """Check DATA (and PREDICTIONS) as `score` does, and list the problems by kind.

    Each is a file, a folder of files, or a pattern in quotes: 'part-*.jsonl'. DATA may also be a task file (YAML), or a
    recipe: its name or its folder. Without --data, a recipe is checked by its own sample and goldens.
    """
    from multimodal_eval.benchmarks.recipes import find_recipe

    if params["task_data"] is None and predictions is None and find_recipe(data) is not None:
        _check_recipe(data, params["format_"])
        return
    from multimodal_eval.data.logs.recognised import is_dataset
    from multimodal_eval.data.readers import limits
    from multimodal_eval.data.readers.column_names import peeked
    from multimodal_eval.data.readers.inputs import FileInput
    from multimodal_eval.data.readers.problems import Problems
    from multimodal_eval.data.readers.records import parse_map
    from multimodal_eval.data.readers.summary import Summary, refuse_empty
    from multimodal_eval.run.nothing_scored import missing_answers, missing_references, refuse_missing_answers

    given = data
    data, columns, log = _task_data(data, params)
    annotators = tuple(part.strip() for part in (params["annotators"] or "").split(",") if part.strip())
    mapped, questions = parse_map(columns), params["questions"]
    source = FileInput(
        data, predictions, mapped, params["allow_partial"], annotators, questions, params["log_format"] or log
    )
    problems, summary = Problems(), Summary()
    with limits.using(params["max_expansion"], params["max_record_mb"]), progress_bar() as progress:
        for _ in source.check(problems, summary, limit):
            progress("reading", summary.samples, None)
    problems.raise_if_any()
    refuse_empty(summary, str(data))
    firsts = [files.files[0] for files in (source.data_files, source.prediction_files) if files is not None]
    kinds = {column: kind for first in firsts for column, kind in peeked(first.path, first.log).items()}
    # A dataset and a task are meant to be answered by a model: that no answers are there is not an error.
    to_answer = predictions is None and (given != data or is_dataset(firsts[0].log))
    if not params["allow_empty"] and not to_answer:
        refuse_missing_answers(summary.fields, kinds)
    where = f" in {len(source.files):,} files" if len(source.files) > 1 else ""
    blocks: list[Block] = [Text(f"{counted(summary.samples, 'sample')}{where}, no problems", tone="strong")]
    # An id in both files is one id.
    rows = [Row([field, f"{min(count, summary.samples):,}"]) for field, count in summary.fields.items()]
    blocks.append(Table(["field", "samples"], rows))
    if summary.metadata:
        names = sorted(summary.metadata)
        more = f", … ({len(names):,} in total)" if len(names) > _SHOWN_COLUMNS else ""
        blocks.append(Text(f"metadata columns: {', '.join(names[:_SHOWN_COLUMNS])}{more}"))
    if summary.blank_answers:
        blank = "blank answers: they get each metric's worst value"
        blocks.append(Finding(blank, count=summary.blank_answers, total=summary.samples))
    notes = [missing_answers(summary.fields, str(given)) if to_answer else None]
    notes.append(missing_references(summary.fields, kinds))
    print_blocks([*blocks, *map(Finding, [*summary.notes, *filter(None, notes)])], params["format_"])


def _check_recipe(name: Path, format_: str) -> None:
    """Check a recipe by its sample and its goldens; exit 1 if something is wrong with it."""
    from multimodal_eval.run.recipe_checks import check_recipe

    checked = check_recipe(name)
    counts = f"{checked.questions:,} questions, {checked.goldens:,} goldens, {checked.verdicts:,} verdicts"
    end = "with problems" if checked.faults else "no problems"
    blocks: list[Block] = [Text(f"{checked.recipe.name}: {counts}, {end}", tone="strong")]
    print_blocks([*blocks, *map(Finding, checked.faults)], format_)
    if checked.faults:
        raise click.exceptions.Exit(1)


def _task_data(data: Path, params: Params) -> tuple[Path, dict[str, str], str | None]:
    """The data, columns and format of a task file; other data as they are."""
    from multimodal_eval.cli.running import refuse_task_data
    from multimodal_eval.run.config import is_task_file, merged_columns
    from multimodal_eval.run.task_files import open_task

    columns = dict(params["mapping"])
    if not is_task_file(data):
        if params["task_data"] is not None:
            refuse_task_data(data)
        return data, columns, None
    task = open_task(
        data,
        task_data=params["task_data"],
        allow_outside=params["allow_outside"],
        allow_partial=params["allow_partial"],
    )
    return task.data, merged_columns(task.settings["map"], columns), task.settings["format"]
