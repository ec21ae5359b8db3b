# The root process of every container of the Docker back-end: reads one line of bash after the other
# and obeys. `docker_stream.py` writes the lines and explains the protocol. Its argument is the
# largest size of a file that a command may write, in KiB.
#
# Needs bash 4.4, cat, env, mkdir and rm of the image, and for files head and GNU tar, or the engine
# does that. As process 1 it cannot be killed from inside, and it ends everything else by a builtin,
# whatever the limits left over.
exec 8>&1 9>&2 >/dev/null 2>/dev/null {null}<>/dev/null # which may not be there later
trap : HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM XCPU XFSZ VTALRM SYS
unset -v BASH_ENV ENV LD_PRELOAD LD_LIBRARY_PATH
LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin:$PATH
umask 022
set -m +o history
shopt -u nullglob failglob
most=$1 peak=0 job='' nonce='' out='' err='' feeder1='' feeder2='' muted1='' muted2=''
exec {hush}<> <(:)
cat=$(type -P cat)

nap() { local _; read -r -t "$1" -u "$hush" _; }

begin() { # NONCE: whatever the last command left on its pipes is cut off before this is said
    local pid others=''
    if [[ $job ]]; then
        wait "$job"
        job=''
    fi
    if [[ $out ]]; then
        for pid in /proc/[0-9]*; do
            pid=${pid#/proc/}
            [[ $pid = "$$" || $pid = "$feeder1" || $pid = "$feeder2" ]] || others=1
        done
        if [[ $others ]]; then # services may hold the pipes: somebody has to read them
            drain "$out"
            drain "$err"
            nap 0.01
        fi
        if [[ $feeder1 ]]; then
            kill -9 "$feeder1" "$feeder2"
            wait "$feeder1" "$feeder2"
        fi
        exec {out}>&- {err}>&-
        out='' err='' feeder1='' feeder2='' muted1='' muted2=''
    fi
    nonce=$1
    printf %s "$nonce" >&8
    printf %s "$nonce" >&9
}

say() { # STATUS: the answer, where there are no pipes of a command
    printf '%s%03d' "$nonce" "$1" >&8
    printf '%s%03d' "$nonce" "$1" >&9
}

feed() {
    (pass <&"$out" >&8) &
    feeder1=$!
    (pass <&"$err" >&9) &
    feeder2=$!
}

drain() { # FD: read what comes and forget it
    (pass </proc/self/fd/"$1" >&"$null") &
}

pass() { # From standard input to standard output, in a process of its own
    exec 8>&- 9>&- {out}>&- {err}>&- {hush}>&- {null}>&-
    if [[ -x $cat ]]; then exec "$cat"; fi
    pump
}

pump() { # As cat, for a container in which there is none any more
    local some status
    while :; do
        IFS= read -r -d '' -n 4096 -t 0.05 some
        status=$?
        if ((status == 0 && ${#some} < 4096)); then
            printf '%s\0' "$some"
        elif [[ $some ]]; then
            printf %s "$some"
        elif ((status && status < 128)); then
            return
        fi
    done
}

run() { # STDIN-FILE WORKDIR WORD...: a command in the background, which says its end itself
    local from=$1 at=$2
    shift 2
    exec {out}<> <(:)
    exec {err}<> <(:)
    feed
    (
        (
            exec <&"$null" >/proc/self/fd/"$out" 2>/proc/self/fd/"$err"
            [[ $from = /dev/null ]] || exec <"$from" || exit 126
            [[ $from = /dev/null ]] || rm -f -- "$from" 2>&"$null"
            exec 8>&- 9>&- {out}>&- {err}>&- {hush}>&- {null}>&-
            echo 300 >/proc/self/oom_score_adj
            trap '' XFSZ # a file that may not grow is an error to its writer, not its end
            ulimit -f "$most"
            cd -- "$at" || exit 126
            "$@"
        )
        status=$?
        printf '%s%03d' "$nonce" "$status" >&"$out"
        printf '%s%03d' "$nonce" "$status" >&"$err"
        exit "$status"
    ) &
    job=$!
}

freeze() { # Nobody changes a folder into a link while we look at it; fails when nobody is there
    local pid line turn
    [[ $$ = 1 ]] && kill -STOP -- -1 || return 1
    for ((turn = 0; turn < 200; turn++)); do
        for pid in /proc/[0-9]*; do
            [[ $pid != /proc/1 ]] && IFS= read -r line <"$pid/stat" || continue
            if [[ ${line##*) } != [TtZX]* ]]; then
                nap 0.001
                continue 2
            fi
        done
        return
    done
}

thaw() {
    [[ $$ != 1 ]] || kill -CONT -- -1
}

still() { # WORD...: do this while nobody else runs
    local status
    freeze
    "$@"
    status=$?
    thaw
    return "$status"
}

serve() { # WORD...: something of our own in the background, with no service that could hold a pipe
    freeze
    (
        (
            exec <&"$null" >&8 8>&- 9>&- {hush}>&- {null}>&-
            "$@"
        )
        status=$?
        thaw
        say "$status"
        exit "$status"
    ) &
    job=$!
}

finish() { # A command that was killed together with its teller, or whose output is thrown away
    local status
    [[ $job ]] || return 0
    kill -0 "$job" && return 0
    wait "$job"
    status=$?
    job=''
    if [[ ! $out ]]; then
        say "$status"
        return
    fi
    [[ $feeder1 ]] && kill -0 "$feeder1" && kill -0 "$feeder2" || feed
    if [[ $muted1 ]]; then printf '%s%03d' "$nonce" "$status" >&8; fi
    if [[ $muted2 ]]; then printf '%s%03d' "$nonce" "$status" >&9; fi
    printf '%s%03d' "$nonce" "$status" >&"$out"
    printf '%s%03d' "$nonce" "$status" >&"$err"
}

mute() { # 1 or 2: throw away what else comes on this stream
    local fd=$out
    [[ $job ]] || return 0
    [[ $1 = 1 ]] || fd=$err
    drain "$fd"
    if [[ $1 = 1 ]]; then
        kill -9 "$feeder1"
        feeder1=$! muted1=1
    else
        kill -9 "$feeder2"
        feeder2=$! muted2=1
    fi
}

break_off() { # The running command alone, which started no other
    [[ $job ]] || return 0
    kill -9 -- "-$job"
    wait "$job"
    thaw
    finish
}

sweep() { # End every process but this one; in process 1 only
    local turn
    [[ $$ = 1 ]] || return
    for ((turn = 0; turn < 2000; turn++)); do
        kill -9 -- -1 || break
        nap 0.005
    done
    if [[ $feeder1 ]]; then wait "$feeder1" "$feeder2"; fi
    feeder1='' feeder2=''
    finish
}

is_plain() { # PATH: whether no folder on the way is a link, save those of the system
    local rest=${1#/} path=''
    while [[ $rest = */* ]]; do
        path+=/${rest%%/*} rest=${rest#*/}
        [[ -L $path ]] || continue
        case $path in
            /bin | /sbin | /lib | /lib32 | /lib64 | /libx32 | /var/run | /var/lock) ;;
            *) return 1 ;;
        esac
    done
}

folders() { # PATH...: make them real folders, parents first
    local path
    for path; do
        [[ -d $path ]] && is_plain "$path/" && continue
        rm -rf -- "$path"
        mkdir -- "$path" || return 1
    done
}

missing() { # PATH...: which of these folders are not there, in order, each ended by a NUL
    local path
    for path; do
        [[ -d $path ]] && is_plain "$path/" || printf '%s\0' "$path" >&8
    done
}

unpack() { # BYTES FOLDER...: a tar archive of so many bytes follows
    local bytes=$1 bad=0
    shift
    folders "$@" || bad=1
    head -c "$bytes" | {
        ((bad)) || tar -x -f - -C / --recursive-unlink --numeric-owner --warning=none || bad=1
        cat >&"$null"
        exit "$bad"
    }
}

drop() { # PATH
    is_plain "$1" || return 0
    rm -rf -- "$1"
    [[ ! -e $1 && ! -L $1 ]] || is_empty "$1" # where something is mounted, the folder stays
}

is_empty() { # FOLDER
    local there
    [[ -d $1 && ! -L $1 ]] || return 1
    for there in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        [[ -e $there || -L $there ]] && return 1
    done
    return 0
}

tools() { # Whether unpack can be asked for
    type -P head && type -P tar
}

present() { # PATH...: which of these are there and not behind a link, each ended by a NUL
    local path
    for path; do
        if is_plain "$path" && [[ -e $path || -L $path ]]; then printf '%s\0' "$path" >&8; fi
    done
}

pack() { # PATH...: runs as a command
    local path there=()
    for path; do
        if is_plain "$path" && [[ -e $path || -L $path ]]; then there+=(".$path"); fi
    done
    ((${#there[@]})) || exit 0
    exec tar -c -f - -C / --format=gnu --hard-dereference --numeric-owner --one-file-system \
        --warning=none -- "${there[@]}"
}

report() { # FILE...: one line for each number of the kernel's, named by its file
    local file line
    for file; do
        [[ -r $file ]] || continue
        while IFS= read -r line; do
            printf '%s %s\n' "$file" "$line" >&8
        done <"$file"
    done
    printf 'peak %s\n' "$peak" >&8
}

sample() { # The most processes that were seen at once
    local now
    read -r now </sys/fs/cgroup/pids/pids.current || read -r now </sys/fs/cgroup/pids.current ||
        return
    if ((now > peak)); then peak=$now; fi
}

leave() {
    [[ ! $feeder1 ]] || kill -9 "$feeder1" "$feeder2"
    exit 0
}

# What is left of bytes that some tool should have taken is no line of ours, whatever it says.
IFS= read -r key || exit 0
while :; do
    line=''
    until IFS= read -r -t 0.25 part; do
        (($? > 128)) || leave # nobody holds the other end any more
        line+=$part
        sample
        finish
    done
    line+=$part
    [[ $line != "$key "* ]] || eval "${line#"$key "}"
done
