"""YAML text of exports."""

from __future__ import annotations

__all__ = ["yaml_text"]


def yaml_text(content: object) -> str:
    """The content as YAML, with keys in their order and lines as long as they are."""
    import yaml

    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=2**31)
    return text
