//! Shell patterns: `*`, `?`, `[a-z]`, and `\` to escape.

use std::fmt;

/// A shell pattern for an entry's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// `*`
    Any,
    /// `?`
    One,
    /// A literal character.
    Literal(char),
    /// `[…]` or `[^…]`
    Set { ranges: Vec<(char, char)>, is_negated: bool },
}

impl Part {
    fn matches_char(&self, c: char) -> bool {
        match self {
            Part::Any | Part::One => true,
            Part::Literal(literal) => *literal == c,
            Part::Set { ranges, is_negated } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *is_negated
            }
        }
    }
}

impl Pattern {
    /// Parses a pattern. Fails for an unclosed bracket, an incomplete range or a trailing
    /// backslash.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let mut rest = text.chars();
        let mut parts = Vec::new();
        while let Some(c) = rest.next() {
            parts.push(match c {
                '*' => Part::Any,
                '?' => Part::One,
                '[' => {
                    parse_set(&mut rest).ok_or_else(|| format!("{text:?} contains an invalid bracket expression"))?
                }
                '\\' => Part::Literal(rest.next().ok_or_else(|| format!("{text:?} ends with a backslash"))?),
                literal => Part::Literal(literal),
            });
        }
        Ok(Pattern { text: text.to_owned(), parts })
    }

    /// Whether the pattern matches the whole name.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        // The last `*`, and how much it has matched: backtracking to it is sufficient.
        let (mut part, mut at, mut star) = (0, 0, None);
        loop {
            match self.parts.get(part) {
                Some(Part::Any) => {
                    star = Some((part, at));
                    part += 1;
                }
                Some(here) if name.get(at).is_some_and(|c| here.matches_char(*c)) => (part, at) = (part + 1, at + 1),
                None if at == name.len() => return true,
                Some(_) | None => match star {
                    Some((star_part, taken)) if taken < name.len() => {
                        star = Some((star_part, taken + 1));
                        (part, at) = (star_part + 1, taken + 1);
                    }
                    Some(_) | None => return false,
                },
            }
        }
    }
}

/// Parses a bracket expression after its opening bracket.
fn parse_set(rest: &mut std::str::Chars<'_>) -> Option<Part> {
    let mut ahead = rest.clone();
    let is_negated = ahead.next() == Some('^');
    if is_negated {
        rest.next();
    }
    let literal = |rest: &mut std::str::Chars<'_>| match rest.next()? {
        '\\' => rest.next(),
        '-' | ']' => None,
        c => Some(c),
    };
    let mut ranges = Vec::new();
    loop {
        let mut ahead = rest.clone();
        if ahead.next() == Some(']') && !ranges.is_empty() {
            *rest = ahead;
            return Some(Part::Set { ranges, is_negated });
        }
        let low = literal(rest)?;
        let mut ahead = rest.clone();
        let high = if ahead.next() == Some('-') {
            *rest = ahead;
            literal(rest)?
        } else {
            low
        };
        ranges.push((low, high));
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        let cases = [
            ("*", "", true),
            ("*", "anything", true),
            ("disk-*", "disk-1", true),
            ("disk-*", "disk", false),
            ("*.img", "a.img.img", true),
            ("*.img", "a.img.x", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXcYb", false),
            ("sd?", "sda", true),
            ("sd?", "sd", false),
            ("sd[a-c]", "sdb", true),
            ("sd[a-c]", "sdd", false),
            ("sd[^a-c]", "sdd", true),
            ("sd[^a-c]", "sda", false),
            ("[\\]]", "]", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("", "", true),
            ("", "x", false),
            ("ü?", "üö", true),
        ];
        for (pattern, name, expected) in cases {
            let parsed = Pattern::parse(pattern).expect("a pattern");
            assert_eq!(parsed.matches(name), expected, "{pattern:?} and {name:?}");
        }
        for bad in ["[", "[]", "[a", "[a-", "[-a]", "a\\", "[^]"] {
            assert!(Pattern::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn many_stars_match_in_reasonable_time() {
        let pattern = Pattern::parse(&format!("{}b", "a*".repeat(40))).expect("a pattern");
        assert!(!pattern.matches(&"a".repeat(200)));
    }
}
