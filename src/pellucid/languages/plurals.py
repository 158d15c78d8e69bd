"""The forms of plurals by language: categories of CLDR, and the rules that gettext's manual has."""

from __future__ import annotations

import re
from collections.abc import Collection

from pellucid.languages.codes import read_tag

_CATEGORIES = {
    "other": "ja ko zh vi th id ms lo km my",
    "one many other": "fr es it pt ca",
    "one few other": "ro bs hr sr",
    "one few many other": "ru uk be pl cs sk lt",
    "one two other": "he",
    "one two few other": "sl",
    "one two few many other": "ga mt",
    "zero one other": "lv",
    "zero one two few many other": "ar cy",
}
"""CLDR 46. All others have a form for one and one for others."""

CATEGORIES = frozenset(("zero", "one", "two", "few", "many", "other"))

_SLAVIC = "n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2"
_RULES = {
    "nplurals=1; plural=0": "ja ko zh vi th id ms lo km my",
    "nplurals=2; plural=(n != 1)": "en de nl sv da no nb nn fi et it es ca pt el hu tr bg he eu gl",
    "nplurals=2; plural=(n > 1)": "fr oc ti ln fil tg uz fa hy",
    f"nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : {_SLAVIC})": "ru uk be sr hr bs",
    f"nplurals=3; plural=(n==1 ? 0 : {_SLAVIC})": "pl",
    "nplurals=3; plural=(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2)": "cs sk",
    "nplurals=3; plural=(n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2)": "ro",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2)": (
        "lt"
    ),
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n!=0 ? 1 : 2)": "lv",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3)": "sl",
    "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3"
    " : n%100>=11 ? 4 : 5)": "ar",
}


def plural_categories(code: str) -> list[str]:
    """List the categories of a language's plurals, as Android and i18next name them."""
    language = read_tag(code).language
    found = (names for names, own in _CATEGORIES.items() if language in own.split())
    return next(found, "one other").split()


def missing_categories(there: Collection[str], target: str) -> list[str]:
    """List the categories that plurals of a language have, and a document's forms lack.

    Args:
        there: the names of the forms. Without both ``one`` and ``other`` nothing is known to be
            missing.
        target: the code of the language; empty if unknown.
    """
    if not target or not {"one", "other"} <= {*there}:
        return []
    return [one for one in plural_categories(target) if one not in there]


def num_forms(code: str) -> int:
    """Return the number of forms that gettext has for a language; 0 if it is not known."""
    found = re.match(r"nplurals=(\d)", plural_rule(code))
    return int(found[1]) if found else 0


def plural_rule(code: str) -> str:
    """Return what gettext's header says of a language's plurals; empty if it is not known."""
    language = read_tag(code).language
    return next((rule for rule, own in _RULES.items() if language in own.split()), "")
