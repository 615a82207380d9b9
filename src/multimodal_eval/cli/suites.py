"""`mmeval run` of several models, or of the benchmarks of a suite: a run folder for each, below one folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from multimodal_eval.cli.finish import print_blocks
from multimodal_eval.cli.options import Params, progress_bar
from multimodal_eval.cli.run import fresh, opened, show_finished
from multimodal_eval.cli.running import shown_preview
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import JsonObject
from multimodal_eval.run.config import load_config, merged_generation

Shown = Callable[[Any, Params], None]


@dataclass(frozen=True, eq=False)
class _Member:
    """A run of the suite."""

    label: str  # its folder: BENCHMARK, MODEL, or MODEL/BENCHMARK
    model: str | None  # its row of the table, if the models were named
    task: str
    data: Any
    params: Params
    probe: str = ""  # what is changed in the samples

    @property
    def place(self) -> Path:
        """Its folder."""
        return Path(self.params["output"])

    @property
    def is_done(self) -> bool:
        """Whether it has finished. One that was interrupted is started again, with cached answers."""
        from multimodal_eval.data.runs.run_folder import RunFolder

        return (self.place / "run.json").is_file() and RunFolder(self.place).read_info().finished is not None


def run_suite(suite: str | None, data: Any, params: Params, *, scores: bool) -> None:
    """Run all models on all benchmarks. What is done is left alone, and a run that fails does not stop the others.

    The models of a benchmark are asked at the same time. `--data DIR` has a folder for each benchmark of a suite, by
    its name.
    """
    from multimodal_eval.run.generation import named_models
    from multimodal_eval.run.start import file_name, new_folder

    named = params["model"] if isinstance(params["model"], tuple) else ()
    models = named_models(named)
    if named and (params["batch_out"] or params["batch_in"]):
        raise click.UsageError("a batch is that of one model: --model PROVIDER:NAME")
    folder = Path(params["output"] or new_folder(Path(suite).stem if suite is not None else file_name(data)))
    is_suite, probes = suite is not None, params["probes"]
    named = named or probes
    every: list[_Member] = []
    failed: list[str] = []
    for task, benchmark in _tasks(suite, data).items():
        members = list(_members(folder, task, benchmark, params, models, is_suite=is_suite))
        if "caption" in probes and not (params["dry_run"] or params["show_request"] is not None):
            failed += _run([_captioning(member) for member in members], _checked, scores=False)
        members = [probed for member in members for probed in _probed(member, probes)]
        every += members
        if params["dry_run"] or params["show_request"] is not None:
            for member in members:
                shown_preview(*opened(member.data, member.params, scores=scores), scores=scores)
        else:
            failed += _run(members, _checked if named else show_finished, scores=scores)
    if params["dry_run"] or params["show_request"] is not None:
        return
    is_scored = not named or (_show_probes(every, params) if probes else _show_table(folder, every, params))
    of_all = f"{len(every) - len(failed)} of {len(every)} {'runs' if named else 'benchmarks'} are in {folder}"
    following = f"Compare: mmeval table {folder}" if is_scored else f"Score them: mmeval score {every[0].place}"
    click.echo(f"{of_all}. {following}", err=params["format_"] != "table")
    if failed:
        folder_named = "" if params["output"] else f" with -o {folder}"
        click.echo(f"! failed: {', '.join(failed)}. The same command{folder_named} continues with them", err=True)
        raise click.exceptions.Exit(1)


def _tasks(suite: str | None, data: Any) -> dict[str, Any]:
    """The columns of the table, and the data of each."""
    from multimodal_eval.benchmarks.suites import suite as members_of
    from multimodal_eval.run.start import file_name

    if suite is None:
        return {file_name(data): data}
    paths = {member: Path(member) for member in members_of(suite)}
    return {path.parent.name if path.name == "recipe.yaml" else path.stem: member for member, path in paths.items()}


def _members(
    folder: Path, task: str, data: Any, params: Params, models: Mapping[str, JsonObject], *, is_suite: bool
) -> Iterator[_Member]:
    """The runs on a benchmark."""
    from multimodal_eval.data.runs.suite_folder import folder_name, member_folder

    data_folder = params["task_data"] / task if is_suite and params["task_data"] is not None else params["task_data"]
    for model, settings in models.items() or [(None, {})]:
        label = "/".join([*([] if model is None else [folder_name(model)]), *([task] if is_suite else [])])
        place = Path(str(member_folder(folder, label))) if label else folder
        changes = {**params, "output": place, "task_data": data_folder}
        if model is not None:
            changes |= {"model": settings["model"], "config": _with_settings(params["config"], settings)}
        yield _Member(label, model, task, data, changes)


def _with_settings(config: Any, settings: JsonObject) -> JsonObject:
    """The configuration of a run with the settings of its model; options of the command replace both."""
    content: JsonObject = msgspec.to_builtins(load_config(config, settings["model"]))
    return {**content, "generation": merged_generation(content.get("generation", {}), settings)}


def _probed(member: _Member, probes: Sequence[str]) -> Iterator[_Member]:
    """The run, and one for each probe."""
    if not probes:
        yield member
        return
    for probe in ("", *probes):
        settings = {"probe": probe} if probe else {}
        settings |= {"captions": str(member.place / "captions")} if probe == "caption" else {}
        yield _with_generation(member, probe or "plain", settings, probe)


def _captioning(member: _Member) -> _Member:
    """The run whose answers are captions, for the probe that replaces the image by one."""
    captioning = _with_generation(member, "captions", {"prompt": "caption"}, "captions")
    return replace(captioning, params={**captioning.params, "prompt": None})


def _with_generation(member: _Member, name: str, settings: JsonObject, probe: str) -> _Member:
    params = {**member.params, "output": member.place / name}
    if settings:
        config = msgspec.to_builtins(load_config(params["config"], params["model"]))
        params["config"] = {**config, "generation": merged_generation(config.get("generation", {}), settings)}
        if "model" not in params["config"]["generation"]:
            params["config"]["generation"]["model"] = params["model"]
    return replace(member, label=f"{member.label}/{name}".lstrip("/"), params=params, probe=probe)


def _run(members: Sequence[_Member], shown: Shown, *, scores: bool) -> list[str]:
    """Run models on a benchmark at the same time. Returns the labels of those that failed."""
    from multimodal_eval.cli.finish import shown_if_partly_scored
    from multimodal_eval.cli.model_options import shown_if_written
    from multimodal_eval.core.errors import MultimodalEvalError

    failed, jobs = [], dict[_Member, Callable[[Progress | None], Any]]()
    for member in members:
        if member.is_done and not member.params["overwrite"]:
            click.echo(f"{member.label}: already in {member.place}", err=True)
            continue
        click.echo(f"{member.label}:", err=True)
        try:
            data, params = opened(member.data, member.params, scores=scores)
            params = {**params, "overwrite": params["overwrite"] or member.place.exists()}
            jobs[replace(member, params=params)] = partial(fresh, data, params, scores=scores)
        except MultimodalEvalError as error:
            failed.append(_told(member, error))
    for member, finished in zip(jobs, _finished(list(jobs.values())), strict=True):
        try:
            with shown_if_partly_scored(member.params), shown_if_written(member.params):
                if isinstance(finished, BaseException):
                    raise finished
                shown(finished, member.params)
        except MultimodalEvalError as error:
            failed.append(_told(member, error))
    return failed


def _told(member: _Member, error: Exception) -> str:
    click.echo(f"error: {member.label}: {error}", err=True)
    return member.label


def _finished(jobs: Sequence[Callable[[Progress | None], Any]]) -> Sequence[Any]:
    """What the runs return, or the errors that end them."""
    from multimodal_eval.core.errors import MultimodalEvalError
    from multimodal_eval.core.progress import joined
    from multimodal_eval.generate.engine import in_one_loop

    if len(jobs) > 1:
        with progress_bar() as line:
            reports = joined(line, len(jobs))
            return in_one_loop([partial(job, report) for job, report in zip(jobs, reports, strict=True)])
    try:
        return [job(None) for job in jobs]
    except MultimodalEvalError as error:
        return [error]


def _checked(finished: Any, params: Params) -> None:
    """Write the report of one run of several models, and check it against the limits."""
    from multimodal_eval.cli.finish import check_thresholds
    from multimodal_eval.cli.report import write_report

    if finished.info.has_metrics:
        if params["jsonl"]:
            finished.write_jsonl()
        write_report(finished, enabled=params["wants_report"])
        check_thresholds(finished, params)


def _show_probes(members: Sequence[_Member], params: Params) -> bool:
    """Print what the probes show of each model and benchmark."""
    from multimodal_eval.analysis.probes import probed
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.display.of_generation import probe_blocks

    content: JsonObject = {}
    blocks: list[Any] = []
    groups: dict[Path, dict[str, Run]] = {}
    for member in members:
        if member.is_done:
            groups.setdefault(member.place.parent, {})[member.probe] = Run(member.place)
    for place, runs in groups.items():
        if (plain := runs.pop("", None)) is not None and runs:
            result = probed(plain, cast("Any", runs))
            content[str(place)] = result.to_dict()
            generation = plain.info.config.generation
            blocks += probe_blocks(result, place.name if generation is None else generation.model)
    print_blocks(blocks, params["format_"], lambda: content)
    return bool(content)


def _show_table(folder: Path, members: Sequence[_Member], params: Params) -> bool:
    """Note the names of the models, and print one table of all runs with scores. Returns whether there are any."""
    from multimodal_eval.analysis.suite import suite
    from multimodal_eval.data.runs.suite_folder import SuiteEntry, SuiteModel, SuiteRecord, SuiteTask, write_suite
    from multimodal_eval.display.of_suite import suite_table_blocks

    done = [member for member in members if member.is_done]
    if not done:
        return False
    write_suite(
        folder,
        SuiteRecord(
            models=[SuiteModel(name=name) for name in dict.fromkeys(str(member.model) for member in done)],
            tasks=[SuiteTask(name=name) for name in dict.fromkeys(member.task for member in done)],
            runs=[SuiteEntry(path=member.label, model=str(member.model), task=member.task) for member in done],
        ),
    )
    table = suite(folder)
    print_blocks(suite_table_blocks(table), params["format_"], table.to_dict)
    return True
