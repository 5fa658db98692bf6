// The Deno side of the sandbox: loads Pyodide, shuts every door behind it, then runs programs.
// One JSON object per line: requests come on stdin, messages go to stdout. `sandbox/deno.py`
// starts it with no permission but to read Pyodide's own folder, which is given up here as well.
import { options } from "./options.mjs";

const stdin = Deno.stdin, stdout = Deno.stdout, exit = Deno.exit;
const encoder = new TextEncoder(), decoder = new TextDecoder();
const { parse, stringify } = JSON;

let pending = new Uint8Array(0);

function readLine() {
  for (;;) {
    const end = pending.indexOf(10);
    if (end >= 0) {
      const line = decoder.decode(pending.subarray(0, end));
      pending = pending.slice(end + 1);
      return line;
    }
    const chunk = new Uint8Array(65536);
    const count = stdin.readSync(chunk);
    if (count === null) exit(0); // the host is gone
    const joined = new Uint8Array(pending.length + count);
    joined.set(pending);
    joined.set(chunk.subarray(0, count), pending.length);
    pending = joined;
  }
}

const setup = parse(readLine());
// Only this module knows the word that opens a message; prints are data inside one.
const word = setup.word;

function send(message) {
  // A program can reach Object.prototype and put a toJSON there; this object has no prototype.
  const bytes = encoder.encode(stringify({ __proto__: null, word, ...message }) + "\n");
  for (let done = 0; done < bytes.length; ) done += stdout.writeSync(bytes.subarray(done));
}

let left = 0; // characters of output that this program may still print

function emit(text) {
  text = String(text);
  if (left <= 0 || text === "") return;
  send({ print: text.slice(0, left) });
  left -= text.length;
  if (left <= 0) send({ full: true });
}

function ask(call) {
  send({ call: String(call) });
  return readLine();
}

// Python's memory is one WebAssembly memory; a refused growth is a MemoryError inside.
const { grow } = WebAssembly.Memory.prototype;
WebAssembly.Memory.prototype.grow = function (pages) {
  if (this.buffer.byteLength / 65536 + pages > setup.pages) throw new RangeError("memory limit");
  return grow.call(this, pages);
};

function bytesWriter() {
  const text = new TextDecoder(); // keeps half a character for the next write
  return { write: (bytes) => (emit(text.decode(bytes, { stream: true })), bytes.length) };
}

console.log = console.info = console.warn = console.error; // stdout is for messages

const { loadPyodide } = await import(setup.pyodide);
const snapshot = new URL("python.snapshot", setup.pyodide);
const python = await loadPyodide({ ...options(), _loadSnapshot: Deno.readFileSync(snapshot) });

// Files and pipes live in this process's memory, beside Python's: they may grow to 64 MB in all.
const { ErrnoError, filesystems: { MEMFS } } = python.FS;
let room = 64 * 1024 * 1024;

function counted(node, end, change) {
  const before = node.contents?.length ?? 0;
  if (end - before > room) throw new ErrnoError(51); // no space left
  const result = change();
  room -= Math.max(0, (node.contents?.length ?? 0) - before);
  return result;
}

const { resizeFileStorage } = MEMFS, files = MEMFS.ops_table.file.stream, { write } = files;
MEMFS.resizeFileStorage = (node, size) => counted(node, size, () => resizeFileStorage(node, size));
files.write = (stream, bytes, offset, length, position, ...rest) =>
  counted(stream.node, position + length, () =>
    write(stream, bytes, offset, length, position, ...rest));

const ends = python.runPython("import os; os.pipe()").toJs(); // only to find what pipes are made of
const pipes = python.FS.getStream(ends[1]).stream_ops, { read: take, write: put } = pipes;
pipes.write = (stream, bytes, offset, length, ...rest) => {
  if (length > room) throw new ErrnoError(51);
  const count = put(stream, bytes, offset, length, ...rest);
  room -= count;
  return count;
};
pipes.read = (...given) => {
  const count = take(...given);
  room += count;
  return count;
};
for (const end of ends) python.FS.close(python.FS.getStream(end));

python.setStdout(bytesWriter());
python.setStderr(bytesWriter());
for (const name of ["read", "write", "net", "env", "run", "ffi", "sys", "import"]) {
  Deno.permissions.revokeSync({ name });
}

// Nothing of Python may lead back to JavaScript: these modules are gone, and so is their finder.
python.runPython(`
import random, sys
random.seed(0)
for name in list(sys.modules):
    if name.split(".")[0] in ("js", "pyodide_js", "pyodide", "_pyodide", "_pyodide_core"):
        sys.modules[name] = None
sys.modules["js"] = sys.modules["pyodide_js"] = None
sys.meta_path[:] = [finder for finder in sys.meta_path if "pyodide" not in type(finder).__module__]
`);
const [compile, exec, dict] = python.runPython("(compile, exec, dict)");
const runner = compile(setup.runner, "<runner>", "exec");
const first = dict();
exec(runner, first);
const restore = first.get("keeper")();
const state = dict();
send({ ready: `Python ${python.runPython("sys.version.split()[0]")}` });

for (;;) {
  const request = readLine();
  left = setup.output_chars;
  try {
    const fresh = restore();
    exec(runner, fresh);
    const result = String(fresh.get("run")(request, state, emit, ask, restore));
    fresh.destroy();
    send({ done: result });
  } catch (error) { // not an exception of the program: Python itself can go no further
    console.error(error);
    send({ broken: error.type ?? String(error).trim().split("\n")[0].slice(0, 300) });
    exit(1);
  }
}
