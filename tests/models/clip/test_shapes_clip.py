"""shapes-clip through our own path: it finds the caption of scenes that it never saw."""

from __future__ import annotations

import io
import json
from random import Random

from multimodal_eval.models.clip.pictures import Picture
from multimodal_eval.models.encoders import open_image_text_encoder
from multimodal_eval.models.source import find_model
from tools.shapes_clip.captions import caption, hard_distractors
from tools.shapes_clip.drawing import draw
from tools.shapes_clip.scenes import random_scene

SCENES, DISTRACTORS = 40, 100


def test_it_finds_the_caption_among_hard_distractors():
    encoder = open_image_text_encoder("shapes-clip")
    found = 0
    for number in range(SCENES):
        random = Random(f"unseen {number}")
        scene = random_scene(random)
        captions = [caption(scene, random, 1.0).text]
        captions += [wrong.text for wrong in hard_distractors(scene, DISTRACTORS, random, detail=1.0)]
        picture = draw(scene, random.getrandbits(48), 224)
        stream = io.BytesIO()
        picture.save(stream, "PNG")
        (look,) = encoder.encode_images([Picture(stream.getvalue(), lambda picture=picture: picture)])
        cosines = encoder.encode_texts(captions) @ look
        found += int(cosines.argmax() == 0)
    assert found / SCENES >= 0.85  # 94.7 % of 2,000 scenes, by its card; 1 in 101 by chance


def test_it_is_small_and_its_card_tells_its_figures():
    folder = find_model("shapes-clip").folder
    weights = [
        file for file in folder.iterdir() if file.suffix in (".safetensors", ".json") and "metrics" not in file.name
    ]
    assert sum(file.stat().st_size for file in weights) < 8_000_000
    card, figures = (folder / "README.md").read_text(), json.loads((folder / "metrics.json").read_text())["accuracy"]
    for key in ("image to text", "image to text, detail 1.0", "text to image", "text to image, detail 1.0"):
        assert f"{100 * figures[key]:.1f} %" in card
