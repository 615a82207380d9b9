"""Scores without a run: of one sample, of lists, of labels and their annotators, of dialogues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace as replace_fields

from multimodal_eval.core.display import DASH, number
from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Finding, Folded, Notes, Row, Table, Text
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.analysis.classification import Ceiling, Classification, WayScores
    from multimodal_eval.contests.clarity.dataset import Checked
    from multimodal_eval.contests.dialogue.report import DialogueReport, ReplyReport
    from multimodal_eval.core.score import Score
    from multimodal_eval.stats.agreement_report import AgreementReport, Consensus
    from multimodal_eval.stats.resampling import Agreement

__all__ = [
    "agreement_figure",
    "agreement_report_blocks",
    "checked_blocks",
    "classification_blocks",
    "coefficient_row",
    "consensus_line",
    "dialogue_report_blocks",
    "label_scores_blocks",
    "list_scores_blocks",
    "score_blocks",
    "score_value_blocks",
]


class ListScores(Protocol):
    """Scores of lists: of `interop`, which is a layer above."""

    corpus: dict[str, float]

    def interval(self, name: str) -> Figure:
        """A score over all samples."""
        ...


class LabelledScores(ListScores, Protocol):
    """Scores of lists of labels."""

    labels: Sequence[str]
    per_class: Mapping[str, Mapping[str, Any]]
    confusion: Any


class Counted(Protocol):
    """A float that knows how many samples it is of."""

    n_scored: int | None
    n_total: int | None


def score_blocks(score: Score) -> list[Block]:
    """The value, or why there is none; parts and details."""
    what = number(score.value) if score.value is not None else f"no score: {score.status}"
    rows = [Row([name, number(value)]) for name, value in (score.parts or {}).items()]
    rows += [Row([str(name), str(value)]) for name, value in (score.details or {}).items()]
    shown: list[Block] = [Text(what, tone="strong")]
    if rows:
        shown.append(Table(["part or detail", "value"], rows))
    return [*shown, Notes([line for line in (score.reason, score.warning) if line])]


def score_value_blocks(score: Counted) -> list[Block]:
    """In one line."""
    is_known = score.n_scored is not None and score.n_scored == score.n_total  # else its `repr` says it
    scored = f", {score.n_scored:,} of {score.n_total:,} samples scored" if is_known else ""
    return [Text(f"{score!r}{scored}")]


def list_scores_blocks(scores: ListScores) -> list[Block]:
    """The scores over all samples with their intervals."""
    values: Mapping[str, Any] = getattr(scores, "per_sample", None) or getattr(scores, "per_image", {})
    rows = []
    for name, value in scores.corpus.items():
        if (figure := scores.interval(name)) is not None:
            column = values.get(name, ())
            scored = int(sum(each == each for each in column))
            counts = {"n_scored": scored, "n_total": len(column)} if len(column) else {}
            rows.append(FigureRow(replace_fields(figure, value=value, name=name, **counts)))
    count = max((len(column) for column in values.values()), default=0)
    missing: Mapping[str, str] = getattr(scores, "missing", {})
    notes = [Notes([f"{name} is left out: {reason}" for name, reason in missing.items()])] if missing else []
    return [Figures(rows, title=f"scores of {counted(count, 'sample')}"), *notes]


_MOST = 20  # labels of a confusion matrix


def label_scores_blocks(scores: LabelledScores) -> list[Block]:
    """The confusion matrix of many labels is left out."""
    shown = list_scores_blocks(scores)
    rows = [
        Row([label, *(number(each[name]) for name in ("precision", "recall", "f1")), f"{each['support']:,}"])
        for label, each in scores.per_class.items()
    ]
    shown.append(Table(["label", "precision", "recall", "F1", "support"], rows))
    if len(scores.labels) <= _MOST:
        matrix = [
            Row([label, *(f"{count:,}" for count in counts)])
            for label, counts in zip(scores.labels, scores.confusion.tolist(), strict=True)
        ]
        shown.append(Folded("Confusion matrix", [Table(["gold \\ predicted", *scores.labels], matrix)]))
    return shown


def dialogue_report_blocks(report: DialogueReport) -> Iterator[Block]:
    """The scores by type with the integral score, and the worst replies."""
    rows = []
    for row in report.types:
        before = [f"{row.n:,}", *(number(figure.value) for figure in (row.meteor, row.hidden_metric))]
        figure = replace_fields(row.mean, n_scored=row.replies, direction="higher", bounds=(0.0, 1.0))
        rows.append(FigureRow(figure, (row.type,), before, [f"{row.weight:.4g}", number(row.part)]))
    dialogues, replies = sum(row.n for row in report.types), sum(row.replies for row in report.types)
    weighted = [f"{dialogues:,}", *(number(figure.value) for figure in (report.meteor, report.hidden_metric))]
    total = replace_fields(report.integral, n_scored=replies, direction="higher", bounds=(0.0, 1.0))
    rows.append(FigureRow(total, ("integral score",), weighted, ["", number(total.value)], is_strong=True))
    yield Figures(
        rows,
        ("type",),
        ("N", "METEOR", "HM"),
        ("weight", "part"),
        "mean",
        f"dialogue, {counted(dialogues, 'dialogue')}, {replies:,} {'reply' if replies == 1 else 'replies'}",
        "the integral score is the sum of the weighted parts; each dialogue is a cluster, each type a stratum",
        counts="replies",
    )
    halves = [
        FigureRow(replace_fields(figure, n_scored=row.replies, direction="higher", bounds=(0.0, 1.0)), (kind, row.type))
        for kind, name in (("METEOR", "meteor"), ("HM", "hidden_metric"))
        for row in report.types
        for figure in (getattr(row, name),)
    ]
    yield Folded("METEOR and HM of each type", [Figures(halves, ("metric", "type"), counts="replies")])
    if report.worst:
        yield _worst(report.worst)


def _worst(replies: list[ReplyReport]) -> Table:
    rows = []
    for reply in replies:
        answer = reply.answer if reply.answer and reply.answer.strip() else "(blank)"
        correct = reply.variants[0] if reply.variants else DASH
        scores = [number(value) for value in (reply.meteor, reply.hidden_metric, reply.composite_score)]
        rows.append(Row([reply.id, answer, correct, *scores]))
    return Table(["reply", "answer", "a correct one", "METEOR", "HM", "mean"], rows, 3, "the worst replies")


_DIFFERENCES = 8
_NAMES = {
    "strict": "strict",
    "any_match": "any-match",
    "any_match_all": "any-match, charging all",
    "majority": "majority vote",
    "dawid_skene": "Dawid-Skene labels",
}


def classification_blocks(report: Classification) -> Iterator[Block]:
    """Macro F1 and accuracy by every way of scoring, classes, confusions, annotators, and what to know."""
    official = report.scores[report.official]
    yield Figures(list(_scores(report, "macro_f1")), ("macro F1",), title=f"{report.task}, {counted(report.n, 'row')}")
    yield Text(report.official_because, "★")
    yield from map(Finding, _notes(report, official))
    yield Folded("accuracy", [Figures(list(_scores(report, "accuracy")), ("accuracy",))])
    if official.macro_f1 is not None:
        under = _NAMES[report.official]
        yield Folded("classes", [_classes(official, under), _confusions(report.labels, official, under)])
    if people := list(_people(report)):
        yield Folded("annotators", people)
    if report.consensus:
        yield Folded("vote and Dawid-Skene", [_differences(report)])
    if report.agreement is not None and report.agreement.consensus is not None:
        yield Text(consensus_line(report.agreement.consensus, "row"))


def _people(report: Classification) -> Iterator[Figures]:
    """Each annotator against the others, and how far they agree."""
    if report.human_ceiling is not None:
        yield _annotators(report.human_ceiling, report.agreement)
    if report.agreement is not None:
        rows = [coefficient_row(figure) for figure in _coefficients(report.agreement)]
        rows += [
            coefficient_row(pair.kappa, f"{pair.kappa.name}, {' and '.join(pair.annotators)}")
            for pair in report.agreement.pairs
        ]
        yield Figures(rows, ("coefficient",), value="value", title="annotator agreement", counts="rows")


def _scores(report: Classification, measure: str) -> Iterator[FigureRow]:
    """A measure by every way of scoring."""
    for name, scores in report.scores.items():
        figure: Figure | None = getattr(scores, measure)
        if figure is not None:
            shown = _counted(figure, scores.n_scored or 0, report.n)
            yield FigureRow(shown, (_NAMES[name],), is_main=name == report.official)
    if measure == "accuracy" and report.soft is not None:
        yield FigureRow(_counted(report.soft, report.soft.n_scored or 0, report.n), ("soft: share of annotators",))
    if report.human_ceiling is not None:
        ceiling: Figure = getattr(report.human_ceiling, measure)
        yield FigureRow(replace_fields(ceiling, direction="higher", bounds=(0.0, 1.0)), ("human ceiling, any-match",))


def _counted(figure: Figure, scored: int, total: int | None) -> Figure:
    return replace_fields(figure, n_scored=scored, n_total=total, direction="higher", bounds=(0.0, 1.0))


def _classes(official: WayScores, under: str) -> Table:
    rows = []
    for label, row in (official.per_class or {}).items():
        figures = [number(value) for value in (row["precision"], row["recall"], row["f1"])]
        rows.append(Row([label, *figures, f"{row['support']:,}", f"{row['predicted']:,}"]))
    return Table(["label", "precision", "recall", "F1", "gold", "predicted"], rows, title=f"classes, {under}")


def _confusions(labels: list[str], official: WayScores, under: str) -> Table:
    """Rows are gold labels, columns predicted labels by number. The last column counts predictions outside them."""
    numbers = [str(position) for position in range(1, len(labels) + 1)]
    matrix, classes = official.confusion_matrix or [], (official.per_class or {}).values()
    outside = [scores["support"] - sum(row) for scores, row in zip(classes, matrix, strict=True)]
    rows = []
    for place, label, counts, other in zip(numbers, labels, matrix, outside, strict=True):
        cells = [f"{count:,}" if count else "·" for count in (*counts, *([other] if any(outside) else []))]
        rows.append(Row([f"{place} {label}", *cells]))
    heads = ["gold \\ predicted", *numbers, *(["none"] if any(outside) else [])]
    return Table(heads, rows, title=f"gold and predicted, {under}", is_heat_map=True)


def _annotators(ceiling: Ceiling, agreement: AgreementReport | None) -> Figures:
    """Each annotator against the others, by the rule used for systems."""
    labels = {person.name: person.n_ratings for person in (agreement.annotators if agreement else ())}
    rows = []
    for name, scores in ceiling.by_annotator.items():
        count = labels.get(name, 0)
        for measure in ("macro F1", "accuracy"):
            names = (name if measure == "macro F1" else "", measure)
            if scores is None:
                figure = Figure(None, None, None, None, "no row with another annotator", n_scored=0, n_total=count)
            else:
                figure = scores.macro_f1 if measure == "macro F1" else scores.accuracy
                figure = _counted(figure, scores.n_scored, count or None)
            rows.append(FigureRow(figure, names))
    title = "annotators, each against the others by any-match"
    return Figures(rows, ("annotator", ""), title=title, counts="labels scored")


def _coefficients(report: AgreementReport) -> list[Agreement]:
    """All coefficients except a Fleiss' kappa that missing labels leave undefined: alpha handles them."""
    return [figure for figure in report.figures if figure.value is not None or not figure.name.startswith("Fleiss")]


def _differences(report: Classification) -> Table:
    """Rows in which Dawid-Skene differs from the majority vote."""
    rows = []
    for row in (report.consensus or [])[:_DIFFERENCES]:
        labels = ", ".join(str(label or DASH) for label in (row.annotations or {}).values())
        rows.append(Row([row.id, labels, row.majority, row.dawid_skene, f"{100 * row.probability:.1f}%"]))
    heads = ["id", "annotators", "vote", "Dawid-Skene", "probability"]
    return Table(heads, rows, 4, "vote and Dawid-Skene differ")


def _notes(report: Classification, official: WayScores) -> list[str]:
    notes = list(report.notes)
    for name, scores in report.scores.items():
        if scores.macro_f1 is None:
            notes.append(f"{_NAMES[name]}: {scores.reason}")
    if official.n_skipped:
        notes.append(f"{official.n_skipped:,} of {report.n:,} rows have no gold label and are skipped")
    if official.few_gold:
        few = ", ".join(official.few_gold)
        interval = "" if official.macro_f1 is None or official.macro_f1.low is not None else official.macro_f1.method
        notes.append(
            f"fewer than 10 gold examples, so their F1 is uncertain: {few}{'. ' if interval else ''}{interval}"
        )
    if report.agreement is not None:
        figures = [*_coefficients(report.agreement), *(pair.kappa for pair in report.agreement.pairs)]
        notes += dict.fromkeys(f"{figure.name}: {figure.reason}" for figure in figures if figure.reason)
        notes += report.agreement.notes
    return notes


def checked_blocks(checked: Checked) -> Iterator[Block]:
    """The content of a submission without problems."""
    for task, counts in checked.labels.items():
        rows = [Row([label, f"{count:,}", f"{100 * count / checked.rows:.1f}%"]) for label, count in counts.items()]
        yield Table(["label", "predicted", "share"], rows, title=f"{task}, {counted(checked.rows, 'row')}")
    yield from map(Finding, checked.notes)
    compared = checked.compared_with
    against = f"answers every row of {compared} once" if compared else "not compared with data"
    yield Text(f"no problems in {checked.file} ({checked.form}; {against})")
    if not compared:
        yield Text("  to check that every row is answered: --data DATA")


# How well annotators agree, and what the correct labels are.

_LABELS = 20
_SHARES = 8  # annotators whose shares are shown next to the label counts
_ANNOTATORS = 50


def agreement_figure(agreement: Agreement, name: str = "", total: int | None = None) -> Figure:
    """A coefficient as a figure; its units are what it counts."""
    return Figure(
        agreement.value,
        agreement.stderr,
        agreement.low,
        agreement.high,
        agreement.method,
        n_scored=agreement.n_units,
        n_total=total,
        direction="higher",
        name=name or agreement.name,
    )


def coefficient_row(agreement: Agreement, name: str = "", total: int | None = None) -> FigureRow:
    """A coefficient, defined or not."""
    shown = name or agreement.name
    shown = shown if agreement.value is not None else f"{shown} (undefined)"
    return FigureRow(agreement_figure(agreement, shown, total))


def agreement_report_blocks(report: AgreementReport) -> Iterator[Block]:
    """The coefficients, annotators, pairs, labels and estimated accuracies."""
    units, people = report.units, report.annotators[:_ANNOTATORS]
    people_counted = counted(len(report.annotators), "annotator")
    title = f"agreement, {counted(units.total, 'unit')}, {people_counted}, {report.level} labels"
    seed = f"seed {report.settings.seed}"
    rows = [
        replace(coefficient_row(figure, total=units.total), after=[str(figure.n_annotators)])
        for figure in report.figures
    ]
    yield Figures(rows, ("coefficient",), (), ("annotators",), "value", title, seed, counts="units")
    shown = [
        FigureRow(agreement_figure(person.agreement, person.name), before=[f"{person.n_ratings:,}"])
        for person in people
    ]
    yield Figures(shown, ("annotator",), ("labels",), (), "agrees with others", "annotators", counts="units")
    if report.pairs:
        pairs = [FigureRow(agreement_figure(pair.kappa, " and ".join(pair.annotators))) for pair in report.pairs]
        yield Figures(pairs, ("annotators",), value=report.pairs[0].kappa.name, title="pairs", counts="units")
    if report.labels is not None:
        yield _labels(report)
    if report.consensus is not None:
        yield from _accuracy(report, report.consensus)
        iterations = f"Dawid-Skene ({report.consensus.iterations} iterations)"
        yield Text(consensus_line(report.consensus, "unit", iterations))
    yield Text(
        f"units: {units.compared:,} compared, {units.unanimous:,} of them unanimous; "
        f"excluded: {units.one_rating:,} with one label, {units.no_rating:,} with none"
    )
    yield from map(Finding, _agreement_notes(report))


def consensus_line(consensus: Consensus, unit: str, estimate: str = "Dawid-Skene") -> str:
    """How often the estimated labels differ from the majority vote."""
    return (
        f"one label per {unit}: {estimate} differs from the majority vote in {consensus.differs_from_majority:,} of "
        f"{consensus.n_units:,} {unit}s; the vote is tied in {consensus.majority_ties:,}"
    )


def _accuracy(report: AgreementReport, consensus: Consensus) -> Iterator[Figures]:
    """The accuracies estimated by Dawid-Skene, and those against the gold labels."""
    people = report.annotators[:_ANNOTATORS]
    estimated = [
        FigureRow(agreement_figure(person.estimated_accuracy, person.name))
        for person in people
        if person.estimated_accuracy is not None
    ]
    title = "accuracy, estimated by Dawid-Skene"
    yield Figures(estimated, ("annotator",), value="accuracy", title=title, counts="units")
    votes = {"majority vote": consensus.majority_gold_accuracy, "Dawid-Skene": consensus.dawid_skene_gold_accuracy}
    if consensus.majority_gold_accuracy is not None:
        by_name = {person.name: person.gold_accuracy for person in people}
        rows = [FigureRow(agreement_figure(each, name)) for name, each in by_name.items() if each is not None]
        rows += [
            FigureRow(agreement_figure(each, name), is_strong=True) for name, each in votes.items() if each is not None
        ]
        yield Figures(rows, ("",), value="accuracy", title="accuracy against the gold labels", counts="units")


def _labels(report: AgreementReport) -> Table:
    people = report.annotators if len(report.annotators) <= _SHARES else []
    rows = []
    for label, count in list((report.labels or {}).items())[:_LABELS]:
        shares = [f"{person.labels.get(label, 0) / max(person.n_ratings, 1):.1%}" for person in people]
        rows.append(Row([label, f"{count:,}", *shares]))
    return Table(["label", "count", *(person.name for person in people)], rows, title="labels")


def _agreement_notes(report: AgreementReport) -> list[str]:
    figures = [*report.figures, *(pair.kappa for pair in report.pairs)]
    notes = [f"{figure.name}: {figure.reason}" for figure in figures if figure.reason]
    if report.labels is not None and len(report.labels) > _LABELS:
        notes.append(f"{len(report.labels) - _LABELS:,} rarer labels are not shown; --format json has them")
    if len(report.annotators) > _ANNOTATORS:
        more = len(report.annotators) - _ANNOTATORS
        notes.append(f"{more:,} more annotators are not shown; --format json has them")
    return list(dict.fromkeys([*notes, *report.notes]))
