"""The weights that answer: those that the engine in C reads, and ensembles that fit together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pellucid.bundle import Bundle
from pellucid.decode.native import StoredModel
from pellucid.errors import InputError
from pellucid.machine.devices import CPU
from pellucid.machine.hardware import set_threads
from pellucid.native.loading import find_library
from pellucid.native.stored_weights import read_stored
from pellucid.text.tokenizers.marian import MarianTokenizer

if TYPE_CHECKING:
    from pellucid.model import EncoderDecoder


def find_stored(bundle: Bundle, threads: int | None) -> StoredModel | None:
    """Find the weights of a model that the engine in C may read; None if PyTorch must load them.

    PyTorch's loading says what is wrong with weights that are damaged or belong to another model.
    """
    # The engine computes on the processor, and some logits of Marian change on loading.
    if bundle.device != CPU or isinstance(bundle.tokenizer, MarianTokenizer):
        return None
    weights = read_stored(bundle.weights_path, bundle.config)
    if weights is None:
        return None

    def load_model() -> EncoderDecoder:
        # Only now, because setting PyTorch's threads imports it.
        set_threads(threads)
        return bundle.model

    return StoredModel(bundle.config.model, weights, load_model)


def explain_pytorch(*, is_ensemble: bool) -> str:
    """Name what needs PyTorch if no weights are stored for C, as the subject of a sentence."""
    engine = find_library()
    if isinstance(engine, str):
        return f"Translating without the engine in C ({engine})"
    return "An ensemble" if is_ensemble else "This model or device"


def check_vocabularies(bundles: Sequence[Bundle]) -> None:
    """Check that the models of an ensemble have the same vocabularies.

    Raises:
        InputError: they have not.
    """
    bundle = bundles[0]
    for other in bundles[1:]:
        # Softmaxes are averaged id by id, so each id must mean the same token in all models.
        for side in ("source", "target"):
            if bundle.tokenizer.vocabulary(side) != other.tokenizer.vocabulary(side):
                raise InputError(
                    f"The models of an ensemble must have one {side} vocabulary, but that of "
                    f"{other.folder} is not that of {bundle.folder}. Train them with one tokenizer."
                )
