"""`python -m adverse` is the `adverse` command."""

from adverse.cli import main

main()
