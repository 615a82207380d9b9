"""The functions are SciPy's own, however they were loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
{before}
from multimodal_eval.stats.special import stdtrit
assert {loaded}
import scipy.special
assert stdtrit is scipy.special.stdtrit
assert scipy.special.gammaln(3.0) > 0  # the package is whole
"""


@pytest.mark.parametrize(
    ("before", "loaded"),
    [
        ("", "'scipy.special' not in sys.modules"),
        ("import scipy.special", "'scipy.special' in sys.modules"),
        ("import scipy.stats", "'scipy.special' in sys.modules"),
    ],
)
def test_they_are_scipys(before, loaded):
    code = CODE.format(before=before, loaded=loaded)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_is_loaded_if_its_files_are_arranged_differently(monkeypatch):
    from multimodal_eval.stats import special

    monkeypatch.delitem(sys.modules, "scipy.special", raising=False)
    monkeypatch.delitem(sys.modules, "scipy.special._ufuncs", raising=False)
    original = special.import_module

    def no_ufuncs(name):
        if name.endswith("._ufuncs"):
            raise ImportError(name)
        return original(name)

    monkeypatch.setattr(special, "import_module", no_ufuncs)
    assert special._functions().__name__ == "scipy.special"
