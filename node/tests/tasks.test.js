'use strict';

const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const test = require('node:test');

const { counts, record } = require('./recording.js');

/** What each poll of a task writes. */
const poll = (name) => [`instant ${name} task polled`, `begin ${name}`, `end ${name}`];

const sequence = (rows) => rows.map(({ kind, name }) => `${kind} ${name}`);

test('a task of n awaits has n + 1 polls', (t) => {
  const recording = record(t, ['polls', 5]);
  if (!recording) return;
  const expected = [
    'instant request task new',
    ...Array.from({ length: 6 }, () => poll('request')).flat(),
    'instant request task done',
  ];
  assert.deepStrictEqual(sequence(recording.rows), expected);
  const numbers = new Set(recording.rows.filter(({ kind }) => kind === 'instant').map(({ payload }) => payload));
  assert.strictEqual(numbers.size, 1);
});

test('without polls a task has its begin and end', (t) => {
  const recording = record(t, ['withoutPolls', 5]);
  if (!recording) return;
  assert.deepStrictEqual(sequence(recording.rows), ['instant request task new', 'instant request task done']);
});

test('100,000 tasks at the same time are kept apart', (t) => {
  const n = 100000;
  const recording = record(t, ['tasks', n]);
  if (!recording) return;
  // Tasks of 0, 1 and 2 awaits take turns.
  const awaits = Math.floor(n / 3) * 3;
  const expected = {
    'instant request task new': n,
    'instant request task polled': n + awaits,
    'begin request': n + awaits,
    'end request': n + awaits,
    'instant request task done': n,
    'instant sum': 1,
  };
  assert.deepStrictEqual(counts(recording.rows), expected);
  const polls = new Map();
  const open = new Set();
  for (const { name, payload } of recording.rows) {
    if (name === 'request task new') {
      assert.ok(!polls.has(payload), `two tasks ${payload}`);
      polls.set(payload, 0);
      open.add(payload);
    } else if (name === 'request task polled') {
      assert.ok(open.has(payload), `a poll of task ${payload}, which is not there`);
      polls.set(payload, polls.get(payload) + 1);
    } else if (name === 'request task done') {
      assert.ok(open.delete(payload), `task ${payload} is done twice`);
    }
  }
  // Numbers ascend in the order of the calls, and wrap at 2^32.
  [...polls.values()].forEach((found, i) => assert.strictEqual(found, (i % 3) + 1, `polls of task ${i}`));
});

test('a report has the lives and polls of tasks', (t) => {
  const recording = record(t, ['tasks', 300]);
  if (!recording) return;
  const document = JSON.parse(
    execFileSync(recording.program, ['report', recording.trace, '--json'], { encoding: 'utf8' }),
  );
  assert.strictEqual(document.tasks.rows.length, 1);
  const { name, tasks, done, polls } = document.tasks.rows[0];
  assert.deepStrictEqual({ name, tasks, done, polls }, { name: 'request', tasks: 300, done: 300, polls: 600 });
});

test('a task in a task has its own polls', (t) => {
  const recording = record(t, ['nestedTasks']);
  if (!recording) return;
  const { rows } = recording;
  const found = counts(rows);
  assert.strictEqual(found['instant inner task polled'], 3);
  // Its call, two continuations, and the continuation of `ut.task` that ends the inner task.
  assert.strictEqual(found['instant outer task polled'], 4);
  const position = (text) => sequence(rows).indexOf(text);
  assert.ok(position('begin outer') < position('begin inner') && position('end inner') < position('end outer'));
  assert.strictEqual(sequence(rows).at(-1), 'instant outer task done');
});

test('callbacks in the context of a task are its polls, and nest', (t) => {
  const recording = record(t, ['scopes']);
  if (!recording) return;
  // Since Node.js 24 a callback that is called in the middle of another one belongs to the latter.
  const isOwn = Number(process.versions.node.split('.')[0]) < 24;
  const event = (name) => [`instant ${name}`];
  const first = (name) =>
    isOwn ? ['instant first task polled', 'begin first', ...event(name), 'end first'] : event(name);
  const expected = [
    'instant first task new',
    // In a poll of the same task a callback is no poll.
    'instant first task polled',
    'begin first',
    'instant in first',
    'end first',
    'instant first task polled',
    'begin first',
    'instant second task new',
    'instant second task polled',
    'begin second',
    'instant in first',
    'end second',
    'end first',
    'instant second task polled',
    'begin second',
    ...first('in first, alone'),
    'end second',
    'instant first task polled',
    'begin first',
    'instant second task done',
    'end first',
    ...poll('first'),
    'instant first task done',
    'instant after first',
  ];
  assert.deepStrictEqual(sequence(recording.rows), expected);
});

test('callbacks of each kind are polls of the task that asked for them', (t) => {
  const recording = record(t, ['callbacks']);
  if (!recording) return;
  const one = (name) => [
    `instant ${name} task new`,
    ...poll(name),
    ...[`instant ${name} task polled`, `begin ${name}`, `instant in ${name}`, `end ${name}`],
    `instant ${name} task done`,
  ];
  const names = ['timer', 'immediate', 'tick', 'microtask', 'file', 'thread pool'];
  assert.deepStrictEqual(sequence(recording.rows), names.flatMap(one));
});

test('a task that is rejected is done, and its error is as without a task', (t) => {
  const recording = record(t, ['rejected']);
  if (!recording) return;
  const found = counts(recording.rows);
  for (const name of ['rejected', 'thrown', 'nobody']) {
    assert.strictEqual(found[`instant ${name} task new`], 1, name);
    assert.strictEqual(found[`instant ${name} task done`], 1, name);
  }
  const errors = sequence(recording.rows).filter((one) => /caught|unhandled/.test(one));
  assert.deepStrictEqual(errors, ['instant caught one', 'instant caught two', 'instant unhandled three']);
});
