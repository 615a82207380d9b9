"""The reader of the published human judgments, on miniature files."""

from __future__ import annotations

import gzip

import pytest

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.readers.flickr8k import formats_in, read_flickr8k
from tests.data.readers.flickr8k_folder import CAPTIONS, CROWD, EXPERT, lines_of, make_folder, token_lines, write_lines


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path / "flickr8k")


def problems_of(folder, kind):
    with pytest.raises(InputError) as refused:
        read_flickr8k(folder, kind)
    return [(problem.code, problem.line) for problem in refused.value.problems], str(refused.value)


def test_expert_judgments(folder):
    judged = read_flickr8k(folder, "flickr8k-expert")
    assert judged.human == ("expert_1", "expert_2", "expert_3")
    # Nine captions were judged, two of them the image's own.
    assert len(judged.samples) == 7
    assert judged.left_out == {"the judged caption is one of the image's own captions": 6}
    first = judged.samples[0]
    assert first.generated_answer == CAPTIONS["cat.jpg"][2]
    assert first.references == CAPTIONS["dog.jpg"]
    assert first.group == "dog.jpg"
    assert first.metadata == {"expert_1": 1.0, "expert_2": 2.0, "expert_3": 1.0}
    assert judged.notes == []


def test_a_caption_equal_to_the_images_own_is_left_out_too(tmp_path):
    captions = {**CAPTIONS, "cat.jpg": [*CAPTIONS["cat.jpg"][:4], CAPTIONS["dog.jpg"][0]]}
    expert = [("dog.jpg", "cat.jpg#4", "4", "4", "4"), ("dog.jpg", "cat.jpg#0", "1", "1", "1")]
    judged = read_flickr8k(make_folder(tmp_path, expert=expert, captions=captions), "flickr8k-expert")
    assert [sample.id for sample in judged.samples] == ["dog.jpg cat.jpg#0"]


def test_crowd_judgments_are_kept_and_judged_captions_are_not_references(folder):
    judged = read_flickr8k(folder, "flickr8k-cf")
    assert [sample.metadata["share_of_yes"] for sample in judged.samples] == [
        1,
        0.333333333333,
        0.25,
        0,
        0.666666666667,
    ]
    by_id = {sample.id: sample for sample in judged.samples}
    without = [text for text in CAPTIONS["dog.jpg"] if text != CAPTIONS["dog.jpg"][2]]
    assert by_id["dog.jpg dog.jpg#2"].references == without
    assert by_id["dog.jpg cat.jpg#2"].references == without  # for every judgment of that image
    assert by_id["cat.jpg dog.jpg#2"].references == CAPTIONS["cat.jpg"]
    assert judged.left_out == {}


def test_one_of_two_identical_references_remains(tmp_path):
    captions = {**CAPTIONS, "dog.jpg": ["A dog .", "A dog .", "A wet dog ."]}
    judged = read_flickr8k(
        make_folder(tmp_path, crowd=[("dog.jpg", "dog.jpg#0", "1", "3", "0")], captions=captions), "flickr8k-cf"
    )
    assert judged.samples[0].references == ["A dog .", "A wet dog ."]
    assert judged.notes == ["1 of 1 judged images do not have 5 captions in Flickr8k.token.txt"]


def test_an_image_without_a_reference_left_is_counted(tmp_path):
    captions = {**CAPTIONS, "dog.jpg": ["A dog ."]}
    crowd = [("dog.jpg", "dog.jpg#0", "1", "3", "0"), CROWD[3]]
    judged = read_flickr8k(make_folder(tmp_path, crowd=crowd, captions=captions), "flickr8k-cf")
    assert [sample.group for sample in judged.samples] == ["boat.jpg"]
    assert judged.left_out == {"all captions of the image were judged, so no reference is left": 1}


def test_compressed_and_windows_files_give_the_same_samples(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "Flickr8k.token.txt.gz").write_bytes(gzip.compress("\r\n".join(token_lines()).encode()))
    (other / "ExpertAnnotations.txt.gz").write_bytes(
        gzip.compress(b"\xef\xbb\xbf" + "\r\n".join(lines_of(EXPERT)).encode() + b"\r\n\r\n")
    )
    assert read_flickr8k(other, "flickr8k-expert") == read_flickr8k(folder, "flickr8k-expert")
    assert formats_in(other) == ["flickr8k-expert"]
    assert formats_in(folder) == ["flickr8k-expert", "flickr8k-cf"]


@pytest.mark.parametrize(
    ("row", "code", "message"),
    [
        (("dog.jpg", "cat.jpg#1", "1", "2"), "LENGTH", "must have 5 columns, separated by tabs. Got 4 instead."),
        (("dog.jpg", "cat.jpg", "1", "2", "3"), "TYPE", "must be written image#number. Got 'cat.jpg' instead."),
        (("dog.jpg", "cat.jpg#1", "1", "2", "5"), "RANGE", "of expert 3 must be from 1 to 4. Got 5 instead."),
        (("dog.jpg", "cat.jpg#1", "0", "2", "3"), "RANGE", "of expert 1 must be from 1 to 4. Got 0 instead."),
        (("dog.jpg", "cat.jpg#1", "1", "x", "3"), "TYPE", "of expert 2 must be a whole number. Got 'x' instead."),
        (("dog.jpg", "cat.jpg#1", "1", "2.5", "3"), "TYPE", "of expert 2 must be a whole number. Got '2.5' instead."),
        (("dog.jpg", "cat.jpg#1", "1" * 5000, "2", "3"), "TYPE", "of expert 1 must be a whole number."),
        (("dog.jpg", "cat.jpg#2", "1", "2", "3"), "DUPLICATE", "judged twice, in lines 2 and 3"),
        (("dog.jpg", "cat.jpg#9", "1", "2", "3"), "UNMATCHED", "the judged caption is not in Flickr8k.token.txt"),
        (("cow.jpg", "cat.jpg#1", "1", "2", "3"), "NO_REFERENCE", "the judged image has no caption"),
    ],
)
def test_bad_expert_lines(tmp_path, row, code, message):
    problems, text = problems_of(make_folder(tmp_path, expert=[*EXPERT[:2], row]), "flickr8k-expert")
    assert problems == [(code, 3)]
    assert message in text
    assert "ExpertAnnotations.txt:3:" in text


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (("many", "1", "2"), "TYPE"),
        (("nan", "1", "2"), "NONFINITE"),
        (("0", "0", "0"), "RANGE"),
        (("0.5", "1", "2"), "CONFLICT"),
        (("0.5", "-1", "-1"), "TYPE"),
    ],
)
def test_bad_crowd_lines(tmp_path, cells, code):
    problems, _ = problems_of(make_folder(tmp_path, crowd=[("dog.jpg", "cat.jpg#2", *cells)]), "flickr8k-cf")
    assert problems == [(code, 1)]


def test_all_bad_captions_are_reported(folder):
    lines = [*token_lines(), "cow.jpg\tA cow .", "cow.jpg#0\t ", "dog.jpg#0\tAgain .", "cow.jpg#1\tA\0cow .", "alone"]
    write_lines(folder / "Flickr8k.token.txt", lines)
    problems, _ = problems_of(folder, "flickr8k-expert")
    codes = ["TYPE", "EMPTY_REFERENCE", "DUPLICATE", "CONTROL_CHAR", "LENGTH"]
    assert sorted(problems, key=lambda problem: problem[1]) == list(zip(codes, range(21, 26), strict=True))


def test_bytes_that_are_not_text(folder):
    path = folder / "ExpertAnnotations.txt"
    path.write_bytes(path.read_bytes().replace(b"boat.jpg\tdog", b"b\xffat.jpg\tdog"))
    problems, text = problems_of(folder, "flickr8k-expert")
    assert problems == [("ENCODING", 7)]
    assert "byte 1 of the line" in text


def test_a_truncated_file(folder):
    path = folder / "Flickr8k.token.txt"
    packed = gzip.compress(path.read_bytes())
    path.unlink()
    (folder / "Flickr8k.token.txt.gz").write_bytes(packed[:-20])
    problems, _ = problems_of(folder, "flickr8k-expert")
    assert problems[0] == ("TRUNCATED", None)


def test_unknown_captions_and_images_are_counted_when_allowed(tmp_path):
    expert = [*EXPERT, ("dog.jpg", "cow.jpg#2", "1", "1", "1"), ("cow.jpg", "dog.jpg#2", "1", "1", "1")]
    judged = read_flickr8k(make_folder(tmp_path, expert=expert), "flickr8k-expert", allow_partial=True)
    assert len(judged.samples) == 7
    assert judged.left_out == {
        "the judged caption is not in Flickr8k.token.txt": 3,
        "the judged image has no caption in Flickr8k.token.txt": 3,
        "the judged caption is one of the image's own captions": 6,
    }


def test_a_missing_file(folder):
    (folder / "Flickr8k.token.txt").unlink()
    problems, text = problems_of(folder, "flickr8k-cf")
    assert problems == [("NOT_FOUND", None)]
    assert "neither Flickr8k.token.txt nor Flickr8k.token.txt.gz" in text


def test_no_judgment_is_left(tmp_path):
    problems, _ = problems_of(make_folder(tmp_path, expert=[EXPERT[0]]), "flickr8k-expert")
    assert problems == [("EMPTY", None)]
