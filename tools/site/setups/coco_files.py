"""The files of COCO and VQA: captions_val2014.json, v2_mscoco_val2014_annotations.json, results.json.

`<!-- setup: coco-files vqa -->` makes results.json those of the questions, and `coco-files submissions` writes captions
of two systems, answers/alba.json and answers/boreas.json.
"""

from __future__ import annotations

import json
from pathlib import Path

from tools.site.samples import Record, samples
from tools.site.workspace import Workspace


def prepare(work: Workspace, results: str = "captions") -> None:
    """Write the files."""
    captions = samples("captions")
    _write(
        work.folder / "captions_val2014.json",
        {
            "images": [{"id": number} for number, _ in enumerate(captions)],
            "annotations": [
                {"id": number * 10 + place, "image_id": number, "caption": text}
                for number, sample in enumerate(captions)
                for place, text in enumerate(sample["references"])
            ],
        },
    )
    questions = samples("questions")
    answers = [
        {
            "question_id": number,
            "image_id": number,
            "answers": [{"answer": text} for text in sample["references"]],
            "answer_type": "other",
        }
        for number, sample in enumerate(questions)
    ]
    _write(work.folder / "v2_mscoco_val2014_annotations.json", {"annotations": answers})
    asked = [{"question_id": number, "question": sample["question"]} for number, sample in enumerate(questions)]
    _write(work.folder / "v2_OpenEnded_mscoco_val2014_questions.json", {"questions": asked})
    if results == "submissions":
        (work.folder / "answers").mkdir()
        for name in ("alba", "boreas"):
            _write(work.folder / "answers" / f"{name}.json", _captions(samples("captions", name)))
    elif results == "vqa":
        given = [
            {"question_id": number, "answer": sample["generated_answer"]} for number, sample in enumerate(questions)
        ]
        _write(work.folder / "results.json", given)
    else:
        _write(work.folder / "results.json", _captions(captions))


def _captions(records: list[Record]) -> list[Record]:
    return [{"image_id": number, "caption": sample["generated_answer"]} for number, sample in enumerate(records)]


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")
