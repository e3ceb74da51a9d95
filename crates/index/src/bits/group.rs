//! Groups of 64 packed values, with the width as a compile-time constant. All shifts are then
//! constants, and a value costs a load, a shift, a mask and a store (after Lemire and Boytsov,
//! "Decoding billions of integers per second through vectorization", 2015).
//!
//! The same loops are compiled twice. For AVX2, which shifts four values at once, each by its own
//! count, the compiler vectorizes them: `objdump -d` shows `vpsrlvq` and a third of the
//! instructions for narrow values. Other processors run the plain form.
#![allow(unsafe_code)]

use super::{GROUP, mask};

/// Unpacks each value of a group with its own code. The compiler does not unroll a loop of 64
/// iterations, and would compute its shifts at run time.
macro_rules! unrolled {
    ($words:ident, $out:ident, $width:ident; $($index:literal)*) => {
        $({
            let (at, shift) = ($index * $width / 64, $index * $width % 64);
            let mut bits = $words[at] >> shift;
            if shift + $width > 64 {
                bits |= $words[at + 1] << (64 - shift);
            }
            $out[$index] = bits & mask($width as u32);
        })*
    };
}

/// Unpacks one group of a constant width.
#[inline(always)]
fn group_of<const WIDTH: usize>(bytes: &[u8], out: &mut [u64]) {
    const { assert!(WIDTH >= 1 && WIDTH <= 64, "a width of a value") };
    debug_assert!(bytes.len() >= WIDTH * 8, "a group of {WIDTH} bits has {} bytes", bytes.len());
    debug_assert_eq!(out.len(), GROUP);
    let (Some(bytes), Ok(out)) = (bytes.get(..WIDTH * 8), <&mut [u64; GROUP]>::try_from(out)) else { return };
    let mut words = [0u64; WIDTH];
    for (word, eight) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        let mut buf = [0; 8];
        buf.copy_from_slice(eight);
        *word = u64::from_le_bytes(buf);
    }
    unrolled!(words, out, WIDTH;
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
        16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
        48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63);
}

/// Returns the sum of one group.
#[inline(always)]
fn group_sum<const WIDTH: usize>(bytes: &[u8]) -> u64 {
    let mut values = [0; GROUP];
    group_of::<WIDTH>(bytes, &mut values);
    values.iter().sum()
}

/// Returns the minimum and the maximum of `values` as signed integers; of no values, `i64::MAX` and
/// `i64::MIN`.
#[inline(always)]
fn extremes_of(values: &[u64]) -> (i64, i64) {
    values
        .iter()
        .fold((i64::MAX, i64::MIN), |(least, most), &value| (least.min(value as i64), most.max(value as i64)))
}

/// Returns true if one of `values` is at most `span` above `least` in wrapping arithmetic. Does not
/// stop early, because that would prevent vectorization.
#[inline(always)]
fn any_within_of(values: &[u64], least: u64, span: u64) -> bool {
    values.iter().fold(false, |found, value| found | (value.wrapping_sub(least) <= span))
}

macro_rules! by_width {
    ($width:expr, $call:ident $arguments:tt, $other:expr; $($w:literal)*) => {
        match $width {
            $($w => $call::<$w> $arguments,)*
            _ => $other,
        }
    };
}

/// Defines all functions for the processors that `$target` selects.
macro_rules! groups {
    ($(#[$target:meta])*) => {
        $(#[$target])*
        pub(super) fn sum(bytes: &[u8], width: u32) -> u64 {
            by_width!(width, group_sum(bytes), 0;
                1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
                33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58)
        }

        $(#[$target])*
        pub(super) fn extremes(values: &[u64]) -> (i64, i64) {
            extremes_of(values)
        }

        $(#[$target])*
        pub(super) fn any_within(values: &[u64], least: u64, span: u64) -> bool {
            any_within_of(values, least, span)
        }

        $(#[$target])*
        pub(super) fn unpack(bytes: &[u8], width: u32, out: &mut [u64]) {
            by_width!(width, group_of(bytes, out), {};
                1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
                33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64);
        }
    };
}

mod plain {
    use super::{any_within_of, extremes_of, group_of, group_sum};

    groups!();
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{any_within_of, extremes_of, group_of, group_sum};

    groups!(#[target_feature(enable = "avx2")]);
}

/// Returns the sum of 64 values of at most 58 bits.
pub(super) fn sum_group(bytes: &[u8], width: u32) -> u64 {
    debug_assert!((1..=58).contains(&width), "the sum of values of {width} bits may overflow");
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { wide::sum(bytes, width) };
    }
    plain::sum(bytes, width)
}

/// Unpacks the 64 values of a group into `out`.
pub(super) fn unpack_group(bytes: &[u8], width: u32, out: &mut [u64]) {
    debug_assert!((1..=64).contains(&width), "{width} bits");
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { wide::unpack(bytes, width, out) };
    }
    plain::unpack(bytes, width, out);
}

/// Returns the minimum and the maximum of `values` as signed integers; of no values, `i64::MAX` and
/// `i64::MIN`.
pub(crate) fn extremes(values: &[u64]) -> (i64, i64) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { wide::extremes(values) };
    }
    plain::extremes(values)
}

/// Returns true if one of `values` is at most `span` above `least` in wrapping arithmetic.
pub(crate) fn any_within(values: &[u64], least: u64, span: u64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: this processor has AVX2.
        return unsafe { wide::any_within(values, least, span) };
    }
    plain::any_within(values, least, span)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: both forms unpack the packed values, at every width. Method: 64 values with mixed
    /// bits, compared between both forms and with the plain definition.
    #[test]
    fn forms_agree() {
        for width in 1..=64u32 {
            let values: Vec<u64> = (1..=GROUP as u64)
                .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(width) & mask(width))
                .collect();
            let mut bytes = Vec::new();
            super::super::pack(values.iter().copied(), width, &mut bytes);
            let mut out = [0; GROUP];
            plain::unpack(&bytes, width, &mut out);
            assert_eq!(&out[..], values, "plain, width {width}");
            out = [0; GROUP];
            unpack_group(&bytes, width, &mut out);
            assert_eq!(&out[..], values, "as this processor has it, width {width}");
            let signed = values.iter().map(|value| *value as i64);
            let want = signed.clone().min().zip(signed.max());
            assert_eq!(Some(plain::extremes(&values)), want, "plain, width {width}");
            assert_eq!(Some(extremes(&values)), want, "as this processor has it, width {width}");
            for (least, span) in
                [(values[7], 0), (values[7].wrapping_add(1), 0), (values[3], values[9]), (5, u64::MAX)]
            {
                let want = values.iter().any(|value| value.wrapping_sub(least) <= span);
                assert_eq!(plain::any_within(&values, least, span), want, "plain, width {width}");
                assert_eq!(any_within(&values, least, span), want, "as this processor has it, width {width}");
            }
            if width <= 58 {
                let sum: u64 = values.iter().sum();
                assert_eq!(
                    (plain::sum(&bytes, width), sum_group(&bytes, width)),
                    (sum, sum),
                    "width {width}"
                );
            }
        }
    }
}
