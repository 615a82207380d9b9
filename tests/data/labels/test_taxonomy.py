from __future__ import annotations

import pytest

from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.data.labels.taxonomy import Taxonomy, load_taxonomy

TAXONOMY = Taxonomy(("Yes", "No", "Half  way"), {"nope": "No"})


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("Yes", 0),
        ("yES", 0),
        (" no\n", 1),
        ("NOPE", 1),
        ("half way", 2),
        ("maybe", -1),
        ("", -1),
        (None, -1),
        (float("nan"), -1),
    ],
)
def test_labels_match_exactly_in_any_case_and_by_alias(cell, code):
    assert TAXONOMY.code(cell) == code


def test_labels_that_differ_only_in_case_must_match_exactly():
    taxonomy = Taxonomy(("US", "us"))
    assert [taxonomy.code(cell) for cell in ("US", "us", "Us")] == [0, 1, -1]


def test_both_unicode_forms_of_a_label_are_equal():
    assert Taxonomy(("é",)).code("e\u0301") == 0


def test_whole_numbers_are_labels():
    taxonomy = load_taxonomy([0, 1, "2"])
    assert taxonomy.labels == ("0", "1", "2")
    assert [taxonomy.code(cell) for cell in (1, "1", 2)] == [1, 1, 2]
    with pytest.raises(InputError, match="Got True instead"):
        taxonomy.code(True)


def test_encoding_counts_unknown_labels():
    encoded = TAXONOMY.encode(["Yes", "maybe", "", None, "maybe ", "nope"])
    assert encoded.codes.tolist() == [0, -1, -1, -1, -1, 1]
    assert encoded.unknown == {"maybe": 2}


def test_rows_of_different_lengths_are_padded():
    encoded = TAXONOMY.encode_rows([["Yes"], [], ["no", "x", "yes"]])
    assert encoded.codes.tolist() == [[0, -1, -1], [-1, -1, -1], [1, -1, 0]]
    assert TAXONOMY.encode_rows([]).codes.shape == (0, 0)
    for bad in ("Yes", None, float("nan")):
        with pytest.raises(InputError, match="sample 2: TYPE: every row must be a list"):
            TAXONOMY.encode_rows([["Yes"], bad])  # type: ignore[list-item]


def test_the_nearest_label():
    assert TAXONOMY.nearest("yess") == "Yes"
    assert TAXONOMY.nearest("nop") == "No"
    assert TAXONOMY.nearest("entirely else") is None


def test_a_labels_file(tmp_path):
    path = tmp_path / "labels.yaml"
    path.write_text("labels: [Yes please, 'no']\naliases: {nope: 'no'}\n", encoding="utf-8")
    taxonomy = load_taxonomy(path)
    assert taxonomy.to_builtins() == {"labels": ["Yes please", "no"], "aliases": {"nope": "no"}}
    assert load_taxonomy(taxonomy.to_builtins()) == taxonomy
    path.write_text("- a\n- b\n", encoding="utf-8")
    assert load_taxonomy(str(path)).labels == ("a", "b")
    assert taxonomy.fingerprint.startswith("2@")
    assert taxonomy.fingerprint != load_taxonomy(path).fingerprint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- yes\n", "Got True instead: put it in quotes"),
        ("[]", "at least one label"),
        ("[a, a]", "'a' twice"),
        ("[' ']", "blank label"),
        ("a: 1", "Got 'a' instead"),
        ("text", "must be a list. Got 'text'"),
        ("labels: [red]\naliases: {r: rod}", "'rod', which is not a label of the taxonomy. Did you mean 'red'"),
        ("labels: [red, blue]\naliases: {RED: blue}", "refers to two labels"),
        ("labels: [red]\naliases: [r]", "an object alias -> label"),
        ("{", "labels.yaml"),
    ],
)
def test_bad_files(tmp_path, content, message):
    path = tmp_path / "labels.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"labels\.yaml") as caught:
        load_taxonomy(path)
    assert message in str(caught.value)


def test_a_missing_file():
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_taxonomy("nowhere.yaml")
