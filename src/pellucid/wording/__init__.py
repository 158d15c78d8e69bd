"""The words of refusals: what a value must be, what was given, which name was meant.

Everything that checks what a caller gives, from recipes to HTTP, words it here.
"""
