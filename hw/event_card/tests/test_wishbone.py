"""The card on Wishbone: the same model behind another bus."""

import os
import random
from collections import deque

import cocotb
from cocotb.triggers import Timer
from bus import HALF_NS
from model import BACK_PRESSURE, DROP, MASTERS, REGISTERS, SLVERR, Card, Store, event_address

DEPTH = 2 ** int(os.environ["CARD_DEPTH_LOG2"])


class Wishbone:
    def __init__(self, dut, seed: int) -> None:
        self.dut, self.random = dut, random.Random(seed)
        self.card = Card(DEPTH)
        self.requests: deque = deque()  # Store, or (address, master)
        self.stores: deque[tuple[Store, bool]] = deque()  # taken, and whether given up
        self.answers: deque = deque()  # is it a store, was it given up, what it says
        self.request, self.ready, self.stalls = 80, 60, 0
        self.results: list[str] = []

    async def reset(self) -> None:
        dut = self.dut
        for name in ("cyc", "stb", "we"):
            getattr(dut, f"wb_{name}").value = 0
        dut.tick_clk.value = 0
        dut.m_axis_tready.value = 0
        dut.rst_n.value = 0
        for _ in range(3):
            dut.clk.value = 0
            await Timer(HALF_NS, "ns")
            dut.clk.value = 1
            await Timer(HALF_NS, "ns")
        dut.rst_n.value = 1

    async def cycle(self, gives_up: bool = False) -> None:
        dut, card, draw = self.dut, self.card, self.random
        dut.clk.value = 0
        offered = None
        if self.requests and not gives_up and draw.randrange(100) < self.request:
            offered = self.requests[0]
        is_store = isinstance(offered, Store)
        dut.wb_cyc.value = 0 if gives_up else 1
        dut.wb_stb.value = int(offered is not None)
        dut.wb_we.value = int(is_store)
        if is_store:
            dut.wb_adr.value, dut.wb_dat_w.value = offered.address, offered.data
            dut.wb_sel.value, dut.wb_master.value = offered.strobes, offered.master
            dut.wb_is_privileged.value = int(offered.privileged)
        elif offered:
            dut.wb_adr.value, dut.wb_master.value = offered
        tready = draw.randrange(100) < self.ready
        dut.m_axis_tready.value = tready
        await Timer(HALF_NS, "ns")
        left = False
        if tready and int(dut.m_axis_tvalid.value):
            left = card.record(int(dut.m_axis_tdata.value).to_bytes(16, "little"))
        if gives_up:
            self.answers = deque((store, True, value) for store, _, value in self.answers)
            self.stores = deque((store, True) for store, _ in self.stores)
        waits = self.decide(left)
        self.take_answers(gives_up)
        if offered is not None:
            if int(dut.wb_stall.value):
                self.stalls += 1
            else:
                self.requests.popleft()
                if is_store:
                    offered.time = card.clock.shows(card.now)
                    self.stores.append((offered, False))
                else:
                    expected = card.read(offered[0], offered[1], card.clock.shows(card.now))
                    self.answers.append((False, False, expected))
        card.end_of_cycle(waits, left, card.level)
        dut.clk.value = 1
        await Timer(HALF_NS, "ns")

    def decide(self, left: bool) -> bool:
        """The oldest store is done in the cycle after it was taken; its answer comes after that."""
        if not self.stores:
            return False
        answer = self.card.store(self.stores[0][0], left)
        if answer is None:
            return True
        _, is_given_up = self.stores.popleft()
        self.answers.append((True, is_given_up, (self.card.now, answer)))
        return False

    def take_answers(self, gives_up: bool) -> None:
        ack, err = int(self.dut.wb_ack.value), int(self.dut.wb_err.value)
        assert not (ack and err)
        if not (ack or err):
            return
        assert not gives_up
        while self.answers and self.answers[0][1]:
            self.answers.popleft()
        is_store, _, expected = self.answers.popleft()
        if is_store:
            assert err == (expected[1] == SLVERR)
        elif expected is not None:
            got = int(self.dut.wb_dat_r.value)
            assert (got, err) == (expected[0], expected[1] == SLVERR), (got, expected)
        self.results.append("err" if err else "ack")

    async def settle(self) -> None:
        cycles = 0
        while self.requests or self.stores or self.answers:
            await self.cycle()
            cycles += 1
            assert cycles < 20_000, "an answer is missing"

    def put(self, name: str, value: int) -> None:
        self.requests.append(Store(REGISTERS[name], value))

    def random_request(self) -> None:
        draw = self.random
        if draw.randrange(10) == 0:
            names = ("TIME_LO", "TIME_HI", "LOST_LO", "WRITTEN_LO", "MASK", "LEVEL")
            self.requests.append((REGISTERS[draw.choice(names)], draw.randrange(MASTERS)))
            return
        self.requests.append(
            Store(
                event_address(draw.randrange(7), draw.randrange(65536)),
                draw.getrandbits(32),
                15,
                draw.randrange(MASTERS),
                bool(draw.randrange(2)),
            )
        )

    async def drain(self) -> None:
        await self.settle()
        self.ready = 100
        for _ in range(4 * DEPTH + 40):
            await self.cycle()
        self.card.drained()


async def started(dut, seed: int, policy: int) -> Wishbone:
    bus = Wishbone(dut, seed)
    await bus.reset()
    bus.put("POLICY", policy)
    bus.put("STALL_LIMIT", 0)
    bus.put("CONTROL", 1)
    await bus.settle()
    return bus


@cocotb.test()
async def stores_and_readings_in_order(dut):
    for policy in (DROP, BACK_PRESSURE):
        bus = await started(dut, 1 + policy, policy)
        for turn in range(40):
            bus.ready = 10 if turn % 2 else 70
            for _ in range(30):
                bus.random_request()
            while len(bus.requests) > 2:
                await bus.cycle()
        await bus.drain()
        assert bus.card.written > 800 and (bus.card.lost > 0) == (policy == DROP)


@cocotb.test()
async def one_store_a_cycle(dut):
    bus = await started(dut, 3, DROP)
    bus.request = bus.ready = 100
    for i in range(500):
        bus.requests.append(Store(event_address(0, i), i, 15, i % MASTERS))
    first, stalls = bus.card.now, bus.stalls
    await bus.settle()
    assert bus.card.now - first <= 504 and bus.stalls == stalls
    await bus.drain()


@cocotb.test()
async def errors_are_told(dut):
    bus = await started(dut, 4, DROP)
    bus.results.clear()
    bus.put("TICK", 4)
    bus.put("MASK", 0xFFFFFFFF)
    bus.requests.append((0x7C, 0))
    bus.requests.append((REGISTERS["ID"], 0))
    await bus.settle()
    assert bus.results == ["err", "ack", "err", "ack"]


@cocotb.test()
async def a_master_that_gives_up_does_not_get_another_ones_answer(dut):
    bus = await started(dut, 5, DROP)
    draw = bus.random
    for _ in range(150):
        for _ in range(draw.randrange(1, 5)):
            bus.random_request()
        for _ in range(draw.randrange(1, 6)):
            await bus.cycle()
        bus.requests.clear()
        for _ in range(draw.randrange(1, 3)):
            await bus.cycle(gives_up=True)
        # What was given up is done all the same; the next answer is the next request's.
        bus.requests.append((REGISTERS["ID"], 1))
        while bus.requests or bus.stores:
            await bus.cycle()
        for _ in range(6):
            await bus.cycle()
        bus.answers = deque(a for a in bus.answers if not a[1])
        assert not bus.answers, bus.answers
    await bus.drain()
