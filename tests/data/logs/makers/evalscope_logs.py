"""Produce logs with evalscope: `python evalscope_logs.py FOLDER`, where evalscope is installed.

It needs no network. Its mock model gets scripted replies and answers small tasks of our own: choices, asked twice
each, a question about an image, and free answers, whose BLEU fails because NLTK's data is not there. The fixtures were
made with evalscope 1.14.1.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

CHOICES = [
    ("Which planet is the red one?", ["Venus", "Mars", "Jupiter", "Pluto"], "B"),
    ("What is 2 + 2?", ["3", "4", "5", "22"], "B"),
    ("Which is a cat?", ["lynx", "wolf", "fox", "bear"], "A"),
]
CHOSEN = ["ANSWER: B", "ANSWER: C", "ANSWER: B", "ANSWER: B", "ANSWER: D", "ANSWER: A"]
QUESTIONS = [("What is the capital of France?", "Paris"), ("Name the colour of blood.", "It is red")]
ANSWERS = ["Paris", "It is bright red"]


def png() -> bytes:
    """A red image of 2 x 2 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + b"\xff\0\0" * 2) * 2)
    header = struct.pack(">2I5B", 2, 2, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write a file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def main(folder: Path) -> None:
    """Write the data, and the logs of two runs."""
    from evalscope import TaskConfig, run_task
    from evalscope.api.model import ModelOutput, ModelUsage

    data = folder / "data"
    letters = "ABCD"
    write_lines(
        data / "mcq" / "toy_val.jsonl",
        [{"question": q, **dict(zip(letters, texts, strict=True)), "answer": a} for q, texts, a in CHOICES],
    )
    write_lines(data / "qa" / "toy.jsonl", [{"query": query, "response": answer} for query, answer in QUESTIONS])
    uri = f"data:image/png;base64,{base64.b64encode(png()).decode()}"
    parts = [{"type": "text", "text": "Which colour?"}, {"type": "image_url", "image_url": {"url": uri}}]
    write_lines(data / "vqa" / "toy.jsonl", [{"messages": [{"role": "user", "content": parts}], "answer": "red"}])

    def outputs(texts: list[str]) -> list[Any]:
        replies = [ModelOutput.from_content(model="mockllm", content=text) for text in texts]
        for number, reply in enumerate(replies):
            reply.usage = ModelUsage(input_tokens=20 + number, output_tokens=3, total_tokens=23 + number)
        return replies

    for name, dataset, subset, texts, repeats in (
        ("choices", "general_mcq", "toy", CHOSEN, 2),
        ("answers", "general_qa", "toy", ANSWERS, 1),
        ("images", "general_vqa", "toy", ["red"], 1),
    ):
        template = {"prompt_template": "{question}\n{choices}"} if name == "choices" else {}
        path = str(data / dataset.removeprefix("general_"))
        run_task(
            TaskConfig(
                model="mockllm",
                eval_type="mock_llm",
                model_args={"custom_outputs": outputs(texts)},
                datasets=[dataset],
                dataset_args={
                    dataset: {
                        "local_path": path,
                        "dataset_id": path,
                        "subset_list": [subset],
                        **template,
                    }
                },
                repeats=repeats,
                eval_batch_size=1,
                work_dir=str(folder / name),
                no_timestamp=True,
            )
        )
        _shorten(folder / name)


def _shorten(folder: Path) -> None:
    """Remove the description of the benchmark, and the paths of this machine in the messages of errors."""
    for path in folder.glob("reports/*/*.json"):
        report = json.loads(path.read_text(encoding="utf-8"))
        report |= {"dataset_description": "", "perf_metrics": None}
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for path in folder.glob("reviews/*/*.jsonl"):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            errors = (row["sample_score"]["score"]["metadata"] or {}).get("metric_errors", {})
            for metric, message in errors.items():
                errors[metric] = " ".join(message.split("\n")[:1] + message.split("\n")[2:3])
        write_lines(path, rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
