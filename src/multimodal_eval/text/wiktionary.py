"""Russian synonyms from the Russian Wiktionary, as the package wiki-ru-wordnet collected them.

Only the package's SQLite file is used, read once and read-only: its own loader keeps all definitions in memory.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from importlib.metadata import version
from pathlib import Path

from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.core.optional import require
from multimodal_eval.text.russian_synonyms import Rows, RussianSynonyms


def open_wiktionary() -> RussianSynonyms:
    """The synonyms of the installed package."""
    package = require("wiki_ru_wordnet", extra="ru", purpose="the synonym source 'wiktionary'")
    database = Path(str(package.__file__)).with_name("database") / "wikiwordnet.db"
    if not database.is_file():
        raise UnavailableError(
            f"the synonym source 'wiktionary' needs {database}, which is not there. "
            "Install it again with: pip install --force-reinstall wiki-ru-wordnet"
        )
    return RussianSynonyms(f"wiktionary-{version('wiki-ru-wordnet')}", partial(_read, database))


def _read(database: Path) -> Rows:
    # Nothing writes to an installed package, so that no lock is needed, nor a folder that can be written.
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute("SELECT synset_id, lemma FROM synsets").fetchall()
