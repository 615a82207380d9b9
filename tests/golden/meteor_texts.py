"""Generated texts for METEOR: captions and their edits, unusual texts, Russian. The same seed gives the same texts."""

from __future__ import annotations

import random
import re
from typing import Any

Segment = dict[str, Any]

# --- English captions ----------------------------------------------------------------------------------------------
PEOPLE = "man woman boy girl child kid person baby dog puppy cat horse surfer skier player couple crowd cyclist".split()
QUALITIES = "young old small little big large brown black white red happy tall wet quick lone smiling striped".split()
VERBS = "run jump ride play walk hold catch throw climb swim watch carry push pull chase kick paint carve lift".split()
THINGS = (
    "ball bike bicycle car automobile boat ship bench sofa couch picture photo sign hat box rope stick disc".split()
)
PLACES = "park street beach field river lake forest house home kitchen road hill mountain pool garden city yard".split()
COLOURS = "red blue green yellow orange purple pink gray golden dark bright".split()
LINKS = ["in", "on", "near", "next to", "in front of", "on top of", "close to", "behind", "in the middle of", "at"]
SYNONYMS = [
    "man guy fellow", "child kid youngster", "dog hound canine", "cat feline", "puppy dog", "car automobile auto",
    "bike bicycle", "boat ship vessel", "sofa couch lounge", "picture photo image photograph", "big large",
    "small little", "quick fast rapid", "happy glad felicitous", "street road route", "house home dwelling",
    "hill mountain", "baby infant", "woman lady female", "jump leap spring", "run jog sprint", "throw toss hurl",
    "walk stroll",
    "catch grab get", "hold grip keep", "watch view see", "carry transport", "chase pursue", "forest wood woods",
    "yard garden grounds",
    "person individual someone", "crowd group bunch", "lift raise", "sign mark", "box case", "hat cap", "gray grey",
    "bright brilliant", "golden gilded", "stick branch", "river stream", "city town metropolis", "wet damp moist",
]  # fmt: skip
PARAPHRASES = [
    ("in front of", "before"), ("a lot of", "many"), ("next to", "beside"), ("close to", "near"), ("on top of", "atop"),
    ("as well as", "and"), ("in order to", "to"), ("a number of", "several"), ("in the middle of", "amid"),
    ("at the moment", "now"), ("each other", "one another"), ("because of", "due to"),
    ("take part in", "participate in"), ("a couple of", "two"), ("look at", "watch"), ("is able to", "can"),
    ("at the same time", "simultaneously"), ("a great deal of", "much"),
    ("with respect to", "regarding"), ("in the course of", "during"),
    ("as if", "as though"), ("right now", "at present"), ("all over", "throughout"), ("make use of", "use"),
    ("in addition to", "besides"),
]  # fmt: skip
BOTH_WAYS = PARAPHRASES + [(b, a) for a, b in PARAPHRASES]
SWAPS = {word: group.split() for group in SYNONYMS for word in group.split()}


def inflected(verb: str, form: int) -> str:
    stem = verb[:-1] if verb.endswith("e") else verb + verb[-1] if verb in ("run", "swim") else verb
    if form == 0:
        return verb + ("es" if verb.endswith(("ch", "sh")) else "s")
    return verb if form == 1 else "is " + stem + "ing" if form == 2 else stem + "ed"


def noun_phrase(r: random.Random, nouns: list[str]) -> str:
    noun, form = r.choice(nouns), r.random()
    quality = r.choice(QUALITIES + COLOURS) + " " if r.random() < 0.5 else ""
    if form < 0.2:
        amount = r.choice(["two", "three", "several", "many", "a lot of", "a couple of", "a number of", "some"])
        return f"{amount} {quality}{noun}{'es' if noun.endswith(('ch', 'x')) else 's'}"
    return f"{r.choice(['a', 'a', 'the', 'the', 'one', 'his', 'another'])} {quality}{noun}"


def clause(r: random.Random) -> str:
    words = f"{noun_phrase(r, PEOPLE)} {inflected(r.choice(VERBS), r.randrange(4))}"
    if r.random() < 0.8:
        words += f" {noun_phrase(r, THINGS)}"
    for _ in range(r.randint(0, 2)):
        words += f" {r.choice(LINKS)} {noun_phrase(r, PLACES + PEOPLE)}"
    if r.random() < 0.15:
        words += " " + r.choice(
            [
                "at the moment",
                "right now",
                "because of the rain",
                "with each other",
                "as if tired",
                "at the same time",
                "in order to take part in a race",
                "in the course of a game",
            ]
        )
    return words


def caption(r: random.Random) -> str:
    text = clause(r)
    if r.random() < 0.35:
        text += r.choice([" and ", " while ", ", ", " as ", " as well as ", " - "]) + clause(r)
    text = text[0].upper() + text[1:] if r.random() < 0.6 else text
    return text + r.choice([".", " .", "", "", "!"])


def long_caption(r: random.Random) -> str:
    """Forty to eighty words with many repetitions, so that there are far more alignments than fit into the beam."""
    few = r.sample(PEOPLE + THINGS, r.randint(2, 5)) + r.sample(QUALITIES, r.randint(0, 3)) + ["the", "a", "and"]
    if r.random() < 0.5:
        return " ".join(r.choice(few) for _ in range(r.randint(40, 80)))
    parts: list[str] = []
    while sum(len(part.split()) for part in parts) < 40:
        link = r.choice(["and", "near", "in front of", "with", "of"])
        parts.append(f"the {r.choice(few[:-3])} {link} a {r.choice(few[:-3])}")
    return " ".join(parts)


def repeating(r: random.Random) -> str:
    """A short text with few distinct words, so that a word can be aligned in several ways."""
    few = r.sample(PEOPLE + THINGS, r.randint(1, 3)) + r.sample(
        ["the", "a", "and", "of", "is", "in", ","], r.randint(1, 3)
    )
    return " ".join(r.choice(few) for _ in range(r.randint(5, 16)))


def suffixed(r: random.Random, word: str) -> str:
    if word.endswith("ing") and len(word) > 5:
        return word[:-3] + r.choice(["", "s", "ed", "er"])
    if word.endswith("s") and len(word) > 3:
        return word[:-1]
    return word + r.choice(["s", "s", "ed", "ing", "er", "ly"])


def edited(r: random.Random, text: str, edits: int) -> str:
    """The text with the given number of small changes."""
    words = text.split(" ")
    for _ in range(edits):
        at, kind = r.randrange(len(words)), r.choice((0, 1, 2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 6, 7))
        if kind == 0 and len(words) > 1:
            del words[at]
        elif kind == 1 and at + 1 < len(words):
            words[at], words[at + 1] = words[at + 1], words[at]
        elif kind == 2:
            words.insert(r.randrange(len(words) + 1), words[at])
        elif kind == 3 and words[at].isalpha():
            words[at] = suffixed(r, words[at])
        elif kind == 4:
            known = [i for i, word in enumerate(words) if word in SWAPS or word[:-1] in SWAPS]
            if known:
                at = r.choice(known)
                ending = "" if words[at] in SWAPS else words[at][-1]
                words[at] = r.choice(SWAPS[words[at] if not ending else words[at][:-1]]) + ending
        elif kind == 5:
            sides = [pair for pair in BOTH_WAYS if f" {pair[0]} " in " ".join(words)]
            if sides:
                old, new = r.choice(sides)
                words = " ".join(words).replace(f" {old} ", f" {new} ", 1).split(" ")
        elif kind == 6 and len(words) > 3:  # swap the two parts
            words = words[at:] + words[:at]
        elif kind == 7:
            words.insert(at, r.choice(["the", "a", "of", "and", "is", ",", r.choice(COLOURS)]))
    return " ".join(words)


def ordinary(r: random.Random) -> Segment:
    kind = r.choice(["ordinary"] * 9 + ["repeating", "long", "long"])
    long = kind == "long"
    base = {"ordinary": caption, "repeating": repeating, "long": long_caption}[kind](r)
    if kind == "ordinary" and r.random() < 0.2:  # add a phrase that has a paraphrase, even if it makes no sense
        old, new = r.choice(PARAPHRASES)
        base = f"{base.rstrip(' .!')} {r.choice([old, new])} {noun_phrase(r, PLACES)}"
    references = [base]
    for _ in range(r.choice((0, 0, 1, 2, 3, 4))):
        other = edited(r, base, r.randint(1, 5)) if kind != "ordinary" or r.random() < 0.7 else caption(r)
        references.append(other)
    r.shuffle(references)
    edits = r.randint(3, 25) if long else r.choice((0, 1, 1, 2, 2, 3, 4, 6, 9))
    candidate = edited(r, base, edits) if r.random() < 0.93 else caption(r)
    if long and r.random() < 0.3:
        words = candidate.split(" ")
        r.shuffle(words)
        candidate = " ".join(words)
    if r.random() < 0.1:
        candidate = candidate.upper() if r.random() < 0.3 else candidate.capitalize()
    return {"kind": kind, "candidate": candidate, "references": references}


# --- unusual texts -------------------------------------------------------------------------------------------------

MARKS = ". , ' ` - – — ’ ‘ “ ” „ « » \" ! ? ; : ( ) [ ] / & % $ # @ _ * + = | … ´ · • ° € ½ ′ .. ... -- '' ``".split()
WORDS = (
    "Mr. Mrs. Dr. St. No. 5 pp. 12 Art. 3 e.g. i.e. U.S.A. U.S. a.m. P.M. Ph.D. v. vs. A. b. the The end. x.y 3.5 "
    "1,000 2,500.75 5's 5'tall rock'n'roll it's dogs' 'tis o'clock don't won't a-b-c well-known "
    "state-of-the-art T-shirt 1990's No. five man dog dogs running runs ran quickly big large in of and to is "
    "was café naïve Straße ÉCOLE "
    "Žižek İstanbul Ÿ привет Мир собака ёлка Ελλάδα ΣΟΦΟΣ 日本語 中文 한국어 हिन्दी العربية עברית ไทย "
    "😀 👍🏽 🇫🇷 𝐀𝐁 ﬁsh e\u0301te\u0301 "
    "http://a.b/c?d=e me@x.org $5.00 50% #1 R&B AC/DC C++ 3x5 10:30 24/7 1st 2nd -5 +5 ½ x² H2O <b> &amp; \\n ___ ***"
).split(" ")
SPACES = [" ", " ", " ", " ", " ", " ", " ", "\t", "\u00a0", "\u3000", "\u2009", "\x0b", "\x0c", "\u2028", "\x85", ""]
FUNCTION = "the of and to in a is for that on with as it at by be are was this an".split()


def soup(r: random.Random) -> str:
    out = ""
    for _ in range(r.randint(1, 14)):
        out += r.choice(WORDS) if r.random() < 0.65 else r.choice(MARKS)
        out += " " if r.random() < 0.6 else r.choice(SPACES)
    return out


def characters(r: random.Random) -> str:
    alphabets = ["ab ,.'-5", "a. b,", "aA5.' -–’“”", "é,ж.'-日 ", "the 'n.5-", "ab\t\x00\x01 .'", "xyz  -.,"]
    alphabet = r.choice(alphabets)
    return "".join(r.choice(alphabet) for _ in range(r.randint(0, 24)))


def mangled(r: random.Random, text: str) -> str:
    """The text with some characters lost, doubled, moved or replaced."""
    chars = list(text)
    for _ in range(r.choice((0, 1, 1, 2, 3, 4, 6))):
        if not chars:
            break
        at, kind = r.randrange(len(chars)), r.randrange(5)
        if kind == 0:
            del chars[at]
        elif kind == 1:
            chars.insert(at, chars[at])
        elif kind == 2:
            chars.insert(at, r.choice(MARKS))
        elif kind == 3:
            chars[at] = chars[at].swapcase()
        else:
            chars.insert(at, " ")
    return "".join(chars)


def punctuated(r: random.Random) -> str:
    """A caption with careless punctuation and capitals."""
    out = ""
    for word in caption(r).split(" "):
        k = r.random()
        word = word.upper() if k < 0.05 else word.title() if k < 0.1 else word
        if k > 0.93:
            word = r.choice(["“", "‘", '"', "'", "(", "``"]) + word + r.choice(["”", "’", '"', "'", ")", "."])
        word += r.choice(["'s", "’s", ",", ".", "...", "-", ";", "s'", "!"]) if r.random() < 0.15 else ""
        out += word + (r.choice(["-", " - ", "--", "/", ",", "  ", " & "]) if r.random() < 0.08 else " ")
    return out


def special(r: random.Random) -> tuple[str, list[str]]:
    word, other, text = r.choice(PEOPLE), r.choice(THINGS), caption(r)
    the = " ".join(["the"] * r.randint(1, 60))
    return r.choice([
        ("", [text]), (text, [""]), ("", [""]), (text, ["", text]), (" ", [text, ""]), (text, [text]),
        (text, [text] * 3), (text.upper(), [text.lower()]), (word, [word]), (word, [other]), (word, [text]),
        (text, [word]),
        (word, [word + "s"]), (word + " " + word, [word]), (the, [the]), (the, ["the " + word]), ("the " + word, [the]),
        (the, [text]), (" ".join([word] * r.randint(1, 50)), [" ".join([word, other] * r.randint(1, 30))]),
        (" ".join(r.choices(FUNCTION, k=r.randint(1, 12))), [" ".join(r.choices(FUNCTION, k=r.randint(1, 12)))]),
        (" ".join(r.choices(FUNCTION, k=r.randint(1, 12))), [text]), (word * 80, [word * 80, text]),
        (word * 200 + " " + text, [text]), ("x" * 3000, ["x" * 3000]), ("...", ["..."]), (".", [text]),
        (text, [". . ."]), ("! ? ; ,", [", ; ? !"]), ("'", ["’"]), ("--", ["–"]), ("\u00a0", [text]),
        ("\x00", ["\x01"]),
        ("1 2 3", ["1, 2, 3"]), (text, [edited(r, text, 1) for _ in range(5)]), (text.replace(" ", "-"), [text]),
        (text.replace(" ", ", "), [text]), (" ".join(reversed(text.split(" "))), [text]), (" ".join(text), [text]),
        (text.replace(" ", ""), [text]),
    ])  # fmt: skip


def odd(r: random.Random) -> Segment:
    kind = r.choice(["soup", "soup", "soup", "characters", "punctuated", "punctuated", "special"])
    if kind == "special":
        candidate, references = special(r)
    else:
        make = {"soup": soup, "characters": characters, "punctuated": punctuated}[kind]
        base = make(r)
        references = [mangled(r, base) for _ in range(r.choice((1, 1, 1, 2, 3, 5)))]
        if r.random() < 0.2:
            references.append(make(r))
        candidate = mangled(r, base) if r.random() < 0.9 else make(r)
    return {"kind": kind, "candidate": candidate, "references": references[:5]}


# --- Russian -------------------------------------------------------------------------------------------------------

# The forms of a word are in one group; an edit replaces one form by another.
RUSSIAN = """собака собаки собаке собаку собакой собаками|кошка кошки кошку кошкой кошек|мальчик мальчика мальчику
девочка девочки девочку девочкой|ёжик ежик ёжика ежика ёжики|ребёнок ребенок ребёнка детей дети|женщина женщины женщину
мужчина мужчины мужчину мужчиной|бежит бежал бежала бегут бегущий бежать|играет играл играла играют играющая играть
смотрит смотрел смотрела смотрят|едет ехал едут ехала|сидит сидел сидела сидят сидящий
прыгает прыгал прыгают прыгнула
большой большая большого большую больше|маленький маленькая маленького маленькую|красный красная красную красного
зелёный зеленый зелёная зеленая зелёного|весёлый веселый весёлая весело|чёрный черный чёрная черного
парк парка парке парки|улица улицы улице улицу|дом дома доме домов|река реки реке реку рекой|поле поля полю полем
мяч мяча мячом мячи|велосипед велосипеда велосипеде велосипеды|лодка лодки лодке лодку|дерево дерева деревья деревьев
книга книги книгу книгой книг|снег снега снегу снегом|ещё еще|самолёт самолет самолёта самолеты|всё все|её ее"""
FORMS = [line.split() for line in re.split(r"[|\n]", RUSSIAN)]
OTHER_FORM = {word: group for group in FORMS for word in group}
WHO, DO, WHAT, WHERE = FORMS[:8], FORMS[8:14], FORMS[14:20], FORMS[20:]
SMALL = "в на и с у за по из к от до не но как что это то он его они при их же только после во или".split()
RUSSIAN_ODD = (
    "т.е. и т.д. 1990 г. 5 км. 5км. ул. Ленина д. 7 А.С. Пушкин г. Москва 3,5 1,000 кто-то из-за по-русски «да» “нет” "
    "д'Артаньян об'ект — – - ... .. ! ? ; : ( ) № % Mr. it's U.S.A. 5's тыс. руб. МОСКВА Ёлка съёмка Їжак ўсё ѐ ҐӘ 5г. "
    "XXв."
).split(" ")


def russian_sentence(r: random.Random) -> str:
    words = [r.choice(r.choice(WHAT)) if r.random() < 0.6 else "", r.choice(r.choice(WHO)), r.choice(r.choice(DO))]
    for _ in range(r.randint(0, 3)):
        words += [r.choice(SMALL), r.choice(r.choice(WHAT)) if r.random() < 0.4 else "", r.choice(r.choice(WHERE))]
    text = " ".join(word for word in words if word)
    if r.random() < 0.3:
        text += r.choice([", ", " и ", ", а ", " — "]) + r.choice(r.choice(WHO)) + " " + r.choice(r.choice(DO))
    return (text.capitalize() if r.random() < 0.6 else text) + r.choice([".", "", "!", "...", " ."])


def russian_edited(r: random.Random, text: str) -> str:
    words = text.split(" ")
    for _ in range(r.choice((0, 1, 2, 3, 5))):
        at, kind = r.randrange(len(words)), r.randrange(6)
        known = [i for i, word in enumerate(words) if word.lower() in OTHER_FORM]
        if kind < 3 and known:
            at = r.choice(known)
            words[at] = r.choice(OTHER_FORM[words[at].lower()])
        elif kind == 3 and len(words) > 1:
            del words[at]
        elif kind == 4:
            words.insert(at, r.choice(SMALL + RUSSIAN_ODD))
        else:
            other = r.randrange(len(words))
            words[at], words[other] = words[other], words[at]
    return " ".join(words)


def russian(r: random.Random) -> Segment:
    if r.random() < 0.75:
        base = russian_sentence(r)
    else:
        words = r.choices(RUSSIAN_ODD + SMALL, k=r.randint(1, 10))
        base = "".join(word + r.choice([" ", " ", " ", "", ", "]) for word in words)
    references = [russian_edited(r, base) for _ in range(r.choice((1, 1, 2, 3)))]
    return {"kind": "russian", "candidate": russian_edited(r, base), "references": references}
