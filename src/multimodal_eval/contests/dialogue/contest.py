"""Submissions to the dialogue contest as runs: a sample is a reply, a group is a dialogue, a stratum is a type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Any
from unicodedata import normalize

from multimodal_eval.contests.dialogue.dialogues import (
    AUDIO,
    IMAGE,
    IMAGE_AUDIO,
    TYPE,
    WEIGHTS,
    Dialogue,
    DialogueQuestions,
    GoldDialogue,
    Question,
    Reply,
    Source,
    Surprise,
    both_files,
    holds_both,
    read_answers,
    read_gold,
    read_questions,
    read_surprises,
    samples_of,
    type_of,
)
from multimodal_eval.contests.submissions import Prepared
from multimodal_eval.core.config import RunConfig, StrataConfig
from multimodal_eval.core.conversation import Part
from multimodal_eval.core.errors import ConfigError, InputError, Problem, UnavailableError
from multimodal_eval.core.metric import configured
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.registry import load_plugin
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.data.readers.memory_input import JoinedInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.evaluation.metrics.hidden_metric import HiddenRule, get_rule
from multimodal_eval.evaluation.metrics.meteor import AUTO, compute_meteor
from multimodal_eval.evaluation.tasks_config import check_weights
from multimodal_eval.run.config import load_config, overlaid
from multimodal_eval.run.plan import make_plan
from multimodal_eval.run.steps.aggregate import UNSCORED

__all__ = ["DialogueContest", "PreparedReplies", "Settings", "open_contest"]


# A submission is checked against the gold file: one answer and one perplexity per reply, and nothing else.

SHOWN_IDS = 10
MEDIA = {IMAGE: {"image"}, AUDIO: {"audio"}, IMAGE_AUDIO: {"image", "audio"}}


def read_submission(
    gold: Mapping[str, GoldDialogue], output: Source, perplexities: Source, problems: Problems
) -> list[Dialogue]:
    """The dialogues with the answers and perplexities of one model, in the order of the gold file.

    Problems are noted, and dialogues with problems are left out.
    """
    order = list(gold)
    answers, surprises = read_answers(output, problems, order), read_surprises(perplexities, problems, order)
    _note_unmatched(gold, answers, output, "MISSING_REPLY", "answers", problems)
    _note_unmatched(gold, surprises, perplexities, "MISSING_PERPLEXITY", "perplexities", problems)
    _note_lengths(gold, answers, output, "answers", problems)
    _note_lengths(gold, surprises, perplexities, "perplexities", problems)
    complete = [name for name in gold if name in answers and name in surprises]
    return [
        Dialogue(name, gold[name].type, _replies(gold[name], answers[name], surprises[name]))
        for name in complete
        if len(gold[name].replies) == len(answers[name]) == len(surprises[name])
    ]


def _replies(gold: GoldDialogue, answers: Sequence[str], surprises: Sequence[Surprise]) -> tuple[Reply, ...]:
    return tuple(Reply(*parts) for parts in zip(answers, gold.replies, surprises, gold.languages, strict=True))


def _note_unmatched(
    gold: Mapping[str, GoldDialogue],
    submitted: Mapping[str, object],
    file: Source,
    code: str,
    what: str,
    problems: Problems,
) -> None:
    ids = [problem.id for problem in problems.kept if problem.file == str(file)]
    if None in ids or problems.is_full:  # the whole file could not be read
        return
    refused = {normalize("NFC", name) for name in ids if name is not None}
    missing = [name for name in gold if name not in submitted and name not in refused]
    extra = [name for name in submitted if name not in gold]
    if missing:
        message = f"{len(missing):,} of {len(gold):,} dialogues have no {what} (first: {_listed(missing)})."
        problems.add(code, message, file=str(file))
    if extra:
        message = f"{len(extra):,} dialogues are not in the gold file (first: {_listed(extra)})."
        problems.add("UNMATCHED", message, file=str(file))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:SHOWN_IDS]))


def _note_lengths(
    gold: Mapping[str, GoldDialogue],
    submitted: Mapping[str, Sequence[object]],
    file: Source,
    what: str,
    problems: Problems,
) -> None:
    for name, values in submitted.items():
        if name in gold and len(values) != len(gold[name].replies):
            message = f"{len(values)} {what} for {len(gold[name].replies)} replies."
            problems.add("LENGTH", message, file=str(file), id=name)


def note_missing(samples: Sequence[Sample], rule: HiddenRule, file: str | None, problems: Problems) -> None:
    """Note replies without a field that the rule of the hidden metric needs."""
    other_rules = {"perplexity": "choice", "metadata.candidates": "confidence"}
    for sample in samples:
        missing = next((need for need in rule.needs if not has(sample, need)), None)
        if missing is None:
            continue
        missing = missing.partition("|")[0]
        field, other = missing.removeprefix("metadata."), other_rules.get(missing)
        message = f"reply {sample.metadata['reply']} has no {field}, which the rule {rule.name!r} needs."
        hint = f"For the other kind of file: --rule {other}." if other and rule.ours else None
        problems.add("MISSING_PERPLEXITY", message, file=file, id=sample.group, hint=hint)


def note_unscored(dialogue: str, reply: object, rule: str, reason: str, file: str | None, problems: Problems) -> None:
    """Note a reply on which the rule of the hidden metric fails.

    Without a value it would be left out of its dialogue's mean, which could raise the score.
    """
    message = f"reply {reply}: the rule {rule!r} does not return a number from 0 to 1: {reason}"
    problems.add("RULE", message, file=file, id=dialogue)


def dialogue_questions(
    questions: Mapping[str, Sequence[tuple[Part, ...]]],
    gold: Mapping[str, GoldDialogue],
    file: Path,
    problems: Problems,
) -> DialogueQuestions:
    """One question per reply; a number of turns that differs from the number of replies is noted."""
    _note_lengths(gold, questions, file, "turns", problems)
    missing = [name for name in gold if name not in questions]
    if missing and questions:  # without questions, the file could not be read
        message = f"{len(missing):,} dialogues of the gold file have no questions (first: {_listed(missing)})."
        problems.add("UNMATCHED", message, file=str(file))
    return DialogueQuestions({name: tuple(map(_question, turns)) for name, turns in questions.items()})


def _question(parts: tuple[Part, ...]) -> Question:
    texts = [part.content for part in parts if part.type == "text"]
    image = next((part.content for part in parts if part.type == "image"), None)
    audio = next((part.content for part in parts if part.type == "audio"), None)
    return Question("\n".join(texts) or None, image, audio)


def mismatched_media(
    questions: Mapping[str, Sequence[tuple[Part, ...]]], gold: Mapping[str, GoldDialogue]
) -> list[str]:
    """Dialogues whose parts do not match their type."""
    return [
        name
        for name, dialogue in gold.items()
        if name in questions
        and {part.type for turn in questions[name] for part in turn} - {"text"} != MEDIA.get(dialogue.type, set())
    ]


TASK = "dialogue"
PARTS = {"meteor": 0.5, "hidden_metric": 0.5}
SHOWN = 5

Config = str | Path | Mapping[str, Any] | None


@dataclass(frozen=True)
class DialogueContest:
    """Gold data and settings; a submission is a folder or a zip with output.json and ppl_output.json."""

    files: tuple[Path, ...]
    gold: dict[str, GoldDialogue]
    questions: DialogueQuestions
    config: RunConfig
    notes: tuple[str, ...]

    @property
    def numbers(self) -> list[str]:
        """The names of the metrics and composites that a run will have."""
        return make_plan(self.config).names

    def accepts(self, path: Path) -> bool:
        """Accept folders and zips."""
        return holds_both(path)

    def prepare(self, submission: Path) -> Prepared:
        """Read and check the two files of a folder or a zip."""
        return prepare(self, submission)


class PreparedReplies(Prepared):
    """A submission in which every reply must be scored: leaving one out could raise its dialogue's mean."""

    def score(self, location: Location, progress: Progress = silent, *, overwrite: bool | None = None) -> Run:
        """Score the submission and store it in a new run folder, which is removed if the rule fails on a reply."""
        was_there = isinstance(location, Path) and location.is_dir()
        try:
            return super().score(location, progress, overwrite=overwrite)
        except InputError as refusal:
            unscored = [problem for problem in refusal.problems if problem.code == UNSCORED]
            if not unscored:
                raise
            self._refuse(RunFolder(location), unscored, was_there)
            raise

    def _refuse(self, folder: RunFolder, unscored: Sequence[Problem], was_there: bool) -> None:
        """Report the problems by reply and by the file with their perplexities."""
        problems, rule = Problems(), str(self.plan.config.options["hidden_metric"]["rule"])
        file = folder.read_info().input[-1].path
        folder.discard(was_there=was_there)
        for problem in unscored:
            dialogue, _, reply = str(problem.id).rpartition("/")
            note_unscored(dialogue, reply, rule, str(problem.value), file, problems)
        problems.raise_if_any()


@dataclass(frozen=True)
class Settings:
    """Settings that change the score; None means the value of the configuration, then the contest's default."""

    weights: Mapping[str, float] | None = None
    rule: str | None = None
    language: str | None = None
    synonyms: str | Mapping[str, str] | None = None
    present_types_only: bool = False


def open_contest(
    gold: str | Path,
    *,
    questions: str | Path | None = None,
    config: Config = None,
    weights: Mapping[str, float] | None = None,
    rule: str | None = None,
    language: str | None = None,
    synonyms: str | Mapping[str, str] | None = None,
    present_types_only: bool = False,
    plugins: Sequence[str] | None = None,
    skip_lint: bool = False,
) -> DialogueContest:
    """Read and check the gold file, and the questions if they are given, and determine the settings.

    Settings that are not given here come from `config` (weights: `strata.weights`; the rule:
    `options.hidden_metric.rule`), then from the contest's defaults.
    """
    plugins = [*load_config(config).plugins, *(plugins or ())]
    for plugin in plugins:
        load_plugin(plugin)
    problems, files = Problems(), [Path(gold)]
    dialogues = read_gold(files[0], problems)
    by_dialogue, notes = DialogueQuestions(), list[str]()
    if questions is not None:
        files.append(Path(questions))
        turns = read_questions(files[1], problems, list(dialogues))
        by_dialogue = dialogue_questions(turns, dialogues, files[1], problems)
        if mismatched := mismatched_media(turns, dialogues):
            shown = ", ".join(map(repr, mismatched[:SHOWN]))
            notes.append(f"{len(mismatched):,} dialogues have parts that do not match their type: {shown}")
    problems.raise_if_any()
    run_config, absent = contest_config(
        Settings(weights, rule, language, synonyms, present_types_only),
        {dialogue.type for dialogue in dialogues.values()},
        {language for dialogue in dialogues.values() for language in dialogue.languages},
        config,
        plugins=plugins or None,
        skip_lint=skip_lint,
        image_root=str(files[-1].absolute().parent),
    )
    if absent:
        used = run_config.strata.weights if run_config.strata else {}
        shown = ", ".join(f"{name} {weight:g}" for name, weight in used.items() if weight)
        notes.append(f"no dialogue has the type {', '.join(absent)}; the other weights are scaled up: {shown}")
    return DialogueContest(tuple(files), dialogues, by_dialogue, run_config, tuple(notes))


def prepare(contest: DialogueContest, output: str | Path, perplexities: str | Path | None = None) -> PreparedReplies:
    """The plan and the samples of one submission; all problems of its files are raised together.

    Without `perplexities`, `output` is a folder or a zip with both files.
    """
    plan = make_plan(contest.config)  # first, because it loads the plug-in with the rule in a worker process
    problems = Problems()
    sources = both_files(Path(output), problems) if perplexities is None else (Path(output), Path(perplexities))
    problems.raise_if_any()
    assert sources is not None
    dialogues = read_submission(contest.gold, *sources, problems)
    samples = [sample for dialogue in dialogues for sample in samples_of(dialogue, contest.questions)]
    rule = get_rule(str(contest.config.options["hidden_metric"]["rule"]))
    note_missing(samples, rule, str(sources[1]), problems)
    problems.raise_if_any()
    files = dict.fromkeys(source if isinstance(source, Path) else source.archive for source in sources)
    return PreparedReplies(plan, JoinedInput(samples, [*contest.files, *files], contest.notes))


def contest_config(
    settings: Settings, types: Set[str], languages: Set[str], config: Config = None, **more: Any
) -> tuple[RunConfig, list[str]]:
    """The configuration of a run of dialogues of these types and languages, and the types that are left out."""
    base = load_config(config)
    weights = settings.weights
    if weights is None and base.strata is not None:
        weights = base.strata.weights
    used, absent = present_weights(checked_weights(weights), types, present_only=settings.present_types_only)
    meteor = {"variant": "fmean", "language": AUTO, **base.options.get("meteor", {})}
    meteor |= {} if settings.language is None else {"language": settings.language}
    meteor |= {} if settings.synonyms is None else {"synonyms": settings.synonyms}
    if meteor["language"] == AUTO and len(languages) == 1:  # so that data for the other language is not needed
        (meteor["language"],) = languages
    _refuse_unavailable(meteor)
    hidden = {"rule": "confidence", **base.options.get("hidden_metric", {})}
    hidden |= {} if settings.rule is None else {"rule": settings.rule}
    run_config = overlaid(
        config,
        task=TASK,
        tasks={TASK: {"metrics": list(PARTS), "weights": PARTS}},
        options={"meteor": meteor, "hidden_metric": hidden},
        strata=StrataConfig(by=TYPE, weights=used),
        by=list(dict.fromkeys([TYPE, *base.by])),
        error_patterns=[],  # a contest counts a generator's error message as an ordinary answer
        complete=["hidden_metric"],  # leaving a reply out could raise its dialogue's mean
        allow_empty=True,
        **more,
    )
    return run_config, absent


def _refuse_unavailable(meteor: Mapping[str, object]) -> None:
    """Refuse before any submission is read, because missing data affects all of them."""
    metric = configured(compute_meteor, meteor)
    reason = metric.unavailable()
    if reason is not None:
        advice = "" if metric.variant == "1.5" else "\nTo score without Russian synonyms: --synonyms ru=none"
        raise UnavailableError(f"{metric.name}: {reason}{advice}")


def checked_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Weights by type; the default is the contest's, and a type that is not named has the weight 0."""
    if weights is None:
        return dict(WEIGHTS)
    known: dict[str, float] = {}
    for name, weight in weights.items():
        dialogue_type = type_of(name)
        if dialogue_type is None or dialogue_type in known:
            fault = "occurs twice among the types" if dialogue_type else "is not a dialogue type"
            raise ConfigError(f"WEIGHTS: {name!r} {fault}. Known: {', '.join(WEIGHTS)}")
        known[dialogue_type] = weight
    check_weights(known, "the dialogue types")
    return {name: float(known.get(name, 0)) for name in WEIGHTS}


def present_weights(
    weights: Mapping[str, float], types: Set[str], *, present_only: bool
) -> tuple[dict[str, float], list[str]]:
    """The weights to score with, and the types that are left out because they have no dialogue.

    With `present_only`, the weights of the other types are divided by their sum. Otherwise a type with a weight but no
    dialogue is an error, because the highest possible score would be less than 1.
    """
    absent = [name for name, weight in weights.items() if weight > 0 and name not in types]
    if absent and not present_only:
        raise ConfigError(
            f"WEIGHTS: no dialogue has the type {', '.join(absent)}, which has a weight. "
            "To score only the other types, with weights scaled up to 1: --present-types-only"
        )
    present = {name: weight for name, weight in weights.items() if name not in absent}
    total = fsum(present.values())
    if total <= 0:
        raise ConfigError("WEIGHTS: no type that occurs in the dialogues has a weight")
    return ({name: weight / total for name, weight in present.items()} if absent else present), absent
