"""Files of VLMEvalKit: predictions `MODEL_DATASET.xlsx|tsv|json`, and evaluations with the scores of each row.

All cells are text, and stay what they are: `None`, `N/A` and `007` are answers. The columns `A`, `B`, `C` … are the
choices. An answer that is a Python list has several references. A prediction that starts with `Failed to obtain
answer` is a failure. Columns such as `hit` and `score` of an evaluation are scores.
"""

from __future__ import annotations

import csv
import io
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from multimodal_eval.data.logs.decoding import as_text, python_texts
from multimodal_eval.data.logs.log_format import Head, LogInfo, RecordedScore, as_score, not_a_score, score_column
from multimodal_eval.data.logs.xlsx_rows import read_xlsx
from multimodal_eval.data.readers.blocks import bare_suffix
from multimodal_eval.data.readers.formats import DELIMITERS, read_delimited, record_of_cells
from multimodal_eval.data.readers.json_file import read_json_array
from multimodal_eval.data.readers.problems import Columns, Problems, Record

__all__ = ["FORMAT"]

HARNESS = "vlmevalkit"
_NEEDED = ("index", "question", "prediction")
FAILURE = "Failed to obtain answer"
# Columns of evaluations that are scores of a row.
_SCORES = (
    *("hit", "score", "match", "correct", "acc", "is_correct", "eval_score", "verifier_score", "verifier_match"),
    *("judge_score", "safety_score", "effectiveness_score", "subjective_score", "objective_score", "reason_score"),
    *("average_score",),
)
# The beginning of the name of a common dataset, after that of a model.
_DATASETS = re.compile(
    r"(?<=.)_(MMBench|MMMU|MMStar|MMVet|MME|SEEDBench|POPE|ScienceQA|TextVQA|DocVQA|ChartQA|InfoVQA|OCRVQA|OCRBench|AI2D"
    r"|HallusionBench|MathVista|MathVision|MathVerse|RealWorldQA|GQA|VizWiz|COCO|BLINK|CCBench|LLaVABench|MUIRBench)"
    r"(?![a-z])"
)
_TRUTH = {"true": 1.0, "false": 0.0}
_RESULTS = ("_acc", "_score")  # the files with the means
_MOST_PREDICTIONS = 64 << 20  # bytes
_MOST_RESULTS = 1 << 20  # bytes


class VLMEvalKit:
    """The format of VLMEvalKit."""

    name, harness = HARNESS, HARNESS
    suffixes = (".xlsx", ".tsv", ".csv", ".json")
    files = "MODEL_DATASET.xlsx (or tsv, json), and its evaluations (xlsx, csv)"
    takes = "prediction, question, choices, answers, thinking, categories, scores of evaluations"

    def recognises(self, head: Head) -> bool:
        """By the columns: `index`, `question` and `prediction`, and no `id`."""
        if head.suffix == ".xlsx":
            problems = Problems()
            header = next((cells for _, cells in read_xlsx(head.path, problems)), [])
            if problems.total:  # which reading it will say
                return True
        elif head.suffix == ".json":
            return head.data.lstrip()[:1] == b"[" and head.has_keys(*_NEEDED) and b'"id"' not in head.data
        else:
            header = _header(head.data, DELIMITERS[head.suffix])
        return all(name in header for name in _NEEDED) and "id" not in header

    def part_name(self, path: Path) -> str:
        """The model and the dataset."""
        return path.name.partition(".")[0]

    def main_files(self, paths: Sequence[Path]) -> list[Path]:
        """Evaluations, and predictions without an evaluation; a link to another of the files is left out."""
        by_target = {path.resolve(): path for path in sorted(paths, key=lambda path: not path.is_symlink())}
        files = [path for path in paths if path in by_target.values()]
        return [path for path in files if not any(_evaluates(other, path) for other in files)]

    def records(self, path: Path, problems: Problems) -> Iterator[Record]:
        """One record per row."""
        predictions = _predictions(path)
        for number, row in _rows(path, problems):
            yield number, _record(row | _lost(row, predictions.get(row.get("index", ""))))

    def info(self, path: Path) -> LogInfo:
        """The scores of the columns, with the means of the files of results."""
        names: dict[str, None] = {}
        splits, failures, lost, rows = set[str](), 0, 0, 0
        predictions = _predictions(path)
        for _, row in _rows(path, Problems()):
            rows += 1
            lost += bool(_lost(row, predictions.get(row.get("index", ""))))
            failures += _is_failure(row.get("prediction"))
            splits.add(row.get("split", ""))
            names |= dict.fromkeys(name for name in _SCORES if _score(row.get(name)) is not None)
        notes = []
        if lost:
            notes.append(
                f"VLMEvalKit took cells such as None or NA in {lost} of {rows} rows for missing values before it "
                "scored them; here they are those of the predictions"
            )
        if failures and names:
            notes.append(
                f"{failures} of {rows} predictions are failures of the model's API. VLMEvalKit gives them a score; "
                "here they are unscored"
            )
        means, (model, task) = _means(path), _model_and_task(path)
        return LogInfo(
            HARNESS,
            model=model,
            task=task,
            scores=tuple(
                RecordedScore(
                    score_column(HARNESS, name),
                    own_mean=_mean(name, means) if len(splits) == 1 else None,
                    own_count=rows,
                )
                for name in names
            ),
            notes=tuple(notes),
        )


FORMAT = VLMEvalKit()


def _evaluates(path: Path, predictions: Path) -> bool:
    """Whether a file has the name of an evaluation of the predictions."""
    start = predictions.name.partition(".")[0]
    return path.parent == predictions.parent and path.name.startswith(f"{start}_")


def _predictions(path: Path) -> dict[str, dict[str, str]]:
    """The rows of the predictions beside an evaluation, by index; none if there are none, or if they are too large."""
    file = _predictions_file(path)
    if file is None or file.stat().st_size >= _MOST_PREDICTIONS:
        return {}
    rows = {row.get("index", ""): row for _, row in _rows(file, Problems())}
    return {index: row for index, row in rows.items() if "prediction" in row}


def _predictions_file(path: Path) -> Path | None:
    """The predictions that a file evaluates: the file beside it whose name is the longest beginning of its own."""
    stem = path.name.partition(".")[0]
    while "_" in stem:
        stem = stem.rpartition("_")[0]
        for suffix in (".xlsx", ".tsv", ".json"):
            file = path.with_name(f"{stem}{suffix}")
            if file.is_file():
                return file
    return None


def _lost(row: Mapping[str, str], prediction: Mapping[str, str] | None) -> dict[str, str]:
    """The cells of a prediction that its evaluation has lost: VLMEvalKit reads `None` or `NA` as a missing value."""
    cells = {} if prediction is None else prediction
    return {name: cell for name, cell in cells.items() if cell and cell != "nan" and row.get(name, cell) in ("", "nan")}


def _model_and_task(path: Path) -> tuple[str | None, str]:
    """The model and the dataset in the name of the predictions, MODEL_DATASET.

    The model is the folder `MODEL/T20261116-…` of a file, if the name starts with it. Otherwise the name must have one
    place only at which it can be split, or a dataset that is known.
    """
    stem = (_predictions_file(path) or path).name.partition(".")[0]
    folder = path.parent.parent.name if path.parent.name.startswith("T2") else path.parent.name
    if folder and stem.startswith(f"{folder}_"):
        return folder, stem.removeprefix(f"{folder}_")
    known = _DATASETS.search(stem)
    if known is not None:
        return stem[: known.start()], stem[known.start() + 1 :]
    model, _, task = stem.partition("_")
    return (model, task) if model and task and "_" not in task else (None, stem)


def _header(data: bytes, delimiter: str) -> list[str]:
    """The names of the columns of a delimited file."""
    text = data.decode("utf-8-sig", errors="replace")
    try:
        return next(csv.reader(io.StringIO(text), delimiter=delimiter), [])
    except csv.Error:
        return []


def _rows(path: Path, problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    """(number, cells by column) of every row, as text."""
    suffix = bare_suffix(path)
    if suffix == ".xlsx":
        yield from _table(read_xlsx(path, problems), problems, str(path))
    elif suffix == ".json":
        for line, item in read_json_array(path, problems):
            texts = {name: _json_text(value) for name, value in item.items()}
            yield line, {name: text for name, text in texts.items() if text is not None}
    else:
        for line, cells in read_delimited(path, problems, DELIMITERS.get(suffix, ",")):
            yield line, {name: str(cell) for name, cell in cells.items()}


def _table(
    rows: Iterable[tuple[int, list[str]]], problems: Problems, file: str
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows below the header; empty cells at the end of a row are not in the file."""
    header: list[str] | None = None
    for number, cells in rows:
        if header is None:
            header = cells
            repeated = [name for name, count in Counter(header).items() if name and count > 1]
            if repeated:
                problems.add("DUPLICATE", f"the header names {repeated[0]!r} more than once", file=file, line=number)
                return
            continue
        if len(cells) <= len(header):
            cells = cells + [""] * (len(header) - len(cells))
        record = record_of_cells(header, cells, problems, file, number)
        if record is not None and any(cells):
            yield number, {name: str(cell) for name, cell in record.items() if name}


def _json_text(value: object) -> str | None:
    """A value as the other formats write it. NaN, which is null in JSON, is an empty cell."""
    if isinstance(value, bool):
        return str(value)
    return repr(value) if isinstance(value, list | dict) else as_text(value)


def _is_failure(prediction: str | None) -> bool:
    return prediction is not None and prediction.strip().startswith(FAILURE)


def _score(cell: str | None) -> float | None:
    """A cell as a score: a number or a truth value."""
    if cell is None or not cell.strip():
        return None
    truth = _TRUTH.get(cell.strip().lower())
    try:
        return as_score(float(cell)) if truth is None else truth
    except ValueError:
        return None


def _record(row: Mapping[str, str]) -> Columns:
    record: Columns = {"id": row.get("index") or None, "question": row.get("question") or None}
    choices = _choices(row)
    if choices:
        record["choices"] = choices
    answer = row.get("answer", "")
    if answer.strip():
        several = python_texts(answer)
        references = None if several is None else [text for text in several if text.strip()]
        record |= {"references": references} if references else {"expected_answer": answer}
    prediction = row.get("prediction", "")
    if _is_failure(prediction):
        record["error"] = prediction
    else:
        record["generated_answer"] = prediction
    record["reasoning"] = row.get("thinking") or None
    record["extracted_answer"] = row.get("extracted") or None
    taken = {*_NEEDED, "answer", "thinking", "extracted", "image", "id", *choices}
    for name, cell in row.items():
        if name in _SCORES and (value := _score(cell)) is not None:
            record[score_column(HARNESS, name)] = value
        elif name not in taken and cell:
            record[_free(name)] = cell
            if name in _SCORES:
                record[score_column(HARNESS, name)] = not_a_score(cell)
    return record


def _choices(row: Mapping[str, str]) -> dict[str, str]:
    """The choices, from A on; an empty cell is not a choice."""
    letters = [letter for letter in string.ascii_uppercase if row.get(letter, "").strip()]
    return {letter: row[letter] for letter in letters} if letters[:1] == ["A"] else {}


# Columns of datasets whose names are fields of a sample with another meaning.
_FIELDS = frozenset("task audio prompt references caption relevant annotations group choices images video".split()) | {
    *("messages", "boxes", "epoch", "error", "metadata", "logprobs", "perplexity", "expected_behavior"),
    *("generated_answer", "model_output", "expected_answer"),
}


def _free(name: str) -> str:
    return f"row.{name}" if name in _FIELDS else name


def _means(path: Path) -> dict[str, dict[str, float]]:
    """The results beside an evaluation, by kind of file: column -> mean of all rows."""
    stem, results = path.name.partition(".")[0], dict[str, dict[str, float]]()
    while "_" in stem:
        for kind in _RESULTS:
            for suffix in (".csv", ".tsv", ".xlsx"):
                file = path.with_name(f"{stem}{kind}{suffix}")
                if kind not in results and file != path and file.is_file() and file.stat().st_size < _MOST_RESULTS:
                    results[kind] = _overall([row for _, row in _rows(file, Problems())])
        stem = stem.rpartition("_")[0]
    return results


def _overall(rows: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """The row about all samples."""
    named = [row for row in rows if row.get("split", "").lower() in ("overall", "all")]
    row = rows[0] if len(rows) == 1 else named[0] if named else {}
    return {name: value for name, cell in row.items() if (value := _score(cell)) is not None}


def _mean(name: str, means: Mapping[str, Mapping[str, float]]) -> float | None:
    """The mean of a score as VLMEvalKit reports it: `hit` as it is, the others in percent."""
    kinds = {"hit": ("_acc",), "eval_score": ("_acc",), "score": ("_score", "_acc")}.get(name, ())
    for kind in kinds:
        for column in ("acc", "aAcc", "Overall"):
            if column in means.get(kind, {}):
                return means[kind][column]
    return None
