"""``pellucid info`` and ``completion``, the keys of a server, and mistakes on the command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import pellucid
from pellucid.bundle import SHIPPED
from pellucid.cli.main import run
from pellucid.cli.options import PACKAGED
from pellucid.cli.overview import COMMANDS, SUBCOMMANDS
from pellucid.errors import ConfigurationError
from pellucid.serve.server_config import ServeConfig, read_config
from pellucid.serve.settings import Keys, Limits, hash_key

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_info_has_what_a_report_of_a_bug_needs(run_here: Run) -> None:
    record = json.loads(run_here("info", "--json").stdout)
    assert record["pellucid"] == pellucid.__version__
    assert record["python"] == sys.version.split()[0]
    assert record["packages"]["torch"]
    assert record["threads"]["processors"] >= record["threads"]["used"] >= 1
    assert "dev" not in record["extras"]
    lines = run_here("info").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*record]


def test_info_counts_one_thread_as_a_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pellucid.machine.hardware.default_threads", lambda: 1)
    assert run(["info"]) == 0
    shown = capsys.readouterr().out
    assert "threads    used 1, processors" in shown
    assert re.search(r"^extras .*(installed|missing)", shown, flags=re.MULTILINE)


@pytest.mark.parametrize("arguments", [["info"], ["completion", "bash"], ["help", "train"]])
def test_help_info_and_completion_load_no_pytorch(run_python: Run, arguments: list[str]) -> None:
    code = (
        "import sys; from pellucid.cli.main import run\n"
        f"assert run({arguments!r}) == 0; assert 'torch' not in sys.modules"
    )
    assert run_python("-c", code).returncode == 0


@pytest.fixture(scope="module")
def bash_script() -> str:
    words = [sys.executable, "-m", "pellucid", "completion", "bash"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pellucid tra", {"train", "translate"}),
        ("pellucid -q tra", {"train", "translate"}),
        ("pellucid bulk ", set(SUBCOMMANDS["bulk"])),
        ("pellucid bulk run demo --any", {"--any-machine"}),
        ("pellucid export --format ", {"marian", "ctranslate2", "pellucid"}),
        ("pellucid translate dem", set(PACKAGED)),
        ("pellucid train tiny", {"tiny-en-fr", "tiny-en-fr-recurrent"}),
        ("pellucid serve demo --key-f", {"--key-file"}),
        ("pellucid translate demo -i ", set()),  # The shell completes names of files.
        ("pellucid completion ", {"bash", "zsh", "fish"}),
        ("pellucid help tra", {"train", "translate"}),
        ("pellucid attend pi", {"pizza"}),
        ("pellucid lesson le", {"lecture"}),
        ("pellucid claim or", {"order"}),
        ("pellucid corpus --part te", {"test"}),
        ("pellucid translate demo --format xl", {"xliff", "xlsx"}),
        ("pellucid translate demo --format l", {"lines"}),
        ("pellucid recipe --key training.pat", {"training.patience"}),
        ("pellucid train pairs.tsv --start demo-r", {"demo-recurrent"}),
        ("pellucid look demo --head dec", {"decoder.0.self", "decoder.0.cross"}),
        ("pellucid serve --host ", set()),
    ],
)
def test_bash_completes_commands_options_values_models_and_recipes(
    bash_script: str, line: str, expected: set[str]
) -> None:
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    code = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _pellucid; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(
        ["bash", "-c", f"{bash_script}\n{code}"], capture_output=True, text=True, check=True
    )
    asks_for_option = words[-1].startswith("-")
    found = [word for word in done.stdout.split() if word.startswith("-") == asks_for_option]
    assert set(found) == expected


def test_other_shells_get_every_command(run_here: Run) -> None:
    fish = run_here("completion", "fish").stdout
    assert all(f"-a {name} -d " in fish for name in COMMANDS)
    assert "__fish_seen_subcommand_from bulk; and __fish_seen_subcommand_from run" in fish
    for name, value in (("lesson", "study-notes"), ("claim", "memory"), ("look", "demo")):
        start = f"complete -c pellucid -n '__fish_seen_subcommand_from {name}' -a '"
        (line,) = (one for one in fish.splitlines() if one.startswith(start))
        assert value in line.removeprefix(start).rstrip("'").split()
    zsh = run_here("completion", "zsh").stdout
    assert zsh.startswith("#compdef pellucid\n")
    assert "bashcompinit" in zsh
    for shell, script in (("fish", fish), ("zsh", zsh)):
        if program := shutil.which(shell):
            subprocess.run([program, "-n", "-c", script], check=True)


def test_packaged_models_are_those_of_the_bundle() -> None:
    assert PACKAGED == SHIPPED


def test_keys_are_added_listed_and_removed(run_here: Run, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    file = str(path)
    first = run_here("keys", "add", file, "Ann, phone").stdout.strip()
    second = run_here("keys", "add", file, "weblate").stdout.strip()
    with path.open("a") as text:
        text.write(f"# a remark\n{hash_key('x').hex()}\n")
    assert run_here("keys", "list", file).stdout.splitlines() == ["Ann, phone", "weblate", "-"]
    wrong = run_here("keys", "remove", file, "webblate")
    assert (wrong.returncode, "Did you mean 'weblate'?" in wrong.stderr) == (2, True)
    assert run_here("keys", "remove", file, "weblate").returncode == 0
    assert run_here("keys", "list", file).stdout.splitlines() == ["Ann, phone", "-"]
    assert "# a remark" in path.read_text()
    keys = Keys.read(path)
    assert keys.accept(first)
    assert not keys.accept(second)
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0
    missing = run_here("keys", "list", str(tmp_path / "none"))
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


def test_settings_of_a_server_count_more_the_nearer_they_are(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    serve = '[serve]\nhost = "::1"\nport = 1\nallow_host = ["a", "b"]\n'
    file.write_text(f"{serve}[limits]\nbeam = 1\n")
    environment = {
        "PELLUCID_SERVE_PORT": "2",
        "PELLUCID_SERVE_LIMITS_BEAM": "2",
        "PELLUCID_SERVE_LOG": "none",
        "PELLUCID_OTHER": "x",
    }
    found = read_config(str(file), environment, ["limits.beam=3"], {"port": 4})
    assert (found.serve.host, found.serve.port, found.limits.beam) == ("::1", 4, 3)
    assert found.to_settings().allowed_hosts == ("a", "b")
    assert found.serve.log == "none"
    assert read_config(None, {}, (), {}).serve == ServeConfig()


@pytest.mark.parametrize(
    ("file", "environment", "changes", "said"),
    [
        ("[limits]\nbeem = 1\n", {}, (), "'limits.beem' is unknown (serve.toml)"),
        ("[limit]\nbeam = 1\n", {}, (), "'limit' is unknown (serve.toml). Did you mean 'limits'"),
        ("", {"PELLUCID_SERVE_PORTS": "1"}, (), "(PELLUCID_SERVE_PORTS). Did you mean 'port'?"),
        ("", {"PELLUCID_SERVE_PORT": "x"}, (), "but is 'x' (PELLUCID_SERVE_PORT)"),
        (
            "",
            {},
            ("limits.beam=0",),
            "limits.beam must be at least 1, but is 0 (settings)",
        ),
    ],
)
def test_bad_setting_of_a_server_is_blamed_on_its_place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    environment: dict[str, str],
    changes: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("serve.toml").write_text(file)
    with pytest.raises(ConfigurationError) as found:
        read_config("serve.toml", environment, changes, {})
    assert said in str(found.value)


def test_table_of_limits_in_the_guide_is_that_of_the_code() -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "serving.md"
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", guide.read_text("utf-8"), re.MULTILINE)
    expected = {name: f"{int(one.default):,}" for name, one in Limits.model_fields.items()}
    assert dict(rows) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["translate", "demo", "--beam", "x"], "--beam must be a whole number, but is 'x'."),
        (["train", "x", "--minutes", "y"], "--minutes must be a number, but is 'y'."),
        (["train", "x", "--minutes", "0"], "--minutes must be at least 0.01, but is '0'."),
        (["serve", "demo", "--port", "99999"], "--port must be at most 65535, but is '99999'."),
        (
            ["export", "demo", "-o", "x", "--format", "marina"],
            "--format must be one of marian, ctranslate2, pellucid, but is 'marina'. Did you mean "
            "'marian'?",
        ),
        (["export", "demo", "-o", "x"], "--format is missing: marian, ctranslate2 or pellucid."),
        (["export", "-o", "x", "--format", "marian"], "MODEL is missing. See: pellucid export --h"),
        (
            ["translate", "demo", "--beem", "3"],
            "The option --beem does not exist. Did you mean --b",
        ),
        (
            ["score", "demo", "--source"],
            "--source needs a value, but nothing follows it. See: pell",
        ),
        (
            ["score", "demo", "--json=3"],
            "--json takes no value, but is given one. See: pellucid sc",
        ),
        (
            ["completion", "bash", "b"],
            "pellucid completion takes fewer arguments: 'b' is one too m",
        ),
        (
            ["train", "x", "--out", "y"],
            "pellucid train --out does not exist. Give -o instead.",
        ),
        (["translate", "demo", "--out", "y"], "Give -o instead."),
        (["translate", "demo", "--num-beams", "3"], "Give --beam instead."),
        (["translate", "demo", "--model", "demo"], "Give pellucid translate MODEL instead."),
        (["translate", "demo", "--beams", "3"], "does not exist. Did you mean --beam? See:"),
        (["score", "--modl", "demo"], "The option --modl does not exist. See: pellucid score"),
        (["evaluate", "demo", "--target", "x"], "Give --reference instead."),
        (
            ["train", "x", "--epochs", "3"],
            "Give --set training.max_steps=N, or --minutes N instead.",
        ),
        (["look", "demo", "x", "--layer", "1"], "Give --head (such as decoder.1) instead."),
        (["train", "x", "--from", "y"], "Give --start MODEL instead."),
        (["demo", "--model", "recurrent"], "Give --architecture NAME instead."),
        (["corpus", "--split", "test"], "Give --part PART instead."),
        (["serve", "demo", "--max-beam", "3"], "Give --set limits.beam=N instead."),
    ],
)
def test_mistake_on_the_command_line_is_worded_as_every_other(
    run_here: Run, arguments: list[str], said: str
) -> None:
    done = run_here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not any(word in done.stderr for word in ("Input should", "Value error", "Invalid value"))
