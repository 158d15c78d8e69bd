"""The search of a model, and processes that search with copies of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pellucid.bundle import Bundle, load_bundle
from pellucid.decode.decoder import Decoder, make_decoder
from pellucid.decode.native import StoredModel
from pellucid.errors import BundleError, InputError
from pellucid.machine.hardware import set_threads
from pellucid.native.stored_weights import read_stored
from pellucid.text.tokenizers.marian import MarianTokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pellucid.decode.workers import WorkerPool
    from pellucid.inside.changes.changed_decoding import ReplayDecoder
    from pellucid.model import EncoderDecoder


def make_workers(bundles: Sequence[Bundle], workers: int) -> WorkerPool:
    """Make processes that translate with bundles' models; they start when they are needed.

    Args:
        bundles: one bundle, or several whose softmaxes are averaged.
        workers: number of processes; they share the processor threads in use.

    Raises:
        ConfigurationError: the number of workers is out of range.
    """
    from pellucid.decode.workers import WorkerPool  # It needs PyTorch.

    models = [(str(bundle.folder.resolve()), bundle.model_hash) for bundle in bundles]
    return WorkerPool(f"{__name__}:load_for_worker", {"models": models}, workers=workers)


def choose_searcher(
    decoder: Decoder | ReplayDecoder, workers: WorkerPool | None, num_requests: int
) -> Decoder | ReplayDecoder | WorkerPool:
    """Choose the processes, if there are some and the requests are enough for them."""
    if workers is not None:
        from pellucid.decode.workers import is_worth

        if is_worth(num_requests, workers.workers):
            return workers
    return decoder


def load_for_worker(models: Sequence[tuple[str, str]]) -> tuple[Decoder, Tokenizer]:
    """Load in a worker the models that its parent has loaded.

    Args:
        models: the folder and the hash of each bundle.

    Raises:
        BundleError: a folder has changed since the parent loaded it.
    """
    bundles = []
    for folder, model_hash in models:
        bundles.append(load_bundle(Path(folder)))
        if bundles[-1].model_hash != model_hash:
            raise BundleError(
                f"A model must stay as it is while it translates, but {folder} was replaced. "
                "Start again, or translate with a copy."
            )
    tokenizer = bundles[0].tokenizer
    return make_decoder([one.model for one in bundles], tokenizer), tokenizer


def find_stored(bundle: Bundle, threads: int | None) -> StoredModel | None:
    """Find the weights of a model that the engine in C may read; None if PyTorch must load them.

    PyTorch's loading says what is wrong with weights that are damaged or belong to another model.
    """
    if isinstance(bundle.tokenizer, MarianTokenizer):  # Some of its logits are changed on loading.
        return None
    weights = read_stored(bundle.weights_path, bundle.config)
    if weights is None:
        return None

    def load_model() -> EncoderDecoder:
        set_threads(threads)
        return bundle.model

    return StoredModel(bundle.config.model, weights, load_model)


def check_vocabularies(bundles: Sequence[Bundle]) -> None:
    """Check that the models of an ensemble have the same vocabularies.

    Raises:
        InputError: they have not.
    """
    bundle = bundles[0]
    for other in bundles[1:]:
        for side in ("source", "target"):
            if bundle.tokenizer.vocabulary(side) != other.tokenizer.vocabulary(side):
                raise InputError(
                    f"The models of an ensemble must have one {side} vocabulary, but that of "
                    f"{other.folder} is not that of {bundle.folder}. Train them with one tokenizer."
                )
