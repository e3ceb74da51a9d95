# Where things are, for every script and the Makefile. Source it; it prints nothing.
#
#   CAIRN_CACHE        what setup fetches and builds once: tools, the Java jar, RocksDB's library, data sets
#   CARGO_TARGET_DIR   build output, outside the clone so that a second clone starts warm
# shellcheck shell=bash

export CAIRN_CACHE="${CAIRN_CACHE:-${HOME:?HOME is not set, and neither is CAIRN_CACHE}/.cache/cairn}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$CAIRN_CACHE/target}"
# Setup's tools first, then rustup's own folder, which a shell opened before the installation does not know.
export PATH="$CAIRN_CACHE/tools/bin:$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin"
