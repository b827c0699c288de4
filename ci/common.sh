# Shared by ci/try and ci/test. Sourced from the repository's root, under set -eu.

listed_packages() {
  sed -e 's/#.*//' -e '/^[[:space:]]*$/d' ci/packages
}

missing_packages() {
  dpkg-query -W -f='${db:Status-Status} ${binary:Package}\n' $(listed_packages) 2>/dev/null |
    sed -n 's/^installed \([^:]*\).*/\1/p' >"$1"
  listed_packages | grep -vxFf "$1" || true
}

# "" for root, sudo where it works without asking or can ask on a terminal; fails otherwise.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then return 0; fi
  command -v sudo >/dev/null || return 1
  if sudo -n true 2>/dev/null; then echo "sudo -n"; return 0; fi
  if [ -t 0 ] && [ -t 2 ]; then echo sudo; return 0; fi
  return 1
}

# Installs what ci/packages lists and dpkg does not know as installed. Where it may not, prints the list and exits 3: the
# environment cannot. GCK_NO_INSTALL=1 only prints.
install_missing() {
  if ! command -v dpkg-query >/dev/null; then
    echo "ci: not a Debian system; needed, under whatever names they have here:" $(listed_packages) >&2
    return 0
  fi
  known=$(mktemp)
  missing=$(missing_packages "$known")
  rm -f "$known"
  if [ -z "$missing" ]; then return 0; fi
  if [ -n "${GCK_NO_INSTALL:-}" ]; then
    echo "ci: missing, and not installed:" $missing >&2
    return 0
  fi
  if ! root=$(as_root); then
    echo "ci: these Debian packages are missing, and neither root nor sudo is here to install them:" >&2
    echo "apt-get install" $missing
    exit 3
  fi
  echo "ci: installing" $missing >&2
  $root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || exit 3
  $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2 || exit 3
}

# Configures once (CMake notices changes itself after that) and builds.
configure_and_build() {
  if [ ! -f build/build.ninja ]; then cmake --preset default >&2; fi
  cmake --build build >&2
}
