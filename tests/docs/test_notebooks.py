"""The notebooks run, and their committed outputs are those of this version."""

from __future__ import annotations

import re
from copy import deepcopy

import pytest

from tools.notebooks import NEED_WEIGHTS, difference, executed, notebooks, page, read, stable

ALL = notebooks()
LIGHT = [path for path in ALL if path.stem not in NEED_WEIGHTS]


def test_there_are_three():
    assert [path.stem for path in ALL] == ["captions", "endpoint", "judge_calibration"]


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_the_outputs_are_those_of_this_version(path):
    assert difference(read(path), executed(path)) == ""


@pytest.mark.parametrize("name", NEED_WEIGHTS)
def test_the_outputs_of_models_are_those_of_this_version(name, weights):
    (path,) = notebooks([name])
    assert difference(read(path), executed(path)) == ""


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_nothing_of_a_single_execution_is_stored(path):
    notebook = read(path)
    assert stable(deepcopy(notebook)) == notebook
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/tmp/|/home/|/root/| at 0x|<script|<style", text)
    assert "\x1b" not in text
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for cell in code for output in cell.outputs if output.get("name") == "stderr"]
    assert code[-1].outputs, "a notebook ends with something to look at"
    assert max(len(cell.source.splitlines()) for cell in code) <= 32


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_a_page_of_the_site_has_every_cell_and_output(path):
    text = page(path)
    notebook = read(path)
    for cell in notebook.cells:
        assert cell.source in text
        for output in cell.get("outputs", ()):
            shown = output.text if "text" in output else output.data.get("text/html", output.data["text/plain"])
            assert shown.rstrip("\n") in text
    assert text.startswith("# ")
    assert "\x00" not in text


def test_another_figure_or_word_is_a_difference_and_a_rounding_is_not():
    old = read(LIGHT[0])
    for before, after, differs in (("0.5255", "0.5256", False), ("0.5255", "0.5355", True), ("alba", "elba", True)):
        new = deepcopy(old)
        cell = next(cell for cell in new.cells if cell.get("outputs"))
        cell.outputs[0].data["text/html"] = cell.outputs[0].data["text/html"].replace(before, after)
        assert (
            cell.outputs[0].data["text/html"]
            != next(c for c in old.cells if c.get("outputs")).outputs[0].data["text/html"]
        )
        assert bool(difference(old, new)) == differs


def test_the_speed_of_this_machine_is_not_a_difference():
    (path,) = notebooks(["endpoint"])
    old, new = read(path), read(path)
    cell = next(cell for cell in new.cells if "requests per second" in str(cell.get("outputs")))
    html = cell.outputs[0].data["text/html"]
    cell.outputs[0].data["text/html"] = re.sub(
        r"; [^;]+ requests per second", "; 1 min 10 s, 0.2 requests per second", html
    )
    assert cell.outputs[0].data["text/html"] != html
    assert difference(old, new) == ""
    cell.outputs[0].data["text/html"] = html.replace("tokens: ", "tokens: 1")
    assert difference(old, new) != ""
