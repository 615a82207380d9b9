"""Record what other programs give for open answers: open_answers.json.gz.

    pip install --no-deps --target DIR lmms-eval==0.7.3 ms-vlmeval==0.0.20 anls==0.0.2
    python tests/golden/record_open_answers.py DIR

The cases are put together at random from a fixed seed. Only the functions that score are taken out of the packages,
because their modules import much else. VLMEvalKit's functions for ChartQAPro are those of the authors.
"""

from __future__ import annotations

import ast
import gzip
import json
import random
import re
import sys
import warnings
from pathlib import Path
from typing import Any, Optional

import numpy as np

SEED, CASES = 20261118, 1500
WORDS = (
    "Paris|New York|5|5.0|-3|12%|0|0.0|1,200|2010|2011|True|Trues|a|b|[|]|'|\"|,| |\n|.|it's|[a, b]|['a', 'b']|[1, 2]"
    "|[1.5, 2]|(1)|[New York, LA]|['New York', '5']|[5%, 6]|nan|inf|true|[\"x\", 3]|[[1], 2]"
).split("|")
NUMBERS = (
    "three|twenty-one|one hundred and five|and|two thousand|3|3.5|-2|There are|boxes|.| |1e3|Zero|four.|a|nan|,|10"
).split("|")
PLAIN = (ast.Dict, ast.List, ast.Call, ast.Constant)
LETTERED = (
    "A",
    "B.",
    "(C)",
    "d",
    "D",
    "the",
    "answer is",
    "(A) or (B)",
    "Downhill",
    "downhill.",
    "0",
    " ",
    "\n",
    "Best",
)
TYPES = ("Factoid", "Conversational", "Hypothetical", "Fact Checking", "Multi Choice")


def functions(file: Path, **names: Any) -> dict[str, Any]:
    """The functions and plain values of a module, without its imports."""
    kept = [
        node
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) or (isinstance(node, ast.Assign) and isinstance(node.value, PLAIN))
    ]
    space = {"re": re, "ast": ast, "np": np, "Any": Any, "List": list, "Optional": Optional, **names}
    for node in kept:
        try:
            exec(compile(ast.Module([node], []), str(file), "exec"), space)
        except Exception:  # noqa: BLE001 - a value that needs something else is not needed here
            continue
    return space


def text(source: random.Random) -> str:
    kind = source.random()
    if kind < 0.4:
        return source.choice(WORDS)
    words = source.choices(WORDS, k=source.randint(0, 4))
    return "[" + ", ".join(words) + "]" if kind < 0.7 else "".join(words)


def main(packages: Path) -> None:
    sys.path.insert(0, str(packages))
    from anls import anls_score  # type: ignore[import-not-found,unused-ignore]

    warnings.simplefilter("ignore")
    tasks = packages / "lmms_eval" / "tasks"
    chart = functions(tasks / "chartqapro" / "utils.py", anls_score=anls_score)
    authors = functions(packages / "vlmeval" / "dataset" / "utils" / "chartqapro.py")
    vsi = functions(tasks / "vsibench" / "utils.py")
    mcq = functions(tasks / "_task_utils" / "mcq_extract.py")
    source = random.Random(SEED)
    cases: dict[str, list[Any]] = {"chartqapro": [], "vsi-bench": [], "realworldqa": []}
    for _ in range(CASES):
        gold = text(source)
        answer = (gold if source.random() < 0.25 else text(source)) + source.choice(["", "", "", ".", "\n", " "])
        kind, years = source.choice(TYPES), source.choices(["YES", "NO"], k=source.randint(1, 3))
        flags = years[-1:] if kind == "Conversational" else years
        stripped = [value.strip(".").strip("\n") for value in (gold, answer)]
        lmms = chart["chartqapro_process_results"]({"Answer": [gold], "Question Type": kind, "Year": years}, [answer])
        official = authors["relaxed_correctness_chartqapro"](*stripped, year_flags=flags)
        cases["chartqapro"].append([answer, gold, kind, years, float(official), float(lmms["relaxed_overall"])])
        said = source.choice(["", " "]).join(source.choices(NUMBERS, k=source.randint(0, 4)))
        target = source.choice(["3", "10", "0.5", "2.25", "21"])
        readings = [vsi["to_float"](vsi["fuzzy_matching"](said)), vsi["extract_number"](said)]
        values = [
            0.0 if number is None else float(vsi["mean_relative_accuracy"](number, float(target), 0.5, 0.95, 0.05))
            for number in readings
        ]
        cases["vsi-bench"].append([said, target, *values])
        words = "".join(source.choices(LETTERED, k=source.randint(0, 3)))
        answer_gold = source.choice(["A", "b", "D", "Downhill", "0"])
        if answer_gold.upper() in "ABCD":
            verdict = float(mcq["extract_mcq_answer"](words, choices=list("ABCD")) == answer_gold.upper())
        else:
            verdict = float(words.lower().strip().rstrip(".") == answer_gold.lower())
        cases["realworldqa"].append([words, answer_gold, verdict])
    content = json.dumps(cases, ensure_ascii=False, separators=(",", ":"))
    (Path(__file__).parent / "open_answers.json.gz").write_bytes(gzip.compress(content.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
