'use strict';
// Records spans, events and tasks into a trace of Undertick. index.d.ts describes each call.

const { isMainThread, threadId } = require('node:worker_threads');

const { Name, lookUp } = require('./lib/name.js');
const { native, error } = require('./lib/native.js');
const { bridgePerformance } = require('./lib/performance.js');

const { on } = native;

if (!isMainThread) native.threadName(`worker ${threadId}`);

module.exports = {
  Name,
  error,
  bridgePerformance,
  enabled: () => on[0] !== 0,
  name: lookUp,
  begin: (name) => lookUp(name).begin(),
  span: (name, work) => lookUp(name).span(work),
  event: (name, payload) => lookUp(name).event(payload),
  task: (name, work, options) => lookUp(name).task(work, options),
  threadName(name) {
    native.threadName(String(name));
  },
};
