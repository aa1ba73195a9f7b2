"""The card on AXI4-Lite against its reference model: eight masters, every policy."""

import os

import cocotb
from bus import Axi
from model import BACK_PRESSURE, CLOCK_HZ, DROP, MASTERS, OVERWRITE, REGISTERS, event_address

DEPTH = 2 ** int(os.environ["CARD_DEPTH_LOG2"])
SEED = int(os.environ.get("CARD_SEED", "1"))
EVENTS = int(os.environ.get("CARD_EVENTS", "1500"))


def random_event(bus: Axi) -> None:
    draw = bus.random
    bus.put(
        event_address(draw.randrange(7), draw.randrange(65536)) | draw.randrange(4),
        draw.getrandbits(32),
        strobes=15 if draw.randrange(20) else draw.randrange(16),
        master=draw.randrange(MASTERS),
        privileged=bool(draw.randrange(2)),
    )


async def started(dut, policy: int, seed: int = 0, **registers: int) -> Axi:
    bus = Axi(dut, SEED * 100 + seed, DEPTH)
    await bus.reset()
    await set_up(bus, policy, **registers)
    return bus


async def set_up(bus: Axi, policy: int, **registers: int) -> None:
    for name, value in registers.items():
        bus.put(REGISTERS[name], value)
    bus.put(REGISTERS["POLICY"], policy)
    bus.put(REGISTERS["CONTROL"], 1)
    await bus.settle()


async def traffic(bus: Axi, events: int, pauses: bool = True) -> None:
    ready = bus.ready
    end = bus.card.written + events
    while bus.card.written < end:
        while len(bus.stores) < 6:
            random_event(bus)
        if pauses and bus.random.randrange(150) == 0:
            bus.ready = 0 if bus.ready else ready
        # Back-pressure without a limit needs a reader.
        if bus.card.stalled > 100:
            bus.ready = ready
        await bus.cycle()
    bus.ready = ready


@cocotb.test()
async def random_traffic_under_every_policy(dut):
    for policy in (DROP, OVERWRITE, BACK_PRESSURE):
        bus = await started(dut, policy, policy, STALL_LIMIT=0)
        await traffic(bus, EVENTS)
        await bus.drain()
        if policy == BACK_PRESSURE:
            assert bus.card.lost == 0 and bus.refused > 0
        else:
            assert bus.card.lost > 0 and (bus.card.overwritten > 0) == (policy == OVERWRITE)


@cocotb.test()
async def policy_changes_while_events_come(dut):
    bus = await started(dut, DROP, 3)
    for _ in range(40):
        bus.put(REGISTERS["POLICY"], bus.random.randrange(3), master=bus.random.randrange(8))
        bus.put(REGISTERS["STALL_LIMIT"], 1 + bus.random.randrange(30))
        await traffic(bus, EVENTS // 30)
    await bus.drain()
    assert bus.card.lost > bus.card.overwritten > 0


@cocotb.test()
async def a_held_store_is_lost_after_the_limit(dut):
    bus = await started(dut, BACK_PRESSURE, 4, STALL_LIMIT=25)
    bus.ready = 0
    for i in range(DEPTH + 3):
        bus.put(event_address(0, i), i, master=i % MASTERS)
    await bus.settle()
    assert (bus.card.written, bus.card.lost, bus.card.level) == (DEPTH + 3, 3, DEPTH)
    await bus.drain()


@cocotb.test()
async def back_pressure_of_the_stream_changes_nothing_but_when(dut):
    """The same events, with the stream always ready and nearly never."""
    for ready in (100, 15):
        bus = await started(dut, BACK_PRESSURE, 5, STALL_LIMIT=0)
        bus.ready = ready
        await traffic(bus, EVENTS // 3, pauses=False)
        await bus.drain()
        assert bus.card.streamed == bus.card.written


@cocotb.test()
async def one_store_a_cycle(dut):
    bus = await started(dut, DROP, 6)
    bus.store = bus.answer = bus.ready = 100
    bus.refused = 0
    first = bus.card.now
    await traffic(bus, EVENTS, pauses=False)
    # Strobes of 0 are stores, too; each takes its cycle.
    assert bus.card.now - first <= EVENTS * 1.02 + 8 and bus.refused == 0 and bus.card.lost == 0
    await bus.drain()


@cocotb.test()
async def resets_in_mid_flight(dut):
    bus = await started(dut, DROP, 7)
    for _ in range(12):
        await traffic(bus, 1 + bus.random.randrange(4 * DEPTH))
        await bus.reset(cycles=1 + bus.random.randrange(3))
        # Nothing of before comes out, and counters, latches and time begin anew.
        for _ in range(6):
            await bus.cycle()
        for name in ("WRITTEN_LO", "LOST_LO", "TIME_HI", "LEVEL", "MASK", "POLICY", "TIME_LO"):
            bus.to_read.append((REGISTERS[name], bus.random.randrange(MASTERS)))
        await bus.settle()
        await set_up(bus, bus.random.randrange(2))
    await traffic(bus, 50)
    await bus.drain()


@cocotb.test()
async def time_wraps(dut):
    for tick, before in ((1, 150), (3, 60), (1000, 1)):
        bus = await started(
            dut, DROP, 8, TICK=tick, TIME_HI=2**32 - 1, TIME_LO=2**32 - before
        )
        times = []
        inner = bus.card.record

        def record(data: bytes, inner=inner, times=times) -> bool:
            times.append(int.from_bytes(data[:8], "little"))
            return inner(data)

        bus.record = record
        for _ in range(60):
            await traffic(bus, 5, pauses=False)
            for name in ("TIME_LO", "TIME_HI"):
                bus.to_read.append((REGISTERS[name], bus.random.randrange(MASTERS)))
        await bus.settle()
        await bus.drain()
        if tick < 1000:
            assert any(t > 2**63 for t in times[1:]) and times[-1] < 2**32, "no wrap"


@cocotb.test()
async def switched_off_classes_leave_no_trace(dut):
    bus = await started(dut, DROP, 9)
    draw = bus.random
    for _ in range(60):
        name = draw.choice(["MASK", "MASK_SET", "MASK_CLEAR"])
        bus.put(REGISTERS[name], draw.getrandbits(32), master=draw.randrange(MASTERS))
        for _ in range(20):
            random_event(bus)
        if draw.randrange(5) == 0:
            bus.put(REGISTERS["CONTROL"], 0)
            for _ in range(4):
                random_event(bus)
            bus.put(REGISTERS["CONTROL"], 1)
        await bus.settle()
        bus.to_read.append((REGISTERS["WRITTEN_LO"], 0))
    # Each class alone.
    for number in range(32):
        bus.put(REGISTERS["MASK"], 1 << number)
        for other in range(32):
            bus.put(event_address(0, other << 11 | draw.randrange(2048)), number << 8 | other)
        await bus.settle()
    await bus.drain()
    assert 0 < bus.card.written


@cocotb.test()
async def latched_readings_of_masters_that_interleave(dut):
    pairs = [REGISTERS[n] for n in ("TIME", "WRITTEN", "LOST") for n in (n + "_LO", n + "_HI")]
    for start in (2**32 - 40, 2**64 - 40):
        wide = dict.fromkeys(range(MASTERS), 0)
        torn_without_latch = 0
        for turn in range(40):
            # The lower word wraps among the readings: an upper word of another time shows.
            time = {"TIME_HI": start >> 32, "TIME_LO": start % 2**32}
            bus = await started(dut, DROP, 1000 + turn, **time)
            for _ in range(150):
                bus.to_read.append((bus.random.choice(pairs), bus.random.randrange(MASTERS)))
            await traffic(bus, 50)
            await bus.settle()
            # Without the model: the readings of a master go forward, modulo 2^64.
            lower, last, has_wrapped = {}, {}, False
            for address, master, value in bus.read_results:
                if address == REGISTERS["TIME_LO"]:
                    lower[master] = value
                    has_wrapped |= value < 2**31
                elif address % 8 == 0:
                    lower.pop(master, None)
                elif master in lower and address == REGISTERS["TIME_HI"]:
                    time = value << 32 | lower[master]
                    assert (time - last.get(master, start)) % 2**64 < 2**32
                    last[master] = time
                    wide[master] += 1
                    torn_without_latch += has_wrapped and lower[master] >= 2**31
            await bus.drain()
        assert min(wide.values()) > 10 and torn_without_latch > 10


@cocotb.test()
async def registers_and_their_errors(dut):
    bus = await started(dut, DROP, 11)
    bus.put(REGISTERS["MASK"], 0, strobes=7)  # not whole: refused
    bus.put(REGISTERS["POLICY"], 3)
    bus.put(REGISTERS["TICK"], 5)
    bus.put(REGISTERS["TIME_LO"], 5)
    bus.put(REGISTERS["ID"], 5)
    bus.put(0x100 + REGISTERS["MASK"], 0)  # beyond the registers
    bus.put(0x48, 0)
    await bus.settle()
    for address in [*range(0, 0x80, 4), 0x100, 1 << 18, 5 << 18]:
        bus.to_read.append((address, 3))
    await bus.settle()
    values = {address: value for address, _, value in bus.read_results}
    log2, gaps = int(os.environ["CARD_DEPTH_LOG2"]), int(os.environ["CARD_GAPS_LOG2"])
    assert values[REGISTERS["PARAMETERS"]] == 8 | 16 << 11 | log2 << 16 | gaps << 21
    assert values[REGISTERS["ID"]].to_bytes(4, "big") == b"UTC1"
    assert values[REGISTERS["CLOCK_HZ"]] == CLOCK_HZ
    bus.ready = 0
    for i in range(DEPTH - 2):
        bus.put(event_address(1, i), i)
    await bus.settle()
    bus.ready = 100
    for _ in range(DEPTH):
        await bus.cycle()
    bus.to_read.append((REGISTERS["HIGH_WATER"], 1))
    await bus.settle()
    assert bus.read_results[-1][2] == DEPTH - 2
    bus.put(REGISTERS["HIGH_WATER"], 0)
    await bus.settle()
    bus.to_read.append((REGISTERS["HIGH_WATER"], 1))
    await bus.settle()
    assert bus.read_results[-1][2] == 0
    await bus.drain()
