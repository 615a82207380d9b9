"""What the verdicts of a run say about its judges: flips, length, panels, repetitions, and what to be careful about.

It is derived from the stored verdicts of a finished run, without asking anything, and stored as judges.json.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from multimodal_eval.analysis.judge_calibration import calibration_of, rate_of
from multimodal_eval.analysis.judge_verdicts import PAIRWISE, StoredVerdicts, stored_verdicts
from multimodal_eval.core.figure import Figure, without_value
from multimodal_eval.core.judge_records import (
    Agreement,
    Flips,
    JudgeFindings,
    JudgesReport,
    Length,
    PanelMember,
    Rate,
    Variance,
)
from multimodal_eval.core.levels import Level
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.data.runs.run import Run
from multimodal_eval.stats.alpha import krippendorff_alpha
from multimodal_eval.stats.intervals import Codes, Vector, interval
from multimodal_eval.stats.length_control import fit_length_model, length_controlled, length_effect
from multimodal_eval.stats.variance_parts import variance_parts

__all__ = ["families_of", "findings", "judges_of", "shared_families", "store_judges"]

_SHOWN_REASONS = 10  # further ones are counted together
_LOW_ALPHA = 0.667  # Krippendorff (2004): below it, no conclusions
_HALF = 0.5


def judges_of(run: Run) -> JudgesReport | None:
    """The stored report, or one derived from the verdicts; None if no judge was asked."""
    stored = run.folder.read_judges()
    return stored if stored is not None or not _judged(run) else findings(run)


def store_judges(run: Run) -> None:
    """Write judges.json into the run folder, if a judge was asked."""
    if _judged(run):
        run.folder.write_judges(findings(run))


def findings(run: Run) -> JudgesReport:
    """What is known about the judges of a finished run."""
    return JudgesReport(metrics={metric: _findings(run, metric) for metric in _judged(run)})


def _judged(run: Run) -> list[str]:
    """The metrics of the run with verdicts of a judge."""
    known = run.info.config.judges
    return [name for name in run.info.judging if name in known and name in run.metrics]


def _findings(run: Run, metric: str) -> JudgeFindings:
    verdicts = stored_verdicts(run.folder, run.info, metric)
    config = verdicts.config
    known = JudgeFindings(
        form=config.form,
        models=[model.model for model in config.models],
        questions=verdicts.questions,
        unreadable=_most_common(_summed(verdicts.unreadable)),
        failed=_most_common(_summed(verdicts.failed)),
        injections=verdicts.injections,
        flips=_flips(verdicts) if config.form == PAIRWISE else None,
        length=_length(verdicts) if config.form == PAIRWISE else None,
        panel=_panel(verdicts) if len(config.models) > 1 else [],
        agreement=list(_agreement(verdicts, run.info.seed)),
        variance=_variance(verdicts),
        calibration=calibration_of(run, metric) if run.info.config.human else None,
    )
    return msgspec.structs.replace(known, warnings=list(_warnings(run, metric, verdicts, known)))


# Counts


def _summed(counts: Mapping[tuple[int, str], int]) -> Counter[str]:
    """The counts over all models."""
    total: Counter[str] = Counter()
    for (_, what), count in counts.items():
        total[what] += count
    return total


def _most_common(counts: Counter[str]) -> dict[str, int]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = dict(ordered[:_SHOWN_REASONS])
    rest = sum(count for _, count in ordered[_SHOWN_REASONS:])
    return {**shown, "other": rest} if rest else shown


def _of_model(counts: Mapping[tuple[int, str], int], number: int) -> int:
    return sum(count for (model, _), count in counts.items() if model == number)


def _rate_of(hits: list[bool], rows: list[int], verdicts: StoredVerdicts, *, is_limited: bool = True) -> Rate:
    """The share of hits among those on samples with a score."""
    of = np.array(rows, np.int64)
    scored = ~np.isnan(verdicts.scores[of])
    return rate_of(np.array(hits, np.float64)[scored], verdicts.clusters(of[scored]), is_limited=is_limited)


def _figure(estimate: Estimate, clusters: Codes | None, values: Vector | None = None) -> Figure:
    return interval(estimate, clusters, values=values)


# Order and length


def _flips(verdicts: StoredVerdicts) -> Flips:
    orders = verdicts.orders
    # Without a flip, one of the two verdicts on a pair is for each place: together they vary less than two others.
    is_balanced = bool(orders.rows)
    return Flips(
        flips=_rate_of(orders.flips, orders.rows, verdicts),
        disagreements=_rate_of(orders.disagreements, orders.rows, verdicts),
        first=_rate_of(orders.first, orders.decided_rows, verdicts, is_limited=not is_balanced),
    )


def _length(verdicts: StoredVerdicts) -> Length | None:
    """The effect of the length; None if nothing is scored."""
    rows = np.flatnonzero(~np.isnan(verdicts.scores) & ~np.isnan(verdicts.length_difference))
    if not len(rows):
        return None
    wins, difference = verdicts.scores[rows], verdicts.length_difference[rows]
    clusters = verdicts.clusters(rows)
    decided = np.flatnonzero((wins != _HALF) & (difference != 0))
    longer = ((wins > _HALF) == (difference > 0))[decided].astype(np.float64)
    controlled = length_controlled(wins, difference)
    return Length(
        longer_wins=rate_of(longer, verdicts.clusters(rows[decided])),
        effect=_effect(wins, difference, clusters),
        win_rate=_figure(mean_estimate(Rows(wins)), clusters, wins),
        controlled=_figure(controlled, clusters, wins),
    )


def _effect(wins: Vector, difference: Vector, clusters: Codes | None) -> Figure:
    if bool((wins == wins[0]).all()):
        return without_value("no value: all verdicts are equal")
    if bool((difference == difference[0]).all()):
        return without_value("no value: all differences of length are equal")
    if fit_length_model(wins, difference).is_separated:
        return without_value("no value: the verdicts follow from the length alone, or the lengths hardly vary")
    return _figure(length_effect(wins, difference), clusters)


# Panels and repetitions


def _panel(verdicts: StoredVerdicts) -> list[PanelMember]:
    """Each model over the samples that all of them have judged."""
    rows = np.flatnonzero(verdicts.complete)
    by_model = verdicts.values[rows].mean(axis=2)
    clusters = verdicts.clusters(rows)
    nothing = without_value("no value: no sample has all verdicts")
    members = []
    for number, model in enumerate(verdicts.config.models):
        values = by_model[:, number]
        bias = values - by_model.mean(axis=1)
        members.append(
            PanelMember(
                model=model.model,
                mean=_figure(mean_estimate(Rows(values)), clusters, values) if len(rows) else nothing,
                bias=_figure(mean_estimate(Rows(bias)), clusters) if len(rows) else nothing,
                unreadable=_of_model(verdicts.unreadable, number),
                failed=_of_model(verdicts.failed, number),
            )
        )
    return members


def _agreement(verdicts: StoredVerdicts, seed: int) -> Iterator[Agreement]:
    """Between the models, by their first repetition, and between the repetitions of each model."""
    samples, models, repeats = verdicts.values.shape
    level = _level(verdicts)
    if models > 1:
        yield _alpha("judges", level, verdicts.values[:, :, 0], verdicts.groups, seed)
    if repeats > 1:
        rows = np.repeat(np.arange(samples), models)
        groups = verdicts.clusters(rows)
        yield _alpha("repeats", level, verdicts.values.reshape(-1, repeats), groups, seed)


def _level(verdicts: StoredVerdicts) -> Level:
    config = verdicts.config
    if config.expected:
        return "interval"
    if config.form in ("binary", PAIRWISE):
        return "nominal"
    return "ordinal" if config.form == "scale" else "interval"


def _alpha(between: str, level: Level, ratings: Vector, groups: Codes | None, seed: int) -> Agreement:
    alpha = krippendorff_alpha(ratings, level, groups=groups, seed=seed)
    method = alpha.method if alpha.reason is None else f"no value: {alpha.reason}"
    figure = Figure(value=alpha.value, stderr=alpha.stderr, low=alpha.low, high=alpha.high, method=method)
    return Agreement(between=between, level=level, alpha=figure, units=alpha.n_units)


def _variance(verdicts: StoredVerdicts) -> Variance | None:
    parts = variance_parts(verdicts.values)
    if parts is None:
        return None
    return Variance(
        samples=parts.samples,
        judges=parts.judges,
        repeats=parts.repeats,
        stderr_of_samples=parts.stderr_of_samples,
        stderr_of_judge=parts.stderr_of_judge,
    )


# Warnings


def _warnings(run: Run, metric: str, verdicts: StoredVerdicts, known: JudgeFindings) -> Iterator[str]:
    """What to be careful about, most important first."""
    yield from _self_preference(run, verdicts)
    names = run.info.judging[metric].models
    if len(names) > len(known.models):
        yield f"the endpoint answered as {', '.join(names)}: the score mixes verdicts of several models"
    if known.flips is not None:
        yield from _leaning(known.flips.first, "the answer that is shown first")
    if known.length is not None:
        yield from _leaning(known.length.longer_wins, "the longer answer")
    for agreement in known.agreement:
        alpha = agreement.alpha.value
        if alpha is not None and alpha < _LOW_ALPHA:
            who = "the judges" if agreement.between == "judges" else "repetitions of the same question"
            yield f"{who} agree poorly: Krippendorff's alpha is {alpha:.2f}, below {_LOW_ALPHA}"


def _leaning(rate: Rate, what: str) -> Iterator[str]:
    """A warning if the interval of a rate does not contain one half."""
    if rate.value is None or rate.low is None or rate.high is None or rate.low <= _HALF <= rate.high:
        return
    verb = "prefers" if rate.value > _HALF else "avoids"
    yield (
        f"the judge {verb} {what}: {100 * rate.value:.1f}% of {rate.total:,} decided verdicts "
        f"(95% interval {100 * rate.low:.1f} to {100 * rate.high:.1f}%)"
    )


def _self_preference(run: Run, verdicts: StoredVerdicts) -> Iterator[str]:
    systems = sorted({*_systems(run), *verdicts.systems})
    advice = "judges prefer answers of their own family. Add a judge of another family, or human labels"
    for model in dict.fromkeys(model.model for model in verdicts.config.models):
        shared = shared_families(model, systems)
        for system in systems:
            if _same(model, system):
                yield f"the judge {model} also wrote answers: {advice}"
            elif system in shared:
                family = " and ".join(shared[system])
                yield f"the judge {model} and the judged system {system} are of the family {family}: {advice}"


def _systems(run: Run) -> Iterator[str]:
    """The models whose answers are judged, as far as the run knows them."""
    info = run.info
    if info.config.generation is not None:
        yield info.config.generation.model
    if info.generation is not None:
        yield from info.generation.models
    if info.imported is not None and info.imported.model is not None:
        yield info.imported.model


def _same(model: str, system: str) -> bool:
    return model == system or model.partition(":")[2] == system


# Family -> a pattern of one word of a model's name. Words are separated by anything but letters, digits and dots.
_PATTERNS = {
    "gpt": r"(chat)?gpt(\d.*)?|davinci",
    "claude": r"claude.*",
    "gemini": r"gemini.*",
    "gemma": r"(pali|code|med|rec)?gemma.*",
    "llama": r"(code|tiny|open)?llama(\d.*)?|vicuna.*",
    "qwen": r"(code)?qwen.*|qwq|qvq",
    "mistral": r"(mis|mix|pix|minis|magis|codes|devs|vox)tral.*",
    "deepseek": r"deepseek.*|janus",
    "phi": r"phi(\d.*)?",
    "internlm": r"intern(vl|lm|video|s\d).*|internvl|internlm|intern",
    "glm": r"(chat)?glm.*|cog(vlm|agent).*",
    "yi": r"yi",
    "grok": r"grok.*",
    "command": r"command|c4ai|aya",
    "kimi": r"kimi.*|moonshot.*|moonlight",
    "minicpm": r"minicpm.*",
    "olmo": r"(ol|mol)mo\w*",
    "smollm": r"smol(lm|vlm).*",
    "granite": r"granite.*",
    "falcon": r"falcon.*",
    "nova": r"nova",
    "ernie": r"ernie.*",
    "hunyuan": r"hunyuan.*",
    "doubao": r"doubao.*",
    "minimax": r"minimax.*",
}
_LLAVA = re.compile(r"llava.*")
_REASONING = re.compile(r"o[1-9]")  # OpenAI's o-series, only as the first word of a name
_WORDS = re.compile(r"[a-z0-9.]+")
_FAMILIES = {family: re.compile(pattern) for family, pattern in _PATTERNS.items()}


def families_of(model: str) -> frozenset[str]:
    """The families in the name of a model, such as {"qwen", "deepseek"} of deepseek-r1-distill-qwen-7b.

    A provider (`openai:`) and an organisation (`meta-llama/`) are not part of the name. LLaVA belongs to the family of
    its language model if the name tells it. Empty if no family is known.
    """
    words = _WORDS.findall(_bare(model))
    families = {name for name, pattern in _FAMILIES.items() if any(map(pattern.fullmatch, words))}
    if words and _REASONING.fullmatch(words[0]):
        families.add("gpt")
    if not families and any(map(_LLAVA.fullmatch, words)):
        families.add("llava")
    return frozenset(families)


def shared_families(judge: str, systems: Iterable[str]) -> dict[str, list[str]]:
    """System -> the families that it shares with the judge, for those that share one."""
    of_judge = families_of(judge)
    return {system: sorted(shared) for system in systems if (shared := of_judge & families_of(system))}


def _bare(model: str) -> str:
    """The name without its provider and organisation, in lower case."""
    from multimodal_eval.generate.registry import BUILT_IN

    provider, colon, name = model.lower().partition(":")
    text = name if colon and provider in BUILT_IN else model.lower()
    return text.rstrip("/").rsplit("/", 1)[-1]
