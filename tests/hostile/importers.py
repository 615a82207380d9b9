"""Files of other programs and of contests: COCO, VQA, Flickr8k, CLARITY, dialogues. Each is read, or refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.data.readers.flickr8k_folder import CROWD, EXPERT, lines_of, token_lines
from tests.data.readers.test_vqa_files import ANNOTATIONS, HEAD, NAMES, QUESTIONS, RESULTS
from tests.hostile.campaign import campaign, mmeval
from tests.hostile.mutations import damaged, damaged_json, deep

ROOT = Path(__file__).parents[2]
DIALOGUES = ROOT / "src" / "multimodal_eval" / "data" / "demo" / "dialogue"
CLARITY = ROOT / "tests" / "contests" / "clarity" / "data"
CAPTIONS = {
    "images": [{"id": 7, "file_name": "seven.jpg"}, {"id": 5, "file_name": "fünf.jpg"}],
    "annotations": [
        {"image_id": 5, "id": 1, "caption": "a dog"},
        {"image_id": 7, "id": 2, "caption": "a café"},
        {"image_id": 5, "id": 3, "caption": "one dog"},
    ],
}
CAPTION_RESULTS = [{"image_id": 7, "caption": "a cat"}, {"image_id": 5, "caption": "a dog"}]


def coco(folder: Path) -> list[str]:
    _write(folder / "captions.json", CAPTIONS)
    _write(folder / "results.json", CAPTION_RESULTS)
    return ["score", "captions.json", "results.json", "--metrics", "rouge_l,cider_d", "-o", "run"]


def vqa(folder: Path) -> list[str]:
    contents = ({**HEAD, "annotations": ANNOTATIONS}, {**HEAD, "questions": QUESTIONS}, RESULTS)
    for name, content in zip(NAMES, contents, strict=True):
        _write(folder / name, content)
    return ["score", NAMES[0], NAMES[2], "--metrics", "vqa_accuracy", "-o", "run"]


def flickr8k(folder: Path) -> list[str]:
    judgments = folder / "flickr8k"
    judgments.mkdir()
    for name, lines in (
        ("Flickr8k.token.txt", token_lines()),
        ("ExpertAnnotations.txt", lines_of(EXPERT)),
        ("CrowdFlowerAnnotations.txt", lines_of(CROWD)),
    ):
        (judgments / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ["meta", "flickr8k", "--metrics", "rouge_l", "--format-in", "flickr8k-expert"]


def clarity(folder: Path) -> list[str]:
    for source, name in (("test.csv", "test.csv"), ("alba.csv", "alba.csv")):
        head = (CLARITY / source).read_text(encoding="utf-8").splitlines(keepends=True)[:20]
        (folder / name).write_text("".join(head), encoding="utf-8")
    return ["clarity", "test.csv", "alba.csv", "-o", "run", "--no-report"]


def clarity_check(folder: Path) -> list[str]:
    clarity(folder)
    return ["clarity", "check-submission", "alba.csv", "--data", "test.csv"]


def dialogue(folder: Path) -> list[str]:
    for name in ("gold.json", "questions.json", "submissions/alba/output.json", "submissions/alba/ppl_output.json"):
        content = json.loads((DIALOGUES / name).read_bytes())
        few = {key: content[key] for key in sorted(content) if key.endswith("en-1")}
        _write(folder / Path(name).name, few)
    files = ["gold.json", "output.json", "ppl_output.json", "--questions", "questions.json"]
    return ["dialogue", *files, "-o", "run", "--no-report", "--synonyms", "en=none"]


def dialogue_generate(folder: Path) -> list[str]:
    content = json.loads((DIALOGUES / "questions.json").read_bytes())
    few = {key: content[key] for key in ("t2t-en-1", "t2t-ru-2", "i2t-ru-2")}
    _write(folder / "questions.json", few)
    (folder / "media").mkdir()
    shutil.copy(DIALOGUES / "media" / "pond.png", folder / "media")
    return ["dialogue", "generate", "questions.json", "--model", "echo", "--no-cache", "-o", "submission"]


def leaderboard(folder: Path) -> list[str]:
    coco(folder)
    (folder / "submissions").mkdir()
    shutil.copy(folder / "results.json", folder / "submissions" / "b.json")
    (folder / "results.json").rename(folder / "submissions" / "a.json")
    return ["leaderboard", "captions.json", "submissions", "--metrics", "rouge_l", "-o", "runs"]


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def _attack(make: Callable[[Path], list[str]], random: Random, folder: Path) -> str:
    command = make(folder)
    file = random.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    content = file.read_bytes()
    if file.suffix == ".json":
        changed = deep(random) if random.random() < 0.03 else damaged_json(random, content)
    else:
        changed = damaged(random, content)
    file.write_bytes(changed)
    if command[0] == "score":
        command = ["validate", *command[1:3]] if random.random() < 0.3 else [*command, "--no-report"]
    return mmeval(folder, *command).verdict


for make, cases in (
    (coco, 250),
    (vqa, 200),
    (flickr8k, 120),
    (clarity, 60),
    (clarity_check, 120),
    (dialogue, 120),
    (dialogue_generate, 120),
    (leaderboard, 10),
):

    @campaign(make.__name__, cases=cases)
    def attack(random: Random, folder: Path, make: Callable[[Path], list[str]] = make) -> str | None:
        return _attack(make, random, folder)
