"""A shared task from data and a configuration: its samples, rules and columns, tried before anybody submits."""

from __future__ import annotations

import re
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval import __version__
from multimodal_eval.contests.shared_task.judging import Column, Rules, refuse_unscored, score_answers
from multimodal_eval.contests.submissions import SampleContest
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError, MediaError, MultimodalEvalError
from multimodal_eval.core.metric_table import origin
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.registry import PLUGIN
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.run import Run, figures_of
from multimodal_eval.media.content import media_bytes
from multimodal_eval.media.policy import MediaPolicy, policy_of
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.start import open_input


def _time(value: Any) -> Any:
    """A time as platforms write it; None is left alone, and another value becomes one that no option allows."""
    try:
        return value if value is None else datetime.fromisoformat(str(value)).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return ...


_TIME = "a time such as 2027-01-31 12:00:00"
PLUGINS = "plugins"  # the folder of the scoring program with the plug-ins
OPTIONS = Options(
    config=Option(str | None, None, help="the configuration of the run, a YAML file (--config)"),
    metrics=Option(list[str] | None, None, help="the metrics (--metrics); null for those of the configuration"),
    title=Option(str, "Shared task", help="the title"),
    phase=Option(str, "Evaluation", help="the name of the phase"),
    start=Option(str, "2026-01-01 00:00:00", help="start of the phase, in UTC", words=_TIME, convert=_time),
    end=Option(str | None, None, help="its end; null for none", words=_TIME, convert=_time),
    max_submissions=Option(int, 100, help="submissions per participant"),
    max_submissions_per_day=Option(int, 5, help="submissions per participant and day"),
    details=Option(
        str,
        "scores",
        choices=("scores", "samples"),
        help="what participants see: scores without samples, or also samples with their references",
    ),
    max_mb=Option(int, 100, help="size of a submission, unpacked"),
    max_answer=Option(int, 10_000, help="characters of an answer"),
)
_MEDIA = ("image", "images", "audio", "video")
# What participants get of a sample. Metadata may contain anything, and stay secret.
_PUBLIC = ("id", "question", "prompt", "choices", "image", "images", "audio", "video", "messages")
_PLACEHOLDER = "your answer"


@dataclass(frozen=True)
class SharedTask:
    """All that the package of a platform needs."""

    rules: Rules
    samples: list[Sample]
    public: list[dict[str, Any]]  # what participants get of each sample
    plugins: Mapping[str, bytes]  # name -> content
    notes: tuple[str, ...]

    @property
    def example(self) -> bytes:
        """A submission with the right form."""
        records = [{"id": sample.id, "generated_answer": _PLACEHOLDER} for sample in self.samples]
        return b"".join(msgspec.json.encode(record) + b"\n" for record in records)

    @property
    def inputs(self) -> bytes:
        """What participants get of the samples, as JSON lines."""
        return b"".join(msgspec.json.encode(record) + b"\n" for record in self.public)


def shared_task(data: Path, options: OptionValues) -> SharedTask:
    """Read the data, make the plan, and score the references themselves as answers.

    The trial finds samples that no answer could have a score for, and the columns of the leaderboard.
    """
    if options["end"] is not None and options["end"] <= options["start"]:
        raise ConfigError(f"`end` must be after `start`. Got {options['start']} and {options['end']}")
    config = overlaid(options["config"], metrics=options["metrics"])
    if config.generation is not None:
        raise ConfigError("`generation`: the answers of a shared task come from its participants. Remove the setting")
    source = open_input(data, None, config)
    assert isinstance(source, FileInput)
    plan = SampleContest(source.data_files.files[0].path, config).plan
    _refuse_unbundled(plan)
    policy = policy_of(msgspec.structs.replace(config, image_root=config.image_root or str(source.data_files.folder)))
    needed = _needed_media(plan)
    read = _read(source, config)
    samples = [_reference(sample, needed, policy) for sample in read]
    plugins = {Path(plugin).name: Path(plugin).read_bytes() for plugin in plan.config.plugins}
    settings = _settings(plan, plugins)
    with tempfile.TemporaryDirectory(prefix="mmeval-") as scratch:
        trial = msgspec.structs.replace(settings, plugins=plan.config.plugins)
        columns = _tried(trial, samples, Path(scratch) / "run")
    rules = Rules(
        version=__version__,
        title=options["title"],
        config=settings,
        columns=columns,
        details=options["details"],
        max_mb=options["max_mb"],
        max_answer=options["max_answer"],
    )
    return SharedTask(rules, samples, [_public(sample) for sample in read], plugins, tuple(_notes(plan, read)))


def _read(source: FileInput, config: RunConfig) -> list[Sample]:
    problems, summary = Problems(), Summary()
    samples = list(source.samples(problems, summary, config.limit))
    problems.raise_if_any()
    if not samples:
        raise ConfigError(f"{source.data} has no samples")
    return samples


def _settings(plan: Plan, plugins: Mapping[str, bytes]) -> RunConfig:
    """The configuration of the scoring program, without what concerns the organiser's files.

    Every answer counts: a text that looks like the error of a generator is not left out of the mean.
    """
    return msgspec.structs.replace(
        plan.expanded_config,
        plugins=[f"{PLUGINS}/{name}" for name in plugins],
        error_patterns=[],
        **dict.fromkeys(("format", "questions", "limit", "image_root"), None),
        **dict.fromkeys(("allow_partial", "allow_empty", "skip_unavailable", "allow_image_urls"), False),
        allow_outside_images=False,
        skip_lint=True,
        map={},
        annotators=[],
        media_roots=[],
        complete=[],
    )


def _refuse_unbundled(plan: Plan) -> None:
    """Refuse plug-ins and options that name files which the bundle would not contain."""
    modules = [metric.name for metric in plan.metrics if origin(metric)[0].startswith(PLUGIN)]
    if modules and not plan.config.plugins:
        raise ConfigError(f"{modules[0]} is defined by a plug-in. Name its file under `plugins:` in the configuration")
    names = [Path(plugin).name for plugin in plan.config.plugins]
    if len(set(names)) < len(names):
        raise ConfigError("two plug-ins have the same file name. Rename one of them")
    for metric, options in plan.config.options.items():
        for option, value in options.items():
            if isinstance(value, str) and Path(value).is_absolute() and Path(value).exists():
                raise ConfigError(
                    f"the option `{option}` of {metric} names {value}, which the scoring program will not have. "
                    "Use a model of `mmeval ls resources`, or an image that has the file"
                )


def _needed_media(plan: Plan) -> set[str]:
    """The media that the metrics need; other media are not bundled."""
    needs = {field for metric in plan.metrics for need in metric.needs for field in need.split("|")}
    return needs & {*_MEDIA}


def _reference(sample: Sample, needed: set[str], policy: MediaPolicy) -> Sample:
    """The sample without an answer, with the media that are needed as data URIs."""
    try:
        media = {name: _embedded(getattr(sample, name), policy) if name in needed else None for name in _MEDIA}
    except MediaError as error:
        raise ConfigError(f"the sample {sample.id!r}: {error}") from None
    return msgspec.structs.replace(
        sample, **media, messages=None, generated_answer=None, error=None, perplexity=None, logprobs=None
    )


def _embedded(source: Any, policy: MediaPolicy) -> Any:
    if isinstance(source, list):
        return [_embedded(each, policy) for each in source]
    content = None if source is None else media_bytes(source, policy, MediaError, "file")
    return None if content is None else f"data:application/octet-stream;base64,{b64encode(content).decode()}"


def _public(sample: Sample) -> dict[str, Any]:
    fields = {name: getattr(sample, name) for name in _PUBLIC}
    return {name: value for name, value in fields.items() if value is not None and not isinstance(value, bytes)}


def _tried(config: RunConfig, samples: list[Sample], folder: Path) -> list[Column]:
    """The columns, from a run in which the first reference of every sample is its answer."""
    answers = {sample.id: next(iter(sample.reference_texts), "") for sample in samples}
    try:
        run = score_answers(config, samples, answers, [], folder)
        refuse_unscored(run, "Remove the sample, or name other metrics")
    except MultimodalEvalError as error:
        raise ConfigError(f"the references were scored as answers, as a trial, which failed:\n{error}") from None
    return list(_columns(run))


def _columns(run: Run) -> Iterator[Column]:
    """The headline with its interval, the other metrics, and their parts, which are hidden."""
    headline, seen = run.headline, set[str]()
    figures = {name: figure for name, figure in figures_of(run).items() if figure.value is not None}
    for name in sorted(figures, key=lambda name: name != headline):
        figure = figures[name]
        key = re.sub(r"[^a-z0-9_]", "_", name.lower())
        while key in seen:
            key += "_"
        seen.add(key)
        is_metric = figure is not None and figure.n_total is not None
        is_lower_better = figure is not None and figure.direction == "lower"
        yield Column(key, name, name, is_lower_better=is_lower_better, is_hidden=not is_metric)
        if name == headline:
            for end in ("low", "high"):
                seen.add(f"{key}_{end}")
                yield Column(f"{key}_{end}", f"{name} ({end})", name, end, is_lower_better)


def _notes(plan: Plan, samples: list[Sample]) -> Iterator[str]:
    yield from plan.notes
    resources = sorted({name for metric in plan.metrics for name in metric.resources()})
    if resources:
        yield f"the machine that scores needs: mmeval fetch {' '.join(resources)}"
    if any(getattr(sample, name) is not None for sample in samples for name in _MEDIA):
        yield "the media of the samples are not in the bundle. Participants need them from elsewhere"
    without = sum(not sample.reference_texts for sample in samples)
    if without:
        yield f"{without:,} of {len(samples):,} samples have no reference"
