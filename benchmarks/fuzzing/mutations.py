"""Mutations of files: of bytes and lines, of JSON, TOML and safetensors, and of numbers in them."""

from __future__ import annotations

import io
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["HOSTILE_NAMES", "HOSTILE_NUMBERS", "HOSTILE_TEXTS", "mutate_file"]

HOSTILE_NUMBERS = (
    *("0", "-1", "1", "2", "3", "7", "64", "255", "65536", "100000000", "1e9", "1e30", "1e39"),
    *("2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775807"),
    *("9223372036854775808", "18446744073709551616", "1e-320", "1e-9", "0.1", "0.5", "0.999"),
    *("1.5", "1e308", "-1e308", "1e309", "nan", "inf", "-inf"),
)
"""Numbers at the ends of types, and others that no setting expects."""

HOSTILE_NAMES = ("../outside", "../../outside", "/outside", "a/../../outside", ".", "..", "a\0b")
"""Names of files that lead out of a folder, and others that no file can have."""

HOSTILE_TEXTS = (
    "",
    " ",
    "x" * 5000,
    "9" * 5000,
    "\x1b]0;owned\x07\x1b[2J",
    "\u202ereversed",
    "line\nbreak",
    "carriage\rreturn",
    "nul\0byte",
    "\ufeffmark",
    "\u2028separator",
    "😀",
    "e\u0301" * 300,
    "%s%n{0}{x!r}$HOME`id`",
    "None",
    *HOSTILE_NAMES,
)

DEEP = 150
"""Levels of nesting, more than any reader allows."""


def mutate_file(path: Path, dice: random.Random) -> None:
    """Change a file once or several times, mostly in a way that its format allows.

    Args:
        path: the file; it is written again.
        dice: decides how.
    """
    data = path.read_bytes()
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        change: Callable[[bytes, random.Random], bytes] = mutate_bytes
        if dice.random() < 0.75:
            change = _BY_ENDING.get(path.suffix, mutate_lines)
        try:
            data = change(data, dice)
        except (ValueError, LookupError, struct.error, RecursionError):
            data = mutate_bytes(data, dice)  # An earlier change left nothing of the format.
    path.write_bytes(data)


def mutate_bytes(data: bytes, dice: random.Random) -> bytes:
    """Flip, cut, repeat, move or insert bytes."""
    found = bytearray(data or b"\n")
    start = dice.randrange(len(found))
    end = min(len(found), start + dice.choice((1, 1, 4, 64, 1000)))
    kind = dice.randrange(8)
    if kind == 0:
        found[start] ^= 1 << dice.randrange(8)
    elif kind == 1:
        found[start:end] = dice.randbytes(end - start)
    elif kind == 2:
        del found[start:end]
    elif kind == 3:
        del found[start:]
    elif kind == 4:
        found[start:start] = found[start:end] * dice.choice((1, 1, 50))
    elif kind == 5:
        found[start:end] = bytes([dice.choice((0, 0x20, 0x7F, 0xFF))]) * (end - start)
    elif kind == 6:
        found[start:start] = dice.choice(HOSTILE_TEXTS).encode()
    else:
        found[start:start] = dice.choice((b"\xff\xfe", b"\x1f\x8b\x08", b"\xc3", b"\xed\xa0\x80"))
    return bytes(found)


def mutate_lines(data: bytes, dice: random.Random) -> bytes:
    """Change a text file by lines, or a number or a word in one of them."""
    lines = data.split(b"\n")
    place, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    kind = dice.randrange(9)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(other, lines[place])
    elif kind == 2:
        lines[place], lines[other] = lines[other], lines[place]
    elif kind == 3:
        lines[place] = dice.choice(HOSTILE_TEXTS).encode()
    elif kind == 4:
        lines[place] += dice.choice((b"\t", b" ", b"\r", b"\t\tx", b" ||| x", b"\x00"))
    elif kind == 5:
        lines[place] = lines[place] * dice.choice((2, 300))
    elif kind == 6:
        lines = [line + b"\r" for line in lines]
    elif kind == 7:
        lines[place] = _replace_number(lines[place], dice)
    else:
        words = lines[place].split(b" ")
        words[dice.randrange(len(words))] = dice.choice(HOSTILE_TEXTS).encode()
        lines[place] = b" ".join(words)
    return b"\n".join(lines)


def _replace_number(line: bytes, dice: random.Random) -> bytes:
    numbers = list(re.finditer(rb"-?\d+(\.\d+)?", line))
    if not numbers:
        return line + dice.choice(HOSTILE_NUMBERS).encode()
    chosen = dice.choice(numbers)
    return line[: chosen.start()] + dice.choice(HOSTILE_NUMBERS).encode() + line[chosen.end() :]


def mutate_toml(data: bytes, dice: random.Random) -> bytes:
    """Change one setting: its value, its name or its place."""
    lines = data.split(b"\n")
    settings = [index for index, line in enumerate(lines) if b"=" in line]
    place = dice.choice(settings)
    key, _, value = lines[place].partition(b"=")
    kind = dice.randrange(8)
    if kind < 4:
        lines[place] = key + b"= " + _toml_value(dice)
    elif kind == 4:
        lines[place] = _replace_number(lines[place], dice)
    elif kind == 5:
        lines[place] = key.strip() + dice.choice((b"s", b".x", b" x", b"\x00")) + b" =" + value
    elif kind == 6:
        lines.insert(dice.randrange(len(lines) + 1), lines.pop(place))
    else:
        lines.insert(place, dice.choice((b"[x]", b"[[data]]", b"[data]", b"[a.b.c]", b"]")))
    return b"\n".join(lines)


def _toml_value(dice: random.Random) -> bytes:
    plain = [*HOSTILE_NUMBERS, "true", "false", "[]", "{}", "1979-05-27T07:32:00Z", "0x" + "f" * 99]
    deep = ["[" * DEEP + "]" * DEEP, "{a = " * DEEP + "1" + "}" * DEEP, "9" * 5000]
    lists = ["[1, 2]", '["a", 1]', "[[1]]", "{ a = 1 }", "[nan]", "[[1, 2], [3]]", '["a", "b"]']
    texts = [json.dumps(text) for text in HOSTILE_TEXTS]
    return dice.choice(dice.choice((plain, plain, lists, texts, deep))).encode()


def mutate_json(data: bytes, dice: random.Random) -> bytes:
    """Change one value anywhere in a JSON document: replace, rename, remove, add or nest it."""
    values = json.loads(data)
    holders = list(_holders(values))
    holder = dice.choice(holders)
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    kind = dice.randrange(7)
    if not keys or kind == 0:
        if isinstance(holder, dict):
            holder[dice.choice((*HOSTILE_TEXTS, "format", "files"))] = _json_value(dice)
        else:
            holder.append(_json_value(dice))
        return _to_json(values, dice)
    key = dice.choice(keys)
    if kind == 1:
        del holder[key]
    elif kind == 2 and isinstance(holder, dict):
        holder[dice.choice(HOSTILE_TEXTS)] = holder.pop(key)
    elif kind == 3:
        holder[key] = holder[dice.choice(keys)]
    elif kind == 4:
        holder[key] = _nested(holder[key], dice)
    else:
        holder[key] = _json_value(dice)
    return _to_json(values, dice)


def _holders(value: Any) -> list[Any]:
    """List every object and every list of a document, the document first."""
    found: list[Any] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            found.append(one)
            waiting += one.values() if isinstance(one, dict) else one
    return found


def _nested(value: Any, dice: random.Random) -> Any:
    for _ in range(dice.choice((1, DEEP))):
        value = [value] if dice.random() < 0.5 else {"a": value}
    return value


def _json_value(dice: random.Random) -> Any:
    numbers = [_number(text) for text in HOSTILE_NUMBERS]
    others = [None, True, False, [], {}, [1, "a"], {"a": 1}, 10**400, "\ud800", "\ud83d x"]
    return dice.choice(dice.choice((numbers, numbers, list(HOSTILE_TEXTS), others)))


def _number(text: str) -> float | int:
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _to_json(values: Any, dice: random.Random) -> bytes:
    return json.dumps(values, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")


def mutate_json_lines(data: bytes, dice: random.Random) -> bytes:
    """Change one document of JSON Lines, or the lines."""
    lines = data.split(b"\n")
    place = dice.randrange(len(lines))
    if dice.random() < 0.3 or not lines[place].strip():
        return mutate_lines(data, dice)
    lines[place] = mutate_json(lines[place], dice)
    return b"\n".join(lines)


def mutate_safetensors(data: bytes, dice: random.Random) -> bytes:
    """Change the header, or numbers of the tensors; few of them, a stretch, or all."""
    (length,) = struct.unpack_from("<Q", data)
    header, body = data[8 : 8 + length], bytearray(data[8 + length :])
    kind = dice.randrange(5)
    if kind == 0:
        header = mutate_json(header, dice)
    elif kind == 1:
        length = dice.choice((0, 7, len(header) - 1, len(data), 2**31, 2**53, 2**63, 2**64 - 1))
        return struct.pack("<Q", length % 2**64) + header + bytes(body)
    elif kind == 2 and body:
        start = dice.randrange(len(body)) // 4 * 4
        number = struct.pack("<f", dice.choice((float("nan"), float("inf"), 1e38, -1e38, 0.0, 1e9)))
        count = dice.choice((1, 50, len(body)))
        end = min(len(body) - len(body) % 4, start + 4 * count)
        body[start:end] = number * ((end - start) // 4)
    elif kind == 3:
        _enlarge(body, dice.choice((1e3, 1e10, 1e30)))
    else:
        body = bytearray(mutate_bytes(bytes(body), dice))
    return struct.pack("<Q", len(header)) + header + bytes(body)


def _enlarge(body: bytearray, factor: float) -> None:
    """Multiply all numbers, as if each were float32; the products stay finite."""
    import numpy as np

    whole = len(body) - len(body) % 4
    numbers = np.frombuffer(bytes(body[:whole]), "<f4")
    with np.errstate(all="ignore"):
        larger = np.clip(np.nan_to_num(numbers * factor), -1e38, 1e38)
    body[:whole] = larger.astype("<f4").tobytes()


def mutate_npz(data: bytes, dice: random.Random) -> bytes:
    """Change one array of an archive, or the archive itself; checksums stay right."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile:
        return mutate_bytes(data, dice)
    name = dice.choice(list(members))
    kind = dice.randrange(5)
    if kind == 0:
        del members[name]
    elif kind == 1:
        members[dice.choice(HOSTILE_TEXTS) + ".npy"] = members.pop(name)
    elif kind == 2:
        members[name] = members[dice.choice(list(members))]
    elif kind == 3:
        header, body = members[name][:128], members[name][128:]
        members[name] = _replace_number(header, dice) + body
    else:
        members[name] = mutate_bytes(members[name], dice)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for member, content in members.items():
            archive.writestr(member.replace("\0", "0") or "empty", content)
    return written.getvalue()


_BY_ENDING: dict[str, Callable[[bytes, random.Random], bytes]] = {
    ".json": mutate_json,
    ".jsonl": mutate_json_lines,
    ".toml": mutate_toml,
    ".safetensors": mutate_safetensors,
    ".npz": mutate_npz,
    ".model": mutate_bytes,
    ".spm": mutate_bytes,
    ".gz": mutate_bytes,
}
