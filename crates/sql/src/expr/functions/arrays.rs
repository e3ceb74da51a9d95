//! Functions on arrays. The direct path knows arrays in their text form only.

use super::Kind::{AnyArray, AnyElement, Integer, Text, TextArray};
use super::{Call, Function, function, general};
use crate::datum::Datum;
use crate::error::Result;
use crate::expr::construct;

pub(super) static ROWS: &[Function] = &[
    general("array_append", &[AnyArray, AnyElement], AnyArray)
        .called_on_null()
        .doc("Adds an element at the end.", &[("array_append(array[1, 2], 3)", "{1,2,3}")]),
    general("array_cat", &[AnyArray, AnyArray], AnyArray)
        .called_on_null()
        .doc("Joins arrays.", &[("array_cat(array[1, 2, 3], array[4, 5])", "{1,2,3,4,5}")]),
    general("array_dims", &[AnyArray], Text).doc(
        "Bounds of all dimensions.",
        &[("array_dims(array[array[1, 2, 3], array[4, 5, 6]])", "[1:2][1:3]")],
    ),
    general("array_length", &[AnyArray, Integer], Integer)
        .doc("Length of a dimension.", &[("array_length(array[1, 2, 3], 1)", "3")]),
    general("array_lower", &[AnyArray, Integer], Integer)
        .doc("Lower bound of a dimension.", &[("array_lower(array[1, 2, 3], 1)", "1")]),
    general("array_ndims", &[AnyArray], Integer)
        .doc("Number of dimensions.", &[("array_ndims(array[array[1, 2], array[3, 4]])", "2")]),
    general("array_position", &[AnyArray, AnyElement], Integer).called_on_null().doc(
        "Position of the first such element.",
        &[("array_position(array['sun', 'mon', 'tue'], 'mon')", "2")],
    ),
    general("array_positions", &[AnyArray, AnyElement], AnyArray).doc(
        "Positions of all such elements.",
        &[("array_positions(array['A', 'A', 'B', 'A'], 'A')", "{1,2,4}")],
    ),
    general("array_prepend", &[AnyElement, AnyArray], AnyArray)
        .called_on_null()
        .doc("Adds an element at the start.", &[("array_prepend(1, array[2, 3])", "{1,2,3}")]),
    general("array_remove", &[AnyArray, AnyElement], AnyArray)
        .called_on_null()
        .doc("Removes all such elements.", &[("array_remove(array[1, 2, 3, 2], 2)", "{1,3}")]),
    general("array_replace", &[AnyArray, AnyElement, AnyElement], AnyArray)
        .called_on_null()
        .doc("Replaces all such elements.", &[("array_replace(array[1, 2, 5, 4], 5, 3)", "{1,2,3,4}")]),
    function("array_to_string", &[AnyArray, Text], Text, array_to_string).doc(
        "Joins the elements with a separator. NULLs are left out.",
        &[("array_to_string(array[1, 2, NULL, 3], '|')", "1|2|3")],
    ),
    function("array_to_string", &[AnyArray, Text, Text], Text, array_to_string).called_on_null().doc(
        "Joins the elements with a separator, and writes NULLs as the third argument.",
        &[("array_to_string(array[1, 2, 3, NULL, 5], ',', '*')", "1,2,3,*,5")],
    ),
    // Arrays come in their text form from rewritten queries, whose constants have no type yet.
    function("array_to_string", &[Text, Text], Text, array_to_string).hidden(),
    function("array_to_string", &[Text, Text, Text], Text, array_to_string).called_on_null().hidden(),
    general("array_upper", &[AnyArray, Integer], Integer)
        .doc("Upper bound of a dimension.", &[("array_upper(array[1, 8, 3, 7], 1)", "4")]),
    general("cardinality", &[AnyArray], Integer)
        .doc("Number of elements.", &[("cardinality(array[array[1, 2], array[3, 4]])", "4")]),
    general("string_to_array", &[Text, Text, Text], TextArray).optional(1).called_on_null().doc(
        "Parts of a text with a separator.",
        &[("string_to_array('xx~~yy~~zz', '~~', 'yy')", "{xx,NULL,zz}")],
    ),
    general("unnest", &[AnyArray], AnyElement)
        .doc("A row for each element.", &[("(select sum(x) from unnest(array[1, 2]) t(x))", "3")]),
];

fn array_to_string(c: &Call<'_>) -> Result<Datum> {
    construct::join_items(c.values)
}
