"""Settings and fixtures that several tests share."""

from __future__ import annotations

import gc
import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import Forked, start_python
from small_runs import make_recipe, write_text

pytest_plugins = ("case_samples",)

ROOT = Path(__file__).resolve().parent.parent
SOURCE = {"PYTHONPATH": str(ROOT / "src")}

# `nohup`, background jobs and build servers start programs that ignore signals to end, and so would
# every program that a test starts. A signal with a handler is not ignored in a new program, and a
# handler that does nothing keeps it from ending the tests.
for name in ("SIGTERM", "SIGHUP", "SIGQUIT"):
    number = getattr(signal, name, None)  # Windows has only the first.
    if number is not None and signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, lambda *_: None)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def flush(descriptor: int) -> None:
    """Stand in for `os.fsync`, whose effect shows only after a loss of power, but takes long."""
    os.fstat(descriptor)


os.fsync = flush


def pytest_collection_finish() -> None:
    """Keep Python from searching everything that was loaded for cycles again and again."""
    gc.collect()
    gc.freeze()


Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(autouse=True, scope="session")
def _one_identifier() -> Iterator[None]:
    """Keep the identifier of languages in memory; each check would load it for a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pellucid.check.data_check.release_identifier", lambda: None)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def modules() -> dict[str, Path]:
    """The file of every module of the package, by the module's dotted name."""
    source = ROOT / "src"
    found = {}
    for path in sorted((source / "pellucid").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program as `subprocess.Popen` does; it is killed if the test leaves it running."""
    started: list[subprocess.Popen[bytes]] = []

    def start(
        command: list[str],
        *,
        kind: type[subprocess.Popen[bytes]] = subprocess.Popen,
        **options: Any,
    ) -> subprocess.Popen[bytes]:
        started.append(kind(command, **{"env": os.environ | SOURCE} | options))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def finish(
    process: subprocess.Popen[bytes], stdin: str | bytes
) -> subprocess.CompletedProcess[str]:
    """Give a process its input and wait for its end, or kill it."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    try:
        output, errors = process.communicate(data, timeout=100)
    finally:
        process.kill()
    return subprocess.CompletedProcess(
        process.args, process.returncode, (output or b"").decode(), (errors or b"").decode()
    )


@pytest.fixture
def run_python(start: Start) -> Run:
    """Run ``python ARGUMENTS`` and hand back exit code, output and errors as UTF-8 text."""

    def run(
        *arguments: str, stdin: str | bytes = b"", env: dict[str, str] | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        process = start(
            [sys.executable, *arguments],
            **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | options,
            env=os.environ | SOURCE | (env or {}),
        )
        return finish(process, stdin)

    return run


@pytest.fixture
def run_cli(run_python: Run) -> Run:
    """Run ``pellucid ARGUMENTS``."""

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return run_python("-m", "pellucid", *arguments, **options)

    return run


@pytest.fixture
def run_forked(run_cli: Run) -> Run:
    """Run ``pellucid ARGUMENTS`` in a process that need not load PyTorch first."""

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return run_cli(*arguments, kind=Forked, **options)

    return run


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``pellucid ARGUMENTS`` in this process, which is quickest but shares its state."""
    from pellucid.cli import main

    def run(*arguments: str, stdin: str | bytes = b"") -> subprocess.CompletedProcess[str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        streams = {"stdin": io.BytesIO(data), "stdout": io.BytesIO(), "stderr": io.BytesIO()}
        handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
        with monkeypatch.context() as patch:
            for name, stream in streams.items():
                patch.setattr(sys, name, io.TextIOWrapper(stream, write_through=True))
            try:
                code = main.run(arguments)
                output, errors = (streams[name].getvalue() for name in ("stdout", "stderr"))
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        return subprocess.CompletedProcess(arguments, code, output.decode(), errors.decode())

    return run


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the report of a training run, which takes longer than a small training."""
    monkeypatch.setattr("pellucid.training.report.report_page.write_report", lambda run: None)


@pytest.fixture
def forked_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the Python processes that the package starts to share its work."""
    monkeypatch.setattr(subprocess, "Popen", start_python)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text of `small_runs` and the run of its recipe, to be copied."""
    from pellucid.training.loop import train

    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pellucid.training.report.report_page.write_report", lambda run: None)
        write_text(folder)
        train(make_recipe(), folder / "run", recipe_folder=folder, progress=False)
    return folder


@pytest.fixture
def finished_run(trained: Path, tmp_path: Path) -> Path:
    """A run of 23 steps in the test's folder, next to its text."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., str]:
    """Write lines into a file of the test's folder and hand back its path."""

    def write(name: str, *lines: str) -> str:
        path = tmp_path / name
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        return str(path)

    return write


@pytest.fixture(scope="session")
def bundle_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete bundle of an untrained model whose vocabulary is a few whole words."""
    import torch

    from pellucid.bundle import save_bundle
    from pellucid.config import BundleConfig, ModelConfig, TokenizerConfig, TokenizerRecipe
    from pellucid.model import Transformer, initialize
    from pellucid.text.tokenizers.kinds import learn_tokenizer

    words = ["The pizza came out of the oven .", "La pizza est sortie du four ."]
    settings = TokenizerRecipe(kind="words", sharing="joint")
    tokenizer = learn_tokenizer(settings, lambda: iter(words[:1]), lambda: iter(words[1:]))
    size = tokenizer.source_vocabulary_size
    model_config = ModelConfig.model_validate(
        {"d_model": 6, "d_ff": 11, "num_heads": 2, "d_key": 3, "d_value": 5}
        | {"num_encoder_layers": 1, "num_decoder_layers": 2, "max_source_length": 19}
        | {"max_target_length": 13, "source_vocabulary_size": size, "target_vocabulary_size": size}
    )
    with torch.random.fork_rng():
        model = Transformer(model_config)
        initialize(model, 1)
    folder = tmp_path_factory.mktemp("bundles") / "untrained"
    stored = {key: getattr(settings, key) for key in TokenizerConfig.model_fields}
    save_bundle(
        folder,
        config=BundleConfig(model=model_config, tokenizer=TokenizerConfig(**stored)),
        weights=model.state_dict(),
        tokenizer=tokenizer,
        recipe_toml="",
        provenance={"data": {"pairs": 1}},
    )
    return folder
