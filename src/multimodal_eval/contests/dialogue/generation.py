"""Ask a model the questions of the contest, and write its replies as a submission.

Every reply is asked with the whole conversation before it, so the replies of a dialogue are asked one after another.
The answers are stored in a run folder first: an interrupted generation continues there, and asks only for what is
missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec

from multimodal_eval.contests.dialogue.dialogues import OUTPUT, PERPLEXITIES, has_names, read_questions
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.conversation import Message, MessagePart, Part
from multimodal_eval.core.errors import (
    AudioError,
    ConfigError,
    ImageError,
    InputError,
    MediaError,
    MultimodalEvalError,
    RunFolderError,
)
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import GenerationInfo, RunInfo, to_json
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.memory_input import JoinedInput
from multimodal_eval.data.readers.parts import Part as SamplesPart
from multimodal_eval.data.readers.parts import SamplePart
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.grants import rewrite
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import write_atomically
from multimodal_eval.evaluation.metrics.perplexity import perplexity
from multimodal_eval.media.content import read_file
from multimodal_eval.media.policy import policy_of
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.continuing import execute_again
from multimodal_eval.run.generation import Generation, Model, generation_of, with_model
from multimodal_eval.run.plan import Plan, generating_plan
from multimodal_eval.run.start import start
from multimodal_eval.run.step import RunContext

__all__ = [
    "ANSWERS",
    "FailedRepliesError",
    "GeneratedDialogues",
    "GeneratedReply",
    "MediaRules",
    "collected",
    "generate_dialogues",
    "written",
]


# The generated replies as the files of a submission: output.json, and ppl_output.json if all have a perplexity.
#
#     PPL = exp( -1/t * sum_i ln p(x_i | the conversation, x_<i) )
#
# over the t tokens of a reply, from the log-probabilities that the model gave while it wrote the reply.

SHOWN = 10


class FailedRepliesError(MultimodalEvalError):
    """Replies without an answer, because the model failed."""


@dataclass(frozen=True)
class GeneratedReply:
    """One reply: its answer, or why there is none; its perplexity, or why there is none."""

    dialogue: str
    number: int  # from 1
    answer: str | None = None
    error: str | None = None  # status: reason
    perplexity: float | None = None
    fault: str | None = None  # of the perplexity

    @property
    def name(self) -> str:
        """The dialogue and the number, as in messages and tables."""
        return f"{self.dialogue}/{self.number}"


@dataclass(frozen=True)
class GeneratedDialogues:
    """The replies of a model, and the files that were written. `perplexities` is None if there is no such file."""

    replies: list[GeneratedReply]
    info: GenerationInfo
    folder: RunFolder  # with the model's answers
    output: Path
    perplexities: Path | None = None
    note: str | None = None  # why there are no perplexities

    @property
    def dialogues(self) -> list[str]:
        """The names of the dialogues, in order."""
        return list(dict.fromkeys(reply.dialogue for reply in self.replies))

    @property
    def failures(self) -> list[GeneratedReply]:
        """The replies without an answer; scoring refuses the files until there are none."""
        return [reply for reply in self.replies if reply.error is not None]

    def refuse_failures(self) -> None:
        """Raise an error that names the replies without an answer."""
        failures = self.failures
        if not failures:
            return
        lines = [f"{len(failures):,} of {len(self.replies):,} replies have no answer:"]
        lines += [f"  {reply.name}: {reply.error}" for reply in failures[:SHOWN]]
        if len(failures) > SHOWN:
            lines.append(f"  and {len(failures) - SHOWN:,} more")
        lines.append(
            f"In {self.output}, they have an `error` instead of an answer, and scoring refuses the file. Write answers "
            "there, or ask again with --overwrite, which takes the other answers from the cache."
        )
        errors = [str(reply.error) for reply in failures]
        if any(error.startswith("rejected") and "logprob" in error for error in errors):
            lines.append("If the endpoint offers no log-probabilities: --no-logprobs")
        raise FailedRepliesError("\n".join(lines))


@dataclass(frozen=True)
class Collected:
    """The replies in a run folder."""

    replies: list[GeneratedReply]
    info: GenerationInfo
    folder: RunFolder
    asked_for_logprobs: bool


def collected(folder: RunFolder) -> Collected:
    """The replies of a finished generation, in the order of the questions."""
    info = folder.read_info()
    assert info.generation is not None
    assert info.config.generation is not None
    replies = [
        _reply(str(sample.group), int(sample.metadata["reply"]), sample.generated_answer, sample.error, sample.logprobs)
        for part in range(len(info.parts))
        for sample in folder.read_samples(part, ["group", "metadata", "generated_answer", "error", "logprobs"])
    ]
    return Collected(replies, info.generation, folder, info.config.generation.parameters.logprobs)


def _reply(
    dialogue: str, number: int, answer: str | None, error: str | None, logprobs: Sequence[float] | None
) -> GeneratedReply:
    if error is not None or answer is None:
        return GeneratedReply(dialogue, number, error=error or "empty: the model answered without text")
    if logprobs is None:
        return GeneratedReply(dialogue, number, answer, fault="the model gave no log-probabilities")
    try:
        return GeneratedReply(dialogue, number, answer, perplexity=perplexity(logprobs))
    except InputError as refusal:
        return GeneratedReply(dialogue, number, answer, fault=refusal.problems[0].message)


def written(target: Path, stored: Collected, *, is_new: bool, is_named: bool, questions: Path) -> GeneratedDialogues:
    """Write the files. Unless the replies are new, files that exist are kept, and a changed output.json is refused."""
    output, ppl = target / OUTPUT, target / PERPLEXITIES
    answers = _file(stored.replies, [reply.answer for reply in stored.replies], is_named=is_named)
    if is_new:
        ppl.unlink(missing_ok=True)  # of other answers
    elif output.exists() and output.read_bytes() != answers:
        raise RunFolderError(
            f"{output} was changed after it was generated. To write the replies again, move it away; to ask the model "
            "again: --overwrite"
        )
    if is_new or not output.exists():
        write_atomically(output, lambda path: path.write_bytes(answers))
    note = _note(stored, questions, target)
    if note is None and not ppl.exists():
        values = _file(stored.replies, [reply.perplexity for reply in stored.replies], is_named=is_named)
        write_atomically(ppl, lambda path: path.write_bytes(values))
    has_file = ppl.exists()
    return GeneratedDialogues(
        stored.replies, stored.info, stored.folder, output, ppl if has_file else None, None if has_file else note
    )


def _file(replies: Sequence[GeneratedReply], values: Sequence[object], *, is_named: bool) -> bytes:
    """{dialogue: [value, …]}, with the error of a reply without a value; a list if the questions have no names."""
    content: dict[str, list[object]] = {}
    for reply, value in zip(replies, values, strict=True):
        content.setdefault(reply.dialogue, []).append({"error": reply.error} if value is None else value)
    return to_json(content if is_named else list(content.values()))


def _note(stored: Collected, questions: Path, target: Path) -> str | None:
    """Why there are no perplexities, and what to do."""
    faulty = [reply for reply in stored.replies if reply.fault is not None]
    if not faulty:
        return None
    answered = sum(reply.answer is not None for reply in stored.replies)
    reason = f"{len(faulty):,} of {answered:,} answers have no perplexity (first: {faulty[0].name}: {faulty[0].fault})"
    if not stored.asked_for_logprobs:
        reason = "log-probabilities were not asked for"
    paths = [quote(str(path)) for path in (questions, target / OUTPUT, target / PERPLEXITIES)]
    command = "mmeval dialogue ppl {} {} -o {}".format(*paths)
    return f"no {PERPLEXITIES}: {reason}. To compute perplexities with a language model: {command}"


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
    from multimodal_eval.contests.dialogue.dialogues import OUTPUT, PERPLEXITIES

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
            info = folder.read_info()
        run = RunContext(plan, folder, info, accept_open=accept_open, progress=progress, generation=step)
        run.source = lambda: source
        execute_again(run)
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
