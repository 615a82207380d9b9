"""What the results say about judges that could stop before all samples were compared."""

from __future__ import annotations

import msgspec

from multimodal_eval.core.records import Entry, JudgingInfo, RunInfo
from multimodal_eval.stats.betting import sequence_method

__all__ = ["stop_notes", "with_decision"]


def with_decision(entry: Entry, name: str, info: RunInfo) -> Entry:
    """The win rate of a pair whose comparisons stopped early, with an interval that is valid at any stopping time."""
    judge, judging = info.config.judges.get(name), info.judging.get(name)
    if judge is None or judge.until is None or judging is None or len(judging.pairs) != 1:
        return entry
    (pair,) = judging.pairs
    if not pair.is_stopped:
        return entry
    method = sequence_method(judge.until.confidence, pair.compared, pair.population)
    return msgspec.structs.replace(entry, value=pair.win_rate, stderr=None, low=pair.low, high=pair.high, method=method)


def stop_notes(info: RunInfo) -> list[str]:
    """What the results say about judges that could stop early."""
    return [note for name, judging in info.judging.items() if judging.pairs for note in _notes(name, judging)]


def _notes(name: str, judging: JudgingInfo) -> list[str]:
    pairs = judging.pairs
    compared, population = sum(pair.compared for pair in pairs), sum(pair.population for pair in pairs)
    if not any(pair.is_stopped for pair in pairs):
        return [f"all {population:,} comparisons were needed"]
    if len(pairs) == 1:
        return [
            f"stopped after {compared:,} of {population:,} pairs: the others were not needed",
            f"the interval of {name} accounts for the stop; those of its parts do not",
        ]
    stopped = sum(pair.is_stopped for pair in pairs)
    saved = f"{1 - compared / population:.0%} of the comparisons saved"
    which = f"{stopped} of {len(pairs)} pairs of systems were certain before all samples were compared"
    return [
        f"{compared:,} of {population:,} comparisons, {saved}: {which}",
        "the intervals of the pairs account for the stop; those of the results do not",
    ]
