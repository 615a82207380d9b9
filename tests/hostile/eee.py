"""Records of Every Eval Ever, ours and others', with damage: they are read, or refused with a message."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path
from random import Random

from tests.hostile.campaign import campaign, shared, tried
from tests.hostile.mutations import damaged, damaged_json

FIXTURES = Path(__file__).parents[1] / "data" / "logs" / "fixtures" / "eee" / "data"


def _ours() -> Path:
    """An export of ours, made once per process."""
    folder = shared() / "eee"
    if not folder.exists():
        from multimodal_eval.interop.export.registry import export
        from tests.interop.export.runs import make_run

        export(make_run(shared() / "eee-run", overwrite=True), "eee", folder)
    return folder


def _state_checksum(folder: Path, before: bytes, after: bytes) -> None:
    """Make the results state the checksum of the damaged instances."""
    old, new = (sha256(content).hexdigest().encode() for content in (before, after))
    for path in folder.rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(old, new))


@campaign("records of Every Eval Ever", cases=300)
def attack(random: Random, folder: Path) -> str:
    from multimodal_eval import import_log

    source = random.choice([_ours(), FIXTURES / "toy_sum", FIXTURES / "toy_captions"])
    target = folder / "log"
    shutil.copytree(source, target)
    file = random.choice(sorted(path for path in target.rglob("*") if path.is_file()))
    content = file.read_bytes()
    if file.suffix == ".json":
        content = damaged_json(random, content)
    else:
        lines = content.splitlines(keepends=True)
        place = random.randrange(len(lines))
        change = damaged_json if random.random() < 0.5 else damaged
        lines[place] = change(random, lines[place].rstrip(b"\n")).replace(b"\n", b" ") + b"\n"
        content = b"".join(lines)
    before = file.read_bytes()
    file.write_bytes(damaged(random, content) if random.random() < 0.2 else content)
    if file.suffix == ".jsonl" and random.random() < 0.9:  # otherwise the checksum refuses all damage
        _state_checksum(target, before, file.read_bytes())
    given = random.choice([target, file])
    return tried(lambda: import_log(given, format="eee" if random.random() < 0.3 else None))
