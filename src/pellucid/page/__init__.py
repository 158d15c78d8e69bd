"""The web page: built from ``web/``, shipped as one file, filled with data here."""
