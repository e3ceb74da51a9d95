//! Aggregates. The direct path has some of them in `direct/`, the general path all.

use super::Kind::{
    self, Any, AnyArray, AnyElement, BigInt, Boolean, Bytea, Date, Double, Integer, Interval, Numeric, Real,
    SmallInt, Text, Time, Timestamp, TimestampTz,
};
use super::{Body, Function};

pub(super) static ROWS: &[Function] = &[
    aggregate("array_agg", &[AnyElement], AnyArray).doc(
        "All values, NULLs as well, as an array.",
        &[("(select array_agg(x order by x) from (values (2), (1)) t(x))", "{1,2}")],
    ),
    aggregate("avg", &[SmallInt], Numeric).doc("Mean.", &[]),
    aggregate("avg", &[Integer], Numeric)
        .doc("Mean.", &[("(select round(avg(x), 2) from (values (1), (2)) t(x))", "1.50")]),
    aggregate("avg", &[BigInt], Numeric).doc("Mean.", &[]),
    aggregate("avg", &[Numeric], Numeric).doc("Mean.", &[]),
    aggregate("avg", &[Real], Double).doc("Mean.", &[]),
    aggregate("avg", &[Double], Double)
        .doc("Mean.", &[("(select avg(x) from (values (1::float8), (2)) t(x))", "1.5")]),
    aggregate("avg", &[Interval], Interval).doc("Mean.", &[]),
    aggregate("bit_and", &[Integer], Integer)
        .doc("Bits that all values have.", &[("(select bit_and(x) from (values (6), (3)) t(x))", "2")]),
    aggregate("bit_or", &[Integer], Integer)
        .doc("Bits that some value has.", &[("(select bit_or(x) from (values (6), (3)) t(x))", "7")]),
    aggregate("bit_xor", &[Integer], Integer)
        .doc("Exclusive or of all values.", &[("(select bit_xor(x) from (values (6), (3)) t(x))", "5")]),
    aggregate("bool_and", &[Boolean], Boolean).aliases(&["every"]).doc(
        "Whether all values are true.",
        &[("(select bool_and(x) from (values (true), (false), (NULL)) t(x))", "f")],
    ),
    aggregate("bool_or", &[Boolean], Boolean).doc(
        "Whether some value is true.",
        &[("(select bool_or(x) from (values (true), (false)) t(x))", "t")],
    ),
    of_pairs("corr", "Correlation coefficient."),
    aggregate("count", &[], BigInt)
        .doc("Number of rows: `count(*)`.", &[("(select count(*) from (values (1), (NULL)) t(x))", "2")]),
    aggregate("count", &[Any], BigInt).doc(
        "Number of values that are not NULL.",
        &[("(select count(x) from (values (1), (NULL)) t(x))", "1")],
    ),
    of_pairs("covar_pop", "Covariance of a population."),
    of_pairs("covar_samp", "Covariance of a sample."),
    aggregate("grouping", &[Any], Integer)
        .variadic()
        .grammar()
        .doc("Which of the arguments the grouping set of the row leaves out, as bits.", &[]),
    extreme("max", &[SmallInt], SmallInt),
    extreme("max", &[Integer], Integer)
        .doc("Largest value.", &[("(select max(x) from (values (1), (3), (NULL)) t(x))", "3")]),
    extreme("max", &[BigInt], BigInt),
    extreme("max", &[Numeric], Numeric),
    extreme("max", &[Real], Real),
    extreme("max", &[Double], Double),
    extreme("max", &[Text], Text),
    extreme("max", &[Date], Date),
    extreme("max", &[Time], Time),
    extreme("max", &[Timestamp], Timestamp),
    extreme("max", &[TimestampTz], TimestampTz),
    extreme("max", &[Interval], Interval),
    least("min", &[SmallInt], SmallInt),
    least("min", &[Integer], Integer)
        .doc("Smallest value.", &[("(select min(x) from (values (1), (3), (NULL)) t(x))", "1")]),
    least("min", &[BigInt], BigInt),
    least("min", &[Numeric], Numeric),
    least("min", &[Real], Real),
    least("min", &[Double], Double),
    least("min", &[Text], Text),
    least("min", &[Date], Date),
    least("min", &[Time], Time),
    least("min", &[Timestamp], Timestamp),
    least("min", &[TimestampTz], TimestampTz),
    least("min", &[Interval], Interval),
    // Listed by the grammar: `pg_proc` has no form of it without WITHIN GROUP.
    aggregate("percentile_cont", &[Double], Double).grammar().doc(
        "Value at a fraction of the sorted values, interpolated: `WITHIN GROUP (ORDER BY x)`.",
        &[("(select percentile_cont(0.5) within group (order by x) from (values (1.0::float8), (2), (4)) t(x))", "2")],
    ),
    of_pairs("regr_avgx", "Mean of the second argument, where both are known."),
    of_pairs("regr_avgy", "Mean of the first argument, where both are known."),
    aggregate("regr_count", &[Double, Double], BigInt).doc(
        "Number of rows where both are known.",
        &[("(select regr_count(y, x) from (values (1.0, 2.0), (2, NULL)) t(y, x))", "1")],
    ),
    of_pairs("regr_intercept", "Where the regression line meets the axis."),
    of_pairs("regr_r2", "Square of the correlation coefficient."),
    of_pairs("regr_slope", "Slope of the regression line."),
    of_pairs("regr_sxx", "Sum of squares of the second argument."),
    of_pairs("regr_sxy", "Sum of products."),
    of_pairs("regr_syy", "Sum of squares of the first argument."),
    spread("stddev", "Standard deviation of a sample.").aliases(&["stddev_samp"]).doc(
        "Standard deviation of a sample.",
        &[("(select stddev(x) from (values (1::float8), (3)) t(x))", "1.4142135623730951")],
    ),
    spread("stddev_pop", "Standard deviation of a population."),
    aggregate("string_agg", &[Text, Text], Text).doc(
        "Joins texts with a separator.",
        &[("(select string_agg(x, ',' order by x) from (values ('b'), ('a')) t(x))", "a,b")],
    ),
    aggregate("string_agg", &[Bytea, Bytea], Bytea).doc("Joins bytes with a separator.", &[]),
    aggregate("sum", &[SmallInt], BigInt).doc("Sum.", &[]),
    aggregate("sum", &[Integer], BigInt)
        .doc("Sum.", &[("(select sum(x) from (values (1), (2), (NULL)) t(x))", "3")]),
    aggregate("sum", &[BigInt], Numeric).doc("Sum.", &[]),
    aggregate("sum", &[Numeric], Numeric).doc("Sum.", &[]),
    aggregate("sum", &[Real], Real).doc("Sum.", &[]),
    aggregate("sum", &[Double], Double).doc("Sum.", &[]),
    aggregate("sum", &[Interval], Interval).doc("Sum.", &[]),
    spread("var_pop", "Variance of a population."),
    spread("var_samp", "Variance of a sample.")
        .aliases(&["variance"])
        .doc("Variance of a sample.", &[("(select variance(x) from (values (1::float8), (3)) t(x))", "2")]),
];

const fn aggregate(name: &'static str, arguments: &'static [Kind], result: Kind) -> Function {
    Function::new(name, arguments, result, Body::Aggregate).called_on_null().native()
}

const fn extreme(name: &'static str, arguments: &'static [Kind], result: Kind) -> Function {
    aggregate(name, arguments, result).doc("Largest value.", &[])
}

const fn least(name: &'static str, arguments: &'static [Kind], result: Kind) -> Function {
    aggregate(name, arguments, result).doc("Smallest value.", &[])
}

const fn spread(name: &'static str, doc: &'static str) -> Function {
    aggregate(name, &[Double], Double).doc(doc, &[])
}

const fn of_pairs(name: &'static str, doc: &'static str) -> Function {
    aggregate(name, &[Double, Double], Double).doc(doc, &[])
}
