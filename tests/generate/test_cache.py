from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from multimodal_eval.core.config import Parameters
from multimodal_eval.generate.cache import AnswerCache, AskedOnce, cache_key
from multimodal_eval.generate.protocol import Answer, Exchange, Request, failed, outcome_of
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


@pytest.mark.parametrize("status", ["filtered", "rejected", "raised", "unanswered"])
def test_a_request_without_an_answer_is_not_kept(status):
    with AnswerCache("model") as cache:
        cache.put(asked(), Exchange(failed(status, "why"), asked().digest))
        assert cache.get(asked()) is None


FAILURES = {
    "empty": Answer("  "),
    "truncated": Answer("yes and", finish="length"),
    "refused": Answer("I cannot", finish="refusal"),
    "tool_call": Answer(None, finish="tool_calls"),
}


def test_an_answer_that_fails_is_an_outcome_and_is_not_drawn_again():
    for status, answer in FAILURES.items():
        with AnswerCache(status) as cache:
            cache.put(asked(), Exchange(outcome_of(answer), asked().digest))
        with AnswerCache(status) as cache:
            kept = cache.get(asked())
            assert kept is not None
            assert (kept.outcome.status, kept.is_cached, kept.draw) == (status, True, 1)


class Drawing:
    """An asker whose answers come from a list."""

    def __init__(self, *answers: Answer) -> None:
        self.left = list(answers)

    async def ask(self, request: Request) -> Exchange:
        return Exchange(outcome_of(self.left.pop(0)), request.digest)


def test_failures_are_asked_again_if_wanted_and_the_draws_are_counted():
    async def drawn(*answers: Answer, retry: bool) -> list[tuple[str, int, bool]]:
        with AnswerCache("model", retry_failures=retry) as cache:
            asking = AskedOnce(Drawing(*answers), cache)  # type: ignore[arg-type]
            exchanges = await asyncio.gather(asking.ask(asked()), asking.ask(asked()))
        return [(each.outcome.status, each.draw, each.is_cached) for each in exchanges]

    assert asyncio.run(drawn(Answer(""), retry=False)) == [("empty", 1, False), ("empty", 1, True)]
    assert asyncio.run(drawn(retry=False)) == [("empty", 1, True)] * 2
    assert asyncio.run(drawn(Answer("", finish="length"), retry=True)) == [
        ("truncated", 2, False),
        ("truncated", 2, True),  # the same request at the same time is one draw
    ]
    assert asyncio.run(drawn(Answer("yes"), retry=True)) == [("ok", 3, False), ("ok", 3, True)]
    assert asyncio.run(drawn(retry=True)) == [("ok", 3, True)] * 2  # later runs still say how often it was drawn


def test_a_truncated_answer_that_was_accepted_is_cut_off_for_a_run_that_does_not_accept_it():
    with AnswerCache("model", accept_truncated=True) as cache:
        cache.put(asked(), exchange("yes and", finish="length"))
        assert cache.get(asked()) is not None
    with AnswerCache("model") as cache:
        kept = cache.get(asked())
        assert kept is not None
        assert kept.outcome.status == "truncated"
    with AnswerCache("model", retry_failures=True) as cache:
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
