'use strict';
// Names and what is recorded under them.

const { native } = require('./native.js');
const { Task } = require('./tasks.js');

const { on, begin, end, event, wideEvent, numberOf } = native;

/** So many names have numbers in a process (docs/format.md, section 5); tasks need four each. */
const MOST_NAMES = 16384;
/** A name is cut here, so that names of tasks have room for their ends in the 255 bytes that a trace keeps. */
const NAME_BYTES = 240;

const encoder = new TextEncoder();

/** A name as the trace will have it. */
function shortened(name) {
  if (typeof name !== 'string' || name === '') {
    throw new TypeError(
      `a name must be a text of at least one character, not ${typeof name === 'string' ? "''" : typeof name}`,
    );
  }
  const bytes = new Uint8Array(NAME_BYTES);
  const { read } = encoder.encodeInto(name, bytes);
  return name.slice(0, read).replaceAll('\0', ' ');
}

function badPayload(payload) {
  return new RangeError(
    `a payload must be an integer of 0 to 2^53 - 1, or a BigInt below 2^64, not ${String(payload)}`,
  );
}

/** A name of spans, events and tasks: all calls without a look-up of the name. */
class Name {
  #number;
  #numbersOfTasks = null;

  constructor(name) {
    this.name = shortened(name);
    this.#number = numberOf(this.name);
  }

  begin() {
    if (on[0] !== 0) begin(this.#number);
    return this;
  }

  end() {
    if (on[0] !== 0) end(this.#number);
  }

  span(work) {
    if (on[0] === 0) return work();
    begin(this.#number);
    try {
      return work();
    } finally {
      end(this.#number);
    }
  }

  event(payload = 0) {
    if (typeof payload === 'number' && payload >>> 0 === payload) {
      if (on[0] !== 0) event(this.#number, payload);
    } else {
      this.#wideEvent(payload);
    }
  }

  #wideEvent(payload) {
    const isNumber = typeof payload === 'number' && Number.isSafeInteger(payload) && payload >= 0;
    const isBig = typeof payload === 'bigint' && payload >= 0n && payload < 1n << 64n;
    if (!isNumber && !isBig) throw badPayload(payload);
    if (on[0] !== 0) wideEvent(this.#number, BigInt(payload));
  }

  #numbers() {
    const number = (end) => numberOf(`${this.name} task ${end}`);
    return { poll: this.#number, created: number('new'), polled: number('polled'), done: number('done') };
  }

  async task(work, options) {
    if (on[0] === 0) return await work();
    const task = new Task((this.#numbersOfTasks ??= this.#numbers()));
    try {
      return await (options?.polls === false ? work() : task.run(work));
    } finally {
      task.done();
    }
  }
}

if (Symbol.dispose) {
  Object.defineProperty(Name.prototype, Symbol.dispose, {
    value: Name.prototype.end,
    writable: true,
    configurable: true,
  });
}

const names = new Map();
let others = null;

/** The Name of a text, always the same one; "(other names)" once there are too many. */
function lookUp(name) {
  const found = names.get(name);
  if (found !== undefined) return found;
  if (names.size >= MOST_NAMES) return (others ??= new Name('(other names)'));
  const made = new Name(name);
  names.set(name, made);
  return made;
}

module.exports = { Name, lookUp };
