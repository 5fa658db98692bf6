"""Conversation memory: count a history exactly, trim it to a budget, keep only answers in it."""

from course_utils.memory.counting import (
    NotAdditive,
    TokenCounter,
    count_tokens,
)
from course_utils.memory.explain import Rules, Step, explain
from course_utils.memory.guard import NotAnAnswer, checked_answer
from course_utils.memory.history import as_message, as_messages
from course_utils.memory.trimming import BudgetTooSmall, shorten_results, trim

__all__ = [
    "BudgetTooSmall",
    "NotAdditive",
    "NotAnAnswer",
    "Rules",
    "Step",
    "TokenCounter",
    "as_message",
    "as_messages",
    "checked_answer",
    "count_tokens",
    "explain",
    "shorten_results",
    "trim",
]
