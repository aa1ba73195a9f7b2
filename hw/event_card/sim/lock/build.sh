#!/bin/sh
# Builds the simulation: build.sh DIRECTORY
set -e
here=$(cd "$(dirname "$0")" && pwd)
rtl=$here/../../rtl
verilator --cc --exe --build -j 2 -O3 -Wno-fatal -CFLAGS "-std=c++17 -O2" -MAKEFLAGS "OPT_FAST=-O2" \
  --Mdir "$1" --top-module event_card -GDEPTH_LOG2=9 -GCLOCK_HZ="32'd10000000" \
  "$rtl/event_card_pkg.sv" $(ls "$rtl"/*.sv | grep -v -e event_card_pkg.sv -e wishbone) \
  "$here/lock.cpp" -o lock >"$1.log" 2>&1 || { cat "$1.log"; exit 1; }
