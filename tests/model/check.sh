#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Searches all runs of the model of a reduce's repair and commit, and that broken ones are found out.
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
search -DN=2 -DDEATHS=1 -DMOVES=1 -DGOES=1 || { cat out; exit 1; }
grep 'states, stored' out
for broken in '-DN=3 -DDEATHS=1 -DBROKEN' '-DN=2 -DDEATHS=1 -DNOHOLD' '-DN=2 -DDEATHS=0 -DMOVES=1 -DALONE' \
	'-DN=2 -DDEATHS=0 -DMOVES=1 -DLATE' '-DN=2 -DDEATHS=0 -DMOVES=1 -DGOES=1 -DANYWAY'; do
	# shellcheck disable=SC2086 # several words
	if search $broken; then
		echo "what $broken breaks is not found out"
		exit 1
	fi
done
