"""A model in a Python file: `python:FILE` calls its function `model`, `python:FILE:NAME` another one.

The function gets a `Request` and returns text or an `Answer`, such as `def model(request): return "a dog"`. It may be
asynchronous, or answer many (`batched`).
"""

from __future__ import annotations

from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, described
from multimodal_eval.generate.protocol import Generator
from multimodal_eval.generate.registry import BatchGenerator, FunctionGenerator, is_python_file

__all__ = ["open_generator"]

USUAL = "model"


def open_generator(provider: str, model: str, config: GenerationConfig) -> Generator:
    """The function of a file. Its label has a digest of the file, so that a changed file is another model."""
    if not is_python_file(f"{provider}:{model}"):
        raise ConfigError(f"--model {provider}:{model}: {model} must be a file that ends in .py, or FILE:NAME")
    file, _, name = model.rpartition(":")
    if not file or not name.isidentifier() or Path(model).is_file():
        file, name = model, USUAL
    path = Path(file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--model python:{model}: {path} cannot be read: {error.strerror}") from None
    label = f"python:{path.name}:{name}@{sha256(content).hexdigest()[:12]}"
    spec = spec_from_file_location(f"mmeval_model_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except MultimodalEvalError:
        raise
    except Exception as error:
        raise ConfigError(f"--model python:{model}: {path} cannot be imported: {described(error)}") from error
    function = getattr(module, name, None)
    if isinstance(function, BatchGenerator):
        function.label = label
        return function
    if isinstance(function, Generator):
        return function
    if not callable(function):
        raise ConfigError(f"--model python:{model}: {path} must define a function `{name}` of a request")
    return FunctionGenerator(function, label)
