#!/usr/bin/env bash
# Makes the parts of a framepipe job as a Slurm array, and joins them when all have ended.
#
# usage: slurm.sh JOB [OPTION OF SBATCH...]             such as --gres=gpu:1 --cpus-per-task=8 --time=1:00:00
#        EACH=50 slurm.sh JOB --gres=gpu:1              50 parts a place of the array, for short ones
#
# Submits what is missing; the same call again submits what is missing then. An exit code of 75 puts a task
# back into the queue, three tries at most (the site must allow requeues); 1 and 2 are final. The join refuses,
# and names the parts, if any is missing. AT_ONCE=64 bounds how many tasks run at a time. FRAMEPIPE names the
# program, PART_OPTIONS more options of `framepipe part`.
#SBATCH --job-name=framepipe
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
framepipe=${FRAMEPIPE:-framepipe}

if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
    job=$1 each=$2
    first=$((SLURM_ARRAY_TASK_ID * each))
    code=0
    # shellcheck disable=SC2086  # options are words
    srun --ntasks=1 "$framepipe" part ${PART_OPTIONS:-} "$job" "$first-$((first + each - 1))" || code=$?
    # Exit codes above 128 are signals: killed for memory, say.
    if { [ $code = 75 ] || [ $code -gt 128 ]; } && [ "${SLURM_RESTART_COUNT:-0}" -lt 2 ]; then
        scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
        sleep 60  # the requeue ends this
    fi
    exit $code
fi

[ $# -ge 1 ] || { sed -n '2,/^#SBATCH/{/^#SBATCH/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
job=$(realpath "$1")
shift
missing=$("$framepipe" status "$job" --missing --lines)
if [ -n "$missing" ]; then
    # Sites allow arrays of 1,001 places or so, numbered below that.
    most=$(tail -n 1 <<< "$missing")
    each=${EACH:-$((most / 1000 + 1))}
    places=$(awk -v each="$each" '{ print int($1 / each) }' <<< "$missing" | uniq | paste -sd, -)
    array=$(sbatch --parsable "--array=$places%${AT_ONCE:-64}" "$@" "$(realpath "$0")" "$job" "$each")
    echo "array $array: $(wc -l <<< "$missing") parts, $each a place"
    after=(--dependency="afterany:${array%%;*}")
fi
joined=$(sbatch --parsable ${after[@]+"${after[@]}"} --job-name=framepipe-join \
    --wrap "'$framepipe' join '$job'")
echo "join $joined; \`framepipe status $job\` shows how far it is"
