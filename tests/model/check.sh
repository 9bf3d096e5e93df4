#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Searches all runs of the model of a reduce's repair, and that a broken one is found out.
# usage: check.sh reduce.pml
command -v spin >/dev/null || { echo "spin is not there: run scripts/setup"; exit 77; }
model=$(realpath "$1") || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
search() {
	spin "$@" -search -DSAFETY -O2 -m200000 "$model" >out 2>&1 || :
	grep -q 'states, stored' out || { cat out; exit 1; }
	grep -q 'errors: 0' out
}
search -DDEATHS=1 || { cat out; exit 1; }
grep 'states, stored' out
if search -DDEATHS=1 -DBROKEN; then
	echo "a repair that keeps the ancestors' generations is not found out"
	exit 1
fi
