"""Russian synonyms from a RuWordNet database that the user has: the SQLite file of `ruwordnet download`.

Reference:
    Loukachevitch, Lashevich, Gerasimova, Ivanov and Dobrov (2016). Creating Russian WordNet by Conversion. Dialogue.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.text.russian_synonyms import Rows, RussianSynonyms

_SENSES = "SELECT synset_id, lemma FROM sense WHERE synset_id IS NOT NULL AND lemma IS NOT NULL"


def open_ruwordnet(path: str) -> RussianSynonyms:
    """The synonyms of that database, labelled with the digest of the file."""
    database = Path(path).expanduser()
    try:
        with database.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:8]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"the RuWordNet database {path!r} cannot be read: {reason}") from None
    _read(database, f"{_SENSES} LIMIT 1")  # another kind of file is refused before anything is scored
    return RussianSynonyms(f"ruwordnet:{digest}", partial(_read, database, _SENSES))


def _read(database: Path, query: str) -> Rows:
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.Error as error:
        raise ConfigError(f"the RuWordNet database {str(database)!r} cannot be read: {error}") from None
