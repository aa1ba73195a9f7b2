'use strict';
// Whole recordings with the program `undertick`. UNDERTICK_BINARY says where it is; otherwise it is that of a build in
// the repository.

const assert = require('node:assert');
const { execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const PROGRAMS = path.join(__dirname, 'programs.js');

function skip(t, why) {
  console.log(`skipped: ${why}`);
  t.skip(why);
}

/** Path of `undertick`; skips the test and returns null without one, or without the addon. */
function undertick(t) {
  const target = process.env.CARGO_TARGET_DIR || path.join(__dirname, '../../target');
  const program = path.resolve(process.env.UNDERTICK_BINARY || path.join(target, 'release/undertick'));
  if (!fs.existsSync(program)) {
    skip(t, `no ${program}: cargo build --release -p undertick-cli`);
    return null;
  }
  const { error } = require('../lib/native.js');
  if (process.platform !== 'linux') {
    skip(t, error.message);
    return null;
  }
  assert.strictEqual(error, null);
  return program;
}

/** A fresh directory, which is removed after the test. */
function scratch(t) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'undertick-node-'));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** The cells of a line of CSV. */
function cells(line) {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain,
  );
}

/** The events of the program in a trace, ring by ring: { ring, pid, mode, kind, name, payload, ticks }. */
function rowsOf(program, trace) {
  const file = `${trace}.csv`;
  execFileSync(program, ['export', '-q', trace, '--to', 'csv', file]);
  const [head, ...lines] = fs.readFileSync(file, 'utf8').trimEnd().split('\n').map(cells);
  const rows = lines.map((line) => Object.fromEntries(line.map((cell, at) => [head[at], cell])));
  return rows
    .filter((row) => row.mode === 'user')
    .map((row) => ({ ...row, ring: Number(row.ring), payload: BigInt(row.payload), ticks: BigInt(row.ticks) }));
}

/** What was recorded: the manifest, and the rows. */
function read(program, trace) {
  const manifest = JSON.parse(fs.readFileSync(path.join(trace, 'manifest.json'), 'utf8'));
  return { manifest, rows: rowsOf(program, trace), trace, program };
}

/** Records a program of programs.js; null if that was skipped. */
function record(t, words, { options = [], isWhole = true, script = PROGRAMS, cwd } = {}) {
  const program = undertick(t);
  if (program === null) return null;
  const trace = path.join(scratch(t), 't.ut');
  const start = ['record', '-q', '--no-calibration', '--kernel', 'off', '-o', trace, ...options, '--'];
  const said = spawnSync(program, [...start, process.execPath, script, ...words.map(String)], {
    encoding: 'utf8',
    cwd,
  });
  const recording = { ...read(program, trace), said };
  if (isWhole) {
    assert.strictEqual(recording.manifest.exit?.status, 0, said.stdout + said.stderr);
    assert.strictEqual(recording.manifest.lost, 0);
  }
  return recording;
}

/** How many rows there are by `kind name`. */
function counts(rows) {
  const found = {};
  for (const { kind, name } of rows) found[`${kind} ${name}`] = (found[`${kind} ${name}`] ?? 0) + 1;
  return found;
}

module.exports = { PROGRAMS, counts, read, record, scratch, skip, undertick };
