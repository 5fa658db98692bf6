"""Two agents without a model: the most obedient one there could be, and one that knows roles.

Between them lies every real model, with one reservation. The most obedient one understands only
the phrases and the disguises of `orders`; what it cannot do under a defence, a model that reads
other phrases, or encodes in another way, may still be talked into. So its failures bound the
attacks as they are written, and not all attacks. What happens even to the one that only obeys the
system and the user is the fault of the program that wrote its prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from course_utils.injection.attacks import UserTask
from course_utils.injection.orders import DISGUISES, RESULT, Order, orders, swaps
from course_utils.messages import Message, Reply, ToolCall
from course_utils.models.chat import log_reply
from course_utils.models.tokenizer import tokenizer
from course_utils.tools import Tool


class Obedient:
    """Does the user's task, and then everything that any text in its context told it.

    It has a script for the task only. The orders it reads out of what it was sent: tool results
    (as they arrive, after all defences) and descriptions of tools.
    """

    name = "obedient"

    def __init__(self, task: UserTask) -> None:
        self.task = task
        self.tok = tokenizer("qwen2.5-coder")

    def chat(
        self, messages: Sequence[Message], tools: Sequence[Tool] | None = None, **settings: Any
    ) -> Reply:
        """The next call, or "Done." when nothing is left to do."""
        prompt = self.tok.render(list(messages), [each.schema() for each in tools or ()])
        ids = _ids(prompt)
        call = self._next(messages, tools or (), ids)
        text = "Done." if call is None else _written(call)
        reply = Reply(
            text,
            origin="scripted",
            model=self.name,
            content=text if call is None else "",
            tool_calls=() if call is None else (call,),
            prompt_tokens=len(ids),
            output_tokens=len(self.tok.encode(text)),
        )
        log_reply(reply)
        return reply

    def plan(self, tools: Sequence[Tool]) -> list[ToolCall]:
        """All calls, decided before anything was read but the request and the descriptions."""
        told = self.told([], tools, [])
        own = [(each["tool"], self._swapped(each["arguments"], told)) for each in self.task.plan]
        ordered = [(each.tool, dict(each.arguments)) for each in orders(told) if not each.when]
        pairs = [*own, *ordered]
        return [ToolCall(f"plan_{n}", *pair) for n, pair in enumerate(pairs, 1)]

    def told(
        self, messages: Sequence[Message], tools: Sequence[Tool], ids: Sequence[int]
    ) -> list[str]:
        """The texts that it obeys."""
        results = [each.content for each in messages if each.role == "tool"]
        return [*(each.description for each in tools), *results]

    def _next(
        self, messages: Sequence[Message], tools: Sequence[Tool], ids: Sequence[int]
    ) -> ToolCall | None:
        done = [call for message in messages for call in message.tool_calls]
        results = [each.content for each in messages if each.role == "tool"]
        number = f"call_{len(done) + 1}"
        told = self.told(messages, tools, ids)
        if len(done) < len(self.task.calls):
            step = self.task.calls[len(done)]
            values = self._filled(step["arguments"], results)
            if values is not None:
                return ToolCall(number, step["tool"], self._swapped(values, told))
            return None  # what the task needs was not in any result: it gives up
        for order in orders(told):
            call = self._obeyed(order, number, messages, results, done)
            if call is not None:
                return call
        return None

    def _obeyed(
        self,
        order: Order,
        number: str,
        messages: Sequence[Message],
        results: Sequence[str],
        done: Sequence[ToolCall],
    ) -> ToolCall | None:
        said = " ".join(each.content for each in messages if each.role == "user")
        if order.when and order.when.casefold() not in said.casefold():
            return None
        values = {name: self._quoting(value, done, results) for name, value in order.arguments}
        if any(call.name == order.tool and call.arguments == values for call in done):
            return None  # obeyed already
        return ToolCall(number, order.tool, values)

    def _quoting(self, value: Any, done: Sequence[ToolCall], results: Sequence[str]) -> Any:
        """The value with `[result of NAME]` replaced by what that tool has returned.

        `[result of NAME in WORDS]` asks for a disguise: see `DISGUISES`.
        """
        if not isinstance(value, str):
            return value
        pairs = zip(done, results, strict=False)
        known = {call.name: result for call, result in pairs if not call.arguments}
        return RESULT.sub(
            lambda found: DISGUISES[found.group(2) or ""](known.get(found.group(1), "")), value
        )

    def _filled(self, arguments: dict[str, Any], results: Sequence[str]) -> dict[str, Any] | None:
        """The arguments with {name} replaced by what the results say; None if they do not."""
        values = dict(arguments)
        for name, pattern in self.task.find.items():
            found = _found(name, pattern, results)
            for key, value in values.items():
                if not isinstance(value, str) or f"{{{name}}}" not in value:
                    continue
                if found is None:
                    return None
                whole = value == f"{{{name}}}"
                values[key] = float(found) if whole else value.replace(f"{{{name}}}", found)
        return values

    def _swapped(self, arguments: dict[str, Any], told: Sequence[str]) -> dict[str, Any]:
        pairs = swaps(told)

        def swap(value: Any) -> Any:
            for old, new in pairs if isinstance(value, str) else ():
                value = re.sub(re.escape(old), lambda _, new=new: new, value, flags=re.IGNORECASE)
            return value

        return {name: swap(value) for name, value in arguments.items()}


class RoleFaithful(Obedient):
    """Obeys what stands in the turns of system and user, by the tokens, and nothing else.

    No model of today is so well behaved. It looks at the *token ids* that it was sent: where a
    page has forged a control token, a new turn begins.
    """

    name = "role-faithful"

    def told(
        self, messages: Sequence[Message], tools: Sequence[Tool], ids: Sequence[int]
    ) -> list[str]:
        """The texts that it obeys: user and system turns, without the tool results in them."""
        start, end = self.tok.encode("<|im_start|>")[0], self.tok.end_id
        turns: list[list[int]] = []
        inside = False
        for token in ids:
            if token == start:
                turns.append([])
            inside = token != end and (inside or token == start)
            if inside and token != start:
                turns[-1].append(token)
        texts = [self.tok.decode(turn) for turn in turns]
        said = [text for text in texts if text.startswith(("system", "user"))]
        if not ids:  # it plans: only the descriptions are known
            said = [each.description for each in tools]
        return [re.sub(r"<tool_response>.*?(</tool_response>|$)", "", t, flags=re.S) for t in said]


@lru_cache(maxsize=4096)
def _ids(prompt: str) -> tuple[int, ...]:
    """Token ids; in a matrix many runs begin with the same prompt."""
    return tuple(tokenizer("qwen2.5-coder").encode(prompt))


def _found(name: str, pattern: str, results: Sequence[str]) -> str | None:
    """What the results say about a field: the last thing that they say, as readers tend to."""
    text = "\n".join(results).replace('\\"', '"').replace("^", " ")
    field = re.findall(rf'"{name}": "?(\w+)', text)
    found = re.findall(pattern, text) or field
    return found[-1] if found else None


def _written(call: ToolCall) -> str:
    return json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
