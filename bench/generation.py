"""Answers from an endpoint: a whole command of ours beside those of other evaluators, against the same server.

    python bench/generation.py [--inspect VENV] [--lm-eval VENV] [--lmms-eval VENV] [--only compared,faults,limited]

The server (tests/generate/server.py) is a process of its own, answers every request after 50 ms, and counts. All
programs may have 100 requests under way, which allows 2,000 per second. A VENV is a virtual environment with the
package: inspect_ai with openai, lm-eval[api], lmms_eval. All get text; ours and lmms-eval also get an image of 80 kB
per request. `faults`: 30 % of the requests end in HTTP 429, 500 or 503, a reset, a connection that closes with half a
reply or none, or JSON that is cut off. `limited`: the server refuses more than 20 requests at once, without delay, so
that 400 answers per second are possible.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import harness
from harness import MMEVAL, Measured

from multimodal_eval.data.runs.run_folder import RunFolder

ROOT = Path(__file__).resolve().parent.parent
LATENCY, CONNECTIONS = 0.05, 100
FAULTS = {
    **{"rate_limit": 0.05, "error": 0.05, "unavailable": 0.05, "reset": 0.05},
    **{"closed": 0.025, "half_closed": 0.025, "wrong_json": 0.05},
}
IMAGES = 1_000  # distinct ones

INSPECT = """
from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset, FieldSpec
from inspect_ai.scorer import exact
from inspect_ai.solver import generate
@task
def questions():
    fields = FieldSpec(input="question", target="answer", id="id")
    return Task(dataset=json_dataset({data!r}, fields), solver=generate(), scorer=exact())
"""
LM_EVAL = """
task: questions
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"]}}
metric_list: [{{metric: exact_match}}]
"""
LMMS_EVAL = """
task: questions
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_visual: !function questions.doc_to_visual
doc_to_text: "{{{{question}}}}"
doc_to_target: "answer"
generation_kwargs: {{max_new_tokens: 16}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""
LMMS_EVAL_VISUALS = """
from PIL import Image
def doc_to_visual(doc):
    return [Image.open(doc["image"]).convert("RGB")] if doc.get("image") else []
"""


@dataclass(frozen=True)
class Contestant:
    """A program, and how it is called."""

    name: str
    python: str
    takes_images: bool = False
    connections: int = CONNECTIONS

    def command(self, folder: Path, data: Path, url: str) -> list[str]:
        """The command that asks every question of the data, in the folder."""
        return {
            "mmeval run": self._ours,
            "inspect_ai": self._inspect,
            "lm-eval": self._lm_eval,
            "lmms-eval": self._lmms_eval,
        }[self.name](folder, data, url)

    def _ours(self, folder: Path, data: Path, url: str) -> list[str]:
        shutil.rmtree(folder / "run", ignore_errors=True)
        options = ["--base-url", url, "--metrics", "exact_match", "--no-cache", "--concurrency", str(self.connections)]
        return [*MMEVAL, "run", str(data), "--model", "openai:tiny", *options, "-o", str(folder / "run")]

    def _inspect(self, folder: Path, data: Path, url: str) -> list[str]:
        (folder / "questions.py").write_text(INSPECT.format(data=str(data)))
        options = ["--max-connections", str(CONNECTIONS), "--max-samples", str(CONNECTIONS), "--display", "none"]
        command = [str(Path(self.python).parent / "inspect"), "eval", "questions.py"]  # in the folder
        return [*command, "--model", "openai-api/local/tiny", *options, "--log-dir", str(folder / "logs")]

    def _lm_eval(self, folder: Path, data: Path, url: str) -> list[str]:
        tasks = folder / "lm_eval_tasks"
        tasks.mkdir(exist_ok=True)
        (tasks / "questions.yaml").write_text(LM_EVAL.format(data=data))
        model = f"model=tiny,base_url={url}/chat/completions,num_concurrent={CONNECTIONS},max_retries=3"
        command = [self.python, "-m", "lm_eval", "--model", "local-chat-completions", "--model_args", model]
        return [*command, "--tasks", "questions", "--include_path", str(tasks), "--apply_chat_template"]

    def _lmms_eval(self, folder: Path, data: Path, url: str) -> list[str]:
        tasks = folder / "lmms_eval_tasks"
        tasks.mkdir(exist_ok=True)
        (tasks / "questions.yaml").write_text(LMMS_EVAL.format(data=data))
        (tasks / "questions.py").write_text(LMMS_EVAL_VISUALS)
        model = f"model_version=tiny,base_url={url},num_cpus={CONNECTIONS}"
        command = [self.python, "-m", "lmms_eval", "--model", "async_openai", "--model_args", model]
        return [*command, "--tasks", "questions", "--include_path", str(tasks), "--batch_size", "1"]


@contextmanager
def served(latency: float, *options: str) -> Iterator[str]:
    """The server in a process of its own."""
    command = [sys.executable, "-m", "tests.generate.server", "--latency", str(latency), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def write_data(folder: Path, samples: int, *, with_images: bool) -> Path:
    """Questions, and images of about 80 kB."""
    data = folder / f"{'images' if with_images else 'text'}-{samples}.jsonl"
    with data.open("w") as file:
        for number in range(samples):
            sample = {"id": str(number), "question": f"Is {number} even?", "answer": "yes", "references": ["yes"]}
            if with_images:
                sample["image"] = str(folder / f"{number % IMAGES}.jpg")
            file.write(json.dumps(sample) + "\n")
    return data


def write_images(folder: Path) -> float:
    """Noise as JPEG files. Returns their mean size in kB."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(0)
    for number in range(IMAGES):
        pixels = random.integers(0, 256, (320, 328, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.jpg", quality=85)
    return sum((folder / f"{number}.jpg").stat().st_size for number in range(IMAGES)) / IMAGES / 1000


def measured(contestant: Contestant, folder: Path, data: Path, url: str, latency: float = LATENCY) -> Measured:
    """One run of a command; its value is the number of requests per second."""
    _taken(url)
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    keys = {"LOCAL_API_KEY": "x", "LOCAL_BASE_URL": url, "OPENAI_API_KEY": "x", "OPENAI_API_BASE": url}
    command = contestant.command(folder, data, url)
    run = harness.run_command(command, env={**os.environ, **offline, **keys}, cwd=folder)
    taken = _taken(url)
    return replace(run, value=taken["requests"] / (taken["seconds"] + latency))


def _taken(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/seen") as reply:
        taken: dict[str, float] = json.loads(reply.read())
    return taken


def compared(contestants: list[Contestant], folder: Path, options: argparse.Namespace) -> None:
    """All in turn, with text and with images, and how ours grows."""
    print(f"images: {write_images(folder):.0f} kB on average")
    with served(LATENCY, "--constant", "yes") as url:
        for kind in ("text", "images"):
            with_images = kind == "images"
            data = write_data(folder, options.samples, with_images=with_images)
            jobs = {
                (each.name, options.samples): partial(measured, each, folder, data, url)
                for each in contestants
                if each.takes_images or not with_images
            }
            against = dict.fromkeys((each.name for each in contestants[1:]), contestants[0].name)
            harness.print_table(
                f"{kind}; value: requests/s", harness.in_turn(jobs, options.rounds), against, "requests"
            )
        sizes = {size: write_data(folder, size, with_images=False) for size in (1_000, 10_000)}
        growth = {("mmeval run", size): partial(measured, contestants[0], folder, sizes[size], url) for size in sizes}
        harness.print_table("growth; value: requests/s", harness.in_turn(growth, options.rounds), unit="requests")


def faults(ours: Contestant, folder: Path, options: argparse.Namespace) -> None:
    """60 requests at once, 100 ms each: 600 are allowed per second, and 420 answers if 30 % of the requests fail."""
    data = write_data(folder, options.samples, with_images=False)
    words = [word for name, share in FAULTS.items() for word in ("--fault", f"{name}={share}")]

    def job(*settings: str) -> Measured:
        with served(0.1, *settings) as url:
            run = measured(replace(ours, connections=60), folder, data, url, 0.1)
        generation = RunFolder(folder / "run").read_info().generation
        assert generation is not None
        assert generation.statuses.get("ok", 0) == options.samples, generation.statuses  # every sample is answered
        return run

    kinds: dict[str, list[str]] = {"no faults": [], "30 % faults": words}
    jobs = {(name, options.samples): partial(job, *settings) for name, settings in kinds.items()}
    harness.print_table("faults; value: requests/s of 600", harness.in_turn(jobs, options.rounds), unit="samples")


def limited(ours: Contestant, folder: Path, options: argparse.Namespace) -> None:
    """20 requests at once, 50 ms each. Prints the answers per second, and how many requests were refused."""
    data = write_data(folder, options.samples, with_images=False)
    for _ in range(options.rounds):
        with served(LATENCY, "--at-once", "20") as url:
            harness.run_command(ours.command(folder, data, url), cwd=folder)
            taken = _taken(url)
        rate = (taken["requests"] - taken["refused"]) / (taken["seconds"] + LATENCY)
        print(f"limited: {rate:.0f} answers/s of 400, {taken['refused']:.0f} of {taken['requests']:.0f} refused")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for peer in ("inspect", "lm-eval", "lmms-eval"):
        parser.add_argument(f"--{peer}", metavar="VENV", help=f"compare with {peer} of this virtual environment")
    parser.add_argument("--only", default="compared,faults,limited")
    parser.add_argument("--samples", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    peers = {"inspect_ai": options.inspect, "lm-eval": options.lm_eval, "lmms-eval": options.lmms_eval}
    contestants = [Contestant("mmeval run", sys.executable, takes_images=True)]
    contestants += [
        Contestant(name, str(Path(venv).absolute() / "bin" / "python"), takes_images=name == "lmms-eval")
        for name, venv in peers.items()
        if venv
    ]
    with tempfile.TemporaryDirectory() as scratch:
        if "compared" in options.only:
            compared(contestants, Path(scratch), options)
        if "faults" in options.only:
            faults(contestants[0], Path(scratch), options)
        if "limited" in options.only:
            limited(contestants[0], Path(scratch), options)


if __name__ == "__main__":
    main()
