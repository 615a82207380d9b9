"""What the results say about judges that could stop before all samples were compared."""

from __future__ import annotations

from multimodal_eval.core.records import JudgingInfo, RunInfo

__all__ = ["stop_notes"]


def stop_notes(info: RunInfo) -> list[str]:
    """What the results say about judges that could stop early."""
    return [note for judging in info.judging.values() if judging.pairs for note in _notes(judging)]


def _notes(judging: JudgingInfo) -> list[str]:
    pairs = judging.pairs
    compared, population = sum(pair.compared for pair in pairs), sum(pair.population for pair in pairs)
    if not any(pair.is_stopped for pair in pairs):
        return [f"all {population:,} comparisons were needed"]
    stopped = sum(pair.is_stopped for pair in pairs)
    saved = f"{1 - compared / population:.0%} of the comparisons saved"
    which = f"{stopped} of {len(pairs)} pairs of systems were certain before all samples were compared"
    return [
        f"{compared:,} of {population:,} comparisons, {saved}: {which}",
        "the intervals of the pairs account for the stop; those of the results do not",
    ]
