"""Texts of equal length together: no padding, and so the same numbers whatever else is in the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

FEWEST_ROWS = 2  # onnxruntime takes other kernels for a single row, with other last digits


def equal_lengths(
    sequences: Sequence[Sequence[int]], *, tokens: int, fewest: int = FEWEST_ROWS
) -> Iterator[tuple[list[int], list[Sequence[int]]]]:
    """Batches of positions and rows of one length, of about `tokens` tokens.

    A row that would stand alone is doubled: there may be more rows than positions.
    """
    order = sorted(range(len(sequences)), key=lambda position: len(sequences[position]))
    start = 0
    while start < len(order):
        length = len(sequences[order[start]])
        most = max(fewest, tokens // max(1, length))
        end = start
        while end < len(order) and end - start < most and len(sequences[order[end]]) == length:
            end += 1
        positions = order[start:end]
        rows = [sequences[position] for position in positions]
        yield positions, rows + rows[:1] * (fewest - len(rows))
        start = end
