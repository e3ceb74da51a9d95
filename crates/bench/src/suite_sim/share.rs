//! What a long validation is divided into.

use std::str::FromStr;

/// Every so many-th case, from a certain one on. Written as `2/6`: the second of six parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// From 1 on.
    number: usize,
    of: usize,
}

impl Share {
    /// Whether the case at this place is a part of it.
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

    /// Goal: parts are all cases together, each once; what is no part is refused. Method: three
    /// parts of ten cases; texts.
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
