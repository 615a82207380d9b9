"""The list of faults fits the sources, and the tool finds out which tests notice one, in a project of two functions."""

from __future__ import annotations

import pytest

from tools.mutations import (
    PACKAGE,
    ROOT,
    Fault,
    Project,
    Result,
    Results,
    main,
    read_faults,
    related_tests,
    report,
)

MODULE = "def double(x):\n    return 2 * x\n\n\ndef half(x):\n    return x / 2\n\n\ndef third(x):\n    return x / 3\n"
FILES = {
    "pytest.ini": "[pytest]\nmarkers = slow\naddopts = -ra -m 'not slow'\n",
    f"{PACKAGE}/stats/factors.py": MODULE,
    "tests/stats/test_factors.py": (
        "from pathlib import Path\n\nimport pytest\n\n"
        f"names = {{}}\nexec(Path('{PACKAGE}/stats/factors.py').read_text(), names)\n\n"
        "def test_broken():\n    assert False\n\n"
        "@pytest.mark.parametrize('x', [3], ids=['x - y'])\ndef test_double(x):\n    assert names['double'](x) == 6\n\n"
        "@pytest.mark.slow\ndef test_half():\n    assert names['half'](6) == 3\n"
    ),
    "tests/stats/test_others.py": "if False:\n    from multimodal_eval.stats import (\n        b,\n        factors)\n",
    "tests/run/test_run.py": "if False:\n    import multimodal_eval.stats.factors2\n",
    "tests/contract/test_all.py": "",
}


def factor(name, old, new):
    return Fault(name=name, file="stats/factors.py", kind="operator", old=old, new=new)


DOUBLE, HALF, THIRD = (
    factor("double", "2 * x", "3 * x"),
    factor("half", "x / 2", "x * 2"),
    factor("third", "/ 3", "/ 4"),
)


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Project(tmp_path)


def misfit(fault: Fault) -> str | None:
    """Why the fault cannot be made, if so. A syntax error would be noticed by every test."""
    text = (ROOT / PACKAGE / fault.file).read_text(encoding="utf-8")
    try:
        faulty = fault.made_in(text)
        compile(faulty, fault.file, "exec")
    except (ValueError, SyntaxError) as error:
        return f"{fault.name}: {error}"
    return f"{fault.name} changes nothing" if faulty == text else None


def test_each_fault_still_fits_its_file():
    assert [reason for fault in read_faults() if (reason := misfit(fault))] == []


def test_a_fault_whose_text_is_gone_is_refused():
    with pytest.raises(ValueError, match=r"double: stats/factors.py must have its `old` text once. It has it 0 times."):
        DOUBLE.made_in("x + x")


def test_two_faults_must_have_different_names(tmp_path):
    entry = '[[fault]]\nname = "a"\nfile = "b.py"\nkind = "c"\nold = "d"\nnew = "e"\n'
    (tmp_path / "faults.toml").write_text(2 * entry)
    with pytest.raises(ValueError, match="two faults with the same name: a"):
        read_faults(tmp_path / "faults.toml")


def test_related_tests_name_the_module_or_are_of_its_package(project):
    assert related_tests(project.root, "stats/factors.py") == (
        ["tests/stats/test_factors.py", "tests/stats/test_others.py"],
        ["tests/stats", "tests/contract"],
    )
    assert related_tests(project.root, "stats/special/_others.py") == (
        ["tests/stats/test_others.py"],
        ["tests/stats", "tests/contract"],
    )


def test_a_fault_is_taken_back_with_its_bytecode(project):
    module = project.root / PACKAGE / "stats/factors.py"
    compiled = module.parent / "__pycache__" / "factors.cpython-311.pyc"
    compiled.parent.mkdir()
    with project.with_fault(DOUBLE):
        assert "3 * x" in module.read_text()
        compiled.touch()
    assert module.read_text() == MODULE
    assert not compiled.exists()


def test_results_are_kept_for_as_long_as_the_fault_is_the_same(tmp_path):
    results = Results(tmp_path / "results.json")
    results.add(Result(DOUBLE, "related", "tests/test_a.py::test_b"))
    results.add(Result(HALF, "not default"))
    again = Results(results.path)
    again.load()
    assert again.known(DOUBLE, slow=True) == Result(DOUBLE, "related", "tests/test_a.py::test_b")
    assert again.known(factor("double", "2 * x", "4 * x"), slow=True) is None
    assert again.known(HALF, slow=False) is not None
    assert again.known(HALF, slow=True) is None  # the slow tests were not tried


def test_the_report_lists_survivors_and_both_shares():
    first, second, *_ = read_faults()
    results = [Result(first, "related")] * 8 + [Result(first, "default"), Result(first, "slow")]
    assert report(results, slow=True) == (
        "the default tests: 9 of 10 faults, 90.0%; the aim is 90%\n"
        "both suites: 10 of 10 faults, 100.0%; the aim is 98%",
        True,
    )
    text, suffices = report([*results, Result(second, "nobody")], slow=True)
    assert f"survivors:\n  {second.name:<32} {second.place()}\n" in text
    assert "both suites: 10 of 11 faults, 90.9%; the aim is 98%" in text
    assert not suffices


def test_the_list_is_printed_and_unknown_names_are_refused(capsys):
    fault = read_faults()[0]
    assert main(["--list", "--only", fault.name]) == 0
    assert capsys.readouterr().out == f"{fault.name:<32} {fault.kind:<17} {fault.place()}\n"
    with pytest.raises(SystemExit, match="no fault is named nothing"):
        main(["--only", "nothing"])


@pytest.mark.slow
def test_the_tests_that_notice_a_fault_are_found(project, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "")
    noticed = project.noticed(DOUBLE, slow=True)
    assert (noticed.noticed_by, noticed.test) == ("related", "tests/stats/test_factors.py::test_double[x - y]")
    assert project.failing == {"tests/stats/test_factors.py::test_broken"}
    noticed = project.noticed(HALF, slow=True)
    assert (noticed.noticed_by, noticed.test) == ("slow", "tests/stats/test_factors.py::test_half")
    assert project.noticed(HALF, slow=False).noticed_by == "not default"
    assert project.noticed(THIRD, slow=True).noticed_by == "nobody"
