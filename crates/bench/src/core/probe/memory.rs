//! Memory latency by pointer chasing: the address of each load is the result of the previous one,
//! so that loads cannot overlap.

use cairn_vfs::{Clock, Rng, SeededRng};

use super::{elapsed_seconds, probe};
use crate::core::results::Probe;

/// Array sizes: first-level cache, second level, last level, and memory.
const SIZES: [usize; 4] = [32 << 10, 1 << 20, 16 << 20, 256 << 20];

const STEPS: usize = 1 << 20;

/// A cache line with the index of the next one.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(u32);

/// Measures the nanoseconds of a dependent load, for every size up to `bytes_max`. The arrays are
/// on ordinary pages, like an engine's heap, so the largest one includes the cost of address
/// translation.
pub fn latencies(clock: &dyn Clock, bytes_max: usize) -> Vec<Probe> {
    let sizes = SIZES.into_iter().filter(|&bytes| bytes <= bytes_max);
    sizes
        .map(|bytes| probe(format!("memory latency {}", size_name(bytes)), chase(clock, bytes), "ns"))
        .collect()
}

fn chase(clock: &dyn Clock, bytes: usize) -> f64 {
    let mut lines = vec![Line(0); bytes / size_of::<Line>()];
    link(&mut lines);
    let mut at = 0;
    let mut walk = |steps: usize| {
        for _ in 0..steps {
            at = lines[at as usize].0;
        }
        std::hint::black_box(at);
    };
    walk(STEPS / 8);
    elapsed_seconds(clock, || walk(STEPS)).1 * 1e9 / STEPS as f64
}

/// Links all lines into one cycle in random order (Sattolo's algorithm).
fn link(lines: &mut [Line]) {
    let mut rng = SeededRng::new(1);
    for (index, line) in lines.iter_mut().enumerate() {
        line.0 = index as u32;
    }
    for index in (1..lines.len()).rev() {
        let other = rng.below(index as u64) as usize;
        lines.swap(index, other);
    }
}

fn size_name(bytes: usize) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the chase visits every line before it returns to the first, so that no part of the
    /// array stays in a nearer cache.
    #[test]
    fn links_make_one_cycle() {
        let mut lines = vec![Line(0); 1_000];
        link(&mut lines);
        let mut at = 0;
        let mut steps = 0;
        loop {
            at = lines[at].0 as usize;
            steps += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(steps, 1_000);
    }
}
