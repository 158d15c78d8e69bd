"""The exception tree, and the wording of messages.

A message is one sentence about the fault and one about what to do now::

    <what> must be <rule>, but is <value> (<file:line, field or option>). <What to do now.>

Each class is also the natural built-in, so that ``except ValueError`` keeps working::

    PellucidError                      exit code 1: the machine, the disk or the training failed
    ├── InputError (ValueError)        exit code 2: the user's input must change
    │   ├── ConfigurationError         a recipe, an option or a configuration file
    │   ├── DataError                  a text file
    │   ├── BundleError                a model folder
    │   ├── LibraryError               a library that is not installed
    │   └── InputFileNotFoundError     a missing file or folder (also FileNotFoundError)
    ├── OutputError (OSError)          the place to write to
    │   └── OutputPlaceError           exit code 2: its name or folder must change (also InputError)
    └── TrainingError (RuntimeError)   a training that cannot continue
        └── LostRankError              a process that shared it ended or never came
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

Caller = Literal["command", "python", "http"]

# What has another name than the option of a command. Code writes sentences with options.
_NAMES: dict[Caller, dict[str, str]] = {
    "python": {"o": "output", "set": "settings", "change": "changes", "from": "source_language"},
    "http": {"change": "changes", "to": "target_language", "from": "source_language"},
}
_OPTION = re.compile(
    # A whole command stays: whoever reads it can type it.
    r"(?P<command>\bpellucid [a-z]+ .*?(?=\. [A-Z]|$))"
    r"|(?<![\w-])(?:--(?P<name>[a-z][a-z-]*)|-(?P<short>o)\b)"
    # A value begins with a capital, a digit, or the path of a file; --set has its own.
    r"(?: (?P<value>'[^']*'(?=[.,;:)]*(?:\s|$))"
    r"|(?:[A-Z0-9~/$…]|[a-z_]+\.[a-z_]+=)\S*(?<![.,;:)])))?"
)
# Begins at beginnings of words only: a client's text in a sentence may be one of a million letters.
_BEFORE_ANOTHER = re.compile(r"(?<!\S)(\S+) (?=[a-z_]+=)")
_caller: Caller = "python"


@contextmanager
def speaking_to(caller: Caller) -> Iterator[None]:
    """Word errors for whoever calls, from now on in the whole process."""
    global _caller
    before = _caller
    _caller = caller
    try:
        yield
    finally:
        _caller = before


def word_options(sentence: str, caller: Caller | None = None) -> str:
    """Name the options in a sentence as the caller types them.

    Args:
        sentence: with options of commands: ``Give --start MODEL, or another folder (-o).``
        caller: who reads it; as `speaking_to` says unless given.

    Returns:
        The sentence, for Python ``Give start=MODEL, or another folder (output).``
    """
    caller = caller or _caller
    if caller == "command":
        return sentence
    names = _NAMES[caller]

    def word(found: re.Match[str]) -> str:
        if found["command"]:
            return found[0]
        option = found["name"] or found["short"]
        name = names.get(option, option.replace("-", "_"))
        if found["value"] is None:
            return name
        key, is_setting, value = found["value"].strip("'").partition("=")
        if is_setting:
            return f'{name}={{"{key}": {value}}}'
        return f'{name}="{key}"' if key[:1] in "/~$" else f"{name}={key}"

    return _BEFORE_ANOTHER.sub(_end_argument, _OPTION.sub(word, sentence))


def _end_argument(found: re.Match[str]) -> str:
    """Write a comma between two arguments of Python that follow each other."""
    return f"{found[1]}, " if re.search(r"\b[a-z_]+=\S", found[1]) else found[0]


class PellucidError(Exception):
    """The root of every error that this package raises on purpose.

    Its text names options as the caller types them, see `word_options`.

    Attributes:
        exit_code: the exit code of a command that ends with this error.
    """

    exit_code = 1

    def __str__(self) -> str:
        return word_options(self.sentence)

    @property
    def sentence(self) -> str:
        """The sentence with options of commands, as it was written."""
        return super().__str__()


class InputError(PellucidError, ValueError):
    """The user's input must change."""

    exit_code = 2


class ConfigurationError(InputError):
    """A recipe, an option or a configuration file asks for something impossible."""


class DataError(InputError):
    """A text file cannot be used as it is."""


class InputFileNotFoundError(InputError, FileNotFoundError):
    """A file or folder does not exist."""


class BundleError(InputError):
    """A model folder is damaged, incomplete, or of another format."""


class LibraryError(InputError):
    """A library is not installed; every line that needs it fails alike."""


class OutputError(PellucidError, OSError):
    """The place to write to cannot take the result."""


class OutputPlaceError(InputError, OutputError):
    """The place to write to cannot exist as it is named."""


class TrainingError(PellucidError, RuntimeError):
    """Training cannot continue."""


class LostRankError(TrainingError):
    """A process that shares the training ended, fell silent, or never came."""


def not_together(first: str, second: str, why: str = "") -> InputError:
    """Word the refusal of two options that contradict each other.

    Args:
        first: one option.
        second: the other.
        why: the reason, as a main clause; none if it is plain.
    """
    reason = f": {why}" if why else ""
    return InputError(f"{first} cannot be combined with {second}{reason}. Leave one of them out.")


def suggestion(name: str, known: Iterable[str]) -> str:
    """Word a hint about a name that does not exist.

    Args:
        name: the unknown name.
        known: the names that exist.

    Returns:
        ``"Did you mean 'x'?"`` if a known name is similar, otherwise ``"Known are: a, b, c."``
    """
    import difflib  # Few commands need a suggestion, and every command imports this module.

    options = sorted(known)
    near = difflib.get_close_matches(name, options, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"Known are: {', '.join(options)}."


_MEMORY = "Out of memory. Free some, or use a smaller batch or beam."
_HANDLES = (
    "Too many files are open at once. Raise the limit (ulimit -n), or end other programs, and give "
    "the command again."
)
_DISK = "No space left on the disk. Free some, and give the command again."
_BY_NUMBER = {
    errno.ENOMEM: _MEMORY,
    errno.EMFILE: _HANDLES,
    errno.ENFILE: _HANDLES,
    errno.ENOSPC: _DISK,
    errno.EDQUOT: _DISK,
    errno.EIO: "The disk or the network behind a file reported an error. Check it, or use another.",
}
# Libraries raise some faults of the machine without a number of the system.
_BY_WORDS = {
    "can't allocate memory": _MEMORY,  # PyTorch on a processor
    "not enough memory": _MEMORY,
    "out of memory": _MEMORY,  # PyTorch on a GPU
    "cannot allocate memory": _MEMORY,  # a library that cannot be loaded
    "failed to map segment": _MEMORY,
    "too many open files": _HANDLES,
    "can't start new thread": "No more threads can be started. Use fewer with --threads, or raise "
    "the limit (ulimit -u).",
}


def fault_of_machine(error: BaseException) -> str | None:
    """Say what the machine lacks and what to do, if that is what an error is about.

    Args:
        error: of the system, of Python, or of a library, which may word it as a RuntimeError.
    """
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, OSError) and error.errno in _BY_NUMBER:
        return _BY_NUMBER[error.errno]
    if isinstance(error, RuntimeError | ImportError | OSError):
        said = str(error).lower()
        return next((sentence for words, sentence in _BY_WORDS.items() if words in said), None)
    return None


# What needs each library that may be missing, and the extra that installs it. The engine in C
# translates without PyTorch, sacreBLEU and py3langid, which no extra has.
_SERVICE = ("The service", "serve")
_EXTRAS = {
    "ctranslate2": ("CTranslate2's format", "ctranslate2"),
    "fsspec": ("A job of bulk", "bulk"),
    "httptools": _SERVICE,
    "markdown_it": ("Markdown", "documents"),
    "matplotlib": ("A picture or a report", "pictures"),
    "multipart": _SERVICE,
    "prometheus_client": _SERVICE,
    "py3langid": ("Telling languages apart", ""),
    "pyarrow": ("A table in Parquet or Arrow", "tables"),
    "python_multipart": _SERVICE,
    "rapidfuzz": ("A memory", "memory"),
    "ray": ("--ray", "ray"),
    "sacremoses": ("A lower-cased tokenized score", "moses"),
    "sacrebleu": ("A score", ""),
    "starlette": _SERVICE,
    "torch": ("What the engine in C does not compute", ""),
    "uvicorn": _SERVICE,
    "yaml": ("YAML", "documents"),
}


def need_library(name: str, purpose: str = "") -> Any:
    """Import an optional library.

    Args:
        name: the module to import, or one of ours that imports it.
        purpose: what needs it, as the subject of a sentence; by default what usually does.

    Raises:
        LibraryError: it is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        library = (error.name or name).partition(".")[0]
        raise LibraryError(_lacks(library, purpose)) from None


def missing_extra(error: BaseException) -> str | None:
    """Say how to install an optional package, if an error is about one that is missing."""
    name = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or name not in _EXTRAS:
        return None
    return _lacks(name, "")


def _lacks(library: str, purpose: str) -> str:
    usual, extra = _EXTRAS.get(library, ("This", ""))
    install = f"'pellucid[{extra}]'" if extra else library
    return (
        f"{purpose or usual} needs the package {library}, which is not installed. Install it "
        f"with: pip install {install}"
    )


_IMPOSSIBLE = (errno.ENOENT, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)


def not_readable(error: OSError, path: object) -> PellucidError:
    """Turn the system's error about a file to read into ours."""
    if isinstance(error, FileNotFoundError):
        return InputFileNotFoundError(
            f"The file {path} does not exist. Check the name and the folder."
        )
    if (fault := fault_of_machine(error)) is not None:
        return PellucidError(f"The file {path} could not be read. {fault}")
    sentence = f"The file must be readable, but {path} is not: {error.strerror or error}."
    if isinstance(error, IsADirectoryError):
        return DataError(f"{sentence} Name a file in it.")
    return DataError(f"{sentence} Check the name and its permissions.")


def not_writable(error: OSError, path: object) -> OutputError:
    """Turn the system's error about an output into ours."""
    sentence = f"The output must be writable, but {path} is not: {error.strerror or error}."
    if error.errno in _IMPOSSIBLE:
        return OutputPlaceError(f"{sentence} Choose another name, or make the folder.")
    return OutputError(f"{sentence} {how_to_write(error)} or choose another folder.")


def how_to_write(error: BaseException) -> str:
    """Say what makes an output writable again, as the beginning of a sentence."""
    number = getattr(error, "errno", None)
    if number in (errno.EROFS, errno.EACCES, errno.EPERM):
        return "Make it writable"
    return "Raise the limit (ulimit -n)" if number == errno.EMFILE else "Free some space"


_LONGEST_WORD = 200
_LONGEST_SENTENCE = 1500
"""Characters of a message, of which few are this package's own."""


def make_printable(text: str) -> str:
    """Write control characters, and others that show nothing, as escapes."""
    if text.isprintable():
        return text
    # The name of a file may hold escape sequences, which would steer the terminal.
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shorten(message: str) -> str:
    """Cut the middle out of long values in a message, such as a name of thousands of letters.

    The ends stay: a message begins with the fault and ends with what to do.
    """
    if len(message) <= _LONGEST_WORD:
        return message
    words = re.sub(rf"\S{{{_LONGEST_WORD + 1},}}", lambda word: _cut(word[0], 80, 40), message)
    # A message may also be long by the number of its words.
    return words if len(words) <= _LONGEST_SENTENCE else _cut(words, 900, 400)


def _cut(text: str, num_first: int, num_last: int) -> str:
    return f"{text[:num_first]}…({len(text):,} characters)…{text[-num_last:]}"
