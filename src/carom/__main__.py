"""`python -m carom`: the same as the `carom` command."""

from carom.cli import main

main()
