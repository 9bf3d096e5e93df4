#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a model at random, from many seeds, and has a program replay what it prints.
# usage: replay.sh slack.pml PROGRAM
command -v spin >/dev/null || { echo "spin is not there: run scripts/setup"; exit 77; }
model=$(realpath "$1") || exit 1
program=$(realpath "$2") || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
seed=1
while [ $seed -le 25 ]; do
	for how in -DEAGER ""; do
		# shellcheck disable=SC2086 # none, or one word
		spin $how -DTRACE -DSWAPS=4 -n$seed -T -u4000 "$model" >out || exit 1
		grep -E '^(begin|push|pull|swap|end|is) ?' out
	done
	seed=$((seed + 1))
done >runs
"$program" <runs
