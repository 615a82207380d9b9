"""Only a form on a page of this server, in this browser and this process, writes; and only into its own files."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.labels.append_file import AppendFile
from multimodal_eval.report.viewer.guard import POLICY
from multimodal_eval.report.viewer.labelling.session import MOST_BYTES, MOST_FIELDS
from tests.report.viewer.labelling.annotators import OWN, Annotator, make_labelled_runs, records, server
from tests.report.viewer.viewed import HOST, client, raw_get


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("protected") / "runs"
    make_labelled_runs(folder, 4)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


@pytest.fixture
def ann(runs: Path, file: Path) -> Annotator:
    annotator = Annotator(server(runs, file, scale="1-5"))
    annotator.next()
    return annotator


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


WRITING = ("/label/annotator", "/label/undo", "/label/item/1-x", "/notes/parrot")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
@pytest.mark.parametrize("address", [*WRITING, "/", "/label", "/run/parrot"])
def test_without_the_option_nothing_can_be_written(runs: Path, method: str, address: str):
    answer = client(runs).request(method, address, headers=OWN)
    assert answer.status_code == 405
    assert "read-only" in answer.text
    assert client(runs).get("/label").status_code == 404
    assert client(runs).get("/notes/parrot").status_code == 404


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_with_the_option_only_forms_are_accepted_and_only_there(ann: Annotator, file: Path, method: str):
    for address in (*WRITING, ann.address, "/", "/run/parrot"):
        assert ann.browser.request(method, address, headers=OWN).status_code == 405
    for address in ("/", "/run/parrot", "/samples/parrot", "/label", "/label/../run/parrot", "/compare", "/labelx/y"):
        assert ann.post(address, label="1", annotator="ann").status_code == 405, address
    override = OWN | {"x-http-method-override": "POST", "x-method-override": "POST"}
    answer = ann.browser.get(f"{ann.address}?_method=POST&label=3&token={ann.token}", headers=override)
    assert answer.status_code == 200
    for address in ("/label/media/1-x", "/label/next", "/label/mine", "/label/skipped"):
        assert ann.post(address, label="1").status_code == 405, address
    assert records(file) == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": f"https://{HOST}"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://127.0.0.1"},
        {"origin": f"http://{HOST}.evil.example"},
        {"origin": f"http://{HOST}/"},
        {"origin": f"HTTP://{HOST}"},
        {**OWN, "sec-fetch-site": "cross-site"},
        {**OWN, "sec-fetch-site": "same-site"},
        {**OWN, "sec-fetch-site": "none"},
        {"referer": f"http://{HOST}/label"},
    ],
)
def test_a_form_must_come_from_a_page_of_this_server(ann: Annotator, file: Path, headers: dict[str, str]):
    for address in (ann.address, "/label/undo", "/label/annotator", "/notes/parrot"):
        answer = ann.post(address, headers, annotator="ann", label="3")
        assert answer.status_code == 403, address
    assert records(file) == []
    ann.send(label="3")
    assert len(records(file)) == 1


def test_a_foreign_host_name_writes_nothing(ann: Annotator, file: Path):
    host = {"host": "evil.example:8000", "origin": "http://evil.example:8000"}
    assert ann.post(ann.address, host, annotator="ann", label="3").status_code == 421
    assert records(file) == []


def test_a_form_needs_the_token_of_its_browser_and_process(runs: Path, file: Path, ann: Annotator):
    other = Annotator(server(runs, file, scale="1-5"))  # the same browser after the server was started again
    other.next()
    bob = Annotator(ann.browser, "ann")  # the same server, another browser
    bob.next()
    for token in ("", "x", ann.token[:-1], ann.token.upper() + " ", other.token, bob.token, "é" * 64):
        answer = ann.browser.post(ann.address, data={"token": token, "annotator": "ann", "label": "3"}, headers=OWN)
        assert answer.status_code == 403, token
        assert "Reload" in answer.text
    assert ann.browser.post(ann.address, data={"annotator": "ann", "label": "3"}, headers=OWN).status_code == 403
    token = ann.token
    ann.browser.cookies.clear()
    assert ann.browser.post(ann.address, data={"token": token, "label": "3"}, headers=OWN).status_code == 403
    for name in ("mmeval-session-8000", "mmeval-session"):  # somebody sets a cookie, but does not know the key
        ann.browser.cookies.set(name, "0" * 32)
    assert ann.browser.post(ann.address, data={"token": token, "label": "3"}, headers=OWN).status_code == 403
    assert records(file) == []


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(ann: Annotator):
    answer = ann.browser.post("/label/annotator", data={"token": ann.token, "annotator": "x; y\tz"}, headers=OWN)
    assert answer.status_code == 400  # a tab is not part of a name
    answer = ann.browser.post(
        "/label/annotator", data={"token": ann.token, "annotator": 'a; Path=/x, "ß"'}, headers=OWN
    )
    (cookie,) = answer.headers.get_list("set-cookie")
    assert re.fullmatch(r"mmeval-annotator-8000=[\w.%~-]+; HttpOnly; Max-Age=\d+; Path=/; SameSite=strict", cookie), (
        cookie
    )
    fresh = client_like(ann).get("/label")
    assert "HttpOnly" in fresh.headers["set-cookie"]
    assert "SameSite=strict" in fresh.headers["set-cookie"]
    assert fresh.headers["cache-control"] == "no-store"
    assert fresh.headers["content-security-policy"] == POLICY
    assert fresh.headers["referrer-policy"] == "same-origin"


def client_like(annotator: Annotator) -> TestClient:
    """A browser without cookies."""
    return TestClient(annotator.browser.app, base_url=str(annotator.browser.base_url), follow_redirects=False)


@pytest.mark.parametrize(
    "name", ["", " ", "a" * 81, "a\nb", "a\x00b", "\u202eann", "a\u2028b", "\ufeff", "\x1b[31m", "a\x7f", "\ue000"]
)
def test_names_that_nobody_can_see_are_refused(ann: Annotator, name: str):
    answer = ann.post("/label/annotator", annotator=name)
    assert answer.status_code == 400
    assert "set-cookie" not in answer.headers


def test_a_cookie_with_a_hidden_name_is_ignored(ann: Annotator):
    for value in ("%00", "%E2%80%AEann", "%FF", "a" * 500, "%0d%0aSet-Cookie:x=y"):
        browser = client_like(ann)
        browser.cookies.set("mmeval-annotator-8000", value)
        assert browser.get("/label/next").headers["location"] == "/label", value
        assert browser.get("/label").status_code == 200


def test_the_size_and_the_form_of_a_body_are_limited(ann: Annotator, file: Path):
    good = f"token={ann.token}&annotator=ann&label=3"
    form = OWN | {"content-type": "application/x-www-form-urlencoded"}

    def sent(body: bytes | str, **headers: str) -> int:
        status = ann.browser.post(ann.address, content=body, headers=form | headers).status_code
        assert records(file) == []
        return status

    assert sent(good + "&comment=" + "x" * MOST_BYTES) == 413
    assert sent(good + "&comment=" + "x" * 3_000) == 400  # longer than a comment may be
    assert sent(good + "&label=4") == 400
    assert sent(good + "&file=/etc/passwd") == 400
    assert sent(good + "&path=../x.jsonl") == 400
    assert sent(good + "".join(f"&c{number}=1" for number in range(MOST_FIELDS))) == 400
    assert sent(good + "&comment=%ff%fe") == 400
    assert sent(good.encode() + b"&comment=\xff") == 400
    assert sent(good + "&comment=%00") == 400
    assert sent(good + "&comment=%1b%5b31m") == 400
    assert sent(good + "&comment=%ed%a0%80") == 400
    assert sent("") == 403
    for kind in ("text/plain", "application/json", "multipart/form-data; boundary=x", "", "x"):
        assert sent(good, **{"content-type": kind}) == 415, kind
    assert ann.browser.post(ann.address, content=good, headers=form).status_code == 303
    assert len(records(file)) == 1


def test_a_body_in_pieces_has_the_same_limit(ann: Annotator, file: Path):
    form = OWN | {"content-type": "application/x-www-form-urlencoded"}
    pieces = (b"comment=" + b"x" * 40_000 for _ in range(10))
    assert ann.browser.post(ann.address, content=pieces, headers=form).status_code == 413
    assert records(file) == []


TRAVERSALS = [
    "..",
    "../x",
    "%2e%2e/parrot",
    "..%2fparrot",
    "parrot/..",
    "parrot/../owl",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "parrot%00",
    "parrot/run.json",
    "..\\x",
    "nothing",
    "a" * 5_000,
    ".mmeval-notes.jsonl",
    "parrot/",
    "%ff",
]


@pytest.mark.parametrize("name", TRAVERSALS)
def test_no_request_chooses_another_file(runs: Path, tmp_path: Path, name: str):
    folder = tmp_path / "place" / "runs"
    shutil.copytree(runs, folder)
    file = tmp_path / "place" / "labels.jsonl"
    ann = Annotator(server(folder, file, scale="1-5"))
    before = contents(tmp_path)
    for address in (f"/notes/{name}", f"/label/item/{name}", f"/label/media/{name}?kind={name}", f"/label/{name}"):
        answer = ann.browser.post(
            address, data={"token": ann.token, "tags": "x", "note": name, "version": "x"}, headers=OWN
        )
        assert 300 <= answer.status_code < 500, (address, answer.text)
        assert raw_get(ann.browser, address)[0] in (303, 307, 404), address
    assert contents(tmp_path) == before


def test_no_run_folder_is_changed(runs: Path, tmp_path: Path):
    folder = tmp_path / "runs"
    shutil.copytree(runs, folder)
    before = contents(folder)
    ann = Annotator(server(folder, tmp_path / "labels.jsonl", scale="1-5"))
    while ann.next():
        ann.send(label="3", comment="x")
    ann.open("/notes/parrot")
    version = re.search(r'name="version" value="(\w+)"', ann.text)
    assert version is not None
    assert ann.post("/notes/parrot", tags="a", note="b", version=version[1]).status_code == 303
    after = contents(folder)
    assert after.keys() - before.keys() == {".mmeval-notes.jsonl"}
    assert {name: after[name] for name in before} == before
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "labels.jsonl"}


def test_places_where_labels_may_not_be(runs: Path, tmp_path: Path):
    run = tmp_path / "runs" / "parrot"
    shutil.copytree(runs / "parrot", run)
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    (tmp_path / "into").symlink_to(run)
    os.mkfifo(tmp_path / "pipe")
    for place, message in {
        run / "labels.jsonl": "is in the run folder",
        run / "scores" / "labels.jsonl": "is in the run folder",
        tmp_path / "into" / "labels.jsonl": "is in the run folder",
        run / ".." / "parrot" / "x.jsonl": "is in the run folder",
        tmp_path / "link.jsonl": "is a link",
        tmp_path / "pipe": "is not a file",
        tmp_path / "runs": "is not a file",
        tmp_path / "nowhere" / "labels.jsonl": "does not exist",
    }.items():
        with pytest.raises(ConfigError, match=message):
            server(tmp_path / "runs", place, scale="1-5")
    assert not (tmp_path / "elsewhere.jsonl").exists()


def test_a_link_that_takes_the_place_of_the_file_is_not_followed(runs: Path, tmp_path: Path):
    file, secret = tmp_path / "labels.jsonl", tmp_path / "secret"
    secret.write_text("untouched\n")
    ann = Annotator(server(runs, file, scale="1-5"))
    ann.next()
    file.symlink_to(secret)
    answer = ann.post(ann.address, annotator="ann", label="3")
    assert answer.status_code == 507
    assert "labels.jsonl cannot be read" in answer.text
    assert secret.read_text() == "untouched\n"
    file.unlink()
    ann.next()
    ann.send(label="3")
    assert len(records(file)) == 1


def test_what_is_not_saved_is_not_shown_as_saved(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "labels.jsonl"
    ann = Annotator(server(runs, file, scale="1-5"))
    ann.next()
    ann.send(label="4")
    ann.next()
    before = file.read_bytes()
    real = os.write

    def full(handle: int, data: memoryview) -> int:
        real(handle, data[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("multimodal_eval.data.labels.append_file.os.write", full)
    answer = ann.post(ann.address, annotator="ann", label="5")
    monkeypatch.undo()
    assert answer.status_code == 507
    assert "nothing was saved: labels.jsonl: No space left on device" in answer.text
    assert file.read_bytes() == before
    assert "1 done" in ann.open("/label/next")
    ann.send(label="5")
    assert [each["label"] for each in records(file)] == [4, 5]


def test_a_locked_file_is_an_error_after_a_while(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("multimodal_eval.data.labels.append_file._WAIT", 0.2)
    file = tmp_path / "labels.jsonl"
    ann = Annotator(server(runs, file, scale="1-5"))
    ann.next()
    AppendFile(file).append(b'{"id": "other", "label": 1}')
    ann.next()
    with file.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        answer = ann.post(ann.address, annotator="ann", label="3")
        assert answer.status_code == 507
        assert "another process has locked it" in answer.text
    ann.next()
    ann.send(label="3")
    assert len(records(file)) == 2
