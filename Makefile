# Each target is one call of the program itself: python3 -m course_utils --help says more.
# Choose notebooks with ARGS (make run ARGS=01), a model with MODEL, a Python with PYTHON.
PYTHON ?= python3
ARGS ?=
MODEL ?=

.PHONY: run test lab fetch live execute record verify sandbox agentdojo lock help

run:
	@$(PYTHON) -m course_utils run $(ARGS)
test:
	@$(PYTHON) -m course_utils test $(ARGS)
lab:
	@$(PYTHON) -m course_utils lab $(ARGS)
fetch:
	@$(PYTHON) -m course_utils fetch $(MODEL)
live:
	@$(PYTHON) -m course_utils live $(ARGS)
execute:
	@$(PYTHON) -m course_utils execute $(ARGS)
record:
	@$(PYTHON) -m course_utils record $(ARGS)
verify:
	@$(PYTHON) -m course_utils verify $(ARGS)
sandbox:
	@$(PYTHON) -m course_utils sandbox
agentdojo:
	@$(PYTHON) -m course_utils agentdojo $(ARGS)
lock:
	@$(PYTHON) -m course_utils lock
help:
	@$(PYTHON) -m course_utils --help
