'use strict';
// Which calls reach the addon, found with another one in its place.

const assert = require('node:assert');
const test = require('node:test');

const calls = [];
const on = new Uint32Array(1);
const recorded =
  (name, result) =>
  (...words) => {
    calls.push([name, ...words]);
    return result?.(...words);
  };
const native = {
  on,
  begin: recorded('begin'),
  end: recorded('end'),
  event: recorded('event'),
  wideEvent: recorded('wideEvent'),
  newTask: recorded('newTask', () => 9),
  beginPoll: recorded('beginPoll'),
  taskDone: recorded('taskDone'),
  numberOf: (name) => ({ parse: 1, 'parse task new': 2, 'parse task polled': 3, 'parse task done': 4 })[name],
  threadName: recorded('threadName'),
};
const place = require.resolve('../lib/native.js');
require.cache[place] = { id: place, filename: place, loaded: true, exports: { native, error: null } };
const ut = require('..');

const parse = ut.name('parse');

async function all() {
  ut.begin('parse').end();
  parse.begin().end();
  assert.strictEqual(
    ut.span('parse', () => 5),
    5,
  );
  parse.event();
  ut.event('parse', 7);
  ut.event('parse', 2 ** 40);
  assert.strictEqual(await ut.task('parse', async () => 6), 6);
}

test('without a recorder the addon is not called', async () => {
  on[0] = 0;
  await all();
  assert.deepStrictEqual(calls.splice(0), []);
});

test('with a recorder each call is one of the addon', async () => {
  on[0] = 1;
  await all();
  const span = [
    ['begin', 1],
    ['end', 1],
  ];
  const events = [
    ['event', 1, 0],
    ['event', 1, 7],
    ['wideEvent', 1, 2n ** 40n],
  ];
  const task = [
    ['newTask', 2],
    ['beginPoll', 3, 9, 1],
    ['end', 1],
    ['taskDone', 4, 9],
  ];
  assert.deepStrictEqual(calls.splice(0), [...span, ...span, ...span, ...events, ...task]);
});

test('a span that began without a recorder has no end, and the reverse', () => {
  on[0] = 0;
  parse.span(() => (on[0] = 1));
  assert.deepStrictEqual(calls.splice(0), []);
  parse.span(() => (on[0] = 0));
  assert.deepStrictEqual(calls.splice(0), [
    ['begin', 1],
    ['end', 1],
  ]);
});

test('a task that began with a recorder ends without one, and is not polled', async () => {
  on[0] = 1;
  const task = ut.task('parse', async () => {
    await null;
    on[0] = 0;
    await null;
  });
  await task;
  const poll = [
    ['beginPoll', 3, 9, 1],
    ['end', 1],
  ];
  assert.deepStrictEqual(calls.splice(0), [['newTask', 2], ...poll, ...poll, ['taskDone', 4, 9]]);
  on[0] = 1;
  await ut.task('parse', () => null);
  assert.deepStrictEqual(calls.splice(0), [['newTask', 2], ...poll, ['taskDone', 4, 9]]);
});

test('one name has one object', () => {
  assert.strictEqual(ut.name('parse'), parse);
  assert.strictEqual(ut.begin('parse'), parse);
});
