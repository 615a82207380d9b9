"""Run folders with links, pipes and devices at every level: nothing outside is read, changed or removed."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from multimodal_eval import evaluate, load_run
from tests.data.logs.fixture_logs import FIXTURES, log_of
from tests.edited_runs import rewrite_json
from tests.hostile.campaign import FaultError, Outcome, campaign, mmeval, shared

SECRET = b"what-only-the-user-may-read"
DATA = b"".join(
    b'{"id": "%d", "references": ["a red ball %d"], "generated_answer": "a ball"}\n' % (n, n) for n in range(8)
)
# Commands that change a run folder: with a link that leads out, they change nothing at all.
CHANGING = (
    ("score", "--resume", "run"),
    ("run", "--resume", "run"),
    ("score", "data.jsonl", "--metrics", "rouge_l", "--no-report", "-o", "run", "--overwrite"),
    ("run", "data.jsonl", "--model", "echo:", "--metrics", "rouge_l", "--no-report", "-o", "run", "--overwrite"),
    ("import", "log", "-o", "run", "--overwrite", "--no-report"),
    ("rescore", "other", "--config", "new.yaml", "-o", "run", "--overwrite", "--no-report"),
    ("run", "data.jsonl", "--model", "echo:", "--metrics", "none", "-o", "run", "--overwrite"),
    ("judge", "pairs", "other", "another", "--judge", "echo:", "-o", "run", "--overwrite"),
)
OTHERS = (
    ("report", "run"),
    ("report", "run", "-o", "page.html"),
    ("rescore", "run", "--config", "new.yaml", "-o", "new", "--no-report"),
    ("compare", "run", "other", "--rounds", "100"),
    ("lint", "run"),
    ("verify", "run"),
    ("verify", "run", "--deep"),
    ("ls", "runs", "."),
    ("judge", "calibrate", "run", "--human", "labels.jsonl"),
    ("compare", "run", "other", "--vary-weights"),
    ("export", "run", "--to", "csv", "-o", "table.csv"),
    ("export", "run", "--to", "eee", "-o", "exported"),
)
FILES = ("run.json", "results.json", "manifest.json", "lint.json", "report.html", "progress.json", "human.json")
FOLDERS = ("samples", "scores", "state", "answers", "verdicts", "exchanges", "checksums", "scratch", "replaced.partial")
INNER = ("samples/part-00000.parquet", "scores/part-00000.parquet", "state/cider.bin", "answers/journal.jsonl")
STATES = ("reading", "generating", "judging", "scoring", "done")


@cache
def made() -> Path:
    """A finished run, with corpus statistics."""
    path = shared() / "made-for-links"
    if not path.exists():
        (shared() / "for-links.jsonl").write_bytes(DATA)
        evaluate(shared() / "for-links.jsonl", metrics=["cider", "rouge_l"], output=path)
        load_run(path).write_jsonl()
    return path


def snapshot(folder: Path) -> dict[str, object]:
    """Every name below a folder with what it is, without following links."""
    entries: dict[str, object] = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            mode = path.lstat().st_mode
            content: object = stat.S_IFMT(mode)
            if stat.S_ISLNK(mode):
                content = path.readlink()
            elif stat.S_ISREG(mode):
                content = path.read_bytes()
            entries[str(path.relative_to(folder))] = content
    return entries


def put_link(random: Random, run: Path, outside: Path, name: str) -> bool:
    """Replace a file or folder of a run by something that is not one; whether it leads out of the run."""
    place = run / name
    if place.parent.is_symlink() or not (place.parent.is_dir() or place.parent == run / "answers"):
        return False  # the folder was replaced before
    place.parent.mkdir(exist_ok=True)
    original = place if place.exists() else None
    target = outside / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if original is not None and not target.exists():
        (shutil.copytree if original.is_dir() else shutil.copyfile)(original, target)
    elif not target.exists():
        if name in FOLDERS:
            target.mkdir()
        else:
            target.write_bytes(SECRET)
    if target.is_dir():
        (target / "precious").mkdir(exist_ok=True)
        (target / "precious" / "thesis.tex").write_bytes(SECRET)
        (target / "x.partial").write_bytes(SECRET)
    if original is not None:
        (shutil.rmtree if place.is_dir() else os.remove)(place)
    kinds: dict[str, tuple[bool, Callable[[], object]]] = {
        "link": (True, lambda: place.symlink_to(target)),
        "relative": (True, lambda: place.symlink_to(os.path.relpath(target, place.parent))),
        "chain": (True, lambda: _chained(place, run, target)),
        "dangling": (True, lambda: place.symlink_to(outside / "nothing" / "here")),
        "root": (True, lambda: place.symlink_to("/")),
        "environment": (True, lambda: place.symlink_to("/proc/self/environ")),
        "zero": (True, lambda: place.symlink_to("/dev/zero")),
        "loop": (False, lambda: place.symlink_to(place.name)),
        "up": (place.parent == run, lambda: place.symlink_to("..")),
        "inside": (False, lambda: place.symlink_to(run / "scores.jsonl")),
        "pipe": (False, lambda: os.mkfifo(place)),
        "socket": (False, lambda: _socket(place)),
    }
    leads_out, make = kinds[random.choice(list(kinds))]
    make()
    return leads_out


def _chained(place: Path, run: Path, target: Path) -> None:
    first = run / f"first-{place.name}"
    first.symlink_to(target)
    place.symlink_to(first)


def _socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix:
        previous = Path.cwd()
        os.chdir(place.parent)  # an address has at most 107 characters
        try:
            unix.bind(place.name)
        finally:
            os.chdir(previous)


@campaign("links", cases=250)
def attack(random: Random, folder: Path) -> str | None:
    run, outside = folder / "run", folder.parent / "outside"
    shutil.rmtree(outside, ignore_errors=True)
    outside.mkdir()
    shutil.copytree(made(), run)
    shutil.copytree(made(), folder / "other")
    (folder / "data.jsonl").write_bytes(DATA)
    shutil.copytree(made(), folder / "another")
    (folder / "log").mkdir()
    shutil.copy(log_of(FIXTURES / "lm-eval", "toy_choice"), folder / "log")
    (folder / "new.yaml").write_text("metrics: [rouge_l]\n", encoding="utf-8")
    state = random.choice(STATES)
    if random.random() < 0.5:
        rewrite_json(run / "run.json", lambda info: info.update(state=state))
    names = list(dict.fromkeys(random.sample((*FILES, *FOLDERS, *FOLDERS, *INNER), random.choice((1, 1, 1, 2)))))
    leads_out = [put_link(random, run, outside, name) for name in names]
    before, before_run = snapshot(outside), snapshot(run)
    command = random.choice((*CHANGING, *OTHERS))
    outcome = mmeval(folder, *command)
    if snapshot(outside) != before:
        raise FaultError(f"mmeval {command} changed what is outside: {names}")
    _refuse_leak(outcome, folder, outside)
    if any(leads_out) and command in CHANGING:
        if outcome.code != 1:
            raise FaultError(f"mmeval {command}: exit {outcome.code} with links at {names}\n{outcome.stderr}")
        if snapshot(run) != before_run:
            raise FaultError(f"mmeval {command} changed a refused run: {names}\n{outcome.stderr}")
    return f"{'out' if any(leads_out) else 'in'} {outcome.verdict}"


def _refuse_leak(outcome: Outcome, folder: Path, outside: Path) -> None:
    leaks = [name for name, content in snapshot(folder).items() if isinstance(content, bytes) and SECRET in content]
    if leaks or SECRET.decode() in outcome.stdout + outcome.stderr:
        raise FaultError(f"a file outside was read: {leaks or outcome}")
