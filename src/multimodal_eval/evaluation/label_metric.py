"""The base classes of metrics that compare labels: the taxonomy, unknown labels, and macro F1 over a run.

The predicted label is `generated_answer`, the gold label `expected_answer`, and the annotators' labels are the values
of `annotations`. The taxonomy is the option `labels`. By default it consists of all gold labels and annotators' labels
of a run, so a predicted label that nobody else uses is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.corpus import Corpus
from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Estimate, Rows, Score, unscored
from multimodal_eval.data.labels.taxonomy import Taxonomy, folded, label_text, load_taxonomy
from multimodal_eval.data.readers.problems import MAX_KEPT

if TYPE_CHECKING:
    from multimodal_eval.data.labels.taxonomy import Codes

UNKNOWN_LABEL = "unknown_label"  # a predicted label outside the taxonomy
OUTSIDE = "annotation_outside_taxonomy"
MAX_COLLECTED_LABELS = 1000
NO_ANNOTATION = "no annotator gave a label"
UNKNOWN_CHOICES = ("error", "wrong")


class LabelsSeen(msgspec.Struct, frozen=True):
    """The labels of a run, collected before scoring; `+` joins the parts of a run in their order.

    `n_labelled` counts samples with a gold label or an annotation. If no taxonomy is given, `forms` has these labels,
    keyed by the form in which labels are compared. If one is given, `unknown` has problems for the first predicted
    labels outside it, and `n_unknown` is their total number.
    """

    n_labelled: int = 0
    forms: dict[str, str] = {}
    unknown: list[Problem] = []
    n_unknown: int = 0

    def __add__(self, other: LabelsSeen) -> LabelsSeen:
        forms = dict(self.forms)
        for form, label in other.forms.items():
            forms[form] = min(label, forms.get(form, label))
        return LabelsSeen(
            self.n_labelled + other.n_labelled,
            forms,
            [*self.unknown, *other.unknown][:MAX_KEPT],
            self.n_unknown + other.n_unknown,
        )

    @property
    def taxonomy(self) -> Taxonomy | None:
        """The labels found, in alphabetical order; None if there are none."""
        return Taxonomy(tuple(sorted(self.forms.values()))) if self.forms else None

    def check(self) -> None:
        """Refuse predicted labels outside the taxonomy, a corpus without labels, and one with too many to be labels."""
        if self.n_unknown:
            raise InputError(self.unknown, self.n_unknown)
        if not self.n_labelled:
            message = "no sample has a gold label (`expected_answer`) or an annotator's label (`annotations`)."
            hint = "Name their columns with --map expected_answer=COLUMN or --annotators 'annotator*'."
            raise InputError([Problem(code="NO_REFERENCE", message=message, hint=hint)])
        if len(self.forms) > MAX_COLLECTED_LABELS:
            raise ConfigError(
                f"{len(self.forms):,} different labels: is this the right column? Name them with --labels labels.yaml."
            )


def labels_seen(samples: Iterable[Sample], labels: Any = None, unknown_labels: str = "error") -> LabelsSeen:
    """The labels in use, and the predicted ones outside the given taxonomy."""
    given = None if labels is None else load_taxonomy(labels)
    forms: dict[str, str] = {}
    unknown: list[Problem] = []
    count = labelled = 0
    for sample in samples:
        in_use = _labels_in_use(sample)
        labelled += bool(in_use)
        if given is None:
            for label in in_use:
                forms[folded(label)] = min(label, forms.get(folded(label), label))
        elif unknown_labels == "error" and _is_unknown(sample, given):
            count += 1
            if len(unknown) < MAX_KEPT:
                unknown.append(_problem(sample, given))
    return LabelsSeen(labelled, forms, unknown, count)


def _is_unknown(sample: Sample, taxonomy: Taxonomy | None) -> bool:
    """Whether a predicted label is outside the given taxonomy."""
    answer = sample.generated_answer
    return (
        taxonomy is not None
        and not sample.error
        and answer is not None
        and bool(answer.strip())
        and taxonomy.code(answer) < 0
    )


class LabelMetric(Metric):
    """A metric of a predicted label. Subclasses define how a sample counts."""

    bounds = (0, 1)
    corpus = Corpus(labels_seen)
    options = Options(
        labels=Option(
            Any,
            None,
            words="a list of labels, {labels: […], aliases: {…}}, or a YAML file of either",
            help="the taxonomy; by default all gold labels and annotators' labels",
        ),
        unknown_labels=Option(
            str,
            "error",
            choices=UNKNOWN_CHOICES,
            help="whether a predicted label outside the taxonomy is an input error or a wrong prediction",
        ),
    )

    @cached_property
    def given_taxonomy(self) -> Taxonomy | None:
        """The taxonomy that the option `labels` names."""
        labels = self.options["labels"]
        return None if labels is None else load_taxonomy(labels)

    def settle(self) -> OptionValues:
        """Check that the labels form a taxonomy. If they come from a file, a run records the labels themselves."""
        taxonomy = self.given_taxonomy
        return {"labels": taxonomy.to_builtins()} if isinstance(self.options["labels"], str) and taxonomy else {}

    def settings(self, state: LabelsSeen | None) -> Mapping[str, object]:
        """The taxonomy by its size and digest, and the options that change scores."""
        collected = None if state is None else state.taxonomy
        if self.given_taxonomy is not None:
            labels = self.given_taxonomy.fingerprint
        else:
            labels = "found" if collected is None else f"found-{collected.fingerprint}"
        more_options = {key: value for key, value in self.options.items() if key not in LabelMetric.options}
        return {"labels": labels, **more_options, **self.fixed_settings()}

    def fixed_settings(self) -> dict[str, int]:
        """Settings in the signature that are not options."""
        return {"zero_division": 0}

    def open(self, state: LabelsSeen | None) -> _Scorer:
        """Open the metric with its taxonomy."""
        return _Scorer(self, self.given_taxonomy or (None if state is None else state.taxonomy))

    uses_annotations = True

    def score_codes(self, predicted: Codes, labels: Codes, taxonomy: Taxonomy) -> list[Score | None]:
        """The scores of samples from label codes: `labels` has the gold label or the annotations of each sample.

        None for a sample without a gold label.
        """
        raise NotImplementedError

    def score_sample(self, sample: Sample, taxonomy: Taxonomy | None) -> Score:
        """The score of one sample.

        Without a taxonomy, its own labels serve as one: enough for its value, but not for macro F1.
        """
        labels = taxonomy or labels_seen([sample], self.options["labels"]).taxonomy
        if labels is None:
            return unscored("missing_input", NO_ANNOTATION)
        (score,) = self.score_samples([sample], labels)
        return score if taxonomy is not None else msgspec.structs.replace(score, stats=None)

    def score_samples(self, samples: Sequence[Sample], taxonomy: Taxonomy) -> list[Score]:
        """The scores of the samples of a batch."""
        cells = [_annotated(sample) if self.uses_annotations else [sample.expected_answer] for sample in samples]
        labels = taxonomy.encode_rows(cells).codes
        predicted = taxonomy.encode([sample.generated_answer or "" for sample in samples]).codes
        scores = self.score_codes(predicted, labels, taxonomy)
        outside = [_outside(row, codes) for row, codes in zip(cells, labels.tolist(), strict=True)]
        unknown = (predicted < 0).tolist()
        return [
            self._refused(sample, taxonomy) or _with_warning(sample, score, is_unknown, labels_outside)
            for sample, score, is_unknown, labels_outside in zip(samples, scores, unknown, outside, strict=True)
        ]

    def _refused(self, sample: Sample, taxonomy: Taxonomy) -> Score | None:
        is_refused = self.options["unknown_labels"] == "error" and _is_unknown(sample, self.given_taxonomy)
        return unscored("error", str(_problem(sample, taxonomy))) if is_refused else None


def macro_f1(rows: Rows) -> Estimate:
    """Macro F1 over all labels of the taxonomy."""
    from multimodal_eval.stats.estimates import function_of_sums
    from multimodal_eval.stats.macro_f1 import macro_f1_estimate, macro_f1_gradient, macro_f1_of_sums

    estimate = function_of_sums(rows, macro_f1_of_sums, macro_f1_gradient)
    assert rows.stats is not None
    return macro_f1_estimate(estimate.value, estimate.influence, rows.stats.sum(axis=0))


class MacroF1Metric(LabelMetric):
    """A label metric whose aggregate is macro F1; the value of a sample says whether its label is right."""

    aggregate = staticmethod(macro_f1)

    def golds(self, predicted: Codes, labels: Codes, taxonomy: Taxonomy) -> Codes:
        """The gold labels that each sample counts for (samples x labels), padded with -1."""
        raise NotImplementedError

    def score_codes(self, predicted: Codes, labels: Codes, taxonomy: Taxonomy) -> list[Score | None]:
        """1 if the predicted label is among the gold labels of the sample, else 0, with the statistics of macro F1."""
        from multimodal_eval.stats.macro_f1 import row_statistics

        scores: list[Score | None] = []
        for answer, row in zip(predicted.tolist(), self.golds(predicted, labels, taxonomy).tolist(), strict=True):
            golds = [code for code in row if code >= 0]
            if not golds:
                scores.append(None)
                continue
            details = {"gold": sorted(taxonomy.labels[code] for code in golds)}
            stats = row_statistics(answer, golds, len(taxonomy))
            scores.append(Score(float(answer in golds), stats=stats, details=details))
        return scores


class _Scorer:
    def __init__(self, metric: LabelMetric, taxonomy: Taxonomy | None) -> None:
        self.metric, self.taxonomy = metric, taxonomy

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        if self.taxonomy is None:
            return [self.metric.score_sample(sample, None) for sample in batch]
        return self.metric.score_samples(batch, self.taxonomy)


def _outside(cells: list[Any], codes: list[int]) -> list[str]:
    """The labels that are not in the taxonomy, without blank ones."""
    texts = [label_text(cell) for cell, code in zip(cells, codes, strict=False) if code < 0]
    return [text for text in texts if text.strip()]


def _with_warning(sample: Sample, score: Score | None, unknown: bool, outside: list[str]) -> Score:
    """The score with a warning if a label is outside the taxonomy; the reason if there is no score."""
    if score is None:
        reason = f"the label {shorten(outside[0])} is not in the taxonomy" if outside else NO_ANNOTATION
        return Score(None, "degenerate" if outside else "missing_input", reason, warning=OUTSIDE if outside else None)
    is_unknown = unknown and bool((sample.generated_answer or "").strip())
    details = {**(score.details or {}), **({"outside": outside} if outside else {})}
    warning = UNKNOWN_LABEL if is_unknown else OUTSIDE if outside else None
    return msgspec.structs.replace(score, warning=warning, details=details or None)


def _annotated(sample: Sample) -> list[Any]:
    return list((sample.annotations or {}).values())


def _labels_in_use(sample: Sample) -> list[str]:
    """The gold label and the annotations. Values that are not labels are skipped: they fail later, in `score`."""
    cells = [sample.expected_answer, *_annotated(sample)]
    texts = [label_text(cell) for cell in cells if isinstance(cell, str | int) and not isinstance(cell, bool)]
    return [" ".join(text.split()) for text in texts if text.strip()]


def _problem(sample: Sample, taxonomy: Taxonomy) -> Problem:
    nearest = taxonomy.nearest(sample.generated_answer)
    suggestion = f"Did you mean {nearest!r}? " if nearest else f"Known: {', '.join(taxonomy.labels)}. "
    return Problem(
        code="UNKNOWN_LABEL",
        message=f"the predicted label {shorten(sample.generated_answer)} is not in the taxonomy.",
        id=sample.id,
        field="generated_answer",
        value=shorten(sample.generated_answer),
        hint=suggestion + "To count it as wrong: --unknown-labels wrong.",
    )
