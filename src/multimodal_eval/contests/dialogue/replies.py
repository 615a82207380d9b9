"""The generated replies as the files of a submission: output.json, and ppl_output.json if all have a perplexity.

    PPL = exp( -1/t * sum_i ln p(x_i | the conversation, x_<i) )

over the t tokens of a reply, from the log-probabilities that the model gave while it wrote the reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from multimodal_eval.contests.dialogue.sources import OUTPUT, PERPLEXITIES
from multimodal_eval.core.errors import InputError, MultimodalEvalError, RunFolderError
from multimodal_eval.core.records import GenerationInfo, to_json
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import write_atomically
from multimodal_eval.evaluation.metrics.perplexity import perplexity

__all__ = ["FailedRepliesError", "GeneratedDialogues", "GeneratedReply", "collected", "written"]

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
