"""What a run or a log tells about its headline number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from multimodal_eval.analysis.columns import column_names, read_scores
from multimodal_eval.analysis.pairing import aligned_scores, metric_of, part_count
from multimodal_eval.analysis.slices import slice_value
from multimodal_eval.analysis.why_pairs import Mask, Ruling, Side, Strata, Texts, Vector
from multimodal_eval.core.errors import ConfigError, InputError, MediaError, MultimodalEvalError
from multimodal_eval.core.generation_config import GenerationConfig, Parameters
from multimodal_eval.core.metric import Metric, configured, declared_options
from multimodal_eval.core.records import COMPOSITE, RECORDED
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.grants import Consent
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.choices import GoldError, gold_letters, has_key, key_of, options_of
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.generate.engine import run_async
from multimodal_eval.generate.prompts import Prompts
from multimodal_eval.generate.protocol import Request
from multimodal_eval.media.policy import policy_of
from multimodal_eval.run.crosswalk import axis_of
from multimodal_eval.run.why_rules import AVERAGES, CONVENTIONS, READING, RULE, FoundRule, best_rules
from multimodal_eval.stats.exact import exact_mean

__all__ = ["SideReader", "Stated"]

Stated = tuple[Fraction, int, int | None]  # a number, 100 if it is in percent, and its decimals
_MOST_GROUPS = 200
_PROMPT_SETTINGS = (
    *("prompt", "template", "system", "shots", "shot_count", "history"),
    *("max_pixels", "detail", "frames", "frames_per_second"),
)
_OF_PROMPTS = ("shots", "num_fewshot", "num_train_trials", "max_train_instances", "system", "method")
_SAME_NAMES = {
    **dict.fromkeys(("max_new_tokens", "max_gen_toks", "max_completion_tokens"), "max_tokens"),
    **dict.fromkeys(("until", "stop_sequences", "stop_seqs"), "stop"),
}
_IGNORED = ("repeats", "epochs", "do_sample", "batch_size")


class SideReader:
    """Reads what is known about a number from its run."""

    def __init__(self, run: Run, metric: str, name: str, headline: Stated | None) -> None:
        self.run, self.metric, self.name, self.stated = run, metric, name, headline
        self.is_recorded = run.info.config.variants.get(metric) == RECORDED
        self.base, self.options = self._definition()
        self.notes: list[str] = []
        self.settles: dict[str, str] = {}
        self.explained_by_read: Mask = np.zeros(len(run), np.bool_)
        self.reproduced: Mask = np.full(len(run), self.rule is not None)
        _refuse_other_kinds(run, metric, name, self.average)

    def _definition(self) -> tuple[Metric | None, dict[str, Any]]:
        """The metric as it is registered, with the options of the run; None if the run only has its values."""
        info = self.run.info
        if self.metric == COMPOSITE or self.is_recorded or self.metric in info.config.judges:
            stored = info.signatures[self.metric].options or {}
            return None, dict(stored)
        matched = metric_of(self.run, self.metric)
        if matched is None or type(matched).__name__ == "StoredMean":
            return None, dict(info.signatures[self.metric].options or {})
        return resolve(info.config.variants.get(self.metric, self.metric)), dict(matched.options)

    @property
    def rule(self) -> Ruling | None:
        """How the answers are scored."""
        if self.base is None:
            return None
        axis = axis_of(self.base)
        kind = declared_options(self.base)[axis].rules if axis is not None else None
        reads = {n: value for n, value in self.options.items() if value is not None and (n == axis or n in READING)}
        fails = {name: value for name, value in self.options.items() if name in CONVENTIONS}
        if self.run.info.config.count_failures is not None:
            fails["failed answers"] = self.run.info.config.count_failures
        used = {axis, *READING, *fails, *AVERAGES}
        others = {name: value for name, value in self.options.items() if name not in used}
        version = {"version": self.base.version}
        return Ruling(
            {"reads": kind or self.base.name, **reads}, {"metric": self.base.name, **others, **version}, fails
        )

    @property
    def program(self) -> str:
        """Which program computed the scores."""
        imported = self.run.info.imported
        if imported is not None and self.is_recorded:
            return " ".join(filter(None, [imported.harness, imported.version, self.metric.partition(".")[2]]))
        return self.run.info.signatures[self.metric].text

    @cached_property
    def average(self) -> str:
        """How the scores are averaged."""
        by = self.options.get("rotations", "none")
        return f"all-correct({by})" if by != "none" else str(self.options.get("average", "micro"))

    # columns

    @cached_property
    def samples(self) -> list[Sample]:
        """The samples, without what no rule needs."""
        needed = (
            "question",
            "choices",
            "references",
            "expected_answer",
            "caption",
            "generated_answer",
            "metadata",
            "group",
            "task",
            "error",
            "boxes",
            "annotations",
            "prompt",
            "image",
            "images",
            "messages",
            "epoch",
        )
        return list(self.run.samples(needed))

    @cached_property
    def _values(self) -> Vector:
        stored = column_names(self.run.folder, part_count(self.run))
        return aligned_scores(self.run, stored, np.arange(len(self.run)), self.metric).values.copy()

    @cached_property
    def _details(self) -> dict[str, list[Any]]:
        present = column_names(self.run.folder, part_count(self.run))
        names = [name for name in (f"{self.metric}:status", f"{self.metric}:details", "group") if name in present]
        table = read_scores(self.run.folder, part_count(self.run), names)
        return {name: table.column(name).to_pylist() for name in names}

    @cached_property
    def side(self) -> Side:
        """All of it."""
        samples, values = self.samples, self._values
        status = self._details[f"{self.metric}:status"]
        known = any(sample.generated_answer is not None for sample in samples)
        failed = np.array(
            [
                known
                and (
                    sample.error is not None
                    or not (sample.generated_answer or "").strip()
                    or (code == "error" and not self.is_recorded)
                )
                for sample, code in zip(samples, status, strict=True)
            ],
            np.bool_,
        )
        values = self._as_counted(values)
        bounds = self._bounds(values)
        if bounds == (0.0, 100.0):
            values, bounds = values / 100, (0.0, 1.0)
        headline, scale, decimals = self._headline(values)
        request, prompting, decoding = self._asking(samples)
        if request is None and prompting is None:
            self._note("prompt", "which prompts were sent")
        if decoding is None:
            self._note("decoding", "with which parameters the answers were generated")
        return Side(
            name=self.name,
            metric=self.metric,
            program=self.program,
            headline=headline,
            scale=scale,
            decimals=decimals,
            average=self.average,
            ids=[sample.id for sample in samples],
            values=values,
            bounds=bounds,
            question=[_plain(sample.question) for sample in samples],
            choices=[
                None if not sample.choices else "\n".join(map(str, options_of(sample).values())) for sample in samples
            ],
            media=[_media(sample) for sample in samples],
            gold=list(map(_gold, samples)),
            answer=[sample.generated_answer for sample in samples],
            failed=failed,
            request=request,
            prompting=prompting,
            decoding=decoding,
            is_cut=self._cut(samples),
            read=self._read(samples),
            groups=self._details.get("group", [None] * len(samples)),
            rule=self.rule,
            reproduced=self.reproduced,
            explained_by_read=self.explained_by_read,
            keys=self._keys,
            asked_with=self._asked_with if self.run.info.config.generation is not None else None,
            strata=self.strata,
            model=self._model(),
            is_fitted=self.base is not None and self.base.corpus is not None,
            notes=self.notes,
            settles=self.settles,
        )

    def _note(self, part: str, sentence: str) -> None:
        self.settles[part] = sentence

    def _bounds(self, values: Vector) -> tuple[float | None, float | None]:
        low, high = self.run.info.bounds_of(self.metric)
        if (low, high) == (None, None) and self.is_recorded:
            scored = values[~np.isnan(values)]
            if len(scored) and scored.min() >= 0 and scored.max() <= 1:
                return 0.0, 1.0
        return low, high

    def _keys(self, columns: tuple[str, ...]) -> Texts:
        """The groups of samples by columns; None if one of them has no value."""
        return [
            "\0".join(key_of(sample, column) for column in columns)
            if all(has_key(sample, column) for column in columns)
            else None
            for sample in self.samples
        ]

    @property
    def strata(self) -> Strata | None:
        """The weights of the values of a column, if the number is weighted."""
        config = self.run.info.config.strata
        if config is None:
            return None
        return Strata(config.by, config.weights, [slice_value(sample, config.by) for sample in self.samples])

    def _read(self, samples: Sequence[Sample]) -> Texts:
        """What was read from each answer, by the run or by the log."""
        if not self.is_recorded:
            details = self._details.get(f"{self.metric}:details") or [None] * len(samples)
            return [None if text is None else _read_in(text) for text in details]
        name = self.metric.partition(".")[2]
        keys = [key for sample in samples[:1] for key in sample.metadata if key.startswith("answer.")]
        keys = [key for key in keys if name.endswith(key.partition(".")[2])] or ["extracted_answer"]
        return [None if (value := sample.metadata.get(keys[0])) is None else str(value) for sample in samples]

    def _cut(self, samples: Sequence[Sample]) -> Mask:
        finished = self._answers.get("finish") or [sample.metadata.get("stop_reason") for sample in samples]
        return np.array([each in ("length", "max_tokens") for each in finished], np.bool_)

    @cached_property
    def _answers(self) -> dict[str, list[Any]]:
        """The stored replies of a run that asked a model."""
        run = self.run
        if run.info.generation is None:
            return {}
        try:
            parts = [run.folder.read_part("answers", n, ["request", "finish"]) for n in range(part_count(run))]
        except (MultimodalEvalError, KeyError, ValueError, OSError):  # replies are evidence that scores do not need
            return {}
        return {name: [v for part in parts for v in part.column(name).to_pylist()] for name in ("request", "finish")}

    def _asking(
        self, samples: Sequence[Sample]
    ) -> tuple[Texts | None, Mapping[str, object] | None, Mapping[str, object] | None]:
        """The requests, the settings of the prompt, and the parameters; each None if it is not known."""
        info = self.run.info
        if info.config.generation is not None:
            config = msgspec.to_builtins(info.config.generation)
            prompting = {name: config[name] for name in _PROMPT_SETTINGS if name in config}
            decoding = dict(config.get("parameters", {}))
            requests = self._answers.get("request")
            texts = None if requests is None else [None if each is None else f"digest:{each}" for each in requests]
            return texts, prompting, decoding
        texts = [sample.prompt or _conversation(sample) for sample in samples]
        request = texts if any(text is not None for text in texts) else None
        settings = _flat(info.imported.settings) if info.imported is not None else {}
        prompting = {name: value for name, value in settings.items() if name in _OF_PROMPTS}
        decoding = {n: v for n, v in settings.items() if n not in _OF_PROMPTS and n not in _IGNORED}
        return request, None, decoding or None

    def _asked_with(self, rows: Sequence[int], parameters: Mapping[str, object]) -> Texts:
        """The digests of these requests if they had other parameters; None if a request cannot be made again."""
        try:
            requests = self.requests(rows, parameters)
        except MultimodalEvalError:
            return [None] * len(rows)
        return [None if request is None else f"digest:{request.digest}" for request in requests]

    def requests(self, rows: Sequence[int], parameters: Mapping[str, object]) -> list[Request | None]:
        """What was asked for these samples, with these parameters; None if a request cannot be made again."""
        consent = Consent(self.run.folder, self.run.info)
        settings, config = consent.config, consent.config.generation
        if config is not None and (config.history or (config.shots is not None and not consent.is_own)):
            return [None] * len(rows)
        names = {name: parameters[name] for name in Parameters.__struct_fields__ if name in parameters}
        if isinstance(names.get("stop"), str):
            names["stop"] = [names["stop"]]
        changed = msgspec.structs.replace(
            config or GenerationConfig(model="the model of a log"),
            parameters=msgspec.convert(names, Parameters, strict=False),
        )
        prompts = Prompts(changed, settings.task, policy=policy_of(settings), seed=settings.seed)
        samples = list(self.run.samples())

        async def made() -> list[Request | None]:
            requests: list[Request | None] = []
            for row in rows:
                try:
                    requests.append(await prompts.request(samples[row]))
                except (MediaError, InputError):
                    requests.append(None)
            return requests

        return run_async(made())

    def _model(self) -> str | None:
        info = self.run.info
        if info.imported is not None:
            return info.imported.model
        return None if info.config.generation is None else info.config.generation.model

    # the stated number

    def _as_counted(self, values: Vector) -> Vector:
        """The scores as the program averages them: samples without a score count as 0 if only that gives its number."""
        stated = self._reported()
        unscored = np.isnan(values)
        if stated is None or not unscored.any() or self.average != "micro":
            return values
        number, scale, decimals = stated
        counted = np.where(unscored, 0.0, values)
        if not _is_close(exact_mean(values[~unscored]), number, scale, decimals) and _is_close(
            exact_mean(counted), number, scale, decimals
        ):
            return counted
        return values

    def _reported(self) -> Stated | None:
        if self.stated is not None:
            return self.stated
        imported = self.run.info.imported
        matched = next((r for r in imported.reported if r.metric == self.metric), None) if imported else None
        if matched is None:
            return None
        text = repr(matched.value)
        digits = len(text.partition(".")[2]) if "e" not in text else 17
        decimals = matched.decimals if matched.decimals is not None else digits if digits <= 6 else None
        mean = self.run.entries[self.metric].value or 0.0
        is_percent = abs(matched.value) > 1 and abs(matched.value - 100 * mean) < 25 and 0 <= mean <= 1
        return Fraction(text), 100 if is_percent else 1, decimals

    def _headline(self, values: Vector) -> Stated:
        """What the program states, else the number of the run. An average that gives it is looked for."""
        stated = self._reported()
        if stated is None:
            return Fraction(self.run.entries[self.metric].value or 0.0), 1, None
        number, scale, decimals = stated
        if self.average == "micro" and not _is_close(exact_mean(values[~np.isnan(values)]), number, scale, decimals):
            self._find_average(values, number, scale, decimals)
        return stated

    def _find_average(self, values: Vector, number: Fraction, scale: int, decimals: int | None) -> None:
        """Try the mean over the values of each column."""
        columns = list(dict.fromkeys(name for sample in self.samples[:100] for name in sample.metadata))
        for column in [*columns, *(["task"] if self.samples[0].task else [])]:
            keys = self._keys((column,))
            groups: dict[str, list[float]] = {}
            for key, value in zip(keys, values.tolist(), strict=True):
                if key is not None and value == value:
                    groups.setdefault(key, []).append(value)
            if not 2 <= len(groups) <= _MOST_GROUPS or set("(),=") & set(column):
                continue
            means = [exact_mean(np.array(each)) or Fraction(0) for each in groups.values()]
            if _is_close(sum(means, Fraction(0)) / len(means), number, scale, decimals):
                self.average = f"macro({column})"
                return
        aggregation = next(
            (r.aggregation for r in getattr(self.run.info.imported, "reported", ()) if r.metric == self.metric), None
        )
        how = f" ({aggregation})" if aggregation else ""
        self._note("aggregation", f"how its number{how} is computed from its scores")

    # the rule

    @cached_property
    def matched(self) -> list[FoundRule]:
        """The rules that give most of the scores, if the run names none."""
        return best_rules(self.samples, self._values) if self.base is None else []

    def _settle_read(self, known: Mask) -> None:
        """Find the rule that gives the scores from what was extracted, if the log has that."""
        read = self._read(self.samples)
        if not any(text is not None for text in read):
            return
        samples = [
            msgspec.structs.replace(sample, generated_answer=text or "")
            for sample, text in zip(self.samples, read, strict=True)
        ]
        best = next(iter(best_rules(samples, self._values)), None)
        if best is not None and 2 * int(best.reproduced.sum()) > int(known.sum()):
            self.explained_by_read = best.reproduced
            count = int(best.reproduced[known].sum())
            self.notes.append(
                f"{self.name} has what was extracted: {best.name} gives {count:,} of {int(known.sum()):,} scores of it"
            )

    @property
    def rule_names(self) -> list[str]:
        """The rule of the run, or those that were found."""
        if self.base is None:
            return [each.name for each in self.matched]
        return [f"{self.base.name} {self.options.get(RULE)}"]

    def settle_rule(self, preferred: Sequence[str]) -> None:
        """Take the rule that gives the scores of the log; of several, one that the other side may have, too."""
        if self.base is not None:
            return
        known = ~np.isnan(self._values)
        best = next((each for each in self.matched if each.name in preferred), next(iter(self.matched), None))
        count = 0 if best is None else int(best.reproduced[known].sum())
        if best is None or 2 * count < int(known.sum()):
            self._settle_read(known)
            self._note("reading", "by which rule it reads answers: none that is known fits its scores")
            return
        others = [each.name for each in self.matched if each is not best]
        more = f" (as do {len(others)} others, such as {others[0]})" if others else ""
        self.notes.append(
            f"{self.name} names no rule: {best.name} gives {count:,} of {int(known.sum()):,} scores{more}"
        )
        self._settle_read(known)
        self.base = best.metric
        self.options = {**configured(best.metric, best.options).options, "average": self.average}
        self.reproduced = best.reproduced
        rest = f"how {int(known.sum()) - count:,} of its scores come about, which {best.name} does not give"
        self.settles.update(dict.fromkeys(("reading", "scoring"), rest))


def _refuse_other_kinds(run: Run, metric: str, name: str, average: str) -> None:
    if average == "micro" and run.kind_of(metric) == "corpus":
        raise ConfigError(
            f"{metric} of {name} is one score of all samples together, so its difference has no parts by sample. "
            f"`--metrics` names a mean over samples"
        )


def _read_in(details: str) -> str | None:
    content: Any = msgspec.json.decode(details)
    read = content.get("read") if isinstance(content, dict) else None
    return None if read is None else str(read)


def _plain(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())


def _media(sample: Sample) -> str | None:
    """The names of the images, as far as they say which images these are."""
    sources = [*([sample.image] if sample.image is not None else []), *(sample.images or [])]
    return "\n".join(str(each).rpartition("/")[2][-100:] for each in sources) or None


def _gold(sample: Sample) -> str | None:
    """The gold answers in any order; of choices, their texts, which may have other letters."""
    golds = [] if sample.expected_answer is None else [sample.expected_answer]
    golds = golds or list(sample.references or sample.reference_texts)
    if sample.choices:
        with suppress(GoldError):
            options = options_of(sample)
            golds = [str(options[letter]) for letter in gold_letters(sample, options)]
    golds += [repr(each) for each in sample.boxes or ()]
    if not golds and sample.annotations:
        golds = [f"{name}: {value}" for name, value in sample.annotations.items()]
    return "\n".join(sorted(" ".join(gold.split()) for gold in golds)) if golds else None


def _conversation(sample: Sample) -> str | None:
    """The messages before the answer."""
    return None if not sample.messages else msgspec.json.encode(sample.messages).decode()


def _flat(settings: Mapping[str, Any]) -> dict[str, object]:
    """The settings of a log with the names that are common."""
    flat: dict[str, object] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value)
        else:
            flat[_SAME_NAMES.get(name, name)] = value
    return flat


def _is_close(mean: Fraction | None, stated: Fraction, scale: int, decimals: int | None) -> bool:
    """Whether a program that computes this mean states this number."""
    if mean is None:
        return False
    half = Fraction(1, 2 * 10**decimals) if decimals is not None else Fraction(0)
    return abs(mean * scale - stated) <= half + Fraction(1, 10**9) * max(Fraction(1), abs(stated))
