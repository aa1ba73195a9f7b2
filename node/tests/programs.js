'use strict';
// The programs that tests record: a name and its numbers.

const { AsyncResource } = require('node:async_hooks');
const crypto = require('node:crypto');
const fs = require('node:fs');
const { performance } = require('node:perf_hooks');
const { Worker, isMainThread, workerData } = require('node:worker_threads');

// The program `unloaded` has it in its workers only.
const ut = isMainThread && process.argv[2] === 'unloaded' ? null : require('..');

/** Nested spans by each kind of call, and an event with a payload. */
function nested(n) {
  const inner = ut.name('inner');
  for (let i = 0; i < n; i++) {
    ut.span('outer', () => {
      const span = ut.begin('middle');
      inner.begin();
      ut.event('event', i);
      inner.end();
      span.end();
    });
  }
}

/** Awaits as often as asked. */
async function waits(n) {
  for (let i = 0; i < n; i++) await null;
  return n;
}

const programs = {
  nested,
  state() {
    ut.event('event');
    console.log(JSON.stringify([ut.enabled(), ut.error, ut.span('span', () => 7)]));
  },
  thrown(n) {
    let caught = 0;
    for (let i = 0; i < n; i++) {
      try {
        ut.span('outer', () =>
          ut.span('thrown', () => {
            throw new Error(String(i));
          }),
        );
      } catch (error) {
        caught += error.message === String(i);
      }
    }
    ut.event('caught', caught);
  },
  payloads() {
    for (const payload of [0, 1, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER, 2n ** 64n - 1n, 5n])
      ut.event('payload', payload);
    for (const payload of [-1, 0.5, NaN, 2 ** 53, '1', null, -1n, 2n ** 64n, {}, Symbol.iterator]) {
      try {
        ut.event('bad', payload);
      } catch (error) {
        if (error instanceof RangeError && error.message.includes(String(payload))) ut.event('refused');
      }
    }
  },
  names(n) {
    ut.event('\u00e4'.repeat(200));
    ut.event('a\0b,"c"');
    for (const bad of ['', 7, undefined]) {
      try {
        ut.event(bad);
      } catch (error) {
        if (error instanceof TypeError) ut.event('refused');
      }
    }
    for (let i = 0; i < n; i++) ut.event(`name ${i}`, i);
  },
  killed(n) {
    nested(n);
    process.kill(process.pid, 'SIGKILL');
  },
  async workers(count, n) {
    const one = () =>
      new Promise((resolve, reject) => {
        const worker = new Worker(__filename, { workerData: ['nested', n] });
        worker.on('exit', resolve).on('error', reject);
      });
    await Promise.all(Array.from({ length: count }, one));
  },
  async unloaded(count, n) {
    await programs.workers(count, n);
    await programs.workers(count, n);
  },
  async tasks(n) {
    const all = Array.from({ length: n }, (_, i) => ut.task('request', () => waits(i % 3)));
    ut.event(
      'sum',
      (await Promise.all(all)).reduce((sum, one) => sum + one, 0),
    );
  },
  async polls(n) {
    await ut.task('request', () => waits(n));
  },
  async withoutPolls(n) {
    await ut.task('request', () => waits(n), { polls: false });
  },
  async nestedTasks() {
    await ut.task('outer', async () => {
      const inner = ut.task('inner', () => waits(2));
      await null;
      await inner;
    });
  },
  async scopes() {
    // A callback in the context of one task, called in the middle of another one, and of the task itself.
    let resource;
    await ut.task('first', async () => {
      resource = new AsyncResource('test');
      resource.runInAsyncScope(() => ut.event('in first'));
      await null;
      const second = ut.task('second', async () => {
        resource.runInAsyncScope(() => ut.event('in first'));
        await null;
        resource.runInAsyncScope(() => ut.event('in first, alone'));
      });
      await second;
    });
    resource.runInAsyncScope(() => ut.event('after first'));
  },
  async callbacks() {
    const kinds = {
      timer: (called) => setTimeout(called, 1),
      immediate: setImmediate,
      tick: process.nextTick,
      microtask: queueMicrotask,
      file: (called) => fs.stat(__filename, called),
      'thread pool': (called) => crypto.pbkdf2('a', 'b', 1, 8, 'sha1', called),
    };
    for (const [name, ask] of Object.entries(kinds)) {
      const called = (resolve) => () => resolve(ut.event(`in ${name}`));
      await ut.task(name, () => new Promise((resolve) => ask(called(resolve))));
    }
  },
  async rejected() {
    const rejections = [];
    process.on('unhandledRejection', (error) => rejections.push(error.message));
    await ut
      .task('rejected', async () => {
        await null;
        throw new Error('one');
      })
      .catch((error) => ut.event(`caught ${error.message}`));
    await ut
      .task('thrown', () => {
        throw new Error('two');
      })
      .catch((error) => ut.event(`caught ${error.message}`));
    ut.task('nobody', () => Promise.reject(new Error('three')));
    await new Promise((resolve) => setTimeout(resolve, 1));
    for (const message of rejections) ut.event(`unhandled ${message}`);
  },
  async bridged() {
    performance.mark('before');
    const stop = ut.bridgePerformance({ entryTypes: ['function'] });
    ut.bridgePerformance({ entryTypes: ['function'] });
    stop(); // of the first one, which the second has replaced
    const entry = performance.mark('from', { detail: 1 });
    const measured = performance.measure('work', { start: 1, duration: 2.5 });
    performance.timerify(function timed() {})();
    // Observers get their entries by an immediate.
    for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
    ut.bridgePerformance()();
    performance.mark('behind');
    ut.event('as before', entry.detail + measured.duration * 2);
    try {
      ut.bridgePerformance({ entryTypes: ['nonsense'] });
    } catch (error) {
      if (error instanceof TypeError && error.message.includes('nonsense is not one of')) ut.event('refused');
    }
  },
  disposed() {
    if (Symbol.dispose) ut.begin('disposed')[Symbol.dispose]();
  },
  /** Says that it is there, and goes on until it is told to end. */
  async attached() {
    ut.event('early');
    let isOver = false;
    process.stdin.on('data', () => (isOver = true));
    console.log('ready');
    for (let i = 0; !isOver; i++) {
      await ut.task('request', () => waits(1));
      ut.span('span', () => undefined);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    process.exit(0);
  },
};

const [name, ...numbers] = isMainThread ? process.argv.slice(2) : workerData;
if (!Object.hasOwn(programs, name)) throw new Error(`no program ${name}`);
programs[name](...numbers.map(Number));
