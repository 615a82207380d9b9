"""What the files of a task say about it, what its requests hold, and what its functions return.

Files are read and not run: the YAML, and whether a function asks a judge. Requests hold parameters, and messages with
media files; functions return numbers and explanations.

Imported by `child.py` in the Python of a harness, which does not have this package.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import io
import json
import math
import os
import re
import traceback
import wave
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = "__folder__"  # the key with the folder of a YAML file
_JUDGE = re.compile(
    r"OpenAI|openai|azure|anthropic|requests\.post|get_chat_response|get_server|llm_judge|LLMJudge|get_eval\(|gpt_eval"
    r"|judge_model|API_URL|Verifier"
)


@cache
def yaml_of(path: str) -> dict[str, Any]:
    """The keys of a task's YAML and of the files that it includes. Functions are named, and not imported."""
    yaml = import_module("yaml")
    try:
        content = yaml.load(Path(path).read_text("utf-8"), _loader()) or {}
    except (OSError, yaml.YAMLError):
        return {}
    if not isinstance(content, dict):
        return {}
    included: dict[str, Any] = {}
    named = content.get("include") or []
    for name in reversed(named if isinstance(named, list) else [named]):
        included.update(yaml_of(str(Path(path).parent / str(name))))
    return {**included, **content, FOLDER: str(Path(path).parent)}


@cache
def _loader() -> Any:
    yaml = import_module("yaml")
    loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.add_multi_constructor("!", lambda _, suffix, node: f"!{suffix} {getattr(node, 'value', '')}")
    return loader


def judge_of(config: dict[str, Any]) -> str | None:
    """The function of a task that asks a model, if there is one."""
    named = json.dumps([config.get("process_results"), config.get("metric_list")], default=str)
    for name in re.findall(r"!function ([\w.]+)", named):
        module, _, function = name.rpartition(".")
        if function in judging(str(Path(config[FOLDER], *module.split(".")).with_suffix(".py"))):
            return str(name)
    return None


@cache
def judging(file: str) -> frozenset[str]:
    """The functions of a file that ask a model, by themselves or by other names of the file."""
    try:
        text = Path(file).read_text("utf-8", "replace")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    sources: dict[str, str] = {}
    for node in tree.body:
        source = ast.get_source_segment(text, node) or ""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            sources[node.name] = source
        elif isinstance(node, ast.Assign):
            sources.update({target.id: source for target in node.targets if isinstance(target, ast.Name)})
    asking = {name for name, source in sources.items() if _JUDGE.search(source)}
    while True:
        calls = {
            name for name, source in sources.items() if name not in asking and asking & set(re.findall(r"\w+", source))
        }
        if not calls:
            return frozenset(asking)
        asking |= calls


def has_data(config: dict[str, Any]) -> bool:
    """Whether a dataset is in the cache of the Hugging Face hub."""
    name = str(config.get("dataset_path") or "")
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub") / f"datasets--{name.replace('/', '--')}"
    return bool(name) and (hub.is_dir() or (home / "datasets" / name.replace("/", "___")).is_dir())


MOST_STOPS = 4  # that an endpoint takes
LONGEST_FIELD = 20_000  # characters of a field of a document that is kept with the sample


class RefusedError(Exception):
    """The task cannot be run, and why."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


# Requests.


def parameters(given: dict[str, Any], *, longest: int, stops: bool) -> dict[str, Any]:
    """The parameters of generation, as the package's own clients of endpoints set them."""
    names = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
    limit = next((given[name] for name in names if given.get(name)), longest)
    sampled = given.get("do_sample", bool(given.get("temperature")))
    settings: dict[str, Any] = {"max_tokens": int(limit), "temperature": 0.0}
    if sampled and given.get("temperature") is not None:
        settings["temperature"] = float(given["temperature"])
        if given.get("top_p"):
            settings["top_p"] = float(given["top_p"])
    until = [str(text) for text in as_list(given.get("until")) if text]
    if stops and until:
        settings["stop"] = until[:MOST_STOPS]
    return settings


def with_marks(text: object, media: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts of a message. Media are at the marks of their kind if there are as many, and images at the first mark
    of their number, `<image 1>`; others come before the text.
    """
    whole = str(text)
    of_kind = {kind: [item for item in media if item["type"] == kind] for kind in ("image", "audio", "video")}
    marked = {f"<{kind}>": items for kind, items in of_kind.items() if 0 < len(items) == whole.count(f"<{kind}>")}
    if "<image>" not in marked:
        marked |= {mark: [item] for n, item in enumerate(of_kind["image"], 1) if (mark := f"<image {n}>") in whole}
    placed = [id(item) for items in marked.values() for item in items]
    before = [item for item in media if id(item) not in placed]
    pieces = re.split(f"({'|'.join(marked)})", whole) if marked else [whole]
    left = {mark: iter(items) for mark, items in marked.items()}
    parts = (next(left.get(piece, iter(())), {"type": "text", "text": piece}) for piece in pieces if piece.strip())
    return [*before, *(parts if marked else [{"type": "text", "text": whole}])]


def written_parts(message: dict[str, Any], place: Path) -> list[dict[str, Any]]:
    """The parts of a message, with its media as files below a folder."""
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [written_part(part, place) for part in parts]


def written_part(part: dict[str, Any], place: Path) -> dict[str, Any]:
    """A part of a message in which media are files below a folder."""
    if part["type"] == "text":
        return {"type": "text", "text": str(part["text"])}
    return part_of(part.get("url", part.get(part["type"])), place, str(part["type"]))


def part_of(media: Any, place: Path, kind: str = "image") -> dict[str, Any]:
    """An image, audio or video, written to a file that is named after its content."""
    if hasattr(media, "save") and hasattr(media, "mode"):
        return {"type": "image", "image": as_png(media, place)}
    if isinstance(media, dict) and "array" in media:
        return {"type": "audio", "audio": as_wav(media, place)}
    if isinstance(media, str | os.PathLike) and Path(media).is_file():
        kind = {".wav": "audio", ".mp3": "audio", ".flac": "audio", ".m4a": "audio"}.get(Path(media).suffix, kind)
        return {"type": kind, kind: copied(Path(media), place)}
    if hasattr(media, "get_all_samples"):  # an AudioDecoder of datasets
        samples = media.get_all_samples()
        array = {"array": samples.data.numpy().mean(0), "sampling_rate": samples.sample_rate}
        return {"type": "audio", "audio": as_wav(array, place)}
    what = "no file" if isinstance(media, str) else f"of the type {type(media).__name__}"
    raise RefusedError("media", f"{kind} {str(media)[:100]} is {what}")


def as_png(image: Any, place: Path) -> str:
    """An image as a PNG file, which loses nothing."""
    buffer = io.BytesIO()
    (image if image.mode in ("RGB", "L", "RGBA", "P", "1") else image.convert("RGB")).save(buffer, format="PNG")
    return kept(buffer.getvalue(), ".png", place)


def as_wav(audio: dict[str, Any], place: Path) -> str:
    """Audio as a WAV file with one channel of 16 bits."""
    numpy = import_module("numpy")
    samples = numpy.asarray(audio["array"], dtype=float)
    samples = samples.mean(axis=int(samples.shape[0] < samples.shape[-1]) - 1) if samples.ndim > 1 else samples
    whole = numpy.clip(numpy.round(samples * 32768), -32768, 32767).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(int(audio["sampling_rate"]))
        file.writeframes(whole.tobytes())
    return kept(buffer.getvalue(), ".wav", place)


def kept(content: bytes, suffix: str, place: Path) -> str:
    """The path of a file with this content."""
    name = hashlib.sha256(content).hexdigest()[:24] + suffix
    (place / "media").mkdir(exist_ok=True)
    (place / "media" / name).write_bytes(content)
    return f"media/{name}"


def copied(file: Path, place: Path) -> str:
    """The path of a copy of a file."""
    return kept(file.read_bytes(), file.suffix.lower(), place)


# Values.


def likelihood(reply: Any) -> tuple[float, bool]:
    """The logarithm of a probability, and whether the text is the most likely one; None is the logarithm of 0."""
    value, is_greedy = reply
    return (-math.inf if value is None else float(value)), bool(is_greedy)


def as_number(value: Any) -> float | None:
    """A value as a number, if it is one."""
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        value = value.item()
    return float(value) if isinstance(value, bool | int | float) and math.isfinite(value) else None


def is_plain(value: Any) -> bool:
    """Whether a field of a document is kept with the sample: a text, a number, or a short list of these."""
    if isinstance(value, str):
        return len(value) <= LONGEST_FIELD
    if isinstance(value, list):
        return len(value) <= 50 and all(isinstance(each, str | int | float | bool) for each in value)
    return isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))


def digest_of(doc: Any) -> str:
    """What tells a document from others: its texts and numbers."""
    plain = {key: value for key, value in doc.items() if is_plain(value)}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def as_list(value: Any) -> list[Any]:
    """A value that may be one or several, as a list."""
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def parameters_of(function: Callable[..., Any]) -> Any:
    """The parameters of a function, if it tells them."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def name_of(function: Any) -> str:
    """The module and name of a function."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', '')}.{named.__qualname__}".strip(".")


def explained(error: BaseException) -> str:
    """An exception in one line, with the place of its cause in a file of the package."""
    text = " ".join(str(error).split())[:400]
    ours = (Path(__file__).name, "child.py")
    places = [frame for frame in frames(error) if Path(frame.filename).name not in ours]
    where = f" ({Path(places[-1].filename).name}:{places[-1].lineno}, {places[-1].name})" if places else ""
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"


def frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The places that an exception went through."""
    return list(traceback.extract_tb(error.__traceback__))


def lacking_data(error: BaseException) -> str | None:
    """Why data could not be loaded, if that is what an error is about."""
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    names = {type(each).__name__ for each in chain}
    of_network = {"OfflineModeIsEnabled", "LocalEntryNotFoundError", "ConnectionError", "DatasetNotFoundError"}
    if names & (of_network | {"MaxRetryError", "ConnectTimeout", "GatedRepoError", "HfHubHTTPError"}):
        return explained(chain[0])
    if names & {"FileNotFoundError", "DataFilesNotFoundError", "EmptyDatasetError"}:
        return explained(chain[0])
    first = chain[0]
    if isinstance(first, KeyError) and any("dataset_dict" in each.filename for each in frames(first)):
        return f"they have no split {first}"
    return None
