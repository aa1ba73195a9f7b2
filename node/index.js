'use strict';
// Records spans, events and tasks into a trace of Undertick. index.d.ts describes each call.

const { isMainThread, threadId } = require('node:worker_threads');

const { Name, lookUp } = require('./lib/name.js');
const { native, error } = require('./lib/native.js');
const { bridgePerformance } = require('./lib/performance.js');

const { on } = native;

if (!isMainThread) native.threadName(`worker ${threadId}`);

const enabled = () => on[0] !== 0;
const begin = (name) => lookUp(name).begin();
const span = (name, work) => lookUp(name).span(work);
const event = (name, payload) => lookUp(name).event(payload);
const task = (name, work, options) => lookUp(name).task(work, options);
const threadName = (name) => native.threadName(String(name));

// In this form, `import { span } from 'undertick'` finds the names, too.
module.exports = { Name, begin, bridgePerformance, enabled, error, event, name: lookUp, span, task, threadName };
