"""Prompt injection as an experiment: attacks, victims, defences, and the world as the judge.

Reading order: `provenance` (where a value comes from), `gate` (asking because of it).
"""

from course_utils.injection.gate import ProvenanceGate, ledger_of, watched
from course_utils.injection.provenance import Ledger, Mark

__all__ = ["Ledger", "Mark", "ProvenanceGate", "ledger_of", "watched"]
