"""Letters that a vocabulary lacks: a target with them is aligned and looked at as `<unk>`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from of_subwords import SUBWORDS
from small_imported import make_tokenizer, write_imported

import pellucid
from pellucid.bundle import Bundle
from pellucid.config import TokenizerRecipe
from pellucid.inside.align.attention_links import align_pairs
from pellucid.inside.align.link_views import View
from pellucid.inside.pair import make_pair
from pellucid.text.token_words import mark_unknown, unknown_pieces, words_of_tokens
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]
VIEW = View(1, "head", 0, "predicts")
OPTIONS = ("--head", "decoder.1.cross.0", "--map", "head", "--convention", "predicts")
LINES = ["le chat dort", "le chat dort 😀", "le 披萨 dort", "« le chat » dort — ñ"]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return write_imported(tmp_path_factory.mktemp("unknown") / "imported")


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    recipe = TokenizerRecipe(kind="words", vocabulary_size=30)
    return learn_tokenizer(recipe, lambda: ["le chat dort"], lambda: ["le chat dort"])


@pytest.fixture(scope="module")
def pieces() -> Tokenizer:
    recipe = TokenizerRecipe(vocabulary_size=20, byte_fallback=False)
    return learn_tokenizer(recipe, lambda: ["le chat dort"] * 5, lambda: ["le chat dort"] * 5)


def test_pieces_that_cannot_be_written_are_listed_once() -> None:
    tokenizer = make_tokenizer()
    assert [unknown_pieces(tokenizer, line) for line in LINES] == [
        [],
        ["😀"],
        ["披萨"],
        ["«", "»", "—", "ñ"],
    ]
    assert unknown_pieces(tokenizer, "😀 le 😀") == ["😀"]
    assert unknown_pieces(tokenizer, "le <unk> dort") == []


def test_own_unk_of_a_translation_is_one_unknown_token_again(
    words: Tokenizer, pieces: Tokenizer
) -> None:
    for tokenizer in (make_tokenizer(), words, pieces):
        known = tokenizer.encode_target("le chat dort")
        unk_id, eos_id = tokenizer.config.unk_id, tokenizer.config.eos_id
        ids = [known[0], unk_id, *known[1:-1], unk_id, eos_id]
        marked = mark_unknown(tokenizer, tokenizer.decode_target(ids))
        assert tokenizer.encode_target(marked).count(unk_id) == 2
        assert "<unk>" not in marked
    ours = make_tokenizer()
    line = mark_unknown(ours, "le<unk> <unk> dort")
    found = words_of_tokens(ours, "target", line, ours.encode_target(line))
    assert sorted({word for owners in found for word in owners}) == [0, 1, 2]


def test_vocabulary_with_bytes_writes_everything_as_it_is() -> None:
    tokenizer = pellucid.load(SUBWORDS).tokenizer
    for line in (*LINES, "le <unk> dort"):
        assert mark_unknown(tokenizer, line) == line
        assert unknown_pieces(tokenizer, line) == []


def test_every_pair_is_aligned_and_known_words_keep_their_numbers(bundle: Bundle) -> None:
    sources = ["the cat sleeps 日本"] * len(LINES)
    found = list(align_pairs(bundle.model, bundle.tokenizer, sources, LINES, [VIEW]))
    for pair, line in zip(found, LINES, strict=True):
        assert pair.error is None
        # Every word of both sides is linked.
        assert {j for _, j in pair.links[0]} == set(range(len(line.split())))
        assert {i for i, _ in pair.links[0]} == {0, 1, 2, 3}
        assert list(pair.unknown) == unknown_pieces(bundle.tokenizer, line)


def test_decoded_unk_is_replayed_with_the_ids_of_the_decode(bundle: Bundle) -> None:
    ids = [*bundle.tokenizer.encode_target("le chat")[:-1], 1, 0]
    written = bundle.tokenizer.decode_target(ids)
    assert written.endswith("<unk>")
    assert list(make_pair(bundle, "the cat", written).target_ids) == ids


def test_look_lists_them_in_its_trace(bundle: Bundle) -> None:
    translator = pellucid.load(bundle.folder)
    trace = translator.look("the cat", translation="le chat 😀")
    assert trace.decoding["unknown"] == ["😀"]
    assert trace.predicted_tokens[-2:] == ("<unk>", "</s>")
    (scored,) = translator.score(["the cat"], ["le chat 😀"])
    assert sum(trace.log_probabilities) == pytest.approx(scored.log_probability, abs=1e-4)
    assert "unknown" not in translator.look("the cat", translation="le chat").decoding


def test_commands_say_so_once_with_counts(
    bundle: Bundle, run_here: Run, write_lines: WriteLines, tmp_path: Path
) -> None:
    sources = write_lines("source", *["the cat sleeps"] * 5)
    targets = write_lines("target", *LINES, "le ñ")
    files = ("--source", sources, "--target", targets)
    done = run_here("align", str(bundle.folder), *files, *OPTIONS)
    assert done.returncode == 0
    assert all(done.stdout.splitlines())
    assert done.stderr == (
        "warning: 4 lines have letters or words that the model's vocabulary cannot write "
        "(line 2: 😀, line 3: 披萨, line 4: « » — ñ and 1 more). They are aligned as <unk>.\n"
    )
    records = run_here("align", str(bundle.folder), *files, *OPTIONS, "--json").stdout
    unknown = [json.loads(line)["unknown"] for line in records.splitlines()]
    assert unknown == [[], ["😀"], ["披萨"], ["«", "»", "—", "ñ"], ["ñ"]]
    gold = ("--gold", write_lines("gold", *["0-0"] * 5), "-o", str(tmp_path / "links"))
    done = run_here("align", str(bundle.folder), *files, *gold)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "4 lines have letters or words" in done.stderr
    done = run_here("look", str(bundle.folder), "the cat", "--translation", "le 😀")
    assert done.returncode == 0
    assert "cannot write 😀" in done.stderr
    assert done.stderr.count("\n") == 1
