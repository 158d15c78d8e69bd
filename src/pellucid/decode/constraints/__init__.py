"""What a translation may and must contain."""

__all__: list[str] = []
