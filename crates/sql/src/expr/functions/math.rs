//! Roots, powers, logarithms and trigonometry. A numeric is computed as a double.

use super::Kind::Double;
use super::{Body, Form, Function, function, of_double};
use crate::datum::Datum;
use crate::expr::analytic;
use crate::expr::operator::Operator;

pub(super) static ROWS: &[Function] = &[
    of_double("acos", analytic::acos)
        .doc("Arc cosine in radians.", &[("acos(1)", "0"), ("acos(2)", "22003")]),
    of_double("acosd", analytic::acosd).doc("Arc cosine in degrees.", &[("acosd(0.5)", "60")]),
    of_double("acosh", analytic::acosh).doc("Inverse hyperbolic cosine.", &[("acosh(1)", "0")]),
    of_double("asin", analytic::asin).doc("Arc sine in radians.", &[("asin(0)", "0")]),
    of_double("asind", analytic::asind).doc("Arc sine in degrees.", &[("asind(0.5)", "30")]),
    of_double("asinh", analytic::asinh).doc("Inverse hyperbolic sine.", &[("asinh(0)", "0")]),
    of_double("atan", analytic::atan).doc("Arc tangent in radians.", &[("atan(1)", "0.7853981633974483")]),
    function("atan2", &[Double, Double], Double, |c| {
        Ok(Datum::Double(analytic::angle(c.double(0), c.double(1))))
    })
    .doc("Angle whose tangent is the quotient, in radians.", &[("atan2(1, 0)", "1.5707963267948966")]),
    function("atan2d", &[Double, Double], Double, |c| {
        Ok(Datum::Double(analytic::angle_in_degrees(c.double(0), c.double(1))))
    })
    .doc("Angle whose tangent is the quotient, in degrees.", &[("atan2d(1, 0)", "90")]),
    of_double("atand", analytic::atand).doc("Arc tangent in degrees.", &[("atand(1)", "45")]),
    of_double("atanh", analytic::atanh).doc("Inverse hyperbolic tangent.", &[("atanh(0)", "0")]),
    of_double("cbrt", analytic::cbrt).doc("Cube root.", &[("cbrt(64.0)", "4")]),
    of_double("cos", analytic::cos).doc("Cosine of radians.", &[("cos(0)", "1")]),
    of_double("cosd", analytic::cosd).doc("Cosine of degrees.", &[("cosd(60)", "0.5")]),
    of_double("cosh", analytic::cosh).doc("Hyperbolic cosine.", &[("cosh(0)", "1")]),
    of_double("cot", analytic::cot).doc("Cotangent of radians.", &[("cot(0.5)", "1.830487721712452")]),
    of_double("cotd", analytic::cotd).doc("Cotangent of degrees.", &[("cotd(45)", "1")]),
    of_double("degrees", analytic::degrees)
        .doc("Converts radians to degrees.", &[("degrees(0.5)", "28.64788975654116")]),
    of_double("exp", analytic::exp)
        .doc("Exponential.", &[("exp(1.0::float8)", "2.718281828459045"), ("exp(1000::float8)", "22003")]),
    of_double("ln", analytic::ln)
        .doc("Natural logarithm.", &[("ln(2.0::float8)", "0.6931471805599453"), ("ln(0)", "2201E")]),
    of_double("log", analytic::log10)
        .aliases(&["log10"])
        .doc("Logarithm to base 10.", &[("log(100)", "2"), ("log10(1000)", "3"), ("log(-1)", "2201E")]),
    function("log", &[Double, Double], Double, |c| {
        Ok(Datum::Double(analytic::logarithm(c.double(0), c.double(1))?))
    })
    .doc(
        "Logarithm to the base of the first argument.",
        &[("round(log(2.0, 64.0)::numeric, 6)", "6.000000")],
    ),
    // Compiled as `a ^ b`.
    Function::new("power", &[Double, Double], Double, Body::Form(Form::Operator(Operator::Power, "^")))
        .aliases(&["pow"])
        .doc("Power.", &[("power(9, 3)", "729"), ("pow(2, 10)", "1024"), ("power(-8, 0.5)", "2201F")]),
    function("pi", &[], Double, |_| Ok(Datum::Double(std::f64::consts::PI)))
        .native()
        .doc("Ratio of a circle's circumference to its diameter.", &[("pi()", "3.141592653589793")]),
    of_double("radians", analytic::radians)
        .doc("Converts degrees to radians.", &[("radians(45.0)", "0.7853981633974483")]),
    of_double("sin", analytic::sin).doc("Sine of radians.", &[("sin(0)", "0")]),
    of_double("sind", analytic::sind).doc("Sine of degrees.", &[("sind(30)", "0.5")]),
    of_double("sinh", analytic::sinh).doc("Hyperbolic sine.", &[("sinh(0)", "0")]),
    of_double("sqrt", analytic::sqrt)
        .doc("Square root.", &[("sqrt(2::float8)", "1.4142135623730951"), ("sqrt(-1)", "2201F")]),
    of_double("tan", analytic::tan).doc("Tangent of radians.", &[("tan(0)", "0")]),
    of_double("tand", analytic::tand).doc("Tangent of degrees.", &[("tand(45)", "1")]),
    of_double("tanh", analytic::tanh).doc("Hyperbolic tangent.", &[("tanh(0)", "0")]),
];
