"""The invented interviews of CLARITY: test.csv, alba.csv, boreas.csv, and copies under the names that guides use."""

from __future__ import annotations

import shutil

from tests.contests.clarity.make_data import FOLDER
from tools.site.workspace import Workspace

COPIES = {"predictions.csv": "alba.csv", "submission.zip": "alba.evasion.zip"}


def prepare(work: Workspace) -> None:
    """Copy the files; all.csv has data and predictions in one table."""
    import pandas as pd

    for file in FOLDER.iterdir():
        shutil.copy(file, work.folder)
    for name, origin in COPIES.items():
        shutil.copy(FOLDER / origin, work.folder / name)
    data = pd.read_csv(FOLDER / "test.csv")
    predicted = pd.read_csv(FOLDER / "alba.csv").rename(columns={"id": "index", "evasion_pred": "answer"})
    both = data.merge(predicted[["index", "answer"]]).rename(columns={"index": "row"})
    both.to_csv(work.folder / "all.csv", index=False)
