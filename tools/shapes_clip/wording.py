"""Statements in English, with synonyms and many sentence patterns."""

from __future__ import annotations

from random import Random
from typing import TypeVar

from tools.shapes_clip.statements import Mention, Statement

T = TypeVar("T")

# The first word of each entry is the most common one and is chosen most often.
COLOUR_WORDS = {
    "red": ("red", "crimson", "scarlet"),
    "orange": ("orange", "tangerine"),
    "yellow": ("yellow", "golden"),
    "green": ("green", "emerald"),
    "blue": ("blue", "cobalt"),
    "purple": ("purple", "violet"),
    "pink": ("pink", "rosy"),
    "brown": ("brown", "chocolate"),
    "black": ("black", "ebony"),
    "white": ("white", "ivory"),
    "gray": ("gray", "grey"),
}
SHAPE_WORDS = {
    "circle": (("circle", "circles"), ("disc", "discs"), ("disk", "disks"), ("round thing", "round things")),
    "square": (("square", "squares"), ("box", "boxes")),
    "triangle": (("triangle", "triangles"), ("three-cornered shape", "three-cornered shapes")),
    "star": (("star", "stars"),),
    "ring": (("ring", "rings"), ("hoop", "hoops"), ("donut", "donuts")),
    "cross": (("cross", "crosses"), ("plus sign", "plus signs")),
    "heart": (("heart", "hearts"),),
    "hexagon": (("hexagon", "hexagons"), ("six-sided shape", "six-sided shapes")),
    "diamond": (("diamond", "diamonds"), ("rhombus", "rhombuses"), ("lozenge", "lozenges")),
    "crescent": (("crescent", "crescents"), ("moon", "moons")),
}
ANY_SHAPE = (("thing", "things"), ("shape", "shapes"), ("object", "objects"), ("figure", "figures"))
TEXTURE_WORDS = {
    "plain": ("plain", "solid", "unpatterned"),
    "striped": ("striped", "stripy", "banded"),
    "dotted": ("dotted", "spotted", "polka-dot"),
    "checked": ("checked", "checkered", "chequered"),
}
TEXTURE_TAILS = {
    "plain": ("without a pattern",),
    "striped": ("with stripes", "covered in stripes", "that has stripes"),
    "dotted": ("with dots", "with spots", "covered in polka dots"),
    "checked": ("with checks", "with a checkerboard pattern", "in a check pattern"),
}
SIZE_WORDS = {"small": ("small", "little", "tiny"), "big": ("big", "large", "huge")}
COUNT_WORDS = {
    2: ("two", "2", "a pair of"),
    3: ("three", "3"),
    4: ("four", "4"),
    5: ("five", "5"),
}
SOME = ("some", "several", "a few", "")
OPENINGS = (
    *("a picture of ", "an image of ", "a drawing of ", "a photo of ", "an illustration showing ", "picture: "),
    *("the image shows ", "this picture shows ", "the drawing shows ", "the picture contains ", "the photo depicts "),
    *("we see ", "you can see ", "i can see ", "there is ", "here is ", "in this image there is ", "it is "),
)
# {a} has the relation to {b}; {it} and {its} refer to {b}, {own} refers to {a}, {is} agrees with {a}.
PATTERNS = {
    "left": (
        *("{a} to the left of {b}", "{a} left of {b}", "{a} on the left of {b}", "{a} {is} to the left of {b}"),
        *("{b} with {a} to {its} left", "{b}; to {its} left, {a}", "on the left {a}, on the right {b}"),
        *("{a} on the left and {b} on the right", "{a} beside {b}, on {its} left side", "to the left of {b}, {a}"),
        "on the right {b}, and {a} on the left",
    ),
    "right": (
        *("{a} to the right of {b}", "{a} right of {b}", "{a} on the right of {b}", "{a} {is} to the right of {b}"),
        *("{b} with {a} to {its} right", "{b}; to {its} right, {a}", "on the right {a}, on the left {b}"),
        *("{a} on the right and {b} on the left", "{a} beside {b}, on {its} right side", "to the right of {b}, {a}"),
        "on the left {b}, and {a} on the right",
    ),
    "above": (
        *("{a} above {b}", "{a} over {b}", "{a} on top of {b}", "{a} {is} above {b}", "{b} with {a} above {it}"),
        *("{b}; above {it}, {a}", "at the top {a}, at the bottom {b}", "{a} at the top and {b} at the bottom"),
        *("{a} higher up than {b}", "above {b}, {a}"),
    ),
    "below": (
        *("{a} below {b}", "{a} under {b}", "{a} beneath {b}", "{a} underneath {b}", "{a} {is} below {b}"),
        *("{b} with {a} below {it}", "{b}; below {it}, {a}", "at the bottom {a}, at the top {b}"),
        *("{a} at the bottom and {b} at the top", "{a} lower down than {b}", "under {b}, {a}"),
    ),
    "inside": (
        *("{a} inside {b}", "{a} within {b}", "{a} in {b}", "{a} {is} inside {b}", "{b} with {a} in {it}"),
        *("{b} with {a} inside", "inside {b}, {a}", "{b} that contains {a}"),
    ),
    "around": (
        *("{a} around {b}", "{a} surrounding {b}", "{a} enclosing {b}", "{a} {is} around {b}", "around {b}, {a}"),
        *("{b} surrounded by {a}", "{b} enclosed by {a}", "{a} with {b} inside {own}"),
    ),
    "": ("{a} and {b}", "{a} with {b}", "{a}, {b}", "{a} and also {b}", "both {a} and {b}", "{a} together with {b}"),
}
BACKGROUNDS = (
    *("{scene} on a {ground} background", "{scene} against a {ground} background", "{scene} on a {ground} backdrop"),
    *("on a {ground} background, {scene}", "{scene}; the background is {ground}", "{scene}, {ground} background"),
    *("{scene} in front of a {ground} background", "{scene} over a {ground} backdrop"),
)


def phrase(statement: Statement, random: Random) -> str:
    """The statement as a text with randomly chosen words."""
    telegram = random.random() < 0.12  # "red circle, blue square": without articles and verbs
    first = statement.mentions[0]
    alone = len(statement.mentions) == 1
    text = noun_phrase(first, random, telegram) if alone else _two(statement, random, telegram)
    if statement.background_colour or statement.background_texture:
        text = random.choice(BACKGROUNDS).format(scene=text, ground=_ground(statement, random))
    if not telegram and random.random() < 0.5 and " is " not in text and " are " not in text and text[:3] != "on ":
        text = _plural_verb(random.choice(OPENINGS), first, text) + text
    text = _articles(text)
    if random.random() < 0.3:
        text = text[0].upper() + text[1:] + "."
    return text


def noun_phrase(mention: Mention, random: Random, bare: bool = False) -> str:
    """A mention in words ("three big red striped stars", "a square with dots"); `bare` omits the article."""
    singular = mention.count == 1
    names = SHAPE_WORDS[mention.shape] if mention.shape else ANY_SHAPE
    name = _mostly_first(names, random)[0 if singular else 1]
    before, tail = [], ""
    if mention.texture is not None:
        if random.random() < 0.65:
            before.append(_mostly_first(TEXTURE_WORDS[mention.texture], random))
        else:
            tail = " " + random.choice(TEXTURE_TAILS[mention.texture])
            tail = tail if singular else tail.replace("that has", "that have")
    if mention.colour is not None:
        before.insert(random.randint(0, len(before)), _mostly_first(COLOUR_WORDS[mention.colour], random))
    if mention.size is not None:
        before.insert(0, random.choice(SIZE_WORDS[mention.size]))
    return " ".join(part for part in (_number(mention, random, bare), *before, name) if part) + tail


def _number(mention: Mention, random: Random, bare: bool) -> str:
    if mention.count is None:
        return random.choice(SOME)
    if mention.count == 1:
        return "" if bare else random.choices(("a", "one", "a single"), weights=(8, 1, 1))[0]
    return random.choices(COUNT_WORDS[mention.count], weights=(6, 2, 2)[: len(COUNT_WORDS[mention.count])])[0]


def _two(statement: Statement, random: Random, bare: bool) -> str:
    first, second = statement.mentions
    singular = second.count == 1
    return random.choice(PATTERNS[statement.relation or ""]).format(
        a=noun_phrase(first, random, bare),
        b=noun_phrase(second, random, bare),
        it="it" if singular else "them",
        its="its" if singular else "their",
        own="it" if first.count == 1 else "them",
        **{"is": "is" if first.count == 1 else "are"},
    )


def _ground(statement: Statement, random: Random) -> str:
    words = []
    if statement.background_colour:
        words.append(_mostly_first(COLOUR_WORDS[statement.background_colour], random))
    if statement.background_texture:
        words.insert(random.randint(0, len(words)), _mostly_first(TEXTURE_WORDS[statement.background_texture], random))
    return " ".join(words)


def _mostly_first(values: tuple[T, ...], random: Random) -> T:
    return values[0] if random.random() < 0.7 else random.choice(values)


def _plural_verb(opening: str, first: Mention, text: str) -> str:
    plural = first.count != 1 and not text.startswith(("a ", "one "))
    if not plural:
        return opening
    return opening.replace("here is", "here are").replace("it is", "these are")  # also changes "there is"


def _articles(text: str) -> str:
    """Replace every "a" before a vowel by "an"."""
    words = text.split(" ")
    for at, word in enumerate(words[:-1]):
        if word == "a" and words[at + 1][0] in "aeiou":
            words[at] = "an"
    return " ".join(words)
