"""What the report shows about the systems that a judge compares: two of them, or ratings of several."""

from __future__ import annotations

from dataclasses import dataclass

from multimodal_eval.analysis.compared_systems import Lineup
from multimodal_eval.analysis.judge_ratings import RatedSystem, RatingTable, rate
from multimodal_eval.analysis.preferences import conclusion, preference_of
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.judge_config import COMPARING
from multimodal_eval.core.judge_records import rates_by_the_judge
from multimodal_eval.data.runs.run import Run
from multimodal_eval.report.remarks import lineup_of

__all__ = ["Comparisons", "comparisons_of"]

_SHOWN = 3  # names in a sentence


@dataclass(frozen=True)
class Comparisons:
    """What the comparisons of one judge say."""

    metric: str
    what: str  # the score of the metric is
    is_score: bool  # of one system
    conclusion: str = ""  # which of two systems is better
    ratings: RatingTable | None = None  # of several systems
    problem: str = ""  # why there are no ratings

    @property
    def leading(self) -> list[RatedSystem]:
        """The systems that can have the first rank."""
        return [] if self.ratings is None else [each for each in self.ratings.systems if each.best_rank == 1]

    @property
    def decimals(self) -> int:
        """Of the ratings."""
        return 0 if self.ratings is None or self.ratings.scale == "elo" else 3

    @property
    def claim(self) -> str:
        """What the ratings measure."""
        return rates_by_the_judge(self.metric)


def comparisons_of(run: Run) -> dict[str, Comparisons]:
    """The comparisons of every judge of a run that compares systems, by metric."""
    judges = run.info.config.judges
    names = [name for name in run.entries if name in judges and judges[name].form in COMPARING]
    systems = lineup_of(run) if names else None
    return {} if systems is None else {name: _comparisons(run, name, systems) for name in names}


def _comparisons(run: Run, metric: str, systems: Lineup) -> Comparisons:
    if len(systems.all) == 2 and systems.is_of_one_system:
        what = f"win rate of A = {systems.systems[0]} against B = {systems.others[0]}"
        return Comparisons(metric, what, True, _conclusion(run, metric))
    if systems.is_of_one_system:
        what = f"share of wins of {systems.systems[0]} against {_listed(systems.others)}"
    else:
        what = "mean over comparisons in which different systems come first: not the score of a system"
    try:
        return Comparisons(metric, what, systems.is_of_one_system, ratings=rate([run], metric=metric))
    except MultimodalEvalError as error:
        return Comparisons(metric, what, systems.is_of_one_system, problem=str(error))


def _conclusion(run: Run, metric: str) -> str:
    if run.info.config.judges[metric].form != "pairwise" or not run.entries[metric].n_scored:
        return ""
    return conclusion(preference_of(run, metric))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])
