// Run once by the set-up: starts Python and keeps its memory in a file, which workers load in a
// tenth of the time that a start takes. Pyodide's own option for this is not documented yet, so
// its version stays pinned with it.
import { options } from "./options.mjs";

const [pyodide, file] = Deno.args;
const { loadPyodide } = await import(pyodide);
const python = await loadPyodide({ ...options(), _makeSnapshot: true });
// What every step needs.
python.runPython("import ast, collections, datetime, io, json, math, re, symtable");
Deno.writeFileSync(file, python.makeMemorySnapshot());
