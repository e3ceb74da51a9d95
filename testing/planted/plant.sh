#!/usr/bin/env bash
# Plants bugs in a copy of an engine, one at a time, and reports whether the engine's tests find them.
#
#   testing/planted/plant.sh ENGINE [NAME...]                the bugs of ENGINE.mutations, or the named ones
#   testing/planted/plant.sh kv|pool --schedules [NAME...]   those of ENGINE.schedules.mutations, under explored schedules
#   testing/planted/plant.sh --check                         only check that every bug still fits the sources
#
# All bugs are built into one copy. Each is switched on by its name in the environment of the test program, so one
# build serves them all. The tests run without a bug first and must pass. Exit status 1: a bug was not found; 2: the
# run says nothing, as a build or a test fails without a bug, or a filter selects no test.
# A bug counts as found by an assertion if a test program stopped in the engine's own code, or if the engine returned
# an `Error::Bug`; otherwise a test's own check found it.
#
# Variables: SCRATCH, the folder of the copy and its build; REVISION, the commit to copy (default HEAD); SECONDS_MAX, the
# time limit of a test program, which counts as found when it is exceeded (default 600); WAIT_FOR, a file: no test
# starts while it exists.
#
# Lists: `@ NAME | PROGRAM:FILTER | SECONDS`, the file, the text to replace and its replacement. PROGRAM is a test
# program, `faults` by default (`log` for wal, `shuttle` under schedules), FILTER selects its tests, as in
# `lib:memtable::`. SECONDS is optional and overrides SECONDS_MAX.
set -euo pipefail
cd "$(dirname "$0")/../.."

# apply LIST TREE: replaces the texts of LIST in the files under TREE. Fails if a text is missing or occurs twice.
apply() {
  perl -0777 -e '
    my ($list, $tree) = @ARGV; my (%before, $count, $failed) = ();
    sub fail { print STDERR "$list: @_\n"; $failed = 1 }
    open my $in, "<", $list or die; my $text = <$in>;
    while ($text =~ /^@ (\S+) \| [^\n]+\n(\S+)\n<<<<\n(.*?)\n====\n(.*?)\n>>>>$/msg) {
      my ($name, $file, $old, $new) = ($1, $2, $3, $4);
      $count++;
      open my $f, "<", "$tree/$file" or do { fail("$name: no file $file"); next };
      my $source = <$f>; close $f;
      $before{$file} //= $source;
      my $times = () = $before{$file} =~ /\Q$old\E/g;
      my $at = index($source, $old);
      if ($times != 1 || $at < 0) { fail("$name: $file has the text to replace $times times, expected once"); next }
      substr($source, $at, length $old) = $new;
      open $f, ">", "$tree/$file" or die; print $f $source; close $f;
    }
    my $headings = () = $text =~ /^@ /mg;
    fail("$headings headings, but $count bugs could be read") if $headings != $count;
    exit($failed ? 2 : 0);' "$1" "$2"
}

if [ "${1:-}" = --check ]; then
  scratch="$(mktemp -d)"
  trap 'rm -rf "$scratch"' EXIT
  failed=0
  for list in testing/planted/*.mutations; do
    rm -rf "$scratch/crates" && cp -r crates "$scratch/"
    apply "$list" "$scratch" || failed=1
  done
  exit "$failed"
fi

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
  sql) crates="sql" programs=(--lib --test it) ;;
  *) echo "planted: which engine? kv, pool, table, wal, hash, index, lsm-policy, sim, workload or sql" >&2; exit 2 ;;
esac
shift
list="testing/planted/$engine.mutations" default=faults
case "$engine" in wal) default=log ;; sql) default=it ;; esac
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

# Each planted bug asks whether it is switched on.
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
apply "$list" "$tree"

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

# try NAME WHERE SECONDS: runs the tests with a bug switched on; true if they pass. Ends the script if none is selected.
try() {
  local program="$default" filter="$2"
  # A single colon: `basics::` is a module of the default program.
  if [[ "$filter" =~ ^([a-z_]+):([^:].*)?$ ]]; then
    program="${BASH_REMATCH[1]}" filter="${BASH_REMATCH[2]}"
  fi
  pause
  (cd "$tree/crates/$engine" && CAIRN_PLANTED="$1" timeout "$3" "${path[$program]}" -q "$filter" >"$scratch/$1.log" 2>&1) || return 1
  if grep -q '^test result: ok\. 0 passed;' "$scratch/$1.log"; then
    echo "planted: $list: the filter $2 selects no test" >&2
    exit 2
  fi
}

# finders LOG: the tests that failed; under explored schedules, with the number of schedules.
finders() {
  perl -ne '
    if (/^(\S+) --- FAILED$/) { push @before, $1 }
    if (/^---- (\S+) stdout/) { $test = $1; push @all, $test }
    $count{$test} += $1 if $test && /: (\d+) schedules, /;
    END {
      my @said = map { $_ . ($count{$_} ? " ($count{$_} schedules)" : "") } sort { ($count{$a} // 0) <=> ($count{$b} // 0) } @all;
      # After a timeout, only the names of the tests that had failed before are known.
      @said = (@before, "a test that did not end") if !@said;
      print join(" ", @said), "\n";
    }' "$1"
}

# assertion LOG: the engine's own check that stopped a test, as FILE:LINE, or nothing. Lines of a file of tests, or
# behind an inline `mod tests {`, are a test's own checks.
assertion() {
  perl -e '
    my ($log, $tree, $engine) = @ARGV;
    sub is_of_a_test {
      my ($crate, $file, $line) = @_;
      return 1 if $file =~ /(^|\/)(tests|testing|shuttle)(\/|\.rs)|_tests?\.rs/;
      open my $source, "<", "$tree/$crate$file" or return 0;
      while (<$source>) {
        return 0 if $. >= $line;
        return 1 if /^\s*(pub(\([a-z]+\))? )?mod tests \{/;
      }
      return 0;
    }
    open my $in, "<", $log or die "$log: $!\n";
    while (<$in>) {
      if (/panicked at (crates\/[\w-]+\/)?(src\/\S+?):(\d+):\d+:/) {
        my ($crate, $file, $line) = ($1 // "crates/$engine/", $2, $3);
        if (!is_of_a_test($crate, $file, $line)) { print "$file:$line\n"; exit }
      }
      if (/bug in Cairn at (?:\S*?crates\/[\w-]+\/)?(src\/\S+?):(\d+)/) { print "$1:$2\n"; exit }
    }' "$1" "$tree" "$engine"
}

mapfile -t bugs < <(perl -ne 'print "$1 $2 ", $3 // "-", "\n" if /^@ (\S+) \| (\S+)(?: \| (\d+))?$/' "$list")
if [ $# -eq 0 ]; then
  echo "planted: no bug; the tests must pass"
  for where in $(printf '%s\n' "${bugs[@]}" | cut -d' ' -f2 | sort -u); do
    try none "$where" "$limit" || { tail -20 "$scratch/none.log" >&2; exit 2; }
  done
fi
missed=0 found=0 asserted=0
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
    by="$(assertion "$scratch/$name.log")"
    [ -z "$by" ] || asserted=$((asserted + 1))
    echo "found      $name, by ${by:+the assertion at $by, in }$(finders "$scratch/$name.log")"
    found=$((found + 1))
  fi
done
echo "planted: $found found, $asserted of them by assertions; $missed not found"
[ "$missed" -eq 0 ]
