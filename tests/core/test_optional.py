from __future__ import annotations

import sys
import threading

import pytest

from multimodal_eval.core.errors import MissingPackageError
from multimodal_eval.core.optional import check_installed, expect, import_expected, require

MESSAGE = (
    r"the engine needs the package 'no_such_package', which is not installed\. "
    r"Install it with: pip install 'multimodal-eval\[ray\]'"
)


def test_a_missing_package_is_named_with_its_extra():
    with pytest.raises(MissingPackageError, match=MESSAGE):
        require("no_such_package", extra="ray", purpose="the engine")
    with pytest.raises(MissingPackageError, match=MESSAGE):
        check_installed("json", "no_such_package", extra="ray", purpose="the engine")


def test_a_check_imports_nothing(monkeypatch):
    monkeypatch.delitem(sys.modules, "this", raising=False)
    check_installed("json", "this", extra="ray", purpose="the engine")
    assert "this" not in sys.modules


def test_a_package_that_is_here_is_returned():
    assert require("json", extra="ray", purpose="the engine").dumps([1]) == "[1]"


def test_expected_modules_are_imported_in_a_thread(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text("import threading\nname = threading.current_thread().name\n")
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("slow_to_import", "not_there", "slow_to_import"):
        expect(module)
    assert "slow_to_import" not in sys.modules
    import_expected()
    for thread in threading.enumerate():
        if thread.name == "imports":
            thread.join()
    assert sys.modules.pop("slow_to_import").name == "imports"
    import_expected()  # nothing is expected any more
    assert "slow_to_import" not in sys.modules
