"""The whole world in one object that can be put back to its known state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from course_utils.world.clock import Clock
from course_utils.world.effects import Effects
from course_utils.world.office import Office
from course_utils.world.outbox import Outbox
from course_utils.world.pictures import PictureMaker
from course_utils.world.weather import WeatherService


class World:
    """Clock, outbox, office, picture maker and weather service, sharing one list of side effects.

    With a path the side effects are kept in a file, so that they outlive a killed process.

    >>> world = World()
    >>> world.outbox.send("Ana", "Hello")
    'Sent to Ana.'
    >>> [(row["effect"], row["to"]) for row in world.effects()]
    [('email', 'Ana')]
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._effects = Effects(path)
        self._weather: WeatherService | None = None
        self.clock = Clock()
        self.outbox = Outbox(effects=self._effects)
        self.office = Office(effects=self._effects)
        self.pictures = PictureMaker(effects=self._effects)

    @property
    def weather(self) -> WeatherService:
        """The weather service, started when it is first asked for."""
        if self._weather is None:
            self._weather = WeatherService().start()
        return self._weather

    def effects(self) -> list[dict[str, Any]]:
        """Return every side effect so far: one row each, sorted by kind and then by order."""
        return self._effects.rows()

    def count(self, effect: str | None = None) -> int:
        """Return how many side effects of one kind (or of all kinds) happened."""
        return self._effects.count(effect)

    def record(self, effect: str, data: dict[str, Any]) -> dict[str, Any]:
        """Write a row for a tool that the world itself does not have, and return it.

        Also for tools that only read: what was searched for may be what was carried out.

        Args:
            effect: The kind, such as "search".
            data: JSON values that say what happened.
        """
        return self._effects.record(effect, data)

    def reset(self) -> World:
        """Put everything back to the known state: no side effects, no faults, the fixed today."""
        self._effects.reset()
        self.clock.today = Clock().today
        if self._weather is not None:
            self._weather.reset()
        return self

    def close(self) -> None:
        """Stop the weather service and close the file."""
        if self._weather is not None:
            self._weather.stop()
            self._weather = None
        self._effects.close()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
