"""``convert`` and ``export`` as a user runs them, with good and with bad input."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from of_subwords import SUBWORDS
from torch import Tensor

from pellucid.bundle import load_bundle, save_bundle
from pellucid.config import BundleConfig, ModelConfig, TokenizerConfig, TokenizerRecipe
from pellucid.formats.to_marian import export_marian
from pellucid.model import Transformer, initialize
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.translate.results import TranslatedHypothesis, Translation
from pellucid.translate.translator import Translator

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]
Change = Callable[[Path], object]

ARCHIVE = Path(__file__).parents[2] / "parity" / "marian_archive"
ENGLISH = "the black cat eats a red apple in kitchen while dog sleeps near old door"
FRENCH = "le chat noir mange une pomme rouge dans la cuisine près du vieil étang"


def sentences(text: str) -> list[str]:
    dice, words = random.Random(7), text.split(" ")
    return [" ".join(dice.choices(words, k=dice.randint(3, 11))) + "." for _ in range(300)]


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with subwords that every format has a form for."""
    recipe = TokenizerRecipe(vocabulary_size=330)
    tokenizer = learn_tokenizer(recipe, lambda: sentences(ENGLISH), lambda: sentences(FRENCH))
    sizes = {"d_model": 22, "d_ff": 19, "num_heads": 2, "max_source_length": 43}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 2, "max_target_length": 43}
    vocabulary = {"source_vocabulary_size": 330, "target_vocabulary_size": 330}
    config = ModelConfig.model_validate({**sizes, **layers, **vocabulary})
    with torch.random.fork_rng():
        model = Transformer(config)
        initialize(model, 1)
    folder = tmp_path_factory.mktemp("formats") / "ours"
    save_bundle(
        folder,
        config=BundleConfig(model=config, tokenizer=TokenizerConfig()),
        weights=model.state_dict(),
        tokenizer=tokenizer,
        recipe_toml="# a recipe\n",
        provenance={"data": {"pairs": 300}},
    )
    return folder


@pytest.fixture(scope="session")
def their_folder(ours: Path) -> Path:
    folder = ours.with_name("theirs")
    export_marian(load_bundle(ours), folder, "float32")
    return folder


def assert_refused(done: subprocess.CompletedProcess[str], *words: str, out: Path) -> None:
    """One sentence, exit code 2, and nothing left behind."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr
    assert not out.exists()
    assert not [path for path in out.parent.iterdir() if path.name.startswith(".")]


def change_json(name: str, **changes: Any) -> Change:
    def change(folder: Path) -> None:
        values = json.loads((folder / name).read_text("utf-8"))
        (folder / name).write_text(json.dumps({**values, **changes}), "utf-8")

    return change


def change_tensors(change: Callable[[dict[str, Tensor]], object]) -> Change:
    def apply(folder: Path) -> None:
        path = folder / "model.safetensors"
        tensors = safetensors.torch.load_file(path)
        change(tensors)
        path.write_bytes(safetensors.torch.save(tensors))

    return apply


def replace(name: str, data: bytes | None) -> Change:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        if data is not None:
            (folder / name).write_bytes(data)

    return change


def only_pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


NAMES = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def shard(folder: Path) -> dict[str, str]:
    """Put the weights of a folder into two files with an index; return where each tensor is."""
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    path.unlink()
    places = {tensor: NAMES[number % 2] for number, tensor in enumerate(sorted(tensors))}
    for name in NAMES:
        part = {tensor: tensors[tensor] for tensor, place in places.items() if place == name}
        safetensors.torch.save_file(part, folder / name)
    write_index(folder, places)
    return places


def write_index(folder: Path, places: object) -> None:
    values = {"metadata": {"total_size": 3}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(values))


def change_index(change: Callable[[dict[str, str]], object]) -> Change:
    def apply(folder: Path) -> None:
        places = shard(folder)
        write_index(folder, change(places) or places)

    return apply


def only_pickled_shards(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model-00001-of-00001.bin")
    (folder / "pytorch_model.bin.index.json").write_text("{}")


def lose_shard(folder: Path) -> None:
    shard(folder)
    (folder / NAMES[1]).unlink()


def hold_twice(folder: Path) -> None:
    places = shard(folder)
    tensor = next(one for one, name in places.items() if name == NAMES[0])
    parts = [safetensors.torch.load_file(folder / name) for name in NAMES]
    safetensors.torch.save_file(parts[1] | {tensor: parts[0][tensor]}, folder / NAMES[1])


def shorten(name: str) -> Change:
    def change(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:-7])

    return change


QUERY = "model.encoder.layers.0.self_attn.q_proj.weight"

BROKEN: dict[str, tuple[Change, str]] = {
    "pickle alone": (only_pickle, "can run hidden code"),
    "pickles alone": (only_pickled_shards, "can run hidden code"),
    "no map of shards": (change_index(lambda _: [1]), "weight_map must name"),
    "an empty map of shards": (change_index(dict.clear), "weight_map must name"),
    "a shard is missing": (lose_shard, "No such file"),
    "a shard outside": (
        change_index(lambda places: places.update({QUERY: f"../model/{NAMES[0]}"})),
        "weight_map must name",
    ),
    "a shard with a full path": (
        change_index(lambda places: places.update({QUERY: "/etc/x.safetensors"})),
        "weight_map",
    ),
    "a shard that is a pickle": (
        change_index(lambda places: places.update({QUERY: "pytorch_model.bin"})),
        "weight_map",
    ),
    "a shard that is a number": (change_index(lambda places: places.update({QUERY: 3})), "weight_"),
    "a tensor not in its shard": (
        change_index(lambda places: places.update({"another.weight": NAMES[0]})),
        "another.weight is only in one",
    ),
    "a tensor not in the index": (
        change_index(lambda places: places.pop(QUERY) and None),
        f"{QUERY} is only in one",
    ),
    "a tensor in two shards": (hold_twice, "is only in one of the two"),
    "no weights": (replace("model.safetensors", None), "must contain model.safetensors"),
    "weights cut off": (shorten("model.safetensors"), "must be a safetensors file"),
    "weights are text": (replace("model.safetensors", b"hello"), "must be a safetensors file"),
    "config cut off": (shorten("config.json"), "must be JSON"),
    "config a list": (replace("config.json", b"[]"), "must be a JSON object"),
    "config not utf-8": (replace("config.json", b"\xff{}"), "must be JSON"),
    "another architecture": (change_json("config.json", model_type="t5"), "of kind t5"),
    "unknown activation": (
        change_json("config.json", activation_function="gelu_new"),
        "Did you mean 'gelu'",
    ),
    "activation a number": (change_json("config.json", activation_function=3), "but is 3"),
    "missing size": (change_json("config.json", d_model=None), "d_model must be a whole number"),
    "enormous width": (change_json("config.json", d_model=10**15), "d_model must be a size"),
    "enormous depth": (change_json("config.json", encoder_layers=10**9), "encoder_layers"),
    "no layers": (change_json("config.json", encoder_layers=0), "greater than 0"),
    "heads that differ": (change_json("config.json", decoder_attention_heads=1), "attention_heads"),
    "heads that do not divide": (
        change_json("config.json", encoder_attention_heads=3, decoder_attention_heads=3),
        "multiple of num_heads",
    ),
    "larger vocabulary": (change_json("config.json", vocab_size=331), "vocab_size must be a size"),
    "smaller width": (change_json("config.json", d_model=20), "must be (330, 20)"),
    "padding out of range": (change_json("config.json", pad_token_id=330), "pad_token_id must be"),
    "padding unknown": (change_json("config.json", pad_token_id=None), "pad_token_id must be"),
    "padding is the end": (change_json("config.json", pad_token_id=3), "differ from each other"),
    "several ends": (change_json("config.json", eos_token_id=[3, 4]), "eos_token_id must be"),
    "no beam": (
        change_json("generation_config.json", num_beams=0),
        "beam must be at least 1, but is 0 (",
    ),
    "a tensor missing": (change_tensors(lambda tensors: tensors.pop(QUERY)), f"contain {QUERY}"),
    "no embeddings": (
        change_tensors(lambda tensors: tensors.pop("model.shared.weight")),
        "model.shared.weight",
    ),
    "a wrong shape": (
        change_tensors(lambda tensors: tensors.update({QUERY: torch.zeros(5, 22)})),
        f"{QUERY} must be (22, 22)",
    ),
    "no number": (change_tensors(lambda tensors: tensors[QUERY].fill_(torch.nan)), "finite"),
    "integers": (
        change_tensors(lambda tensors: tensors.update({QUERY: tensors[QUERY].to(torch.int8)})),
        "but is int8",
    ),
    "a tensor too many": (
        change_tensors(lambda tensors: tensors.update(layernorm_embedding=torch.zeros(22))),
        "layernorm_embedding does not",
    ),
    "learned positions": (
        change_tensors(
            lambda tensors: tensors.update(
                {"model.encoder.embed_positions.weight": torch.rand(43, 22)}
            )
        ),
        "sines and cosines",
    ),
    "no source.spm": (replace("source.spm", None), "must contain source.spm"),
    "target.spm damaged": (shorten("target.spm"), "target.spm must be a SentencePiece model"),
    "no vocab.json": (replace("vocab.json", None), "does not exist"),
    "vocab.json without <unk>": (replace("vocab.json", b'{"a": 0}'), "<unk> must have one id"),
    "an id twice": (replace("vocab.json", b'{"<unk>": 1, "b": 1}'), "stands for '<unk>' and 'b'"),
    "an id too large": (replace("vocab.json", b'{"<unk>": 330}'), "'<unk>' has 330"),
    "a wrong id": (replace("vocab.json", b'{"<unk>": "x"}'), "'<unk>' has 'x'"),
    "half a character": (
        replace("vocab.json", b'{"<unk>": 1, "a\\ud83d": 2}'),
        "\\ud83d is half of one",
    ),
    "half a character in settings": (
        replace("tokenizer_config.json", b'{"source_lang": "\\uDC00"}'),
        "tokenizer_config.json must hold whole characters",
    ),
    "half a character in the search": (
        replace("generation_config.json", b'{"suppress_tokens": ["\\udfff\\ud83d\\ude00"]}'),
        "\\udfff is half of one",
    ),
    "a token of two lines": (replace("vocab.json", b'{"<unk>": 1, "a\\nb": 2}'), "line break"),
    "two sizes, one list": (
        change_json("config.json", share_encoder_decoder_embeddings=False, decoder_vocab_size=329),
        "model.encoder.embed_tokens.weight",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_convert_broken_folder_of_hugging_face_is_refused(
    case: str, their_folder: Path, run_here: Run, tmp_path: Path
) -> None:
    change, words = BROKEN[case]
    folder = Path(shutil.copytree(their_folder, tmp_path / "model"))
    change(folder)
    out = tmp_path / "out"
    assert_refused(run_here("convert", str(folder), "-o", str(out)), words, out=out)


def change_archive(change: Callable[[dict[str, Any]], object]) -> Change:
    def apply(folder: Path) -> None:
        with np.load(folder / "model.npz") as archive:
            arrays = {name: archive[name] for name in archive.files}
        change(arrays)
        np.savez(folder / "model.npz", **arrays)

    return apply


def change_options(old: str, new: str) -> Change:
    name = "special:model.yml"

    def change(arrays: dict[str, Any]) -> None:
        text = arrays[name].tobytes().decode()
        assert old in text
        arrays[name] = np.frombuffer(text.replace(old, new).encode(), np.int8)

    return change_archive(change)


def change_text(name: str, old: str, new: str) -> Change:
    def change(folder: Path) -> None:
        text = (folder / name).read_text("utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), "utf-8")

    return change


BROKEN_ARCHIVE: dict[str, tuple[Change, str]] = {
    "half a character": (
        replace("vocab.yml", b'"</s>": 0\n"<unk>": 1\n"a\\ud83d": 2\n'),
        "vocab.yml",
    ),
    "no decoder.yml": (replace("decoder.yml", None), "one decoder.yml"),
    "decoder.yml is no YAML": (replace("decoder.yml", b"models: [a"), "must be YAML"),
    "decoder.yml is a list": (replace("decoder.yml", b"- a"), "must be a YAML mapping"),
    "two models": (change_text("decoder.yml", "  - model.npz", "  - a.npz\n  - b"), "Ensembles"),
    "no model": (replace("model.npz", None), "must contain model.npz"),
    "model cut off": (shorten("model.npz"), "must be a NumPy archive"),
    "model is text": (replace("model.npz", b"hello"), "must be a NumPy archive"),
    "model is one array": (
        lambda folder: (
            np.save(folder / "one.npy", np.zeros(3)),
            (folder / "one.npy").rename(folder / "model.npz"),
        ),
        "must be a NumPy archive",
    ),
    "a pickle inside": (
        change_archive(lambda arrays: arrays.update(Wemb=np.array([{}], dtype=object))),
        "holds a pickle",
    ),
    "no options": (change_archive(lambda arrays: arrays.pop("special:model.yml")), "special:model"),
    "a recurrent network": (change_options("type: transformer", "type: s2s"), "but is 's2s'"),
    "pre-norm": (change_options('preprocess: ""', "preprocess: n"), "transformer-preprocess"),
    "approximate gelu": (change_options("ffn-activation: swish", "ffn-activation: gelu"), "gelu"),
    "from right to left": (change_options("right-left: false", "right-left: true"), "right-left"),
    "a wrong size": (change_options("enc-depth: 2", "enc-depth: two"), "enc-depth must be"),
    "another depth": (change_options("enc-depth: 2", "enc-depth: 1"), "encoder_l2"),
    "an array missing": (
        change_archive(lambda arrays: arrays.pop("encoder_l1_self_Wq")),
        "encoder_l1_self_Wq",
    ),
    "no embeddings": (change_archive(lambda arrays: arrays.pop("Wemb")), "must contain Wemb"),
    "a short bias": (
        change_archive(lambda arrays: arrays.update(decoder_ff_logit_out_b=np.zeros((1, 3)))),
        "decoder_ff_logit_out_b must have",
    ),
    "a quantized table": (
        change_archive(lambda arrays: arrays.update(Wemb=arrays["Wemb"].astype(np.int8))),
        "before it was quantized",
    ),
    "no vocabulary": (replace("vocab.yml", None), "must contain vocab.yml"),
    "a vocabulary of another kind": (
        lambda folder: (
            (folder / "vocab.yml").rename(folder / "vocab.txt"),
            change_text("decoder.yml", "vocab.yml", "vocab.txt")(folder),
        ),
        "must be a .yml file",
    ),
    "a vocabulary too large": (change_text("vocab.yml", "<unk>: 1", "<unk>: 1000"), "'1000'"),
    "no source.spm": (replace("source.spm", None), "must contain source.spm"),
    "a wrong beam": (change_text("decoder.yml", "beam-size: 6", "beam-size: x"), "beam-size"),
}


@pytest.mark.parametrize("case", BROKEN_ARCHIVE)
def test_convert_broken_folder_of_marian_is_refused(
    case: str, run_here: Run, tmp_path: Path
) -> None:
    change, words = BROKEN_ARCHIVE[case]
    folder = Path(shutil.copytree(ARCHIVE, tmp_path / "model"))
    change(folder)
    out = tmp_path / "out"
    assert_refused(run_here("convert", str(folder), "-o", str(out)), words, out=out)


def test_convert_what_is_no_folder_of_a_model_is_refused(run_here: Run, tmp_path: Path) -> None:
    out, empty, file = tmp_path / "out", tmp_path / "empty", tmp_path / "model.zip"
    empty.mkdir()
    file.write_bytes(b"PK")
    for folder, words in (
        (tmp_path / "nothing", "does not exist"),
        (empty, "is an empty folder"),
        (file, "Unpack it"),
    ):
        done = run_here("convert", str(folder), "-o", str(out))
        assert_refused(done, words, str(folder), out=out)
    done = run_here("convert", str(ARCHIVE), "-o", str(out), "--format", "moses")
    assert_refused(done, "moses", "marian", out=out)


def test_convert_of_several_files_gives_the_same_weights(
    run_here: Run, their_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(their_folder, tmp_path / "parts"))
    shard(folder)
    for source, out in ((their_folder, "one"), (folder, "two")):
        assert run_here("convert", str(source), "-o", str(tmp_path / out)).returncode == 0
    first, second = (load_bundle(tmp_path / out) for out in ("one", "two"))
    assert first.model_hash == second.model_hash
    assert set(NAMES) < second.manifest["imported"]["files"].keys()


def test_convert_makes_a_bundle_that_translates(
    run_here: Run, their_folder: Path, tmp_path: Path
) -> None:
    for name, folder in (("theirs", their_folder), ("marian", ARCHIVE)):
        out = tmp_path / name
        done = run_here("convert", str(folder), "-o", str(out))
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{out}\n", "")
        translated = run_here("translate", str(out), stdin="the cat eats.\n\n>>fra<< dog\n")
        assert (translated.returncode, translated.stdout.count("\n")) == (0, 3)
        record = json.loads(run_here("inspect", str(out), "--json").stdout)
        imported = record["manifest"]["imported"]
        assert imported["format"] == "marian"
        assert set(imported["files"]) <= {path.name for path in folder.iterdir()}


def test_neither_command_writes_over_what_is_there(
    run_here: Run, ours: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "kept.txt").write_text("kept")
    for arguments in (
        ("convert", str(ARCHIVE)),
        ("export", str(ours), "--format", "marian"),
        ("export", str(ours), "--format", "ctranslate2"),
        ("export", str(ours), "--format", "pellucid"),
    ):
        done = run_here(*arguments, "-o", str(out))
        assert done.returncode == 2
        assert "exists" in done.stderr
        assert [path.name for path in out.iterdir()] == ["kept.txt"]
    (out / "kept.txt").unlink()
    assert run_here("convert", str(ARCHIVE), "-o", str(out)).returncode == 0


def test_export_to_marian_and_back_translates_the_same(
    run_here: Run, ours: Path, tmp_path: Path
) -> None:
    theirs, back = tmp_path / "theirs", tmp_path / "back"
    done = run_here("export", str(ours), "--format", "marian", "-o", str(theirs))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{theirs}\n", "")
    assert run_here("convert", str(theirs), "-o", str(back)).returncode == 0
    text = "".join(f"{line}\n" for line in sentences(ENGLISH)[:5])
    first, second = (run_here("translate", str(folder), stdin=text) for folder in (ours, back))
    assert first.returncode == second.returncode == 0
    assert first.stdout == second.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "marian", "--precision", "int8"], "float32 or bfloat16"),
        (
            [__file__, __file__, "--format", "marian"],
            "combined with the format marian",
        ),
        (["--format", "pellucid", "x"], "PAIRS must be one file with both sides"),
        (["--format", "pellucid", "no.txt", "no.txt"], "no.txt"),
        (["--format", "pellucid", "--reference", "x"], "Give the files as words: PAIRS instead"),
        (["--format", "pellucid", "--precision", "auto"], "needs lines to measure BLEU with"),
        (["--format", "marian", "--precision", "auto"], "needs lines to measure BLEU with"),
        (["--format", "onnx"], "onnx"),
        (["--format", "pellucid", "--precision", "int4"], "int4"),
        ([], "--format"),
    ],
)
def test_export_contradictory_options_are_refused(
    arguments: list[str], words: str, run_here: Run, ours: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert_refused(run_here("export", str(ours), "-o", str(out), *arguments), words, out=out)


def test_export_to_marian_names_what_it_has_no_form_for(
    run_here: Run, bundle_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for model, words in ((SUBWORDS, "model.norm"), (str(bundle_folder), "model.d_value")):
        done = run_here("export", model, "--format", "marian", "-o", str(out))
        assert_refused(done, words, "Marian", "--format pellucid", out=out)
    assert run_here("convert", str(ARCHIVE), "-o", str(tmp_path / "archive")).returncode == 0
    done = run_here("export", str(tmp_path / "archive"), "--format", "marian", "-o", str(out))
    assert_refused(done, "model.layer_norm_epsilon", out=out)


def test_export_to_marian_refuses_whole_words(run_here: Run, ours: Path, tmp_path: Path) -> None:
    recipe = TokenizerRecipe(kind="words")
    words = learn_tokenizer(recipe, lambda: sentences(ENGLISH), lambda: sentences(FRENCH))
    size = words.source_vocabulary_size
    sizes = {"source_vocabulary_size": size, "target_vocabulary_size": size}
    config = load_bundle(ours).config.model.model_copy(update=sizes)
    model = Transformer(config)
    initialize(model, 1)
    save_bundle(
        tmp_path / "words",
        config=BundleConfig(model=config, tokenizer=TokenizerConfig(kind="words")),
        weights=model.state_dict(),
        tokenizer=words,
        recipe_toml="",
        provenance={},
    )
    out = tmp_path / "out"
    done = run_here("export", str(tmp_path / "words"), "--format", "marian", "-o", str(out))
    assert_refused(done, "tokenizer.kind", "'words'", out=out)


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_export_to_pellucid_measures_both_and_keeps_the_figures(
    precision: str, run_here: Run, write_lines: WriteLines, tmp_path: Path
) -> None:
    lines = ["The pizza came out of the oven.", "It tasted good.", "x" * 3000]
    source = write_lines("source.txt", *lines)
    reference = write_lines("reference.txt", "La pizza est sortie du four.", "C'était bon.", "x")
    out = tmp_path / "out"
    files = (source, reference)
    done = run_here(
        "export", SUBWORDS, "--format", "pellucid", "--precision", precision, "-o", str(out), *files
    )
    assert done.returncode == 3  # The third line is too long, which is reported once.
    assert done.stderr.count("\n") == 1
    assert "line 3" in done.stderr
    before, after, path = done.stdout.splitlines()
    assert path == str(out)
    record = json.loads(run_here("inspect", str(out), "--json").stdout)
    exported = record["manifest"]["exported"]
    assert exported["precision"] == {"before": "float32", "after": precision}
    assert exported["from"] == load_bundle(demo_folder()).model_hash
    bleu = exported["bleu"]
    assert before == f"BLEU {bleu['before']:6.2f}  before (float32)"
    assert after.startswith(f"BLEU {bleu['after']:6.2f}  after ({precision})")
    assert bleu["difference"] == bleu["after"] - bleu["before"]
    assert record["config"]["precision"] == precision
    assert record["config"]["decoding"]["precision"] == precision
    assert record["manifest"]["training"]["step"] > 0
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (out, demo_folder())]
    assert sizes[0] < 0.6 * sizes[1]


def test_export_with_precision_auto_keeps_what_the_lines_allow(
    run_here: Run, write_lines: WriteLines, tmp_path: Path
) -> None:
    lines = ["The pizza came out of the oven.", "The cat slept because it was tired."]
    source = write_lines("source.txt", *lines)
    model = demo_folder()
    done = {}
    for precision in ("float32", "int8"):
        out = run_here("translate", str(model), "--precision", precision, "--input", source)
        done[precision] = out.stdout.splitlines()
    # As references, its own translations in int8 cannot lose.
    reference = write_lines("reference.txt", *done["int8"])
    files = (source, reference)
    out = tmp_path / "out"

    exported = run_here(
        "export", str(model), "--format", "pellucid", "--precision", "auto", "-o", str(out), *files
    )

    assert exported.returncode == 0, exported.stderr
    config = json.loads((out / "config.json").read_text())
    assert (config["precision"], config["decoding"]["precision"]) == ("int8", "int8")


def test_export_with_precision_auto_refuses_a_loss(
    run_here: Run, write_lines: WriteLines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = write_lines("lines.txt", "The pizza came out of the oven.")
    # A gain would be needed.
    monkeypatch.setattr("pellucid.functions.convert_model.LOSS_ALLOWED", -0.5)
    out = tmp_path / "out"

    done = run_here(
        *("export", SUBWORDS, "--format", "pellucid", "--precision", "auto", "-o", str(out)),
        *(lines, lines),
    )

    assert done.returncode == 0, done.stderr
    assert "after (int8), difference +0.00: too low" in done.stdout
    config = json.loads((out / "config.json").read_text())
    assert (config["precision"], config["decoding"]["precision"]) == ("float32", "float32")


def test_export_to_pellucid_reports_lines_that_only_the_new_bundle_fails_at(
    run_here: Run, write_lines: WriteLines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = write_lines("lines.txt", "The pizza came out of the oven.", "x" * 3000)

    def translate(translator: Translator, sources: list[str]) -> list[Translation]:
        is_new = translator.bundle.folder != demo_folder()
        problems = ["no translation." if is_new else None, "It is too long."]
        hypotheses = [TranslatedHypothesis(source) for source in sources]
        return [
            Translation(source, (one,), error=problem)
            for source, one, problem in zip(sources, hypotheses, problems, strict=True)
        ]

    monkeypatch.setattr(Translator, "translate", translate)
    files = (lines, lines)
    arguments = ("export", SUBWORDS, "--format", "pellucid", "-o", str(tmp_path / "out"))
    done = run_here(*arguments, "--precision", "int8", *files)
    assert done.returncode == 3
    said = ["line 2: It is too long.", "After (int8): line 1: no translation."]
    said = [f"error: {line}" for line in said]
    assert done.stderr.splitlines() == said


def demo_folder() -> Path:
    from pellucid.bundle import resolve_model

    return resolve_model(SUBWORDS)


def test_export_to_pellucid_without_lines_says_that_nothing_was_measured(
    run_here: Run, ours: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run_here(
        "export", str(ours), "--format", "pellucid", "--precision", "int8", "-o", str(out)
    )
    assert (done.returncode, done.stdout) == (0, f"{out}\n")
    assert "Nothing was measured" in done.stderr
    assert (out / "recipe.toml").read_text() == "# a recipe\n"
    manifest = json.loads((out / "manifest.json").read_text())
    assert "bleu" not in manifest["exported"]
    assert manifest["data"] == {"pairs": 300}


def test_export_to_pellucid_again_from_fewer_bits_changes_nothing(
    run_here: Run, ours: Path, tmp_path: Path
) -> None:
    export = ("--format", "pellucid", "--precision", "int8", "-o")
    assert run_here("export", str(ours), *export, str(tmp_path / "one")).returncode == 0
    assert run_here("export", str(tmp_path / "one"), *export, str(tmp_path / "two")).returncode == 0
    files = [
        json.loads((tmp_path / name / "manifest.json").read_text())["files"]
        for name in ("one", "two")
    ]
    assert files[0] == files[1]


def test_both_commands_run_as_programs(run_cli: Run, run_forked: Run, tmp_path: Path) -> None:
    bundle, theirs = tmp_path / "bundle", tmp_path / "theirs"
    done = run_cli("convert", str(ARCHIVE), "-o", str(bundle))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{bundle}\n", "")
    done = run_forked("export", str(bundle), "--format", "marian", "-o", str(theirs))
    assert_refused(done, "model.layer_norm_epsilon", out=theirs)
