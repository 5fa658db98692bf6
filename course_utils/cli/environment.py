"""Placeholder until set-up lands."""


def ensure(argv):
    """Use this interpreter as it is."""
