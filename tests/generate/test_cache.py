from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from multimodal_eval.core.config import Parameters
from multimodal_eval.generate.cache import AnswerCache, cache_key
from multimodal_eval.generate.outcomes import Exchange, failed, outcome_of
from multimodal_eval.generate.protocol import Answer
from tests.generate.requests import asked


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    monkeypatch.delenv("MMEVAL_CACHE", raising=False)
    return tmp_path


def exchange(text: str, **settings: object) -> Exchange:
    answer = Answer(text, **settings)  # type: ignore[arg-type]
    return Exchange(outcome_of(answer, accept_truncated=True), asked().digest, 12.5, 0.75, 3)


def test_an_answer_is_found_by_the_next_run_and_takes_no_time():
    with AnswerCache("model") as cache:
        cache.put(asked(), exchange("yes", output_tokens=3, reasoning="hm"))
    with AnswerCache("model") as cache:
        cached = cache.get(asked())
    assert cached is not None
    assert cached.outcome.answer == Answer("yes", output_tokens=3, reasoning="hm")
    assert (cached.is_cached, cached.latency, cached.attempts, cached.started) == (True, 0.0, 0, 0.0)


def test_an_answer_is_found_before_it_is_written():
    with AnswerCache("model") as cache:
        cache.put(asked(), exchange("yes"))
        assert cache.get(asked()) is not None


def test_the_key_has_everything_that_changes_an_answer():
    base = cache_key("model", asked())
    others = [
        cache_key("model@2", asked()),
        cache_key("model", asked("another question")),
        cache_key("model", asked(parameters=Parameters(temperature=0.5))),
        cache_key("model", asked(epoch=2)),
    ]
    assert len({base, *others}) == 5
    assert cache_key("model", replace(asked(), id="another sample")) == base


@pytest.mark.parametrize("status", ["truncated", "refused", "raised", "unanswered"])
def test_a_failure_is_not_kept(status):
    with AnswerCache("model") as cache:
        cache.put(asked(), Exchange(failed(status, "why"), asked().digest))
        assert cache.get(asked()) is None


def test_a_truncated_answer_that_was_accepted_is_asked_again_by_a_run_that_does_not_accept_it():
    with AnswerCache("model", accept_truncated=True) as cache:
        cache.put(asked(), exchange("yes and", finish="length"))
        assert cache.get(asked()) is not None
    with AnswerCache("model") as cache:
        assert cache.get(asked()) is None


@pytest.mark.parametrize("setting", ["off", "0", "no"])
def test_it_can_be_switched_off(setting, monkeypatch, home):
    monkeypatch.setenv("MMEVAL_CACHE", setting)
    with AnswerCache("model") as cache:
        cache.put(asked(), exchange("yes"))
        assert cache.get(asked()) is None
    with AnswerCache("model", on=False) as cache:
        cache.put(asked(), exchange("yes"))
    assert not (home / "cache").exists()


def test_a_broken_file_is_set_aside_and_the_run_continues():
    cache = AnswerCache("model")
    cache.path.parent.mkdir()
    cache.path.write_bytes(b"not a database" * 100)
    with pytest.warns(UserWarning, match=r"cannot be used.*moved to"):
        assert cache.get(asked()) is None
    cache.put(asked(), exchange("yes"))
    assert cache.get(asked()) is None
    cache.close()
    assert cache.path.with_suffix(".broken").exists()
    with AnswerCache("model") as again:
        again.put(asked(), exchange("yes"))
    with AnswerCache("model") as again:
        assert again.get(asked()) is not None


def test_a_damaged_answer_is_asked_again():
    import sqlite3

    with AnswerCache("model") as cache:
        cache.put(asked(), exchange("yes"))
    connection = sqlite3.connect(cache.path)
    (content,) = connection.execute("SELECT answer FROM answers").fetchone()
    connection.execute("UPDATE answers SET answer = ?", (content.replace(b"yes", b"yet"),))
    connection.commit()
    connection.close()
    with AnswerCache("model") as cache:
        assert cache.get(asked()) is None


def test_labels_with_the_same_letters_have_their_own_files():
    assert AnswerCache("openai:a/b").path != AnswerCache("openai:a b").path
    assert len(AnswerCache("x" * 500).path.name) < 120


WRITER = """
import sys
from multimodal_eval.generate.cache import AnswerCache
from tests.generate.requests import asked
from tests.generate.test_cache import exchange
with AnswerCache("model") as cache:
    for number in range(300):
        cache.put(asked(f"{sys.argv[1]} {number}"), exchange(f"answer {sys.argv[1]} {number}"))
"""


def test_two_processes_write_at_the_same_time():
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, name], cwd=Path(__file__).parents[2]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    with AnswerCache("model") as cache:
        for name in "ab":
            for number in range(300):
                cached = cache.get(asked(f"{name} {number}"))
                assert cached is not None
                assert cached.outcome.text == f"answer {name} {number}"
