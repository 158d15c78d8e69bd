"""The web page: built from ``web/``, shipped as one file, filled with data here."""

from pellucid.page.make import MODEL_LIMIT, make_page

__all__ = ["MODEL_LIMIT", "make_page"]
