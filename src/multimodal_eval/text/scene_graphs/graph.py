"""A scene graph as tuples of words."""

from __future__ import annotations

from dataclasses import dataclass

Attribute = tuple[str, str]  # object, attribute
Relation = tuple[str, str, str]  # subject, relation, object


@dataclass(frozen=True, slots=True)
class SceneGraph:
    """Objects, attributes and relations, as base forms. Tuples may repeat; `merging.merged` unites them."""

    objects: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    relations: tuple[Relation, ...] = ()

    def __len__(self) -> int:
        return len(self.objects) + len(self.attributes) + len(self.relations)
