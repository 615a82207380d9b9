"""Files of labels as the viewer writes them, and the runs that they are about.

labels.jsonl has labels of runs/first by two annotators, pairs.jsonl comparisons of runs/parrot and runs/owl. runs/pairs
is the comparison of these two by a judge.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.judges.server import Leanings, scripted_judge
from tests.run.labelled_samples import judge_of, judged_samples
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Make the runs and the files."""
    from multimodal_eval import compare_by_judge, evaluate, load_run

    records = judged_samples(200, 60)
    judge = {**judge_of(lambda text: 4 if "\nyes\n" in text else 2, "example:judge"), "scale": [1, 5]}
    evaluate(
        records, metrics=["helpful"], judges={"helpful": judge}, output="runs/first", skip_lint=True, progress=False
    )
    for name, sensitivity in (("parrot", 0.9), ("owl", 0.6)):
        samples = [
            {**record, "generated_answer": f"{record['generated_answer']} says the {name}"}
            for record in judged_samples(40, 0, sensitivity=sensitivity)
        ]
        evaluate(samples, metrics=["exact_match"], output=f"runs/{name}", skip_lint=True)
    verdict = scripted_judge(Leanings(flips=0.2))
    compare_by_judge(load_run("runs/parrot"), "runs/owl", judge=verdict, output="runs/pairs")
    labels: list[dict[str, object]] = [
        {"id": record["id"], "label": 4 if record["rating"] else 2, "annotator": who, "metric": "helpful"}
        for number, record in enumerate(records[:60])
        for who in (("ann", "bob") if number % 3 == 0 else ("ann",))
    ]
    pairs: list[dict[str, object]] = [
        {"id": f"s{number}", "label": ("win", "loss", "tie")[number % 3]} for number in range(30)
    ]
    _write(work.folder / "labels.jsonl", labels, run="first")
    _write(work.folder / "pairs.jsonl", pairs, annotator="ann", run="parrot", baseline="owl")


def _write(path: Path, labels: list[dict[str, object]], **common: str) -> None:
    records = ({**label, **common, "time": "2026-11-17T06:27:19+00:00"} for label in labels)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
