"""The conclusions at the top of a report, one sentence per question that the data answer."""

from multimodal_eval.report.verdict.of_report import verdicts_of
from multimodal_eval.report.verdict.sentence import Verdict

__all__ = ["Verdict", "verdicts_of"]
