"""Take a small part of published answers with the authors' verdicts over: published_answers.json.gz.

    python tests/golden/record_published.py DIR

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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
