"""The example of the dialogue contest: its files are consistent, and its media are valid."""

from __future__ import annotations

import json
import re
import wave
from collections import Counter
from importlib.resources import files
from pathlib import Path
from statistics import fmean

import pytest
from PIL import Image

from multimodal_eval.evaluation.metrics.meteor import meteor

FOLDER = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))
SYSTEMS = ("alba", "boreas")
MODALITIES = {  # the parts besides text in a dialogue of the type
    "Text2Text": set(),
    "Image2Text": {"image"},
    "Audio2Text": {"audio"},
    "Image-Audio2Text": {"image", "audio"},
}
PREFIXES = {"Text2Text": "t2t", "Image2Text": "i2t", "Audio2Text": "a2t", "Image-Audio2Text": "ia2t"}


def read(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


QUESTIONS, GOLD = read("questions"), read("gold")
ANSWERS = {system: read(f"submissions/{system}/output") for system in SYSTEMS}


def parts(dialogue):
    return [part for turn in QUESTIONS[dialogue] for part in turn]


def media(kind):
    """The files of a kind, once for each dialogue that uses them."""
    return [
        content
        for dialogue in QUESTIONS
        for content in {part["content"] for part in parts(dialogue) if part["type"] == kind}
    ]


def language(texts):
    """`ru` if every text with a letter has a Cyrillic letter, `en` if no text has one, else both."""
    cyrillic = {bool(re.search("[а-яё]", text, re.IGNORECASE)) for text in texts if re.search(r"[^\W\d]", text)}
    return "+".join(sorted("ru" if has_cyrillic else "en" for has_cyrillic in cyrillic))


def test_every_file_has_the_same_dialogues_in_the_same_order():
    assert len(GOLD) == 24
    assert list(QUESTIONS) == list(GOLD) == list(ANSWERS["alba"]) == list(ANSWERS["boreas"])


@pytest.mark.parametrize("dialogue", GOLD)
def test_every_turn_has_one_reply_and_one_answer_from_each_system(dialogue):
    replies = GOLD[dialogue]["replies"]
    assert 1 <= len(replies) <= 4
    assert {len(QUESTIONS[dialogue]), len(ANSWERS["alba"][dialogue]), len(ANSWERS["boreas"][dialogue])} == {
        len(replies)
    }
    for variants in replies:
        assert 2 <= len(set(variants)) == len(variants) <= 3
    texts = [variant for variants in replies for variant in variants] + [part["content"] for part in parts(dialogue)]
    texts += ANSWERS["alba"][dialogue] + ANSWERS["boreas"][dialogue]
    assert all(isinstance(text, str) and text == text.strip() != "" for text in texts)


@pytest.mark.parametrize("dialogue", GOLD)
def test_the_parts_match_the_type(dialogue):
    kind = GOLD[dialogue]["type"]
    assert dialogue.startswith(f"{PREFIXES[kind]}-")
    assert {part["type"] for part in parts(dialogue)} - {"text"} == MODALITIES[kind]
    first = {part["type"] for part in QUESTIONS[dialogue][0]}
    assert first - {"text"} == MODALITIES[kind]  # a later turn may refer to earlier media
    for turn in QUESTIONS[dialogue]:
        assert turn
        assert all(set(part) == {"type", "content"} for part in turn)


@pytest.mark.parametrize("dialogue", GOLD)
def test_a_dialogue_has_the_language_of_its_name(dialogue):
    expected = dialogue.split("-")[1]
    texts = [part["content"] for part in parts(dialogue) if part["type"] == "text"]
    texts += [variant for variants in GOLD[dialogue]["replies"] for variant in variants]
    assert language(texts + ANSWERS["alba"][dialogue] + ANSWERS["boreas"][dialogue]) == expected
    assert all(part["content"].endswith(f"-{expected}.wav") for part in parts(dialogue) if part["type"] == "audio")


def test_half_of_each_type_is_russian_and_half_english():
    assert Counter((dialogue["type"], name.split("-")[1]) for name, dialogue in GOLD.items()) == {
        (kind, code): 3 for kind in MODALITIES for code in ("en", "ru")
    }


def test_the_media_folder_holds_exactly_the_named_files():
    present = {path.relative_to(FOLDER).as_posix() for path in (FOLDER / "media").iterdir()}
    assert present == {*media("image"), *media("audio")}


@pytest.mark.parametrize("name", sorted(set(media("image"))))
def test_an_image_opens_and_is_not_blank(name):
    with Image.open(FOLDER / name) as image:
        assert (image.format, image.size) == ("PNG", (320, 240))
        assert len(image.convert("RGB").getcolors(320 * 240)) > 50
    assert (FOLDER / name).stat().st_size <= 15_000


@pytest.mark.parametrize("name", sorted(set(media("audio"))))
def test_a_recording_is_short_mono_and_8_khz(name):
    with wave.open(str(FOLDER / name)) as recording:
        assert (recording.getnchannels(), recording.getsampwidth(), recording.getframerate()) == (1, 2, 8_000)
        assert 0.5 <= recording.getnframes() / 8_000 <= 3
        samples = memoryview(recording.readframes(recording.getnframes())).cast("h")
    assert max(map(abs, samples)) > 10_000


def test_no_recording_is_used_in_two_dialogues():
    assert max(Counter(media("audio")).values()) == 1


def test_the_example_stays_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 700_000


def test_alba_is_ahead_in_most_dialogues_and_boreas_in_some():
    leads = Counter()
    for name in GOLD:
        alba, boreas = (value(name, system) for system in SYSTEMS)
        leads["alba" if alba > boreas else "boreas" if boreas > alba else "nobody"] += 1
    assert leads["alba"] > len(GOLD) / 2
    assert leads["boreas"] >= 3


def value(name, system):
    """The dialogue's mean METEOR, with the best variant for each reply."""
    replies = zip(ANSWERS[system][name], GOLD[name]["replies"], strict=True)
    options = {"variant": "fmean", "language": name.split("-")[1], "synonyms": "none"}
    return fmean(meteor(answer, variants, **options) for answer, variants in replies)
