# Sourced by start and test: finds a Python, makes .venv in the clone, installs into it when needed.
# Written for bash 3.2 (macOS) and newer.

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# A python that a shell activated for another project must not leak into ours.
unset PYTHONHOME PYTHONPATH VIRTUAL_ENV
export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1

on_debian() { [ -f /etc/debian_version ] && command -v apt-get >/dev/null 2>&1; }
is_root() { [ "$(id -u)" = 0 ]; }

apt_install() { # packages…
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

is_suitable() { # python: runs, and is 3.11 or newer
  "$1" -c 'import sqlite3, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() { # sets PYTHON
  local candidate folder
  if [ -n "${PYTHON:-}" ]; then
    is_suitable "$PYTHON" || die "PYTHON=$PYTHON is not a Python 3.11 or newer (with sqlite3)."
    return
  fi
  for candidate in python3 python3.13 python3.12 python3.11 python3.14 python; do
    if is_suitable "$candidate"; then PYTHON=$candidate; return; fi
  done
  # Not on the PATH of a bare shell: Homebrew and python.org on macOS.
  for folder in /opt/homebrew/bin /usr/local/bin /Library/Frameworks/Python.framework/Versions/Current/bin; do
    for candidate in "$folder"/python3 "$folder"/python3.1[1-9]; do
      if is_suitable "$candidate"; then PYTHON=$candidate; return; fi
    done
  done
  say "hermes-nb needs Python 3.11 or newer, and none was found." >&2
  if on_debian; then
    say "Install it:  sudo apt-get install python3 python3-venv   (Debian 12, Ubuntu 24.04 or newer)" >&2
  elif [ "$(uname -s)" = Darwin ]; then
    say "Install it:  brew install python@3.13   or from https://www.python.org/downloads/" >&2
  else
    say "Install it from your system's packages or https://www.python.org/downloads/" >&2
  fi
  die "then run this again (or set PYTHON=/path/to/python3)."
}

need_venv() { # Debian keeps ensurepip in a package of its own
  "$PYTHON" -c 'import ensurepip, venv; ensurepip.version()' >/dev/null 2>&1 && return
  local package
  package="python$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
  if on_debian && is_root; then
    say "Installing $package (Debian keeps Python's venv module there) …"
    apt_install "$package" || apt_install python3-venv || die "$package could not be installed; see the lines above."
    "$PYTHON" -c 'import ensurepip, venv; ensurepip.version()' >/dev/null 2>&1 && return
  fi
  if on_debian; then die "$PYTHON has no venv module. Run:  sudo apt-get install python3-venv   and then this again."; fi
  die "$PYTHON has no venv or ensurepip module. Install a complete Python 3.11 or newer, or set PYTHON=/path/to/one."
}

# What an install depends on. A clone that was moved, or another Python, needs a new environment.
stamp_of() { # extra
  printf '%s\n%s\n%s\n' "$CLONE" "$("$VENV/bin/python" -c 'import sys; print(sys.version)' 2>/dev/null)" \
    "$1 $(cksum < "$CLONE/pyproject.toml")"
}

prepare_environment() { # extra; sets VENV and VENV_PYTHON, CLONE must be set
  local extra=$1 stamp
  VENV=$CLONE/.venv
  VENV_PYTHON=$VENV/bin/python
  stamp=$VENV/.installed-$extra
  if is_suitable "$VENV_PYTHON" && [ "$(cat "$stamp" 2>/dev/null)" = "$(stamp_of "$extra")" ]; then return; fi
  if ! is_suitable "$VENV_PYTHON" || [ "$(cat "$VENV/.clone" 2>/dev/null)" != "$CLONE" ]; then
    find_python
    need_venv
    say "Making .venv with $("$PYTHON" --version 2>&1) …"
    "$PYTHON" -m venv --clear "$VENV" || die "the environment .venv could not be made; see the lines above."
    printf '%s\n' "$CLONE" > "$VENV/.clone"
  fi
  say "Installing hermes-nb[$extra] into .venv (a few minutes the first time) …"
  "$VENV_PYTHON" -m pip install --quiet -e "$CLONE[$extra]" \
    || die "the installation failed; see the lines above. Nothing outside .venv was changed; run this again to go on."
  # pip compiles what it installs, but not a package that stays in its clone; each kernel would do it anew.
  "$VENV_PYTHON" -m compileall -q "$CLONE/hermes_nb" || true
  stamp_of "$extra" > "$stamp"
}
