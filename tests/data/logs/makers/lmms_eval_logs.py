"""Produce logs with lmms-eval: `python -m tests.data.logs.makers.lmms_eval_logs FOLDER`.

It needs an environment with lmms-eval and torch, and no network. The model `dummy` gets scripted replies and answers
small tasks of our own: yes or no as POPE records it, captions as coco_cap records them, and colours with reasoning and
two filters. The fixtures were made with lmms-eval 0.7.3.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.data.logs.makers.kept_results import keep

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

# (question, answer, the scripted reply)
OBJECTS = [
    ("Is there a dog?", "yes", "Yes"),
    ("Is there a car?", "no", "yes"),
    ("Is there a cat?", "no", "no"),
    ("Is there a hat?", "yes", "No"),
    ("Is there a cup?", "yes", "yes"),
]
CAPTIONS = [
    (["a dog runs on the grass", "the dog is running in a field"], "a dog runs on grass"),
    (["two cats sleep on a bed", "cats on the bed"], "two cats sleep"),
]
COLOURS = [
    ("sky", "blue", "<think>Clear weather, not green.</think>The answer is blue"),
    ("grass", "green", "<think>Not a desert.</think>green"),
    ("snow", "white", "It may be white or grey"),
]
TASK = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/{data}.jsonl}}}}
test_split: test
output_type: generate_until
doc_to_visual: !function functions.visual
doc_to_text: "{{{{question}}}}"
doc_to_target: "{target}"
generation_kwargs: {{max_new_tokens: 16}}
process_results: !function functions.{name}
metric_list:
{metrics}
"""
COLOUR_FILTERS = """
filter_list:
  - {name: whole, filter: [{function: take_first}]}
  - name: colour
    filter: [{function: regex, group_select: -1, regex_pattern: "(blue|green|white|grey)"}, {function: take_first}]
"""
FUNCTIONS = """
def visual(doc):
    return []


def toy_pope(doc, results):
    prediction, truth = results[0].lower().strip(), doc["answer"]
    value = {"question_id": doc["question_id"], "score": float(prediction == truth)}
    value |= {"prediction": prediction, "ground_truth": truth}
    return {"pope_accuracy": value, "pope_precision": value}


def mean_score(values):
    return sum(value["score"] for value in values) / len(values)


def precision(values):
    said = [value for value in values if value["prediction"] == "yes"]
    return sum(value["ground_truth"] == "yes" for value in said) / len(said)


def toy_captions(doc, results):
    value = {"answer": doc["captions"], "pred": results[0], "image_id": doc["image_id"], "id": doc["image_id"]}
    return {"coco_length": value}


def length(values):
    return sum(len(value["pred"].split()) for value in values)


def toy_colours(doc, results):
    is_right = float(results[0] == doc["answer"])
    return {"exact_match": is_right, "submission": {"id": doc["question"], "answer": results[0]}}


def nothing(values):
    return None
"""


def main(folder: Path) -> None:
    """Write the tasks and their data into `folder`/tasks, and the logs into `folder`/logs."""
    from lmms_eval.__main__ import cli_evaluate
    from lmms_eval.api.instance import GenerationResult, TokenCounts
    from lmms_eval.models.simple.dummy import Dummy

    os.chdir(folder)
    rows = _write_tasks(Path("tasks"))
    replies = {row["question"]: row["reply"] for entries in rows.values() for row in entries}

    def generate_until(self: Any, requests: Any) -> list[Any]:
        return [
            GenerationResult(text=replies[request.args[0]], token_counts=TokenCounts(12, len(replies[request.args[0]])))
            for request in requests
        ]

    Dummy.generate_until = generate_until
    arguments = ["--model", "dummy", "--tasks", "toy_pope,toy_captions,toy_colours", "--batch_size", "1"]
    arguments += ["--include_path", "tasks", "--output_path", "logs", "--log_samples"]
    sys.argv = ["lmms_eval", *arguments]
    cli_evaluate()
    for path in Path("logs").rglob("*_results.json"):
        keep(path)


def _write_tasks(folder: Path) -> dict[str, list[dict[str, Any]]]:
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[dict[str, Any]]] = {
        "objects": [
            {"question_id": place, "question": question, "answer": answer, "reply": reply}
            for place, (question, answer, reply) in enumerate(OBJECTS)
        ],
        "captions": [
            {"question": f"Describe image {place}.", "image_id": place, "captions": captions, "reply": reply}
            for place, (captions, reply) in enumerate(CAPTIONS)
        ],
        "colours": [
            {"question": f"Which colour is the {thing}?", "answer": answer, "reply": reply}
            for thing, answer, reply in COLOURS
        ],
    }
    for name, entries in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    (folder / "functions.py").write_text(FUNCTIONS)
    metric = "  - {{metric: {}, aggregation: {}, higher_is_better: {}}}\n".format
    tasks: dict[str, tuple[str, str, dict[str, str | None]]] = {
        "toy_pope": ("objects", "{{answer}}", {"pope_accuracy": "mean_score", "pope_precision": "precision"}),
        "toy_captions": ("captions", "{{captions}}", {"coco_length": "length"}),
        "toy_colours": ("colours", "{{answer}}", {"exact_match": None, "submission": "nothing"}),
    }
    for name, (data, target, metrics) in tasks.items():
        listed = "".join(
            metric(each, "mean" if function is None else f"!function functions.{function}", "true")
            for each, function in metrics.items()
        )
        text = TASK.format(name=name, folder=folder, data=data, target=target, metrics=listed)
        (folder / f"{name}.yaml").write_text(text + (COLOUR_FILTERS if name == "toy_colours" else ""))
    return rows


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
