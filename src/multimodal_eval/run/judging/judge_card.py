"""The card of a judge: its settings, and what it is asked about a sample."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.turns import Draft
from multimodal_eval.judges.built_in_judges import judge_text
from multimodal_eval.judges.forms.by_name import form_of
from multimodal_eval.run.judging.files import is_file, read_judge

__all__ = ["judge_card"]


def judge_card(source: str) -> str:
    """The file of a judge, and the request for a sample whose fields are their names in capitals."""
    judge = read_judge(source)
    text = Path(source).read_text(encoding="utf-8") if is_file(source) else judge_text(source)
    form = form_of(judge)
    low, high = form.bounds
    lines = [
        text.rstrip(),
        "",
        f"# Range: {low:g} to {high:g}. Needs: {', '.join(form.needs)}.",
        "# What the judge is asked, for a sample whose fields are their names in capitals:",
        "",
        *(line for order in form.orders[:1] for draft in form.drafts(_sample(judge), order) for line in _lines(draft)),
    ]
    return "\n".join(lines) + "\n"


def _sample(judge: JudgeConfig) -> Sample:
    return Sample(
        "ID",
        question="QUESTION",
        references=["REFERENCE"],
        generated_answer="ANSWER",
        image="IMAGE",
        metadata={judge.baseline: ["OTHER"] if judge.form == "listwise" else "OTHER"},
    )


def _lines(draft: Draft) -> list[str]:
    parts = [part if isinstance(part, str) else f"<{part.kind}>" for part in draft.parts]
    return [f"[{draft.role}]", *parts]
