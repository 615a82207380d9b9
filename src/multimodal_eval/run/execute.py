"""Execute a plan in a run folder, new or unfinished: read the input in parts, fit, score, aggregate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain

import msgspec

from multimodal_eval.analysis.slices import ColumnsSeen
from multimodal_eval.core.errors import MultimodalEvalError, OpenSamplesError, RetryableError, RunFolderError
from multimodal_eval.core.metric_failures import blamed_on
from multimodal_eval.core.progress import Progress, counting, named, silent
from multimodal_eval.core.records import RUN_FORMAT, Counts, ImportInfo, InputFile, RunInfo
from multimodal_eval.data.readers import limits
from multimodal_eval.data.readers.inputs import FileInput, Input
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary, refuse_empty
from multimodal_eval.data.runs.grants import foreign_judges
from multimodal_eval.data.runs.own_runs import remember
from multimodal_eval.data.runs.part_writer import PartWriter
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.description import describe, described_metrics, now
from multimodal_eval.run.engine.base import Crashed, Executor, refuse_crashed
from multimodal_eval.run.generation.answer_parts import JOURNAL, resuming
from multimodal_eval.run.generation.arrangement import arranged, arranged_again
from multimodal_eval.run.generation.metered import is_refused
from multimodal_eval.run.generation.step import Generation, refuse_remote
from multimodal_eval.run.generation.until import settled_until, stopper_of
from multimodal_eval.run.grouping import refuse_missing_keys
from multimodal_eval.run.human import refuse_bad_labels
from multimodal_eval.run.incomplete import refuse_incomplete, refuse_open
from multimodal_eval.run.isolation import has_died, noting_death, score_without_crashes
from multimodal_eval.run.nothing_scored import refuse_missing_fields, refuse_unscored
from multimodal_eval.run.parallel import ReadInput, read_in_parallel
from multimodal_eval.run.part import OpenPart, States, Stored, Worker
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.recorded_progress import recorded
from multimodal_eval.run.sample_checks import refuse_bad_samples
from multimodal_eval.run.signatures import signatures
from multimodal_eval.run.sums import TreeSum


def start(
    plan: Plan,
    source: Input,
    location: Location,
    executor: Executor | None = None,
    progress: Progress = silent,
    *,
    is_durable: bool = True,
    overwrite: bool | None = None,
    generation: Generation | None = None,
    imported: ImportInfo | None = None,
) -> RunFolder:
    """Execute a run in a new folder. A refused input leaves no folder behind; `overwrite` is as in RunFolder.create.

    `generation` asks a model for the answers, which the input then need not have. `imported` describes the logs of
    another harness that the input is.
    """
    if generation is not None:
        refuse_remote(location)
    plan = settled_until(plan)
    info = msgspec.structs.replace(describe(plan, source.recipe()), input=_named_files(source), imported=imported)
    with (
        RunFolder.created(location, info, is_durable=is_durable, overwrite=overwrite) as folder,
        discarded_if_refused(folder),
        recorded(folder, progress) as report,
    ):
        remember(folder, info)
        _read_and_score(Worker(plan, folder), arranged(source, plan), executor or _local(), report, generation)
    return folder


def _named_files(source: Input) -> list[InputFile]:
    """The input files as they were named: a resumed run opens them by their absolute paths."""
    return [InputFile(path=str(path)) for path in source.paths] if isinstance(source, FileInput) else []


def continue_run(
    plan: Plan,
    source: Callable[[], Input | None],
    folder: RunFolder,
    executor: Executor | None = None,
    progress: Progress = silent,
    *,
    accept_open: bool = False,
    generation: Generation | None = None,
) -> None:
    """Continue a run from the state of its folder; committed parts are kept. `source` is opened only if needed."""
    from multimodal_eval.run.repair import repair

    executor, worker = executor or _local(), Worker(plan, folder, accept_open=accept_open)
    folder.clear_temporary()
    info = folder.read_info()
    source = arranged_again(source, plan, info)
    with recorded(folder, progress) as report:
        if info.state == "reading":
            worker.isolates = has_died(folder)
            opened = source()
            if opened is None:
                raise RunFolderError(f"{folder.label} was interrupted before its samples were stored. Start a new run")
            folder.clear_samples()
            _read_and_score(worker, opened, executor, report, generation)
            return
        info = repair(worker, info, source, executor, report)
        if info.state in ("generating", "generated", "judging"):
            _generate_and_score(worker, info, executor, report, generation)
        else:
            refuse_changed(worker, info)
            finish(worker, info, executor, report)


def _read_and_score(
    worker: Worker, source: Input, executor: Executor, progress: Progress, generation: Generation | None = None
) -> None:
    info = read_input(worker, source, executor, progress)
    worker.source = source
    if generation is not None:  # whatever can be refused is refused before anything is asked
        refuse_missing_fields(planned_for(worker, info), worker.folder, info, is_answered=False)
        refuse_bad_samples(worker, len(info.parts), executor)
        refuse_bad_labels(worker.plan, worker.folder, info)
        info = generation.begin(worker.folder, info)
    _generate_and_score(worker, info, executor, progress, generation)


def _generate_and_score(
    worker: Worker, info: RunInfo, executor: Executor, progress: Progress, generation: Generation | None
) -> None:
    if info.state == "generating":
        if generation is None:
            command = resuming(worker.folder, info)
            raise RunFolderError(f"{worker.folder.label} has samples without an answer. Continue with: {command}")
        stopper = stopper_of(worker, info)
        info = generation.answers(worker.folder, info, progress, accept_open=worker.accept_open, stopper=stopper)
    worker.folder.storage.remove(JOURNAL)  # a run that was killed at the end of its generation has one
    if worker.plan.names:  # without any, the run stops after the answers
        refused = foreign_judges(worker.folder, info, worker.plan.config)
        score_answers(worker, info, executor, progress, refused)


def score_answers(
    worker: Worker, info: RunInfo, executor: Executor, progress: Progress, refused: Collection[str] = ()
) -> None:
    """Score samples that are stored with their answers; `refused` is as in `judge_and_fit`."""
    finish(worker, judge_and_fit(worker, info, executor, progress, refused), executor, progress)


def judge_and_fit(
    worker: Worker, info: RunInfo, executor: Executor, progress: Progress, refused: Collection[str] = ()
) -> RunInfo:
    """Ask the judges of the run, then gather the corpus statistics. Whatever can be refused is refused first.

    `refused` are metrics whose judges only somebody else's run names.
    """
    refuse_bad_labels(worker.plan, worker.folder, info)
    if worker.plan.judges:
        from multimodal_eval.run.judging.step import judge

        refuse_missing_fields(planned_for(worker, info), worker.folder, info)
        refuse_bad_samples(worker, len(info.parts), executor)
        accept_open = worker.accept_open
        info = judge(worker.plan, worker.folder, info, progress, accept_open=accept_open, refused=refused)
    return fit(worker, info, executor, progress)


def _local() -> Executor:
    from multimodal_eval.run.engine.local import Local

    return Local()


def read_input(worker: Worker, source: Input, executor: Executor, progress: Progress) -> RunInfo:
    """Check the whole input and store its samples in parts, before anything is scored."""
    config = worker.plan.config
    with limits.using(config.max_expansion, config.max_record_mb):
        read = read_in_parallel(worker, source, executor, progress) or _read_here(worker, source, progress)
    summary = read.summary
    refuse_empty(summary, _name(source))
    read.columns.check_columns([*summary.fields, *summary.metadata])
    counts = Counts(summary.samples, summary.blank_answers, summary.unmatched_data, summary.unmatched_predictions)
    info = worker.folder.read_info()
    info = msgspec.structs.replace(
        info,
        input=_as_named(read.files or source.describe(), info.input),
        counts=counts,
        input_notes=summary.notes,
        parts=read.parts,
    )
    worker.folder.write_info(info)
    return info


def _as_named(files: list[InputFile], named: list[InputFile]) -> list[InputFile]:
    """The files with the names that they had when the run was started."""
    if len(files) != len(named):
        return files
    return [msgspec.structs.replace(file, path=name.path) for file, name in zip(files, named, strict=True)]


def _read_here(worker: Worker, source: Input, progress: Progress) -> ReadInput:
    """Read the input from start to end, in this process. All its problems are raised together."""
    plan, problems = worker.plan, Problems()
    read = ReadInput(Summary(), [], ColumnsSeen(plan.config), [])
    sizes, columns = read.parts, read.columns
    with PartWriter(worker.folder) as writer:
        for part in source.parts(problems, read.summary, plan.part_size, plan.config.limit):
            if columns.fields:
                columns.see(part.samples(columns.fields))
            if not problems.total:  # a refused input is not stored
                writer.write(len(sizes), part.table(sum(sizes)))
            sizes.append(len(part))
            progress("reading", sum(sizes), None)
    problems.raise_if_any()
    return read


def fit(worker: Worker, info: RunInfo, executor: Executor, progress: Progress) -> RunInfo:
    """Gather the corpus statistics, then store the signatures. After this the run can be resumed."""
    plan = planned_for(worker, info)
    if plan is not worker.plan:
        worker.plan = plan
        info = msgspec.structs.replace(info, **described_metrics(plan))
    folder, groups = worker.folder, worker.fitting
    refuse_missing_fields(worker.plan, folder, info)
    refuse_bad_samples(worker, len(info.parts), executor)
    if groups:
        with noting_death(worker):
            sums, large = _fitted(worker, info.parts, executor, progress)
        for name, metrics in groups.items():
            state = sums.get(name)
            if name in large:
                state = worker.united(name)
                if hasattr(state, "rows"):
                    state.rows = large[name]
            for metric in metrics if state is not None else ():
                with blamed_on(metric.name, "storing its corpus statistics", OSError):
                    metric.check_state(state)
                    folder.write_state(metric.name, partial(metric.save_state, state))
                if name in large:  # small ones are read back, as in every worker: plain values may lose their type
                    worker.keep_state(metric, state)
        folder.clear_scratch()
        if large:
            progress("merging", worker.buckets, worker.buckets)
    info = msgspec.structs.replace(info, state="scoring", signatures=signatures(worker))
    folder.record_checksums()
    folder.write_info(info)
    return info


def planned_for(worker: Worker, info: RunInfo) -> Plan:
    """The plan, without the metrics that need references if no sample has one."""
    plan = worker.plan
    return plan if not plan.extras or _has_references(worker.folder, info) else plan.without_extras()


def _has_references(folder: RunFolder, info: RunInfo) -> bool:
    """Whether a stored sample has a reference."""
    columns = ("references", "expected_answer", "caption")
    return any(folder.has_values("samples", part, columns) for part in range(len(info.parts)))


def _fitted(worker: Worker, sizes: list[int], executor: Executor, progress: Progress) -> tuple[States, dict[str, int]]:
    """The sums of small statistics by name, and the rows of large ones, whose buckets are summed in the folder."""
    sums: dict[str, TreeSum] = {}
    large: dict[str, int] = {}
    moved = _moved_buckets(worker, len(sizes), executor) if worker.groups else []
    results = chain(
        zip(sizes, executor.map(worker, "fit", range(len(sizes))), strict=True),
        ((0, states) for states in (executor.map(worker, "fit_moved", moved) if moved else ())),
    )
    done, total = 0, sum(sizes)
    for size, states in results:
        refuse_crashed(states, "gathering the corpus statistics")
        for name, state in states.items():
            if isinstance(state, Stored):
                large[name] = large.get(name, 0) + state.rows
            elif state is not None:
                with blamed_on(name, "adding its corpus statistics"):
                    sums.setdefault(name, TreeSum()).add(state)
        done += size
        progress("fitting", done, total)
    for number, result in enumerate(executor.map(worker, "merge", range(worker.buckets)) if large else (), 1):
        refuse_crashed(result, "summing the corpus statistics")
        progress("merging", number, worker.buckets)
    return {name: tree.value for name, tree in sums.items()}, large


def _moved_buckets(worker: Worker, parts: int, executor: Executor) -> list[int]:
    """Find the rows that belong to rows of other parts. Returns the buckets in which they are fitted."""
    is_required = any(groups.is_required for groups in worker.groups.values())
    if not is_required and (parts == 1 or not any(map(worker.grouping.has_keys, worker.groups.values()))):
        return []
    rows = Counter[str]()
    moved: dict[str, list[int]] = {}
    for counts in executor.map(worker, "keys", range(parts)):
        refuse_crashed(counts, "looking for samples of the same image")
        rows.update(counts)
    for name, groups in worker.groups.items():
        refuse_missing_keys(name, groups, rows[name])
    shared = executor.map(worker, "shared", range(worker.buckets)) if parts > 1 and rows.total() else ()
    for bucket, names in enumerate(shared):
        refuse_crashed(names, "looking for samples of the same image")
        for name in names:
            moved.setdefault(name, []).append(bucket)
    worker.grouping.write_index(moved)
    return sorted({bucket for buckets in moved.values() for bucket in buckets})


def finish(worker: Worker, info: RunInfo, executor: Executor, progress: Progress) -> None:
    """Score the parts that are not committed yet, then write the results and lint."""
    from multimodal_eval.data.runs.run_lint import lint_of
    from multimodal_eval.data.runs.score_table import align_columns
    from multimodal_eval.run.results import results_of, with_seen_bounds

    plan, folder = worker.plan, worker.folder
    todo = [part for part in range(len(info.parts)) if not folder.has_part("scores", part)]
    total = sum(info.parts)
    done = total - sum(info.parts[part] for part in todo)
    progress("scoring", done, total)
    worker.announce = partial(named, progress)
    worker.announce(", ".join(metric.name for metric in worker.fresh))
    left: list[OpenPart] = []
    with noting_death(worker):
        for part, result in zip(todo, executor.map(worker, "score", todo), strict=True):
            size = info.parts[part]
            if isinstance(result, Crashed):
                result = score_without_crashes(executor, worker, part, size)
            if isinstance(result, OpenPart):
                left.append(result)
            done += size
            progress("scoring", done, total)
    folder.clear_temporary()  # from processes that crashed while writing
    refuse_open(worker, left)
    refuse_incomplete(plan, folder, info)
    align_columns(folder, len(info.parts))
    plan = with_seen_bounds(plan, folder, info)
    if plan is not worker.plan:
        info = msgspec.structs.replace(info, bounds=plan.bounds)
    results = results_of(plan, folder, info)
    if plan.task is not None and plan.task.headline is not None:
        from multimodal_eval.analysis.classification import store_classification

        store_classification(Run.with_results(folder, info, results), plan.task.headline)
    if info.judging:
        from multimodal_eval.analysis.judges import store_judges

        store_judges(Run.with_results(folder, info, results))
    if not plan.config.skip_lint:
        folder.write_lint(lint_of(folder, info, counting("linting", total, progress), worker.facts))
    folder.clear_scratch()
    if info.format != RUN_FORMAT:  # continued from an earlier version
        info = msgspec.structs.replace(info, format=RUN_FORMAT, **described_metrics(plan))
    folder.write_info(msgspec.structs.replace(info, state="done", finished=now(), headline=results.headline))
    folder.write_results(results)  # last: with it, the run is finished
    refuse_unscored(folder, info, results, allow_empty=plan.config.allow_empty)


def refuse_changed(worker: Worker, info: RunInfo) -> None:
    """Refuse to continue a run if a signature has changed."""
    current = signatures(worker)
    for name in {*current, *info.signatures}:
        before, after = info.signatures.get(name), current.get(name)
        if before != after:
            raise RunFolderError(
                f"{worker.folder.label} was started with {before and before.text} and would continue with "
                f"{after and after.text}. Start a new run, or restore what it was started with"
            )


@contextmanager
def discarded_if_refused(folder: RunFolder) -> Iterator[None]:
    """Remove a new folder if its input, its settings or all requests to its model are refused.

    The folder is kept if it has an answer of the model, if scoring has started, or if some samples are only open.
    """
    try:
        yield
    except (OpenSamplesError, RetryableError):
        folder.sync()
        raise
    except MultimodalEvalError as error:
        if folder.read_info().state == "reading" or is_refused(folder, error):
            folder.discard()
        raise


def _name(source: Input) -> str | None:
    recipe = source.recipe()
    return None if recipe is None else recipe.data
