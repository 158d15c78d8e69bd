"""Folders of M2M100, NLLB, mBART-50 and BART: commands, languages, and what bad input gets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from served import Live
from small_fairseq import change, random_sentences, write_model, write_tokenizer

from pellucid import convert, load
from pellucid.errors import InputError, speaking_to
from pellucid.formats.fairseq_tokens import read_vocabulary
from pellucid.formats.from_fairseq import read_byte_pairs
from pellucid.functions.convert_model import export
from pellucid.inside.pair import make_pair
from pellucid.serve.models import load_models
from pellucid.text.language_tokens import near_names
from pellucid.text.tokenizers.byte_pairs import BytePairs
from pellucid.text.tokenizers.marian import PieceVocabulary

LINES = random_sentences(6)
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("theirs") / "nllb"
    write_model(folder, "nllb", "narrow", num_labels=2)
    return folder


@pytest.fixture(scope="module")
def ours(theirs: Path) -> Path:
    convert(theirs, theirs.parent / "ours")
    return theirs.parent / "ours"


def test_a_folder_is_converted_and_its_languages_are_listed(
    theirs: Path, run_here: Run, tmp_path: Path
) -> None:
    change(theirs / "generation_config.json", forced_bos_token_id=5, num_beams=2)
    made = run_here("convert", str(theirs), "-o", str(tmp_path / "ours"))
    assert (made.returncode, made.stdout.strip()) == (0, str(tmp_path / "ours"))
    assert "forced_bos_token_id 5 (give --to, the language to write)" in made.stderr
    shown = run_here("inspect", str(tmp_path / "ours")).stdout
    assert ">>eng_Latn<< >>fra_Latn<< >>zho_Hans<<" in shown
    manifest = json.loads((tmp_path / "ours" / "manifest.json").read_text())
    assert manifest["imported"]["format"] == "m2m_100"
    assert "tokenizer.json" in manifest["imported"]["files"]


@pytest.mark.parametrize(
    ("source", "target"), [("eng_Latn", "fra_Latn"), ("en", "fr"), ("English", "français")]
)
def test_languages_may_be_codes_or_names(
    ours: Path, run_here: Run, source: str, target: str
) -> None:
    text = "".join(f"{line}\n" for line in LINES)
    made = run_here("translate", str(ours), "--from", source, "--to", target, stdin=text)
    assert made.returncode == 0, made.stderr
    codes = [f">>eng_Latn:fra_Latn<< {line}" for line in LINES]
    found = load(ours).translate(codes)
    assert made.stdout == "".join(f"{one.text}\n" for one in found)
    # The language is no word: neither in the text nor in what is counted about it.
    assert all(not one.notes.language_code for one in found)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "This model has 5 languages, and cannot guess which are meant. Give --from LANGUAGE"),
        (("--to", "fr"), "Give --from LANGUAGE and --to LANGUAGE"),
        (("--from", "en"), "Give --from LANGUAGE and --to LANGUAGE"),
        (("--from", "en", "--to", "frb_Latn"), "but is 'frb_Latn'. Did you mean 'fra_Latn'?"),
        (("--from", "Klingon", "--to", "fr"), "source language must be one that the model has"),
    ],
)
def test_a_missing_or_unknown_language_is_refused(
    ours: Path, run_here: Run, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    out = tmp_path / "out"
    made = run_here("translate", str(ours), *options, "-o", str(out), stdin="the cat\n")
    assert made.returncode == 2
    assert words in made.stderr
    assert made.stderr.count("error:") == 1
    assert not list(tmp_path.iterdir())


def test_every_way_in_needs_the_languages(ours: Path) -> None:
    translator = load(ours)
    with speaking_to("python"):
        for call in (
            lambda: translator.translate("a cat"),
            lambda: list(translator.stream("a cat")),
            lambda: translator.score("a cat", "un chat"),
            lambda: translator.look("a cat"),
            lambda: translator.pair("a cat", "un chat"),
        ):
            with pytest.raises(InputError, match="source_language=LANGUAGE and to=LANGUAGE"):
                call()
    (aligned,) = [translator.align(["a cat"], ["un chat"])[0]]
    assert "5 languages" in str(aligned.error)


def test_looks_scores_and_links_read_what_a_search_reads(ours: Path) -> None:
    translator = load(ours)
    both: dict[str, Any] = {"source_language": "en", "to": "zh"}
    found = translator.translate(LINES, **both, beam=3, max_length=12)
    for line, one in zip(LINES, found, strict=True):
        trace = translator.look(line, **both, beam=3, max_length=12)
        assert trace.predicted_ids == one.ids
        assert trace.source_tokens[0] == "eng_Latn"
        assert trace.predicted_tokens[0] == "zho_Hans"
        assert trace.checks["decode"] < 1e-4
        assert one.token_log_probabilities[0] == 0.0
    given = translator.pair(LINES[0], "le chat dort", **both)
    assert given.target_ids[0] == found[0].ids[0]
    code = f">>eng_Latn:zho_Hans<< {LINES[0]}"
    assert given.source_ids == make_pair(translator.bundle, code, "le chat dort").source_ids
    (links,) = translator.align([code], ["le chat dort"])
    assert links.error is None
    assert links.target_words == ("le", "chat", "dort")
    linked = translator.translate(LINES[0], **both, align=True, max_length=12)
    assert len(linked.source_words) == len(LINES[0].split())


def test_changes_and_prefixes_keep_the_language(ours: Path) -> None:
    translator = load(ours)
    both: dict[str, Any] = {"source_language": "en", "to": "fr", "max_length": 12}
    for changes in ("cut decoder.1.cross.0", "average decoder.1.cross.0"):
        one = translator.translate(LINES[0], changes=changes, **both)
        assert (one.best.tokens[0], one.best.token_log_probabilities[0]) == ("fra_Latn", 0.0)
    begun = translator.translate(LINES[0], prefix="le chat", **both)
    assert begun.text.startswith("le chat")
    assert begun.best.tokens[0] == "fra_Latn"
    sampled = translator.translate(LINES[0], sample=True, seed=3, **both)
    assert (sampled.best.tokens[0], sampled.best.token_log_probabilities[0]) == ("fra_Latn", 0.0)
    several = translator.translate(LINES[0], n_best=3, alternatives=True, **both)
    assert {one.tokens[0] for one in several.hypotheses} == {"fra_Latn"}


def test_such_a_model_in_int8_is_served_by_the_engine(ours: Path, tmp_path: Path) -> None:
    export(ours, tmp_path / "int8", format="pellucid", precision="int8")
    translator = load(tmp_path / "int8", precision="int8")
    assert translator.decoder.find_reason(translator.options()) is None
    found = translator.translate(LINES, source_language="en", to="fr", max_length=9)
    assert all(one.best.tokens[0] == "fra_Latn" for one in found)
    with pytest.raises(InputError, match=r"first_token must be 'none' for CTranslate2"):
        export(ours, tmp_path / "ct2", format="ctranslate2")


@pytest.fixture(scope="module")
def barts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of models that normalize their input: mbart and bart."""
    folder = tmp_path_factory.mktemp("barts")
    for family in ("mbart", "bart"):
        write_model(folder / family, family, "narrow")
    return folder


@pytest.mark.parametrize("family", ["mbart", "bart"])
def test_a_bart_is_looked_at_and_served_in_int8_like_any_model(
    barts: Path, family: str, tmp_path: Path
) -> None:
    convert(barts / family, tmp_path / "ours")
    export(tmp_path / "ours", tmp_path / "int8", format="pellucid", precision="int8")
    both: dict[str, Any] = {"max_length": 12}
    both |= {"source_language": "en", "to": "French"} if family == "mbart" else {}
    for precision in ("float32", "int8"):
        translator = load(tmp_path / ("ours" if precision == "float32" else "int8"))
        options = translator.options(precision=precision)
        assert translator.decoder.find_reason(options) is None
        found = translator.translate(LINES, precision=precision, **both)
        first = {"mbart": "fr_XX", "bart": "<s>"}[family]
        assert {one.best.tokens[0] for one in found} == {first}
    translator = load(tmp_path / "ours")
    for line in LINES:
        trace = translator.look(line, **both, changes=None)
        assert trace.checks["decode"] < 1e-4
        assert trace.predicted_ids == translator.translate(line, **both).ids
    del both["max_length"]
    given = translator.pair("Zoë dort là", "le chat là", **both)
    assert given.source_tokens[-1] == "</s>"
    setting = {"mbart": "norm must be 'post'", "bart": "input_norm must be False"}[family]
    with pytest.raises(InputError, match=f"{setting} for Marian"):
        export(tmp_path / "ours", tmp_path / "out", format="marian")


def test_pairs_of_bytes_cut_as_theirs_do_from_either_form_of_file(
    barts: Path, tmp_path: Path
) -> None:
    tokenizer, size = write_tokenizer(tmp_path / "theirs", "bart")
    lines = ("½ don't 二十 _a_", "Zoë's ²x  end  ", "I'D\tthey'll", " a", "🙂👍🏽", "▁x á")
    for missing in ("tokenizer.json", "merges.txt"):
        folder = shutil.copytree(tmp_path / "theirs", tmp_path / missing)
        (folder / missing).unlink()
        found = read_byte_pairs(folder, size)
        cut = BytePairs(found.model, found.tokens, unk_id=3, reserved=(0, 1, 2, 4))
        for line in (*lines, *random_sentences(40)):
            assert cut.encode(line) == tokenizer(line).input_ids[1:-1], line
            assert cut.decode(cut.encode(line)) == line.removeprefix(" ")
    # Text cannot write tokens that are none.
    assert not {0, 2}.intersection(cut.encode("<s> and </s>"))
    assert "▁the" in found.tokens


BROKEN_BARTS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "25 languages": (
        "mbart",
        lambda folder: change(folder / "tokenizer_config.json", tokenizer_class="MBartTokenizer"),
        "mBART-25 writes the language behind the text",
    ),
    "an unknown tokenizer": (
        "mbart",
        lambda folder: (folder / "tokenizer_config.json").write_text("{}"),
        "tokenizer_class must be MBart50Tokenizer for a model of mBART, but is 'not named'",
    ),
    "a fixed target": (
        "mbart",
        lambda folder: change(folder / "config.json", decoder_start_token_id=9),
        "decoder_start_token_id must be eos_token_id (2), but is 9",
    ),
    "few positions": (
        "mbart",
        lambda folder: change(folder / "config.json", max_position_embeddings=99),
        "embed_positions.weight must be (99, 12)",
    ),
    "no norm of the input": (
        "bart",
        lambda folder: edit_tensors(
            lambda one: one.pop("model.encoder.layernorm_embedding.weight")
        )(folder),
        "must contain model.encoder.layernorm_embedding.weight",
    ),
    "a space before the text": (
        "bart",
        lambda folder: change(folder / "tokenizer_config.json", add_prefix_space=True),
        "add_prefix_space must be false",
    ),
    "no pairs": (
        "bart",
        lambda folder: remove("merges.txt", "tokenizer.json")(folder),
        "must contain vocab.json and merges.txt, or tokenizer.json",
    ),
    "pairs of another kind": (
        "bart",
        lambda folder: (folder / "merges.txt").write_text("▁ a\n"),
        "must hold two pieces of bytes, but one is '▁ a'",
    ),
    "words": (
        "bart",
        lambda folder: (
            (folder / "merges.txt").unlink(),
            change(folder / "tokenizer.json", pre_tokenizer={"type": "Whitespace"}),
        ),
        "must cut bytes as GPT-2's does",
    ),
}


@pytest.mark.parametrize("case", BROKEN_BARTS)
def test_a_broken_bart_is_refused_in_one_sentence(
    case: str, barts: Path, run_here: Run, tmp_path: Path
) -> None:
    family, edit, words = BROKEN_BARTS[case]
    folder = Path(shutil.copytree(barts / family, tmp_path / "model"))
    edit(folder)
    made = run_here("convert", str(folder), "-o", str(tmp_path / "out"))
    assert made.returncode == 2
    assert words in made.stderr
    assert len(made.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_first_tokens_that_differ_are_named(barts: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(barts / "bart", tmp_path / "bart"))
    change(folder / "generation_config.json", forced_bos_token_id=0)
    assert convert(folder, tmp_path / "same").dropped == ()
    change(folder / "generation_config.json", forced_bos_token_id=None)
    made = convert(folder, tmp_path / "free")
    assert made.dropped == ("forced_bos_token_id null (forced_bos_token_id 0 holds here)",)


def edit_config(**changes: Any) -> Callable[[Path], object]:
    return lambda folder: change(folder / "config.json", **changes)


def edit_tensors(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def apply(folder: Path) -> None:
        path = folder / "model.safetensors"
        tensors = safetensors.torch.load_file(path)
        edit(tensors)
        safetensors.torch.save_file(tensors, path)

    return apply


def remove(*names: str) -> Callable[[Path], object]:
    return lambda folder: [(folder / name).unlink() for name in names]


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


NORM = "model.encoder.layer_norm.weight"
BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "experts": (edit_config(model_type="nllb-moe"), "mixture of experts"),
    "another kind": (edit_config(model_type="t5"), "of kind t5"),
    "two starts": (edit_config(decoder_start_token_id=0), "must be eos_token_id (2), but is 0"),
    "another padding": (edit_config(pad_token_id=5), "pad_token_id must be that of <pad>, but 5"),
    "activation": (edit_config(activation_function="gelu_new"), "Did you mean 'gelu'"),
    "depth": (edit_config(encoder_layers=10**6), "encoder_layers must be a size"),
    "no norm": (edit_tensors(lambda one: one.pop(NORM)), f"contain {NORM}"),
    "too many": (edit_tensors(lambda one: one.update(more=torch.zeros(2))), "more does not"),
    "positions": (
        edit_tensors(
            lambda one: one.update({"model.encoder.embed_positions.weights": torch.rand(66, 12)})
        ),
        "sines and cosines",
    ),
    "no tokenizer": (
        remove("tokenizer.json", "sentencepiece.bpe.model"),
        "must contain sentencepiece.bpe.model",
    ),
    "no languages": (
        lambda folder: (
            (folder / "tokenizer.json").unlink(),
            (folder / "tokenizer_config.json").write_text("{}"),
        ),
        "must name the tokens of its languages",
    ),
    "legacy": (write("tokenizer_config.json", '{"legacy_behaviour": true}'), "legacy_behaviour"),
    "no vocabulary": (
        write("tokenizer.json", '{"model": {}}'),
        "must hold pieces of SentencePiece",
    ),
    "a pickle": (
        lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
        "a pickle, which can run hidden code",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_folder_is_refused_in_one_sentence(
    case: str, theirs: Path, run_here: Run, tmp_path: Path
) -> None:
    edit, words = BROKEN[case]
    folder = Path(shutil.copytree(theirs, tmp_path / "model"))
    edit(folder)
    out = tmp_path / "out"
    made = run_here("convert", str(folder), "-o", str(out))
    assert made.returncode == 2
    assert words in made.stderr
    assert len(made.stderr.strip().splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize("family", ["nllb", "mbart"])
def test_a_tokenizer_json_alone_cuts_as_the_pieces_do(
    family: str, theirs: Path, tmp_path: Path
) -> None:
    tokenizer, size = write_tokenizer(tmp_path / family, family)
    (tmp_path / family / "sentencepiece.bpe.model").unlink()
    found = read_vocabulary(tmp_path / family, {}, size)
    cut = PieceVocabulary(found.model, found.tokens, unk_id=3, reserved=(0, 1, 2))
    for line in ("ﬁne  print, ½ of it", "Zoë 日本", *random_sentences(40)):
        assert cut.encode(line) == tokenizer(line).input_ids[1:-1], line


def test_names_of_languages_are_those_of_their_codes() -> None:
    names = ("ace_Arab", "ace_Latn", "kmr_Latn", "yue_Hant", "zho_Hans", "zho_Hant", "por_Latn")
    for wanted, found in {
        "Kurdish": ["kmr_Latn"],
        "ku": ["kmr_Latn"],
        "Cantonese": ["yue_Hant"],
        "zh-TW": ["zho_Hant"],
        "Chinese": ["zho_Hans"],
        "pt-BR": ["por_Latn"],
        "Acehnese": ["ace_Arab", "ace_Latn"],
        "Klingon": [],
    }.items():
        assert near_names(names, wanted) == found


@pytest.fixture(scope="module")
def served(ours: Path) -> Iterator[Live]:
    with Live(load_models({"nllb": str(ours)})) as server:
        yield server


def test_the_service_has_every_pair(served: Live, ours: Path) -> None:
    languages = served.get("/languages").json()
    assert {one["code"] for one in languages} == {"de", "en", "fr", "zh-Hans", "zh-Hant"}
    assert all(len(one["targets"]) == 5 for one in languages)
    expected = load(ours).translate(LINES[0], source_language="en", to="fr")
    asked = {"q": LINES[0], "source": "en", "target": "fr"}
    assert served.post("/translate", asked).json()["translatedText"] == expected.text
    automatic = served.post("/translate", {**asked, "source": "auto"})
    assert automatic.status_code == 200
    page = served.post("/translate", {**asked, "q": f"<p>{LINES[0]}</p>", "format": "html"}).json()
    assert page["translatedText"].startswith("<p>")
    asked = {"texts": [LINES[0]], "source_language": "eng_Latn", "target_language": "French"}
    (answer,) = served.post("/v1/translate", asked).json()["translations"]
    assert answer["translation"] == expected.text
    del asked["source_language"]
    refused = served.post("/v1/translate", asked)
    assert refused.status_code == 422
    assert "source_language" in refused.json()["error"]
