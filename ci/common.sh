# Shared by ci/try and ci/test. Sourced from the repository's root, under set -eu.

# Where the build goes; a test of the README points it at the tree it runs in.
build=${GCK_BUILD_DIR:-build}

listed_packages() {
  sed -e 's/#.*//' -e '/^[[:space:]]*$/d' ci/packages
}

missing_packages() {
  for package in $(listed_packages); do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

# "" for root, "sudo" where it works without asking or can ask on a terminal; fails otherwise.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then return 0; fi
  command -v sudo >/dev/null || return 1
  if sudo -n true 2>/dev/null; then echo "sudo -n"; return 0; fi
  if [ -t 0 ] && [ -t 2 ]; then echo sudo; return 0; fi
  return 1
}

# Installs what ci/packages lists and dpkg does not know as installed. Exit 3, the environment cannot, where it may not.
install_missing() {
  if ! command -v dpkg-query >/dev/null; then
    echo "ci: not a Debian system; these are needed under whatever names they have here:" $(listed_packages) >&2
    return 0
  fi
  missing=$(missing_packages)
  if [ -z "$missing" ]; then return 0; fi
  if ! root=$(as_root); then
    echo "ci: these Debian packages are missing, and neither root nor sudo is there to install them:" >&2
    echo $missing
    echo "ci: apt-get install" $missing >&2
    exit 3
  fi
  echo "ci: installing" $missing >&2
  DEBIAN_FRONTEND=noninteractive
  export DEBIAN_FRONTEND
  $root apt-get update -qq >&2 || exit 3
  $root apt-get install -y -qq --no-install-recommends $missing >&2 || exit 3
}

# Configures once (CMake notices changes itself after that) and builds.
configure_and_build() {
  if [ ! -f "$build/CMakeCache.txt" ]; then cmake --preset default -B "$build" >&2; fi
  cmake --build "$build" >&2
}
