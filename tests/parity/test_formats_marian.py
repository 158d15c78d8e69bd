"""Hugging Face's MarianMT in both directions: the same ids, the same log-probabilities."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from small_marian import (
    ENGLISH,
    FRENCH,
    LONGEST,
    D,
    F,
    H,
    change_json,
    marian,
    sentences,
    write_theirs,
)
from torch import Tensor

from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.config import (
    BundleConfig,
    LanguagesConfig,
    ModelConfig,
    TokenizerConfig,
    TokenizerRecipe,
)
from pellucid.errors import BundleError, InputError
from pellucid.formats.from_marian import import_marian
from pellucid.formats.to_marian import export_marian
from pellucid.model import Transformer, initialize
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.translate.translator import load

TEXTS = [
    "the cat sleeps near the door.",
    "  two  spaces, ﬁne print and ½ an apple",
    ">>fra<< a dog eats",
    ">>fra<<",
    "",
    "日本 <s> the",
    "a >>fra<< b",
]


def convert(folder: Path, out: Path) -> Bundle:
    import_marian(folder).save(out)
    return load_bundle(out)


def log_probabilities(bundle: Bundle, source: list[int], target: list[int]) -> Tensor:
    inputs = [bundle.config.tokenizer.target_start_id, *target[:-1]]
    with torch.inference_mode():
        return bundle.model(torch.tensor([source]), torch.tensor([inputs]))[0].log_softmax(-1)


def their_log_probabilities(theirs: Any, source: list[int], target: list[int]) -> Tensor:
    inputs = [theirs.config.decoder_start_token_id, *target[:-1]]
    with torch.inference_mode():
        logits: Tensor = theirs(
            input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([inputs])
        ).logits[0]
    return logits.log_softmax(-1)


def assert_same_function(bundle: Bundle, theirs: Any) -> None:
    numbers = torch.Generator().manual_seed(47)
    config = bundle.config.model
    for source_length, target_length in ((5, 7), (1, 11), (13, 1)):
        source = torch.randint(config.source_vocabulary_size, (source_length,), generator=numbers)
        target = torch.randint(config.target_vocabulary_size, (target_length,), generator=numbers)
        pair = source.tolist(), target.tolist()
        difference = (
            log_probabilities(bundle, *pair) - their_log_probabilities(theirs, *pair)
        ).abs()
        largest, mean = float(difference.max()), float(difference.mean())
        assert largest <= 1e-4, f"largest difference {largest:.3g}, mean {mean:.3g}"


@pytest.mark.parametrize(
    ("changes", "tied"),
    [
        ({}, "all"),
        ({"activation_function": "relu", "scale_embedding": False}, "all"),
        ({"activation_function": "gelu"}, "all"),
        ({"share_encoder_decoder_embeddings": False}, "decoder"),
        ({"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}, "none"),
    ],
    ids=["opus", "relu", "gelu", "separate", "untied"],
)
def test_imported_model_gives_their_log_probabilities(
    changes: dict[str, Any], tied: str, tmp_path: Path
) -> None:
    theirs = write_theirs(tmp_path / "theirs", **changes)
    bundle = convert(tmp_path / "theirs", tmp_path / "ours")
    assert bundle.config.model.tied_embeddings == tied
    assert bundle.config.languages == LanguagesConfig(source="en", target="fr")
    assert_same_function(bundle, theirs)


@pytest.mark.parametrize("is_shared", [True, False])
def test_imported_tokenizer_gives_their_ids_and_their_text(is_shared: bool, tmp_path: Path) -> None:
    write_theirs(tmp_path / "theirs", share_encoder_decoder_embeddings=is_shared)
    ours = convert(tmp_path / "theirs", tmp_path / "ours").tokenizer
    theirs = marian.MarianTokenizer.from_pretrained(tmp_path / "theirs")
    for text in TEXTS:
        expected = theirs(text).input_ids
        assert ours.encode_source(text) == expected, text
    assert 1 in ours.encode_source("日本")
    for text in ("le chat dort.", "une pomme à 日本"):
        theirs._switch_to_target_mode()
        expected = [*theirs.convert_tokens_to_ids(theirs._tokenize(text)), theirs.eos_token_id]
        assert ours.encode_target(text) == expected
        # Their tokenizer omits <unk>, ours shows it.
        shown = ours.decode_target(expected).replace("<unk>", "")
        assert shown.strip() == theirs.decode(expected, skip_special_tokens=True)


def test_imported_model_translates_as_theirs_generates(tmp_path: Path) -> None:
    theirs = write_theirs(tmp_path / "theirs")
    bundle = convert(tmp_path / "theirs", tmp_path / "ours")
    # Theirs invents a translation for a code without a text; ours is empty.
    texts = [text for text in TEXTS if text not in ("", ">>fra<<")]
    assert load(tmp_path / "ours").translate([">>fra<<"])[0].text == ""
    for text, translation in zip(texts, load(tmp_path / "ours").translate(texts), strict=True):
        expected = theirs.generate(
            torch.tensor([bundle.tokenizer.encode_source(text)]), max_new_tokens=15
        )[0, 1:].tolist()
        assert list(translation.ids[:15]) == expected, text


def test_their_search_becomes_ours(tmp_path: Path) -> None:
    write_theirs(tmp_path / "theirs")
    path = tmp_path / "theirs" / "generation_config.json"
    change_json(path, num_beams=4, length_penalty=0.7)
    decoding = convert(tmp_path / "theirs", tmp_path / "ours").config.decoding
    assert (decoding.beam, decoding.max_length) == (4, 30)
    assert (decoding.length_penalty, decoding.alpha) == ("average", 0.7)
    # The model's own limit needs no entry, and older folders keep it elsewhere.
    path.unlink()
    change_json(tmp_path / "theirs" / "config.json", num_beams=6, max_length=LONGEST)
    decoding = convert(tmp_path / "theirs", tmp_path / "again").config.decoding
    assert (decoding.beam, decoding.max_length, decoding.alpha) == (6, None, 1.0)


def test_marian_to_pellucid_to_marian_is_equal(tmp_path: Path) -> None:
    write_theirs(tmp_path / "theirs")
    change_json(tmp_path / "theirs" / "generation_config.json", num_beams=4, length_penalty=0.7)
    export_marian(convert(tmp_path / "theirs", tmp_path / "ours"), tmp_path / "again", "float32")
    first, second = (
        safetensors.torch.load_file(tmp_path / name / "model.safetensors")
        for name in ("theirs", "again")
    )
    assert second.keys() == first.keys()
    assert all(torch.equal(second[name], tensor) for name, tensor in first.items())
    for name in ("source.spm", "target.spm"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    vocabularies, configs, generations = (
        [json.loads((tmp_path / folder / name).read_text()) for folder in ("theirs", "again")]
        for name in ("vocab.json", "config.json", "generation_config.json")
    )
    assert vocabularies[0] == vocabularies[1]
    both = configs[0].keys() & configs[1].keys()
    assert {name for name in both if configs[0][name] != configs[1][name]} == set()
    assert len(both) > 15
    for name in ("num_beams", "length_penalty", "max_length", "bad_words_ids"):
        assert generations[0][name] == generations[1][name], name


def make_ours(folder: Path, sharing: str = "joint", **changes: Any) -> Bundle:
    """Write a small random model of ours, its tokenizer learned from a few sentences."""
    recipe = TokenizerRecipe.model_validate({"vocabulary_size": 330, "sharing": sharing})
    tokenizer = learn_tokenizer(recipe, lambda: sentences(ENGLISH), lambda: sentences(FRENCH))
    model_config = ModelConfig.model_validate(
        {
            "d_model": D,
            "d_ff": F,
            "num_heads": H,
            "num_encoder_layers": 2,
            "num_decoder_layers": 3,
            "source_vocabulary_size": tokenizer.source_vocabulary_size,
            "target_vocabulary_size": tokenizer.target_vocabulary_size,
            "max_source_length": LONGEST,
            "max_target_length": 43,
            **changes,
        }
    )
    model = Transformer(model_config, has_output_bias=sharing == "separate")
    initialize(model, 1)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(5))
    save_bundle(
        folder,
        config=BundleConfig(model=model_config, tokenizer=TokenizerConfig(sharing=sharing)),
        weights=model.state_dict(),
        tokenizer=tokenizer,
        recipe_toml="",
        provenance={},
    )
    return load_bundle(folder)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("sharing", "changes"),
    [
        ("joint", {}),
        ("joint", {"positions": "sinusoidal_halves", "projection_bias": True}),
        ("joint", {"tied_embeddings": "none", "activation": "gelu", "embedding_scale": "none"}),
        ("joint", {"tied_embeddings": "decoder", "activation": "swish"}),
        ("separate", {"tied_embeddings": "decoder", "projection_bias": True}),
        ("separate", {"tied_embeddings": "none"}),
    ],
    ids=["paper", "halves", "untied", "decoder", "separate", "separate-untied"],
)
def test_exported_model_gives_our_log_probabilities_in_transformers(
    sharing: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    bundle = make_ours(tmp_path / "ours", sharing, **changes)
    export_marian(bundle, tmp_path / "theirs", "float32")
    theirs, report = marian.MarianMTModel.from_pretrained(
        tmp_path / "theirs", output_loading_info=True
    )
    problems = {kind: names for kind, names in report.items() if names and "missing" not in kind}
    assert not problems
    assert all("embed_positions" in name for name in report["missing_keys"])
    assert theirs.dtype == torch.float32
    assert_same_function(bundle, theirs.eval())


def test_exported_tokenizer_gives_our_ids_in_transformers(tmp_path: Path) -> None:
    for sharing in ("joint", "separate"):
        bundle = make_ours(tmp_path / f"ours-{sharing}", sharing, tied_embeddings="decoder")
        export_marian(bundle, tmp_path / f"theirs-{sharing}", "float32")
        theirs = marian.MarianTokenizer.from_pretrained(tmp_path / f"theirs-{sharing}")
        for text in ("the cat sleeps near the door.", "日本", "a  b"):
            assert theirs(text).input_ids == bundle.tokenizer.encode_source(text)
            ids = bundle.tokenizer.encode_target(text)
            assert theirs.decode(ids, skip_special_tokens=True) == text


def test_exported_model_generates_as_ours_translates(tmp_path: Path) -> None:
    bundle = make_ours(tmp_path / "ours")
    export_marian(bundle, tmp_path / "theirs", "float32")
    theirs = marian.MarianMTModel.from_pretrained(tmp_path / "theirs")
    generation = json.loads((tmp_path / "theirs" / "generation_config.json").read_text())
    assert generation["bad_words_ids"] == [[0], [2]]
    texts = sentences(ENGLISH)[:5]
    for text, translation in zip(texts, load(tmp_path / "ours").translate(texts), strict=True):
        ids = bundle.tokenizer.encode_source(text)
        expected = theirs.generate(torch.tensor([ids]), max_new_tokens=15)[0, 1:].tolist()
        assert list(translation.ids[:15]) == expected, text


def test_page_about_the_format_shows_what_works(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_ours(tmp_path / "ours")
    export_marian(load_bundle(tmp_path / "ours"), tmp_path / "theirs", "float32")
    page = (root / "docs" / "formats" / "marian.md").read_text("utf-8")
    code, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code.replace("FOLDER", str(tmp_path / "theirs")), {})
    assert capsys.readouterr().out.startswith("[")


def test_bfloat16_export_holds_the_rounded_weights(tmp_path: Path) -> None:
    bundle = make_ours(tmp_path / "ours")
    export_marian(bundle, tmp_path / "full", "float32")
    export_marian(bundle, tmp_path / "half", "bfloat16")
    before = sorted(path.read_bytes() for path in (tmp_path / "half").iterdir())
    with pytest.raises(InputError, match="must be a new folder"):
        export_marian(bundle, tmp_path / "half", "float32")
    assert sorted(path.read_bytes() for path in (tmp_path / "half").iterdir()) == before
    full, half = (
        safetensors.torch.load_file(tmp_path / name / "model.safetensors")
        for name in ("full", "half")
    )
    assert all(torch.equal(half[name], tensor.bfloat16()) for name, tensor in full.items())
    theirs = marian.MarianMTModel.from_pretrained(tmp_path / "half")
    assert theirs.dtype == torch.bfloat16


@pytest.mark.parametrize(
    "kept", ["model.encoder.embed_tokens.weight", "lm_head.weight", "model.shared.weight"]
)
def test_tied_table_is_found_under_any_of_its_names(kept: str, tmp_path: Path) -> None:
    theirs = write_theirs(tmp_path / "theirs")
    path = tmp_path / "theirs" / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors[kept] = tensors.pop("model.shared.weight")
    path.write_bytes(safetensors.torch.save(tensors))
    assert_same_function(convert(tmp_path / "theirs", tmp_path / "ours"), theirs)


def test_half_precision_files_with_their_tables_of_positions_are_imported(tmp_path: Path) -> None:
    theirs = write_theirs(tmp_path / "theirs")
    path = tmp_path / "theirs" / "model.safetensors"
    tensors = {name: tensor.half() for name, tensor in safetensors.torch.load_file(path).items()}
    for part in ("encoder", "decoder"):
        name = f"model.{part}.embed_positions.weight"
        tensors[name] = theirs.state_dict()[name].half().clone()
    path.write_bytes(safetensors.torch.save(tensors))
    (tmp_path / "theirs" / "generation_config.json").unlink()
    bundle = convert(tmp_path / "theirs", tmp_path / "ours")
    shutil.rmtree(tmp_path / "theirs")
    weight = bundle.model.state_dict()["encoder.layers.0.feed_forward.inner.weight"]
    assert torch.equal(weight, theirs.model.encoder.layers[0].fc1.weight.half().float())
    assert bundle.config.decoding.max_length is None


def test_pieces_that_only_one_model_has_are_decoded_as_theirs(tmp_path: Path) -> None:
    write_theirs(tmp_path / "theirs")
    ours = convert(tmp_path / "theirs", tmp_path / "ours").tokenizer
    theirs = marian.MarianTokenizer.from_pretrained(tmp_path / "theirs")
    tokens = ours.vocabulary("target")
    chosen = [tokens.index(piece) for piece in ("▁le", "▁cat", "▁chat", "▁sleeps", "▁red")]
    for ids in (chosen, chosen[1:], chosen[::-1], chosen[1:2]):
        assert ours.decode_target(ids) == theirs.decode(ids, skip_special_tokens=True)


def test_two_lines_of_the_message_make_a_pickled_folder_usable(tmp_path: Path) -> None:
    folder = tmp_path / "their model"
    theirs = write_theirs(folder)
    (folder / "model.safetensors").unlink()
    torch.save(theirs.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(BundleError, match="can run hidden code") as raised:
        import_marian(folder)
    lines = str(raised.value).partition("next to it: ")[2]
    assert lines.count(";") == 1
    exec(lines, {})
    assert_same_function(convert(folder, tmp_path / "ours"), theirs)


def test_dropped_settings_are_said_and_kept_in_the_manifest(tmp_path: Path, run_here: Any) -> None:
    write_theirs(tmp_path / "theirs")
    change_json(tmp_path / "theirs" / "generation_config.json", begin_suppress_tokens=[5, 7])
    done = run_here("convert", str(tmp_path / "theirs"), "-o", str(tmp_path / "ours"))
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'ours'}\n")
    assert "not carried over" in done.stderr
    assert "begin_suppress_tokens [5, 7]." in done.stderr
    assert done.stderr.count("\n") == 1
    assert load_bundle(tmp_path / "ours").manifest["imported"]["dropped"] == [
        "begin_suppress_tokens [5, 7]"
    ]
    assert "begin_suppress_tokens" in run_here("inspect", str(tmp_path / "ours")).stdout


# Out again


UNEXPRESSED: dict[str, dict[str, Any]] = {
    "norm": {"norm": "pre"},
    "norm_kind": {"norm_kind": "rms"},
    "stack_norm": {"stack_norm": True},
    "input_norm": {"input_norm": True},
    "layer_norm_epsilon": {"layer_norm_epsilon": 1e-6},
    "gated_feed_forward": {"gated_feed_forward": True},
    "positions": {"positions": "learned"},
    "num_key_value_heads": {"num_key_value_heads": 1},
    "residual": {"residual": False},
    "scale_scores": {"scale_scores": False},
    "look_ahead_mask": {"look_ahead_mask": False},
    "projections": {"projections": "qk"},
    "decoder": {"decoder": "ssru"},
    "d_key": {"d_key": 10},
    "d_value": {"d_value": 10},
}
EXPRESSED = {
    *("activation", "embedding_scale", "projection_bias", "tied_embeddings", "architecture"),
    *("d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers"),
    *("source_vocabulary_size", "target_vocabulary_size"),
    *("max_source_length", "max_target_length"),
}
"""What an export carries over, whatever its value is; `architecture` is refused by its name too."""
ONLY_WITH = {"max_relative_distance": "positions", "recurrent_attention": "architecture"}


def test_every_setting_is_carried_over_or_refused_by_its_name() -> None:
    assert {*UNEXPRESSED, *EXPRESSED, *ONLY_WITH} == set(ModelConfig.model_fields)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *UNEXPRESSED.items(),
        *(("positions", {"positions": one}) for one in ("none", "rotary", "alibi", "relative")),
        ("norm", {"norm": "none"}),
        ("projections", {"projections": "none"}),
    ],
)
def test_setting_without_a_counterpart_is_refused_by_its_name(
    name: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    bundle = make_ours(tmp_path / "ours", **changes)
    with pytest.raises(InputError, match=rf"model\.{name} ") as raised:
        export_marian(bundle, tmp_path / "theirs", "float32")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "theirs").exists()


def test_attention_of_an_export_in_transformers_is_that_of_a_trace(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_ours(tmp_path / "MODEL")
    monkeypatch.chdir(tmp_path)
    export_marian(load_bundle(tmp_path / "MODEL"), tmp_path / "FOLDER", "float32")
    page = (root / "docs" / "formats" / "marian.md").read_text("utf-8")
    _, code, _ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert (tmp_path / "both.png").stat().st_size > 1000
    trace = names["trace"]
    found = names["found"]
    layers = {
        "encoder.{}.self": found.encoder_attentions,
        "decoder.{}.self": found.decoder_attentions,
        "decoder.{}.cross": found.cross_attentions,
    }
    for name, each in layers.items():
        for index, weights in enumerate(each):
            difference = abs(trace[name.format(index)] - weights[0].numpy()).max()
            assert difference < 1e-5, (name, index)
    assert float(capsys.readouterr().out.split()[-1]) < 1e-5
