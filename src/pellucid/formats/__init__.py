"""Import and export: Marian and OPUS-MT, CTranslate2, and bundles of lower precision."""
