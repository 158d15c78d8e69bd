"""Run ``python -m pellucid`` as ``pellucid``."""

from pellucid.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
