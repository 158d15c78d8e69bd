"""What other programs' models, and other things in the place of a model, are called."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from pellucid.bundle import load_bundle, resolve_model
from pellucid.errors import BundleError, InputFileNotFoundError
from pellucid.foreign import identify_foreign

Run = Callable[..., subprocess.CompletedProcess[str]]

CONVERT, STUCK, UNPACK = "Run: pellucid convert ", "cannot be converted", "Unpack it"
PART, TRAIN = "Give the folder", "first: pellucid train --help says how"


def zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), data)
    return stream.getvalue()


def saved(value: object, *, is_zip: bool = True) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream, _use_new_zipfile_serialization=is_zip)
    return stream.getvalue()


def arrays() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, Wemb=np.zeros(3))
    return stream.getvalue()


CT2 = b"\x06\0\0\0\x10\0TransformerSpec\0"
WEIGHTS = (2).to_bytes(8, "little") + b"{}"


def config(**values: object) -> bytes:
    return json.dumps(values).encode()


FOLDERS: Mapping[str, tuple[Mapping[str, bytes], str, str]] = {
    "empty": ({}, "an empty folder", "Check the name"),
    "hidden": ({".gitattributes": b""}, "an empty folder", "Check the name"),
    "marian": (
        {"config.json": config(model_type="marian"), "pytorch_model.bin": b"\x80\x02"},
        "a Hugging Face model of kind MarianMT", CONVERT,
    ),
    "sharded": (
        {"config.json": config(model_type="marian"), "model.safetensors.index.json": b"{}"},
        "a Hugging Face model of kind MarianMT", CONVERT,
    ),
    "t5": (
        {"config.json": config(model_type="t5"), "model.safetensors": WEIGHTS},
        "a Hugging Face model of kind t5", STUCK,
    ),
    "mbart": ({"config.json": config(model_type="mbart")}, "of kind mBART", CONVERT),
    "bart": ({"config.json": config(model_type="bart")}, "of kind BART", CONVERT),
    "m2m": ({"config.json": config(model_type="m2m_100")}, "of kind M2M100 or NLLB", CONVERT),
    "experts": ({"config.json": config(model_type="nllb-moe")}, "mixture of experts", "dense one"),
    "nested": (
        {"config.json": config(decoder={"model_type": "marian"}, model_type="encoder-decoder")},
        "of kind encoder-decoder", STUCK,
    ),
    "hostile kind": ({"config.json": config(model_type="a\x1b[2J\nb")}, "another program", STUCK),
    "deep": ({"config.json": b"[" * 100_000}, "a folder of another program's model", STUCK),
    "ctranslate2": (
        {"config.json": config(add_source_eos=True), "model.bin": CT2},
        "a folder of CTranslate2", STUCK,
    ),
    "old ctranslate2": ({"model.bin": CT2, "source_vocabulary.txt": b""}, "CTranslate2", STUCK),
    "argos": (
        {"metadata.json": b"{}", "model/model.bin": CT2, "sentencepiece.model": b"\n"},
        "an unpacked package of Argos Translate", STUCK,
    ),
    "opus": (
        {"decoder.yml": b"", "opus.npz": arrays(), "source.spm": b"\n", "target.spm": b"\n"},
        "a folder of Marian", CONVERT,
    ),
    "npz": ({"model.npz": arrays()}, "a folder of Marian", CONVERT),
    "run": ({"recipe.toml": b"", "log.txt": b""}, "a run without a model yet", "first validation"),
    "checkpoints": ({"step-00000003/state.json": b""}, "a folder of checkpoints", "run's folder"),
    "cache": ({"snapshots/0a/config.json": b"{}"}, "Hugging Face's cache", "snapshots"),
    "adapter": ({"adapter_config.json": b"{}"}, "an adapter", STUCK),
    "data set": ({"dataset_info.json": b"{}", "data-00000.arrow": b""}, "a data set", TRAIN),
    "text": ({"train.en": b"a", "train.fr": b"b"}, "a folder of text", TRAIN),
    "not text": ({"gprofng.rc": b"a"}, "a folder of something else", "Check the name"),
    "fairseq": ({"dict.en.txt": b"", "model.pt": b"\x80\x02"}, "PyTorch checkpoints", STUCK),
    "onnx": ({"config.json": b"{}", "encoder_model.onnx": b"\x08"}, "an ONNX model", STUCK),
    "tensorflow": ({"saved_model.pb": b"\x08"}, "a model of TensorFlow", STUCK),
    "firefox": (
        {"model.enfr.intgemm.alphas.bin": b"\1", "vocab.enfr.spm": b"\n"},
        "a folder of a model of Marian or Firefox Translations", CONVERT,
    ),
    "marian binary": (
        {"model.bin": b"\1" + bytes(15), "vocab.spm": b"\n"},
        "a folder of a model of Marian or Firefox Translations", CONVERT,
    ),
    "gguf": ({"x.gguf": b"GGUF"}, "a GGUF model", STUCK),
    "weights": ({"model.safetensors": WEIGHTS}, "weights without their config.json", PART),
    "tokenizer": ({"tokenizer.json": b"{}"}, "a folder of a tokenizer", PART),
    "around a bundle": (
        {"demo/config.json": config(model={}, tokenizer={}), "text.tsv": b"a\tb\n"},
        "a folder with a model in it", "/demo'",
    ),
    "around a run": (
        {"run/bundle/config.json": config(model={}, tokenizer={}), "run/recipe.toml": b""},
        "a folder with a model in it", "/run/bundle'",
    ),
    "other": ({"x.html": b""}, "a folder of something else", "Check the name"),
}  # fmt: skip

FILES: Mapping[str, tuple[str, bytes, str, str]] = {
    "argos": (
        "en_fr.argosmodel",
        zipped(en_fr__metadata_dot_json=b"{}", en_fr__model__model_dot_bin=CT2),
        "a package of Argos Translate", STUCK,
    ),
    "argos renamed": (
        "x", zipped(en_fr__metadata_dot_json=b"{}"), "a package of Argos Translate", STUCK,
    ),
    "opus": (
        "opus-2020.zip", zipped(decoder_dot_yml=b"", opus_dot_npz=b""), "of OPUS-MT", UNPACK,
    ),
    "zip": ("x.zip", zipped(a__config_dot_json=b"{}"), "a zip file of a model", UNPACK),
    "torch": ("model.pt", saved({"model": torch.ones(3)}), "a file of PyTorch", STUCK),
    "old torch": ("m.bin", saved({"a": 1}, is_zip=False), "a file of PyTorch", STUCK),
    "pickle": ("model", pickle.dumps([1]), "a file of PyTorch", STUCK),
    "fairseq": (
        "checkpoint_best.pt", saved({"args": None, "optimizer_history": []}), "fairseq", STUCK,
    ),
    "old fairseq": ("x", saved({"optimizer_history": []}, is_zip=False), "of fairseq", STUCK),
    "opennmt": ("step_1.pt", saved({"opt": "onmt.opts"}), "a checkpoint of OpenNMT", STUCK),
    "joey": ("best.ckpt", saved({"best_ckpt_score": 3.0}), "a checkpoint of Joey NMT", STUCK),
    "marian": ("model.npz", arrays(), "one file of a model of Marian", PART),
    "settings": ("decoder.yml", b"models:\n", "one file of a", ""),
    "onnx": ("decoder_model.onnx", b"\x08\x07", "an ONNX model", STUCK),
    "keras": ("m.h5", b"\x89HDF", "a model of TensorFlow", STUCK),
    "gguf": ("x.bin", b"GGUF\3\0\0\0", "a GGUF model", STUCK),
    "spm": ("source.spm", b"\n\x0e\n\5<unk>", "a SentencePiece model", PART),
    "weights": ("model.safetensors", WEIGHTS, "a SafeTensors file", PART),
    "weights renamed": ("w", (9).to_bytes(8, "little") + b'{"a": {}}', "SafeTensors", PART),
    "ctranslate2": ("model.bin", CT2, "one file of a model of CTranslate2", STUCK),
    "marian binary": (
        "model.bin", b"\1" + bytes(15),
        "one file of a model of Marian or Firefox", "pellucid convert",
    ),
    "tokenizer": ("tokenizer.json", b"{}", "a tokenizer of Hugging Face", PART),
    "json": ("vocab.json", b"{}", "one file of a model", PART),
    "pointer": (
        "model.bin", b"version https://git-lfs.github.com/spec/v1\n", "Git LFS", "git lfs pull",
    ),
    "recipe": ("r.toml", b"", "a recipe", "pellucid train RECIPE"),
    "text": ("train.en", b"a\n", "a file of text", TRAIN),
    "table": ("pairs.tsv", b"a\tb\n", "a file of text", TRAIN),
    "gzip": ("x.tar.gz", b"\x1f\x8b", "an archive", UNPACK),
    "damaged": ("x.argosmodel", b"PK\3\4", "an archive", UNPACK),
    "other": ("x", b"", "a file", "Check the name"),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLDERS)
def test_folder_in_the_place_of_a_model_is_named_with_what_helps(case: str, tmp_path: Path) -> None:
    members, what, advice = FOLDERS[case]
    folder = tmp_path / "my model"
    folder.mkdir()
    for name, data in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    with pytest.raises(BundleError) as caught:
        resolve_model(folder)
    assert f"but {folder} is " in str(caught.value)
    assert what in str(caught.value)
    assert advice in str(caught.value)
    if advice is CONVERT:
        assert f"pellucid convert '{folder}' -o NAME" in str(caught.value)


@pytest.mark.parametrize("case", FILES)
def test_file_in_the_place_of_a_model_is_named_with_what_helps(case: str, tmp_path: Path) -> None:
    name, data, what, advice = FILES[case]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(BundleError) as caught:
        resolve_model(str(path))
    assert f"but {path} is {what}" in str(caught.value) or what in str(caught.value)
    assert advice in str(caught.value)


def test_file_of_a_known_model_leads_to_its_folder(tmp_path: Path, bundle_folder: Path) -> None:
    (tmp_path / "config.json").write_bytes(config(model_type="marian"))
    for name, data in (("pytorch_model.bin", saved({})), ("model.safetensors", WEIGHTS)):
        (tmp_path / name).write_bytes(data)
        what, advice = identify_foreign(tmp_path / name)
        assert what == "one file of a Hugging Face model of kind MarianMT"
        assert f"pellucid convert {tmp_path} " in advice
    what, advice = identify_foreign(bundle_folder / "model.safetensors")
    assert (what, str(bundle_folder) in advice) == ("one file of a bundle of pellucid", True)


def test_pipe_in_the_place_of_a_model_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "config.json")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(BundleError):
            resolve_model(path)


@pytest.mark.parametrize(
    ("name", "is_on_hub"),
    [
        ("Helsinki-NLP/opus-mt-en-fr", True),
        ("https://huggingface.co/Helsinki-NLP/opus-mt-en-fr", True),
        ("facebook/m2m100_418M", True),
        ("nothing", False),
        ("/nothing/here", False),
    ],
)
def test_name_of_a_hub_is_no_path_and_says_so(name: str, is_on_hub: bool) -> None:
    with pytest.raises(InputFileNotFoundError, match="does not exist") as caught:
        resolve_model(name)
    assert ("Hugging Face hub" in str(caught.value)) == is_on_hub


def test_every_command_names_what_is_no_model(run_here: Run, tmp_path: Path) -> None:
    folder = tmp_path / "hf"
    folder.mkdir()
    (folder / "config.json").write_bytes(config(model_type="marian"))
    for name in ("s.en", "s.fr"):
        (tmp_path / name).write_text("A dog .\n")
    recipe = tmp_path / "r.toml"
    recipe.write_text('[data]\ntrain = ["s.en", "s.fr"]\nvalidation = ["s.en", "s.fr"]\n')
    model, pair = (
        str(folder),
        ("--source", str(tmp_path / "s.en"), "--target", str(tmp_path / "s.fr")),
    )
    for arguments in (
        ("translate", model),
        ("translate", "demo", "--ensemble", model),
        ("score", model, *pair),
        ("align", model, *pair),
        ("look", model, "A dog ."),
        ("inspect", model),
        ("export", model, "--format", "marian", "-o", str(tmp_path / "out")),
        ("evaluate", model, *pair[:2], "--reference", str(tmp_path / "s.fr")),
        ("train", str(recipe), "-o", str(tmp_path / "run"), "--start", model),
        ("check", str(recipe), "--model", model),
        ("distill", model, str(recipe), "-o", str(tmp_path / "small")),
        ("serve", model, "--port", "0"),
    ):
        done = run_here(*arguments, stdin="A dog .\n")
        assert done.returncode == 2, arguments
        assert done.stdout.count("\n") == 0 or arguments[0] == "train"
        assert f"{folder} is a Hugging Face model of kind MarianMT. Run: pellucid convert" in (
            done.stderr
        ), (arguments, done.stderr)


@pytest.mark.parametrize("name", ["ctranslate2", "t5", "argos", "empty", "fairseq", "run"])
def test_convert_names_what_it_cannot_convert(name: str, run_here: Run, tmp_path: Path) -> None:
    members, what, advice = FOLDERS[name]
    folder = tmp_path / "theirs"
    folder.mkdir()
    for member, data in members.items():
        (folder / member).parent.mkdir(parents=True, exist_ok=True)
        (folder / member).write_bytes(data)
    done = run_here("convert", str(folder), "-o", str(tmp_path / "out"))
    assert done.returncode == 2
    assert what in done.stderr
    assert advice in done.stderr
    assert "but is None" not in done.stderr


def test_checkpoint_is_a_model_and_their_folder_is_not(finished_run: Path) -> None:
    checkpoints = finished_run / "checkpoints"
    newest = max(checkpoints.iterdir())
    assert resolve_model(newest) == newest
    load_bundle(newest)
    assert identify_foreign(checkpoints)[0] == "a folder of checkpoints"
    shutil.rmtree(finished_run / "bundle")
    assert identify_foreign(finished_run)[0] == "a run without a model yet"
