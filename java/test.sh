#!/bin/sh
# Builds the jar, and runs its tests by the JDK of JAVA_HOME, or the javac in PATH. Words select tests by name.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=$here/build
undertick=${UNDERTICK_BINARY:-${CARGO_TARGET_DIR:-$here/../target}/release/undertick}
"$here/build.sh" "$out"
jdk=${JAVA_HOME:-$(dirname -- "$(dirname -- "$(readlink -f -- "$(command -v javac)")")")}

rm -rf "$out/tests"
mkdir -p "$out/tests"
"$jdk/bin/javac" --release 17 -Xlint:all,-options,-try -Werror -d "$out/tests" \
    "$here"/src/dev/undertick/*.java "$here"/tests/dev/undertick/*.java
# The jar comes first: its classes are those that are tested.
exec "$jdk/bin/java" -Dundertick="$undertick" -cp "$out/undertick.jar:$out/tests" dev.undertick.Tests "$@"
