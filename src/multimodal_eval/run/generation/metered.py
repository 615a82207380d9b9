"""Generation with a meter: the progress shows tokens, failures and money, and a budget is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic

import msgspec

from multimodal_eval.core.config import Price
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.progress import Progress, noted
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.meter import BudgetError, Meter, Metered
from multimodal_eval.generate.prices import cost_of, money
from multimodal_eval.generate.protocol import EndpointError
from multimodal_eval.run.generation.answer_parts import JOURNAL, AnswerParts, records_of, resuming
from multimodal_eval.run.generation.parts_left import Usage, cost_of_usage, stored_usage, usage_of
from multimodal_eval.run.generation.step import Generation
from multimodal_eval.run.generation.until import Stopper

__all__ = ["MeteredGeneration", "Shown", "is_refused", "paid"]


@dataclass(frozen=True)
class MeteredGeneration(Generation):
    """The generation of a run whose requests are counted."""

    def answers(
        self,
        folder: RunFolder,
        info: RunInfo,
        progress: Progress,
        *,
        accept_open: bool = False,
        stopper: Stopper | None = None,
    ) -> RunInfo:
        """Ask the model for every sample without an answer, as far as the budget goes."""
        price = self.config.price
        meter = Meter.of(self.config, 0.0 if price is None else paid(folder, info, price))
        generator = self.generator if self.batch is not None else Metered(self.generator, meter)
        metered = replace(self, generator=generator)
        shown = Shown(progress, [meter])
        try:
            info = Generation.answers(metered, folder, info, shown, accept_open=accept_open, stopper=stopper)
        except BudgetError as error:
            if not folder.is_kept:
                raise BudgetError(f"{error}. Name an `output` folder to keep the answers so far") from None
            command = f"{resuming(folder, info)} --budget AMOUNT"
            raise BudgetError(f"{error}. The answers so far are kept. Continue with a larger one: {command}") from None
        if price is None or info.generation is None:
            return info
        generation = msgspec.structs.replace(
            info.generation,
            cost=cost_of(price, info.generation.input_tokens, info.generation.output_tokens),
            currency=price.currency,
        )
        info = msgspec.structs.replace(info, generation=generation)
        folder.write_info(info)
        return info


def is_refused(folder: RunFolder, error: Exception) -> bool:
    """Whether the endpoint or a setting refuses every request, so that a run has no answer. A budget can be raised.

    So does a run without answers of its own whose judges refuse every question.
    """
    info = folder.read_info()
    if not isinstance(error, EndpointError | ConfigError) or isinstance(error, BudgetError):
        return False
    if info.generation is None:
        return not folder.storage.names("verdicts")
    answered = any(folder.has_part("answers", part) for part in range(len(info.parts)))
    return not answered and not folder.storage.exists(JOURNAL)


class Shown:
    """The progress of a step that asks: samples, and notes with failures, money and tokens per second.

    Of several meters, which share a budget, the tokens are added.
    """

    def __init__(self, progress: Progress, meters: Sequence[Meter]) -> None:
        self._progress, self._meters = progress, meters
        self._started = monotonic()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show how many samples are done."""
        self._progress(stage, done, total)

    def working_on(self, failures: str) -> None:
        """Show a note about failures, and those of the meter."""
        elapsed = monotonic() - self._started
        notes = [failures] if failures else []
        priced = [meter for meter in self._meters if meter.price is not None]
        if priced and priced[0].price is not None:
            notes.append(money(priced[0].spent, priced[0].price.currency))
        tokens = sum(meter.output_tokens for meter in self._meters)
        if tokens and elapsed > 0:
            notes.append(f"{tokens / elapsed:,.0f} tokens/s")
        noted(self._progress, notes)


def paid(folder: RunFolder, info: RunInfo, price: Price) -> float:
    """What the answers of a run have cost so far. Those from our cache are free, as are those without token counts."""
    return sum(cost_of_usage(price, usage) for usage in _usage(folder, info))


def _usage(folder: RunFolder, info: RunInfo) -> Iterator[Usage]:
    """The tokens of the committed parts, then those in the journal."""
    parts = AnswerParts(folder, info.parts)
    for part in range(len(info.parts)):
        if part not in parts.left:
            yield from stored_usage(folder, "answers", "exchanges", part)
    if folder.is_kept and parts.left:
        yield from _journaled_usage(folder, parts)


def _journaled_usage(folder: RunFolder, parts: AnswerParts) -> Iterable[Usage]:
    rows: dict[int, Usage] = {}  # of several records of a row, the last one counts
    for record in records_of(folder.journal(JOURNAL)):
        if parts.is_left(record.row):
            rows[record.row] = usage_of(record.exchange)
    return rows.values()
