//! The parts into which a long validation is divided.

use std::str::FromStr;

/// One of several parts, written as `2/6`: the second of six. With n parts, a part has every n-th
/// case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Counted from 1.
    number: usize,
    of: usize,
}

impl Share {
    /// Returns whether the case at index `at` belongs to this part.
    pub(super) fn has(self, at: usize) -> bool {
        at % self.of == self.number - 1
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        let numbers = text.split_once('/').map(|(number, of)| (number.parse(), of.parse()));
        match numbers {
            Some((Ok(number), Ok(of))) if (1..=of).contains(&number) => Ok(Share { number, of }),
            _ => Err(format!("expected one part of several, such as 2/6, found {text:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the parts cover all cases, each once, and invalid parts are refused. Method: three
    /// parts of ten cases; invalid texts.
    #[test]
    fn parts_are_the_whole() {
        let parts: Vec<Share> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        for at in 0..10 {
            assert_eq!(parts.iter().filter(|part| part.has(at)).count(), 1, "{at}");
        }
        for text in ["", "2", "0/3", "4/3", "1/0", "a/b", "-1/3"] {
            assert!(text.parse::<Share>().unwrap_err().contains("2/6"), "{text}");
        }
    }
}
