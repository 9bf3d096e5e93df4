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

# All that `sarissa COMMAND --help` names; a test compares the two.
_sarissa_options()
{
	case $1 in
	"") echo "--json --help --socket --version" ;;
	get) echo "--json --help --socket --timeout" ;;
	put) echo "--json --help --socket --ttl --lease --lease-ttl --dtype --shape" ;;
	rm) echo "--json --help --socket --prefix" ;;
	reduce)
		echo "--json --help --socket --op --dtype --num --deadline --min --spread --wait --switch --member --timeout"
		;;
	status) echo "--json --help --socket --counters" ;;
	peers) echo "--json --help --socket --over" ;;
	top) echo "--json --help --socket --interval --once" ;;
	local) echo "--json --help --name --store --objects --workers --rails" ;;
	group) echo "--json --help --count --dtype --op --policy --members --total --switch" ;;
	plan)
		echo "--json --help --op --size --topology --nodes --rate --latency --mtu --planner --why --simulate --dot" \
			"--svg --last"
		;;
	topology) echo "--json --help --rate --latency" ;;
	policy) echo "--json --help" ;;
	*) echo "--json --help --socket" ;;
	esac
}

# Options that a value follows.
_sarissa_valued="--socket --timeout --shape --ttl --lease --lease-ttl --prefix --over --interval --op --dtype --num --deadline --min
	--switch --member --name --store --objects --workers --rails --count --policy --members --size --topology --nodes --rate
	--latency --mtu --planner --svg"
_sarissa_commands="put get reduce rm ls watch stat status peers top doctor leave local group policy plan topology help"

# The value of the option $1. False: it has none.
_sarissa_value()
{
	case $1 in
	--socket | --topology | --svg)
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$2"))
		;;
	--op) COMPREPLY=($(compgen -W "sum prod min max avg allreduce reduce" -- "$2")) ;;
	--dtype) COMPREPLY=($(compgen -W "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64" -- "$2")) ;;
	-*) [[ " ${_sarissa_valued//[$'\n\t']/ } " == *" $1 "* ]] ;;
	*) false ;;
	esac
}

_sarissa()
{
	local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command="" place=0 i socket=() valued=" ${_sarissa_valued//[$'\n\t']/ } "
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--socket)
			socket=(--socket "${COMP_WORDS[++i]}")
			;;
		-?*)
			[[ $valued != *" ${COMP_WORDS[i]} "* ]] || ((++i))
			;;
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
	if _sarissa_value "$before" "$current"; then
		return
	elif [[ $current == -?* ]]; then
		COMPREPLY=($(compgen -W "$(_sarissa_options "$command")" -- "$current"))
	elif [ -z "$command" ]; then
		COMPREPLY=($(compgen -W "$_sarissa_commands" -- "$current"))
	else
		case $command:$place in
		get:0 | stat:0 | rm:* | reduce:[1-9]*)
			_sarissa_names "${socket[@]}"
			;;
		help:0)
			COMPREPLY=($(compgen -W "$_sarissa_commands sarissa.3
				sarissa-control sarissa-dataplane sarissa-switch sar_open sar_create sar_get sar_gather
				sar_group_create sar_reduce sar_list sar_lease sar_queue_open sar_submit_get sar_strerror
				sar_switch_join" -- "$current"))
			;;
		group:0)
			COMPREPLY=($(compgen -W "create ls show rm" -- "$current"))
			;;
		policy:0)
			COMPREPLY=($(compgen -W "show set" -- "$current"))
			;;
		topology:0)
			COMPREPLY=($(compgen -W "check show probe flat: bcube: torus: fattree:" -- "$current"))
			;;
		local:0)
			COMPREPLY=($(compgen -W "up exec env kill start status down" -- "$current"))
			;;
		put:1 | get:1 | topology:1)
			compopt -o filenames 2>/dev/null
			COMPREPLY=($(compgen -f -- "$current"))
			;;
		esac
	fi
}
complete -F _sarissa sarissa
