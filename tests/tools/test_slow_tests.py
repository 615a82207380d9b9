"""The list of slow tests: how it is made of recorded times, and that it names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.slow_list import LIST, entries
from tools.slow_tests import updated

ROOT = Path(__file__).parents[2]


def test_times_make_the_list():
    times = {"a.py::f[1]": 0.6, "a.py::f[2]": 0.7, "a.py::g[1]": 0.6, "a.py::g[2]": 0.1, "a.py::h": 0.3, "a.py::k": 9.0}
    # All cases of f are slow, and one of g; h is neither slow nor fast; k stays in the default suite.
    assert updated([], ["a.py::k"], times) == {"a.py::f", "a.py::g[1]"}
    assert updated(["a.py::h", "a.py::g[2]", "b.py::x"], ["a.py::k"], times) == {
        "a.py::f",
        "a.py::g[1]",
        "a.py::h",  # stays: it is not fast enough to come back
        "b.py::x",  # was not run
    }
    assert updated(["a.py::f"], [], {"a.py::f[1]": 0.6, "a.py::f[2]": 0.1}) == {"a.py::f[1]"}
    assert entries("# a comment\n+ a.py::k\na.py::f\n\n") == ({"a.py::f"}, {"a.py::k"})


def test_the_listed_tests_exist():
    slow, kept = entries(LIST.read_text(encoding="utf-8"))
    assert not slow & kept
    for test in slow | kept:
        file, *_, name = test.partition("[")[0].split("::")
        assert re.search(rf"^\s*(async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), test


def test_a_listed_test_is_slow(request):
    listed, _ = entries(LIST.read_text(encoding="utf-8"))
    fast = {item.nodeid for item in request.session.items if not item.get_closest_marker("slow")}
    assert not fast & listed
