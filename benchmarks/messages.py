"""Messages of programs, through a model that learned from others: placeholders, masks, a memory.

    python benchmarks/messages.py FOLDER [--minutes 20] [--test 20000] [--out FILE]

Downloads packages of Debian into FOLDER with ``apt-get download`` and takes the French translations
out of their catalogues (``msgunfmt``). Four programs are kept for the memory. Of the others'
messages TEST are kept for a test, by the hash of the message, and `pellucid train` learns from the
rest, twice: as it is, and with masks (``data.placeholders``). Then `pellucid translate` translates
the test's catalogue with both models. polib reads the result, and ``msgfmt`` checks the messages
whose own translation it takes. Printed are, for each model,

- messages whose placeholders are the source's, those to look at, and, where the order of two
  placeholders can be seen, those in the order of the program's translator;
- how the placeholders of a sentence came: with the model's first translation, with another of its
  four best, or neither, with BLEU and chrF of the chosen one;
- for the four programs, with the first model, BLEU with and without the training text as a memory,
  by match.

What lies in FOLDER is not made again. --out writes the figures to a file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polib
import sacrebleu

from pellucid.documents.formats import FORMATS
from pellucid.documents.markup.placeholder_shapes import find_placeholders
from pellucid.documents.markup.segments import Segment
from pellucid.documents.placeholders import keeps_copies
from pellucid.documents.units import How, Unit
from pellucid.translate.translator import load

PACKAGES = """
apt aptitude audacity-data bash binutils-common coreutils darktable diffutils dolphin dpkg eog
epiphany-browser-data evolution-common file-roller filezilla-common findutils gawk gedit-common
gettext gimp-data git gnome-calculator gnome-control-center-data gnome-software-common
gnucash-common gnumeric-common gnupg-l10n gparted-common grep hexchat-common inkscape kate5-data
lftp libglib2.0-data libgnutls30 libgtk-3-common make meld mutt nano nautilus-data pidgin-data
poedit-common psmisc remmina-common rhythmbox-data sed shotwell-common synaptic tar totem-common
util-linux-locales vlc-l10n wget xfce4-settings
"""
FOR_MEMORY = ("nautilus", "gedit", "wget", "hexchat")
"""Programs that no model learns from."""

HEADER = {
    "Content-Type": "text/plain; charset=UTF-8",
    "Plural-Forms": "nplurals=2; plural=(n > 1);",
    "Language": "fr",
}
MODELS = ("text", "masks")
"""How the models read placeholders."""

MOST_COPIES = 20
FOUR_BEST = {"beam": 4, "n_best": 4}


def run(*words: str | Path, into: Path | None = None) -> None:
    """Run a command; its output goes to a file."""
    with (into or Path("/dev/null")).open("wb") as stream:
        subprocess.run([str(one) for one in words], stdout=stream, check=True)


def pellucid(*words: str | Path) -> None:
    """Run a pellucid command."""
    run(sys.executable, "-m", "pellucid", *words)


def fetch(folder: Path, packages: str = PACKAGES, language: str = "fr") -> list[Path]:
    """Download the packages that there are, and list their catalogues in a language."""
    (folder / "trees").mkdir(exist_ok=True)
    for name in packages.split():
        tree = folder / "trees" / name
        if tree.is_dir():
            continue
        subprocess.run(["apt-get", "-qq", "download", name], cwd=folder, stderr=subprocess.DEVNULL)
        for package in folder.glob(f"{name}_*.deb"):
            run("dpkg-deb", "-x", package, tree)
            package.unlink()
    return sorted(folder.glob(f"trees/*/usr/share/locale/{language}/LC_MESSAGES/*.mo"))


def write_catalogues(folder: Path, most: int) -> None:
    """Sort messages into catalogues for training, test and memory, no message into two of them."""
    seen: set[str] = set()
    sorts: dict[str, list[polib.POEntry]] = {"memory": [], "test": [], "train": []}
    entries = [(path.stem, one) for path in fetch(folder) for one in messages(path, folder)]
    entries.sort(key=lambda pair: (pair[0] not in FOR_MEMORY, digest(pair[1].msgid)))
    for program, entry in entries:
        if entry.msgid in seen and program not in FOR_MEMORY:
            # A program that only the memory's models see may share messages with the others.
            continue
        if program in FOR_MEMORY:
            sorts["memory"].append(entry)
            continue
        seen.add(entry.msgid)
        sorts["test" if len(sorts["test"]) < most else "train"].append(entry)
    for name, own in sorts.items():
        write(folder / f"{name}.reference.po", own)
        for entry in own:
            entry.msgstr, entry.msgstr_plural = "", dict.fromkeys(entry.msgstr_plural, "")
        write(folder / f"{name}.po", own)
        print(f"{name}: {len(own):,} messages", flush=True)


def messages(path: Path, folder: Path) -> Iterable[polib.POEntry]:
    """Read the translated messages of a compiled catalogue, without contexts."""
    run("msgunfmt", path, into=folder / "one.po")
    for entry in polib.pofile(str(folder / "one.po")):
        has_two = not entry.msgid_plural or len(entry.msgstr_plural) == 2
        if entry.translated() and has_two and re.search(r"[^\W\d_]{2}", entry.msgid):
            entry.msgctxt = None
            yield entry


def digest(text: str) -> bytes:
    """Hash a message, to sort by."""
    return hashlib.sha256(text.encode()).digest()


def write(path: Path, entries: Iterable[polib.POEntry]) -> None:
    """Write a catalogue; of equal messages the first one stays."""
    file = polib.POFile()
    file.metadata = HEADER
    file.extend({one.msgid: one for one in reversed([*entries])}.values())
    file.save(str(path))


def train(folder: Path, minutes: int) -> None:
    """Train a model with placeholders as text, and one with masks, on the same pairs."""
    table = folder / "train.tsv"
    languages = ("--source-language", "en", "--target-language", "fr")
    if not table.exists():
        pellucid("extract", folder / "train.reference.po", "-o", table, *languages)
    for name in MODELS:  # A training that has ended ends at once.
        limit = ("--minutes", str(minutes), "--threads", "1", *languages)
        setting = ("--set", f"data.placeholders={name}")
        pellucid("train", table, *limit, *setting, "-o", folder / f"{name}-run")


def translate(
    folder: Path, name: str, into: str, *options: str | Path, model: str = "text"
) -> polib.POFile:
    """Translate a catalogue with a command, and read it with polib."""
    output = folder / f"{into}.fr.po"
    if not output.exists():
        report = ("--mark", "none", "--report", folder / f"{into}.jsonl")
        bundle = folder / f"{model}-run" / "bundle"
        pellucid("translate", bundle, "-i", folder / f"{name}.po", "-o", output, *report, *options)
    return polib.pofile(str(output))


def strings(entry: polib.POEntry) -> list[str]:
    """List the translations of a message."""
    return [*entry.msgstr_plural.values()] if entry.msgid_plural else [entry.msgstr]


def placeholders(text: str) -> list[str]:
    """List the placeholders of a text in order."""
    return [one.text for one in find_placeholders(text) if one.token is None]


def quality(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Compute BLEU and chrF of texts on one line each."""
    texts, others = ([" ".join(one.split()) for one in own] for own in (hypotheses, references))
    return {
        "bleu": round(sacrebleu.corpus_bleu(texts, [others]).score, 1),
        "chrf": round(sacrebleu.corpus_chrf(texts, [others]).score, 1),
    }


def measure_catalogue(folder: Path, model: str) -> dict[str, Any]:
    """Compare a model's catalogue with its messages and with their own translations."""
    made = translate(folder, "test", model, model=model)
    known = {one.msgid: one for one in polib.pofile(str(folder / "test.reference.po"))}
    counts: Counter[str] = Counter()
    for entry in made:
        own = Counter(placeholders(entry.msgid))
        allowed = (own, Counter(placeholders(entry.msgid_plural or entry.msgid)))
        counts["messages"] += 1
        counts["with placeholders"] += bool(own)
        counts["equal"] += all(Counter(placeholders(one)) in allowed for one in strings(entry))
        order = placeholders(known[entry.msgid].msgstr)
        if len({*order}) > 1 and Counter(order) == own:
            counts["two or more, each once as in the source"] += 1
            counts["in the translator's order"] += placeholders(entry.msgstr) == order
            counts["translator keeps the source's order"] += placeholders(entry.msgid) == order
    reports = [json.loads(one) for one in (folder / f"{model}.jsonl").read_text().splitlines()]
    reasons = Counter(re.sub(r": .*", "", one["reason"]) for one in reports)
    single = [one for one in made if not one.msgid_plural]
    found = quality([one.msgstr for one in single], [known[one.msgid].msgstr for one in single])
    refused_too = refused(folder, f"{model}.fr.po") - refused(folder, "test.reference.po")
    return {
        **counts,
        "to look at": len(reports),
        "reasons": dict(reasons),
        **found,
        "of the translators' that msgfmt takes, refused in ours": len(refused_too),
    }


def refused(folder: Path, name: str) -> set[str]:
    """Find the messages that msgfmt refuses as format strings of C."""
    file = polib.pofile(str(folder / name))
    for entry in file:
        entry.flags = ["c-format"]
    file.save(str(folder / "check.po"))
    command = ["msgfmt", "--check-format", "-o", "/dev/null", str(folder / "check.po")]
    errors = subprocess.run(command, capture_output=True, text=True, env={"LC_ALL": "C.UTF-8"})
    lines = {int(one[1]) for one in re.finditer(r"check\.po:(\d+):", errors.stderr)}
    if not lines:
        return set()
    starts = sorted((one.linenum, one.msgid) for one in polib.pofile(str(folder / "check.po")))
    return {[text for start, text in starts if start <= line][-1] for line in lines}


def measure_steps(folder: Path, most: int) -> dict[str, Any]:
    """Translate sentences with placeholders with both models, and count where they come from."""
    how = How(languages=("en", "fr"), has_all=True, has_pairs=True)
    text = (folder / "test.reference.po").read_text()
    pairs: dict[str, tuple[Segment, str]] = {}
    for unit in FORMATS["po"].read([text], how):
        if not isinstance(unit, Unit):
            continue
        for one, old in zip(unit.pieces, unit.old, strict=False):
            if not (isinstance(one, Segment) and isinstance(old, Segment)):
                continue
            if not one.has_tags and 0 < len(one.copies) <= MOST_COPIES:
                pairs.setdefault(one.text.strip(), (one, old.text.strip()))
    texts = [*pairs][:most]
    segments, references = zip(*(pairs[one] for one in texts), strict=True)
    found: dict[str, Any] = {"sentences": len(texts)}
    for name in MODELS:
        steps, chosen = Counter[str](), []
        answers = load(folder / f"{name}-run" / "bundle").translate(texts, **FOUR_BEST)
        for segment, one in zip(segments, answers, strict=True):
            fits = [keeps_copies(segment, answer.text) for answer in one.hypotheses]
            steps["first" if fits[0] else "another of four" if any(fits) else "neither"] += 1
            chosen.append(one.hypotheses[fits.index(True) if any(fits) else 0].text)
        found[name] = {**steps, **quality(chosen, references)}
    return found


def measure_memory(folder: Path) -> dict[str, Any]:
    """Translate other programs with and without the training text as a memory."""
    known = {one.msgid: one.msgstr for one in polib.pofile(str(folder / "memory.reference.po"))}
    plain = translate(folder, "memory", "plain")
    helped = translate(folder, "memory", "helped", "--memory", folder / "train.tsv")
    lines = (folder / "helped.jsonl").read_text().splitlines()
    records = {record["key"]: record for record in map(json.loads, lines)}
    bands: dict[str, list[tuple[str, str, str]]] = {}
    for one, other in zip(plain, helped, strict=True):
        if one.msgid_plural:
            continue
        record = records.get(one.msgid, {})
        band = "equal" if record.get("reason", "").startswith("taken from") else "none"
        similar = record.get("memory")
        if similar is not None:
            band = "90 % and more" if similar["similarity"] >= 0.9 else "75 to 89 %"
        # A similar text is only a suggestion: what it would give is measured.
        suggested = similar["translation"] if similar else other.msgstr
        row = (one.msgstr, suggested, known[one.msgid])
        bands.setdefault(band, []).append(row)
        bands.setdefault("all", []).append(row)
    found = {}
    for band, rows in bands.items():
        without, with_memory, references = zip(*rows, strict=True)
        qualities = {"without": quality(without, references)}
        qualities["with"] = quality(with_memory, references)
        found[band] = {"messages": len(rows), **qualities}
    return found


def main() -> None:
    """Fetch, train and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=int, default=20)
    parser.add_argument("--test", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "train.po").exists():
        write_catalogues(folder, options.test)
    train(folder, options.minutes)
    results = {
        "minutes": options.minutes,
        "pairs": len((folder / "train.tsv").read_text().splitlines()),
        "catalogue": {name: measure_catalogue(folder, name) for name in MODELS},
        "steps": measure_steps(folder, options.test),
        "memory": measure_memory(folder),
    }
    print(json.dumps(results, indent=1, ensure_ascii=False))
    if options.out is not None:
        options.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
