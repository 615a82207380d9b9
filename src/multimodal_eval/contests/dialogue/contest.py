"""Submissions to the dialogue contest as runs: a sample a reply, a group a dialogue, a stratum a type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multimodal_eval.contests.dialogue.dialogues import TYPE, Asked, samples_of
from multimodal_eval.contests.dialogue.files import GoldDialogue, read_gold, read_questions
from multimodal_eval.contests.dialogue.integral import PARTS, settled_language
from multimodal_eval.contests.dialogue.submission import (
    asked,
    checked_weights,
    hidden_values,
    other_media,
    present_weights,
    read_submission,
)
from multimodal_eval.core.config import RunConfig, StrataConfig
from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.core.registry import load_plugin
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.readers.inputs import JoinedInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.evaluation.metrics.hidden_metric import compute_hidden_metric
from multimodal_eval.evaluation.metrics.meteor import AUTO, compute_meteor
from multimodal_eval.run.config import load_config, overlaid
from multimodal_eval.run.plan import Plan, make_plan

TASK = "dialogue"
SHOWN = 5


@dataclass(frozen=True)
class Contest:
    """Gold and settings: what every submission is scored with."""

    files: tuple[Path, ...]
    gold: dict[str, GoldDialogue]
    asked: Asked
    config: RunConfig
    notes: tuple[str, ...]

    @property
    def rule(self) -> str:
        """Of the hidden metric."""
        return str(self.config.options["hidden_metric"]["rule"])


def open_contest(
    gold: str | Path,
    *,
    questions: str | Path | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    weights: Mapping[str, float] | None = None,
    rule: str | None = None,
    language: str | None = None,
    synonyms: str | Mapping[str, str] | None = None,
    present_types_only: bool = False,
    plugins: Sequence[str] | None = None,
    skip_lint: bool = False,
) -> Contest:
    """Read and check the gold, and the questions where they are given, and settle the settings.

    What is not said here comes from `config` (weights: `strata.weights`; the rule: `options.hidden_metric.rule`), then
    from the contest.
    """
    base = load_config(config)
    plugins = [*base.plugins, *(plugins or ())]
    for plugin in plugins:
        load_plugin(plugin)
    problems, files = Problems(), [Path(gold)]
    found = read_gold(files[0], problems)
    said, notes = Asked(), list[str]()
    if questions is not None:
        files.append(Path(questions))
        turns = read_questions(files[1], problems)
        said = asked(turns, found, files[1], problems)
        if others := other_media(turns, found):
            shown = ", ".join(map(repr, others[:SHOWN]))
            notes.append(f"{len(others):,} dialogues have other parts than their type names: {shown}")
    problems.raise_if_any()
    if weights is None and base.strata is not None:
        weights = base.strata.weights
    used, absent = present_weights(
        checked_weights(weights), {own.type for own in found.values()}, present_only=present_types_only
    )
    if absent:
        told = ", ".join(f"{name} {weight:g}" for name, weight in used.items() if weight)
        notes.append(f"no dialogue is of the type {', '.join(absent)}; the weights of the others are scaled up: {told}")
    meteor = {"variant": "fmean", "language": AUTO, **base.options.get("meteor", {})}
    meteor |= {} if language is None else {"language": language}
    meteor |= {} if synonyms is None else {"synonyms": synonyms}
    languages = {language for own in found.values() for language in own.languages}
    meteor["language"] = settled_language(str(meteor["language"]), languages)
    _refuse_unavailable(meteor)
    hidden = {"rule": "confidence", **base.options.get("hidden_metric", {}), **({} if rule is None else {"rule": rule})}
    settled = overlaid(
        config,
        task=TASK,
        tasks={TASK: {"metrics": list(PARTS), "weights": PARTS}},
        options={"meteor": meteor, "hidden_metric": hidden},
        strata=StrataConfig(by=TYPE, weights=used),
        by=list(dict.fromkeys([TYPE, *base.by])),
        error_patterns=[],  # a contest counts a generator's error message as the answer that it is
        plugins=plugins or None,
        skip_lint=skip_lint,
        image_root=str(files[-1].absolute().parent),
    )
    return Contest(tuple(files), found, said, settled, tuple(notes))


def _refuse_unavailable(meteor: Mapping[str, Any]) -> None:
    """Before any submission is read: what lacks, lacks for all of them."""
    metric = compute_meteor.configure(meteor)
    reason = metric.unavailable()
    if reason is not None:
        without = "" if metric.variant == "1.5" else "\nTo do without Russian synonyms: --synonyms ru=none"
        raise UnavailableError(f"{metric.name}: {reason}{without}")


def prepare(contest: Contest, output: str | Path, perplexities: str | Path) -> tuple[Plan, JoinedInput]:
    """The plan and the samples of one submission; all that is wrong with it is said before anything is scored."""
    plan = make_plan(contest.config)  # first: in a process of its own, it is what brings a plug-in's rule
    problems = Problems()
    files = Path(output), Path(perplexities)
    dialogues = read_submission(contest.gold, *files, problems)
    samples: list[Sample] = [sample for own in dialogues for sample in samples_of(own, contest.asked)]
    hidden_values(samples, compute_hidden_metric.configure({"rule": contest.rule}), str(perplexities), problems)
    problems.raise_if_any()
    return plan, JoinedInput(samples, [*contest.files, *files], contest.notes)
