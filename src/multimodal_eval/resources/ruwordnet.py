"""RuWordNet, a thesaurus that users obtain themselves: instructions, and the location of its file."""

from __future__ import annotations

import sys
from pathlib import Path

NAME = "ruwordnet"
_FILE = Path("ruwordnet") / "static" / "ruwordnet.db"  # where `ruwordnet download` puts it, below site-packages


def find_ruwordnet() -> Path | None:
    """The database that the installed package `ruwordnet` has downloaded; None if there is none."""
    return next((Path(entry) / _FILE for entry in sys.path if (Path(entry) / _FILE).is_file()), None)


def instructions() -> str:
    """How to obtain RuWordNet and how to use it."""
    database = find_ruwordnet()
    use = f"""\
    mmeval fetch opencorpora-ru        (word forms; part of `mmeval fetch ru`)
    mmeval dialogue … --synonyms ru=ruwordnet:{database or "PATH/ruwordnet.db"}
    mmeval score … --option meteor.synonyms=ruwordnet:{database or "PATH/ruwordnet.db"}
"""
    if database is not None:
        return f"RuWordNet is at {database}\nUse it with:\n{use}"
    return f"""\
RuWordNet, the thesaurus of the dialogue contest, has terms of use of its own
and cannot be fetched here.
1. Read the terms: https://ruwordnet.ru
2. Get the database, an SQLite file of about 80 MB:
    pip install ruwordnet
    ruwordnet download
   It is then ruwordnet/static/ruwordnet.db in the location that
   `pip show ruwordnet` prints. You may move it anywhere.
3. Use it:
{use}
Without RuWordNet, synonyms come from the Russian Wiktionary: mmeval fetch ru
Scores with different sources cannot be compared; signatures name the source.
"""
