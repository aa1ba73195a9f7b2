'use strict';

const assert = require('node:assert');
const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const test = require('node:test');

const { PROGRAMS, counts, read, record, scratch, undertick } = require('./recording.js');

/** What programs.js records for each pass of `nested`. */
const PASS = ['begin outer', 'begin middle', 'begin inner', 'instant event', 'end inner', 'end middle', 'end outer'];

function isNested(rows, n) {
  assert.deepStrictEqual(
    rows.map(({ kind, name }) => `${kind} ${name}`),
    Array.from({ length: n }, () => PASS).flat(),
  );
  const payloads = rows.filter(({ kind }) => kind === 'instant').map(({ payload }) => payload);
  assert.deepStrictEqual(
    payloads,
    Array.from({ length: n }, (_, i) => BigInt(i)),
  );
}

test('nested spans are recorded exactly', (t) => {
  const recording = record(t, ['nested', 20000]);
  if (recording) isNested(recording.rows, 20000);
});

test('the rings say that their spans wait', (t) => {
  const recording = record(t, ['nested', 1]);
  if (!recording) return;
  assert.deepStrictEqual(
    recording.manifest.rings.map((ring) => ring.spans_wait),
    [true],
  );
});

test('a span ends when its function throws', (t) => {
  const recording = record(t, ['thrown', 100]);
  if (!recording) return;
  const expected = {
    'begin outer': 100,
    'begin thrown': 100,
    'end thrown': 100,
    'end outer': 100,
    'instant caught': 1,
  };
  assert.deepStrictEqual(counts(recording.rows), expected);
  assert.strictEqual(recording.rows.at(-1).payload, 100n);
});

test('payloads of up to 64 bits are kept, others are refused', (t) => {
  const recording = record(t, ['payloads']);
  if (!recording) return;
  const payloads = recording.rows
    .filter(({ name }) => name === 'payload')
    .map(({ payload }) => BigInt.asUintN(64, payload));
  assert.deepStrictEqual(payloads, [0n, 1n, 4294967295n, 4294967296n, 9007199254740991n, 18446744073709551615n, 5n]);
  assert.deepStrictEqual(counts(recording.rows), { 'instant payload': 7, 'instant refused': 10 });
});

test('names are cut between characters, and bad ones refused', (t) => {
  const recording = record(t, ['names', 0]);
  if (!recording) return;
  const expected = { [`instant ${'\u00e4'.repeat(120)}`]: 1, 'instant a b,"c"': 1, 'instant refused': 3 };
  assert.deepStrictEqual(counts(recording.rows), expected);
});

test('names beyond the table are recorded as other names', (t) => {
  const recording = record(t, ['names', 20000]);
  if (!recording) return;
  const named = recording.rows.filter(({ name }) => name.startsWith('name '));
  for (const { name, payload } of named) assert.strictEqual(name, `name ${payload}`);
  const others = recording.rows.filter(({ name }) => name === '(other names)');
  assert.strictEqual(named.length + others.length, 20000);
  assert.ok(named.length > 16000 && named.length < 16384, `${named.length} names`);
});

test('nothing is lost when the program is killed', (t) => {
  const recording = record(t, ['killed', 5000], { isWhole: false });
  if (!recording) return;
  assert.strictEqual(recording.manifest.exit.signal, 9);
  assert.strictEqual(recording.manifest.lost, 0);
  isNested(recording.rows, 5000);
});

for (const program of ['workers', 'unloaded']) {
  test(`each worker has a ring and a name: ${program}`, (t) => {
    const recording = record(t, [program, 3, 2000]);
    if (!recording) return;
    const { rows, manifest } = recording;
    const rings = new Set(rows.map(({ ring }) => ring));
    const all = program === 'workers' ? 3 : 6;
    assert.strictEqual(rings.size, all);
    for (const ring of rings)
      isNested(
        rows.filter((row) => row.ring === ring),
        2000,
      );
    const names = manifest.threads.map(({ name }) => name).filter((name) => /^worker \d+$/.test(name));
    assert.strictEqual(new Set(names).size, all);
  });
}

test('without a recorder the calls do their work', () => {
  const environment = { ...process.env, UNDERTICK_SESSION: undefined };
  for (const attach of ['1', '0']) {
    const said = spawnSync(process.execPath, [PROGRAMS, 'state'], {
      encoding: 'utf8',
      env: { ...environment, UNDERTICK_ATTACH: attach },
    });
    assert.strictEqual(said.stderr, '');
    assert.deepStrictEqual(JSON.parse(said.stdout), [false, null, 7]);
  }
});

test('a recorded program is enabled', (t) => {
  const recording = record(t, ['state']);
  if (recording) assert.deepStrictEqual(JSON.parse(recording.said.stdout), [true, null, 7]);
});

test('an object ends its span when it is disposed', (t) => {
  const recording = record(t, ['disposed']);
  if (!recording) return;
  assert.deepStrictEqual(counts(recording.rows), Symbol.dispose ? { 'begin disposed': 1, 'end disposed': 1 } : {});
});

test('a recorder attaches to a running program, and leaves it', async (t) => {
  const program = undertick(t);
  if (program === null) return;
  const running = spawn(process.execPath, [PROGRAMS, 'attached'], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => running.kill('SIGKILL'));
  await once(running.stdout, 'data');
  const directory = scratch(t);
  for (const round of [1, 2]) {
    const trace = path.join(directory, `${round}.ut`);
    const words = [
      'record',
      '-q',
      '--no-calibration',
      '--kernel',
      'off',
      '--pid',
      running.pid,
      '--for',
      '1s',
      '-o',
      trace,
    ];
    const said = spawnSync(program, words.map(String), { encoding: 'utf8' });
    assert.strictEqual(said.status, 0, said.stderr);
    const found = counts(read(program, trace).rows);
    assert.ok(found['begin span'] > 0 && found['instant request task new'] > 0, JSON.stringify(found));
    assert.ok(Math.abs(found['begin span'] - found['end span']) <= 1, JSON.stringify(found));
    assert.ok(Math.abs(found['begin request'] - found['end request']) <= 1, JSON.stringify(found));
    assert.strictEqual(found['instant early'], undefined);
  }
  running.stdin.write('end');
  const [status] = await once(running, 'exit');
  assert.strictEqual(status, 0);
});
