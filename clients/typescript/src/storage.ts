import { ClawmeshError } from "./errors.js";
import type { Cursor } from "./types.js";

/** A cursor in a browser's storage. */
export class StorageCursor implements Cursor {
  constructor(
    private readonly name: string,
    private readonly storage: Pick<Storage, "getItem" | "setItem"> = localStorage,
  ) {}

  async read(): Promise<number | undefined> {
    const text = this.storage.getItem(this.name);
    return text === null ? undefined : numberOf(text, this.name);
  }

  async write(seq: number): Promise<void> {
    this.storage.setItem(this.name, String(seq));
  }
}

export function numberOf(text: string, where: string): number {
  if (!/^\d{1,16}$/.test(text.trim())) throw new ClawmeshError(`${where} is no cursor: delete it to begin anew`);
  return Number(text);
}
