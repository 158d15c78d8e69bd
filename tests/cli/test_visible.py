"""Text of strangers on a terminal: control characters are made visible, long values shortened."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from of_subwords import SUBWORDS
from rich.text import Text
from small_runs import make_recipe

from pellucid.bundle import resolve_model
from pellucid.cli.commands.inspect import _vocabulary_to_text
from pellucid.cli.look.writer import LookWriter
from pellucid.errors import make_printable, shorten
from pellucid.files import hash_bytes
from pellucid.inside.show.steps import NumberTable
from pellucid.terminal.text import replace_letters
from pellucid.training.run.folder import RunFolder

Run = Callable[..., subprocess.CompletedProcess[str]]

HOSTILE = "\x1b]0;owned\x07\x1b[2J2026\nmodel_hash: 0000\x7f\x9b\u202e"


def is_harmless(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain – text →", "plain – text →"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\u202ec\u200b", "a\\nb\\u202ec\\u200b"),
    ],
)
def test_make_printable_escapes_what_shows_nothing(text: str, expected: str) -> None:
    assert make_printable(text) == expected


def test_shorten_cuts_long_words_and_keeps_the_advice() -> None:
    plain = "The file a/b does not exist. Check the name and the folder."
    assert shorten(plain) == plain
    named = f"The file {'a' * 5000} does not exist. Check the name and the folder."
    assert shorten(named) == plain.replace("a/b", f"{'a' * 80}…(5,000 characters)…{'a' * 40}")
    many = f"It must be short, but is {'word ' * 2000}. Write less."
    assert len(shorten(many)) < 1400
    assert shorten(many).startswith("It must be short")
    assert shorten(many).endswith("Write less.")


def change_manifest(folder: Path, change: Mapping[str, Any]) -> str:
    shutil.copytree(str(files("pellucid") / "models" / SUBWORDS), folder)
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    return str(folder)


def test_inspect_shows_a_manifest_of_a_stranger_harmlessly(run_here: Run, tmp_path: Path) -> None:
    strange = {"created": HOSTILE, HOSTILE: {HOSTILE: 3}, "list": [HOSTILE]}
    model = change_manifest(tmp_path / "model", strange)
    done = run_here("inspect", model)
    assert done.returncode == 0
    assert is_harmless(done.stdout)
    assert "  created: \\x1b]0;owned\\x07\\x1b[2J2026\\nmodel_hash: 0000" in done.stdout
    hashes = [line for line in done.stdout.splitlines() if line.startswith("model_hash")]
    assert len(hashes) == 1
    assert json.loads(run_here("inspect", model, "--json").stdout)["manifest"]["created"] == HOSTILE


def test_vocabulary_of_a_stranger_is_shown_one_word_a_line() -> None:
    text = _vocabulary_to_text({"joint": ["a", HOSTILE, "▁b"]})
    assert is_harmless(text)
    assert text.count("\n") == 3
    assert text.endswith("2\t▁b\n")


@pytest.mark.parametrize("is_plain", ["1", "0"])
def test_look_shows_tokens_of_a_stranger_harmlessly(
    capsys: pytest.CaptureFixture[str], is_plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PELLUCID_PLAIN", is_plain)
    word = HOSTILE.replace("\n", "")
    writer = LookWriter()
    writer.lines([f"Source {word}"])
    writer.table(NumberTable(f"Row of {word}", word, ("token", "weight"), ((word, 0.5),)))
    writer._draw([Text(f"a {word}", "bold")])
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert "Source ␛]0;owned␇␛[2J2026model_hash" in shown


def test_log_of_a_run_is_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").mkdir()
    run = RunFolder(tmp_path / "run", make_recipe())
    run.log(f"first line\nsecond {HOSTILE}")
    for shown in (capsys.readouterr().err, (tmp_path / "run" / "log.txt").read_text()):
        assert is_harmless(shown)
        assert shown.startswith("first line\nsecond \\x1b]0;owned")


@pytest.mark.parametrize(
    "arguments",
    [
        ("translate", "A" * 5000),
        ("translate", SUBWORDS, "-i", "b" * 5000),
        ("translate", SUBWORDS, "--forbid", f"@{HOSTILE}"),
        ("train", "c" * 5000),
        ("train", "multi30k-en-fr", "--set", f"model.size={'d' * 5000}"),
        ("train", "multi30k-en-fr", "--set", f"model.d_model={'9' * 300}"),
        ("look", SUBWORDS, "x", "--change", "e" * 5000),
        ("x" * 5000,),
    ],
)
def test_message_about_a_long_value_is_short_and_harmless(
    run_here: Run, arguments: tuple[str, ...]
) -> None:
    done = run_here(*arguments)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert is_harmless(done.stderr)
    assert len(done.stderr) < 600


def test_python_s_error_about_a_long_setting_is_short() -> None:
    from pellucid.config import DecodingConfig, validate
    from pellucid.errors import ConfigurationError

    with pytest.raises(ConfigurationError) as caught:
        validate(DecodingConfig, {"length_penalty": "f" * 5000}, "options")
    assert len(str(caught.value)) < 400


def on_terminal(*arguments: str, env: dict[str, str], stdin: bytes = b"") -> tuple[int, bytes]:
    """Run a command whose standard output is a terminal; return its exit code and what that got."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pellucid", *arguments]
    path = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")} | env
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, stdout=theirs, env=path, **pipes) as process:
        os.close(theirs)
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        shown = b""
        with suppress(OSError):  # Linux reports the end of a terminal so.
            while part := os.read(ours, 65536):
                shown += part
    os.close(ours)
    return process.returncode, shown


def test_terminal_shows_what_a_vocabulary_would_make_it_do(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(resolve_model("demo"), folder)
    words = (folder / "target.txt").read_text("utf-8").split("\n")
    strange = words.copy()
    for word in ("chien", "petit", "Le"):
        strange[words.index(word)] = f"{word}\x1b]0;owned\x07\x9b2J\u202e"
    (folder / "target.txt").write_text("\n".join(strange), "utf-8")
    manifest = json.loads((folder / "manifest.json").read_text())
    data = (folder / "target.txt").read_bytes()
    manifest["files"]["target.txt"] = {"sha256": hash_bytes(data), "size": len(data)}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    env, line = {"LC_ALL": "C.UTF-8", "TERM": "dumb"}, b"The little dog ate the soup\n"
    plain = subprocess.run(
        [sys.executable, "-m", "pellucid", "translate", str(folder)], input=line,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")} | env,
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert "Le\x1b]0;owned\x07\x9b2J\u202e petit" in plain.decode()
    code, shown = on_terminal("translate", str(folder), env=env, stdin=line)
    assert code == 0
    assert is_harmless(shown.decode().replace("\r\n", "\n"))
    assert "Le\\x1b]0;owned\\x07\\x9b2J\\u202e petit" in shown.decode()
    for arguments in (("translate", "--json"), ("inspect", "--vocabulary", "--json")):
        code, shown = on_terminal(arguments[0], str(folder), *arguments[1:], env=env, stdin=line)
        assert code == 0
        assert not set("\x1b\x07\x9b\u202e") & set(shown.decode())


def test_terminal_without_a_letter_gets_a_readable_one() -> None:
    for encoding, expected in (("ascii", b"mange"), ("latin-1", b"mang\xe9"), ("utf-8", None)):
        env = {"PYTHONIOENCODING": encoding, "TERM": "dumb"}
        code, shown = on_terminal("translate", "demo", env=env, stdin=b"The little dog ate it\n")
        assert code == 0
        assert (expected or "mang\u00e9".encode()) in shown


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("déjà → “vu” −3", "ascii", b'deja > "vu" -3'),
        ("déjà → vu", "latin-1", b"d\xe9j\xe0 > vu"),
        ("狗 ½", "ascii", b"? 1"),
        ("\ud83d", "utf-8", b"\\ud83d"),
    ],
)
def test_letters_that_an_encoding_lacks_are_replaced(
    text: str, encoding: str, expected: bytes
) -> None:
    codecs.register_error("letters", replace_letters)
    assert text.encode(encoding, "letters") == expected


def test_look_in_a_file_keeps_its_letters_in_any_locale(run_cli: Run) -> None:
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
    done = run_cli("look", "demo", "The little dog ate the soup", env=env | {"PELLUCID_PLAIN": "1"})
    assert "mangé" in done.stdout
    assert "→" in done.stdout
