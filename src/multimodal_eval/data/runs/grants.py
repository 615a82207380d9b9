"""What a command may read for a run folder that it opens.

A run.json names paths: the folder of the images, models, the input. These are requests. They are granted if the run is
one of the user's own (`own_runs`); for any other run, files are read only in the run folder and below the folders that
the command names with --media-root.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from shlex import quote

import msgspec

from multimodal_eval.core.config import JudgeConfig, RunConfig
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.own_runs import is_own
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import LocalStorage, is_url

ADVICE = "It is read if you allow its folder with --media-root DIR"
MOST_PIECES = 8  # between colons of an option
NOWHERE = os.devnull  # has no files below it


def granted(folder: RunFolder, info: RunInfo, roots: Sequence[str | Path] = ()) -> RunConfig:
    """The settings of a run, with the media policy that this command grants instead of the one that the run asks for.

    Without `roots` a run of the user keeps its policy. Any other run may read media in its own folder only. With
    `roots`, both may read in these folders and in the run folder.
    """
    is_users = is_own(folder, info)
    if is_users and not roots:
        return info.config
    storage = folder.storage
    place = str(storage.path.resolve()) if isinstance(storage, LocalStorage) else NOWHERE
    return msgspec.structs.replace(
        info.config,
        image_root=place,
        media_roots=[str(Path(root).resolve()) for root in roots],
        allow_outside_images=False,
        allow_image_urls=is_users and info.config.allow_image_urls,
        judges=info.config.judges if is_users else _without_prices(info.config.judges),
    )


def _without_prices(judges: Mapping[str, JudgeConfig]) -> dict[str, JudgeConfig]:
    """Judges that name no price file, and therefore no budget."""
    return {name: msgspec.structs.replace(judge, prices=None, budget=None) for name, judge in judges.items()}


def refuse_requests(folder: RunFolder, info: RunInfo, config: RunConfig, roots: Sequence[str | Path] = ()) -> None:
    """Refuse to read files that somebody else's run names, unless they are below an allowed folder.

    `config` has the settings of the run that stay in use.
    """
    if is_own(folder, info):
        return
    if not info.has_answers:
        refuse_asking(folder, info)
    allowed = [Path(root).resolve() for root in roots]
    if isinstance(folder.storage, LocalStorage):
        allowed.append(folder.storage.path.resolve())
    for what, name in _requests(info, config):
        path = Path(name).expanduser()
        if is_url(name) or not any(path.resolve().is_relative_to(root) for root in allowed):
            place = path.resolve() if path.is_dir() else path.resolve().parent
            allow = "Start a new run" if is_url(name) else f"If you trust it, allow: --media-root {quote(str(place))}"
            raise RunFolderError(
                f"{folder.label} is not in the list of runs that you made on this machine, and it names a file to "
                f"read: {name} ({what}). {allow}"
            )


def refuse_asking(folder: RunFolder, info: RunInfo) -> None:
    """Refuse to send requests, with the user's key, to the endpoint that somebody else's run names."""
    generation = info.config.generation
    if generation is not None and not is_own(folder, info):
        raise RunFolderError(
            f"{folder.label} is not in the list of runs that you made on this machine, and it would send requests to "
            f"{generation.base_url or generation.model}. Start a new run with its data and a model of your choice"
        )


def foreign_judges(folder: RunFolder, info: RunInfo, config: RunConfig) -> set[str]:
    """The metrics of a configuration whose judges only somebody else's run names, and not the user."""
    if is_own(folder, info):
        return set()
    stored = {name: judge.models for name, judge in info.config.judges.items() if judge.models}
    return {name for name, judge in config.judges.items() if name in stored and judge.models == stored[name]}


def refuse_judging(folder: RunFolder, judges: Mapping[str, JudgeConfig]) -> None:
    """Refuse to send questions, with the user's key, to the judges that somebody else's run names."""
    for name, judge in judges.items():
        model = judge.models[0]
        raise RunFolderError(
            f"{name} would send requests to {model.base_url or model.model}, and only a run names that judge which is "
            f"not in the list of runs that you made on this machine ({folder.label}). Make a new run with a judge of "
            "your choice: `mmeval rescore` or `mmeval score` with --judge PROVIDER:NAME"
        )


def _requests(info: RunInfo, config: RunConfig) -> Iterator[tuple[str, str]]:
    """The files and folders that a run would read, with the setting that names them."""
    if info.rescored_from is not None and info.finished is None:
        yield "the run that it was rescored from", info.rescored_from
    if not info.parts and info.source is not None and info.rescored_from is None:
        yield "its data", info.source.data
        if info.source.predictions is not None:
            yield "its predictions", info.source.predictions
        if config.questions is not None:
            yield "its questions", config.questions
    if isinstance(config.labels, str):
        yield "its labels", config.labels
    for metric, options in config.options.items():
        for option, value in options.items():
            for name in named_files(value):
                yield f"the option `{option}` of {metric}", name


def named_files(value: object) -> Iterator[str]:
    """The existing files and folders that an option names, also with more before or after: "torch:DIR+int8"."""
    if isinstance(value, dict):
        for item in value.values():
            yield from named_files(item)
    if not isinstance(value, str):
        return
    pieces = value.split(":")
    if len(pieces) > MOST_PIECES:
        yield value
        return
    for start, stop in combinations(range(len(pieces) + 1), 2):
        name = ":".join(pieces[start:stop])
        for path in (name, name.rpartition("+")[0]):
            if path and _exists(path):
                yield path
                return


def _exists(name: str) -> bool:
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, no such user
        return False
