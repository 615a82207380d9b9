"""Folders with a task of somebody else: nothing of the environment or the home directory reaches a request or a run."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import yaml
from PIL import Image

from tests.generate.server import Behaviour, Reply, Server, user_text
from tests.hostile.campaign import FaultError, campaign, mmeval

SECRET = "correct-horse-battery-staple"
# How a folder can lead to a file of the user: `link` is made in the folder, and the text is what the task says.
WAYS: dict[str, Callable[[Path, Path, str], str]] = {}


def way(make: Callable[[Path, Path, str], str]) -> Callable[[Path, Path, str], str]:
    WAYS[make.__name__] = make
    return make


@way
def link(task: Path, secret: Path, name: str) -> str:
    (task / name).symlink_to(secret)
    return name


@way
def relative_link(task: Path, secret: Path, name: str) -> str:
    (task / name).symlink_to(os.path.relpath(secret, task))
    return name


@way
def chain(task: Path, secret: Path, name: str) -> str:
    (task / f"first-{name}").symlink_to(secret)
    (task / name).symlink_to(f"first-{name}")
    return name


@way
def linked_folder(task: Path, secret: Path, name: str) -> str:
    (task / f"folder-{name}").symlink_to(secret.parent)
    return f"folder-{name}/{secret.name}"


@way
def absolute(task: Path, secret: Path, name: str) -> str:
    return str(secret)


@way
def up(task: Path, secret: Path, name: str) -> str:
    return os.path.relpath(secret, task)


@way
def down_and_up(task: Path, secret: Path, name: str) -> str:
    (task / "inner").mkdir(exist_ok=True)
    return f"inner/../{os.path.relpath(secret, task)}"


@way
def home(task: Path, secret: Path, name: str) -> str:
    return f"~/{secret.name}"


@way
def url(task: Path, secret: Path, name: str) -> str:
    return secret.as_uri()


@way
def environment(task: Path, secret: Path, name: str) -> str:
    return link(task, Path("/proc/self/environ"), name)


@way
def device(task: Path, secret: Path, name: str) -> str:
    return link(task, Path("/dev/zero"), name)


@way
def pattern(task: Path, secret: Path, name: str) -> str:
    (task / f"folder-{name}").symlink_to(secret.parent)
    return f"folder-{name}/*{secret.suffix}"


@way
def everything(task: Path, secret: Path, name: str) -> str:
    (task / f"folder-{name}").symlink_to(secret.parent)
    return f"**/*{secret.suffix}"


ROWS = "".join(f'{{"id": "{row}", "question": "Which is it?", "expected_answer": "{row}"}}\n' for row in range(2))
TASK: dict[str, Any] = {
    "name": "colours",
    "data": "data.jsonl",
    "metrics": ["exact_match"],
    "prompt": "{{ question }}\n",
}
HARNESS: dict[str, Any] = {
    "task": "sums",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "data.jsonl"}},
    "test_split": "test",
    "doc_to_text": "{{question}}",
    "doc_to_target": "expected_answer",
    "metric_list": [{"metric": "exact_match"}],
}
JUDGE = {"form": "scale", "question": "How good?"}


def secret_files(folder: Path) -> None:
    """The home of the user, with a secret in every format that a task could read."""
    (folder / ".ssh").mkdir(parents=True)
    row = f'{{"id": "s", "question": "{SECRET}", "expected_answer": "{SECRET}", "generated_answer": "{SECRET}"}}\n'
    (folder / "key.txt").write_text(f"{SECRET}\n{{{{ question }}}}\n")
    (folder / "judge.txt").write_text(f"{SECRET}\n{{{{ answer }}}}\n")
    (folder / "rows.jsonl").write_text(row)
    (folder / "rows.csv").write_text(f"id,question,expected_answer\ns,{SECRET},{SECRET}\n")
    (folder / "labels.yaml").write_text(f"labels: [{SECRET}, one, red]\n")
    (folder / "judge.yaml").write_text(yaml.safe_dump({**JUDGE, "question": SECRET}))
    (folder / "task.yaml").write_text(yaml.safe_dump({"doc_to_text": f"{SECRET} {{{{question}}}}"}))
    image = io.BytesIO()
    Image.effect_noise((16, 16), 90).save(image, "PNG")
    (folder / "photo.png").write_bytes(image.getvalue())


def _croissant(url: str, *, is_set: bool) -> str:
    file: dict[str, Any] = {"@type": "cr:FileObject", "@id": "f", "contentUrl": url, "encodingFormat": "text/csv"}
    if is_set:
        file = {"@type": "cr:FileSet", "@id": "f", "includes": url, "encodingFormat": "text/csv"}
    fields = [
        {"@type": "cr:Field", "@id": f"r/{name}", "source": {"fileObject": {"@id": "f"}, "extract": {"column": name}}}
        for name in ("id", "question", "expected_answer")
    ]
    content = {
        "@context": {"cr": "http://mlcommons.org/croissant/"},
        "@type": "sc:Dataset",
        "distribution": [file],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "r", "field": fields}],
    }
    return json.dumps(content)


def _task(random: Random, task: Path, user: Path) -> str:
    """Write a task that names a file of the user in one place, and say which."""
    content: dict[str, Any] = dict(TASK)
    place = random.choice(list(PLACES))
    chosen = random.choice(list(WAYS))
    (task / "data.jsonl").write_text(ROWS)

    def named(secret: str, name: str) -> str:
        return WAYS[chosen](task, user / secret, name)

    content = PLACES[place](content, named, task) or content
    (task / "task.yaml").write_text(yaml.safe_dump(content))
    return f"{place} by {chosen}"


Named = Callable[[str, str], str]
PLACES: dict[str, Callable[[dict[str, Any], Named, Path], dict[str, Any] | None]] = {
    "prompt": lambda task, named, _: {**task, "prompt": named("key.txt", "p.txt")},
    "generation.prompt": lambda task, named, _: {
        **{key: value for key, value in task.items() if key != "prompt"},
        "generation": {"prompt": named("key.txt", "p.txt")},
    },
    "system": lambda task, named, _: {**task, "generation": {"system": f"@{named('key.txt', 's.txt')}"}},
    "shots": lambda task, named, _: {**task, "generation": {"shots": named("rows.jsonl", "shots.jsonl")}},
    "data": lambda task, named, _: {**task, "data": named("rows.jsonl", "d.jsonl")},
    "data.path": lambda task, named, _: {**task, "data": {"path": named("rows.csv", "d.csv")}},
    "data folder": lambda task, named, _: {**task, "data": {"path": named(".", "rows")}},
    "image_root": lambda task, named, folder: _with_images(task, folder, "photo.png", named(".", "images")),
    "image": lambda task, named, folder: _with_images(task, folder, named("photo.png", "i.png"), None),
    "labels": lambda task, named, _: {**task, "labels": named("labels.yaml", "l.yaml")},
    "judge": lambda task, named, _: {**task, "metrics": [f"judge:{named('judge.yaml', 'j.yaml')}"]},
    "judge's prompt": lambda task, named, folder: _with_judge(task, folder, named("judge.txt", "j.txt")),
    "option": lambda task, named, _: {
        **task,
        "metrics": ["cider"],
        "options": {"cider": {"df": named("key.txt", "x.df")}},
    },
    "model": lambda task, named, _: {
        **task,
        "metrics": ["semantic_similarity"],
        "options": {"semantic_similarity": {"encoder": f"torch:{named('.', 'model')}"}},
    },
    "include": lambda task, named, _: {**HARNESS, "doc_to_text": None, "include": named("task.yaml", "base.yaml")},
    "data_files": lambda task, named, _: {
        **HARNESS,
        "dataset_kwargs": {"data_files": {"test": named("rows.jsonl", "d.jsonl")}},
    },
    "dataset_path": lambda task, named, _: {**HARNESS, "dataset_path": named(".", "dataset"), "test_split": "rows"},
    "dataset_name": lambda task, named, folder: _with_name(folder, named(".", "part")),
    "split": lambda task, named, folder: _with_name(folder, None, named("rows.jsonl", "d.jsonl")),
    "croissant": lambda task, named, folder: _with_croissant(task, folder, named("rows.csv", "d.csv"), is_set=False),
    "croissant set": lambda task, named, folder: _with_croissant(task, folder, named("rows.csv", "d.csv"), is_set=True),
}


def _with_images(task: dict[str, Any], folder: Path, image: str, root: str | None) -> dict[str, Any]:
    rows = [f'{{"id": "{row}", "question": "What?", "expected_answer": "x", "image": "{image}"}}\n' for row in (1, 2)]
    (folder / "data.jsonl").write_text("".join(rows))
    return {**task, "data": {"path": "data.jsonl", **({} if root is None else {"image_root": root})}}


def _with_judge(task: dict[str, Any], folder: Path, prompt: str) -> dict[str, Any]:
    (folder / "judge.yaml").write_text(yaml.safe_dump({"form": "scale", "prompt": prompt}))
    return {**task, "metrics": ["judge:judge.yaml"]}


def _with_name(folder: Path, name: str | None, split: str = "rows") -> dict[str, Any]:
    (folder / "dataset").mkdir(exist_ok=True)
    return {**HARNESS, "dataset_path": "dataset", "dataset_name": name, "test_split": split}


def _with_croissant(task: dict[str, Any], folder: Path, url: str, *, is_set: bool) -> dict[str, Any]:
    (folder / "croissant.json").write_text(_croissant(url, is_set=is_set))
    return {**task, "data": "croissant.json"}


def _reply(body: dict[str, Any], _: int) -> Reply:
    return Reply(user_text(body)[:200])


@campaign("tasks", cases=200)
def attack(random: Random, folder: Path) -> str | None:
    task, user = folder / "task", folder.parent / "user"
    shutil.rmtree(user, ignore_errors=True)
    secret_files(user)
    task.mkdir()
    os.environ |= {"HOME": str(user), "OPENAI_API_KEY": "sk-of-the-user"}
    what = _task(random, task, user)
    with Server(Behaviour(script=_reply)) as server:
        model = ("--model", "openai:tiny", "--base-url", server.url, "--no-cache", "-o", "run")
        judge = ("--judge", "openai:tiny", "--judge-url", server.url) if what.startswith("judge") else ()
        commands = [
            *[("run", "task/task.yaml", *model, *judge)] * 5,
            ("run", "task/task.yaml", *model, "--metrics", "none"),
            ("score", "task/task.yaml", "task/data.jsonl", *judge, "--allow-empty", "-o", "run"),
            ("validate", "task/task.yaml"),
        ]
        if what.startswith("croissant"):
            commands = [("run", "task/croissant.json", "--metrics", "exact_match", *model), *commands]
        outcome = mmeval(folder, *random.choice(commands))
        sent = b"".join(server.bodies.values())
    _refuse_leak(sent, f"a request ({what})", user)
    _refuse_leak((outcome.stdout + outcome.stderr).encode(), f"what was printed ({what})", user)
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = str(pq.read_table(path).to_pylist()).encode() if path.suffix == ".parquet" else path.read_bytes()
            _refuse_leak(content, f"{path.relative_to(folder)} ({what})", user)
    return outcome.verdict


def _refuse_leak(content: bytes, where: str, user: Path) -> None:
    secrets = [SECRET.encode(), base64.b64encode((user / "photo.png").read_bytes())[40:80]]
    secrets += [entry for entry in Path("/proc/self/environ").read_bytes().split(b"\0") if len(entry) > 12]
    for secret in secrets:
        if secret in content:
            raise FaultError(f"{secret!r} is in {where}")
