"""Make small logs with inspect_ai, without a network: the fixtures of `tests/data/logs`, and logs for the benchmark.

    python3 -m venv V && V/bin/pip install inspect_ai==0.3.285
    V/bin/python tests/data/logs/makers/inspect_ai_logs.py fixtures tests/data/logs/fixtures/inspect
    V/bin/python tests/data/logs/makers/inspect_ai_logs.py many FOLDER 5000

The model is `mockllm` with replies that depend on the question alone, so that every call makes the same samples. Only
identifiers and times differ.
"""
# mypy: ignore-missing-imports, disallow-untyped-decorators=False

from __future__ import annotations

import base64
import json
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, choice, includes, match, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate, multiple_choice

# A PNG image of one red pixel.
PIXEL = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\3\1\1\0"
    b"\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82"
).decode()


@scorer(metrics={"*": [mean(), stderr()]})
def lengths() -> Scorer:
    """Two values per sample."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = state.output.completion
        return Score(value={"words": len(answer.split()), "share": len(target.text) / max(1, len(answer))})

    return score


@scorer(metrics=[mean(), stderr()])
def graded() -> Scorer:
    """A number, and no score for an empty answer."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = state.output.completion
        if not answer:
            return Score(value=float("nan"), explanation="no answer")
        if answer == "w4":
            return Score(value=float("nan"), reason="parse_error")
        return Score(value=round(1 / len(answer), 3), answer=answer[:10], explanation="one by the length")

    return score


def reply(messages: Any, *_: Any) -> ModelOutput:
    """A reply that depends on the last message and, so that epochs differ, on how often it was asked."""
    text = messages[-1].text
    asked = ASKED[text] = ASKED.get(text, 0) + 1
    if "break" in text:
        raise ValueError("the model is not available")
    is_known = (zlib.crc32(text.encode()) // 7 + asked * asked) % 3
    content: Any = text.split()[-1] if is_known else "I do not know"
    stop = "stop"
    if "think" in text:
        content = [ContentReasoning(reasoning="Step by step."), ContentText(text="blue")]
    elif "filter" in text:
        content, stop = "", "content_filter"
    elif "long" in text:
        content, stop = "This answer is cut", "max_tokens"
    elif "ANSWER" in text:
        content = "ANSWER: B" if "two" in text else "ANSWER: A"
    message = ChatMessageAssistant(content=content, source="generate")
    usage = ModelUsage(input_tokens=len(text.split()), output_tokens=3, total_tokens=len(text.split()) + 3)
    return ModelOutput(
        model="mockllm/model",
        choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
        usage=usage,
    )


ASKED: dict[str, int] = {}


def qa(count: int = 5) -> list[Sample]:
    """Short questions. One breaks the model."""
    samples = [
        Sample(id=number, input=f"Repeat the word w{number}", target=f"w{number}", metadata={"level": number % 2})
        for number in range(1, count + 1)
    ]
    return [*samples, Sample(id=count + 1, input="Please break", target="x", metadata={"level": 0})]


def choices() -> list[Sample]:
    """Multiple choice."""
    return [
        Sample(id="one", input="Which is one?", choices=["1", "2", "3"], target="A"),
        Sample(id="two", input="Which is two?", choices=["1", "2", "3"], target="B", metadata={"id": 7, "tags": ["x"]}),
        Sample(id="three", input="Which is three?", choices=["1", "2", "3"], target="C"),
    ]


def images() -> list[Sample]:
    """Images, several targets, reasoning, and replies that end early."""
    image = ContentImage(image=f"data:image/png;base64,{PIXEL}")
    texts = ("What do you think?", "Say something that a filter stops", "A long story", "Name the colour red")
    return [
        Sample(
            id=f"image-{number}",
            input=[ChatMessageSystem(content="Be short."), ChatMessageUser(content=[image, ContentText(text=text)])],
            target=["blue", "navy"],
        )
        for number, text in enumerate(texts, 1)
    ]


def task(name: str, samples: list[Sample], solver: Any, scorers: Any, epochs: Epochs | None = None) -> Task:
    """A task with a name."""
    return Task(dataset=MemoryDataset(samples), solver=solver, scorer=scorers, epochs=epochs, name=name)


def make(folder: Path, name: str, of: Task, form: str) -> None:
    """Run a task and keep its log under a plain name."""
    ASKED.clear()
    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    (log,) = eval(
        of,
        model=model,
        log_dir=str(folder / "all"),
        log_format=form,
        fail_on_error=False,
        display="none",
        max_samples=1,
        max_connections=1,
    )
    path = folder / f"{name}.{form}"
    Path(log.location.removeprefix("file://")).rename(path)
    without_machine(path)


def without_machine(path: Path) -> None:
    """Remove tracebacks from a log, which have paths of this machine."""
    if path.suffix == ".json":
        path.write_text(json.dumps(cleaned(json.loads(path.read_text(encoding="utf-8"))), indent=1), encoding="utf-8")
        return
    with zipfile.ZipFile(path) as archive:
        contents = {name: json.loads(archive.read(name)) for name in archive.namelist()}
        method = archive.infolist()[0].compress_type
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in contents.items():
            archive.writestr(name, json.dumps(cleaned(content)))


def cleaned(value: Any) -> Any:
    """The value without the texts of tracebacks."""
    if isinstance(value, dict):
        return {key: "" if key.startswith("traceback") else cleaned(item) for key, item in value.items()}
    return [cleaned(item) for item in value] if isinstance(value, list) else value


def fixtures(folder: Path) -> None:
    """One log per kind of task, one of them as .json too."""
    scorers = [match(location="end"), graded(), lengths()]
    make(folder, "epochs", task("repeat", qa(), generate(), scorers, Epochs(3, ["mean", "pass_at_2"])), "eval")
    make(folder, "choices", task("choices", choices(), multiple_choice(), choice()), "eval")
    for form in ("eval", "json"):
        make(folder, "images", task("images", images(), generate(), [includes(), graded()]), form)
    (folder / "all").rmdir()


def many(folder: Path, count: int) -> None:
    """A log of many samples, with the events and attachments of a real one."""
    words = " ".join(f"word{number}" for number in range(120))
    samples = [Sample(id=n, input=f"{words} Repeat the word w{n}", target=f"w{n}") for n in range(1, count + 1)]
    make(folder, "many", task("many", samples, generate(), [includes(), graded()]), "eval")


if __name__ == "__main__":
    target = Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    fixtures(target) if sys.argv[1] == "fixtures" else many(target, int(sys.argv[3]))
