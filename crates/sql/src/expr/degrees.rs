//! Trigonometry in degrees, with PostgreSQL's digits.
//!
//! A multiple of 30 or 45 degrees has an exact result: the functions are computed in the first
//! quadrant from pieces that are scaled to be exact at 30, 45 and 60 degrees, and continued by
//! symmetry. The pieces are computed by the system's library, as in PostgreSQL, because another
//! order of operations would have other last digits.

use std::f64::consts::PI;

const RADIANS_PER_DEGREE: f64 = PI / 180.0;

pub(super) fn to_degrees(radians: f64) -> f64 {
    radians / RADIANS_PER_DEGREE
}

pub(super) fn to_radians(degrees: f64) -> f64 {
    degrees * RADIANS_PER_DEGREE
}

/// Scales a result so that the result for `at` becomes `exact`.
fn scaled(function: fn(f64) -> f64, x: f64, at: f64, exact: f64) -> f64 {
    function(x) / function(at) * exact
}

/// The sine of 0 to 30 degrees.
fn small_sine(degrees: f64) -> f64 {
    to_radians(degrees).sin() / to_radians(30.0).sin() / 2.0
}

/// The cosine of 0 to 60 degrees.
fn small_cosine(degrees: f64) -> f64 {
    let below_one = 1.0 - to_radians(degrees).cos();
    1.0 - below_one / (1.0 - to_radians(60.0).cos()) / 2.0
}

/// The sine of 0 to 90 degrees.
fn quadrant_sine(degrees: f64) -> f64 {
    if degrees <= 30.0 { small_sine(degrees) } else { small_cosine(90.0 - degrees) }
}

/// The cosine of 0 to 90 degrees.
fn quadrant_cosine(degrees: f64) -> f64 {
    if degrees <= 60.0 { small_cosine(degrees) } else { small_sine(90.0 - degrees) }
}

/// Reduces an angle to the first quadrant. Returns it, and whether the reduction mirrored it at 0
/// or 180 degrees, and at 90 degrees.
fn reduced(degrees: f64) -> (f64, bool, bool) {
    let turned = degrees % 360.0;
    let (turned, is_negative) = if turned < 0.0 { (-turned, true) } else { (turned, false) };
    let (turned, is_mirrored) =
        if turned > 180.0 { (360.0 - turned, !is_negative) } else { (turned, is_negative) };
    if turned > 90.0 { (180.0 - turned, is_mirrored, true) } else { (turned, is_mirrored, false) }
}

fn with_sign(value: f64, is_negative: bool) -> f64 {
    if is_negative { -value } else { value }
}

pub(super) fn sine(degrees: f64) -> f64 {
    let (angle, is_mirrored, _) = reduced(degrees);
    with_sign(quadrant_sine(angle), is_mirrored)
}

pub(super) fn cosine(degrees: f64) -> f64 {
    let (angle, _, is_obtuse) = reduced(degrees);
    with_sign(quadrant_cosine(angle), is_obtuse)
}

pub(super) fn tangent(degrees: f64) -> f64 {
    let (angle, is_mirrored, is_obtuse) = reduced(degrees);
    let at_45 = quadrant_sine(45.0) / quadrant_cosine(45.0);
    let value = quadrant_sine(angle) / quadrant_cosine(angle) / at_45;
    without_sign_of_zero(with_sign(value, is_mirrored != is_obtuse))
}

pub(super) fn cotangent(degrees: f64) -> f64 {
    let (angle, is_mirrored, is_obtuse) = reduced(degrees);
    let at_45 = quadrant_cosine(45.0) / quadrant_sine(45.0);
    let value = quadrant_cosine(angle) / quadrant_sine(angle) / at_45;
    without_sign_of_zero(with_sign(value, is_mirrored != is_obtuse))
}

fn without_sign_of_zero(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value }
}

/// The arc sine of 0 to 1.
fn positive_arc_sine(x: f64) -> f64 {
    if x <= 0.5 { scaled(f64::asin, x, 0.5, 30.0) } else { 90.0 - scaled(f64::acos, x, 0.5, 60.0) }
}

/// The arc sine of a number between -1 and 1.
pub(super) fn arc_sine(x: f64) -> f64 {
    if x >= 0.0 { positive_arc_sine(x) } else { -positive_arc_sine(-x) }
}

/// The arc cosine of a number between -1 and 1.
pub(super) fn arc_cosine(x: f64) -> f64 {
    match x {
        ..0.0 => 90.0 + positive_arc_sine(-x),
        ..=0.5 => 90.0 - scaled(f64::asin, x, 0.5, 30.0),
        _ => scaled(f64::acos, x, 0.5, 60.0),
    }
}

pub(super) fn arc_tangent(x: f64) -> f64 {
    scaled(f64::atan, x, 1.0, 45.0)
}

/// The angle whose tangent is `y` / `x`.
pub(super) fn angle(y: f64, x: f64) -> f64 {
    y.atan2(x) / 1_f64.atan() * 45.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: multiples of 30 and 45 degrees have exact results, with the signs of their quadrants,
    /// and other angles have PostgreSQL's digits.
    /// Method: two turns in both directions, compared with exact tables; values of PostgreSQL 15.
    #[test]
    fn digits_are_those_of_postgresql() {
        for turn in [-720.0, -360.0, 0.0, 360.0] {
            for (degrees, sin, cos) in
                [(0.0, 0.0, 1.0), (90.0, 1.0, 0.0), (180.0, 0.0, -1.0), (270.0, -1.0, 0.0)]
            {
                assert_eq!((sine(degrees + turn), cosine(degrees + turn)), (sin, cos), "{degrees}");
            }
            for (degrees, sin) in [(30.0, 0.5), (150.0, 0.5), (210.0, -0.5), (330.0, -0.5)] {
                assert_eq!(sine(degrees + turn), sin, "{degrees}");
                assert_eq!(cosine(degrees - 90.0 + turn), sin, "{degrees}");
            }
            for (degrees, tan) in [(0.0, 0.0), (45.0, 1.0), (135.0, -1.0), (225.0, 1.0), (315.0, -1.0)] {
                assert_eq!(tangent(degrees + turn), tan, "{degrees}");
                assert_eq!(cotangent(90.0 - degrees - turn), tan, "{degrees}");
            }
        }
        assert_eq!(
            [arc_sine(0.5), arc_sine(-1.0), arc_cosine(0.5), arc_cosine(-0.5)],
            [30.0, -90.0, 60.0, 120.0]
        );
        assert_eq!([arc_tangent(1.0), angle(1.0, -1.0), angle(-1.0, 0.0)], [45.0, 135.0, -90.0]);
        for (found, expected) in [
            (tangent(60.0), 1.7320508075688774),
            (cotangent(60.0), 0.5773502691896257),
            (sine(1.0), 0.017452406437283515),
            (cosine(1.0), 0.9998476951563913),
            (tangent(2.0), 0.03492076949174774),
            (cotangent(3.0), 19.081136687728208),
            (arc_cosine(-0.3), 107.4576031237221),
            (arc_sine(0.7), 44.4270040008057),
            (arc_tangent(3.0), 71.56505117707799),
            (angle(2.0, 3.0), 33.690067525979785),
            (to_degrees(7.0), 401.07045659157626),
            (to_radians(77.0), 1.3439035240356338),
        ] {
            assert_eq!(found, expected);
        }
    }
}
