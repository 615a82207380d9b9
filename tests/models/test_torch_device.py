"""The device and the number format of models in torch."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from threading import Thread
from types import SimpleNamespace

import pytest

from multimodal_eval.core.errors import ConfigError, InputError, UnavailableError
from multimodal_eval.models import torch_device
from multimodal_eval.models.torch_device import DEVICE, Recorded, exact, expected_device, halving, label_of, place


class FakeTorch(SimpleNamespace):
    """A torch with some GPUs, which are never used."""

    class OutOfMemoryError(RuntimeError):
        """What torch raises if the memory of a GPU is not enough."""

    float32, bfloat16 = "float32", "bfloat16"

    def __init__(self, gpus):
        emptied = []
        cuda = SimpleNamespace(
            is_available=lambda: gpus > 0, device_count=lambda: gpus, empty_cache=lambda: emptied.append(1)
        )
        super().__init__(cuda=cuda, emptied=emptied)

    def device(self, name):
        kind, _, number = name.partition(":")
        return SimpleNamespace(type=kind, index=int(number) if number else None)


@pytest.fixture
def gpus(monkeypatch):
    monkeypatch.delenv(DEVICE, raising=False)

    def install(count):
        monkeypatch.setitem(sys.modules, "torch", FakeTorch(count))

    return install


@pytest.mark.parametrize(
    ("count", "wish", "device"),
    [
        (0, None, ("cpu", None)),
        (0, "cpu", ("cpu", None)),
        (2, None, ("cuda", None)),
        (2, "cpu", ("cpu", None)),
        (2, " CUDA:1 ", ("cuda", 1)),
        (1, "cuda", ("cuda", None)),
        (1, "", ("cuda", None)),
    ],
)
def test_the_gpu_is_used_unless_the_environment_says_otherwise(gpus, monkeypatch, count, wish, device):
    gpus(count)
    if wish is not None:
        monkeypatch.setenv(DEVICE, wish)
    placed = place("the test")
    assert (placed.device.type, placed.device.index) == device
    assert placed.on_gpu == (device[0] == "cuda")


class FakeTensor(list):  # type: ignore[type-arg]
    """What was done with an array, in this order."""

    def to(self, target):
        return FakeTensor([*self, getattr(target, "type", target)])


@pytest.mark.parametrize(("count", "expected"), [(1, ["view", "cuda", "bfloat16"]), (0, ["copy", "cpu", "bfloat16"])])
def test_a_gpu_converts_weights_itself(gpus, count, expected):
    """The conversion on the CPU would take all its cores. There, a model must not be a view of its file."""
    gpus(count)
    torch = sys.modules["torch"]
    torch.from_numpy, torch.tensor = (lambda _, how=how: FakeTensor([how]) for how in ("view", "copy"))
    torch.cat = lambda tensors: ["joined", *tensors]
    placed = place("the test", "bf16")
    assert placed.weights("array") == expected
    assert placed.weights("array", "another") == ["joined", expected, expected]


@pytest.mark.parametrize(
    ("count", "wish", "message"),
    [(0, "cuda", "is cuda, but torch sees no GPU"), (1, "cuda:1", "is cuda:1, but torch sees 1 GPU. Unset it")],
)
def test_a_gpu_that_is_not_there_is_an_error(gpus, monkeypatch, count, wish, message):
    gpus(count)
    monkeypatch.setenv(DEVICE, wish)
    with pytest.raises(UnavailableError, match=message):
        place("the test")


@pytest.mark.parametrize(("count", "wish", "device"), [(0, "", "cpu"), (1, "", "cuda"), (2, "cuda:1", "cuda:1")])
def test_the_device_is_known_before_torch_is_imported(monkeypatch, count, wish, device):
    class NotImportable:
        """Fails if anybody looks into it."""

    monkeypatch.setenv(DEVICE, wish)
    monkeypatch.setitem(sys.modules, "torch", NotImportable())
    monkeypatch.setattr(sys.modules["torch"], "__spec__", object(), raising=False)
    monkeypatch.setattr(torch_device, "_gpus_of_driver", lambda: count)
    monkeypatch.setattr(torch_device, "expect", (expected := []).append)
    assert expected_device("the test") == device
    assert expected == ["torch"]
    monkeypatch.setenv(DEVICE, "cuda:7")
    with pytest.raises(UnavailableError, match="is cuda:7, but torch sees"):
        expected_device("the test")


def test_the_driver_counts_gpus():
    assert torch_device._gpus_of_driver() >= 0


class FakeGraph:
    """What was computed while it was recorded, computed again."""

    def replay(self):
        self.again()


class Column(list):  # type: ignore[type-arg]
    """A tensor of one column."""

    shape = property(lambda self: (len(self), 1))

    def clone(self):
        return Column(self)

    def copy_(self, other):
        self[:] = other


def fake_graphs(recording):
    @contextmanager
    def graph(recorded, *, pool, capture_error_mode):
        assert (pool, capture_error_mode) == ("memory", "thread_local")
        recording.append(recorded)
        try:
            yield
        finally:
            recording.pop()

    cuda = SimpleNamespace(CUDAGraph=FakeGraph, graph=graph, graph_pool_handle=lambda: "memory")
    return SimpleNamespace(torch=SimpleNamespace(cuda=cuda))


def test_a_network_is_recorded_for_shapes_that_come_again():
    recording, computed = [], []

    def doubled(x):
        computed.append(list(x))
        result = Column(2 * number for number in x)
        if recording:
            recording[-1].again = lambda: result.copy_([2 * number for number in x])
        return result

    network = Recorded(fake_graphs(recording), doubled)
    results = [network(Column(numbers)) for numbers in ([1, 2], [3], [4, 5], [6, 7], [8, 9], [1])]
    assert results == [[2, 4], [6], [8, 10], [12, 14], [16, 18], [2]]
    assert computed == [[1, 2], [3], [4, 5], [4, 5], [1], [1]]  # the second time also as a recording


def test_what_cannot_be_recorded_is_computed():
    recording = []

    def refusing(x):
        if recording:
            raise RuntimeError("operation not permitted when stream is capturing")
        return x.clone()

    network = Recorded(fake_graphs(recording), refusing)
    assert [network(Column([number])) for number in range(4)] == [[0], [1], [2], [3]]


@pytest.mark.parametrize("wish", ["gpu", "cuda:", "cuda:x", "mps", "0"])
def test_another_device_is_refused(gpus, monkeypatch, wish):
    gpus(1)
    monkeypatch.setenv(DEVICE, wish)
    with pytest.raises(ConfigError, match="MMEVAL_DEVICE must be cpu, cuda or cuda:NUMBER"):
        place("the test")


@pytest.mark.parametrize("count", [0, 1])
def test_the_number_format_and_the_label_do_not_depend_on_the_machine(gpus, count):
    gpus(count)
    assert place("the test").dtype == "float32"
    assert place("the test", "bf16").dtype == "bfloat16"
    model = SimpleNamespace(label="mine@1a2b")
    assert label_of(model, "float32") == "mine@1a2b+torch"
    assert label_of(model, "bf16") == "mine@1a2b+torch-bf16"


def test_a_batch_that_does_not_fit_is_halved():
    torch, tried, done = FakeTorch(1), [], []

    def work(batch):
        tried.append(len(batch))
        if sum(batch) > 10:
            raise torch.OutOfMemoryError("CUDA out of memory")
        done.extend(batch)

    halving(torch, work, [5, 4, 3, 2, 1, 9])
    assert done == [5, 4, 3, 2, 1, 9]  # in order, each once
    assert tried == [6, 3, 1, 2, 3, 1, 2]  # 24 > 10; 12: 5 and 4 + 3; 12: 2 and 1 + 9
    assert torch.emptied


def test_an_input_that_does_not_fit_alone_is_an_error_of_its_sample():
    torch, done = FakeTorch(1), []

    def work(batch):
        if max(batch) > 10:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate\nmore")
        done.extend(batch)

    with pytest.raises(InputError, match=r"a single input does not fit .* CUDA out of memory\. Tried to allocate$"):
        halving(torch, work, [1, 11, 2])


def test_other_errors_are_not_retried():
    def work(batch):
        raise ValueError("something else")

    with pytest.raises(ValueError, match="something else"):
        halving(FakeTorch(1), work, [1, 2])


@pytest.mark.torch
class TestExact:
    @staticmethod
    def state():
        import torch

        parts = (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.mkldnn.matmul)
        return [part.fp32_precision for part in parts]

    @pytest.fixture(autouse=True)
    def settings(self):
        import torch

        before = self.state()
        yield
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.fp32_precision = "none"
        for part, value in zip(
            (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.mkldnn.matmul), before, strict=True
        ):
            part.fp32_precision = value

    @pytest.mark.parametrize("wish", ["nothing", "medium", "tf32 of one part", "tf32 everywhere"])
    def test_the_settings_of_the_process_come_back(self, wish):
        import torch

        if wish == "medium":
            torch.set_float32_matmul_precision("medium")
        elif wish == "tf32 of one part":
            torch.backends.cuda.matmul.fp32_precision = "tf32"
        elif wish == "tf32 everywhere":
            torch.backends.fp32_precision = "tf32"
        before = self.state()
        with exact(torch):
            assert self.state() == ["ieee"] * 3
            assert not torch.backends.cuda.matmul.allow_tf32  # readable: both kinds of settings agree
            assert not torch.backends.cudnn.allow_tf32
        assert self.state() == before

    def test_the_last_of_several_users_puts_them_back(self):
        import torch

        torch.set_float32_matmul_precision("medium")
        with exact(torch):
            other = exact(torch)
            thread = Thread(target=other.__enter__)
            thread.start()
            thread.join()
        assert self.state()[0] == "ieee"  # the other one still computes
        other.__exit__(None, None, None)
        assert self.state()[0] == "tf32"
