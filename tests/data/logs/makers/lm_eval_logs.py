"""Produce logs with lm-evaluation-harness: `python -m tests.data.logs.makers.lm_eval_logs FOLDER`.

It needs an environment with lm-eval and torch, and no network. A scripted model answers small tasks of our own: a sum
with two filters, a choice by log-likelihood, captions with several references and a corpus metric, an
image, and the last word with perplexity. The fixtures were made with lm-eval 0.4.13.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from tests.data.logs.makers.kept_results import keep

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

SUMS = [(2, 3), (10, 7), (8, 8), (1, 9), (20, 22), (5, 0)]
REPLIES = ["The answer is 5", "I think 17", "The answer is 15", "no idea", "So 40 and 2. The answer is 42", "It is 5"]
CHOICES = [("The sky on a clear day", ["blue", "green"], 0), ("Snow", ["black", "white", "very red"], 1)] * 2
CAPTIONS = [
    (["a dog runs on the grass", "the dog is running in a field"], "a dog runs on grass"),
    (["two cats sleep on a bed", "cats on the bed"], "two cats sleep"),
    (['it\'s a "red" car', "a red car"], "a blue car"),
]
WORDS = [
    ("The capital of France is", "Paris", -0.25),
    ("One plus one is", "two", -1.5),
    ("A cat is an", "animal", -3.0),
]
SUM_TASK = r"""
task: toy_sum
dataset_path: json
dataset_kwargs: {data_files: {test: FOLDER/sums.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "Question: {{a}} + {{b}}?\nAnswer:"
doc_to_target: "{{sum}}"
generation_kwargs: {until: ["\n"], do_sample: false}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
filter_list:
  - {name: strict-match, filter: [{function: regex, regex_pattern: "answer is (-?[0-9]+)"}, {function: take_first}]}
  - name: flexible-extract
    filter: [{function: regex, group_select: -1, regex_pattern: "(-?[0-9]+)"}, {function: take_first}]
metadata: {version: 1.0}
"""
TASKS = {
    "toy_sum": SUM_TASK,
    "toy_choice": """
task: toy_choice
dataset_path: json
dataset_kwargs: {data_files: {test: FOLDER/choices.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{subject}} is"
doc_to_choice: "{{options}}"
doc_to_target: "{{gold}}"
metric_list: [{metric: acc}, {metric: acc_norm}]
metadata: {version: 1.0}
""",
    "toy_captions": """
task: toy_captions
dataset_path: json
dataset_kwargs: {data_files: {test: FOLDER/captions.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "Caption of image {{image_id}}:"
doc_to_target: "{{captions}}"
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
generation_kwargs: {until: ["\\n"]}
metadata: {version: 1.0}
""",
    "toy_first_caption": """
task: toy_first_caption
dataset_path: json
dataset_kwargs: {data_files: {test: FOLDER/captions.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "Caption of image {{image_id}}:"
doc_to_target: "{{captions[0]}}"
metric_list: [{metric: bleu}, {metric: exact_match}]
generation_kwargs: {until: ["\\n"]}
metadata: {version: 1.0}
""",
    "toy_colour": """
task: toy_colour
dataset_path: json
dataset_kwargs: {data_files: {test: FOLDER/colours.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "Which colour is <image>?"
doc_to_image: !function functions.image
doc_to_target: "{{colour}}"
metric_list: [{metric: exact_match}]
generation_kwargs: {until: ["\\n"]}
metadata: {version: 1.0}
""",
    "toy_word": """
task: toy_word
dataset_path: json
dataset_kwargs: {data_files: {test: FOLDER/words.jsonl}}
test_split: test
output_type: loglikelihood
doc_to_text: "{{start}}"
doc_to_target: " {{word}}"
metric_list: [{metric: perplexity, aggregation: perplexity, higher_is_better: false}, {metric: acc}]
metadata: {version: 1.0}
""",
}


COLOURS = ["red", "green"]
FUNCTIONS = """
from PIL import Image


def image(doc):
    return [Image.new("RGB", (4, 4), doc["colour"])]
"""


def main(folder: Path) -> None:
    """Write the tasks and their data into `folder`/tasks, and the logs into `folder`/logs."""
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model

    @register_model("scripted")
    class Scripted(LM):  # type: ignore[misc, unused-ignore]
        MULTIMODAL = True

        def __init__(self, **_: Any) -> None:
            super().__init__()

        def loglikelihood(self, requests: Any, **_: Any) -> list[tuple[float, bool]]:
            return [_likelihood(*request.args) for request in requests]

        def loglikelihood_rolling(self, requests: Any, **_: Any) -> list[float]:
            return [-1.0 for _ in requests]

        def generate_until(self, requests: Any, **_: Any) -> list[str]:
            return [_reply(request.args[0]) for request in requests]

    os.chdir(folder)
    _write_tasks(Path("tasks"))
    arguments = ["--model", "scripted", "--model_args", "pretrained=toys/scripted", "--tasks", ",".join(TASKS)]
    arguments += ["--include_path", "tasks", "--output_path", "logs", "--log_samples"]
    sys.argv = ["lm_eval", *arguments]
    cli_evaluate()
    for path in Path("logs").rglob("results_*.json"):
        keep(path)


def _write_tasks(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[dict[str, Any]]] = {
        "sums": [{"a": a, "b": b, "sum": a + b} for a, b in SUMS],
        "choices": [{"subject": subject, "options": options, "gold": gold} for subject, options, gold in CHOICES],
        "captions": [{"image_id": place, "captions": refs} for place, (refs, _) in enumerate(CAPTIONS)],
        "colours": [{"colour": colour} for colour in COLOURS],
        "words": [{"start": start, "word": word} for start, word, _ in WORDS],
    }
    for name, entries in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    (folder / "functions.py").write_text(FUNCTIONS)
    for name, text in TASKS.items():
        (folder / f"{name}.yaml").write_text(text.replace("FOLDER", str(folder)))


def _likelihood(context: str, continuation: str) -> tuple[float, bool]:
    for start, word, value in WORDS:
        if context.endswith(start) and continuation.strip() == word:
            return value, value > -1
    values = {"blue": -1.0, "green": -2.0, "white": -2.5, "black": -2.0, "very red": -3.0}
    return values[continuation.strip()], continuation.strip() == "blue"


def _reply(prompt: str) -> str:
    if "<image>" in prompt:
        return "red"
    caption = re.search(r"Caption of image (\d+):$", prompt)
    if caption is not None:
        return CAPTIONS[int(caption[1])][1]
    numbers = re.search(r"(\d+) \+ (\d+)\?\nAnswer:$", prompt)
    assert numbers is not None
    return REPLIES[SUMS.index((int(numbers[1]), int(numbers[2])))]


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
