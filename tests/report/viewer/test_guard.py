"""The viewer refuses foreign host names and sites, paths outside its folder, and changes."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from starlette.testclient import TestClient

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample
from multimodal_eval.report.viewer.app import create_app
from multimodal_eval.report.viewer.guard import POLICY, host_check
from tests.report.viewer.guarded import SECRET, guarded_runs
from tests.report.viewer.viewed import HOST, PORT, client, raw_get


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return guarded_runs(tmp_path_factory.mktemp("guarded"))


@pytest.fixture(scope="module")
def browser(folder: Path) -> TestClient:
    return client(folder)


def pages(name: str) -> list[str]:
    """Every address that contains the name of a run."""
    return [
        *(f"/{kind}/{name}" for kind in ("run", "samples", "sample", "media", "progress")),
        *(f"/{kind}/{name}" for kind in ("histograms", "slices", "report", "spread")),
        f"/export/run.csv/{name}",
        f"/export/samples.csv/{name}",
        f"/compare?run={name}&run=alba",
        f"/compare/numbers?run={name}&run=alba",
        f"/pairs?run={name}&run=alba",
        f"/scatter?run={name}&run=alba",
        f"/scatter/{name}",
    ]


OUTSIDE = [
    "..",
    "../outside/alba",
    "../runs/alba",
    "alba/..",
    "alba/../alba",
    "./alba",
    "alba/.",
    "%2e%2e",
    "%2e%2e%2foutside%2falba",
    "..%2foutside%2falba",
    "%2e%2e/outside/alba",
    "..%5coutside%5calba",
    "..\\outside\\alba",
    "%252e%252e%252foutside%252falba",
    "..%252foutside%252falba",
    "%c0%ae%c0%ae%c0%afoutside",
    "%c0%ae%c0%ae/outside/alba",
    "%e0%80%ae%e0%80%ae/outside/alba",
    "..%c0%afoutside",
    "%uff0e%uff0e/outside/alba",
    "．．/outside/alba",
    "..;/outside/alba",
    "....//outside/alba",
    "/etc",
    "/etc/passwd",
    "//etc/passwd",
    "%2fetc%2fpasswd",
    "%2f%2fetc",
    "alba//",
    "alba%2f",
    "//alba",
    "alba%00",
    "alba%00.json",
    "%00",
    "alba/scores",
    "alba/run.json",
    "alba/scores/part-00000.parquet",
    "C:",
    "C:/Windows",
    "C:%5cWindows",
    "%5c%5cserver%5cshare",
    "file:///etc/passwd",
    "file:%2f%2f%2fetc",
    "http://127.0.0.1/",
    "~",
    "~root",
    "$HOME",
    "*",
    "alb?",
    "[a]lba",
    "%2e",
    "a" * 5_000,
    "%ff",
    "%ed%a0%80",
    "linked",
    "group/alba",
    "file-linked",
    "CON",
    "alba::$DATA",
    "alba.",
    "alba%20",
    "ALBA",
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_outside_the_folder_is_shown(browser: TestClient, folder: Path, name: str):
    for address in pages(name):
        status, text = raw_get(browser, address)
        assert 400 <= status < 500, address
        assert SECRET not in text
        assert str(folder.parent / "outside") not in text


@pytest.mark.parametrize("name", ["samples-linked", "scores-linked", "part-linked"])
def test_files_of_a_run_that_link_outside_are_not_read(browser: TestClient, name: str):
    for kind in ("histograms", "slices", "report", "run", "spread"):
        assert browser.get(f"/{kind}/{name}?metric=bleu").status_code == 404, kind
    for address in (f"/samples/{name}", f"/sample/{name}?row=0", f"/media/{name}?row=0", f"/export/samples.csv/{name}"):
        assert browser.get(address).status_code == 404, address


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "%2e%2e%2f__init__.py", "viewer.css/..", "", "NOTICE"])
def test_no_other_file_of_the_package_is_served(browser: TestClient, name: str):
    assert raw_get(browser, f"/assets/{name}")[0] == 404


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_local_host_names_are_accepted(browser: TestClient, host: str):
    assert browser.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:8001",
        "evil.example",
        f"evil.example:{PORT}",
        f"127.0.0.1.evil.example:{PORT}",
        f"localhost.evil.example:{PORT}",
        f"evil.example@127.0.0.1:{PORT}",
        f"127.0.0.1:{PORT}@evil.example",
        f"127.0.0.1:{PORT},evil.example",
        f"192.168.1.5:{PORT}",
        f"0.0.0.0:{PORT}",
        f"127.1:{PORT}",
        f"2130706433:{PORT}",
        f"[::]:{PORT}",
    ],
)
def test_other_host_names_are_refused(browser: TestClient, host: str):
    """Otherwise a foreign page could read the runs, by a name that points to this machine."""
    response = browser.get("/", headers={"host": host})
    assert response.status_code == 421
    assert "alba" not in response.text


def test_a_server_on_all_addresses_accepts_addresses_but_no_other_names():
    accepts_host = host_check("0.0.0.0", PORT)
    assert accepts_host(f"192.168.1.5:{PORT}")
    assert accepts_host(f"[fe80::1]:{PORT}")
    assert accepts_host(HOST)
    assert not accepts_host(f"evil.example:{PORT}")
    assert not accepts_host("192.168.1.5:1")
    assert host_check("box.local", PORT)(f"box.local:{PORT}")
    assert host_check("::1", 80)("[::1]")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(browser: TestClient, method: str):
    assert browser.request(method, "/run/alba").status_code == 405
    assert browser.request(method, "/run/alba", headers={"origin": f"http://{HOST}"}).status_code == 405
    for origin in ("http://evil.example", "null", f"https://{HOST}", "http://127.0.0.1:1"):
        assert browser.request(method, "/run/alba", headers={"origin": origin}).status_code == 403


def test_other_sites_may_link_to_the_first_page_and_load_nothing(browser: TestClient):
    foreign = {"sec-fetch-site": "cross-site"}
    assert (
        browser.get("/", headers={**foreign, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}).status_code == 403
    )
    assert browser.get("/", headers={**foreign, "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}).status_code == 403
    assert (
        browser.get("/", headers={**foreign, "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}).status_code
        == 403
    )
    visit = {**foreign, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert browser.get("/", headers=visit).status_code == 200
    assert browser.get("/", headers={"sec-fetch-site": "same-origin"}).status_code == 200
    for address in ("/?sort=name", "/compare/numbers?run=alba&run=boreas", *pages("alba"), "/assets/style.css"):
        for site in ("cross-site", "same-site"):  # same-site: another port of this machine
            assert browser.get(address, headers={**visit, "sec-fetch-site": site}).status_code == 403, address
        assert browser.get(address, headers={"origin": "http://evil.example"}).status_code == 403, address
        from_here = {"sec-fetch-site": "same-origin", "origin": f"http://{HOST}"}
        assert browser.get(address, headers=from_here).status_code != 403, address


@pytest.mark.parametrize(
    "address",
    ["/", "/run/alba", "/nothing", "/run/nobody", "/media/alba?row=0", "/assets/style.css", "/runs.csv", "/?sort=x"],
)
def test_every_response_has_the_security_headers(browser: TestClient, address: str):
    for headers in ({}, {"host": "evil.example"}):
        response = browser.get(address, headers=headers)
        assert response.headers["content-security-policy"] == POLICY
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in response.headers if name.startswith("access-control")]


def test_a_server_error_has_the_security_headers(folder: Path):
    def broken(runs: object) -> NoReturn:
        raise KeyError("a bug")

    app = create_app(folder, compare=broken, accepts_host=host_check("127.0.0.1", PORT))
    response = TestClient(app, f"http://{HOST}", raise_server_exceptions=False).get(
        "/compare/numbers?run=alba&run=boreas"
    )
    assert response.status_code == 500
    assert response.headers["content-security-policy"] == POLICY
    assert "a bug" not in response.text


def test_media_are_opened_under_the_rules_of_the_run(tmp_path: Path):
    """Files that are not images or audio are refused, whatever their name."""
    media = tmp_path / "media"
    media.mkdir()
    (media / "page.png").write_text("<html><script>alert(1)</script></html>")
    (media / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    (media / "speech.wav").write_text("<script>alert(1)</script>")
    (tmp_path / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (media / "link.png").symlink_to(tmp_path / "secret.png")
    names = ["page.png", "drawing.svg", "../secret.png", str(tmp_path / "secret.png"), "link.png", "/etc/passwd"]
    names += [
        "http://127.0.0.1:9/x.png",
        "file:///etc/passwd",
        "data:text/html,<script>alert(1)</script>",
        "\\\\host\\x",
    ]
    samples = [
        Sample(str(number), image=name, audio="speech.wav", references=["a"], generated_answer="a")
        for number, name in enumerate(names)
    ]
    output = tmp_path / "runs" / "a"
    evaluate(samples, metrics=["rouge_l"], output=output, image_root=str(media), allow_image_urls=True)
    browser = client(tmp_path / "runs")
    for number, name in enumerate(names):
        for kind in ("image", "audio"):
            response = browser.get(f"/media/a?row={number}&kind={kind}")
            assert response.status_code == 404, name
            assert "<script>" not in response.text
        assert browser.get(f"/sample/a?row={number}").status_code == 200
