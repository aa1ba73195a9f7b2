"""Eight masters, an interconnect, and the two ends of the card's stream, cycle by cycle.

The clock is made here: inputs change while it is low, outputs are looked at when they have
settled, then it rises. So no simulator's order of events at an edge matters."""

import random
from collections import deque

from cocotb.triggers import Timer
from model import Card, Store

HALF_NS = 5


class Axi:
    """The card on AXI4-Lite, with its model beside it."""

    def __init__(self, dut, seed: int, depth: int, knows_time: bool = True) -> None:
        self.dut, self.random, self.depth = dut, random.Random(seed), depth
        self.knows_time = knows_time
        # Chances in percent: a store's halves are offered, answers and records are taken.
        self.store, self.answer, self.ready = 80, 85, 60
        self.clear()

    def clear(self) -> None:
        self.card = Card(self.depth)
        self.stores: deque[Store] = deque()
        self.given = [0, 0]  # of `stores`, how many addresses and data the card has
        self.complete: list[int] = []
        self.answers: deque[tuple[int, int]] = deque()
        self.readings: deque = deque()
        self.to_read: deque = deque()
        self.read_results: list = []
        self.held = None
        self.refused = 0
        self.offered = {"aw": False, "w": False, "ar": False}

    async def reset(self, cycles: int = 3) -> None:
        dut = self.dut
        dut.rst_n.value = 0
        for name in ("awvalid", "wvalid", "arvalid", "bready", "rready"):
            getattr(dut, f"s_axi_{name}").value = 0
        dut.m_axis_tready.value = 0
        if self.knows_time:
            dut.tick_clk.value = 0
        for _ in range(cycles):
            await self.edge()
        dut.clk.value = 0
        await Timer(HALF_NS, "ns")
        for name in ("s_axi_bvalid", "s_axi_rvalid", "m_axis_tvalid"):
            assert int(getattr(dut, name).value) == 0, name
        dut.rst_n.value = 1
        self.clear()

    async def edge(self) -> None:
        self.dut.clk.value = 0
        await Timer(HALF_NS, "ns")
        self.dut.clk.value = 1
        await Timer(HALF_NS, "ns")

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def put(self, address: int, data: int, **more) -> None:
        self.stores.append(Store(address, data, **more))

    def drive(self) -> None:
        dut = self.dut
        aw, w = self.given
        # What the card took is withdrawn after the edge, not with it.
        for name, is_offered in self.offered.items():
            if not is_offered:
                getattr(dut, f"s_axi_{name}valid").value = 0
        if not self.offered["aw"] and aw < len(self.stores) and self.chance(self.store):
            store = self.stores[aw]
            dut.s_axi_awvalid.value = 1
            dut.s_axi_awaddr.value = store.address
            dut.s_axi_awid.value = store.master
            dut.s_axi_awprot.value = self.random.randrange(4) << 1 | store.privileged
            self.offered["aw"] = True
        if not self.offered["w"] and w < len(self.stores) and self.chance(self.store):
            dut.s_axi_wvalid.value = 1
            dut.s_axi_wdata.value = self.stores[w].data
            dut.s_axi_wstrb.value = self.stores[w].strobes
            self.offered["w"] = True
        if not self.offered["ar"] and self.to_read:
            address, master = self.to_read[0]
            dut.s_axi_arvalid.value = 1
            dut.s_axi_araddr.value = address
            dut.s_axi_arid.value = master
            self.offered["ar"] = True
        self.bready, self.rready = self.chance(self.answer), self.chance(70)
        self.tready = self.chance(self.ready)
        dut.s_axi_bready.value = self.bready
        dut.s_axi_rready.value = self.rready
        dut.m_axis_tready.value = self.tready

    def shown(self) -> int:
        """The time of a handshake in this cycle."""
        return self.card.clock.shows(self.card.now) if self.knows_time else -1

    async def cycle(self) -> None:
        dut, card = self.dut, self.card
        dut.clk.value = 0
        self.drive()
        await Timer(HALF_NS, "ns")
        left = self.stream()
        blocked = bool(self.answers) and not self.bready
        self.take_answer()
        self.read()
        before, waits = card.level, False
        if self.complete and not blocked:
            answer = card.store(self.stores[0], left)
            if answer is None:
                waits = True
            else:
                self.answers.append((self.stores.popleft().master, answer))
                self.complete.pop(0)
                self.given = [self.given[0] - 1, self.given[1] - 1]
        self.handshakes()
        card.end_of_cycle(waits, left, before)
        dut.clk.value = 1
        await Timer(HALF_NS, "ns")

    def handshakes(self) -> None:
        dut, was = self.dut, min(self.given)
        for place, name in enumerate(("aw", "w")):
            if not self.offered[name]:
                continue
            if int(getattr(dut, f"s_axi_{name}ready").value):
                self.given[place] += 1
                self.offered[name] = False
            else:
                self.refused += 1
        for place in range(was, min(self.given)):
            self.stores[place].time = self.shown()
            self.complete.append(self.card.now)

    def take_answer(self) -> None:
        valid = int(self.dut.s_axi_bvalid.value)
        assert valid == bool(self.answers), "bvalid"
        if valid and self.bready:
            got = int(self.dut.s_axi_bid.value), int(self.dut.s_axi_bresp.value)
            assert got == self.answers.popleft(), got

    def read(self) -> None:
        dut = self.dut
        if int(dut.s_axi_rvalid.value) and self.rready:
            expected, master, address = self.readings.popleft()
            got = int(dut.s_axi_rdata.value), int(dut.s_axi_rresp.value)
            assert int(dut.s_axi_rid.value) == master
            if expected is not None and expected[0] >= 0:
                assert got == expected, (hex(address), master, got, expected)
            self.read_results.append((address, master, got[0]))
        if self.offered["ar"] and int(dut.s_axi_arready.value):
            address, master = self.to_read.popleft()
            self.offered["ar"] = False
            expected = self.card.read(address, master, self.shown())
            self.readings.append((expected, master, address))

    def stream(self) -> bool:
        if not int(self.dut.m_axis_tvalid.value):
            assert self.held is None, "a record that was offered went away"
            return False
        data = int(self.dut.m_axis_tdata.value)
        assert self.held is None or self.held == data, "a record changed while it waited"
        self.held = None if self.tready else data
        return self.tready and self.record(data.to_bytes(16, "little"))

    def record(self, data: bytes) -> bool:
        return self.card.record(data)

    async def settle(self) -> None:
        """Until all stores and readings are answered."""
        while self.stores or self.answers or self.to_read or self.readings:
            await self.cycle()

    async def drain(self) -> None:
        await self.settle()
        self.ready = 100
        for _ in range(4 * self.depth + 40):
            await self.cycle()
        self.card.drained()
