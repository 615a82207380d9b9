"""What a task of a harness asks: media at the marks of the prompt, up to the request that is sent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PIL import Image

from multimodal_eval import Sample
from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.conversation import Message, MessagePart
from multimodal_eval.evaluation.harness.child_content import part_of, with_marks
from multimodal_eval.generate.prompts import Prompts
from multimodal_eval.generate.protocol import Text
from multimodal_eval.media.policy import MediaPolicy

MEDIA = {kind: {"type": kind, kind: f"1.{kind}"} for kind in ("image", "audio", "video")}


def text(content: str) -> dict[str, str]:
    return {"type": "text", "text": content}


def test_several_images_are_sent_in_the_order_of_the_marks(tmp_path: Path):
    images = [Image.new("RGB", (4, 4), colour) for colour in ("red", "green", "blue")]
    first, second, third = (part_of(image, tmp_path) for image in images)
    parts = with_marks("<image>Is <image> between these?\n<image>\nAnswer:", [first, second, third])
    assert parts == [first, text("Is "), second, text(" between these?\n"), third, text("\nAnswer:")]

    content = [MessagePart(part["type"], part[part["type"]]) for part in parts]
    prompts = Prompts(GenerationConfig(model="echo:"), policy=MediaPolicy(root=tmp_path))
    request = asyncio.run(prompts.request(Sample("1", messages=[Message("user", content)])))
    sent = [part.text if isinstance(part, Text) else part.content for turn in request.turns for part in turn.parts]
    files = [(tmp_path / each["image"]).read_bytes() for each in (first, second, third)]
    assert len(set(files)) == 3
    assert sent == [files[0], "Is ", files[1], " between these?\n", files[2], "\nAnswer:"]


def test_images_are_at_the_first_mark_of_their_number():
    first, second, third = ({"type": "image", "image": f"{n}.png"} for n in range(3))
    parts = with_marks("See <image 2> and <image 1>, then <image 2>: <image 9>", [first, second, third])
    assert parts == [
        *(third, text("See "), second, text(" and "), first),
        *(text(", then "), text("<image 2>"), text(": <image 9>")),
    ]


@pytest.mark.parametrize(
    ("prompt", "kinds", "expected"),
    [
        ("Which?", ["image", "image"], ["image", "image", "Which?"]),  # no marks: media first
        ("<image> or <image>?", ["image"], ["image", "<image> or <image>?"]),  # more marks than images
        ("<image>?", ["image", "image"], ["image", "image", "<image>?"]),
        ("<image>?", [], ["<image>?"]),
        ("", ["image"], ["image", ""]),
        # each kind goes to its own marks, and a kind without as many marks before the text
        ("See <image>, hear <audio>.", ["image", "audio"], ["See ", "image", ", hear ", "audio", "."]),
        ("Hear <audio>, see <image>.", ["image", "audio"], ["Hear ", "audio", ", see ", "image", "."]),
        ("<image> or <image>?", ["image", "audio"], ["image", "audio", "<image> or <image>?"]),
        ("<image>?", ["image", "audio"], ["audio", "image", "?"]),
        ("<video>\nWhat?", ["video"], ["video", "\nWhat?"]),
    ],
)
def test_media_without_their_marks_come_first(prompt: str, kinds: list[str], expected: list[str]):
    parts = with_marks(prompt, [MEDIA[kind] for kind in kinds])
    assert parts == [MEDIA.get(each) or text(each) for each in expected]
