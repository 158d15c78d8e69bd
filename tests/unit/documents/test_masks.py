"""Symbols in the place of placeholders: in lines, pairs, training text, and recipes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pellucid.config import Recipe, validate
from pellucid.config.config_json import MASKS
from pellucid.config.data import DataConfig
from pellucid.documents.markup.segments import Maker
from pellucid.documents.placeholder_masks import (
    has_no_space,
    has_only_symbols,
    is_reordered,
    lost_copies,
    mask,
    mask_copies,
    mask_lesson,
    mask_pair,
    mask_with,
    maskable,
    unmask,
)
from pellucid.errors import ConfigurationError
from pellucid.text.reading.sentence_pairs import read_lessons, read_pairs
from pellucid.training.start.choices import complete

PIECES = [
    "%s",
    "%1$d",
    "{n}",
    "{{ x }}",
    "<b>",
    "</b>",
    "--all",
    "https://a.org",
    "&File",
]


def lines(*pieces: str) -> st.SearchStrategy[str]:
    own = st.sampled_from([*PIECES, *pieces, "a", "%", ".", " ", "é"])
    return st.lists(own, max_size=40).map("".join)


@given(lines("❷", "⓴", "https://x.y/❿"))
@example("%s--all")
def test_unmasking_gives_the_line_back_and_masking_twice_changes_nothing(line: str) -> None:
    masked, copies = mask(line)
    assert unmask(masked, copies) == line
    if len(copies) < len(MASKS):  # What is left over is masked next.
        assert mask(masked)[0] == masked


@given(lines(), lines())
def test_lessons_have_the_same_symbols_on_both_sides(source: str, target: str) -> None:
    one, other = (sorted({*line} & {*MASKS}) for line in mask_lesson(source, target))
    assert one == other


@given(lines("❷", "⓴"))
def test_masked_words_stay_words(line: str) -> None:
    assert len(mask(line, wanted=has_no_space)[0].split()) == len(line.split())


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("%s of {n}", "{n} ont %s", ("❶ of ❷", "❷ ont ❶")),
        ("%s, %s", "%s", ("❶, ❷", "❶")),
        ("--all or --all-x", "--all-x ou --all", ("❶ or ❷", "❷ ou ❶")),
        ("Hello", "%d", ("Hello", "%d")),
        ("<b>%s</b>", "<b>%s</b>", ("<b>❶</b>", "<b>❶</b>")),
    ],
)
def test_pairs_have_the_symbols_of_the_source(
    source: str, target: str, expected: tuple[str, str]
) -> None:
    assert mask_pair(source, target) == expected


def test_lessons_hide_only_what_both_sides_have_and_use_all_symbols() -> None:
    seen = set()
    for number in range(200):
        source, target = mask_lesson(f"{number} %s %d %x", f"{number} %x %s")
        symbols = [sign for sign in source if sign in MASKS]
        assert source == f"{number} {symbols[0]} %d {symbols[1]}"
        assert target == f"{number} {symbols[1]} {symbols[0]}"
        seen |= {*symbols}
    assert seen == {*MASKS}


def test_lessons_leave_symbols_that_a_pair_has_itself() -> None:
    for number in range(40):
        source, target = mask_lesson(f"{number} ❶ %s", "%s")
        assert source.count("❶") == 1
        assert source[-1] == target != "❶"


def test_symbols_without_a_placeholder_go_with_their_space() -> None:
    assert unmask("Open ❸ the ❶.", {"❶": "❷"}) == "Open the ❷."
    assert mask_with("a {x} {x}", {"❺": "{x}"}) == "a ❺ {x}"


def test_unmasking_a_word_that_goes_leaves_the_other_words() -> None:
    assert unmask("❸ ❹ Open ❸, the❺ ❸", {}) == "Open , the"
    assert unmask("a ❸b ❶", {"❶": "{x}"}) == "a b {x}"


def test_symbol_of_a_text_with_more_than_20_placeholders_is_masked_first() -> None:
    many = " ".join(f"%{number}$s" for number in range(1, 22))
    masked, copies = mask(f"{many} ❶")
    assert masked.endswith("❿ ⓫ ⓬ ⓭ ⓮ ⓯ ⓰ ⓱ ⓲ ⓳ ⓴ %20$s %21$s ❶")
    assert copies["❶"] == "❶"
    assert unmask(masked, copies) == f"{many} ❶"


@pytest.mark.parametrize("last", ["https://x.y/❿", "❿❿", "❶ https://x.y/❿ ❷"])
def test_symbol_within_what_is_left_of_many_placeholders_stays(last: str) -> None:
    line = " ".join([*(f"%{number}$s" for number in range(1, 26)), last])
    masked, copies = mask(line)
    assert unmask(masked, copies) == line


def test_placeholders_that_touch_are_one_symbol() -> None:
    assert mask("%s%d files, {a}{b}!") == ("❶ files, ❷!", {"❶": "%s%d", "❷": "{a}{b}"})
    assert mask_pair("{a}{b}你好 %s", "%s, hello {a}{b}") == ("❶你好 ❷", "❷, hello ❶")
    source, target = mask_lesson("{a}{b} %s", "%s {b} {a}")
    assert "{a}{b}" in source
    assert "%s" not in target
    maker = Maker()
    for copy in ("{a}", "{b}"):
        maker.add_copy([copy], copy, "")
    maker.write(" of ")
    maker.add_copy(["%s"], "%s", "")
    assert mask_copies(maker.take())[1] == {"❶": "{a}{b}", "❷": "%s"}


def test_symbols_of_the_tokenizer_are_text_and_no_placeholders() -> None:
    wanted = maskable(("<formal>", *MASKS))
    assert mask("<formal> Open %s.", wanted=wanted)[0] == "<formal> Open ❶."
    assert mask("<formal>%s", wanted=wanted)[0] == "<formal>❶"
    assert maskable(MASKS) is None
    # Reading masks what learning masked.
    source, target = mask_lesson("<formal> Open %s.", "Öffne %s.", wanted=wanted)
    assert source.startswith("<formal> Open ")
    assert target[-2] == source[-2] in MASKS
    assert lost_copies("<formal> %s %d", "%s", wanted=wanted) == ["%d"]


@pytest.mark.parametrize(
    ("line", "translation", "expected"),
    [
        ("Copy %s to %s.", "Nach ❷ ❶ kopieren.", True),
        ("Copy %d to %s.", "Nach ❷ ❶ kopieren.", True),
        ("Copy {} to {}.", "Nach ❷ ❶ kopieren.", True),
        ("Copy %s to %s.", "❶ nach ❷ kopieren.", False),
        ("Copy %1$s to %2$s.", "Nach ❷ ❶ kopieren.", False),
        ("Copy {a} to {b}.", "Nach ❷ ❶ kopieren.", False),
        ("Copy %s and {a} to %s.", "❷: ❶ nach ❸.", False),
        ("Copy %s to %s.", "Nach ❷ kopieren.", False),
    ],
)
def test_placeholders_that_are_filled_in_by_their_order_must_keep_it(
    line: str, translation: str, expected: bool
) -> None:
    assert is_reordered(translation, mask(line)[1]) is expected


def test_lines_of_symbols_only_are_known() -> None:
    assert has_only_symbols(mask("%s")[0])
    assert has_only_symbols(mask(" %s  {a}{b} ")[0])
    for line in ("", " ", "a", "❶.", "❶ a", "é"):
        assert not has_only_symbols(line)


def test_symbols_of_a_document_are_their_own_copies() -> None:
    maker = Maker()
    maker.write("❶ opens ")
    maker.add_copy(["<code>❷</code>"], "❷", "")
    masked, copies = mask_copies(maker.take())
    assert masked == "❶ opens ❸"
    assert copies == {"❶": "❶", "❸": "❷"}


def recipe(**data: object) -> dict[str, object]:
    given = {"train": "t.tsv", "validation": "t.tsv", "source_language": "en"}
    return {"data": {**given, "target_language": "fr", **data}}


def test_recipe_with_masks_gives_the_tokenizer_its_symbols() -> None:
    values = {**recipe(placeholders="masks"), "tokenizer": {"symbols": ["<x>"]}}
    found = validate(Recipe, values, "test")
    assert found.tokenizer.symbols == ("<x>", *MASKS)
    again = validate(Recipe, found.model_dump(mode="json"), "test")
    assert again == found
    with pytest.raises(ConfigurationError, match=r"data\.placeholders must be 'masks'"):
        validate(Recipe, {**recipe(), "tokenizer": {"symbols": [*MASKS]}}, "test")


def test_only_what_a_model_learns_is_masked(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("Open %s {{ x }}\tOuvrir {{ x }} %s\n")
    names = {"train": "t.tsv", "validation": "t.tsv", "test": "t.tsv", "placeholders": "masks"}
    data = validate(DataConfig, names, "test")
    (pair,) = read_pairs(data, "train", tmp_path)
    assert pair.source == "Open %s {{ x }}"
    (lesson,) = read_lessons(data, "validation", tmp_path, symbols=())
    assert (lesson.source, lesson.target) == ("Open ❶ ❷", "Ouvrir ❷ ❶")
    data = data.model_copy(update={"train_alignments": ("links",)})
    (lesson,) = read_lessons(data, "validation", tmp_path, symbols=())
    assert (lesson.source, lesson.target) == ("Open ❶ {{ x }}", "Ouvrir {{ x }} ❶")


@pytest.mark.parametrize(
    ("plain", "masked", "changes", "expected"),
    [
        (800, 250, {}, "masks"),
        (800, 150, {}, None),
        (9_000, 250, {}, None),
        (800, 250, {"placeholders": "text"}, "text"),
    ],
)
def test_masks_are_chosen_for_text_with_many_placeholders(
    plain: int, masked: int, changes: dict[str, str], expected: str | None, tmp_path: Path
) -> None:
    lines = [f"dog {number}\tchien {number}\n" for number in range(plain)]
    lines += [f"dog %s of {number}\tchien {number} de %s\n" for number in range(masked)]
    (tmp_path / "t.tsv").write_text("".join(lines))
    values, sentences = complete(recipe(**changes), tmp_path)
    assert values["data"].get("placeholders") == expected
    chosen = [one for one in sentences if one.startswith("data.placeholders = masks")]
    assert len(chosen) == (expected == "masks")


@pytest.mark.parametrize(
    ("symbols", "given", "expected", "said"),
    [
        ((), {}, "text", "such as <formal>; if it is the tag of a domain, name it"),
        (("<formal>",), {}, "masks", "data.placeholders = masks: 100 % of the pairs"),
        ((), {"placeholders": "masks"}, "masks", "With masks a model reads symbols that it never"),
        (("<formal>",), {"placeholders": "masks"}, "masks", ""),
    ],
)
def test_masks_are_not_chosen_where_targets_lack_placeholders(
    symbols: tuple[str, ...], given: dict[str, str], expected: str, said: str, tmp_path: Path
) -> None:
    lines = [f"<formal> dog %s of {number}\tchien {number} de %s\n" for number in range(500)]
    (tmp_path / "t.tsv").write_text("".join(lines))
    values = {**recipe(**given), "tokenizer": {"symbols": [*symbols]}}
    filled, sentences = complete(values, tmp_path)
    assert filled["data"]["placeholders"] == expected
    about = [one for one in sentences if "placeholders" in one or "masks" in one]
    assert len(about) == bool(said)
    assert all(said in one for one in about)
