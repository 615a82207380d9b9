"""Two systems scored by a judge, runs/first and runs/second, and human labels of some answers of both.

labels.jsonl has the labels; the samples have them, too, in the column `rating`. The metric is `helpfulness`.
"""

from __future__ import annotations

import json

from tests.run.labelled_samples import judge_of, judged_samples
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Make the runs and the file."""
    from multimodal_eval import evaluate

    judge = {**judge_of(lambda text: int("\nyes\n" in text.rpartition("<answer")[2]), "example:judge"), "scale": [0, 1]}
    labels = []
    for seed, run in enumerate(("first", "second")):
        records = judged_samples(400, 120, seed)
        judges = {"helpfulness": {**judge, "name": "helpfulness"}}
        evaluate(records, metrics=["helpfulness"], judges=judges, output=f"runs/{run}", skip_lint=True, progress=False)
        labels += [
            {"id": record["id"], "run": run, "label": record["rating"]}
            for record in records
            if record["rating"] is not None
        ]
    lines = "".join(json.dumps(label) + "\n" for label in labels)
    (work.folder / "labels.jsonl").write_text(lines, encoding="utf-8")
