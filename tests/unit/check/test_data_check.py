"""The data check: every damage is reported with its place, and clean text gives one line."""

from __future__ import annotations

import gzip
import json
import random
import unicodedata
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import pytest

from pellucid.check.data_check import check_data
from pellucid.check.findings import DataReport, Finding
from pellucid.config import DataConfig
from pellucid.errors import InputFileNotFoundError

Pairs = Sequence[tuple[str, str]]
Check = Callable[..., DataReport]

NAMES = ["Anna", "Bruno", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Irina", "Jonas"]
LEFT = ["new", "the", "red", "old", "small", "dog", "tree", "runs", "sees", "slowly", "beautiful"]


def make_pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Sentences of differing length, and their 'translations': word for word, spelled backwards."""
    draw = random.Random(seed)
    pairs = []
    for number in range(count):
        words = draw.choices(LEFT, k=draw.randint(3, 25))
        words.insert(2, f"{seed}{number:06}")
        words.insert(1, draw.choice(NAMES))
        target = [word if word in NAMES or word.isdigit() else word[::-1] for word in words]
        pairs.append((" ".join(words) + ".", " ".join(target) + "."))
    return pairs


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Check pairs as four files."""

    def run(train: Pairs, validation: Pairs | None = None, test: Pairs = ()) -> DataReport:
        validation = make_pairs(100, seed=2) if validation is None else validation
        for name, pairs in (("train", train), ("valid", validation), ("test", test)):
            for side, language in enumerate(("xx", "yy")):
                text = "".join(f"{pair[side]}\n" for pair in pairs)
                (tmp_path / f"{name}.{language}").write_bytes(text.encode())
        added = {"test": (("test.xx", "test.yy"),)} if test else {}
        return check_data(DATA.model_copy(update=added), tmp_path)

    return run


DATA = DataConfig(
    train=("train.xx", "train.yy"),
    validation=("valid.xx", "valid.yy"),
)


def found(report: DataReport, kind: str) -> Finding:
    """The one finding of a kind."""
    findings = [finding for finding in report.findings if finding.kind == kind]
    assert len(findings) == 1, report.lines()
    return findings[0]


def with_changes(pairs: Pairs, changes: dict[int, tuple[str, str]]) -> list[tuple[str, str]]:
    return [changes.get(number, pair) for number, pair in enumerate(pairs)]


def test_clean_text_gives_one_line(check: Check) -> None:
    report = check(make_pairs(1201))
    assert report.lines() == ["Data check: 1,201 training and 100 validation pairs; nothing odd."]
    assert report.brief() == report.lines()
    assert not report.has_errors


def test_built_in_corpus_gives_neither_errors_nor_warnings(check: Check) -> None:
    from pellucid.corpora import iterate_split

    train, validation = (
        [(example.source, example.target) for example in islice(iterate_split(name), count)]
        for name, count in (("train", 1000), ("validation", 200))
    )
    report = check(train, validation)
    assert {finding.severity for finding in report.findings} <= {"note"}, report.lines()
    assert len(report.brief()) == 1


@pytest.mark.parametrize(("offset", "lost_at"), [(1, 634), (3, 300), (7, 800)])
def test_lost_target_lines_are_told_about_where_they_were(
    check: Check, offset: int, lost_at: int
) -> None:
    pairs = make_pairs(1200)
    targets = [target for _, target in pairs]
    targets = targets[:lost_at] + targets[lost_at + offset :] + targets[:offset]
    report = check([(source, target) for (source, _), target in zip(pairs, targets, strict=True)])
    shift = found(report, "shifted")
    assert shift.severity == "error"
    assert report.has_errors
    assert shift.split == "train"
    assert abs(shift.count - (1200 - lost_at)) < 20
    where = shift.sentence.split("train.xx:")[1].split()[0]
    assert abs(int(where) - (lost_at + 1)) < 20
    assert "to its end" in shift.sentence
    lines = "1 line earlier" if offset == 1 else f"{offset} lines earlier"
    assert lines in shift.sentence
    example = shift.examples[0]
    source_line, target_line = (
        int(place.split(":")[1]) for place in (example.source_where, example.target_where)
    )
    assert source_line - target_line == offset
    assert pairs[source_line - 1] == (example.source, example.target)


def test_lost_line_that_comes_back_is_told_with_both_ends(check: Check) -> None:
    pairs = make_pairs(1200)
    sources = [source for source, _ in pairs]
    sources = [*sources[:400], *sources[401:800], "something else", *sources[800:]]
    report = check([(source, target) for source, (_, target) in zip(sources, pairs, strict=True)])
    shift = found(report, "shifted")
    assert "1 line later" in shift.sentence
    first, last = (
        int(text.split()[0]) for text in shift.sentence.split("train.xx:")[1].split("to line ")
    )
    assert abs(first - 401) < 20
    assert abs(last - 800) < 20


def test_shift_is_found_by_lengths_alone(check: Check) -> None:
    draw = random.Random(3)
    lengths = [draw.randint(2, 30) for _ in range(600)]
    sources = ["x" + " wo" * length for length in lengths]
    targets = ["y" + " sie" * max(1, length + draw.randint(-2, 2)) for length in lengths]
    assert not check(list(zip(sources, targets, strict=True))).has_errors
    report = check(list(zip(sources[1:], targets[:-1], strict=True)))
    assert "1 line later" in found(report, "shifted").sentence


def pairs_in_turns(count: int, *, difference: int) -> list[tuple[str, str]]:
    """Short and long sentences in turn."""
    draw = random.Random(7)
    lengths = [draw.randint(2, 20) + difference * (number % 2) for number in range(count)]
    return [
        ("x" + " wo" * length, "y" + " sie" * max(1, length + draw.randint(-4, 4)))
        for length in lengths
    ]


def test_lengths_that_take_turns_are_no_shift(check: Check) -> None:
    sources, targets = zip(*pairs_in_turns(2000, difference=8), strict=True)
    report = check(list(zip(sources, reversed(targets), strict=True)))
    assert found(report, "unrelated").count == 2000
    assert not report.has_errors, report.lines()


def test_all_of_a_shift_is_told_where_some_of_it_is_less_clear(check: Check) -> None:
    sources, targets = zip(*pairs_in_turns(2000, difference=4), strict=True)
    report = check(list(zip(sources, targets[-4:] + targets[:-4], strict=True)))
    shift = found(report, "shifted")
    assert "4 lines later" in shift.sentence
    assert shift.count > 1980


def test_files_in_differing_order_do_not_go_together(check: Check) -> None:
    pairs = make_pairs(1000)
    targets = [target for _, target in pairs]
    random.Random(5).shuffle(targets)
    report = check([(source, target) for (source, _), target in zip(pairs, targets, strict=True)])
    unrelated = found(report, "unrelated")
    assert (unrelated.severity, unrelated.split, unrelated.count) == ("warning", "train", 1000)
    assert "train.xx and train.yy" in unrelated.sentence


def test_columns_of_one_table_that_do_not_go_together_are_called_columns(tmp_path: Path) -> None:
    pairs = make_pairs(1000)
    targets = [target for _, target in pairs]
    random.Random(5).shuffle(targets)
    rows = (f"{source}\t{target}\n" for (source, _), target in zip(pairs, targets, strict=True))
    (tmp_path / "t.tsv").write_text("".join(rows))
    report = check_data(DataConfig(train=("t.tsv",), validation=("t.tsv",)), tmp_path)
    said = next(one.sentence for one in report.findings if one.kind == "unrelated")
    assert "the columns of t.tsv do not belong together" in said
    assert "Are they the right columns, in the same order?" in said


@pytest.mark.parametrize("code", ["fr", "de"])
def test_no_break_spaces_are_said_to_be_needed_only_for_french(tmp_path: Path, code: str) -> None:
    (tmp_path / "t.tsv").write_text("some 1\xa00 things are here\tquelque chose ici\n" * 9)
    data = {"train": ("t.tsv",), "validation": ("t.tsv",)}
    report = check_data(DataConfig(**data, source_language="en", target_language=code), tmp_path)
    said = next(one.sentence for one in report.findings if one.kind == "no-break spaces")
    assert ("correct French needs some" in said) is (code == "fr")
    assert "They stay" in said


def test_lines_of_one_length_go_together(check: Check) -> None:
    assert not check([(f"word {n % 9}", f"mot {n % 9} {n:04}") for n in range(600)]).has_errors
    same = [(f"word {number:04}", f"mot {number:04}") for number in range(600)]
    assert not check(same).findings


def test_files_of_unequal_length_are_an_error_that_says_where_the_shift_begins(
    check: Check, tmp_path: Path
) -> None:
    pairs = make_pairs(1000)
    check(pairs)
    targets = [target for _, target in pairs]
    del targets[400]
    (tmp_path / "train.yy").write_text("\n".join(targets) + "\n")
    report = check_data(DATA, tmp_path)
    assert "1000" in found(report, "unreadable").sentence
    assert abs(found(report, "shifted").count - 600) < 30


@pytest.mark.parametrize(
    ("kind", "pair"),
    [
        ("empty", ("  ", "quelque chose ici")),
        ("equal", ("the very same words.", "the very same words.")),
        ("source script", ("это другой алфавит", "quelque chose ici")),
        ("target script", ("something is here", "ここにほかの文字")),
        ("mojibake", ("something is here", "trÃ¨s cher")),
        ("mojibake", ("something is here", "lâ€™eau")),
        ("mojibake", ("something is here", "ÐŸÑ€Ð¸Ð²ÐµÑ‚")),
        ("lost characters", ("something is here", "quelque chose\ufffd")),
        ("control characters", ("some\x07thing", "quelque chose ici")),
        ("markup", ("<b>something</b> is here", "quelque chose ici")),
        ("escapes", ("salt &amp; pepper here", "sel et poivre")),
        ("long source", ("word " * 500, "mot " * 500)),
        ("long target", ("word " * 500, "mot " * 500)),
        ("equal", ("the very same words.", "The Very SAME words.")),
        ("placeholders", ("%s of them is here", "quelque chose ici")),
        ("tags", ("<b>something</b> is here", "<b>quelque chose ici")),
        ("addresses", ("read https://a.example/x now", "lisez https://b.example/x")),
        ("accelerators", ("&Open something here", "ouvrir quelque chose ici")),
        ("numbers", ("ten or 10 of them", "dix ou 100")),
        ("ends", ("is something here?", "quelque chose est ici")),
        ("edges", ("  something is here", "quelque chose ici")),
        ("unfinished", ("something is here", "FIXME quelque chose ici")),
        ("doubled", ("open the door now", "ouvrez la porte porte")),
        ("quoted", ('"The ""red"" door"', '"La porte ""rouge"""')),
        ("ratio", ("one", "un mot qui n'en finit pas " * 12)),
    ],
)
def test_odd_pair_is_told_with_its_lines(check: Check, kind: str, pair: tuple[str, str]) -> None:
    report = check(with_changes(make_pairs(150), {41: pair, 73: pair}))
    finding = found(report, kind)
    assert (finding.count, finding.split) == (2, "train")
    assert finding.share == pytest.approx(2 / 150)
    assert [example.source_where for example in finding.examples] == ["train.xx:42", "train.xx:74"]
    assert [example.target_where for example in finding.examples] == ["train.yy:42", "train.yy:74"]
    assert (finding.examples[0].source, finding.examples[0].target) == pair
    assert any("train.xx:42 | train.yy:42" in line for line in report.lines())


@pytest.mark.parametrize(
    "target",
    [
        "NÃO, MAÇÃ E AÇÃO",
        "«Voilà», dit-il. C’est déjà l’été…",
        "Â câţi ani",
        "ESPAÑA Ñandú",
        "1 < 2 et 3 > 2, A&B",
        "iPhone 5, Coca-Cola",
    ],
)
def test_correct_text_is_not_called_broken(check: Check, target: str) -> None:
    report = check(with_changes(make_pairs(300), {7: ("it is what it is", target)}))
    assert not report.findings, report.lines()


def test_script_that_a_side_uses_often_is_usual(check: Check) -> None:
    mixed = [
        (source, "српски језик " + target if number % 3 else target)
        for number, (source, target) in enumerate(make_pairs(300))
    ]
    changed = [
        (source, "на другом писму" if number % 3 else target)
        for number, (source, target) in enumerate(mixed)
    ]
    assert not [f for f in check(changed).findings if f.kind == "target script"]


def test_copies_and_second_targets_name_both_lines(check: Check) -> None:
    pairs = make_pairs(500)
    pairs[300] = pairs[20]
    pairs[400] = pairs[20]
    pairs[450] = (pairs[30][0], "something new")
    report = check(pairs)
    copies, second = found(report, "copy"), found(report, "several targets")
    assert (copies.count, second.count) == (2, 1)
    assert [example.source_where for example in copies.examples] == ["train.xx:301", "train.xx:401"]
    assert {example.other for example in copies.examples} == {"train.xx:21"}
    assert (second.examples[0].source_where, second.examples[0].other) == (
        "train.xx:451",
        "train.xx:31",
    )
    assert {copies.severity, second.severity} == {"note"}


def test_pairs_of_both_splits_are_compared_without_case_and_punctuation(check: Check) -> None:
    train, validation = make_pairs(500), make_pairs(50, seed=2)
    validation[11] = (train[60][0].upper().replace(".", " !"), train[60][1])
    validation[12] = (train[61][0], "something else")
    report = check(train, validation)
    shared, source = found(report, "in training"), found(report, "source in training")
    assert (shared.count, shared.split, shared.severity) == (1, "validation", "warning")
    assert shared.examples[0].source_where == "valid.xx:12"
    assert shared.examples[0].other == "train.xx:61"
    assert (source.count, source.severity) == (1, "note")


def test_pairs_of_the_test_text_are_looked_for_in_the_training_text(check: Check) -> None:
    train, test = make_pairs(500), make_pairs(31, seed=3)
    test[7] = train[59]
    report = check(train, test=test)
    shared = found(report, "in training")
    assert (shared.count, shared.split, shared.severity) == (1, "test", "warning")
    assert shared.examples[0].source_where == "test.xx:8"
    assert shared.examples[0].other == "train.xx:60"
    assert shared.sentence.startswith("1 test pair (3.23 %)")
    assert report.brief()[0].startswith(
        "Data check: 500 training, 100 validation and 31 test pairs; 1 warning"
    )


def test_brief_is_short_and_without_notes(check: Check) -> None:
    odd = [
        ("", "x"), ("same words", "same words"), ("это другой алфавит", "это другой алфавит тоже"),
        ("<b>something</b>", "trÃ¨s cher"), ("a\ufffd", "b\x07"), ("on and on", "et plus " * 300),
    ]  # fmt: skip
    report = check([*make_pairs(100), *odd, *odd], [*make_pairs(10, seed=2), ("", "y")])
    brief = report.brief()
    assert 6 < len(brief) <= 12
    assert all(len(line) <= 100 for line in [*brief, *report.lines()])
    assert brief[-1].endswith("pellucid check.")
    assert not any(line.startswith("note") for line in brief)
    # No sentence is cut, since its end says what to do.
    said = " ".join(map(str.strip, brief))
    shown = [f"{one.severity}: {one.sentence}" in said for one in report.findings]
    left = int(brief[-1].split()[1])
    assert shown.index(False) == sum(one.severity != "note" for one in report.findings) - left


def test_several_corpora_gzip_and_columns_count_lines_within_each_file(tmp_path: Path) -> None:
    pairs = make_pairs(300)
    for name, part in (("a", pairs[:100]), ("b", pairs[100:200])):
        for side, language in enumerate(("xx", "yy")):
            text = "".join(f"{pair[side]}\n" for pair in part)
            (tmp_path / f"{name}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    rows = [*pairs[200:], pairs[105]]
    (tmp_path / "c.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    (tmp_path / "v.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in make_pairs(9, seed=2)))
    data = DataConfig(
        train=[["a.xx.gz", "a.yy.gz"], ["b.xx.gz", "b.yy.gz"], "c.tsv"],
        validation=("v.tsv",),
    )
    report = check_data(data, tmp_path)
    example = found(report, "copy").examples[0]
    assert (example.source_where, example.target_where) == ("c.tsv:101", "c.tsv:101")
    assert example.other == "b.xx.gz:6"
    assert report.num_pairs == {"train": 301, "validation": 9}


def test_tiny_text_is_checked_without_false_alarms(check: Check) -> None:
    for count in (1, 2, 19):
        report = check(make_pairs(count), make_pairs(1, seed=2))
        assert not report.findings, report.lines()


def test_text_that_is_no_utf_8_from_the_first_line_is_an_error_and_nothing_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.en").write_bytes(b"\xe9t\xe9\nb\n")
    (tmp_path / "train.fr").write_text("a\nb\n")
    data = DataConfig(
        train=("train.en", "train.fr"),
        validation=("train.fr", "train.fr"),
    )
    report = check_data(data, tmp_path)
    assert report.has_errors
    said = " ".join(report.lines())
    assert "must be UTF-8" in said
    assert "train.en:1" in said


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputFileNotFoundError, match=r"valid\.xx"):
        check_data(DATA, tmp_path)


def test_every_copy_of_a_pair_in_the_training_text_counts(check: Check) -> None:
    train = make_pairs(300)
    report = check(train, [*make_pairs(40, seed=3), *train[:5], *[train[7]] * 13])
    shared = next(f for f in report.findings if "also in the training text" in f.sentence)
    assert shared.sentence.startswith("18 validation pairs (31 %)"), shared.sentence


def test_windows_characters_read_as_latin_are_a_wrong_encoding(check: Check) -> None:
    pairs = [(f"it\x92s {source}", target) for source, target in make_pairs(200)]
    said = " ".join(check(pairs).lines())
    assert "broken characters such as 'Ã©' or U+0092" in said
    assert "WINDOWS-1252" in said
    assert "control characters" not in said


def test_lines_that_end_in_carriage_returns_alone_are_told(check: Check) -> None:
    lines = "\r".join(source for source, _ in make_pairs(50))
    found = check([*make_pairs(200), (lines, lines)]).findings
    (said,) = (one.sentence for one in found if "carriage returns" in one.sentence)
    assert said.endswith(r"If lines end so, convert the file with tr '\r' '\n'.")


@pytest.mark.parametrize(
    ("kind", "character", "named"),
    [
        ("tabs", "\t", ""),
        ("no-break spaces", "\xa0", "U+00A0"),
        ("no-break spaces", "\u202f", "U+202F"),
        ("other spaces", "\u2009", "U+2009"),
        ("other spaces", "\u3000", "U+3000"),
        ("invisible characters", "\u200b", "U+200B"),
        ("invisible characters", "\xad", "U+00AD"),
        ("invisible characters", "\u202e", "U+202E"),
        ("control characters", "\ufeff", "U+FEFF"),
    ],
)
def test_odd_characters_are_named_by_number(
    check: Check, kind: str, character: str, named: str
) -> None:
    pair = (f"some 1{character}0 things are here", "quelque chose ici")
    finding = found(check(with_changes(make_pairs(300), {41: pair})), kind)
    assert (finding.severity, finding.count) == ("note", 1)
    assert finding.examples[0].source_where == "train.xx:42"
    assert f"({named})" in finding.sentence or not named


@pytest.mark.parametrize("side", [0, 1])
def test_letters_apart_from_their_accents_are_told(check: Check, side: int) -> None:
    pair = ["something is here", "quelque chose ici"]
    pair[side] = unicodedata.normalize("NFD", "un café près d'ici")
    finding = found(
        check(with_changes(make_pairs(300), {41: tuple(pair)})), "decomposed characters"
    )
    assert (finding.severity, finding.count) == ("note", 1)
    assert "(NFD). They are joined as they are read, unless tokenizer.norm" in finding.sentence
    assert finding.examples[0].source_where == "train.xx:42"


@pytest.mark.parametrize("text", ["un café", "हिन्दी में", "t̄ here", "한국어 문장"])
def test_text_in_nfc_is_not_apart(check: Check, text: str) -> None:
    pair = (f"{text} is here and there", f"{text} quelque chose ici")
    report = check(with_changes(make_pairs(300), {41: pair}))
    assert not [one for one in report.findings if one.kind == "decomposed characters"]


def test_line_breaks_inside_json_lines_are_told(tmp_path: Path) -> None:
    values = [{"source": source, "target": target} for source, target in make_pairs(150)]
    values[6] = {"source": "one thing\nand another", "target": "une chose\net une autre"}
    text = "".join(f"{json.dumps(value)}\n" for value in values)
    (tmp_path / "a.jsonl").write_text(text)
    report = check_data(DataConfig(train="a.jsonl", validation="a.jsonl"), tmp_path)
    finding = next(f for f in report.findings if (f.kind, f.split) == ("line breaks", "train"))
    assert (finding.severity, finding.count) == ("note", 1)
    assert finding.examples[0].source_where.endswith("a.jsonl:7")


@pytest.mark.parametrize("escape", ["&eacute;", "&nbsp;", "&#233;", "&#xE9;", "&amp;"])
def test_escapes_of_every_kind_are_told(check: Check, escape: str) -> None:
    report = check(with_changes(make_pairs(300), {7: (f"a caf{escape} here", "un café ici")}))
    assert found(report, "escapes").count == 1


@pytest.mark.parametrize("text", ["AT&T; and more", "R&D; x", "a & b;", "\u200d family", "~/.a@@b"])
def test_similar_text_is_neither_escape_nor_invisible_nor_cut(check: Check, text: str) -> None:
    report = check(with_changes(make_pairs(300), {7: (f"{text} is here", "quelque chose ici")}))
    assert not report.findings, report.lines()


@pytest.mark.parametrize(
    ("kind", "cut"),
    [
        ("bpe", "a nu@@ mber of words 7"),
        ("sentencepiece", "\u2581a \u2581num ber \u2581of \u2581words \u25817"),
        ("wordpiece", "a num ##ber of words 7"),
        ("joiner", "a num \uffedber of words 7"),
    ],
)
def test_text_that_was_cut_before_is_noticed_with_what_to_set(
    check: Check, kind: str, cut: str
) -> None:
    pairs = [(cut.replace("7", str(n)), f"{cut} {n}") for n in range(1000, 1200)]
    finding = found(check(pairs), f"cut by {kind}")
    assert (finding.severity, finding.share) == ("warning", 1.0)
    assert f'Set data.cut_by = "{kind}"' in finding.sentence


def test_text_that_is_joined_as_it_is_read_is_not_odd(tmp_path: Path, check: Check) -> None:
    pairs = [(f"a nu@@ mber {n}", f"un no@@ mbre {n}") for n in range(1000, 1200)]
    check(pairs)
    report = check_data(DATA.model_copy(update={"cut_by": "bpe"}), tmp_path)
    assert not report.findings, report.lines()


@pytest.mark.parametrize("character", ["\xa0", "\u202f", "\u3000"])
def test_spaces_are_shown_as_spaces_and_other_signs_by_number(check: Check, character: str) -> None:
    pair = (f"<b>Nom{character}:</b> \u200bx", "quelque chose ici")
    said = "\n".join(check(with_changes(make_pairs(40), {7: pair})).lines())
    assert "<b>Nom :</b> <U+200B>x" in said
    assert "\ufffd" not in said


def test_every_bad_line_of_a_table_is_told_and_the_others_are_checked(tmp_path: Path) -> None:
    rows = [f"{a}\t{b}" for a, b in make_pairs(100)]
    rows[10], rows[60], rows[61] = "no tab", "", "a\tb\tc"
    rows[80] = rows[70]
    (tmp_path / "t.tsv").write_text("\n".join(rows) + "\n")
    data = DataConfig(train=("t.tsv",), validation=("t.tsv",), on_bad_line="stop")
    report = check_data(data, tmp_path)
    errors = [finding for finding in report.findings if finding.kind == "unreadable"]
    assert [finding.count for finding in errors] == [3, 3]
    assert "t.tsv:11 (1 column), 61 (empty), 62 (3 columns)" in errors[0].sentence
    assert report.num_pairs["train"] == 97
    copy = next(finding for finding in report.findings if finding.kind == "copy")
    assert (copy.examples[0].source_where, copy.examples[0].other) == ("t.tsv:81", "t.tsv:71")
    skipping = check_data(data.model_copy(update={"on_bad_line": "skip"}), tmp_path)
    assert not skipping.has_errors
    left_out = next(finding for finding in skipping.findings if finding.kind == "left out")
    assert "3 lines of the training text cannot be used and will be left out" in left_out.sentence


@pytest.mark.parametrize(
    ("first", "advice"),
    [
        (("source", "target"), 'data.columns = ["source", "target"]'),
        (("Target", "Source"), 'data.columns = ["Source", "Target"]'),
        (("xx", "yy"), 'data.columns = ["xx", "yy"]'),
    ],
)
def test_header_that_is_read_as_a_pair_is_told(
    tmp_path: Path, first: tuple[str, str], advice: str
) -> None:
    rows = [first, *make_pairs(100)]
    (tmp_path / "t.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    (tmp_path / "v.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in make_pairs(9, seed=2)))
    data = DataConfig(
        train=("t.tsv",), validation=("v.tsv",), source_language="xx", target_language="yy"
    )
    finding = found(check_data(data, tmp_path), "header")
    assert finding.severity == "warning"
    assert advice in finding.sentence


def test_first_lines_of_parallel_files_may_be_headers_too(check: Check) -> None:
    finding = found(check([("source", "target"), *make_pairs(100)]), "header")
    assert "Remove that line from both files" in finding.sentence


def test_report_as_a_record_has_everything(check: Check) -> None:
    import json

    report = check(with_changes(make_pairs(100), {7: ("", "x")}))
    record = json.loads(json.dumps(report.to_record()))
    assert record["pairs"] == {"train": 100, "validation": 100}
    (finding,) = record["findings"]
    assert (finding["kind"], finding["count"]) == ("empty", 1)
    assert finding["examples"][0]["source_where"] == "train.xx:8"


@pytest.mark.parametrize(("share", "severity"), [(0.5, "warning"), (0.05, "note")])
def test_no_break_spaces_in_place_of_ordinary_ones_are_a_warning(
    check: Check, share: float, severity: str
) -> None:
    pairs = [
        (source, target.replace(" ", "\xa0") if number < share * 200 else target)
        for number, (source, target) in enumerate(make_pairs(200))
    ]
    finding = found(check(pairs), "no-break spaces between words")
    assert (finding.severity, finding.count) == (severity, share * 200)
    assert not [f for f in check(pairs).findings if f.kind == "no-break spaces"]


def test_text_without_a_single_pair_is_an_error(check: Check) -> None:
    report = check(make_pairs(30), [("a line", " "), ("", "ligne"), (" ", "\t")])
    assert (found(report, "empty").severity, report.has_errors) == ("error", True)
    report = check(make_pairs(30), [("a line", " "), ("a line here", "une ligne ici")])
    assert (found(report, "empty").severity, report.has_errors) == ("warning", False)


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize(
    "tags", [("<news>", "<med>"), ("\u27e8formal\u27e9", "{2fr}"), ("@law", "de>")]
)
def test_tags_at_an_end_of_the_sources_give_no_warning(
    check: Check, tags: tuple[str, str], place: str
) -> None:
    pairs = [
        (f"{tags[n % 2]} {a}" if place == "first" else f"{a} {tags[n % 2]}", b)
        for n, (a, b) in enumerate(make_pairs(400))
    ]
    report = check(pairs, pairs[:100])
    assert report.tags == dict.fromkeys(tags, 0.5)
    assert {finding.kind for finding in report.findings} == {"in training"}


@pytest.mark.parametrize("glued", ["<news>", "<2fr><news>", "[MED]", "<2fr> <news>"])
def test_tags_that_touch_the_first_word_are_tags_without_it(check: Check, glued: str) -> None:
    report = check([(glued + a, b) for a, b in make_pairs(400)])
    assert report.tags == dict.fromkeys(glued.replace("><", "> <").split(), 1.0)
    assert not report.findings


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("<b> {} </b>", "{}"),
        ("<b>{}</b>", "{}"),
        ("<i> {}", "<i> {}"),
        ("<i> {}", "{} <i>"),
        ("{} <br/>", "{} <br/>"),
    ],
)
def test_real_markup_at_the_ends_is_no_tag(check: Check, source: str, target: str) -> None:
    pairs = [(source.format(a), target.format(b)) for a, b in make_pairs(400)]
    report = check(pairs)
    assert not report.tags
    assert found(report, "markup").severity == "warning"


@pytest.mark.parametrize("opening", ["The", "\u201cThe", "-Yes", "Don't", "1.", "It's", "Well,"])
def test_words_at_the_start_of_most_sources_are_no_tags(check: Check, opening: str) -> None:
    report = check([(f"{opening} {a}", b) for a, b in make_pairs(400)])
    assert not report.tags


@pytest.mark.parametrize(("share", "severity"), [(0.02, "note"), (0.4, "note"), (0.8, "warning")])
def test_sources_with_several_targets_are_a_warning_only_if_many(
    check: Check, share: float, severity: str
) -> None:
    pairs = make_pairs(400)
    again = [(a, f"{b} x") for a, b in pairs[: int(share * 200)]]
    finding = found(check([*pairs, *again]), "several targets")
    assert finding.severity == severity
    assert finding.count == len(again)
    assert f"({len(again)} sources have several targets)" in finding.sentence
    assert finding.examples[0].other == "train.xx:1"
