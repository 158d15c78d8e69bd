"""Import and export: Marian and OPUS-MT, CTranslate2, and bundles of lower precision."""

from pellucid.formats.imported import ImportedModel
from pellucid.formats.imports import import_marian
from pellucid.formats.reading import check_place
from pellucid.formats.to_bundle import export_bundle
from pellucid.formats.to_ctranslate2 import export_ctranslate2
from pellucid.formats.to_marian import export_marian

__all__ = [
    "ImportedModel",
    "check_place",
    "export_bundle",
    "export_ctranslate2",
    "export_marian",
    "import_marian",
]
