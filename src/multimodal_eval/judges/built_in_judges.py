"""The judges that come with the package: the files in `built_in`. Their models are the user's choice."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from multimodal_eval.core.errors import ConfigError, did_you_mean

__all__ = ["judge_text", "judges"]

_FOLDER = files("multimodal_eval.judges").joinpath("built_in")
_SUFFIX = ".yaml"


@cache
def judges() -> dict[str, str]:
    """The names of the judges, and what each is for: the first comment of its file."""
    names = sorted(file.name.removesuffix(_SUFFIX) for file in _FOLDER.iterdir() if file.name.endswith(_SUFFIX))
    return {name: judge_text(name).partition("\n")[0].removeprefix("#").strip() for name in names}


def judge_text(name: str) -> str:
    """The YAML text of a judge."""
    file = _FOLDER.joinpath(f"{name}{_SUFFIX}")
    if not name.isidentifier() or not file.is_file():
        raise ConfigError(
            f"no judge is named {name!r}.{did_you_mean(name, list(judges()))}. The file of your own judge ends in .yaml"
        )
    return file.read_text(encoding="utf-8")
