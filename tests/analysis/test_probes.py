"""Probes tell models that look from models that do not: scripted models of known behaviour."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest
from PIL import Image

from multimodal_eval import Run, Sample, evaluate, generate, load_run
from multimodal_eval.analysis.probes import probed
from multimodal_eval.core.errors import ConfigError
from tests.cli.command_line import mmeval

LETTERS = "ABCD"


def pixels_of(number: int) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (1, 1), (number % 256, number // 256, 7)).save(content, "PNG")
    return content.getvalue()


def samples(count: int, rng: random.Random) -> list[Sample]:
    return [
        Sample(
            str(number),
            question=f"which one is {number}?",
            image=pixels_of(number),
            choices=[f"{number}-{choice}" for choice in range(4)],
            expected_answer=rng.choice(LETTERS),
        )
        for number in range(count)
    ]


def offered(request) -> dict[str, str]:
    """The letter of each choice in the prompt."""
    lines = (line.partition(". ") for line in request.prompt.splitlines())
    return {text: letter for letter, _, text in lines if letter in LETTERS and text}


def scripted(kind, data, seed):
    """A model: `always` says A; `reads` knows 60 % of the answers by the text; `looks` sees them in the image."""
    right = {sample.id: sample.choices[LETTERS.index(sample.expected_answer)] for sample in data}
    by_image = {sample.image: right[sample.id] for sample in data}

    def guess(request) -> str:
        return random.Random(f"{seed} {request.prompt} {len(request.media)}").choice(LETTERS)

    def answer(request):
        if kind == "always":
            return "A"
        if kind == "reads":
            knows = random.Random(f"{seed} {request.id}").random() < 0.6
            text = right[request.id] if knows else sorted(offered(request))[0]
            return offered(request)[text]
        seen = by_image[request.media[0].content] if request.media else None
        is_noise = random.Random(f"{seed} noise {request.prompt}").random() < 0.15
        return guess(request) if is_noise else offered(request).get(seen) or guess(request)

    return answer


def verdicts(kind: str, seed: int, count: int = 100):
    data = samples(count, random.Random(seed))
    runs: dict[Any, Run] = {}
    for probe in (None, "blind", "shuffled", "rotated"):
        generation = {} if probe is None else {"probe": probe}
        model = scripted(kind, data, seed)
        runs[probe] = evaluate(
            data, model=model, metrics=["multiple_choice"], generation=generation, seed=seed, skip_lint=True
        )
    result = probed(runs.pop(None), runs, seed=seed)
    return result.looks, result.depends_on_position, result


EXPECTED = {"always": (False, True), "reads": (False, False), "looks": (True, False)}


@pytest.mark.parametrize("kind", EXPECTED)
def test_scripted_models_are_told_apart(kind):
    looks, by_position, result = verdicts(kind, seed=1)
    assert (looks, by_position) == EXPECTED[kind]
    blind = result.shares["blind"]
    assert blind.low < blind.value < blind.high
    if kind == "always":  # right exactly if the right choice is A
        assert {letter: figure.value for letter, figure in result.positions.items()} == {"A": 1, "B": 0, "C": 0, "D": 0}
    if kind == "reads":  # the image changes nothing
        assert blind.value == 0


@pytest.mark.slow
def test_no_wrong_verdict_in_a_hundred_designs():
    kinds = [list(EXPECTED)[seed % 3] for seed in range(100)]
    wrong = [(kind, seed) for seed, kind in enumerate(kinds) if verdicts(kind, seed)[:2] != EXPECTED[kind]]
    assert wrong == []


def changed(probe: str, data: list[Sample], **settings: Any) -> list[Sample]:
    """The samples as a model is asked about them under a probe."""
    run = generate(data, model=lambda request: "A", generation={"probe": probe, "media_as": "none"}, **settings)
    return list(run.samples())


def test_rotated_choices_take_the_gold_answer_with_them():
    for gold in ("C", "(c)", "red", "2"):
        sample = Sample("1", question="Which?", choices=["blue", "green", "red"], expected_answer=gold)
        (turned,) = changed("rotated", [sample])
        letter = turned.expected_answer.strip("()").upper()
        if gold == "red":
            assert turned.expected_answer == "red"
        else:
            place = int(letter) if letter.isdecimal() else LETTERS.index(letter)
            assert turned.choices[place] == "red"
        assert turned.choices != sample.choices
    with pytest.raises(ConfigError, match="part of its `prompt`"):
        changed("rotated", [Sample("1", prompt="blue or green?", choices=["blue", "green"], expected_answer="A")])


def test_shuffled_samples_never_have_their_own_image():
    data = [Sample(str(number), question="What?", image=f"{number // 3}.png") for number in range(12)]
    shuffled = changed("shuffled", data, seed=5)
    assert all(before.image != after.image for before, after in zip(data, shuffled, strict=True))
    assert sorted(sample.image for sample in shuffled) == sorted(sample.image for sample in data)
    with pytest.raises(ConfigError, match="more than half of the samples have the same media"):
        changed("shuffled", data[:4], seed=5)


def test_one_command_asks_with_all_probes_and_can_be_repeated(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "id": str(number),
            "question": "which?",
            "choices": ["x", "y"],
            "expected_answer": "A",
            "image": f"{number}.png",
        }
        for number in range(4)
    ]
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(pixels_of(number))
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ("run", "data.jsonl", "--model", "echo", "--task", "mcq", "-o", "all", "--no-report")
    probes = ("--probe", "blind,shuffled,rotated,caption")
    done = mmeval(*command, *probes)
    assert "it is not shown that echo looks" in done.stdout
    assert "5 of 5 runs are in all" in done.stdout
    mmeval("run", "--resume", "all/caption", "--no-report")
    # echo repeats the request for a caption, which is then what the question contains
    first = next(load_run("all/caption").samples())
    assert first.image is None
    assert first.question.startswith("Caption of the image: Provide a one-sentence caption")
    assert mmeval(*command, *probes).stderr.count("already in all/") == 5
    assert "'blnd' is not one of blind" in mmeval(*command, "--probe", "blnd", code=2).stderr
