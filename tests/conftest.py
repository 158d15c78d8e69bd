"""What several tests need."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes is the machine's affair.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

ROOT = Path(__file__).resolve().parent.parent

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell's background job ignores Ctrl-C, and so would every command that is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the project."""
    return ROOT


@pytest.fixture(scope="session")
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; a package by its own."""
    source = ROOT / "src"
    found = {}
    for path in sorted((source / "pellucid").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@pytest.fixture(scope="session")
def run_python() -> Run:
    """Run ``python ARGUMENTS`` and hand back exit code, output and errors as UTF-8 text."""

    def run(
        *arguments: str, stdin: str | bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [sys.executable, *arguments],
            input=data,
            capture_output=True,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")} | (env or {}),
            timeout=120,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


@pytest.fixture(scope="session")
def run_cli(run_python: Run) -> Run:
    """Run ``pellucid ARGUMENTS``."""

    def run(
        *arguments: str, stdin: str | bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return run_python("-m", "pellucid", *arguments, stdin=stdin, env=env)

    return run


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``pellucid ARGUMENTS`` in this process, which saves loading PyTorch each time."""
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
def write_lines(tmp_path: Path) -> Callable[..., str]:
    """Write lines into a file of the test's folder and hand back its path."""

    def write(name: str, *lines: str) -> str:
        path = tmp_path / name
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        return str(path)

    return write


@pytest.fixture(scope="session")
def bundle_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole bundle with an untrained model over a few whole words."""
    import torch

    from pellucid.bundle import save_bundle
    from pellucid.config import BundleConfig, ModelConfig, TokenizerConfig, TokenizerRecipe
    from pellucid.model import Transformer, initialize
    from pellucid.text import learn_tokenizer

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
