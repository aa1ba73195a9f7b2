'use strict';
// What users install.

const assert = require('node:assert');
const { execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');

const { counts, record, scratch, skip } = require('./recording.js');

const PACKAGE = path.join(__dirname, '..');

test('the packed package is installed elsewhere, and records', (t) => {
  if (process.platform !== 'linux') return skip(t, 'no recorder for this platform');
  const directory = scratch(t);
  const npm = (...words) => execFileSync('npm', [...words, '--loglevel=error'], { cwd: directory, encoding: 'utf8' });
  // Packing writes into the package, hence from a copy.
  fs.cpSync(PACKAGE, path.join(directory, 'repository/node'), { recursive: true });
  for (const name of ['include', 'LICENSE-MIT', 'LICENSE-APACHE']) {
    fs.cpSync(path.join(PACKAGE, '..', name), path.join(directory, 'repository', name), { recursive: true });
  }
  fs.rmSync(path.join(directory, 'repository/node/build'), { recursive: true, force: true });
  const [{ filename, files }] = JSON.parse(npm('pack', './repository/node', '--json'));
  const names = files.map((file) => file.path);
  for (const name of [
    'index.js',
    'index.d.ts',
    'README.md',
    'LICENSE-MIT',
    'LICENSE-APACHE',
    'include/undertick.h',
    'src/addon.c',
  ]) {
    assert.ok(names.includes(name), `${name} is not in the package`);
  }
  assert.ok(!names.some((name) => /^(tests|bench|build)\//.test(name)), names.join(' '));
  for (const name of ['include', 'LICENSE-MIT'])
    assert.ok(!fs.existsSync(path.join(directory, 'repository/node', name)));
  fs.writeFileSync(path.join(directory, 'package.json'), '{"private":true}');
  npm('install', '--offline', '--no-audit', '--no-fund', `./${filename}`);
  const script = path.join(directory, 'program.js');
  fs.writeFileSync(script, "require('undertick').span('installed', () => undefined);\n");
  const recording = record(t, [], { script });
  if (recording) assert.deepStrictEqual(counts(recording.rows), { 'begin installed': 1, 'end installed': 1 });
});

test('modules import the calls by name', () => {
  const script = `import { Name, begin, bridgePerformance, enabled, error, event, name, span, task, threadName } from ${JSON.stringify(path.join(PACKAGE, 'index.js'))};
    console.log([Name, begin, bridgePerformance, enabled, event, name, span, task, threadName].every((one) => typeof one === 'function'), error);`;
  const said = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  assert.match(said.stdout, /^true (null|Error)/, said.stderr);
});

test('a failed build says how to mend it', (t) => {
  if (process.platform !== 'linux') return skip(t, 'no recorder for this platform');
  const said = spawnSync(process.execPath, [path.join(PACKAGE, 'build.js')], {
    encoding: 'utf8',
    env: { ...process.env, CC: 'no-such-compiler' },
  });
  assert.strictEqual(said.status, 1);
  assert.match(said.stderr, /no C compiler no-such-compiler: install one/);
});

test('without the addon the calls do nothing, and the error says why', (t) => {
  const directory = scratch(t);
  fs.cpSync(PACKAGE, directory, { recursive: true });
  fs.rmSync(path.join(directory, 'build'), { recursive: true, force: true });
  const script = `const ut = require(${JSON.stringify(directory)});
    ut.event('a'); ut.begin('b').end(); ut.threadName('c');
    ut.task('d', () => ut.span('e', () => 1)).then((one) => console.log(one, ut.enabled(), ut.error.message));`;
  const said = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });
  assert.strictEqual(said.stderr, '');
  assert.match(said.stdout, /^1 false undertick: /);
  if (process.platform === 'linux') assert.match(said.stdout, /npm rebuild undertick/);
});

test('the types fit', (t) => {
  const compiler = path.join(PACKAGE, '../web/node_modules/.bin/tsc');
  if (!fs.existsSync(compiler)) return skip(t, 'no TypeScript in web/node_modules: npm ci in web installs it');
  const directory = scratch(t);
  fs.cpSync(path.join(PACKAGE, 'index.d.ts'), path.join(directory, 'undertick.d.ts'));
  const check = (text) => {
    fs.writeFileSync(path.join(directory, 'use.ts'), `import * as ut from './undertick';\n${text}\n`);
    const options = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--types', '', 'use.ts'];
    return spawnSync(compiler, options, { cwd: directory, encoding: 'utf8' });
  };
  const good =
    check(`const a: number = ut.span('a', () => 1); const b: Promise<string> = ut.task('b', async () => 'b', { polls: false });
    ut.name('c').begin().end(); ut.event('d', 1n); ut.bridgePerformance({ entryTypes: ['gc'] })(); const e: Error | null = ut.error;
    { using span = ut.begin('e'); void span; } ut.threadName('f'); void [a, b, e, ut.enabled()];`);
  assert.strictEqual(good.status, 0, good.stdout);
  for (const bad of [
    "ut.event('a', 'b');",
    'ut.span(1, () => 1);',
    "const a: string = ut.span('a', () => 1);",
    "new ut.Name('a');",
  ]) {
    assert.notStrictEqual(check(bad).status, 0, bad);
  }
});
