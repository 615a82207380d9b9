"""A classification report as a person reads it, in 100 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multimodal_eval.cli.show import DASH, as_text, console, interval, number, percent, table_of

if TYPE_CHECKING:
    from rich.table import Table

    from multimodal_eval.contests.clarity.check import Checked
    from multimodal_eval.data.runs.run import Run

SHOWN_DIFFERENCES = 8
NAMES = {
    "strict": "strict",
    "any_match": "any-match",
    "any_match_all": "any-match, charging all",
    "majority": "majority vote",
    "dawid_skene": "Dawid-Skene labels",
}


def show_classification(report: dict[str, Any], run: Run) -> None:
    """The scores, the classes, the confusions, the annotators, and what to know of them."""
    out = console()
    official = report["scores"][report["official"]]
    out.print(_scores(report))
    out.print(f"[bold]★[/] {report['official_because']}", soft_wrap=True)
    if official["macro_f1"] is not None:
        under = NAMES[report["official"]]
        out.print(_classes(official, under))
        out.print(_confusions(report, official, under))
    if report["human_ceiling"] is not None:
        out.print(_annotators(report))
    if report["agreement"] is not None:
        out.print(_agreement(report["agreement"]))
    if report["consensus"]:
        out.print(_consensus(report["consensus"]))
    if report["agreement"] is not None:
        out.print(_vote(report["agreement"]["consensus"]), soft_wrap=True)
    for note in _notes(report, official):
        out.print(f"[yellow]![/] {as_text(note)}", soft_wrap=True)
    out.print("\nsignatures", style="bold")
    for signature in run.info.signatures.values():
        out.print(f"  {as_text(signature.text)}", style="dim", soft_wrap=True)
    out.print(f"\nrun folder: {as_text(run.folder.label)}\n", soft_wrap=True)


def _cells(figure: dict[str, Any] | None) -> list[str]:
    return [DASH, DASH] if figure is None else [number(figure["value"]), interval(figure["low"], figure["high"])]


def _scores(report: dict[str, Any]) -> Table:
    title = f"{report['task']}, {report['n']:,} rows"
    table = table_of(title, ["score"], ["macro F1", "95 % interval", "accuracy", "95 % interval", "rows"])
    for name, own in report["scores"].items():
        star = " ★" if name == report["official"] else ""
        rows = str(own.get("n_scored", 0))
        cells = (*_cells(own["macro_f1"]), *_cells(own["accuracy"]))
        table.add_row(NAMES[name] + star, *cells, rows, style="bold" if star else "")
    if report["soft"] is not None:
        soft = report["soft"]
        table.add_row("soft: share of annotators", DASH, DASH, *_cells(soft), str(soft["n_scored"]))
    ceiling = report["human_ceiling"]
    if ceiling is not None:
        table.add_row(
            "human ceiling, any-match", *_cells(ceiling["macro_f1"]), *_cells(ceiling["accuracy"]), "", style="dim"
        )
    return table


def _classes(official: dict[str, Any], under: str) -> Table:
    table = table_of(f"classes, {under}", ["label"], ["precision", "recall", "F1", "gold", "predicted"])
    for label, own in official["per_class"].items():
        figures = (number(own[name]) for name in ("precision", "recall", "f1"))
        table.add_row(as_text(label), *figures, f"{own['support']:,}", f"{own['predicted']:,}")
    return table


def _confusions(report: dict[str, Any], official: dict[str, Any], under: str) -> Table:
    """Rows: gold; columns: the predicted label by its number. The last column is what is no label."""
    labels = report["labels"]
    numbers = [str(place) for place in range(1, len(labels) + 1)]
    matrix = official["confusion_matrix"]
    outside = [own["support"] - sum(row) for own, row in zip(official["per_class"].values(), matrix, strict=True)]
    heads = [*numbers, *(["none"] if any(outside) else [])]
    table = table_of(f"gold and predicted, {under}", ["gold \\ predicted"], heads)
    for place, (label, row) in enumerate(zip(labels, matrix, strict=True)):
        cells = [_count(count, diagonal=column == place) for column, count in enumerate(row)]
        table.add_row(f"{numbers[place]} {as_text(label)}", *cells, *([_count(outside[place])] if any(outside) else []))
    return table


def _count(count: int, *, diagonal: bool = False) -> str:
    shown = f"{count:,}" if count else "·"
    return f"[bold]{shown}[/]" if diagonal else shown


def _annotators(report: dict[str, Any]) -> Table:
    """Each annotator against the others, by the rule that scores systems."""
    people = report["human_ceiling"]["by_annotator"]
    labels = {person["name"]: person["n_ratings"] for person in report["agreement"]["annotators"]}
    title = "annotators, each against the others by any-match"
    table = table_of(title, ["annotator"], ["labels", "macro F1", "95 % interval", "accuracy", "95 % interval"])
    for name, own in people.items():
        cells = [DASH] * 4 if own is None else [*_cells(own["macro_f1"]), *_cells(own["accuracy"])]
        table.add_row(as_text(name), f"{labels.get(name, 0):,}", *cells)
    return table


def _figures(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Without a Fleiss' kappa that gaps leave undefined: alpha takes them."""
    return [one for one in report["figures"] if one["value"] is not None or not one["name"].startswith("Fleiss")]


def _agreement(report: dict[str, Any]) -> Table:
    table = table_of("agreement of the annotators", ["figure"], ["value", "95 % interval", "rows"])
    for figure in _figures(report):
        name = figure["name"] if figure["value"] is not None else f"{figure['name']} (undefined)"
        table.add_row(name, *_cells(figure), f"{figure['n_units']:,}")
    for pair in report["pairs"]:
        kappa = pair["kappa"]
        name = f"{kappa['name']}, {' and '.join(pair['annotators'])}"
        table.add_row(as_text(name), *_cells(kappa), f"{kappa['n_units']:,}", style="dim")
    return table


def _consensus(rows: list[dict[str, Any]]) -> Table:
    """Where the model of the annotators differs from their vote."""
    table = table_of("the vote and Dawid-Skene differ", ["id", "annotators", "vote", "Dawid-Skene"], ["probability"])
    table.columns[1].max_width = 40
    for row in rows[:SHOWN_DIFFERENCES]:
        said = ", ".join(label or DASH for label in (row["annotations"] or {}).values())
        table.add_row(
            *map(as_text, (row["id"], said, row["majority"], row["dawid_skene"])), percent(row["probability"])
        )
    return table


def _vote(consensus: dict[str, Any]) -> str:
    return (
        f"one label a row: Dawid-Skene differs from the majority vote in {consensus['differs_from_majority']:,} of "
        f"{consensus['n_units']:,} rows; the vote is tied in {consensus['majority_ties']:,}"
    )


def _notes(report: dict[str, Any], official: dict[str, Any]) -> list[str]:
    notes = list(report["notes"])
    for name, own in report["scores"].items():
        if own["macro_f1"] is None:
            notes.append(f"{NAMES[name]}: {own['reason']}")
    if skipped := official.get("n_skipped"):
        notes.append(f"{skipped:,} of {report['n']:,} rows have no label to score against and are skipped")
    if official.get("few_gold"):
        few = ", ".join(official["few_gold"])
        notes.append(f"fewer than 10 gold examples, so that the interval of macro F1 covers too little: {few}")
    if report["agreement"] is not None:
        figures = [*_figures(report["agreement"]), *(pair["kappa"] for pair in report["agreement"]["pairs"])]
        notes += dict.fromkeys(f"{figure['name']}: {figure['reason']}" for figure in figures if figure["reason"])
        notes += report["agreement"]["notes"]
    return notes


def show_check(found: Checked) -> None:
    """What a submission without problems holds."""
    out = console()
    for task, counts in found.labels.items():
        table = table_of(f"{task}, {found.rows:,} rows", ["label"], ["predicted", "share"])
        for label, count in counts.items():
            table.add_row(label, f"{count:,}", percent(count / found.rows))
        out.print(table)
    for note in found.notes:
        out.print(f"[yellow]![/] {as_text(note)}", soft_wrap=True)
    against = f"answers every row of {found.compared_with} once" if found.compared_with else "not compared with data"
    out.print(f"no problem found in {as_text(found.file)} ({found.form}; {as_text(against)})", soft_wrap=True)
    if not found.compared_with:
        out.print("  to see whether every row is answered: --data DATA")
