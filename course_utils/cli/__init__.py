"""The commands behind `python -m course_utils`: set-up, running, recording, testing."""
