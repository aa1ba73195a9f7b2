'use strict';
// Entries of perf_hooks as events.

const { performance, PerformanceObserver } = require('node:perf_hooks');

const { lookUp } = require('./name.js');

/** What undoes the bridge, while there is one. */
let undo = null;

/** A duration in ms as the payload of an event, ns; at most 104 days, the largest integer that a number holds. */
const nanoseconds = (milliseconds) =>
  Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(milliseconds * 1e6) || 0));

/** Replaces a method of `performance` by one that also passes each entry it returned to `record`; returns what undoes
 * that. */
function wrapped(method, record) {
  const had = Object.getOwnPropertyDescriptor(performance, method);
  const original = performance[method];
  const replacement = function (...words) {
    const entry = original.apply(this, words);
    record(entry);
    return entry;
  };
  Object.defineProperty(performance, method, { value: replacement, writable: true, configurable: true });
  return () => {
    if (performance[method] !== replacement) return; // somebody else's by now
    if (had) Object.defineProperty(performance, method, had);
    else delete performance[method];
  };
}

/** Observed entries have the name of their type, because others, such as addresses, are without number. */
function observedName(entry) {
  return entry.entryType === 'function'
    ? `function ${entry.name || '(anonymous)'} observed`
    : `${entry.entryType} observed`;
}

function bridgePerformance(options = {}) {
  const entryTypes = options.entryTypes ?? [];
  const unknown = entryTypes.find(
    (type) => !PerformanceObserver.supportedEntryTypes.includes(type) || type === 'mark' || type === 'measure',
  );
  if (unknown !== undefined) {
    const known = PerformanceObserver.supportedEntryTypes.filter((type) => type !== 'mark' && type !== 'measure');
    throw new TypeError(
      `entryTypes: ${String(unknown)} is not one of ${known.join(', ')} (marks and measures always are recorded)`,
    );
  }
  undo?.();
  const undone = [
    wrapped('mark', (entry) => lookUp(entry.name || '(mark)').event()),
    wrapped('measure', (entry) => lookUp(`${entry.name} measured`).event(nanoseconds(entry.duration))),
  ];
  if (entryTypes.length > 0) {
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) lookUp(observedName(entry)).event(nanoseconds(entry.duration));
    });
    observer.observe({ entryTypes });
    undone.push(() => observer.disconnect());
  }
  const stop = () => {
    if (undo !== stop) return;
    undo = null;
    for (const one of undone) one();
  };
  undo = stop;
  return stop;
}

module.exports = { bridgePerformance };
