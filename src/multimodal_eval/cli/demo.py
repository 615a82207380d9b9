"""`mmeval demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from multimodal_eval.data.run import Run


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Keep the run in this folder.")
def demo(output: Path | None) -> None:
    """Score the bundled captions of two imaginary systems and show the result."""
    from importlib.resources import as_file, files

    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.cli.show import console, show_run
    from multimodal_eval.evaluation.metrics_registry import list_available
    from multimodal_eval.evaluation.tasks_config import get_task
    from multimodal_eval.run.evaluate import evaluate

    task = get_task("captioning")
    here = [name for name in task.metrics if name in list_available()]
    absent = [name for name in task.metrics if name not in here]
    out = console()
    out.print("Twenty pictures, four descriptions each, captioned by two imaginary systems, Alba and Boreas.\n")
    with as_file(files("multimodal_eval.data") / "demo_captions.jsonl") as data, progress_bar() as progress:
        run = evaluate(data, task=task.name, metrics=[*here, "coco"], by=["system"], output=output, progress=progress)
    show_run(run)
    _show_extremes(run, here[0], out)
    if absent:
        out.print(f"\nNot in this version yet, and so without a number: {', '.join(absent)}, and the composite.")
    out.print(
        "\nScore your own: mmeval score captions.jsonl --metrics coco     One metric explained: mmeval card cider"
    )


def _show_extremes(run: Run, metric: str, out: Any) -> None:
    """The best and the worst captions, with a reference beside them."""
    from rich.table import Table

    from multimodal_eval.cli.show import as_text

    rows = run.scores(["id", metric]).to_pylist()
    scores = {row["id"]: row[metric] for row in rows}
    scored = sorted((s for s in run.samples() if scores[s.id] is not None), key=lambda s: (-scores[s.id], s.id))
    table = Table(title=f"the best and the worst by {metric}", title_justify="left", title_style="bold")
    for head in (metric, "system", "caption", "a reference"):
        table.add_column(head)
    for sample in [*scored[:3], *scored[-3:]]:
        answer = sample.generated_answer or ""
        shown = answer if answer.strip() else "(blank)"
        row = (f"{scores[sample.id]:.4f}", sample.metadata["system"], shown, sample.reference_texts[0])
        table.add_row(*map(as_text, row))
    out.print(table)
