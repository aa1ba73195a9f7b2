"""Ticks of another clock: every reading is a count that there was, as old as README.md says."""

import os
from bisect import bisect_left, bisect_right

import cocotb
from bus import HALF_NS, Axi
from cocotb.triggers import Timer
from cocotb.utils import get_sim_time
from model import MASTERS, REGISTERS, Record, event_address

DEPTH = 2 ** int(os.environ["CARD_DEPTH_LOG2"])
CLK_PS = 2 * HALF_NS * 1000


class Ticks:
    """A clock of its own, and when it rose."""

    def __init__(self, dut, half_ps: int) -> None:
        self.dut, self.half_ps, self.edges = dut, half_ps, []
        self.task = cocotb.start_soon(self.run())

    async def run(self) -> None:
        while True:
            self.dut.tick_clk.value = 0
            await Timer(self.half_ps, "ps")
            self.dut.tick_clk.value = 1
            self.edges.append(get_sim_time("ps"))
            await Timer(self.half_ps, "ps")

    def before(self, ps: float, since: float) -> int:
        return bisect_left(self.edges, ps) - bisect_right(self.edges, since)


class Timed(Axi):
    """Keeps when each store was complete, and what the stream says of it."""

    def __init__(self, dut, seed: int) -> None:
        super().__init__(dut, seed, DEPTH, knows_time=False)
        self.at_ps, self.times = {}, {}

    def handshakes(self) -> None:
        was = len(self.complete)
        super().handshakes()
        for store in list(self.stores)[was : len(self.complete)]:
            # The edge that is about to come.
            self.at_ps[store.data] = get_sim_time("ps")

    def record(self, data: bytes) -> bool:
        got = Record.of_bytes(data)
        if got.kind != 7:
            self.times[got.payload] = got.time
            data = (2**64 - 1).to_bytes(8, "little") + data[8:]
        return super().record(data)

    def shown(self) -> int:
        return 2**64 - 1


async def run(dut, half_ps: int, seed: int, tick: int | None) -> tuple[Timed, float, list]:
    ticks = Ticks(dut, half_ps)
    bus = Timed(dut, seed)
    await bus.reset(cycles=4 + 8 * half_ps // CLK_PS)
    released = get_sim_time("ps")
    for _ in range(8 + 16 * half_ps // CLK_PS):
        await bus.cycle()
    if tick is not None:
        bus.put(REGISTERS["TICK"], tick)
        await bus.settle()
    bus.put(REGISTERS["CONTROL"], 1)
    await bus.settle()
    if tick is not None:
        for _ in range(20 + 20 * half_ps // CLK_PS):
            await bus.cycle()
    for i in range(300):
        bus.put(event_address(0, i), i, master=i % MASTERS)
        while len(bus.stores) > 4:
            await bus.cycle()
        for _ in range(bus.random.randrange(6)):
            await bus.cycle()
    bus.ready = 100
    await bus.drain()
    ticks.task.kill()
    got = [(bus.at_ps[i], bus.times[i]) for i in sorted(bus.times)]
    assert len(got) > 200
    return bus, released, [ticks, got]


@cocotb.test()
async def readings_are_exact_counts_of_the_other_clock(dut):
    # Slower, faster, nearly the same, and ten times as fast; no edge falls on one of `clk`.
    for seed, half_ps in enumerate((17_311, 3_137, 5_003, 4_999, 497)):
        _, released, (ticks, got) = await run(dut, half_ps, seed, None)
        for at_ps, time in got:
            # Two edges end the reset of that side, the third counts, and what it counts is in
            # Gray code with the fourth; sampled four periods before it is read.
            expected = max(0, ticks.before(at_ps - 4 * CLK_PS, released) - 3)
            assert time == expected, (half_ps, at_ps, time, expected)


@cocotb.test()
async def longer_ticks_of_the_other_clock(dut):
    for seed, (half_ps, tick) in enumerate(((3_137, 7), (17_311, 3), (497, 100))):
        _, _, (ticks, got) = await run(dut, half_ps, 10 + seed, tick)
        first_ps, first = got[0]
        last = first
        for at_ps, time in got:
            edges = ticks.before(at_ps - 4 * CLK_PS, first_ps - 4 * CLK_PS)
            assert time >= last
            # To the tick: as many whole ticks as edges allow, at any phase of the first.
            assert (time - first) in (edges // tick, edges // tick + 1), (tick, edges, time - first)
            last = time
        assert last - first > 5
