#!/bin/sh
# Writes the command's man page and its completions for bash and zsh, all out of what the command itself says in its help.
#   command_docs.sh WSGEMM OUT_DIR    writes OUT_DIR/wsgemm.1, OUT_DIR/wsgemm.bash and OUT_DIR/_wsgemm
set -eu
wsgemm=$1 out=$2
mkdir -p "$out"
LC_ALL=C
export LC_ALL

commands=$("$wsgemm" help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
options_of() { echo "$("$wsgemm" help "$1" | grep -o -e '--[a-z][a-z-]*' | sort -u)" --help | tr '\n' ' ' | sed 's/^ *//; s/ *$//'; }
words_of() { "$wsgemm" help "$1" | sed -n '1s/^Usage: wsgemm [a-z]* \([a-z]*|[a-z|]*\).*/\1/p' | tr '|' ' '; } # tune show|export|...
summary_of() { "$wsgemm" help | sed -n "s/^  $1  *//p"; }
list() { printf '%s ' $1 | sed 's/ *$//'; } # in one line

as_it_is() { # a text as lines of a man page, unfilled
  printf '.nf\n'
  sed -e 's/\\/\\(rs/g' -e 's/-/\\-/g' -e "s/^\\([.']\\)/\\\\\\&\\1/"
  printf '.fi\n'
}

{
  printf '.TH WSGEMM 1 "" "%s" "User commands"\n' "$("$wsgemm" --version)"
  printf '.SH NAME\nwsgemm \\- dense matrix multiplication\n.SH SYNOPSIS\n.B wsgemm\n.I COMMAND\n[options]\n.SH DESCRIPTION\n'
  "$wsgemm" help | sed '1,4d' | as_it_is
  for command in $commands; do
    printf '.SH WSGEMM %s\n' "$(printf '%s' "$command" | tr 'a-z' 'A-Z')"
    "$wsgemm" help "$command" | as_it_is
  done
} >"$out/wsgemm.1"

{
  cat <<'END'
# Completes the command line of wsgemm in bash: commands, their options, and files.
_wsgemm() {
  local word=${COMP_WORDS[COMP_CWORD]} options='' words=''
  case "$COMP_CWORD ${COMP_WORDS[1]}" in
    "1 "*)
      options='--help --version'
END
  printf "      words='%s help'\n      ;;\n    *\" help\") words='%s' ;;\n" "$(list "$commands")" "$(list "$commands")"
  for command in $commands; do
    printf "    *\" %s\")\n      options='%s'\n      words='%s'\n      ;;\n" "$command" "$(options_of "$command")" "$(words_of "$command")"
  done
  cat <<'END'
  esac
  case "$word" in
    -*) words=$options ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _wsgemm wsgemm
END
} >"$out/wsgemm.bash"

{
  printf '#compdef wsgemm\n# Completes the command line of wsgemm in zsh: commands, their options, and files.\nlocal -a commands options words_here\ncommands=(\n'
  for command in $commands; do
    printf "  '%s:%s'\n" "$command" "$(summary_of "$command")"
  done
  printf "  'help:tell more about a command'\n)\n"
  cat <<'END'
if (( CURRENT == 2 )) || { (( CURRENT == 3 )) && [[ $words[2] == help ]] }; then
  if [[ $PREFIX == -* ]]; then compadd -- --help --version; else _describe command commands; fi
  return
fi
case $words[2] in
END
  for command in $commands; do
    printf "  %s) options=(%s) words_here=(%s) ;;\n" "$command" "$(options_of "$command")" "$(words_of "$command")"
  done
  cat <<'END'
esac
if [[ $PREFIX == -* ]]; then
  compadd -- $options
else
  (( $#words_here )) && compadd -- $words_here
  _files
fi
END
} >"$out/_wsgemm"
