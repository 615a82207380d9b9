"""Choices, images, video, messages, boxes and epoch are supported in every format and in run folders."""

from __future__ import annotations

import io
import json
from base64 import b64encode

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from multimodal_eval import Box, Message, MessagePart, Sample, evaluate, load_run
from multimodal_eval.core.errors import InputError
from multimodal_eval.data.readers.field_checks import checked_messages
from multimodal_eval.data.readers.records import sample_of
from multimodal_eval.data.runs.sample_table import SCHEMA, to_samples, to_table
from tests.data.readers.reading import problems_of, read, write

SAMPLES = [
    Sample(
        id="a",
        choices={"B": "зелёный", "A": 'red, "dark"'},
        images=["one.png", "data:image/png;base64,AA=="],
        video="clip.mp4",
        messages=[
            Message("system", "Answer shortly."),
            Message("user", [MessagePart("text", "What?"), MessagePart("image", "one.png", {"detail": "low"})]),
            Message("assistant", None, {"tool_calls": [{"name": "look"}]}),
        ],
        boxes=[Box((0.0, 1.5, 10.0, 20.0), "dog", 0.75), Box((1.0, 2.0, 3.0, 4.0))],
        epoch=2,
        error="timed out",
    ),
    Sample(id="b", choices=["x", "y"], boxes=[], epoch=0),
    Sample(id="c", images=["two.png"]),
]
FIELDS = ("id", "choices", "images", "video", "messages", "boxes", "epoch", "error")


def record(sample):
    """A sample as a JSON record."""
    return msgspec.to_builtins(sample)


def as_csv(samples):
    """Structured fields as JSON inside a cell."""
    rows = [",".join(FIELDS)]
    for sample in samples:
        values = record(sample)
        cells = [values[name] if isinstance(values.get(name), str) else json.dumps(values.get(name)) for name in FIELDS]
        rows.append(",".join('"' + cell.replace('"', '""') + '"' if cell != "null" else "" for cell in cells))
    return "\n".join(rows) + "\n"


def as_parquet(samples, path):
    """Lists, structs and a map as columns; `choices` must not be a list."""
    part = pa.struct([("type", pa.string()), ("content", pa.string()), ("detail", pa.string())])
    call = pa.struct([("name", pa.string())])
    message = pa.struct([("role", pa.string()), ("content", pa.list_(part)), ("tool_calls", pa.list_(call))])
    box = pa.struct([("box", pa.list_(pa.float64())), ("label", pa.string()), ("score", pa.float64())])
    types = {
        "choices": pa.map_(pa.string(), pa.string()),
        "images": pa.list_(pa.string()),
        "messages": pa.list_(message),
        "boxes": pa.list_(box),
        "epoch": pa.int32(),
    }
    columns = {}
    for name in FIELDS:
        values = [record(sample).get(name) for sample in samples]
        if name == "choices":
            values = [None if value is None else list(value.items()) for value in values]
        if name == "messages":
            values = [None if value is None else list(map(flat, value)) for value in values]
        columns[name] = pa.array(values, types.get(name, pa.string()))
    pq.write_table(pa.table(columns), path)


def flat(message):
    content = message.get("content")
    parts = [{"type": "text", "content": content}] if isinstance(content, str) else content
    parts = parts and [{**part, **part.get("extra", {})} for part in parts]
    return {"role": message["role"], "content": parts, **message.get("extra", {})}


def in_parts(message):
    """The message with its content as parts, because a Parquet column has only one type."""
    if not isinstance(message.content, str):
        return message
    return msgspec.structs.replace(message, content=[MessagePart("text", message.content)])


def test_json_lines_and_a_json_array(tmp_path):
    rows = [record(sample) for sample in SAMPLES]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    assert read(write(tmp_path, lines))[0] == SAMPLES
    assert read(write(tmp_path, json.dumps(rows), "data.json"))[0] == SAMPLES


def test_csv_cells_may_be_json(tmp_path):
    samples, problems, _ = read(write(tmp_path, as_csv(SAMPLES), "data.csv"))
    assert problems.kept == []
    assert samples == SAMPLES


def test_a_csv_cell_may_be_one_image_or_a_number_from_pandas(tmp_path):
    samples, _, _ = read(write(tmp_path, "id,images,epoch\na,one.png,3.0\nb,,\n", "data.csv"))
    assert samples == [Sample(id="a", images=["one.png"], epoch=3), Sample(id="b")]


def test_parquet_lists_structs_and_maps(tmp_path):
    expected = [
        msgspec.structs.replace(sample, messages=sample.messages and list(map(in_parts, sample.messages)))
        for sample in SAMPLES
        if not isinstance(sample.choices, list)
    ]
    as_parquet(expected, tmp_path / "data.parquet")
    samples, problems, _ = read(tmp_path / "data.parquet")
    assert problems.kept == []
    assert samples == expected


def test_images_and_videos_of_dataset_files(tmp_path):
    media = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = {
        "id": pa.array(["a"]),
        "images": pa.array([[{"bytes": b"x"}, {"path": "y.png"}]], pa.list_(media)),
        "video": pa.array([{"bytes": b"z", "path": "z.mp4"}], media),
        "choices": pa.array([{"A": "one", "B": None}], pa.struct({"A": pa.string(), "B": pa.string()})),  # B is missing
    }
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    samples, _, _ = read(tmp_path / "data.parquet")
    assert samples == [Sample(id="a", images=[b"x", "y.png"], video=b"z", choices={"A": "one"})]


def test_a_run_stores_these_fields(tmp_path):
    run = evaluate(SAMPLES, metrics=["rouge_l"], allow_empty=True, output=tmp_path / "run")
    assert list(run.samples()) == list(load_run(tmp_path / "run").samples()) == SAMPLES
    assert [sample.boxes for sample in run.samples(["boxes"])] == [sample.boxes for sample in SAMPLES]


def test_predictions_may_have_copies_of_these_fields(tmp_path):
    known = record(SAMPLES[0]) | {"choices": ["x", "y"]}
    data = write(tmp_path, json.dumps(known) + "\n")
    copies = {name: value for name, value in known.items() if name != "boxes"}
    predictions = write(tmp_path, json.dumps(copies) + "\n", "predictions.jsonl")
    (joined,), problems, summary = read(data, predictions)
    assert problems.kept == []
    assert summary.notes == []
    assert joined == msgspec.structs.replace(SAMPLES[0], choices=["x", "y"])


def test_media_in_memory_are_stored():
    image = Image.new("RGB", (2, 1), "red")
    sample = sample_of(
        {
            "id": "a",
            "images": [b"raw", image, "x.png"],
            "video": bytearray(b"film"),
            "messages": [{"role": "user", "content": [{"type": "image", "image": image}]}],
        }
    )
    (stored,) = to_samples(to_table([sample], 0))
    assert stored.images is not None
    assert (stored.images[0], stored.images[2], stored.video) == (b"raw", "x.png", b"film")
    assert Image.open(io.BytesIO(stored.images[1])).tobytes() == image.tobytes()
    assert stored.messages == [
        Message(
            "user",
            [MessagePart("image", f"data:application/octet-stream;base64,{b64encode(stored.images[1]).decode()}")],
        )
    ]


def test_samples_of_a_folder_without_these_columns_can_be_read():
    new = {*FIELDS, "images_bytes", "video_bytes"} - {"id", "error"}
    old = to_table([Sample(id="a", question="q")], 0).select([name for name in SCHEMA.names if name not in new])
    assert to_samples(old) == [Sample(id="a", question="q")]


def test_empty_lists_are_missing_except_for_boxes(tmp_path):
    text = '{"id": "a", "choices": [], "images": [], "messages": [], "boxes": []}\n{"id": "b", "choices": {}}\n'
    assert read(write(tmp_path, text))[0] == [Sample(id="a", boxes=[]), Sample(id="b")]


def test_plain_boxes_and_numpy_numbers():
    sample = sample_of({"id": "a", "boxes": [[0, 0, 1, 2], np.array([1, 2, 3, 4]).tolist()], "epoch": np.int32(4)})
    assert sample == Sample(id="a", boxes=[Box((0.0, 0.0, 1.0, 2.0)), Box((1.0, 2.0, 3.0, 4.0))], epoch=4)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ({"type": "text", "text": "hi"}, MessagePart("text", "hi")),
        ("hi", MessagePart("text", "hi")),
        (
            {"type": "image_url", "image_url": {"url": "https://h/x.png", "detail": "low"}},
            MessagePart("image", "https://h/x.png", {"detail": "low"}),
        ),
        (
            {"type": "video_url", "video_url": {"url": "x.mp4"}, "uuid": "7"},
            MessagePart("video", "x.mp4", {"uuid": "7"}),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
            MessagePart("audio", "data:audio/wav;base64,QUJD"),
        ),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
            MessagePart("image", "data:image/png;base64,QUJD"),
        ),
        ({"type": "audio", "audio": "x.wav", "format": "wav"}, MessagePart("audio", "x.wav", {"format": "wav"})),
        ({"type": "image"}, MessagePart("image")),
        (
            {"type": "reasoning", "reasoning": "so", "redacted": False},
            MessagePart("reasoning", None, {"reasoning": "so", "redacted": False}),
        ),
    ],
)
def test_message_parts_of_common_chat_logs(content, part):
    assert checked_messages("messages", [{"role": "user", "content": [content]}]) == [Message("user", [part])]
    again = json.loads(msgspec.json.encode(Message("user", [part])))
    assert checked_messages("messages", [again]) == [Message("user", [part])]


KEEP = "--map {}= keeps it as metadata"
REFUSED = [
    ("TYPE", '"choices": 4', KEEP.format("choices")),
    ("TYPE", '"choices": ["a", 2]', "a list of strings or an object letter -> text"),
    ("TYPE", '"choices": {"A": 1}', KEEP.format("choices")),
    ("CONTROL_CHAR", '"choices": ["a\\u0000"]', "offset 1"),
    ("TYPE", '"images": "one.png"', "`images` must be a list of images. Got 'one.png' instead."),
    ("TYPE", '"images": ["one.png", null]', "`images[1]`"),
    ("TYPE", '"images": [3]', "`images[0]`"),
    ("TYPE", '"video": {"fps": 3}', KEEP.format("video")),
    ("TYPE", '"video": ["1.png", "2.png"]', KEEP.format("video")),
    ("TYPE", '"messages": "hi"', KEEP.format("messages")),
    ("TYPE", '"messages": ["hi"]', "`messages[0]` must be a message with `role` and `content`"),
    ("TYPE", '"messages": [{"content": "hi"}]', "`messages[0]` has no `role`"),
    ("TYPE", '"messages": [{"role": "user"}]', "`messages[0]` has no `content`"),
    ("TYPE", '"messages": [{"role": "user", "content": 3}]', "must be text or a list of parts"),
    ("TYPE", '"messages": [{"role": "user", "content": [{"text": "a"}]}]', "`messages[0].content[0]` has no `type`"),
    ("TYPE", '"messages": [{"role": "user", "content": [{"type": "text"}]}]', "must be text. Got None"),
    (
        "TYPE",
        '"messages": [{"role": "user", "content": [{"type": "image", "image": {"detail": "low"}}]}]',
        "must have `url` or `data`",
    ),
    ("TYPE", '"boxes": {"x": 1}', KEEP.format("boxes")),
    ("TYPE", '"boxes": [[1, 2, 3]]', "four numbers: left, top, right, bottom"),
    ("TYPE", '"boxes": [[1, 2, 3, "4"]]', "`boxes[0]` must be a number"),
    ("TYPE", '"boxes": [{"bbox": [1, 2, 3, 4]}]', "Did you mean 'box'?"),
    ("RANGE", '"boxes": [[10, 10, 5, 5]]', "Are the last two its width and height?"),
    ("TYPE", '"epoch": "one"', KEEP.format("epoch")),
    ("TYPE", '"epoch": true', "a whole number"),
    ("TYPE", '"epoch": 1.5', "a whole number"),
    ("RANGE", '"epoch": -1', "0 or more"),
    ("RANGE", '"epoch": 9223372036854775808', "0 or more"),
]


@pytest.mark.parametrize(("code", "column", "message"), REFUSED)
def test_an_invalid_value_is_refused_with_its_line(tmp_path, code, column, message):
    (problem,) = problems_of(tmp_path, '{"id": "a"}', f'{{"id": "b", {column}}}', '{"id": "c"}')
    assert (problem.code, problem.line, problem.id) == (code, 2, "b")
    assert message in str(problem)


def test_a_csv_cell_that_is_not_json_is_refused(tmp_path):
    (problem,) = read(write(tmp_path, "id,choices\na,red or blue\n", "data.csv"))[1].kept
    assert (problem.code, problem.line) == ("SYNTAX", 2)
    assert KEEP.format("choices") in str(problem)


def test_a_column_with_a_fields_name_can_be_metadata(tmp_path):
    path = write(tmp_path, '{"id": "a", "video": {"fps": 3}, "epoch": "one"}\n')
    samples, problems, summary = read(path, video="", epoch="")
    assert problems.kept == []
    assert samples == [Sample(id="a", metadata={"video": {"fps": 3}, "epoch": "one"})]
    assert summary.metadata == {"video", "epoch"}


def test_another_column_can_be_the_field(tmp_path):
    path = write(tmp_path, '{"id": "a", "options": ["x", "y"], "choices": 7}\n')
    assert read(path, choices="options")[0] == [Sample(id="a", choices=["x", "y"], metadata={"choices": 7})]


def test_ids_must_be_unique_across_epochs():
    with pytest.raises(InputError, match="DUPLICATE"):
        evaluate([Sample(id="a", epoch=1), Sample(id="a", epoch=2)], metrics=["rouge_l"])


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
key = st.sampled_from(["detail", "name", "tool_calls"])
extra = st.dictionaries(key, text | st.integers(0, 9) | st.lists(text, max_size=2), max_size=2)
path_or_uri = st.sampled_from(["a.png", "ä b.jpg", "data:,x", "https://h/x?y=1"])
parts = st.builds(MessagePart, st.just("text"), text, extra) | st.builds(
    MessagePart, st.sampled_from(["image", "audio", "video"]), st.none() | path_or_uri, extra
)
edges = st.tuples(*[st.floats(0, 1e6)] * 2, *[st.floats(1e6, 1e12)] * 2)
samples_with_everything = st.builds(
    Sample,
    id=st.uuids().map(str),
    choices=st.none() | st.lists(text, min_size=1, max_size=3) | st.dictionaries(text, text, min_size=1, max_size=3),
    images=st.none() | st.lists(path_or_uri, min_size=1, max_size=3),
    video=st.none() | path_or_uri,
    messages=st.none()
    | st.lists(
        st.builds(Message, st.sampled_from(["user", "tool"]), text | st.lists(parts, max_size=3), extra),
        min_size=1,
        max_size=3,
    ),
    boxes=st.none() | st.lists(st.builds(Box, edges, st.none() | text, st.none() | st.floats(-1, 1)), max_size=2),
    epoch=st.none() | st.integers(0, 2**63 - 1),
    error=st.none() | text,
)


def normal(sample):
    """The sample as readers return it, with text in NFC."""
    return sample_of(record(sample))


@given(st.lists(samples_with_everything, min_size=1, max_size=4, unique_by=lambda sample: sample.id))
def test_any_sample_is_read_back_unchanged_from_every_format(tmp_path_factory, samples):
    samples = [normal(sample) for sample in samples]
    assert [normal(sample) for sample in samples] == samples
    assert to_samples(to_table(samples, 0)) == samples
    folder = tmp_path_factory.mktemp("any")
    lines = b"".join(msgspec.json.encode(sample) + b"\n" for sample in samples)
    assert read(write(folder, lines))[0] == samples
    pq.write_table(to_table(samples, 0).select(["id", "images", "video", "epoch"]), folder / "data.parquet")
    expected = [Sample(id=s.id, images=s.images, video=s.video, epoch=s.epoch) for s in samples]
    assert read(folder / "data.parquet")[0] == expected


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("['a dog', \"it's\"]", ["a dog", "it's"]),
        ('["a dog", "a cat"]', ["a dog", "a cat"]),
        ("{'A': 'a dog', 'B': None}", {"A": "a dog"}),
        (' {"B": "x"}', {"B": "x"}),
    ],
)
def test_choices_may_be_written_as_text(tmp_path, text, choices):
    cell = text.replace('"', '""')
    lines, table = json.dumps({"id": "a", "choices": text}) + "\n", f'id,choices\na,"{cell}"\n'
    for content, name in ((lines, "data.jsonl"), (table, "data.csv")):
        samples, problems, _ = read(write(tmp_path, content, name))
        assert (samples, problems.total) == ([Sample(id="a", choices=choices)], 0)


@pytest.mark.parametrize("text", ["a dog", "['a dog'", "[1, 2]", "__import__('os')", "[open('x')]"])
def test_other_text_is_refused_as_choices(tmp_path, text):
    (problem,) = problems_of(tmp_path, json.dumps({"id": "a", "choices": text}))
    assert (problem.code, problem.line) == ("TYPE", 1)
