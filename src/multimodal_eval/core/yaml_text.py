"""YAML as plain values, within limits: the depth, and the size after aliases are expanded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.system_files import read_text

MAX_BYTES = 1 << 22  # of a file
MAX_VALUES = 200_000  # after aliases are expanded; a few lines of aliases of aliases would fill the memory
MAX_DEPTH = 50


def read_yaml(path: Path, what: str, *, unique_keys: bool = False) -> Any:
    """The content of a YAML file; `what` names the file in messages."""
    text = _text(path, what)
    try:
        return parse_yaml(text, unique_keys=unique_keys)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _text(path: Path, what: str) -> str:
    return read_text(path, what, MAX_BYTES)


def read_tagged_yaml(path: Path, what: str) -> tuple[Any, dict[str, int]]:
    """The content of a YAML file with tags of another program, and the line of each of its keys.

    A value with an unknown tag is a `Tagged`. The keys of sections are named with dots: `data.path`.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """Keeps tags instead of refusing them."""

    Loader.add_multi_constructor("!", lambda loader, suffix, node: Tagged(f"!{suffix} {_scalar(node)}".strip()))
    text = _text(path, what)
    try:
        loader = Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, {}
        _refuse_large(node)
        return loader.construct_document(node), _lines(node)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {_fault(error)}") from None
    except (RecursionError, ValueError, OverflowError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: a value cannot be read: {error}") from None


def _fault(error: Exception) -> str:
    """What is wrong with a YAML text, and where."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or not problem:
        return f"this is not valid YAML: {error}"
    context = getattr(error, "context", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: this is not valid YAML: {problem}" + (
        f" ({context})" if context else ""
    )


class Tagged(str):
    """A value with the tag of another program, such as `!function utils.score`, as it is written."""

    __slots__ = ()


def _scalar(node: Any) -> str:
    return node.value if isinstance(node.value, str) else ""


def _lines(node: Any, prefix: str = "", depth: int = 0) -> dict[str, int]:
    """The lines of keys, also of those of inner sections, which are named with dots."""
    lines: dict[str, int] = {}
    if type(node).__name__ != "MappingNode" or depth > 2:
        return lines
    for key, value in node.value:
        name = f"{prefix}{_scalar(key)}"
        lines[name] = key.start_mark.line + 1
        lines |= _lines(value, f"{name}.", depth + 1)
    return lines


def parse_yaml(text: str, *, unique_keys: bool = False) -> Any:
    """The value of a YAML text. With `unique_keys`, a key that occurs twice is refused."""
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_large(node)
        if unique_keys:
            _refuse_repeated_keys(loader, node)
        return loader.construct_document(node)
    except ConfigError:
        raise
    except yaml.YAMLError as error:
        raise ConfigError(_fault(error)) from None
    except RecursionError:
        raise ConfigError(f"values are nested deeper than {MAX_DEPTH} levels") from None
    except (ValueError, OverflowError, TypeError, AttributeError) as error:  # a date or a number that does not exist
        raise ConfigError(f"a value cannot be read: {error}") from None


def _children(node: Any) -> list[Any]:
    if isinstance(node.value, str):
        return []
    return [inner for item in node.value for inner in (item if isinstance(item, tuple) else (item,))]


def _refuse_large(root: Any) -> None:
    """Refuse a value that contains itself, that is nested too deeply, or that has too many values."""
    sizes: dict[int, int] = {}  # expanded
    path: set[int] = set()
    waiting: list[tuple[Any, bool]] = [(root, False)]
    while waiting:
        node, has_children = waiting.pop()
        key = id(node)
        if has_children:
            path.discard(key)
            sizes[key] = 1 + sum(sizes[id(child)] for child in _children(node))
            if sizes[key] > MAX_VALUES:
                line = node.start_mark.line + 1
                raise ConfigError(f"line {line} has more than {MAX_VALUES:,} values, with its aliases expanded")
        elif key in path:
            raise ConfigError(f"the value in line {node.start_mark.line + 1} contains itself, by an alias")
        elif key not in sizes:
            path.add(key)
            if len(path) > MAX_DEPTH:
                line = node.start_mark.line + 1
                raise ConfigError(f"values are nested deeper than {MAX_DEPTH} levels, in line {line}")
            waiting.append((node, True))
            waiting += ((child, False) for child in _children(node))


def _refuse_repeated_keys(loader: Any, root: Any) -> None:
    """Refuse a key that occurs twice; the default loader silently keeps the last."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        waiting += _children(node)
        lines: dict[str, int] = {}
        for key_node, _ in node.value if type(node).__name__ == "MappingNode" else ():
            if key_node.tag == "tag:yaml.org,2002:merge":  # <<: *alias
                continue
            key, line = loader.construct_object(key_node, deep=True), key_node.start_mark.line + 1
            if isinstance(key, str) and lines.setdefault(key, line) != line:
                raise ConfigError(f"the key {key!r} occurs twice, in lines {lines[key]} and {line}")
