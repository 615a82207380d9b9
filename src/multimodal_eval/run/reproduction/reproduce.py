"""Compute the figures of a ledger again, and compare them with the published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from multimodal_eval.benchmarks.recipes import Recipe, recipe
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, UnknownNameError, did_you_mean
from multimodal_eval.run.reproduction.answers import Answers, Source, answers_of, values_of
from multimodal_eval.run.reproduction.ledger import (
    OVERALL,
    UNITS,
    Cell,
    Entry,
    Ledger,
    Published,
    Reproduced,
    Reproduction,
    read_ledger,
)
from multimodal_eval.run.reproduction.reasons import Reasons
from multimodal_eval.run.reproduction.scoring import Scored, Scorer, status_of

__all__ = ["reproduce"]


def reproduce(
    ledger: Ledger | Path | str,
    data: Path | None = None,
    *,
    only: Sequence[str] = (),
) -> Reproduction:
    """Compute every figure of a ledger from the answers in the folder `data`, or beside the ledger.

    `only` chooses entries by recipe or model.
    """
    read = (ledger if isinstance(ledger, Ledger) else read_ledger(Path(ledger))).only(only)
    source, recipes, entries = Source(data or read.file.parent, read.file.parent), dict[str, Recipe](), []
    for number, entry in enumerate(read.entries, 1):
        where = f"{read.file}: entry {number} ({entry.title})"
        if entry.recipe not in recipes:
            recipes[entry.recipe] = _recipe(entry.recipe, read.file.parent, where)
        entries.append(_reproduced(entry, recipes[entry.recipe], source, where))
    return Reproduction(str(read.file), tuple(entries))


def _recipe(name: str, folder: Path, where: str) -> Recipe:
    try:
        return recipe(folder / name if (folder / name).exists() else name)
    except UnknownNameError as error:
        raise ConfigError(f"{where}: `recipe`: {error}") from None


def _reproduced(entry: Entry, chosen: Recipe, source: Source, where: str) -> Reproduced:
    try:
        answers = answers_of(entry, chosen, source, where)
        scorer = Scorer(entry, chosen, where)
        figures = _figures(entry, answers, chosen, where)
        scored = scorer.scored(answers.rows)
        stored = scored.with_verdicts() if any(row.verdict is not None for row in answers.rows) else None
        cells = [_cell(published, figures, chosen, scored, stored, where) for published in entry.published]
        reasons = Reasons(entry, scorer, answers, source, scored, stored, cells, figures)
        compared = [] if stored is None else reasons.compared
        equal = len(compared) - len(reasons.differing)
        return Reproduced(
            entry,
            scorer.rule,
            len(answers.rows),
            len(compared),
            equal,
            tuple(reasons.explained()),
            tuple(reasons.notes),
        )
    except MultimodalEvalError as error:
        raise ConfigError(str(error) if str(error).startswith(where) else f"{where}: {error}") from None


def _figures(entry: Entry, answers: Answers, chosen: Recipe, where: str) -> Mapping[str, str]:
    """Figure -> the same with the name of the column as the files write it."""
    known = [row.columns for row in (*answers.rows, *answers.unknown)] + list(answers.questions.values())
    present = dict.fromkeys(name for columns in known for name in columns)
    figures, values = {OVERALL: OVERALL}, dict[str, dict[str, None]]()
    for published in entry.published:
        column, is_category, value = published.figure.partition("=")
        if not is_category:
            continue
        plain = {_plain(name): name for name in reversed(present)}
        name = column if column in present else plain.get(_plain(column))
        if name is None:
            near = did_you_mean(column, list(present))
            raise ConfigError(f"{where}: `published`, {published.figure}: the files have no column {column!r}.{near}")
        meant = chosen.task.reproduction.names.get(name, {}).get(value.strip(), value)
        if name not in values:
            values[name] = dict.fromkeys(each for row in answers.rows for each in values_of(row, name))
        figures[published.figure] = f"{name}={_written(meant.strip(), name, values[name])}"
    return figures


def _plain(name: str) -> str:
    """A column regardless of capitals, separators and the plural."""
    return "".join(filter(str.isalnum, name.lower())).removesuffix("s")


def _written(value: str, column: str, values: Mapping[str, None]) -> str:
    """A value as the files write it: `level 1` and `Level1` may be the 1 of `level`."""
    if value in values:
        return value
    plain = _plain(value)
    same = [each for each in values if plain in (_plain(each), _plain(column) + _plain(each))]
    return same[0] if len(same) == 1 and plain else value


def _cell(
    published: Published,
    figures: Mapping[str, str],
    chosen: Recipe,
    scored: Scored,
    stored: Scored | None,
    where: str,
) -> Cell:
    unit = published.unit or chosen.task.unit or "fraction"
    if unit not in UNITS:
        raise ConfigError(f"{where}: `published`, {published.figure}: the recipe has the unit {unit!r}. Give `unit`")
    places = scored.of(figures[published.figure])
    ours = scored.counts(places, UNITS[unit])
    theirs = None if stored is None or stored.part else stored.counts(places, UNITS[unit])
    return Cell(published, unit, ours, theirs, status_of(published, ours))
