//! Inverse hyperbolic functions, by the formulas of the C library that PostgreSQL calls. Rust's own
//! have other last digits.

use std::f64::consts::LN_2;

/// From here on, `x * x + 1` and `x * x` are the same number.
const LARGE: f64 = (1_u64 << 28) as f64;

pub(super) fn acosh(x: f64) -> f64 {
    if x >= LARGE {
        x.ln() + LN_2
    } else if x > 2.0 {
        (2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt())).ln()
    } else {
        let above = x - 1.0;
        (above + (2.0 * above + above * above).sqrt()).ln_1p()
    }
}

pub(super) fn asinh(x: f64) -> f64 {
    let size = x.abs();
    let value = if size < 1.0 / LARGE {
        return x;
    } else if size > LARGE {
        size.ln() + LN_2
    } else if size > 2.0 {
        (2.0 * size + 1.0 / ((x * x + 1.0).sqrt() + size)).ln()
    } else {
        let square = x * x;
        (size + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    value.copysign(x)
}

pub(super) fn atanh(x: f64) -> f64 {
    let size = x.abs();
    let value = if size < 1.0 / LARGE {
        return x;
    } else if size < 0.5 {
        let twice = size + size;
        0.5 * (twice + twice * size / (1.0 - size)).ln_1p()
    } else {
        0.5 * ((size + size) / (1.0 - size)).ln_1p()
    };
    value.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: PostgreSQL's digits in each range of the formulas, and its results at the ends.
    /// Method: values of PostgreSQL 15.
    #[test]
    fn digits_are_those_of_postgresql() {
        for (found, expected) in [
            (acosh(1.0), 0.0),
            (acosh(1.5), 0.9624236501192069),
            (acosh(2.5), 1.566799236972411),
            (acosh(7.3), 2.676296855958175),
            (acosh(1e9), 21.416413017506354),
            (asinh(1e-10), 1e-10),
            (asinh(0.7), 0.6526665660823557),
            (asinh(-2.5), -1.6472311463710958),
            (asinh(1e10), 23.7189981105004),
            (atanh(0.1), 0.10033534773107558),
            (atanh(-0.7), -0.8673005276940531),
            (atanh(1e-9), 1e-09),
            (asinh(2.0), 1.4436354751788103),
            (acosh(2.0), 1.3169578969248166),
            (atanh(0.99), 2.6466524123622457),
        ] {
            assert_eq!(found, expected);
        }
        assert!(acosh(f64::NAN).is_nan() && asinh(f64::NAN).is_nan() && atanh(f64::NAN).is_nan());
        assert_eq!(asinh(-0.0).to_bits(), (-0.0_f64).to_bits());
    }
}
