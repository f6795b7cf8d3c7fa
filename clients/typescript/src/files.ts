import { open, readFile, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";

import { numberOf } from "./storage.js";
import type { Cursor } from "./types.js";

/** A file with one number in it. `clawmesh wait --cursor-file` reads and writes the same. */
export class CursorFile implements Cursor {
  constructor(readonly path: string) {}

  async read(): Promise<number | undefined> {
    try {
      return numberOf(await readFile(this.path, "utf8"), this.path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** After a crash the file holds the old number or the new one. */
  async write(seq: number): Promise<void> {
    // In the same directory, for a rename does not cross file systems.
    const temporary = join(dirname(this.path), `.${basename(this.path)}.${process.pid}.tmp`);
    try {
      const file = await open(temporary, "w");
      try {
        await file.writeFile(`${seq}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, this.path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }
}

/** The key that `clawmeshd up` made for the agents of this machine. */
export async function readApiKey(path = join(homedir(), ".clawchat", "auth.key")): Promise<string> {
  return (await readFile(path, "utf8")).trim();
}
