from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from multimodal_eval.core.errors import ConfigError, DuplicateNameError, UnknownNameError
from multimodal_eval.text import synonyms
from multimodal_eval.text.synonyms import SynonymSource, get_synonyms, list_synonyms, register_synonyms


class Rhymes:
    """Words with the same last letter."""

    def __init__(self, language, file=""):
        self.label = f"rhymes:{language}:{file}"

    def synsets(self, words):
        return [(ord(word[-1]),) if word else () for word in words]


@pytest.fixture(autouse=True)
def isolated_sources(monkeypatch):
    monkeypatch.setattr(synonyms, "_registered", dict(synonyms._registered))
    monkeypatch.setattr(synonyms, "_opened", {})
    synonyms.entry_points.cache_clear()
    yield
    synonyms.entry_points.cache_clear()


def install(folder, name, value):
    """Write the metadata of an installed distribution with a source."""
    information = folder / f"{name}_plugin-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-plugin\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[multimodal_eval.synonyms]\n{name} = {value}\n")


def test_the_default_for_english_is_wordnet():
    source = get_synonyms("default", "en")
    assert source is get_synonyms("wordnet", "en")
    assert isinstance(source, SynonymSource)
    assert source.label == "wordnet-3.0"


@pytest.mark.parametrize("language", ["en", "ru", "de"])
def test_none_has_no_synonyms(language):
    source = get_synonyms("none", language)
    assert source.label == "none"
    assert source.synsets(["car", "auto", "машина"]) == [(), (), ()]
    assert source.synsets([]) == []


@pytest.mark.parametrize(
    ("name", "language", "message"),
    [
        ("wordnet", "ru", "the option `synonyms` must be a source for the language 'ru': default, none, ruwordnet"),
        ("wiktionary", "en", "for the language 'en': default, none, wordnet. Got 'wiktionary' instead."),
        ("ruwordnet:a.db", "en", "for the language 'en': default, none, wordnet. Got 'ruwordnet:a.db' instead."),
        ("default", "de", "for the language 'de': none. Got 'default' instead."),
        ("ruwordnet", "ru", "the option `synonyms` must be 'ruwordnet:PATH'. Got 'ruwordnet' instead."),
        ("ruwordnet:", "ru", "the option `synonyms` must be 'ruwordnet:PATH'. Got 'ruwordnet:' instead."),
        ("wordnet:", "en", "the option `synonyms` must be 'wordnet'. Got 'wordnet:' instead."),
        ("wordnet:3.1", "en", "the option `synonyms` must be 'wordnet'. Got 'wordnet:3.1' instead."),
    ],
)
def test_a_source_for_another_language_is_refused(name, language, message):
    with pytest.raises(ConfigError) as refused:
        get_synonyms(name, language)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wordnt", "no synonym source is named 'wordnt'. Did you mean 'wordnet'? Known: default, none, ruwordnet, "),
        ("ruwordnt:words.db", "no synonym source is named 'ruwordnt'. Did you mean 'ruwordnet'?"),
        ("", "no synonym source is named ''."),
        (None, "no synonym source is named None."),
    ],
)
def test_an_unknown_name_is_reported_with_the_nearest(name, message):
    with pytest.raises(UnknownNameError) as refused:
        get_synonyms(name, "en")
    assert message in str(refused.value)


def test_a_registered_source_is_opened_once_per_language():
    register_synonyms("rhymes", Rhymes)
    source = get_synonyms("rhymes", "en")
    assert source.label == "rhymes:en:"
    assert source.synsets(["cat", "bat", ""]) == [(116,), (116,), ()]
    assert get_synonyms("rhymes", "en") is source
    assert get_synonyms("rhymes", "ru") is not source
    assert "rhymes" in list_synonyms()
    assert "rhymes" in list_synonyms("de")


def test_a_registered_source_with_languages_and_an_argument(tmp_path):
    register_synonyms("rhymes", Rhymes, languages=["en"], argument="FILE")
    file = tmp_path / "rhymes.txt"
    file.write_text("short")
    source = get_synonyms(f"rhymes:{file}", "en")
    assert source.label == f"rhymes:en:{file}"
    assert get_synonyms(f"rhymes:{file}", "en") is source
    file.write_text("a longer text")
    assert get_synonyms(f"rhymes:{file}", "en") is not source
    with pytest.raises(ConfigError, match="must be 'rhymes:FILE'"):
        get_synonyms("rhymes", "en")
    with pytest.raises(ConfigError, match="for the language 'ru'"):
        get_synonyms(f"rhymes:{file}", "ru")
    assert list_synonyms("en") == ["default", "none", "rhymes:FILE", "wordnet"]


def test_a_name_cannot_be_registered_twice():
    register_synonyms("rhymes", Rhymes)
    register_synonyms("rhymes", Rhymes)
    with pytest.raises(DuplicateNameError, match="'wordnet' is already registered"):
        register_synonyms("wordnet", Rhymes)


@pytest.mark.parametrize("name", ["default", "a:b", "", "a b"])
def test_invalid_names_are_refused(name):
    with pytest.raises(ConfigError, match="cannot name a synonym source"):
        register_synonyms(name, Rhymes)


def test_a_factory_must_return_a_source():
    register_synonyms("nothing", dict.fromkeys)
    with pytest.raises(ConfigError, match=r"must have `label` and `synsets`. Got \{'e': None, 'n': None\} instead."):
        get_synonyms("nothing", "en")


def test_an_entry_point_can_provide_a_source(tmp_path, monkeypatch):
    install(tmp_path, "plugged", f"{__name__}:Rhymes")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    assert "plugged" in list_synonyms("en")
    assert get_synonyms("plugged", "en").label == "rhymes:en:"


def test_an_entry_point_can_register_its_languages(tmp_path, monkeypatch):
    install(tmp_path, "registering", "registering_synonyms:open_source")
    (tmp_path / "registering_synonyms.py").write_text(
        "from multimodal_eval.text.synonyms import NoSynonyms, register_synonyms\n"
        "def open_source(language, path): return NoSynonyms()\n"
        "register_synonyms('registering', open_source, languages=['fi'], argument='PATH')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert get_synonyms("registering:words", "fi").label == "none"
    with pytest.raises(ConfigError, match="for the language 'en'"):
        get_synonyms("registering:words", "en")


def test_an_entry_point_cannot_use_an_existing_name(tmp_path, monkeypatch):
    install(tmp_path, "wordnet", f"{__name__}:Rhymes")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DuplicateNameError, match="'wordnet', which is already taken"):
        list_synonyms()


def test_threads_get_the_same_source():
    with ThreadPoolExecutor(8) as pool:
        assert len({id(source) for source in pool.map(lambda _: get_synonyms("wordnet", "en"), range(32))}) == 1


def test_changes_in_the_working_folder_do_not_reopen_a_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = get_synonyms("wordnet", "en")
    (tmp_path / "new").mkdir()  # changes the modification time of the folder
    assert get_synonyms("wordnet", "en") is first
