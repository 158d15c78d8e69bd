"""Models one after the other, where none has the pair."""
