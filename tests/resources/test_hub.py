"""Models of the Hugging Face hub: which files are fetched, how they are checked, and in which folder they end up."""

from __future__ import annotations

import json
import re
from hashlib import sha256

import pytest
from click.testing import CliRunner

from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import FetchError, ModelError, UnavailableError
from multimodal_eval.models.source import fetchable, find_model
from multimodal_eval.resources.fetch import fetch_named, verified
from multimodal_eval.resources.hub import MANIFEST, HubModel, fetch_from_hub, find_snapshot, hub_model
from multimodal_eval.resources.store import home
from tests.golden.clip.images import TINY_CLIP, golden_image
from tests.resources.hub_server import COMMIT, hub_server

NAME = "someone/tiny-clip"
FILES = {path.name: path.read_bytes() for path in TINY_CLIP.iterdir()}
LISTED = "\n".join(f"{name} {sha256(FILES[name]).hexdigest()}" for name in sorted(FILES))
DIGEST = sha256(LISTED.encode()).hexdigest()[:8]  # of the names and digests of all files


@pytest.fixture
def hub(monkeypatch):
    with hub_server() as (served, address):
        monkeypatch.setenv("HF_ENDPOINT", address)
        served.repositories[NAME] = {
            **FILES,
            ".gitattributes": b"*",
            "README.md": b"hello",
            "pytorch_model.bin": b"\x80",
        }
        yield served


def nothing_is_left():
    folder = home() / "hub"
    return not [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else True


def test_a_model_is_fetched_once_and_found_offline(hub, monkeypatch):
    seen = []
    what, already, folder = fetch_named(f"hf:{NAME}", lambda *progress: seen.append(progress))
    assert (what, already) == (f"hf:{NAME} at {COMMIT[:8]}", False)
    assert {path.name for path in folder.iterdir()} == {*FILES, MANIFEST}, "no pickle, no README"
    assert ("model.safetensors", len(FILES["model.safetensors"]), len(FILES["model.safetensors"])) in seen
    manifest = json.loads((folder / MANIFEST).read_text())
    assert (manifest["repository"], manifest["commit"]) == (NAME, COMMIT)
    assert set(manifest["files"]) == set(FILES)
    hub.asked.clear()
    assert fetch_named(f"hf:{NAME}")[1] is True
    assert len(hub.asked) == 1, "only the listing"
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    for name in (NAME, f"hf:{NAME}", f"hf:{NAME}@{COMMIT}", f"hf:{NAME}@main"):
        model = find_model(name)
        assert (model.label, model.folder) == (f"{NAME}@{COMMIT[:8]}.{DIGEST}", folder)
    assert fetch_named(f"hf:{NAME}@{COMMIT}")[1] is True, "a commit never changes: no request"
    assert [verdict.state for verdict in verified([f"hf:{NAME}"])] == ["intact"]


def test_another_revision(hub):
    fetch_from_hub(HubModel(NAME, "refs/pr/7"))
    assert any("/revision/refs%2Fpr%2F7?" in path for path in hub.asked)
    assert find_snapshot(HubModel(NAME, "refs/pr/7")) is not None
    assert find_snapshot(HubModel(NAME)) is None, "main was not fetched"
    with pytest.raises(UnavailableError, match=f"mmeval fetch hf:{NAME}$"):
        find_model(NAME)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_tampered_file_is_refused(hub, file):
    content = hub.repositories[NAME][file]
    hub.served[file] = content[:-2] + bytes([content[-2] ^ 1]) + content[-1:]
    with pytest.raises(FetchError, match=file):
        fetch_named(f"hf:{NAME}")
    assert nothing_is_left()


def test_more_bytes_than_expected_are_refused(hub):
    hub.served["config.json"] = hub.repositories[NAME]["config.json"] * 2
    with pytest.raises(FetchError, match="larger than"):
        fetch_named(f"hf:{NAME}")
    assert nothing_is_left()


def test_fewer_bytes_than_expected_are_refused(hub):
    hub.served["model.safetensors"] = hub.repositories[NAME]["model.safetensors"][:-1]
    with pytest.raises(FetchError, match=r"model\.safetensors ended after"):
        fetch_named(f"hf:{NAME}")
    assert nothing_is_left()


def test_a_broken_connection_is_an_error(hub):
    hub.broken.add("model.safetensors")
    with pytest.raises(FetchError, match=r"model\.safetensors could not be read"):
        fetch_named(f"hf:{NAME}")
    assert nothing_is_left()


@pytest.mark.parametrize(
    ("file", "listed", "message"),
    [
        ("config.json", {"blobId": None}, "no checksum of config.json"),
        ("config.json", {"blobId": "0"}, "no checksum of config.json"),
        ("model.safetensors", {"lfs": {"size": 3}}, "no checksum of model.safetensors"),
        ("config.json", {"size": None}, "the size of config.json"),
        ("config.json", {"size": -1}, "the size of config.json"),
        ("config.json", {"rfilename": 3}, "does not list the model's files"),
        ("config.json", None, "does not list the model's files"),
    ],
)
def test_a_listing_without_size_or_checksum_is_refused(hub, file, listed, message):
    hub.listed[file] = listed
    with pytest.raises(FetchError, match=re.escape(message)):
        fetch_named(f"hf:{NAME}")
    assert len(hub.asked) == 1, "only the listing"
    assert nothing_is_left()


def test_weights_that_may_run_code_are_refused(hub):
    del hub.repositories[NAME]["model.safetensors"]
    with pytest.raises(FetchError, match=r"only as pytorch_model\.bin.*@refs/pr/NUMBER"):
        fetch_named(f"hf:{NAME}")
    del hub.repositories[NAME]["pytorch_model.bin"]
    with pytest.raises(FetchError, match="no weights as"):
        fetch_named(f"hf:{NAME}")
    assert nothing_is_left()


@pytest.mark.parametrize(
    "name",
    [
        "../../evil.json",
        "/etc/evil.json",
        "a/../evil.json",
        "a\\evil.json",
        "a//b.json",
        "./x.json",
        "C:x.json",
        MANIFEST,
    ],
)
def test_a_file_name_that_leads_elsewhere_is_refused(hub, name):
    hub.repositories[NAME][name] = b"{}"
    with pytest.raises(FetchError, match="unsafe name"):
        fetch_named(f"hf:{NAME}")
    assert nothing_is_left()


def test_full_precision_onnx_if_there_are_no_safetensors(hub):
    hub.repositories[NAME] = {
        name: b"{}" if name.endswith("json") else b"weights"
        for name in (
            "config.json",
            "onnx/text_model.onnx",
            "onnx/vision_model.onnx",
            "onnx/vision_model.onnx_data",
            "onnx/vision_model_quantized.onnx",
            "onnx/model.onnx",
            "text_model.onnx",
        )
    }
    folder = fetch_named(NAME)[2]
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    expected = {"config.json", "onnx/text_model.onnx", "onnx/vision_model.onnx", "onnx/vision_model.onnx_data"}
    assert files == {*expected, MANIFEST}


def test_an_incomplete_copy_is_replaced(hub):
    folder = fetch_named(NAME)[2]
    (folder / "config.json").unlink()
    assert (fetch_named(NAME)[2] / "config.json").is_file()
    (folder / "config.json").write_bytes(b"?" * len(FILES["config.json"]))
    (verdict,) = verified()
    assert (verdict.name, verdict.state, verdict.is_fine) == (f"hf:{NAME}", "damaged", False)
    assert (fetch_named(NAME)[2] / "config.json").read_bytes() == FILES["config.json"], "a damaged copy is replaced"
    assert [verdict.state for verdict in verified([f"hf:{NAME}@{COMMIT}"])] == ["intact"]
    (folder / "config.json").write_bytes(b"")
    assert [verdict.state for verdict in verified()] == ["incomplete"]


def zeroed(path):
    """Set the second half of a file to zero. Its size stays."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))


@pytest.mark.parametrize("file", sorted(FILES))
def test_a_file_that_changed_after_the_fetch_is_never_used(hub, file):
    folder = fetch_named(NAME)[2]
    model = find_model(NAME)
    zeroed(folder / file)
    with pytest.raises(ModelError, match=r"has changed since it was fetched.*mmeval fetch hf:someone/tiny-clip"):
        model.file(file)
    with pytest.raises(ModelError, match="has changed since"):
        model.verify()
    if file == "model.safetensors":
        from multimodal_eval.models.encoders import open_image_text_encoder

        with pytest.raises(ModelError, match="has changed since"):
            open_image_text_encoder(NAME)


def test_the_label_of_a_model_contains_the_digest_of_its_files(hub):
    before = find_model(fetch_named(NAME)[0].split(" ")[0]).label
    manifest = find_model(NAME).folder / MANIFEST
    manifest.write_text(manifest.read_text().replace(sha256(FILES["config.json"]).hexdigest(), "0" * 64))
    assert find_model(NAME).label != before, "a manifest that was changed together with a file gives another label"


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\xff", b"[" * 100_000, b'{"files": {"../../x": {"sha256": "", "size": 1}}}']
)
def test_a_broken_manifest(hub, content):
    folder = fetch_named(NAME)[2]
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(FetchError, match=r"the manifest .*"):
        find_model(NAME)
    assert [verdict.state for verdict in verified()] == ["damaged"]
    fetch_named(f"hf:{NAME}@{COMMIT}")
    assert [verdict.state for verdict in verified()] == ["intact"]


def test_an_unknown_model_and_an_unreachable_hub(hub, monkeypatch):
    with pytest.raises(FetchError, match="hf:someone/else: not found"):
        fetch_named("hf:someone/else")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(FetchError, match="could not be read"):
        fetch_named(f"hf:{NAME}")


def test_a_model_that_needs_an_account_is_taken_from_the_cache_of_the_library(hub):
    hub.missing = 403
    with pytest.raises(FetchError, match=r"needs an account; what .* has downloaded is used .*`hf download org/gated`"):
        fetch_from_hub(HubModel("org/gated"))


def test_an_invalid_commit_is_refused(hub):
    hub.commit = "../../elsewhere"
    with pytest.raises(FetchError, match="must name a commit"):
        fetch_named(f"hf:{NAME}")


def test_the_cache_of_huggingface_hub_is_read(tmp_path, monkeypatch):
    """The layout of huggingface_hub, with symbolic links."""
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    root = tmp_path / "hub" / "models--someone--tiny-clip"
    (root / "blobs").mkdir(parents=True)
    (root / "refs").mkdir()
    (root / "refs/main").write_text(COMMIT)
    (root / "snapshots" / COMMIT).mkdir(parents=True)
    for number, (name, content) in enumerate(FILES.items()):
        (root / "blobs" / str(number)).write_bytes(content)
        (root / "snapshots" / COMMIT / name).symlink_to(f"../../blobs/{number}")
    model = find_model(NAME)
    assert model.label == f"{NAME}@{COMMIT[:8]}.{DIGEST}"
    from multimodal_eval.models.encoders import open_image_text_encoder

    assert open_image_text_encoder(NAME).encode_texts(["a dog"]).shape == (1, 16)
    (verdict,) = verified([NAME])
    assert (verdict.state, verdict.is_fine) == ("not fetched by mmeval", True)
    assert list(verified()) == []


def test_names():
    assert hub_model("hf:a/b@refs/pr/1") == HubModel("a/b", "refs/pr/1")
    assert hub_model("a/b") == HubModel("a/b")
    assert hub_model("all-minilm-l6-v2") is None
    assert fetchable("all-minilm-l6-v2") == ("all-minilm-l6-v2",)
    assert fetchable("a/b@v1") == ("hf:a/b@v1",)
    assert fetchable("torch:a/b@v1+bf16") == ("hf:a/b@v1",)
    assert fetchable("all-minilm-l6-v2+int8") == ("all-minilm-l6-v2",)
    assert fetchable("unknown") == ()
    assert hub_model("a/b@/etc/passwd") is None
    for wrong in ("hf:a", "hf:a/b/c", "hf:a/..", "hf:../b", "hf:a/b@/etc/passwd", "hf:a/b@x/../../y"):
        with pytest.raises(FetchError, match="must be written"):
            hub_model(wrong)


def test_score_fetches_missing_models_with_fetch(hub, tmp_path):
    golden_image(0, (40, 30)).save(tmp_path / "one.png")
    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps({"id": "1", "image": str(tmp_path / "one.png"), "generated_answer": "a dog"}) + "\n")
    command = ["score", str(data), "--metrics", "clip_score", "--option", f"clip_score.model={NAME}"]
    command += ["-o", str(tmp_path / "run"), "--format", "json"]
    refused = CliRunner().invoke(cli, command)
    assert refused.exit_code == 1
    assert f"mmeval fetch hf:{NAME}" in str(refused.exception)
    assert not hub.asked, "nothing is downloaded without --fetch"
    done = CliRunner().invoke(cli, [*command, "--fetch"])
    assert done.exit_code == 0, done.output
    assert f"hf:{NAME} at {COMMIT[:8]}: fetched" in done.stderr
    hub.asked.clear()
    again = CliRunner().invoke(cli, [*command[:-3], str(tmp_path / "again"), "--format", "json", "--fetch"])
    assert again.exit_code == 0, again.output
    assert not hub.asked, "a model that is here needs no request"


def test_fetch_verify_lists_every_model_without_the_network(hub, monkeypatch):
    run = CliRunner().invoke
    empty = run(cli, ["fetch", "--verify"])
    assert (empty.exit_code, empty.output) == (0, "nothing was fetched on this machine\n")
    folder = fetch_named(NAME)[2]
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    intact = run(cli, ["fetch", "--verify"])
    assert (intact.exit_code, intact.output) == (0, f"hf:{NAME}: intact\n")
    zeroed(folder / "model.safetensors")
    for arguments in (["--verify"], ["--verify", f"hf:{NAME}"], ["--verify", f"hf:{NAME}@{COMMIT}"]):
        damaged = run(cli, ["fetch", *arguments])
        assert damaged.exit_code == 1
        assert "damaged: the checksum of model.safetensors differs" in damaged.output
        assert f"repair it with: mmeval fetch hf:{NAME}" in damaged.output
    missing = run(cli, ["fetch", "--verify", "navec-ru"])
    assert (missing.exit_code, "navec-ru: not fetched" in missing.output) == (1, True)
    assert run(cli, ["fetch"]).exit_code == 2


def test_changed_weights_are_refused_when_they_are_opened(hub):
    folder = fetch_named(NAME)[2]
    zeroed(folder / "model.safetensors")
    from multimodal_eval.models.encoders import check_image_text_encoder, open_image_text_encoder

    check_image_text_encoder(f"hf:{NAME}@{COMMIT}")  # reads no weights
    with pytest.raises(ModelError, match="has changed since it was fetched"):
        open_image_text_encoder(f"hf:{NAME}@{COMMIT}")
