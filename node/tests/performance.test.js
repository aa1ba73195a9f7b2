'use strict';

const assert = require('node:assert');
const test = require('node:test');

const { counts, record } = require('./recording.js');

test('marks, measures and observed entries become events while the bridge is there', (t) => {
  const recording = record(t, ['bridged']);
  if (!recording) return;
  const expected = {
    'instant from': 1,
    'instant work measured': 1,
    'instant function timed observed': 1,
    'instant as before': 1,
    'instant refused': 1,
  };
  assert.deepStrictEqual(counts(recording.rows), expected);
  const payload = (name) => recording.rows.find((row) => row.name === name).payload;
  assert.strictEqual(payload('work measured'), 2500000n);
  assert.strictEqual(payload('as before'), 6n);
});
