"""Check a part that you wrote: the contract that the parts of this package keep, one line in any test.

>>> from multimodal_eval import Sample, metric
>>> from multimodal_eval.testing import check_metric
>>> @metric("brevity", needs=("generated_answer",), bounds=(0, 1), version="1")
... def compute_brevity(sample: Sample, *, target: int = 3) -> float:
...     return min(1.0, target / len(sample.generated_answer.split())) if sample.generated_answer.strip() else 0.0
>>> answers = [Sample("1", generated_answer="a dog"), Sample("2", generated_answer="a dog on a beach")]
>>> check_metric(compute_brevity, answers)

Each check returns nothing, or raises an AssertionError that says what is wrong and what to do. The parts of a package
are checked under the name that its entry point gives them: `check_metric("brevity", answers)`.
"""

from __future__ import annotations

import asyncio
import copy
import io
import math
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec
import numpy as np
from PIL import Image

from multimodal_eval import (
    Answer,
    Generator,
    Media,
    Metric,
    Request,
    RetryableError,
    Rows,
    Sample,
    Score,
    Text,
    Turn,
)
from multimodal_eval.core.batch import Batch, rows_without
from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.corpus import default_state, fitted, load_state, save_state
from multimodal_eval.core.errors import (
    AskingError,
    ConfigError,
    InputError,
    MultimodalEvalError,
    UnknownNameError,
    shorten,
)
from multimodal_eval.core.metric import configured, signature_of
from multimodal_eval.core.rules import Rule, families, find_rule, rules_named, rules_of
from multimodal_eval.core.scoring import aggregate_of, score_batch
from multimodal_eval.data.logs.log_format import Head, LogFormat, LogInfo
from multimodal_eval.data.logs.recognised import log_format
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.problems import Problems, Record
from multimodal_eval.evaluation.contract import ANSWERS, SAMPLES, RuleContract, rule_contracts
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.generate.engine import run_async
from multimodal_eval.generate.protocol import Finish, RejectedError
from multimodal_eval.generate.registry import answer_from, checked, find_generator
from multimodal_eval.run import recipe_checks

__all__ = ["check_metric", "check_provider", "check_reader", "check_recipe", "check_rule"]

THREADS, ROUNDS = 4, 5
MOST = 3  # faults of a message
T = TypeVar("T")


def _refuse(what: str, faults: Iterable[str]) -> None:
    """Raise an AssertionError that lists the first faults, if there are any."""
    listed = list(islice(dict.fromkeys(faults), MOST))
    if listed:
        raise AssertionError(f"{what}: {listed[0]}" + "".join(f"\n- {fault}" for fault in listed[1:]))


def _called(what: str, function: Callable[[], T]) -> T:
    """What the function returns. An exception of it becomes the cause of an AssertionError."""
    try:
        return function()
    except AssertionError:
        raise
    except Exception as error:
        text = str(error) if isinstance(error, MultimodalEvalError) else f"{type(error).__name__}: {error}"
        raise AssertionError(f"{what}: {text}") from error


# Metrics


def check_metric(metric: Metric | str, samples: Sequence[Sample] | None = None) -> None:
    """Check a metric, or the one with that name.

    `samples` are at least two that it scores, with different values; by default, those of the kit that it can score.
    Values must be within the bounds and not depend on order, batches or threads. Samples without inputs, or with an
    error of the model, have no value; a blank answer is not rewarded, and no answer crashes it. Options, corpus
    statistics, signature and aggregate are what a run needs.
    """
    if isinstance(metric, str):
        name = metric
        metric = _called("check_metric", lambda: resolve(name))
    if not isinstance(metric, Metric):
        raise AssertionError(
            f"check_metric takes a metric, which @metric and `register` return, or its name. Got {shorten(metric)}"
        )
    if reason := metric.unavailable():
        raise AssertionError(f"{metric.name}: it cannot be opened here: {reason}")
    if samples is None:
        samples = _scorable(metric)
    if len(samples) < 2:
        needs = ", ".join(metric.needs)
        raise AssertionError(
            f"{metric.name}: check_metric needs two samples or more. Got {len(samples)} with {needs}. Pass more: "
            "check_metric(metric, [Sample(…), …])"
        )
    case = _MetricCase(metric, list(samples))
    for check in _METRIC_CHECKS:
        _refuse(metric.name, _called(metric.name, lambda check=check: list(check(case))))  # type: ignore[misc]


def _scorable(metric: Metric) -> list[Sample]:
    """The samples of the kit that the metric scores, or fails on."""
    kit = copy.deepcopy(SAMPLES)
    batch = Batch.of(kit)
    lacking = [rows_without(batch, need) for need in metric.needs]
    samples = [sample for row, sample in enumerate(kit) if not any(rows[row] for rows in lacking)]
    scores = _MetricCase(metric, samples).scores if samples else []
    return [sample for sample, score in zip(samples, scores, strict=True) if score.status in ("ok", "error")]


class _MetricCase:
    """A metric and samples that it scores."""

    def __init__(self, metric: Metric, samples: list[Sample]) -> None:
        self.metric, self.samples = metric, samples
        self.unchanged = copy.deepcopy(samples)
        self.reads_answers = "generated_answer" in metric.needs
        self.scorer = _called(f"{metric.name}: `open` fails", self.opened)
        self.scores = self.score(samples)

    def opened(self) -> Any:
        return self.metric.open(self.state())

    def state(self, samples: Sequence[Sample] | None = None) -> Any:
        """The statistics of the samples; the default ones if the metric needs none."""
        if not self.metric.corpus:
            return default_state(self.metric)
        return fitted(self.metric, self.samples if samples is None else samples)

    def score(self, samples: Sequence[Sample], scorer: Any = None) -> list[Score]:
        return score_batch(self.metric, scorer or self.scorer, samples)

    def answered(self, answer: str) -> list[Sample]:
        """The samples with another answer."""
        return [msgspec.structs.replace(sample, generated_answer=answer) for sample in self.samples]


def _scores(case: _MetricCase) -> Iterator[str]:
    for sample, score in zip(case.samples, case.scores, strict=True):
        if score.status != "ok" or score.value is None:
            why = f"{score.status}: {score.reason}" if score.reason else score.status
            yield f"the sample {sample.id!r} has no score ({why}). Pass samples that the metric scores, or correct it"
    if case.samples != case.unchanged:
        yield "it changes its samples, which other metrics get, too. Make a copy"
    values = {score.value for score in case.scores}
    if len(values) == 1:
        yield f"all samples have the value {values.pop()}. Pass samples with different values, or correct the metric"


def _order(case: _MetricCase) -> Iterator[str]:
    alone = [case.score([sample])[0] for sample in case.samples]
    rotated = case.score(case.samples[1:] + case.samples[:1])
    for which, scores in (("alone", alone), ("in another order", rotated[-1:] + rotated[:-1])):
        for sample, first, second in zip(case.samples, case.scores, scores, strict=True):
            if first != second:
                yield (
                    f"the sample {sample.id!r} scores {first.value}, and {second.value} {which}. A score must depend "
                    "on the sample and on the statistics of `corpus` only: keep nothing between calls, draw nothing"
                )


def _threads(case: _MetricCase) -> Iterator[str]:
    if case.metric.placement != "thread":
        return
    shared = case.opened()
    with ThreadPoolExecutor(THREADS) as pool:
        together = pool.map(lambda _: case.score(case.samples, shared), range(THREADS * ROUNDS))
        if any(scores != case.scores for scores in together):
            yield (
                "scores differ if several threads share the metric. An opened metric must not change its state; "
                'or declare placement="process"'
            )


def _bare(case: _MetricCase) -> Iterator[str]:
    metric, bare = case.metric, Sample("bare")
    (score,) = case.score([bare])
    if (score.value, score.status) != (None, "missing_input"):
        yield (
            f"a sample without fields gets {score.value} ({score.status}). Declare every field that it reads in "
            "`needs`: samples without them are then unscored"
        )
    if metric(bare) != 0.0:
        yield f"for a sample without fields it returns {metric(bare)} instead of 0.0"


def _failed_answer(case: _MetricCase) -> Iterator[str]:
    for score in case.score(case.answered("[ERROR] out of memory"))[:1]:
        if case.reads_answers and (score.value, score.status) != (None, "error"):
            yield f"an answer that is an error of the model gets {score.value} ({score.status}). It must have no score"


def _blank(case: _MetricCase) -> Iterator[str]:
    if not case.reads_answers:
        return
    metric, higher = case.metric, case.metric.direction == "higher"
    worst, best = (metric.bounds[0], max) if higher else (metric.bounds[1], min)
    for sample, score in zip(case.samples, case.score(case.answered("  ")), strict=True):
        if score.value is None:
            continue
        if worst is not None and score.value != worst:
            yield (
                f"a blank answer to the sample {sample.id!r} gets {score.value}, but the worst value is {worst}. "
                f"Return that, or declare blank={worst}"
            )
        top = best(each.value for each in case.scores if each.value is not None)
        if worst is None and score.value == best(score.value, top):
            yield f"a blank answer gets {score.value}, which is as good as the best sample. Declare its value: blank=…"


def _any_answer(case: _MetricCase) -> Iterator[str]:
    for answer in ANSWERS:
        for sample, score in zip(case.samples, case.score(case.answered(answer)), strict=True):
            if score.status == "error":
                yield (
                    f"the answer {shorten(answer)} to the sample {sample.id!r} is an error: {score.reason}. "
                    "Give every text a value within the bounds, or return None with a reason"
                )


def _options(case: _MetricCase) -> Iterator[str]:
    metric = case.metric
    again = configured(metric, metric.options)
    if again.options != metric.options:
        yield f"its options change if they are set again: {metric.options} becomes {again.options}. See `settle`"
    elif signature_of(again, case.state()) != signature_of(metric, case.state()):
        yield "its signature differs the second time. It may contain only settings: see `settle` and `settings`"


def _corpus(case: _MetricCase) -> Iterator[str]:
    if not case.metric.corpus:
        return
    whole = case.state()
    if case.state(case.samples[:1]) + case.state(case.samples[1:]) != whole:
        yield (
            "its corpus statistics of two parts do not add up to those of the whole. `+` must give what `corpus` "
            "gives for both parts together, and states need `==` (a dataclass has it)"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "state")
        save_state(whole, path)
        if load_state(case.metric, path) != whole:
            yield "its corpus statistics differ after they were stored and read. Give the state `save` and `load`"


def _aggregate(case: _MetricCase) -> Iterator[str]:
    stats = [score.stats for score in case.scores]
    matrix = None if any(row is None for row in stats) else np.array(stats, dtype=float)
    values = np.array([score.value for score in case.scores], dtype=float)
    estimate = aggregate_of(case.metric)(Rows(values, matrix))
    if len(estimate.influence) != len(case.samples):
        yield (
            f"`aggregate` gives {len(estimate.influence)} influence values for {len(case.samples)} rows. Intervals "
            "need one per row: see `multimodal_eval.stats.estimates.function_of_sums`"
        )
    elif abs(float(np.mean(estimate.influence))) > 1e-9 * max(1.0, abs(estimate.value)):
        yield "the influence values of `aggregate` do not sum to 0, so that its intervals would be wrong"


# In this order: a check may rely on those before it.
_METRIC_CHECKS = (_scores, _options, _corpus, _order, _threads, _aggregate, _bare, _failed_answer, _any_answer, _blank)


# Rules


def check_rule(rule: str | Callable[..., Any], family: str = "", cases: Mapping[Any, Any] | Iterable[Any] = ()) -> None:
    """Check a rule: its name, or the function that `@rule` registered. Without a family, check it in all its families.

    Any answer must give what the rules of the family return, the same every time, without an exception. `cases` are
    pairs of arguments and what the rule returns for them: `{"It is B.": "B"}`, or `[(("a dog", "dog"), 1.0)]` for
    several arguments. For a rule that returns a `Reading`, its choice is enough; the options are then A to C. A family
    of your own needs cases.
    """
    registered, pairs = _registered(rule, family), list(cases.items() if isinstance(cases, Mapping) else cases)
    if pairs and len(registered) > 1:
        raise AssertionError(f"cases are for one family. Pass one of {', '.join(each.family for each in registered)}")
    for each in registered:
        _check_one_rule(each, pairs)


def _registered(rule: str | Callable[..., Any], family: str) -> list[Rule]:
    if isinstance(rule, str) and family:
        return [_called("check_rule", lambda: find_rule(family, rule))]
    if isinstance(rule, str):
        named = list(rules_named(rule))
        names = sorted({name for each in families() for name in rules_of(each)})
        if not named:
            raise AssertionError(f"check_rule: {UnknownNameError('rule', rule, names)}")
    else:
        among = [family] if family else families()
        every = (known for name in among for known in _called("check_rule", partial(rules_of, name)).values())
        named = [known for known in every if known.function is rule]
    if not named:
        of, first = (f" of {family}", repr(family)) if family else ("", "FAMILY")
        raise AssertionError(f"{shorten(rule)} is not a rule{of}. Register it: @rule({first}, …)")
    return named


def _check_one_rule(rule: Rule, cases: Sequence[tuple[Any, Any]]) -> None:
    known = rule_contracts().get(rule.family)
    if known is None and not cases:
        raise AssertionError(f"{rule.name}: the family {rule.family!r} is not one of this package. Pass cases")
    what = f"{rule.name} ({rule.family})"
    _refuse(what, [] if rule.origin.strip() else ["it has no `origin`. Say in words where the rule is defined"])
    _refuse(what, [] if known is None else _rule_faults(rule, known))
    _refuse(what, _case_faults(rule, known, cases))


def _rule_faults(rule: Rule, family: RuleContract) -> Iterator[str]:
    for answer in ANSWERS:
        arguments = copy.deepcopy(family.arguments)
        what = (
            f"it fails on the answer {shorten(answer)}. A rule accepts any text, and returns unread if it finds nothing"
        )
        value = _called(f"{rule.name}: {what}", partial(rule.function, answer, *arguments))
        if not family.fits(value):
            yield f"for the answer {shorten(answer)} it must return {family.returns}. Got {shorten(value)}"
        elif arguments != family.arguments:
            yield "it changes its arguments, which other rules get, too. Make a copy"
        elif _called(f"{rule.name}: {what}", partial(rule.function, answer, *arguments)) != value:
            yield (
                f"it reads {shorten(answer)} in two ways. A rule may not draw: return Reading(None, among=…) with what "
                "the origin draws from"
            )


def _case_faults(rule: Rule, family: RuleContract | None, cases: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    for given, expected in cases:
        arguments = given if isinstance(given, tuple) else (given, *(family.arguments if family is not None else ()))
        value = _called(f"{rule.name}: it fails on {shorten(given)}", partial(rule.function, *arguments))
        reads = value.choice if hasattr(value, "choice") and isinstance(expected, str | None) else value
        if reads != expected:
            yield f"it gives {shorten(reads)} for {shorten(given)}. Expected {shorten(expected)}"


# Readers

# What a reader of a more special format leaves alone.
_PLAIN = {".jsonl": b'{"id": "1"}\n', ".json": b'[{"id": "1"}]', ".csv": b"id\n1\n", ".tsv": b"id\tquestion\n1\ta\n"}


def check_reader(reader: LogFormat | str, path: str | Path | None = None) -> None:
    """Check the reader of a file format, by a file of that format that its program wrote.

    The reader must recognise the file and no other, give the same samples every time, and report every kind of damage
    as a problem: a cut file, changed bytes, an empty one. Without a file, only other files and damage are tried. See
    `data.logs.log_format` for what a reader is.
    """
    if isinstance(reader, str):
        name = reader
        reader = _called("check_reader", lambda: log_format(name))
    members = LogFormat.__annotations__.keys() | {"recognises", "part_name", "records", "info"}
    missing = sorted(member for member in members if not hasattr(reader, member))
    _refuse(f"the reader {type(reader).__name__}", [f"it has no `{member}`. See LogFormat" for member in missing])
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, f"other{reader.suffixes[0]}")
        plain.write_bytes(_PLAIN.get(plain.suffix, b"id 1"))
        case = _ReaderCase(reader, plain if path is None else Path(path))
        of_its_file = () if path is None else (_recognises, _records, _info)
        for check in (*of_its_file, _leaves_others, _damage):
            _refuse(reader.name, _called(reader.name, lambda check=check: list(check(case))))  # type: ignore[misc]


@dataclass(frozen=True)
class _ReaderCase:
    """A reader and a file of its format."""

    reader: LogFormat
    path: Path

    def recognises(self, path: Path, content: bytes) -> bool:
        return self.reader.recognises(Head(path, bare_suffix(path), content[: 1 << 16]))

    def read(self, path: Path) -> tuple[list[Record], Problems]:
        problems = Problems()
        try:
            return list(self.reader.records(path, problems)), problems
        except InputError as refused:
            for problem in refused.problems:
                problems.add(problem.code, problem.message, file=problem.file)
            return [], problems


def _recognises(case: _ReaderCase) -> Iterator[str]:
    suffix = bare_suffix(case.path)
    if suffix not in case.reader.suffixes:
        yield f"its `suffixes` lack {suffix!r}, which {case.path.name} has"
    elif not case.recognises(case.path, case.path.read_bytes()):
        yield f"it does not recognise {case.path.name}. See `recognises`"


def _leaves_others(case: _ReaderCase) -> Iterator[str]:
    suffix = bare_suffix(case.path)
    if (plain := _PLAIN.get(suffix)) is not None and case.recognises(Path("other" + suffix), plain):
        yield f"it takes {plain!r} for a file of its format. Look for what only this format has"


def _records(case: _ReaderCase) -> Iterator[str]:
    records, problems = case.read(case.path)
    if not records or problems.kept:
        why = f": {problems.kept[0]}" if problems.kept else ""
        yield f"it reads {len(records)} samples of {case.path.name}{why}. Pass an undamaged file with samples"
        return
    for place, record in records:
        if not isinstance(place, int) or not isinstance(record, dict):
            yield f"`records` must give pairs (line or number, columns). Got {shorten((place, record))}"
    if repr(case.read(case.path)[0]) != repr(records):
        yield "it reads a file differently the second time. Keep nothing between calls"


def _info(case: _ReaderCase) -> Iterator[str]:
    info = case.reader.info(case.path)
    if not isinstance(info, LogInfo):
        yield f"`info` must return a LogInfo. Got {shorten(info)}"
        return
    columns = {column for _, record in case.read(case.path)[0] for column in record}
    for score in info.scores:
        if not score.column.startswith(f"{case.reader.harness}."):
            yield f"the score {score.column!r} must be named {case.reader.harness}.NAME: use `score_column`"
        elif score.column not in columns:
            yield f"`info` names the score {score.column!r}, which no sample has"


def _damage(case: _ReaderCase) -> Iterator[str]:
    """A damaged file is refused or reported. Only `InputError` may be raised, which names the file."""
    content = case.path.read_bytes()
    size = len(content)
    kinds = {f"cut to {part} of {size} bytes": content[:part] for part in (0, 1, size // 3, size // 2, size - 2)}
    for seed in range(8):
        place = zlib.crc32(bytes([seed])) % size
        kinds[f"with other bytes at {place}"] = content[:place] + b"\xff\x00{" + content[place + 3 :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, case.path.name)
        for kind, damaged in kinds.items():
            path.write_bytes(damaged)
            for name, read in (("records", case.read), ("info", case.reader.info)):
                try:
                    read(path)
                except InputError:
                    continue
                except Exception as error:  # noqa: BLE001 - of a reader that somebody else wrote
                    yield (
                        f"`{name}` fails on the file {kind}: {type(error).__name__}: {error}. Report damage by "
                        "problems.add(code, message, file=…, line=…)"
                    )


# Recipes


def check_recipe(folder: str | Path) -> None:
    """Check a recipe, by its folder or name: what `mmeval validate` checks, and that its keys say who made it.

    Its goldens need two different values, so that a wrong rule is noticed.
    """
    checked = _called("check_recipe", lambda: recipe_checks.check_recipe(folder))
    task, file = checked.recipe.task, checked.recipe.file
    wanted = ("title", "licence", "home", "unit", "exactness", "goldens")
    faults = [f"{file}: the key `{key}` is missing" for key in wanted if getattr(task, key) is None]
    if checked.goldens and len({golden.value for golden in recipe_checks.goldens_of(checked.recipe)}) < 2:
        faults.append(f"{file.with_name('goldens.jsonl')}: all goldens have one value. Add answers that are wrong")
    _refuse(checked.recipe.name, [*checked.faults, *faults])


# Providers


def check_provider(generator: Generator | str) -> None:
    """Check a generator, or a provider by `PROVIDER:MODEL`. It is asked about ten requests.

    It must answer each one, or raise one of the errors of `generate.protocol`; grant or ignore wishes; work in several
    event loops and for several requests at once; and, if it declares `is_cacheable`, give equal requests equal answers.
    """
    opened: object = generator
    if isinstance(generator, str):
        opened = _called("check_provider", lambda: find_generator(GenerationConfig(model=str(generator))))
    made = _called("check_provider", lambda: checked(opened, type(opened).__name__))
    if not isinstance(made.label, str) or not made.label.strip():
        raise AssertionError(f"{type(made).__name__}: `label` must be a text. Got {shorten(made.label)}")
    _refuse(made.label, _provider_faults(made))


def _requests() -> dict[str, Request]:
    Image.new("RGB", (8, 8), "red").save(png := io.BytesIO(), "PNG")
    image = Media("image", "image/png", png.getvalue())
    asks = Turn("user", (Text("What color is a clear sky?"),))
    dialogue = (Turn("system", (Text("Be brief."),)), asks, Turn("assistant", (Text("Blue."),)), asks)
    schema = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    return {
        "a question": Request("1", (asks,)),
        "a dialogue with a system turn": Request("2", dialogue),
        "an image": Request("3", (Turn("user", (image, Text("What color is it?"))),)),
        "an empty text": Request("4", (Turn("user", (Text(""),)),)),
        "text in other scripts": Request("5", (Turn("user", (Text("空は何色？ ما لون السماء؟ 🌈"),)),)),
        "a schema": Request("6", (asks,), schema=schema),
        "the wish for log probabilities": Request("7", (asks,), Parameters(top_logprobs=3)),
    }


def _provider_faults(generator: Generator) -> Iterator[str]:
    label, requests = generator.label, _requests()
    replies = run_async(_replies(generator, requests))
    for what, reply in replies.items():
        yield from _reply_faults(what, reply)
    answered = next((what for what, reply in replies.items() if isinstance(reply, Answer)), None)
    if answered is None:
        yield f"it answers none of {len(replies)} requests: {replies['a question']}"
        return
    if generator.label != label:
        yield f"its `label` changes from {label!r} to {generator.label!r}. It identifies the model in a run"
    again = {name: replace(requests[answered], id=name) for name in ("another sample", "a third sample")}
    repeated = run_async(_replies(generator, again))
    for reply in repeated.values():
        if isinstance(reply, RuntimeError):
            yield f"it fails in a second event loop: {reply}. Make clients and locks inside of `answer`"
        elif getattr(generator, "is_cacheable", False) and reply != replies[answered]:
            yield (
                "it declares `is_cacheable`, but answers equal requests differently. Let answers depend on turns and "
                "parameters only, or remove `is_cacheable`"
            )


async def _replies(generator: Generator, requests: Mapping[str, Request]) -> dict[str, object]:
    """The answer to every request, or the exception; all are asked at once."""
    asked = (answer_from(generator, request) for request in requests.values())
    return dict(zip(requests, await asyncio.gather(*asked, return_exceptions=True), strict=True))


def _reply_faults(what: str, reply: object) -> Iterator[str]:
    if isinstance(reply, RetryableError | RejectedError | AskingError | TimeoutError | ConnectionError):
        return  # an outcome that a run handles
    if isinstance(reply, ConfigError):
        yield str(reply)
        return
    if not isinstance(reply, Answer):
        yield (
            f"for {what} it raises {type(reply).__name__}: {reply}. Raise RejectedError if the model does not accept "
            "the request, RetryableError if it may succeed later, EndpointError if none can"
        )
        return
    if reply.finish not in get_args(Finish):
        yield f"for {what} `finish` is {reply.finish!r}. It must be one of {', '.join(get_args(Finish))}"
    yield from _answer_faults(what, reply)


def _answer_faults(what: str, answer: Answer) -> Iterator[str]:
    try:
        stored = msgspec.json.decode(msgspec.json.encode(answer), type=type(answer))
    except (msgspec.MsgspecError, UnicodeError, TypeError, ValueError) as error:
        yield f"the answer to {what} cannot be stored: {error}"
        return
    if stored != answer and not any(map(math.isnan, answer.logprobs or [])):
        yield f"the answer to {what} differs after it was stored: use the types of Answer"
    if any(not value <= 1e-6 for value in answer.logprobs or []):
        yield f"for {what} `logprobs` must be logarithms of probabilities, at most 0"
    for name in ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens"):
        if (count := getattr(answer, name)) is not None and (not isinstance(count, int) or count < 0):
            yield f"for {what} `{name}` must be a number of tokens. Got {shorten(count)}"
    if answer.tokens is not None and answer.logprobs is not None and len(answer.tokens) != len(answer.logprobs):
        yield f"for {what} there are {len(answer.tokens)} `tokens` and {len(answer.logprobs)} `logprobs`"
