/** Messages on a stream of bytes: `Content-Length: <bytes>`, an empty line, the text in UTF-8. No I/O here. */

const MOST_HEADER = 4096;
/** Larger than any answer of the daemon; what claims more is no message. */
const MOST_BODY = 256 * 1024 * 1024;

const encoder = new TextEncoder();

export function encode(text: string): Uint8Array {
  const body = encoder.encode(text);
  const head = encoder.encode(`Content-Length: ${body.length}\r\n\r\n`);
  const frame = new Uint8Array(head.length + body.length);
  frame.set(head);
  frame.set(body, head.length);
  return frame;
}

/** Takes bytes as they come, cut anywhere, and gives the texts that are complete. */
export class Decoder {
  #chunks: Uint8Array[] = [];
  #size = 0;
  #wanted: number | undefined;
  #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  /** Throws where the bytes are no messages; the stream cannot be read on after that. */
  feed(chunk: Uint8Array): string[] {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    const texts: string[] = [];
    for (;;) {
      if (this.#wanted === undefined && !this.#readHeader()) return texts;
      if (this.#wanted === undefined || this.#size < this.#wanted) return texts;
      const bytes = this.#join();
      texts.push(this.#decoder.decode(bytes.subarray(0, this.#wanted)));
      this.#keep(bytes.subarray(this.#wanted));
      this.#wanted = undefined;
    }
  }

  #readHeader(): boolean {
    if (this.#size === 0) return false;
    const bytes = this.#join();
    const end = endOfHeader(bytes);
    if (end === -1) {
      if (bytes.length > MOST_HEADER) throw new Error("the stream holds no messages: its header does not end");
      return false;
    }
    const header = this.#decoder.decode(bytes.subarray(0, end));
    const lengths = header.split("\r\n").filter((line) => /^content-length *:/i.test(line));
    const length = lengths.length === 1 ? /: *(\d{1,10}) *$/.exec(lengths[0] ?? "")?.[1] : undefined;
    if (length === undefined || Number(length) > MOST_BODY) {
      throw new Error(`the stream holds no messages: ${JSON.stringify(header.slice(0, 80))}`);
    }
    this.#wanted = Number(length);
    this.#keep(bytes.subarray(end + 4));
    return true;
  }

  #join(): Uint8Array {
    const [first] = this.#chunks;
    if (this.#chunks.length === 1 && first !== undefined) return first;
    const whole = new Uint8Array(this.#size);
    let at = 0;
    for (const chunk of this.#chunks) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    this.#chunks = [whole];
    return whole;
  }

  #keep(rest: Uint8Array): void {
    this.#chunks = rest.length ? [rest] : [];
    this.#size = rest.length;
  }
}

function endOfHeader(bytes: Uint8Array): number {
  for (let at = bytes.indexOf(13); at !== -1; at = bytes.indexOf(13, at + 1)) {
    if (bytes[at + 1] === 10 && bytes[at + 2] === 13 && bytes[at + 3] === 10) return at;
  }
  return -1;
}
