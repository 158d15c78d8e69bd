"""A trained model on disk: one folder that every command takes. Nothing in it can run code."""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pellucid.arguments import refuse
from pellucid.config import BundleConfig, validate
from pellucid.config.parsing import read_json_text, read_toml_text
from pellucid.config.training import guided_place
from pellucid.errors import BundleError, InputError, InputFileNotFoundError, OutputError
from pellucid.files import (
    expand_home,
    hash_bytes,
    hash_file,
    new_folder,
    read_bytes,
    reading,
    write_bytes,
    write_text,
)
from pellucid.foreign import identify_foreign, read_kind
from pellucid.machine.devices import CPU
from pellucid.text.tokenizers.kinds import load_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from torch import Tensor

    from pellucid.model import EncoderDecoder

WEIGHTS = "model.safetensors"
CONFIG = "config.json"
MANIFEST = "manifest.json"
RECIPE = "recipe.toml"
# JSON can write half a character as an escape, which UTF-8 itself cannot hold.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
SHIPPED = ("demo", "demo-untrained", "demo-recurrent")
"""Models that come with the package, in its folder ``models``."""


@dataclass(frozen=True)
class Bundle:
    """One model, ready to use: weights, configuration, tokenizer, and their origin.

    ``model`` is float32 in any precision and holds exactly the stored numbers, so that
    `pellucid.model.stored_tensors.quantize_tensor_rows` returns the stored integers of an int8
    bundle. The one exception is the bias of logits that an imported model never had, see
    `load_bundle`.

    Attributes:
        given: the model; if None, it is loaded from the folder when it is first used.
        device: the device on which a model that is loaded from the folder computes.
    """

    config: BundleConfig
    given: EncoderDecoder | None
    tokenizer: Tokenizer
    manifest: Mapping[str, Any]
    folder: Path
    device: str = CPU

    @cached_property
    def model(self) -> EncoderDecoder:
        """The weights as a model.

        Raises:
            BundleError: they are damaged, or belong to another model.
        """
        if self.given is not None:
            return self.given
        from torch import inference_mode

        from pellucid.model.stored_tensors import load_model

        # Weights that are made in inference mode would refuse gradients for good.
        with inference_mode(False):
            model = load_model(self.weights_path, self.config, self.tokenizer)
            return model if self.device == CPU else model.to(self.device)

    @property
    def weights_path(self) -> Path:
        """The file of the weights."""
        return self.folder / WEIGHTS

    @cached_property
    def exact_model(self) -> EncoderDecoder:
        """The same weights in double precision; made on first use."""
        from torch import inference_mode

        # As above.
        with inference_mode(False):
            # A copy, because `double` changes a module in place.
            return copy.deepcopy(self.model).double()

    @cached_property
    def recipe(self) -> Mapping[str, Any]:
        """The recipe that trained the model; empty if it was imported."""
        if RECIPE not in self.manifest["files"]:
            return {}
        return read_toml_text(read_bytes(self.folder / RECIPE).decode())

    @property
    def guided_head(self) -> tuple[int, int] | None:
        """The layer and the head that were taught word links while the model learned, if any.

        The recipe of its training names them, or the import of a model of Marian.
        """
        found = self.manifest.get("imported", {}).get("guided_head")
        if found is None:
            with suppress(ValueError):
                found = list(guided_place(self.recipe.get("training", {}).get("guided_head")))
        sizes = (self.config.model.num_decoder_layers, self.config.model.num_heads)
        # A hand-made bundle may say anything.
        if not isinstance(found, list) or len(found) != 2:
            return None
        if not all(type(n) is int and 0 <= n < size for n, size in zip(found, sizes, strict=True)):
            return None
        return found[0], found[1]

    @property
    def taught_head(self) -> str:
        """The same head by its name, such as ``decoder.1.cross.0``; empty without one."""
        taught = self.guided_head
        return f"decoder.{taught[0]}.cross.{taught[1]}" if taught else ""

    @property
    def guided_convention(self) -> Literal["predicts", "reads"]:
        """The token that a row of the guided head counts for: the predicted one unless said."""
        said = self.recipe.get("training", {}).get("guided_convention")
        return "reads" if said == "reads" else "predicts"

    @property
    def model_hash(self) -> str:
        """SHA-256 over weights, configuration and tokenizer files."""
        digest = hashlib.sha256()
        for name, entry in sorted(self.manifest["files"].items()):
            # The recipe says how the weights came about, not what they compute.
            if name != RECIPE:
                digest.update(f"{name} {entry['sha256']}\n".encode())
        return digest.hexdigest()


def resolve_model(name: str | Path) -> Path:
    """Find the bundle that a name means.

    A bundle folder, a run folder (its best bundle), or the word ``demo``: the small model that
    comes with the package. ``demo-untrained`` is the same before training, and ``demo-recurrent``
    a recurrent model that learned from the corpus without the beginner's course.

    Raises:
        InputFileNotFoundError: the folder does not exist.
        InputError: it names several models.
        BundleError: the folder holds neither.
    """
    if name in SHIPPED:
        return Path(str(files("pellucid") / "models" / str(name)))
    if len(several := names_of_chain(name)) > 1:
        raise InputError(
            f"This takes one model, but {name} names {len(several)}. Only pellucid translate and "
            "pellucid.chain join models, and pellucid serve those that it is given. Name one: "
            f"{several[0]}."
        )
    folder = Path(expand_home(name))
    with reading(folder):
        for candidate in (folder, folder / "bundle"):
            # A bundle without its manifest is damaged, not foreign: reading it says so.
            if (candidate / MANIFEST).is_file() or read_kind(candidate) == "ours":
                return candidate
        is_there = folder.exists()
    if is_there:
        what, advice = identify_foreign(folder)
        raise BundleError(
            f"The model must be a bundle folder or a run folder, but {folder} is {what}. {advice}"
        )
    hub = ""
    # A name such as Helsinki-NLP/opus-mt-en-fr was meant for the hub.
    if re.fullmatch(r"https?:.*|[\w.-]+/[\w.-]+", str(name)):
        hub = " Download a model of the Hugging Face hub first: pellucid convert FOLDER reads it."
    raise InputFileNotFoundError(
        f"The model must be a bundle folder or a run folder, but {folder} does not exist. Check "
        f"the name, or use the word demo for the small model that comes with pellucid.{hub}"
    )


def names_of_chain(name: str | Path) -> list[str]:
    """List the models that a name joins with commas, such as ``fr-en,en-de``; mostly one.

    Raises:
        InputError: there is nothing before or after a comma.
    """
    whole = str(name)
    # A folder may have a comma in its name.
    if "," not in whole or Path(expand_home(name)).exists():
        return [whole]
    names = [one.strip() for one in whole.split(",")]
    if not all(names):
        raise InputError(
            f"Models are joined by one comma, such as fr-en,en-de, but the name is {whole!r}. "
            "Name a model before and after each comma."
        )
    return names


def shipped_name(folder: Path) -> str:
    """Return the name of a packaged model; empty for any other folder."""
    return next((name for name in SHIPPED if resolve_model(name) == folder), "")


def load_bundle(folder: Path, device: str = CPU) -> Bundle:
    """Read a bundle after checking the size and hash of files, the name and shape of tensors.

    The tensors of a bfloat16 or int8 bundle become a float32 model. In models of Marian a token
    without a vector that no translation holds has the probability 0. Bundles of older versions
    store another bias for it.

    Raises:
        BundleError: something is missing, damaged, or does not belong.
    """
    bundle = open_bundle(folder, device)
    # Loaded now, so that damaged weights show here and not at their first use.
    _ = bundle.model
    return bundle


def open_bundle(folder: Path, device: str = CPU) -> Bundle:
    """Read a bundle as `load_bundle` does, except that its model is loaded when it is first used.

    Raises:
        BundleError: something is missing, damaged, or does not belong.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise BundleError(
            f"The bundle {folder} has no {MANIFEST}. The folder is incomplete: copy it again."
        )
    manifest = read_json_object(path)
    version = manifest.get("format")
    if version != 1:
        advice = "Use a newer version of pellucid." if version else "Give the folder of a bundle."
        raise BundleError(f"The bundle's format must be 1, but is {version!r} ({path}). {advice}")
    # Before anything is read from them: no parser sees a file that was changed.
    verify_files(folder, manifest.get("files"))
    for required in (WEIGHTS, CONFIG):
        if required not in manifest["files"]:
            raise BundleError(f"The manifest must list {required}, but does not ({folder}).")
    where = str(folder / CONFIG)
    config = validate(BundleConfig, read_json_object(folder / CONFIG), where)
    names = [name for name in manifest["files"] if name not in (WEIGHTS, CONFIG, RECIPE)]
    tokenizer = load_tokenizer(
        config.tokenizer, {name: read_bytes(folder / name) for name in names}, str(folder)
    )
    # Otherwise an id of the tokenizer could lie beyond the model's table of embeddings.
    _verify_vocabulary(config, tokenizer, where)
    return Bundle(config, None, tokenizer, manifest, folder, device)


def save_bundle(
    folder: Path,
    *,
    config: BundleConfig,
    weights: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    recipe_toml: str,
    provenance: Mapping[str, Any],
) -> None:
    """Write a bundle so that the folder is either whole or absent.

    Args:
        folder: the bundle's folder; an older bundle there is replaced.
        config: the model's configuration, and the precision of its stored weights.
        weights: the float32 tensors, by the names of the format.
        tokenizer: the model's tokenizer.
        recipe_toml: the resolved recipe.
        provenance: further entries of the manifest: data, training, metrics, durations.

    Raises:
        OutputError: the disk cannot take it, or the folder holds something other than a bundle.
    """
    # One of its files is enough, so that a damaged bundle can be replaced.
    is_bundle = any((folder / name).is_file() for name in (MANIFEST, CONFIG, WEIGHTS))
    if folder.is_dir() and any(folder.iterdir()) and not is_bundle:
        raise OutputError(
            f"A bundle must be a new folder or replace a bundle, but {folder} holds something "
            f"else (it has no {MANIFEST}). Choose another folder."
        )
    with new_folder(folder) as part:
        write_bundle(
            part,
            config=config,
            weights=weights,
            tokenizer=tokenizer,
            recipe_toml=recipe_toml,
            provenance=provenance,
        )


def write_bundle(
    folder: Path,
    *,
    config: BundleConfig,
    weights: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    recipe_toml: str,
    provenance: Mapping[str, Any],
) -> None:
    """Write the files of a bundle into an existing folder, the manifest last.

    Arguments and errors are those of `save_bundle`.
    """
    # Imported late: these need PyTorch, which reading a manifest does not.
    from pellucid.model.stored_tensors import pack_weights, serialize_tensors

    contents: dict[str, bytes] = {
        WEIGHTS: serialize_tensors(pack_weights(weights, config.precision)),
        CONFIG: bundle_json(config.model_dump(mode="json")).encode(),
        RECIPE: recipe_toml.encode(),
        **tokenizer.files(),
    }
    manifest = {
        "format": 1,
        "files": {
            name: write_listed(folder / name, data) for name, data in sorted(contents.items())
        },
        **provenance,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    write_text(folder / MANIFEST, bundle_json(manifest))


def write_listed(path: Path, data: bytes) -> dict[str, Any]:
    """Write a file as `pellucid.files.write_bytes` does.

    Returns:
        The file's entry in a manifest: its ``sha256`` and ``size``.
    """
    write_bytes(path, data)
    return {"sha256": hash_bytes(data), "size": len(data)}


def bundle_json(values: Any) -> str:
    """Write JSON in the form of a bundle's files."""
    # JSON has no NaN: other readers would refuse the whole file.
    return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_json_object(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        BundleError: the file is not JSON, not an object, or holds half a character.
    """
    data = read_bytes(path)
    try:
        values = read_json_text(data)
    except ValueError as error:
        raise BundleError(
            f"{path.name} must be JSON, but is not: {error} ({path}). "
            "The folder is damaged: copy it again."
        ) from None
    if not isinstance(values, dict):
        raise BundleError(
            f"{path.name} must be a JSON object, but is a {type(values).__name__} ({path})."
        )
    if _SURROGATE.search(data):  # also half of a pair that makes up one character
        _check_whole_characters(values, path)
    return values


def _check_whole_characters(values: dict[str, Any], path: Path) -> None:
    """Refuse lone surrogates, which JSON can write and no other file can."""
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise BundleError(
            f"{path.name} must hold whole characters, but {half} is half of one, a lone "
            f"surrogate ({path}). Take the file from where the model comes from."
        ) from None


def _is_within(name: str) -> bool:
    """Tell whether a listed name stays within the folder."""
    path = PurePosixPath(name)
    # A stranger's manifest may name any file of the disk.
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _verify_entries(entries: Any, manifest: Path) -> None:
    well_formed = isinstance(entries, dict) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("sha256"), str)
        and isinstance(entry.get("size"), int)
        and _is_within(name)
        for name, entry in entries.items()
    )
    if not well_formed:
        raise BundleError(
            f"The manifest must list each file with its sha256 and size, but does not "
            f"({manifest}). The folder is damaged: copy it again."
        )


def verify_files(folder: Path, entries: Any) -> None:
    """Check that each file of a manifest exists with its size and hash.

    Args:
        folder: the folder of the files.
        entries: ``sha256`` and ``size`` by file name, as in the manifest.

    Raises:
        BundleError: a file is missing or damaged, or the entries are.
    """
    _verify_entries(entries, folder / MANIFEST)
    for name, entry in entries.items():
        path = folder / name
        if not path.is_file():
            raise BundleError(
                f"Every file of the manifest must exist, but {name} does not ({folder}). "
                "The folder is incomplete: copy it again."
            )
        size = path.stat().st_size
        # The size first: a copy that broke off is found without reading gigabytes.
        if size != entry["size"]:
            raise BundleError(
                f"{name} must have {entry['size']} bytes according to the manifest, but has "
                f"{size} ({folder}). The file is damaged: copy it again."
            )
        if hash_file(path) != entry["sha256"]:
            raise BundleError(
                f"{name} must have the hash in the manifest, but has another ({folder}). "
                "The file was changed or damaged: copy it again."
            )


def _verify_vocabulary(config: BundleConfig, tokenizer: Tokenizer, where: str) -> None:
    for side in ("source", "target"):
        expected = getattr(config.model, f"{side}_vocabulary_size")
        actual = getattr(tokenizer, f"{side}_vocabulary_size")
        if expected != actual:
            raise BundleError(
                f"model.{side}_vocabulary_size must be the tokenizer's {actual}, "
                f"but is {expected} ({where})."
            )


class HasBundle(Protocol):
    """A model that was loaded from disk, such as a `Translator`."""

    @property
    def bundle(self) -> Bundle:
        """The model as it is stored."""


def bundle_of(model: Bundle | HasBundle) -> Bundle:
    """Return a bundle, or that of a translator.

    Raises:
        InputError: the model is something else, or the translator has no bundle.
    """
    found = model if isinstance(model, Bundle) else getattr(model, "bundle", None)
    if isinstance(found, Bundle):
        return found
    advice = "Load it: pellucid.load(model)."
    refuse("model", "a Translator or its bundle", model, advice)
