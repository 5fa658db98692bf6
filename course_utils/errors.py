"""The one family of errors that this course raises on purpose."""


class CourseError(Exception):
    """An expected failure, told in a sentence: what was wrong and what to do about it.

    In a notebook only the message is shown, because the call stack inside the package says
    nothing that the sentence does not.

    >>> raise CourseError("No model is called 'qwen'. Known: qwen2.5-coder-1.5b.")
    Traceback (most recent call last):
    course_utils.errors.CourseError: No model is called 'qwen'. Known: qwen2.5-coder-1.5b.
    """

    def _render_traceback_(self) -> list[str]:
        # IPython calls this hook, if an exception has it, in place of its own traceback.
        return [f"{type(self).__name__}: {self}"]
