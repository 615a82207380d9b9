"""Building the table of English synonyms from a WordNet with a few lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

# One synset per line: offset, file, kind, word count in hexadecimal, words with sense numbers, no pointers, a gloss.
NOUNS = """\
  1 licence
00000001 06 n 03 car 0 motor_car 0 Auto 0 000 | a vehicle
00000002 05 n 01 ox 0 000 | an animal
00000003 06 n 01 car 1 000 | of a railway
00000004 10 n 02 comic_strip 0 strip 0 000 | drawings
"""
ADJECTIVES = """\
00000001 00 a 02 galore(ip) 0 abundant 0 000 | in plenty
00000002 00 s 01 good 0 000 | fine
"""
FILES = {
    "data.noun": NOUNS,
    "data.verb": "00000001 30 v 01 go 0 000 | move\n",
    "data.adj": ADJECTIVES,
    "data.adv": "00000001 02 r 01 well 0 000 | in a good way\n",
    "noun.exc": "oxen ox\ncomics comic_strip comic\nfeet foot\nmen_of_war man_of_war\n",
    "verb.exc": "went go\n",
    "adj.exc": "better good well\n",
    "adv.exc": "best well\n",
}
TABLE = """\
auto\t0
car\t0
comics\t1
ox\t2
strip\t1

go\t3

abundant\t4
galore\t4
good\t5

well\t6

oxen\tox

went\tgo

better\tgood

best\twell
"""


def test_a_small_table(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    builder = next(Path(__file__).parents[2].glob("*/build_wordnet.py"))
    for output in ("first", "second"):
        command = [sys.executable, str(builder), str(tmp_path), str(tmp_path / output)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "noun: 5 words, 3 synsets, 1 irregular forms" in printed
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    with pa.CompressedInputStream(pa.OSFile(str(tmp_path / "first")), "brotli") as stream:
        assert stream.read().decode() == TABLE
