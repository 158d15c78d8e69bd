"""What is known of a model's training text: was a sentence in it?"""

from __future__ import annotations

from pellucid.bundle import Bundle, resolve_model
from pellucid.corpora.seen import shipped_seen_sentences


def was_in_training(bundle: Bundle, sentence: str) -> bool:
    """Tell whether a sentence was in a model's training text, as far as is known.

    It is known of the packaged models that learned: ``demo`` and ``demo-recurrent``, whose text
    is the same.
    """
    seen = shipped_seen_sentences()
    is_recurrent_twin = bundle.folder == resolve_model("demo-recurrent")
    return (seen.model_hash == bundle.model_hash or is_recurrent_twin) and sentence in seen
