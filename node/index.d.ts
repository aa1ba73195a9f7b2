/// <reference lib="esnext.disposable" />

export interface TaskOptions {
  /** `false`: the task has its begin and end only. Then no hook makes the promises of the program dearer. */
  polls?: boolean;
}

/** A name of spans, events and tasks. Its calls cost no look-up of the name. */
export class Name {
  /** Use `ut.name`, which returns one object for each name. */
  private constructor(name: string);
  /** As in the trace: at most 240 bytes of UTF-8, a longer name is cut. */
  readonly name: string;
  /** Begins a span of this thread; `end` ends the innermost one of this name. Returns the name. */
  begin(): this;
  /** Ends a span, in the same thread, before the next `await`. */
  end(): void;
  /** A span around a synchronous function, also if that throws. Returns what the function returns. */
  span<T>(work: () => T): T;
  /** A point in time. The payload is an integer of 0 to 2^53 - 1, or a BigInt below 2^64; others throw a RangeError. */
  event(payload?: number | bigint): void;
  /** A task from the call until the promise of `work` is settled, and each poll: a stretch of its code without a
   * break, callbacks of what it created included. Settles as `work` does. */
  task<T>(work: () => PromiseLike<T> | T, options?: TaskOptions): Promise<T>;
  /** `using span = ut.begin(...)` ends the span with the block. */
  [Symbol.dispose](): void;
}

/** Why nothing can be recorded here: no recorder for this platform, or no addon. Null if it can. */
export const error: Error | null;

/** Whether something records this process now. */
export function enabled(): boolean;

/** The object of a name, always the same one. A name that is no text, or an empty one, throws a TypeError. A process
 * has about 16,000 names; later ones are recorded as "(other names)". */
export function name(name: string): Name;

/** Begins a span of this thread, which `.end()` of the returned object ends, before the next `await`. */
export function begin(name: string): Name;

/** A span around a synchronous function, also if that throws. Returns what the function returns. */
export function span<T>(name: string, work: () => T): T;

/** A point in time. The payload is an integer of 0 to 2^53 - 1, or a BigInt below 2^64; others throw a RangeError. */
export function event(name: string, payload?: number | bigint): void;

/** A task from the call until the promise of `work` is settled, and each poll: a stretch of its code without a break,
 * callbacks of what it created included. Settles as `work` does. */
export function task<T>(name: string, work: () => PromiseLike<T> | T, options?: TaskOptions): Promise<T>;

/** Names the calling thread in the trace. Workers are named `worker N` from the start. */
export function threadName(name: string): void;

/** Records entries of `perf_hooks` from now on: `performance.mark(NAME)` as an event NAME, `performance.measure(NAME)`
 * as an event `NAME measured` whose payload is the duration, ns. Entries of the `entryTypes` (`gc`, `http`, ...) are
 * recorded when an observer gets them, as events `TYPE observed`, also with the duration, ns. Returns a function that
 * ends this. A second call replaces the first. */
export function bridgePerformance(options?: { entryTypes?: string[] }): () => void;
