"""The list of commands, written without Typer, which takes longer to import than all else."""

from __future__ import annotations

import pytest

from pellucid.cli.app import dispatch
from pellucid.cli.main import run


@pytest.mark.parametrize("columns", ["30", "61", "80", "211"])
@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_overview_is_the_help_that_typer_would_write(
    arguments: list[str],
    columns: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert dispatch(["--help"]) == 0
    expected = capsys.readouterr().out

    assert run(arguments) == 0

    assert capsys.readouterr().out == expected


def test_overview_with_more_arguments_is_left_to_typer(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help", "--nothing"]) == 2
    assert "No such option: --nothing" in capsys.readouterr().err
