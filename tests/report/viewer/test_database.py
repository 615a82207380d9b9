"""SQL in parameters is not executed, and the database reads only the runs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from tests.report.viewer.guarded import guarded_runs
from tests.report.viewer.viewed import client


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return guarded_runs(tmp_path_factory.mktemp("guarded"))


@pytest.fixture(scope="module")
def browser(folder: Path) -> TestClient:
    return client(folder)


STATEMENTS = [
    "'",
    '"',
    "'; drop table kept_1; --",
    "' or '1'='1",
    '" or 1=1 --',
    "1) or (1=1",
    "bleu\" desc; select * from read_text('/etc/passwd') --",
    "bleu; copy (select 1) to '/tmp/x'",
    "(select content from read_text('/etc/passwd'))",
    "rowid",
    "row",
    "id",
    "bleu:status",
    "$1",
    "?",
    "{{ 7 * 7 }}",
    "%s%n",
    "\\",
    "bleu/**/",
    "0 union select 1",
    "1e309",
    "nan",
    "-1",
    "9" * 30,
    "²",
    "٣",
    "x\ty",
    "😀",
    "a" * 600,
]


PARAMETERS = [
    "q",
    "in",
    "status",
    "meta",
    "value",
    "sort",
    "desc",
    "offset",
    "min.bleu",
    "max.bleu",
    "at",
    "row",
    "kind",
    "view",
    "meta.language",
    "small",
    "middle",
]


PAIR_PARAMETERS = [
    "number",
    "desc",
    "offset",
    "sort",
    "outcome",
    "status",
    "q",
    "in",
    "meta.language",
    "min.a.bleu",
    "max.b.bleu",
    "min.d",
]


@pytest.mark.parametrize(
    "statement", [*STATEMENTS[:3], *(pytest.param(text, marks=pytest.mark.slow) for text in STATEMENTS[3:])]
)
def test_statements_in_parameters_are_values_or_errors(browser: TestClient, statement: str):
    """They never cause a server error, and a search treats them as plain text."""
    text = quote(statement, safe="")
    addresses = [f"/samples/alba?{name}={text}" for name in PARAMETERS]
    addresses += [
        f"/samples/alba?q=red&in={field}&sort=bleu&meta={text}&value={text}" for field in ("id", "references")
    ]
    addresses += [f"/samples/alba?min.{text}=0", f"/samples/alba?{text}={text}"]
    addresses += [f"/samples/alba?view=gallery&meta.{text}={text}&meta.{text}=x&sort=bleu&min.bleu=0"]
    addresses += [f"/export/samples.csv/alba?meta.{text}={text}", f"/sample/alba?row=0&at=0&meta.{text}={text}"]
    addresses += [f"/sample/alba?row=0&{name}={text}" for name in PARAMETERS if name != "row"]
    addresses += [f"/sample/alba?row={text}", f"/media/alba?row={text}", f"/media/alba?row=0&kind={text}"]
    addresses += [f"/?{name}={text}" for name in ("q", "task", "state", "sort", "desc")]
    addresses += [f"/pairs?run=alba&run=boreas&{name}={text}" for name in PAIR_PARAMETERS]
    addresses += [f"/pairs.csv?run=alba&run=boreas&{name}={text}" for name in ("q", "outcome", "min.a.bleu", "sort")]
    addresses += [f"/scatter?run=alba&run=boreas&{name}={text}" for name in ("x", "y", "x0", "y1", "q", "outcome")]
    addresses += [f"/scatter/alba?{name}={text}" for name in ("x", "y", "x0", "y1", "q", "meta.language", "min.bleu")]
    addresses += [f"/pairs?run=alba&run=boreas&min.{side}.{text}=0" for side in "abd"]
    addresses += [f"/export/samples.csv/alba?sort={text}", f"/export/run.csv/alba?table={text}", f"/runs.{text}"]
    for address in addresses:
        response = browser.get(address)
        assert response.status_code in (200, 400, 404), address
        assert "root:" not in response.text
    response = browser.get(f"/samples/alba?q={text}")
    assert (
        response.status_code == 400
        or "0 of 120 samples match" in response.text
        or statement.strip() in ("row", "id", "-1", "")
    )
    assert browser.get("/samples/alba?sort=bleu").status_code == 200


@pytest.mark.parametrize("query", ["sort=bleu&sort=rouge_l", "q=a&q=b", "offset=1&offset=2"])
def test_a_repeated_parameter_is_refused(browser: TestClient, query: str):
    assert browser.get(f"/samples/alba?{query}").status_code == 400


def test_control_characters_are_refused(browser: TestClient):
    assert browser.get("/samples/alba?q=%00").status_code == 400
    assert browser.get("/samples/alba?meta=a%00&value=b").status_code == 400


def test_the_database_reads_no_other_files(folder: Path):
    import duckdb

    from multimodal_eval.report.viewer.database import Database

    database = Database(folder.resolve())
    for statement in (
        f"select * from read_text('{folder.parent}/outside/secret.txt')",
        "select * from read_csv('/etc/passwd')",
        f"copy (select 1) to '{folder.parent}/written.csv'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        f"attach '{folder.parent}/other.db'",
    ):
        with database.session() as session, pytest.raises(duckdb.Error):
            session.execute(statement)
    database.close()
    assert not (folder.parent / "written.csv").exists()


def test_a_slow_query_is_stopped(folder: Path):
    from multimodal_eval.report.viewer.database import Database, TooSlowError

    database = Database(folder.resolve())
    with pytest.raises(TooSlowError, match="was cancelled"), database.session(seconds=0.2) as session:
        session.execute("select count(*) from range(100000000000) a, range(1000000) b").fetchall()
    with database.session() as session:
        assert session.execute("select 1").fetchall() == [(1,)]
    database.close()


def test_tables_in_memory_are_dropped_for_new_ones(folder: Path, monkeypatch: pytest.MonkeyPatch):
    from multimodal_eval.report.viewer import database as module

    monkeypatch.setattr(module, "MEMORY", 100)
    database = module.Database(folder.resolve())

    def tables() -> list[str]:
        with database.session() as session:
            return [name for (name,) in session.execute("select table_name from duckdb_tables()").fetchall()]

    query = module.Sql("select 1 as x")
    with database.session() as session:
        assert session.kept("large", query, 51) is None
        assert session.kept("absent", query, 10, load=False) is None
        first = session.kept("first", query, 40)
        assert session.kept("first", query, 40) == first
    with database.session() as session:
        second = session.kept("second", query, 40)
        third = session.kept("third", query, 40)  # the first is dropped, the second is in use
        assert tables() == [second, third]
        session.kept("fourth", query, 40)  # none can be dropped
        assert len(tables()) == 3
    with database.session() as session:
        session.kept("fifth", query, 50)
    assert len(tables()) == 2
    database.close()
