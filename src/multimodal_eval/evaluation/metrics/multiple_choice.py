"""Multiple choice: does the answer state the right letter?

    multiple_choice = 1 if the letter that the rule reads is a gold letter, else 0

The rule (`evaluation.rules.choice`) decides which letter an answer states. An answer without a letter scores 0 and is
counted as `unread`; with `fallback: judge`, a judge is asked which choice it states (`evaluation.extraction`). If the
origin of the rule draws a letter at random, the sample is unscored, or scores the expected value of the draw:
(number of gold letters among those drawn) / (number of letters).

With `rotations`, the same question is asked several times with its options in another order, and counts only if all
its rotations are right (circular evaluation):

    value = 1/Q sum over questions q of prod over its rotations of right

Reference:
    Liu et al. (2024). MMBench: Is Your Multi-modal Model an All-around Player? ECCV. arXiv:2307.06281, section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import Bounds, Need, Scorer
from multimodal_eval.core.options import Option
from multimodal_eval.core.options import Options as DeclaredOptions
from multimodal_eval.core.registry import register
from multimodal_eval.core.rules import find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import BY_JUDGE, UNREAD, Estimate, Rows, Score, mean_estimate, unscored
from multimodal_eval.evaluation.averages import AVERAGE, MICRO, aggregates_of, average_of, bounds_with, in_groups
from multimodal_eval.evaluation.choices import (
    DRAW,
    DRAWN,
    RANDOM,
    Draws,
    GoldError,
    draws_of,
    gold_answers,
    gold_letters,
    key_of,
    number_readings,
    options_of,
    stats_of_key,
    value_of,
)
from multimodal_eval.evaluation.extraction import FALLBACK, JUDGE, ExtractingMetric, Extraction
from multimodal_eval.evaluation.rules._readings import Options, Reading, read

__all__ = ["compute_multiple_choice"]

NOTHING_READ = "the rule finds no letter"
NONE = "none"
_KINDS = {"letter": "letters", "text": "texts", "index": "positions from 0"}  # what a gold answer may be


class MultipleChoiceScorer:
    """The opened metric."""

    def __init__(self, metric: MultipleChoice, draws: Draws) -> None:
        self.metric, self.options = metric, dict(metric.options)
        self.rule, self.drawn = metric.rule, draws.letters(metric.options["rule"])
        self.average = average_of(metric.options["average"], metric.name)

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """One score per sample."""
        samples, kind = Batch.of(batch), self.options["gold"]
        # Several columns of a run may read the same questions under different rules.
        questions = samples.shared(("questions", kind), lambda: [_question(sample, kind) for sample in samples])
        extractions = self.metric.extractions(samples)
        return [
            self._score(sample, *question, extraction)
            for sample, question, extraction in zip(samples, questions, extractions, strict=True)
        ]

    def _score(
        self, sample: Sample, options: Options, gold: Sequence[str] | GoldError, extraction: Extraction | None
    ) -> Score:
        if isinstance(gold, GoldError):
            return unscored("degenerate", str(gold))
        reading: Reading = self.rule(sample.generated_answer or "", options)
        if extraction is not None and extraction.fault is not None:
            return unscored("error", extraction.fault)
        is_by_judge = extraction is not None and extraction.choice is not None
        if extraction is not None and extraction.choice is not None:
            reading = read(extraction.choice)
        is_by_draw = reading.is_drawn and sample.id in self.drawn
        if is_by_draw:
            reading = self.drawn[sample.id]
        if reading.is_drawn and self.options["random"] == "unscored":
            return unscored("degenerate", DRAWN)
        value = value_of(reading, gold)
        is_unread = not reading.is_drawn and reading.choice not in options
        if is_unread and self.options["unread"] == "unscored":
            return unscored("degenerate", NOTHING_READ)
        details = {"read": reading.label, **({"by": JUDGE} if is_by_judge else {"by": DRAW} if is_by_draw else {})}
        warning = UNREAD if is_unread else BY_JUDGE if is_by_judge else None
        if self.options["rotations"] == NONE:
            return in_groups(Score(value, details=details, warning=warning), self.average, sample)
        stats = stats_of_key(key_of(sample, self.options["rotations"]))
        return Score(value, stats=stats, parts={"single": value}, details=details, warning=warning)


def _question(sample: Sample, kind: str) -> tuple[Options, Sequence[str] | GoldError]:
    """The options of a question, and its gold letters or why it has none."""
    options = options_of(sample)
    try:
        return options, gold_letters(sample, options, kind)
    except GoldError as error:
        return options, error


def _has_gold_number(batch: Batch) -> bool:
    """Whether some text that may be gold is a whole number, by the columns if there are any."""
    if not batch.has_columns:
        return True
    columns = [batch.column(name) for name in ("expected_answer", "caption")]
    if (lists := batch.column("references")) is not None:
        columns.append(lists.flatten())
    texts = (text for column in columns if column is not None for text in column.to_pylist())
    return any(text is not None and text.strip().isdecimal() for text in texts)


def _problem(sample: Sample, gold: str, rotations: str, without_choices: str) -> str | None:
    """A question without choices, or a gold answer that is none of them."""
    options = options_of(sample)
    if not options:
        if without_choices == "unscored":
            return None
        return (
            "the question has no `choices`. To leave such samples unscored: "
            "--option multiple_choice.without_choices=unscored"
        )
    if len(options) < 2:
        return f"the question has only one choice: {', '.join(options)}"
    if rotations == "index" and not sample.id.isdecimal():
        return "`rotations: index` needs ids that are whole numbers"
    try:
        gold_letters(sample, options, gold)
    except GoldError as error:
        return str(error)
    return None


def _all_rotations(rows: Rows) -> Estimate:
    """The share of questions with all rotations right."""
    from multimodal_eval.stats.estimates import all_right

    return mean_estimate(rows) if rows.stats is None else all_right(rows.values, rows.stats)


class MultipleChoice(ExtractingMetric):
    """Whether the letter that a named rule reads out of the answer is the right one."""

    name = "multiple_choice"
    version = "1"
    needs = ("generated_answer", Need("choices", problem=_problem), "references")
    bounds: Bounds = (0, 1)
    placement = "process"
    deciding = ("rule", "gold")
    options = DeclaredOptions(
        rule=Option(str, "mmeval@1", rules="choice", help="how the letter is read"),
        random=RANDOM,
        gold=Option(
            str,
            "auto",
            choices=("auto", "letter", "text", "index"),
            help="what the gold answer is: a letter, else the text of a choice, else its position from 0 (auto), or "
            "only one of them",
            is_quiet=True,
        ),
        rotations=Option(
            str,
            NONE,
            help="which samples are the same question with rotated choices, of which all must be right: those of a "
            "`group`, those with the same MMBench `index`, or those with the same value of a metadata column; `none` "
            "scores each sample alone",
            is_quiet=True,
        ),
        without_choices=Option(
            str,
            "refuse",
            choices=("refuse", "unscored"),
            help="whether a sample without choices makes the input invalid or is unscored",
            is_quiet=True,
        ),
        unread=Option(
            str,
            "wrong",
            choices=("wrong", "unscored"),
            help="whether an answer in which the rule finds nothing is wrong or left out, as in Video-MME's program",
            is_quiet=True,
        ),
        average=AVERAGE,
        fallback=FALLBACK,
    )

    @property
    def rule(self) -> Callable[[str, Options], Reading]:
        """How a letter is read."""
        function: Callable[[str, Options], Reading] = find_rule("choice", self.options["rule"]).function
        return function

    def is_unread(self, sample: Sample) -> bool:
        """Whether the rule finds none of the choices in the answer; its origin may draw one."""
        answer = sample.generated_answer or ""
        options, gold = _question(sample, self.options["gold"])
        if not answer.strip() or isinstance(gold, GoldError):
            return False
        return self.rule(answer, options).choice not in options

    def settle(self) -> None:
        """Refuse an empty name of a column. Without rotations, each sample counts alone."""
        if not str(self.options["rotations"]).strip():
            raise ConfigError("the option `rotations` of multiple_choice must be none, group, index or a column")
        average = average_of(self.options["average"], self.name)
        if self.options["rotations"] != NONE and average.kind != MICRO:
            raise ConfigError(f"`{self.name}.rotations` is an average, too: write average: all-correct(COLUMN) instead")
        self.aggregate = aggregates_of(average) if self.options["rotations"] == NONE else _all_rotations
        self.bounds = bounds_with(average, (0, 1))
        self.corpus = draws_of("choice", self.options["rule"])

    def reading_note(self, batches: Iterable[Batch]) -> str | None:
        """How gold numbers are read if the choices are numbers, too, and the option that changes it."""
        if self.options["gold"] != "auto":
            return None
        read, other = Counter[str](), Counter[str]()
        for sample in (sample for batch in batches if _has_gold_number(batch) for sample in batch):
            for readings in (number_readings(answer, options_of(sample)) for answer in gold_answers(sample)):
                kinds = list(readings)
                read.update(kinds[:1])
                other.update({kind: readings[kind] != readings[kinds[0]] for kind in kinds[1:]})
        if not read:
            return None
        shown = " and ".join(f"{_KINDS[kind]} of choices ({count:,} ×)" for kind, count in read.items())
        changes = "; ".join(
            f"as {_KINDS[kind]}, {count:,} would be another choice: --option {self.name}.gold={kind}"
            for kind, count in other.items()
        )
        return f"{self.name}: gold numbers among choices that are numbers are read as {shown}; {changes}"

    def open(self, state: Draws | None) -> Scorer:
        """Find the rule, and draw the letters that its origin draws."""
        return MultipleChoiceScorer(self, state or Draws())


compute_multiple_choice = MultipleChoice()
register(compute_multiple_choice)
