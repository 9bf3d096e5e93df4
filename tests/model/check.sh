#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Searches all runs of a model with each set of options that it says it "holds" with, and finds out each
# that it says is "broken".
# usage: check.sh reduce.pml
command -v spin >/dev/null || { echo "spin is not there: run scripts/setup"; exit 77; }
model=$(realpath "$1") || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
search() {
	# shellcheck disable=SC2086 # several words
	spin $1 -search -DSAFETY -O2 -m200000 "$model" >out 2>&1 || :
	grep -q 'states, stored' out || { cat out; exit 1; }
	grep -q 'errors: 0' out
}
options() {
	sed -n "s/^ \* $1: //p" "$model" >"$1"
	[ -s "$1" ] || { echo "$model does not say with what it is $1"; exit 1; }
}
options holds
options broken
while read -r good; do
	search "$good" || { cat out; exit 1; }
	grep 'states, stored' out
done <holds
while read -r bad; do
	if search "$bad"; then
		echo "what $bad breaks is not found out"
		exit 1
	fi
done <broken
