# SPDX-License-Identifier: BSD-3-Clause
# Completion of the command sarissa: commands, options, object names, files.

# Not with compgen -W, which runs what stands between $( and ): others choose the names. Behind a
# quote a name is written as it must be there, or what it says would be run with the line.
_sarissa_names()
{
	local word=${COMP_WORDS[COMP_CWORD]} quote="'\\''" name
	local begin=${word//\\/}
	begin=${begin#[\"\']}
	local columns="" # before the name
	while IFS= read -r name; do
		[ -n "$columns" ] || { columns=${name%%NAME*} && continue; }
		name=${name:${#columns}}
		[[ $name == "$begin"* ]] || continue
		case $word in
		\'*)
			name=${name//\'/"$quote"}
			;;
		\"*)
			[[ $name != *!* ]] || continue # nothing hides it there
			name=${name//\\/\\\\} name=${name//\"/\\\"}
			name=${name//\$/\\\$} name=${name//\`/\\\`}
			;;
		*)
			name=$(printf '%q' "$name")
			;;
		esac
		COMPREPLY+=("$name")
	done < <(sarissa "$@" ls 2>/dev/null)
}

_sarissa()
{
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command="" place=0 i socket=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--socket)
			socket=(--socket "${COMP_WORDS[++i]}")
			;;
		--timeout | --ttl | --lease | --lease-ttl | --prefix | --over | --interval | --op | --dtype | --num | --name | --store | --workers)
			((++i))
			;;
		-?*) ;;
		*)
			if [ -z "$command" ]; then
				command=${COMP_WORDS[i]}
			else
				((++place))
			fi
			;;
		esac
	done
	COMPREPLY=()
	if [ "$before" = --socket ]; then
		COMPREPLY=($(compgen -f -- "$current"))
	elif [ "$before" = --timeout ] || [ "$before" = --over ] || [ "$before" = --interval ] || [ "$before" = --ttl ] ||
		[ "$before" = --lease ] || [ "$before" = --lease-ttl ] || [ "$before" = --prefix ] || [ "$before" = --num ]; then
		return
	elif [ "$before" = --op ]; then
		COMPREPLY=($(compgen -W "sum prod min max avg" -- "$current"))
	elif [ "$before" = --dtype ]; then
		COMPREPLY=($(compgen -W "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64" -- "$current"))
	elif [[ $current == -?* ]]; then
		local options="--json --help --socket"
		[ "$command" != get ] || options+=" --timeout"
		[ "$command" != put ] || options+=" --ttl --lease --lease-ttl"
		[ "$command" != rm ] || options+=" --prefix"
		[ "$command" != reduce ] || options+=" --op --dtype --num --spread --wait --switch --member --timeout"
		[ "$command" != status ] || options+=" --counters"
		[ "$command" != peers ] || options+=" --over"
		[ "$command" != top ] || options+=" --interval --once"
		[ "$command" != local ] || options+=" --name --store --workers"
		[ -n "$command" ] || options+=" --version"
		COMPREPLY=($(compgen -W "$options" -- "$current"))
	elif [ -z "$command" ]; then
		COMPREPLY=($(compgen -W "put get reduce rm ls watch stat status peers top doctor leave local group policy help" -- "$current"))
	else
		case $command:$place in
		get:0 | stat:0 | rm:* | reduce:[1-9]*)
			_sarissa_names "${socket[@]}"
			;;
		help:0)
			COMPREPLY=($(compgen -W "put get reduce rm ls watch stat status peers top doctor leave local group policy plan topology sarissa.3
				sarissa-control sarissa-dataplane sar_open sar_create sar_get sar_gather sar_group_create sar_reduce sar_list
				sar_lease sar_queue_open sar_submit_get sar_strerror" -- "$current"))
			;;
		group:0)
			COMPREPLY=($(compgen -W "create ls show rm" -- "$current"))
			;;
		policy:0)
			COMPREPLY=($(compgen -W "show set" -- "$current"))
			;;
		local:0)
			COMPREPLY=($(compgen -W "up exec kill start status down" -- "$current"))
			;;
		put:1 | get:1)
			compopt -o filenames 2>/dev/null
			COMPREPLY=($(compgen -f -- "$current"))
			;;
		esac
	fi
}
complete -F _sarissa sarissa
