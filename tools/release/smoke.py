"""Try the installed package as a user does: score a small file, verify, report, compare the systems of the demo.

    python smoke.py             # without models, offline
    python smoke.py --demo      # and then the whole demo, which fetches two models unless they are on this machine

It needs nothing but the package, so that cibuildwheel can run it on every system. It prints the time of each step.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLES = (
    {"id": 1, "generated_answer": "a dog on a couch", "references": ["a brown dog on the couch"]},
    {"id": 2, "generated_answer": "a man rides a horse", "references": ["a man riding a horse"]},
    {"id": 3, "generated_answer": "a cat and a bird on a roof", "references": ["a cat on a roof"]},
    {"id": 4, "generated_answer": "Error: 429 Too Many Requests", "references": ["two pizzas"]},
)
SCORES = ("0.7727", "0.3333", "3 / 4")  # as in README
# Of the captions in the demo; they need no model.
METRICS = "bleu,rouge_l,cider_d,chrf"
PACKAGE = importlib.util.find_spec("multimodal_eval")
assert PACKAGE is not None
assert PACKAGE.origin is not None
DEMO = Path(PACKAGE.origin).parent / "data" / "demo"


def mmeval(folder: Path, *arguments: str, says: tuple[str, ...] = ()) -> None:
    """Run a command. Its output must contain every text in `says`."""
    environment = {
        **os.environ,
        "COLUMNS": "200",
        "PYTHONUTF8": "1",
        "MMEVAL_STATE": str(folder / "state"),
    }
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "multimodal_eval.cli.main", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    output = done.stdout + done.stderr
    lacking = [text for text in says if text not in output]
    if done.returncode or lacking:
        sys.exit(f"mmeval {' '.join(arguments)}: exit code {done.returncode}, the output lacks {lacking}:\n{output}")
    shown = " ".join(Path(argument).name for argument in arguments)
    print(f"mmeval {shown}: {time.perf_counter() - started:.1f} s", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="mmeval-smoke-") as name:
        folder = Path(name)
        lines = "".join(json.dumps(sample) + "\n" for sample in SAMPLES)
        (folder / "captions.jsonl").write_text(lines, encoding="utf-8")
        mmeval(folder, "score", "captions.jsonl", "--metrics", "rouge_l,chair_s", "-o", "runs/first", says=SCORES)
        mmeval(folder, "verify", "runs/first")
        mmeval(folder, "report", "runs/first", "-o", "report.html")
        if "rouge_l" not in (folder / "report.html").read_text(encoding="utf-8"):
            sys.exit("the report lacks rouge_l")
        for system in ("alba", "boreas"):
            files = [str(DEMO / "captioning.jsonl"), str(DEMO / f"captioning.{system}.jsonl")]
            mmeval(folder, "score", *files, "--metrics", METRICS, "--workers", "2", "-o", f"runs/{system}")
        mmeval(folder, "compare", "runs/alba", "runs/boreas", "--allow-partial", says=("CIDEr-D", "difference"))
        if "--demo" in sys.argv[1:]:
            mmeval(folder, "demo", "--fetch", "-o", "demo", says=("Alba", "Boreas", "perplexity"))


if __name__ == "__main__":
    main()
