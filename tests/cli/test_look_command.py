"""``pellucid look``: its output, its files, and the requests that it refuses."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from of_subwords import SUBWORDS

import pellucid
from pellucid.inside import load_trace

Run = Callable[..., subprocess.CompletedProcess[str]]

HEAD_ROW = re.compile(r"(en|de)coder\.\d\.\w+\.\d +[-−\d]")
SOURCE = "The pizza came out of the oven."
WORDS = ("▁The", "▁pizza", "▁came", "▁out", "▁of", "▁the", "▁oven", ".", "</s>")


def test_look_shows_the_tokens_the_checks_and_one_head(run_here: Run) -> None:
    found = run_here("look", SUBWORDS, SOURCE)
    assert (found.returncode, found.stderr) == (0, "")
    trace = pellucid.load(SUBWORDS).look(SOURCE)
    for row, token in enumerate(trace.predicted_tokens):
        assert f"reads {trace.target_tokens[row]} → predicts {token}" in found.stdout
    assert "Checks" in found.stdout
    # A model that was taught no links shows first which words go together; the other has its head.
    assert 0 <= found.stdout.find("Words that go together") < found.stdout.find("Weights, decoder")
    assert "Words that go together" not in run_here("look", "demo", "The dog ran.").stdout
    named = re.search(r"Weights, decoder layer (\d), cross-attention, head (\d)", found.stdout)
    assert named is not None
    weights_TS = trace[f"decoder.{named[1]}.cross.{int(named[2])}.weights"]
    first = next(
        line for line in found.stdout.splitlines() if line.startswith("<s> → ") and "." in line
    )
    numbers = [float(word) for word in first.split() if re.fullmatch(r"[01]\.\d\d", word)]
    np.testing.assert_allclose(numbers, weights_TS[0, : len(numbers)], atol=0.005001)


def test_look_plain_says_every_row_in_a_sentence(
    run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PELLUCID_PLAIN", "1")
    found = run_here("look", SUBWORDS, SOURCE, "--head", "decoder.1.cross.1")
    rows = [line for line in found.stdout.splitlines() if re.match(r"row \d+, ", line)]
    assert len(rows) == 9
    assert rows[1].startswith("row 1, ▁La → ▁pizza: ▁pizza 1.00")
    assert "\x1b" not in found.stdout


def test_look_follows_a_row_and_verifies_its_weight(run_here: Run) -> None:
    found = run_here("look", SUBWORDS, SOURCE, "--row", "1", "--show", "verify")
    assert found.returncode == 0
    for title in ("The token's vector", "Scores become weights", "Logits become probabilities"):
        assert title in found.stdout
    (difference,) = re.findall(r"difference (\S+)\.$", " ".join(found.stdout.split()), re.M)
    assert float(difference) < 1e-6


def test_look_lists_words_whose_keys_match_in_layer_0_alone(run_here: Run) -> None:
    place = ("--row", "1", "--show", "words")
    found = run_here("look", SUBWORDS, SOURCE, *place, "--head", "encoder.0.self")
    after = found.stdout.split("Words whose keys")[1].splitlines()[1:]
    assert len([line for line in after if line.strip()]) == 10
    refused = run_here("look", SUBWORDS, SOURCE, *place, "--head", "encoder.1")
    assert refused.returncode == 2
    assert "--show words needs layer 0's self-attention" in refused.stderr


def test_look_writes_every_kind_of_file(run_here: Run, tmp_path: Path) -> None:
    kinds = ("npz", "json", "html", "svg", "png", "pdf")
    files = [word for kind in kinds for word in ("-o", str(tmp_path / f"t.{kind}"))]
    found = run_here("look", SUBWORDS, SOURCE, *files)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    traces = [load_trace(tmp_path / f"t.{kind}") for kind in ("npz", "json")]
    for name, array in traces[0].arrays.items():
        assert name.endswith(".weights")
        np.testing.assert_array_equal(traces[1][name], array)
    assert traces[0].source_tokens == WORDS
    starts = {"html": b"<!doctype html>", "svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    for kind, start in starts.items():
        assert (tmp_path / f"t.{kind}").read_bytes().startswith(start)


def test_look_numbers_the_files_of_several_hypotheses(run_here: Run, tmp_path: Path) -> None:
    search = ("--beam", "4", "--n-best", "3", "--head", "*.0", "--stage", "query")
    path = str(tmp_path / "t.npz")
    assert run_here("look", SUBWORDS, SOURCE, *search, "-o", path).stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.0.npz", "t.1.npz", "t.2.npz"]
    (translation,) = pellucid.load(SUBWORDS).translate([SOURCE], beam=4, n_best=3)
    for index, hypothesis in enumerate(translation.hypotheses):
        trace = load_trace(tmp_path / f"t.{index}.npz")
        assert trace.predicted_ids == hypothesis.ids
        assert set(trace.arrays) == {f"{s}.query" for s in SITES}


def test_look_packs_json_and_pages_whose_names_end_in_gz(run_here: Run, tmp_path: Path) -> None:
    for ending in ("", ".gz"):
        files = [f"-o{tmp_path / f't.{kind}{ending}'}" for kind in ("json", "html")]
        done = run_here("look", SUBWORDS, SOURCE, "--beam", "3", "--n-best", "2", *files)
        assert (done.returncode, done.stderr) == (0, "")
    for kind in ("json", "html"):
        for index in range(2):
            packed = tmp_path / f"t.{index}.{kind}.gz"
            plain = tmp_path / f"t.{index}.{kind}"
            assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert len(list(tmp_path.iterdir())) == 8


SITES = ("encoder.0.self", "decoder.0.self", "decoder.0.cross")


def test_look_all_says_its_size_first(run_here: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    found = run_here("look", SUBWORDS, SOURCE, "--everything", "--float64", "-o", str(path))
    said = re.search(r"holds 105 arrays, \d+\.\d MiB; as JSON about (\d+\.\d) MiB", found.stderr)
    assert said
    assert float(said[1]) == pytest.approx(path.stat().st_size / 2**20, rel=0.1)
    values = json.loads(path.read_text())
    assert values["dtype"] == "float64"
    assert len(values["decoder.logits"]) == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([SUBWORDS, ""], "line is empty"),
        ([SUBWORDS, SOURCE, "--head", "*.7"], "layer must be from 0 to 1"),
        ([SUBWORDS, SOURCE, "--head", "decoder.1.cros"], "Did you mean 'cross'"),
        ([SUBWORDS, SOURCE, "--stage", "wights"], "Did you mean 'weights'"),
        ([SUBWORDS, SOURCE, "--row", "1:x"], "N:C with the column of a key, but is '1:x'"),
        ([SUBWORDS, SOURCE, "--row", "x"], "--row must be a number from 0"),
        ([SUBWORDS, SOURCE, "--row", "9" * 5000], "--row must be a number from 0"),
        ([SUBWORDS, SOURCE, "--show", "words"], "--show=words needs --row"),
        (
            [SUBWORDS, SOURCE, "--change", "cut decoder.1.cross.0", "--random", "0"],
            "from 1 to 100,000",
        ),
        (
            [SUBWORDS, SOURCE, "--translation", "La pizza.", "--prefix", "La"],
            "--translation cannot be combined with --prefix",
        ),
        ([SUBWORDS, SOURCE, "--show", "verify"], "--show=verify needs --row"),
        (
            [SUBWORDS, SOURCE, "--translation", "La pizza.", "--beam", "5"],
            "--translation cannot be combined with --beam",
        ),
        (
            [SUBWORDS, SOURCE, "--row", "1", "--show", "heads"],
            "--row cannot be combined with --show=heads",
        ),
        (
            [SUBWORDS, SOURCE, "--show", "links", "--head", "*.0"],
            "--show=links cannot be combined with --head",
        ),
        (
            [SUBWORDS, SOURCE, "--show", "heads", "--everything"],
            "--show=heads cannot be combined with --everything",
        ),
        ([SUBWORDS, SOURCE, "--show", "trust"], "--show=trust needs --measure"),
        (
            [SUBWORDS, SOURCE, "--show", "lens", "--head", "encoder"],
            "--show=lens cannot be combined with --head",
        ),
        (
            [SUBWORDS, SOURCE, "--change", "cut decoder.0.cross.1", "--head", "*.*.self"],
            "--change cannot be combined with --head",
        ),
        (
            [SUBWORDS, SOURCE, "--measure", "occlusion", "--stage", "query"],
            "--measure cannot be combined with --stage",
        ),
        ([SUBWORDS, SOURCE, "--row", "1", "-o", "x.npz"], "--row cannot be combined with -o x.npz"),
        ([SUBWORDS, SOURCE, "-o", "x.npz.gz"], "NumPy does not unpack .gz"),
        ([SUBWORDS, SOURCE, "-o", "x.txt"], "must end in .html, .svg, .png, .pdf, .npz or .json"),
        ([SUBWORDS, SOURCE, "--row", "1", "--json"], "--row cannot be combined with --json"),
        (
            [SUBWORDS, SOURCE, "--measure", "weights:steps=3"],
            "Only integrated-gradients has steps",
        ),
        (
            [SUBWORDS, SOURCE, "--measure", "integrated-gradients:points=3"],
            "NAME:steps=N,baseline=zero or unknown, but is",
        ),
        ([SUBWORDS, SOURCE, "--row", "77"], "row must be from 0 to 8"),
        ([SUBWORDS, SOURCE, "--beam", "0"], "beam"),
        ([SUBWORDS, SOURCE, "--n-best", "5"], "n_best must be at most beam"),
        ([SUBWORDS, "a " * 400], "at most 256 tokens"),
        (["nowhere", SOURCE], "nowhere does not exist"),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_look_refuses_in_one_sentence(run_here: Run, arguments: list[str], message: str) -> None:
    found = run_here("look", *arguments)
    assert found.returncode == 2
    assert message in found.stderr
    assert found.stderr.count("\n") == 1
    assert "Traceback" not in found.stderr


def test_look_into_a_folder_that_is_not_there_is_told(run_here: Run, tmp_path: Path) -> None:
    for kind in ("npz", "json", "svg"):
        found = run_here("look", SUBWORDS, SOURCE, "-o", str(tmp_path / "no" / f"t.{kind}"))
        assert found.returncode == 2
        assert found.stderr.count("\n") == 1
        assert not (tmp_path / "no").exists()


def test_look_in_a_terminal_of_another_encoding_writes_ascii(run_forked: Run) -> None:
    found = run_forked(
        "look", SUBWORDS, SOURCE, env={"PYTHONIOENCODING": "ascii", "PELLUCID_PLAIN": "1"}
    )
    assert found.stdout.isascii()
    assert "_La > _pizza" in found.stdout


def test_sub_layer_without_heads_needs_no_stage(run_here: Run) -> None:
    place = ("--head", "decoder.1.feed_forward")
    for options in ((), ("--measure", "logit-attribution")):
        done = run_here("look", "demo", "The cake was good.", *options, *place)
        assert done.returncode == 0, done.stderr
    assert "decoder.1.feed_forward" in done.stdout


def test_look_lists_all_heads_sorted(run_here: Run) -> None:
    found = run_here("look", SUBWORDS, SOURCE, "--show", "heads", "--sort", "cut_effect")
    rows = [line.split() for line in found.stdout.splitlines() if HEAD_ROW.match(line)]
    assert len(rows) == 24
    effects = [float(row[-1].replace("−", "-")) for row in rows]
    assert effects == sorted(effects)
    assert effects[0] < -0.5


def test_look_lists_the_alignment_error_beside_links_that_are_given(run_here: Run) -> None:
    options = ("--gold-links", "0-0 1-1 2-2 2-3 4-4 5-4 6-5", "--sort", "alignment_error")
    heads = ("--show", "heads", *options)
    found = run_here("look", SUBWORDS, SOURCE, *heads)
    assert (found.returncode, found.stderr) == (0, "")
    rows = [line.split() for line in found.stdout.splitlines() if HEAD_ROW.match(line)]
    assert [len(row) for row in rows] == [8] * 8 + [7] * 16
    assert all(".cross." in row[0] for row in rows[:8])
    errors = [float(row[-1]) for row in rows[:8]]
    assert errors == sorted(errors)
    assert errors[0] < 0.3


@pytest.mark.parametrize("word", ["pizza", "1"])
def test_look_cuts_a_word(run_here: Run, word: str) -> None:
    found = run_here("look", SUBWORDS, SOURCE, "--change", f"cut word {word}")
    assert found.returncode == 0
    assert "cut encoder.*.self.*:*>1, cut decoder.*.cross.*:*>1" in " ".join(found.stdout.split())
    assert "pizza →" in found.stdout


def test_look_says_what_a_change_does(run_here: Run) -> None:
    cut = ("--change", "cut decoder.0.self.1", "--random", "3")
    found = run_here("look", SUBWORDS, SOURCE, *cut)
    assert (found.returncode, found.stderr) == (0, "")
    (before, after, effect) = re.search(
        r"log-probability (\S+) → (\S+) \((\S+)\)", found.stdout
    ).groups()  # type: ignore[union-attr]
    assert float(after) - float(before) == pytest.approx(float(effect), abs=2e-4)
    assert float(effect) < -0.3
    assert "The same change to 3 other heads" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--change", "foo"], "must name an action and a place"),
        (["--change", "cut decoder.7.cross.0"], "must be from 0 to 1"),
        (["--random", "3"], "--random needs --change"),
        (["--sort", "entropy"], "--sort needs --show=heads"),
        (["--gold-links", "0-0"], "--gold-links needs --show=heads"),
        (["--show", "heads", "--gold-links", "0-99"], "names word 99 of a target"),
        (["--show", "heads", "--gold-links", "0=1"], "A link must be written i-j"),
        (["--change", "cut word pizzza"], "Did you mean 'pizza'"),
        (["--change", "cut word"], "must name one word, as in 'cut word pizza', but is 'cut word'"),
        (["--change", "zero word the oven"], "must name one word"),
        (["--change", "cut word pizza", "--random", "3"], "one head, but is 'cut word pizza'"),
        (["--change", "cut word 9"], "its number from 0 to 6"),
        (["--show", "heads", "--sort", "entorpy"], "Did you mean 'entropy'"),
        (["--change", f"cut decoder.1.cross.{'9' * 5000}"], "must be a number from 0 or *"),
        (["--change", f"cut word {'9' * 5000}"], "its number from 0 to 6"),
        (["--show", "heads", "--gold-links", f"0-{'9' * 5000}"], "A link must be written i-j"),
        (["--compare-head", f"decoder.1.cross.{'0' * 5000}"], "must be a number from 0 or *"),
        (["--head", "9" * 5000], "must be encoder, decoder or *"),
    ],
    ids=str,
)
def test_look_refuses_changes_and_sorting_in_one_sentence(
    run_here: Run, arguments: list[str], message: str
) -> None:
    found = run_here("look", SUBWORDS, SOURCE, *arguments)
    assert found.returncode == 2
    assert message in found.stderr


def test_look_compares_two_lines_two_heads_and_two_models(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PELLUCID_PLAIN", "1")
    other = "The bread came out of the oven."
    one = ("--head", "decoder.1.cross.1")
    first = pellucid.load(SUBWORDS).look(SOURCE)["decoder.1.cross"]
    found = run_here("look", SUBWORDS, SOURCE, *one, "--compare-text", other)
    assert (found.returncode, found.stderr) == (0, "")
    assert "Weight on columns that only one of them has" in found.stdout
    found = run_here("look", SUBWORDS, SOURCE, *one, "--compare-head", "decoder.1.cross.3")
    row = next(line for line in found.stdout.splitlines() if line.startswith("row 2, "))
    differences = first[1, 2] - first[3, 2]
    largest = differences[np.abs(differences).argmax()]
    assert float(re.findall(r"-?\d\.\d\d", row)[0]) == pytest.approx(largest, abs=0.006)
    begun = ("--prefix", "Le", "--compare-head", "decoder.1.cross.3")
    found = run_here("look", SUBWORDS, SOURCE, *one, *begun)
    assert (found.returncode, found.stderr) == (0, "")
    assert "▁Le" in found.stdout
    assert "only one of them has" not in found.stdout
    head = ("--compare-head", "decoder.1.cross.1")
    same = run_here("look", SUBWORDS, SOURCE, *one, "--compare-model", SUBWORDS, *head)
    assert "on average: 0.000" in " ".join(same.stdout.split())
    picture = tmp_path / "difference.png"
    asked = (*one, "--compare-text", other, "-o", str(picture))
    assert run_here("look", SUBWORDS, SOURCE, *asked).returncode == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_look_refuses_to_compare_what_is_of_another_kind(run_here: Run) -> None:
    one = ("--head", "decoder.1.cross.1")
    for head, message in (
        ("encoder.0.self.1", "of one part and kind"),
        ("decoder.1.cross.9", "must be one of those that the trace holds"),
        ("decoder.*.cross.1", "A single head must be named"),
    ):
        found = run_here("look", SUBWORDS, SOURCE, *one, "--compare-head", head)
        assert found.returncode == 2
        assert message in found.stderr


def test_look_draws_the_five_stages_of_one_head(run_here: Run, tmp_path: Path) -> None:
    one = ("--everything", "--head", "decoder.0.self.2")
    path = tmp_path / "stages.svg"
    assert run_here("look", SUBWORDS, "A cat.", *one, "-o", str(path)).returncode == 0
    drawing = path.read_text()
    for stage in ("scores", "scaled", "masked", "weights", "context"):
        assert stage in drawing


def test_why_by_weights_says_that_they_cannot_tell(run_here: Run) -> None:
    words = ("La", "--not", "Le", "--measure", "weights", "--measure", "occlusion")
    found = run_here("why", SUBWORDS, SOURCE, *words)
    assert found.returncode == 0, found.stderr
    text = " ".join(found.stdout.split())
    assert "weights cannot say why La and not Le: both words are predicted from the same" in text
    assert "all 0" not in text
    assert "occlusion, decoder, words removed, difference of the two words" in text


def test_why_names_source_and_written_words_apart(run_here: Run) -> None:
    found = run_here("why", SUBWORDS, SOURCE, "pizza", "--measure", "integrated-gradients")
    assert found.returncode == 0, found.stderr
    assert re.search(r"^Why pizza and not \S+$", found.stdout, re.M)
    assert re.search(r"^For pizza: .*already written: \S+ \+", found.stdout, re.M)


def test_a_sub_layer_without_weights_can_be_measured(run_here: Run) -> None:
    place = ("--measure", "logit-attribution", "--head", "decoder.1.feed_forward")
    shown = run_here("look", "demo", "The dog ran.", *place)
    assert shown.returncode == 0, shown.stderr
    assert "decoder.1.feed_forward " in shown.stdout
    shown = run_here("why", "demo", "The dog ran.", "chien", *place)
    assert shown.returncode == 0, shown.stderr


def test_trust_of_what_orders_no_words_is_refused_before_anything_is_shown(run_here: Run) -> None:
    asked = ("--measure", "logit-attribution", "--show", "trust")
    shown = run_here("look", "demo", "The dog ran.", *asked)
    assert (shown.returncode, shown.stdout) == (2, "")


def test_changes_of_several_hypotheses_are_numbered(run_here: Run) -> None:
    asked = ("--change", "cut decoder.1.cross.0", "--beam", "2", "--n-best", "2")
    shown = run_here("look", "demo", "The dog ran.", *asked)
    assert "\n\nHypothesis 1\nWhat if: cut decoder.1.cross.0\n" in shown.stdout


def test_why_splits_the_difference_among_parts_of_the_model(run_here: Run) -> None:
    words = ("why", SUBWORDS, SOURCE, "La", "--not", "Le")
    asked = (*words, "--measure", "logit-attribution", "--measure", "occlusion")
    found = run_here(*asked)
    assert found.returncode == 0, found.stderr
    added = re.search(r"All parts add up to (\S+); the model's own number is (\S+)\.", found.stdout)
    assert added is not None
    assert added[1] == added[2]
    assert re.search(r"^For La: (encoder|decoder|\(biases)", found.stdout, re.M)
    # One measure of words has nothing to disagree with.
    assert "disagree" not in found.stdout
    (record,) = json.loads(run_here(*asked[:-2], "--json").stdout)["measures"]
    assert record["rows"][-1] == "(biases)"
    assert sum(map(sum, record["values"])) == pytest.approx(float(added[1]), abs=1e-3)
    refused = run_here(*words, "--measure", "q-composition")
    assert refused.returncode == 2
    assert "q-composition is of the weights" in refused.stderr


def test_look_measures_compares_and_reads_layers(run_here: Run) -> None:
    found = run_here("look", SUBWORDS, SOURCE, "--measure", "alti", "--measure", "occlusion")
    assert (found.returncode, found.stderr) == (0, "")
    assert "Share of the source" in found.stdout
    assert "How similarly they order the source words" in found.stdout
    assert re.search(r"^The same word has the most in \d+ of \d+ rows\.$", found.stdout, re.M)
    trust = run_here("look", SUBWORDS, SOURCE, "--show", "trust", "--measure", "weights")
    assert "compr." in trust.stdout
    lens = run_here("look", SUBWORDS, SOURCE, "--show", "lens")
    assert "after 2: La pizza est sortie du four." in lens.stdout
    for arguments, message in (
        (("--measure", "alit"), "Did you mean 'alti'"),
        (("--measure", "occlusion", "--head", "decoder.1"), "cannot be combined with a layer"),
        (
            ("--measure", "norms", "--head", "decoder.0", "--head", "decoder.1"),
            "must be of one place",
        ),
    ):
        refused = run_here("look", SUBWORDS, SOURCE, *arguments)
        assert refused.returncode == 2
        assert message in refused.stderr


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
@pytest.mark.parametrize("kind", ["npz", "json", "html"])
def test_look_never_replaces_a_device(run_here: Run, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x.{kind}"
    for device, code in (("/dev/full", 1), ("/dev/null", 0)):
        path.unlink(missing_ok=True)
        path.symlink_to(device)
        found = run_here("look", SUBWORDS, "A cat.", "-o", str(path))
        assert (found.returncode, found.stderr.count("\n")) == (code, code)
        assert Path(device).is_char_device()


def test_look_writes_json_to_standard_output(run_forked: Run) -> None:
    for names in ([], ["-o", "-"]):
        found = run_forked("look", SUBWORDS, "A cat.", "--json", *names)
        assert (found.returncode, found.stderr) == (0, "")
        assert json.loads(found.stdout)["source_tokens"][-1] == "</s>"


def test_look_refuses_two_things_in_one_place(run_here: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    for arguments, message in (
        (("-o", f"{path}.npz", "-o", f"{path}.npz"), "its own file"),
        (("--json", "--n-best", "2", "--beam", "2"), "--json is one place"),
    ):
        refused = run_here("look", SUBWORDS, "A cat.", *arguments)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert message in refused.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("look", SUBWORDS, "A cat.", "--json", "-o", "/dev/fd/1"), b'{"format": 1'),
        (("translate", SUBWORDS, "-o", "/dev/fd/1"), b"le chat.\n"),
    ],
    ids=["json", "translate"],
)
def test_a_file_behind_standard_output_is_added_to_and_never_replaced(
    run_forked: Run, tmp_path: Path, arguments: tuple[str, ...], expected: bytes
) -> None:
    path = tmp_path / "out"
    with path.open("w+b", buffering=0) as file:
        file.write(b"# before\n")
        found = run_forked(*arguments, stdin="A cat.\n", stdout=file)
    assert (found.returncode, found.stderr) == (0, "")
    before, after = path.read_bytes().split(b"\n", 1)
    assert before == b"# before"
    assert after.startswith(expected)
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_contexts_compare_a_word_in_several_sentences(run_here: Run) -> None:
    sentences = ("The dog was next to the oven.", "The oven is good.")
    done = run_here("look", "demo", "--contexts", "oven", *sentences)

    assert done.returncode == 0, done.stderr
    assert "The word 'oven' in the encoder, 2 times:" in done.stdout
    assert sentences[1] in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(("emb", "layer"))]
    assert rows[0] == ["embedding", "1.0000"]
    assert len(rows) >= 3
    assert float(rows[-1][-1]) < 1


def test_links_name_every_word_once(run_here: Run) -> None:
    done = run_here(
        "look",
        "demo",
        "The dog was sleeping.",
        "--show",
        "links",
        "--translation",
        "Le chien dormait.",
    )

    assert done.returncode == 0, done.stderr
    left = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert [word for word in left if word != "(nothing)"] == ["The", "dog", "was", "sleeping."]


def test_whole_shows_every_number_of_a_vector(run_here: Run) -> None:
    some, whole = (
        run_here("look", "demo", "The dog", "--row", "0", *more) for more in ((), ("--everything",))
    )

    assert "Vectors: their length and first 5 numbers. All: --everything." in some.stdout
    assert "All: --everything." not in whole.stdout
    assert max(map(len, whole.stdout.splitlines())) <= 80
    assert len(whole.stdout) > 3 * len(some.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "b"), "look takes one line, but 2 are given."),
        (
            ("dog", "--contexts", "dog", "--head", "*.0"),
            "--contexts cannot be combined with --head",
        ),
        (("dog", "--contexts", "dog", "--beam", "2"), "--contexts cannot be combined with --beam"),
        (
            ("dog", "--contexts", "dog", "--show", "links"),
            "--contexts cannot be combined with --sho",
        ),
        (("dog", "--contexts", "cat"), "The sentence must have the word 'cat'"),
        (("dog", "--measure", "foo"), "The measure 'foo' does not exist. Known are: alti, gra"),
        (("\udcff\udcfe",), "TEXT must be UTF-8 text, but is '\\udcff\\udcfe'."),
        (("dog", "--translation", "\udcff"), "--translation must be UTF-8 text"),
        (("dog", "--prefix", "\udcff"), "--prefix must be UTF-8 text"),
        (("dog", "--compare-text", "\udcff"), "--compare-text must be UTF-8 text"),
    ],
)
def test_texts_and_options_that_do_not_fit_are_refused(
    run_here: Run, arguments: tuple[str, ...], message: str
) -> None:
    done = run_here("look", "demo", *arguments)

    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "num_loaded"),
    [
        (["--contexts", "pizza", "The pizza is good."], 1),
        (["--compare-model", SUBWORDS, "--compare-head", "decoder.1.cross.1"], 2),
        (["--compare-model", "demo"], 2),
        (["--show", "lens"], 1),
    ],
    ids=str,
)
def test_look_loads_every_model_with_the_threads_asked_for(
    arguments: list[str], num_loaded: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pellucid.cli.app import dispatch
    from pellucid.cli.look import line, sentence_tables, two
    from pellucid.translate.translator import load

    asked = []

    def load_and_note(model: str, *, threads: int | None = None) -> pellucid.Translator:
        asked.append(threads)
        return load(model)

    for module in (line, sentence_tables, two):
        monkeypatch.setattr(module, "load", load_and_note)
    assert dispatch(["look", str(SUBWORDS), SOURCE, *map(str, arguments), "--threads", "1"]) == 0
    assert asked == [1] * num_loaded


def test_look_and_why_read_a_line_of_standard_input(run_here: Run) -> None:
    given = run_here("look", SUBWORDS, SOURCE, "--show", "links").stdout
    for text in ([], ["-"]):
        done = run_here("look", SUBWORDS, *text, "--show", "links", stdin=f"{SOURCE}\n")
        assert (done.returncode, done.stdout) == (0, given)
    done = run_here("look", SUBWORDS, "-", stdin="a\nb\n")
    assert (done.returncode, "standard input has 2. Send one" in done.stderr) == (2, True)
    done = run_here("look", SUBWORDS, "-", stdin="")
    assert (done.returncode, "standard input is empty" in done.stderr) == (2, True)
    asked = ("pizza", "--measure", "occlusion")
    done = run_here("why", SUBWORDS, "-", *asked, stdin=f"{SOURCE}\n")
    assert done.stdout == run_here("why", SUBWORDS, SOURCE, *asked).stdout


def test_look_replaces_a_file_only_if_it_may(run_here: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.1.json"
    path.write_text("mine")
    many = ("--beam", "2", "--n-best", "2", "-o", str(tmp_path / "t.json"))
    done = run_here("look", SUBWORDS, "A cat.", *many)
    assert (done.returncode, f"{path} exists" in done.stderr) == (2, True)
    assert path.read_text() == "mine"
    assert not (tmp_path / "t.0.json").exists()
    assert run_here("look", SUBWORDS, "A cat.", *many, "--overwrite").returncode == 0
    assert path.read_text() != "mine"


def test_row_that_does_not_exist_is_refused_before_anything_is_shown(run_here: Run) -> None:
    for words in (("--row", "99"), ("--row", "1", "--show", "words", "--head", "encoder.1")):
        done = run_here("look", "demo", "The dog", *words)
        assert (done.returncode, done.stdout) == (2, "")
