"""Libraries and commands that a process has loaded when it is forked from this one."""

from __future__ import annotations

import gc
import pkgutil
from importlib import import_module

from pellucid.cli import commands
from pellucid.languages.codes import load_identifier

for name in ("torch._dynamo", "matplotlib.figure", "pellucid.training"):
    import_module(name)
for module in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
    import_module(module.name)
load_identifier()  # Every training would load it for a second, to check its text.

# Python's search for cycles would write to the objects, and so copy them for every fork.
gc.collect()
gc.freeze()
