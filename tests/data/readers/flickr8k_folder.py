"""Miniature Flickr8k files, with captions written for these tests."""

from __future__ import annotations

CAPTIONS = {
    "dog.jpg": [
        "A brown dog runs along the beach .",
        "A dog with a ball in its mouth .",
        "A wet dog is running on sand .",
        "The dog plays near the sea .",
        "A dog runs .",
    ],
    "cat.jpg": [
        "A grey cat sleeps on a chair .",
        "A cat is lying on a red cushion .",
        "The cat has its eyes closed .",
        "A sleeping cat .",
        "A small cat rests indoors .",
    ],
    "boat.jpg": [
        "A fishing boat lies in the harbor .",
        "Two men stand on a boat .",
        "A blue boat at the pier .",
        "The boat is tied up at sunset .",
        "A boat on calm water .",
    ],
    "bike.jpg": [
        "A boy rides a bike down a hill .",
        "A child on a bicycle .",
        "The boy wears a helmet on his bike .",
        "A boy cycles through the park .",
        "A kid rides a small bike .",
    ],
}
EXPERT = [
    ("dog.jpg", "dog.jpg#2", "4", "4", "4"),  # the image's own caption
    ("dog.jpg", "cat.jpg#2", "1", "2", "1"),
    ("dog.jpg", "bike.jpg#2", "1", "1", "1"),
    ("cat.jpg", "dog.jpg#2", "2", "2", "1"),
    ("cat.jpg", "boat.jpg#2", "1", "1", "2"),
    ("boat.jpg", "boat.jpg#0", "3", "4", "4"),  # the image's own caption
    ("boat.jpg", "dog.jpg#4", "1", "1", "1"),
    ("bike.jpg", "dog.jpg#4", "2", "3", "2"),
    ("bike.jpg", "cat.jpg#3", "1", "1", "1"),
]
CROWD = [
    ("dog.jpg", "dog.jpg#2", "1", "3", "0"),
    ("dog.jpg", "cat.jpg#2", "0.333333333333", "1", "2"),
    ("cat.jpg", "dog.jpg#2", "0.25", "1", "3"),
    ("boat.jpg", "bike.jpg#1", "0", "0", "3"),
    ("bike.jpg", "dog.jpg#4", "0.666666666667", "2", "1"),
]


def token_lines(captions=None):
    return [f"{image}#{k}\t{text}" for image, texts in (captions or CAPTIONS).items() for k, text in enumerate(texts)]


def lines_of(rows):
    return ["\t".join(row) for row in rows]


def write_lines(path, lines):
    path.write_bytes("\n".join(lines).encode())


def make_folder(folder, *, expert=EXPERT, crowd=CROWD, captions=None):
    folder.mkdir(exist_ok=True)
    write_lines(folder / "Flickr8k.token.txt", token_lines(captions))
    if expert:
        write_lines(folder / "ExpertAnnotations.txt", lines_of(expert))
    if crowd:
        write_lines(folder / "CrowdFlowerAnnotations.txt", lines_of(crowd))
    return folder
