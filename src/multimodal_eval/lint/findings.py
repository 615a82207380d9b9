"""Findings over the facts of all samples and the values of all metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.metric import Bounds
from multimodal_eval.core.records import Finding, Repeated
from multimodal_eval.core.scoring import ROUNDING
from multimodal_eval.lint.facts import COPIED, LONG, Facts, Flag
from multimodal_eval.lint.failed_answers import Doubt

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]
# id and answer of the sample in a row
LookUp = Callable[[int], tuple[str, str | None]]
# the texts of the sample in a row that a judge reads
LookUpTexts = Callable[[int], Sequence[str]]

SHOWN = 5
SHOWN_INJECTIONS = 1000  # each of them should be read
SHOWN_CHARACTERS = 100
RARE = 0.01  # a rule with false positives warns from this share on
COPIES = 0.10  # of the long answers
TRANSCRIPTS = frozenset(("wer", "cer", "mer", "wil"))  # for these, an answer that equals the reference is right
REPEATED = 0.20  # of the long answers
PUNCTUATED = 0.90  # share of answers with final punctuation from which its absence is suspicious
AT_MAXIMUM = 0.05
VARIED = 6  # different lengths; fewer mean a fixed format
AT_BOUND = 0.95
UNSCORED = 0.05
ENOUGH = 20  # answers needed to judge what most of them do
ENOUGH_VALUES = 10
SMALL_CORPUS = 10
_FEW = 16  # one in so many
SINGLE = 0.90  # share of samples with one reference from which a corpus has no consensus

# Every code and why it matters, in the order of lint.json.
CODES = {
    "EMPTY_ANSWER": "A blank answer gets a metric's worst value, so the mean includes the generator's failures.",
    "SUSPECTED_FAILURE": "Answers such as `None`, `{}` or `Error: …` may be failed generations, but they are scored.",
    "REFUSAL": "A refusal is scored like an answer, so the mean mixes what the model can do with what it declines.",
    "JUDGE_INJECTION": "An answer that addresses its judge may change its own verdict. Read it before you trust it.",
    "COPIES_QUESTION": "Repeating the question answers nothing, but still shares words with the references.",
    "COPIES_REFERENCE": "Long answers rarely equal a reference word for word: the references may have leaked.",
    "DUPLICATE_ANSWERS": "A system that gives one answer to different inputs is right only as often as that answer is.",
    "DUPLICATE_SAMPLES": "A duplicated sample weighs too much and makes the interval too narrow.",
    "DEGENERATE_CORPUS": "Corpus statistics and intervals from such a small or uneven corpus are unreliable.",
    "SINGLE_REFERENCE": "CIDEr measures agreement with several people; a single reference is one person's wording.",
    "TRUNCATED": "A truncated answer is scored without its end: check the generator's length limit.",
    "OFF_LANGUAGE": "An answer in another language than its references shares no words with them, even if correct.",
    "MARKUP": "Special tokens, tags, labels and JSON are scored like words of the answer.",
    "REPETITION": "An answer that loops is a decoding failure, and recall metrics may even reward it.",
    "NO_VARIANCE": "A metric with the same value for every sample separates nothing, and its interval is meaningless.",
    "UNSCORED_SHARE": "The mean over the scored samples may not hold for the unscored ones.",
    "CEILING": "If nearly all values are at the upper bound, the metric cannot separate better from worse.",
    "FLOOR": "If nearly all values are at the lower bound, the metric cannot separate better from worse.",
}


class Values(msgspec.Struct):
    """Running statistics of a metric's values, updated part by part."""

    bounds: Bounds = (None, None)
    rows: int = 0
    total: int = 0  # rows for which a value was wanted
    scored: int = 0
    lowest: float = np.inf
    highest: float = -np.inf
    unscored_rows: list[int] = msgspec.field(default_factory=list)
    at_low: int = 0
    at_high: int = 0

    def see(self, values: NDArray[np.float64], unwanted: Mask | None = None) -> None:
        """Add the next values; NaN for an unscored sample. A value may be missing in the rows that are `unwanted`."""
        missing = np.isnan(values)
        unscored = missing if unwanted is None else missing & ~unwanted
        if len(self.unscored_rows) < SHOWN:
            self.unscored_rows += (np.flatnonzero(unscored)[:SHOWN] + self.rows).tolist()
        present = values[~missing]
        self.rows += len(values)
        self.total += len(present) + int(unscored.sum())
        if not len(present):
            return
        self.scored += len(present)
        self.lowest, self.highest = min(self.lowest, present.min()), max(self.highest, present.max())
        low, high = self.bounds
        self.at_low += 0 if low is None else int((present <= low + ROUNDING).sum())
        self.at_high += 0 if high is None else int((present >= high - ROUNDING * abs(high)).sum())


def findings(
    facts: Facts,
    look_up: LookUp,
    values: Mapping[str, Values] | None = None,
    corpus_metrics: Sequence[str] = (),
    judged: LookUpTexts | None = None,
    *,
    are_letters: bool = False,
) -> list[Finding]:
    """All findings, in the order of `CODES`.

    `corpus_metrics` compute document frequencies from the run. `judged` looks up the texts that a judge reads, if these
    are not only the answers. `are_letters`: every metric reads a letter or a word, and ignores the rest of the answer.
    """
    rules = _Rules(facts, look_up, judged)
    every = [
        *rules.single_answers(),
        *(() if TRANSCRIPTS.intersection(values or ()) else rules.copied_references()),
        *rules.repeated_answers(),
        *rules.repeated_samples(),
        *rules.corpus(corpus_metrics),
        *rules.single_references(corpus_metrics),
        *rules.truncated(),
        *(() if are_letters else rules.texts()),
        *rules.flagged("REPETITION", Flag.REPETITION, "answers in which a phrase repeats over and over"),
        *(finding for name, statistics in (values or {}).items() for finding in rules.metric(name, statistics)),
    ]
    order = list(CODES)
    return sorted(every, key=lambda finding: order.index(finding.code))


class _Rules:
    """The rules that turn facts into findings."""

    def __init__(self, facts: Facts, look_up: LookUp, judged: LookUpTexts | None = None) -> None:
        self.facts, self.look_up, self.judged = facts, look_up, judged
        self.answered = self._has(Flag.ANSWERED) & ~self._has(Flag.BLANK)
        itself = np.arange(1, len(facts) + 1, dtype=np.uint64)
        self.units = np.where(facts["unit"] == 0, itself, facts["unit"])
        self.long: Mask = self.answered & (facts["words"] >= LONG)

    def _has(self, flag: int) -> Mask:
        return np.asarray((self.facts["flags"] & flag) != 0)

    def _finding(
        self, code: str, mask: Mask, total: int, what: str, answers: Sequence[Repeated] = (), shown: int = SHOWN
    ) -> Finding:
        count = int(mask.sum())
        return Finding(
            code=code,
            count=count,
            total=total,
            share=count / total,
            what=what,
            why=CODES[code],
            examples=self._ids(np.flatnonzero(mask)[:shown].tolist()),
            answers=list(answers),
        )

    def _ids(self, rows: Sequence[int]) -> list[str]:
        return [self.look_up(row)[0] for row in rows]

    def flagged(self, code: str, flag: int, what: str) -> Iterator[Finding]:
        """A finding if any sample has the flag."""
        mask = self._has(flag)
        if mask.any():
            yield self._finding(code, mask, int(self._has(Flag.ANSWERED).sum()), what)

    def rare(self, code: str, flag: int, what: str) -> Iterator[Finding]:
        """The same for a flag with false positives: a finding if more than a few samples have it."""
        yield from (finding for finding in self.flagged(code, flag, what) if finding.share >= RARE)

    def suspicious(self, code: str, flag: int, what: str) -> Iterator[Finding]:
        """A finding with the most frequent answers, without those that are the first reference of some sample."""
        mask = self._has(flag)
        if mask.any():
            mask &= ~np.isin(self.facts["answer"], self.facts["reference"][self.facts["references"] > 0])
        if mask.any():
            yield self._finding(code, mask, int(self._has(Flag.ANSWERED).sum()), what, self._most_frequent(mask))

    def texts(self) -> Iterator[Finding]:
        """What matters if the words of the answer are scored."""
        language = "answers in another script or language than their references"
        yield from self.rare("OFF_LANGUAGE", Flag.OFF_LANGUAGE, language)
        markup = "answers with special tokens, tags, labels, JSON or control characters"
        yield from self.flagged("MARKUP", Flag.MARKUP, markup)

    def single_answers(self) -> Iterator[Finding]:
        yield from self.flagged("EMPTY_ANSWER", Flag.BLANK, "blank answers")
        failed = "answers that look like a failed generation; `error_patterns` can leave them unscored"
        yield from self.suspicious("SUSPECTED_FAILURE", Doubt.SUSPECTED, failed)
        yield from self.suspicious(
            "REFUSAL", Doubt.REFUSAL, "answers in which the model refuses or says it cannot answer"
        )
        yield from self.injections()
        yield from self.flagged("COPIES_QUESTION", Flag.COPIES_QUESTION, "answers that only repeat the question")

    def injections(self) -> Iterator[Finding]:
        """Every answer that addresses the judge: each of them should be read."""
        mask = self._has(Doubt.INJECTION)
        if mask.any():
            what = "answers that address the judge or give themselves a verdict"
            total = int(self._has(Flag.ANSWERED).sum())
            answers = self._most_frequent(mask) if self.judged is None else self._matched(mask, self.judged)
            yield self._finding("JUDGE_INJECTION", mask, total, what, answers, shown=SHOWN_INJECTIONS)

    def copied_references(self) -> Iterator[Finding]:
        """More copies than by chance, among answers too long to equal a reference by chance."""
        eligible = self.answered & (self.facts["words"] >= COPIED) & (self.facts["references"] > 0)
        mask = self._has(Flag.COPIES_REFERENCE)
        if mask.sum() > max(1, COPIES * eligible.sum()):
            what = f"answers of {COPIED} words or more that equal one of their references"
            yield self._finding("COPIES_REFERENCE", mask, int(eligible.sum()), what)

    def repeated_answers(self) -> Iterator[Finding]:
        """Long answers in several units, or one answer in half of all units, unless the references do so too."""
        facts = self.facts
        units = _units(facts["answer"], self.units)
        of_references = _units(facts["reference"], self.units)
        long = self.long & (units > 1)
        share = long.sum() / max(1, self.long.sum())
        usual = (of_references > 1).sum() / max(1, (facts["references"] > 0).sum())
        mask = long if long.sum() > 2 and share >= REPEATED and share >= 2 * usual else np.zeros_like(long)
        every = _distinct(self.units[self.answered])
        most = int(units.max(initial=0))
        if every >= ENOUGH_VALUES and 2 * most >= every and 2 * most >= 3 * of_references.max(initial=0):
            mask = mask | (units == most)
        if mask.any():
            what = "answers that occur in two or more different groups or images"
            answers = self._most_frequent(mask)
            yield self._finding("DUPLICATE_ANSWERS", mask, int(self.answered.sum()), what, answers)

    def _most_frequent(self, mask: Mask) -> list[Repeated]:
        rows = np.flatnonzero(mask)
        hashes, first, counts = np.unique(self.facts["answer"][rows], return_index=True, return_counts=True)
        frequent = np.lexsort((hashes, -counts))[:SHOWN]  # ties by hash, so the order of the samples does not matter
        return [Repeated(self._shown(int(rows[first[place]])), int(counts[place])) for place in frequent]

    def _matched(self, mask: Mask, judged: LookUpTexts) -> list[Repeated]:
        """The texts that address the judge, which may be another answer than that of the sample."""
        from multimodal_eval.lint.injection import addresses_judge

        rows = np.flatnonzero(mask)[:SHOWN_INJECTIONS].tolist()
        counts = Counter(text for row in rows for text in judged(row) if addresses_judge(text))
        frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
        return [Repeated(_shortened(text), count) for text, count in frequent]

    def _shown(self, row: int) -> str:
        return _shortened(self.look_up(row)[1] or "")

    def repeated_samples(self) -> Iterator[Finding]:
        content = np.ascontiguousarray(self.facts["content"])
        mask = (content != 0) & _repeated(content)
        if mask.any():
            different = _distinct(content[mask])
            what = f"samples that occur under several ids ({different:,} different)"
            yield self._finding("DUPLICATE_SAMPLES", mask, len(content), what)

    def corpus(self, metrics: Sequence[str]) -> Iterator[Finding]:
        counts = self.facts["references"]
        has = counts > 0
        every = np.ones(len(counts), dtype=np.bool_)
        if len(counts) == 1:
            yield self._finding("DEGENERATE_CORPUS", every, 1, "a single sample")
        elif has.sum() > 1 and _distinct(self.facts["corpus"][has]) == 1:
            yield self._finding("DEGENERATE_CORPUS", has, len(counts), "samples that all have the same references")
        if metrics and 0 < has.sum() < SMALL_CORPUS:
            what = f"samples with references: too few for the document frequencies of {', '.join(metrics)}"
            yield self._finding("DEGENERATE_CORPUS", has, len(counts), what)
        single = counts == 1
        if single.any() and np.median(counts[has]) >= 3:
            most = int(np.median(counts[has]))
            what = f"samples with a single reference, while half of the others have {most} or more"
            yield self._finding("DEGENERATE_CORPUS", single, int(has.sum()), what)

    def single_references(self, metrics: Sequence[str]) -> Iterator[Finding]:
        """Nearly all samples have one reference, and a metric looks for the consensus of several."""
        counts = self.facts["references"]
        single, total = counts == 1, int((counts > 0).sum())
        if metrics and total and single.sum() >= SINGLE * total:
            what = f"samples with a single reference: too few for the consensus that {', '.join(metrics)} measures"
            yield self._finding("SINGLE_REFERENCE", single, total, what)

    def truncated(self) -> Iterator[Finding]:
        """Any of four signs; each is judged by what most answers of the run do."""
        signs = {
            "end in a comma, hyphen or ellipsis": self._has(Flag.OPEN),
            "end in a word that cannot end a sentence": self._unfinished(),
            "lack the final punctuation of the others": self._unpunctuated(),
            "have exactly the greatest length": self._at_greatest_length(),
        }
        mask: Mask = np.logical_or.reduce(list(signs.values()))
        total = int(self.answered.sum())
        if mask.any() and mask.sum() >= RARE * total:
            counts = ", ".join(f"{int(matches.sum()):,} {sign}" for sign, matches in signs.items() if matches.any())
            yield self._finding("TRUNCATED", mask, total, f"answers that look truncated ({counts})")

    def _unfinished(self) -> Mask:
        """Answers whose last word cannot end a sentence in the language of most answers."""
        known = np.bincount(self.facts["language"], minlength=2)[1:]
        bit = 1 << int(known.argmax()) if known.any() else 0
        return np.asarray((self.facts["unfinished_in"] & bit) != 0)

    def _unpunctuated(self) -> Mask:
        """Many captions have no final punctuation; it counts as missing if other answers and references have it."""
        closed = self._has(Flag.CLOSED)
        open_, open_references = self.long & ~closed, self.long & (self.facts["references"] > 0)
        with_references = int(open_references.sum())
        open_references &= ~self._has(Flag.REFERENCE_CLOSED)
        judged, lacking = int(self.long.sum()), int(open_.sum())
        usual = open_references.sum() / max(1, with_references)
        odd = judged >= ENOUGH and lacking <= (1 - PUNCTUATED) * judged and lacking >= 3 * usual * judged
        return open_ if odd else np.zeros_like(open_)

    def _at_greatest_length(self) -> Mask:
        """Unclosed answers that pile up at exactly the greatest number of words or characters."""
        mask = np.zeros_like(self.long)
        for name, minimum, before in (("words", 8, 2), ("characters", 20, 5)):
            lengths = self.facts[name][self.long]
            if len(lengths) < ENOUGH or lengths.max() < minimum or _distinct(lengths) < VARIED:
                continue
            greatest = int(lengths.max())
            pile = int((lengths == greatest).sum())
            nearby = max(int((lengths == greatest - step).sum()) for step in range(1, before + 1))
            share = pile / len(lengths)
            if pile < ENOUGH_VALUES or not AT_MAXIMUM <= share <= 0.9 or pile < 3 * nearby:
                continue
            at = self.long & (self.facts[name] == greatest)
            cut = at & ~self._has(Flag.CLOSED)
            if cut.sum() >= 0.8 * pile:
                mask |= cut
        return mask

    def metric(self, name: str, values: Values) -> Iterator[Finding]:
        """Findings about a metric's values."""
        unscored = values.total - values.scored
        rows = self._ids(values.unscored_rows[:SHOWN])
        if values.scored < 2:
            yield _metric_finding("NO_VARIANCE", name, values.scored, values.total, "samples scored", [])
        elif values.lowest == values.highest:
            what = f"values, all equal to {values.lowest:g}"
            yield _metric_finding("NO_VARIANCE", name, values.scored, values.scored, what, [])
        if unscored > UNSCORED * values.total:
            yield _metric_finding("UNSCORED_SHARE", name, unscored, values.total, "samples unscored", rows)
        for code, count, bound in zip(
            ("CEILING", "FLOOR"), (values.at_high, values.at_low), values.bounds[::-1], strict=True
        ):
            if values.scored >= ENOUGH_VALUES and count >= AT_BOUND * values.scored:
                yield _metric_finding(code, name, count, values.scored, f"values at the bound {bound:g}", [])


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def _metric_finding(code: str, name: str, count: int, total: int, what: str, examples: list[str]) -> Finding:
    return Finding(
        code=code, metric=name, count=count, total=total, share=count / total if total else 0.0, what=what,
        why=CODES[code], examples=examples,
    )  # fmt: skip


def _distinct(values: NDArray[np.unsignedinteger[Any]]) -> int:
    """The number of different values. `np.unique` uses a hash table, which is slow if most values differ."""
    ordered = np.sort(values)
    return int((ordered[1:] != ordered[:-1]).sum()) + 1 if len(ordered) else 0


def _repeated(hashes: NDArray[np.uint64]) -> Mask:
    """Whether each hash occurs more than once."""
    ordered = np.sort(hashes)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated) * _FEW < len(hashes):  # usually none: a search in a short array
        repeated = repeated[np.diff(repeated, prepend=repeated[:1] + 1) != 0]
        place = np.minimum(np.searchsorted(repeated, hashes), max(0, len(repeated) - 1))
        return repeated[place] == hashes if len(repeated) else np.zeros(len(hashes), np.bool_)
    _, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse] > 1)


def _units(hashes: NDArray[np.uint64], units: NDArray[np.uint64]) -> Rows:
    """For each row, the number of different units with its hash; 0 without a hash."""
    hashes = np.ascontiguousarray(hashes)
    result: Rows = (hashes != 0).astype(np.int64)
    rows = np.flatnonzero(_repeated(hashes) & (hashes != 0))
    order = rows[np.lexsort((units[rows], hashes[rows]))]
    if not len(order):
        return result
    ordered, ordered_units = hashes[order], units[order]
    new_hash = np.ones(len(order), dtype=np.bool_)
    new_hash[1:] = ordered[1:] != ordered[:-1]
    new_unit = new_hash.copy()
    new_unit[1:] |= ordered_units[1:] != ordered_units[:-1]
    number = np.cumsum(new_hash) - 1
    counts = np.bincount(number[new_unit], minlength=1)
    result[order] = counts[number]
    return result
