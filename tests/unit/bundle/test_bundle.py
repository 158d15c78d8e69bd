"""Complete bundles load, anything else is refused in one sentence."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from pellucid.bundle import Bundle, load_bundle, read_json_object, resolve_model, save_bundle
from pellucid.config import BundleConfig
from pellucid.errors import BundleError, InputFileNotFoundError, OutputError, PellucidError
from pellucid.model.stored_tensors import quantize_tensor_rows, read_tensors
from pellucid.native.stored_weights import read_stored


@pytest.fixture
def folder(bundle_folder: Path, tmp_path: Path) -> Path:
    """A copy of the bundle to damage."""
    return Path(shutil.copytree(bundle_folder, tmp_path / "model"))


def change_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def sign_again(folder: Path) -> None:
    """Make the manifest agree with the files, as a stranger who knows the format would."""

    def update(manifest: dict[str, Any]) -> None:
        for name in manifest["files"]:
            data = (folder / name).read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            manifest["files"][name] = {"sha256": digest, "size": len(data)}

    change_json(folder / "manifest.json", update)


def change_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    change(tensors)
    path.write_bytes(safetensors.torch.save(tensors))
    sign_again(folder)


def change_model_config(folder: Path, **changes: Any) -> None:
    change_json(folder / "config.json", lambda values: values["model"].update(changes))
    sign_again(folder)


def test_bundle_saved_from_what_was_loaded_is_equal_byte_for_byte(
    folder: Path, tmp_path: Path
) -> None:
    bundle = load_bundle(folder)
    save_bundle(
        tmp_path / "again",
        config=bundle.config,
        weights=bundle.model.state_dict(),
        tokenizer=bundle.tokenizer,
        recipe_toml="",
        provenance={"data": {"pairs": 1}},
    )
    again = load_bundle(tmp_path / "again")
    assert again.manifest["files"] == bundle.manifest["files"]
    assert again.model_hash == bundle.model_hash
    names = {path.name for path in folder.iterdir()}
    assert names == {*bundle.manifest["files"], "manifest.json"}
    without_time = [
        {key: value for key, value in found.manifest.items() if key != "created"}
        for found in (bundle, again)
    ]
    assert without_time[0] == without_time[1]


def test_weights_carry_no_metadata(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert "__metadata__" not in header


def test_model_hash_ignores_the_recipe_and_sees_a_weight(folder: Path) -> None:
    before = load_bundle(folder).model_hash
    (folder / "recipe.toml").write_text("# a remark\n")
    sign_again(folder)
    assert load_bundle(folder).model_hash == before
    change_tensors(folder, lambda tensors: tensors["embedding.weight"][3].add_(1))
    assert load_bundle(folder).model_hash != before


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "vocabulary.txt"])
@pytest.mark.parametrize("damage", ["missing", "shorter", "changed", "empty"])
def test_damaged_file_is_refused_by_name(name: str, damage: str, folder: Path) -> None:
    path = folder / name
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "changed":
        path.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    else:
        path.write_bytes(data[:-1] if damage == "shorter" else b"")
    with pytest.raises(BundleError) as raised:
        load_bundle(folder)
    assert name in str(raised.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"format": 1}', '{"format": 1, "files": {"../x": {}}}', "\x00"]
)
def test_manifest_that_is_none_is_refused(text: str, folder: Path) -> None:
    (folder / "manifest.json").write_text(text)
    with pytest.raises(BundleError, match=r"manifest\.json|manifest"):
        load_bundle(folder)


def test_newer_format_is_refused_with_what_to_do(folder: Path) -> None:
    change_json(folder / "manifest.json", lambda manifest: manifest.update(format=2))
    with pytest.raises(BundleError, match="newer version"):
        load_bundle(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("embedding.weight"), "lacks embedding.weight"),
        (lambda tensors: tensors.update(extra=torch.zeros(2)), "also has extra"),
        (
            lambda tensors: tensors.update({"embedding.weight": torch.zeros(3, 6)}),
            r"embedding\.weight must be float32 .*\(3, 6\)",
        ),
        (
            lambda tensors: tensors.update(
                {"embedding.weight": tensors["embedding.weight"].double()}
            ),
            "is float64",
        ),
        (lambda tensors: tensors["embedding.weight"][1].fill_(math.nan), "finite"),
    ],
    ids=["missing", "extra", "shape", "dtype", "nan"],
)
def test_tensors_of_a_stranger_are_refused(
    change: Callable[[dict[str, torch.Tensor]], None], message: str, folder: Path
) -> None:
    change_tensors(folder, change)
    with pytest.raises(BundleError, match=message):
        load_bundle(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"d_model": 10**12},
        {"num_encoder_layers": 10**9},
        {"num_heads": 10**9},
        {"d_ff": -1},
        {"source_vocabulary_size": 5, "target_vocabulary_size": 5},
        {"d_mode": 5},
        {"norm": "sideways"},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_configuration_with_impossible_sizes_is_refused(
    changes: dict[str, Any], folder: Path
) -> None:
    change_model_config(folder, **changes)
    with pytest.raises(PellucidError) as raised:
        load_bundle(folder)
    assert raised.value.exit_code == 2


def test_enormous_length_limit_costs_nothing(folder: Path) -> None:
    change_model_config(folder, max_source_length=10**12)
    bundle = load_bundle(folder)
    with torch.inference_mode():
        assert bundle.model.encode(torch.tensor([[4, 5, 3]])).shape == (1, 3, 6)


def test_weights_that_are_a_pickle_are_refused(folder: Path) -> None:
    torch.save({"embedding.weight": torch.zeros(2)}, folder / "model.safetensors")
    sign_again(folder)
    with pytest.raises(BundleError, match="safetensors"):
        load_bundle(folder)


def save_as(folder: Path, precision: str, source: Path) -> Bundle:
    """The same model in another precision."""
    bundle = load_bundle(source)
    save_bundle(
        folder,
        config=bundle.config.model_copy(update={"precision": precision}),
        weights=bundle.model.state_dict(),
        tokenizer=bundle.tokenizer,
        recipe_toml="",
        provenance={},
    )
    return load_bundle(folder)


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_bundle_in_fewer_bits_loads_as_float32_and_saves_as_the_same_bytes(
    precision: str, folder: Path, tmp_path: Path
) -> None:
    bundle = save_as(tmp_path / "few", precision, folder)
    stored = safetensors.torch.load_file(tmp_path / "few" / "model.safetensors")
    for name, weight in bundle.model.state_dict().items():
        assert weight.dtype == torch.float32
        kept = stored[name].float()
        if stored[name].dtype == torch.int8:
            kept *= stored[f"{name}_scale"][:, None]
        assert torch.equal(weight, kept)
    again = save_as(tmp_path / "again", precision, tmp_path / "few")
    assert again.model_hash == bundle.model_hash
    sizes = [(f / "model.safetensors").stat().st_size for f in (folder, tmp_path / "few")]
    assert sizes[1] < sizes[0]


def test_int8_bundle_gives_its_integers_again(folder: Path, tmp_path: Path) -> None:
    bundle = save_as(tmp_path / "few", "int8", folder)
    stored = safetensors.torch.load_file(tmp_path / "few" / "model.safetensors")
    matrices = [name for name, tensor in stored.items() if tensor.dtype == torch.int8]
    assert "embedding.weight" in matrices
    for name in matrices:
        values, scale = quantize_tensor_rows(bundle.model.state_dict()[name])
        assert torch.equal(values, stored[name])
        assert torch.equal(scale, stored[f"{name}_scale"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda tensors: tensors.pop("embedding.weight_scale"),
            r"lacks embedding\.weight_scale",
        ),
        (
            lambda tensors: tensors.update(
                {"embedding.weight_scale": tensors["embedding.weight_scale"][:3].clone()}
            ),
            r"embedding\.weight_scale must be float32 .*\(3,\)",
        ),
        (
            lambda tensors: tensors.update(
                {"embedding.weight": tensors["embedding.weight"].float()}
            ),
            r"embedding\.weight must be int8",
        ),
        (
            lambda tensors: tensors["embedding.weight_scale"].mul_(1.1),
            r"row of embedding\.weight and its scale",
        ),
        (
            lambda tensors: tensors["encoder.layers.0.feed_forward.inner.bias"].fill_(math.nan),
            "finite",
        ),
    ],
    ids=["missing", "shape", "dtype", "scale", "nan"],
)
def test_int8_tensors_of_a_stranger_are_refused(
    change: Callable[[dict[str, torch.Tensor]], None], message: str, folder: Path, tmp_path: Path
) -> None:
    save_as(tmp_path / "few", "int8", folder)
    change_tensors(tmp_path / "few", change)
    with pytest.raises(BundleError, match=message):
        load_bundle(tmp_path / "few")


def test_precision_that_the_weights_do_not_have_is_refused(folder: Path) -> None:
    change_json(folder / "config.json", lambda values: values.update(precision="bfloat16"))
    sign_again(folder)
    with pytest.raises(BundleError, match="must be bfloat16"):
        load_bundle(folder)


def test_resolve_model_finds_bundle_and_run_and_refuses_the_rest(
    folder: Path, tmp_path: Path
) -> None:
    assert resolve_model(folder) == folder
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(BundleError, match="an empty folder"):
        resolve_model(run)
    shutil.copytree(folder, run / "bundle")
    assert resolve_model(str(run)) == run / "bundle"
    with pytest.raises(InputFileNotFoundError, match="does not exist"):
        resolve_model(tmp_path / "nothing")


def test_saving_into_a_file_s_place_keeps_the_file(folder: Path, tmp_path: Path) -> None:
    bundle = load_bundle(folder)
    (tmp_path / "taken").write_text("kept")
    with pytest.raises(OutputError):
        save_bundle(
            tmp_path / "taken" / "model",
            config=bundle.config,
            weights=bundle.model.state_dict(),
            tokenizer=bundle.tokenizer,
            recipe_toml="",
            provenance={},
        )
    assert (tmp_path / "taken").read_text() == "kept"


def test_saving_never_replaces_a_folder_that_holds_something_else(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "mine.txt").write_text("kept")
    with pytest.raises(OutputError, match="holds something else"):
        save_as(tmp_path / "texts", "float32", folder)
    assert [path.name for path in (tmp_path / "texts").iterdir()] == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    assert save_as(tmp_path / "empty", "float32", folder).config.precision == "float32"
    assert save_as(tmp_path / "empty", "bfloat16", folder).config.precision == "bfloat16"


def header(text: object, *, length: int | None = None) -> bytes:
    data = text if isinstance(text, bytes) else json.dumps(text).encode()
    return (len(data) if length is None else length).to_bytes(8, "little") + data + bytes(4)


def entry(**changes: object) -> dict[str, object]:
    return {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **changes}}


TWICE = (
    b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"shape":[1],"data_offsets":[4,8]}}'
)


@pytest.mark.parametrize(
    "data",
    [
        header(b"[" * 200_000), header(b'{"a":' * 100_000), header(b'{"a":' + b"[" * 999),
        header([]), header(3), header("x"), header(None), header({}, length=2**63),
        header({}, length=10**9), b"", b"123", header(b"\xff"), header(TWICE),
        header(entry(shape=[10**30])), header(entry(shape=[-1, -1])), header(entry(shape={})),
        header(entry(data_offsets=[10**30, 10**30 + 4])), header(entry(data_offsets=[-4, 0])),
        header(entry(data_offsets="ab")), header(entry(data_offsets=[0])), header(entry(dtype=3)),
        header(entry(dtype=[])), header(entry(dtype="X")), header({**entry(), "b": entry()["a"]}),
        header(b'{"a":{"dtype":"F32","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,4]}}'),
    ],
)  # fmt: skip
def test_header_of_a_stranger_is_refused_in_a_sentence(data: bytes, folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(data)
    assert (
        read_stored(path, BundleConfig.model_validate(read_json_object(folder / "config.json")))
        is None
    )
    with pytest.raises(BundleError, match="must be a safetensors file"):
        read_tensors(path)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "manifest.json"])
def test_deep_file_of_a_stranger_ends_in_a_sentence(
    name: str, folder: Path, run_here: Callable[..., Any]
) -> None:
    (folder / name).write_bytes(header(b"[" * 200_000) if "safe" in name else b"[" * 200_000)
    if name != "manifest.json":
        sign_again(folder)
    done = run_here("translate", str(folder), stdin="A dog .\n")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "bug" not in done.stderr
