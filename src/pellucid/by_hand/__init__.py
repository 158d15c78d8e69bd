"""Attention worked out number by number: everything behind `pellucid attend`.

`sheet` says what an example is made of. `stages` writes an attention down, `layer` what surrounds
it in an encoder layer, and `sums` the arithmetic; `row` follows one row. `pages` cuts an example
into pages, and `questions` asks for its numbers. `matrices` makes an example of a user's file,
which `reading` reads, with what `around` adds to it. `learning` trains a small translator. `texts`
holds the numbers that texts print, `printed` recomputes them, and `examples` has one module for
each example.
"""
