"""Attention worked out number by number: everything behind `pellucid attend`.

`sheet` says what an example is made of, `stages` writes an attention down, `row` follows one row of
it. `matrices` makes an example of a user's file, which `reading` reads. `printed` holds the numbers
that texts print, and `examples` one module for each example.
"""

__all__: list[str] = []
