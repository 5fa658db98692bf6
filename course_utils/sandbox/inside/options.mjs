// How Pyodide is loaded, for the snapshot and from it.
export const options = () => ({
  jsglobals: Object.create(null), // what `import js` would find
  stdin: () => null, // the real one carries requests
  env: { HOME: "/home/program", _: "python", PYTHONHASHSEED: "0", TZ: "UTC" },
});
