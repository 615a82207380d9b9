"""The stored verdicts of a judge as arrays: the value of every verdict, and what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import cluster_codes, read_scores
from multimodal_eval.core.arrow import float_values
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.records import RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.template import PromptError
from multimodal_eval.judges.form import Form, Reading, UnreadableVerdictError
from multimodal_eval.judges.forms.by_name import form_of
from multimodal_eval.judges.verdict_tables import Judged, rows_of, verdicts_kind
from multimodal_eval.lint.injection import addresses_judge, judged_columns, judged_texts
from multimodal_eval.stats.intervals import Codes, Vector

__all__ = ["PAIRWISE", "OrderEffects", "StoredVerdicts", "stored_verdicts"]

VALUED = ("scale", "binary", "rubric", "pairwise", "listwise", "clair")  # forms whose verdicts are values
PAIRWISE = "pairwise"


@dataclass(slots=True)
class OrderEffects:
    """What the order of two answers changes: one entry per pair that is judged in both orders, or per verdict."""

    rows: list[int] = field(default_factory=list)  # the samples of the pairs
    flips: list[bool] = field(default_factory=list)
    disagreements: list[bool] = field(default_factory=list)
    decided_rows: list[int] = field(default_factory=list)  # the samples of verdicts that are not ties
    first: list[bool] = field(default_factory=list)  # whether they are for the answer that is shown first

    def add(self, row: int, readings: Sequence[Reading], score: Score) -> None:
        """Add the verdicts of one model on a pair, one per order, and its score by them."""
        if len(readings) > 1:
            self.rows.append(row)
            self.flips.append((score.parts or {}).get("flip") == 1)
            self.disagreements.append(len({reading["share"] for reading in readings}) > 1)
        for reading in readings:
            if reading["verdict"] in ("1", "2"):
                self.decided_rows.append(row)
                self.first.append(reading["verdict"] == "1")


@dataclass(frozen=True, slots=True)
class StoredVerdicts:
    """All verdicts of one metric. Rows are samples, in input order."""

    config: JudgeConfig
    values: NDArray[np.float64]  # samples x models x repetitions; NaN without a readable verdict
    scores: Vector  # of the samples; NaN if unscored
    length_difference: Vector  # of the compared answers in characters; NaN if there are not two
    groups: Codes | None  # clusters of the samples
    questions: int
    unreadable: Mapping[tuple[int, str], int]  # (model, why) -> verdicts
    failed: Mapping[tuple[int, str], int]  # (model, status) -> questions
    orders: OrderEffects
    injections: int  # judged samples with an answer that addresses the judge
    systems: frozenset[str]  # whose answers are compared, by the metadata of the samples

    @property
    def complete(self) -> NDArray[np.bool_]:
        """The samples with all verdicts."""
        return np.asarray(~np.isnan(self.values).any(axis=(1, 2)))

    def clusters(self, rows: Codes) -> Codes | None:
        """The clusters of units that belong to these samples; None if all units are independent."""
        if self.groups is not None:
            return self.groups[rows]
        return rows if len(np.unique(rows)) < len(rows) else None


def stored_verdicts(folder: RunFolder, info: RunInfo, metric: str) -> StoredVerdicts:
    """Read the verdicts of a metric from a run folder."""
    config = info.config.judges[metric]
    reader = _Reader(form_of(config), sum(info.parts))
    starts = [0, *accumulate(info.parts)]
    for part, size in enumerate(info.parts):
        judged = rows_of(folder.read_part(verdicts_kind(metric), part))
        samples = folder.read_samples(part)
        for each in judged:
            if not (starts[part] <= each.row < starts[part] + size and each.place.judge < len(config.models)):
                raise RunFolderError(f"{folder.label}: a verdict of {metric} is on a sample or model that is not there")
        try:
            reader.add(judged, samples, starts[part])
        except PromptError as error:
            raise RunFolderError(f"{folder.label}: the verdicts of {metric} cannot be read: {error}") from None
    table = read_scores(folder, len(info.parts), ["group", metric])
    return StoredVerdicts(
        config,
        reader.values,
        float_values(table.column(metric)),
        reader.lengths,
        cluster_codes(table.column("group")),
        reader.questions,
        reader.unreadable,
        reader.failed,
        reader.orders,
        reader.injections,
        frozenset(reader.systems),
    )


class _Reader:
    """Collects the verdicts of all parts."""

    def __init__(self, form: Form, samples: int) -> None:
        config = form.config
        self.form = form
        self.values = np.full((samples, len(config.models), config.repeats), np.nan)
        self.lengths = np.full(samples, np.nan)
        self.questions = 0
        self.unreadable: Counter[tuple[int, str]] = Counter()
        self.failed: Counter[tuple[int, str]] = Counter()
        self.orders = OrderEffects()
        self.injections = 0
        self.systems: set[str] = set()
        self._columns = judged_columns({config.name: config}) or ()

    def add(self, judged: Sequence[Judged], samples: Sequence[Sample], first_row: int) -> None:
        """Read the verdicts of a part."""
        self.questions += len(judged)
        readings: dict[tuple[int, int, int], list[Reading]] = {}
        for each in sorted(judged, key=lambda each: (each.row, each.place)):
            place = each.place
            key = (each.row, place.judge, place.repeat)
            reading = self._reading(each, samples[each.row - first_row])
            if reading is not None:
                readings.setdefault(key, []).append(reading)
        for (row, judge, repeat), verdicts in readings.items():
            sample = samples[row - first_row]
            if len(verdicts) == len(self.form.orders) and 1 <= repeat <= self.form.config.repeats:
                self._value(row, judge, repeat, sample, verdicts)
        for row, sample in enumerate(samples, first_row):
            self._see(row, sample)
        for row in {each.row for each in judged}:
            texts = judged_texts(samples[row - first_row], self._columns)
            self.injections += any(map(addresses_judge, texts))

    def _reading(self, judged: Judged, sample: Sample) -> Reading | None:
        place, outcome = judged.place, judged.exchange.outcome
        if outcome.status != "ok":
            self.failed[place.judge, outcome.status] += 1
            return None
        try:
            return self.form.read(sample, outcome.answer, place.order)
        except UnreadableVerdictError as fault:
            self.unreadable[place.judge, str(fault).partition(":")[0]] += 1  # without the reply
            return None

    def _value(self, row: int, judge: int, repeat: int, sample: Sample, readings: list[Reading]) -> None:
        form = self.form.config.form
        if form not in VALUED:
            return
        score = self.form.value(sample, readings)
        self.values[row, judge, repeat - 1] = np.nan if score.value is None else score.value
        if form == PAIRWISE:
            self.orders.add(row, readings, score)

    def _see(self, row: int, sample: Sample) -> None:
        """Note what is compared."""
        metadata = sample.metadata
        if self.form.config.form == PAIRWISE and isinstance(other := metadata.get(self.form.config.baseline), str):
            self.lengths[row] = len(sample.generated_answer or "") - len(other)
        others = metadata.get("baseline_system")
        for name in (metadata.get("system"), *(others if isinstance(others, list) else [others])):
            if isinstance(name, str):
                self.systems.add(name)
