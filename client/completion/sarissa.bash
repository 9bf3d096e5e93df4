# SPDX-License-Identifier: BSD-3-Clause
# Completion of the command sarissa, which says itself what may come next.

# Not with compgen -W, which runs what stands between $( and ): others choose the names. Behind a
# quote a name is written as it must be there, or what it says would be run with the line.
_sarissa_name()
{
	local name=$1 word=$2 quote="'\\''"
	local begin=${word//\\/}
	begin=${begin#[\"\']}
	[[ $name == "$begin"* ]] || return
	case $word in
	\'*)
		name=${name//\'/"$quote"}
		;;
	\"*)
		[[ $name != *!* ]] || return # nothing hides it there
		name=${name//\\/\\\\} name=${name//\"/\\\"}
		name=${name//\$/\\\$} name=${name//\`/\\\`}
		;;
	*)
		name=$(printf '%q' "$name")
		;;
	esac
	COMPREPLY+=("$name")
}

_sarissa()
{
	local current=${COMP_WORDS[COMP_CWORD]} line
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		f)
			compopt -o filenames 2>/dev/null
			COMPREPLY+=($(compgen -f -- "$current"))
			;;
		n*)
			_sarissa_name "${line:1}" "$current"
			;;
		w"$current"*)
			COMPREPLY+=("${line:1}")
			;;
		esac
	done < <(sarissa complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _sarissa sarissa
