"""CTranslate2 gives the log-probabilities and the translations of the model it was made from."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from of_subwords import SUBWORDS

from pellucid.bundle import Bundle, load_bundle, resolve_model, save_bundle
from pellucid.config import BundleConfig, ModelConfig, TokenizerConfig, TokenizerRecipe
from pellucid.errors import InputError
from pellucid.formats.to_ctranslate2 import export_ctranslate2
from pellucid.model import Transformer, initialize
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.translate.translator import load

ctranslate2 = pytest.importorskip("ctranslate2")

H, F = 3, 19
D = 2 * H * 11
NEVER_WRITTEN = [["<pad>"], ["<s>"]]

ENGLISH = "the black cat eats a red apple in kitchen while dog sleeps near old door"
FRENCH = "le chat noir mange une pomme rouge dans la cuisine près du vieil étang"
DEMO = [
    "The pizza came out of the oven and it tasted good.",
    "The cat did not cross the street because it was too tired.",
]


def sentences(text: str, count: int = 300) -> list[str]:
    dice, words = random.Random(7), text.split(" ")
    return [" ".join(dice.choices(words, k=dice.randint(3, 11))) + "." for _ in range(count)]


def make_ours(folder: Path, *, sharing: str = "joint", kind: str = "", **changes: Any) -> Bundle:
    settings: dict[str, Any] = {"vocabulary_size": 330, "sharing": sharing}
    if kind:
        settings = {"kind": kind, "sharing": sharing}
    recipe = TokenizerRecipe.model_validate(settings)
    tokenizer = learn_tokenizer(recipe, lambda: sentences(ENGLISH), lambda: sentences(FRENCH))
    config = ModelConfig.model_validate(
        {
            "d_model": D,
            "d_ff": F,
            "num_heads": H,
            "num_encoder_layers": 2,
            "num_decoder_layers": 3,
            "source_vocabulary_size": tokenizer.source_vocabulary_size,
            "target_vocabulary_size": tokenizer.target_vocabulary_size,
            "max_source_length": 47,
            "max_target_length": 43,
            **changes,
        }
    )
    model = Transformer(config, has_output_bias=sharing == "separate")
    initialize(model, 1)
    numbers = torch.Generator().manual_seed(5)
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or "norm" in name:
            center = 1.0 if name.endswith("weight") else 0.0
            torch.nn.init.normal_(parameter, center, 0.3, generator=numbers)
    save_bundle(
        folder,
        config=BundleConfig(
            model=config,
            tokenizer=TokenizerConfig.model_validate(
                {name: getattr(recipe, name) for name in TokenizerConfig.model_fields}
            ),
        ),
        weights=model.state_dict(),
        tokenizer=tokenizer,
        recipe_toml="",
        provenance={},
    )
    return load_bundle(folder)


def open_theirs(bundle: Bundle, folder: Path, precision: Any = "float32") -> Any:
    export_ctranslate2(bundle, folder, precision)
    return ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)


def assert_near(actual: list[float], expected: list[float]) -> None:
    assert len(actual) == len(expected)
    largest = max(abs(a - b) for a, b in zip(actual, expected, strict=True))
    assert largest <= 1e-4, f"largest difference {largest:.3g}"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre"},
        {"norm": "pre", "projection_bias": True, "activation": "gelu", "sharing": "separate"}
        | {"tied_embeddings": "none"},
        {"positions": "sinusoidal_halves", "activation": "swish", "embedding_scale": "none"},
        {"positions": "learned", "tied_embeddings": "none", "layer_norm_epsilon": 0.02},
        {"positions": "none", "sharing": "separate", "tied_embeddings": "decoder"},
        {"kind": "words"},
    ],
    ids=["paper", "pre", "all-apart", "halves", "learned", "no-positions", "words"],
)
def test_scores_and_greedy_translations_are_ours(changes: dict[str, Any], tmp_path: Path) -> None:
    bundle = make_ours(tmp_path / "ours", **changes)
    theirs = open_theirs(bundle, tmp_path / "theirs")
    tokenizer = bundle.tokenizer
    sources, targets = sentences(ENGLISH, 5), sentences(FRENCH, 5)
    translator = load(tmp_path / "ours")
    scores, translations = translator.score(sources, targets), translator.translate(sources)
    for text, score, translation in zip(sources, scores, translations, strict=True):
        pieces = tokenizer.source_tokens(tokenizer.encode_source(text))[:-1]
        scored = theirs.score_batch([pieces], [list(score.tokens[:-1])])[0]
        assert_near(scored.log_probs, list(score.token_log_probabilities))
        written = theirs.translate_batch(
            [pieces], beam_size=1, max_decoding_length=15, suppress_sequences=NEVER_WRITTEN
        )[0].hypotheses[0]
        assert written == [token for token in translation.tokens[:15] if token != "</s>"]


def test_trained_model_scores_and_translates_alike_to_the_last_token(tmp_path: Path) -> None:
    bundle = load_bundle(resolve_model(SUBWORDS))
    theirs = open_theirs(bundle, tmp_path / "theirs")
    translator = load(SUBWORDS)
    translations = translator.translate(DEMO)
    scores = translator.score(DEMO, [translation.text for translation in translations])
    for text, translation, score in zip(DEMO, translations, scores, strict=True):
        tokens = bundle.tokenizer.source_tokens(bundle.tokenizer.encode_source(text))[:-1]
        written = theirs.translate_batch([tokens], beam_size=1)[0].hypotheses[0]
        assert written == list(translation.tokens[:-1])
        theirs_of_ours = theirs.score_batch([tokens], [written])[0].log_probs
        assert_near(theirs_of_ours, list(score.token_log_probabilities))


def test_export_in_fewer_bits_translates_and_is_smaller(tmp_path: Path) -> None:
    bundle = load_bundle(resolve_model(SUBWORDS))
    sizes = {}
    for precision in ("float32", "bfloat16", "int8"):
        theirs = open_theirs(bundle, tmp_path / precision, precision)
        sizes[precision] = (tmp_path / precision / "model.bin").stat().st_size
        tokens = bundle.tokenizer.source_tokens(bundle.tokenizer.encode_source(DEMO[0]))[:-1]
        written = theirs.translate_batch([tokens], beam_size=1)[0].hypotheses[0]
        assert "".join(written).replace("\u2581", " ").startswith(" La pizza")
    assert sizes["int8"] < 0.7 * sizes["bfloat16"] < 0.49 * sizes["float32"]


def test_page_about_the_format_shows_what_works(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export_ctranslate2(load_bundle(resolve_model(SUBWORDS)), tmp_path / "theirs", "float32")
    page = (root / "docs" / "formats" / "ctranslate2.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code.replace("FOLDER", str(tmp_path / "theirs")), {})
    assert capsys.readouterr().out.strip()


def test_tokenizer_files_lie_beside_the_model(tmp_path: Path) -> None:
    bundle = make_ours(tmp_path / "ours")
    export_ctranslate2(bundle, tmp_path / "theirs", "float32")
    names = {path.name for path in (tmp_path / "theirs").iterdir()}
    assert names == {"config.json", "model.bin", "shared_vocabulary.json", "tokenizer.model"}
    (data,) = bundle.tokenizer.files().values()
    assert (tmp_path / "theirs" / "tokenizer.model").read_bytes() == data


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"norm": "none"}, "model.norm"),
        ({"residual": False}, "model.residual"),
        ({"scale_scores": False}, "model.scale_scores"),
        ({"look_ahead_mask": False}, "model.look_ahead_mask"),
        ({"projections": "qk"}, "model.projections"),
        ({"d_key": 7}, "model.d_key"),
        ({"d_value": 13}, "model.d_value"),
        ({"max_target_length": 10**12}, "model.max_target_length"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_it_cannot_compute_is_refused(
    changes: dict[str, Any], field: str, tmp_path: Path
) -> None:
    bundle = make_ours(tmp_path / "ours", **changes)
    with pytest.raises(InputError, match=field):
        export_ctranslate2(bundle, tmp_path / "theirs", "float32")
    assert not (tmp_path / "theirs").exists()


def test_missing_library_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_ours(tmp_path / "ours")
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(InputError, match=r"pip install 'pellucid\[ctranslate2\]'"):
        export_ctranslate2(bundle, tmp_path / "theirs", "float32")


def guide(folder: Path, training: str = "", imported: Any = None) -> Bundle:
    """Write a model again with what its recipe or its import says about a guided head."""
    bundle = load_bundle(folder)
    manifest = {} if imported is None else {"imported": {"guided_head": imported}}
    save_bundle(
        folder,
        config=bundle.config,
        weights=bundle.model.state_dict(),
        tokenizer=bundle.tokenizer,
        recipe_toml=training,
        provenance=manifest,
    )
    return load_bundle(folder)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("training", "imported", "layer", "head"),
    [
        ("[training]\nguided_head = 'decoder.1.cross.2'\n", None, 1, 2),
        ("[training]\nguided_head = 'decoder.0.cross.1'\n", None, 0, 1),
        ("", [1, 0], 1, 0),
        ("[training]\nguided_head = 'decoder.1'\n", None, 2, 0),
        ("[training]\nguided_head = 'decoder.7.cross.1'\n", None, 2, 0),
        ("", "damaged", 2, 0),
    ],
    ids=["recipe", "first layer", "import", "none", "impossible", "damaged"],
)
def test_guided_head_is_the_attention_that_ctranslate2_returns(
    training: str, imported: Any, layer: int, head: int, tmp_path: Path
) -> None:
    make_ours(tmp_path / "ours", projection_bias=True)
    bundle = guide(tmp_path / "ours", training, imported)
    theirs = open_theirs(bundle, tmp_path / "theirs")
    translator = load(tmp_path / "ours")
    for text in sentences(ENGLISH, 3):
        trace = translator.look(text, beam=1, max_length=11)
        (found,) = theirs.translate_batch(
            [list(trace.source_tokens[:-1])],
            beam_size=1,
            max_decoding_length=11,
            suppress_sequences=NEVER_WRITTEN,
            return_attention=True,
        )
        assert found.hypotheses[0] == [one for one in trace.predicted_tokens if one != "</s>"]
        ours_TS = torch.tensor(trace[f"decoder.{layer}.cross.{head}"])
        theirs_TS = torch.tensor(found.attention[0])
        rows, columns = theirs_TS.shape
        torch.testing.assert_close(theirs_TS, ours_TS[:rows, :columns], atol=1e-4, rtol=0)
        pieces = list(trace.source_tokens[:-1])
        (scored,) = theirs.score_batch([pieces], found.hypotheses)
        assert_near(scored.log_probs[:rows], list(trace.log_probabilities[:rows]))
