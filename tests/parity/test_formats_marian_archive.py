"""A model imported from a folder of Marian gives the scores that Marian gives.

``marian_archive`` holds a tiny model that Marian trained, with scores of Marian's decoder;
``make.py`` there made it.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pellucid.bundle import Bundle, load_bundle
from pellucid.errors import BundleError, InputError
from pellucid.formats.exporting import export_bundle
from pellucid.formats.from_marian import import_marian
from pellucid.formats.safe_reading import check_place
from pellucid.formats.to_ctranslate2 import export_ctranslate2
from pellucid.translate.translator import load

ARCHIVE = Path(__file__).parent / "marian_archive"


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    import_marian(ARCHIVE).save(tmp_path / "bundle")
    return load_bundle(tmp_path / "bundle")


@pytest.fixture(scope="module")
def scored() -> list[dict[str, Any]]:
    """Sources, what Marian wrote greedily, and the log-probability of each token and the end."""
    scores: list[dict[str, Any]] = json.loads((ARCHIVE / "scores.json").read_text("utf-8"))
    return scores


def our_scores(bundle: Bundle, source: str, tokens: list[str]) -> list[float]:
    vocabulary = bundle.tokenizer.vocabulary("target")
    target = [*map(vocabulary.index, tokens), bundle.config.tokenizer.eos_id]
    inputs = [bundle.config.tokenizer.target_start_id, *target[:-1]]
    with torch.inference_mode():
        logits_BTV = bundle.model(
            torch.tensor([bundle.tokenizer.encode_source(source)]), torch.tensor([inputs])
        )
    values: list[float] = logits_BTV.log_softmax(-1)[0, range(len(target)), target].tolist()
    return values


def largest_difference(bundle: Bundle, scored: list[dict[str, Any]]) -> float:
    return max(
        abs(ours - theirs)
        for line in scored
        for ours, theirs in zip(
            our_scores(bundle, line["source"], line["tokens"]), line["scores"], strict=True
        )
    )


def test_marian_s_own_archive_gives_marian_s_log_probabilities(
    bundle: Bundle, scored: list[dict[str, Any]]
) -> None:
    assert largest_difference(bundle, scored) <= 1e-4


def test_guard_the_paper_s_positions_are_not_marian_s(
    bundle: Bundle, scored: list[dict[str, Any]]
) -> None:
    from pellucid.attention import sinusoidal_positions

    for part in (bundle.model.encoder, bundle.model.decoder):
        table_LD = sinusoidal_positions(1024, 16, halves=True)
        part.positions.weight.copy_(table_LD)
    assert largest_difference(bundle, scored) > 1e-2


def test_translations_are_marian_s_and_so_are_the_defaults(
    bundle: Bundle, scored: list[dict[str, Any]]
) -> None:
    decoding = bundle.config.decoding
    assert (decoding.beam, decoding.length_penalty, decoding.alpha) == (6, "average", 1.0)
    greedy = bundle.config.model_copy(
        update={"decoding": decoding.model_copy(update={"beam": 1, "length_penalty": "none"})}
    )
    folder = bundle.folder.with_name("greedy")
    export_bundle(
        Bundle(greedy, bundle.model, bundle.tokenizer, bundle.manifest, bundle.folder),
        folder,
        "float32",
    )
    translations = load(folder).translate([line["source"] for line in scored])
    for line, translation in zip(scored, translations, strict=True):
        assert list(translation.tokens) == [*line["tokens"], "</s>"]


def test_softmax_is_over_marian_s_tokens_alone(bundle: Bundle) -> None:
    start = bundle.config.tokenizer.target_start_id
    assert bundle.tokenizer.vocabulary("target")[start] == "<pad>"
    assert start == bundle.config.tokenizer.pad_id
    with torch.inference_mode():
        logits_BTV = bundle.model(torch.tensor([[2, 3, 0]]), torch.tensor([[start, 5]]))
    assert logits_BTV.softmax(-1)[..., start].max() == 0


def test_ctranslate2_translates_the_archive_as_marian(
    bundle: Bundle, scored: list[dict[str, Any]], tmp_path: Path
) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    export_ctranslate2(bundle, tmp_path / "ct2", "float32")
    translator = ctranslate2.Translator(str(tmp_path / "ct2"), intra_threads=1)
    for line in scored:
        source = bundle.tokenizer.source_tokens(bundle.tokenizer.encode_source(line["source"]))
        found = translator.translate_batch([source[:-1]], beam_size=1)[0].hypotheses[0]
        assert found == line["tokens"]
        theirs = translator.score_batch([source[:-1]], [line["tokens"]])[0].log_probs
        assert theirs == pytest.approx(line["scores"], abs=1e-4)


def test_vocabularies_of_two_sizes_get_one_padding_behind_both(
    tmp_path: Path, scored: list[dict[str, Any]]
) -> None:
    """The same model, its target side made smaller by tokens that it never writes."""
    folder = Path(shutil.copytree(ARCHIVE, tmp_path / "archive"))
    tokens = (folder / "vocab.yml").read_text("utf-8").splitlines()
    (folder / "target.yml").write_text("\n".join(tokens[:-3]) + "\n", "utf-8")
    settings = (folder / "decoder.yml").read_text()
    (folder / "decoder.yml").write_text(settings.replace("vocab.yml\nb", "target.yml\nb"))
    with np.load(folder / "model.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    table = arrays.pop("Wemb")
    kept = len(tokens) - 3
    arrays |= {"encoder_Wemb": table, "decoder_Wemb": table[:kept]}
    arrays["decoder_ff_logit_out_b"] = arrays["decoder_ff_logit_out_b"][:, :kept]
    np.savez(folder / "model.npz", **arrays)
    import_marian(folder).save(tmp_path / "bundle")
    config = load_bundle(tmp_path / "bundle").config
    assert config.tokenizer.sharing == "separate"
    assert config.model.tied_embeddings == "decoder"
    assert config.model.source_vocabulary_size == config.model.target_vocabulary_size
    assert config.tokenizer.pad_id == len(table)
    first = scored[0]
    ours = our_scores(load_bundle(tmp_path / "bundle"), first["source"], first["tokens"])
    # Fewer tokens share the probability, so that none becomes less likely.
    assert all(a >= b - 1e-5 for a, b in zip(ours, first["scores"], strict=True))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Wemb": np.zeros((997, 1009))}, "unpack to .* Do not use it"),
        ({"Wemb": np.array(["a", "b"])}, "a NumPy archive of plain numbers"),
    ],
)
def test_an_archive_that_is_no_weights_is_refused(
    arrays: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(ARCHIVE, tmp_path / "archive"))
    np.savez_compressed(folder / "model.npz", **arrays)
    with pytest.raises(BundleError, match=message):
        import_marian(folder)


def test_a_file_beside_the_arrays_of_an_archive_is_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ARCHIVE, tmp_path / "archive"))
    with zipfile.ZipFile(folder / "model.npz", "a") as packed:
        packed.writestr("Wemb_notes", b"no array at all")
    with pytest.raises(BundleError, match="a NumPy archive of plain numbers"):
        import_marian(folder)


def test_a_place_without_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^output must name a folder"):
        check_place(Path())


def test_yaml_that_refers_to_itself_again_and_again_is_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ARCHIVE, tmp_path / "archive"))
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, name in pairwise("abcdefghi"):
        rows.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    (folder / "decoder.yml").write_text("\n".join([*rows, "models: *i", "vocabs: *i"]) + "\n")
    with pytest.raises(BundleError, match="refer to themselves"):
        import_marian(folder)
