"""Invented interviews for the tests and the guide: `python -m tests.contests.clarity.make_data` writes the folder data.

Nothing in them was said by anybody. `dev.csv` has one gold label per row. `test.csv` has three annotators, who make
mistakes, leave cells empty, use other spellings, and twice use a label outside the taxonomy. Two systems predict.
"""

from __future__ import annotations

import csv
import io
import random
import zipfile
from pathlib import Path

from multimodal_eval.contests.clarity.labels import CLARITY_LABELS, EVASION_LABELS, EVASION_TO_CLARITY

FOLDER = Path(__file__).parent / "data"
ANNOTATORS = ("annotator1", "annotator2", "annotator3")
COLUMNS = (
    "index",
    "interview",
    "question",
    "interview_question",
    "interview_answer",
    "clarity_label",
    "evasion_label",
    *ANNOTATORS,
)
OUTSIDE = "2.5 Contradictory"
SPELLINGS = {
    "Partial/half-answer": ("Partial", "half-answer", "2.3 Partial/half-answer"),
    "Declining to answer": ("Declining", "declining to answer."),
    "Explicit": ("explicit", "1.1 Explicit"),
}

TOPICS = (
    "the harbour bridge",
    "the school budget",
    "the new tram line",
    "the fishing quota",
    "the library's hours",
    "the flood wall",
    "the night buses",
    "the market square",
)
QUESTIONS = (
    "When will {} be finished?",
    "Will you vote for {}?",
    "How much does {} cost?",
    "Who is responsible for {}?",
)
ANSWERS = {
    "Explicit": "Yes. On {} my answer is yes, and it will be done by June.",
    "Implicit": "I signed the papers on {} with a smile, if that helps you.",
    "General": "Projects such as {} always take patience, money and good people.",
    "Partial/half-answer": "Of {} I can name the first half: the ground is bought.",
    "Dodging": "What the town really talks about is not {} but the summer fair.",
    "Deflection": "You should rather ask why the last council never touched {}.",
    "Declining to answer": "I will not speak about {} before the committee has met.",
    "Claims ignorance": "I honestly do not know how things stand with {}.",
    "Clarification": "Do you mean {} as planned, or what was built?",
}
# How often each label is right, as uneven as in real answers.
SHARES = dict(zip(EVASION_LABELS, (30, 14, 12, 6, 16, 10, 6, 4, 3), strict=True))
# The labels with which each label is confused.
NEIGHBOURS = {
    "Explicit": ("Implicit", "General"),
    "Implicit": ("Explicit", "General"),
    "General": ("Implicit", "Dodging"),
    "Partial/half-answer": ("General", "Implicit"),
    "Dodging": ("Deflection", "General"),
    "Deflection": ("Dodging", "General"),
    "Declining to answer": ("Dodging", "Claims ignorance"),
    "Claims ignorance": ("Declining to answer", "Dodging"),
    "Clarification": ("Claims ignorance", "Dodging"),
}


def erring(draw: random.Random, label: str, right: float) -> str:
    """The label, or one with which it is confused."""
    return label if draw.random() < right else draw.choice(NEIGHBOURS[label])


def rows(draw: random.Random, count: int, first: int) -> list[dict[str, str]]:
    """Questions and answers, with the label for which each answer was written."""
    interviews = []
    for number in range(count):
        label = draw.choices(EVASION_LABELS, list(SHARES.values()))[0]
        topic, question = draw.choice(TOPICS), draw.choice(QUESTIONS)
        text = question.format(topic)
        interviews.append(
            {
                "index": str(first + number),
                "interview": f"interview-{number // 4 + 1:02d}",
                "question": text,
                "interview_question": f"Mayor, two things. {text} And will you stand again?",
                "interview_answer": ANSWERS[label].format(topic),
                "clarity_label": EVASION_TO_CLARITY[label],
                "evasion_label": label,
                **dict.fromkeys(ANNOTATORS, ""),
            }
        )
    return interviews


def annotated(draw: random.Random, interviews: list[dict[str, str]]) -> None:
    """Give every row three opinions and remove its single label."""
    for number, row in enumerate(interviews):
        for annotator, right in zip(ANNOTATORS, (0.85, 0.8, 0.65), strict=True):
            label = erring(draw, row["evasion_label"], right)
            spellings = SPELLINGS.get(label, ())
            row[annotator] = draw.choice(spellings) if spellings and draw.random() < 0.3 else label
        if number % 7 == 3:
            row[draw.choice(ANNOTATORS)] = ""
        row["truth"] = row["evasion_label"]
        row["evasion_label"] = ""
    interviews[10][ANNOTATORS[2]] = interviews[40][ANNOTATORS[1]] = OUTSIDE
    for row in (interviews[20], interviews[55]):  # no annotator gave a label
        row.update(dict.fromkeys(ANNOTATORS, ""))
    # Three opinions, three labels: a tie that is broken alphabetically.
    interviews[5].update(zip(ANNOTATORS, ("Implicit", "General", "Dodging"), strict=True))


def table(columns: tuple[str, ...], records: list[dict[str, str]]) -> bytes:
    """The rows as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue().encode()


def contest_zip(labels: list[str], name: str = "prediction") -> bytes:
    """The contest's upload."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        member = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
        archive.writestr(member, "".join(f"{label}\n" for label in labels), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def system(draw: random.Random, interviews: list[dict[str, str]], right: float) -> list[dict[str, str]]:
    """The predictions of a system."""
    predictions = []
    for row in interviews:
        evasion = erring(draw, row.get("truth") or row["evasion_label"], right)
        clarity = EVASION_TO_CLARITY[evasion] if draw.random() < 0.95 else draw.choice(CLARITY_LABELS)
        predictions.append({"id": row["index"], "clarity_pred": clarity, "evasion_pred": evasion})
    return predictions


def files(seed: int = 1) -> dict[str, bytes]:
    """The content of every file, by name."""
    draw = random.Random(seed)
    dev, test = rows(draw, 72, 1), rows(draw, 96, 1001)
    annotated(draw, test)
    contents = {"dev.csv": table(COLUMNS, dev), "test.csv": table(COLUMNS, test)}
    columns = ("id", "clarity_pred", "evasion_pred")
    for name, right in (("alba", 0.75), ("boreas", 0.55)):
        contents[f"{name}.dev.csv"] = table(columns, system(draw, dev, right))
        predictions = system(draw, test, right)
        contents[f"{name}.csv"] = table(columns, predictions)
        contents[f"{name}.evasion.zip"] = contest_zip([row["evasion_pred"] for row in predictions])
        contents[f"{name}.clarity.zip"] = contest_zip([row["clarity_pred"] for row in predictions])
    return contents


if __name__ == "__main__":
    for file, content in files().items():
        (FOLDER / file).write_bytes(content)
