"""Requests: built-in templates, messages, the system prompt, dialogues, the signature, and how requests are shown."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass

import pytest

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.conversation import Message, MessagePart
from multimodal_eval.core.errors import ConfigError, InputError, MediaError, UnknownNameError
from multimodal_eval.core.metric import Signature
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.tasks_config import TASKS
from multimodal_eval.generate import prompts as module
from multimodal_eval.generate.prompts import Earlier, Prompts, prompt_text, prompts, with_files
from multimodal_eval.generate.protocol import Media, Request, Text, Turn
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.run.previews import as_json, show
from tests.media.image_files import encoded, gradient

PNG = encoded(gradient(8, 6))
SHORT = "Answer the question using a single word or phrase."


def prompter(task=None, **settings):
    return Prompts(with_files(GenerationConfig(model="echo:", **settings)), task)


def request(sample, task=None, earlier=(), **settings):
    return asyncio.run(prompter(task, **settings).request(sample, earlier))


def asked(sample, task=None, **settings):
    return request(sample, task, **settings).prompt


# Templates by name, and by task


def test_built_in_templates_have_a_name_and_a_purpose():
    assert list(prompts()) == ["caption", "dialogue", "mcq", "plain", "transcription", "vqa", "yes_no"]
    assert prompts()["vqa"] == "A short answer to a question."
    assert prompt_text("plain").endswith('{{ prompt or question or "" }}\n')
    with pytest.raises(UnknownNameError, match=r"no prompt is named 'vqaa'. Did you mean 'vqa'?"):
        prompt_text("vqaa")
    with pytest.raises(UnknownNameError):
        prompt_text("../protocol")


@pytest.mark.parametrize(
    ("task", "sample", "expected"),
    [
        ("captioning", Sample("1", image=PNG), "Provide a one-sentence caption for the provided image."),
        ("vqa", Sample("1", question="Who?"), f"Who?\n{SHORT}"),
        ("docvqa", Sample("1", question="Who?"), f"Who?\n{SHORT}"),
        ("pope", Sample("1", question="Is it?"), "Is it?\nAnswer the question with yes or no."),
        ("mme", Sample("1", question="Is it? Please answer yes or no."), "Is it? Please answer yes or no."),
        ("translation", Sample("1", question="Translate: Hund"), "Translate: Hund"),
        (None, Sample("1", question="Who?"), "Who?"),
        (None, Sample("1", task="vqa", question="Who?"), f"Who?\n{SHORT}"),
        ("vqa", Sample("1", prompt="Say who.", question="Who?"), "Say who."),  # the sample has its own prompt
    ],
)
def test_the_task_chooses_the_template(task, sample, expected):
    assert asked(sample, task) == expected


MCQ = "Which?\nA. dog\nB. cat\nAnswer with the option's letter from the given choices directly."


@pytest.mark.parametrize("task", [None, "mcq", "vqa"])
def test_choices_get_letters_whether_they_are_a_list_or_a_mapping(task):
    assert asked(Sample("1", question="Which?", choices=["dog", "cat"]), task) == MCQ
    assert asked(Sample("1", question="Which?", choices={"A": "dog", "B": "cat"}), task) == MCQ


def test_transcription():
    audio = b"RIFF\x24\0\0\0WAVEfmt "
    assert asked(Sample("1", audio=audio), "asr").startswith("Transcribe the speech in the audio.")


def test_every_task_with_a_template_is_a_task():
    assert set(module._BY_TASK) <= set(TASKS)
    assert set(module._BY_TASK.values()) <= set(prompts())


def test_every_task_has_a_template_that_renders():
    sample = Sample("1", question="Which?", choices=["a", "b"], audio=b"RIFF\x24\0\0\0WAVEfmt ")
    assert all(asked(sample, task) for task in TASKS)


def test_a_named_template_is_used_for_all_samples(tmp_path):
    file = tmp_path / "mine.md"
    file.write_text("Q: {{ question }}\nA:\n")
    assert asked(Sample("1", question="Who?", prompt="other"), "vqa", prompt=str(file)) == "Q: Who?\nA:"
    assert asked(Sample("1", question="Who?", prompt="other"), "pope", prompt="vqa") == f"Who?\n{SHORT}"
    assert asked(Sample("1", question="Who?"), "vqa", template="{{ question | upper }}") == "WHO?"


def test_files_are_read_once_into_the_configuration(tmp_path, monkeypatch):
    (tmp_path / "mine.md").write_text("Q: {{ question }}")
    (tmp_path / "system.txt").write_text("Be brief.\n")
    (tmp_path / "shots.jsonl").write_text('{"id": "s", "question": "q", "expected_answer": "a"}\n')
    monkeypatch.chdir(tmp_path)
    config = with_files(GenerationConfig(model="m", prompt="mine.md", system="@system.txt", shots="shots.jsonl"))
    assert (config.template, config.system) == ("Q: {{ question }}", "Be brief.")
    assert config.shots == str(tmp_path / "shots.jsonl")
    (tmp_path / "mine.md").unlink()
    assert with_files(config) == config  # a resumed run needs the template's file no more


def test_a_prompt_that_is_neither_a_name_nor_a_file(tmp_path):
    with pytest.raises(UnknownNameError, match=r"no prompt is named 'vqu'. Did you mean 'vqa'?"):
        prompter(prompt="vqu")
    with pytest.raises(ConfigError, match=r"the prompt 'no/such.md' is not a file. Prompts with a name: caption, "):
        prompter(prompt="no/such.md")
    with pytest.raises(ConfigError, match=r"the system prompt 'no.txt' is not a file"):
        prompter(system="@no.txt")
    (tmp_path / "binary.md").write_bytes(b"\xff\xfe\0")
    with pytest.raises(ConfigError, match="cannot be read: it is not text in UTF-8"):
        prompter(prompt=str(tmp_path / "binary.md"))


def test_a_stored_configuration_makes_nobody_read_a_file(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    prompts_ = Prompts(GenerationConfig(model="echo:", system=f"@{secret}"))
    assert asyncio.run(prompts_.request(Sample("1", question="q"))).system == f"@{secret}"
    with pytest.raises(UnknownNameError, match="no prompt is named"):
        Prompts(GenerationConfig(model="echo:", prompt=str(secret)))


def test_a_wrong_template_is_refused_before_anything_is_read():
    with pytest.raises(ConfigError, match="names `references`"):
        prompter(template="{{ references }}")


# Media


def parts(turn):
    return [part.text if isinstance(part, Text) else part.kind for part in turn.parts]


def test_media_come_before_the_text_unless_the_template_places_them():
    sample = Sample("1", question="Same?", image=PNG, images=[encoded(gradient(4, 4))])
    assert parts(request(sample).turns[0]) == ["image", "image", "Same?"]
    first, second = request(sample, template="1:\n{{ images[1] }}\n2: {{ images[0] }} {{ question }}").media
    assert (first.content, second.content) == (encoded(gradient(4, 4)), PNG)
    turn = request(sample, template="{{ question }}\n{{ images[1] }}\nSee?").turns[0]
    assert parts(turn) == ["image", "Same?", "image", "See?"]  # the other image comes first
    assert turn.parts[0].content == PNG


def test_subtitles_are_text_where_the_template_writes_them(tmp_path):
    (tmp_path / "a.srt").write_text(
        "1\n00:00:01,000 --> 00:00:02,000\n<i>Good</i>\n\n2\n00:00:03,000 --> 00:00:04,000\nmorning.\n"
    )
    (tmp_path / "p.md").write_text("{% if subtitles %}Said: {{ subtitles }}\n{% endif %}{{ question }}")

    def text(subtitles, prompt=str(tmp_path / "p.md"), **settings):
        config = with_files(GenerationConfig(model="echo:", prompt=prompt, **settings))
        made = Prompts(config, policy=MediaPolicy(root=tmp_path))
        sample = Sample("1", question="Who?", metadata={"subtitles": subtitles})
        made.check([sample])
        return asyncio.run(made.request(sample)).prompt

    assert text("a.srt") == "Said: Good\nmorning.\nWho?"
    assert text("00:01.000 --> 00:02.000\nInside.") == "Said: Inside.\nWho?"
    assert text("plain words") == "Said: plain words\nWho?"
    assert text(None) == text("") == "Who?"
    with pytest.raises(MediaError, match=r"there is no file 'none.srt'"):
        text("none.srt")
    assert text("none.srt", prompt="plain") == "Who?"  # nothing is read that nothing writes
    assert asked(Sample("1", question="Who?"), prompt=str(tmp_path / "p.md")) == "Who?"
    assert prompter(prompt=str(tmp_path / "p.md")).settings["subtitles"] == "text-1"
    assert "subtitles" not in prompter(prompt="vqa").settings


def test_media_can_be_left_out():
    made = request(Sample("1", question="Who?", image="missing.png"), media_as="none")
    assert parts(made.turns[0]) == ["Who?"]


def test_a_request_needs_text_or_audio():
    prompts_ = prompter()
    with pytest.raises(InputError, match=r"PROMPT: the template plain gives no text.*such as caption"):
        prompts_.check([Sample("1", image=PNG)])
    prompts_.check([Sample("1", audio=b"spoken")])


# Messages


def test_messages_are_the_turns():
    messages = [
        Message("system", "Be kind."),
        Message("user", [MessagePart("image"), MessagePart("text", "Who?"), MessagePart("image")]),
        Message("assistant", "Ann."),
        Message("user", "And he?"),
        Message("assistant", "THE REFERENCE"),
    ]
    other = encoded(gradient(4, 4))
    made = request(Sample("1", messages=messages, images=[PNG, other], question="unused"), "vqa")
    assert [turn.role for turn in made.turns] == ["system", "user", "assistant", "user"]
    assert parts(made.turns[1]) == ["image", "Who?", "image"]
    assert [media.content for media in made.media] == [PNG, other]
    assert made.prompt == "And he?"
    assert "THE REFERENCE" not in as_json(made)


def test_the_system_prompt_of_the_run_replaces_that_of_the_messages():
    sample = Sample("1", messages=[Message("system", "Be kind."), Message("user", "Hi")])
    assert request(sample, system="Be brief.").system == "Be brief."
    assert [turn.role for turn in request(sample, system="Be brief.").turns] == ["system", "user"]


def test_media_of_the_sample_that_no_message_places_come_first():
    sample = Sample("1", messages=[Message("user", "Who?"), Message("assistant", "A"), Message("user", "?")], image=PNG)
    assert parts(request(sample).turns[0]) == ["image", "Who?"]
    placed = Sample(
        "1", messages=[Message("user", [MessagePart("image", PNG), MessagePart("text", "Who?")])], image=PNG
    )
    assert len(request(placed).media) == 1  # the message has its image already


def test_the_detail_of_a_part():
    part = MessagePart("image", PNG, {"detail": "low"})
    sample = Sample("1", messages=[Message("user", [part, MessagePart("image", PNG)])])
    assert [media.detail for media in request(sample).media] == ["low", None]
    assert [media.detail for media in request(sample, detail="high").media] == ["low", "high"]


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([Message("assistant", "Hello")], "none of the user"),
        ([Message("user", "Hi"), Message("system", "x")], "none of the user that a model could answer"),
        ([Message("tool", "4"), Message("user", "Hi")], "the role 'tool'"),
        ([Message("user", [MessagePart("tool_use")])], "a part of the type 'tool_use'"),
        ([Message("user", [MessagePart("image")])], "more places for image"),
        ([Message("user", "")], "a message of the role 'user' is empty"),
    ],
)
def test_messages_that_cannot_be_sent(messages, reason):
    with pytest.raises(InputError, match=reason):
        prompter().check([Sample("1", messages=messages)])


def test_a_template_takes_precedence_over_messages():
    sample = Sample("1", messages=[Message("user", "Hi")], question="Who?")
    assert asked(sample, prompt="plain") == "Who?"


# Dialogues


@dataclass
class Item:
    sample: Sample


def test_chains_are_neighbours_of_a_group_if_there_is_a_history():
    items = [
        Item(Sample(name, group=group)) for name, group in zip("abcdef", ["1", "1", "2", None, None, "2"], strict=True)
    ]
    chained = [[item.sample.id for item in chain] for chain in prompter(history=True).chains(items)]
    assert chained == [["a", "b"], ["c"], ["d"], ["e"], ["f"]]
    assert [len(chain) for chain in prompter().chains(items)] == [1] * 6


def test_earlier_turns_are_part_of_the_request():
    earlier = [Earlier(Sample("a", question="Who?", image=PNG), "Ann."), Earlier(Sample("b", question="Old?"), "Yes.")]
    made = request(Sample("c", question="Sure?"), "vqa", earlier, prompt="plain", history=True, system="Be brief.")
    assert [(turn.role, *parts(turn)) for turn in made.turns] == [
        ("system", "Be brief."),
        ("user", "image", "Who?"),
        ("assistant", "Ann."),
        ("user", "Old?"),
        ("assistant", "Yes."),
        ("user", "Sure?"),
    ]


def test_a_dialogue_must_be_in_one_piece():
    samples = [Sample(name, question="q", group=group) for name, group in zip("abc", "121", strict=True)]
    with pytest.raises(InputError, match=r"the dialogue '1' are not next to each other.*id 'c'"):
        prompter(history=True).check(samples)
    prompter().check(samples)


# What is checked before anything is asked


def test_all_samples_that_cannot_be_asked_are_named():
    samples = [Sample("a", question="q"), *(Sample(f"b{place}") for place in range(30))]
    with pytest.raises(InputError) as error:
        prompter("vqa").check(samples)
    assert error.value.total == 30
    assert str(error.value.problems[0]) == (
        "PROMPT: the template vqa, line 2 ('{{ question or prompt }}'): it writes a field that is empty. "
        "The sample has: id. (id 'b0')"
    )


def test_a_template_that_costs_too_much_is_tried_for_one_sample_only(tmp_path):
    (tmp_path / "slow.md").write_text("{% for i in range(9999) %}{% if question in question %}{% endif %}{% endfor %}x")
    config = with_files(GenerationConfig(model="m", prompt=str(tmp_path / "slow.md")))
    with pytest.raises(InputError, match=r"PROMPT: the template .*slow.md, line 1 .* steps.* \(id 'long'\)") as error:
        Prompts(config).check(
            [Sample("short", question="q"), *(Sample("long", question="q" * 9_999) for _ in range(9))]
        )
    assert error.value.total == 1


def test_a_single_request_names_its_sample_too():
    with pytest.raises(InputError, match=r"PROMPT: the template vqa, line 2 .* \(id 'x'\)"):
        request(Sample("x"), "vqa")


# The signature


def test_settings_name_everything_that_changes_a_request(tmp_path):
    (tmp_path / "mine.md").write_text("{{ question }}")
    settings = prompter("vqa", prompt=str(tmp_path / "mine.md"), system="s", parameters=Parameters(top_p=0.5)).settings
    assert list(settings) == ["prompt", "system", "images", "top_p"]
    assert settings["prompt"] == "mine.md@ef6fb466fa88"  # sha256sum of the file
    assert settings["system"] == "043a718774c5"  # printf s | sha256sum
    assert settings["top_p"] == 0.5
    assert str(settings["images"]).startswith("1/pillow-")


def test_further_parameters_are_settings_of_their_own():
    settings = prompter(parameters=Parameters(stop=["END"], extra={"top_k": 20})).settings
    assert list(settings) == ["prompt", "images", "stop", "extra.top_k"]
    assert str(Signature("generation", "1", settings)).endswith("|stop:['END']|extra.top_k:20")


@pytest.mark.parametrize(
    "changed",
    [
        {"prompt": "caption"},
        {"template": "{{ question }}!"},
        {"system": "x"},
        {"history": True},
        {"max_pixels": 100},
        {"detail": "low"},
        {"media_as": "url"},
        {"media_as": "none"},
        {"parameters": Parameters(seed=1)},
    ],
)
def test_every_setting_changes_the_settings(changed):
    assert prompter("vqa", **changed).settings != prompter("vqa").settings


def test_the_default_by_task_names_the_templates_that_it_may_use():
    assert str(prompter("vqa").settings["prompt"]).startswith("vqa+mcq+plain@")
    assert str(prompter("captioning").settings["prompt"]).startswith("caption+plain@")
    assert str(prompter().settings["prompt"]).startswith("plain+mcq@")


def test_equal_requests_have_equal_digests():
    first, second = (request(Sample(name, question="Who?", image=PNG), "vqa") for name in "ab")
    assert first.digest == second.digest
    assert first.digest != request(Sample("a", question="Who?", image=encoded(gradient(4, 4))), "vqa").digest
    assert first.digest != request(Sample("a", question="Who?", image=PNG), "vqa", system="s").digest


# How requests are shown


def test_show():
    sample = Sample("q1", question="What is shown here? " * 6, image=PNG)
    made = request(sample, system="Be brief.", parameters=Parameters(temperature=0.0, stop=["\n"]))
    assert show(made).split("\n") == [
        "request for 'q1'",
        f"sha256:{made.digest}",
        "parameters: temperature: 0.0, stop: ['\\n']",
        "",
        "[system]",
        "  Be brief.",
        "",
        "[user]",
        f"  <image 8x6 PNG {len(PNG)} bytes sha256:{made.media[0].digest[:12]}>",
        "  What is shown here? What is shown here? What is shown here? What is shown",
        "  here? What is shown here? What is shown here?",
    ]
    assert max(map(len, show(made).split("\n"))) <= 80


def test_show_media_of_other_kinds_and_control_characters():
    media = (
        Media("image", "image/*", url="https://example.org/a.png"),
        Media("audio", "audio/wav", b"x" * 83_400),
        Media("video", "video/mp4", b"x" * 2_500_000),
        Media("video", "image/jpeg", frames=(b"x" * 600, b"y" * 600)),
        Media("image", "image/png", b"damaged"),
        Text("clear\x1b[2J the screen"),
    )
    lines = show(Request("1", (Turn("user", media),))).split("\n")[4:]
    assert [line.partition(" sha256")[0] for line in lines] == [
        "  <image 'https://example.org/a.png'>",
        "  <audio WAV 83 kB",
        "  <video video/mp4 2.5 MB",
        "  <video 2 frames 1 kB",
        "  <image image/png 7 bytes",
        "  clear\\u001b[2J the screen",
    ]


def test_as_json():
    made = request(Sample("q1", question="Who?", image=PNG), parameters=Parameters(seed=3))
    described = json.loads(as_json(made))
    image = {"media": "image", "mime": "image/png", "sha256": made.media[0].digest}
    assert described == {
        "id": "q1",
        "epoch": 1,
        "sha256": made.digest,
        "turns": [{"role": "user", "parts": [image, {"text": "Who?"}]}],
        "parameters": {"seed": 3},
    }


def test_a_run_without_a_model_does_not_load_the_template_engine():
    code = "import sys, multimodal_eval.run.evaluate; sys.exit('jinja2' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_image_stands_where_the_text_says():
    photos = [encoded(gradient(8, 6 + number)) for number in range(3)]
    question = "Compare <image 2> with <image 1>: is <image 1> darker than <image 9>?"
    sample = Sample("a", question=question, images=photos, choices=["<image 3>", "no"])
    parts = request(sample, "mcq").turns[-1].parts
    kinds = ["image" if isinstance(part, Media) else "text" for part in parts]
    assert kinds == ["text", "image", "text", "image", "text", "image", "text"]
    assert [photos.index(part.content) for part in parts if isinstance(part, Media)] == [1, 0, 2]
    assert [part.text for part in parts if isinstance(part, Text)][:2] == ["Compare ", " with "]
    assert parts[4].text.startswith(": is <image 1> darker than <image 9>?")


def test_a_token_without_its_image_is_text():
    (text,) = request(Sample("a", question="What is in <image 1>?"), "vqa").turns[-1].parts
    assert text.text.startswith("What is in <image 1>?")
