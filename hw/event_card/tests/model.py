"""What the card does, by README.md alone: it sees handshakes, and nothing inside the card."""

from collections import deque
from dataclasses import dataclass

MASTERS = 8
EVENT_BITS = 16
CLOCK_HZ = 100_000_000
REGISTERS = {
    "ID": 0x00, "PARAMETERS": 0x04, "CONTROL": 0x08, "POLICY": 0x0C, "TICK": 0x10,
    "CLOCK_HZ": 0x14, "MASK": 0x18, "MASK_SET": 0x1C, "MASK_CLEAR": 0x20,
    "STALL_LIMIT": 0x24, "LEVEL": 0x28, "HIGH_WATER": 0x2C, "TIME_LO": 0x30,
    "TIME_HI": 0x34, "WRITTEN_LO": 0x38, "WRITTEN_HI": 0x3C, "LOST_LO": 0x40, "LOST_HI": 0x44,
}  # fmt: skip
DROP, OVERWRITE, BACK_PRESSURE = 0, 1, 2
OKAY, SLVERR = 0, 2
GAP, CARD = 3, 4


def event_address(kind: int, event: int) -> int:
    return (kind + 1) << (EVENT_BITS + 2) | event << 2


@dataclass
class Store:
    address: int
    data: int
    strobes: int = 15
    master: int = 0
    privileged: bool = False
    time: int = -1  # what the counter showed at the later handshake


@dataclass
class Record:
    time: int
    payload: int
    event: int
    master: int
    kind: int
    flag: int

    @classmethod
    def of_bytes(cls, data: bytes) -> "Record":
        word = int.from_bytes(data[14:16], "little")
        return cls(
            int.from_bytes(data[0:8], "little"),
            int.from_bytes(data[8:12], "little"),
            int.from_bytes(data[12:14], "little"),
            word & 0x7FF,
            word >> 11 & 7,
            word >> 14,
        )


class Clock:
    """What the time counter shows in each cycle, without ASYNC_TICK."""

    def __init__(self) -> None:
        self.tick, self.tick_done = 1, None
        self.preset, self.preset_done = 0, None

    def base(self, cycle: int) -> int:
        if self.tick_done is None or cycle <= self.tick_done + 3:
            return max(0, cycle - 1)
        stands = self.tick_done + 3
        first = stands + 1 + self.tick
        return stands - 1 + (0 if cycle < first else 1 + (cycle - first) // self.tick)

    def shows(self, cycle: int) -> int:
        if self.preset_done is None or cycle < self.preset_done + 3:
            return self.base(cycle)
        moved = self.base(cycle) - self.base(self.preset_done + 2)
        return (self.preset + moved) % 2**64


class Card:
    """One call of `cycle` for each cycle. Where the time of a store is not given (`Store.time`
    below 0 is never compared) the caller has another way to know it."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.clock = Clock()
        self.now = 0
        self.is_enabled = self.has_started = False
        self.mask, self.policy, self.stall_limit, self.stalled = 2**32 - 1, DROP, 65535, 0
        self.staged = 0
        self.level = self.high_water = 0
        self.written = self.lost = self.streamed = self.told_lost = 0
        self.overwritten = self.told_overwritten = 0
        self.events: deque[tuple[Record, bool]] = deque()  # and whether it was lost when it came
        self.latches = [0] * MASTERS
        self.saw_first = False
        self.clears_high_water = False

    def store(self, store: Store, event_left: bool) -> int | None:
        """The store that is due in this cycle; its answer, or None if it must wait."""
        slot, number = store.address >> (EVENT_BITS + 2), store.address >> 2 & 0xFFFF
        if slot == 0:
            return self.write(store)
        is_on = self.is_enabled and self.mask >> (number >> (EVENT_BITS - 5)) & 1
        if not (store.strobes and is_on):
            return OKAY
        is_full = self.level == self.depth and not event_left
        if is_full and self.policy == BACK_PRESSURE:
            if self.stall_limit == 0 or self.stalled < self.stall_limit:
                return None
        is_lost = is_full and self.policy != OVERWRITE
        payload = sum(store.data & 0xFF << 8 * i for i in range(4) if store.strobes >> i & 1)
        flag = 3 if store.privileged else 2
        record = Record(store.time, payload, number, store.master, slot - 1, flag)
        self.events.append((record, is_lost))
        self.written += 1
        self.lost += is_full
        self.overwritten += is_full and not is_lost
        self.level += not is_full
        return OKAY

    def write(self, store: Store) -> int:
        name = {v: k for k, v in REGISTERS.items()}.get(store.address & ~3)
        data = store.data
        if store.strobes != 15:
            return SLVERR
        match name:
            case "CONTROL":
                self.is_enabled = bool(data & 1)
                self.has_started |= self.is_enabled
            case "POLICY":
                if data > 2:
                    return SLVERR
                self.policy = data
            case "TICK":
                if self.has_started or data == 0:
                    return SLVERR
                self.clock.tick, self.clock.tick_done = data, self.now
            case "MASK":
                self.mask = data
            case "MASK_SET":
                self.mask |= data
            case "MASK_CLEAR":
                self.mask &= ~data
            case "STALL_LIMIT":
                self.stall_limit = data
            case "HIGH_WATER":
                self.clears_high_water = True
            case "TIME_HI" | "TIME_LO" if self.has_started:
                return SLVERR
            case "TIME_HI":
                self.staged = data
            case "TIME_LO":
                self.clock.preset, self.clock.preset_done = self.staged << 32 | data, self.now
            case _:
                return SLVERR
        return OKAY

    def read(self, address: int, master: int, time: int) -> tuple[int, int] | None:
        """Data and answer of a reading; None for what the caller must judge."""
        name = {v: k for k, v in REGISTERS.items()}.get(address & ~3)
        wide = {"TIME_LO": time, "WRITTEN_LO": self.written, "LOST_LO": self.lost}
        if name in wide:
            self.latches[master] = wide[name] >> 32
            return wide[name] & 0xFFFFFFFF, OKAY
        if name in ("TIME_HI", "WRITTEN_HI", "LOST_HI"):
            return self.latches[master], OKAY
        if name in ("MASK", "MASK_SET", "MASK_CLEAR"):
            return self.mask, OKAY
        plain = {
            "ID": 0x55544331, "CONTROL": int(self.is_enabled), "POLICY": self.policy,
            "STALL_LIMIT": self.stall_limit, "LEVEL": self.level, "CLOCK_HZ": CLOCK_HZ,
            "TICK": self.clock.tick,
        }  # fmt: skip
        if name in plain:
            return plain[name], OKAY
        return None if name in ("HIGH_WATER", "PARAMETERS") else (0, SLVERR)

    def record(self, data: bytes) -> bool:
        """A record that the stream has taken; whether it is an event."""
        got = Record.of_bytes(data)
        if not self.saw_first:
            self.saw_first = True
            tick = self.clock.tick
            assert got == Record(tick << 32 | CLOCK_HZ, CARD, 1, MASTERS, 7, 2), got
            return False
        if got.kind == 7:
            assert (got.payload, got.master) == (GAP, 2047) and got.time > 0, got
            masters = 0
            for _ in range(got.time):
                (skipped, is_lost) = self.events.popleft()
                masters |= 1 << skipped.master if is_lost else 0xFFFF
                self.told_overwritten += not is_lost
            assert got.event == masters, (got, masters)
            self.told_lost += got.time
            return False
        expected, is_lost = self.events.popleft()
        assert not is_lost, ("a record of an event that was lost", got)
        assert got == expected, (got, expected)
        self.streamed += 1
        return True

    def end_of_cycle(self, stalls: bool, event_left: bool, level_before: int) -> None:
        self.stalled = self.stalled + 1 if stalls else 0
        self.level -= event_left
        self.now += 1
        self.high_water = max(self.high_water, level_before)

    def drained(self) -> None:
        assert not self.events, len(self.events)
        assert self.written == self.streamed + self.told_lost
        assert self.lost == self.told_lost
        assert self.overwritten == self.told_overwritten
