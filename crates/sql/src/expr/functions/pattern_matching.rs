//! Functions on regular expressions.

use super::Kind::{Boolean, Integer, Text, TextArray};
use super::{Function, function, general};
use crate::expr::regular;

pub(super) static ROWS: &[Function] = &[
    function("regexp_count", &[Text, Text, Integer, Text], Integer, |c| {
        regular::count(c.text(0), c.text(1), c.int_or(2, 1), c.text(3))
    })
    .optional(2)
    .doc(
        "Number of matches, from a position, with options.",
        &[
            ("regexp_count('123456789012', '\\d\\d\\d', 2)", "3"),
            ("regexp_count('ABCABC', 'a', 1, 'i')", "2"),
        ],
    ),
    function("regexp_instr", &[Text, Text, Integer, Integer, Integer, Text, Integer], Integer, |c| {
        let places = (c.int_or(2, 1), c.int_or(3, 1), c.int_or(4, 0));
        regular::instr(c.text(0), c.text(1), places, c.text(5), c.int_or(6, 0))
    })
    .optional(5)
    .doc(
        "Position of the nth match or of its end, with options and the number of a group.",
        &[
            ("regexp_instr('number of your street', '[^ ]+', 1, 2)", "8"),
            ("regexp_instr('foobar', 'o(b)', 1, 1, 0, 'i', 1)", "4"),
        ],
    ),
    function("regexp_like", &[Text, Text, Text], Boolean, |c| regular::like(c.text(0), c.text(1), c.text(2)))
        .optional(1)
        .doc(
            "Whether there is a match, with options.",
            &[("regexp_like('Hello World', 'world$', 'i')", "t")],
        ),
    general("regexp_match", &[Text, Text, Text], TextArray).optional(1).doc(
        "Groups of the first match, or the whole match, with options.",
        &[
            ("regexp_match('foobarbequebaz', '(bar)(beque)')", "{bar,beque}"),
            ("regexp_match('foobar', 'b', 'g')", "22023"),
        ],
    ),
    function("regexp_replace", &[Text, Text, Text, Text], Text, |c| {
        let options = c.optional_text(3).unwrap_or_default();
        regular::replace(c.text(0), c.text(1), c.text(2), (1, None), options)
    })
    .optional(1)
    .doc(
        "Replaces the first match, or with the option g all. `\\1` is a group, `\\&` the match.",
        &[
            ("regexp_replace('Thomas', '.[mN]a.', 'M')", "ThM"),
            ("regexp_replace('foobarbaz', 'b(..)', 'X\\1Y', 'g')", "fooXarYXazY"),
        ],
    ),
    function("regexp_replace", &[Text, Text, Text, Integer, Integer, Text], Text, |c| {
        let n = if c.values.len() > 4 { Some(c.int(4)) } else { Some(1) };
        regular::replace(c.text(0), c.text(1), c.text(2), (c.int(3), n), c.text(5))
    })
    .optional(2)
    .doc(
        "Replaces the nth match from a position, or all if n is 0, with options.",
        &[("regexp_replace('Thomas', '.', 'X', 3, 2)", "ThoXas")],
    ),
    general("regexp_split_to_array", &[Text, Text, Text], TextArray).optional(1).doc(
        "Parts between the matches, with options.",
        &[("regexp_split_to_array('hello world', '\\s+')", "{hello,world}")],
    ),
    function("regexp_substr", &[Text, Text, Integer, Integer, Text, Integer], Text, |c| {
        let places = (c.int_or(2, 1), c.int_or(3, 1));
        regular::substr(c.text(0), c.text(1), places, c.text(4), c.int_or(5, 0))
    })
    .optional(4)
    .doc(
        "The nth match from a position, with options and the number of a group.",
        &[("regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i', 2)", "EF")],
    ),
    function("substring", &[Text, Text], Text, |c| regular::part(c.text(0), c.text(1))).doc(
        "First group of the first match, or the whole match.",
        &[("substring('Thomas' from '...$')", "mas"), ("substring('foobar' from 'o(.)b')", "o")],
    ),
    function("substring", &[Text, Text, Text], Text, |c| {
        regular::similar_part(c.text(0), c.text(1), c.text(2))
    })
    .doc(
        "Part that a SIMILAR pattern marks by the escape character and a double quote.",
        &[("substring('Thomas' from '%#\"o_a#\"_' for '#')", "oma")],
    ),
];
