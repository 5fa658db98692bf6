"""What the policies know about the tools of AgentDojo: everything that somebody had to write down.

Three kinds of knowledge, and how far each reaches:

* which tools have a side effect (`EFFECTS`, in `effects`): any gate needs that;
* what the arguments of such a tool mean (`ACTS`) and which arguments are destinations;
* which look-ups return the user's own records, and under which keys (`SOURCES`, `LISTINGS`).

The last two are specific to a suite's tools. `Knowledge(suites)` holds them for some suites only,
so that a policy can be tried on tools that nobody described to it. All of it was written down with
the four suites and their tasks in view: what a policy does with it is no test on unseen tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from course_utils.dojo.effects import DESTINATIONS, EFFECTS, READ
from course_utils.errors import CourseError
from course_utils.tools import Tool

SUITES = ("workspace", "travel", "banking", "slack")


@dataclass(frozen=True)
class Act:
    """What the provenance policy knows about one tool with a side effect.

    `asks` are beginnings of words of which the request must have one, or nobody asked for such an
    act. `free` are arguments without authority, as long as the argument `audience` is empty.
    `words` stay among colleagues: a policy may leave them to the model if nothing in them acts.
    `ids` name a record of the user's. `codes` says which word stands for a value.
    """

    asks: tuple[str, ...]
    free: tuple[str, ...] = ()
    audience: str = ""
    words: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def authority(self, arguments: Mapping[str, Any]) -> list[str]:
        """The arguments that have to come from the user.

        >>> Act(("note",), free=("text",), audience="to").authority({"text": "x", "to": ["Ana"]})
        ['text', 'to']
        """
        if self.audience and arguments.get(self.audience):
            return list(arguments)
        return [name for name in arguments if name not in self.free]


@dataclass(frozen=True)
class Source:
    """A look-up of the user's own records: the keys of id and name, and what may be copied.

    `copied` maps a key to beginnings of words by which a request speaks of it. What else a record
    holds (a description, a body) may be somebody else's words.
    """

    id: str
    name: str
    copied: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


EVENTS = Source("id_", "title", {"participants": ("participant",)})
FILES = Source("id_", "filename")
CONTACTS = Source("", "name", {"email": ("email", "e-mail")})
# Who has paid is known by the account, and nobody else can pay from it.
PAYMENTS = Source("", "sender", {"amount": ("amount", "sent", "paid")})
# An inbox is no source of records: anybody can write what stands in it.
CANCEL = Act(("cancel", "delete", "remove"), ids=("event_id",))
CALENDAR_WORDS = ("event", "calendar", "appointment", "meeting")
ACTS: dict[str, dict[str, Act]] = {
    "workspace": {
        "send_email": Act(("email", "e-mail", "mail")),
        "delete_email": Act(("delete", "remove"), ids=("email_id",)),
        "create_calendar_event": Act(
            CALENDAR_WORDS, free=("description", "location"), audience="participants"
        ),
        "cancel_calendar_event": CANCEL,
        "reschedule_calendar_event": Act(("reschedul", "move"), ids=("event_id",)),
        "add_calendar_event_participants": Act(("add", "invit"), ids=("event_id",)),
        "append_to_file": Act(("add", "append"), free=("content",), ids=("file_id",)),
        "create_file": Act(("create", "write"), free=("content",)),
        "delete_file": Act(("delete", "remove"), ids=("file_id",)),
        "share_file": Act(
            ("share",), ids=("file_id",), codes={"permission": {"r": "read", "rw": "write"}}
        ),
    },
    "travel": {
        "send_email": Act(("email", "e-mail", "mail")),
        "create_calendar_event": Act(
            CALENDAR_WORDS, free=("description", "location"), audience="participants"
        ),
        "cancel_calendar_event": CANCEL,
        "reserve_hotel": Act(("reserv", "book")),
        "reserve_car_rental": Act(("reserv", "book", "rent")),
        "reserve_restaurant": Act(("reserv", "book")),
    },
    "banking": {
        "send_money": Act(("send", "pay", "transfer", "refund"), free=("date",)),
        "schedule_transaction": Act(("schedul", "recurring"), free=("date",)),
        "update_scheduled_transaction": Act(("update", "adjust", "change"), ids=("id",)),
        "update_password": Act(("password",)),
        "update_user_info": Act(("update", "change")),
    },
    "slack": {
        "add_user_to_channel": Act(("add",)),
        "send_direct_message": Act(("message", "send", "write", "dm"), words=("body",)),
        "send_channel_message": Act(("message", "post", "send", "write", "reply"), words=("body",)),
        "invite_user_to_slack": Act(("invit",)),
        "remove_user_from_slack": Act(("remove",)),
        "post_webpage": Act(("post", "publish")),
        "get_webpage": Act(("www", "http", "web", "visit")),
    },
}
SOURCES: dict[str, dict[str, Source]] = {
    "workspace": {
        "get_day_calendar_events": EVENTS,
        "search_calendar_events": EVENTS,
        "search_files": FILES,
        "search_files_by_filename": FILES,
        "list_files": FILES,
        "get_file_by_id": FILES,
        "create_file": FILES,
        "search_contacts_by_name": CONTACTS,
    },
    "travel": {"get_day_calendar_events": EVENTS, "search_calendar_events": EVENTS},
    "banking": {
        "get_scheduled_transactions": Source("id", "subject"),
        "get_most_recent_transactions": PAYMENTS,
    },
    "slack": {},
}
# Catalogues whose values may fill a blank that the request left, such as {hotel_name}. Reviews
# are not among them: guests write those.
LISTINGS: dict[str, tuple[str, ...]] = {
    "workspace": (),
    "travel": (
        "get_all_hotels_in_city",
        "get_hotels_prices",
        "get_hotels_address",
        "get_all_restaurants_in_city",
        "get_price_for_restaurants",
        "get_restaurants_address",
    ),
    "banking": (),
    "slack": (),
}


class Knowledge:
    """What is known about the tools of some suites; of all, if none is named.

    About a tool that nobody described, only the list of side effects says something: then every
    argument has authority, and the request must use a word of the tool's name.

    >>> Knowledge(["banking"]).act("delete_file").asks
    ('delete', 'file')
    """

    def __init__(self, suites: Iterable[str] = SUITES) -> None:
        names = list(suites)
        self.acts = {tool: act for name in names for tool, act in ACTS[name].items()}
        self.sources = {tool: one for name in names for tool, one in SOURCES[name].items()}
        self.listings = {tool for name in names for tool in LISTINGS[name]}

    def aims(self, tool: str) -> tuple[str, ...]:
        """The arguments of a described tool that are destinations."""
        return DESTINATIONS[tool] if tool in self.acts else ()

    def act(self, tool: str) -> Act:
        """What is known about a tool with a side effect."""
        if tool in self.acts:
            return self.acts[tool]
        return Act(tuple(word for word in tool.split("_") if len(word) > 3))


def described(name: str, description: str) -> Tool:
    """A tool of a suite as the course's gate sees it.

    >>> described("send_money", "Pay.").effect
    'irreversible'
    """
    effect, open_world = EFFECTS.get(name, READ)
    return Tool(name, description or name, None, None, effect=effect, open_world=open_world)


def knowledge_rows(suite: str) -> list[dict[str, str]]:
    """What the policies were told about a suite's tools with a side effect, for `show.table`.

    >>> knowledge_rows("slack")[-1]["tool"]
    'get_webpage'
    """
    return [
        {
            "tool": tool,
            "effect": EFFECTS[tool][0] + (", open world" if EFFECTS[tool][1] else ""),
            "request has a word like": ", ".join(act.asks),
            "destination": ", ".join(DESTINATIONS[tool]),
            "free": ", ".join(act.free) + (f" (without {act.audience})" if act.audience else ""),
            "own words": ", ".join(act.words),
            "id of a record": ", ".join(act.ids),
            "means": "; ".join(
                f"{a} {v}: {w}" for a, all in act.codes.items() for v, w in all.items()
            ),
        }
        for tool, act in ACTS[_known(suite)].items()
    ]


def source_rows(suite: str) -> list[dict[str, str]]:
    """Which look-ups of a suite the provenance policy takes values from, and which values.

    >>> source_rows("travel")[0]["a record is meant by"]
    'title'
    """
    records = [
        {
            "look-up": tool,
            "a record is meant by": source.name,
            "its id": source.id,
            "copied": "; ".join(f"{key} ({', '.join(w)})" for key, w in source.copied.items()),
        }
        for tool, source in SOURCES[_known(suite)].items()
    ]
    catalogue = {"a record is meant by": "", "its id": "", "copied": "any piece, into a {blank}"}
    return records + [{"look-up": tool} | catalogue for tool in LISTINGS[suite]]


def _known(suite: str) -> str:
    if suite not in ACTS:
        raise CourseError(f"AgentDojo has no suite {suite!r}: use {', '.join(SUITES)}.")
    return suite
