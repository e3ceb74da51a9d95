#!/usr/bin/env bash
# Plants bugs in a copy of an engine, one at a time, and sees whether its tests notice.
#
#   testing/planted/plant.sh ENGINE [NAME...]                all bugs of ENGINE.mutations, or those named; see below for the engines
#   testing/planted/plant.sh kv|pool --schedules [NAME...]   those of kv.schedules.mutations, under explored schedules
#
# Every bug is built in behind a name that the test programs are given in their environment, so that one build does for all.
# The tests are first run with none of them and must pass. Ends with 1 if a bug was not found. SCRATCH is where the copy
# and its build go; REVISION is what is copied, HEAD unless set; SECONDS_MAX is how long a test may take before that
# counts as found, unless the bug says so itself. While the file WAIT_FOR is there, nothing is begun.
#
# Lists: `@ NAME | WHERE | SECONDS`, a file, and what to replace in it. WHERE is a program of tests and a filter, as in
# `lib:memtable::`; the program is `faults` where none is named, and SECONDS may be left out.
set -euo pipefail
cd "$(dirname "$0")/../.."
engine="${1:-}"
case "$engine" in
  kv) crates="kv wal" programs=(--lib --test faults --test limits) ;;
  pool) crates="pool" programs=(--lib --test faults --test basics) ;;
  table) crates="table pool wal" programs=(--lib --test faults --test it) ;;
  wal) crates="wal" programs=(--lib --test log) ;;
  hash) crates="hash" programs=(--lib --test table_faults) ;;
  index) crates="index" programs=(--lib) ;;
  sim) crates="sim" programs=(--lib) ;;
  lsm-policy) crates="lsm-policy" programs=(--lib) ;;
  workload) crates="workload" programs=(--lib) ;;
  *) echo "planted: which engine? kv, pool, table, wal, hash, index, lsm-policy, sim or workload" >&2; exit 2 ;;
esac
shift
list="testing/planted/$engine.mutations" default=faults
[ "$engine" != wal ] || default=log
if [ "${1:-}" = --schedules ]; then
  shift
  list="testing/planted/$engine.schedules.mutations" programs=(--lib --test shuttle) default=shuttle
  export RUSTFLAGS="--cfg cairn_shuttle"
fi
scratch="${SCRATCH:-$(mktemp -d)}"
revision="${REVISION:-HEAD}"
limit="${SECONDS_MAX:-600}"
tree="$scratch/tree"
rm -rf "$tree" && mkdir -p "$tree"
git archive "$revision" Cargo.toml Cargo.lock rustfmt.toml clippy.toml crates testing examples fuzz | tar -x -C "$tree"

pause() {
  while [ -n "${WAIT_FOR:-}" ] && [ -e "$WAIT_FOR" ]; do sleep 10; done
}

# What a mutation asks: is this one switched on?
for crate in $crates; do
  cat >>"$tree/crates/$crate/src/lib.rs" <<'RUST'

/// Whether this bug is planted in this run.
#[doc(hidden)]
#[allow(dead_code)]
pub(crate) fn planted(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("CAIRN_PLANTED").ok()).as_deref() == Some(name)
}
RUST
done
perl -0777 -e '
  my ($list, $tree) = @ARGV; my %before;
  open my $in, "<", $list or die; my $text = <$in>;
  while ($text =~ /^@ (\S+) \| [^\n]+\n(\S+)\n<<<<\n(.*?)\n====\n(.*?)\n>>>>$/msg) {
    my ($name, $file, $old, $new) = ($1, "$tree/$2", $3, $4);
    open my $f, "<", $file or die "$name: no $file\n"; my $source = <$f>; close $f;
    my $at = index($source, $old);
    die "$name: what it replaces is not in $file any more\n" if $at < 0;
    $before{$file} //= $source;
    my $count = () = $before{$file} =~ /\Q$old\E/g;
    die "$name: what it replaces is in $file $count times\n" if $count > 1;
    substr($source, $at, length $old) = $new;
    open $f, ">", $file or die; print $f $source; close $f;
  }' "$list" "$tree"

export CARGO_TARGET_DIR="$scratch/target" CARGO_PROFILE_DEV_OPT_LEVEL=1 RUST_BACKTRACE=0
pause
echo "planted: building"
(cd "$tree" && cargo test -q -p "cairn-$engine" "${programs[@]}" --no-run --message-format=json-render-diagnostics 2>"$scratch/build.log") \
  >"$scratch/build.json" || { cat "$scratch/build.log" >&2; exit 2; }
declare -A path
while read -r program; do
  name="$(basename "$program")"
  name="${name%-*}"
  path["${name/cairn_${engine//-/_}/lib}"]="$program"
done < <(perl -ne 'print "$1\n" if /"executable":"([^"]+)"/' "$scratch/build.json")

# try NAME WHERE SECONDS: runs the tests with a bug planted; true if they pass.
try() {
  local program="$default" filter="$2"
  # A colon, and no two: `basics::` is a module of the program that is asked anyway.
  if [[ "$filter" =~ ^([a-z_]+):([^:].*)?$ ]]; then
    program="${BASH_REMATCH[1]}" filter="${BASH_REMATCH[2]}"
  fi
  pause
  (cd "$tree/crates/$engine" && CAIRN_PLANTED="$1" timeout "$3" "${path[$program]}" -q "$filter" >"$scratch/$1.log" 2>&1)
}

# The tests that failed; where schedules are explored, with how many of them that took.
who_found() {
  perl -ne '
    if (/^(\S+) --- FAILED$/) { push @before, $1 }
    if (/^---- (\S+) stdout/) { $test = $1; push @all, $test }
    $count{$test} += $1 if $test && /: (\d+) schedules, /;
    END {
      my @said = map { $_ . ($count{$_} ? " ($count{$_} schedules)" : "") } sort { ($count{$a} // 0) <=> ($count{$b} // 0) } @all;
      # One that was stopped tells no more of the others than that they failed.
      @said = (@before, "a test that did not end") if !@said;
      print join(" ", @said), "\n";
    }' "$1"
}

mapfile -t bugs < <(perl -ne 'print "$1 $2 ", $3 // "-", "\n" if /^@ (\S+) \| (\S+)(?: \| (\d+))?$/' "$list")
[ "${#bugs[@]}" -eq "$(grep -c '^@ ' "$list")" ] || { echo "planted: a heading of $list is not understood" >&2; exit 2; }
if [ $# -eq 0 ]; then
  echo "planted: none, which must pass"
  for where in $(printf '%s\n' "${bugs[@]}" | cut -d' ' -f2 | sort -u); do
    try none "$where" "$limit" || { tail -20 "$scratch/none.log" >&2; exit 2; }
  done
fi
missed=0 found=0
for bug in "${bugs[@]}"; do
  read -r name where seconds <<<"$bug"
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then
    continue
  fi
  [ "$seconds" != - ] || seconds="$limit"
  if try "$name" "$where" "$seconds"; then
    echo "NOT FOUND  $name, by $where"
    missed=$((missed + 1))
  else
    echo "found      $name, by $(who_found "$scratch/$name.log")"
    found=$((found + 1))
  fi
done
echo "planted: $found found, $missed not found"
[ "$missed" -eq 0 ]
