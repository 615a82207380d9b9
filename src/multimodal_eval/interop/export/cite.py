"""What a paper says about a run: a paragraph to paste, the signatures, and BibTeX.

The paragraph has each value with its interval and how that was computed, how many of the samples are scored, the rule
that reads the answers, and the versions that computed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from multimodal_eval.benchmarks.recipes import named_recipe, recipe_of
from multimodal_eval.core.display import printed
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.records import statistics_of
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.figure_tables import failures_as
from multimodal_eval.display.wording import counted, estimate
from multimodal_eval.interop.export.files import IDENTITY, UNNAMED, identity_of, published
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.export.row_tables import metrics_of

__all__ = ["OPTIONS", "RELEASE", "export"]

OPTIONS = Options(**IDENTITY, metrics=Option(list[str] | None, None, help="the metrics; null for all"))
RELEASE = ("0.2.0", "2026-11-19")  # the last one and its date, as in CITATION.cff
_KINDS = {"mean": "a mean over samples", "corpus": "a corpus score", "weighted mean": "a weighted mean"}
_SHOWN = {"python": "Python", "numpy": "NumPy"}
_BIBTEX = """@software{{multimodal_eval,
  title = {{multimodal-eval}},
  author = {{{{The multimodal-eval authors}}}},
  version = {{{version}}},{year}
  note = {{Exact, offline scores with intervals for what multimodal models say}}
}}"""


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """One paragraph per run, then the BibTeX entry of each version."""
    versions = dict.fromkeys(run.info.versions["multimodal_eval"] for run in runs)
    paragraphs = ["\n\n".join(_of_run(run, options)) for run in runs]
    return Exported(text="\n\n".join([*paragraphs, *map(_bibtex, versions)]) + "\n")


def _of_run(run: Run, options: OptionValues) -> Iterator[str]:
    """The paragraph, and the signatures below it."""
    metrics = metrics_of(run, options["metrics"])
    yield " ".join([_subject(run, options), *(_value(run, name) for name in metrics), *_origin(run), _computed(run)])
    signed = [run.entries[name].signed for name in metrics]
    yield "\n".join(["Signatures:", *(f"- `{signature}`" for signature in signed if signature)])


def _subject(run: Run, options: OptionValues) -> str:
    """Which answers to which data."""
    known, origin = identity_of(run, options), run.info.config.origin
    model = known.model_name if known.developer == UNNAMED else known.model
    data = options["dataset"] or (origin.title if origin is not None else None) or known.dataset
    whose = "The answers" if model == data else f"The answers of {model} to {data}"  # neither has a name
    return f"{whose} were scored ({counted(run.outcome.n, 'sample')}{run.info.config.selection})."


def _value(run: Run, name: str) -> str:
    """A metric in one sentence; a second one if samples are unscored, and one about a judge."""
    shown, raw = published(run.entries[name])
    if shown.value is None:
        return f"{printed(name)} has no value ({shown.method})."
    words = f"{printed(name)}, {_KINDS.get(run.kind_of(name) or '', 'a score')}, is {_interval(shown)}, "
    if shown.labels is not None:
        words += f"corrected by {counted(shown.labels, 'human label')}"
        words += f", uncorrected {_interval(raw)}" if raw is not None else ""
    else:
        words += f"with {shown.n_scored:,} of {shown.n_total:,} samples scored"
    sentences = [words + "."]
    failed, counts_as = counted(shown.failed or 0, "failed answer"), failures_as([run.kind_of(name)])
    if shown.with_failures is not None and shown.failed:
        sentences.append(f"Counting the {failed} {counts_as}, it is {_interval(shown.with_failures)}.")
    if shown.without_failures is not None:
        without = _interval(shown.without_failures)
        sentences.append(f"Failed answers ({shown.failed:,}) count {counts_as}; without them, it is {without}.")
    if (rule := run.info.signatures[name].settings.get("rule") if name in run.info.signatures else None) is not None:
        sentences.append(f"Answers were read by the rule {rule}.")
    if name in run.info.config.judges and shown.labels is None:
        sentences.append("It is what a judge says, without correction by human labels.")
    return " ".join(sentences)


def _interval(figure: Figure) -> str:
    """`1.44 [1.07, 1.90] (95% Wilson interval of a mean, 24 samples)`."""
    return f"{estimate(figure.value, figure.low, figure.high)} ({figure.method})"


def _origin(run: Run) -> Iterator[str]:
    """What a benchmark's own authors want to be cited by."""
    origin = run.info.config.origin
    file = None if origin is None else named_recipe(origin.name)
    if origin is not None and file is not None:
        cited = recipe_of(file).task.citation
        yield f"The benchmark is {origin.title or origin.name}, version {origin.version} of its recipe" + (
            f" ({cited.rstrip('.')})." if cited else "."
        )


def _computed(run: Run) -> str:
    """What computed the scores: this package, or the program whose log was imported."""
    versions, log = run.info.versions, run.info.imported
    what = (
        "Scores" if log is None else f"Scores are those of {log.harness} {log.version or ''}".rstrip() + "; intervals"
    )
    also = ", ".join(f"{shown} {versions[name]}" for name, shown in _SHOWN.items() if name in versions)
    ours = f"multimodal-eval {versions['multimodal_eval']} (statistics {statistics_of(run.info)}, {also})"
    return f"{what} were computed by {ours}."


def _bibtex(version: str) -> str:
    year = f"\n  year = {{{RELEASE[1][:4]}}}," if version == RELEASE[0] else ""
    return _BIBTEX.format(version=version, year=year)
