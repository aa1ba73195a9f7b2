'use strict';
// Tasks: from a call of an asynchronous function until its promise is settled, and each synchronous stretch in between.

const { AsyncLocalStorage, createHook } = require('node:async_hooks');

const { native } = require('./native.js');

const { on, end, newTask, taskDone, beginPoll } = native;

/** The task to which the running code belongs. */
const context = new AsyncLocalStorage();

/** For each callback that is running now, the task of which it is a poll, or null. Callbacks nest where one calls
 * another one in its own asynchronous context, as `AsyncResource.runInAsyncScope` does. */
const running = [];

let isWatching = false;

const hook = createHook({
  before() {
    if (on[0] === 0) {
      stopWatching();
      return;
    }
    const task = context.getStore();
    running.push(task !== undefined && task.begin() ? task : null);
  },
  after() {
    // The callback that was running when the hook was enabled has no entry.
    const task = running.pop();
    if (task != null) task.end();
  },
});

/** The hooks make each promise of the program dearer, so they are on only while something is recorded. */
function stopWatching() {
  isWatching = false;
  hook.disable();
  context.disable();
  for (const task of running.splice(0)) {
    if (task !== null) task.end();
  }
}

function watch() {
  if (isWatching) return;
  isWatching = true;
  hook.enable();
}

/** A task that is being recorded. `numbers`: the event numbers of its name. */
class Task {
  #numbers;
  #number;
  #isPolled = false;
  #isDone = false;

  constructor(numbers) {
    this.#numbers = numbers;
    this.#number = newTask(numbers.created);
  }

  /** Begins a poll; returns whether it did. Work that a task left behind, and callbacks inside a poll, are no polls. */
  begin() {
    if (this.#isPolled || this.#isDone) return false;
    this.#isPolled = true;
    beginPoll(this.#numbers.polled, this.#number, this.#numbers.poll);
    return true;
  }

  end() {
    if (!this.#isPolled) return;
    this.#isPolled = false;
    end(this.#numbers.poll);
  }

  /** Calls `work` as the first poll; what it leads to later are the others. */
  run(work) {
    watch();
    return context.run(this, () => {
      this.begin();
      try {
        return work();
      } finally {
        this.end();
      }
    });
  }

  done() {
    this.#isDone = true;
    taskDone(this.#numbers.done, this.#number);
  }
}

module.exports = { Task };
