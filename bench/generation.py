"""Answers from an endpoint: a whole command of ours beside those of other evaluators, against the same server.

    python bench/generation.py [--inspect VENV] [--lm-eval VENV] [--lmms-eval VENV] [--samples 2000] [--rounds 3]

The server (tests/generate/server.py) is a process of its own, answers every request after 50 ms, and counts. All
programs may have 100 requests under way, which allows 2,000 per second. A VENV is a virtual environment with the
package: inspect_ai with openai, lm-eval[api], lmms_eval. All get text; ours and lmms-eval also get an image of 80 kB
per request. Runs alternate. Prints the best rate between the first and the last request, the time of the whole command,
peak memory, and how ours grows from 1,000 to 10,000 samples.
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
from dataclasses import dataclass
from pathlib import Path

LATENCY, CONNECTIONS = 0.05, 100
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


@dataclass(frozen=True, order=True)
class Measured:
    """Of one command."""

    rate: float  # requests per second
    seconds: float
    megabytes: float


@dataclass(frozen=True)
class Contestant:
    """A program, and how it is called."""

    name: str
    python: str
    takes_images: bool = False

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
        command = [self.python, "-m", "multimodal_eval.cli.main", "run", str(data), "--model", "openai:tiny"]
        options = ["--base-url", url, "--metrics", "exact_match", "--no-cache", "--concurrency", str(CONNECTIONS)]
        return [*command, *options, "-o", str(folder / "run")]

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
def served() -> Iterator[str]:
    """The server in a process of its own."""
    command = [sys.executable, "-m", "tests.generate.server", "--latency", str(LATENCY), "--constant", "yes"]
    root = Path(__file__).resolve().parent.parent
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
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


def measured(contestant: Contestant, folder: Path, data: Path, url: str) -> Measured:
    """One run of a command."""
    _taken(url)
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    keys = {"LOCAL_API_KEY": "x", "LOCAL_BASE_URL": url, "OPENAI_API_KEY": "x", "OPENAI_API_BASE": url}
    command = ["/usr/bin/time", "-f", "%e %M", *contestant.command(folder, data, url)]
    environment = {**os.environ, **offline, **keys}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    if done.returncode:
        raise SystemExit(f"{contestant.name} failed:\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
    seconds, kilobytes = done.stderr.splitlines()[-1].split()
    taken = _taken(url)
    return Measured(taken["requests"] / (taken["seconds"] + LATENCY), float(seconds), float(kilobytes) / 1024)


def _taken(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/seen") as reply:
        taken: dict[str, float] = json.loads(reply.read())
    return taken


def compared(
    contestants: list[Contestant], folder: Path, url: str, samples: int, rounds: int, with_images: bool
) -> None:
    """Run all in turn, and print a table."""
    data = write_data(folder, samples, with_images=with_images)
    chosen = [contestant for contestant in contestants if contestant.takes_images or not with_images]
    runs: dict[str, list[Measured]] = {contestant.name: [] for contestant in chosen}
    for _ in range(rounds):
        for contestant in chosen:
            runs[contestant.name].append(measured(contestant, folder, data, url))
    what = "an image of 80 kB each" if with_images else "text"
    print(f"\n{f'{samples:,} requests, {what}':40} requests/s {'ratio':>7} {'whole command':>14} {'memory':>9}")
    ours = max(run.rate for run in runs[chosen[0].name])
    for name, measurements in runs.items():
        rate, seconds = max(run.rate for run in measurements), min(run.seconds for run in measurements)
        memory = min(run.megabytes for run in measurements)
        print(f"{name:40} {rate:10,.0f} {ours / rate:7.1f}x {seconds:12.1f} s {memory:6.0f} MB")


def growth(ours: Contestant, folder: Path, url: str, samples: int, rounds: int) -> None:
    """How ours grows by a factor of ten."""
    print("\nmmeval run: growth")
    for count in (samples, 10 * samples):
        data = write_data(folder, count, with_images=False)
        runs = [measured(ours, folder, data, url) for _ in range(rounds)]
        best = min(run.seconds for run in runs)
        print(f"{count:10,} samples {best:8.1f} s {min(run.megabytes for run in runs):8.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for peer in ("inspect", "lm-eval", "lmms-eval"):
        parser.add_argument(f"--{peer}", metavar="VENV", help=f"compare with {peer} of this virtual environment")
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
    with tempfile.TemporaryDirectory() as scratch, served() as url:
        folder = Path(scratch)
        print(f"images: {write_images(folder):.0f} kB on average")
        for with_images in (False, True):
            compared(contestants, folder, url, options.samples, options.rounds, with_images=with_images)
        growth(contestants[0], folder, url, 1_000, options.rounds)


if __name__ == "__main__":
    main()
