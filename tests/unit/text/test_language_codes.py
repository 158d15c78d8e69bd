"""Language codes: no word of the text, and said if missing or unknown."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from small_imported import make_tokenizer, write_imported

from pellucid.bundle import Bundle
from pellucid.errors import InputError
from pellucid.inside.align.attention_links import align_pairs
from pellucid.inside.align.link_views import View
from pellucid.inside.changes.written_changes import parse_changes
from pellucid.text.language_tokens import CodeFaults, find_code, find_fault, split_code, with_code
from pellucid.text.token_words import source_pieces, words_of_tokens
from pellucid.text.tokenizers.tokenizer import Tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]
VIEW = View(1, "head", 0, "predicts")
OPTIONS = ("--head", "decoder.1.cross.0", "--map", "head", "--convention", "predicts")
TEXTS = ["the cat sleeps", "a dog eats an apple"]
TARGETS = ["le chat dort", "chien mange une pomme"]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return write_imported(tmp_path_factory.mktemp("codes") / "imported", ("fra", "zho_Hans"))


def test_codes_of_a_model_are_those_of_its_vocabulary() -> None:
    assert make_tokenizer(("fra", "zho_Hans")).language_codes == (">>fra<<", ">>zho_Hans<<")
    assert make_tokenizer().language_codes == ()


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (">>fra<< the cat", (">>fra<<", " the cat")),
        (">>xyz<< the cat", (">>xyz<<", " the cat")),
        ("  >>fra<<the cat", (">>fra<<", "the cat")),
        (">>fra<<", (">>fra<<", "")),
        (">>hin<< we use cout<< here", (">>hin<<", " we use cout<< here")),
        ("the >>fra<< cat", ("", "the >>fra<< cat")),
        (">>the cat<<", ("", ">>the cat<<")),
        ("", ("", "")),
    ],
)
def test_code_is_split_off_known_or_not(line: str, parts: tuple[str, str]) -> None:
    assert split_code(make_tokenizer(("fra",)), line) == parts
    # A model without codes reads it as text.
    assert split_code(make_tokenizer(), line) == ("", line)


def test_code_after_spaces_is_one_token() -> None:
    tokenizer = make_tokenizer(("fra",))
    plain = tokenizer.encode_source(">>fra<< the cat")
    assert tokenizer.encode_source("  >>fra<< the cat") == plain
    assert tokenizer.encode_source(">>fra<<the cat") == plain
    assert tokenizer.language_code(" >>fra<< the cat") == " >>fra<<"


@pytest.mark.parametrize("code", [">>fra<< ", ">>fra<<", "  >>fra<< ", ">>xyz<< ", ">>ñ<< "])
def test_tokens_of_a_code_belong_to_no_word(code: str) -> None:
    tokenizer = make_tokenizer(("fra",))
    text = "the cat sleeps 日本 near"
    alone = words_of_tokens(tokenizer, "source", text, tokenizer.encode_source(text))
    line = code + text
    found = words_of_tokens(tokenizer, "source", line, tokenizer.encode_source(line))
    assert [list(words) for words in found[-len(alone) :]] == [list(words) for words in alone]
    assert not any(map(list, found[: -len(alone)]))
    assert source_pieces(tokenizer, line) == text.split()


def test_links_count_the_words_of_the_text_alone(bundle: Bundle) -> None:
    def align(code: str) -> list[frozenset[tuple[int, int]]]:
        lines = [f"{code}{text}" for text in TEXTS]
        found = list(align_pairs(bundle.model, bundle.tokenizer, lines, TARGETS, [VIEW]))
        assert [len(pair.source_words) for pair in found] == [3, 5]
        assert [pair.source.strip() for pair in found] == TEXTS
        return [pair.links[0] for pair in found]

    for code in ("", ">>fra<< ", ">>zho_Hans<<", ">>xyz<< "):
        for links, text in zip(align(code), TEXTS, strict=True):
            assert {i for i, _ in links} == set(range(len(text.split())))
    (only,) = align_pairs(bundle.model, bundle.tokenizer, [">>fra<<"], ["le"], [VIEW])
    assert (only.links[0], len(only.source_words), only.error) == (frozenset(), 0, None)


def test_changes_name_the_words_of_the_text_alone(bundle: Bundle) -> None:
    line = ">>fra<< the cat sleeps"
    ids = bundle.tokenizer.encode_source(line)
    by_name = parse_changes(["cut word cat"], bundle.tokenizer, line, ids)
    assert by_name == parse_changes(["cut word 1"], bundle.tokenizer, line, ids)


def faults_of(tokenizer: Tokenizer, lines: list[str]) -> str:
    faults = CodeFaults()
    for number, line in enumerate(lines):
        faults.add(number, find_fault(tokenizer, line))
    return faults.sentence(tokenizer)


def test_faults_are_counted_with_examples_and_what_the_codes_are() -> None:
    lines = [">>fra<< a", "b", "", ">>xyz<< c", "d", "e", "f", " >>deu<< g", ">>fr<< h"]
    assert faults_of(make_tokenizer(("fra", "deu")), lines) == (
        "4 lines have no language code (line 2, line 5, line 6 and 1 more), and 2 lines have a "
        "language code that is not the model's (line 4: >>xyz<<, line 9: >>fr<<). Begin each "
        "line with one of the model's codes: >>fra<< >>deu<<."
    )
    assert faults_of(make_tokenizer(), ["the cat >> all << dogs"]) == ""
    without = faults_of(make_tokenizer(), ["a", ">>fra<< the cat"])
    assert without.startswith("1 line has a language code that is not the model's (line 2: >>fra<<")
    assert without.endswith("leave them out.")


def test_long_list_of_codes_is_cut() -> None:
    tokenizer = make_tokenizer(tuple(f"l{number}" for number in range(40)))
    assert faults_of(tokenizer, ["a"]).endswith(">>l11<< and 28 more.")


def test_code_is_found_by_its_language_or_refused() -> None:
    tokenizer = make_tokenizer(("fra", "deu"))
    assert find_code(tokenizer, "fra") == find_code(tokenizer, ">>fra<<") == ">>fra<<"
    for name in ("fr", "French", "français", "fra_Latn"):
        assert find_code(tokenizer, name) == ">>fra<<"
    with pytest.raises(InputError, match=r"has a code for, but is 'frb'.*'fra'"):
        find_code(tokenizer, "frb")
    chinese = make_tokenizer(("cmn_Hans", "cmn_Hant"))
    assert find_code(chinese, "zh-TW") == ">>cmn_Hant<<"
    brazilian = make_tokenizer(("pt_BR", "pt_PT"))
    with pytest.raises(InputError, match=r"but is 'pt'\. Name one of pt_BR, pt_PT\."):
        find_code(brazilian, "pt")
    with pytest.raises(InputError, match="this model has none"):
        find_code(make_tokenizer(), "fra")


def test_code_is_put_in_place_of_another() -> None:
    tokenizer = make_tokenizer(("fra", "deu"))
    lines = ["the cat", ">>deu<< the cat", ">>xyz<<the cat", "  ", ""]
    found = [with_code(tokenizer, ">>fra<<", line) for line in lines]
    assert found == [">>fra<< the cat"] * 3 + ["  ", ""]


def test_align_with_gold_links_of_the_text_alone(
    bundle: Bundle, run_here: Run, write_lines: WriteLines
) -> None:
    gold = write_lines("gold", "0-0 1-1 2-2", "0-0 1-0 2-1 3-2 4-3")
    target = write_lines("target", *TARGETS)
    reports = []
    for code in (">>fra<< ", ">>xyz<< ", ""):
        source = write_lines("source", *(f"{code}{text}" for text in TEXTS))
        files = ("--source", source, "--target", target, "--gold", gold)
        done = run_here("align", str(bundle.folder), *files, "--json")
        assert done.returncode == 0
        assert ("language code" in done.stderr) is (code != ">>fra<< ")
        assert done.stderr.count("\n") == (code != ">>fra<< ")
        reports.append(json.loads(done.stdout))
    assert reports[0]["best"]["num_sentences"] == 2
    # A link to the word after the last is refused, as the code is no word.
    last = write_lines("gold", "3-0", "0-0")
    done = run_here("align", str(bundle.folder), *files[:4], "--gold", last)
    assert (done.returncode, "gold:1" in done.stderr) == (2, True)


def test_align_says_what_is_wrong_with_codes(
    bundle: Bundle, run_here: Run, write_lines: WriteLines
) -> None:
    source = write_lines("source", ">>fra<< the cat", "the cat", ">>de<< the cat")
    target = write_lines("target", *["le chat"] * 3)
    done = run_here("align", str(bundle.folder), "--source", source, "--target", target, *OPTIONS)
    assert done.returncode == 0
    assert done.stderr == (
        "warning: 1 line has no language code (line 2), and 1 line has a language code that is "
        "not the model's (line 3: >>de<<). Begin each line with one of the model's codes: "
        ">>fra<< >>zho_Hans<<.\n"
    )


def test_inspect_lists_the_codes(bundle: Bundle, run_here: Run, tmp_path: Path) -> None:
    assert (
        "language_codes: >>fra<< >>zho_Hans<<\n" in run_here("inspect", str(bundle.folder)).stdout
    )
    found = json.loads(run_here("inspect", str(bundle.folder), "--json").stdout)
    assert found["language_codes"] == [">>fra<<", ">>zho_Hans<<"]
    plain = write_imported(tmp_path / "plain").folder
    assert "language_codes" not in run_here("inspect", str(plain)).stdout
    assert json.loads(run_here("inspect", str(plain), "--json").stdout)["language_codes"] == []


def translate(run_here: Run, bundle: Bundle, *options: str, lines: list[str]) -> tuple[str, str]:
    stdin = "".join(f"{line}\n" for line in lines)
    done = run_here(
        "translate", str(bundle.folder), "--set", "decoding.max_length=9", *options, stdin=stdin
    )
    assert done.returncode == 0
    return done.stdout, done.stderr


def test_translate_to_sets_the_code_of_every_line(bundle: Bundle, run_here: Run) -> None:
    lines = ["the cat", ">>zho_Hans<< the cat", ">>xyz<<the cat", "", ">>fra<<", "an apple"]
    wanted = [">>fra<< the cat"] * 3 + ["", "", ">>fra<< an apple"]
    expected, said = translate(run_here, bundle, lines=wanted)
    assert "language code" not in said
    for options in (("--to", "fra"), ("--to", ">>fra<<"), ("--to", "fra", "--stream")):
        found, said = translate(run_here, bundle, *options, lines=lines)
        assert found == expected
        assert "language code" not in said
    found, _ = translate(run_here, bundle, "--to", "fra", "--json", lines=lines)
    assert [json.loads(line)["source"] for line in found.splitlines()] == lines
    other, _ = translate(run_here, bundle, "--to", "zho_Hans", "--json", lines=lines)
    assert other != found


def test_translate_says_which_lines_have_no_code_of_the_model(
    bundle: Bundle, run_here: Run
) -> None:
    lines = [">>fra<< the cat", "the cat", "", ">>fr<< the cat"]
    found, said = translate(run_here, bundle, "--json", lines=lines)
    assert "1 line has no language code (line 2), and 1 line has" in said
    assert "(line 4: >>fr<<). Begin each line with one of the model's codes, or give --to" in said
    notes = [json.loads(line).get("notes", {}) for line in found.splitlines()]
    assert [one.get("language_code") for one in notes] == [None, "missing", None, ">>fr<<"]
    _, said = translate(run_here, bundle, "--stream", lines=lines)
    assert "1 line has no language code (line 2)" in said


def test_translate_to_a_language_without_a_code_is_refused(
    bundle: Bundle, run_here: Run, tmp_path: Path
) -> None:
    plain = write_imported(tmp_path / "plain")
    out = tmp_path / "out.txt"
    for one, said in ((bundle, "Did you mean 'fra'?"), (plain, "this model has none (frb)")):
        done = run_here("translate", str(one.folder), "--to", "frb", "-o", str(out), stdin="a\n")
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
        assert not out.exists()


def test_output_of_one_language_is_not_resumed_in_another(
    bundle: Bundle, run_here: Run, tmp_path: Path
) -> None:
    source, out = tmp_path / "source.txt", tmp_path / "out.txt"
    source.write_text("the cat\n")
    command = ("translate", str(bundle.folder), "-i", str(source), "-o", str(out))
    assert run_here(*command, "--to", "fra").returncode == 0
    done = run_here(*command, "--to", "zho_Hans")
    assert done.returncode == 2
    assert "exists" in done.stderr


def test_evaluate_says_which_lines_have_no_code_and_sets_one(
    run_here: Run, write_lines: WriteLines, bundle: Bundle
) -> None:
    files = ("--source", write_lines("source", *TEXTS), "--reference", write_lines("r", *TARGETS))
    plain = run_here("evaluate", str(bundle.folder), *files)
    assert "2 lines have no language code (line 1, line 2)" in plain.stderr
    assert "--to LANGUAGE" in plain.stderr
    coded = run_here("evaluate", str(bundle.folder), *files, "--to", "fra")
    assert (coded.returncode, "language code" in coded.stderr) == (0, False)
    own = write_lines("own", *(f">>fra<< {text}" for text in TEXTS))
    given = run_here("evaluate", str(bundle.folder), "--source", own, *files[2:])
    assert given.stdout == coded.stdout
    wrong = run_here("evaluate", str(bundle.folder), *files, "--to", "frb")
    assert (wrong.returncode, "Did you mean 'fra'" in wrong.stderr) == (2, True)
    useless = run_here("evaluate", "--hypothesis", files[3], *files[2:], "--to", "fra")
    assert (useless.returncode, "--to needs MODEL" in useless.stderr) == (2, True)


def test_score_sets_a_code(run_here: Run, write_lines: WriteLines, bundle: Bundle) -> None:
    target = ("--target", write_lines("target", *TARGETS))
    own = write_lines("own", *(f">>fra<< {text}" for text in TEXTS))
    want = run_here("score", str(bundle.folder), "--source", own, *target)
    found = run_here(
        "score", str(bundle.folder), "--source", write_lines("s", *TEXTS), *target, "--to", "fra"
    )
    assert (found.stdout, found.stderr) == (want.stdout, "")


def test_terms_of_a_glossary_are_counted_and_missing_ones_named(
    run_here: Run, write_lines: WriteLines
) -> None:
    from pellucid.cli.lines.notices import TermCounts
    from pellucid.decode.constraints.glossary import Glossary
    from pellucid.decode.constraints.terms import check_terms

    glossary = Glossary({"cat": "chat", "dog": "chien"}, match="forms", languages=("en", "fr"))
    counts = TermCounts("text", "see page.html")
    pairs = (
        ("two cats and a dog", "deux chats et un chien"),
        ("a cat", "un animal"),
        ("Cat", "chat"),
        ("an apple", "une pomme"),
        ("two cats", "deux chats"),
        ("a dog", "un chien"),
        ("a dog", "un chien"),
    )
    for number, (source, target) in enumerate(pairs):
        used = check_terms(glossary.terms_for(source), target)
        counts.add(number, [replace(one, reason="rare") for one in used] if number > 4 else used)
    assert list(counts.facts()) == [
        "Glossary: 7 terms were found in 6 of 7 texts.",
        "Glossary terms in another form: cat → chats (allowed form of chat), twice; cat → chat "
        "(other capitals).",
    ]
    assert list(counts.sentences()) == [
        "Glossary term not found in the translation: 1 line lacks one (2): cat → chat (not in the "
        "translation).",
        "Line 3 has a glossary term with other capitals. Check it (see page.html).",
        "2 lines (6, 7) have glossary terms that make their translations far less likely. Check "
        "them (see page.html).",
    ]
    assert list(TermCounts().facts()) == []
    terms = write_lines("glossary", "oven\tfour")
    text = write_lines("in", "The ovens were next to the car.", "The soup was salty.")
    found = {
        match: run_here(
            "translate", "demo", "-i", text, "--glossary", terms, "--set", f"glossary.match={match}"
        ).stderr
        for match in ("auto", "forms")
    }
    assert "note: Glossary: 0 terms were found in 0 of 2 lines." in found["auto"]
    assert "note: Glossary: 1 term was found in 1 of 2 lines." in found["forms"]
    alone = run_here("translate", "demo", "-i", text, "--set", "glossary.match=forms")
    assert (alone.returncode, "needs --glossary" in alone.stderr) == (2, True)
