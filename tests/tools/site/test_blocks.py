"""What the blocks of a page are."""

from __future__ import annotations

import pytest

from tools.site.blocks import parse

PAGE = """# Title

<!-- setup: demo-files, runs captions:first captions:second -->
<!-- needs: weights -->

One file, `a.jsonl`:

```json
{"id": 1}
```

    mmeval score a.jsonl
    mmeval lint runs/a

```
printed
```

```python
print(1)
```

```text
1
```

```text
no output: a paragraph is between them
```

<!-- not run: needs
     a key -->
```console
$ mmeval run a.jsonl
```

<!-- file: b.yaml -->
<!-- exit: 3 -->
```yaml
a: 1
```

- in a list

  ```python
  x = 1
  ```

```
no language
```

```cobol
MOVE A TO B
```
"""


def test_kinds():
    page = parse(PAGE)
    assert [block.kind for block in page.blocks] == [
        *("file", "command", "python", "shown", "console", "file", "python", "unknown", "unknown")
    ]
    assert page.setups == ["demo-files", "runs captions:first captions:second"]
    assert page.needs == ["weights"]


def test_outputs_belong_to_the_block_before():
    command, python = parse(PAGE).blocks[1:3]
    assert (command.output.text, python.output.text) == ("printed\n", "1\n")


def test_marks():
    blocks = parse(PAGE).blocks
    assert blocks[4].marks.not_run == "needs a key"
    assert (blocks[5].file, blocks[5].marks.exit) == ("b.yaml", 3)
    assert [block.marks.not_run for block in blocks if block is not blocks[4]] == [None] * 8


def test_places_are_the_lines_of_the_text():
    lines = PAGE.split("\n")
    for block in parse(PAGE).blocks:
        shown = [line.removeprefix(block.prefix) for line in lines[block.start : block.end]]
        assert "\n".join(shown) == block.text.rstrip("\n"), block


def test_an_exit_status_for_all_blocks():
    first, second = parse(
        "<!-- all exit: 1 -->\n# T\n\n    mmeval a\n\ntext\n\n<!-- exit: 3 -->\n    mmeval b\n"
    ).blocks
    assert (first.marks.exit, second.marks.exit) == (1, 3)


@pytest.mark.parametrize("text", ["    theta = 1\n", "    0.5\n"])
def test_an_indented_block_without_a_command_is_unknown(text):
    (block,) = parse(f"text\n\n{text}").blocks
    assert block.kind == "unknown"


def test_a_comment_is_about_the_next_block_only():
    page = "<!-- not run: why -->\nA sentence.\n\n```python\n1\n```\n"
    (block,) = parse(page).blocks
    assert block.marks.not_run is None
