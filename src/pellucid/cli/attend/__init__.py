"""``pellucid attend``: worked examples as tables, as sentences and as JSON."""

__all__: list[str] = []
