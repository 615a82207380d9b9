"""The options of the command line that a message names, as arguments in Python and as settings of a configuration file.

Messages name options, as most of them are read on the command line. In Python, an error has a note that names the
arguments; a command whose option is a setting of the configuration file names that setting instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = ["arguments_in", "options_in", "with_settings"]

# A whole command, which stays as it is, or an option with its value.
_NAMED = re.compile(
    r"\bmmeval [a-z][^`;\n]*|(?<![\w-])(?P<option>--[a-z][a-z-]+)"
    r"(?:[ =](?!(?:and|compares|does|for|has|in|is|may|must|names|needs|or|says|the|to|with)\b)"
    r"(?P<value>'[^'\n]*'|[\w@./:|*=-]*[\w@/*=]))?"
)
_SWITCHES = frozenset(
    "--accept-open --allow-empty --allow-image-urls --allow-outside --allow-outside-images --allow-partial "
    "--only-answered --overwrite --skip-unavailable".split()
)
_LISTS = {"--by": "by", "--media-root": "media_roots", "--metrics": "metrics", "--plugin": "plugins"}
_TABLES = {"--human": "human", "--map": "map", "--option": "options"}
_TEXTS = {
    flag: flag[2:].replace("-", "_")
    for flag in "--annotators --baseline --config --headline --ids --image-root --judge --labels --level --limit "
    "--max-expansion --max-record-mb --model --prior --questions --task --ties --unknown-labels --width".split()
} | {"--as": "format", "--data": "task_data"}
_GENERATION = {
    **{flag: flag[2:].replace("-", "_") for flag in ("--base-url", "--budget", "--prices", "--prompt", "--until")},
    **{"--max-tokens": "parameters.max_tokens", "--system": "system"},
}


def options_in(text: str) -> Iterator[tuple[str, str]]:
    """The options that a text names outside of whole commands, each with its value or an empty text."""
    for match in _NAMED.finditer(text):
        if flag := match["option"]:
            yield flag, "" if flag in _SWITCHES else (match["value"] or "").strip("'")


def arguments_in(text: str) -> list[str]:
    """The arguments of functions that are the options which a text names: `allow_partial=True`."""
    written = (_argument(flag, value) for flag, value in options_in(text))
    return list(dict.fromkeys(filter(None, written)))


def _argument(flag: str, value: str) -> str:
    """The argument for an option; empty if there is none, as for an option of the viewer."""
    shown = value if value.isdigit() else repr(value) if value else "…"
    if flag in _SWITCHES:
        return f"{flag[2:].replace('-', '_')}=True"
    if flag in _LISTS:
        return f"{_LISTS[flag]}=[{shown}]"
    if flag in _TABLES:
        return f"{_TABLES[flag]}={_table(value) if value else '{…}'}"
    if flag in _GENERATION:
        outer, _, inner = _GENERATION[flag].rpartition(".")
        table = f"{{{inner!r}: {shown}}}"
        return f"generation={{{outer!r}: {table}}}" if outer else f"generation={table}"
    return f"{_TEXTS[flag]}={shown}" if flag in _TEXTS else ""


def _table(value: str) -> str:
    """NAME=VALUE, METRIC.NAME=VALUE or a column, as a value in Python."""
    name, equals, rest = value.partition("=")
    if not equals:
        return repr(value)
    outer, _, inner = name.rpartition(".")
    return f"{{{outer!r}: {{{inner!r}: {rest!r}}}}}" if outer else f"{{{name!r}: {rest!r}}}"


def with_settings(text: str, settings: Mapping[str, str]) -> str:
    """The text with the settings of a configuration file, as `generation.system`, instead of these options."""

    def setting(match: re.Match[str]) -> str:
        flag = match["option"]
        key = settings.get(flag or "")
        if key is None:
            return match[0]
        is_switch = flag in _SWITCHES
        value = "true" if is_switch else (match["value"] or "…").strip("'")
        for name in reversed(key.split(".")):
            value = f"{{{name}: {value}}}"
        rest = f" {match['value']}" if is_switch and match["value"] else ""
        return f"`{value[1:-1]}` in the file of --config{rest}"

    return _NAMED.sub(setting, text)
