"""Arithmetic and counting done by a program, because a language model guesses at both.

Never `eval`: it would run any Python that the model (or a page it has read) writes. The library
simpleeval walks the parsed expression and knows only what it was given; here that is numbers,
operators and five functions: no names, no attributes, no text, no comprehensions.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from typing import Any

from course_utils.world.problems import BadValue

MAX_CHARACTERS = 200
MAX_BITS = 4_000  # about 1,200 digits: more than anyone reads, quick to compute and to print
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def _round(number: float, digits: int = 0) -> float:
    # round(5, -10**9) would compute ten to the power of a thousand million.
    if abs(digits) > 100:
        raise BadValue("round takes at most 100 digits.", code="too_large")
    return round(number, digits) if digits else round(number)


FUNCTIONS = {"abs": abs, "max": max, "min": min, "round": _round, "sqrt": math.sqrt}


def calculate(expression: str) -> int | float:
    """Return the value of an arithmetic expression.

    Args:
        expression: Numbers with + - * / // % ** and parentheses; abs, max, min, round and sqrt
            are known too. Example: (17 + 4) * 2
    """
    text = str(expression).strip()
    if len(text) > MAX_CHARACTERS:
        raise BadValue(
            f"The expression has {len(text)} characters, at most {MAX_CHARACTERS} are allowed.",
            code="too_long",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's remarks on odd spelling, such as "1or 2"
            # mode="eval" takes exactly one expression: no assignment, no second statement.
            value = _evaluator().eval(text, ast.parse(text, mode="eval").body)
    except BadValue:
        raise
    except ZeroDivisionError as error:
        raise BadValue(f"{text!r} divides by zero.", code="division_by_zero") from error
    except Exception as error:  # the input is arbitrary text: whatever it breaks, say so
        raise BadValue(
            f"{text!r} cannot be calculated.",
            code="bad_expression",
            hint="Use numbers, + - * / // % **, parentheses, abs, max, min, round, sqrt.",
        ) from error
    return _finite(value, text)


def count_letters(text: str, letter: str) -> int:
    """Count how often a letter stands in a text; capital and small letters count alike.

    Args:
        text: The text to look through.
        letter: The single letter to count.
    """
    if not isinstance(letter, str) or len(letter) != 1:
        raise BadValue(f"letter must be one character, not {letter!r}.", code="bad_letter")
    return str(text).casefold().count(letter.casefold())


def _evaluator() -> Any:
    from simpleeval import SimpleEval

    evaluator = SimpleEval(
        operators={**OPERATORS, ast.Pow: _power}, functions=FUNCTIONS, names={}, allowed_attrs={}
    )
    # What is not in this table does not exist: no attribute access, no subscripts, no f-strings.
    allowed = (ast.BinOp, ast.UnaryOp, ast.Call)
    evaluator.nodes = {kind: evaluator.nodes[kind] for kind in allowed}
    evaluator.nodes[ast.Constant] = _number
    return evaluator


def _number(node: ast.Constant) -> int | float:
    if type(node.value) not in (int, float):
        raise BadValue(f"{node.value!r} is not a number.", code="bad_expression")
    return node.value


def _power(base: float, exponent: float) -> float:
    # 9**9**9 would keep the computer busy for years; the size is known before computing it.
    if isinstance(base, int) and isinstance(exponent, int):
        if abs(exponent) * abs(base).bit_length() > MAX_BITS:
            raise BadValue("The power is too large to write down.", code="too_large")
    return base**exponent


def _finite(value: Any, text: str) -> int | float:
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        raise BadValue(f"{text!r} has no finite real value.", code="not_finite")
    if isinstance(value, int) and value.bit_length() > 2 * MAX_BITS:
        raise BadValue(f"The value of {text!r} is too large to write down.", code="too_large")
    return value
