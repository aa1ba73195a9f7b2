// Round numbers on axes. Those of uPlot are made for time series; durations over eight decades, or
// over a part of one, need others.

/** Returns about `wanted` round numbers (1, 2 or 5 times a power of ten) in a range. */
export function linearTicks(lo: number, hi: number, wanted: number): number[] {
  const rough = (hi - lo) / Math.max(1, wanted);
  if (!(rough > 0) || !Number.isFinite(rough)) return [lo];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? 10 * power;
  const ticks: number[] = [];
  for (let i = Math.ceil(lo / step); i * step <= hi + step * 1e-9; i++) ticks.push(i * step);
  return ticks;
}

/** Returns powers of ten, with 2 and 5 between them if the range is short. */
export function logTicks(lo: number, hi: number, wanted: number): number[] {
  const decades = Math.log10(hi / lo);
  if (decades < 0.7) return linearTicks(lo, hi, wanted);
  const between = decades < wanted / 3 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(decades / wanted));
  const ticks: number[] = [];
  for (let d = Math.floor(Math.log10(lo)); d <= Math.ceil(Math.log10(hi)); d++) {
    if (d % every !== 0) continue;
    for (const m of between) {
      const tick = m * 10 ** d;
      if (tick >= lo && tick <= hi) ticks.push(tick);
    }
  }
  return ticks.length > 0 ? ticks : linearTicks(lo, hi, wanted);
}
