"""What `--help` says, and the arguments of each verb. Standard library only."""

import argparse

ABOUT = """\
NAME
  course_utils - set up, run and test the course "From Tool Calls to Agents"

SYNOPSIS
  python -m course_utils VERB [ARGUMENTS]      make VERB [ARGS="..."]

DESCRIPTION
  The first call creates the folder .venv, installs the pinned packages of
  requirements.lock there and continues in it. Inside an active conda or virtual
  environment that has all of them already, that environment is used instead.
"""

DETAILS = """\
MODES
  Every reply of a model comes from one of three places, and says which:
  recorded   replayed from data/recordings; needs no weights and no network
  live       generated now, from the weights (see fetch) or by a server
  scripted   written by hand in the notebook, to show a case on purpose

  run and lab use "auto": recorded where a recording exists, otherwise live.
  test and execute use "recorded". live and record use "live".

ENVIRONMENT VARIABLES
  COURSE_MODEL    auto, recorded, live, or the http(s)://.../v1 address of an
                  OpenAI-compatible server; read by run and lab
  COURSE_HOME     folder for the model weights (default: the user's cache folder)
  COURSE_THREADS  processor threads for live replies (default: up to 4;
                  1 is better on shared machines)
  COURSE_ENV      "current": use this Python as it is, neither check nor install

EXAMPLES
  python -m course_utils run               every notebook, as copies, in order
  python -m course_utils run 01            one notebook
  python -m course_utils lab               JupyterLab on the course map
  python -m course_utils lab --no-browser  further arguments are JupyterLab's own
  python -m course_utils test 01           lint, unit tests and one notebook
  python -m course_utils fetch             the 1.5B model (1.1 GB)
  python -m course_utils execute 01        re-execute in place, normalised
  python -m course_utils record 01         ask the live model again, keep its replies

EXIT STATUS
  0  all went well
  1  something failed; the last lines say what
  2  the command line was not understood, or Python is too old
  130  stopped from the keyboard

FILES
  requirements.lock    every package with its version
  build/html           executed copies to read, written by run
  data/recordings      the recorded replies, one file per notebook
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints also say where the manual is."""

    def error(self, message: str):
        super().error(f"{message}\nTry: python -m course_utils --help")


def parser() -> argparse.ArgumentParser:
    """The command line of `python -m course_utils`."""
    top = _Parser(
        prog="course_utils",
        usage=argparse.SUPPRESS,
        description=ABOUT,
        epilog=DETAILS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # prog, or the usage lines of the verbs would start with nothing.
    verbs = top.add_subparsers(
        dest="verb", required=True, metavar="VERB", title="VERBS", prog="python -m course_utils"
    )
    _add(verbs, "run", "execute copies of the notebooks; the stored ones stay as they are", "*")
    _add(verbs, "test", "lint, unit tests, and every notebook against its stored outputs", "*")
    _delegated(verbs, "lab", "open JupyterLab on the course map")
    _delegated(verbs, "fetch", "download the weights of a model and check them")
    _add(verbs, "live", "fetch the weights, then run the notebooks on live replies", "*")
    execute = _add(verbs, "execute", "re-execute notebooks in place and normalise them", "*")
    execute.add_argument(
        "--check",
        action="store_true",
        help="write nothing; fail if a notebook would change",
    )
    record = _add(verbs, "record", "ask the live model again and replace the recordings", "+")
    record.add_argument(
        "--missing",
        action="store_true",
        help="keep the recordings there are; ask only for what is missing",
    )
    _delegated(verbs, "verify", "prove the recordings against the weights")
    _add(verbs, "sandbox", "install what model-written code runs in, and try it", None)
    dojo = _add(verbs, "agentdojo", "the gates against a benchmark (optional package)", None)
    dojo.add_argument(
        "suites",
        nargs="*",
        metavar="SUITE",
        help="workspace, travel, banking, slack: print only these (default: all, and write "
        "data/agentdojo/results.json)",
    )
    _add(verbs, "lock", "(maintainers) rebuild requirements.lock from pyproject.toml", None)
    return top


def _add(verbs, verb: str, summary: str, notebooks: str | None) -> argparse.ArgumentParser:
    """Add one verb; `notebooks` is how many notebook numbers it takes ("*", "+" or None)."""
    sub = verbs.add_parser(
        verb,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="See python -m course_utils --help for modes, variables and examples.",
    )
    if notebooks:
        sub.add_argument(
            "notebooks",
            nargs=notebooks,
            metavar="NN",
            help="notebook numbers, such as 01" + (" (default: all)" if notebooks == "*" else ""),
        )
    return sub


def _delegated(verbs, verb: str, summary: str) -> None:
    """Add a verb whose own module reads its arguments, --help included."""
    sub = verbs.add_parser(verb, help=summary, add_help=False, prefix_chars="\0")
    sub.add_argument("rest", nargs="*")
