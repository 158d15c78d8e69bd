"""The vocabularies of models that fairseq trained: their ids, their languages, what cuts words."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece

from pellucid.bundle import read_json_object
from pellucid.errors import BundleError
from pellucid.formats.safe_reading import list_tokens, read_sentencepiece
from pellucid.text.tokenizers.headed import MODEL
from pellucid.text.tokenizers.new_pieces import write_field

PIECES = "sentencepiece.bpe.model"
SETTINGS = "tokenizer_config.json"
WHOLE = "tokenizer.json"
_MORE = ("special_tokens_map.json", "added_tokens.json")

_LANGUAGE = re.compile(r"__[a-z]{2,3}(?:_[A-Za-z]+)?__|[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")

OF_FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
_OF_SENTENCEPIECE = ("<unk>", "<s>", "</s>")

_M2M100 = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl "
    "gu ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn "
    "mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn "
    "tr uk ur uz vi wo xh yi yo zh zu"
)
_WMT21 = "en ha is ja cs ru zh de"
_MBART50 = (
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT "
    "lv_LV my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL "
    "hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN "
    "th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"
)
_BY_CODES = {
    "m2m100": [f"__{code}__" for code in _M2M100.split(" ")],
    "wmt21": [f"__{code}__" for code in _WMT21.split(" ")],
    "mbart50": _MBART50.split(" "),
}
"""The tokens of languages in the order of their ids, for folders that do not list them."""


@dataclass(frozen=True)
class FairseqVocabulary:
    """A vocabulary.

    Attributes:
        tokens: in the order of the model's ids.
        model: the file that cuts words.
        languages: the tokens that name languages, in the order of their ids.
        first_token: how they are used; see ``TokenizerConfig``.
        files: what was read.
        name: the bundle's name of ``model``, which says its kind.
        dropped: what a bundle has no form for.
    """

    tokens: list[str]
    model: bytes
    languages: list[str]
    first_token: str
    files: tuple[Path, ...]
    name: str = MODEL
    dropped: tuple[str, ...] = ()


def read_vocabulary(folder: Path, config: Mapping[str, Any], size: int) -> FairseqVocabulary:
    """Read the vocabulary of a folder of Hugging Face's.

    Args:
        folder: the folder.
        config: the values of its ``config.json``.
        size: number of ids that the model has.

    Raises:
        BundleError: a file is missing or damaged, or the vocabulary is of another kind.
    """
    settings = _read(folder / SETTINGS)
    kind = str(settings.get("tokenizer_class") or config.get("tokenizer_class") or "")
    if settings.get("legacy_behaviour") is True:
        raise BundleError(
            f"legacy_behaviour must be false, so that the language comes first, but is true "
            f"({folder / SETTINGS}). Models that were trained the other way cannot be converted."
        )
    if config.get("model_type") == "mbart" and not kind.startswith("MBart50"):
        raise BundleError(
            "tokenizer_class must be MBart50Tokenizer for a model of mBART, but is "
            f"{kind or 'not named'!r} ({folder / SETTINGS}). mBART-25 writes the language behind "
            "the text, and cannot be converted: take an mBART-50."
        )
    if (folder / "vocab.json").is_file():
        ids = read_json_object(folder / "vocab.json")
        ids |= _languages_after(folder, settings, len(ids))
        used = [folder / "vocab.json"]
    elif (folder / WHOLE).is_file():
        ids = _ids_of_whole(read_json_object(folder / WHOLE), str(folder / WHOLE))
        used = [folder / WHOLE]
    else:
        pieces = _list_pieces(read_sentencepiece(folder / PIECES))
        if tuple(pieces[:3]) != _OF_SENTENCEPIECE:
            raise BundleError(
                f"{PIECES} must begin with {' '.join(_OF_SENTENCEPIECE)}, but begins with "
                f"{' '.join(pieces[:3])} ({folder}). It belongs to another kind of model."
            )
        # fairseq has a padding where SentencePiece has none, so its ids are one higher.
        ids = {token: id_ for id_, token in enumerate([*OF_FAIRSEQ, *pieces[3:]])}
        ids |= _languages_after(folder, settings, len(ids))
        used = []
    where = str((used or [folder / PIECES])[0])
    tokens = list_tokens(ids, size, where)
    if missing := [token for token in OF_FAIRSEQ if token not in ids]:
        raise BundleError(
            f"The vocabulary must have {missing[0]}, but does not ({where}). Take the files from "
            "where the model comes from."
        )
    languages = [token for token in tokens if _LANGUAGE.fullmatch(token)]
    if not languages:
        raise BundleError(
            f"The folder must name the tokens of its languages, such as fra_Latn or __fr__, in "
            f"{SETTINGS} or {_MORE[0]}, but does not ({folder}). Copy the whole folder."
        )
    if (folder / PIECES).is_file() or not (folder / WHOLE).is_file():
        model = read_sentencepiece(folder / PIECES)
        used.append(folder / PIECES)
    else:
        model = _pieces_of_whole(read_json_object(folder / WHOLE), str(folder / WHOLE))
    used += [folder / name for name in (SETTINGS, *_MORE) if (folder / name).is_file()]
    # Such a model needs only the target language, in front of the source.
    is_small = kind.startswith("SMALL100")
    first_token = "target-language" if is_small else "languages"
    return FairseqVocabulary(tokens, model, languages, first_token, tuple(used))


def _read(path: Path) -> dict[str, Any]:
    return read_json_object(path) if path.is_file() else {}


def _list_pieces(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return [processor.id_to_piece(id_) for id_ in range(len(processor))]


def _languages_after(folder: Path, settings: Mapping[str, Any], first: int) -> dict[str, int]:
    """Find the languages and their ids, which follow those of the pieces, up to ``first``."""
    numbered = {**_read(folder / "added_tokens.json")}
    added = settings.get("added_tokens_decoder")
    for id_, one in (added if isinstance(added, dict) else {}).items():
        numbered[_text_of(one)] = id_
    found = {one: id_ for one, id_ in numbered.items() if _LANGUAGE.fullmatch(one)}
    if found:
        return found
    lists = [
        source.get(name)
        for source in (settings, _read(folder / "special_tokens_map.json"))
        for name in ("additional_special_tokens", "extra_special_tokens")
    ]
    for one in lists:
        names = [_text_of(token) for token in one] if isinstance(one, list) else []
        names = [name for name in names if _LANGUAGE.fullmatch(name)]
        if names:
            return {name: first + place for place, name in enumerate(names)}
    codes = _BY_CODES.get(str(settings.get("language_codes")), ())
    return {token: first + place for place, token in enumerate(codes)}


def _text_of(token: Any) -> str:
    """Read a token that may be an object with further properties."""
    return str(token.get("content", "")) if isinstance(token, dict) else str(token)


def _ids_of_whole(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Read the ids of a tokenizer.json."""
    model = values.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocab, list):
        vocab = {_first(one): id_ for id_, one in enumerate(vocab)}
    if not isinstance(vocab, dict):
        raise _other_kind(where)
    ids = dict(vocab)
    for one in values.get("added_tokens") or ():
        if isinstance(one, dict) and isinstance(one.get("content"), str):
            ids[one["content"]] = one.get("id")
    return ids


def _first(entry: Any) -> str:
    return str(entry[0]) if isinstance(entry, list) and entry else ""


def _other_kind(where: str) -> BundleError:
    return BundleError(
        f"{WHOLE} must hold pieces of SentencePiece (BPE or Unigram, with ▁ for a space), but does "
        f"not ({where}). Put {PIECES} of the original model next to it."
    )


def _pieces_of_whole(values: Mapping[str, Any], where: str) -> bytes:
    """Make the SentencePiece model that a tokenizer.json was made of.

    A model of byte pairs joins the pair whose piece comes first; a unigram model has the scores.

    Source:
        ``sentencepiece_model.proto``: of ``ModelProto`` the fields 1 (pieces: 1 text, 2 score,
        3 type), 2 (3 is the kind of model), and 3 (2 is the table of normal forms).
    """
    model = values.get("model") or {}
    kind = {"Unigram": 1, "BPE": 2}.get(str(model.get("type")))
    cutter = values.get("pre_tokenizer")
    is_plain = isinstance(cutter, dict) and "Metaspace" in str(cutter)
    if kind is None or not is_plain or model.get("byte_fallback"):
        raise _other_kind(where)
    vocab = model["vocab"]
    if isinstance(vocab, dict):
        order = sorted(vocab, key=lambda token: vocab[token] if type(vocab[token]) is int else 0)
        scored = [(token, -float(place)) for place, token in enumerate(order)]
    else:
        scored = [
            (_first(one), float(one[1])) for one in vocab if isinstance(one, list) and one[1:]
        ]
    special = {*OF_FAIRSEQ, "<mask>"}
    plain = [
        (token, score)
        for token, score in scored
        if token and token not in special and not _LANGUAGE.fullmatch(token)
    ]
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    pieces += [(token, score, 1) for token, score in plain]
    normal = _charsmap(values.get("normalizer"), where)
    data = b"".join(
        [
            *(write_field(1, _piece(*one)) for one in pieces),
            write_field(2, write_field(3, kind)),
            write_field(3, write_field(2, normal)),
        ]
    )
    try:
        sentencepiece.SentencePieceProcessor().LoadFromSerializedProto(data)
    except RuntimeError:
        raise _other_kind(where) from None
    return data


def _piece(text: str, score: float, kind: int) -> bytes:
    # 0x15 announces the four bytes of field 2.
    return write_field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + write_field(3, kind)


def _charsmap(normalizer: Any, where: str) -> bytes:
    """Find the table of normal forms; none if nothing is normalized but spaces."""
    steps: Sequence[Any] = [normalizer] if isinstance(normalizer, dict) else []
    if steps and isinstance(steps[0].get("normalizers"), list):
        steps = steps[0]["normalizers"]
    found = b""
    for one in steps:
        kind = one.get("type") if isinstance(one, dict) else None
        if kind == "Precompiled":
            try:
                found = base64.b64decode(one.get("precompiled_charsmap") or "", validate=True)
            except (binascii.Error, TypeError, ValueError):
                raise _other_kind(where) from None
        # Theirs join spaces with a pattern, SentencePiece by itself.
        elif kind not in ("Replace", "Strip", "Prepend"):
            raise _other_kind(where)
    return found
