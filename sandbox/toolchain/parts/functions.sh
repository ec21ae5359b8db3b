# Sourced by every bash that starts below the tests (BASH_ENV). Only the scripts of the tests get
# these functions, which come before any PATH that a script sets for itself.
case $0 in
/tests/*.sh) ;;
*) return 0 ;;
esac
apt() { /ratchet-toolchain/bin/apt "$@"; }
apt-get() { /ratchet-toolchain/bin/apt-get "$@"; }
curl() { /ratchet-toolchain/bin/curl "$@"; }
wget() { /ratchet-toolchain/bin/wget "$@"; }
uv() { /ratchet-toolchain/bin/uv "$@"; }
uvx() { /ratchet-toolchain/bin/uvx "$@"; }
pip() { /ratchet-toolchain/bin/pip "$@"; }
pip3() { /ratchet-toolchain/bin/pip3 "$@"; }
pytest() { /ratchet-toolchain/bin/pytest "$@"; }
__ratchet_python() {
    local name=$1
    shift
    case "${1-} ${2-}" in
    "-m pytest") /ratchet-toolchain/libexec/tests "$RATCHET_KIND" "$name" module "${@:3}" ;;
    "-m pip") /ratchet-toolchain/bin/pip "${@:3}" ;;
    *) command "$name" "$@" ;;
    esac
}
if type -P python >/dev/null; then python() { __ratchet_python python "$@"; }; fi
if type -P python3 >/dev/null; then python3() { __ratchet_python python3 "$@"; }; fi
