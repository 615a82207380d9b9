"""The scoring program of a Codabench bundle.

Codabench calls it with a folder that has `ref` (the reference data) and `res` (the unpacked submission), and with a
folder for its output, which participants can download.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from multimodal_eval.contests.shared_task.judging import FILE, Judged, Outcome, judged_or_refused, lines_of
from multimodal_eval.core.visible import protected_streams

__all__ = ["main"]

Page = Callable[[Outcome], str]


def main(program: Path, arguments: Sequence[str], page: Page) -> int:
    """Write scores.json and detailed_results.html; 1 for a participant's mistake, and 2 for a fault of the program.

    `program` is the folder of the scoring program. `page` is the detailed results as HTML. scores.json is only written
    if there are scores: Codabench then shows the submission as failed, with the text that is printed here.
    """
    if len(arguments) != 2:
        _write("usage: scoring.py INPUT OUTPUT, with INPUT/ref and INPUT/res")
        return 2
    place, output = Path(arguments[0]), Path(arguments[1])
    output.mkdir(parents=True, exist_ok=True)
    with protected_streams(), judged_or_refused(place / "ref" / FILE, place / "res", program) as outcome:
        _write(*lines_of(outcome))
        if isinstance(outcome, Judged):
            (output / "scores.json").write_bytes(msgspec.json.encode(outcome.scores))
        _write_page(output / "detailed_results.html", outcome, page)
        if isinstance(outcome, Judged):
            return 0
        return 1 if outcome.is_participants else 2


def _write_page(path: Path, outcome: Outcome, page: Page) -> None:
    """The scores are already written, so an error here does not fail the submission."""
    try:
        path.write_bytes(page(outcome).encode("utf-8", "replace"))
    except Exception as error:  # noqa: BLE001 - its message may contain references
        _write(f"note: the detailed results could not be written ({type(error).__name__}). Please tell the organisers")


def _write(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
