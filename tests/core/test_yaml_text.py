"""YAML within limits: what is refused, and that usual files are read as before."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.yaml_text import MAX_BYTES, MAX_DEPTH, parse_yaml, read_yaml

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_values_are_read_as_by_the_safe_loader(value):
    text = yaml.safe_dump(value)
    assert parse_yaml(text) == yaml.safe_load(text) == parse_yaml(text, unique_keys=True)


def _aliases(count: int, opened: str = "[", closed: str = "]") -> str:
    lines = [f"a0: &a0 {opened}x: 1{closed}"]
    lines += [f"a{n}: &a{n} {opened}{','.join([f'*a{n - 1}'] * 9)}{closed}" for n in range(1, count)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, f"values are nested deeper than {MAX_DEPTH} levels"),
        ("[" * 60 + "]" * 60, f"values are nested deeper than {MAX_DEPTH} levels, in line 1"),
        ("a: &a [*a]", "the value in line 1 contains itself, by an alias"),
        ("b: 1\na: &a\n  c: *a", "the value in line 2 contains itself, by an alias"),
        (_aliases(12), "has more than 200,000 values, with its aliases expanded"),
        ("seed: " + "9" * 5_000, "a value cannot be read: Exceeds the limit"),
        ("day: 2001-99-99", "a value cannot be read: month must be in 1..12"),
        ("a: \x01", "special characters are not allowed"),
        ("a: !!python/object:os.system [ls]", "could not determine a constructor"),
        ("a: 1\n---\nb: 2", "expected a single document"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        parse_yaml(text)


def test_aliases_and_merged_keys_are_read():
    text = "a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\nc: [*a, *a]"
    expected = {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": [{"x": 1, "y": 2}] * 2}
    assert parse_yaml(text) == parse_yaml(text, unique_keys=True) == expected


def test_repeated_keys():
    assert parse_yaml("a: 1\nb: {c: 1, c: 2}") == {"a": 1, "b": {"c": 2}}
    with pytest.raises(ConfigError, match="the key 'c' occurs twice, in lines 2 and 3"):
        parse_yaml("b:\n  c: 1\n  c: 2", unique_keys=True)


def test_files_that_cannot_be_read(tmp_path: Path):
    file = tmp_path / "file.yaml"
    file.write_bytes(b"# " + b"x" * MAX_BYTES)
    with pytest.raises(ConfigError, match=r"the labels file .*file\.yaml is larger than 4,194,304 bytes"):
        read_yaml(file, "the labels file")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"file\.yaml cannot be read: it is not text in UTF-8"):
        read_yaml(file, "the labels file")
    with pytest.raises(ConfigError, match=r"the labels file .* cannot be read: No such file"):
        read_yaml(tmp_path / "missing.yaml", "the labels file")
