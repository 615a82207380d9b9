"""The scores of every metric under every rule, of answers that models and people have written.

The answers are those that this repository may have: captions, questions and labels written for it, and published
answers to MATH-Vision, BLINK and MMMU (NOTICE). `tests/recorded/scores.txt` has one line per metric and rule:

    anls rule=anls@2019 | 0.412345678901 | 1,758 of 1,758 | 5f2c11d0 | answers 0a1b2c3d | anls|v:1|rule:anls@2019

value, scored samples, digests of the value of each sample and of the answers, signature. A line that moves must be
declared: a file in `changes/` names the metric in backticks, and its version rises, or its rule has another name.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from multimodal_eval.core.corpus import default_state, fitted
from multimodal_eval.core.metric import Metric, configured, declared_options, signature_of
from multimodal_eval.core.rules import rules_of
from multimodal_eval.core.sample import Box, Sample
from multimodal_eval.core.score import Rows
from multimodal_eval.core.scoring import aggregate_of, score_batch
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.evaluation.metrics_registry import list_available, resolve
from multimodal_eval.evaluation.rules._readings import letters_of
from tests.contract.examples import EXAMPLES
from tests.golden.load import golden
from tools.release_notes import fragments

FILE = Path(__file__).parents[2] / "tests" / "recorded" / "scores.txt"
DEMO = Path(__file__).parents[2] / "src" / "multimodal_eval" / "data" / "demo"
CAPTIONS = (
    "bleu cider cider_d cider_r rouge_1 rouge_2 rouge_l rouge_lsum chrf ter sacrebleu meteor chair_i chair_s".split()
)
ANSWERS = (
    "anls anls_star contains edit_distance exact_match gqa ocrbench relaxed_accuracy token_f1 vqa_accuracy".split()
)
OPTIONS = {"meteor": {"variant": "fmean"}}  # needs no fetched data
BOX_FORMS = (
    "[{0}, {1}, {2}, {3}]",
    "It is at ({0}, {1}), ({2}, {3}).",
    "<box>({0},{1}),({2},{3})</box>",
    '```json\n[{{"bbox_2d": [{0}, {1}, {2}, {3}], "label": "dog"}}]\n```',
    "({0}, {1})",
    '<point x="{0}" y="{1}" alt="dog">dog</point>',
    "I cannot see it.",
)
DIGITS = 12
HEAD = "metric and options | value | scored | digest of values | answers | signature"


class Line(NamedTuple):
    """What is recorded of a metric with its options."""

    value: str
    scored: str
    digest: str
    answers: str  # their name, and a digest of their content
    signature: str


@functools.cache
def captions() -> list[Sample]:
    """Captions of 400 images, written for this project."""
    content = golden("captions.json.gz")
    pairs = zip(content["candidates"], content["references"], strict=True)
    return [Sample(str(n), generated_answer=said, references=golds) for n, (said, golds) in enumerate(pairs)]


@functools.cache
def answers() -> list[Sample]:
    """Short answers, with one gold answer or several."""
    cases = golden("short_answers.json.gz")["cases"]
    golds = [case["gold"] if isinstance(case["gold"], list) else [case["gold"]] for case in cases]
    return [
        Sample(str(n), generated_answer=case["answer"], references=texts)
        for n, (case, texts) in enumerate(zip(cases, golds, strict=True))
    ]


@functools.cache
def choices() -> list[Sample]:
    """Answers of models to BLINK and MMMU, and written ones, with the letters of the options."""
    published, samples = golden("published_answers.json.gz"), []
    for answer, count, gold in published["blink"]:
        letter = gold.strip("()") if gold.strip("()") in letters_of(count) else "A"
        samples.append((answer, dict(zip(letters_of(count), map(str, range(10, 90)), strict=False)), letter))
    samples += [(answer, options, gold) for answer, options, gold, _ in published["mmmu"] if options]
    samples += [
        (case["answer"], case["choices"], next(iter(case["choices"]))) for case in golden("answer_rules.json.gz")["mcq"]
    ]
    return [
        Sample(str(n), generated_answer=said, choices=options, expected_answer=gold)
        for n, (said, options, gold) in enumerate(samples)
    ]


@functools.cache
def questions() -> list[Sample]:
    """Answers of models to MATH-Vision, and written ones to questions of several types."""
    rows = [(said, gold, options) for said, options, gold, *_ in golden("published_answers.json.gz")["math-vision"]]
    written = golden("open_answers.json.gz")
    rows += [(said, gold, []) for name in ("vsi-bench", "realworldqa") for said, gold, *_ in written[name][:200]]
    samples = []
    for n, (said, gold, options) in enumerate(rows):
        kind = {"question_type": "multi_choice" if options else "free_form", "answer_type": "text"}
        samples.append(
            Sample(str(n), generated_answer=said, expected_answer=gold, choices=options or None, metadata=kind)
        )
    return samples


@functools.cache
def yes_or_no() -> list[Sample]:
    """Answers to questions of yes or no."""
    cases = golden("answer_rules.json.gz")["pope"]
    return [Sample(str(n), generated_answer=c["answer"], expected_answer=c["gold"]) for n, c in enumerate(cases)]


@functools.cache
def transcripts() -> list[Sample]:
    """Texts as they are written, and as Whisper's normalizer writes them."""
    content = golden("transcripts.json.gz")
    pairs = zip(content["whisper-english@0.1.15"], content["texts"], strict=True)
    return [Sample(str(n), generated_answer=said, references=[text]) for n, (said, text) in enumerate(pairs)]


@functools.cache
def labels() -> list[Sample]:
    """Labels of the demo by two systems and three people."""
    data, problems = DEMO / "classification.jsonl", Problems()
    read = FileInput(data, DEMO / "classification.alba.jsonl").samples(problems, Summary())
    return [*read]


@functools.cache
def boxes() -> list[Sample]:
    """Boxes and points as models write them: in pixels, thousandths or parts of an image of 200 x 100 pixels."""
    samples = []
    for unit, (x, y) in {"pixels": (200, 100), "thousandths": (1000, 1000), "parts": (1, 1)}.items():
        for shift in (0.0, 0.1, 0.3):
            corners = [(0.1 + shift) * x, (0.2 + shift) * y, (0.5 + shift) * x, (0.6 + shift) * y]
            shown = [f"{each:.2f}" if unit == "parts" else f"{each:.0f}" for each in corners]
            samples += [form.format(*shown) for form in BOX_FORMS]
    columns = {"width": 200, "height": 100}
    gold = [Box((20, 20, 100, 60))]
    return [Sample(str(n), generated_answer=said, boxes=gold, metadata=columns) for n, said in enumerate(samples)]


def answers_of(metric: str) -> tuple[str, Sequence[Sample]]:
    """What a metric scores: the name of the answers, and the samples."""
    groups: dict[Callable[[], list[Sample]], Sequence[str]] = {
        captions: CAPTIONS,
        answers: ANSWERS,
        choices: ["multiple_choice"],
        questions: ["open_answer"],
        yes_or_no: ["yes_no"],
        transcripts: ["wer", "cer", "mer", "wil"],
        boxes: ["acc_at_iou", "iou", "point_in_box"],
        labels: ["f1_any_match", "f1_majority", "f1_strict", "soft_score"],
    }
    for make, metrics in groups.items():
        if metric in metrics:
            return make.__name__, make()
    return "examples", EXAMPLES[metric]


def metrics() -> Iterator[tuple[str, Metric]]:
    """Every metric that needs nothing fetched, under every rule and tokenizer."""
    for name in list_available():
        if name not in OPTIONS and resolve(name).resources():
            continue
        metric = configured(resolve(name), OPTIONS.get(name, {}))
        declared = declared_options(metric)
        ways: dict[str, Iterable[Any]] = {
            option: rules_of(each.rules) for option, each in declared.items() if each.rules is not None
        }
        if "tokenizer" in declared and declared["tokenizer"].choices:
            ways["tokenizer"] = declared["tokenizer"].choices
        yield from ((name, metric),) if not ways else ()
        for option, values in ways.items():
            yield from ((f"{name} {option}={value}", configured(metric, {option: value})) for value in values)


def line_of(metric: Metric, answers: str, samples: Sequence[Sample]) -> Line:
    """The score of the samples."""
    state = fitted(metric, samples) if metric.corpus else default_state(metric)
    scores = score_batch(metric, metric.open(state), samples)
    scored = [score for score in scores if score.value is not None]
    if not scored:
        raise ValueError(f"{signature_of(metric, state)} scores none of the {answers}: {scores[0].reason}")
    stats = None if not scored or scored[0].stats is None else np.array([score.stats for score in scored], dtype=float)
    value = aggregate_of(metric)(Rows(np.array([score.value for score in scored], dtype=float), stats)).value
    each = repr([score.status if score.value is None else f"{score.value:.{DIGITS}g}" for score in scores])
    known = repr([msgspec.to_builtins(sample) for sample in samples])
    return Line(
        f"{value:.{DIGITS}f}",
        f"{len(scored):,} of {len(scores):,}",
        _digest(each),
        f"{answers} {_digest(known)}",
        str(signature_of(metric, state)),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]


def scores_text() -> str:
    """The record: one line per metric and rule."""
    lines = [f"{name} | {' | '.join(line_of(metric, *answers_of(metric.name)))}" for name, metric in metrics()]
    return "\n".join([HEAD, *lines]) + "\n"


def read(text: str) -> dict[str, Line]:
    """The lines of a record, by metric and options."""
    rows = (line.split(" | ") for line in text.splitlines()[1:])
    return {name: Line(*fields) for name, *fields in rows}


def moved(old: dict[str, Line], new: dict[str, Line]) -> dict[str, str]:
    """What is otherwise than recorded: old and new, by metric and options."""
    differing = {}
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            differing[name] = " -> ".join("nothing" if line is None else line.value for line in (before, after))
        elif before != after:
            what = f"{before.value} -> {after.value}"
            same = "; single samples differ" if before.value == after.value and before.digest != after.digest else ""
            scored = "" if before.scored == after.scored else f"; scored {before.scored} -> {after.scored}"
            signed = "" if before.signature == after.signature else f"; {before.signature} -> {after.signature}"
            differing[name] = f"{what}{same}{scored}{signed}"
    return differing


def undeclared(old: dict[str, Line], new: dict[str, Line], declared: str) -> list[str]:
    """Why the record may not be replaced yet. `declared` has the texts of `changes/`."""
    problems = []
    for name in moved(old, new):
        before, after, metric = old.get(name), new.get(name), name.partition(" ")[0]
        if before is None or (after is not None and before.answers != after.answers):
            continue  # a new metric or rule, or other answers
        if not re.search(rf"`{re.escape(metric)}[`=. ]", declared):
            problems.append(f"{name}: no file in changes/ names `{metric}`. Say there what moves, and by how much")
        if after is not None and before.digest != after.digest and before.signature == after.signature:
            problems.append(f"{name}: the signature is still {after.signature}. Raise the version, or rename the rule")
    return problems


def declarations() -> str:
    """The texts of the files in changes/ that can declare a moved score."""
    return "\n".join(path.read_text(encoding="utf-8") for path, kind in fragments().items() if kind != "added")
