"""Record what other programs read out of answers: answer_rules.json.gz.

    python tests/golden/record_choices.py CASES [--out DIR]

Needs the packages lmms-eval 0.7.3, ms-vlmeval 0.0.20 and inspect_ai 0.3.285, installed without their dependencies, and
numpy. CASES is the file of generated cases with the verdicts of lmms-eval 0.7.3, VLMEvalKit e8e78f05 and MMMU-Pro
bb0b95a (`short_answers_half.json.gz`), whose cases of the kinds `mcq` and `pope` are taken over. Further cases are put
together at random from a fixed seed: for each, the answer, the options, and what each rule reads (`drawn` if the
program draws a letter, null for nothing).
"""

from __future__ import annotations

import argparse
import ast
import gzip
import importlib.util
import json
import random
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

SEED, CHOICES, ANSWERS = 20261116, 3000, 2000
LETTERS = "ABCDEFGHIJ"
MARKED = ("{}", "({})", "{}.", "{})", "{}:", "**{}**", "${}$", "{},", "Answer: {}", "ANSWER: {}\n", "answer is {}")
MORE = ("[{}]", " {} ", "{}\n", "ANSWER: ({})", "ANSWER: **{}**.", "I choose {}", "the best option is {}")
WORDS = (
    "the|answer|is|Answer:|ANSWER:|answer :|because|A dog|I think|correct|option|not|but|**|$|(|)|[|]|.|,|:|;|!|?|'"
    '|"|\n|\n\n| |  |\t|\u00a0|USA|DNA|Z|a|b|The correct answer is|my choice is|答案是|选|정답은|답:|答えは|İ|ſ|é'
    "|_|12|3.5|so|<think>|</think>|-|#|*|answer:\n|answer: \n|\x1c|\u2028"
).split("|")
TEXTS = ("red", "a cat", "Paris", "10", "10 km", "A memory", "none of these", "blue car", "C", "left", "the USA", "N/A")
YES_NO = (
    'yes|no|Yes|No|NO|y|n|not|maybe|There is|a dog|.|,|!|?|-|(|)|**|\n| |  |1,000|3.5|"|nothing|know|/|:|yes.|no.|İ|_'
    "|...|\t|[|]|the answer is"
).split("|")


class DrawnError(Exception):
    """The program draws a letter."""


def draw(letters: object) -> str:
    raise DrawnError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    given = json.loads(gzip.decompress(arguments.cases.read_bytes()))["cases"]
    source = random.Random(SEED)
    recorded = {
        "mcq": [case for case in given if case["kind"] == "mcq"],
        "pope": [case for case in given if case["kind"] == "pope"],
        "choice": [choice_case(source) for _ in range(CHOICES)],
        "yes_no": [yes_no_case(source) for _ in range(ANSWERS)],
    }
    content = json.dumps(recorded, ensure_ascii=False, separators=(",", ":")).encode()
    (arguments.out / "answer_rules.json.gz").write_bytes(gzip.compress(content, mtime=0))


def choice_case(source: random.Random) -> list[Any]:
    letters = LETTERS[: source.randint(2, len(LETTERS))]
    options = {letter: " ".join(source.choices(TEXTS, k=source.randint(1, 2))) for letter in letters}
    pieces = [piece(source, options) for _ in range(source.choice([0, 1, 1, 2, 3, 4, 6, 9, 14]))]
    answer = source.choice(["", " "]).join(pieces)
    return [answer, options, {name: read(answer, options) for name, read in CHOICE_RULES.items()}]


def piece(source: random.Random, options: dict[str, str]) -> str:
    kind, letter = source.random(), source.choice(list(options))
    if kind < 0.5:
        return source.choice(WORDS)
    return source.choice(MARKED + MORE).format(letter) if kind < 0.85 else options[letter]


def yes_no_case(source: random.Random) -> list[Any]:
    answer = source.choice(["", " "]).join(source.choices(YES_NO, k=source.choice([0, 1, 1, 2, 2, 3, 4, 6])))
    return [answer, {name: read(answer) for name, read in YES_NO_RULES.items()}]


def mmmu(answer: str, options: dict[str, str]) -> str:
    try:
        return str(MMMU.parse_mmmu_multi_choice_response(answer, list(options), dict(options)))
    except DrawnError:
        return "drawn"


def answer_line(answer: str, options: dict[str, str]) -> str | None:
    state = types.SimpleNamespace(output=types.SimpleNamespace(completion=answer), choices=list(options))
    letters = PARSE_ANSWERS(state, False)
    return next(iter(letters)) if letters else None


def pope(answer: str) -> str | None:
    for gold in ("yes", "no"):
        if POPE.pope_process_results({"answer": gold, "question_id": 1}, [answer])["pope_accuracy"]["score"]:
            return gold
    return None


def file_of(package: str, path: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / path


def module(package: str, path: str) -> Any:
    """A module of a package whose dependencies are not installed."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, file_of(package, path))
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def function(package: str, path: str, name: str, **names: Any) -> Callable[..., Any]:
    """One function of a module that cannot be imported."""
    tree = ast.parse(file_of(package, path).read_text(encoding="utf-8"))
    (body,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    known: dict[str, Any] = {"re": re, **names}
    exec(compile(ast.Module([body], []), path, "exec"), known)
    defined: Callable[..., Any] = known[name]
    return defined


if __name__ == "__main__":
    sys.modules["loguru"] = types.ModuleType("loguru")
    sys.modules["loguru"].logger = None  # type: ignore[attr-defined]
    MMMU = module("lmms_eval", "tasks/_task_utils/mmmu_mcq_utils.py")
    MMMU.random = types.SimpleNamespace(choice=draw)
    EXTRACT = module("lmms_eval", "tasks/_task_utils/mcq_extract.py").extract_mcq_answer
    POPE, MME = module("lmms_eval", "tasks/pope/utils.py"), module("lmms_eval", "tasks/mme/utils.py")
    PARSE_ANSWERS = function(
        "inspect_ai",
        "solver/_multiple_choice.py",
        "parse_answers",
        TaskState=object,
        answer_character=lambda place: chr(ord("A") + place),
    )
    PUNCTUATION = function("vlmeval", "smp/misc.py", "process_punctuation")
    EXTRACTION = function("vlmeval", "dataset/utils/yorn.py", "YOrN_Extraction", process_punctuation=PUNCTUATION)
    CHOICE_RULES = {
        "lmms-eval@0.7.3/mmmu": mmmu,
        "lmms-eval@0.7.3/mcq_extract": lambda answer, options: EXTRACT(answer, list(options)) or None,
        "inspect@0.3.285/multiple_choice": answer_line,
    }
    YES_NO_RULES = {
        "pope@lmms-eval": pope,
        "yes-no@vlmevalkit": lambda answer: {"Yes": "yes", "No": "no"}.get(EXTRACTION(answer)),
        "lmms-eval@0.7.3/mme": lambda answer: {"yes": "yes", "no": "no"}.get(MME.parse_pred_ans(answer)),
    }
    main()
