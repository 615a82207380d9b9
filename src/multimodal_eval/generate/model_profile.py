"""Model profiles: how the publisher of a model asks it, by name or in a file, in plain YAML.

A profile has the publisher's sampling, prompts, limits of pixels, the switch of thinking, and the marks around it. Its
settings are below those that a run sets itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig, ModelProfile
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.yaml_text import parse_yaml, read_yaml

__all__ = ["profile_text", "profiles", "signature_of", "with_profile", "with_thinking"]

_FOLDER = files("multimodal_eval.generate").joinpath("profiles")
_SUFFIX = ".yaml"


@cache
def profiles() -> dict[str, str]:
    """The names of the profiles of the package, and what each is for."""
    names = sorted(file.name.removesuffix(_SUFFIX) for file in _FOLDER.iterdir() if file.name.endswith(_SUFFIX))
    return {name: _profile(name).about for name in names}


def profile_text(name: str) -> str:
    """The text of a profile of the package."""
    return _FOLDER.joinpath(f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def with_profile(settings: Mapping[str, Any]) -> JsonObject:
    """The settings of a generation on top of those of the profile that they name."""
    settings = dict(settings)
    name = settings.get("profile")
    if not isinstance(name, str) or settings.get("profile_content") is not None:
        return settings
    profile = _profile(name)
    given = msgspec.to_builtins(profile)
    names = ("system", "max_pixels", "detail", "frames", "frames_per_second")
    below = {key: given[key] for key in names if key in given}
    parameters, chosen = given.get("parameters", {}), dict(settings.get("parameters") or {})
    if parameters.get("extra") and isinstance(chosen.get("extra"), dict):
        chosen["extra"] = {**parameters["extra"], **chosen["extra"]}
    file = {} if name in _names() else {"profile": str(Path(name).resolve())}
    merged = {"parameters": {**parameters, **chosen}} if parameters or chosen else {}
    return {**below, **settings, **merged, **file, "profile_content": given}


def with_thinking(config: GenerationConfig) -> GenerationConfig:
    """The configuration with the fields that switch thinking on or off, as the profile says."""
    switch = {} if config.profile_content is None else _switch(config.profile_content, on=bool(config.thinking))
    if not switch:
        word = "on" if config.thinking else "off"
        raise ConfigError(f"`thinking` needs a `profile` whose section `thinking` says how it is switched {word}")
    parameters = msgspec.structs.replace(config.parameters, extra={**switch, **config.parameters.extra})
    return msgspec.structs.replace(config, parameters=parameters)


def signature_of(profile: str, content: ModelProfile) -> str:
    """The name of a profile, with a digest of its content."""
    encoded = msgspec.json.encode(content, order="deterministic")
    return f"{Path(profile).name}@{sha256(encoded).hexdigest()[:12]}"


def _switch(profile: ModelProfile, *, on: bool) -> JsonObject:
    return profile.thinking.enabled if on else profile.thinking.disabled


def _names() -> list[str]:
    return [file.name.removesuffix(_SUFFIX) for file in _FOLDER.iterdir() if file.name.endswith(_SUFFIX)]


def _profile(name: str) -> ModelProfile:
    from multimodal_eval.generate.prompts import prompts

    if name in _names():
        content = parse_yaml(profile_text(name))
    elif Path(name).suffix in (".yaml", ".yml"):
        content = read_yaml(Path(name), "the model profile", unique_keys=True)
    else:
        raise UnknownNameError("model profile", name, profiles())
    try:
        profile = msgspec.convert(content, ModelProfile)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the model profile {name}: {error}") from None
    for prompt in profile.prompts:
        if prompt not in prompts():
            raise UnknownNameError("prompt", prompt, prompts())
    return profile
