"""Build the images, questions and answers of the demo: python -m tools.build_demo

Images and texts are generated from a seed with the scenes of shapes-clip, so that the truth is known. Two imaginary
systems answer: Alba makes few errors, Boreas many. The photographs of the hallucination task exist only as texts,
which were written by hand (tools/demo_photographs.json).
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from tools.shapes_clip.captions import caption, hard_distractors
from tools.shapes_clip.drawing import draw
from tools.shapes_clip.scenes import COLOURS, MAX_COUNT, SHAPES, TEXTURES, Scene, random_scene
from tools.shapes_clip.wording import COLOUR_WORDS, COUNT_WORDS, SHAPE_WORDS, TEXTURE_WORDS

FOLDER = Path(__file__).parents[1] / "src" / "multimodal_eval" / "data" / "demo"
PHOTOGRAPHS = Path(__file__).with_name("demo_photographs.json")
SYSTEMS = {"alba": 0.12, "boreas": 0.45}  # how often each is wrong
SCENES, PIXELS, PEOPLE = 24, 200, 10
KINDS = ("single", "group", "pair", "two groups", "inside", "pair")
OFF_TOPIC = ("I like pictures with bright colors.", "This reminds me of a rainy day.", "Could you send it again?")
ARRANGEMENTS = ("one thing", "one group", "two things", "two groups", "one inside another")
FAILED, SILENT = "[ERROR] request timed out after 30 s", " "

Row = dict[str, Any]


def main() -> None:
    random = Random("demo")
    scenes = {f"scene-{number + 1:02}": random_scene(random, KINDS[number % len(KINDS)]) for number in range(SCENES)}
    (FOLDER / "images").mkdir(parents=True, exist_ok=True)
    for name, scene in scenes.items():
        image = draw(scene, random.getrandbits(48), PIXELS)
        image.save(FOLDER / "images" / f"{name}.png", optimize=True)
    write("captioning", captioning(scenes, random))
    write("vqa", questions(scenes, random))
    write("contextual_relevance", requests(scenes, random))
    write("hallucination", photographs())
    write("classification", arrangements(scenes, Random("arrangements")))


def write(task: str, rows: list[tuple[Row, dict[str, str]]]) -> None:
    """Write the data of a task to one file, and the answers of each system to another."""
    _write(task, [row for row, _ in rows])
    for system in SYSTEMS:
        _write(f"{task}.{system}", [{"id": row["id"], "generated_answer": answers[system]} for row, answers in rows])


def _write(name: str, rows: list[Row]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    (FOLDER / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def _image(name: str) -> str:
    return f"images/{name}.png"


def _answer(scene: Scene, random: Random, share_wrong: float) -> str:
    """A system's description of a scene: true, or with one error."""
    if random.random() < share_wrong:
        return hard_distractors(scene, 1, random, detail=0.93)[0].text
    return caption(scene, random, 0.93).text


def _references(scene: Scene, random: Random, count: int) -> list[str]:
    """Different true captions."""
    captions: dict[str, None] = {}
    while len(captions) < count:
        captions[caption(scene, random, random.choice((1.0, 0.93))).text] = None
    return list(captions)


def captioning(scenes: dict[str, Scene], random: Random) -> list[tuple[Row, dict[str, str]]]:
    rows = []
    for name, scene in scenes.items():
        row = {"id": name, "image": _image(name), "references": _references(scene, random, 4)}
        rows.append((row, {system: _answer(scene, random, wrong) for system, wrong in SYSTEMS.items()}))
    rows[4][1]["boreas"], rows[17][1]["boreas"] = FAILED, SILENT  # as in real runs
    return rows


def questions(scenes: dict[str, Scene], random: Random) -> list[tuple[Row, dict[str, str]]]:
    rows = []
    for name, scene in scenes.items():
        question, truth, words, wrong_answers = _question(scene, random)
        people = [truth if random.random() < 0.75 else random.choice(words) for _ in range(PEOPLE)]
        row = {"id": name, "image": _image(name), "question": question, "expected_answer": truth, "references": people}
        answers = {}
        for system, wrong in SYSTEMS.items():
            word = random.choice(wrong_answers) if random.random() < wrong else truth
            answers[system] = random.choice((word, word, word.capitalize() + ".", f"It is {word}."))
        rows.append((row, answers))
    return rows


def _question(scene: Scene, random: Random) -> tuple[str, str, list[str], list[str]]:
    """A question, its answer, synonyms of the answer, and wrong answers of the same kind."""
    group = random.choice(scene.groups)
    is_unique = len({other.shape for other in scene.groups}) == len(scene.groups)
    singular, plural = SHAPE_WORDS[group.shape][0]
    name = singular if group.count == 1 else plural
    verb, does = ("is", "does") if group.count == 1 else ("are", "do")
    options = []
    if is_unique:
        words = COLOUR_WORDS[group.colour]
        wrong = [colour for colour in COLOURS if colour != group.colour]
        options.append((f"What color {verb} the {name}?", words, wrong))
        words = COUNT_WORDS.get(group.count, ("one", "1"))
        wrong = [COUNT_WORDS.get(n, ("one",))[0] for n in range(1, MAX_COUNT + 1) if n != group.count]
        options.append((f"How many {plural} are there?", words, wrong))
        if group.texture != "plain":
            words = TEXTURE_WORDS[group.texture]
            wrong = [texture for texture in TEXTURES if texture != group.texture]
            options.append((f"What pattern {does} the {name} have?", words, wrong))
    if len({other.colour for other in scene.groups}) == len(scene.groups):
        words = tuple(pair[0 if group.count == 1 else 1] for pair in SHAPE_WORDS[group.shape])
        wrong = [SHAPE_WORDS[shape][0][0 if group.count == 1 else 1] for shape in SHAPES if shape != group.shape]
        options.append((f"What {verb} the {group.colour} {'thing' if group.count == 1 else 'things'}?", words, wrong))
    question, words, wrong = random.choice(options)
    return question, words[0], list(words), wrong


def requests(scenes: dict[str, Scene], random: Random) -> list[tuple[Row, dict[str, str]]]:
    """The same images with a request to describe them. A system may answer off topic."""
    rows = []
    for name, scene in scenes.items():
        row = {
            "id": name,
            "image": _image(name),
            "prompt": "Describe the picture to somebody who cannot see it.",
            "references": _references(scene, random, 3),
        }
        answers = {}
        for system, wrong in SYSTEMS.items():
            is_off_topic = random.random() < wrong / 2
            answers[system] = random.choice(OFF_TOPIC) if is_off_topic else _answer(scene, random, wrong / 2)
        rows.append((row, answers))
    return rows


def arrangements(scenes: dict[str, Scene], random: Random) -> list[tuple[Row, dict[str, str]]]:
    """The arrangement as one of five labels. Three annotators disagree sometimes, and some annotations are missing."""
    rows = []
    for name, scene in scenes.items():
        truth = _arrangement(scene)
        others = [label for label in ARRANGEMENTS if label != truth]
        people = [truth if random.random() < 0.75 else random.choice(others) for _ in range(3)]
        annotations = {f"person {number}": label for number, label in enumerate(people, 1) if random.random() < 0.9}
        row = {"id": name, "image": _image(name), "expected_answer": truth, "annotations": annotations}
        answers = {
            system: random.choice(others) if random.random() < wrong else truth for system, wrong in SYSTEMS.items()
        }
        rows.append((row, answers))
    return rows


def _arrangement(scene: Scene) -> str:
    if scene.relation == "inside":
        return "one inside another"
    several = any(group.count > 1 for group in scene.groups)
    if len(scene.groups) == 1:
        return "one group" if several else "one thing"
    return "two groups" if several else "two things"


def photographs() -> list[tuple[Row, dict[str, str]]]:
    texts = json.loads(PHOTOGRAPHS.read_text(encoding="utf-8"))
    return [({"id": name, "references": entry["references"]}, entry["answers"]) for name, entry in texts.items()]


if __name__ == "__main__":
    main()
