"""What a run folder consists of. Every file in it is complete, because files are written atomically.

run.json                     description: settings, input, versions, signatures, part sizes, state
samples/part-00000.parquet   the checked samples
answers/, exchanges/         of a run that asked a model, see generate.answer_tables
answers/journal.jsonl        the exchanges of parts that are not complete; removed when all samples have an answer
verdicts/METRIC.part-…       of a judge, see judges.verdict_tables; its exchanges are exchanges/METRIC.part-…
verdicts/METRIC.jsonl        the verdicts of parts that are not complete; removed when all questions have a reply
exchanges.json               the checksums of the files in exchanges/, which differ from time to time
state/METRIC.bin             corpus statistics
scores/part-00000.parquet    one row per sample; the part is finished if this file exists
manifest.json                the checksums of the files in samples/, answers/, verdicts/, state/ and scores/
results.json                 the aggregates, and the checksum of the manifest; written last
lint.json                    warnings about the scores
report.html                  the HTML report, if a command has written one
classification.json          classes, confusions and annotators, if the composite is a macro F1
human.json                   human labels of the answers, if they come from a file; otherwise the samples have them
judges.json                  flips, length, agreement and calibration of the judges
scores.jsonl                 the scores as JSON lines, if a command has written them
progress.json                what the process that works on the run is doing; removed when the run ends well
checksums/                   the checksums of files that are not in the manifest yet
scratch/                     intermediate files of the workers; removed when the run is finished
replaced.partial/            the run that this one replaces; put back if the new input is refused
"""

from __future__ import annotations

from multimodal_eval.data.runs import checksums
from multimodal_eval.data.runs.storage import TEMPORARY

__all__ = ["REPLACED", "SCRATCH", "is_content"]

SCRATCH = "scratch"
REPLACED = f"replaced{TEMPORARY}"
_CONTENT = {
    *("run.json", "samples", "answers", "exchanges", "verdicts", "state", "scores", "results.json", "lint.json"),
    *("report.html", "classification.json", "judges.json", "human.json", "scores.jsonl", "progress.json"),
    *(checksums.MANIFEST, checksums.EXCHANGES, checksums.FOLDER, SCRATCH),
}


def is_content(name: str) -> bool:
    """Whether a name in a run folder is a file or folder of the run; others belong to the user."""
    return name in _CONTENT
