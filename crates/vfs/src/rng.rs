//! Randomness, under the control of the code that runs the engine.
//!
//! None of this is suitable for secrets. Seeded streams are xoshiro256++ (Blackman and Vigna,
//! "Scrambled Linear Pseudorandom Number Generators", ACM TOMS 2021). Their state is filled by
//! SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
//! 2014), as the authors of xoshiro advise.

use std::fmt::Debug;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// A source of random numbers.
pub trait Rng: Debug + Send {
    /// Returns 64 uniform bits.
    fn next_u64(&mut self) -> u64;

    /// Fills `bytes` with uniform bytes.
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// Returns a uniform number below `bound`; 0 when `bound` is 0. Unbiased (Lemire, "Fast Random
    /// Integer Generation in an Interval", 2019): a product whose low half falls in the uneven part
    /// is drawn again.
    fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let uneven = bound.wrapping_neg() % bound;
            while (product as u64) < uneven {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        let number = (product >> 64) as u64;
        debug_assert!(number < bound || bound == 0, "{number} is not below {bound}");
        number
    }

    /// Returns a uniform number in `0.0..1.0`, in steps of 2^-53.
    fn unit(&mut self) -> f64 {
        let number = (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64);
        debug_assert!((0.0..1.0).contains(&number), "{number} is not below 1");
        number
    }

    /// Returns true with probability `p`: never for `p <= 0`, always for `p >= 1`.
    fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}

/// A reproducible stream: equal seeds give equal numbers on every machine and in every version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeededRng {
    state: [u64; 4],
}

impl SeededRng {
    /// Creates the stream of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut seed = seed;
        let state = std::array::from_fn(|_| splitmix64(&mut seed));
        // The generator would give nothing but zeros. SplitMix64 is a bijection of its counter, so
        // four successive numbers differ.
        debug_assert!(state != [0; 4], "the seed gives the one state without numbers");
        SeededRng { state }
    }

    /// Returns an independent stream for a part of a run, named by `label`. The same stream and
    /// label always give the same child, and `self` does not advance, so adding a part leaves the
    /// numbers of the others unchanged.
    #[must_use]
    pub fn fork(&self, label: &str) -> SeededRng {
        // FNV-1a over the label, then SplitMix64 with each word of the state.
        let mut hash = label
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        for word in self.state {
            hash ^= word;
            hash = splitmix64(&mut hash);
        }
        SeededRng::new(hash)
    }

    /// Returns a digest of the state, to check that two runs drew the same numbers.
    pub fn fingerprint(&self) -> u64 {
        self.clone().next_u64()
    }
}

impl Rng for SeededRng {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        debug_assert!(self.state != [0; 4], "the generator has run into the state without numbers");
        result
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The kernel's randomness, at one system call per number: for seeds and unique names, not for
/// inner loops.
#[derive(Debug)]
pub struct SystemRng {
    /// The substitute if the kernel refuses after it has answered once.
    reserve: SeededRng,
}

impl SystemRng {
    /// Draws a first number from the kernel. Fails on kernels without `getrandom` (before 3.17) and
    /// where a sandbox forbids it.
    pub fn new() -> io::Result<Self> {
        Ok(SystemRng { reserve: SeededRng::new(system_u64()?) })
    }
}

impl Rng for SystemRng {
    fn next_u64(&mut self) -> u64 {
        system_u64().unwrap_or_else(|_| self.reserve.next_u64())
    }
}

fn system_u64() -> io::Result<u64> {
    let mut bytes = [0; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => {
                debug_assert!(count <= bytes.len() - filled);
                filled += count;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the generator is the published one. Method: the first outputs of the reference code
    /// for the state {1, 2, 3, 4}, and SplitMix64's for the seed 1234567.
    #[test]
    fn matches_the_published_generators() {
        let mut rng = SeededRng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
        let mut seed = 1_234_567;
        assert_eq!(splitmix64(&mut seed), 6_457_827_717_110_365_317);
        assert_eq!(splitmix64(&mut seed), 3_203_168_211_198_807_973);
    }

    /// Goal: `below` is in range and uniform. Method: 60,000 draws below 6; each face within 5 % of
    /// its share (a fair die leaves that band with probability under 1e-6).
    #[test]
    fn below_is_even() {
        let mut rng = SeededRng::new(7);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[rng.below(6) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
        let big = u64::MAX / 2 + 2; // half of all draws fall in the uneven part
        assert!((0..1_000).all(|_| rng.below(big) < big));
    }

    /// Goal: `chance` is exact at its ends and roughly right in the middle; `fill` leaves no byte
    /// out.
    #[test]
    fn chance_and_fill() {
        let mut rng = SeededRng::new(3);
        assert!((0..1_000).all(|_| rng.chance(1.0) && !rng.chance(0.0)));
        let hits = (0..10_000).filter(|_| rng.chance(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        let mut seen = [0_u8; 13];
        for _ in 0..20 {
            let mut bytes = [0; 13];
            rng.fill(&mut bytes);
            seen.iter_mut().zip(bytes).for_each(|(seen, byte)| *seen |= byte);
        }
        assert!(seen.iter().all(|&byte| byte != 0));
    }

    /// Goal: forks are reproducible, differ by label and by parent, and leave the parent alone.
    #[test]
    fn forks_are_independent() {
        let parent = SeededRng::new(1);
        let before = parent.fingerprint();
        let mut streams = [parent.fork("a"), parent.fork("b"), SeededRng::new(2).fork("a")];
        assert_eq!(parent.fingerprint(), before);
        assert_eq!(parent.fork("a"), streams[0]);
        let [a, b, c] = streams.each_mut().map(Rng::next_u64);
        assert!(a != b && a != c && b != c);
    }

    /// Goal: the kernel's numbers differ from one another.
    #[test]
    fn system_rng_varies() {
        let mut rng = SystemRng::new().unwrap();
        assert_ne!(rng.next_u64(), rng.next_u64());
    }
}
