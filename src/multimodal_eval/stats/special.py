"""The normal and Student's t distribution from SciPy, without the rest of `scipy.special`.

`import scipy.special` takes four tenths of a second, mostly for functions that no score needs. The compiled module
behind it takes a tenth of that, and its functions are the same objects.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

_PACKAGE = "scipy.special"
_lock = Lock()


def _functions() -> ModuleType:
    """SciPy's compiled functions, or the whole package if it is loaded already or has its files elsewhere."""
    with _lock:
        if _PACKAGE not in sys.modules:
            import scipy

            bare = ModuleType(_PACKAGE)
            bare.__path__ = [str(Path(scipy.__file__).parent / "special")]
            sys.modules[_PACKAGE] = bare
            try:
                return import_module(f"{_PACKAGE}._ufuncs")
            except ImportError:
                pass
            finally:
                if sys.modules.get(_PACKAGE) is bare:
                    del sys.modules[_PACKAGE]
        return import_module(_PACKAGE)


_loaded = _functions()
expit: Any = _loaded.expit
logit: Any = _loaded.logit
ndtr: Any = _loaded.ndtr
ndtri: Any = _loaded.ndtri
rel_entr: Any = _loaded.rel_entr
stdtr: Any = _loaded.stdtr
stdtrit: Any = _loaded.stdtrit
