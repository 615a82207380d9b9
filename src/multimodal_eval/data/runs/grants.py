"""What a command may read for a run folder that it opens.

A run.json names paths: the folder of the images, models, the input. These are requests. They are granted if the run is
one of the user's own (`is_own`); for any other run, files are read only in the run folder and below the folders that
the command names with --media-root.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from hmac import compare_digest
from itertools import combinations
from pathlib import Path
from secrets import token_bytes, token_hex
from shlex import quote
from threading import get_ident

import msgspec

from multimodal_eval.core.config import JudgeConfig, RunConfig
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import LocalStorage, is_url

__all__ = ["is_own", "rewrite", "signed", "state_folder"]


# The runs of this user.
#
# A run folder can come from anybody, and its run.json can name any path. What it names is used without asking only if
# run.json is signed: `owner` is a number and a keyed digest of what the run was started with. The key is a file that
# only this user can read, in `$MMEVAL_STATE` or in the user's state folder (`~/.local/state/multimodal-eval`). A run
# that is moved or copied stays its owner's, and so it does in a container or a new home that has the key. An edited
# run.json, and a run of somebody else, do not have the right digest.

KEY_BYTES = 32
_made_here: set[str] = set()  # runs of this process, also temporary ones, by a digest of what they were started with


def state_folder() -> Path:
    """$MMEVAL_STATE, or the user's state folder."""
    chosen = os.environ.get("MMEVAL_STATE")
    if chosen:
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "multimodal-eval"


def signed(info: RunInfo, *, is_kept: bool = True) -> RunInfo:
    """The description of a new run of this user. A key that cannot be written never fails a run.

    A temporary run is known to this process alone.
    """
    _made_here.add(sha256(_started_with(info)).hexdigest())
    if not is_kept:
        return info
    key = _key() or _new_key()
    number = token_hex(8)
    return msgspec.structs.replace(info, owner=None if key is None else f"{number}:{_code(key, number, info)}")


def rewrite(folder: RunFolder, old: RunInfo, new: RunInfo) -> None:
    """Replace run.json by one with other settings. A run of the user stays one; anybody else's does not become one."""
    folder.write_info(signed(new, is_kept=folder.is_kept) if is_own(folder, old) else new)


def is_own(folder: RunFolder, info: RunInfo) -> bool:
    """Whether the run is one of the user's, with the settings that its run.json has now."""
    if sha256(_started_with(info)).hexdigest() in _made_here:
        return True
    number, _, code = (info.owner or "").partition(":")
    key = _key() if code else None
    is_signed = key is not None and compare_digest(code.encode(), _code(key, number, info).encode())
    return is_signed or _is_listed(folder, info)


def _started_with(info: RunInfo) -> bytes:
    """All that run.json says from the start to the end of the run."""
    settings = (info.created, info.config, info.source, info.rescored_from, info.plugins)
    return msgspec.json.encode(settings, order="deterministic")


def _code(key: bytes, number: str, info: RunInfo) -> str:
    return hmac.new(key, number.encode() + b":" + _started_with(info), sha256).hexdigest()


def _key() -> bytes | None:
    """The key of this user; None if there is none that only this user can read."""
    try:
        file = state_folder() / "key"
        key = file.read_bytes()
        return key if len(key) == KEY_BYTES and _is_private(file, 0o077) else None
    except (OSError, RuntimeError):  # RuntimeError: the user has no home folder
        return None


def _new_key() -> bytes | None:
    """A new key, or that of another process that was faster."""
    with suppress(OSError, RuntimeError):
        file = state_folder() / "key"
        file.parent.parent.mkdir(parents=True, exist_ok=True)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}-{get_ident()}")
        new.touch(0o600)  # whatever the umask of the user is
        new.write_bytes(token_bytes(KEY_BYTES))
        try:
            os.link(new, file)  # only if there is none
        finally:
            new.unlink()
    return _key()


def _is_private(file: Path, others: int) -> bool:
    """Whether the file is this user's, without these rights of others, as far as the system tells owners."""
    status = file.stat()
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & others)


class _Entry(msgspec.Struct, frozen=True):
    """A run in the list of earlier versions, by its place."""

    address: str
    digest: str


def _is_listed(folder: RunFolder, info: RunInfo) -> bool:
    """Whether a version before 0.3 has listed the run: at this place, with these settings. Read until 0.4."""
    location = folder.location  # not `address`, which writes a run that is still in memory
    address = location if isinstance(location, str) else os.path.realpath(location)
    address = address.encode("utf-8", "backslashreplace").decode()  # any bytes can name a folder
    settings = (address, info.created, info.config, info.source, info.rescored_from, info.plugins)
    entry = _Entry(address, sha256(msgspec.json.encode(settings, order="deterministic")).hexdigest())
    name = sha256(address.encode("utf-8", "surrogateescape")).hexdigest()
    try:
        file = state_folder() / "runs" / name[:2] / f"{name[2:34]}.json"
        return _is_private(file, 0o022) and msgspec.json.decode(file.read_bytes(), type=_Entry) == entry
    except (OSError, RuntimeError, msgspec.DecodeError):
        return False


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
                f"{folder.label} is not signed as a run of yours, and it names a file to read: {name} ({what}). {allow}"
            )


def refuse_asking(folder: RunFolder, info: RunInfo) -> None:
    """Refuse to send requests, with the user's key, to the endpoint that somebody else's run names."""
    generation = info.config.generation
    if generation is not None and not is_own(folder, info):
        raise RunFolderError(
            f"{folder.label} is not signed as a run of yours, and it would send requests to "
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
            f"not signed as one of yours ({folder.label}). Make a new run with a judge of "
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
