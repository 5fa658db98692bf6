"""Does a run bear out its answer? A check by rules; no model is asked.

    from course_utils.claims import check_claims

It reads the answer for numbers, names and words of state (clear, cloudy, paid, shipped), looks for
each in what the tools really returned, and compares what the task told the agent to do with what
the trace shows.
"""

from course_utils.claims.check import KINDS, Finding, Score, check_claims, score

__all__ = ["KINDS", "Finding", "Score", "check_claims", "score"]
