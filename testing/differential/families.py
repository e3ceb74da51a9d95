"""Functions, operators and casts, family by family, each tried in five forms on both servers.

    families.py --cairn DIR --postgres DIR [--only FAMILY,...]

`{value::type}` in an expression is an operand. The forms: constants alone, which the direct path computes; constants beside a join, which the general path
folds; columns of a table on the direct path; columns beneath a join and a window, on the general path; and a condition over the table. An answer is the rows,
the types and the SQLSTATE. What Cairn refuses with 0A000 is counted, and not taken for a difference.
"""

import argparse
import itertools
import re

from functions import EXAMPLES
from sides import Side, near

FAMILIES = {}


def family(name, text):
    FAMILIES[name] = [line.strip() for line in text.strip().splitlines() if line.strip()]


family("float domain", r"""
power({-8::float8}, {1/3.0::float8})
power({-8::numeric}, {0.333::numeric})
power({-8::int}, {0.5::numeric})
power({0::float8}, {-1::float8})
power({0::numeric}, {-1::numeric})
power({2::float8}, {2000::float8})
power({2::float8}, {-2000::float8})
power({10::numeric}, {3::int})
power({2::int}, {3::int})
power({2::bigint}, {0.5::float8})
power({'inf'::float8}, {0::float8})
power({'nan'::float8}, {0::float8})
power({-1::float8}, {'inf'::float8})
{-8::float8} ^ {0.5::float8}
{2::int} ^ {10::int}
{2::numeric} ^ {0.5::numeric}
ln({-1::float8})
ln({0::float8})
ln({-1::numeric})
ln({0::numeric})
ln({2.5::numeric})
ln({2::int})
log({-1.5::float8})
log({0::float8})
log({-1.5::numeric})
log({0::int})
log({100::numeric})
log({100::int})
log10({1000::float8})
log10({-1::numeric})
log10({0::float8})
log({2::numeric}, {64::numeric})
log({2::numeric}, {0::numeric})
log({2::numeric}, {-1::numeric})
log({0::numeric}, {2::numeric})
log({-2::numeric}, {2::numeric})
log({1::numeric}, {2::numeric})
log({2::int}, {8::int})
sqrt({-1::float8})
sqrt({-1::numeric})
sqrt({2::numeric})
sqrt({2::int})
sqrt({'inf'::float8})
cbrt({27::float8})
cbrt({-27::float8})
exp({1000::float8})
exp({-1000::float8})
exp({1::numeric})
exp({1::int})
exp({'-inf'::float8})
factorial({5::int})
factorial({-1::int})
factorial({20::bigint})
asin({2::float8})
asin({0.5::float8})
acos({-2::float8})
acos({0.5::float8})
atan({1::float8})
atan2({1::float8}, {2::float8})
atanh({1::float8})
atanh({-1::float8})
atanh({2::float8})
atanh({0.5::float8})
acosh({0.5::float8})
acosh({2::float8})
asinh({1::float8})
sinh({1000::float8})
cosh({1000::float8})
cosh({1::float8})
tanh({1::float8})
sin({'inf'::float8})
cos({'inf'::float8})
tan({'inf'::float8})
cot({0::float8})
cot({1::float8})
sind({30::float8})
cosd({60::float8})
tand({45::float8})
cotd({45::float8})
asind({0.5::float8})
acosd({0.5::float8})
atand({1::float8})
atan2d({1::float8}, {1::float8})
asind({2::float8})
acosd({2::float8})
sind({'inf'::float8})
degrees({1::float8})
degrees({1e308::float8})
radians({180::float8})
radians({1e-323::float8})
pi()
div({7::numeric}, {2::numeric})
div({7::numeric}, {0::numeric})
div({-7::int}, {2::int})
mod({7::numeric}, {0::numeric})
mod({7::int}, {0::int})
mod({-7::int}, {3::int})
mod({7.5::numeric}, {2::numeric})
{7::int} % {0::int}
{7::smallint} / {0::smallint}
{7::bigint} / {0::bigint}
{7::float8} / {0::float8}
{7::float4} / {0::float4}
{'nan'::float8} / {0::float8}
{'inf'::float8} / {0::float8}
{7::numeric} / {0::numeric}
{1e300::float8} * {1e300::float8}
{1e-300::float8} * {1e-300::float8}
{1e308::float8} + {1e308::float8}
{-1e308::float8} - {1e308::float8}
{1e-300::float8} / {1e300::float8}
{1e300::float8} / {1e-300::float8}
{1e30::float4} * {1e30::float4}
{1e-30::float4} * {1e-30::float4}
{3e38::float4} + {3e38::float4}
{1e-30::float4} / {1e30::float4}
{1::float4} + {0.1::float8}
{'inf'::float8} - {'inf'::float8}
{'inf'::float8} * {0::float8}
{1e300::float8}::float4
{1e-300::float8}::float4
{'10e-70'::text}::float4
{'10e70'::text}::float4
{'10e400'::text}::float8
{'10e-400'::text}::float8
{'nan'::float8}::int
{'nan'::float8}::numeric
{'inf'::float8}::bigint
{1e300::float8}::bigint
{32768::float8}::smallint
{2147483647.6::float8}::int
{9223372036854775807::float8}::bigint
{1e10::float4}::int
{'nan'::float4}::smallint
gcd({12::int}, {18::int})
gcd({-2147483648::int}, {0::int})
gcd({-2147483648::int}, {-2147483648::int})
gcd({12::bigint}, {18::bigint})
gcd({-9223372036854775808::bigint}, {0::bigint})
gcd({2.5::numeric}, {1.5::numeric})
lcm({12::int}, {18::int})
lcm({2147483647::int}, {2147483646::int})
lcm({0::int}, {5::int})
lcm({12::bigint}, {18::bigint})
lcm({1.5::numeric}, {2.5::numeric})
sign({-2::float8})
sign({-2.5::numeric})
sign({3::int})
ceil({-0.5::float8})
ceil({2.1::numeric})
ceiling({2::int})
floor({-2.5::numeric})
floor({-2.5::float8})
round({2.5::float8})
round({2.5::numeric})
round({-2.5::numeric})
round({2.567::numeric}, {2::int})
round({2567::numeric}, {-2::int})
round({2567::int}, {-2::int})
round({2::int})
trunc({2.567::numeric}, {1::int})
trunc({-2.5::float8})
trunc({2::int})
abs({'-0'::float8})
abs({-2.5::numeric})
abs({-2.5::float4})
width_bucket({5::float8}, {0::float8}, {10::float8}, {4::int})
width_bucket({5::numeric}, {0::numeric}, {10::numeric}, {4::int})
width_bucket({5::numeric}, {0::numeric}, {0::numeric}, {4::int})
scale({1.230::numeric})
min_scale({1.230::numeric})
trim_scale({1.230::numeric})
numeric_inc({1::numeric})
|/ {16::float8}
|/ {-1::float8}
||/ {27::float8}
@ {-5::int}
@ {-5.5::numeric}
erf({1::float8})
""")

family("integers", r"""
- {-32768::smallint}
- {-2147483648::int}
- {-9223372036854775808::bigint}
abs({-32768::smallint})
abs({-2147483648::int})
abs({-9223372036854775808::bigint})
{-32768::smallint} / {-1::smallint}
{-2147483648::int} / {-1::int}
{-9223372036854775808::bigint} / {-1::bigint}
{-32768::smallint} % {-1::smallint}
{-2147483648::int} % {-1::int}
{-9223372036854775808::bigint} % {-1::bigint}
{32767::smallint} + {1::smallint}
{32767::smallint} * {2::smallint}
{-32768::smallint} - {1::smallint}
{2147483647::int} + {1::int}
{2147483647::int} * {2::int}
{2147483647::int} + {1::smallint}
{2147483647::int} + {1::bigint}
{9223372036854775807::bigint} + {1::bigint}
{9223372036854775807::bigint} * {2::bigint}
{9223372036854775807::bigint} + {1::int}
{9223372036854775807::bigint} + {1.0::numeric}
{1::smallint} << {15::int}
{1::smallint} << {16::int}
{1::smallint} << {31::int}
{1::smallint} << {-1::int}
{1::int} << {31::int}
{1::int} << {32::int}
{1::int} << {33::int}
{1::int} << {-1::int}
{1::bigint} << {63::int}
{1::bigint} << {64::int}
{-8::int} >> {1::int}
{-8::int} >> {33::int}
{-8::bigint} >> {65::int}
{-8::smallint} >> {17::int}
~ {5::int}
~ {5::smallint}
~ {-9223372036854775808::bigint}
{5::int} & {3::int}
{5::int} | {3::bigint}
{5::int} # {3::int}
{5::smallint} # {3::smallint}
{5::bigint} # {3::bigint}
{40000::int}::smallint
{3000000000::bigint}::int
{3000000000::bigint}::smallint
{2.5::numeric}::int
{-2.5::numeric}::int
{3.5::float8}::int
{2.5::float8}::int
{1e20::numeric}::bigint
{true::boolean}::int
{5::int}::boolean
{0::int}::boolean
{'12'::text}::int
{' 12 '::text}::int
{'12x'::text}::int
{''::text}::int
{'99999999999'::text}::int
{'1.5'::text}::int
{'1e3'::text}::int
{'+5'::text}::int
{'- 5'::text}::int
{'0x10'::text}::int
{'1_000'::text}::int
{'1_000'::text}::numeric
{'1e1000'::text}::numeric
{'abc'::text}::numeric
{'.5'::text}::numeric
{'5.'::text}::numeric
{'1.2.3'::text}::numeric
{' -1.5e2 '::text}::numeric
{'1.5'::text}::float8
{'infinity'::text}::float8
{'-Infinity'::text}::float8
{'NaN'::text}::float8
{'x'::text}::float8
{123.456::numeric}::numeric(5,2)
{1234.5::numeric}::numeric(5,2)
{-0.005::numeric}::numeric(5,2)
{12345::int}::numeric(4,0)
{12345::int}::numeric(7,2)
{1.005::float8}::numeric(5,2)
{0.1::float4}::float8
{0.1::float4}::numeric
{0.1::float8}::numeric
{1e-7::float8}::numeric
{1e15::float8}::text
{1e-5::float8}::text
{123456789.0::float4}::text
{'-0'::float8}::text
{'-0'::float8} = {0::float8}
{'nan'::float8} = {'nan'::float8}
{'nan'::float8} > {'inf'::float8}
to_hex({-1::int})
to_hex({255::bigint})
{5::int} = {5.0::numeric}
{5::int} = {5.5::float8}
{5::bigint} = {5::smallint}
{16777217::int} = {16777216::float4}
{0.1::float4} = {0.1::float8}
{0.1::numeric} = {0.1::float8}
bit_count({'\x0f'::bytea})
""")

family("regular expressions", r"""
{E'a\nb'::text} ~ 'a.b'
{E'a\nb'::text} ~ '^b'
{E'a\nb'::text} ~ 'a$'
{E'a\nb'::text} ~ '(?n)^b'
{E'a\nb'::text} ~ '(?n)a.b'
{E'a\nb'::text} ~ '(?w)^b'
{E'a\nb'::text} ~ '(?w)a.b'
{E'a\nb'::text} ~ '(?p)a.b'
{E'a\nb'::text} ~ '(?p)^b'
{E'a\nb'::text} ~ '(?s)a.b'
{E'a\n'::text} ~ 'a$'
{E'a\nb'::text} ~ 'a[^x]b'
{E'a\nb'::text} ~ '(?n)a[^x]b'
{E'a\nb'::text} ~ 'a\Db'
{E'a\nb'::text} ~ 'a\nb'
{'aB'::text} ~ 'ab'
{'aB'::text} ~* 'ab'
{'aB'::text} !~ 'ab'
{'aB'::text} !~* 'AB'
{'aB'::text} ~ '(?i)ab'
{'aB'::text} ~ '(?c)ab'
{'aB'::text} ~* '(?c)ab'
{'É'::text} ~* 'é'
{'a b'::text} ~ '(?x)a b'
{'ab'::text} ~ '(?x)a b # c'
{'a.b'::text} ~ '(?q)a.b'
{'axb'::text} ~ '(?q)a.b'
{'a.b'::text} ~ '***=a.b'
{'axb'::text} ~ '***=a.b'
{'axb'::text} ~ '***:a.b'
{'a{'::text} ~ 'a{'
{'aa'::text} ~ '^a{2}$'
{'aa'::text} ~ '^a{2,}$'
{'aa'::text} ~ '^a{,2}$'
{'a'::text} ~ '^a{1,2}$'
{'foo bar'::text} ~ '\mbar'
{'foo bar'::text} ~ 'foo\M'
{'foo bar'::text} ~ '\yfoo\y'
{'foobar'::text} ~ 'foo\Y'
{'foo'::text} ~ '\Afoo\Z'
{'foo'::text} ~ '[[:<:]]foo[[:>:]]'
{'foo1'::text} ~ '[[:digit:]]'
{'foo1'::text} ~ '^[[:alpha:]]+\d$'
{'foo1'::text} ~ '^\w+$'
{'foo 1'::text} ~ '\s'
{'foo1'::text} ~ '[\d]'
{'foo1'::text} ~ '[\w]+'
{'a]b'::text} ~ '[]]'
{'a-b'::text} ~ '[a-]'
{'a^b'::text} ~ '[\^]'
{'a\b'::text} ~ '\\'
{'a\b'::text} ~ '[\\]'
{'abcabc'::text} ~ '^(abc)\1$'
{'abcabd'::text} ~ '^(abc)\1$'
{'foobar'::text} ~ 'foo(?=bar)'
{'foobaz'::text} ~ 'foo(?!bar)'
{'foobar'::text} ~ '(?<=foo)bar'
{'foobar'::text} ~ '(?<!x)bar'
{'a'::text} ~ '('
{'a'::text} ~ '['
{'a'::text} ~ '*a'
{'a'::text} ~ 'a**'
{'a'::text} ~ '\'
{'a'::text} ~ 'a{2,1}'
{'a'::text} ~ '[b-a]'
{'a'::text} ~ '[[:foo:]]'
{''::text} ~ ''
{'a'::text} ~ ''
{'a'::text} ~ 'a|'
{'a'::text} ~ '(|b)a'
{'a+b'::text} ~ 'a\+b'
{E'a\tb'::text} ~ 'a\tb'
{'aéb'::text} ~ 'a\u00e9b'
{'aéb'::text} ~ 'a.b'
{'aéb'::text} ~ '^\w+$'
{'A1'::text} ~ '\x41'
{'a/b'::text} ~ 'a/b'
{'a&&b'::text} ~ '[&&]'
{'a~~b'::text} ~ '[a~~]+'
{'b'::text} ~ '[a&&b]'
{'b'::text} ~ '[[a]b]'
{'-'::text} ~ '[a--]'
{'abc'::text} ~ 'a(?:b)c'
{'abc'::text} ~ 'a(?P<x>b)c'
{'aaa'::text} ~ '^a+?$'
{'aaa'::text} ~ '^a++$'
regexp_replace({'foobarbaz'::text}, 'b..', 'X')
regexp_replace({'foobarbaz'::text}, 'b..', 'X', 'g')
regexp_replace({'foobarbaz'::text}, 'b(..)', 'X\1Y', 'g')
regexp_replace({'foobarbaz'::text}, 'b(..)', 'X\&Y', 'g')
regexp_replace({'foobarbaz'::text}, 'b(..)', 'X\\Y', 'g')
regexp_replace({'foobarbaz'::text}, 'b(..)', 'X$1Y', 'g')
regexp_replace({'foobarbaz'::text}, 'b(..)', 'X\2Y', 'g')
regexp_replace({'foobarbaz'::text}, 'b(..)', 'X\qY', 'g')
regexp_replace({'foobarbaz'::text}, 'b(..)', 'X\', 'g')
regexp_replace({'FOOBAR'::text}, 'o', 'x', 'i')
regexp_replace({'FOOBAR'::text}, 'o', 'x', 'gi')
regexp_replace({'FOOBAR'::text}, 'o', 'x', 'z')
regexp_replace({'foobarbaz'::text}, 'b..', 'X', 1, 2)
regexp_replace({'foobarbaz'::text}, 'b..', 'X', 5)
regexp_replace({'foobarbaz'::text}, 'b..', 'X', 1, 0, 'i')
regexp_replace({'foobarbaz'::text}, 'b..', 'X', 0)
regexp_replace({'foobarbaz'::text}, 'b..', 'X', 1, -1)
regexp_replace({E'a\nb'::text}, '^b', 'X')
regexp_replace({E'a\nb'::text}, '^', 'X', 'g')
regexp_replace({E'a\nb'::text}, '^', 'X', 'gn')
regexp_replace({E'a\nb'::text}, '$', 'X', 'gm')
regexp_replace({E'a\nb'::text}, 'a.b', 'X', 'n')
regexp_replace({E'a\nb'::text}, 'a.b', 'X', 's')
regexp_replace({E'a\nb'::text}, 'a.b', 'X', 'p')
regexp_replace({E'a\nb'::text}, 'a.b', 'X', 'w')
regexp_replace({'a b'::text}, 'a  b', 'X', 'x')
regexp_replace({'abc'::text}, '', '-', 'g')
regexp_replace({'abc'::text}, 'x*', '-', 'g')
regexp_replace({'abc'::text}, 'b*', '-', 'g')
regexp_replace({'a.b.c'::text}, '.', '-', 'q')
regexp_replace({'aaa'::text}, '(a)(b)?', '[\1\2]', 'g')
regexp_match({'foobar'::text}, 'o(b)(a)')
regexp_match({'foobar'::text}, 'ob')
regexp_match({'foobar'::text}, 'x')
regexp_match({'foobar'::text}, '(x)?(b)')
regexp_match({'FOOBAR'::text}, 'o(b)', 'i')
regexp_match({'FOOBAR'::text}, 'o(b)', 'g')
regexp_like({'foobar'::text}, 'O', 'i')
regexp_like({'foobar'::text}, 'O')
regexp_like({E'a\nb'::text}, '^b')
regexp_like({E'a\nb'::text}, '^b', 'n')
regexp_like({'foobar'::text}, 'O', 'g')
regexp_count({'foobar'::text}, 'o')
regexp_count({'foobar'::text}, 'o', 3)
regexp_count({'FOObar'::text}, 'o', 1, 'i')
regexp_count({'abc'::text}, '')
regexp_instr({'foobar'::text}, 'o')
regexp_instr({'foobar'::text}, 'o', 1, 2)
regexp_instr({'foobar'::text}, 'o(b)', 1, 1, 1)
regexp_instr({'foobar'::text}, 'o(b)', 1, 1, 0, 'i', 1)
regexp_substr({'foobar'::text}, 'o.')
regexp_substr({'foobar'::text}, 'o', 1, 2)
regexp_substr({'foobar'::text}, 'o(b)', 1, 1, 'i', 1)
regexp_substr({'foobar'::text}, 'x')
regexp_split_to_array({'a,b;c'::text}, '[,;]')
regexp_split_to_array({'abc'::text}, '')
regexp_split_to_array({'aXbxc'::text}, 'x', 'i')
regexp_split_to_array({'abc'::text}, 'x')
regexp_split_to_array({'abc'::text}, 'b', 'g')
substring({'foobar'::text} from 'o(.)b')
substring({'foobar'::text} from 'o.b')
substring({'foobar'::text} from 'x')
substring({'foobar'::text}, 'o(.)b')
substring({'foobar'::text} similar '%#"o_b#"%' escape '#')
substring({'foobar'::text} from '%#"o_b#"%' for '#')
substring({E'a\nb'::text} from 'a.b')
substring({'foobar'::text} from '(x)?b')
{'abc'::text} similar to 'abc'
{'abc'::text} similar to 'a'
{'abc'::text} similar to '%(b|d)%'
{'abc'::text} similar to '(b|c)%'
{'abc'::text} similar to 'a_c'
{'a.c'::text} similar to 'a.c'
{'abc'::text} similar to 'a.c'
{'a%c'::text} similar to 'a\%c'
{'abc'::text} similar to 'a\%c'
{'a%c'::text} similar to 'a#%c' escape '#'
{'a%c'::text} similar to 'a#%c' escape ''
{'aac'::text} similar to 'a{2}c'
{'aac'::text} similar to 'a+c'
{'ac'::text} similar to 'ab?c'
{'ac'::text} similar to 'ab*c'
{'abc'::text} similar to 'a[a-z]c'
{'abc'::text} similar to 'a[^b]c'
{'a^c'::text} similar to 'a^c'
{'a$'::text} similar to 'a$'
{E'a\nc'::text} similar to 'a_c'
{E'a\nc'::text} similar to 'a%'
{'abc'::text} not similar to 'abc'
{'abc'::text} similar to null
""")

family("like", r"""
{'abc'::text} like 'a%'
{'abc'::text} like 'a_c'
{'a%c'::text} like 'a\%c'
{'abc'::text} like 'a\%c'
{'a\c'::text} like 'a\\c'
{'abc'::text} like 'ab\'
{'a%c'::text} like 'a#%c' escape '#'
{'a\c'::text} like 'a\c' escape ''
{'a%c'::text} like 'aX%c' escape 'X'
{'abc'::text} like 'abc' escape 'ab'
{'abc'::text} like 'abc#' escape '#'
{'a#c'::text} like 'a##c' escape '#'
{E'a\nb'::text} like 'a_b'
{E'a\nb'::text} like 'a%b'
{'ABC'::text} ilike 'a%'
{'É'::text} ilike 'é'
{'ABC'::text} not ilike 'b%'
{'aé'::text} like 'a_'
{''::text} like ''
{''::text} like '%'
{'abc'::text} like ''
{'abc'::text} like '%%%'
{'a%c'::text} like '%\%%'
{'a_c'::text} like '%\_%'
{'abc'::text} like {'a%'::text}
{'abc'::text} like {'ab\'::text}
{'abc'::text} like {'abc#'::text} escape {'#'::text}
{'abc'::text} ~~ 'a%'
{'abc'::text} !~~ 'a%'
{'ABC'::text} ~~* 'a%'
{'ABC'::text} !~~* 'a%'
{'\x6162'::bytea} like '\x6125'::bytea
{'abc'::text} like null
{null::text} like 'a'
{'abc'::varchar(5)} like 'a%'
starts_with({'abc'::text}, {'ab'::text})
{'abc'::text} ^@ {'ab'::text}
{1::int} like '1'
{'abc'::text} like any (array['x%', 'a%'])
{'abc'::text} like all (array['x%', 'a%'])
{'abc'::text} not like any (array['x%', 'a%'])
{'abc'::text} ilike any (array['X%', 'A%'])
{'abc'::text} ~ any (array['x', '^a'])
""")

family("rows", r"""
row({1::int}, {null::int}) = row({1::int}, {null::int})
row({1::int}, {null::int}) = row({2::int}, {null::int})
row({1::int}, {null::int}) <> row({1::int}, {null::int})
row({1::int}, {null::int}) <> row({2::int}, {null::int})
row({1::int}, {null::int}) < row({2::int}, {null::int})
row({1::int}, {null::int}) < row({1::int}, {2::int})
row({1::int}, {2::int}) < row({1::int}, {3::int})
row({1::int}, {2::int}) <= row({1::int}, {2::int})
row({1::int}, {2::int}) > row({1::int}, {null::int})
row({1::int}, {2::int}) >= row({0::int}, {null::int})
({1::int}, {null::int}) = ({1::int}, {null::int})
({1::int}, {2::int}) = ({1::int}, {2::int})
({1::int}, {'a'::text}) = ({1::int}, {'b'::text})
({1::int}, {2::int}) in ((1, 2), (3, 4))
({1::int}, {null::int}) in ((1, 2), (3, 4))
({1::int}, {null::int}) in ((2, 2), (3, 4))
({1::int}, {2::int}) not in ((1, null), (3, 4))
({1::int}, {2::int}) in ((1, null), (1, 2))
row({1::int}, {null::int}) is distinct from row({1::int}, {null::int})
row({1::int}, {null::int}) is distinct from row({1::int}, {2::int})
row({1::int}, {null::int}) is not distinct from row({1::int}, {null::int})
row({1::int}, {null::int}) is null
row({null::int}, {null::int}) is null
row({1::int}, {null::int}) is not null
row({1::int}, {2::int}) is not null
row({1::int}) = row({1::int})
row({1::int}, {2::int}) = row({1::int})
row({1::int}, {'a'::text})
row({1::int}, {'a b'::text}, {null::int})
row({1::int}, {'a"b'::text}, {''::text})
row({1::int}, {'a\b'::text})
row({'a,b'::text}, {'(x)'::text})
row({true::boolean}, {1.50::numeric}, {'2024-01-02'::date})
row({1::int}, {'a'::text})::text
row()
(row({1::int}, {'a'::text}))
row(row({1::int}, {2::int}), {3::int})
row(array[{1::int}, {2::int}], {3::int})
row({1.5::float8}, {'\x01'::bytea}, {'2024-01-02 03:04:05'::timestamp})
row({'1 day'::interval}, {'2024-01-02 03:04:05+00'::timestamptz})
coalesce(row({1::int}, {2::int}), row({3::int}, {4::int}))
case when {true::boolean} then row({1::int}, {2::int}) end
array[row({1::int}, {2::int}), row({3::int}, {4::int})]
row({1::int}, {2::int}) between row(1, 1) and row(1, 3)
({1::int}, {2::int}) = (select 1, 2)
({1::int}, {2::int}) in (select 1, 2)
({1::int}, {null::int}) in (select 1, 2)
({1::int}, {2::int}) < any (select 1, 3)
({1::int}, {2::int}) = all (select 1, 2)
({1::int}, {2::int}) <> (select 1, null::int)
to_json(row({1::int}, {'a'::text}))
row_to_json(row({1::int}, {'a'::text}))
concat(row({1::int}, {'a'::text}), 'x')
row({1::int}, {'a'::text}) = row({1::int}, {'a'::text}) and true
""")

family("nan and zero", r"""
{'-0'::float8} in ({0::float8}, {1::float8})
{'-0'::float8} not in ({0::float8}, {1::float8})
{'-0'::float8} in (0, 1)
{'-0'::float8} not in (0, 1, 2, 3, 4, 5)
{0.0::float8} in ('-0'::float8, 1)
{'nan'::float8} in ({'nan'::float8}, {1::float8})
{'nan'::float8} not in ('nan'::float8, 1, 2, 3, 4, 5, 6)
{'nan'::float4} in ('nan'::float4, 1)
{'-0'::float4} in ('0'::float4, 1)
{'-0'::float8} = any (array[0::float8, 1])
{'-0'::float8} <> all (array[0::float8, 1])
{'nan'::float8} = any (array['nan'::float8, 1])
{'-0'::float8} = {0.0::float8}
{'-0'::float8} < {0.0::float8}
{'-0'::float8} is distinct from {0.0::float8}
{'nan'::float8} is distinct from {'nan'::float8}
{'nan'::float8} > {1::float8}
{'nan'::float8} >= {'nan'::float8}
{'nan'::float8} < {1::float8}
nullif({'-0'::float8}, {0.0::float8})
nullif({'nan'::float8}, {'nan'::float8})
greatest({'-0'::float8}, {0.0::float8})
least({'-0'::float8}, {0.0::float8})
greatest({0.0::float8}, {'-0'::float8})
greatest({'nan'::float8}, {1::float8})
least({'nan'::float8}, {1::float8})
greatest({'nan'::float4}, {1::float4})
case {'-0'::float8} when 0 then 'zero' else 'other' end
case {'nan'::float8} when 'nan' then 'nan' else 'other' end
{'-0'::float8} between 0 and 1
{'nan'::float8} between 0 and 1
{'nan'::float8} between 'inf' and 'nan'
array[{'-0'::float8}] = array[{0.0::float8}]
array[{'nan'::float8}] = array[{'nan'::float8}]
array_position(array[{1::float8}, {'-0'::float8}], 0::float8)
array_remove(array[{1::float8}, {'-0'::float8}], 0::float8)
-{0.0::float8}
{0.0::float8} * -1
round({-0.4::float8})
ceil({-0.4::float8})
trunc({-0.4::float8})
sign({'-0'::float8})
sign({'nan'::float8})
{'-0'::float8}::int
{'-0'::float8}::numeric
{'-0'::text}::float8
{'-0'::text}::numeric
""")

family("zones", r"""
greatest({'2024-01-02 03:04:05+02'::timestamptz}, {'2024-01-01 00:00:00+00'::timestamptz})
least({'2024-01-02 03:04:05+02'::timestamptz}, {'2024-01-01 00:00:00'::timestamp})
greatest({'2024-01-02'::date}, {'2024-01-01 00:00:00+00'::timestamptz})
greatest({'2024-01-02'::date}, {'2024-01-01 12:00:00'::timestamp})
coalesce({null::timestamptz}, {'2024-01-01 00:00:00+00'::timestamptz})
coalesce({null::timestamp}, {'2024-01-01 00:00:00+00'::timestamptz})
nullif({'2024-01-02 03:04:05+02'::timestamptz}, {'2024-01-01 00:00:00+00'::timestamptz})
case when {true::boolean} then {'2024-01-02 03:04:05+02'::timestamptz} else {'2024-01-01 00:00:00'::timestamp} end
array[{'2024-01-02 03:04:05+02'::timestamptz}, null]
(array[{'2024-01-02 03:04:05+02'::timestamptz}])[1]
date_bin('15 minutes', {'2024-01-02 03:04:05+02'::timestamptz}, '2024-01-01 00:00:00+00'::timestamptz)
date_bin('15 minutes', {'2024-01-02 03:04:05'::timestamp}, '2024-01-01 00:00:00'::timestamp)
date_bin('15 minutes', {'2023-01-02 03:04:05'::timestamp}, '2024-01-01 00:02:00'::timestamp)
date_bin('0 minutes', {'2024-01-02 03:04:05'::timestamp}, '2024-01-01 00:00:00'::timestamp)
date_bin('-15 minutes', {'2024-01-02 03:04:05'::timestamp}, '2024-01-01 00:00:00'::timestamp)
date_bin('1 month', {'2024-01-02 03:04:05'::timestamp}, '2024-01-01 00:00:00'::timestamp)
date_bin({'1 day'::interval}, {'2024-01-02 03:04:05'::timestamp}, {'2024-01-01 00:00:00'::timestamp})
date_trunc('day', {'2024-01-02 03:04:05+02'::timestamptz})
date_trunc('day', {'2024-01-02 03:04:05+02'::timestamptz}, 'Europe/Berlin')
date_trunc('hour', {'2024-01-02 03:34:05+02'::timestamptz}, 'Asia/Kolkata')
date_trunc('day', {'2024-01-02'::date})
date_trunc('day', {'2024-01-02 03:04:05'::timestamp})
date_trunc('hour', {'1 day 02:03:04'::interval})
date_trunc('month', {'1 year 5 months 40 days 02:03:04'::interval})
date_trunc('quarter', {'1 year 5 months'::interval})
date_trunc('week', {'1 year 5 months'::interval})
date_trunc('decade', {'25 years'::interval})
date_trunc('century', {'-50-01-01'::text}::timestamp)
date_trunc('nonsense', {'2024-01-02 03:04:05'::timestamp})
date_trunc('decade', {'0044-03-15 00:00:00 BC'::timestamp})
date_trunc('century', {'0044-03-15 00:00:00 BC'::timestamp})
date_trunc('millennium', {'0044-03-15 00:00:00 BC'::timestamp})
date_trunc('week', {'infinity'::timestamp})
{'2024-01-02 03:04:05+02'::timestamptz} + {'1 day'::interval}
{'2024-01-02 03:04:05+02'::timestamptz} - {'1 day'::interval}
{'2024-01-02 03:04:05+02'::timestamptz} - {'2024-01-01 00:00:00'::timestamp}
{'2024-01-02 03:04:05+02'::timestamptz}::date
{'2024-01-02 03:04:05+02'::timestamptz}::time
{'2024-01-02 03:04:05+02'::timestamptz}::timestamp
{'2024-01-02 03:04:05+02'::timestamptz}::text
{'2024-01-02 03:04:05'::timestamp}::timestamptz
{'2024-01-02'::date}::timestamptz
{'2024-01-02 03:04:05+02'::timestamptz} at time zone 'Europe/Berlin'
{'2024-01-02 03:04:05'::timestamp} at time zone 'Europe/Berlin'
timezone('UTC', {'2024-01-02 03:04:05'::timestamp})
{'2024-01-02 03:04:05+02'::timestamptz} = {'2024-01-02 01:04:05'::timestamp}
{'2024-01-02 03:04:05+02'::timestamptz} > {'2024-01-02'::date}
extract(epoch from {'2024-01-02 03:04:05+02'::timestamptz})
extract(timezone from {'2024-01-02 03:04:05+02'::timestamptz})
extract(timezone_hour from {'2024-01-02 03:04:05+02'::timestamptz})
extract(timezone from {'2024-01-02 03:04:05'::timestamp})
to_timestamp({1704164645.5::float8})
to_timestamp({'2024-01-02'::text}, 'YYYY-MM-DD')
concat({'2024-01-02 03:04:05+02'::timestamptz}, 'x')
make_timestamptz(2024, 1, {2::int}, 3, 4, 5)
make_timestamptz(2024, 1, {2::int}, 3, 4, 5, 'Europe/Berlin')
age({'2024-03-01 00:00:00+00'::timestamptz}, {'2023-01-15 00:00:00+00'::timestamptz})
overlaps_test({1::int})
(({'2024-01-01'::date}, {'2024-02-01'::date}) overlaps ({'2024-01-15'::date}, {'2024-03-01'::date}))
isfinite({'infinity'::timestamptz})
isfinite({'2024-01-01'::date})
isfinite({'1 day'::interval})
{'infinity'::timestamp} > {'2024-01-02 03:04:05'::timestamp}
{'infinity'::date} + {1::int}
{'-infinity'::timestamptz}::text
""")

family("dates", r"""
make_date({-44::int}, {3::int}, {15::int})
make_date({0::int}, {3::int}, {15::int})
make_date({2024::int}, {2::int}, {30::int})
make_date({2024::int}, {2::int}, {29::int})
make_date({99999999::int}, {1::int}, {1::int})
make_date({5874897::int}, {12::int}, {31::int})
make_date({5874898::int}, {1::int}, {1::int})
make_date({-4714::int}, {11::int}, {24::int})
make_date({-4714::int}, {11::int}, {23::int})
make_date({2024::int}, {13::int}, {1::int})
make_time({1::int}, {2::int}, {3.5::float8})
make_time({24::int}, {0::int}, {0::float8})
make_time({25::int}, {0::int}, {0::float8})
make_time({1::int}, {60::int}, {0::float8})
make_time({1::int}, {2::int}, {60::float8})
make_time({1::int}, {2::int}, {-1::float8})
make_timestamp({2024::int}, {1::int}, {2::int}, {3::int}, {4::int}, {5.5::float8})
make_timestamp({-44::int}, {3::int}, {15::int}, {0::int}, {0::int}, {0::float8})
make_timestamp({2024::int}, {2::int}, {30::int}, {0::int}, {0::int}, {0::float8})
make_timestamp({0::int}, {2::int}, {1::int}, {0::int}, {0::int}, {0::float8})
make_timestamp({2024::int}, {2::int}, {1::int}, {24::int}, {0::int}, {0::float8})
make_timestamp({300000::int}, {2::int}, {1::int}, {4::int}, {0::int}, {0::float8})
make_interval({1::int}, {2::int}, {3::int}, {4::int}, {5::int}, {6::int}, {7.5::float8})
make_interval({1::int})
make_interval({2147483647::int})
make_interval(days => {10::int})
make_interval(years => {1::int}, secs => {2.5::float8})
make_interval(0, 0, 0, {2147483647::int}, {2147483647::int})
interval(0) '1.6 seconds'
{'1.6 seconds'::interval}::interval(0)
{'1 day 02:03:04.5678'::interval}::interval(2)
interval '1 day 02:03:04.5678' second(2)
interval '1 day 02:03:04' hour
interval '1 day 02:03:04' hour to minute
interval '1 day 02:03:04' day
interval '1-2' year to month
interval '5' month
interval '5' second
interval '1:2' minute to second
interval '1 2:3' day to minute
interval '1 day 02:03:04.5678' day to second(1)
interval '2' year
interval '90' minute
interval 'P1Y2M3DT4H5M6S'
interval '1 year 2 mons -3 days 04:05:06'
interval '-1 day -02:03'
interval '1.5 months'
interval '1.5 days'
interval '1.5 years'
interval '1 week'
interval '1 decade'
interval '1 day ago'
interval '@ 1 minute'
interval '999999999999 years'
interval 'foo'
interval ''
{'1 day'::text}::interval
{'1.6 s'::text}::interval(0)
{'1 day 02:03:04'::interval} * {2::int}
{'1 day 02:03:04'::interval} * {0.5::float8}
{'1 month'::interval} / {2::int}
{'1 month'::interval} / {0::int}
{'1 day'::interval} = {'24 hours'::interval}
{'1 month'::interval} = {'30 days'::interval}
{'1 month'::interval} > {'29 days'::interval}
{'-1 day'::interval} < {'1 hour'::interval}
- {'1 month -1 day 02:03:04'::interval}
extract(day from {'-1 day -02:03:04.5'::interval})
extract(hour from {'-1 day -02:03:04.5'::interval})
extract(minute from {'-1 day -02:03:04.5'::interval})
extract(second from {'-1 day -02:03:04.5'::interval})
extract(epoch from {'-1 day -02:03:04.5'::interval})
extract(epoch from {'-1 year -1 month'::interval})
extract(millisecond from {'-1 day -02:03:04.5'::interval})
extract(microseconds from {'-1 day -02:03:04.5'::interval})
extract(year from {'-13 months'::interval})
extract(month from {'-13 months'::interval})
extract(quarter from {'-13 months'::interval})
extract(quarter from {'5 months'::interval})
extract(decade from {'-25 years'::interval})
extract(century from {'-250 years'::interval})
extract(millennium from {'2500 years'::interval})
extract(week from {'10 days'::interval})
extract(dow from {'10 days'::interval})
extract(hour from {'49:00'::interval})
extract(century from {'0044-03-15 BC'::date})
extract(decade from {'0044-03-15 BC'::date})
extract(millennium from {'0044-03-15 BC'::date})
extract(year from {'0044-03-15 BC'::date})
extract(isoyear from {'0044-03-15 BC'::date})
extract(julian from {'2024-01-02'::date})
extract(julian from {'2024-01-02 12:00:00'::timestamp})
extract(week from {'2021-01-03'::date})
extract(isoyear from {'2021-01-03'::date})
extract(dow from {'2021-01-03'::date})
extract(isodow from {'2021-01-03'::date})
extract(doy from {'2024-12-31'::date})
extract(quarter from {'2024-12-31'::date})
extract(hour from {'2024-12-31'::date})
extract(epoch from {'2024-12-31'::date})
extract(hour from {'03:04:05.5'::time})
extract(epoch from {'03:04:05.5'::time})
extract(day from {'03:04:05.5'::time})
extract(second from {'2024-01-02 03:04:05.678'::timestamp})
extract(milliseconds from {'2024-01-02 03:04:05.678'::timestamp})
extract(microseconds from {'2024-01-02 03:04:05.678'::timestamp})
extract(nonsense from {'2024-01-02 03:04:05.678'::timestamp})
extract(epoch from {'infinity'::timestamp})
extract(year from {'infinity'::date})
extract(day from {'infinity'::date})
date_part('hour', {'2024-01-02 03:04:05.678'::timestamp})
date_part('hour', {'2024-01-02'::date})
date_part('second', {'-02:03:04.5'::interval})
{'2024-01-31'::date} + {'1 month'::interval}
{'2024-01-31'::date} + {1::int}
{'2024-03-01'::date} - {'2024-02-01'::date}
{'2024-01-31'::date} + {'03:04:05'::time}
{'23:00'::time} + {'2 hours'::interval}
{'01:00'::time} - {'2 hours'::interval}
{'01:00'::time} - {'03:00'::time}
{'5874897-12-31'::date} + {1::int}
{'2024-01-31'::date} - {2147483647::int}
{'294276-12-31 23:59:59'::timestamp} + {'1 day'::interval}
{'4714-11-24 00:00:00 BC'::timestamp} - {'1 day'::interval}
{'5874897-12-31'::date}::timestamp
{'2024-02-30'::text}::date
{'2024-13-01'::text}::date
{'today is'::text}::date
{'20240131'::text}::date
{'Jan 31 2024'::text}::date
{'31-Jan-2024'::text}::date
{'2024.031'::text}::date
{'J2451187'::text}::date
{'0044-03-15 BC'::text}::date
{'epoch'::text}::timestamp
{'2024-01-31 25:00'::text}::timestamp
{'2024-01-31T03:04:05Z'::text}::timestamptz
{'2024-01-31 03:04:05 Europe/Berlin'::text}::timestamptz
{'2024-01-31 03:04:05-08'::text}::timestamptz
{'2024-01-31 03:04:05.123456789'::text}::timestamp
{'2024-01-31 24:00:00'::text}::timestamp
{'03:04'::text}::time
{'24:00'::text}::time
{'25:00'::text}::time
{'3:04 PM'::text}::time
{'030405'::text}::time
{'12:34:56.789'::time}::time(1)
{'23:59:59.99'::time}::time(1)
{'2024-01-31 03:04:05.678'::timestamp}::timestamp(0)
{'2024-01-31 03:04:05.678'::timestamp}::timestamp(2)
{'2024-01-31 03:04:05.678+00'::timestamptz}::timestamptz(0)
timestamp(0) '2024-01-31 03:04:05.678'
{'2024-01-31 03:04:05.678'::timestamp}::date
{'2024-01-31 03:04:05.678'::timestamp}::time
{'03:04:05'::time}::interval
{'1 day 03:04:05'::interval}::time
{'-03:04:05'::interval}::time
justify_days({'35 days'::interval})
justify_hours({'27 hours'::interval})
justify_interval({'1 mon -1 hour'::interval})
age({'2024-03-01'::timestamp}, {'2023-01-15'::timestamp})
to_char({'2024-01-02 03:04:05'::timestamp}, 'YYYY-MM-DD HH24:MI:SS')
to_char({'0044-03-15 00:00:00 BC'::timestamp}, 'YYYY BC')
to_char({'1 day 02:03:04'::interval}, 'DD HH24:MI:SS')
to_char({1234.5::numeric}, '9,999.99')
to_char({-1234.5::float8}, 'S9999.9')
to_char({5::int}, 'RN')
to_date({'05 Dec 2000'::text}, 'DD Mon YYYY')
to_date({'2000-13-01'::text}, 'YYYY-MM-DD')
{'1 day'::interval}::text
{'2024-01-02'::date}::text
extract(day from {'2024-01-02'::text})
now() - now()
date {'2024-01-02'::text}
""")

family("casts", r"""
('\x' || {'41'::text})::bytea
{'\x4142'::text}::bytea
{'\x414'::text}::bytea
{'\xzz'::text}::bytea
{'abc'::text}::bytea
{'a\\b'::text}::bytea
{'a\001b'::text}::bytea
{'a\9b'::text}::bytea
{'a\b'::text}::bytea
{''::text}::bytea
'{}'::text[]
{'{}'::text}::text[]
{'{}'::text}::int[]
{'{1,2}'::text}::int[]
{'{1,NULL}'::text}::int[]
{'{"a b",c,"d\"e"}'::text}::text[]
{'{null,NULL,"null"}'::text}::text[]
{'{{1,2},{3,4}}'::text}::int[]
{'{{1,2},{3}}'::text}::int[]
{'{1,2'::text}::int[]
{'1,2'::text}::int[]
{'{1,x}'::text}::int[]
{'{,}'::text}::int[]
{'{a,}'::text}::text[]
{'{""}'::text}::text[]
{'{ a , b }'::text}::text[]
{'[2:3]={1,2}'::text}::int[]
'{1,2}'::int[]
'{"a","b c"}'::text[]
'{NULL}'::text[]
'{t,f}'::bool[]
'{2024-01-02}'::date[]
'{1.5,2}'::numeric[]
'{\\x41}'::bytea[]
{'{1,2}'::int[]}::text
{'{1,2}'::int[]}::text[]
{'{1,2}'::text[]}::int[]
{'{"a b",null,"NULL",""}'::text[]}::text
array[{'a"b'::text}, {'c\d'::text}, {'e,f'::text}]
array[]::int[]
array[[1,2],[3,4]]
array[{1::int}, {2.5::numeric}]
array[{1::int}, 'x']
{'{1,2}'::int[]} || {3::int}
{0::int} || {'{1,2}'::int[]}
{'{1,2}'::int[]} || {'{3}'::int[]}
{'{1,2}'::int[]} || null
{'{1,2}'::int[]} = {'{1,2}'::int[]}
{'{1,2}'::int[]} < {'{1,3}'::int[]}
{'{1,2}'::int[]} @> {'{1}'::int[]}
{'{1}'::int[]} <@ {'{1,2}'::int[]}
{'{1,2}'::int[]} && {'{2,3}'::int[]}
({'{1,2}'::int[]})[1]
({'{1,2}'::int[]})[3]
({'{1,2}'::int[]})[0]
({'{1,2,3}'::int[]})[2:3]
array_length({'{1,2}'::int[]}, 1)
array_length({'{}'::int[]}, 1)
array_length({'{1,2}'::int[]}, 2)
cardinality({'{1,2}'::int[]})
cardinality({'{}'::int[]})
array_ndims({'{1,2}'::int[]})
array_ndims({'{}'::int[]})
array_dims({'{1,2}'::int[]})
array_upper({'{1,2}'::int[]}, 1)
array_lower({'{1,2}'::int[]}, 1)
array_append({'{1,2}'::int[]}, {3::int})
array_append({null::int[]}, {3::int})
array_prepend({0::int}, {'{1,2}'::int[]})
array_cat({'{1,2}'::int[]}, {'{3}'::int[]})
array_position({'{1,2,1}'::int[]}, {1::int})
array_position({'{1,2,1}'::int[]}, {9::int})
array_position({'{1,null}'::int[]}, null)
array_positions({'{1,2,1}'::int[]}, {1::int})
array_positions({'{1,2,1}'::int[]}, {9::int})
array_remove({'{1,2,1}'::int[]}, {1::int})
array_replace({'{1,2,1}'::int[]}, {1::int}, {5::int})
array_fill({1::int}, array[2])
array_to_string(array[1, null], ',', '*')
array_to_string({'{1,null,2}'::int[]}, ',')
array_to_string({'{1,null,2}'::int[]}, ',', '*')
array_to_string({'{a,null,b}'::text[]}, '-', 'x')
array_to_string({'{t,f}'::bool[]}, ',')
array_to_string({'{2024-01-02}'::date[]}, ',')
array_to_string({'{1.50}'::numeric[]}, ',')
array_to_string({'{1.5,nan}'::float8[]}, ',')
array_to_string({'{}'::int[]}, ',')
array_to_string({null::int[]}, ',')
array_to_string({'{a}'::text[]}, null)
array_to_string(array[{true::boolean}, null], ',', '*')
array_to_string(array[{'2024-01-02 03:04:05+00'::timestamptz}], ',')
array_to_string(array[{'\x41'::bytea}], ',')
array_to_string(array[{'1 day'::interval}], ',')
string_to_array({'a,b,c'::text}, ',')
string_to_array({'a,b,c'::text}, ',', 'b')
string_to_array({''::text}, ',')
string_to_array({'abc'::text}, null)
string_to_array({'abc'::text}, '')
trim_array({'{1,2,3}'::int[]}, 1)
unnest_test({1::int})
{1::int} = any ({'{1,2}'::int[]})
{1::int} = any ({'{}'::int[]})
{1::int} = any ({'{2,null}'::int[]})
{1::int} <> all ({'{2,null}'::int[]})
{1::int} <> all ({'{}'::int[]})
{1::int} < any ({'{2,0}'::int[]})
{'t'::text}::boolean
{'yes'::text}::boolean
{'of'::text}::boolean
{'o'::text}::boolean
{' TRUE '::text}::boolean
{'1'::text}::boolean
{'2'::text}::boolean
{true::boolean}::text
{false::boolean}::text
{true::boolean}::varchar
{'abc'::text}::varchar(2)
{'abc'::text}::char(5)
{'abc'::text}::char
{'abc '::char(5)} = 'abc'
{'abc'::char(5)} || 'x'
length({'abc'::char(5)})
{12345::int}::varchar(3)
{12345::int}::char(3)
{'2024-01-02'::date}::varchar(4)
{'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::text}::uuid
{'A0EEBC999C0B4EF8BB6D6BB9BD380A11'::text}::uuid
{'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'::text}::uuid
{'xyz'::text}::uuid
{'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid}::text
{'{"a": 1}'::text}::json
{'{"a": 1'::text}::json
{'\x4142'::bytea}::text
{1::int}::bytea
{1::int}::date
{1::int}::timestamp
{'2024-01-02'::date}::int
{1.5::numeric}::boolean
{'a'::text}::"char"
cast({'12'::text} as bigint)
{'12'::text}::int::text::int
int4({'12'::text})
text({12::int})
{'abc'::text}::name
{'1'::text}::oid
""")

family("texts", r"""
concat({true::boolean}, {false::boolean})
concat({1::int}, {null::text}, {'x'::text})
concat({1.50::numeric}, {1.0::float8}, {'2024-01-02'::date})
concat({'\x41'::bytea}, {'1 day'::interval}, {'{1,2}'::int[]})
concat({'{t,f}'::bool[]})
concat()
concat(null)
concat_ws('#', {true::boolean}, {false::boolean})
concat_ws({'#'::text}, {1::int}, {null::text}, {'x'::text})
concat_ws({null::text}, {1::int}, {'x'::text})
concat_ws('#', {1.50::numeric}, {1.0::float8}, {'2024-01-02'::date})
concat_ws('#', {'\x41'::bytea}, {'1 day'::interval}, {'{1,2}'::int[]})
concat_ws('#', {'2024-01-02 03:04:05+00'::timestamptz}, {'03:04'::time})
concat_ws('#')
concat_ws('#', null, null)
concat_ws('#', {''::text}, {''::text})
{'a'::text} || {true::boolean}
{'a'::text} || {1::int}
{'a'::text} || {1.50::numeric}
{1::int} || {2::int}
{true::boolean} || {'a'::text}
{'a'::text} || {'\x41'::bytea}
{'\x41'::bytea} || {'\x42'::bytea}
{'\x41'::bytea} || 'B'
{'a'::text} || {null::text}
{'a'::text} || {'2024-01-02'::date}
{'a'::text} || {'2024-01-02 03:04:05+00'::timestamptz}
{'a'::char(3)} || {'b'::text}
format('%s %s', {true::boolean}, {1::int})
format('%s|%I|%L', {'a b'::text}, {'a b'::text}, {'a''b'::text})
format('%L', {null::text})
format('%L', {true::boolean})
format('%L', {1.5::numeric})
format('%L', {'a\b'::text})
format('%s', {null::text})
format('%I', {null::text})
format('%5s|%-5s|', {'a'::text}, {'b'::text})
format('%2$s %1$s', {'a'::text}, {'b'::text})
format('%s')
format('%x', {1::int})
format('%%')
format({null::text}, 1)
format('%s', {'2024-01-02 03:04:05+00'::timestamptz})
format('%s', {'{1,2}'::int[]})
format('%s', {'\x41'::bytea})
quote_ident({'a b'::text})
quote_ident({'select'::text})
quote_ident({'abc'::text})
quote_ident({'Abc'::text})
quote_literal({'a''b'::text})
quote_literal({'a\b'::text})
quote_literal({1::int})
quote_literal({true::boolean})
quote_literal({1.5::numeric})
quote_literal({'2024-01-02'::date})
quote_nullable({null::text})
quote_nullable({1::int})
quote_nullable({true::boolean})
length({'aé'::text})
length({'\x4142'::bytea})
octet_length({'aé'::text})
bit_length({'aé'::text})
bit_length({'\x41'::bytea})
char_length({'aé'::text})
upper({'aé'::text})
lower({'AÉ'::text})
initcap({'hello wORLD foo-bar'::text})
reverse({'aéb'::text})
reverse({''::text})
left({'abc'::text}, {-1::int})
left({'abc'::text}, {2::int})
right({'abc'::text}, {-1::int})
right({'abc'::text}, {5::int})
lpad({'abc'::text}, {5::int}, {'xy'::text})
lpad({'abc'::text}, {2::int})
lpad({'abc'::text}, {-1::int})
lpad({'abc'::text}, {5::int}, {''::text})
rpad({'abc'::text}, {6::int}, {'xy'::text})
repeat({'ab'::text}, {3::int})
repeat({'ab'::text}, {-1::int})
replace({'aaa'::text}, {'a'::text}, {'b'::text})
replace({'aaa'::text}, {''::text}, {'b'::text})
translate({'12345'::text}, {'143'::text}, {'ax'::text})
translate({'aéb'::text}, {'é'::text}, {'e'::text})
position({'b'::text} in {'abc'::text})
position({''::text} in {'abc'::text})
position({'\x42'::bytea} in {'\x4142'::bytea})
strpos({'abc'::text}, {'c'::text})
substr({'abc'::text}, {2::int})
substr({'abc'::text}, {0::int}, {2::int})
substr({'abc'::text}, {-1::int}, {3::int})
substr({'abc'::text}, {1::int}, {-1::int})
substr({'abc'::text}, {2147483647::int}, {2147483647::int})
substring({'abc'::text} from {2::int} for {1::int})
substring({'abc'::text} for {2::int})
substring({'\x414243'::bytea} from {2::int} for {1::int})
overlay({'abcdef'::text} placing {'XX'::text} from {3::int})
overlay({'abcdef'::text} placing {'XX'::text} from {3::int} for {1::int})
overlay({'abcdef'::text} placing {'XX'::text} from {0::int})
overlay({'abcdef'::text} placing {'XX'::text} from {3::int} for {-1::int})
overlay({'\x414243'::bytea} placing {'\x5858'::bytea} from {2::int})
trim({'  a  '::text})
trim(both {'x'::text} from {'xax'::text})
trim(leading {'x'::text} from {'xax'::text})
trim(trailing from {'a  '::text})
btrim({'xyaxy'::text}, {'yx'::text})
btrim({'\x00410'||'0'::text}::bytea, '\x00'::bytea)
ltrim({'xxa'::text}, {'x'::text})
rtrim({'axx'::text}, {'x'::text})
split_part({'a,b,c'::text}, {','::text}, {2::int})
split_part({'a,b,c'::text}, {','::text}, {-1::int})
split_part({'a,b,c'::text}, {','::text}, {0::int})
split_part({'a,b,c'::text}, {','::text}, {9::int})
split_part({'a,b,c'::text}, {''::text}, {1::int})
split_part({'a,b,c'::text}, {''::text}, {2::int})
ascii({'é'::text})
ascii({''::text})
chr({233::int})
chr({0::int})
chr({-1::int})
chr({1114112::int})
md5({'abc'::text})
md5({'\x41'::bytea})
sha256({'\x41'::bytea})
encode({'\x4142'::bytea}, 'hex')
encode({'\x4142'::bytea}, 'base64')
encode({'\x0042ff5c'::bytea}, 'escape')
encode({'\x4142'::bytea}, 'nonsense')
decode({'4142'::text}, 'hex')
decode({'QUI='::text}, 'base64')
decode({'a\000b'::text}, 'escape')
decode({'414'::text}, 'hex')
decode({'4x'::text}, 'hex')
decode({'QUI'::text}, 'base64')
get_byte({'\x4142'::bytea}, {1::int})
get_byte({'\x4142'::bytea}, {2::int})
set_byte({'\x4142'::bytea}, {1::int}, {0::int})
get_bit({'\x41'::bytea}, {0::int})
convert_from({'\x41'::bytea}, 'UTF8')
convert_to({'A'::text}, 'UTF8')
unistr({'d\0061t\+000061'::text})
normalize({'é'::text})
to_ascii({'a'::text}, 'LATIN1')
ltrim({'  a'::text})
starts_with({'abc'::text}, {''::text})
{'a'::text} < {'B'::text}
{'a'::text} = {'a '::text}
{'é'::text} > {'z'::text}
{'abc'::text} collate "C" < 'abd'
greatest({'a'::text}, {'B'::text})
least({'a'::text}, {null::text})
greatest({null::text}, {null::text})
greatest({1::int}, {2.5::numeric})
greatest({1::int}, {2.5::float8})
greatest({true::boolean}, {false::boolean})
coalesce({null::int}, {2.5::numeric})
coalesce({null::int}, '3')
coalesce({1::int}, 'x')
nullif({1::int}, {1::int})
nullif({1::int}, {1.0::numeric})
nullif({'a'::text}, {'b'::text})
nullif({1::int}, '1')
case when {1::int} > 0 then 1 else 2.5 end
case {1::int} when 1 then 'a' else 'b' end
case when {1::int} > 0 then 'x' else 1 end
num_nulls({1::int}, {null::int})
num_nonnulls({1::int}, {null::int})
pg_typeof({1::int} + {1::bigint})
pg_typeof({1::int} / {2.0::numeric})
pg_typeof({'2024-01-02'::date} + {1::int})
pg_typeof({'2024-01-02'::date} - {'2024-01-01'::date})
pg_typeof({'2024-01-02'::date} + {'1 day'::interval})
pg_typeof({'a'::text} || {1::int})
pg_typeof(sqrt({2::int}))
pg_typeof(round({2.5::numeric}))
pg_typeof(ceil({2::int}))
pg_typeof(abs({2::smallint}))
pg_typeof(extract(day from {'2024-01-02'::date}))
pg_typeof(array[{1::int}])
pg_typeof({null::text})
pg_typeof(null)
pg_typeof(row(1, 2))
{true::boolean} and {null::boolean}
{true::boolean} or {null::boolean}
{null::boolean} is unknown
{true::boolean} is not true
not {null::boolean}
{true::boolean} = {'t'::text}::boolean
{true::boolean} > {false::boolean}
{1::int} and {true::boolean}
not {1::int}
{1::int} is true
{'a'::text} between {'A'::text} and {'b'::text}
{2::int} between symmetric {3::int} and {1::int}
{1::int} in ({1::int}, {null::int})
{2::int} in ({1::int}, {null::int})
{2::int} not in ({1::int}, {null::int})
{1::int} in ('1', 'x')
{'a'::text} in ({'b'::text}, {'a'::text})
{1::int} in (1.0, 2.5)
{1::int} = {'1'::text}
{'2024-01-02'::date} = {'2024-01-02'::text}
{1::int} + {'1'::text}
{'2024-01-02'::date} + {1.5::numeric}
nosuch({1::int})
abs({'a'::text})
length({1::int})
upper({1::int})
substr({12345::int}, 2)
lower({true::boolean})
sqrt({'4'::text})
""")


# Families of whole statements: what makes their tables, and the statements.
STATEMENTS = {}


def statements_of(name, setup, text):
    STATEMENTS[name] = ([line.strip() for line in setup.strip().splitlines()], [line.strip() for line in text.strip().splitlines() if line.strip()])


statements_of("zeros", r"""
drop table if exists f
create table f (k int primary key, x float8, y float4, g int)
insert into f values (1, '-0', '-0', 1), (2, 0, 0, 1), (3, 'nan', 'nan', 2), (4, 'nan', 'nan', 2), (5, 1, 1, 3), (6, null, null, 3), (7, '-0', 0, 4), (8, '-inf', 'inf', 4)
create index on f (x)
""", r"""
select k, rank() over (order by x), dense_rank() over (order by y) from f order by k
select k, row_number() over (partition by x order by k), count(*) over (partition by y) from f order by k
select k, sum(g) over (order by x range between unbounded preceding and current row) from f order by k
select k, sum(g) over (order by x groups between 1 preceding and current row) from f order by k
select k, first_value(k) over (partition by x order by k), last_value(k) over (partition by x order by k) from f order by k
select count(distinct x), count(distinct y) from f
select count(distinct x), count(distinct g), sum(distinct x) filter (where x < 2) from f
select g, count(distinct x), count(distinct y) from f group by g order by g
select x + 0, count(*) from f group by x + 0 order by 1
select count(*) from (select distinct x from f) q
select count(*) from (select distinct x, y from f) q
select count(*) from (select x from f group by x) q
select x + 0 as x, count(*) from f group by x order by 1, 2
select count(*) from (select x from f union select y from f) q
select count(*) from (select x from f intersect select 0::float8) q
select count(*) from (select x from f except select 0::float8) q
select count(*) from (select x from f except all select 0::float8) q
select count(*) from f a join f b on a.x = b.x
select count(*) from f a join f b on a.x = b.y
select count(*) from f a left join f b on a.x = b.x and a.k <> b.k where b.k is null
select count(*) from f a where x in (select y from f where k = 2)
select count(*) from f a where x not in (select y from f where k = 2)
select count(*) from f where exists (select 1 from f b where b.x = f.x and b.k <> f.k)
select k from f where x in (0, 1, 2, 3, 4, 5) order by k
select k from f where x not in (0, 1, 2, 3, 4, 5) order by k
select k from f where x in ('-0', 'nan') order by k
select k from f where x = 0 order by k
select k from f where x = '-0' order by k
select k from f where x = 'nan' order by k
select k from f where x >= 'nan' order by k
select k from f where x < 0 order by k
select k from f where x between 0 and 0 order by k
select k from f where y = 0 and y >= 0 order by k
select k from f order by x, k
select k from f order by x desc nulls last, k desc
select max(x), min(x), max(y), min(y) from f
select max(x), min(x) from f where x < 5
select g, max(x) + 0, min(x) + 0 from f group by g order by g
select k from f where x is distinct from 0 order by k
select k, nullif(x, 0), nullif(y, 'nan') from f order by k
select k, case x when 0 then 'zero' when 'nan' then 'nan' end from f order by k
select mode() within group (order by g) from f
select array_agg(distinct g order by g) from f
select string_agg(distinct x::text, ',' order by x::text) from f
select a.k, b.k from f a full join f b on a.x = b.x and a.k < b.k order by 1, 2
""")

statements_of("names", r"""
drop table if exists n, m cascade
create table n (a int, b int, c int)
create table m (a int, d int)
insert into n values (1, 2, 3), (4, 5, 6)
insert into m values (1, 7), (4, 8)
""", r"""
select x from (select a as x, b as x from n) s
select s.x from (select a as x, b as x from n) s
select * from (select a as x, b as x from n) s order by 1
select count(*) from (select a as x, b as x from n) s
select x from (select a as x, b as x from n) s where x = 1
with s as (select a as x, b as x from n) select x from s
with s as (select a as x, b as x from n) select * from s order by 1
with s(x, x) as (select a, b from n) select x from s
select a from (select n.a, m.a from n join m on n.a = m.a) s
select a from (select * from n join m on n.a = m.a) s
select a from n, m
select a from n join m on n.a = m.a
select n.a from n join m using (a) order by 1
select a from n join m using (a) order by 1
select a as x, b as x from n order by x
select a as x, a as x from n order by x
select a, b as a from n order by a
create table dup as select a, b as a from n
create table dup2 as select a as x, b as x from n
create view dupv as select a as x, b as x from n
create table dup3 (a int, a text)
insert into n (a, a) values (1, 2)
update n set a = 1, a = 2
select +a, a from n order by 2
select -a, a, - a from n order by 2
select a, +a, a from n order by 1
select a, (a), a::int from n order by 1
select 1, 1, 1.0, '1', '1'
select a + 1, a + 1, 1 + a from n order by 1
select lower('A'), lower('A'), lower('a')
select count(*), count(*) from n
select sum(a), sum(a), sum(+a) from n
select row_number() over (order by a), row_number() over (order by a) from n order by 1
select s.* from (select 1 as x, 2 as x) s
select s.* , s.* from (select 1 as x) s
select n.*, n.* from n order by 1
select n.*, a from n order by n.a
select from n
select count(*) from (select from n) s
select exists (select from n)
select from n where a = 1
select
select x.a from n x join n x on true
select * from n as x, m as x
select nosuch from n
select n.nosuch from n
select nosuch.a from n
select a from nosuch
select a as b, b as a from n order by a
select a as b from n group by b order by 1
select a from n group by b
select a, count(*) from n
select a, b from n group by a
select a, sum(b) from n group by a having b > 1
select a from n order by nosuch
select distinct a from n order by b
select a from n union select b from n order by c
select a from n union select a, b from n
select a from n order by 3
select a from n group by 5
select a from n limit -1
select a from n limit a
select a from n offset -1
select 123abc
select 0x10
select 1_000
select 1.5e
select 1e5x
select 12.x
select a.1 from n a
select 1a
select $1x
select 1 as "1a"
select 1 a
select 1.5a
select a1 from (select 1 as a1) s
values (1, 2), (3)
select * from (values (1, 'x'), (2, 'y')) v(a, b) order by a
select * from (values (1), (2.5), (null)) v(a) order by a
select v.a from (values (1, 2)) v(a, a)
""")

statements_of("places", r"""
drop table if exists p, p2
create table p (k int primary key, a int, b int)
create table p2 (k int primary key, a int)
insert into p values (1, 2, 3), (2, 3, 4), (3, null, 5)
insert into p2 values (1, 2)
""", r"""
update p set a = row_number() over ()
update p set a = sum(b)
update p set a = generate_series(1, 2)
update p set a = 1 where sum(a) > 1
update p set a = 1 where row_number() over () = 1
update p set a = 1 returning sum(a)
update p set a = 1 returning row_number() over ()
delete from p where row_number() over () = 1
delete from p where max(a) = 1
delete from p returning count(*)
insert into p values (10, sum(1), 1)
insert into p values (10, row_number() over (), 1)
insert into p values (10, 1, 1) returning rank() over ()
insert into p (k, a) select k + 100, sum(a) over () from p returning sum(a)
select a from p where sum(a) > 1
select a from p where row_number() over () = 1
select a from p where generate_series(1, 2) = 1
select count(*) from p join p2 on sum(p.a) > 1
select count(*) from p join p2 on row_number() over () > 1
select count(*) from p join p2 on generate_series(1, 2) = p2.k
select sum(a) from p group by sum(a)
select 1 from p group by row_number() over ()
select a from p group by a having row_number() over () > 1
select a from p group by a having sum(b) > 3 order by 1
select a from p limit sum(1)
select a from p limit row_number() over ()
select sum(sum(a)) from p
select sum(row_number() over ()) from p
select sum(sum(a)) over () from p
select row_number() over (order by row_number() over ()) from p
select row_number() from p
select lag(a) from p
select abs(a) over () from p
select count(distinct a) over () from p
select sum(a) filter (where sum(a) > 1) from p
select sum(a) filter (where a > 2) from p
select k from p where exists (select 1 from p2 where sum(p2.a) > 1)
select (select max(p.a) from p2) from p
select k from p order by sum(a)
create table bad (a int default sum(1))
create table bad (a int default row_number() over ())
create table bad (a int check (sum(a) > 1))
create table bad (a int check (row_number() over () > 1))
create table bad (a int, check (max(a) > 1))
create table bad (a int default (select 1))
create table bad (a int check (a in (select 1)))
create table bad (a int default generate_series(1, 2))
create table bad (a int, b int default a)
create index on p (sum(a))
alter table p add check (sum(a) > 1)
alter table p alter a set default sum(1)
alter table p validate constraint nothing
alter table p validate constraint p_pkey
alter table p drop constraint nothing
alter table p rename constraint nothing to other
alter table p rename column nothing to other
alter table p alter column nothing set default 1
alter table p alter column nothing drop not null
alter table p alter column nothing type text
alter table p drop column nothing
alter table nothing add column a int
alter index nothing rename to other
alter table p add foreign key (nothing) references p2
alter table p add foreign key (a) references p2 (nothing)
alter table p add unique (nothing)
alter table p add primary key (a)
drop index nothing
drop view nothing
drop sequence nothing
comment on table nothing is 'x'
comment on column p.nothing is 'x'
truncate nothing
""")

statements_of("windows", r"""
drop table if exists w1, wz
create table w1 (k int primary key, v int, t text, n numeric(6,2), z timestamptz, d date)
insert into w1 values (1, 10, 'a', 1.50, '2024-01-01 00:00+00', '2024-01-01'), (2, null, 'b', null, '2024-01-02 00:00+00', null), (3, 30, null, 3.25, null, '2024-01-03'), (4, 30, 'd', 4, '2024-01-04 00:00+00', '2024-01-04')
""", r"""
select k, lag(v, null) over (order by k), lead(v, null) over (order by k) from w1 order by k
select k, lag(v, null, 5) over (order by k) from w1 order by k
select k, lag(v) over (order by k), lead(v) over (order by k) from w1 order by k
select k, lag(v, 0) over (order by k), lag(v, -1) over (order by k), lead(v, 2, -1) over (order by k) from w1 order by k
select k, lag(v, 1, 2.5) over (order by k) from w1 order by k
select k, lag(n, 1, 0) over (order by k) from w1 order by k
select k, lag(t, 1, 'none') over (order by k) from w1 order by k
select k, lag(t, 1, 5) over (order by k) from w1 order by k
select k, lag(z) over (order by k), lead(z, 1, '2030-01-01'::timestamptz) over (order by k) from w1 order by k
select k, first_value(z) over (order by k), last_value(z) over (order by k) from w1 order by k
select k, max(z) over (order by k), min(z) over () from w1 order by k
select k, nth_value(v, 2) over (order by k) from w1 order by k
select k, nth_value(v, null) over (order by k) from w1 order by k
select k, nth_value(v, 0) over (order by k) from w1 order by k
select k, nth_value(z, 2) over (order by k rows between unbounded preceding and unbounded following) from w1 order by k
select k, ntile(2) over (order by k) from w1 order by k
select k, ntile(null) over (order by k) from w1 order by k
select k, ntile(0) over (order by k) from w1 order by k
select k, ntile(-1) over (order by k) from w1 order by k
select k, ntile(3) over (order by v) from w1 order by k
select k, percent_rank() over (order by v), cume_dist() over (order by v) from w1 order by k
select k, sum(v) over (order by k rows between 1 preceding and 1 following) from w1 order by k
select k, sum(v) over (order by k rows between 1 following and 1 preceding) from w1 order by k
select k, sum(v) over (order by k range between 1 preceding and current row) from w1 order by k
select k, sum(v) over (order by t range between 1 preceding and current row) from w1 order by k
select k, sum(v) over (order by d range between '1 day' preceding and current row) from w1 order by k
select k, sum(v) over (order by k rows between -1 preceding and current row) from w1 order by k
select k, sum(v) over (order by k rows unbounded following) from w1 order by k
select k, array_agg(v) over (order by k) from w1 order by k
select k, string_agg(t, ',') over (order by k) from w1 order by k
select k, count(*) filter (where v > 10) over (order by k) from w1 order by k
select k, sum(v) over w, avg(n) over (w rows 1 preceding) from w1 window w as (order by k) order by k
select k, sum(v) over nosuch from w1
select array_agg(z order by k) from w1
select min(z), max(z) from w1
select coalesce(min(z), now()) is null from w1
select string_agg(t, ',' order by k desc) from w1
select string_agg(distinct t, ',') from w1
select string_agg(t::bytea, '\x2c'::bytea order by k) from w1
select string_agg(t::bytea, null order by k) from w1
select string_agg(t, null order by k) from w1
select string_agg(v::text, t order by k) from w1
select string_agg(distinct t::bytea, '\x2c'::bytea) from w1
select t, string_agg(t::bytea, '\x00'::bytea) from w1 group by t order by t
select bool_and(v > 5), bool_or(v > 25), every(v > 5) from w1
select bit_and(v), bit_or(v), bit_xor(v) from w1
select * from generate_series(1, 3) with ordinality
select * from generate_series(1, 3) with ordinality as g(a, b)
select * from generate_series(5, 1, -2) with ordinality as g
select g.ordinality, g from generate_series(1, 2) with ordinality as g order by 1
select * from unnest(array['a', 'b']) with ordinality
select * from unnest(array['a', 'b']) with ordinality as u(x, n) order by n desc
select x, n from unnest(array[3, 1]) with ordinality as u(x, n) where n > 1
select w1.k, u.n from w1 join unnest(array[4, 3]) with ordinality as u(x, n) on u.x = w1.k order by 1
select * from generate_series('2024-01-01'::timestamptz, '2024-01-02'::timestamptz, '12 hours')
select * from generate_series('2024-01-01'::timestamp, '2024-01-02'::timestamp, '12 hours')
select * from generate_series('2024-01-01'::date, '2024-01-02'::date, '1 day')
select * from generate_series(1, 3, 0)
select * from generate_series(1.5, 3)
select * from generate_series(3, 1)
select * from regexp_split_to_table('a,b', ',')
select * from regexp_matches('abc', '(.)', 'g')
select * from regexp_split_to_table('a,b', ',') with ordinality
with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) select * from r
with recursive r(n) as (select 1 union all select n + 1 from r where n in (select n from r)) select * from r
with recursive r(n) as (select 1 union all select a.n + 1 from r a join r b on a.n = b.n where a.n < 3) select * from r
with recursive r(n) as (select 1 union all select max(n) + 1 from r) select * from r limit 3
with recursive r(n) as (select n from r union all select 1) select * from r
with recursive r as (select 1) select * from r
select k from w1 where v = (select v from w1)
select k from w1 where v = (select v, k from w1)
select (select k from w1)
select k from w1 where t > 5
select k from w1 where v
select not v from w1
select v and true from w1
select case when v then 1 end from w1
select t + 1 from w1
select v || k from w1
select d + t from w1
select -t from w1
select sum(t) from w1
select avg(t) from w1
select nosuch(v) from w1
select round(t) from w1
select coalesce(v, t) from w1
select v = t from w1
select greatest(v, t) from w1
select case when k = 1 then v else t end from w1
select v from w1 union select t from w1
select array[v, t] from w1
select v in (k, t) from w1
select k from w1 where v between 'a' and 'b'
select t::int from w1 where k = 1
select d::int from w1
select cast('x' as int)
select '2024-13-01'::date
select 1 / 0
select k / (k - 1) from w1
select 1 where 1 / 0 = 1
select v::smallint * 10000::smallint from w1
select 9223372036854775807 + 1
select sum(9223372036854775807) from w1
select avg(v), sum(n), stddev(v) from w1
""")


FAMILIES["table of functions"] = EXAMPLES

FORMS = ("constants", "folded", "columns", "joined", "condition")
OPERAND = re.compile(r"\{((?:'(?:[^']|'')*'|E'(?:[^']|'')*'|[^'{}:])*?)::([a-z0-9 ()\[\],]+)\}")


def operands(expression):
    """The expression with its operands replaced by `@0`, `@1`, and their texts and types."""
    found = []

    def number(match):
        found.append((match.group(1), match.group(2)))
        return f"@{len(found) - 1}@"

    return OPERAND.sub(number, expression), found


def put(pattern, texts):
    for at, text in enumerate(texts):
        pattern = pattern.replace(f"@{at}@", text)
    return pattern


def statements(expression):
    """(name of the form, statements that prepare it, statement that asks)."""
    pattern, given = operands(expression)
    constants = put(pattern, [f"({value})::{kind}" for value, kind in given])
    columns = put(pattern, [f"w.a{at}" for at in range(len(given))])
    made = "".join(f", a{at} {kind}" for at, (_, kind) in enumerate(given))
    filled = "".join(f", ({value})::{kind}" for value, kind in given)
    table = ["drop table if exists w", f"create table w (k int{made})", f"insert into w select 1{filled}"]
    yield "constants", [], f"select {constants} as x"
    yield "folded", [], f"select {constants} as x from (values (1)) p(one) join (values (1)) q(one) on p.one = q.one"
    # There are no columns of arrays.
    if given and not any("[]" in kind for _, kind in given):
        yield "columns", table, f"select {columns} as x from w"
        yield "joined", [], f"select {columns} as x, row_number() over () as n from w join (values (1)) q(one) on q.one = w.k"
        yield "condition", [], f"select count(*) from w where ({columns}) is not null"


def differs(pg, mine):
    """What is different, in a word; None for nothing."""
    if mine[0] == "error":
        if pg[0] == "error":
            return None if pg[1] == mine[1] else "unsupported" if mine[1] == "0A000" else "code"
        return "unsupported" if mine[1] == "0A000" else "refused"
    if pg[0] == "error":
        return "answered"
    names, kinds, rows = pg[2:5]
    if len(mine[4]) != len(rows):
        return "rows"
    for ours, theirs in zip(mine[4], rows):
        for a, b, kind in zip(ours, theirs, kinds):
            if a != b and not near(a, b, kind):
                return "rows"
    if kinds != mine[3]:
        return "type"
    return "digits" if mine[4] != rows else None


def ask(postgres, cairn, only=()):
    """Yields (family, expression, form, what, PostgreSQL's answer, Cairn's)."""
    for name, expressions in FAMILIES.items():
        if only and name not in only:
            continue
        for expression in expressions:
            for form, before, sql in statements(expression):
                prepared = [[side.run(statement)[0] for statement in before] for side in (postgres, cairn)]
                if prepared[0] != prepared[1] or "error" in prepared[0]:
                    if prepared[0] != prepared[1]:
                        yield name, expression, form, "table", prepared[0], prepared[1]
                    break
                one, other = postgres.run(sql), cairn.run(sql)
                yield name, expression, form, differs(one, other), one, other


def ask_statements(postgres, cairn, only=()):
    """As [`ask`], of whole statements. The order of rows counts where a statement has an ORDER BY."""
    for name, (setup, texts) in STATEMENTS.items():
        if only and name not in only:
            continue
        for sql in texts:
            for side in (postgres, cairn):
                side.run("rollback")
                for statement in setup:
                    side.run(statement)
            one, other = postgres.run(sql), cairn.run(sql)
            if "order by" not in sql and one[0] == other[0] == "rows":
                one, other = ((*side[:4], sorted(side[4], key=str)) for side in (one, other))
            yield name, sql, "statement", differs(one, other), one, other


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--digits", action="store_true", help="also where only the digits or the type differ")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    counts = {}
    postgres, cairn = Side(options.postgres, "postgres"), Side(options.cairn, "cairn")
    asked = itertools.chain(ask(postgres, cairn, only), ask_statements(postgres, cairn, only))
    for name, expression, form, what, one, other in asked:
        counts[what or "same"] = counts.get(what or "same", 0) + 1
        if what and what != "unsupported" and (options.digits or what not in ("digits", "type")):
            print(f"[{name}] {form}: {what}: {expression}\n    PostgreSQL {one[-1] if one[0] == 'error' else one[4]}\n    Cairn      {other[-1] if other[0] == 'error' else other[4]}")
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
