"""The data check: what is odd about parallel text, before a model learns it."""
