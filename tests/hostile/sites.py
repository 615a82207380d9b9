"""Sites of leaderboards with damaged files: pages run nothing of them, and nothing outside the site is touched."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

from multimodal_eval.analysis.leaderboard import Refused
from multimodal_eval.core.records import to_json
from multimodal_eval.report.site.build import write_site
from tests.hostile.campaign import FaultError, campaign, mmeval, shared
from tests.hostile.mutations import damaged_json
from tests.report.site.boards import ranked, secrets
from tests.report.site.parsed import allowed, broken_links, files_of, parsed


@campaign("sites", cases=60)
def attack(random: Random, folder: Path) -> str | None:
    """A damaged leaderboard, or a damaged list of the files of the old site."""
    for name in ("runs", "site"):
        shutil.copytree(_board() / name, folder / name)
    (folder / "outside.html").write_text("mine")
    target = random.choice(("runs/leaderboard.json", "runs/leaderboard.json", "site/site.json"))
    file = folder / target
    file.write_bytes(damaged_json(random, file.read_bytes()))
    outcome = mmeval(folder, "leaderboard", "--from", "runs", "--site", "site")
    if (folder / "outside.html").read_text() != "mine" or not (folder / "runs" / "alba" / "run.json").is_file():
        raise FaultError("a file outside the site was changed")
    for path in (folder / "site").rglob("index.html"):
        page = parsed(path)
        if any(allowed(code) not in page.policy for _, code in page.code):
            raise FaultError(f"{path}: code that is not ours")
    if broken := broken_links(folder / "site"):
        raise FaultError(f"broken links: {broken}")
    shown = b"".join(files_of(folder / "site").values())
    if leaked := [word for word in secrets() if word.encode() in shown]:
        raise FaultError(f"shown: {leaked}")
    return outcome.verdict


@cache
def _board() -> Path:
    folder = shared() / "board"
    if not folder.exists():
        board = replace(ranked(folder / "runs", {"alba": 9, "cirrus": 3}), refused=(Refused("late", "x", "x"),))
        (folder / "runs" / "leaderboard.json").write_bytes(to_json(board.to_dict()))  # secrets are in the runs only
        write_site(folder / "site", folder / "runs", board)
    return folder
