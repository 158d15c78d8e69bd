"""``pellucid study``, and ``--change`` of translate, score and evaluate."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pellucid
from pellucid.corpora import Example, make_split

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]
CUT = "cut decoder.1.cross.2"


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return make_split("test", count=4)


@pytest.fixture
def files(examples: list[Example], write_lines: WriteLines) -> tuple[str, ...]:
    return (
        *("--source", write_lines("source", *(e.source for e in examples))),
        *("--target", write_lines("target", *(e.target for e in examples))),
    )


@pytest.fixture
def gold(examples: list[Example], write_lines: WriteLines) -> tuple[str, str]:
    lines = (" ".join(f"{i}-{j}" for i, j in e.alignment) for e in examples)
    return "--gold", write_lines("gold", *lines)


def test_one_line_is_not_called_lines(run_here: Run, write_lines: WriteLines) -> None:
    line = "The pizza was good."
    done = run_here(
        "study", "demo", "--source", write_lines("one", line), "--head", "decoder.1.self.0"
    )
    assert done.stdout.startswith("1 line, with the model's own translations as targets\n")
    pair = write_lines("pair", line, "The cake was good.")
    assert run_here("patch", "demo", "--source", pair).stdout.startswith("1 pair of lines; ")


def test_study_writes_tables_json_csv_and_a_page(
    run_here: Run, files: tuple[str, ...], gold: tuple[str, str], tmp_path: Path
) -> None:
    page, head = (
        tmp_path / "page.html",
        ("--head", "decoder.1.self.*", "--head", "decoder.1.cross.*"),
    )
    done = run_here("study", "demo", *files, *gold, *head, "--measured-lines", "1", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads(done.stdout)
    assert [one["head"] for one in record["heads"]][-1] == "decoder.1.cross.3"
    assert record["heads"][0]["end"] is None
    assert len(record["measures"]) == 9
    done = run_here("study", "demo", *files, *head, "--csv", "-o", str(page))
    rows = list(csv.DictReader(done.stdout.splitlines()))
    lowest = min(record["heads"], key=lambda one: one["cut_log_probability"])
    assert rows[0]["head"] == lowest["head"]
    assert rows[0]["lines"] == " ".join(map(str, lowest["changed"]))
    text = page.read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert "http://" not in text
    assert not list(tmp_path.glob("*.study"))
    done = run_here("study", "demo", *files, *head, "--sort", "same")
    heads = [line.split()[0] for line in done.stdout.splitlines()[3:11]]
    order = sorted(record["heads"], key=lambda one: one["same"])
    assert heads == [one["head"] for one in order]
    assert "share_first" in done.stdout


def test_study_command_continues_what_was_kept(
    run_here: Run, files: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pellucid.inside.studies.study_lines import CutLines

    cut, done = CutLines.cut, list[str]()

    def stop(self: CutLines, head: object) -> object:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(str(head))
        return cut(self, head)  # type: ignore[arg-type]

    output = tmp_path / "heads.csv"
    command = ("study", "demo", *files, "--head", "decoder.1.cross.*", "-o", str(output))
    with monkeypatch.context() as patch:
        patch.setattr(CutLines, "cut", stop)
        assert run_here(*command).returncode == 130
    assert done == ["decoder.1.cross.0", "decoder.1.cross.1"]
    assert Path(f"{output}.study").is_file()
    assert not output.exists()
    done.clear()
    monkeypatch.setattr(CutLines, "cut", stop)
    assert run_here(*command).returncode == 0
    assert done == ["decoder.1.cross.2", "decoder.1.cross.3"]
    assert not Path(f"{output}.study").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--measured-lines", "3"), "--measured-lines needs --gold"),
        (("-o", "x.tsv"), "must end in .html, .json, .csv or .txt"),
        (("-o", "no/x.csv"), "folder must exist"),
        (("--sort", "error_reads"), "--sort must name a figure"),
        (("--sort", "entrpy"), "Did you mean 'entropy'?"),
        (("--head", "decoder.0.cross.7"), "head must be from 0 to 3"),
        (("--json", "--csv"), "--json cannot be combined with --csv"),
        (("--gold", "nowhere"), "does not exist"),
    ],
)
def test_study_refuses_bad_options_in_one_sentence(
    run_here: Run, files: tuple[str, ...], options: tuple[str, ...], sentence: str
) -> None:
    done = run_here("study", "demo", *files, *options)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_study_refuses_gold_without_target_and_unequal_files(
    run_here: Run, files: tuple[str, ...], gold: tuple[str, str], write_lines: WriteLines
) -> None:
    done = run_here("study", "demo", *files[:2], *gold)
    assert (done.returncode, "--gold needs --target" in done.stderr) == (2, True)
    done = run_here("study", "demo", *files[:2], "--target", write_lines("short", "La soupe."))
    assert (done.returncode, "equally many lines" in done.stderr) == (2, True)


def test_translate_and_score_under_a_cut_use_the_engine(
    run_here: Run, files: tuple[str, ...]
) -> None:
    plain = run_here("translate", "demo", "-i", files[1])
    cut = run_here("translate", "demo", "-i", files[1], "--change", CUT)
    assert (cut.returncode, "greedily" in cut.stderr) == (0, False)
    assert cut.stdout != plain.stdout
    scores = run_here("score", "demo", *files), run_here("score", "demo", *files, "--change", CUT)
    for before, after in zip(*(done.stdout.split() for done in scores), strict=True):
        assert float(after) < float(before)


def test_translate_under_another_change_takes_a_beam_and_links(
    run_here: Run, files: tuple[str, ...]
) -> None:
    change = ("--change", "average decoder.1.cross.0", "--beam", "3")
    done = run_here("translate", "demo", "-i", files[1], *change)
    assert (done.returncode, done.stderr) == (0, "")
    linked = run_here("translate", "demo", "-i", files[1], *change, "--align", "--json")
    answers = list(map(json.loads, linked.stdout.splitlines()))
    assert [one["translation"] for one in answers] == done.stdout.splitlines()
    assert all(one["hypotheses"][0]["alignment"] for one in answers)
    done = run_here("translate", "demo", "-i", files[1], *change, "--ensemble", "demo")
    assert (done.returncode, "Changes need one model" in done.stderr) == (2, True)


def test_look_follows_what_the_changed_model_writes(run_here: Run) -> None:
    line = "The pizza came out of the oven and it tasted good."
    change = ("--change", "cut word pizza", "--decode-changed")
    done = run_here("look", "demo", line, *change, "--beam", "3")
    demo = pellucid.load("demo")
    written = demo.translate(line, changes=change[1], beam=3).text
    assert written != demo.translate(line, beam=3).text
    shown = f"Target {written.removesuffix('.')} . </s>"
    assert (done.returncode, shown in " ".join(done.stdout.split())) == (0, True)
    done = run_here("look", "demo", line, "--decode-changed")
    assert (done.returncode, "--decode-changed needs --change" in done.stderr) == (2, True)
    done = run_here("look", "demo", line, *change, "--translation", "La pizza.")
    assert (done.returncode, "it is not decoded" in done.stderr) == (2, True)


def test_study_and_align_take_a_change(run_here: Run, files: tuple[str, ...]) -> None:
    change = ("--change", "average decoder.1.cross.0")
    done = run_here("study", "demo", *files, *change, "--head", "decoder.1.cross.0", "--json")
    assert (done.returncode, done.stderr) == (0, f"note: The model is changed: {change[1]}.\n")
    (head,) = json.loads(done.stdout)["heads"]
    assert head["confidence"] < 0.3
    plain, changed = (
        run_here("align", "demo", *files, *given).stdout.split() for given in ((), change)
    )
    # Every word is linked to every other one.
    assert len(changed) > 3 * len(plain)
    for command in ("study", "align"):
        done = run_here(command, "demo", *files, "--change", "cut decoder.9")
        assert (done.returncode, "A layer must be from 0 to 1" in done.stderr) == (2, True)


@pytest.mark.filterwarnings("default::UserWarning")
def test_word_that_lines_lack_is_said_as_any_warning(run_here: Run, files: tuple[str, ...]) -> None:
    done = run_here("translate", "demo", "-i", files[1], "--change", "cut word zebra")
    assert (done.returncode, done.stdout.splitlines()) == (0, _translate(run_here, files[1]))
    assert done.stderr.startswith("warning: 'cut word zebra' changed nothing in ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("search", "how"),
    [
        (("--beam", "3"), {"beam": 3}),
        (("--n-best", "2", "--beam", "4"), {"n_best": 2, "beam": 4}),
        (("--set", "decoding.sample=true"), {"sample": True}),
    ],
)
def test_look_under_a_change_follows_the_search(
    run_here: Run, search: tuple[str, ...], how: dict[str, Any]
) -> None:
    line = "The dog ate the cake because it was hungry."
    change = "cut encoder.*.self.*:6>1"
    search = (*search, "--set", "decoding.min_length=14")
    shown = run_here("look", "demo", line, "--change", change, *search)
    written = pellucid.load("demo").translate(line, changes=change, min_length=14, **how)
    assert f"Now {written.text}" in " ".join(shown.stdout.split())


def test_evaluate_under_a_change_compares_with_the_unchanged_model(
    run_here: Run, files: tuple[str, ...], write_lines: WriteLines
) -> None:
    given = ("--source", files[1], "--reference", files[3])
    done = run_here("evaluate", "demo", *given, "--change", CUT, "--json")
    record = json.loads(done.stdout)
    plain = json.loads(run_here("evaluate", "demo", *given, "--json").stdout)
    assert record["unchanged"]["bleu"]["score"] == pytest.approx(plain["bleu"]["score"])
    assert record["bleu"]["score"] < plain["bleu"]["score"]
    cut = run_here("translate", "demo", "-i", files[1], "--change", CUT).stdout.splitlines()
    by_file = run_here(
        *("evaluate", "--hypothesis", write_lines("cut", *cut), *given[2:], "--json"),
        *("--against", write_lines("plain", *_translate(run_here, files[1]))),
    )
    other = json.loads(by_file.stdout)
    assert other["against"]["bleu"]["p_value"] == record["unchanged"]["bleu"]["p_value"]
    text = run_here("evaluate", "demo", *given, "--change", CUT).stdout
    assert "against the unchanged model's" in text
    done = run_here("evaluate", "demo", *given, "--change", CUT, "--against", files[3])
    assert (done.returncode, "--change cannot be combined with --against" in done.stderr) == (
        2,
        True,
    )
    done = run_here("evaluate", "--hypothesis", *files[3:4], *given[2:], "--change", CUT)
    assert (done.returncode, "--change needs MODEL" in done.stderr) == (2, True)


def _translate(run_here: Run, source: str) -> list[str]:
    done = run_here("translate", "demo", "-i", source, "--precision", "float32")
    return done.stdout.splitlines()


@pytest.fixture
def run(tmp_path: Path, bundle_folder: Path) -> Path:
    for name in ("untrained", "history/step-00000100"):
        shutil.copytree(bundle_folder, tmp_path / "run" / name)
    return tmp_path / "run"


def test_history_writes_a_table_records_and_a_picture(
    run_here: Run, run: Path, tmp_path: Path, write_lines: WriteLines
) -> None:
    pronouns = {"source": 8, "source_antecedent": 1, "target": 7, "target_antecedent": 1}
    texts = {
        "source": "The pizza came out of the oven and it tasted good .",
        "target": "La pizza est sortie du four et elle avait bon goût .",
        "antecedents": json.dumps({"pronouns": [pronouns]}),
    }
    files = [f"--{name}={write_lines(name, line)}" for name, line in texts.items()]
    picture = tmp_path / "heads.svg"
    command = ("history", str(run), *files, "--head", "encoder.*.self.*")
    done = run_here(*command, "-o", str(picture), "-o", "-")
    assert (done.returncode, done.stderr) == (0, "")
    title, _, heading, *rows = done.stdout.splitlines()
    assert title == "1 line. Weight of a pronoun's row on its antecedent."
    assert heading.split()[:5] == ["head", "step", "0", "step", "100"]
    assert len(rows) == 2
    assert "<animate" in picture.read_text("utf-8")
    record = json.loads(run_here(*command, "--json").stdout)
    assert [one["step"] for one in record["history"]] == [0] * 2 + [100] * 2
    lines = list(csv.DictReader(run_here(*command, "--csv").stdout.splitlines()))
    assert float(lines[3]["pronoun"]) == record["history"][3]["pronoun"]
    entropies = run_here(*command, "--figure", "entropy").stdout.splitlines()
    assert entropies[0] == "1 line. Entropy of a row's weights, in nats."
    # A run has no need of a bundle, and a file is not overwritten.
    again = run_here(*command, "-o", str(picture))
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--antecedents", "x"], "--antecedents needs --target"),
        (["-o", "x.html"], "must end in .svg, .json, .csv or .txt"),
        (["--figure", "cut_bleu"], "--figure must name a figure of heads"),
        (["--figure", "pronoun"], "--figure must name a figure of heads"),
        ([], "keeps no models. Name the folder of another run"),
    ],
)
def test_history_with_options_that_do_not_fit_is_refused(
    run_here: Run, files: tuple[str, ...], tmp_path: Path, options: list[str], said: str
) -> None:
    done = run_here("history", str(tmp_path / "no-run"), *files[:2], *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
