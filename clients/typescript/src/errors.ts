import { ERROR_CODES } from "./protocol.js";

export type ErrorName = keyof typeof ERROR_CODES;

/** The `error` member of an answer. */
export interface ErrorAnswer {
  code: number;
  message: string;
  data?: { code?: string; retryable?: boolean; [member: string]: unknown };
}

/** The daemon refused: branch on `name` (the wire's `data.code`), show `message` to people. */
export class CraftdError extends Error {
  override readonly name: ErrorName | (string & {});
  readonly code: number;
  /** Everything the daemon said beside the message: `issues`, `current`, `holder`, ... */
  readonly data: Readonly<Record<string, unknown>>;

  constructor(answer: ErrorAnswer) {
    super(answer.message);
    this.code = answer.code;
    this.data = answer.data ?? {};
    this.name = answer.data?.code ?? nameOf(answer.code);
  }

  /** Whether the same may work later; for names that this client does not know, the only thing to go by. */
  get retryable(): boolean {
    return this.data["retryable"] === true;
  }
}

/** There is no connection, or it ended before the answer came. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";

  /** maybeDone: the request may have been carried out; false: it never was. */
  constructor(
    message: string,
    readonly maybeDone: boolean = false,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

function nameOf(code: number): string {
  const found = Object.entries(ERROR_CODES).find(([, known]) => known === code);
  return found === undefined ? "Error" : found[0];
}
