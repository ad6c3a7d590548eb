#!/usr/bin/env bash
# install-packages.sh PURPOSE...: installs the Debian packages of scripts/packages.txt for these purposes (build, test,
# check) that are missing. With all of them there it does nothing and asks nobody.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

missing=()
while read -r name purpose; do
  [[ -z "$name" || "$name" == "#"* ]] && continue
  [[ " $* " == *" $purpose "* ]] || continue
  status="$(dpkg-query --show --showformat='${db:Status-Status}' "$name" 2>/dev/null || true)"
  [[ "$status" == installed ]] || missing+=("$name")
done < packages.txt
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ "$(id -u)" -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "HaloGrad needs these Debian packages; install them as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing Debian packages: ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
