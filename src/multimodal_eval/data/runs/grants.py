"""Whose run a folder is, and what a command may do for it: `Consent`.

A run.json names plug-ins, paths (the folder of the images, models, the input), and models with their addresses. These
are requests. They are granted if the run is one of the user's own (`is_own`); for any other run, files are read only in
the run folder and below the folders that the command names with --media-root, and nobody is asked.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from hmac import compare_digest
from itertools import combinations
from pathlib import Path
from secrets import token_bytes, token_hex
from shlex import quote
from threading import get_ident

import msgspec

from multimodal_eval.core.config import JudgeConfig, RunConfig
from multimodal_eval.core.errors import ConfigError, RunFolderError, UnknownNameError
from multimodal_eval.core.metric import Metric, opens_media
from multimodal_eval.core.metric_table import origin
from multimodal_eval.core.records import RECORDED, RunInfo
from multimodal_eval.core.registry import PLUGIN, content_of_plugin, is_loaded
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import LocalStorage, is_url

__all__ = ["Consent", "is_own", "rewrite", "signed", "state_folder"]


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
    started = _started_with(info)
    _made_here.add(sha256(started).hexdigest())
    if not is_kept:
        return info
    key = _key() or _new_key()
    number = token_hex(8)
    return msgspec.structs.replace(info, owner=None if key is None else f"{number}:{_code(key, number, started)}")


def rewrite(folder: RunFolder, old: RunInfo, new: RunInfo) -> None:
    """Replace run.json by one with other settings. A run of the user stays one; anybody else's does not become one."""
    folder.write_info(signed(new, is_kept=folder.is_kept) if is_own(folder, old) else new)


def is_own(folder: RunFolder, info: RunInfo) -> bool:
    """Whether the run is one of the user's, with the settings that its run.json has now."""
    started = _started_with(info)
    if sha256(started).hexdigest() in _made_here:
        return True
    number, _, code = (info.owner or "").partition(":")
    key = _key() if code else None
    is_signed = key is not None and compare_digest(code.encode(), _code(key, number, started).encode())
    return is_signed or _is_listed(folder, info)


def _started_with(info: RunInfo) -> bytes:
    """All that run.json says from the start to the end of the run."""
    settings = (info.created, info.config, info.source, info.rescored_from, info.plugins)
    return msgspec.json.encode(settings, order="deterministic")


def _code(key: bytes, number: str, started: bytes) -> str:
    return hmac.new(key, number.encode() + b":" + started, sha256).hexdigest()


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


class Consent(msgspec.Struct, frozen=True, dict=True):
    """What a command may do for a run that it opens, before it does anything.

    A run of the user gets what it asks for, except that no file is imported because a run names it. For any other run,
    only what the command itself names is imported, read or asked.
    """

    folder: RunFolder
    info: RunInfo
    named_plugins: Sequence[str | Path] = ()
    media_roots: Sequence[str | Path] = ()

    @cached_property
    def is_own(self) -> bool:
        """Whether the run is one of the user's."""
        return is_own(self.folder, self.info)

    @property
    def plugins(self) -> list[str]:
        """The plug-ins of the command, and those of the run that this process has already imported."""
        paths = [str(Path(plugin).resolve()) for plugin in self.named_plugins]
        return list(dict.fromkeys([*paths, *(plugin for plugin in self.info.config.plugins if is_loaded(plugin))]))

    @property
    def config(self) -> RunConfig:
        """The settings of the run, with the media policy that is granted instead of the one that the run asks for.

        A run of the user keeps its policy, unless the command names folders. Any other run may read media in its own
        folder and in those that the command names, and no price file.
        """
        config = self.info.config
        if self.is_own and not self.media_roots:
            return config
        storage = self.folder.storage
        return msgspec.structs.replace(
            config,
            image_root=str(storage.path.resolve()) if isinstance(storage, LocalStorage) else NOWHERE,
            media_roots=[str(Path(root).resolve()) for root in self.media_roots],
            allow_outside_images=False,
            allow_image_urls=self.is_own and config.allow_image_urls,
            judges=config.judges if self.is_own else _without_prices(config.judges),
        )

    def foreign_judges(self, config: RunConfig) -> set[str]:
        """The metrics of a configuration whose judges only somebody else's run names, and not the user."""
        if self.is_own:
            return set()
        stored = {name: judge.models for name, judge in self.info.config.judges.items() if judge.models}
        return {name for name, judge in config.judges.items() if name in stored and judge.models == stored[name]}

    def refuse(
        self,
        settings: RunConfig | None = None,
        *,
        metrics: Collection[Metric] = (),
        asks_model: bool = False,
        judges: RunConfig | None = None,
    ) -> None:
        """Refuse what somebody else's run asks for and the command does not name.

        `settings` are those of the run that stay in use, whose files would be read. `metrics` would read media,
        `asks_model` would send requests to the run's model, and `judges` has judges that would be asked.
        """
        if self.is_own:
            return
        if asks_model:
            self._refuse_model()
        if settings is not None:
            self._refuse_programs(settings)
            self._refuse_files(settings)
        names = [metric.name for metric in metrics if opens_media(metric)]
        if names and not self.media_roots:
            raise RunFolderError(
                f"{self.folder.label} is not signed as a run of yours, so its media are not read, and "
                f"{', '.join(names)} must read them. Name their folder: --media-root DIR"
            )
        if judges is not None:
            refuse_judging(self.folder, {name: judges.judges[name] for name in self.foreign_judges(judges)})

    def _refuse_model(self) -> None:
        """Refuse to send requests, with the user's key, to the endpoint that somebody else's run names."""
        generation = self.info.config.generation
        if generation is not None:
            raise RunFolderError(
                f"{self.folder.label} is not signed as a run of yours, and it would send requests to "
                f"{generation.base_url or generation.model}. Start a new run with its data and a model of your choice"
            )

    def _refuse_programs(self, settings: RunConfig) -> None:
        """Refuse to run the code of an installed harness for a task that somebody else's run names."""
        for name, metric in settings.variants.items():
            task = settings.options.get(name, {}).get("task") if metric == RECORDED else None
            if task is not None:
                raise RunFolderError(
                    f"{self.folder.label} is not signed as a run of yours, and {name} would run the code of {task}. "
                    f"Start a new run: mmeval run {quote(str(task))} --model PROVIDER:NAME"
                )

    def _refuse_files(self, settings: RunConfig) -> None:
        """Refuse to read files that somebody else's run names, unless they are below an allowed folder."""
        allowed = [Path(root).resolve() for root in self.media_roots]
        if isinstance(self.folder.storage, LocalStorage):
            allowed.append(self.folder.storage.path.resolve())
        for what, name in _files_asked_for(self.info, settings):
            path = Path(name).expanduser()
            if is_url(name) or not any(path.resolve().is_relative_to(root) for root in allowed):
                place = path.resolve() if path.is_dir() else path.resolve().parent
                advice = f"If you trust it, allow: --media-root {quote(str(place))}"
                raise RunFolderError(
                    f"{self.folder.label} is not signed as a run of yours, and it names a file to read: {name} "
                    f"({what}). {'Start a new run' if is_url(name) else advice}"
                )

    # plug-ins, also of the user's own runs

    def refuse_other_plugins(self) -> None:
        """Refuse to continue a run without the plug-ins that it was started with, before any file is imported."""
        given = {_digest_of_plugin(plugin) for plugin in self.plugins}
        for path, digest in self.info.plugins.items():
            if digest in given:
                continue
            if not self.plugins:
                raise RunFolderError(f"{self.folder.label} was started with plug-ins, and {self._name_again}")
            raise RunFolderError(
                f"{self.folder.label} was started with the plug-in {path}, and no given file has its content (SHA-256 "
                f"{digest[:16]}…). Name the file as it was, or start a new run"
            )

    def refuse_other_definitions(self, metrics: Collection[Metric]) -> None:
        """Refuse to rescore a run with other plug-ins under the names of its metrics."""
        recorded = set(self.info.plugins.values())
        for metric in metrics if recorded else ():
            module = origin(metric)[0]
            if module.startswith(PLUGIN) and metric.name in self.info.signatures:
                path, digest = content_of_plugin(module)
                if digest not in recorded:
                    raise RunFolderError(
                        f"{self.folder.label} was scored with another content of the plug-in that defines "
                        f"{metric.name} than {path} has now. Restore the file, give the new metric another name, or "
                        "score the data again"
                    )

    @contextmanager
    def missing_plugins_explained(self) -> Iterator[None]:
        """Explain an unknown metric whose plug-in was not imported: files named in a run are not trusted."""
        try:
            yield
        except UnknownNameError as unknown:
            if not self.info.config.plugins:
                raise
            raise RunFolderError(
                f"the {unknown.kind} {unknown.name!r} is not registered here. {self.folder.label} was run with "
                f"plug-ins, and {self._name_again}"
            ) from None

    @property
    def _name_again(self) -> str:
        again = " ".join(f"--plugin {quote(name)}" for name in self.info.config.plugins or self.info.plugins)
        return f"files named in a run are not imported. If you trust them, name them again: {again}"


def _digest_of_plugin(plugin: str) -> str:
    try:
        return sha256(Path(plugin).read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(f"the plug-in {plugin!r} cannot be read: {error.strerror}") from None


def _without_prices(judges: Mapping[str, JudgeConfig]) -> dict[str, JudgeConfig]:
    """Judges that name no price file, and therefore no budget."""
    return {name: msgspec.structs.replace(judge, prices=None, budget=None) for name, judge in judges.items()}


def refuse_judging(folder: RunFolder, judges: Mapping[str, JudgeConfig]) -> None:
    """Refuse to send questions, with the user's key, to the judges that somebody else's run names."""
    for name, judge in judges.items():
        model = judge.models[0]
        raise RunFolderError(
            f"{name} would send requests to {model.base_url or model.model}, a judge named by a run that is not "
            f"signed as one of yours ({folder.label}). Make a new run with a judge of "
            "your choice: `mmeval rescore` or `mmeval score` with --judge PROVIDER:NAME"
        )


def _files_asked_for(info: RunInfo, config: RunConfig) -> Iterator[tuple[str, str]]:
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
