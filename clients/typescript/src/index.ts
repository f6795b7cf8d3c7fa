import { lines } from "./lines.js";
import { useLines } from "./wire.js";

useLines(lines);

export * from "./browser.js";
export { CursorFile, readApiKey } from "./files.js";
