//! Measures the cost of the suite's own loops: generated keys and values, checked answers, calls
//! through `dyn`, everything except a store.

use cairn_vfs::{Clock, SystemClock};

use super::keys::{KeyMaker, Order, Tape};
use super::options::Options;
use super::values::Values;
use crate::core::error::Result;
use crate::core::probe::probe;
use crate::core::results::Probe;
use crate::stores::kv::{KvBatch, KvSession};

/// Probe of puts.
pub const PUT: &str = "load generation, put";
/// Probe of gets.
pub const GET: &str = "load generation, get";

const OPERATIONS: u64 = 200_000;
const PASSES: usize = 5;
const ANSWERS_BYTES: usize = 2 << 20;

/// A store that keeps nothing and answers every key with a correct value.
struct Nothing {
    /// Prepared values, one after another.
    answers: Vec<u8>,
    size: usize,
    next: usize,
}

impl KvSession for Nothing {
    #[inline(never)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        std::hint::black_box((key.as_ptr(), value.as_ptr()));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        std::hint::black_box(key.as_ptr());
        Ok(())
    }

    fn write_batch(&mut self, _: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn get(&mut self, _: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let end = self.next + self.size;
        visit(&self.answers[self.next..end]);
        self.next = if end + self.size > self.answers.len() { 0 } else { end };
        Ok(true)
    }

    fn scan(&mut self, _: &[u8], _: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        Ok(())
    }
}

/// Returns both costs in ns per operation, the best of several passes.
pub(super) fn probes(options: &Options) -> Result<Vec<Probe>> {
    let maker = KeyMaker::new(options.key_bytes.max(16), OPERATIONS)?;
    let tape = Tape::new(maker, Order::Sequential { first: 0 }.numbers(OPERATIONS));
    let size = options.value_bytes.unwrap_or(8);
    let mut values = Values::new(size)?;
    let clock = SystemClock::new();
    // Large values are limited to the size of a cache, because the cost of fetching them from
    // memory belongs to the stores.
    let prepared = (ANSWERS_BYTES / size).clamp(1, OPERATIONS as usize) as u64;
    let answers: Vec<u8> = (0..prepared).flat_map(|number| values.make(number, 1).to_vec()).collect();
    let mut nothing = Nothing { answers, size, next: 0 };
    let (mut put, mut get) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..PASSES {
        let session: &mut dyn KvSession = std::hint::black_box(&mut nothing);
        let start = clock.now();
        for (number, key) in tape.iter() {
            session.put(key, values.make(number, 1))?;
        }
        put = put.min((clock.now() - start).as_secs_f64());
    }
    for _ in 0..PASSES {
        nothing.next = 0;
        let session: &mut dyn KvSession = std::hint::black_box(&mut nothing);
        let (start, mut wrong) = (clock.now(), 0);
        for (number, key) in tape.iter() {
            let mut right = false;
            session.get(key, &mut |value| right = values.is(number % prepared, 1, value))?;
            wrong += u64::from(!right);
        }
        get = get.min((clock.now() - start).as_secs_f64());
        debug_assert_eq!(wrong, 0);
        std::hint::black_box(wrong);
    }
    let each = |seconds: f64| seconds * 1e9 / OPERATIONS as f64;
    Ok(vec![probe(PUT, each(put), "ns"), probe(GET, each(get), "ns")])
}
