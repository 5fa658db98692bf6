"""Prompt injection as an experiment: attacks, victims, defences, and the world as the judge.

Reading order: `attacks` (texts and goals as data), `stage` (a world with slots for foreign text),
`orders` and `victims` (agents without a model), `escaping`, `provenance` and `gate`, `reading`
(typed fields, plans), `people` (who answers at the gate), `defences`, `matrix`.
"""

from course_utils.injection.attacks import (
    Attack,
    UserTask,
    attack,
    attacks,
    disguises,
    questions,
    tasks,
)
from course_utils.injection.defences import DEFENCES, STRICT, Defence, defence, gate_with
from course_utils.injection.escaping import escape, escape_results
from course_utils.injection.gate import BothGates, ProvenanceGate, ledger_of, watched
from course_utils.injection.matrix import Cell, Trial, run_matrix, share, summary, trial
from course_utils.injection.provenance import Ledger, Mark
from course_utils.injection.stage import Stage
from course_utils.injection.victims import Obedient, RoleFaithful

__all__ = [
    "DEFENCES",
    "STRICT",
    "Attack",
    "BothGates",
    "Cell",
    "Defence",
    "Ledger",
    "Mark",
    "Obedient",
    "ProvenanceGate",
    "RoleFaithful",
    "Stage",
    "Trial",
    "UserTask",
    "attack",
    "attacks",
    "defence",
    "disguises",
    "escape",
    "escape_results",
    "gate_with",
    "ledger_of",
    "questions",
    "run_matrix",
    "share",
    "summary",
    "tasks",
    "trial",
    "watched",
]
