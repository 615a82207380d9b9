"""Texts that try to run as code, and a run folder with these texts in every field that a page shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from multimodal_eval.analysis.compare import MetricComparison, Pair, RunComparison, System
from multimodal_eval.analysis.composite import PartWeight, RunSensitivity, Sensitivity
from multimodal_eval.core.conversation import Message, MessagePart
from multimodal_eval.core.judge_records import JudgesReport
from multimodal_eval.core.records import RUN_FORMAT, LintReport, Results, RunInfo
from multimodal_eval.core.sample import Box, Sample
from multimodal_eval.core.score import Score
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.sample_table import key_columns, score_columns, to_table
from multimodal_eval.generate.answer_tables import answer_table, exchange_table
from multimodal_eval.generate.protocol import Answer, Exchange, Outcome
from multimodal_eval.judges.form import Place
from multimodal_eval.judges.verdict_tables import (
    Judged,
    exchanges_kind,
    verdict_exchanges,
    verdict_table,
    verdicts_kind,
)
from multimodal_eval.run.progress import ProgressRecord, write_progress

RUN = "window.__pwned=1;alert(1)"
ADDRESS = "http://pwned.example/x"

TEXTS = (
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"--><script>{RUN}</script><!--",
    f"]]><script>{RUN}</script>",
    f'"><img src=x onerror="{RUN}">',
    f"'><img src='{ADDRESS}' onerror='{RUN}'>",
    f'" onmouseover="{RUN}" autofocus onfocus="{RUN}" x="',
    f"` onclick=`{RUN}`",
    f"<svg onload={RUN}><animate onbegin={RUN} attributeName=x></svg>",
    f'<svg><use href="data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg onload={RUN}>#x"/></svg>',
    f'<math><mtext><table><mglyph><style><img src=x onerror="{RUN}"></style></mglyph></table></mtext></math>',
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe><object data="javascript:{RUN}"></object>',
    f'<a href="javascript:{RUN}">click</a><base href="{ADDRESS}">',
    f'<form action="{ADDRESS}"><button formaction="javascript:{RUN}">go</button></form>',
    f'<meta http-equiv="refresh" content="0;url={ADDRESS}"><link rel=stylesheet href="{ADDRESS}">',
    f"javascript:{RUN}//",
    f"data:text/html,<script>{RUN}</script>",
    f"{{{{7*7}}}}{{% for x in ().__class__.__base__.__subclasses__() %}}{{% endfor %}} ${{7*7}} #{{7*7}} {RUN}",
    f"\u202e\u2066<script>{RUN}</script>\u2069\u202c \u200f\u200e",
    f"</bdi></span></td></table><plaintext><script>{RUN}</script>",
    f"a\u2028b\u2029c\x1b[31m\x7f\ufeff<script>{RUN}</script>",
    f"x{{}}</style>*{{background:url({ADDRESS})}}@import '{ADDRESS}';",
    f"<style>*{{display:none;background:url({ADDRESS})}}</style><div style='position:fixed;inset:0'>",
    f"&lt;script&gt;{RUN}&lt;/script&gt;&#60;script&#62;{RUN}&#60;/script&#62;",
    "\\u003cscript\\u003e" + RUN + "\\u003c/script\\u003e\\",
    f"<details open ontoggle={RUN}><template><script>{RUN}</script></template><video><source onerror={RUN}></video>",
    f'<noscript><p title="</noscript><img src=x onerror={RUN}>"><textarea></textarea><xmp><script>{RUN}</script></xmp>',
    f"＜script＞{RUN}＜/script＞<ſcript>{RUN}</ſcript>",  # letters that normalization turns into ASCII
    '{"__proto__":{"x":1}}],"charts":{}}',
    "__proto__",
    "null",
    "undefined NaN Infinity",
    " ",
    "W" * 20_000,
    ("<b>" * 3_000) + RUN,
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙" + "\u0301" * 300,
    "\ud7ff\ue000\uffff\U0010ffff",
)
JUDGED = "meteor"  # the metric that has a judge
LONGEST_JOINED = 2_000
# All texts in one, for fields that a page shows once.
ALL = "\n".join(text for text in TEXTS if len(text) <= LONGEST_JOINED)
PAYLOADS = [*TEXTS, ALL]
assert len(PAYLOADS) % 4 == 0, "a report shows the samples in four groups of equal size"
SCORED = sum(number % 4 != 0 for number in range(len(PAYLOADS)))  # see _score


def hostile_run(folder: Path) -> Run:
    """A run with one sample per text, with the text in each field. A report shows all samples."""
    texts = PAYLOADS
    metrics = [f"one {texts[0]}"[:120], f"two.{texts[1]}"[:120].replace(":", ""), "meteor", "hidden_metric"]
    names = [*metrics, "composite_score"]
    samples = [_sample(number, text) for number, text in enumerate(texts)]
    entry = _entry(texts)
    signatures = {
        name: {"text": f"{name}|{ALL}", "settings": {"metric": name, "version": "1"}, "options": {}} for name in names
    }
    info: dict[str, Any] = {
        "created": ALL,
        "finished": ALL,
        "versions": {text: text for text in texts},
        "task": ALL,
        "metrics": metrics,
        "bounds": {name: [0, 1] for name in names},
        "unavailable": {text: text for text in texts},
        "seed": 0,
        "config": {
            "map": {text: text for text in texts},
            "options": {text: {text: text} for text in texts},
            "task": ALL,
            "strata": {"by": "dialogue_type", "weights": dict.fromkeys(texts, 0.01)},
            "generation": {
                **dict.fromkeys(("model", "prompt", "template", "system"), ALL),
                "parameters": {"stop": texts, "reasoning_effort": ALL, "extra": {text: text for text in texts}},
            },
            "judges": {JUDGED: {"models": [{"model": ALL, "base_url": ALL}], "question": ALL}},
        },
        "input": [{"path": text, "bytes": 1, "sha256": text} for text in texts],
        "counts": dict.fromkeys(("samples", "blank_answers", "unmatched_data", "unmatched_predictions"), 0),
        "input_notes": texts,
        "parts": [len(PAYLOADS)],
        "signatures": signatures,
        "generation": {
            **dict.fromkeys(("signature", "base_url", "currency", "stopped"), ALL),
            "settings": {"model": ALL, **{text: text for text in texts}},
            "models": texts,
            "statuses": dict.fromkeys(texts, 1),
            "cost": 1.5,
            "population": 9,
        },
        "judging": {
            JUDGED: {
                "settings": {text: text for text in texts},
                "addresses": texts,
                "models": texts,
                "statuses": dict.fromkeys(texts, 1),
                "cost": 2.5,
                "currency": ALL,
            }
        },
        "imported": {
            **dict.fromkeys(("harness", "version", "model", "task"), ALL),
            "files": texts,
            "settings": {text: text for text in texts},
            "reported": [
                {"metric": text, "value": 0.25, "aggregation": text if number % 2 else None}
                for number, text in enumerate(texts)
            ],
            "notes": texts,
        },
        "state": "done",
    }
    common = {"format": RUN_FORMAT, "source": None}
    stored = RunFolder.create(folder, msgspec.convert({**common, **info}, RunInfo))
    stored.write_part("samples", 0, to_table(samples, 0))
    stored.write_part("answers", 0, answer_table(0, [_exchange(text) for text in texts]))
    stored.write_part("exchanges", 0, exchange_table(0, [_exchange(text) for text in texts]))
    verdicts = [Judged(row, Place(0), _exchange(text)) for row, text in enumerate(texts)]
    stored.write_part(verdicts_kind(JUDGED), 0, verdict_table(verdicts))
    stored.write_part(exchanges_kind(JUDGED), 0, verdict_exchanges(verdicts))
    columns = key_columns(samples, 0)
    for index, name in enumerate(names):
        columns |= score_columns(name, [_score(number, index, text) for number, text in enumerate(texts)])
    stored.write_part("scores", 0, pa.table(columns))
    by_type = {text: {"n": len(PAYLOADS), "metrics": dict.fromkeys(names, entry)} for text in texts}
    columns = {f"column {text}": {ALL: {"n": len(PAYLOADS), "metrics": {names[0]: entry}}} for text in texts[::4]}
    results = {
        "task": ALL,
        "n": len(PAYLOADS),
        "metrics": {
            **{text: {**entry, "direction": "higher", "signature": None} for text in texts},
            **{name: {**entry, "direction": "higher", "signature": f"{name}|{ALL}"} for name in metrics},
        },
        "composite": {**entry, "signature": f"composite_score|{ALL}"},
        "slices": {"dialogue_type": by_type, **columns},
        "notes": texts,
    }
    stored.write_results(msgspec.convert(results, Results))
    lint = {"format": 2, "n": len(PAYLOADS), "findings": [_finding(text) for text in texts]}
    stored.write_lint(msgspec.convert(lint, LintReport))
    stored.write_classification(_classification(texts))
    stored.write_judges(_judges(texts))
    return Run(folder)


def hostile_progress(folder: Path) -> None:
    """A run in progress with these texts in everything that its process records."""
    info = msgspec.convert(
        {
            "format": RUN_FORMAT,
            "source": None,
            "state": "reading",  # before there are signatures
            "created": ALL,
            "versions": {},
            "task": ALL,
            "metrics": PAYLOADS,
            "unavailable": {},
            "seed": 0,
            "config": {},
            "parts": [4],
        },
        RunInfo,
    )
    notes = [text[:400] for text in TEXTS]
    record = {"stage": ALL, "done": 1, "total": 4, "started": 1.0, "advanced": 2.0, "notes": notes}
    record |= {"host": ALL, "pid": 1, "ended": None}
    for name, changes in (("live", {}), ("stopped", {"ended": ALL})):
        stored = RunFolder.create(folder / name, info)
        write_progress(stored, msgspec.convert({**record, **changes}, ProgressRecord))


def _exchange(text: Any) -> Exchange:
    """A reply with the text in every field; its status is not one of ours."""
    answer = Answer(text, reasoning=text, refusal=text, model=text, reply=text)
    return Exchange(Outcome(text, answer, text), text, 1.0, 0.5)


def _sample(number: int, text: str) -> Sample:
    return Sample(
        id=f"{number} {text}",
        image=text,
        audio=text,
        question=text,
        prompt=text,
        expected_answer=f"e {text}",
        references=[text, f"r {text}"],
        caption=f"c {text}",
        generated_answer=text,
        expected_behavior=text,
        annotations={text: text},
        group=text,
        choices={text: text, "B": text} if number % 2 else [text, text],
        images=[text, text],
        video=text,
        messages=[
            Message(text or " ", text, {text: text}),
            Message(
                "user", [MessagePart("text", text), MessagePart("image", text), MessagePart(text, None, {text: [text]})]
            ),
        ],
        boxes=[Box((0.0, 0.0, 1.0, 1.0), text)],
        epoch=number,
        error=text if number % 7 == 0 else None,
        metadata={text: text, f"list {text}": [text, {text: text}], "dialogue_type": text},
    )


def _score(number: int, metric: int, text: str) -> Score:
    details = {text: text, "list": [text], "deep": {text: [text]}, "verdicts": [{text: text, "deep": [text]}]}
    if number % 4 == 0:  # a quarter is unscored
        return Score(None, "error", text, details=details, warning=text)
    return Score(((number * (7 + 6 * metric)) % 101) / 101, "ok", details=details, warning=text)


def _entry(texts: list[str]) -> dict[str, Any]:
    return {
        "value": 0.5,
        "stderr": 0.1,
        "low": 0.4,
        "high": 0.6,
        "method": ALL,
        "n_scored": SCORED,
        "n_total": len(PAYLOADS),
        "unscored": dict.fromkeys(texts, len(PAYLOADS) - SCORED),
        "reasons": [{"reason": text, "count": len(PAYLOADS) - SCORED} for text in texts],
        "warnings": dict.fromkeys(texts, 1),
        "parts": {text: {"value": 0.5, "stderr": 0.1, "low": 0.4, "high": 0.6, "method": text} for text in texts},
        "signature": ALL,
    }


def _finding(text: str) -> dict[str, Any]:
    return {
        "code": text,
        "metric": text,
        "count": 1,
        "total": 2,
        "share": 0.5,
        "what": text,
        "why": text,
        "examples": [text],
        "answers": [{"answer": text, "count": 1}],
    }


def _classification(texts: list[str]) -> dict[str, Any]:
    figure = {"value": 0.5, "stderr": 0.1, "low": 0.4, "high": 0.6, "method": ALL}
    class_scores = {"precision": 1, "recall": 1, "f1": 1, "support": 2, "predicted": 2}
    confusions = [[0] * len(texts) for _ in texts]
    scores = {"macro_f1": figure, "accuracy": figure, "n_scored": 4, "per_class": dict.fromkeys(texts, class_scores)}
    kappas = [{"name": text, "reason": text, "n_units": 3, "n_annotators": 2, **figure} for text in texts]
    return {
        "task": ALL,
        "files": texts,
        "n": 4,
        "official": "strict",
        "official_because": ALL,
        "labels": texts,
        "scores": {
            "strict": {**scores, "confusion_matrix": confusions},
            "majority": {"macro_f1": None, "accuracy": None, "reason": ALL},
        },
        "soft": None,
        "outside_taxonomy": {"predictions": dict.fromkeys(texts, 1), "gold": {}, "annotations": {}},
        "blank_predictions": 0,
        "human_ceiling": None,
        "consensus": None,
        "agreement": {
            "level": "nominal",
            "settings": {"weights": None, "grouped": False, "resamples": 0, "seed": 0},
            "units": dict.fromkeys(("total", "no_rating", "one_rating", "compared", "unanimous"), 3),
            "figures": kappas,
            "annotators": [],
            "pairs": [{"kappa": kappa, "annotators": [kappa["name"], kappa["name"]]} for kappa in kappas],
        },
        "notes": texts,
    }


def _judges(texts: list[str]) -> JudgesReport:
    figure = {"value": 0.5, "stderr": 0.1, "low": 0.4, "high": 0.6, "method": ALL}
    unknown = {"value": None, "stderr": None, "low": None, "high": None, "method": ALL}
    rate = {"count": 1, "total": 2, "value": 0.5, "low": 0.1, "high": 0.9}
    names = ("judge", "human", "corrected", "kappa", "correlation", "rogan_gladen")
    known = {
        "form": ALL,
        "models": texts,
        "questions": 4,
        "unreadable": dict.fromkeys(texts, 2),
        "failed": dict.fromkeys(texts, 2),
        "injections": 3,
        "flips": dict.fromkeys(("flips", "disagreements", "first"), rate),
        "length": {"longer_wins": rate, "effect": unknown, "win_rate": figure, "controlled": figure},
        "panel": [{"model": text, "mean": figure, "bias": figure} for text in texts],
        "agreement": [{"between": text, "level": text, "alpha": unknown, "units": 2} for text in texts],
        "variance": {"samples": 1, "judges": 1, "repeats": 1, "stderr_of_samples": 0.1, "stderr_of_judge": 0.1},
        "calibration": {
            **dict.fromkeys(names, figure),
            **dict.fromkeys(("agreement", "sensitivity", "specificity"), rate),
            "column": ALL,
            "labels": 3,
            "samples": 4,
            "power": 0.5,
            "worth": 9.0,
            "curve": [{"judge": 0.5, "human": 0.4, "low": 0.1, "high": 0.9, "n": 3}],
            "notes": texts,
        },
        "warnings": texts,
    }
    return msgspec.convert({"metrics": {JUDGED: known, ALL: known}}, JudgesReport)


def hostile_comparison() -> RunComparison:
    """A comparison of runs and metrics with these names."""
    texts = PAYLOADS
    metrics = [
        MetricComparison(
            name=text,
            direction="lower",
            signature=text,
            samples=3,
            left_out=1,
            clusters=None,
            systems=(System(text, 0.5, 0.1, 0.4, 0.6, text, 1),),
            pairs=(Pair(text, text, 0.1, 0.1, 0.0, 0.2, text, 0.5, 0.5, 1, 2, 3, None, None, text),),
        )
        for text in texts
    ]
    return RunComparison(
        runs=tuple(texts[:2]),
        samples=4,
        rounds=10,
        seed=0,
        level=0.95,
        numbers=tuple(metrics),
        left_out=tuple(texts),
    )


def hostile_sensitivity() -> Sensitivity:
    """The sensitivity to the weights of parts with these names."""
    texts = PAYLOADS
    parts = tuple(PartWeight(text, 0.5, 0.5, 0.5, None) for text in texts)
    runs = [
        RunSensitivity(text, 0.5, 0.1, 0.4, 0.6, parts[:1] if number else parts, (1.0,))
        for number, text in enumerate(texts[::4])
    ]
    return Sensitivity(
        weights=dict.fromkeys(texts, 0.01),
        samples=3,
        left_out=1,
        concentration=50.0,
        draws=10,
        seed=0,
        runs=tuple(runs),
        flips=tuple((text, text, 0.5) for text in texts),
    )
