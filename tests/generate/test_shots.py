"""Examples before the question: which ones, in which order, and with which answers."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.conversation import Message
from multimodal_eval.core.errors import ConfigError, InputError, MultimodalEvalError
from multimodal_eval.core.sample import Sample
from multimodal_eval.generate.prompts import Prompts, Shots, answer_of, read_shots
from multimodal_eval.media.policy import MediaPolicy
from tests.media.image_files import encoded, gradient


def written(folder, records, name="shots.jsonl"):
    file = folder / name
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


@pytest.fixture
def five(tmp_path):
    return written(tmp_path, [{"id": f"s{n}", "question": f"q{n}", "expected_answer": f"a{n}"} for n in range(5)])


def ids(shots, sample="other"):
    return [shot.id for shot in shots.examples(Sample(sample))]


def turns(sample, file, task=None, seed=0, policy=None, **settings):
    config = GenerationConfig(model="echo:", shots=str(file), **settings)
    made = asyncio.run(Prompts(config, task, seed=seed, policy=policy).request(sample))
    return [(turn.role, turn.text) for turn in made.turns]


def test_all_examples_in_the_order_of_the_file(five):
    assert ids(read_shots(five, None, 7, MediaPolicy())) == ["s0", "s1", "s2", "s3", "s4"]


def test_some_examples_in_the_order_of_the_hash_of_seed_and_id(five):
    for seed in (0, 1):
        expected = sorted(
            (f"s{n}" for n in range(5)), key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).digest()
        )
        assert ids(read_shots(five, 3, seed, MediaPolicy())) == expected[:3]
    assert ids(read_shots(five, 3, 0, MediaPolicy())) != ids(read_shots(five, 3, 1, MediaPolicy()))


def test_the_order_of_the_file_does_not_change_which_are_chosen(five, tmp_path):
    lines = five.read_text().splitlines()
    turned = tmp_path / "turned.jsonl"
    turned.write_text("\n".join(reversed(lines)))
    assert ids(read_shots(five, 2, 4, MediaPolicy())) == ids(read_shots(turned, 2, 4, MediaPolicy()))


@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 3))
def test_a_sample_is_never_its_own_example(count, number, epoch):
    samples = tuple(Sample(f"s{n}", expected_answer="a") for n in range(6))
    shots = Shots(samples, count, MediaPolicy())
    for sample in (Sample(f"s{number}"), Sample(f"s{number}#{epoch}", epoch=epoch)):
        taken = [shot.id for shot in shots.examples(sample)]
        assert f"s{number}" not in taken
        assert len(taken) == min(count, 6 - (number < 6))
        others = [name for name in ids(shots) if name != f"s{number}"]
        assert taken[: len(others)] == others  # the others stay, in their order


def test_examples_are_turns_before_the_question(five):
    assert turns(Sample("x", question="Who?"), five, "vqa", prompt="plain", shot_count=1, system="S") == [
        ("system", "S"),
        ("user", "q0"),  # `printf 0:s0 | sha256sum` is the smallest of the five
        ("assistant", "a0"),
        ("user", "Who?"),
    ]
    without = turns(Sample("x", question="Who?"), five, shot_count=0)
    assert without == [("user", "Who?")]


def test_the_template_is_that_of_the_samples_and_the_answer_is_a_letter(tmp_path):
    records = [
        {"id": "1", "question": "Which?", "choices": ["Dog", "Cat"], "expected_answer": "cat"},
        {"id": "2", "question": "Which?", "choices": ["Dog", "Cat"], "references": ["A"]},
    ]
    made = turns(Sample("x", question="This?", choices=["u", "v"]), written(tmp_path, records), "mcq")
    assert made[0] == (
        "user",
        "Which?\nA. Dog\nB. Cat\nAnswer with the option's letter from the given choices directly.",
    )
    assert [text for role, text in made if role == "assistant"] == ["B", "A"]


@pytest.mark.parametrize(
    ("sample", "answer"),
    [
        (Sample("1", expected_answer="e", references=["r"], generated_answer="g"), "e"),
        (Sample("1", references=["r", "s"], caption="c"), "r"),
        (Sample("1", caption="c"), "c"),
        (Sample("1", generated_answer="g"), "g"),
        (Sample("1", messages=[Message("user", "q"), Message("assistant", "m")]), "m"),
        (Sample("1", messages=[Message("user", "q")]), None),
        (Sample("1", question="q"), None),
    ],
)
def test_the_answer_of_an_example(sample, answer):
    assert answer_of(sample) == answer


def test_messages_as_examples(tmp_path):
    messages = [("system", "unused"), ("user", "1+1?"), ("assistant", "2")]
    record = {"id": "m", "messages": [{"role": role, "content": text} for role, text in messages]}
    made = turns(Sample("x", question="2+2?"), written(tmp_path, [record]))
    assert made == [("user", "1+1?"), ("assistant", "2"), ("user", "2+2?")]


def test_images_of_examples_are_beside_their_file(tmp_path):
    (tmp_path / "examples").mkdir()
    content = encoded(gradient())
    (tmp_path / "examples" / "a.png").write_bytes(content)
    file = written(tmp_path / "examples", [{"id": "1", "question": "q", "image": "a.png", "expected_answer": "a"}])
    config = GenerationConfig(model="echo:", shots=str(file))
    prompts = Prompts(config, policy=MediaPolicy(root=tmp_path / "data"))
    made = asyncio.run(prompts.request(Sample("x", question="Who?")))
    assert [media.content for media in made.media] == [content]


def test_a_damaged_image_of_an_example_stops_the_run(tmp_path):
    file = written(tmp_path, [{"id": "e1", "question": "q", "image": "no.png", "expected_answer": "a"}])
    with pytest.raises(ConfigError, match=r"the example 'e1' of .*shots.jsonl: there is no file 'no.png'"):
        turns(Sample("x", question="Who?"), file, policy=MediaPolicy(root=tmp_path))


@pytest.mark.parametrize(
    ("records", "settings", "reason"),
    [
        ([{"id": "1", "question": "q"}], {}, "the example '1' has no answer"),
        ([{"id": "1", "question": "q", "expected_answer": "a"}], {"shot_count": 2}, "has 1 examples.*asks for 2"),
        ([{"id": "1", "expected_answer": "a"}], {"prompt": "vqa"}, "the example '1' of .*: the template vqa, line 2"),
        ([{"id": "1"}, {"id": "1"}], {}, "DUPLICATE"),
        ([], {}, "no samples|empty"),
    ],
)
def test_bad_files_are_refused_before_anything_is_asked(tmp_path, records, settings, reason):
    config = GenerationConfig(model="echo:", shots=str(written(tmp_path, records)), **settings)
    with pytest.raises((ConfigError, InputError), match=reason):
        Prompts(config)


def test_a_missing_file(tmp_path):
    with pytest.raises(MultimodalEvalError, match=r"no\.jsonl"):
        Prompts(GenerationConfig(model="echo:", shots=str(tmp_path / "no.jsonl")))
    with pytest.raises(ConfigError, match="`shot_count` needs a file with examples"):
        Prompts(GenerationConfig(model="echo:", shot_count=2))


def test_the_signature_has_the_examples(five, tmp_path):
    def settings(file, count, seed=0):
        return Prompts(GenerationConfig(model="echo:", shots=str(file), shot_count=count), seed=seed).settings["shots"]

    assert settings(five, 2).startswith("2@")
    assert len({settings(five, 2), settings(five, 3), settings(five, 2, seed=1), settings(five, None)}) == 4
    other = written(
        tmp_path, [{"id": f"s{n}", "question": f"q{n}", "expected_answer": "a"} for n in range(5)], "o.jsonl"
    )
    assert settings(other, 2) != settings(five, 2)
