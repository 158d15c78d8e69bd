"""Translation under changes: cuts of heads in the engine, all other changes by the replay."""

from __future__ import annotations

from pellucid.config import DecodingConfig
from pellucid.decode.decoder import Decoder, make_decoder
from pellucid.inside.changes.cutting import GivenChanges, cut_model, heads_to_cut, read_changes
from pellucid.model import EncoderDecoder
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.replaying import LENGTHS, ReplayDecoder


def change_model(
    given: GivenChanges, model: EncoderDecoder, tokenizer: Tokenizer, decoding: DecodingConfig
) -> tuple[EncoderDecoder, Decoder | ReplayDecoder, DecodingConfig]:
    """Change a model for translation.

    Args:
        given: the changes.
        model: it stays as it is.
        tokenizer: the model's.
        decoding: the model's default options.

    Returns:
        The model, whose heads are cut if nothing else is asked for; what translates with it; and
        its default options, of which the replay takes only the lengths and the forbidden tokens.

    Raises:
        InputError: a change cannot be read, or names what the model does not have.
    """
    probe = read_changes(given, model)
    heads = heads_to_cut(probe, model)
    if heads is None:
        plain = DecodingConfig(**decoding.model_dump(include=LENGTHS))
        return model, ReplayDecoder(model, tokenizer, probe), plain
    model = cut_model(model, heads)
    return model, make_decoder([model], tokenizer), decoding
