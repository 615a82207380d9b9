"""The models of `examples/models` look at images, listen to speech and read text, and their answers are scored.

Needs rapidocr, moonshine-voice, espeak-ng and the weights of SmolLM2: `.ci/long models-real` installs them.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from multimodal_eval import load_run
from multimodal_eval.cli.main import cli

MODELS = Path(__file__).parents[2] / "examples" / "models"
IS_REAL = "MMEVAL_REAL_MODELS" in os.environ
WRITTEN = ["Total 42.50 EUR", "EXIT", "Gate B12", "Fresh bread daily", "Speed limit 60", "Room 204", "Open 9 to 17"]
SPOKEN = [
    "The quick brown fox jumps over the lazy dog.",
    "Please open the window in the kitchen.",
    "There are twenty five students in the room.",
    "The train leaves at nine o'clock.",
    "She bought a red bicycle and two blue hats.",
    "We will meet again on Monday morning.",
]
ASKED = {"What is the capital of France?": "Paris", "What colour is the sky?": "blue"}
pytestmark = pytest.mark.skipif(not IS_REAL, reason="MMEVAL_REAL_MODELS is not set")


def told(tmp_path, rows, *arguments):
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    command = ["run", tmp_path / "data.jsonl", "-o", tmp_path / "run", *arguments]
    result = CliRunner().invoke(cli, [str(each) for each in command], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "data:image/" in (tmp_path / "run" / "report.html").read_text("utf-8") or "image" not in rows[0]
    answers = "\n".join(
        f"  {sample.generated_answer!r}" for sample in load_run(tmp_path / "run").folder.read_samples(0)
    )
    print(f"{result.output}{answers}")
    return load_run(tmp_path / "run")


def test_text_in_images_is_read(tmp_path):
    from PIL import Image, ImageDraw, ImageFont

    for number, text in enumerate(WRITTEN):
        image = Image.new("RGB", (460, 90), "white")
        ImageDraw.Draw(image).text((12, 20), text, fill="black", font=ImageFont.load_default(36))
        image.save(tmp_path / f"{number}.png")
    rows = [
        {"id": str(n), "image": f"{n}.png", "question": "What does the image say?", "references": [text]}
        for n, text in enumerate(WRITTEN)
    ]
    run = told(tmp_path, rows, "--model", f"python:{MODELS / 'ocr.py'}", "--metrics", "cer,anls")
    assert run["cer"]["n_scored"] == len(WRITTEN)
    assert run["cer"]["value"] < 0.1
    assert run["anls"]["value"] > 0.9


def test_speech_is_written_down(tmp_path):
    for number, text in enumerate(SPOKEN):
        subprocess.run(["espeak-ng", "-v", "en-us", "-s", "150", "-w", tmp_path / f"{number}.wav", text], check=True)
    rows = [{"id": str(n), "audio": f"{n}.wav", "question": "", "references": [text]} for n, text in enumerate(SPOKEN)]
    (tmp_path / "metrics.yaml").write_text(
        "metrics: [wer, wer_english, wer_basic]\nvariants: {wer_english: wer, wer_basic: wer}\n"
        "options: {wer_english: {rule: whisper-english@0.1.15}, wer_basic: {rule: whisper-basic@0.1.15}}\n",
        "utf-8",
    )
    config = ("--config", tmp_path / "metrics.yaml")
    run = told(tmp_path, rows, "--model", f"python:{MODELS / 'speech.py'}", "--prompt", "transcription", *config)
    assert run["wer"]["n_scored"] == len(SPOKEN)
    assert all(run[name]["value"] < 0.3 for name in ("wer", "wer_english", "wer_basic"))


@pytest.mark.usefixtures("weights")
def test_text_is_answered_as_by_the_provider_of_the_model(tmp_path):
    rows = [{"id": str(n), "question": text, "references": [answer]} for n, (text, answer) in enumerate(ASKED.items())]
    arguments = ("--prompt", "vqa", "--metrics", "contains")
    run = told(tmp_path, rows, "--model", f"python:{MODELS / 'text.py'}", *arguments)
    answers = [sample.generated_answer for sample in run.folder.read_samples(0)]
    assert run["contains"]["n_scored"] == len(ASKED)
    more = ("--temperature", "0", "--max-tokens", "24", "--overwrite")
    again = told(tmp_path, rows, "--model", "llama:smollm2-135m", *arguments, *more)
    assert [sample.generated_answer for sample in again.folder.read_samples(0)] == answers
