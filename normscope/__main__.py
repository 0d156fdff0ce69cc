"""`python -m normscope`."""

from normscope.cli.app import main

main()
