"""Russian synonyms: with small fakes of the resources and databases, and with the real ones if installed."""

from __future__ import annotations

import hashlib
import importlib.metadata
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from hashlib import sha256

import pytest

from multimodal_eval.core.errors import ConfigError, UnavailableError
from multimodal_eval.resources.catalogue import CATALOGUE, File, get_resource
from multimodal_eval.resources.store import folder_of, home
from multimodal_eval.text import synonyms
from multimodal_eval.text.synonyms import get_synonyms

FORMS = {
    "машины": ["машина", "машин"], "автомобиля": ["автомобиль"], "елки": ["ёлка"], "ёлки": ["ёлка"], "елка": ["ёлка"],
    "стекла": ["стекло", "стечь"], "людей": ["человек"], "эвм": ["эвм"],
}  # fmt: skip


class Morphology:
    """A fake of the word forms."""

    def normal_forms(self, word):
        return FORMS.get(word, [word])


# The schema of wiki-ru-wordnet 1.0.3.
WIKTIONARY = """
CREATE TABLE synsets(synset_id INTEGER NOT NULL, lemma TEXT NOT NULL, definition TEXT NOT NULL,
    UNIQUE(synset_id, lemma, definition));
CREATE TABLE hypernyms(sid INTEGER NOT NULL, hypersid INTEGER NOT NULL, UNIQUE(sid, hypersid));
"""
# The tables of ruwordnet 0.0.6 that are used.
RUWORDNET = """
CREATE TABLE synset (id VARCHAR NOT NULL, title VARCHAR, definition VARCHAR, part_of_speech VARCHAR, PRIMARY KEY (id));
CREATE TABLE sense (id VARCHAR NOT NULL, name VARCHAR, lemma VARCHAR, synset_id VARCHAR, PRIMARY KEY (id),
    FOREIGN KEY(synset_id) REFERENCES synset (id));
"""
SYNSETS = {
    1: ["автомобиль", "машина", "тачка", "легковая машина"],
    2: ["машина", "ЭВМ", "компьютер"],
    3: ["ёлка", "ель"],
    4: ["человек"],
    5: ["человек"],
    6: ["стекло", "оконное стекло"],
    7: ["стечь", "утечь"],
    8: ["тёмный", "мрачный"],
}
WORDS = "машины автомобиля эвм ель елки ёлки ёлка елка стекла утечь людей человек неслово".split()


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """The folder of fetched resources, with small fakes of Russian data, which hide the installed packages."""
    rows = [(synset, lemma, "~ru~") for synset, lemmas in SYNSETS.items() for lemma in lemmas]
    database = write(tmp_path / "wikiwordnet.db", WIKTIONARY, "synsets VALUES (?, ?, ?)", rows)
    file = File("", database.name, sha256(database.read_bytes()).hexdigest(), database.stat().st_size)
    resource = replace(get_resource("wiktionary-ru"), files=(file,), installed="")
    monkeypatch.setitem(CATALOGUE, "wiktionary-ru", resource)
    folder_of(resource).mkdir(parents=True)
    database.rename(folder_of(resource) / database.name)
    monkeypatch.setattr(synonyms, "open_morphology", Morphology)
    monkeypatch.setattr(synonyms, "_opened", {})
    return home() / "resources"


@pytest.fixture
def ruwordnet(tmp_path, fetched):
    """A RuWordNet database with the same synsets."""
    rows = [
        (f"{synset}-N-{number}", lemma.upper(), lemma.upper(), f"{synset}-N")
        for synset, lemmas in SYNSETS.items()
        for number, lemma in enumerate(lemmas)
    ]
    rows += [("x-1", "МАШИНА", None, "1-N"), ("x-2", "КОТ", "КОТ", None)]
    return write(tmp_path / "ruwordnet 100%.db", RUWORDNET, "sense VALUES (?, ?, ?, ?)", rows)


def write(path, schema, into, rows):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(schema)
        connection.executemany(f"INSERT INTO {into}", rows)
        connection.commit()
    return path


def are_synonyms(source, left, right):
    first, second = source.synsets([left, right])
    assert bool(set(first) & set(second)) == bool(set(second) & set(first))
    return not set(first).isdisjoint(second)


def check_the_synsets(source):
    for left, right in [
        ("автомобиля", "машины"),
        ("машины", "эвм"),  # entries in capitals
        ("елки", "ель"),
        ("ёлки", "ель"),
        ("ёлка", "елка"),
        ("стекла", "стекло"),  # both normal forms count
        ("стекла", "утечь"),
        ("темный", "мрачный"),  # not in the fake analyzer: е matches the entry with ё
        ("людей", "человек"),  # not synonyms, but the same word
    ]:
        assert are_synonyms(source, left, right), (left, right)
    for left, right in [("автомобиль", "эвм"), ("машины", "ель"), ("неслово", "неслово"), ("", "")]:
        assert not are_synonyms(source, left, right), (left, right)
    batch = source.synsets(WORDS)
    assert batch == [source.synsets([word])[0] for word in WORDS]
    assert batch[::-1] == source.synsets(WORDS[::-1])
    assert all(list(numbers) == sorted(set(numbers)) for numbers in batch)
    assert source.synsets(["машина" * 20, "\ud800", "c3po", "машина\0"]) == [()] * 4


def test_wiktionary(fetched):
    source = get_synonyms("default", "ru")
    assert source is get_synonyms("wiktionary", "ru")
    assert source.label == "wiktionary-1.0.3+pymorphy3-2.0.6+dicts-2.4.417150.4580142"
    check_the_synsets(source)


def test_numbers_worked_out_by_hand(fetched):
    # In order, with phrases dropped: (автомобиль, машина, тачка) 0, (елка, ель) 1, (компьютер, машина, эвм) 2,
    # (мрачный, темный) 3, (стечь, утечь) 4; then single words: стекло 5, человек 6 (once).
    synsets = get_synonyms("wiktionary", "ru").synsets("машины елки стекла утечь людей неслово".split())
    assert synsets == [(0, 2), (1,), (4, 5), (4,), (6,), ()]


def test_what_is_missing_is_reported_with_the_command_that_installs_it(fetched, monkeypatch):
    advice = r"Get what Russian needs with: pip install 'multimodal-eval\[ru\]'$"
    with monkeypatch.context() as patch:
        patch.setattr(synonyms, "package_version", lambda name: importlib.metadata.version(f"{name}-missing"))
        with pytest.raises(UnavailableError, match=rf"pymorphy3-missing is not installed\. {advice}"):
            get_synonyms("wiktionary", "ru")
    for file in folder_of(get_resource("wiktionary-ru")).iterdir():
        file.unlink()
    with pytest.raises(UnavailableError, match=rf"not on this machine\. {advice}"):
        get_synonyms("wiktionary", "ru")


def test_ruwordnet_needs_only_the_word_forms(ruwordnet):
    for file in folder_of(get_resource("wiktionary-ru")).iterdir():
        file.unlink()
    assert are_synonyms(get_synonyms(f"ruwordnet:{ruwordnet}", "ru"), "автомобиля", "машины")


def test_ruwordnet(ruwordnet):
    source = get_synonyms(f"ruwordnet:{ruwordnet}", "ru")
    digest = hashlib.sha256(ruwordnet.read_bytes()).hexdigest()[:8]
    assert source.label == f"ruwordnet:{digest}+pymorphy3-2.0.6+dicts-2.4.417150.4580142"
    assert get_synonyms(f"ruwordnet:{ruwordnet}", "ru") is source
    check_the_synsets(source)


def test_a_changed_ruwordnet_is_another_source(ruwordnet):
    before = get_synonyms(f"ruwordnet:{ruwordnet}", "ru")
    assert not are_synonyms(before, "тачка", "колымага")
    write(ruwordnet, "", "sense VALUES (?, ?, ?, ?)", [(f"y-{i}", "К", "КОЛЫМАГА", f"{i}-N") for i in range(1, 2000)])
    after = get_synonyms(f"ruwordnet:{ruwordnet}", "ru")
    assert after.label != before.label
    assert are_synonyms(after, "тачка", "колымага")


def test_files_that_are_not_a_ruwordnet_database(tmp_path, fetched):
    (tmp_path / "text").write_text("a long text, not a database" * 9)
    write(tmp_path / "other.db", "CREATE TABLE words (word TEXT);", "words VALUES (?)", [("кот",)])
    for name, reason in [
        ("nowhere", "No such file or directory"),
        ("", "Is a directory"),
        ("text", "file is not a database"),
        ("other.db", "no such table: sense"),
        ("null\0byte", "null byte"),
    ]:
        with pytest.raises(ConfigError, match=rf"the RuWordNet database '.*' cannot be read: .*{reason}"):
            get_synonyms(f"ruwordnet:{tmp_path}/{name}", "ru")


def test_threads_share_one_source(fetched):
    source = get_synonyms("wiktionary", "ru")
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(source.synsets, [WORDS] * 32))
    assert all(numbers == source.synsets(WORDS) for numbers in results)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("автомобиля", "машины", True),
        ("собаками", "псов", True),
        ("врачу", "доктором", True),
        ("гиппопотамы", "бегемота", True),
        ("кошек", "кошка", True),  # a vowel that disappears; stems do not match
        ("людей", "человек", True),
        ("шёл", "идти", True),
        ("ёлки", "ели", True),
        ("елка", "ёлка", True),
        ("дом", "кот", False),
        ("делать", "сделать", False),  # aspect pairs are not synonyms there
    ],
)
def test_the_real_wiktionary(left, right, expected):
    pytest.importorskip("wiki_ru_wordnet")
    pytest.importorskip("pymorphy3")
    source = get_synonyms("wiktionary", "ru")
    assert source.label.startswith("wiktionary-1.")
    assert are_synonyms(source, left, right) == expected


def test_a_long_run_of_prefixes_is_not_analyzed():
    pytest.importorskip("wiki_ru_wordnet")
    pytest.importorskip("pymorphy3")
    assert get_synonyms("wiktionary", "ru").synsets(["недо" * 24]) == [()]


def test_the_schema_of_the_real_ruwordnet(tmp_path, fetched):
    models = pytest.importorskip("ruwordnet.models")
    sqlalchemy = pytest.importorskip("sqlalchemy")
    path = tmp_path / "made.db"
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    models.Base.metadata.create_all(engine)
    engine.dispose()
    rows = [("1", "ДОМ", "ДОМ", "a"), ("2", "ЗДАНИЕ", "ЗДАНИЕ", "a")]
    write(path, "", "sense (id, name, lemma, synset_id) VALUES (?, ?, ?, ?)", rows)
    assert are_synonyms(get_synonyms(f"ruwordnet:{path}", "ru"), "дом", "здание")


def test_data_that_changed_after_the_fetch_are_refused(fetched):
    resource = get_resource("wiktionary-ru")
    path = folder_of(resource) / resource.files[0].name
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(UnavailableError, match=r"have changed since they were fetched.*mmeval fetch wiktionary-ru"):
        get_synonyms("default", "ru")
