"""Count the files and functions that a datum passes through on its way to results.json, or to the printed result.

    python -m tools.datum_path

Runs small commands in this process under a profiler: a JSONL line, a row of CLARITY, a reply of the dialogue contest;
and until they end, a caption, a question for a model, an answer for a judge, a log of inspect_ai. Code that runs during
imports does not count, nor do lambdas and comprehensions.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import io
import json
import sys
import threading
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import multimodal_eval
from multimodal_eval.cli.main import cli
from tools.site.setups import prepare
from tools.site.workspace import workspace

ROOT = f"{Path(multimodal_eval.__file__).parent}/"
COMMANDS = {
    "a JSONL line": "score x.jsonl --metrics cider,rouge_l --no-lint --no-report --workers 1",
    "a CLARITY row": "clarity data.csv predictions.csv --task evasion --no-report",
    "a dialogue reply": "dialogue gold.json output.json ppl_output.json --synonyms en=none --no-report",
}
PLAIN = "--no-lint --no-report --workers 1"
PRINTED = {  # counted until the command ends
    "a printed caption": f"score x.jsonl --metrics cider,rouge_l {PLAIN}",
    "a question": f"run q.jsonl --model openai:NAME --metrics exact_match --no-cache {PLAIN}",
    "a verdict": f"score x.jsonl --metrics judge:helpfulness --judge openai:NAME --no-judge-cache {PLAIN}",
    "an inspect log": "import logs/choices.eval --no-report --workers 1",
}
TYPES = ("Text2Text", "Image2Text", "Audio2Text", "Image-Audio2Text")
CLARITY_COLUMNS = (
    "index,question,interview_question,interview_answer,clarity_label,evasion_label,annotator1,annotator2,annotator3"
)


def write_inputs() -> None:
    """Write the smallest files that the commands accept to the working folder."""
    lines = [
        {"id": "1", "references": ["a dog runs"], "generated_answer": "a dog"},
        {"id": "2", "references": ["a cat"], "generated_answer": "cat"},
    ]
    Path("x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    Path("q.jsonl").write_text('{"id": "1", "question": "Is it red?", "references": ["no"]}\n', encoding="utf-8")
    rows = [
        "1,q,i,a,Clear Reply,Explicit,Explicit,General,Explicit",
        "2,q,i,a,Ambivalent Reply,General,Explicit,General,General",
    ]
    Path("data.csv").write_text("\n".join([CLARITY_COLUMNS, *rows]) + "\n", encoding="utf-8")
    predictions = ["id,clarity_pred,evasion_pred", "1,Clear Reply,Explicit", "2,Ambivalent Reply,General"]
    Path("predictions.csv").write_text("\n".join(predictions) + "\n", encoding="utf-8")
    gold = {f"d{number}": {"type": kind, "replies": [["a cat", "cat"]]} for number, kind in enumerate(TYPES)}
    Path("gold.json").write_text(json.dumps(gold), encoding="utf-8")
    Path("output.json").write_text(json.dumps({name: ["a cat"] for name in gold}), encoding="utf-8")
    Path("ppl_output.json").write_text(json.dumps({name: [2.0] for name in gold}), encoding="utf-8")


def passed_through(command: str, output: str, *, is_printed: bool) -> set[CodeType]:
    """The functions of the package that run until results.json is written or, if `is_printed`, the command ends."""
    codes: set[CodeType] = set()
    is_written = False

    def record(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal is_written
        code = frame.f_code
        is_written = is_written or (not is_printed and event == "return" and code.co_name == "write_results")
        is_function = bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")
        if event == "call" and not is_written and is_function and code.co_filename.startswith(ROOT):
            codes.add(code)

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        run(command, output)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return codes


def run(command: str, output: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        cli.main([*command.split(), "-o", output], standalone_mode=False)


def clear_caches() -> None:
    """Clear the function caches, so that the second run does the same work as a first run."""
    for item in gc.get_objects():
        if isinstance(item, _lru_cache_wrapper) and str(item.__module__).startswith("multimodal_eval"):
            item.cache_clear()


def main() -> None:
    with workspace() as work:
        prepare(["hosted-models", "logs inspect:logs"], work)
        write_inputs()
        for number, (name, command) in enumerate({**COMMANDS, **PRINTED}.items()):
            run(command, f"warm{number}")  # imports the modules that the command needs
            clear_caches()
            codes = passed_through(command, f"run{number}", is_printed=name in PRINTED)
            print(f"{name:17} {len({code.co_filename for code in codes}):3} files {len(codes):4} functions")


if __name__ == "__main__":
    main()
