"""Published figures beside ours, and why they differ."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING

from multimodal_eval.display.blocks import Block, Finding, Row, Table, Text, Tone, Verdict
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.run.reproduction.ledger import Cell, Counts, Reason, Reproduced, Reproduction
    from multimodal_eval.run.verify import Verification

__all__ = ["reproduction_blocks", "verification_blocks"]


_SHOWN = 5  # ids
_MORE_DIGITS = 2


def reproduction_blocks(outcome: Reproduction) -> Iterator[Block]:
    """The answer, a row per entry, then the figures that differ with their reasons."""
    cells = [cell for each in outcome.entries for cell in each.cells]
    equal = sum(cell.status == "equal" for cell in cells)
    broken = len(outcome.broken)
    declared = "every entry is what it declares"
    if broken:
        declared = f"{broken:,} of {len(outcome.entries):,} entries are not what they declare"
    sentence = f"{equal:,} of {counted(len(cells), 'published figure')} equal; {declared}"
    yield Verdict(sentence, tone="bad" if broken else "good")
    heads = ["benchmark", "model", "result", "ours", "published", "figures", "verdicts", "right"]
    caption = (
        "ours, published, right: of the first figure; figures: those that are equal; verdicts: those that are equal to "
        "the authors'"
    )
    rows = [_entry_row(each) for each in outcome.entries]
    yield Table(heads, rows, 3, caption=caption, optional=("verdicts", "right"))
    for each in outcome.entries:
        yield from _differences(each)


def _entry_row(each: Reproduced) -> Row:
    cell = each.cells[0]
    equal = sum(other.status == "equal" for other in each.cells)
    verdicts = f"{each.equal_verdicts:,}/{each.compared:,}" if each.compared else "-"
    result = each.status if each.status == "equal" else each.entry.declared if each.holds else each.status
    tone: Tone = "bad" if not each.holds else "good" if each.status == "equal" else "warning"
    return Row(
        [
            each.entry.recipe,
            each.entry.model or "-",
            result,
            _value(cell, cell.ours),
            _published(cell),
            f"{equal:,}/{len(each.cells):,}",
            verdicts,
            _counts(cell.ours),
        ],
        tone=tone,
    )


def _differences(each: Reproduced) -> Iterator[Block]:
    """The figures of an entry that differ, and what is unusual in its answers."""
    shown = [cell for cell in each.cells if cell.status != "equal" or cell.reasons]
    if shown:
        rows = []
        for cell in shown:
            reasons = [_sentence(reason) for reason in cell.reasons] or [""]
            exact = _counts(cell.ours) if cell.published.value is None else _value(cell, cell.ours, _MORE_DIGITS)
            rows.append(Row([cell.published.figure, "; ".join(reasons), exact, _published(cell)]))
        title = f"{each.entry.title}: {each.entry.declared if each.holds else 'not as declared'}"
        yield Table(["figure", "why", "ours", "published"], rows, 2, title, each.entry.why or "", has_lines=True)
    named = {(reason.kind, reason.ids) for cell in shown for reason in cell.reasons}
    for note in each.notes:
        if (note.kind, note.ids) not in named:
            yield Finding(_sentence(note), level="note", about=[each.entry.title])
    if each.entry.declared == "explained" and each.status == "equal":
        yield Finding("declared explained, but all figures are equal", level="note", about=[each.entry.title])


def _sentence(reason: Reason) -> str:
    """The reason with the number of samples, and some of them."""
    if not reason.count:
        return reason.sentence
    if reason.verdicts:
        ids = [f"{each.id} (ours {_short(each.ours)}, theirs {_short(each.authors)})" for each in reason.verdicts]
    else:
        ids = list(reason.ids)
    more = " …" if reason.count > min(len(ids), _SHOWN) else ""
    return f"{reason.sentence} ({reason.count:,}: {', '.join(ids[:_SHOWN])}{more})"


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _counts(counts: Counts | None) -> str:
    if counts is None or counts.correct is None or counts.correct != int(counts.correct):
        return "-"
    return f"{int(counts.correct):,}/{counts.total:,}"


def _value(cell: Cell, counts: Counts | None, more: int = 0) -> str:
    if counts is None:
        return "-"
    if cell.published.value is None:
        return _counts(counts)
    return f"{counts.value:.{cell.published.printed_digits + more}f}{_sign(cell.unit)}"


def _published(cell: Cell) -> str:
    published = cell.published
    if published.value is None:
        return f"{published.correct:,g}/{published.total:,}"
    return f"{published.value:.{published.printed_digits}f}{_sign(cell.unit)}"


def _sign(unit: str) -> str:
    return " %" if unit in ("%", "percent") else ""


# Whether the files of a run are intact.


def verification_blocks(outcome: Verification, *, deep: bool = False) -> Iterator[Block]:
    """The faults of a run and what to do, or how many files are intact; `deep`: the results were recomputed."""
    for fault in outcome.faults:
        yield Text(f"{outcome.run}/{fault.name} {fault.problem}")
    for note in outcome.notes:
        yield Text(f"{outcome.run}: {note}")
    if outcome.faults:
        yield Text(f"{outcome.run}: {counted(len(outcome.faults), 'fault')}. {_advice(outcome)}")
    elif outcome.files:
        results = ", and the results are those of its scores" if deep and outcome.state == "done" else ""
        yield Text(f"{outcome.run}: {counted(outcome.files, 'data file')} intact{results}")


def _advice(outcome: Verification) -> str:
    if any(fault.name == "run.json" for fault in outcome.faults):
        return "Restore run.json from a copy, or score the samples again"
    return f"Recompute with: mmeval score --resume {quote(outcome.run)}"
