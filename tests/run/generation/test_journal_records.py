"""The journal of a generation: what is read from it, and what its answers have cost."""

from __future__ import annotations

import msgspec
import pytest

from multimodal_eval.core.config import GenerationConfig, Price, RunConfig
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.answer_tables import answer_table, exchange_table
from multimodal_eval.generate.protocol import Answer, Exchange, Outcome
from multimodal_eval.judges.form import Place
from multimodal_eval.judges.verdict_tables import Judged
from multimodal_eval.run.ask.replies import ANSWERS, Answered, paid
from tests.run_info import run_info


def exchange(tokens: int, *, is_cached: bool = False) -> Exchange:
    return Exchange(Outcome("ok", Answer("yes", input_tokens=tokens, output_tokens=0)), "", is_cached=is_cached)


def test_records_of_another_version_are_left_out(tmp_path):
    with Journal(tmp_path / "journal") as journal:
        journal.append(b'[0,{"outcome":{"status":"pondering","answer":{"text":"x"}},"digest":""}]')
        journal.append(b'{"row":1}')
        journal.append(b"\xff")
        journal.append(msgspec.json.encode(Answered(2, exchange(1))))
    assert list(ANSWERS.records(Journal(tmp_path / "journal"))) == [Judged(2, Place(), exchange(1))]


def test_every_answer_is_paid_once(tmp_path):
    config = RunConfig(generation=GenerationConfig(model="cats"))
    info = run_info(state="generating", parts=[2, 2], config=config)
    folder = RunFolder.create(tmp_path / "run", info)
    first = [exchange(1), exchange(10, is_cached=True)]
    folder.write_part("exchanges", 0, exchange_table(0, first))
    folder.write_part("answers", 0, answer_table(0, first))
    with Journal(folder.path / ANSWERS.journal) as journal:
        for row, tokens in ((0, 1), (2, 100), (2, 1000), (99, 10_000)):
            journal.append(msgspec.json.encode(Answered(row, exchange(tokens))))
        journal.append(msgspec.json.encode(Answered(3, exchange(100_000, is_cached=True))))
    # Row 0 is in a committed part, row 2 counts as it was asked last, rows 1 and 3 came from the cache; no row 99.
    assert paid(folder, info, ANSWERS, [Price(input=1_000_000, output=0)]) == pytest.approx(1 + 1000)
