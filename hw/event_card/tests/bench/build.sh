#!/bin/sh
# Builds the bench: build.sh DIRECTORY DEPTH_LOG2 GAPS_LOG2 [RTL]
set -e
here=$(cd "$(dirname "$0")" && pwd)
rtl=${4:-$here/../../rtl}
build() {
  verilator --cc --exe --build -j 2 -O3 --x-assign unique --x-initial unique -Wno-fatal \
    -CFLAGS "-I$here -std=c++17 -O2 -DDEPTH_LOG2=$2" -MAKEFLAGS "OPT_FAST=-O2" \
    --Mdir "$1" --top-module event_card \
    -GDEPTH_LOG2="$2" -GGAPS_LOG2="$3" -GCLOCK_HZ="32'd100000000" \
    "$rtl/event_card_pkg.sv" $(ls "$rtl"/*.sv | grep -v -e event_card_pkg.sv -e wishbone) \
    "$here/bench.cpp" -o bench >"$1.log" 2>&1
}
# What an earlier version left there may name files that have moved.
build "$@" || { rm -rf "$1"; build "$@"; } || { cat "$1.log"; exit 1; }
