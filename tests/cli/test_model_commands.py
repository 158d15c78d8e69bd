"""``translate``, ``score`` and ``inspect`` with a small untrained model."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pellucid.bundle import load_bundle, resolve_model

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]

LINES = ["The pizza came out .", "", "pizza \u2028 🍕 שלום", "oven of the", "The"]
TOO_LONG = "pizza " * 40


def test_translate_standard_streams_keep_every_line(run_here: Run, bundle_folder: Path) -> None:
    done = run_here("translate", str(bundle_folder), stdin="".join(f"{line}\n" for line in LINES))
    assert done.returncode == 0, done.stderr
    assert "U+2028 LINE SEPARATOR" in done.stderr
    translations = done.stdout.split("\n")
    assert len(translations) == len(LINES) + 1
    assert translations[1] == ""


def test_translate_nothing_gives_nothing(run_here: Run, bundle_folder: Path) -> None:
    done = run_here("translate", str(bundle_folder), stdin="")
    assert (done.returncode, done.stdout) == (0, "")


def test_translate_json_has_the_contract_s_keys_and_sums(
    run_here: Run, bundle_folder: Path
) -> None:
    done = run_here(
        "translate", str(bundle_folder), "--json", stdin="".join(f"{line}\n" for line in LINES)
    )
    records = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert [record["line"] for record in records] == list(range(len(LINES)))
    assert [record["source"] for record in records] == LINES
    for record in records:
        # What is unusual about a line is in "notes"; an untrained model is unsure of everything.
        assert set(record) - {"notes"} == {
            *("line", "source", "translation", "error", "hypotheses")
        }
        assert record["translation"] == record["hypotheses"][0]["text"]
        (hypothesis,) = record["hypotheses"]
        assert set(hypothesis) == {
            *("text", "tokens", "ids", "token_log_probabilities", "log_probability", "score")
        }
        assert len(hypothesis["tokens"]) == len(hypothesis["ids"])
        total = sum(hypothesis["token_log_probabilities"])
        assert hypothesis["log_probability"] == pytest.approx(total)
    assert "שלום" in done.stdout


def test_translate_line_too_long_gives_empty_line_a_sentence_and_3(
    run_here: Run, bundle_folder: Path
) -> None:
    text = f"The pizza\n{TOO_LONG}\nThe oven\n"
    done = run_here("translate", str(bundle_folder), stdin=text)
    assert done.returncode == 3
    assert done.stdout.count("\n") == 3
    assert done.stdout.split("\n")[1] == ""
    assert done.stderr.startswith("error: line 2: ")
    assert done.stderr.count("error: line ") == 1
    record = json.loads(
        run_here("translate", str(bundle_folder), "--json", stdin=text).stdout.split("\n")[1]
    )
    assert record["hypotheses"] == []
    assert record["error"]


def test_translate_files_equal_streams_and_existing_output_is_kept(
    run_here: Run, write_lines: WriteLines, bundle_folder: Path, tmp_path: Path
) -> None:
    source, output = write_lines("source.txt", *LINES), tmp_path / "output.txt"
    arguments = ("translate", str(bundle_folder), "-i", source, "-o", str(output))
    assert run_here(*arguments).returncode == 0
    expected = run_here("translate", str(bundle_folder), stdin=Path(source).read_bytes()).stdout
    assert output.read_text(encoding="utf-8") == expected
    refused = run_here(*arguments)
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    assert run_here(*arguments, "--overwrite").returncode == 0


DAMAGED = b"The pizza\nl'\xe9t\xe9 \xe0 N\xeemes\nof the oven\n"


def test_translate_line_that_is_not_utf8_is_empty_and_the_others_are_translated(
    run_here: Run, bundle_folder: Path
) -> None:
    whole = run_here("translate", str(bundle_folder), stdin=b"The pizza\n\nof the oven\n")
    assert whole.returncode == 0
    done = run_here("translate", str(bundle_folder), stdin=DAMAGED)
    assert done.returncode == 3
    assert done.stdout == whole.stdout
    assert done.stderr.startswith(
        "error: line 2: A line must be UTF-8 text, but after 2 characters comes byte 0xe9. "
        "Convert it, for instance with iconv -f WINDOWS-1252 -t UTF-8.\n"
    )
    assert done.stderr.count("error: line ") == 1


def test_translate_line_that_is_not_utf8_has_an_error_and_no_hypotheses(
    run_here: Run, bundle_folder: Path
) -> None:
    done = run_here("translate", str(bundle_folder), "--json", stdin=DAMAGED)
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert second["hypotheses"] == []
    assert "0xe9" in second["error"]
    assert second["source"] == "l'\ufffdt\ufffd \ufffd N\ufffdmes"
    assert (first["error"], third["error"]) == (None, None)
    ranked = run_here(
        "translate", str(bundle_folder), "--n-best", "2", "--beam", "2", stdin=DAMAGED
    )
    numbers = [line.split(" ||| ")[0] for line in ranked.stdout.splitlines()]
    assert numbers == ["0", "0", "1", "2", "2"]


def test_translate_file_with_a_line_that_is_not_utf8_is_written_whole(
    run_here: Run, bundle_folder: Path, tmp_path: Path
) -> None:
    source, output = tmp_path / "source.txt", tmp_path / "output.txt"
    source.write_bytes(DAMAGED)
    done = run_here("translate", str(bundle_folder), "-i", str(source), "-o", str(output))
    assert done.returncode == 3
    assert "line 2" in done.stderr
    assert output.read_text(encoding="utf-8").split("\n")[1] == ""
    assert output.read_text(encoding="utf-8").count("\n") == 3


def test_translate_file_in_utf16_writes_nothing(
    run_here: Run, bundle_folder: Path, tmp_path: Path
) -> None:
    source, output = tmp_path / "source.txt", tmp_path / "output.txt"
    source.write_bytes("The pizza\n".encode("utf-16"))
    done = run_here("translate", str(bundle_folder), "-i", str(source), "-o", str(output))
    assert done.returncode == 2
    assert "source.txt begins as UTF-16 does" in done.stderr
    assert "iconv -f UTF-16" in done.stderr
    assert not output.exists()


def test_translate_ascii_locale_still_writes_utf8(run_cli: Run, bundle_folder: Path) -> None:
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    text = "pizza 🍕 É\n"
    done = run_cli("translate", str(bundle_folder), "--json", stdin=text, env=environment)
    assert done.returncode == 0, done.stderr
    assert "🍕 É" in done.stdout


def test_score_one_sum_a_line_and_tokens_on_request(
    run_here: Run, write_lines: WriteLines, bundle_folder: Path
) -> None:
    source = write_lines("source.txt", "The pizza", "of the oven")
    target = write_lines("target.txt", "La pizza", "")
    arguments = ("score", str(bundle_folder), "--source", source, "--target", target)
    plain = run_here(*arguments)
    assert plain.returncode == 0, plain.stderr
    totals = [float(line) for line in plain.stdout.splitlines()]
    assert len(totals) == 2
    assert all(total < 0 for total in totals)
    for total, line in zip(
        totals, run_here(*arguments, "--tokens").stdout.splitlines(), strict=True
    ):
        fields = line.split("\t")
        assert float(fields[0]) == total
        assert fields[-2] == "</s>"
        assert sum(map(float, fields[2::2])) == pytest.approx(total, abs=1e-4)
    records = [json.loads(line) for line in run_here(*arguments, "--json").stdout.splitlines()]
    assert [record["log_probability"] for record in records] == pytest.approx(totals, abs=1e-6)


def test_score_different_lengths_names_both_counts_and_writes_nothing(
    run_here: Run, write_lines: WriteLines, bundle_folder: Path
) -> None:
    source, target = write_lines("source.txt", "a", "b", "c"), write_lines("target.txt", "a")
    done = run_here("score", str(bundle_folder), "--source", source, "--target", target)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "source.txt has 3" in done.stderr
    assert "target.txt has 1" in done.stderr


def test_inspect_shows_sizes_parameters_and_hashes(run_here: Run, bundle_folder: Path) -> None:
    record = json.loads(run_here("inspect", str(bundle_folder), "--json").stdout)
    assert record["config"]["model"]["d_value"] == 5
    parts = {part: n for part, n in record["parameters"].items() if part != "total"}
    assert record["parameters"]["total"] == sum(parts.values())
    assert {"encoder", "decoder", "embedding"} == set(parts)
    assert len(record["model_hash"]) == 64
    assert "model.safetensors" in record["manifest"]["files"]
    text = run_here("inspect", str(bundle_folder)).stdout
    assert record["model_hash"] in text
    assert "d_value: 5" in text


def test_inspect_vocabulary_prints_index_and_word(run_here: Run, bundle_folder: Path) -> None:
    done = run_here("inspect", str(bundle_folder), "--vocabulary")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [int(index) for index, _ in rows] == list(range(len(rows)))
    assert [word for _, word in rows[:4]] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert "pizza" in {word for _, word in rows}
    listed = json.loads(run_here("inspect", str(bundle_folder), "--vocabulary", "--json").stdout)
    assert listed == {"joint": [word for _, word in rows]}


def test_inspect_damaged_bundle_gives_one_sentence_and_2(
    run_here: Run, bundle_folder: Path, tmp_path: Path
) -> None:
    for path in bundle_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    done = run_here("inspect", str(tmp_path))
    assert done.returncode == 2
    assert "model.safetensors" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("kind", ["whole", "attention", "heads", "training", "inference"])
def test_inspect_draws_the_model_with_its_own_numbers(
    run_here: Run, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "drawing.svg"
    done = run_here("inspect", "demo", "--draw", kind, "-o", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    drawing = path.read_text()
    assert drawing.startswith(("<?xml", "<svg"))
    assert "96" in drawing
    assert load_bundle(resolve_model("demo")).model_hash[:8] in drawing


def test_inspect_draws_positions_and_refuses_half_a_wish(run_here: Run, tmp_path: Path) -> None:
    path = tmp_path / "positions.png"
    assert run_here("inspect", "demo", "--draw", "positions", "-o", str(path)).returncode == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    for arguments, message in (
        (("-o", str(path)), "must end in .json or .txt"),
        (("--draw", "whole", "-o", str(path)), "must end in .svg"),
    ):
        done = run_here("inspect", "demo", *arguments)
        assert done.returncode == 2
        assert message in done.stderr
