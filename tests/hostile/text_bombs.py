"""Bombs of plain text: JSON, JSONL, CSV, TSV, COCO and VQA files."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.bomb_registry import SIZE, bomb, written


@bomb
def repeated_keys(folder: Path) -> list[Path]:
    pairs = ",".join(f'"k{number % 400_000}":1' for number in range(800_000))
    return written(folder / "a.jsonl", f'{{"id":"a",{pairs}}}\n'.encode())


@bomb
def one_repeated_key(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b'{"id":"a",' + b'"k":1,' * 1_600_000 + b'"k":1}\n')


@bomb
def repeated_keys_in_lines(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b'{"a":1,"a":1}\n' * 700_000)


@bomb
def repeated_keys_in_an_array(folder: Path) -> list[Path]:
    return written(folder / "a.json", b"[" + b'{"a":1,\n"a":1},\n' * 600_000 + b"{}]")


@bomb
def repeated_keys_in_a_document(folder: Path) -> list[Path]:
    return written(folder / "a.json", b'{"annotations":[' + b'{"a":1,\n"a":1},\n' * 600_000 + b"{}]}")


@bomb
def colliding_keys(folder: Path) -> list[Path]:
    keys = ",".join(f'"{number}":1' for number in range(1_000_000))
    return written(folder / "a.jsonl", f'{{"id":"a",{keys}'[: SIZE - 3].rsplit(",", 1)[0].encode() + b"}\n")


@bomb
def nested_objects_with_many_keys(folder: Path) -> list[Path]:
    keys = ",".join(f'"{number}":0' for number in range(40))
    return written(folder / "a.jsonl", (b'{"id":"a","m":' + (f"{{{keys},".encode() + b'"x":') * 20_000))


@bomb
def new_columns_in_every_line(folder: Path) -> list[Path]:
    lines = (b'{"id":"%d","generated_answer":"","c%d":1}\n' % (n, n) for n in range(250_000))
    return written(folder / "a.jsonl", b"".join(lines))


@bomb
def misspelt_columns(folder: Path) -> list[Path]:
    lines = (b'{"id":"%d","generated_answe%d":1}\n' % (n, n) for n in range(250_000))
    return written(folder / "a.jsonl", b"".join(lines))


@bomb
def new_shape_in_every_line(folder: Path) -> list[Path]:
    names = [f'"c{n}":1' for n in range(20)]
    lines = (
        f'{{"id":"{n}","generated_answer":"",{",".join(name for k, name in enumerate(names) if n >> k & 1)}}}\n'
        for n in range(1, 100_000)
    )
    return written(folder / "a.jsonl", "".join(lines).encode())


@bomb
def many_columns_in_a_line(folder: Path) -> list[Path]:
    columns = ",".join(f'"c{n}":{n}' for n in range(600_000))
    return written(folder / "a.jsonl", f'{{"id":"a","generated_answer":"b",{columns}}}\n'.encode())


@bomb
def deep_lists(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b"[" * SIZE)


@bomb
def deep_objects(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b'{"a":' * (SIZE // 5))


@bomb
def deep_json(folder: Path) -> list[Path]:
    return written(folder / "a.json", b"[" * SIZE)


@bomb
def deep_document(folder: Path) -> list[Path]:
    return written(folder / "a.json", b'{"a":' * (SIZE // 5))


@bomb
def digits(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b"1" * SIZE)


@bomb
def digits_in_a_record(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b'{"id":' + b"1" * (SIZE - 20) + b"}\n")


@bomb
def digits_in_an_array(folder: Path) -> list[Path]:
    return written(folder / "a.json", b'[{"id":' + b"1" * (SIZE - 20) + b"}]")


@bomb
def digits_in_a_cell(folder: Path) -> list[Path]:
    return written(
        folder / "a.csv",
        b"id,generated_answer,perplexity,epoch\na,b," + b"1" * (SIZE // 2) + b"," + b"1" * 4_000_000 + b"\n",
    )


@bomb
def escaped_nuls(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b'{"id":"' + b"\\u0000" * (SIZE // 6 - 10) + b'"}\n')


@bomb
def lone_surrogates(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b'{"id":"' + b"\\ud800" * (SIZE // 6 - 10) + b'"}\n')


@bomb
def nul_bytes(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b"{}\n\n\n" + b"\0" * (SIZE - 10))


@bomb
def short_lines(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b"1\n" * (SIZE // 2))


@bomb
def empty_objects(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b"{}\n" * (SIZE // 3))


@bomb
def broken_lines(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b"{\n" * (SIZE // 2))


@bomb
def blank_lines(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b"\n" * SIZE)


@bomb
def equal_ids(folder: Path) -> list[Path]:
    return written(folder / "a.jsonl", b'{"id":1,"answer":""}\n' * (SIZE // 21))


@bomb
def equal_ids_in_an_array(folder: Path) -> list[Path]:
    return written(folder / "a.json", b"[" + b'{"id":1,"answer":""},' * (SIZE // 22) + b'{"id":1}]')


@bomb
def array_of_empty_objects(folder: Path) -> list[Path]:
    return written(folder / "a.json", b"[" + b"{}," * (SIZE // 3 - 5) + b"{}]")


@bomb
def array_of_commas(folder: Path) -> list[Path]:
    return written(folder / "a.json", b"[" + b"," * (SIZE - 5) + b"]")


@bomb
def array_of_numbers(folder: Path) -> list[Path]:
    return written(folder / "a.json", b"[" + b"1," * (SIZE // 2 - 5) + b"1]")


@bomb
def records_off_the_fast_path(folder: Path) -> list[Path]:
    lines = (b'{"id":%d,"answer":"","boxes":[]}\n' % number for number in range(290_000))
    return written(folder / "a.jsonl", b"".join(lines))


@bomb
def one_giant_quoted_field(folder: Path) -> list[Path]:
    return written(folder / "a.csv", b'id,answer\na,"' + b'""\n' * (SIZE // 3 - 10) + b'"\n')


@bomb
def open_quote(folder: Path) -> list[Path]:
    return written(folder / "a.csv", b'id,answer\na,"' + b"x\n" * (SIZE // 2 - 10))


@bomb
def many_cells(folder: Path) -> list[Path]:
    return written(folder / "a.csv", b"id,answer\n" + b"," * (SIZE - 20) + b"\n")


@bomb
def many_columns_csv(folder: Path) -> list[Path]:
    header = ",".join(["id", "answer", *(f"c{n}" for n in range(500_000))])
    return written(folder / "a.csv", f"{header}\na,b{',' * 500_000}\n".encode() * 1)


@bomb
def equal_columns_csv(folder: Path) -> list[Path]:
    return written(folder / "a.csv", b"a," * (SIZE // 2 - 10) + b"\n")


@bomb
def pairs_of_equal_columns_csv(folder: Path) -> list[Path]:
    header = ",".join(f"c{n // 2}" for n in range(1_000_000))
    return written(folder / "a.csv", header.encode() + b"\n")


@bomb
def short_rows_tsv(folder: Path) -> list[Path]:
    return written(folder / "a.tsv", b"id\tanswer\n" + b"a\n" * (SIZE // 2 - 10))


@bomb
def carriage_returns(folder: Path) -> list[Path]:
    return written(folder / "a.csv", b"id,answer\n" + b"\r" * (SIZE - 10))


@bomb
def json_cells(folder: Path) -> list[Path]:
    return written(folder / "a.csv", b'id,answer,metadata\na,b,"' + b"[" * (SIZE - 100) + b'"\n')


@bomb
def coco_pair(folder: Path) -> list[Path]:
    annotations, results = folder / "annotations.json", folder / "results.json"
    annotations.write_bytes(
        b'{"annotations":[' + b'{"image_id":1,"caption":"a"},' * 300_000 + b'{"image_id":1,"caption":"a"}]}'
    )
    results.write_bytes(b"[" + b'{"image_id":1,"caption":"a"},' * 300_000 + b'{"image_id":1,"caption":"a"}]')
    return [annotations, results]


@bomb
def coco_of_lists(folder: Path) -> list[Path]:
    return written(folder / "a.json", b'{"annotations":[' + b"[]," * (SIZE // 3 - 10) + b"[]]}")


@bomb
def coco_of_objects(folder: Path) -> list[Path]:
    return written(folder / "a.json", b'{"annotations":[' + b'{"":{}},' * (SIZE // 8 - 10) + b"{}]}")


@bomb
def coco_of_many_images(folder: Path) -> list[Path]:
    items = b",".join(b'{"image_id":%d,"caption":"a"}' % n for n in range(250_000))
    return written(folder / "a.json", b'{"annotations":[' + items + b"]}")


@bomb
def vqa_of_empty_questions(folder: Path) -> list[Path]:
    item = b'{"question_id":[],"answers":[{}]},'
    return written(folder / "a.json", b'{"annotations":[' + item * (SIZE // len(item) - 2) + b"{}]}")


@bomb
def vqa_pair(folder: Path) -> list[Path]:
    items = b",".join(b'{"question_id":%d,"answers":["a"]}' % n for n in range(220_000))
    annotations, results = folder / "annotations.json", folder / "results.json"
    annotations.write_bytes(b'{"annotations":[' + items + b"]}")
    results.write_bytes(b"[" + b",".join(b'{"question_id":%d,"answer":"a"}' % n for n in range(220_000)) + b"]")
    return [annotations, results]
