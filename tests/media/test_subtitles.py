"""Subtitles of videos as text."""

from __future__ import annotations

import io

import pytest

from multimodal_eval.core.errors import MediaError
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.media.subtitles import is_subtitle_file, spoken_text, subtitles_of_file

SRT = """1
00:00:01,000 --> 00:00:02,500
<font color="white" size=".72c">Good morning.</font>

2
00:00:03,000 --> 00:00:04,000 X1:40 X2:600 Y1:20 Y2:50
{\\an8}3 < 4, and a &amp; b
42

3
00:01:03,000 --> 01:00:04,000


4
00:02:00,000 --> 00:02:01,000
The end
"""
VTT = """WEBVTT - a title

STYLE
::cue { color: red }

NOTE 00:00 is the start

intro
00:01.000 --> 00:02.500 align:start position:10%
<v Anna>Good <00:00:01.500><c.loud>morning</c>.</v>

00:03.000 --> 00:04.000
- Really --> yes
"""


def test_times_numbers_and_marks_are_removed():
    assert spoken_text(SRT) == "Good morning.\n3 < 4, and a & b\n42\nThe end"
    assert spoken_text(VTT) == "Good morning.\n- Really --> yes"
    for text in ("", "a text without times", "see 1 --> 2\n", "two\n\nlines "):
        assert spoken_text(text) == text


def test_the_cues_are_those_of_ffmpeg():
    av = pytest.importorskip("av")
    cues = ["First line", "second\nand third", "naïve – 終わり"]
    text = "".join(f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{cue}\n\n" for n, cue in enumerate(cues, 1))
    with av.open(io.BytesIO(text.encode()), format="srt") as container:
        read = [bytes(packet).decode() for packet in container.demux(subtitles=0) if packet.size]
    assert spoken_text(text) == "\n".join(read) == "\n".join(cues)


def test_encodings_and_line_ends(tmp_path):
    file, policy = tmp_path / "a.srt", MediaPolicy(root=tmp_path)
    text = SRT.replace("morning", "mörgen 早")
    for content in (text.encode(), text.replace("\n", "\r\n").encode("utf-8-sig"), text.encode("utf-16")):
        file.write_bytes(content)
        assert subtitles_of_file("a.srt", policy) == "Good mörgen 早.\n3 < 4, and a & b\n42\nThe end"
    for nothing in (b"", b"WEBVTT\n", b"\xef\xbb\xbfWEBVTT a title\n\n", b"1\n00:00:01,000 --> 00:00:02,000\n\n"):
        file.write_bytes(nothing)
        assert subtitles_of_file("a.srt", policy) == ""


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "data").mkdir()
    policy = MediaPolicy(root=tmp_path / "data")
    for name, content in {
        "latin.srt": "1\n00:00:01,000 --> 00:00:02,000\né".encode("latin-1"),
        "x.vtt": b"a --> b",
    }.items():
        (tmp_path / "data" / name).write_bytes(content)
    (tmp_path / "secret.srt").write_text(SRT)
    for name, reason in {
        "latin.srt": "neither UTF-8 nor UTF-16",
        "x.vtt": "has no subtitles: no line such as",
        "none.srt": "there is no file",
        "../secret.srt": "is outside the folder",
        "http://127.0.0.1:9/a.vtt": "is on the network",
    }.items():
        with pytest.raises(MediaError, match=reason):
            subtitles_of_file(name, policy)


def test_what_names_a_file():
    assert [is_subtitle_file(value) for value in ("a.srt", "b/c.VTT ", "a.srt\nb.srt", "say .srt twice", None, "")] == [
        *(True, True),
        *(False,) * 4,
    ]
