"""``pellucid attend``: worked examples as tables, as sentences and as JSON."""
