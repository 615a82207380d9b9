"""Ask a model the questions of the contest, and write its replies as a submission.

Every reply is asked with the whole conversation before it, so the replies of a dialogue are asked one after another.
The answers are stored in a run folder first: an interrupted generation continues there, and asks only for what is
missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.contests.dialogue.files import has_names, read_questions
from multimodal_eval.contests.dialogue.replies import GeneratedDialogues, collected, written
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.conversation import Message, MessagePart, Part
from multimodal_eval.core.errors import AudioError, ConfigError, ImageError, MediaError, RunFolderError
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.memory_input import JoinedInput
from multimodal_eval.data.readers.parts import Part as SamplesPart
from multimodal_eval.data.readers.parts import SamplePart
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.own_runs import rewrite
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.media.content import read_file
from multimodal_eval.media.policy import policy_of
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.generation.model import Model, generation_of, with_model
from multimodal_eval.run.generation.step import Generation
from multimodal_eval.run.plan import Plan, generating_plan
from multimodal_eval.run.start import continue_run, start

__all__ = ["ANSWERS", "MediaRules", "generate_dialogues"]

ANSWERS = "generation"  # the run folder with the model's answers, in the folder of the submission

Turns = Mapping[str, Sequence[tuple[Part, ...]]]


@dataclass(frozen=True)
class MediaRules:
    """Which images and audio files are read; the root is the folder of the questions if it is None."""

    root: Path | None = None
    allow_outside: bool = False
    allow_urls: bool = False


def generate_dialogues(
    questions: str | Path,
    output: str | Path,
    *,
    model: Model,
    generation: Mapping[str, Any] | None = None,
    media: MediaRules | None = None,
    overwrite: bool = False,
    accept_open: bool = False,
    progress: Progress = silent,
    order: Sequence[str] | None = None,
) -> GeneratedDialogues:
    """Ask a model for every reply, and write output.json and ppl_output.json into the folder `output`.

    `model` is PROVIDER:NAME, a generator, or a function of a request that returns text. `generation` are further
    settings, as in `evaluate`: `base_url`, `system`, `parameters`, …. Log-probabilities are asked for, unless the
    parameters have `logprobs: false`; ppl_output.json is written only if all answers have them.
    A reply that fails is `{"error": reason}` in both files, which scoring refuses, and the later replies of its
    dialogue are not asked. The same call continues what was interrupted; `overwrite` starts again. With `accept_open`,
    requests that fail again and again are such failures too. `order` names the dialogues of a file without names.
    """
    path, target = Path(questions), Path(output)
    problems = Problems()
    turns = read_questions(path, problems, order)
    problems.raise_if_any()
    plan = _plan(path, model, generation or {}, media or MediaRules())
    _check_media(turns, plan.config, path)
    step = generation_of(plan, model)
    assert step is not None
    _refuse_other_files(target, overwrite=overwrite)
    folder = RunFolder(target / ANSWERS)
    source = DialogueInput(samples_of_turns(turns), [path])
    if overwrite or not folder.storage.exists("run.json"):
        start(plan, source, folder.location, progress=progress, overwrite=overwrite or None, generation=step)
        is_new = True
    else:
        is_new = _continued(folder, plan, source, step, progress, accept_open=accept_open)
    is_named = order is not None or has_names(path)
    return written(target, collected(RunFolder(folder.location)), is_new=is_new, is_named=is_named, questions=path)


def _plan(questions: Path, model: Model, generation: Mapping[str, Any], media: MediaRules) -> Plan:
    """A plan without metrics: the run ends when all samples have an outcome."""
    settings = {"model": model if isinstance(model, str) else "python", **generation, "history": True}
    settings["parameters"] = {"logprobs": True, **generation.get("parameters", {})}
    config = overlaid(
        None,
        generation=settings,
        image_root=str((media.root or questions.parent).absolute()),
        allow_outside_images=media.allow_outside,
        allow_image_urls=media.allow_urls,
    )
    if media.root is not None and not media.root.is_dir():
        raise ConfigError(f"the folder of the media must be a folder. Got {str(media.root)!r} instead.")
    return generating_plan(with_model(config, model))


def samples_of_turns(turns: Turns) -> list[Sample]:
    """One sample per turn of the user; the dialogue is their group."""
    return [
        Sample(
            id=f"{dialogue}/{number}",
            messages=[Message("user", [MessagePart(part.type, part.content) for part in parts])],
            group=dialogue,
            metadata={"reply": number},
        )
        for dialogue, asked in turns.items()
        for number, parts in enumerate(asked, 1)
    ]


class DialogueInput(JoinedInput):
    """The questions, in parts that contain whole dialogues: a reply needs the answers before it."""

    def parts(self, problems: Problems, summary: Summary, most: int, limit: int | None = None) -> Iterator[SamplesPart]:
        """Parts of at least `most` samples, each ending with a dialogue."""
        part: list[Sample] = []
        for sample in self._samples(summary, limit):
            if len(part) >= most and part[-1].group != sample.group:
                yield SamplePart(part)
                part = []
            part.append(sample)
        yield SamplePart(part)


def _check_media(turns: Turns, config: RunConfig, questions: Path) -> None:
    """Refuse images and audio files that cannot be read, before anything is asked."""
    problems, policy = Problems(), policy_of(config)
    for dialogue, asked in turns.items():
        for number, parts in enumerate(asked, 1):
            for part in parts:
                if part.type == "text" or part.content.startswith("data:") or "://" in part.content:
                    continue
                try:
                    read_file(part.content, policy, ImageError if part.type == "image" else AudioError)
                except MediaError as error:
                    problems.add(part.type.upper(), f"turn {number}: {error}", file=str(questions), id=dialogue)
    problems.raise_if_any()


def _refuse_other_files(target: Path, *, overwrite: bool) -> None:
    """Refuse a folder with a submission that was not generated in it."""
    from multimodal_eval.contests.dialogue.sources import OUTPUT, PERPLEXITIES

    if overwrite or (target / ANSWERS).exists():
        return
    for name in (OUTPUT, PERPLEXITIES):
        if (target / name).exists():
            raise ConfigError(
                f"{target / name} already exists and was not generated here. Name another folder with -o, or replace "
                "it with --overwrite"
            )


def _continued(
    folder: RunFolder, plan: Plan, source: DialogueInput, step: Generation, progress: Progress, *, accept_open: bool
) -> bool:
    """Continue the generation in a folder. Returns whether anything was asked; False if it was finished."""
    with folder.locked():
        info = folder.read_info()
        _refuse_changed(folder, info, source, step)
        if info.has_answers:
            return False
        if info.generation is not None:  # the endpoint may have another address now
            described = msgspec.structs.replace(info.generation, base_url=step.config.base_url)
            rewrite(folder, info, msgspec.structs.replace(info, config=plan.config, generation=described))
        continue_run(plan, lambda: source, folder, progress=progress, accept_open=accept_open, generation=step)
    return True


def _refuse_changed(folder: RunFolder, info: RunInfo, source: DialogueInput, step: Generation) -> None:
    """Refuse to continue with other questions, another model or other settings."""
    advice = "Name another folder with -o, or start again with --overwrite"
    if info.input and info.input[0].sha256 not in (None, source.describe()[0].sha256):
        raise RunFolderError(f"{folder.label} has answers to other questions. {advice}")
    signature = str(step.signature)
    if info.generation is not None and info.generation.signature != signature:
        raise RunFolderError(
            f"{folder.label} was generated with {info.generation.signature}, which differs from {signature}. {advice}"
        )
