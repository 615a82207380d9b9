"""Why a figure is not the published one: other readings of the same answers, tried until one gives it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, product

import msgspec
import numpy as np

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.evaluation.choices import SEEDS
from multimodal_eval.run.reproduction.answers import (
    FIELDS,
    Answers,
    Row,
    Source,
    answers_of,
    cut_off,
    row_of,
    signs_of_cuts,
    values_of,
)
from multimodal_eval.run.reproduction.ledger import OVERALL, UNITS, Cell, Counts, Entry, Kind, Reason, Verdict
from multimodal_eval.run.reproduction.scoring import Scored, Scorer, has_counts, has_value, status_of

__all__ = ["Reasons"]

SHOWN = 10
_SAME = 1e-9
_NEAR = 0.01  # relative; units differ by a factor of 10 at least
_MOST_GROUPS = 100
_CERTAIN = ("shifted ids", "gold")  # which are tried only if they give far more of the verdicts
_OF_IDS = ("doubled ids", "missing ids")
_READINGS = ("shifted ids", "gold", "rule")
_ARITHMETIC = ("labels", "unit", "average", "rounding")  # done to the right verdicts
_NUMBER = re.compile(r"\d+(?=\D*$)")


@dataclass(frozen=True)
class Variant:
    """Another reading of the answers."""

    kind: Kind
    sentence: str
    scored: Scored


class Reasons:
    """The reasons of an entry's figures, and what is unusual in its answers."""

    def __init__(
        self,
        entry: Entry,
        scorer: Scorer,
        answers: Answers,
        source: Source,
        scored: Scored,
        stored: Scored | None,
        cells: Sequence[Cell],
        figures: Mapping[str, str],
    ) -> None:
        self.entry, self.scorer, self.answers, self.source = entry, scorer, answers, source
        self.scored, self.stored, self.cells, self.figures = scored, stored, cells, figures

    # What the answers show

    @cached_property
    def compared(self) -> list[int]:
        """The places of the rows with a verdict of the authors."""
        return [place for place, row in enumerate(self.scored.rows) if row.verdict is not None]

    @cached_property
    def differing(self) -> list[int]:
        """The places of the rows with another verdict than ours."""
        return self._differing(self.scored)

    def _differing(self, scored: Scored) -> list[int]:
        return [
            place
            for place, (row, score) in enumerate(zip(scored.rows, scored.scores, strict=True))
            if row.verdict is not None and (score.value is None or abs(score.value - row.verdict) > _SAME)
        ]

    @property
    def notes(self) -> list[Reason]:
        """What is unusual in the answers, whether a figure differs or not."""
        numbers = self._numbered()
        return [
            *self._ids(),
            *self._cut(),
            *([_named("gold", "gold answers are numbers of choices, not letters", numbers)] if numbers else []),
            *([self._verdicts(self.differing)] if self.differing else []),
            *self._without_verdict(),
        ]

    def _ids(self) -> Iterator[Reason]:
        answers = self.answers
        if answers.unknown and len(answers.unknown) > len(answers.rows):
            known = len(answers.questions)
            yield _named("split", f"most answers belong to none of the {known:,} questions", _ids(answers.unknown))
        elif answers.unknown:
            yield _named("unknown ids", "answers belong to no question", _ids(answers.unknown))
        if answers.missing:
            common = self._common_value(answers.missing)
            if common:
                yield _named("category", f"questions have no answer: all of {common}", answers.missing)
            else:
                yield _named("missing ids", "questions have no answer", answers.missing)
        elif not answers.unknown:
            yield from self._other_number()
        if answers.doubled:
            text = "answers are to a question that has one already; the first answer counts"
            yield _named("doubled ids", text, _ids(answers.doubled))

    def _other_number(self) -> Iterator[Reason]:
        """Questions of the benchmark that are in no file: whole categories, if figures are about them. Or too many."""
        data, answered = self.scorer.recipe.task.data, len(self.scored.rows)
        rows = None if isinstance(data, str) or data.keep else data.rows
        if not isinstance(rows, int) or answered == rows or all(cell.status == "equal" for cell in self.cells):
            return
        if answered > rows:
            yield Reason("unknown ids", f"{answered:,} answers, and the benchmark has {rows:,} questions")
            return
        lacking = [each.published.figure for each in self.cells if not self.scored.of(self._figure(each))]
        text = f"{answered:,} of the benchmark's {rows:,} questions have an answer"
        if lacking:
            yield Reason("category", f"{text}, none of {', '.join(lacking)}")
        else:
            yield Reason("missing ids", text)

    def _figure(self, cell: Cell) -> str:
        return self.figures[cell.published.figure]

    def _common_value(self, missing: Sequence[str]) -> str:
        """The category that lacks altogether, if that is what lacks."""
        questions, lacking = self.answers.questions, set(missing)
        for column in dict.fromkeys(name for name in missing[:1] for name in questions[name]):
            values = {str(questions[name].get(column)) for name in missing}
            if len(values) == 1 and len(lacking) > 1:
                value = values.pop()
                if {name for name, row in questions.items() if str(row.get(column)) == value} == lacking:
                    return f"{column}={value}"
        return ""

    def _cut(self) -> Iterator[Reason]:
        longest, cut = cut_off(self.scored.rows)
        if cut:
            text = f"answers have exactly {longest:,} characters, and none has more: they are cut off"
            yield _named("cut answers", text, _ids(cut))

    def _without_verdict(self) -> Iterator[Reason]:
        if self.stored is None:
            return
        without = [row.id for row in self.scored.rows if row.verdict is None]
        if without:
            yield _named("verdicts", "answers have no verdict of the authors, and count as wrong", without)

    def _verdicts(self, places: Sequence[int]) -> Reason:
        """The verdicts that differ, named by what they have in common."""
        rows = [self.scored.rows[place] for place in places]
        pairs = tuple(
            Verdict(row.id, self.scored.scores[place].value, row.verdict)
            for row, place in zip(rows, places, strict=True)
        )
        kind, text = self._cause(places, rows)
        return Reason(kind, f"verdicts differ{text}", len(rows), _ids(rows)[:SHOWN], pairs[:SHOWN])

    def _cause(self, places: Sequence[int], rows: Sequence[Row]) -> tuple[Kind, str]:
        values = [self.scored.scores[place].value for place in places]
        if None not in values and len(self.differing) == len(self.compared) > 1:
            return "reversed verdicts", ": every one is the reverse of ours"
        if all(row.columns.get("drawn") in (True, 1, "true", "True") for row in rows):
            return "draw", ": the authors drew these answers at random"
        if cut := signs_of_cuts(rows, self.scored.rows):
            return "cut answers", cut
        extracted = self._extracted(rows)
        if extracted == len(rows):
            return "extraction", ": they are those of the authors' extraction, which reads something else in the answer"
        if extracted:
            return "verdicts", f": {extracted:,} are those of the authors' extraction, which reads something else"
        if any(row.extraction is not None for row in rows) and self.scorer.extraction != "never":
            return "verdicts", " for the same extraction"
        return "verdicts", ""

    def _extracted(self, rows: Sequence[Row]) -> int:
        """How many verdicts of the authors are those of their extraction."""
        count = 0
        if self.scorer.extraction == "always":
            return 0
        for row in rows:
            text = (row.extraction or "").strip().strip("()").lower()
            golds = row.gold if isinstance(row.gold, list) else [row.gold or ""]
            if row.extraction is not None and text != (row.response or "").strip().strip("()").lower():
                count += bool(row.verdict) == any(text == gold.strip().strip("()").lower() for gold in golds)
        return count

    # Other readings

    @cached_property
    def variants(self) -> list[Variant]:
        """Other readings that give some of the differing figures, the one that gives most of them first."""
        if all(cell.status == "equal" for cell in self.cells):
            return []
        made = [
            variant
            for make in (self._shifted, self._golds, self._rows, self._rules, self._models)
            for variant in make()
        ]
        if self.stored is not None:
            made.append(Variant("verdicts", "the verdicts that the authors stored give it", self.stored))
        wrong = [cell for cell in self.cells if cell.status != "equal"]
        gains = [sum(self._gives(variant, cell) for cell in wrong) for variant in made]
        for place, variant in enumerate(made):
            # A rule that contradicts the stored verdicts gives some figure by chance, but not all.
            if variant.kind == "rule" and gains[place] < len(wrong) and not self._is_better(variant.scored):
                gains[place] = 0
        order = sorted(range(len(made)), key=lambda place: -gains[place])
        return [made[place] for place in order if gains[place] or self._is_certain(made[place])]

    def _is_certain(self, variant: Variant) -> bool:
        """Whether a reading gives the authors' verdicts, so that it needs not give the very figure."""
        return bool(self.compared) and variant.kind in _CERTAIN

    def _counts(self, variant: Variant, cell: Cell) -> Counts | None:
        places = variant.scored.of(self.figures[cell.published.figure])
        return variant.scored.counts(places, UNITS[cell.unit])

    def _gives(self, variant: Variant, cell: Cell) -> bool:
        return status_of(cell.published, self._counts(variant, cell)) == "equal"

    def _is_better(self, scored: Scored) -> bool:
        """Whether more verdicts are those of the authors, by far; without verdicts, anything may be."""
        if not self.compared or all(row.verdict is None for row in scored.rows):
            return True
        before = len(self.differing) / len(self.compared)
        compared = sum(row.verdict is not None for row in scored.rows)
        return len(self._differing(scored)) / compared < before / 2

    def _shifted(self) -> Iterator[Variant]:
        """The answers at the ids beside theirs."""
        answers = self.answers
        targets = {row.id: row for row in self.scored.rows}
        lacking = [answers.questions[name] for name in answers.missing]
        if lacking:
            targets |= {row.id: row for row in self._questions_as_rows(lacking)}
        for step in (1, -1):
            moved = []
            for row in chain(self.scored.rows, answers.unknown):
                target = targets.get(_moved(row.id, step))
                if target is not None:
                    answered = replace(row, id=target.id, gold=target.gold, choices=target.choices)
                    moved.append(replace(answered, columns={**target.columns, **_answer_columns(row, answers)}))
            if 2 * len(moved) > len(self.scored.rows):
                scored = self.scorer.scored(moved)
                place = "after" if step == 1 else "before"
                text = f"the ids are off by one: each answer belongs to the question {place} it"
                if self._is_better(scored):
                    yield Variant("shifted ids", text, scored)

    def _questions_as_rows(self, questions: Sequence[Mapping[str, object]]) -> list[Row]:
        return [row_of(question, self.answers.names, self.scorer.recipe) for question in questions]

    def _numbered(self) -> list[str]:
        """The ids of the questions with choices, if their gold answers are numbers."""
        rows = [row for row in self.scored.rows if row.choices]
        is_number = all(isinstance(row.gold, str) and row.gold.isdigit() for row in rows)
        return [row.id for row in rows if row.gold not in (row.choices or {}).values()] if is_number else []

    def _golds(self) -> Iterator[Variant]:
        """Gold answers that are numbers of choices; or letters instead of texts, or the reverse."""
        readings: list[tuple[str, Callable[[Row], str | None]]] = [
            ("letters of choices, not their texts", lambda row: (row.choices or {}).get(str(row.gold))),
            ("texts of choices, not letters", _letter),
        ]
        if self._numbered():
            readings = [
                (
                    f"numbers of choices, from {first} on, not letters",
                    partial(_choice, first=first, with_text=with_text),
                )
                for first, with_text in product((0, 1), (False, True))
            ]
        for text, reading in readings:
            others = [reading(row) for row in self.scored.rows]
            if not any(others) or not all(
                other for other, row in zip(others, self.scored.rows, strict=True) if row.choices
            ):
                continue
            golds = [row.gold if other is None else other for other, row in zip(others, self.scored.rows, strict=True)]
            scored = self.scorer.scored(self.scored.rows, golds=golds)
            if self._is_better(scored):
                yield Variant("gold", f"the gold answers are {text}", scored)

    def _rules(self) -> Iterator[Variant]:
        if self.compared and not self.differing:  # the rule gives every verdict of the authors
            return
        for rule in self.scorer.rules:
            # Letters that are drawn by another rule than the benchmark's are nobody's.
            if rule == self.scorer.rule or (rule in SEEDS and rule != self.scorer.usual_rule):
                continue
            try:
                yield Variant("rule", f"the rule {rule} gives it", self.scorer.scored(self.scored.rows, rule))
            except MultimodalEvalError:  # a rule that needs more than these answers have
                continue

    def _rows(self) -> Iterator[Variant]:
        """Other denominators."""
        scored, answers = self.scored, self.answers
        if answers.doubled:
            with_all = self.scorer.scored([*scored.rows, *answers.doubled])
            yield Variant("doubled ids", "counting the doubled answers as well gives it", with_all)
            last = {row.id: row for row in (*scored.rows, *answers.doubled)}
            yield Variant(
                "doubled ids",
                "the last answer to a question gives it, not the first",
                self.scorer.scored(list(last.values())),
            )
        if answers.missing:
            wrong = [replace(row, response="", extraction=None) for row in self._questions_as_rows(self._missing())]
            with_missing = self.scorer.scored([*scored.rows, *wrong])
            yield Variant("missing ids", "counting the missing answers as wrong reproduces it", with_missing)
        keeps: list[tuple[str, Callable[[Row], bool]]] = [
            ("without empty answers", lambda row: bool((row.response or "").strip())),
            ("without answers that have no extraction", lambda row: bool(row.extraction)),
            ("without answers that have no verdict", lambda row: row.verdict is not None),
        ]
        for text, keep in keeps:
            kept = [keep(row) for row in scored.rows]
            if any(kept) and not all(kept):
                yield Variant("denominator", f"counting {text} gives it", scored.where(kept))
        read = [score.warning is None and score.value is not None for score in scored.scores]
        if any(read) and not all(read):
            yield Variant(
                "denominator", "counting only answers in which the rule reads something gives it", scored.where(read)
            )

    def _missing(self) -> list[Mapping[str, object]]:
        return [self.answers.questions[name] for name in self.answers.missing]

    def _models(self) -> Iterator[Variant]:
        """The verdicts about other models in the same file."""
        if self.entry.model is None or self.stored is None:
            return
        rows = self.source.rows(self.entry.answers, "answers")
        names = self.answers.names["model"]
        models = dict.fromkeys(str(row[name]) for row in rows for name in names if row.get(name) is not None)
        for model in models:
            if model == self.entry.model:
                continue
            other = answers_of(msgspec.structs.replace(self.entry, model=model), self.scorer.recipe, self.source, "")
            by_id = dict(zip((row.id for row in self.scored.rows), self.scored.scores, strict=True))
            kept = [row for row in other.rows if row.id in by_id]
            scores = [by_id[row.id] for row in kept]
            verdicts = Scored(self.scored.metric, kept, scores, self.scored.part).with_verdicts()
            yield Variant("model", f"it is the figure of {model}", verdicts)

    # Per figure

    def explained(self) -> Iterator[Cell]:
        """The figures with their reasons."""
        for cell in self.cells:
            yield replace(cell, reasons=tuple(self._reasons(cell)))

    def _reasons(self, cell: Cell) -> Iterator[Reason]:
        published, stored = cell.published, cell.stored
        reasons = list(self._main(cell)) if cell.status != "equal" else []
        yield from reasons
        is_explained = any(reason.kind in _ARITHMETIC for reason in reasons)
        if stored is not None and status_of(published, stored) != "equal" and not is_explained:
            differing = [
                place for place in self.scored.of(self.figures[published.figure]) if place in set(self.differing)
            ]
            if differing and cell.status == "equal":
                yield self._verdicts(differing)
            text = f"the stored verdicts give {_shown(stored, cell)}, which is not the published score"
            yield Reason("stored score", text)

    def _main(self, cell: Cell) -> Iterator[Reason]:
        published, ours = cell.published, cell.ours
        figure = self._figure(cell)
        places = self.scored.of(figure)
        if not places:
            yield from self._ids()
            if figure == OVERALL or not self.scored.rows:
                return
            column = figure.partition("=")[0]
            known = sorted({value for row in self.scored.rows for value in values_of(row, column)})
            text = f"no answer has {published.figure}. {column} has {', '.join(known[:SHOWN])}"
            yield Reason("category", text + (" …" if len(known) > SHOWN else ""))
            return
        differing = [place for place in places if place in set(self.differing)]
        is_equal = ours is not None and has_counts(published, ours)
        certain = [variant for variant in self.variants if self._is_certain(variant)]
        for variant in certain[:1]:
            yield Reason(variant.kind, variant.sentence)
        ids = list(self._ids())
        yield from ids
        if (other := self._other_category(cell)) is not None:
            yield Reason("category", f"it is the figure of {other}")
            return
        if not is_equal:
            if not certain:
                yield from self._readings(cell, differing, _OF_IDS if ids else ())
            if differing:
                yield self._verdicts(differing)
        # Numbers are tried only if the verdicts are the same: some mean is always near.
        has_other_verdicts = cell.stored is not None and status_of(published, cell.stored) == "equal"
        if not has_other_verdicts and not ids and (is_equal or published.correct is None):
            yield from self._numeric(cell, places)
        if ours is not None and published.total is not None and published.total != ours.total:
            yield from self._totals(cell, ours)
        unscored = [self.scored.rows[place] for place in places if self.scored.scores[place].value is None]
        empty = [row for place in places if not ((row := self.scored.rows[place]).response or "").strip()]
        if empty and ours is not None and not is_equal and self.scorer.extraction != "always" and not ids:
            more = None if published.correct is None or ours.correct is None else published.correct - ours.correct
            if published.total in (None, ours.total) and (more is None or 0 < more <= len(empty)):
                yield _named("cut answers", "answers are empty", _ids(empty))
        if unscored:
            why = Counter(self.scored.scores[place].reason or "" for place in places).most_common(2)
            text = next((reason for reason, _ in why if reason), "")
            is_drawn = "random" in text or "draw" in text
            yield _named("draw" if is_drawn else "unscored", f"answers are unscored: {text}", _ids(unscored))

    def _other_category(self, cell: Cell) -> str | None:
        """The figure of the same column that has the published counts or value."""
        column, published = self._figure(cell).partition("=")[0], cell.published
        same = [each for each in self.cells if each is not cell and self._figure(each).startswith(f"{column}=")]
        for each in same:
            is_same = each.ours is not None and status_of(published, each.ours) == "equal"
            if is_same and each.status != "equal" and each.unit == cell.unit:
                return each.published.figure
        return None

    def _readings(self, cell: Cell, differing: Sequence[int], kinds: Sequence[str]) -> Iterator[Reason]:
        """The other reading of the answers that gives the figure; of these kinds, if some are named."""
        giving = [each for each in self.variants if self._gives(each, cell) and (not kinds or each.kind in kinds)]
        if differing and any(variant.kind == "verdicts" for variant in giving):
            giving = [each for each in giving if each.kind in _READINGS and self._is_better(each.scored)]
        for variant in [each for each in giving if each.kind != "verdicts"][:1]:
            yield Reason(variant.kind, variant.sentence)
        for name in [] if kinds or self._has_other_labels(cell) else list(self._without_category(cell))[:1]:
            yield Reason("category", f"it is the score without the answers with {name}")

    def _without_category(self, cell: Cell) -> Iterator[str]:
        """The category without which the counts are the published ones."""
        places = self.scored.of(self.figures[cell.published.figure])
        for column, means in self._groups(places) if cell.published.correct is not None else ():
            for group in means:
                kept = [place for place in places if group not in values_of(self.scored.rows[place], column)]
                counts = self.scored.counts(kept, UNITS[cell.unit])
                if counts is not None and has_counts(cell.published, counts):
                    yield f"{column}={group}"

    def _totals(self, cell: Cell, ours: Counts) -> Iterator[Reason]:
        from multimodal_eval.benchmarks.recipes import recipe, recipe_names

        published, name = cell.published, self.scorer.recipe.name
        if published.figure == OVERALL:
            stem = name.partition("-testmini")[0].partition("-val")[0]
            for other in recipe_names():
                if (
                    other != name
                    and other.startswith(stem)
                    and getattr(recipe(other).task.data, "rows", 0) == published.total
                ):
                    yield Reason("split", f"{published.total:,} is the number of questions of {other}")
        if self._has_other_labels(cell):
            text = f"{published.total:,} questions had this label, and {ours.total:,} have it in these files"
            yield Reason("labels", f"the authors' questions had other labels: {text}. The verdicts are equal")
            return
        yield Reason(
            "denominator", f"the published score is over {published.total:,} answers, ours over {ours.total:,}"
        )

    def _has_other_labels(self, cell: Cell) -> bool:
        """Whether other questions were in a category: only its total differs, not a verdict or the score of all."""
        answers, published, ours = self.answers, cell.published, cell.ours
        if published.figure == OVERALL or ours is None or published.total in (None, ours.total):
            return False
        if answers.missing or answers.unknown or answers.doubled:
            return False
        if self.stored is not None and not self.differing:
            return True
        return any(each.published.figure == OVERALL and each.status == "equal" for each in self.cells)

    def _numeric(self, cell: Cell, places: Sequence[int]) -> Iterator[Reason]:
        """What was done to the right verdicts."""
        published, ours = cell.published, cell.ours
        if published.value is None or ours is None:
            return
        scale = UNITS[cell.unit]
        fraction = ours.value / scale
        for unit, other in UNITS.items():
            # The printed value may have been divided after it was rounded.
            if other != scale and fraction and abs(published.value / (other * fraction) - 1) < _NEAR:
                yield Reason("unit", f"the value is in another unit: {unit} instead of {cell.unit}")
                return
        averages = (
            Reason("average", f"{name} is {value:.{published.printed_digits + 2}f}, as published")
            for name, value in self._averages(cell, places)
            if has_value(published, value) and abs(value - ours.value) > _SAME
        )
        roundings = (
            Reason("rounding", text)
            for text, value in self._rounded(cell, places)
            if abs(value - published.value) < _SAME and not has_value(published, ours.value)
        )
        # Near a value, another average may have it by chance.
        likely = (roundings, averages) if cell.status == "within rounding" else (averages, roundings)
        if (reason := next(chain(*likely), None)) is not None:
            yield reason
            return
        step = 10.0**-published.printed_digits
        if abs(ours.value - published.value) < step and published.correct is None:
            yield Reason("rounding", "it is less than one unit of its last digit away, but not the rounded score")
        elif published.correct is not None and published.total is not None and has_counts(published, ours):
            text = f"{published.correct:,g} of {published.total:,} is {ours.value:.{published.printed_digits + 2}f}"
            yield Reason("printed value", f"{text}, but {published.value:.{published.printed_digits}f} is printed")

    def _groups(self, places: Sequence[int]) -> Iterator[tuple[str, dict[str, float]]]:
        """Column -> group -> mean, of the columns that divide the answers into a few groups."""
        rows, values = [self.scored.rows[place] for place in places], self.scored.values[list(places)]
        fields = {name for names in FIELDS.values() for name in names}
        for column in dict.fromkeys(name for row in rows[:1] for name in row.columns if name not in fields):
            members: dict[str, list[float]] = {}
            for row, value in zip(rows, values, strict=True):
                for group in () if np.isnan(value) else values_of(row, column):
                    members.setdefault(group, []).append(float(value))
                if len(members) > _MOST_GROUPS:
                    break
            if 2 <= len(members) <= _MOST_GROUPS:
                yield column, {group: float(np.mean(each)) for group, each in members.items()}

    def _averages(self, cell: Cell, places: Sequence[int]) -> Iterator[tuple[str, float]]:
        scale = UNITS[cell.unit]
        scored = [place for place in places if self.scored.scores[place].value is not None]
        yield "the mean over answers", scale * float(np.mean(self.scored.values[scored]))
        for column, means in self._groups(places):
            yield f"the mean over {column}", scale * float(np.mean(list(means.values())))
        for column, means in self._groups(places) if cell.status == "different" else ():
            for group in means if len(means) > 2 else ():
                rest = [mean for name, mean in means.items() if name != group]
                yield f"the mean over {column} without {group}", scale * float(np.mean(rest))
                kept = [place for place in scored if group not in values_of(self.scored.rows[place], column)]
                if kept:
                    yield (
                        f"the mean over answers without {column}={group}",
                        scale * float(np.mean(self.scored.values[kept])),
                    )

    def _rounded(self, cell: Cell, places: Sequence[int]) -> Iterator[tuple[str, float]]:
        """Values of rounded values."""
        ours, digits = cell.ours, cell.published.printed_digits
        scale = UNITS[cell.unit]
        assert ours is not None
        for more in (1, 2):
            twice = round(round(ours.value, digits + more), digits)
            yield f"the value was rounded twice, first to {digits + more} digits", twice
            up = round(round(ours.value, digits + more) + 10.0 ** -(digits + more + 2), digits)
            yield f"the value was rounded twice, first to {digits + more} digits, with halves rounded up", up
        cut = np.floor(ours.value * 10**digits) / 10**digits
        yield "the value is cut off instead of rounded", float(cut)
        for column, means in self._groups(places):
            for kept in (0, 1, 2):
                mean = float(np.mean([round(scale * value, kept) for value in means.values()]))
                text = f"it is the mean over {column} of values that are rounded to {kept} digits"
                yield text, round(mean, digits)


def _answer_columns(row: Row, answers: Answers) -> dict[str, object]:
    question = answers.questions.get(row.id, {})
    return {name: value for name, value in row.columns.items() if name not in question}


def _moved(name: str, step: int) -> str:
    """The id beside an id."""
    return _NUMBER.sub(lambda match: str(int(match[0]) + step), name, count=1)


def _choice(row: Row, first: int, *, with_text: bool) -> str:
    """The letter, or the text, of the choice whose number is the gold answer."""
    letters = list((row.choices or {}).values() if with_text else row.choices or {})
    place = int(row.gold) - first if isinstance(row.gold, str) and row.gold.isdigit() else -1
    return letters[place] if 0 <= place < len(letters) else str(row.gold)


def _letter(row: Row) -> str | None:
    """The letter of the choice whose text is the gold answer."""
    return next((letter for letter, text in (row.choices or {}).items() if text and text == row.gold), None)


def _ids(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(row.id for row in rows)


def _named(kind: Kind, sentence: str, ids: Sequence[str]) -> Reason:
    return Reason(kind, sentence, len(ids), tuple(ids[:SHOWN]))


def _shown(counts: Counts, cell: Cell) -> str:
    if cell.published.correct is None:
        return f"{counts.value:.{cell.published.printed_digits + 2}f}"
    return f"{counts.correct:,g} of {counts.total:,}"
