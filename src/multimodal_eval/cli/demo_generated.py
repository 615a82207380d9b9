"""The part of `mmeval demo` in which a model on this machine writes answers: SmolLM2 rephrases captions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from multimodal_eval.data.runs.run import Run

MODEL = "llama:smollm2-135m"
SAMPLES = 8
METRICS = ("rouge_l", "meteor", "cider", "semantic_similarity")
PROMPT = "Rephrase this image caption in one short sentence: "


def show_generated(data: Path, folder: Path, out: Console) -> None:
    """Generate, score and print. If the model cannot be used, the demo says so and continues without it."""
    from multimodal_eval.core.errors import ModelError, UnavailableError

    try:
        run = _generated(data / "captioning.jsonl", folder / "generated" / "smollm2")
    except (UnavailableError, ModelError) as fault:
        out.print(f"generated: left out, because the model cannot be used here ({fault})\n", soft_wrap=True)
        return
    _print(run, out)


def _generated(captions: Path, folder: Path) -> Run:
    """The model reads one person's caption and rewrites it. The captions of the others are the references."""
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.core.config import GenerationConfig, Parameters
    from multimodal_eval.run.evaluate import evaluate

    lines = captions.read_text(encoding="utf-8").splitlines()[:SAMPLES]
    samples = []
    for record in map(json.loads, lines):
        shown, *others = record["references"]
        samples.append({"id": record["id"], "prompt": PROMPT + shown, "references": others})
    generation = GenerationConfig(
        model=MODEL, prompt="plain", parameters=Parameters(max_tokens=32), accept_truncated=True
    )
    with progress_bar() as progress:
        return evaluate(
            samples,
            metrics=METRICS,
            output=folder,
            model=MODEL,
            generation=generation,
            options={"meteor": {"variant": "fmean"}},
            progress=progress,
        )


def _print(run: Run, out: Console) -> None:
    from multimodal_eval.cli.show import as_text, table_of
    from multimodal_eval.core.display import with_margin

    title = f"generated: SmolLM2 rephrases captions, {SAMPLES} samples"
    table = table_of(title, ["metric"], ["SmolLM2", "scored"])
    for name in METRICS:
        entry = run.entries[name]
        score = with_margin(entry.value or 0, entry.low, entry.high)
        table.add_row(name, score, f"{entry.n_scored} / {entry.n_total}")
    out.print(table)
    examples = table_of("what it writes", ["caption that it reads", "what it makes of it"], [])
    for sample in list(run.samples())[:3]:
        answer = sample.generated_answer or sample.error or ""
        examples.add_row(as_text((sample.prompt or "").removeprefix(PROMPT)), as_text(answer))
    out.print(examples)
