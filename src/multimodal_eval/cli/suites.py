"""`mmeval run --suite`: every benchmark of a suite, each in a run folder of its own below one folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.options import Params


def run_suite(name: str, params: Params, run_one: Callable[[str, Params], Any]) -> None:
    """Run the benchmarks of a suite. What is done is left alone, and one that fails does not stop the others.

    `run_one` runs a benchmark with the parameters of the command. `--data DIR` has a folder for each, by its name.
    """
    from multimodal_eval.benchmarks.suites import suite
    from multimodal_eval.core.errors import MultimodalEvalError
    from multimodal_eval.data.runs.suite_folder import member_folder
    from multimodal_eval.run.opening import new_folder

    members = suite(name)
    folder = Path(params["output"] or new_folder(Path(name).stem))
    failed = []
    for member in members:
        label = Path(member).parent.name if Path(member).name == "recipe.yaml" else Path(member).stem
        place = Path(str(member_folder(folder, label)))
        if _is_done(place) and not params["overwrite"]:
            click.echo(f"{label}: already in {place}", err=True)
            continue
        changes = {**params, "output": place}
        if params["task_data"] is not None:
            changes["task_data"] = params["task_data"] / label
        click.echo(f"{label}:", err=True)
        try:
            run_one(member, changes)
        except MultimodalEvalError as error:
            click.echo(f"error: {label}: {error}", err=True)
            failed.append(label)
    click.echo(
        f"{len(members) - len(failed)} of {len(members)} benchmarks are in {folder}. Compare: mmeval table {folder}"
    )
    if failed:
        click.echo(f"! failed: {', '.join(failed)}. The same command continues with them", err=True)
        raise click.exceptions.Exit(1)


def _is_done(place: Path) -> bool:
    """Whether a run was finished there. One that was interrupted is started again, with cached answers."""
    from multimodal_eval.data.runs.run_folder import RunFolder

    return (place / "run.json").is_file() and RunFolder(place).read_info().finished is not None
