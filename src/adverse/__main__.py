"""`python -m adverse`: the same as the `adverse` command."""

from adverse.cli import main

main()
