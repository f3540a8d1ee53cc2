#!/usr/bin/env bash
# Makes the parts of a framepipe job with GNU parallel: one at a time on each card of this host, or several on
# its cores, or on hosts by ssh; then joins them.
#
# usage: parallel.sh JOB --cards 0,1,2,3                    a part a card
#        parallel.sh JOB --at-once 4 [OPTION OF PARALLEL...]     4 parts on the cores, --sshlogin a,b on hosts
#
# JOB/parallel.log lists each part: when, where, how long, exit code. A part that fails is tried three
# times. The same call again makes what is missing. `framepipe run` does the same on one host by itself.
# FRAMEPIPE names the program, PART_OPTIONS more options of `framepipe part`.
set -euo pipefail
framepipe=${FRAMEPIPE:-framepipe}
[ $# -ge 3 ] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
job=$(realpath "$1") how=$2 what=$3
shift 3
case $how in
    --cards)
        IFS=, read -ra cards <<< "$what"
        at_once=${#cards[@]}
        # {%} is the number of the place, counted from 1, which has a card of its own.
        place="cards=(${cards[*]}); export CUDA_VISIBLE_DEVICES=\${cards[{%}-1]}; "
        options=(--engine cuda --device 0)
        ;;
    --at-once)
        at_once=$what place=
        options=(--engine cpu --threads $((($(nproc) + what - 1) / what)))
        ;;
    *) echo "parallel.sh: say --cards LIST or --at-once N" >&2; exit 2 ;;
esac
code=0
"$framepipe" status "$job" --missing --lines \
    | SHELL=$(command -v bash) parallel --jobs "$at_once" --retries 3 --joblog "+$job/parallel.log" "$@" \
    "$place$(printf %q "$framepipe") part --quiet ${options[*]} ${PART_OPTIONS:-} $(printf %q "$job") {}" ||
    code=$?
[ $code = 0 ] || echo "parallel.sh: $code parts failed; the same call tries them again" >&2
exec "$framepipe" join "$job"
