"""Run `mmeval run` against a server that others wrote, with SmolLM2: one that it starts, or one that is running.

    python -m tests.generate.real_server --llama              # --serve starts that of llama.cpp; needs xllamacpp
    python -m tests.generate.real_server                      # starts `transformers serve`; needs transformers[serving]
    python -m tests.generate.real_server --url http://localhost:8080/v1 --model llamacpp:smollm2     # is running

The model is fetched if it is not on this machine. Questions are answered with a temperature of 0. The answers of
`transformers serve` must equal those of `generate` in the golden file generation.json.gz, and those of our own runner;
of another server, which may compute with other weights, only the statuses are checked. Prints the time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.models.language.chat_template import ChatTemplate
from multimodal_eval.models.source import find_model
from multimodal_eval.resources.catalogue import get_resource
from multimodal_eval.resources.fetch import fetch
from tests.golden.load import golden

RECORDED = golden("generation.json.gz")
QUESTIONS = [entry for entry in RECORDED["texts"] if len(entry["messages"]) == 1]
NAME, GGUF = "smollm2-135m", "smollm2-135m-instruct.q4_1.gguf"
PATIENCE = 600  # seconds


def model_folder(target: Path) -> Path:
    """The fetched model with a tokenizer_config.json, as servers expect it."""
    fetch(get_resource(NAME))
    model = find_model(NAME)
    target.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (target / name).symlink_to(model.file(name).resolve())
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "pad_token": "<|im_end|>"},
        "chat_template": ChatTemplate(model).source,
    }
    (target / "tokenizer_config.json").write_text(json.dumps(settings))
    return target


def served(folder: Path, log: Path, stack: ExitStack) -> str:
    """Start `transformers serve`, and stop it with the stack. Returns its base URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("transformers")), "serve", str(folder), "--port", str(port)]
    stream = stack.enter_context(log.open("wb"))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    server = subprocess.Popen(
        [*command, "--device", "cpu"], stdout=stream, stderr=stream, env=environment, start_new_session=True
    )
    stack.callback(lambda: os.killpg(server.pid, signal.SIGTERM) if server.poll() is None else None)
    url, start = f"http://localhost:{port}", time.monotonic()
    while time.monotonic() - start < PATIENCE and server.poll() is None:
        try:
            with urlopen(f"{url}/health"):
                return f"{url}/v1"
        except (URLError, ConnectionError):
            time.sleep(0.5)
    raise SystemExit(f"the server did not start:\n{log.read_text()}")


def run(data: Path, folder: Path, model: str, *options: str) -> list[tuple[str, str | None]]:
    """Status and text of every answer of `mmeval run`."""
    command = [sys.executable, "-m", "multimodal_eval.cli.main", "run", str(data), "--model", model, "-o", str(folder)]
    settings = ("--prompt", "plain", "--temperature", "0", "--max-tokens", str(RECORDED["most"]), "--accept-truncated")
    subprocess.run([*command, "--metrics", "rouge_l", "--no-cache", *settings, *options], check=True)
    table = RunFolder(folder).read_part("answers", 0, ["status", "text"])
    return list(zip(table.column("status").to_pylist(), table.column("text").to_pylist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="the base URL of a server that is running")
    parser.add_argument("--llama", action="store_true", help="let --serve start the server of llama.cpp")
    parser.add_argument("--model", help="the model of that server: PROVIDER:NAME")
    options = parser.parse_args()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mmeval-")))
        data = scratch / "questions.jsonl"
        lines = [
            {"id": f"q{n}", "question": entry["messages"][0]["content"], "references": [entry["text"]]}
            for n, entry in enumerate(QUESTIONS)
        ]
        data.write_text("".join(json.dumps(line) + "\n" for line in lines))
        if options.llama:
            fetch(get_resource(NAME))
            weights = find_model(NAME).file(GGUF)
            serve = f"{sys.executable} -m tests.generate.llama_server {weights} {{port}}"
            start = time.monotonic()
            answers = run(data, scratch / "run", "llamacpp:smollm2", "--serve", serve)
            print(f"llama.cpp: {len(answers)} answers in {time.monotonic() - start:.0f} s")
        elif options.url:
            answers = run(data, scratch / "run", options.model, "--base-url", options.url)
        else:
            folder = model_folder(scratch / "smollm2")
            url = served(folder, scratch / "server.log", stack)
            start = time.monotonic()
            answers = run(data, scratch / "run", f"openai:{folder}", "--base-url", url)
            print(f"transformers serve: {len(answers)} answers in {time.monotonic() - start:.0f} s")
            assert [text for _, text in answers] == [entry["text"] for entry in QUESTIONS]
            assert answers == run(data, scratch / "embedded", f"llama:{NAME}")
        failed = [answer for answer in answers if answer[0] != "ok"]
        assert not failed, failed
        print("all answers are as expected")


if __name__ == "__main__":
    main()
