"""Configuration and label files: any YAML is applied, or refused with the name of the setting."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import yaml

import multimodal_eval.benchmarks
from tests.hostile.campaign import campaign, mmeval
from tests.hostile.mutations import changed, damaged

ROWS = (
    '{"id": "1", "references": ["a red ball"], "generated_answer": "a red ball", "expected_answer": "x", "kind": "a"}\n'
    '{"id": "2", "references": ["a cube"], "generated_answer": "a blue cube", "expected_answer": "y", "kind": "b"}\n'
)
CONFIG: dict[str, Any] = {
    "task": "mine",
    "tasks": {
        "mine": {
            "metrics": ["rouge_l", "exact_match"],
            "weights": {"rouge_l": 0.8, "exact_match": 0.2},
            "on_missing": "error",
            "maximum": {"rouge_l": 1.0},
        }
    },
    "headline": "composite",
    "options": {"rouge_l": {"beta": 1.2}},
    "map": {"generated_answer": "generated_answer"},
    "by": ["kind"],
    "strata": {"by": "kind", "weights": {"a": 0.4, "b": 0.6}},
    "limit": 10,
    "seed": 0,
    "error_patterns": ["default", "OOPS"],
    "complete": ["rouge_l"],
    "allow_partial": False,
    "image_root": ".",
}
LABELS: dict[str, Any] = {"labels": ["x", "y", "z"], "aliases": {"X": "x", "why": "y"}}
# A thousand of the strings below would be a bomb; YAML's aliases make them out of a few lines.
SPECIAL = (
    b"a: &a [1, 2]\nmetrics: *a\n",
    b"&a [*a]\n",
    b"metrics: &a [*a]\n",
    b"&a {b: *a}\n",
    b"a: &a [x,x]\n"
    + b"".join(b"%c: &%c [*%c,*%c]\n" % (c + 1, c + 1, c, c) for c in range(97, 121))
    + b"metrics: *y\n",
    b"!!python/object/apply:os.system ['touch pwned']\n",
    b"metrics: !!python/name:os.system\n",
    b"metrics: [" * 3_000,
    b"- " * 5_000,
    b"? " * 3_000,
    b"{" * 5_000,
    b"limit: 0x" + b"f" * 5_000,
    b"limit: " + b"9" * 5_000,
    b"seed: 1e400\nlimit: .inf\n",
    b"seed: 190:20:30\n",
    b"limit: 2001-01-01\nseed: 2001-99-99\n",
    b"metrics: !!binary x\nlimit: !!float x\n",
    b"limit: !!int x\n",
    b"limit: !!timestamp x\n",
    b"metrics: !!set {a, b}\nseed: !!omap [a: 1]\n",
    b"<<: [a]\nmetrics: rouge_l\n",
    b"<<: {metrics: rouge_l}\n",
    b"%YAML 9.9\n---\nmetrics: rouge_l\n",
    b"---\n---\n",
    b"",
    b"\xff\xfe\x00",
    b"metrics: rouge_l\nmetrics: bleu\n",
    b"error_patterns: ['(']\nmetrics: rouge_l\n",
    b"error_patterns: ['(?P<a']\nmetrics: rouge_l\n",
    b"[a]: b\n",
    b"? {a: b}\n: c\n",
    b"? [a, [b]]\n: c\n",
    b"by: [[a]]\nmetrics: {a: b}\n",
)


@campaign("configuration", cases=350)
def attack(random: Random, folder: Path) -> str | None:
    (folder / "data.jsonl").write_text(ROWS, encoding="utf-8")
    are_labels = random.random() < 0.3
    file = folder / ("labels.yaml" if are_labels else "run.yaml")
    file.write_bytes(_content(random, LABELS if are_labels else CONFIG))
    options = ["--labels", "labels.yaml", "--metrics", "exact_match"] if are_labels else ["--config", "run.yaml"]
    command = ["validate", "data.jsonl"] if random.random() < 0.1 else ["score", "data.jsonl", "--no-report"]
    if command[0] == "score":
        command += [*options, "-o", "run", "--workers", "1"]
    verdict = mmeval(folder, *command).verdict
    assert not (folder / "pwned").exists()
    return verdict


def _content(random: Random, plain: dict[str, Any]) -> bytes:
    if random.random() < 0.15:
        return random.choice(SPECIAL)
    value: Any = plain
    for _ in range(random.choice((1, 1, 2, 3))):
        value = changed(random, value)
    text = yaml.safe_dump(value, allow_unicode=random.random() < 0.5).encode("utf-8", "surrogatepass")
    return damaged(random, text) if random.random() < 0.25 else text


TASK: dict[str, Any] = {
    "name": "colours",
    "version": 1,
    "data": {"path": "data.jsonl", "format": None, "image_root": "."},
    "columns": {"expected_answer": "expected_answer"},
    "prompt": "{{ id }}\n",
    "metrics": ["rouge_l", "exact_match"],
    "rules": {"exact_match": "squad@1.1"},
    "options": {"rouge_l": {"beta": 1.2}},
    "generation": {"parameters": {"temperature": 0, "max_tokens": 5}, "epochs": 1},
}
HARNESS: dict[str, Any] = {
    "task": "sums",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "data.jsonl"}},
    "test_split": "test",
    "doc_to_text": "{{id}}",
    "doc_to_target": "expected_answer",
    "doc_to_choice": "references",
    "generation_kwargs": {"until": ["x"], "do_sample": False, "max_gen_toks": 5},
    "metric_list": [{"metric": "exact_match", "aggregation": "mean"}],
    "metadata": {"version": 1},
}


@campaign("task_files", cases=300)
def attack_a_task(random: Random, folder: Path) -> str | None:
    (folder / "data.jsonl").write_text(ROWS, encoding="utf-8")
    (folder / "task.yaml").write_bytes(_content(random, random.choice((TASK, HARNESS))))
    commands = ("validate", "task.yaml"), ("score", "task.yaml", "--no-report", "-o", "run")
    verdict = mmeval(folder, *random.choice(commands)).verdict
    assert not (folder / "pwned").exists()
    return verdict


_RECIPE = Path(multimodal_eval.benchmarks.__file__).parent / "blink-val"


@campaign("recipes", cases=120)
def attack_a_recipe(random: Random, folder: Path) -> str | None:
    """A recipe of somebody else: its keys, or the lines of its goldens, its sample or its published scores."""
    mine = folder / "mine"
    shutil.copytree(_RECIPE, mine)
    if random.random() < 0.6:
        recipe = yaml.safe_load((_RECIPE / "recipe.yaml").read_text(encoding="utf-8"))
        (mine / "recipe.yaml").write_bytes(_content(random, recipe))
    else:
        name = random.choice(("goldens.jsonl", "sample.jsonl", "published.yaml"))
        content = (_RECIPE / name).read_bytes()
        if name.endswith(".jsonl") and random.random() < 0.7:
            rows = [changed(random, json.loads(line)) for line in content.splitlines()]
            content = "".join(json.dumps(row) + "\n" for row in rows).encode("utf-8", "surrogatepass")
        (mine / name).write_bytes(damaged(random, content) if random.random() < 0.5 else content)
    (folder / "list.yaml").write_bytes(_content(random, {"benchmarks": ["mine", "blink-val", "list.yaml"]}))
    suite = ("run", "--suite", "list.yaml", "--model", "echo", "--data", ".", "--no-report", "-o", "all")
    verdict = mmeval(folder, *random.choice((("validate", "mine"), ("card", "mine"), suite))).verdict
    assert not (folder / "pwned").exists()
    return verdict
