"""Why a submission was refused, in words for everyone: without ids, answers, references and paths.

The full reason quotes what is wrong, which only the organiser and the participant may see. Here are only texts that are
written in this file, with the code and the number of the problems.
"""

from __future__ import annotations

from collections import Counter

from multimodal_eval.core.errors import InputError

__all__ = ["CRASHED", "UNKNOWN", "UNREADABLE", "public_reason"]

CRASHED = "the process that scored it crashed"
UNREADABLE = "A file of the submission cannot be read."
UNKNOWN = "The submission could not be scored."
_MEANINGS = {
    "UNMATCHED": "ids without an answer, or answers without a sample",
    "MISSING": "ids without an answer",
    "UNKNOWN": "answers to ids that the data do not have",
    "MISSING_REPLY": "replies without an answer",
    "MISSING_PERPLEXITY": "replies without a perplexity",
    "MISSING_ID": "records without an id",
    "NO_ANSWER": "records without an answer",
    "NO_PREDICTION": "no predictions for the task",
    "UNKNOWN_LABEL": "labels that the task does not have",
    "DUPLICATE": "ids that occur twice",
    "CONFLICT": "values that contradict the data",
    "TYPE": "values of the wrong type",
    "RANGE": "numbers outside their range",
    "NONFINITE": "numbers that are not finite",
    "LENGTH": "lists or rows of the wrong length",
    "BLANK": "blank answers",
    "TOO_LONG": "files or texts that are too large",
    "EXPANSION": "a file whose content is far larger than the file",
    "TRUNCATED": "a file that ends too early",
    "ENCODING": "bytes that are not valid UTF-8",
    "SYNTAX": "invalid JSON",
    "NESTING": "values that are nested too deeply",
    "CONTROL_CHAR": "control characters",
    "UNKNOWN_COLUMN": "a missing column",
    "COLUMNS": "a missing column",
    "FORMAT": "files of another format",
    "MEMBER": "an archive with other files",
    "NOT_FOUND": "a missing file",
    "EMPTY": "an empty file",
    "NOTHING_SCORED": "no sample that the metric can score",
    "UNSCORED": "samples that cannot be scored",
    "RULE": "replies that break a rule of the contest",
    "TOO_MANY": "too many problems to count",
}


def public_reason(error: BaseException) -> str:
    """The kinds of problems, and how many there are of each."""
    if not isinstance(error, InputError) or not error.problems:
        return UNKNOWN
    counts = Counter(problem.code if problem.code in _MEANINGS else "" for problem in error.problems)
    kinds = [f"{_meaning(code)}{f' ({count:,} problems)' if count > 1 else ''}" for code, count in counts.items()]
    more = error.total - len(error.problems)
    return "; ".join([*kinds, *([f"{more:,} further problems"] if more > 0 else [])])


def _meaning(code: str) -> str:
    return f"{code}: {_MEANINGS[code]}" if code else "other problems of the input"
