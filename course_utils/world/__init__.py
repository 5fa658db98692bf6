"""The small world that the tools of the course act on.

Reading order: `clock` (a fixed today), `calculator`, `documents` (search and exact quotation),
`effects` (where every side effect becomes a row), `outbox`, `office` (invoices, payments,
tickets, orders), `pictures` (a picture maker that keeps its prompts), `weather` (a real HTTP
service on this computer), `world` (all of it, with one `reset()`). Nothing here knows of models or
messages: a model reaches the world only by a tool.
"""

from course_utils.world.clock import Clock
from course_utils.world.outbox import Outbox
from course_utils.world.world import World

__all__ = ["Clock", "Outbox", "World"]
