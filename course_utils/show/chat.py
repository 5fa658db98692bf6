"""A conversation as the model gets it: the rendered prompt, its messages, its tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from course_utils.errors import CourseError
from course_utils.messages import Message
from course_utils.show.tables import table
from course_utils.show.view import BORDER, CODE, TEXT, View, safe

# One turn of ChatML, the format of Qwen's chat template: <|im_start|>role, text, <|im_end|>.
# A turn may be unfinished: the last one is where the model goes on writing.
TURN = re.compile(r"<\|im_start\|>([^\n]*)\n?.*?(?:<\|im_end\|>\n?|(?=<\|im_start\|>)|\Z)", re.S)
SPECIAL = re.compile(r"<\|[a-z_]+\|>")
COLOURS = {
    "system": "var(--jp-warn-color1, #b26a00)",
    "user": "var(--jp-info-color1, #0277bd)",
    "assistant": "var(--jp-success-color1, #2e7d32)",
    "tool": "var(--jp-accent-color1, #8e24aa)",
}


def prompt(
    text_or_spans: str | Sequence[tuple[str, str]],
    count: Callable[[str], int] | None = None,
    caption: str = "",
) -> View:
    """Show a rendered prompt block by block, each labelled with its role and coloured by it.

    Args:
        text_or_spans: The text in Qwen's ChatML format, or a list of (role, text).
        count: Function from a text to its number of tokens, for example
            `lambda text: len(model.encode(text))`; without it no counts are shown.
        caption: What is shown.

    >>> prompt("<|im_start|>user\\nHi<|im_end|>\\n", count=len)
    ── user · 30 tokens
    <|im_start|>user
    Hi<|im_end|>
    """
    if isinstance(text_or_spans, str):
        spans = split_turns(text_or_spans)
    else:
        spans = [(role, text) for role, text in text_or_spans]
    counts = [count(text) for _, text in spans] if count else []
    labels = [
        f"{role} · {counts[place]:,} tokens" if counts else role
        for place, (role, _) in enumerate(spans)
    ]
    total = f"{sum(counts):,} tokens in {len(spans)} blocks" if len(counts) > 1 else ""
    title = " · ".join(part for part in (caption, total) if part)
    blocks = [
        f"── {label}\n{text.rstrip(chr(10))}"
        for label, (_, text) in zip(labels, spans, strict=True)
    ]
    html = [f"<div><strong>{safe(title)}</strong></div>"] if title else []
    html += [_block(label, *span) for label, span in zip(labels, spans, strict=True)]
    return View("\n".join([title] * bool(title) + blocks), f"<div>{''.join(html)}</div>")


def split_turns(text: str) -> list[tuple[str, str]]:
    """Split ChatML into (role, text with its special tokens); nothing of the text gets lost.

    Qwen's template wraps tool results into a user turn: those are labelled as tool.

    >>> split_turns("<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n")
    [('user', '<|im_start|>user\\nHi<|im_end|>\\n'), ('assistant', '<|im_start|>assistant\\n')]
    """
    spans: list[tuple[str, str]] = []
    position = 0
    for turn in TURN.finditer(text):
        if turn.start() > position:
            spans.append(("outside of any turn", text[position : turn.start()]))
        role, whole = turn.group(1).strip() or "no role", turn.group()
        if role == "user" and whole[turn.end(1) - turn.start() :].startswith("\n<tool_response>"):
            role = "tool result, as user"
        spans.append((role, whole))
        position = turn.end()
    if position < len(text):
        spans.append(("outside of any turn", text[position:]))
    return spans


def _block(label: str, role: str, text: str) -> str:
    known = next((name for name in COLOURS if role.startswith(name)), None)
    colour = COLOURS.get(known or "", BORDER)
    marked, position = [], 0
    for special in SPECIAL.finditer(text):
        marked.append(safe(text[position : special.start()]))
        marked.append(f"<b>{safe(special.group())}</b>")
        position = special.end()
    marked.append(safe(text[position:]))
    # The text keeps the theme's own colour: the role's colour is too pale for text in some themes.
    tint = f"background: color-mix(in srgb, {colour} 12%, transparent)"
    return (
        f'<div style="border-left: 6px solid {colour}; {tint}; padding: 2px 10px; margin: 4px 0">'
        f'<div style="{TEXT}; font-weight: bold">{safe(label)}</div>'
        f'<pre style="{TEXT}; {CODE}; white-space: pre-wrap; margin: 0; background: none">'
        f"{''.join(marked)}</pre></div>"
    )


def messages(list_of_messages: Sequence[Message | dict[str, Any]], caption: str = "") -> View:
    """Show a conversation as a table: number, role, payload.

    Args:
        list_of_messages: Message objects or dicts in wire format.
        caption: What is shown.

    >>> messages([{"role": "user", "content": "Hi"}])
    #  role  payload
    -  ----  -------
    1  user  Hi
    """
    items = [
        item if isinstance(item, Message) else Message.from_dict(item) for item in list_of_messages
    ]
    rows = [(place, _role(item), _payload(item)) for place, item in enumerate(items, start=1)]
    return table(rows, ["#", "role", "payload"], caption)


def _role(message: Message) -> str:
    return f"tool ({message.name})" if message.role == "tool" and message.name else message.role


def _payload(message: Message) -> str:
    parts = [message.content] if message.content else []
    for call in message.tool_calls:
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        parts.append(f"→ {call.id}: {call.name}({arguments})")
    if message.tool_call_id:
        parts.insert(0, f"← {message.tool_call_id}:")
    return "\n".join(parts) or "(empty)"


def tokens(ids: Sequence[int], decode: Callable[[list[int]], str], caption: str = "") -> View:
    """Show tokens as boxes with their ids; a space is drawn as · and a line break as ⏎.

    Args:
        ids: The token ids.
        decode: Function from a list of ids to text, for example `model.decode`.
        caption: What is shown.

    >>> tokens([72, 105], lambda ids: "".join(map(chr, ids)))
    2 tokens: H[72] i[105]
    """
    pieces = [(_visible(decode([int(number)])), int(number)) for number in ids]
    count = f"{len(pieces)} token{'' if len(pieces) == 1 else 's'}"
    title = " · ".join(part for part in (caption, count) if part)
    text = " ".join(f"{piece}[{number}]" for piece, number in pieces)
    box = f"border: 1px solid {BORDER}; border-radius: 4px; padding: 1px 4px; text-align: center"
    boxes = "".join(
        f'<li style="{box}"><span style="{CODE}; white-space: pre">{safe(piece)}</span><br>'
        f"<small>{number}</small></li>"
        for piece, number in pieces
    )
    return View(
        f"{title}: {text}" if text else title,
        f'<div style="{TEXT}"><div>{safe(title)}</div><ol style="list-style: none; display: flex; '
        f'flex-wrap: wrap; gap: 3px; padding: 0; margin: 4px 0">{boxes}</ol></div>',
    )


def _visible(piece: str) -> str:
    if not isinstance(piece, str):
        raise CourseError("decode must turn a list of ids into text.")
    return piece.replace(" ", "·").replace("\n", "⏎").replace("\t", "⇥")
