"""Submissions to a shared task with damaged bytes, odd records and hostile archives. No reference is ever shown."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import redirect_stdout
from pathlib import Path
from random import Random

from multimodal_eval.contests.codabench.program import main
from multimodal_eval.contests.shared_task.judging import FILE, Column, Rules, reference_lines
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.report.build import submission_page
from tests.hostile.campaign import FaultError, campaign, check_printed
from tests.hostile.mutations import as_json, changed, damaged, deep, odd_value

SECRET = "zebra"
RULES = Rules(
    version="0",
    title="Task",
    config=RunConfig(metrics=["exact_match", "bleu"], error_patterns=[], skip_lint=True),
    columns=[Column("exact_match", "exact_match", "exact_match"), Column("bleu", "bleu", "bleu")],
    details="scores",
    max_mb=2,
    max_answer=1000,
)
IDS = ("a", "b", "c")


@campaign("submissions", cases=150)
def attack(random: Random, folder: Path) -> str | None:
    """A submission that the scoring program of Codabench scores or refuses, and never fails on."""
    reference, submission, output = folder / "ref", folder / "res", folder / "output"
    reference.mkdir()
    submission.mkdir()
    samples = [Sample(id, references=[f"{SECRET} {id}"]) for id in IDS]
    (reference / FILE).write_bytes(reference_lines(RULES, samples))
    name, content = _sent(random)
    (submission / name).write_bytes(content)
    printed = io.StringIO()
    with redirect_stdout(printed):
        status = main(folder, [str(folder), str(output)], submission_page)
    check_printed(printed.getvalue())
    page = (output / "detailed_results.html").read_text()
    if status not in (0, 1) or (output / "scores.json").exists() != (status == 0):
        raise FaultError(f"exit {status}\n{printed.getvalue()[-2000:]}")
    if SECRET in printed.getvalue() or SECRET in page:
        raise FaultError("a reference was shown")
    return "accepted" if status == 0 else "refused"


def _sent(random: Random) -> tuple[str, bytes]:
    """The name and the content of a file."""
    records: list[dict[str, object]] = [
        {"id": id, "generated_answer": random.choice(("x", "a dog", "")), "n": 1} for id in IDS
    ]
    suffix, content = random.choice((_lines, _list, _table))(random, records)
    if random.random() < 0.3:
        content = damaged(random, content)
    if random.random() < 0.3:
        return "answers.zip", _archive(random, f"answers{suffix}", content)
    return f"answers{suffix}", content


def _lines(random: Random, records: list[dict[str, object]]) -> tuple[str, bytes]:
    return ".jsonl", "".join(as_json(_odd(random, record)) + "\n" for record in records).encode()


def _list(random: Random, records: list[dict[str, object]]) -> tuple[str, bytes]:
    if random.random() < 0.1:
        return ".json", deep(random)
    value = changed(random, records) if random.random() < 0.5 else records
    return ".json", as_json(value).encode()


def _table(random: Random, records: list[dict[str, object]]) -> tuple[str, bytes]:
    suffix, comma = random.choice(((".csv", ","), (".tsv", "\t")))
    cells = [[str(value) for value in _odd(random, record).values()] for record in records]
    return suffix, "\n".join(comma.join(row) for row in [["id", "generated_answer", "n"], *cells]).encode(
        "utf-8", "surrogatepass"
    )


def _odd(random: Random, record: dict[str, object]) -> dict[str, object]:
    if random.random() < 0.7:
        return record
    return {**record, random.choice(("id", "generated_answer", "error", "references")): odd_value(random)}


def _archive(random: Random, name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    odd = random.choice((name, name, f"../{name}", f"/{name}", f"deep/{name}", "x" * 300 + name, "no.txt"))
    with zipfile.ZipFile(buffer, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as made:
        made.writestr(odd, content if random.random() < 0.8 else b" " * (9 << 20))
        if random.random() < 0.2:
            made.writestr(json.dumps(odd_value(random))[:200] or "x", b"")
    packed = buffer.getvalue()
    return damaged(random, packed) if random.random() < 0.5 else packed
