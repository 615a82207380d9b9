"""Record what whisper-normalizer makes of texts, for tests/evaluation/rules/test_transcript.py.

pip install whisper-normalizer==0.1.15
python tests/golden/record_transcripts.py                  # writes transcripts.json.gz
python tests/golden/record_transcripts.py --compare 10000  # compares our rules with it on further random texts
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import unicodedata
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

COUNT = 1500
NUMBERS = """
    o oh zero one two three four five six seven eight nine ten eleven twelve thirteen nineteen ones fives sixes elevens
    first second third fifth eighth twelfth nineteenth twenty thirty ninety forties twentieth hundred thousand million
    billion decillion hundreds millions hundredth thousandth minus negative plus positive pound pounds euro dollar
    dollars cent cents per percent and double triple point
""".split()
CONTRACTIONS = """
    won't can't let's ain't y'all wanna kinda sorta dunno gotta gonna i'ma imma woulda coulda shoulda cause ma'am mr mrs
    st dr prof capt gov ald gen sen rep pres rev hon asst assoc lt col jr sr esq isn't we're it's I'd we'll 't I've I'm
    'ven't he'sn't uh um hmm mm mhm mmm half Mr. Dr. 'cause n't 's 'd
""".split()
CONTRACTIONS += ["he'd been", "she's been", "it'd gone", "it's gone", "I'd done", "he's got", "he's gotta", "'d  been"]
CONTRACTIONS += ["and a half"]
SPELLINGS = "colour colours organisation travelling centre mobilisation cancelation analyse tyre programme grey".split()
OTHERS = """
    the dog a I runs 5 12 1 1s 0 007 3.5 1,000 1,2,3 10,000,000 $5 $0.07 $0512 $2 ¢7 €3 £4.50 20% % 1st 3rd 1960s B2B
    a1b2 (laughs) [noise] <unk> ( [ < ) ] > () [] . .. ... ? ! , - ' x_y _ it.s e.g. U.S.A. 3.0 3. 0.5 .5 1.2.3 $ one's
    two-thirds ٣ ٣.٥ ½ ² … café naïve œuvre Straße Øre İstanbul ΣΑΣ Σ 日本語 한국어 ﬁ é हिन्दी ไทย ’ “x” don’t 👍 ℌ 𝚺 µ
    Ⅳ ¿ No. № ™ € £ ¢ +5 -3
""".split()
OTHERS += ["e\u0301", "\u200b", "\ufeff", "x\u0327", "\u0301", "\u1100\u1161", "2 nd", "\u212b"]
SPACES = [" "] * 12 + ["  ", "\t", "\n", "", "", "\u00a0", "\u2003", "\x1c", " '"]


def texts(count: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    groups = [NUMBERS, CONTRACTIONS, SPELLINGS, OTHERS]
    for _ in range(count):
        main = rng.choice(groups)
        pieces: list[str] = []
        for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 13, 25])):
            word = rng.choice(main if rng.random() < 0.7 else rng.choice(groups))
            if rng.random() < 0.05:
                word = "".join(rng.choice("'nts 1.,$0¢£%()[]<>abdr5") for _ in range(rng.randrange(1, 12)))
            if rng.random() < 0.05:
                word = "".join(_character(rng) for _ in range(rng.randrange(1, 8)))
            if rng.random() < 0.2:
                word = rng.choice([str.upper, str.capitalize])(word)
            pieces += [word, rng.choice(SPACES)]
        yield "".join(pieces)


def _character(rng: random.Random) -> str:
    """A character that every version of Unicode from 14 on knows."""
    while True:
        character = chr(
            rng.choice([rng.randrange(0x20, 0x300), rng.randrange(0x300, 0x3000), rng.randrange(0xF900, 0xFFFF)])
        )
        if unicodedata.category(character) not in ("Cn", "Cs", "Co"):
            return character


def normalizers() -> dict[str, Callable[[str], str]]:
    return {
        "whisper-english@0.1.15": import_module("whisper_normalizer.english").EnglishTextNormalizer(),
        "whisper-basic@0.1.15": import_module("whisper_normalizer.basic").BasicTextNormalizer(),
    }


def record() -> None:
    rows = list(dict.fromkeys(texts(COUNT, 1)))
    content = {"texts": rows, **{name: list(map(function, rows)) for name, function in normalizers().items()}}
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    Path(__file__).with_name("transcripts.json.gz").write_bytes(gzip.compress(data, 9, mtime=0))


def compare(count: int, seed: int) -> None:
    normalized = import_module("multimodal_eval.text.transcripts").normalized
    for name, function in normalizers().items():
        different = [text for text in texts(count, seed) if normalized(text, name) != function(text)]
        print(f"{name}: {len(different)} of {count} differ", *map(repr, different[:5]), sep="\n  ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", type=int, default=0)
    parser.add_argument("--seed", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.compare:
        compare(arguments.compare, arguments.seed)
    else:
        record()
