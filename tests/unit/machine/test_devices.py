"""The name of a device, and what is said about one that does not work."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch

import pellucid
from pellucid.config import TrainingConfig, validate
from pellucid.errors import ConfigurationError, InputError, PellucidError
from pellucid.machine import devices
from pellucid.machine.devices import device_in_use, resolve_device, use_device

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(devices, "_find_fault", lambda device: None)


@pytest.fixture(autouse=True)
def _none_chosen() -> Iterator[None]:
    yield
    use_device(None)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "CPU", "", "mps"])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="must be auto, cpu, cuda or cuda:N, but is"):
        resolve_device(name)
    with pytest.raises(ConfigurationError, match="'auto', 'cpu', 'cuda' or 'cuda:N', but is"):
        validate(TrainingConfig, {"device": name}, "")


def test_without_cuda_auto_is_the_processor_and_cuda_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert resolve_device("auto") == resolve_device("cpu") == "cpu"
    with pytest.raises(ConfigurationError, match="this PyTorch was built without it: install"):
        resolve_device("cuda")
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    with pytest.raises(ConfigurationError, match="does not find a device for it: check the driver"):
        resolve_device("cuda:1")


def test_an_old_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch only warns about it."""

    def is_available() -> bool:
        warnings.warn("The NVIDIA driver on your system is too old (found 11040)", stacklevel=2)
        return False

    monkeypatch.setattr(torch.cuda, "is_available", is_available)
    with pytest.raises(ConfigurationError, match="driver is too old for this PyTorch: update"):
        resolve_device("cuda")
    assert resolve_device("auto") == "cpu"


@pytest.mark.usefixtures("two_gpus")
def test_a_number_must_be_one_of_the_machines() -> None:
    assert resolve_device("cuda:1") == "cuda:1"
    assert resolve_device("auto") == "cuda"
    with pytest.raises(ConfigurationError, match=r"\(cuda:0 to cuda:1\), but is cuda:7"):
        resolve_device("cuda:7")


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("CUDA error: all CUDA-capable devices are busy or unavailable", "another program keeps"),
        ("CUDA error: no kernel image is available for execution", "Install a newer build"),
        ("CUDA out of memory. Tried to allocate 2.00 MiB", "Out of memory. Free some"),
        ("CUDA error: unknown error\nCompile with ...", "CUDA error: unknown error. Check the"),
    ],
)
def test_one_that_does_not_work_is_refused_and_never_chosen(
    monkeypatch: pytest.MonkeyPatch, words: str, sentence: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(words)

    monkeypatch.undo()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch, "ones", fail)
    with pytest.raises(PellucidError, match=sentence) as found:
        resolve_device("cuda")
    # A fault of the machine ends with 1, a mistaken name with 2.
    assert not isinstance(found.value, InputError | ConfigurationError)
    assert resolve_device("auto") == "cpu"


@pytest.mark.usefixtures("two_gpus")
def test_a_command_chooses_for_the_models_that_it_loads() -> None:
    assert device_in_use() == "cpu"
    use_device("cuda:1")
    assert device_in_use() == "cuda:1"
    use_device(None)
    assert device_in_use() == "cpu"


def test_a_model_is_refused_before_it_is_read() -> None:
    with pytest.raises(ConfigurationError, match="The device must be auto"):
        pellucid.load("no-such-folder", device="gpu")
    with pytest.raises(InputError, match="device must be"):
        pellucid.load("demo", device=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("command", [("translate", "demo"), ("study", "demo"), ("train", "x.tsv")])
def test_a_command_refuses_a_device_before_any_work(
    command: tuple[str, ...], run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    done = run_here(*command, "--device", "cuda")
    assert done.returncode == 2
    assert done.stderr.startswith("error: The device cuda needs CUDA, but ")
    assert done.stderr.count("\n") == 1


def test_the_processor_by_name_writes_the_same(run_here: Run) -> None:
    text = "the cat sleeps\n"
    plain = run_here("translate", "demo", stdin=text)
    for name in ("cpu", "auto"):
        assert run_here("translate", "demo", "--device", name, stdin=text).stdout == plain.stdout
