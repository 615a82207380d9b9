"""Turn samples into requests: the template, the system prompt, examples, media and the history of a dialogue.

A request begins with what all requests have in common, so that an endpoint can reuse its work on the prefix: the system
prompt, then the examples, then the earlier turns of the dialogue, then the turn of the sample.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError, InputError, MediaError, Problem, UnknownNameError
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.system_files import read_text
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary, refuse_empty
from multimodal_eval.generate.media_parts import MediaParts
from multimodal_eval.generate.model_profile import signature_of, with_thinking
from multimodal_eval.generate.protocol import Media, Request, Text, Turn
from multimodal_eval.generate.template import (
    LARGEST_FILE,
    SUBTITLES,
    PromptCostError,
    PromptError,
    PromptTemplate,
    letters,
)
from multimodal_eval.generate.turns import Draft, Reference, drafts_of_messages, templated
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.media.subtitles import RULES as SUBTITLE_RULES

__all__ = [
    "Earlier",
    "Prompts",
    "Shots",
    "answer_of",
    "built_in",
    "prompt_text",
    "prompts",
    "read_shots",
    "usual_prompt",
    "with_files",
]


# Solved examples before the question: the same ones for every sample, chosen by the seed of the run.


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
        policy = msgspec.structs.replace(policy, root=source.data_files.folder.absolute())
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


_LISTED = 20  # problems in a message


class HasSample(Protocol):
    """Anything with a sample."""

    @property
    def sample(self) -> Sample:
        """The sample."""


Item = TypeVar("Item", bound=HasSample)


@dataclass(frozen=True)
class Earlier:
    """A turn of a dialogue that was asked before, and the model's answer; None if it failed."""

    sample: Sample
    answer: str | None


def with_files(config: GenerationConfig) -> GenerationConfig:
    """The configuration with the content of the files that it names: the template, and a system prompt `@FILE`.

    A stored run thus needs these files no more, and files that it names are not read. The path of the examples becomes
    absolute.
    """
    template, system, shots = config.template, config.system, config.shots
    if template is None and config.prompt is not None and config.prompt not in prompts():
        template = _content(config.prompt, "prompt")
    if system is not None and system.startswith("@"):
        system = _content(system[1:], "system prompt").strip()
    if shots is not None:
        shots = str(Path(shots).resolve())
    schema = config.answer_schema
    if schema is None and config.schema is not None:
        try:
            schema = msgspec.json.decode(_content(config.schema, "JSON Schema"), type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise ConfigError(f"`schema`: {config.schema} must be a JSON object: {error}") from None
    config = msgspec.structs.replace(config, template=template, system=system, shots=shots, answer_schema=schema)
    return config if config.thinking is None else with_thinking(config)


def _content(name: str, what: str) -> str:
    if not os.path.lexists(name):
        if what == "prompt" and Path(name).name == name and not Path(name).suffix:
            raise UnknownNameError("prompt", name, prompts())
        known = f" Prompts with a name: {', '.join(prompts())}" if what == "prompt" else ""
        raise ConfigError(f"the {what} {name!r} is not a file.{known}")
    return read_text(Path(name), f"the {what}", LARGEST_FILE)


class Prompts:
    """Makes the requests of a run. `policy` says which media are read, and `seed` chooses the examples.

    `config` is the result of `with_files`: of the files that it names, only the examples are read here.
    """

    def __init__(
        self, config: GenerationConfig, task: str | None = None, *, policy: MediaPolicy | None = None, seed: int = 0
    ) -> None:
        self.config, self.task = config, task
        self._policy = policy or MediaPolicy()
        self._media = MediaParts(config, self._policy)
        self._template: PromptTemplate | None = None
        if config.template is not None:
            self._template = PromptTemplate(config.template, config.prompt or "of the run")
        elif config.prompt is not None:
            self._template = built_in(config.prompt)
        profile = config.profile_content
        self._of_profile = {
            name: PromptTemplate(text, f"{name} of {config.profile}")
            for name, text in ({} if profile is None else profile.prompts).items()
        }
        self._shots: Shots | None = None
        if config.shots is not None and config.shot_count != 0:
            self._shots = read_shots(config.shots, config.shot_count, seed, self._policy)
        elif config.shot_count:
            raise ConfigError("`shot_count` needs a file with examples: `shots`")
        self._solved: dict[str, tuple[Turn, ...]] = {}  # id of an example -> its turns
        self._system = (Turn("system", (Text(config.system),)),) if config.system else ()
        for shot in () if self._shots is None else self._shots.samples:
            self._solved_drafts(shot)  # raises before anything is asked

    def look_at(self, sources: Iterable[object]) -> None:
        """Look at the media of the samples before the signature: rules that apply to them are part of it."""
        self._media.look_at(sources)

    @property
    def settings(self) -> dict[str, object]:
        """What changes a request, for the signature: digests of the texts, the rules for media, the parameters."""
        config, settings = self.config, dict[str, object]()
        settings["prompt"] = self._named_template()
        if self._writes_subtitles:
            settings["subtitles"] = f"text-{SUBTITLE_RULES}"
        if config.system:
            settings["system"] = hashlib.sha256(config.system.encode()).hexdigest()[:12]
        if self._shots is not None:
            settings["shots"] = f"{self._shots.count}@{self._shots.digest}"
        if config.history:
            settings["history"] = "yes"
        if config.probe is not None:
            settings["probe"] = config.probe
        if config.profile is not None and config.profile_content is not None:
            settings["profile"] = signature_of(config.profile, config.profile_content)
        if config.answers_per_request > 1:
            settings["answers_per_request"] = config.answers_per_request
        if config.thinking is not None:
            settings["thinking"] = "on" if config.thinking else "off"
        if config.answer_schema is not None:
            schema = msgspec.json.encode(config.answer_schema, order="deterministic")
            settings["schema"] = hashlib.sha256(schema).hexdigest()[:12]
        parameters: dict[str, object] = msgspec.to_builtins(config.parameters)
        extra = {f"extra.{name}": value for name, value in config.parameters.extra.items()}
        parameters.pop("extra", None)
        return {**settings, **self._media.settings, **parameters, **extra}

    def _named_template(self) -> str:
        template = self._template
        if template is not None:
            return f"{Path(template.name).name if self.config.prompt else 'text'}@{template.digest}"
        usual = Sample("", question="")
        names = dict.fromkeys(
            usual_prompt(sample, self.task, history=self.config.history)
            for sample in (usual, Sample("", choices=["", ""]), Sample("", prompt=""))
        )
        texts = "".join(self._usual(name).digest for name in names)
        return f"{'+'.join(names)}@{hashlib.sha256(texts.encode()).hexdigest()[:12]}"

    def _usual(self, name: str) -> PromptTemplate:
        """The template with this name: that of the model profile, or of the package."""
        return self._of_profile.get(name) or built_in(name)

    def chains(self, items: Iterable[Item]) -> Iterator[list[Item]]:
        """The items that are asked one after another, because each answer is part of the next request.

        With `history`, these are neighbours of the same `group`; without it, every item is on its own.
        """
        chain: list[Item] = []
        for item in items:
            group = item.sample.group if self.config.history else None
            if chain and (group is None or chain[-1].sample.group != group):
                yield chain
                chain = []
            chain.append(item)
        if chain:
            yield chain

    def check(self, samples: Iterable[Sample]) -> None:
        """Render the text of every sample, before anything is asked. Raises InputError with all problems.

        A template that costs too much for a sample is not rendered for the next ones.
        """
        problems: list[Problem] = []
        total, ended, last = 0, set[str](), None
        for sample in samples:
            try:
                self._drafts(sample)
                if self.config.history and sample.group is not None and sample.group != last:
                    if sample.group in ended:
                        raise PromptError(f"the samples of the dialogue {sample.group!r} are not next to each other")
                    ended.add(sample.group)
                last = sample.group
            except PromptError as error:
                total += 1
                if len(problems) < _LISTED:
                    problems.append(_problem(sample, error))
                if isinstance(error, PromptCostError):
                    break
        if problems:
            raise InputError(problems, total)

    async def request(self, sample: Sample, earlier: Sequence[Earlier] = ()) -> Request:
        """The request for a sample. Raises MediaError if its media cannot be read, InputError if it cannot be asked."""
        turns = list(self._system)
        if self._shots is not None:
            for shot in self._shots.examples(sample):
                turns += await self._example(shot, self._shots.policy)
        for turn in earlier:
            if turn.answer is not None:
                asked = await self._with_subtitles(turn.sample, self._policy)
                turns += await self._turns(self._asked(asked), self._policy)
                turns.append(Turn("assistant", (Text(turn.answer),)))
        turns += await self._turns(self._asked(await self._with_subtitles(sample, self._policy)), self._policy)
        schema = self.config.answer_schema
        count = self.config.answers_per_request
        request = Request(sample.id, tuple(turns), self.config.parameters, 1, sample, schema, count)
        return request if sample.epoch in (None, 1) else request.in_epoch(sample.epoch)

    async def _with_subtitles(self, sample: Sample, policy: MediaPolicy) -> Sample:
        """The sample with the text of its subtitles in the place of their file, if its template writes them."""
        subtitles = sample.metadata.get(SUBTITLES)
        if not isinstance(subtitles, str) or not self._writes_subtitles:
            return sample
        text = await self._media.subtitles(subtitles, policy)
        return msgspec.structs.replace(sample, metadata={**sample.metadata, SUBTITLES: text})

    @property
    def _writes_subtitles(self) -> bool:
        templates = [self._template] if self._template is not None else self._of_profile.values()
        return any(SUBTITLES in template.text for template in templates)

    def _asked(self, sample: Sample) -> list[Draft]:
        try:
            return self._drafts(sample)
        except PromptError as error:
            raise InputError([_problem(sample, error)]) from None

    def _drafts(self, sample: Sample, *, with_answer: bool = False) -> list[Draft]:
        """The turns of a sample, without media."""
        if self._template is None and sample.messages is not None:
            drafts = drafts_of_messages(sample, with_answer=with_answer)
            return [draft for draft in drafts if draft.role != "system"] if self._system else drafts
        name = usual_prompt(sample, self.task, history=self.config.history)
        template = self._template or self._usual(name)
        draft = templated(template, sample)
        if not with_answer:
            return [draft]
        as_letter = template in (built_in("mcq"), self._of_profile.get("mcq"))
        answer = answer_of(sample, as_letter=as_letter)
        return [draft, Draft("assistant", (answer or "",))]

    async def _example(self, shot: Sample, policy: MediaPolicy) -> tuple[Turn, ...]:
        turns = self._solved.get(shot.id)
        if turns is None:
            try:
                solved = await self._with_subtitles(shot, policy)
                turns = tuple(await self._turns(self._solved_drafts(solved), policy))
            except MediaError as error:  # of all requests: not the fault of a sample
                raise PromptError(f"the example {shot.id!r} of {self.config.shots}: {error}") from None
            self._solved[shot.id] = turns
        return turns

    def _solved_drafts(self, shot: Sample) -> list[Draft]:
        try:
            return [draft for draft in self._drafts(shot, with_answer=True) if draft.role != "system"]
        except PromptError as error:
            raise PromptError(f"the example {shot.id!r} of {self.config.shots}: {error}") from None

    async def _turns(self, drafts: Iterable[Draft], policy: MediaPolicy) -> list[Turn]:
        return [Turn(draft.role, await self._parts(draft, policy)) for draft in drafts]

    async def _parts(self, draft: Draft, policy: MediaPolicy) -> tuple[Text | Media, ...]:
        parts: list[Text | Media] = []
        for part in draft.parts:
            if not isinstance(part, Reference):
                parts.append(Text(part))
            elif self.config.media_as != "none":
                parts.append(await self._media.part(part, policy))
        return tuple(parts)


def _problem(sample: Sample, error: PromptError) -> Problem:
    return Problem(code="PROMPT", message=f"{error}.", id=sample.id)


# The templates that come with the package, and the default template of a sample.

_FOLDER = files("multimodal_eval.generate").joinpath("templates")
_SUFFIX = ".md"
# A task that is not listed asks the sample's question as it is. So does `mme`: its questions end with the instruction.
_BY_TASK = {
    "captioning": "caption",
    "vqa": "vqa",
    "docvqa": "vqa",
    "chartqa": "vqa",
    "textvqa": "vqa",
    "ocr": "vqa",
    "mcq": "mcq",
    "pope": "yes_no",
    "asr": "transcription",
}


@cache
def prompts() -> dict[str, str]:
    """The names of the templates, and what each is for."""
    names = sorted(file.name.removesuffix(_SUFFIX) for file in _FOLDER.iterdir() if file.name.endswith(_SUFFIX))
    return {name: prompt_text(name).partition("{#")[2].partition("#}")[0].strip() for name in names}


def prompt_text(name: str) -> str:
    """The text of a template."""
    file = _FOLDER.joinpath(f"{name}{_SUFFIX}")
    if "/" in name or "\\" in name or not file.is_file():
        raise UnknownNameError("prompt", name, prompts())
    return file.read_text(encoding="utf-8")


@cache
def built_in(name: str) -> PromptTemplate:
    """A template of the package, compiled."""
    return PromptTemplate(prompt_text(name), name)


def usual_prompt(sample: Sample, task: str | None, *, history: bool = False) -> str:
    """The name of the template for a sample.

    A sample with a `prompt` is asked just that. Otherwise the task decides; a question with choices gets `mcq`, unless
    the task has a template that is not about a question.
    """
    if sample.prompt is not None:
        return "plain"
    name = _BY_TASK.get(task or sample.task or "", "dialogue" if history else "plain")
    return "mcq" if sample.choices and name in ("vqa", "plain", "dialogue") else name
