"""What a user must name again to continue or rescore a run: plug-in files and folders.

Nothing that a run folder names is imported, and files that it names are read only if the run is one of the user's own
or the command allows their folder (`data.runs.grants`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from shlex import quote

import msgspec

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError, RunFolderError, UnknownNameError
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.metric_table import origin
from multimodal_eval.core.records import JsonObject, RunInfo
from multimodal_eval.core.registry import PLUGIN, content_of_plugin, is_loaded
from multimodal_eval.data.runs.grants import is_own
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.plan import Plan

_MEDIA_FIELDS = ("image", "images", "audio", "video", "messages")  # fields that name files


def trusted_plugins(plugins: Sequence[str | Path], config: RunConfig) -> list[str]:
    """The plug-ins of a call, and those of the stored configuration that this process has already imported."""
    paths = [str(Path(plugin).resolve()) for plugin in plugins]
    return list(dict.fromkeys([*paths, *(plugin for plugin in config.plugins if is_loaded(plugin))]))


def refuse_other_plugins(folder: RunFolder, info: RunInfo, plugins: Sequence[str]) -> None:
    """Refuse to continue a run without the plug-ins that it was started with, before any file is imported."""
    given = {_digest(plugin) for plugin in plugins}
    for path, digest in info.plugins.items():
        if digest in given:
            continue
        if not plugins:
            raise RunFolderError(f"{folder.label} was started with plug-ins, and {_again(info)}")
        raise RunFolderError(
            f"{folder.label} was started with the plug-in {path}, and no given file has its content (SHA-256 "
            f"{digest[:16]}…). Name the file as it was, or start a new run"
        )


def refuse_other_definitions(folder: RunFolder, info: RunInfo, plan: Plan) -> None:
    """Refuse to rescore a run with other plug-ins under the names of its metrics."""
    recorded = set(info.plugins.values())
    for metric in plan.metrics if recorded else ():
        module = origin(metric)[0]
        if module.startswith(PLUGIN) and metric.name in info.signatures:
            path, digest = content_of_plugin(module)
            if digest not in recorded:
                raise RunFolderError(
                    f"{folder.label} was scored with another content of the plug-in that defines {metric.name} "
                    f"than {path} has now. Restore the file, give the new metric another name, or score the data again"
                )


@contextmanager
def missing_plugins_explained(folder: RunFolder, info: RunInfo) -> Iterator[None]:
    """Explain an unknown metric whose plug-in was not imported: files named in a run are not trusted."""
    try:
        yield
    except UnknownNameError as unknown:
        if not info.config.plugins:
            raise
        raise RunFolderError(
            f"the {unknown.kind} {unknown.name!r} is not registered here. {folder.label} was run with plug-ins, and "
            f"{_again(info)}"
        ) from None


def _again(info: RunInfo) -> str:
    again = " ".join(f"--plugin {quote(name)}" for name in info.config.plugins or info.plugins)
    return f"files named in a run are not imported. If you trust them, name them again: {again}"


def _digest(plugin: str) -> str:
    try:
        return sha256(Path(plugin).read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(f"the plug-in {plugin!r} cannot be read: {error.strerror}") from None


def kept_settings(settings: RunConfig, changes: JsonObject, options: JsonObject) -> RunConfig:
    """The settings that come from the old run: without `changes` of the user and without the changed `options`."""
    kept = {
        metric: {name: value for name, value in values.items() if name not in options.get(metric, {})}
        for metric, values in settings.options.items()
    }
    return msgspec.structs.replace(settings, options=kept, labels=None if "labels" in changes else settings.labels)


def refuse_media(folder: RunFolder, info: RunInfo, metrics: Collection[Metric]) -> None:
    """Refuse to score media of somebody else's run if the command does not allow a folder to read them from."""
    names = [metric.name for metric in metrics if opens_media(metric)]
    if names and not is_own(folder, info):
        raise RunFolderError(
            f"{folder.label} is not signed as a run of yours, so its media are not read, and "
            f"{', '.join(names)} must read them. Name their folder: --media-root DIR"
        )


def opens_media(metric: Metric) -> bool:
    """Whether the metric reads media files of the samples."""
    return any(field in _MEDIA_FIELDS for need in metric.needs for field in need.split("|"))
