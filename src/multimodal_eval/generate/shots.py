"""Solved examples before the question: the same ones for every sample, chosen by the seed of the run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary, refuse_empty
from multimodal_eval.generate.template import letters
from multimodal_eval.media.policy import MediaPolicy

__all__ = ["Shots", "answer_of", "read_shots"]


@dataclass(frozen=True)
class Shots:
    """The examples in the order in which they are taken. `policy` says which media of theirs are read."""

    samples: tuple[Sample, ...]
    count: int
    policy: MediaPolicy

    def examples(self, sample: Sample) -> tuple[Sample, ...]:
        """The examples for a sample: the first `count`, never the sample itself."""
        taken = self.samples[: self.count]
        question = _question(sample)
        if all(shot.id != question for shot in taken):
            return taken
        return tuple(shot for shot in self.samples if shot.id != question)[: self.count]

    @property
    def digest(self) -> str:
        """The first characters of a SHA-256 of the examples. The content of their files is part of the requests."""
        described = msgspec.json.encode(self.samples, order="deterministic", enc_hook=repr)
        return hashlib.sha256(described).hexdigest()[:12]


def read_shots(path: str | Path, count: int | None, seed: int, policy: MediaPolicy) -> Shots:
    """Read the examples from a file of samples, in any format of an input.

    All of them are taken in their order, or `count` in the order of the SHA-256 of seed and id. Paths of media are
    relative to the folder of the file.
    """
    source, problems, summary = FileInput(Path(path)), Problems(), Summary()
    samples = list(source.samples(problems, summary))
    problems.raise_if_any()
    refuse_empty(summary, str(path))
    for sample in samples:
        if answer_of(sample) is None:
            raise ConfigError(
                f"{path}: the example {sample.id!r} has no answer. An example needs `expected_answer`, `references`, "
                "`caption` or `generated_answer`, or messages that end with one of the assistant"
            )
    if count is not None and count > len(samples):
        raise ConfigError(f"{path} has {len(samples):,} examples, and `shot_count` asks for {count:,}")
    if count is not None:
        samples.sort(key=lambda sample: hashlib.sha256(f"{seed}:{sample.id}".encode()).digest())
    if policy.root is not None:
        policy = replace(policy, root=source.data_files.folder.absolute())
    return Shots(tuple(samples), len(samples) if count is None else count, policy)


def answer_of(sample: Sample, *, as_letter: bool = False) -> str | None:
    """The answer of an example: a reference, or else the stored answer. `as_letter` takes the letter of a choice."""
    if sample.messages is not None and sample.messages[-1].role == "assistant":
        return sample.messages[-1].text or None
    answer = next(iter(sample.reference_texts), sample.generated_answer)
    if sample.expected_answer is not None:
        answer = sample.expected_answer
    if not answer:
        return None
    choices = letters(sample)
    if as_letter and answer not in choices:
        plain = _plain(answer)
        same = [letter for letter, text in choices.items() if _plain(text) == plain]
        return same[0] if len(same) == 1 else answer
    return answer


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _question(sample: Sample) -> str:
    """The id of the question; that of an answer of several ends with # and its epoch."""
    suffix = f"#{sample.epoch}"
    return sample.id.removesuffix(suffix) if sample.epoch is not None else sample.id
