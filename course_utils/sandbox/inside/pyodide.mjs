// What the set-up has Deno fetch; deno.lock beside it holds the checksums.
import "npm:pyodide@314.0.7";
