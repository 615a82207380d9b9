"""The answers of a run by parts: which rows have an outcome, and which parts are stored.

When all rows of a part have an outcome, its samples are stored again with their answers, then its exchanges, then its
answers: a part whose answers exist is committed. Whatever a killed process has written before that is written again,
with the same content.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import msgspec

from multimodal_eval.core.records import GenerationInfo, RunInfo
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.answer_tables import answer_table, exchange_table, with_answers
from multimodal_eval.generate.outcomes import Exchange
from multimodal_eval.run.generation.parts_left import PartsLeft, decoded, resuming, tallied

__all__ = ["JOURNAL", "AnswerParts", "JournalRecord", "counted", "records_of", "requests_digest", "resuming"]

JOURNAL = "answers/journal.jsonl"  # the exchanges of parts that are not committed


class JournalRecord(msgspec.Struct, array_like=True):
    """A line of the journal."""

    row: int
    exchange: Exchange


def records_of(journal: Journal) -> Iterator[JournalRecord]:
    """The records of a journal. One that this version does not understand is left out: its sample is asked again."""
    return decoded(journal, JournalRecord)


class AnswerParts(PartsLeft):
    """The outcomes of the rows of a run."""

    def __init__(self, folder: RunFolder, sizes: list[int]) -> None:
        super().__init__(folder, "answers", sizes)
        self.exchanges: dict[int, dict[int, Exchange]] = {}  # part -> row -> exchange, of parts that are left
        self.done = self.rows - sum(sizes[part] for part in self.left)  # rows with an outcome

    def known(self, row: int) -> Exchange | None:
        """The exchange of a row, if its part is not committed."""
        return self.exchanges.get(self.part_of(row), {}).get(row)

    def is_known(self, row: int) -> bool:
        """Whether a row has an outcome."""
        return self.is_committed(row) or self.known(row) is not None

    def keep(self, row: int, exchange: Exchange) -> bool:
        """Note the outcome of a row. True if its part is now complete."""
        part = self.part_of(row)
        rows = self.exchanges.setdefault(part, {})
        is_new = row not in rows
        rows[row] = exchange
        self.done += is_new
        return is_new and len(rows) == self.sizes[part]

    def restrict(self, sizes: list[int]) -> list[int]:
        """Keep only the first rows, as many as the parts now have. Returns the parts that are now complete."""
        self.sizes, self.starts = sizes, self.starts[: len(sizes)]
        self.rows = sum(sizes)
        self.left = {part: None for part in self.left if part < len(sizes)}
        self.exchanges = {
            part: {row: exchange for row, exchange in rows.items() if row < self.rows}
            for part, rows in self.exchanges.items()
            if part < len(sizes)
        }
        self.done = self.rows - sum(sizes[part] - len(self.exchanges.get(part, {})) for part in self.left)
        return [part for part, rows in self.exchanges.items() if len(rows) == sizes[part]]

    def commit(self, part: int) -> None:
        """Store a complete part."""
        rows = self.exchanges[part]
        exchanges = [rows[row] for row in sorted(rows)]
        start = self.starts[part]
        self.folder.write_part("samples", part, with_answers(self.folder.read_part("samples", part), exchanges))
        self.folder.write_part("exchanges", part, exchange_table(start, exchanges))
        self.folder.write_part("answers", part, answer_table(start, exchanges))
        del self.left[part]  # in this order: a row of the part is always known
        del self.exchanges[part]


def counted(folder: RunFolder, info: RunInfo) -> GenerationInfo:
    """The description of the generation, with the counts of all stored answers."""
    tally = tallied(folder, "answers", len(info.parts))
    assert info.generation is not None
    return msgspec.structs.replace(
        info.generation,
        models=list(tally.models),
        statuses=dict(sorted(tally.statuses.items())),
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
        requests=requests_digest(folder, len(info.parts)),
    )


def requests_digest(folder: RunFolder, parts: int) -> str:
    """The SHA-256 of the digests of all stored requests, one per line: equal if two runs were asked the same.

    The line of a sample that was not asked, because its media cannot be read or an earlier turn failed, is empty.
    """
    digest = sha256()
    for part in range(parts):
        requests = folder.read_part("answers", part, ["request"]).column("request").to_pylist()
        digest.update("".join(f"{request}\n" for request in requests).encode())
    return digest.hexdigest()
