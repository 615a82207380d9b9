"""Where the scores of an imported run are from, on the terminal and as JSON."""

from __future__ import annotations

from multimodal_eval.cli.terminal import as_text, console, warning
from multimodal_eval.core.records import JsonObject, fields_of
from multimodal_eval.data.runs.run import Run
from multimodal_eval.run.import_log import own_means


def show_origin(run: Run) -> None:
    """Print the harness, and how the means of the run compare with its own results."""
    info = run.info.imported
    if info is None:
        return
    out = console()
    facts = {"": info.version, "model ": info.model, "task ": info.task}
    listed = "".join(f", {name}{value}" if name else f" {value}" for name, value in facts.items() if value)
    out.print(f"\nimported from {as_text(info.harness + listed)}", style="bold", soft_wrap=True)
    for mean in own_means(run):
        where = f"{mean.log}: " if mean.log else ""
        line = f"{where}{mean.metric}: {mean.explanation}"
        out.print(f"  {as_text(line)}" if mean.is_equal else warning(line), soft_wrap=True)
    for note in info.notes:
        out.print(warning(note), soft_wrap=True)


def origin(run: Run) -> JsonObject:
    """The same for programs; empty for a run that was not imported."""
    info = run.info.imported
    if info is None:
        return {}
    means = [
        {"metric": mean.metric, "log": mean.log, "reported": mean.stated, "mean": mean.mean, "note": mean.explanation}
        for mean in own_means(run)
    ]
    return {"imported": {**fields_of(info), "reported": means}}
