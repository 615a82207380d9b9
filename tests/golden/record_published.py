"""Take a small part of published answers with the authors' verdicts over: published_answers.json.gz.

    python tests/golden/record_published.py DIR
    python tests/golden/record_published.py        only the answers of our own that the ledger of the package names

DIR is the folder that `mmeval reproduce --data DIR` reads. Only sets whose licence permits it are taken over: MATH-V
(MIT), BLINK, MMMU and MEGA-Bench (Apache-2.0), HallusionBench (BSD-3-Clause). NOTICE names them.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

import multimodal_eval.benchmarks
from tests.golden.load import golden

SEED, ROWS, LONGEST = 20261118, 60, 300


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((folder / f"{name}.jsonl.gz").read_bytes()).splitlines()]


def main(folder: Path) -> None:
    source = random.Random(SEED)
    vision = {row["id"]: row for row in rows(folder, "mathv.questions")}
    blink = {row["id"]: row for row in rows(folder, "blink.questions")}
    short = [row for row in rows(folder, "mathv") if len(row["response"] or "") < LONGEST]
    # Half of the verdicts are right, and texts that differ from the gold answer are preferred among them.
    right = [row for row in short if row["verdict"] and row["extraction"] != str(vision[row["id"]]["gold"]).lower()]
    wrong = [row for row in short if not row["verdict"]]
    answers = [row for row in rows(folder, "blink") if len(row["response"] or "") < LONGEST]
    mmmu = rows(folder, "mmmu")
    chosen = {row["id"] for row in source.sample(mmmu, ROWS)}
    content = {
        "math-vision": [
            [
                row["response"],
                vision[row["id"]]["options"],
                str(vision[row["id"]]["gold"]),
                row["extraction"],
                row["verdict"],
            ]
            for row in [*source.sample(right, ROWS), *source.sample(wrong, ROWS)]
        ],
        "blink": [
            [row["response"], blink[row["id"]]["n_choices"], row["extraction"]] for row in source.sample(answers, ROWS)
        ],
        "mmmu": [
            [row["response"], row["choices"], row["gold"], row["verdict"]]
            for row in mmmu
            if row["drawn"] or not row["choices"] or row["id"] in chosen
        ],
        "megabench": [[row["model"], row["task"], row["score"]] for row in rows(folder, "megabench_task_scores")],
        "hallusionbench": [
            [row[key] for key in ("category", "subcategory", "set_id", "figure_id", "question_id", "gold")]
            for row in rows(folder, "hallusionbench.questions")
        ],
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    (Path(__file__).parent / "published_answers.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


# Answers of our own, with what reference programs give them: src/multimodal_eval/benchmarks/answers

ANSWERS = Path(multimodal_eval.benchmarks.__file__).parent / "answers"


def own_answers() -> dict[str, list[dict[str, Any]]]:
    """Captions of our own with the values of pycocoevalcap, and generated short answers with those of harnesses."""
    captions, short = golden("captions.json.gz"), golden("short_answers.json.gz")["cases"]
    columns = [captions[name] for name in ("candidates", "references", "rouge_l", "cider_d")]
    made = {
        "captions": [
            {"response": said, "gold": gold, "bleu_4": bleu, "rouge_l": rouge_l, "cider_d": cider_d}
            for (said, gold, rouge_l, cider_d), bleu in zip(
                zip(*columns, strict=True), captions["bleu"][3], strict=True
            )
        ]
    }
    for kind in ("anls", "relaxed", "vqa"):
        cases = [case for case in short if case["kind"] == kind]
        verdicts = [name for name in cases[0] if name not in ("kind", "gold", "answer")]
        made[kind] = [
            {"response": case["answer"], "gold": case["gold"], **{name: case[name] for name in verdicts}}
            for case in cases
        ]
    return made


def write_own_answers() -> None:
    for name, listed in own_answers().items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in listed)
        (ANSWERS / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]))
    write_own_answers()
