#!/bin/sh
# Builds program and simulation: build.sh DIRECTORY PICORV32.V
set -e
here=$(cd "$(dirname "$0")" && pwd)
rtl=$here/../../rtl
include=$here/../../../../include
mkdir -p "$1/core"
riscv64-unknown-elf-gcc -march=rv32i -mabi=ilp32 -O2 -Wall -Wextra -Werror -ffreestanding -nostdlib \
  -fno-builtin -Wl,-Ttext=0,--build-id=none -DUNDERTICK_CARD=0x40000000 -I"$include" \
  "$here/start.S" "$here/program.c" -o "$1/program.elf"
riscv64-unknown-elf-objcopy -O binary "$1/program.elf" "$1/program.bin"
verilator --cc --build -j 2 -O3 -Wno-fatal -MAKEFLAGS "OPT_FAST=-O2" --Mdir "$1/core" \
  --top-module picorv32 -GENABLE_COUNTERS=0 -GREGS_INIT_ZERO=1 "$2" >"$1/core.log" 2>&1 || { cat "$1/core.log"; exit 1; }
verilator --cc --exe --build -j 2 -O3 -Wno-fatal -CFLAGS "-std=c++17 -O2 -I$1/core" -MAKEFLAGS "OPT_FAST=-O2" \
  --Mdir "$1/card" --top-module event_card -GDEPTH_LOG2=9 -GCLOCK_HZ="32'd10000000" \
  "$rtl/event_card_pkg.sv" $(ls "$rtl"/*.sv | grep -v -e event_card_pkg.sv -e wishbone) \
  "$here/system.cpp" "$1/core/Vpicorv32__ALL.a" -o ../system >"$1/card.log" 2>&1 || { cat "$1/card.log"; exit 1; }
