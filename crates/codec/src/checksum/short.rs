//! XXH3 of 4 to 16 bytes, after its published specification.

/// Pairs of words of XXH3's default secret: bytes 8 and 16, 24 and 32, 40 and 48, each xored.
const FLIP_4_TO_8: u64 = 0xc73a_b174_c5ec_d5a2;
const FLIP_LOW: u64 = 0x6782_737b_ea42_39b9;
const FLIP_HIGH: u64 = 0xaf56_bc3b_0996_523a;

const MIX_4_TO_8: u64 = 0x9fb2_1c65_1e98_df25;
const MIX: u64 = 0x1656_6791_9e37_79f9;

/// Of other lengths it is something else.
#[inline(always)]
pub(super) fn hash(bytes: &[u8], seed: u64) -> u64 {
    let len = bytes.len() as u64;
    if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk())
        && len > 8
    {
        let low = u64::from_le_bytes(*low) ^ FLIP_LOW.wrapping_add(seed);
        let high = u64::from_le_bytes(*high) ^ FLIP_HIGH.wrapping_sub(seed);
        let product = u128::from(low) * u128::from(high);
        let folded = product as u64 ^ (product >> 64) as u64;
        let sum = len.wrapping_add(low.swap_bytes()).wrapping_add(high).wrapping_add(folded);
        let mixed = (sum ^ (sum >> 37)).wrapping_mul(MIX);
        return mixed ^ (mixed >> 32);
    }
    let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) else { return 0 };
    let seed = seed ^ u64::from((seed as u32).swap_bytes()) << 32;
    let both = u64::from(u32::from_le_bytes(*last)) | u64::from(u32::from_le_bytes(*first)) << 32;
    let keyed = both ^ FLIP_4_TO_8.wrapping_sub(seed);
    let mixed = (keyed ^ keyed.rotate_left(49) ^ keyed.rotate_left(24)).wrapping_mul(MIX_4_TO_8);
    let mixed = (mixed ^ (mixed >> 35).wrapping_add(len)).wrapping_mul(MIX_4_TO_8);
    mixed ^ (mixed >> 28)
}
