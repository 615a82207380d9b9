import platform
from importlib.metadata import PackageNotFoundError, version

import pytest

from multimodal_eval.core.machine import operating_system, package_version


@pytest.mark.parametrize(
    "package",
    ["numpy", "pyarrow", "msgspec", "onnxruntime", "tokenizers", "pillow", "Typing.Extensions", "typing-extensions"],
)
def test_versions_equal_those_of_importlib(package):
    assert package_version(package) == version(package)


def test_the_first_folder_of_the_path_counts(tmp_path, monkeypatch):
    for folder, number in (("first", "1.0+local"), ("second", "2.0")):
        place = tmp_path / folder / f"some_pack-{number}.dist-info"
        place.mkdir(parents=True)
        (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: some.pack\nVersion: {number}\n\nVersion: 9\n")
    monkeypatch.syspath_prepend(str(tmp_path / "second"))
    monkeypatch.syspath_prepend(str(tmp_path / "first"))
    assert package_version("some-pack") == version("some-pack") == "1.0+local"


def test_a_folder_without_metadata_and_an_unknown_package(tmp_path, monkeypatch):
    (tmp_path / "hollow-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert package_version("hollow") == version("hollow")
    with pytest.raises(PackageNotFoundError):
        package_version("no-such-package")


def test_the_operating_system_is_called_as_python_calls_it():
    assert operating_system() == platform.platform()
