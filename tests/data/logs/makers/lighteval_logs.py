"""Produce logs with lighteval: `python lighteval_logs.py FOLDER`, where lighteval and datasets are installed.

The dummy model of lighteval needs a tokenizer from the hub, so that no model is run: scripted replies go through
lighteval's own loggers and its tracker, which write the files. torch is not needed; empty modules replace what is
missing. The fixtures were made with lighteval 0.13.0 and datasets 5.2.0.
"""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

# (question, choices, place of the right one, log-probabilities)
CHOICES = [
    ("The sky is", ["blue", "green"], 0, [-0.5, -2.0]),
    ("Snow is", ["black", "white"], 1, [-1.0, -3.0]),
    ("Grass is", ["green", "red"], 0, [-0.25, -4.0]),
]
# (question, answers, replies, exact match)
QUESTIONS = [
    ("2 + 3 =", ["5"], ["5"], 1.0),
    ("2 + 7 =", ["9", "nine"], ["nine", "10"], 1.0),
    ("4 + 4 =", ["8"], ["I do not know"], 0.0),
]


_REPLACED = ("torch", "transformers", "accelerate", "openai", "litellm", "langcodes", "inspect_ai")


class _Anything:
    """A class that can be made of anything, and a decorator that changes nothing."""

    def __init__(self, *values: object, **options: object) -> None:
        pass

    def __call__(self, *values: Any, **options: object) -> Any:
        return values[0] if values else self


class _Stub(ModuleType):
    """A module that has every name, as an empty class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Anything,), {})


class _Missing(MetaPathFinder, Loader):
    """Replaces packages that are not installed: torch, and those of metrics that are not used."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """A package for every name that nothing else finds."""
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in _REPLACED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module."""
        return _Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run."""


def main(folder: Path) -> None:
    """Write the results and the details of two tasks."""
    import datasets  # noqa: F401 - they look for packages themselves
    import pytablewriter  # noqa: F401
    import sacrebleu  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.metrics  # noqa: F401

    sys.meta_path.append(_Missing())
    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.models.abstract_model import ModelConfig
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

    tracker = EvaluationTracker(output_dir=str(folder))
    tracker.general_config_logger.model_config = ModelConfig(model_name="toy/scripted")
    tracker.general_config_logger.model_name = "toy/scripted"
    tasks: dict[str, Any] = {}

    def log(task: str, doc: Doc, response: ModelResponse, metrics: dict[str, float]) -> None:
        tracker.metrics_logger.log(task, metrics)
        tracker.details_logger.log(task, doc, response, metrics)
        tasks[task] = type("Task", (), {"aggregation": lambda self: dict.fromkeys(metrics, _mean)})()

    for number, (query, choices, gold, logprobs) in enumerate(CHOICES):
        doc = Doc(query=query, choices=choices, gold_index=gold, id=str(number), task_name="toy_choice|0")
        right = float(logprobs.index(max(logprobs)) == gold)
        equal = [logprob == max(logprobs) for logprob in logprobs]
        response = ModelResponse(input=query, input_tokens=[1, 2, 3], logprobs=logprobs, argmax_logits_eq_gold=equal)
        log("toy_choice|0", doc, response, {"acc": right})
    for number, (query, answers, replies, match) in enumerate(QUESTIONS):
        gold_index = list(range(len(answers)))
        doc = Doc(query=query, choices=answers, gold_index=gold_index, id=str(number), task_name="toy_sum|2")
        doc.specific = {"level": number}
        tokens = [[7, 8]] * len(replies)
        reasons: list[str | None] = ["Two and two."] * len(replies)
        response = ModelResponse(
            input=query, input_tokens=[1, 2, 3, 4], text=replies, output_tokens=tokens, reasonings=reasons
        )
        log("toy_sum|2", doc, response, {"em": match, "chars": float(len(replies[0]))})
    tracker.metrics_logger.aggregate(tasks, bootstrap_iters=0)
    tracker.details_logger.aggregate()
    tracker.save()
    for path in folder.glob("details/**/*|*.parquet"):
        path.rename(path.with_name(path.name.replace("|", "_")))  # some file systems do not have such names


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
