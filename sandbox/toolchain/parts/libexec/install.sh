#!/bin/sh
# Stands in for uv's installer: nothing is fetched, uv and uvx are links into the toolchain.
set -eu
folder=${UV_INSTALL_DIR:-${XDG_BIN_HOME:-$HOME/.local/bin}}
mkdir -p "$folder"
rm -f "$folder/uv" "$folder/uvx" "$folder/env"
ln -s /ratchet-toolchain/bin/uv "$folder/uv"
ln -s /ratchet-toolchain/bin/uvx "$folder/uvx"
printf '#!/bin/sh\nexport PATH="%s:$PATH"\n' "$folder" >"$folder/env"
