#!/bin/sh
# Prints what the calls cost, without a recorder and with one: UNDERTICK_BINARY, or that of a build in the repository.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=$here/build
undertick=${UNDERTICK_BINARY:-${CARGO_TARGET_DIR:-$here/../target}/release/undertick}
jdk=${JAVA_HOME:-$(dirname -- "$(dirname -- "$(readlink -f -- "$(command -v javac)")")")}

"$here/build.sh" "$out" >/dev/null
mkdir -p "$out/bench"
"${CC:-cc}" -O2 -fPIC -shared -I"$here/../include" -I"$jdk/include" -I"$jdk/include/linux" \
    "$here/bench/floor.c" -o "$out/libfloor.so"
"$jdk/bin/javac" --release 17 -cp "$out/undertick.jar" -d "$out/bench" "$here/bench/dev/undertick/Bench.java"
set -- "$jdk/bin/java" -XX:+IgnoreUnrecognizedVMOptions --enable-native-access=ALL-UNNAMED \
    -cp "$out/undertick.jar:$out/bench" dev.undertick.Bench "$out/libfloor.so"
"$@"
if [ ! -x "$undertick" ]; then
    echo "skipped: no $undertick: cargo build --release -p undertick-cli"
    exit 0
fi
trap 'rm -rf "$out/bench.ut"' EXIT
"$undertick" record -q --no-calibration --kernel off --overflow overwrite -o "$out/bench.ut" -- "$@"
