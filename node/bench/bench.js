'use strict';
// What the calls cost: medians over blocks that take turns, with 95 % intervals. Without arguments it measures without a
// recorder, and then with one.

const { spawnSync } = require('node:child_process');
const path = require('node:path');

const { compile } = require('../build.js');
const ut = require('..');

const ROUNDS = 41;
const CALLS = 20000;
const AWAITS = 10000;
const TARGET_NS = 150;

const addon = path.join(__dirname, '../build/floor.node');
compile(path.join(__dirname, 'floor.c'), addon);
const { empty, floors } = require(addon);

const parse = ut.name('parse');

async function waits() {
  for (let i = 0; i < AWAITS; i++) await null;
}

/** Each measured thing: its name, how many there are in a block, and the block. */
const BLOCKS = [
  ['floor: two waiting readings, two stores (C)', CALLS, () => floors(CALLS)],
  [
    'empty call of an addon',
    CALLS,
    () => {
      for (let i = 0; i < CALLS; i++) empty();
    },
  ],
  [
    'span: name.begin(), name.end()',
    CALLS,
    () => {
      for (let i = 0; i < CALLS; i++) parse.begin().end();
    },
  ],
  [
    'span by text: ut.begin(text).end()',
    CALLS,
    () => {
      for (let i = 0; i < CALLS; i++) ut.begin('parse').end();
    },
  ],
  [
    'span around a function: name.span(f)',
    CALLS,
    () => {
      for (let i = 0; i < CALLS; i++) parse.span(empty);
    },
  ],
  [
    'event: name.event(7)',
    CALLS,
    () => {
      for (let i = 0; i < CALLS; i++) parse.event(7);
    },
  ],
  [
    'task without polls, with its promise',
    AWAITS,
    async () => {
      for (let i = 0; i < AWAITS; i++) await parse.task(() => 0, { polls: false });
    },
  ],
  ['await, no task before', AWAITS, waits],
];

/** These come last, since a task leaves hooks on each promise. */
const TASK_BLOCKS = [
  ['await in a task, polls recorded', AWAITS, () => parse.task(waits)],
  ['await outside of tasks, after a task', AWAITS, waits],
];

async function measure(blocks) {
  const times = blocks.map(() => []);
  for (let round = 0; round < ROUNDS + 5; round++) {
    for (const [at, [, calls, block]] of blocks.entries()) {
      const begin = process.hrtime.bigint();
      await block();
      const took = Number(process.hrtime.bigint() - begin) / calls;
      if (round >= 5) times[at].push(took); // the first rounds compile
    }
  }
  return times;
}

/** Median of numbers and its 95 % interval, by order statistics. */
function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = Math.ceil(0.98 * Math.sqrt(sorted.length));
  const middle = (sorted.length - 1) / 2;
  return [middle, middle - half, middle + half].map((at) => sorted[at]);
}

const shown = (numbers, digits) => {
  const [middle, low, high] = median(numbers).map((number) => number.toFixed(digits));
  return `${middle.padStart(8)}  [${low}, ${high}]`;
};

async function main() {
  console.log(`\n${ut.enabled() ? 'recorded' : 'without a recorder'}: ns, Node.js ${process.version}`);
  const times = await measure(BLOCKS);
  BLOCKS.forEach(([name], at) => console.log(`${name.padEnd(46)}${shown(times[at], 1)}`));
  const tasks = await measure(TASK_BLOCKS);
  TASK_BLOCKS.forEach(([name], at) => console.log(`${name.padEnd(46)}${shown(tasks[at], 1)}`));
  if (ut.enabled()) {
    const ratios = times[2].map((time, round) => time / times[0][round]);
    console.log(`${'span in floors'.padEnd(46)}${shown(ratios, 2)}`);
    console.log(
      `${'span beside an empty call'.padEnd(46)}${shown(
        times[2].map((time, round) => time - times[1][round]),
        1,
      )}  target ${TARGET_NS}`,
    );
    return;
  }
  const target = process.env.CARGO_TARGET_DIR || path.join(__dirname, '../../target');
  const undertick = process.env.UNDERTICK_BINARY || path.join(target, 'release/undertick');
  const trace = path.join(require('node:os').tmpdir(), `undertick-bench-${process.pid}.ut`);
  const words = [
    'record',
    '-q',
    '--no-calibration',
    '--kernel',
    'off',
    '--overflow',
    'overwrite',
    '-o',
    trace,
    '--',
    process.execPath,
    __filename,
  ];
  const said = spawnSync(undertick, words, { stdio: 'inherit' });
  require('node:fs').rmSync(trace, { recursive: true, force: true });
  if (said.error) console.log(`skipped: no ${undertick}: cargo build --release -p undertick-cli`);
}

main();
