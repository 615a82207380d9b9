"""Logs of HELM: `scenario_state.json`, with `per_instance_stats.json`, `stats.json` and `run_spec.json` beside it.

A request state is one sample. Its scores are those of the same instance, train trial and perturbation. Trials are
epochs of an instance. Scores of perturbed instances, and of each split if there are several, have columns of their
own, since HELM averages them apart: `helm.exact_match`, `helm.exact_match_typos`, `helm.exact_match_valid`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.data.logs.decoding import decoded_elements, document_of
from multimodal_eval.data.logs.log_format import Head, LogInfo, RecordedScore, as_score, score_column
from multimodal_eval.data.readers.blocks import DamagedStreamError, open_bytes
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT"]

HARNESS = "helm"
_STATE, _PER_INSTANCE, _STATS_FILE = "scenario_state.json", "per_instance_stats.json", "stats.json"
_TRIALS, _HEAD = re.compile(rb'"num_train_trials"\s*:\s*(\d{1,6})'), 1 << 16
_CHOSEN = "predicted_index"  # of the references, if each is a request of its own
# Counts and times of the requests, which are not scores.
_COUNTS = {
    "num_prompt_tokens": "input_tokens",
    "num_output_tokens": "output_tokens",
    "num_completion_tokens": "output_tokens",
    "inference_runtime": "inference_runtime",
    "predicted_index": _CHOSEN,
}
_NOT_SCORES = frozenset(
    """
    num_references num_train_trials num_train_instances num_bytes num_instances num_perplexity_tokens batch_size
    prompt_truncated max_prob logprob finish_reason_length finish_reason_stop finish_reason_endoftext
    finish_reason_unknown training_co2_cost training_energy_cost inference_idealized_runtime
    inference_denoised_runtime inference_runtime_discrepancy estimated_num_tokens_cost
    """.split()
)
_LOWER = frozenset("perplexity bits_per_byte logprob_per_byte edit_distance ece_1_bin ece_10_bin toxic_frac".split())
Key = tuple[str, int, str]  # instance, trial, perturbation


class _Perturbation(msgspec.Struct):
    name: str = ""
    computed_on: str = "perturbed"


class _Medium(msgspec.Struct):
    content_type: str = ""
    text: str | None = None
    location: str | None = None


class _Media(msgspec.Struct):
    media_objects: list[_Medium] = []


class _Content(msgspec.Struct):
    text: str = ""
    multimedia_content: _Media | None = None
    messages: list[dict[str, Any]] | None = None


class _Reference(msgspec.Struct):
    output: _Content
    tags: list[str] = []


class _Instance(msgspec.Struct):
    input: _Content
    references: list[_Reference] = []
    split: str | None = None
    sub_split: str | None = None
    id: str | None = None
    perturbation: _Perturbation | None = None


class _Request(msgspec.Struct):
    prompt: str | None = None
    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None


class _Thinking(msgspec.Struct):
    text: str | None = None


class _Completion(msgspec.Struct):
    text: str | None = None
    thinking: _Thinking | None = None


class _Result(msgspec.Struct):
    success: bool = True
    completions: list[_Completion] | None = None
    error: str | None = None


class _RequestState(msgspec.Struct):
    instance: _Instance
    train_trial_index: int = 0
    output_mapping: dict[str, str] | None = None
    request: _Request | None = None
    result: _Result | None = None
    reference_index: int | None = None
    request_mode: str | None = None


class _StatName(msgspec.Struct):
    name: str
    split: str | None = None
    sub_split: str | None = None
    perturbation: _Perturbation | None = None


class _Stat(msgspec.Struct):
    name: _StatName
    count: int = 0
    sum: float = 0.0
    mean: float | None = None


class _InstanceStats(msgspec.Struct):
    instance_id: str
    stats: list[_Stat]
    train_trial_index: int = 0
    perturbation: _Perturbation | None = None


class _Adapter(msgspec.Struct):
    model: str | None = None
    method: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    num_train_trials: int | None = None
    max_train_instances: int | None = None


class _RunSpec(msgspec.Struct):
    name: str | None = None
    adapter_spec: _Adapter | None = None


_STATES, _PER_INSTANCES = msgspec.json.Decoder(_RequestState), msgspec.json.Decoder(_InstanceStats)
_STATS = msgspec.json.Decoder(_Stat)


@dataclass(frozen=True)
class _Scores:
    """The scores of every sample, and what distinguishes their columns."""

    values: dict[Key, dict[str, float]]  # by column
    counts: dict[Key, dict[str, float]]  # tokens and times
    columns: dict[str, tuple[str, str | None, str]]  # column -> metric, split, perturbation
    trials: int


class Helm:
    """The format of HELM."""

    name, harness = HARNESS, HARNESS
    suffixes = (".json",)
    files = "scenario_state.json, with per_instance_stats.json and stats.json beside it"
    takes = "completion, prompt, choices, references, images, trials, perturbations, scores"

    def recognises(self, head: Head) -> bool:
        """By the keys at the beginning."""
        if head.has_keys("adapter_spec", "request_states"):
            return True
        return head.has_keys("instance_id", "stats", "sum_squared") or (
            head.path.name.startswith(_STATE) and head.has_keys("adapter_spec")
        )

    def part_name(self, path: Path) -> str:
        """The run."""
        return path.parent.name or path.stem

    def main_files(self, paths: Sequence[Path]) -> list[Path]:
        """The states."""
        return [path for path in paths if not path.name.startswith(_PER_INSTANCE)] or list(paths)

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per request state."""
        path = _state_of(path)
        if path.name.startswith(_PER_INSTANCE):
            hint = f"Put {_STATE} of the run into the same folder."
            problems.add("NOT_FOUND", "these are scores without their samples.", file=str(path), hint=hint)
            return
        scores = _scores(path, problems)
        states = decoded_elements(path, problems, _STATES, "a request state of HELM", key="request_states")
        for line, state in states:
            # If every choice is a request of its own, the first is that of the instance.
            if state.request_mode != "calibration" and not state.reference_index:
                yield line, _record(state, scores)

    def info(self, path: Path) -> LogInfo:
        """What the run's specification and its statistics say."""
        path = _state_of(path)
        spec = document_of(path.with_name("run_spec.json"), _RunSpec) or _RunSpec()
        adapter = spec.adapter_spec or _Adapter()
        scores = _scores(path, Problems())
        means = _means(path)
        settings = msgspec.to_builtins(adapter)
        return LogInfo(
            HARNESS,
            model=adapter.model,
            task=spec.name or self.part_name(path),
            scores=tuple(
                RecordedScore(
                    column,
                    "lower" if metric in _LOWER else "higher",
                    own_mean=means.get((metric, split, perturbation)),
                )
                for column, (metric, split, perturbation) in scores.columns.items()
            ),
            notes=_notes(path),
            settings={key: value for key, value in settings.items() if value is not None and key != "model"},
        )


FORMAT = Helm()


def _state_of(path: Path) -> Path:
    """The states of the run of a file."""
    if not path.name.startswith(_PER_INSTANCE):
        return path
    state = path.with_name(path.name.replace(_PER_INSTANCE, _STATE))
    return state if state.is_file() else path


def _perturbed(perturbation: _Perturbation | None) -> str:
    return "" if perturbation is None else perturbation.name


def _beside(path: Path, name: str) -> Path | None:
    """Another file of the run, which may be compressed too."""
    suffixes = path.name.removeprefix(_STATE) if path.name.startswith(_STATE) else ""
    for each in (path.with_name(name), path.with_name(name + suffixes)):
        if each.is_file():
            return each
    return None


def _scores(path: Path, problems: Problems) -> _Scores:
    """The scores of a run, from the file beside its states. They are numbers only, and fit into memory."""
    scores = _Scores({}, {}, {}, _trials(path))
    file = _beside(path, _PER_INSTANCE)
    if file is None:
        return scores
    splits, trials, named = set[str | None](), scores.trials, list[tuple[Key, str, str | None, float]]()
    for _, entry in decoded_elements(file, problems, _PER_INSTANCES, "statistics of an instance of HELM"):
        key = entry.instance_id, entry.train_trial_index, _perturbed(entry.perturbation)
        trials = max(trials, entry.train_trial_index + 1)
        for stat in entry.stats:
            value = as_score(stat.mean if stat.mean is not None else stat.sum)
            if not stat.count or value is None:
                continue
            if stat.name.name in _COUNTS:
                count = int(value) if value.is_integer() else value
                scores.counts.setdefault(key, {})[_COUNTS[stat.name.name]] = count
            elif stat.name.name not in _NOT_SCORES:
                splits.add(stat.name.split)
                named.append((key, stat.name.name, stat.name.split, value))
    for key, metric, split, value in named:
        parts = [metric, *([split] if len(splits) > 1 and split else []), *([key[2]] if key[2] else [])]
        column = score_column(HARNESS, "_".join(parts))
        scores.columns.setdefault(column, (metric, split, key[2]))
        scores.values.setdefault(key, {})[column] = value
    return _Scores(scores.values, scores.counts, scores.columns, trials)


def _trials(path: Path) -> int:
    """The number of train trials, from the settings at the beginning of the states."""
    try:
        with open_bytes(path) as stream:
            match = _TRIALS.search(stream.read(_HEAD))
    except (OSError, DamagedStreamError):
        return 1
    return 1 if match is None else int(match[1])


def _notes(path: Path) -> tuple[str, ...]:
    """Why no means are compared."""
    if _beside(path, _STATS_FILE) is not None:
        return ()
    return (f"there is no {_STATS_FILE} beside the samples, so its means are not compared",)


def _means(path: Path) -> dict[tuple[str, str | None, str], float]:
    """The means of HELM by metric, split and perturbation."""
    file = _beside(path, _STATS_FILE)
    if file is None:
        return {}
    means: dict[tuple[str, str | None, str], float] = {}
    for _, stat in decoded_elements(file, Problems(), _STATS, "a statistic of HELM"):
        perturbation, mean = stat.name.perturbation, as_score(stat.mean)
        whole = stat.name.sub_split is None
        if mean is not None and whole and (perturbation is None or perturbation.computed_on == "perturbed"):
            means.setdefault((stat.name.name, stat.name.split, _perturbed(perturbation)), mean)
    return means


def _record(state: _RequestState, scores: _Scores) -> Columns:
    instance = state.instance
    perturbation = _perturbed(instance.perturbation)
    name = f"{instance.id}-{perturbation}" if perturbation else instance.id
    record: Columns = {"id": name}
    key = str(instance.id), state.train_trial_index, perturbation
    if perturbation:
        record |= {"perturbation": perturbation, "group": instance.id}
    if scores.trials > 1:
        record |= {"id": f"{name}#{state.train_trial_index + 1}", "epoch": state.train_trial_index + 1}
        record["group"] = instance.id
    counts = dict(scores.counts.get(key, {}))
    chosen = counts.pop(_CHOSEN, None)
    record |= _inputs(state) | (_answer(state) if state.reference_index is None else _chosen(instance, chosen))
    record |= {"split": instance.split, "sub_split": instance.sub_split}
    return record | counts | scores.values.get(key, {})


def _inputs(state: _RequestState) -> Columns:
    instance = state.instance
    media = instance.input.multimedia_content
    objects = [] if media is None else media.media_objects
    texts = [medium.text for medium in objects if medium.text]
    images = [medium.location for medium in objects if medium.content_type.startswith("image") and medium.location]
    correct = [reference.output.text for reference in instance.references if "correct" in reference.tags]
    correct = [text for text in dict.fromkeys(correct) if text.strip()]
    record: Columns = {
        "question": instance.input.text or "\n".join(texts) or None,
        "references": correct or None,
        "prompt": None if state.request is None else state.request.prompt or None,
    }
    if len(images) == 1:
        record["image"] = images[0]
    elif images:
        record["images"] = images
    if state.output_mapping:
        record["choices"] = {letter: text for letter, text in state.output_mapping.items() if text}
        letters = [letter for letter, text in state.output_mapping.items() if text in correct]
        if len(letters) == 1:
            record |= {"expected_answer": letters[0], "references": None}
    return record


def _chosen(instance: _Instance, chosen: float | None) -> Columns:
    """The reference with the highest log-probability, as HELM found it."""
    texts = [reference.output.text for reference in instance.references]
    place = -1 if chosen is None else int(chosen)
    answer: Columns = {"generated_answer": texts[place]} if 0 <= place < len(texts) else {}
    return answer | {"choices": [text for text in texts if text.strip()] or None}


def _answer(state: _RequestState) -> Columns:
    """The first completion; the others are metadata."""
    result = state.result
    if result is None:
        return {"error": "the request was not executed"}
    texts = [completion.text for completion in result.completions or [] if completion.text is not None]
    if not result.success or not texts:
        return {"error": result.error or "the request has no completion"}
    first = (result.completions or [])[0]
    return {
        "generated_answer": texts[0],
        "other_answers": texts[1:] or None,
        "reasoning": None if first.thinking is None else first.thinking.text,
    }
