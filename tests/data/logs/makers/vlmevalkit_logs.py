"""Produce files with VLMEvalKit: `python vlmevalkit_logs.py FOLDER`, where ms-vlmeval and XlsxWriter are installed.

It needs no network and no model: scripted predictions go through VLMEvalKit's own functions, which write the
predictions, evaluate them and write the results. Some predictions look like missing values, and one is a failure. The
fixtures were made with ms-vlmeval 0.0.20.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

os.environ["EVAL_FORMAT"] = "csv"
CHOICES = [
    ("001", "What is on the table?", ("a cup", "a hat", "a cat", ""), "A", "A", "things"),
    ("002", "How many dogs are there?", ("1", "2", "3", "None"), "D", "D. None", "numbers"),
    ("003", "Which letters are on the sign?", ("N/A", "NA", "NaN", "null"), "B", "B", "signs"),
    ("004", "What is the colour?", ("red", "blue", "green", "grey"), "C", "The answer is A", "things"),
    ("005", "Who is there?", ("a man", "a woman", "", ""), "B", "Failed to obtain answer via API.", "people"),
]
# (index, question, answer, prediction, category)
BOOLEANS = [
    (1, "Is there a dog?", "Yes", "Yes, there is.", "existence"),
    (2, "Is there a car?", "No", "yes", "existence"),
    (3, "Is it red?", "No", "No", "colour"),
]
# (index, question, answers, prediction)
WORDS = [
    (1, "What does the sign say?", "['stop', 'Stop', 'STOP', 'halt']", "stop"),
    (2, "Which number?", "['007', '007', '7', '007']", "007"),
    (3, "What is written?", "['nothing', 'none', 'None', 'None']", "None"),
]


def main(folder: Path) -> None:
    """Write predictions and evaluations of three datasets."""
    import vlmeval

    package = ModuleType("vlmeval.dataset")  # the real one imports every dataset
    package.__path__ = [str(Path(vlmeval.__file__).parent / "dataset")]
    sys.modules["vlmeval.dataset"] = package
    import pandas as pd
    from vlmeval.dataset.image_mcq import ImageMCQDataset
    from vlmeval.dataset.image_vqa import ImageVQADataset
    from vlmeval.dataset.image_yorn import ImageYORNDataset
    from vlmeval.smp import dump

    folder.mkdir(parents=True, exist_ok=True)
    names = ("index", "question", "A", "B", "C", "D", "answer", "prediction", "category")
    rows = [(index, question, *choices, *rest) for index, question, choices, *rest in CHOICES]
    data = pd.DataFrame(rows, columns=names).replace("", None)
    data["index"] = data["index"].astype(int)
    for suffix in ("xlsx", "tsv", "json"):
        dump(data, str(folder / "predictions" / f"toy_CHOICES.{suffix}"))
    file = str(folder / "choices" / "toy_CHOICES.xlsx")
    dump(data, file)
    meta = data.drop(columns="prediction")
    ImageMCQDataset.evaluate_heuristic(SimpleNamespace(dataset_name="CHOICES", data=meta), file, nproc=1)

    file = str(folder / "booleans" / "toy_BOOLEANS.xlsx")
    dump(pd.DataFrame(BOOLEANS, columns=["index", "question", "answer", "prediction", "category"]), file)
    ImageYORNDataset.evaluate(SimpleNamespace(dataset_name="BOOLEANS"), file)

    file = str(folder / "words" / "toy_TextVQA.xlsx")
    dump(pd.DataFrame(WORDS, columns=["index", "question", "answer", "prediction"]), file)
    ImageVQADataset.evaluate_heuristic(SimpleNamespace(dataset_name="TextVQA"), file)
    for pickle in folder.rglob("*.pkl"):
        pickle.unlink()


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    for name in ("predictions", "choices", "booleans", "words"):
        (target / name).mkdir(parents=True, exist_ok=True)
    main(target)
