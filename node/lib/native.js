'use strict';
// The addon, or calls that do nothing where there is none.

const path = require('node:path');

const { isSupported } = require('./platform.js');

/** What lib/name.js calls where nothing can be recorded. `on` says so, hence only two of these are ever called. */
const NOTHING = {
  on: new Uint32Array(1),
  numberOf: () => 0,
  threadName: () => undefined,
};

/** The addon, and why there is none: null, or an Error that says how to mend it. */
function load() {
  if (!isSupported()) {
    return [NOTHING, new Error(`undertick: no recorder for ${process.platform} on ${process.arch}`)];
  }
  const file = path.join(__dirname, '../build/undertick.node');
  try {
    return [require(file), null];
  } catch (error) {
    const mend = `run \`npm rebuild undertick\` (or \`node build.js\` in ${path.dirname(__dirname)})`;
    return [NOTHING, new Error(`undertick: the addon cannot be loaded; ${mend}: ${error.message}`)];
  }
}

const [native, error] = load();

module.exports = { native, error };
