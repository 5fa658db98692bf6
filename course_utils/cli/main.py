"""Read the command line, make sure of the environment, hand over to the verb."""

import importlib
import sys

from course_utils.cli import environment, manual
from course_utils.errors import CourseError

# verb -> module and function; imported only after the environment is known to be complete.
VERBS = {
    "run": "course_utils.cli.run:run_verb",
    "test": "course_utils.cli.testing:test_verb",
    "lab": "course_utils.cli.lab:lab_verb",
    "fetch": "course_utils.cli.weights:fetch_verb",
    "live": "course_utils.cli.weights:live_verb",
    "execute": "course_utils.cli.execute:execute_verb",
    "record": "course_utils.cli.record:record_verb",
    "verify": "course_utils.cli.weights:verify_verb",
    "sandbox": "course_utils.cli.sandbox:sandbox_verb",
    "agentdojo": "course_utils.cli.dojo:dojo_verb",
    "lock": "course_utils.cli.lock:lock_verb",
}


def main(argv: list[str]) -> int:
    """Run one verb and return its exit status (0 fine, 1 something failed, 2 wrong usage).

    >>> main(["run", "01"])  # doctest: +SKIP
    0
    """
    arguments = manual.parser().parse_args(argv)
    try:
        environment.ensure(argv)
        module, function = VERBS[arguments.verb].split(":")
        return getattr(importlib.import_module(module), function)(arguments)
    except CourseError as error:
        print(f"{arguments.verb}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output left; __main__ knows what to do
        raise
    except OSError as error:
        what = f"{error.filename}: {error.strerror or error}" if error.filename else str(error)
        print(
            f"{arguments.verb}: A file or folder cannot be used ({what}). Check the space and the "
            "permissions there, then type the command again.",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print(f"\n{arguments.verb}: stopped.", file=sys.stderr)
        return 130
