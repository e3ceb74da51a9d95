#!/usr/bin/env bash
# Plants bugs in a copy of the key-value store, one at a time, and sees whether tests/faults notices.
#
#   testing/planted/kv.sh [NAME...]     all bugs of kv.mutations, or those named
#
# Every bug is built in behind a name that the test program is given in its environment, so that one build does for all.
# The tests are first run with none of them and must pass. Ends with 1 if a bug was not found. SCRATCH is where the copy
# and its build go; REVISION is what is copied, HEAD unless set; SECONDS_MAX is how long a test may take before that counts as found.
set -euo pipefail
cd "$(dirname "$0")/../.."
scratch="${SCRATCH:-$(mktemp -d)}"
revision="${REVISION:-HEAD}"
limit="${SECONDS_MAX:-600}"
tree="$scratch/tree"
rm -rf "$tree" && mkdir -p "$tree"
git archive "$revision" Cargo.toml Cargo.lock rustfmt.toml clippy.toml crates testing | tar -x -C "$tree"

# What a mutation asks: is this one switched on?
for crate in kv wal; do
  cat >>"$tree/crates/$crate/src/lib.rs" <<'RUST'

/// Whether this bug is planted in this run.
#[doc(hidden)]
pub(crate) fn planted(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("CAIRN_PLANTED").ok()).as_deref() == Some(name)
}
RUST
done
perl -0777 -e '
  my ($list, $tree) = @ARGV;
  open my $in, "<", $list or die; my $text = <$in>;
  while ($text =~ /^@ (\S+) \| (\S+)\n(\S+)\n<<<<\n(.*?)\n====\n(.*?)\n>>>>$/msg) {
    my ($name, $file, $old, $new) = ($1, "$tree/$3", $4, $5);
    open my $f, "<", $file or die "$name: no $file\n"; my $source = <$f>; close $f;
    my $at = index($source, $old);
    die "$name: what it replaces is not in $file any more\n" if $at < 0;
    substr($source, $at, length $old) = $new;
    open $f, ">", $file or die; print $f $source; close $f;
  }' testing/planted/kv.mutations "$tree"

export CARGO_TARGET_DIR="$scratch/target" CARGO_PROFILE_DEV_OPT_LEVEL=1 RUST_BACKTRACE=0
echo "planted: building"
program=$(cd "$tree" && cargo test -q -p cairn-kv --test faults --no-run --message-format=json 2>"$scratch/build.log" |
  perl -ne 'print "$1\n" if /"executable":"([^"]*faults-[^"]*)"/' | tail -1)
[ -n "$program" ] || { cat "$scratch/build.log" >&2; exit 2; }

mapfile -t bugs < <(perl -ne 'print "$1 $2\n" if /^@ (\S+) \| (\S+)/' testing/planted/kv.mutations)
if [ $# -eq 0 ]; then
  echo "planted: none, which must pass"
  (cd "$tree/crates/kv" && timeout "$limit" "$program" -q >"$scratch/none.log" 2>&1) || { tail -20 "$scratch/none.log" >&2; exit 2; }
fi
missed=0 found=0
for bug in "${bugs[@]}"; do
  name="${bug%% *}" where="${bug##* }"
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then
    continue
  fi
  if (cd "$tree/crates/kv" && CAIRN_PLANTED="$name" timeout "$limit" "$program" -q "$where" >"$scratch/$name.log" 2>&1); then
    echo "NOT FOUND  $name, by $where"
    missed=$((missed + 1))
  else
    by=$(grep -o '^    [a-z_]*::[a-z_]*$' "$scratch/$name.log" | sort -u | tr -d ' ' | paste -sd' ' || true)
    echo "found      $name, by ${by:-a test that did not end}"
    found=$((found + 1))
  fi
done
echo "planted: $found found, $missed not found"
[ "$missed" -eq 0 ]
