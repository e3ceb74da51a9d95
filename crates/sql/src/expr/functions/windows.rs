//! Window functions. Aggregates are window functions as well.

use super::Kind::{self, AnyElement, BigInt, Double, Integer};
use super::{Body, Function};

pub(super) static ROWS: &[Function] = &[
    window("cume_dist", &[], Double).called_on_null().doc("Share of the rows up to the peers of this one.", &[]),
    window("dense_rank", &[], BigInt).called_on_null().doc("Rank without gaps.", &[]),
    window("first_value", &[AnyElement], AnyElement).doc("Value in the first row of the frame.", &[]),
    window("lag", &[AnyElement, Integer, AnyElement], AnyElement)
        .optional(2)
        .doc("Value some rows before, or a default.", &[]),
    window("last_value", &[AnyElement], AnyElement).doc("Value in the last row of the frame.", &[]),
    window("lead", &[AnyElement, Integer, AnyElement], AnyElement)
        .optional(2)
        .doc("Value some rows after, or a default.", &[]),
    window("nth_value", &[AnyElement, Integer], AnyElement).doc("Value in the nth row of the frame.", &[]),
    window("ntile", &[Integer], Integer).doc("Number of the bucket, of equal ones.", &[]),
    window("percent_rank", &[], Double).called_on_null().doc("Share of the rows before the peers of this one.", &[]),
    window("rank", &[], BigInt).called_on_null().doc("Rank with gaps: one more than the rows before its peers.", &[]),
    window("row_number", &[], BigInt).called_on_null().doc("Number of the row, from 1.", &[(
        "(select string_agg(n::text, ',' order by n) from (select row_number() over () n from (values (7), (8)) t(x)) q)",
        "1,2",
    )]),
];

const fn window(name: &'static str, arguments: &'static [Kind], result: Kind) -> Function {
    Function::new(name, arguments, result, Body::Window).native()
}
