"""Run ``python -m pellucid`` as ``pellucid``."""

from pellucid.cli.main import main

if __name__ == "__main__":
    main()
