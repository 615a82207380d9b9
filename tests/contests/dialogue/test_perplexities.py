"""Perplexities of dialogue answers: their context, refused input, and the command."""

from __future__ import annotations

import json
from importlib.resources import files
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from multimodal_eval.cli.main import cli
from multimodal_eval.contests.dialogue import perplexities as module
from multimodal_eval.contests.dialogue.perplexities import perplexities
from multimodal_eval.core.conversation import Audio, Part
from multimodal_eval.core.errors import InputError
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.models.language.conversations import open_conversation_lm
from tests.media.wav_files import pcm16, wav
from tests.models.language import tiny_llama, tiny_multimodal
from tests.reference import naive_llama

EXAMPLE = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))


def text(words):
    return (Part("text", words),)


class Letters:
    """A rule-based language model: every letter of an answer has probability 1 / (1 + letters before the answer).

    An image counts as many letters as its width, and audio as many as its samples.
    """

    label = "letters@1"

    def __init__(self, reads=("text", "image", "audio"), languages=()):
        self.reads, self.languages, self.calls = frozenset(reads), frozenset(languages), []

    def log_probabilities(self, conversations, answers):
        self.calls.append([[(turn.role, [part.type for part in turn.parts]) for turn in c] for c in conversations])
        return [
            np.full(len(answer), -np.log(1 + sum(map(self._size, turns))), np.float32)
            for turns, answer in zip(conversations, answers, strict=True)
        ]

    @staticmethod
    def _size(turn):
        sizes = {"text": len, "image": lambda p: p.width, "audio": lambda a: len(a.samples)}
        for part in turn.parts:
            if part.type != "text":
                assert isinstance(part.content, Image.Image | Audio)
        return sum(sizes[part.type](part.content) for part in turn.parts)


@pytest.fixture
def folder(tmp_path):
    Image.new("RGB", (7, 5), "red").save(tmp_path / "a.png")
    (tmp_path / "a.wav").write_bytes(wav(pcm16(1, 2, 3)))
    return tmp_path


def test_a_reply_is_read_after_the_whole_conversation():
    questions = {"a": [text("12345"), text("123")], "b": [text("1")]}
    model = Letters()
    result = perplexities(questions, {"b": ["yes"], "a": ["four", "no"]}, model)
    # Before the answers: 1 letter; 5; 5 + "four" + 3 = 12. The perplexity is one more.
    assert result == {"b": [pytest.approx(2)], "a": [pytest.approx(6), pytest.approx(13)]}
    assert list(result) == ["b", "a"]
    roles = [[role for role, _ in turns] for batch in model.calls for turns in batch]
    assert roles == [["user"], ["user"], ["user", "assistant", "user"]]


def test_images_and_audio_are_opened(folder):
    turns = [(Part("image", "a.png"), Part("text", "12")), (Part("audio", "a.wav"),)]
    result = perplexities({"a": turns}, {"a": ["x", "x"]}, Letters(), policy=MediaPolicy(root=folder))
    # 7 pixels and 2 letters; 13 with the answer's letter and 3 samples
    assert result == {"a": [pytest.approx(10), pytest.approx(14)]}


def test_parts_that_a_model_does_not_read_are_reported_and_not_opened():
    questions = {
        "a": [(Part("image", "none.png"), Part("audio", "none.wav"), *text("12"))],
        "b": [(*text("1"), Part("image", "none.png"))],
        "c": [text("1")],
    }
    answers = {name: ["x"] for name in questions}
    notes = []
    result = perplexities(questions, answers, Letters(reads=["text"]), tell=notes.append)
    assert notes == ["1 audio files and 2 images in 2 of 3 dialogues were left out: letters@1 does not read them"]
    assert result == {"a": [pytest.approx(3)], "b": [pytest.approx(2)], "c": [pytest.approx(2)]}
    with pytest.warns(UserWarning, match="were left out"):
        perplexities(questions, answers, Letters(reads=["text"]))


def test_perplexities_do_not_depend_on_the_batch(folder, monkeypatch):
    questions = {str(n): [text("a" * n)] * 3 for n in range(1, 30)}
    questions |= {f"p{n}": [(Part("image", "a.png"), *text("a" * n))] * 2 for n in range(6)}
    answers = {name: [f"answer {name}"] * len(turns) for name, turns in questions.items()}
    policy = MediaPolicy(root=folder)
    whole = perplexities(questions, answers, Letters(), policy=policy)
    for replies, media in ((1, 1), (7, 3), (10_000, 10_000)):
        monkeypatch.setattr(module, "REPLIES_PER_BATCH", replies)
        monkeypatch.setattr(module, "MEDIA_PER_BATCH", media)
        model = Letters()
        assert perplexities(questions, answers, model, policy=policy) == whole
        assert all(len(batch) <= max(3, replies) for batch in model.calls)
    assert list(whole) == list(answers)


def test_all_problems_are_reported_before_the_model_reads(folder):
    (folder / "bad.png").write_bytes(b"not an image")
    questions = {
        "a": [text("hi"), (Part("image", "bad.png"), Part("audio", "../a.wav"))],
        "b": [(Part("audio", "none.wav"),)],
    }
    model = Letters()
    with pytest.raises(InputError) as caught:
        perplexities(questions, {"a": ["\n ", "x"], "b": [" "]}, model, policy=MediaPolicy(root=folder))
    refused = [(problem.code, problem.id, problem.message.split(":")[0]) for problem in caught.value.problems]
    assert refused == [
        ("BLANK", "a", "answer 1 is blank and has no perplexity."),
        ("BLANK", "b", "answer 1 is blank and has no perplexity."),
        ("IMAGE", "a", "turn 2"),
        ("AUDIO", "a", "turn 2"),
        ("AUDIO", "b", "turn 1"),
    ]
    assert model.calls == []


def test_dialogues_and_replies_must_match():
    with pytest.raises(InputError) as caught:
        perplexities({"a": [text("x")], "b": [text("x")]}, {"a": ["x", "y"], "c": ["x"]}, Letters())
    assert [(problem.code, problem.id) for problem in caught.value.problems] == [
        ("LENGTH", "a"),
        ("UNMATCHED", "c"),
        ("UNMATCHED", "b"),
    ]
    assert "there are 1 turns of the user but 2 answers" in str(caught.value)


def test_another_language_is_refused_unless_it_is_allowed():
    questions = {"a": [text("Что это?")] * 2}
    answers = {"a": ["It is a big dog", "Это большая собака"]}
    with pytest.raises(
        InputError, match=r"LANGUAGE: 1 of 2 answers .* \(it supports en\)\. The first is answer 2 .*--any-language"
    ):
        perplexities(questions, answers, Letters(languages=["en"]))
    assert len(perplexities(questions, answers, Letters(languages=["en"]), any_language=True)["a"]) == 2
    assert len(perplexities(questions, answers, Letters(languages=["en", "ru"]))["a"]) == 2


@pytest.mark.parametrize(
    ("values", "code"), [([-np.inf], "NONFINITE"), ([np.nan], "RANGE"), ([], "DEGENERATE"), ([0.5], "RANGE")]
)
def test_an_invalid_perplexity_names_the_answer(values, code):
    class Broken(Letters):
        def log_probabilities(self, conversations, answers):
            return [np.array(values, np.float32) for _ in answers]

    with pytest.raises(InputError, match=r"answer 1: .*\(id 'a'\)") as caught:
        perplexities({"a": [text("x")]}, {"a": ["y"]}, Broken())
    assert [problem.code for problem in caught.value.problems] == [code]


def test_progress_counts_replies(monkeypatch):
    monkeypatch.setattr(module, "REPLIES_PER_BATCH", 2)
    seen = []
    questions = {name: [text("x")] * 2 for name in "abc"}
    answers = {name: ["y", "z"] for name in "abc"}
    perplexities(questions, answers, Letters(), progress=lambda *state: seen.append(state))
    assert seen == [("replies", 2, 6), ("replies", 4, 6), ("replies", 6, 6)]


def test_with_a_text_model(tmp_path):
    tensors, config = tiny_llama.write(tmp_path / "tiny")
    model = open_conversation_lm(str(tmp_path / "tiny"))
    result = perplexities({"a": [text("What?"), text("Which?")]}, {"a": ["A dog", "Black"]}, model)
    context = b"User: What?\nAssistant: A dog\nUser: Which?\nAssistant:"
    whole = naive_llama.log_probabilities(tensors, config, list(context + b" Black"))
    assert result["a"][1] == pytest.approx(exp(-np.mean(whole[len(context) - 1 :])), rel=1e-4)


@pytest.mark.torch
def test_with_a_model_that_reads_images(folder):
    tiny_multimodal.write_llava(folder / "llava")
    model = open_conversation_lm(str(folder / "llava"))
    Image.effect_noise((20, 20), 90).convert("RGB").save(folder / "b.png")
    questions = {name: [(Part("image", f"{name}.png"), *text("What?")), text("Why?")] for name in "ab"}
    answers = {name: ["A dog", "So"] for name in "ab"}
    result = perplexities(questions, answers, model, policy=MediaPolicy(root=folder))
    for first, second in zip(result["a"], result["b"], strict=True):
        assert first != pytest.approx(second, rel=1e-3)
    assert min(result["a"] + result["b"]) >= 1


class Uniform:
    """Every letter is one of 32."""

    label = "uniform@1"
    languages: frozenset[str] = frozenset()
    reads = frozenset({"text"})

    def log_probabilities(self, conversations, answers):
        return [np.full(len(answer), -log(32), np.float32) for answer in answers]


def test_a_model_of_ones_own():
    """As docs/dialogue-perplexity.md describes it."""
    questions = {"d1": [text("What is it?"), text("Which colour?")]}
    result = perplexities(questions, {"d1": ["A dog.", "Black."]}, Uniform())
    assert result == {"d1": [pytest.approx(32), pytest.approx(32)]}


class TestCommand:
    def run(self, *arguments):
        return CliRunner().invoke(cli, ["dialogue", "ppl", *map(str, arguments)])

    @pytest.fixture
    def tiny(self, tmp_path):
        tiny_llama.write(tmp_path / "tiny")
        return tmp_path / "tiny"

    def test_it_writes_the_contests_file(self, tiny, tmp_path):
        answers = EXAMPLE / "submissions" / "alba" / "output.json"
        target = tmp_path / "ppl_output.json"
        result = self.run(EXAMPLE / "questions.json", answers, "-o", target, "--model", tiny)
        assert result.exception is None
        written, submitted = json.loads(target.read_text()), json.loads(answers.read_text())
        assert {name: len(row) for name, row in written.items()} == {name: len(row) for name, row in submitted.items()}
        assert list(written) == list(submitted)
        assert min(min(row) for row in written.values()) >= 1
        assert "! 16 audio files and 12 images in 18 of 24 dialogues were left out: tiny@" in result.stderr
        assert f"{sum(map(len, submitted.values()))} perplexities by tiny@" in result.stderr
        assert result.stdout == ""

    def test_images_are_looked_up_beside_the_questions(self, tmp_path, monkeypatch):
        monkeypatch.setattr(
            "multimodal_eval.models.language.conversations.open_conversation_lm", lambda name: Letters()
        )
        data = tmp_path / "data"
        data.mkdir()
        Image.new("RGB", (7, 5)).save(tmp_path / "a.png")
        (data / "q.json").write_text(json.dumps({"a": [[{"type": "image", "content": "../a.png"}]]}))
        (data / "o.json").write_text(json.dumps({"a": ["x"]}))
        files = (data / "q.json", data / "o.json", "-o", tmp_path / "out.json")
        assert "outside the folder" in str(self.run(*files).exception)
        assert not (tmp_path / "out.json").exists()
        for allowed in (("--allow-outside-media",), ("--media-root", data, "--allow-outside-images")):
            assert self.run(*files, *allowed).exception is None
        assert json.loads((tmp_path / "out.json").read_text()) == {"a": [pytest.approx(8)]}

    def test_problems_of_the_files_are_reported_first(self, tiny, tmp_path):
        (tmp_path / "q.json").write_text('{"a": [[{"type": "smell", "content": "x"}]]}')
        (tmp_path / "o.json").write_text('{"a": [7]}')
        result = self.run(tmp_path / "q.json", tmp_path / "o.json", "-o", tmp_path / "out.json", "--model", tiny)
        assert isinstance(result.exception, InputError)
        assert [Path(problem.file).name for problem in result.exception.problems] == ["q.json", "o.json"]
        result = self.run(tmp_path / "q.json", tmp_path / "o.json", "-o", tmp_path / "none" / "out.json")
        assert result.exit_code == 2
        assert "must be a file in an existing folder" in result.stderr


def test_the_command_names_the_default_model_without_importing_models():
    from multimodal_eval.cli.dialogue import DEFAULT_CAUSAL_LM
    from multimodal_eval.models.language import causal

    assert causal.DEFAULT_CAUSAL_LM == DEFAULT_CAUSAL_LM
