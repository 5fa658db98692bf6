"""`python -m course_utils <verb>`: the one entry point, on the standard library alone.

This file keeps to syntax that old interpreters can read, so that they too get the sentence
about the version instead of a syntax error.
"""

import os
import sys

if sys.version_info < (3, 11):
    sys.stderr.write(
        "This course needs Python 3.11 or newer; this is Python %d.%d. "
        "Name a newer one, for example: make run PYTHON=python3.11\n" % sys.version_info[:2]
    )
    sys.exit(2)

from course_utils.cli.main import main

if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # `… | head` closed the pipe: not a failure worth a traceback
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)
