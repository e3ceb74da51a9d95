//! Checks that a text is JSON (RFC 8259). A loop with an explicit stack, so that nesting costs
//! memory but no calls.

/// The token that must come next in a JSON text.
#[derive(Clone, Copy, PartialEq)]
enum Expect {
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    CommaOrEnd,
}

/// Errors: the position and cause of the first mistake.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    let mut open: Vec<u8> = Vec::new();
    let mut expect = Expect::Value;
    let mut at = 0;
    loop {
        while bytes.get(at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            at += 1;
        }
        let Some(&byte) = bytes.get(at) else {
            let done = open.is_empty() && expect == Expect::CommaOrEnd;
            return if done { Ok(()) } else { Err("The input string ended unexpectedly.".to_owned()) };
        };
        let wrong = || Err(format!("Unexpected character at byte {}.", at + 1));
        expect = match (expect, byte) {
            (Expect::ValueOrEnd, b']') | (Expect::NameOrEnd, b'}') => {
                open.pop();
                at += 1;
                Expect::CommaOrEnd
            }
            (Expect::CommaOrEnd, b',') if !open.is_empty() => {
                at += 1;
                if open.last() == Some(&b'{') { Expect::Name } else { Expect::Value }
            }
            (Expect::CommaOrEnd, b']') if open.last() == Some(&b'[') => {
                open.pop();
                at += 1;
                Expect::CommaOrEnd
            }
            (Expect::CommaOrEnd, b'}') if open.last() == Some(&b'{') => {
                open.pop();
                at += 1;
                Expect::CommaOrEnd
            }
            (Expect::Name | Expect::NameOrEnd, b'"') => {
                let Some(end) = string(bytes, at) else { return wrong() };
                at = end;
                while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                    at += 1;
                }
                if bytes.get(at) != Some(&b':') {
                    return Err(format!("Expected a colon at byte {}.", at + 1));
                }
                at += 1;
                Expect::Value
            }
            (Expect::Value | Expect::ValueOrEnd, b'[' | b'{') => {
                open.push(byte);
                at += 1;
                if byte == b'[' { Expect::ValueOrEnd } else { Expect::NameOrEnd }
            }
            (Expect::Value | Expect::ValueOrEnd, _) => {
                let Some(end) = scalar(bytes, at) else { return wrong() };
                at = end;
                Expect::CommaOrEnd
            }
            _ => return wrong(),
        };
    }
}

/// Returns the end of a string, number, `true`, `false` or `null`.
fn scalar(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) == Some(&b'"') {
        return string(bytes, at);
    }
    for word in ["true", "false", "null"] {
        if bytes.get(at..at + word.len()) == Some(word.as_bytes()) {
            return Some(at + word.len());
        }
    }
    let digits = |mut at: usize| {
        let start = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        (at > start).then_some(at)
    };
    let start = at + usize::from(bytes.get(at) == Some(&b'-'));
    let mut end = digits(start)?;
    if bytes.get(start) == Some(&b'0') && end > start + 1 {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits(end + 1 + sign)?;
    }
    Some(end)
}

fn string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => {
                let escape = *bytes.get(at + 1)?;
                at += match escape {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                    b'u' if bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => 6,
                    _ => return None,
                };
            }
            0..0x20 => return None,
            _ => at += 1,
        }
    }
}
