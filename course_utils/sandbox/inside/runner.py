"""Runs one program inside the sandbox; both variants load this file there, never on the host.

It is run anew for every step, in a namespace of its own, so that what a program did to the
previous one is gone. That is for accidents; a program that means to can change how later ones
run, up to the end of the worker. Everything reported here is the program's word: the host
believes none of it except that a call was asked for.
"""

import ast
import builtins
import io
import json
import symtable
import sys

MAX_MESSAGE = 1_000_000  # characters of one call or one result
OUTPUT = "the output"  # where a program's last value waits; no program can write this name


class Answered(BaseException):
    """Ends a program at `final_answer`; no `except Exception` catches it."""


class Prints(io.TextIOBase):
    """What the program sees as stdout and stderr."""

    def __init__(self, emit):
        self._emit = emit

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() needs a str, not {type(text).__name__}")
        self._emit(text)
        return len(text)


def run(request, state, emit, ask, restore):
    """Run request["code"] in the namespace `state`; returns what became of it as JSON text.

    `emit(text)` passes a print on; `ask(json_text)` has the host run a tool and returns its
    answer as JSON text; `restore()` puts back what the program replaced.
    """
    request = json.loads(request)
    code, tools = request["code"], request["tools"]
    place = f"<step {request['step']}>"  # a name of its own for the lines of this program
    answers = []
    for name in request["withdrawn"]:
        state.pop(name, None)
    state.update(request["variables"])
    state.update({name: tool_function(name, ask) for name in tools}, __name__="__main__")
    state["final_answer"] = final_answer_function(answers)
    allowed = request["imports"]
    state["__builtins__"] = vars(builtins) | {"__import__": gate(builtins.__import__, allowed)}
    sys.stdout = sys.stderr = Prints(emit)
    output, error = None, None
    try:
        output = execute(parse(code, place, {*tools, "final_answer"}), place, state)
    except Answered:
        pass
    except ProgramRefused as refusal:
        error = str(refusal)
    except BaseException as failure:  # SystemExit and KeyboardInterrupt are the program's too
        error = explain(failure, place, code)
    finally:
        restore()
        sys.settrace(None)
        sys.setprofile(None)
        sys.setrecursionlimit(1000)
    if answers:
        output, error = answers[0], None
    return report(output, error, bool(answers))


def keeper():
    """Remember what the modules used here hold, before any program runs.

    Returns a function that puts it all back and gives a namespace with builtins of its own.
    """
    modules = (ast, builtins, io, json, json.decoder, json.encoder, symtable, sys)
    originals = [(vars(module), dict(vars(module))) for module in modules]
    originals.append((sys.modules, dict(sys.modules)))
    own = dict(vars(builtins))
    things = [json._default_decoder, json._default_encoder, ast.Module, ast.Assign]
    for module in (json.decoder, json.encoder, symtable):
        things += [each for each in vars(module).values() if isinstance(each, type)]
    changeable = [(thing, dict(vars(thing))) for thing in things if own_names(thing)]

    def restore():
        for names, original in originals:
            names.update(original)
        for thing, original in changeable:
            put_back(thing, original)
        return {"__builtins__": own.copy()}

    return restore


def own_names(thing):
    """Whether the attributes of a thing can be set at all; those of C types cannot."""
    return not isinstance(thing, type) or thing.__flags__ & 256 == 0  # Py_TPFLAGS_IMMUTABLETYPE


def put_back(thing, original):
    """Give a class or an object the attributes again that it had."""
    now = dict(vars(thing))
    for name in now:
        if name not in original:
            delattr(thing, name)
    for name, value in original.items():
        if now.get(name) is not value:
            setattr(thing, name, value)


class ProgramRefused(Exception):
    """The program was not started; the message says why."""


def parse(code, place, reserved):
    """The tree of the program; refuses what does not parse and what replaces a tool."""
    try:
        tree = ast.parse(code, place)
        table = symtable.symtable(code, place, "exec")
    except SyntaxError as error:
        text = (error.text or "").rstrip("\n")
        shown = f"\n{text}\n{' ' * ((error.offset or 1) - 1)}^" if text else ""
        raise ProgramRefused(
            f"Code parsing failed on line {error.lineno} due to: SyntaxError: {error.msg}{shown}"
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ProgramRefused(
            f"Code parsing failed due to: {type(error).__name__}: {error}"
        ) from None
    for name in global_names(table):
        if name in reserved:
            raise ProgramRefused(
                f"Cannot assign to name '{name}': doing this would erase the existing tool!"
            )
    return tree


def global_names(table):
    """The names that a program assigns, defines or imports for all of itself."""
    everywhere = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_assigned() or symbol.is_imported():
            if everywhere or symbol.is_declared_global():
                yield symbol.get_name()
    for child in table.get_children():
        yield from global_names(child)


def execute(tree, place, state):
    """Run all statements; returns the value of the last one, if it is a value or an assignment."""
    keep_last(tree.body)
    state.pop(OUTPUT, None)
    exec(compile(ast.fix_missing_locations(tree), place, "exec"), state)
    return state.pop(OUTPUT, None)


def keep_last(body):
    """Have the last of these statements, or the last inside of it, leave its value in OUTPUT."""
    last = body[-1] if body else None
    here = ast.Name(OUTPUT, ast.Store())
    if isinstance(last, ast.Expr):
        body[-1] = ast.copy_location(ast.Assign([here], last.value), last)
    elif isinstance(last, ast.Assign):
        last.targets.insert(0, here)
    elif isinstance(last, (ast.AnnAssign, ast.AugAssign)) and last.value is not None:
        if not any(isinstance(each, ast.Call) for each in ast.walk(last.target)):  # read once more
            again = ast.parse(ast.unparse(last.target), mode="eval").body
            body.append(ast.copy_location(ast.Assign([here], again), last))
    elif isinstance(last, (ast.If, ast.For, ast.While)):
        keep_last(last.body)
        keep_last(last.orelse)


def explain(failure, place, code):
    """One line about an exception, with the line of this program where it happened."""
    number, trace = None, failure.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == place:
            number = trace.tb_lineno
        trace = trace.tb_next
    lines = code.splitlines()
    known = number is not None and number <= len(lines)
    where = f" at line {number} '{lines[number - 1].strip():.1000}'" if known else ""
    try:
        text = str(failure)
    except BaseException:
        text = "(its message cannot be shown)"
    kind = vars(type)["__name__"].__get__(type(failure))  # its class may have other ideas
    return f"Code execution failed{where} due to: {kind:.100}: {text[:4000]}"


def tool_function(name, ask):
    """The function that stands for a tool of the host."""

    def tool(*args, **kwargs):
        try:
            call = json.dumps({"name": name, "args": args, "kwargs": kwargs}, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"{name}: arguments have to be plain JSON data: {error}") from None
        if len(call) > MAX_MESSAGE:
            raise ValueError(f"{name}: the arguments are longer than {MAX_MESSAGE} characters")
        answer = json.loads(ask(call))
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]

    tool.__name__ = tool.__qualname__ = name
    return tool


def final_answer_function(answers):
    """`final_answer`: the first call decides and ends the program."""

    def final_answer(answer):
        answers.append(answer)
        raise Answered

    return final_answer


def gate(real_import, allowed):
    """An `__import__` for the program that knows the authorised modules only."""

    def guarded_import(name, globals=None, locals=None, fromlist=(), level=0):
        parts = name.split(".")
        prefixes = {".".join(parts[: n + 1]) for n in range(len(parts))}
        wanted = prefixes | {f"{prefix}.*" for prefix in prefixes} | {"*"}
        if level or not wanted & set(allowed):
            raise ImportError(
                f"Import of {name} is not allowed. Authorized imports are: {sorted(allowed)}"
            )
        return real_import(name, globals, locals, fromlist, level)

    return guarded_import


def report(output, error, is_final):
    """The result as JSON: plain data as it is, everything else as its text."""
    try:
        plain = is_plain(output)
        text = json.dumps(output if plain else str(output), allow_nan=False)
        if len(text) > MAX_MESSAGE:
            text = json.dumps(str(output)[: MAX_MESSAGE // 8])
    except BaseException as failure:
        text = json.dumps(f"({type(output).__name__} that cannot be shown: {failure!r:.200})")
    return f'{{"output": {text}, "error": {json.dumps(error)}, "is_final": {json.dumps(is_final)}}}'


def is_plain(value, depth=50):
    """Whether JSON gives back exactly this value: no tuples, no sets, no NaN, text keys only."""
    if depth == 0:
        return False
    if type(value) in (str, int, bool, type(None)):
        return True
    if type(value) is float:
        return value - value == 0  # neither NaN nor infinite
    if type(value) is list:
        return all(is_plain(each, depth - 1) for each in value)
    if type(value) is dict:
        return all(type(k) is str and is_plain(v, depth - 1) for k, v in value.items())
    return False
