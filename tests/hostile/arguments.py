"""Command lines at random: any command with any options and values ends with a documented exit code and a message."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from random import Random

import click

from tests.hostile.campaign import FaultError, campaign, mmeval, shared
from tests.hostile.mutations import NUMBERS, TEXTS

# `view` serves until it is stopped, `fetch` and `demo` use the network, `ray` starts a cluster.
LEFT_OUT = ("view", "fetch", "demo")
FILES = ("data.jsonl", "answers.jsonl", "labels.csv", "run.yaml", "run", "other", "missing.jsonl", ".", "run/run.json")
WORDS = (
    "rouge_l",
    "bleu",
    "captioning",
    "classification",
    "composite",
    "composite=0.5",
    "rouge_l=nan",
    "id",
    "id=id",
    "generated_answer=pred",
    "a=b=c",
    "=",
    "x=",
    "rouge_l.beta=2",
    "rouge_l,bleu",
    "bleu.bleu_1",
    "*",
    ",",
    ",,",
    "none",
    "json",
    "runs",
    "metrics",
    "-",
    "--",
    "@run.yaml",
    "n" * 300,
    "a/" * 300,
    "data.jsonl/x",
    "memory://x",
    "s3://bucket/x",
    "http://127.0.0.1:1/x",
    "nosuch://x",
    "file:///proc/x",
    "/dev/null",
    "/dev/full",
    "/proc/self/mem",
)


@cache
def commands() -> tuple[tuple[tuple[str, ...], click.Command], ...]:
    """Every command with its names."""
    from multimodal_eval.cli.main import cli

    listed: list[tuple[tuple[str, ...], click.Command]] = []

    def walk(names: tuple[str, ...], command: click.Command) -> None:
        if names:
            listed.append((names, command))
        if isinstance(command, click.Group):
            for name, child in command.commands.items():
                if name not in LEFT_OUT:
                    walk((*names, name), child)

    walk((), cli)
    return tuple(listed)


@cache
def material() -> Path:
    """Small inputs and two runs."""
    folder = shared() / "material"
    if folder.exists():
        return folder
    folder.mkdir()
    rows = [
        {
            "id": str(number),
            "references": [f"a red ball {number}"],
            "generated_answer": f"a {('red', 'blue')[number % 2]} ball {number}",
            "kind": ("x", "y")[number % 2],
        }
        for number in range(6)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "data.jsonl").write_text(lines, encoding="utf-8")
    answers = "".join(json.dumps({"id": row["id"], "pred": row["generated_answer"]}) + "\n" for row in rows)
    (folder / "answers.jsonl").write_text(answers, encoding="utf-8")
    (folder / "labels.csv").write_text("id,ann1,ann2,gold\n1,a,b,a\n2,a,a,a\n3,b,b,a\n", encoding="utf-8")
    (folder / "run.yaml").write_text("metrics: [rouge_l, bleu]\n", encoding="utf-8")
    for name in ("run", "other"):
        done = mmeval(folder, "score", "data.jsonl", "--config", "run.yaml", "-o", name)
        if done.code:
            raise FaultError(f"the material cannot be made: {done.stderr}")
    return folder


@campaign("arguments", cases=150)
def attack(random: Random, folder: Path) -> str | None:
    shutil.copytree(material(), folder, dirs_exist_ok=True)
    names, command = random.choice(commands())
    arguments = [*names, *_arguments(random, command)]
    (folder / "command.json").write_text(json.dumps(arguments), encoding="utf-8")
    return mmeval(folder, *arguments).verdict


def _arguments(random: Random, command: click.Command) -> list[str]:
    arguments = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            count = 1 if parameter.nargs == 1 else random.choice((1, 2, 2, 3))
            if random.random() < 0.95:
                arguments += [_file(random) for _ in range(count)]
        elif random.random() < 0.12 or (parameter.required and random.random() < 0.9):
            assert isinstance(parameter, click.Option)
            arguments.append(random.choice(parameter.opts))
            if not parameter.is_flag and not parameter.count:
                arguments.append(_value(random, parameter))
    if random.random() < 0.05:
        random.shuffle(arguments)
    return arguments


def _file(random: Random) -> str:
    return random.choice(FILES) if random.random() < 0.85 else _word(random)


def _value(random: Random, option: click.Option) -> str:
    if isinstance(option.type, click.Choice) and random.random() < 0.8:
        return random.choice([str(choice) for choice in option.type.choices if choice != "ray"])
    if option.name in ("output", "run", "run_folder"):
        return random.choice(("new", "run", "new/deep/er", "data.jsonl", "data.jsonl/x", "n" * 300, "", "\udcff", "."))
    if isinstance(option.type, click.IntRange | click.FloatRange | type(click.INT) | type(click.FLOAT)):
        return random.choice(("0", "1", "2", "0.5", "nan", "inf", "-1", "1e400", _number(random), "", "x"))
    return _file(random) if random.random() < 0.4 else _word(random)


def _number(random: Random) -> str:
    return str(random.choice([number for number in NUMBERS if abs(number) < 10_000]))


def _word(random: Random) -> str:
    return random.choice(WORDS if random.random() < 0.7 else [text for text in TEXTS if "\0" not in text])
