"""The samples page: table, gallery, value lists, ranges, removable filters, and what to do if nothing matches."""

from __future__ import annotations

import io
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from starlette.testclient import TestClient

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.report.viewer import samples_view, store
from multimodal_eval.report.viewer.runs import RunsFolder
from multimodal_eval.report.viewer.samples_view import LISTED, MOST_KEYS, ValueList, ValueLists
from multimodal_eval.report.viewer.store import Store
from tests.report.viewer.graded import COUNT, TOPICS, make_graded_run
from tests.report.viewer.viewed import client


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("samples") / "runs"
    make_graded_run(runs)
    return runs


@pytest.fixture(scope="module")
def browser(folder: Path) -> TestClient:
    return client(folder)


def page(browser: TestClient, address: str, **options: Any) -> str:
    answer = browser.get(address, **options)
    assert answer.status_code == 200, answer.text
    return answer.text


def rows(text: str) -> list[int]:
    """The samples of a table or a gallery, in order."""
    ids = re.findall(r">(?:<bdi>)graded-(\d+)</bdi></a>", text)
    return [int(number) for number in ids]


def links(text: str, css_class: str) -> list[str]:
    return [unescape(link) for link in re.findall(rf'<a class="{css_class}" href="([^"]*)"', text)]


# table and gallery


def test_the_gallery_shows_the_same_samples_as_the_table(browser: TestClient):
    for query in ("", "sort=rouge_l&desc=1", "meta.language=ru&offset=0", "min.rouge_l=0.5"):
        table, gallery = (page(browser, f"/samples/graded?{query}&view={view}") for view in ("table", "gallery"))
        assert rows(table) == rows(gallery)
        assert 0 < len(rows(table)) <= 50


def test_cards_show_image_answer_references_score_and_status(browser: TestClient):
    gallery = page(browser, "/samples/graded?view=gallery&max.bleu=1")
    cards = {row: card for card in re.split(r'<li class="card', gallery)[1:] for row in rows(card)}
    assert 'src="/media/graded?row=1&amp;kind=image&amp;middle=1"' in cards[1]
    assert "text-card" in cards[5]
    assert "<img" not in cards[5]
    for row in (0, 3, 6):
        assert f'<audio controls preload="none" src="/media/graded?row={row}&amp;kind=audio"' in cards[row]
    assert "<audio" not in cards[1]
    assert '<mark class="only">purple' in cards[1]
    assert '<mark class="shared">one' in cards[1]
    assert "an animal outdoors" in cards[1]
    assert "× 2" in cards[1]  # the same reference twice
    assert re.search(r"ROUGE-L</bdi></dt><dd>\s*0\.\d{4}", cards[1])  # the headline
    assert re.search(r"BLEU-4</bdi></dt><dd>\s*0\.\d{4}", cards[1])  # and a metric with a range
    failed = page(browser, "/samples/graded?view=gallery&status=error")
    assert rows(failed) == [50]
    assert ">error<" in failed
    assert "the generator failed" in failed


def test_the_table_shows_references_with_marked_words(browser: TestClient):
    text = page(browser, "/samples/graded")
    assert text.count('<ul class="references"') == 50
    assert '<mark class="only">purple' in text
    assert "no reference has" in text  # the legend


def test_links_keep_the_view_and_the_filters(browser: TestClient):
    text = page(browser, "/samples/graded?view=gallery&meta.language=en&sort=rouge_l")
    following = re.search(r'id="to-next" href="([^"]*)"', text)
    assert following is not None
    assert unescape(following[1]) == "/samples/graded?sort=rouge_l&offset=50&view=gallery&meta.language=en"
    assert rows(page(browser, unescape(following[1])))[:1] != rows(text)[:1]
    assert 'name="view" value="gallery"' in text
    assert 'href="/sample/graded?row=' in text
    sample = re.search(r'href="(/sample/graded\?row=\d+&amp;at=1&amp;[^"]*)"', text)
    assert sample is not None
    shown = page(browser, unescape(sample[1]))
    assert "2 of 90 matching samples" in shown
    assert shown.count('data-key="p"') == shown.count('data-key="n"') == 1
    back = re.search(r'<a href="([^"]*)" data-key="u">Samples', shown)
    assert back is not None
    assert "view=gallery" in back[1]


def test_images_have_three_sizes_and_may_be_cached(folder: Path, tmp_path: Path):
    content = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 255, (1_200, 2_000, 3), dtype=np.uint8)
    Image.fromarray(noise).save(content, format="PNG")
    evaluate(
        [Sample("a", image=content.getvalue(), references=["a"], generated_answer="a")],
        metrics=["rouge_l"],
        output=tmp_path / "runs" / "a",
    )
    browser = client(tmp_path / "runs")
    for parameter, side in (("&small=1", 96), ("&middle=1", 320), ("", 1_600)):
        answer = browser.get(f"/media/a?row=0{parameter}")
        assert max(Image.open(io.BytesIO(answer.content)).size) == side
        assert "max-age=600" in answer.headers["cache-control"]
        assert answer.headers["content-type"] == "image/jpeg"


# filters


def test_values_are_alternatives_within_a_key_and_keys_are_combined(browser: TestClient):
    text = page(browser, "/samples/graded?meta.topic=topic-03&meta.topic=topic-04&meta.language=ru")
    assert rows(text) == [number for number in range(COUNT) if number % TOPICS in (3, 4) and number % 4 == 0]
    assert "6 of 120 samples match" in text


def test_value_lists_have_counts_and_keep_the_chosen_values(browser: TestClient):
    text = page(browser, "/samples/graded?meta.topic=topic-03&meta.topic=nowhere&meta.serial=s0003&meta.absent=x")
    boxes = re.findall(r'type="checkbox" name="meta\.(\w+)" value="([^"]*)"( checked)?> .*?"count">(\d+)<', text)
    assert [box for box in boxes if box[0] == "language"] == [
        ("language", "en", "", "90"),
        ("language", "ru", "", "30"),
    ]
    assert len([box for box in boxes if box[0] == "topic"]) == TOPICS + 1
    assert [box[:2] + box[3:] for box in boxes if box[2]] == [
        ("topic", "topic-03", "6"), ("topic", "nowhere", "0"), ("absent", "x", "0"),
    ]  # fmt: skip
    # Unique values are not listed; what is chosen stays in a field.
    assert re.findall(r'type="text" name="meta\.serial" value="(\w*)"', text) == ["s0003", ""]
    assert "120 values" in text


def test_every_filter_is_a_link_that_removes_it(browser: TestClient):
    filters = [
        "q=red",
        "in=id",
        "status=ok",
        "meta.language=en",
        "meta.topic=topic-01",
        "min.rouge_l=0.1",
        "max.rouge_l=0.9",
    ]
    text = page(browser, "/samples/graded?sort=bleu&view=gallery&" + "&".join(filters))
    removed = [
        {"q=red", "in=id"}, {"status=ok"}, {"meta.language=en"}, {"meta.topic=topic-01"},
        {"min.rouge_l=0.1", "max.rouge_l=0.9"},
    ]  # fmt: skip
    chips = links(text, "chip")
    kept = [set(link.partition("?")[2].split("&")) for link in chips]
    assert kept == [{"sort=bleu", "view=gallery", *filters} - gone for gone in removed]
    assert "ids</bdi></strong> <bdi>contain “red”" in text
    assert "<bdi>0.1 to 0.9</bdi>" in text
    assert 'href="/samples/graded?sort=bleu&amp;view=gallery"' in text  # clear all


def test_an_address_of_an_update_has_no_empty_fields(browser: TestClient):
    query = "q=&in=answer&status=&sort=&desc=&meta.serial=&min.rouge_l=0.5&max.rouge_l=&view=gallery"
    answer = browser.get(f"/samples/graded?{query}", headers={"hx-request": "true"})
    assert answer.headers["hx-push-url"] == "/samples/graded?view=gallery&min.rouge_l=0.5"
    assert "hx-push-url" not in browser.get(f"/samples/graded?{query}").headers


def test_histograms_show_all_samples_and_those_that_match(browser: TestClient):
    whole = page(browser, "/samples/graded")
    assert whole.count("data-brush") == 2
    assert 'class="matching"' not in whole
    filtered = page(browser, "/samples/graded?min.rouge_l=0.5&q=dog")
    assert filtered.count('class="matching"') == 2
    total = re.search(r"(\d+) of 120 samples match", filtered)
    assert total is not None
    assert f"; {total[1]} match the filters" in filtered
    part = page(browser, "/samples/graded?min.bleu.bleu_1=0.5")
    assert part.count("data-brush") == 3  # a part with a range has a histogram too


def test_nothing_found_says_which_filter_to_drop(browser: TestClient):
    text = page(browser, "/samples/graded?meta.language=ru&meta.serial=s0001&min.rouge_l=0")
    assert rows(text) == []
    advice = re.findall(r'<li><a href="([^"]*)">Without <bdi>(\w+)</bdi> .*?</a>: (\d+) sample', text)
    # Sample 1 is in English: without either filter on metadata something is left; the range excludes nothing.
    assert [(unescape(link).partition("?")[2], name, count) for link, name, count in advice] == [
        ("meta.language=ru&min.rouge_l=0", "serial", "30"),
        ("meta.serial=s0001&min.rouge_l=0", "language", "1"),
    ]
    hopeless = page(browser, "/samples/graded?q=nowhere&meta.serial=s9999")
    assert "dropping any one of them does not help" in hopeless
    assert "No sample matches this filter" in page(browser, "/samples/graded?q=nowhere")


def test_a_page_after_the_last_one_leads_back(browser: TestClient):
    assert "The samples end before this page" in page(browser, "/samples/graded?offset=1000")


# large runs


def test_lists_and_histograms_of_a_large_run_are_counted_in_the_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    for module in (store, samples_view):
        monkeypatch.setattr(module, "MANY", COUNT - 1)
    browser = client(folder)
    text = page(browser, "/samples/graded?meta.language=ru&min.rouge_l=0.2")
    assert "are being counted" in text
    assert '<input type="hidden" name="meta.language" value="ru">' in text
    assert 'name="min.rouge_l" value="0.2"' in text
    for _ in range(10_000):
        text = page(browser, "/samples/graded?meta.language=ru&min.rouge_l=0.2")
        if "are being counted" not in text and "The histograms" not in text:
            break
    assert 'name="meta.language" value="ru" checked' in text
    assert text.count("data-brush") == 2


def with_metadata(folder: Path, target: Path, texts: list[str]) -> Path:
    """A copy of the run with other metadata, which another program may have written."""
    done = RunFolder(folder / "graded")
    copy = RunFolder.create(target / "runs" / "odd", done.read_info())
    table = done.read_part("samples", 0)
    column = pa.array([*texts, *[None] * (COUNT - len(texts))], pa.string())
    copy.write_part("samples", 0, table.set_column(table.schema.get_field_index("metadata"), "metadata", column))
    copy.write_part("scores", 0, done.read_part("scores", 0))
    copy.write_results(done.read_results())
    copy.write_info(done.read_info())
    return target / "runs"


def lists(folder: Path, target: Path, metadata: list[dict[str, Any]]) -> list[ValueList]:
    runs = with_metadata(folder, target, [msgspec.json.encode(values).decode() for values in metadata])
    counted = ValueLists(Store(runs.resolve())).of(RunsFolder(runs).open("odd"))
    assert counted is not None
    return counted


def test_only_values_that_a_filter_can_name_are_listed(folder: Path, tmp_path: Path):
    values = ["x", "", "y" * 501, None, ["x"], {"x": 1}, True, 3, 0.5, "x", "nul\0"]
    (counted,) = lists(folder, tmp_path, [{"key": value} for value in values])
    assert counted == ValueList("key", (("x", 2), ("0.5", 1), ("3", 1), ("true", 1)), 4)


def test_keys_and_values_are_limited(folder: Path, tmp_path: Path):
    keys = range(MOST_KEYS + 5)
    many = [{f"key-{key}": number % (LISTED + 5) for key in keys} for number in range(COUNT)]
    counted = lists(folder, tmp_path, [{**row, "k" * 501: "x", "": "empty"} for row in many])
    assert len(counted) == MOST_KEYS
    assert counted[0] == ValueList("", (("empty", COUNT),), 1)
    assert {(len(values.values), values.distinct) for values in counted[1:]} == {(LISTED, LISTED + 5)}


@pytest.mark.parametrize("metadata", ['{"a": ', "[1]", '"text"', "nothing", "{}"])
def test_metadata_without_keys_has_no_lists(folder: Path, tmp_path: Path, metadata: str):
    text = page(client(with_metadata(folder, tmp_path, [metadata] * COUNT)), "/samples/odd")
    assert len(rows(text)) == 50
    assert 'id="values"' not in text


HOSTILE = [
    '"><script>alert(1)</script>',
    "' or 1=1 --",
    "a&b=c#d",
    "\u202e",
    "x" * 400,
    "../..",
    "%2e",
    "\n",
    "{{7*7}}",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_any_key_and_value_can_be_chosen_from_its_list(folder: Path, tmp_path: Path, text: str):
    runs = with_metadata(folder, tmp_path, [msgspec.json.encode({text: text, "k": 1}).decode()] * 7)
    browser = client(runs)
    whole = page(browser, "/samples/odd")
    boxes = re.findall(r'type="checkbox" name="([^"]*)" value="([^"]*)"', whole)
    assert [(unescape(name), unescape(value)) for name, value in boxes] == sorted(
        [("meta.k", "1"), (f"meta.{text}", text)]
    )
    chosen = page(browser, "/samples/odd?" + urlencode({f"meta.{text}": text, "view": "gallery"}))
    assert "7 of 120 samples match" in chosen
    (chip,) = links(chosen, "chip")
    assert chip == "/samples/odd?view=gallery"
    assert "<script>alert" not in whole + chosen
