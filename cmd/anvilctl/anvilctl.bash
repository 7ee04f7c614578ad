# Completion of anvilctl for bash: commands and options are the program's own words, actors and
# projects those of the running system.

_anvilctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local program=${COMP_WORDS[0]} words=() where=() command='' options i

	COMPREPLY=()
	case $prev in
	-d | --dir)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	-c | --config)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	esac
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-d | --dir | -c | --config)
			where+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}")
			((i++))
			;;
		-*) ;;
		*) words+=("${COMP_WORDS[i]}") ;;
		esac
	done
	case ${words[0]-} in
	user | project | webhook | keys) command="${words[0]} ${words[1]-}" ;;
	*) command=${words[0]-} ;;
	esac

	if [[ $cur == -* ]]; then
		# shellcheck disable=SC2086 # a command may be two words
		options=$("$program" $command --help 2>/dev/null | grep -oE -- '--[a-z-]+')
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	elif [ ${#words[@]} = 0 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$program" --names | cut -d' ' -f1 | uniq)" -- "$cur")
	elif [ ${#words[@]} = 1 ] && [[ ${words[0]} =~ ^(user|project|webhook|keys)$ ]]; then
		mapfile -t COMPREPLY < <(
			compgen -W "$("$program" --names | sed -n "s/^${words[0]} //p")" -- "$cur")
	else
		_anvilctl_names
	fi
}

# What may stand behind $command.
_anvilctl_names() {
	local names=''

	case $command in
	inspect | call)
		if [ ${#words[@]} = 1 ]; then
			names=$("$program" "${where[@]}" ps 2>/dev/null | sed 1d | cut -d' ' -f1)
		elif [ ${#words[@]} = 2 ]; then
			names=$("$program" "${where[@]}" call "${words[1]}" 2>/dev/null |
				sed 1d | cut -d' ' -f1)
		fi
		;;
	'webhook set' | 'webhook rotate' | 'webhook rm' | 'webhook list')
		if [ ${#words[@]} = 2 ]; then
			names=$("$program" "${where[@]}" project list 2>/dev/null | sed 1d | cut -d' ' -f1)
		elif [ ${#words[@]} = 3 ] && [ "${words[1]}" != list ]; then
			names='github gitlab gitea'
		fi
		;;
	'project move')
		if [ ${#words[@]} = 2 ]; then
			names=$("$program" "${where[@]}" project list 2>/dev/null | sed 1d | cut -d' ' -f1)
		elif [ ${#words[@]} = 3 ]; then
			names=$("$program" "${where[@]}" ps 2>/dev/null | sed -n 's|^project/\([0-9]*\).*|\1|p')
		fi
		;;
	'project give')
		if [ ${#words[@]} = 2 ]; then
			names=$("$program" "${where[@]}" project list 2>/dev/null | sed 1d | cut -d' ' -f1)
		fi
		names+=" $("$program" "${where[@]}" user list 2>/dev/null | sed 1d | cut -d' ' -f1)"
		;;
	run | queue | deliveries | 'project show' | 'project rm')
		names=$("$program" "${where[@]}" project list 2>/dev/null | sed 1d | cut -d' ' -f1)
		;;
	logs | why | cancel | abandon)
		names=$("$program" "${where[@]}" queue 2>/dev/null | grep -o 'run_[0-9A-Za-z]*')
		;;
	'user disable' | 'user enable' | 'user reset-password' | 'project list')
		names=$("$program" "${where[@]}" user list 2>/dev/null | sed 1d | cut -d' ' -f1)
		;;
	lint)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	backup | restore)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$names" -- "$cur")
}

complete -F _anvilctl anvilctl
